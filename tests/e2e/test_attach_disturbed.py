# SPDX-License-Identifier: MIT
"""graftrace record -P PID: what other processes, and the process itself, do while it is attached to or left:
breakpoints, vfork, shared memory, fork, exec, its death."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from attaching import (MORE, TRACER, Running, calls, end_recording, is_clean, look, looks_as, maps,
                       needs_userfaultfd, record, start_recording)
from conftest import PATIENCE, wait_until
from mounted import Mounted


def function_address(pid, path, name):
    """Where a function of a PIE stands in the process."""
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    value = next(int(line.split()[0], 16) for line in symbols.splitlines()
                 if line.split()[-1] == name)
    return int(maps(pid).split("-")[0], 16) + value


def test_a_debuggers_breakpoints_stay_where_they_are(graftrace, attached):
    with Running(attached) as target, open(f"/proc/{target.pid}/mem", "r+b", 0) as memory:
        def exchange(address, byte):
            memory.seek(address)
            old = memory.read(1)
            memory.seek(address)
            memory.write(byte)
            return old

        before = look(target.pid)
        leaf = function_address(target.pid, attached, "leaf")
        middle = function_address(target.pid, attached, "middle")
        # under us: the function is left alone
        original = exchange(leaf, b"\xcc")
        record(graftrace, target.pid, "--for", "10ms")
        assert exchange(leaf, original) == b"\xcc"
        assert looks_as(target.pid, before)
        # over us: what was there when it came is put back by the debugger later
        tracer = start_recording(graftrace, target.pid)
        jump = exchange(middle, b"\xcc")
        assert jump != original
        said = end_recording(tracer)
        assert "a breakpoint over its patches" in said and "--uprobe-safe" in said
        assert exchange(middle, jump) == b"\xcc"
        assert target("call") == "right"
        record(graftrace, target.pid, "--for", "10ms")
        assert looks_as(target.pid, before)


def test_a_parent_in_vfork_is_waited_for(graftrace, compile):
    program = compile(r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int child(void)
{
	usleep(700000);
	return 7;
}
int main(void)
{
	int status;
	puts("ready");
	fflush(stdout);
	if (vfork() == 0)
		_exit(child());
	wait(&status);
	printf("%d\n", status >> 8);
	fflush(stdout);
	pause();
}
""", "-O2")
    with Running(program) as target:
        record(graftrace, target.pid, "--for", "20ms")
        assert is_clean(target.pid)
        assert target.line() == "7"


SHARERS = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long rounds[3];
static volatile int wrong;
static const char *volatile end;
__attribute__((noinline)) static long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static int works(void *number)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!end) {
		if (fib(10) != 55)
			wrong = 1;
		rounds[(long)number]++;
	}
	return 0;
}
int main(void)
{
	int pids[3], status;
	for (long i = 0; i < 3; i++)
		pids[i] = clone(works, (char *)malloc(1 << 20) + (1 << 20), CLONE_VM | SIGCHLD, (void *)i);
	puts("ready");
	fflush(stdout);
	getchar();
	end = "end";
	for (int i = 0; i < 3; i++)
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			wrong = 1;
	printf("%s\n", !wrong && rounds[0] && rounds[1] && rounds[2] ? "right" : "wrong");
	fflush(stdout);
	pause();
}
"""


def test_processes_that_share_the_memory_stand_still_with_the_threads(graftrace, compile):
    with Running(compile(SHARERS, "-O2")) as target:
        before = look(target.pid)
        for _ in range(3 * MORE):
            done = record(graftrace, target.pid, "--for", "10ms", "-o", "/dev/null")
            assert "keeps the recorder's memory" not in done.stderr, done.stderr
        assert look(target.pid)["code"] == before["code"]
        assert is_clean(target.pid)
        assert target("") == "right"


# The first thread ends while it is recorded; a second goes on, and so do processes that share the memory.
LEADERLESS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#define COUNT 40
static volatile int ended;
static int pids[COUNT];
__attribute__((noinline)) static int next(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}
static int works(void *argument)
{
	int n = 0;
	(void)argument;
	while (!ended) {
		for (int i = 0; i < 1000; i++)
			n = next(n);
		usleep(300);
	}
	return n ? 5 : 6;
}
static void *second(void *argument)
{
	int status, wrong = 0;
	char c;
	for (int i = 0; i < COUNT; i++)
		pids[i] = clone(works, (char *)malloc(1 << 16) + (1 << 16), CLONE_VM | SIGCHLD, NULL);
	usleep(200000);
	puts("inside");
	while (read(0, &c, 1) < 0 || c != '\n')
		;
	ended = 1;
	for (int i = 0; i < COUNT; i++)
		if (waitpid(pids[i], &status, __WALL) != pids[i] || status != 5 << 8)
			wrong++;
	puts(wrong ? "wrong" : "right");
	pause();
	return argument;
}
int main(void)
{
	pthread_t thread;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (int i = 0; i < 300; i++) {
		next(i);
		usleep(1000);
	}
	pthread_create(&thread, NULL, second, NULL);
	usleep(20000);
	syscall(SYS_exit, 0);
}
"""


