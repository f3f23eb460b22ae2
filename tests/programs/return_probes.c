/* SPDX-License-Identifier: MIT */
/*
 * Functions whose returns are probed: "return_probes N [THREADS [DEPTH [SIGNALS]]]" calls each of them N times in each
 * thread, and says how often handlers have called one, too. "loop": rounds as stdin says.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

enum colour { RED, GREEN, BLUE };

struct pair {
	long first, second;
};

static __thread jmp_buf place;
static volatile long from_signals;
static long depth = 60;

NOINLINE long leaf(long x)
{
	__asm__ volatile("");
	return x * 3;
}

NOINLINE long recur(long x)
{
	long below = x ? recur(x - 1) : 0;

	__asm__ volatile("");
	return below + 1;
}

/* Odd ones do not return. */
NOINLINE int leaves(int x)
{
	__asm__ volatile("");
	if (x & 1)
		longjmp(place, 1);
	return -x;
}

NOINLINE int around(int x)
{
	if (setjmp(place))
		return 1000;
	return leaves(x);
}

NOINLINE long last(long x)
{
	__asm__ volatile("");
	return x + 7;
}

/* These end with a jump. */
NOINLINE long second(long x)
{
	__asm__ volatile("");
	return last(x + 10);
}

NOINLINE long first(long x)
{
	__asm__ volatile("");
	return second(x + 100);
}

/* In turns for ever, on one slot. */
NOINLINE long odd(long x);

NOINLINE long even(long x)
{
	__asm__ volatile("");
	return x ? odd(x - 1) : 1;
}

NOINLINE long odd(long x)
{
	__asm__ volatile("");
	return x ? even(x - 1) : 0;
}

NOINLINE const char *word(int x)
{
	__asm__ volatile("");
	return x ? "some words" : NULL;
}

NOINLINE enum colour paint(int x)
{
	__asm__ volatile("");
	return x % 3;
}

NOINLINE struct pair *pair_of(struct pair *pair, long x)
{
	pair->first = x;
	pair->second = -x;
	__asm__ volatile("");
	return pair;
}

NOINLINE unsigned char narrow(int x)
{
	__asm__ volatile("");
	return (unsigned char)x;
}

/* Between a function that is probed and others. */
NOINLINE long middle(long x)
{
	long sum = leaf(x) + leaf(x);

	__asm__ volatile("");
	return sum;
}

NOINLINE long outer(long x)
{
	long sum = middle(x) + leaf(1);

	__asm__ volatile("");
	return sum;
}

static void handler(int signal)
{
	(void)signal;
	from_signals += leaf(1) != 0;
}

static void *work(void *count)
{
	struct pair pair;
	long sum = 0;

	for (long i = 0; i < *(long *)count; i++) {
		sum += recur(3) + around((int)i) + first(i) + even(depth) + paint((int)i);
		sum += word((int)i % 2) != NULL;
		sum += pair_of(&pair, i)->second + narrow((int)i) + outer(i);
	}
	return (void *)sum;
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t others[16];
	char line[32];

	if (argc > 1 && strcmp(argv[1], "loop") == 0) {
		puts("ready");
		fflush(stdout);
		while (fgets(line, sizeof(line), stdin)) {
			count = atol(line);
			work(&count);
			puts("done");
			fflush(stdout);
		}
		return 0;
	}
	if (argc > 3)
		depth = atol(argv[3]);
	signal(SIGALRM, handler);
	for (int i = 0; i < threads && i < 16; i++)
		pthread_create(&others[i], NULL, work, &count);
	if (argc > 4) /* handlers between any two instructions */
		for (long i = 0; i < atol(argv[4]); i++)
			pthread_kill(others[0], SIGALRM);
	for (int i = 0; i < threads && i < 16; i++)
		pthread_join(others[i], NULL);
	printf("%ld\n", from_signals);
	return 0;
}
