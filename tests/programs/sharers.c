/* SPDX-License-Identifier: MIT */
/*
 * Children of clone(2) that share all memory, the thread pointer included, and run beside their
 * creator, as monitors of sanitizers and sandboxes do. The creator's calls are counted.
 */
#include "tests/programs/count.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define STACK_BYTES (256 * 1024)
#define ROUNDS	    8

static volatile int started, stop;
static volatile long sum;

COUNTED int nest(int levels)
{
	ENTER();
	int sum_here = levels > 0 ? nest(levels - 1) + 1 : 0;
	__asm__ volatile("");
	LEAVE();
	return sum_here;
}

/* The child's, which must not touch the depth that its creator keeps. */
__attribute__((noinline)) static int beside(int levels)
{
	int sum_here = levels > 0 ? beside(levels - 1) + 1 : 0;
	__asm__ volatile("");
	return sum_here;
}

static int child(void *argument)
{
	started = 1;
	while (!stop)
		*(volatile long *)argument += beside(20);
	return 7;
}

int main(void)
{
	ENTER();
	char *stack = malloc(STACK_BYTES);
	static long beside_sum;
	int status, bad = 0;
	for (int round = 0; round < ROUNDS; round++) {
		started = stop = 0;
		pid_t pid = clone(child, stack + STACK_BYTES, CLONE_VM | SIGCHLD, &beside_sum);
		while (!started)
			sched_yield();
		for (int i = 0; i < 200; i++)
			sum += nest(30);
		stop = 1;
		bad += pid < 0 || waitpid(pid, &status, 0) != pid || status != 7 << 8;
	}
	printf("sum %ld, %d children ended badly, beside %s\n", sum, bad,
	       beside_sum % 20 == 0 ? "right" : "wrong");
	LEAVE();
	return 0;
}