def test_many_processes_that_share_the_memory_are_found_when_the_first_thread_has_ended(graftrace, compile):
    with Running(compile(LEADERLESS, "-O2", "-pthread")) as target:
        tracer = start_recording(graftrace, target.pid, "--for", "1s")
        assert target.line() == "inside"
        _, text = tracer.communicate(timeout=PATIENCE)
        assert tracer.returncode == 0 and "keeps the recorder's memory" not in text, text
        assert target("go on") == "right"


RESTLESS = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int twice(int x)
{
	__asm__ volatile("" ::: "memory");
	return 2 * x;
}
int main(int argc, char **argv)
{
	int left = argc > 2 ? atoi(argv[2]) : 0, status, i;
	char number[16];
	if (left == 0)
		return 0;
	if (argc == 3) {
		puts("ready");
		fflush(stdout);
	}
	if (argv[1][0] == 'f') {
		for (i = 0; i < left; i++) {
			if (fork() == 0)
				_exit(twice(21) != 42);
			wait(&status);
			if (status)
				return 1;
		}
		return 0;
	}
	usleep(300);
	snprintf(number, sizeof(number), "%d", left - 1);
	if (twice(left) == 2 * left)
		execl("/proc/self/exe", argv[0], argv[1], number, "again", NULL);
	return 1;
}
"""


@pytest.mark.parametrize("how", ["forks", "execs"])
def test_processes_that_fork_or_exec_all_the_time_go_on(graftrace, compile, how):
    with Running(compile(RESTLESS, "-O2"), how, "400") as target:
        while target.is_alive():
            record(graftrace, target.pid, "--for", "5ms", code=None)
        assert target.process.returncode == 0


def test_a_process_that_dies_at_any_moment_ends_the_recording(graftrace, attached):
    for i in range(16):
        with Running(attached, "work") as target:
            tracer = graftrace.start("record", "-P", str(target.pid), "--for", "20ms")
            time.sleep(0.005 * i)
            target.process.kill()
            _, text = tracer.communicate(timeout=PATIENCE)
            told = rf"process {target.pid}\b.* has ended|there is no process {target.pid}"
            assert tracer.returncode == 0 or tracer.returncode == 1 and re.search(told, text), text


WAITS_IN_VFORK = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) int called(volatile int n) { return n * 3; }
int main(void) {
    /* Attaching gives up after 5 s. */
    const struct timespec longer_than_a_late_thread_is_waited_for = { 1, 500000000 };
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    if (vfork() == 0) { nanosleep(&longer_than_a_late_thread_is_waited_for, NULL); _exit(0); }
    while (getchar() != EOF) { called(1); puts("called"); }
}
"""


def test_a_parent_that_waits_long_in_vfork_is_attached_to_when_it_is_back(graftrace, compile):
    with Running(compile(WAITS_IN_VFORK, "-O1")) as target:
        tracer = start_recording(graftrace, target.pid, "-l", "called")
        assert [target("") for _ in range(4)] == ["called"] * 4
        end_recording(tracer)
        assert calls(graftrace)["called"] == 4 and target.is_alive()


# A vfork child executes the program anew when its parent is traced, "heir": while somebody stops all threads of the
# parent. "changed": with each line. "attached": as soon as a function is patched.
HELD_IN_VFORK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__asm__(".text\n.p2align 4\n.globl small\n.type small,@function\nsmall:\n.cfi_startproc\nret\n.cfi_endproc\n"
	".size small,.-small\n");
