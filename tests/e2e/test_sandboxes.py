# SPDX-License-Identifier: MIT
"""Programs that enter a sandbox of their own (seccomp) while they are traced: no system call of ours kills them."""

import signal
import subprocess
import time
from pathlib import Path

import pytest

from attaching import is_clean, start_recording
from conftest import PATIENCE, wait_until


@pytest.mark.parametrize("more", [[], ["--libs"], ["--breakpoints"], ["-p", "function"], ["-e", "syscalls"]],
                         ids=["program", "libs", "int3", "function", "syscalls"])
@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
@pytest.mark.parametrize("way", ["prctl", "syscall"])
@pytest.mark.parametrize("what, forbidden", [("narrow", "mmap"), ("strict", "all")])
def test_a_sandbox_that_forbids_our_calls_kills_nobody(way, what, forbidden, flags, more, graftrace, compile):
    """The buffer has room for a part of the calls that are made in it."""
    program = compile("sandbox.c", "-O1", *flags)
    done = graftrace("record", "-b", "64k", *more, "--", program, way, what, code=6)
    assert done.stdout == "done\n"
    assert f"it has entered a sandbox (seccomp) that forbids {forbidden}: nothing of it is recorded" in done.stderr


@pytest.mark.parametrize("what", ["narrow", "strict", "wide"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("more", [[], ["--breakpoints"]], ids=["jumps", "int3"])
def test_a_recording_that_ends_while_the_program_is_in_a_sandbox_kills_nobody(what, end, more, graftrace, compile):
    program = compile("sandbox.c", "-O1")
    with subprocess.Popen([program, "prctl", what, "begun"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as target:
        assert target.stdout.readline() == b"begun\n"
        tracer = start_recording(graftrace, target.pid, "-b", "64k", *more)
        target.stdin.write(b"\n")
        wait_until(lambda: "\nSeccomp:\t0" not in Path(f"/proc/{target.pid}/status").read_text())
        time.sleep(0.1)
        tracer.send_signal(end)
        tracer.communicate(timeout=PATIENCE)
        if what == "wide" and end == signal.SIGINT:
            assert is_clean(target.pid)
        assert target.stdout.read() == b"done\n" and target.wait(PATIENCE) == 6


# A filter that forbids what only graftrace calls, in which the program sets handlers and masks.
HANDLERS = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define FORBID(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
static struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), FORBID(SYS_getpid), FORBID(SYS_gettid),
	FORBID(SYS_process_vm_readv), FORBID(SYS_futex), FORBID(SYS_getcpu), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
};
static void handler(int number) { (void)number; }
int main(void)
{
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	struct sigaction action = { .sa_handler = handler };
	struct timespec moment = { 0, 1000 };
	sigset_t trap;
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	sigaction(SIGUSR1, &action, NULL);
	sigprocmask(SIG_BLOCK, &trap, NULL);
	ppoll(NULL, 0, &moment, &trap);
	signal(SIGTRAP, handler);
	sigprocmask(SIG_UNBLOCK, &trap, NULL);
	syscall(SYS_tgkill, 0, 0, 0);
	_exit(6);
}
"""


@pytest.mark.parametrize("more", [[], ["--breakpoints"], ["--libs", "--breakpoints"]], ids=["jumps", "int3", "libs"])
def test_handlers_are_set_in_a_sandbox(more, graftrace, compile):
    graftrace("record", *more, "--", compile(HANDLERS, "-O1"), code=6)


@pytest.mark.parametrize("way", ["prctl", "syscall"])
def test_a_filter_that_allows_our_calls_changes_nothing(way, graftrace, compile):
    done = graftrace("record", "--", compile("sandbox.c", "-O1"), way, "wide", code=6)
    assert done.stdout == "done\n" and "sandbox" not in done.stderr
    rows = {words[-1]: words[1:] for words in map(str.split, graftrace("report").stdout.splitlines()) if words}
    assert rows["inner"][0] == "1050011"


EXECS = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
    struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
    struct sock_fprog program = { 4, filter };
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) || execv(argv[1], argv + 1);
}
"""


def test_a_new_image_in_a_sandbox_is_asked_for_first(graftrace, compile):
    done = graftrace("record", "--", compile(EXECS), "/bin/echo", "here")
    assert done.stdout == "here\n"
    assert "runs untraced: a seccomp filter of process" in done.stderr and "forbids socketpair" in done.stderr
    assert subprocess.run([compile(EXECS), "/bin/echo", "here"], capture_output=True, timeout=PATIENCE, check=True).stdout == b"here\n"


# One thread enters a filter that allows all that graftrace calls, then another one a filter that forbids munmap.
TWO_FILTERS = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static int entered;
static int forbid(unsigned call)
{
	struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog program = { 4, filter };
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void *allows(void *none)
{
	if (forbid(SYS_swapon) == 0)
		__atomic_store_n(&entered, 1, __ATOMIC_SEQ_CST);
	for (;;)
		usleep(10000);
	return none;
}
int main(void)
{
	pthread_t thread;
	char line;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	pthread_create(&thread, NULL, allows, NULL);
	while (!__atomic_load_n(&entered, __ATOMIC_SEQ_CST))
		usleep(1000);
	if (forbid(SYS_munmap))
		return 1;
	if (write(1, "entered\n", 8) != 8 || read(0, &line, 1) != 1)
		return 2;
	_exit(6);
}
"""


def test_a_filter_that_forbids_our_calls_is_asked_in_each_thread(graftrace, compile):
    """As many filters allow them in another thread."""
    program = compile(TWO_FILTERS, "-O1", "-pthread")
    with graftrace.start("record", "--", program, stdin=subprocess.PIPE) as tracer:
        assert tracer.stdout.readline() == "entered\n"
        time.sleep(0.5)
        errors = tracer.communicate("\n", timeout=PATIENCE)[1]
    assert tracer.returncode == 6 and "forbids munmap" in errors


# Graftrace is busy with a child that it has to leave, of which a thread cannot be stopped (its vfork child sleeps), while all
# threads enter a sandbox, and others than the one that tells of it make the agent's calls.
BUSY_HOST = r"""
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter filter[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), ALLOW(SYS_write), ALLOW(SYS_exit_group),
	ALLOW(SYS_seccomp), ALLOW(SYS_restart_syscall), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS) };
static volatile int jumps[4], begun;
__attribute__((noinline)) static void leave(jmp_buf back) { longjmp(back, 1); }
static void *works(void *count)
{
	jmp_buf back;
	__atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
	for (;; ++*(volatile int *)count)
		if (!setjmp(back))
			leave(back);
	return NULL;
}
static void *waits(void *none)
{
	struct timespec time = { 8, 0 };
	if (vfork() == 0) {
		nanosleep(&time, NULL);
		_exit(0);
	}
	return none;
}
int main(void)
{
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	pthread_t thread;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (fork() == 0) {
		pthread_create(&thread, NULL, waits, NULL);
		usleep(100000);
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
		_exit(0);
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&thread, NULL, works, (void *)&jumps[i]);
	while (begun < 4)
		usleep(1000);
	usleep(400000);
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	for (int i = 0; i < 4; i++)
		for (int before = jumps[i]; jumps[i] < before + 1000;)
			;
	syscall(SYS_exit_group, 6);
}
"""


def test_a_sandbox_that_is_entered_while_graftrace_is_busy_kills_nobody(graftrace, compile):
    graftrace("record", "-b", "1M", "--", compile(BUSY_HOST, "-O1", "-pthread"), code=6)


FORBIDS = r"""
#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
static volatile int over;
static char blocks;
__attribute__((noinline)) long deep(long n)
{
	__asm__ volatile("");
	return n ? deep(n - 1) + 1 : 0;
}
static void *work(void *unused)
{
	while (!over)
		deep(30);
	return unused;
}
static void on_blocked(int number)
{
	blocks = 0;
	_exit(number == SIGSYS ? 7 : 8);
}
static void block_calls_of_the_c_library(void)
{
	unsigned long first = 0, end = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof line, maps))
		if (strstr(line, "libc.so") && strstr(line, "r-xp"))
			sscanf(line, "%lx-%lx", &first, &end);
	fclose(maps);
	signal(SIGSYS, on_blocked);
	prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, first, end - first, &blocks);
	blocks = 1;
}
int main(int argc, char **argv)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };
	void *page = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	usleep(100000);
	deep(10);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(argv[1], "clock"))
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	else if (!strcmp(argv[1], "gs"))
		syscall(SYS_arch_prctl, ARCH_SET_GS, page);
	else
		block_calls_of_the_c_library();
	for (int i = 0; i < 20000; i++) {
		if (!strcmp(argv[2], "name"))
			prctl(PR_SET_NAME, "name");
		else if (!strcmp(argv[2], "clock"))
			prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
		else if (!strcmp(argv[2], "gs"))
			syscall(SYS_arch_prctl, ARCH_SET_GS, page);
		else if (i % 1000 == 0)
			prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
	}
	over = 1;
	blocks = 0;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	_exit(42);
}
"""


@pytest.mark.parametrize("first, then", [("clock", "clock"), ("clock", "sandbox"), ("gs", "name"), ("gs", "gs"),
                                         ("dispatch", "name")])
def test_who_is_left_may_take_away_what_the_agent_needs(first, then, graftrace, compile):
    """Its calls of prctl and syscall do not lead to the agent any more when it goes on."""
    program = compile(FORBIDS, "-O1", "-g", "-pthread", "-D_GNU_SOURCE")
    for _ in range(3):
        graftrace("record", "-b", "4M", "--overwrite", *(["-e", "syscalls"] if first == "dispatch" else []), "--",
                  program, first, then, code=42, timeout=PATIENCE)


NAMES_ITSELF = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *work(void *unused)
{
	for (;;)
		prctl(PR_SET_NAME, "worker");
	return unused;
}
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 8; i++)
		pthread_create(&thread, NULL, work, NULL);
	puts("ready");
	fflush(stdout);
	char byte;
	return read(0, &byte, 1) == 1 ? 42 : 1;
}
"""


def test_threads_that_call_prctl_all_the_time_are_left(graftrace, compile):
    program = compile(NAMES_ITSELF, "-O1", "-pthread", "-D_GNU_SOURCE")
    target = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    for _ in range(2):
        host = start_recording(graftrace, target.pid, "-b", "4M", "--overwrite")
        host.send_signal(signal.SIGINT)
        said = host.communicate(timeout=PATIENCE)[1]
        assert host.returncode == 0 and "memory" not in said, said
    assert is_clean(target.pid)
    target.communicate(b"x", timeout=PATIENCE)
    assert target.returncode == 42
