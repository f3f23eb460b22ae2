/* SPDX-License-Identifier: MIT */
/*
 * A coroutine is preempted while its only call is on its way in or out, at an instruction of a second call's way
 * out, which a handler makes there: the handler of SIGTRAP switches away. Then another coroutine begins on the next
 * stack, is left in its call for good, and the first one goes on. Signals come at random instants.
 *
 *	preempted N		at the N-th instruction after the second call's body
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "tests/programs/preempt.h"

#define STACK_BYTES (32 * 1024ul)
#define ROUNDS	    200

static ucontext_t other;
static volatile int in_first, is_over, rounds, is_asked;
static pid_t main_tid;

CALL long left_for_good(long n)
{
	swapcontext(&other, &scheduler);
	return n + 2;
}

static void on_ask(int signal)
{
	int error = errno;

	(void)signal;
	if (in_first) {
		leaf(1);
		leaf(2);
		leaf(3);
		stepped(1);
		clear_trap_flag();
		leaf(4);
		rounds++;
	}
	is_asked = 0;
	errno = error;
}

static void first_body(void)
{
	in_first = 1;
	while (rounds < ROUNDS)
		leaf(0);
	in_first = 0;
	swapcontext(&preempted, &scheduler);
}

static void other_body(void)
{
	left_for_good(1);
	abort();
}

static void *ask(void *unused)
{
	unsigned seed = (unsigned)main_tid;

	while (!is_over) {
		if (!in_first || is_asked)
			continue;
		is_asked = 1;
		for (volatile int i = rand_r(&seed) % 3000; i > 0; i--)
			;
		syscall(SYS_tgkill, getpid(), main_tid, SIGUSR1);
	}
	return unused;
}

int main(int argc, char **argv)
{
	struct sigaction asked = { .sa_handler = on_ask };
	char *stacks = mmap(NULL, 2 * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	preempt_at_instruction(argc > 1 ? atoi(argv[1]) : 10);
	sigaction(SIGUSR1, &asked, NULL);
	main_tid = (pid_t)syscall(SYS_gettid);
	make(&preempted, stacks, STACK_BYTES, first_body);
	pthread_create(&thread, NULL, ask, NULL);
	do {
		swapcontext(&scheduler, &preempted);
		make(&other, stacks + STACK_BYTES, STACK_BYTES, other_body);
		swapcontext(&scheduler, &other);
	} while (rounds < ROUNDS || in_first);
	is_over = 1;
	pthread_join(thread, NULL);
	puts("done");
	return 0;
}
