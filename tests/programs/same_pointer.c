/* SPDX-License-Identifier: MIT */
/*
 * Threads without a C library, each made by the one before with storage of its own, whose thread pointers all lead to
 * the same word: the number that is named, or what the first thread has there (a copy of its storage).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (1u << 20)
#define THREADS	    4
#define ROUNDS	    50000
#define COPIED	    128 /* the stack protector's value among it */

static unsigned long storage[THREADS][1024] __attribute__((aligned(64)));
static unsigned long sums[THREADS];
static volatile int done;

__attribute__((noinline)) unsigned long work(unsigned long x, int levels)
{
	__asm__ volatile("" : : : "memory");
	return levels > 0 ? work(x + 1, levels - 1) + 1 : x;
}

static int body(void *argument);

static void start(unsigned long number)
{
	char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (stack == MAP_FAILED || clone(body, stack + STACK_BYTES,
					 CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
						 CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS,
					 (void *)number, NULL, storage[number], NULL) < 0)
		_exit(2);
}

static int body(void *argument)
{
	unsigned long number = (unsigned long)argument, i;

	work(1, 3);
	if (number + 1 < THREADS)
		start(number + 1);
	for (i = 0; i < ROUNDS; i++)
		sums[number] += work(i, 5);
	__atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_exit, 0);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long own, i;

	__asm__("mov %%fs:0, %0" : "=r"(own));
	for (i = 0; i < THREADS; i++) {
		memcpy(storage[i], (void *)own, COPIED);
		storage[i][0] = argc > 1 ? strtoul(argv[1], NULL, 0) : own;
	}
	work(1, 3);
	start(0);
	while (done != THREADS)
		usleep(1000);
	usleep(20000);
	for (i = 1; i < THREADS; i++)
		if (sums[i] != sums[0])
			return 1;
	printf("done %lu\n", sums[0]);
	return 0;
}
