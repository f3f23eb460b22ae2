# SPDX-License-Identifier: MIT
"""Children of a process that is attached to, which make their first traced call when their parent is another one than
it was at the fork: it has ended, has loaded a library, or other functions of it are traced."""

import os
import signal
import time
from pathlib import Path

import pytest

from attaching import Running, end_recording, is_clean, start_recording
from conftest import wait_until

# step() calls ten functions; there are MORE that nobody calls.
LIBRARY = r"""
static volatile int sum;
#define JOINED_(a, n) a##n
#define JOINED(a, n) JOINED_(a, n)
#define NAME(n) JOINED(FIRST, n)
#define F(n) __attribute__((noinline)) int NAME(n)(int x) { sum += x * n + SEED; if (sum & 1) sum ^= n; return sum; }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10)
int step(int x)
{
	return NAME(1)(x) + NAME(2)(x) + NAME(3)(x) + NAME(4)(x) + NAME(5)(x) + NAME(6)(x) + NAME(7)(x) + NAME(8)(x) +
	       NAME(9)(x) + NAME(10)(x);
}
__asm__(".macro one\n.type more\\@, @function\nmore\\@:\npush %rbp\nmov %rsp, %rbp\nlea 1(%rdi), %eax\npop %rbp\nret\n"
	".size more\\@, . - more\\@\n.endm\n.rept " MORE "\none\n.endr\n");
"""

