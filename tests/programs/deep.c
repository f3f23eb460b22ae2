/* SPDX-License-Identifier: MIT */
/*
 * Deep recursion: 200,000 open calls on the main stack and on a thread's, returned from one by one,
 * left by a jump, and with a turn in the middle; and tail calls ten thousand deep.
 */
#include "tests/programs/count.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FRAMES 200000

static jmp_buf out;
static volatile int jump_at;

COUNTED void leaf(void)
{
	ENTER();
	LEAVE();
}

COUNTED unsigned long dive(int levels, unsigned long sum)
{
	ENTER();
	if (levels)
		sum = dive(levels - 1, sum * 3 + (unsigned)levels) + (unsigned)levels;
	else if (jump_at)
		longjmp(out, 1);
	if (levels % 1000 == 0)
		leaf();
	LEAVE();
	return sum;
}

COUNTED unsigned long saw(int levels)
{
	ENTER();
	unsigned long sum = 0;
	for (int i = 0; i < 4; i++)
		sum += dive(levels >> i, sum);
	jump_at = 1;
	volatile int depth = count_depth;
	if (!setjmp(out))
		dive(levels, 0);
	count_depth = depth;
	jump_at = 0;
	leaf();
	sum += dive(levels / 2, sum);
	LEAVE();
	return sum;
}

COUNTED void *thread(void *argument)
{
	ENTER();
	printf("thread %lx\n", saw(FRAMES));
	LEAVE();
	return argument;
}

#ifndef NO_TAIL
COUNTED static unsigned long hop_right(int n, unsigned long sum);

COUNTED static unsigned long hop_left(int n, unsigned long sum)
{
	ENTER();
	LEAVE();
	return n ? hop_right(n - 1, sum * 5 + (unsigned)n) : sum;
}

COUNTED static unsigned long hop_right(int n, unsigned long sum)
{
	ENTER();
	LEAVE();
	return n ? hop_left(n - 1, sum ^ (unsigned)n) : sum;
}

COUNTED unsigned long hops(int n)
{
	ENTER();
	unsigned long sum = hop_left(n, 1);
	leaf();
	sum += hop_right(n, sum);
	LEAVE();
	return sum;
}
#endif

int main(int argc, char **argv)
{
	ENTER();
	const char *kind = argc > 1 ? argv[1] : "main";
	if (!strcmp(kind, "main")) {
		struct rlimit stack;
		getrlimit(RLIMIT_STACK, &stack);
		stack.rlim_cur = 100 << 20;
		setrlimit(RLIMIT_STACK, &stack);
		printf("main %lx\n", saw(FRAMES));
	} else if (!strcmp(kind, "thread")) {
		pthread_attr_t attributes;
		pthread_t made;
		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, 100 << 20);
		pthread_create(&made, &attributes, thread, NULL);
		pthread_join(made, NULL);
#ifndef NO_TAIL
	} else if (!strcmp(kind, "tail")) {
		for (int i = 0; i < 5; i++)
			printf("tail %lx\n", hops(10000 + i));
#endif
	} else {
		return 2;
	}
	LEAVE();
	return 0;
}
