# SPDX-License-Identifier: MIT
"""Leaving a program while a signal's frame leads into the recorder's code: that of a coroutine that nobody runs, which
has to come out first, and one that is only left over, which is not waited for."""

import contextlib
import re

import pytest

from attaching import Running, is_clean, needs_userfaultfd, record, start_recording
from conftest import PATIENCE

COMMON = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <sys/syscall.h>
#define KEEP __attribute__((noinline))
extern char __executable_start, etext;
static volatile int caught, stop;
KEEP long leaf(long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}
KEEP long calls(long n)
{
	long sum = 0;
	for (int i = 0; i < 3; i++)
		sum += leaf(n + i);
	return sum;
}
/* What runs calls nothing but these: elsewhere are stubs, within 4 GB as the program, and the recorder's code, beyond.
 * From a stub graftrace brings a context out. */
static int is_elsewhere(void *context)
{
	char *at = (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	return at < &__executable_start || at >= &etext;
}
static int is_inside(void *context)
{
	return ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] >> 32 != 0;
}
static void tick_often(void)
{
	struct sigevent event;
	struct itimerspec often = { { 0, 300000 }, { 0, 300000 } };
	timer_t timer;
	memset(&event, 0, sizeof event);
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGALRM;
	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL))
		abort();
}
static void handle(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
	sigaction(SIGALRM, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
}
static void wait_for_line(void)
{
	char c;
	while (read(0, &c, 1) < 0 || c != '\n')
		;
}
"""

# The first stack is the thread's own, where it stays once the other has been interrupted inside.
SUSPENDED = COMMON + r"""
void switch_to(void **from, void *to);
__asm__(".text\n.p2align 4\n.globl switch_to\n.type switch_to, @function\nswitch_to:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, (%rdi)\nmov %rsi, %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size switch_to, . - switch_to\n");
static void *own, *other;
static volatile long rounds;
static volatile int runs_other, works, wiped;
static void on_tick(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	if (runs_other && works && !caught && is_inside(context)) {
		caught = 1;
		runs_other = 0;
		switch_to(&other, own);
	} else if (runs_other && wiped && !is_elsewhere(context)) {
		runs_other = 0;
		switch_to(&other, own);
	}
}
/* The frame of the first signal may lie deeper than that of the second, and would stay there as if it were alive. */
KEEP static void wipe(void)
{
	char room[32768];
	memset(room, 0, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	wiped = 1;
}
static void work(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, 8);
	works = 1;
	for (;;) {
		for (long n = 0; n < 1000; n++)
			if (calls(n) != 9 * n + 12)
				abort();
		rounds++;
		if (stop && !wiped)
			wipe();
	}
}
static char *memory; /* of stacks: a mapping */
#define BYTES	(1 << 20)
#define TOP	(1 << 17) /* of it: the thread's */
static void *ends(void *argument)
{
	return argument;
}
static void run_on(char *stack, size_t bytes, void *(*function)(void *))
{
	pthread_attr_t how;
	pthread_t some;
	pthread_attr_init(&how);
	if (pthread_attr_setstack(&how, stack, bytes) || pthread_create(&some, &how, function, NULL) ||
	    pthread_join(some, NULL))
		abort();
}
static void *switches(void *argument)
{
	void **top = (void **)(memory + BYTES - (WHERE == 2 ? 8192 : TOP) - 256);
	top[0] = (void *)work;
	other = top - 6;
	handle(on_tick, 0);
	tick_often();
	puts("ready");
	runs_other = 1;
	switch_to(&own, other);
	puts("inside");
	wait_for_line();
	stop = 1;
	rounds = 0;
	runs_other = 1;
	switch_to(&own, other);
	puts(rounds || calls(1) == 21 ? "right" : "wrong");
	pause();
	return argument;
}
int main(void)
{
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (WHERE == 0) /* below the block of a thread that has ended */
		run_on(memory + BYTES - TOP, TOP, ends);
	if (WHERE == 2) /* where that thread's stack was */
		run_on(memory, BYTES, ends);
	if (WHERE == 1) /* below the stack of the thread that runs */
		run_on(memory + BYTES - TOP, TOP, switches);
	switches(NULL);
}
"""


@pytest.mark.parametrize("how", [[], ["-p", "function"], ["--probe", "leaf"]], ids=["graph", "function", "probe"])
def test_a_coroutine_that_waits_inside_comes_out_before_its_code_goes(graftrace, compile, how):
    """It switches by code of its own, and each stop sees the thread on its own stack. graftrace waits for five seconds
    each time, so the places of that stack are tried side by side."""
    programs = [compile(SUSPENDED, "-O1", "-no-pie", "-pthread", f"-DWHERE={where}") for where in range(3)]
    with contextlib.ExitStack() as running:
        targets = [running.enter_context(Running(program)) for program in programs]
        tracers = [graftrace.start("record", "-P", str(target.pid), *how, "--for", "2s", "-o", f"{target.pid}.data")
                   for target in targets]
        for target in targets:
            assert target.line() == "inside"
        for target, tracer in zip(targets, tracers):
            text = tracer.communicate(timeout=PATIENCE)[1]
            assert tracer.returncode == 0 and "keeps the recorder's memory" in text, text
            assert not is_clean(target.pid)
            assert target("go on") == "right"
            record(graftrace, target.pid, "--for", "1ms")
            assert is_clean(target.pid)


# A thread ends on a stack that the C library keeps; below what it used stands a frame that leads inside.
ENDED = COMMON + r"""
static void on_tick(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	if (is_inside(context))
		caught = 1;
}
static void *thread(void *argument)
{
	sigset_t set;
	tick_often();
	while (!caught)
		calls(5);
	sigfillset(&set);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 8);
	return argument;
}
int main(void)
{
	pthread_t some;
	handle(on_tick, 0);
	puts("ready");
	pthread_create(&some, NULL, thread, NULL);
	pthread_join(some, NULL);
	puts("inside");
	wait_for_line();
	puts("right");
	pause();
}
"""


def test_a_frame_of_a_thread_that_has_ended_is_not_waited_for(graftrace, compile):
    with Running(compile(ENDED, "-O1", "-no-pie", "-pthread")) as target:
        tracer = graftrace.start("record", "-P", str(target.pid), "--for", "1s")
        assert target.line() == "inside"
        text = tracer.communicate(timeout=PATIENCE)[1]
        assert tracer.returncode == 0 and "keeps the recorder's memory" not in text, text
        assert float(re.search(r"calls, \d+ threads?, ([\d.]+) s", text)[1]) < 5, text
        assert is_clean(target.pid)
        assert target("go on") == "right"


# The first thread has ended; another one waits in a handler that has interrupted it inside.
LEADERLESS = COMMON + r"""
static void on_tick(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info;
	if (caught || !is_inside(context))
		return;
	caught = 1;
	puts("inside");
	wait_for_line();
}
static void *thread(void *argument)
{
	usleep(100000);
	tick_often();
	while (!caught)
		if (calls(5) != 57)
			abort();
	puts(argument == NULL && calls(1) == 21 ? "right" : "wrong");
	for (;;)
		pause();
}
int main(void)
{
	pthread_t some;
	handle(on_tick, 0);
	puts("ready");
	wait_for_line();
	pthread_create(&some, NULL, thread, NULL);
	syscall(SYS_exit, 0);
}
"""


def test_a_thread_that_waits_inside_is_seen_when_the_first_one_has_ended(graftrace, compile):
    with Running(compile(LEADERLESS, "-O1", "-no-pie", "-pthread")) as target:
        tracer = start_recording(graftrace, target.pid, "--for", "2s")
        assert target("begin") == "inside"
        text = tracer.communicate(timeout=PATIENCE)[1]
        assert tracer.returncode == 0 and "keeps the recorder's memory" in text, text
        assert target("go on") == "right"
        done = graftrace("record", "-P", target.pid, code=None)
        assert done.returncode != 0 and "the first thread of process" in done.stderr


# Words on the stack lead to memory that a thread of the program itself fills in, once it is touched.
FILLED_IN = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#define BYTES (64 << 12)
#define KEEP __attribute__((noinline))
static int faults;
static char page[4096] __attribute__((aligned(4096)));
static void *fill(void *argument)
{
	struct uffd_msg message;
	(void)argument;
	while (read(faults, &message, sizeof message) == sizeof message) {
		struct uffdio_copy copy = { .dst = message.arg.pagefault.address & ~4095ull,
					    .src = (unsigned long)page, .len = 4096 };
		ioctl(faults, UFFDIO_COPY, &copy);
	}
	return NULL;
}
KEEP int waits(void)
{
	char c;
	puts("inside");
	while (read(0, &c, 1) < 0 || c != '\n')
		;
	return 1;
}
KEEP int holds(char *memory)
{
	char *volatile held[128];
	int sum = 0, found;
	for (int i = 0; i < 128; i++)
		held[i] = memory + (i % 64) * 4096 + 64 * (i / 64) - 16 * (i % 2 && i > 1);
	found = waits();
	for (int i = 0; i < 128; i += 2)
		sum += *held[i];
	return found && sum == 64 * 7;
}
int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register some = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;
	int right;
	faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api))
		return 77;
	some.range.start = (unsigned long)memory;
	some.range.len = BYTES;
	if (ioctl(faults, UFFDIO_REGISTER, &some))
		return 77;
	memset(page, 7, sizeof page);
	pthread_create(&thread, NULL, fill, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	usleep(500000);
	right = holds(memory);
	puts(right ? "right" : "wrong");
	pause();
}
"""


@needs_userfaultfd
def test_memory_that_the_program_fills_in_itself_is_not_touched(graftrace, compile):
    with Running(compile(FILLED_IN, "-O1", "-pthread")) as target:
        tracer = graftrace.start("record", "-P", str(target.pid), "--for", "1s")
        assert target.line() == "inside"
        text = tracer.communicate(timeout=PATIENCE)[1]
        assert tracer.returncode == 0, text
        assert is_clean(target.pid)
        assert target("go on") == "right"