# argv: ended, two libraries: a worker loads the first, forks and ends; its child calls, and loads the other one.
# argv: loaded, three libraries: the third is loaded, and a child is forked; then its parent loads the first library,
# and the child has memory of its own where the recorder has put code into its parent since. The child calls, and loads the other one.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
typedef int step(int);
static step *loaded[3];
__attribute__((noinline)) static int work(step *of, int i) { return of(i) + 1; }
static int none(int x) { return x; }
static void load(int i, char **argv)
{
	loaded[i] = (step *)dlsym(dlopen(argv[2 + i], RTLD_NOW), "step");
	if (!loaded[i])
		_exit(9);
}
static void calls(void)
{
	static volatile int sum;

	for (int i = 0; i < 200; i++)
		sum += work(loaded[0] ? loaded[0] : none, i) + work(loaded[1] ? loaded[1] : none, i);
}
static void say(const char *text)
{
	puts(text);
	fflush(stdout);
}
static void wait_for(int fd)
{
	char byte;

	while (read(fd, &byte, 1) > 0)
		;
	usleep(500000); /* graftrace has seen it, too */
}
static void *own[64];
static size_t own_bytes[64];
static int own_count;
/* The recorder's code that another process has, and this one has not: memory without a file. */
static void fill_up(int fd)
{
	FILE *maps = fdopen(fd, "r");
	char line[512];
	unsigned long low, high;

	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &low, &high) != 2 || !strstr(line, "r-xp 00000000 00:00 0") || own_count == 64)
			continue;
		own[own_count] = mmap((void *)low, high - low, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (own[own_count] == MAP_FAILED)
			continue;
		own_bytes[own_count] = high - low;
		memset(own[own_count++], 0x5a, high - low);
	}
}
static const char *state(void)
{
	for (int i = 0; i < own_count; i++)
		for (size_t k = 0; k < own_bytes[i]; k++)
			if (((char *)own[i])[k] != 0x5a)
				return "memory changed";
	return "right";
}
static int child(char **argv)
{
	char line[64];

	calls();
	load(1, argv);
	calls();
	say(own_count || !strcmp(argv[1], "ended") ? "loaded" : "no memory of its own");
	while (fgets(line, sizeof(line), stdin)) {
		calls();
		say(state());
	}
	return 0;
}
static int ended(char **argv)
{
	int end[2], status;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (fork() == 0) {
		load(0, argv);
		calls();
		pipe(end);
		if (fork() > 0)
			_exit(0);
		close(end[1]);
		wait_for(end[0]);
		_exit(child(argv));
	}
	wait(&status);
	wait(&status);
	return status;
}
static int loads(char **argv)
{
	int to[2], status;
	pid_t pid;

	pipe(to);
	load(2, argv);
	calls();
	pid = fork();
	if (pid == 0) {
		close(to[1]);
		fill_up(to[0]);
		_exit(child(argv));
	}
	load(0, argv);
	calls();
	close(to[0]);
	FILE *maps = fopen("/proc/self/maps", "r"), *out = fdopen(to[1], "w");
	for (int c; (c = getc(maps)) != EOF;)
		putc(c, out);
	fclose(out);
	wait(&status);
	return status;
}
int main(int argc, char **argv)
{
	char line[64], text[64];
	int status;

	say("ready");
	if (argc < 4 || !fgets(line, sizeof(line), stdin))
		return 9;
	status = strcmp(argv[1], "ended") ? loads(argv) : ended(argv);
	snprintf(text, sizeof(text), "ended with status %#x", status);
	say(text);
	return 0;
}
"""


def library(compile, name, more):
    """For more than 4096 functions at once the recorder needs memory anew, where it then has room for so many others."""
    return compile(LIBRARY, "-O1", "-shared", "-fPIC", f"-DFIRST={name}_", f"-DSEED={len(name)}", f'-DMORE="{more}"')


@pytest.mark.parametrize("what, more", [("ended", [0, 0]), ("loaded", [6000, 3000, 3000])], ids=["ended", "loaded"])
def test_a_child_whose_parent_is_another_one_than_it_was_is_not_taken_for_it(graftrace, compile, what, more):
    """Its stubs are those that it has: the recorder gives none of them out again, and takes all of them away."""
    libraries = [library(compile, "abc"[:i + 1], count) for i, count in enumerate(more)]
    with Running(compile(PROGRAM, "-O1"), what, *map(str, libraries)) as target:
        tracer = start_recording(graftrace, target.pid)
        assert target("begin") == "loaded"
        assert target("call") == "right"
        end_recording(tracer)
        assert is_clean(target.pid)
        assert target("call") == "right"
        target.process.stdin.close()
        assert target.line() == "ended with status 0"


def test_without_children_such_a_child_is_left_alone(graftrace, compile):
    libraries = [library(compile, "abc"[:i + 1], count) for i, count in enumerate([6000, 3000, 3000])]
    with Running(compile(PROGRAM, "-O1"), "loaded", *map(str, libraries)) as target:
        tracer = start_recording(graftrace, target.pid, "--no-fork")
        assert target("begin") == "loaded"
        child = int(Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text())
        wait_until(lambda: is_clean(child))
        assert target("call") == "right"
        end_recording(tracer)
        target.process.stdin.close()
        assert target.line() == "ended with status 0"


# A child waits for the second line before its first traced call, then does what argv says. "orphan": it has a child
# of its own, and their parent ends. "many": no second line; children one after the other do it at once. "crowd": 150
# children do it at the same moment, which is more than can send letters at once; "strangers": 40, for the second
# line. Much memory makes a look through it long.
CHANGED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define KEEP __asm__ volatile("" : "+r"(x))
#define CALL __attribute__((noinline)) static int
static volatile int sum, times;
static char *base, *low, *copy;
static size_t size;
static void *place[5];
CALL other(int x) { KEEP; return x + 1; }
CALL work(int x) { KEEP; return other(x) + 1; }
static void run(int n)
{
	for (int i = 0; i < n; i++)
		sum += work(i);
}
CALL capture(int x)
{
	if (__builtin_setjmp(place) == 0) {
		low = (char *)__builtin_frame_address(0) - 512;
		size = base - low;
		memcpy(copy = malloc(size), low, size);
	}
	KEEP;
	return x + 1;
}
CALL third(int x) { KEEP; x = capture(x); KEEP; return x + 1; }
CALL second(int x) { KEEP; x = third(x); KEEP; return x + 1; }
static void resume(void)
{
	char *room = __builtin_alloca(16384);

	__asm__ volatile("" : : "r"(room) : "memory");
	memcpy(low, copy, size);
	__builtin_longjmp(place, 1);
}
CALL copies(void)
{
	base = (char *)__builtin_frame_address(0);
	int x = second(1);
	run(100);
	if (++times < 5)
		resume();
	return x;
}
static int act(const char *what, const char *library)
{
	run(100);
	if (!strcmp(what, "clock"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	else if (!strcmp(what, "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	else if (!strcmp(what, "copies") && (!dlopen(library, RTLD_NOW) || copies() != 4 || times != 5))
		return 1;
	run(20000);
	return 7;
}
static void child(char **argv, volatile int *go)
{
	while (!*go)
		usleep(1000);
	if (!strcmp(argv[1], "orphan")) {
		run(100);
		if (fork() == 0)
			go[2] = getpid();
		for (go[1] = getppid();;) {
			run(100);
			usleep(10000);
		}
	}
	syscall(SYS_exit, act(argv[1], argv[2]));
}
int main(int argc, char **argv)
{
	volatile int *go = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char line[64];
	int status, bad = 0;
	pid_t pid;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3)
		memset(malloc(300 << 20), 1, 300 << 20);
	puts("ready");
	if (argc < 3 || !fgets(line, sizeof line, stdin))
		return 9;
	run(100);
	const int crowd = argc <= 3 ? 0 : argv[3][0] == 'c' ? 150 : argv[3][0] == 's' ? 40 : 0;

	for (int i = 0; i < crowd; i++)
		if (fork() == 0)
			child(argv, go);
	if (crowd == 40 && (puts("forked") < 0 || !fgets(line, sizeof line, stdin)))
		return 9;
	go[0] = crowd;
	for (int i = 0; i < crowd; i++) {
		while (waitpid(-1, &status, WNOHANG) == 0)
			run(1);
		bad += status != 0x700;
	}
	for (int i = 0; argc > 3 && !go[0] && i < 100; i++) {
		if ((pid = fork()) == 0)
			syscall(SYS_exit, act(argv[1], argv[2]));
		run(10);
		waitpid(pid, &status, 0);
		bad += status != 0x700;
	}
	if (argc > 3) {
		printf("%d bad\n", bad);
		return !fgets(line, sizeof line, stdin);
	}
	if ((pid = fork()) == 0)
		child(argv, go);
	printf("%d\n", (int)pid);
	if (!fgets(line, sizeof line, stdin))
		return 9;
	go[0] = 1;
	while (!strcmp(argv[1], "orphan") && (!go[1] || !go[2]))
		run(1);
	if (go[2])
		return printf("%d\n", go[2]) < 0;
	while (waitpid(pid, &status, WNOHANG) == 0)
		run(1);
	printf("%#x\n", status);
	return !fgets(line, sizeof line, stdin);
}
"""
# Known by this name as one that copies stacks.
COPIES_STACKS = "void *PyInit__greenlet(void);\nvoid *PyInit__greenlet(void) { return 0; }\n"