void small(void); /* nothing but a breakpoint fits in */
__attribute__((noinline)) int heir(volatile int n) { return n * 3; }
__attribute__((noinline)) int called(volatile int n) { return n * 5 + heir(n); }
static int is_traced(const char *status)
{
	static char text[4096];
	int file = open(status, O_RDONLY);
	ssize_t bytes = read(file, text, sizeof(text) - 1);
	const char *at;

	close(file);
	text[bytes > 0 ? bytes : 0] = 0;
	at = strstr(text, "TracerPid:");
	return at && atoi(at + strlen("TracerPid:"));
}
static int child(char **argv)
{
	const struct timespec moment = { 0, 1000000 };
	static char status[64];
	int ended, i;

	snprintf(status, sizeof(status), "/proc/%d/status", getpid());
	if (vfork() == 0) {
		for (i = 0; i < 5000 && !is_traced(status); i++)
			nanosleep(&moment, NULL);
		execl("/proc/self/exe", argv[0], "heir", NULL);
		_exit(1);
	}
	return wait(&ended) < 0 || ended;
}
int main(int argc, char **argv)
{
	unsigned char was[16];
	char line[64];

	const char *mode = argc > 1 ? argv[1] : "changed";

	if (strcmp(mode, "heir") == 0)
		return heir(argc) != 3 * argc;
	memcpy(was, (void *)called, sizeof(was));
	puts("ready");
	fflush(stdout);
	while (strcmp(mode, "attached") == 0 && memcmp(was, (void *)called, sizeof(was)) == 0)
		__asm__ volatile("" ::: "memory");
	while (strcmp(mode, "attached") == 0 || fgets(line, sizeof(line), stdin)) {
		small();
		puts(child(argv) ? "failed" : "done");
		fflush(stdout);
		while (strcmp(mode, "attached") == 0)
			pause();
	}
	return 3;
}
"""


def test_the_exec_of_a_vfork_child_is_followed_while_its_parent_is_waited_for(graftrace, compile):
    program = compile(HELD_IN_VFORK, "-O1")
    with Running(program, "attached") as target:
        tracer = start_recording(graftrace, target.pid, "--breakpoints")  # once more stopped for these
        assert target.line() == "done"
        end_recording(tracer)
        assert calls(graftrace)["heir"] == 1


def test_a_change_of_filters_lets_it_execute_too(graftrace, compile):
    mounted = Mounted(graftrace, compile(HELD_IN_VFORK, "-O1"), "-p", "function_graph")
    mounted.process.stdin.write("\n")
    mounted.process.stdin.flush()
    children = Path(f"/proc/{mounted.traced()}/task/{mounted.traced()}/children")
    wait_until(children.read_text)
    mounted.write("set_ftrace_filter", "heir")
    assert mounted.process.stdout.readline() == "done\n"
    assert mounted.read("trace").count(" heir();") == 1
    assert mounted.end() == 3


# A child whose parent has ended, or executed another program, before it has made a call: nobody knows of it. Then it
# executes the program anew, "last".
TOLD_OF_LATE = r"""
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int orphan(volatile int n) { return n * 3; }
__attribute__((noinline)) int last(volatile int n) { return n * 5; }
static int child(char **argv)
{
	usleep(300000); /* graftrace has forgotten the parent */
	orphan(1);
	execl("/proc/self/exe", argv[0], "last", NULL);
	return 1;
}
int main(int argc, char **argv)
{
	int end[2];
	char byte;

	if (argc > 1 && strcmp(argv[1], "last") == 0)
		return last(argc) != 5 * argc;
	if (argc > 1 && strcmp(argv[1], "other") == 0)
		return usleep(600000);
	if (argc > 1 && fork() == 0)
		return child(argv);
	if (argc > 1 && strcmp(argv[1], "executes") == 0)
		execl("/proc/self/exe", argv[0], "other", NULL);
	if (argc > 1)
		return 0;
	for (int i = 0; i < 2; i++) {
		pipe(end);
		if (fork() == 0)
			execl("/proc/self/exe", argv[0], i ? "executes" : "ends", NULL);
		close(end[1]);
		read(end[0], &byte, 1); /* until the last of them has ended */
		close(end[0]);
	}
	while (wait(NULL) > 0)
		;
	return 3;
}
"""


def test_a_child_that_tells_of_itself_when_its_parent_is_gone_is_followed(graftrace, compile):
    recorded = graftrace("record", "-l", "orphan", "-l", "last", compile(TOLD_OF_LATE, "-O1"), code=3)
    assert ", 0 lost" in recorded.stderr
    assert calls(graftrace) == {"orphan": 2, "last": 2}


# argv[1] threads read into pages that another thread provides, 50 ms later. The kernel asks for the page again and again
# while a stop is asked for. Says for how many seconds it stood still at most.
PROVIDES_PAGES = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int faults;
static volatile long reads, stood_still;
static void *provide(void *data)
{
	static char zero[4096];
	struct uffd_msg message;

	while (read(faults, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_copy copy = { .dst = message.arg.pagefault.address & ~4095ull, .src = (long)zero, .len = 4096 };

		usleep(50000);
		ioctl(faults, UFFDIO_COPY, &copy);
	}
	return data;
}
static void *reader(void *page)
{
	int zero = open("/dev/zero", O_RDONLY);

	while (read(zero, page, 8) == 8) {
		reads++;
		madvise(page, 4096, MADV_DONTNEED);
	}
	_exit(9);
	return NULL;
}
static void *watch(void *data)
{
	for (time_t before = time(NULL), now;; before = now) {
		usleep(100000);
		now = time(NULL);
		if (now - before > stood_still)
			stood_still = now - before;
	}
	return data;
}
int main(int argc, char **argv)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	const int readers = atoi(argv[argc - 1]);
	pthread_t thread;
	char line[64], *pages;

	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	pages = mmap(NULL, readers * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = (unsigned long)pages;
	all.range.len = readers * 4096;
	if (ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &all))
		return 8;
	pthread_create(&thread, NULL, provide, NULL);
	pthread_create(&thread, NULL, watch, NULL);
	for (int i = 0; i < readers; i++)
		pthread_create(&thread, NULL, reader, pages + i * 4096);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long before = reads;

		while (reads < before + 3)
			usleep(1000);
		printf("%ld\n", stood_still);
		fflush(stdout);
	}
	return 3;
}
"""


