# SPDX-License-Identifier: MIT
"""Attaching to coroutines that a timer's handler preempts at any instruction, their stacks side by side in one
mapping; and leaving them: those that wait in the recorder's code have to come out of it first."""

import random

import pytest

from attaching import Running, is_clean, record
from test_attach_killed import kill_after

PROGRAM = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#define COUNT 8
#define STACK 65536
#define KEEP __attribute__((noinline))
static volatile int at;
static volatile unsigned long rounds[COUNT];
static void block(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(how, &set, NULL);
}
KEEP unsigned long leaf(unsigned long n)
{
	__asm__ volatile("" : "+r"(n));
	return n * 3 + 1;
}
KEEP unsigned long calls(unsigned long n)
{
	unsigned long sum = 0;
	for (int i = 0; i < 3; i++)
		sum += leaf(n + i);
	return sum;
}
/* Each computes the same, round by round, and notices what is not. */
static void work(void)
{
	const int self = at;
	block(SIG_UNBLOCK);
	for (;;) {
		for (unsigned long n = 0; n < 1000; n++)
			if (calls(n) != 9 * n + 12)
				abort();
		rounds[self]++;
	}
}
#ifdef OWN
void switch_to(void **from, void *to);
__asm__(".text\n.p2align 4\n.globl switch_to\n.type switch_to, @function\nswitch_to:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, (%rdi)\nmov %rsi, %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size switch_to, . - switch_to\n");
static void *contexts[COUNT];
static void make(int i, char *stack)
{
	void **top = (void **)(stack + STACK - 256);
	top[0] = (void *)work;
	contexts[i] = top - 6;
}
#define SWITCH(from, to) switch_to(&contexts[from], contexts[to])
#else
static ucontext_t contexts[COUNT];
static void make(int i, char *stack)
{
	getcontext(&contexts[i]);
	contexts[i].uc_stack.ss_sp = stack;
	contexts[i].uc_stack.ss_size = STACK;
	makecontext(&contexts[i], work, 0);
}
#define SWITCH(from, to) swapcontext(&contexts[from], &contexts[to])
#endif
static void on_alarm(int number)
{
	const int from = at;
	(void)number;
	at = (at + 1) % COUNT;
	SWITCH(from, at);
}
/* The first one's stack is the program's. */
int main(void)
{
	char *stacks = mmap(NULL, COUNT * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
	char line[64];
	unsigned long before;
	block(SIG_BLOCK);
	for (int i = 1; i < COUNT; i++)
		make(i, stacks + i * STACK);
	sigaction(SIGALRM, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	setitimer(ITIMER_REAL, &often, NULL);
	block(SIG_UNBLOCK);
	for (puts("ready"); fgets(line, sizeof line, stdin); puts("right"))
		for (before = rounds[1]; rounds[1] == before;)
			if (calls(5) != 57)
				abort();
	return 0;
}
"""


@pytest.fixture(params=["library", "own"])
def coroutines(request, compile):
    """They switch by the C library, and by code of their own."""
    with Running(compile(PROGRAM, "-O1", *(["-DOWN"] if request.param == "own" else []))) as target:
        yield target
        assert target("check") == "right"


def test_preempted_coroutines_come_out_before_the_recorder_leaves(graftrace, coroutines):
    for _ in range(20):
        record(graftrace, coroutines.pid, "--for", "10ms")
        assert is_clean(coroutines.pid)
    assert coroutines("check") == "right"


def test_preempted_coroutines_survive_hosts_that_are_killed(graftrace, coroutines):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    moments = random.Random(seed)
    for _ in range(10):
        kill_after(graftrace, coroutines.pid, moments.uniform(0.04, 0.09))
        record(graftrace, coroutines.pid, "--for", "1ms")
        assert is_clean(coroutines.pid)
    assert coroutines("check") == "right"


# Each coroutine begins on a stack that was never used, and is preempted where its first system call ends: a signal
# waits behind the mask that the call takes away. The one that began 500 others before goes on then. Much memory makes
# the look through it long.
BEGINNERS = r"""
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#define STACK 32768
#define WAITING 500
#define MEMORY (400ul << 20)
static int at;
static void block(int how)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(how, &set, NULL))
		abort();
}
static void body(void);
#ifdef OWN
void switch_to(void **from, void *to);
__asm__(".text\n.p2align 4\n.globl switch_to\n.type switch_to, @function\nswitch_to:\n"
	"push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, (%rdi)\nmov %rsi, %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size switch_to, . - switch_to\n");
static void *first, *contexts[WAITING];
static void make(int i, char *stack)
{
	void **top = (void **)(stack + STACK - 256);
	top[0] = (void *)body;
	contexts[i] = top - 6;
}
#define SWITCH(from, to) switch_to(&from, to)
#else
static ucontext_t first, contexts[WAITING];
static void make(int i, char *stack)
{
	getcontext(&contexts[i]);
	contexts[i].uc_stack.ss_sp = stack;
	contexts[i].uc_stack.ss_size = STACK;
	makecontext(&contexts[i], body, 0);
}
#define SWITCH(from, to) swapcontext(&from, &to)
#endif
static char *stacks[WAITING];
static void body(void)
{
	block(SIG_UNBLOCK);
	block(SIG_BLOCK);
	SWITCH(contexts[at], first);
	abort();
}
static void on_signal(int number)
{
	(void)number;
	SWITCH(contexts[at], first);
}
int main(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), line[64];
	unsigned long next = 0;
	for (unsigned long i = 0; i < MEMORY; i += 4096)
		memory[i] = 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGUSR1, &action, NULL);
	block(SIG_BLOCK);
	puts("ready");
	for (struct pollfd input = { 0, POLLIN, 0 };; next++) {
		at = next % WAITING;
		if (stacks[at]) {
			SWITCH(first, contexts[at]);
			madvise(stacks[at], STACK, MADV_DONTNEED);
		}
		stacks[at] = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		make(at, stacks[at]);
		raise(SIGUSR1);
		SWITCH(first, contexts[at]);
		if (next % 10 == 0 && poll(&input, 1, 1) > 0) {
			if (!fgets(line, sizeof line, stdin))
				break;
			puts("right");
		}
	}
	return 0;
}
"""


@pytest.mark.parametrize("switch", ["library", "own"])
def test_coroutines_that_are_preempted_for_the_first_time_while_memory_is_looked_through_go_on(
        switch, graftrace, compile):
    with Running(compile(BEGINNERS, "-O1", *(["-DOWN"] if switch == "own" else []))) as target:
        for _ in range(3):
            record(graftrace, target.pid, "-e", "syscalls", "--for", "100ms")
            assert target("check") == "right"