@pytest.fixture
def changed(compile):
    return compile(CHANGED, "-O1", "-fno-stack-protector"), compile(COPIES_STACKS, "-shared", "-fPIC")


@pytest.mark.parametrize("options", [[], ["--no-fork"]], ids=["followed", "left"])
@pytest.mark.parametrize("what", ["clock", "strict", "copies"])
def test_a_child_whose_parent_was_changed_does_what_traced_ones_are_left_for(what, options, graftrace, changed):
    with Running(changed[0], what, changed[1]) as target:
        tracer = start_recording(graftrace, target.pid, *options)
        target("fork")
        graftrace("set", "-P", target.pid, "set_ftrace_filter", "work")
        graftrace("set", "-P", target.pid, "set_ftrace_filter", "*")
        assert target("go on") == "0x700"
        end_recording(tracer)
        assert is_clean(target.pid)


@pytest.mark.parametrize("options", [[], ["--no-fork"]], ids=["followed", "left"])
@pytest.mark.parametrize("what", ["clock", "strict"])
@pytest.mark.parametrize("how", ["many", "crowd", "strangers"])
def test_children_may_do_at_once_what_traced_ones_are_left_for(how, what, options, graftrace, changed):
    with Running(changed[0], what, changed[1], how) as target:
        tracer = start_recording(graftrace, target.pid, *options)
        if how == "strangers":
            assert target("fork") == "forked"
            graftrace("set", "-P", target.pid, "set_ftrace_filter", "work")
        assert target("fork") == "0 bad"
        end_recording(tracer)
        assert is_clean(target.pid)


def test_children_of_a_child_whose_parent_was_changed_and_has_ended_are_left_clean(graftrace, changed):
    with Running(changed[0], "orphan", changed[1]) as target:
        tracer = start_recording(graftrace, target.pid)
        pids = [int(target("fork"))]
        graftrace("set", "-P", target.pid, "set_ftrace_filter", "work")
        pids.append(int(target("go on")))
        try:
            target.process.wait()
            time.sleep(0.2)
            end_recording(tracer)
            assert all(is_clean(pid) for pid in pids)
            assert all(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z" for pid in pids)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)


# The child's first traced call is another thread's, while its first thread waits in dlopen for the recorder.
WAITS_MEANWHILE = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int sum;
__attribute__((noinline)) static int work(int x) { sum += x; return sum + 1; }
static void *call_later(void *unused)
{
	usleep(300000);
	work(1);
	return unused;
}
int main(int argc, char **argv)
{
	char line[64];
	int status;
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	if (argc != 2 || !fgets(line, sizeof line, stdin))
		return 9;
	if (fork() == 0)
		_exit(pthread_create(&thread, NULL, call_later, NULL) || !dlopen(argv[1], RTLD_NOW) ||
		      pthread_join(thread, NULL));
	wait(&status);
	printf("%#x\n", status);
	return !fgets(line, sizeof line, stdin);
}
"""


def test_a_letter_that_a_child_has_sent_before_its_first_traced_call_is_answered(graftrace, compile):
    with Running(compile(WAITS_MEANWHILE, "-O1", "-pthread"), str(library(compile, "a", 0))) as target:
        tracer = start_recording(graftrace, target.pid, "-l", "work")
        tracer.send_signal(signal.SIGSTOP)  # the letter stands there until the thread has made its call
        target.process.stdin.write("fork\n")
        time.sleep(0.8)
        tracer.send_signal(signal.SIGCONT)
        begun = time.monotonic()
        assert target.line() == "0"
        assert time.monotonic() - begun < 15  # it waited for 30 seconds
        end_recording(tracer)
        assert is_clean(target.pid)