@needs_userfaultfd
@pytest.mark.parametrize("threads", [1, 20])
def test_threads_that_another_one_has_to_provide_with_pages_do_not_hold_the_program_up(graftrace, compile, threads):
    with Running(compile(PROVIDES_PAGES, "-O1", "-pthread"), str(threads)) as target:
        tracer = graftrace.start("record", "-P", str(target.pid), "--for", "1s")
        text = tracer.communicate(timeout=150)[1]
        assert tracer.returncode == 0 or "cannot be stopped" in text, text
        assert int(target("")) < 12


def test_a_debugger_that_is_there_when_graftrace_leaves_is_waited_for(graftrace, compile, attached):
    with Running(attached) as target:
        tracer = start_recording(graftrace, target.pid)
        with subprocess.Popen([compile(TRACER), str(target.pid)], stdout=subprocess.PIPE, text=True) as debugger:
            assert debugger.stdout.readline() == "ready\n"
            tracer.send_signal(signal.SIGINT)
            time.sleep(0.7)
            assert tracer.poll() is None
            debugger.kill()
        text = tracer.communicate(timeout=PATIENCE)[1]
        assert tracer.returncode == 0 and "keeps the recorder's memory" not in text, text
        assert is_clean(target.pid)


# Threads whose stacks lie side by side in one mapping, without a page between them.
SIDE_BY_SIDE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#define THREADS 100
#define BYTES (1 << 20)
__attribute__((noinline)) void waits(void) { pause(); }
static void *thread(void *argument) { waits(); return argument; }
int main(void)
{
	char *stacks = mmap(NULL, THREADS * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attributes;
	pthread_t some;
	pthread_attr_init(&attributes);
	for (int i = 0; i < THREADS; i++) {
		pthread_attr_setstack(&attributes, stacks + (long)BYTES * i, BYTES);
		pthread_create(&some, &attributes, thread, NULL);
	}
	puts("ready");
	fflush(stdout);
	waits();
}
"""


def test_stacks_that_lie_side_by_side_are_looked_through_once(graftrace, compile):
    """Of each thread that is stopped its own stack is read, not all above it: that took 25 s here."""
    with Running(compile(SIDE_BY_SIDE, "-O1", "-pthread")) as target:
        begun = time.monotonic()
        record(graftrace, target.pid, "--for", "10ms")
        assert time.monotonic() - begun < 10
        assert is_clean(target.pid)
