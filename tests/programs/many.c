/* SPDX-License-Identifier: MIT */
/*
 * Threads that call, and count their calls themselves: prints "made=N", all calls of functions of
 * this program.
 *	many busy T N	T threads at a time call leaf() N times each
 *	many idle T N	T threads call leaf() N times each, then sleep until all have
 *	many short T N	T threads that call leaf() N times each, four at a time
 *	many deep T N	T threads nest N calls each, then sleep until all have
 * A fourth number: how often each leaf() goes round a loop.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long made;
static int calls;
static int rounds;
static const char *how;
static pthread_barrier_t all;

static inline __attribute__((always_inline)) void count(unsigned long number)
{
	__atomic_fetch_add(&made, number, __ATOMIC_RELAXED);
}

__attribute__((noinline, noclone)) static int leaf(int x)
{
	__asm__ volatile("" : "+r"(x));
	for (int i = 0; i < rounds; i++)
		__asm__ volatile("" : "+r"(x));
	return x + 1;
}

__attribute__((noinline, noclone)) static int deep(int depth)
{
	int below = depth > 1 ? deep(depth - 1) : 0;

	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

__attribute__((noinline, noclone)) static void *work(void *unused)
{
	int sum = 0;

	count((unsigned long)calls + 1);
	if (!strcmp(how, "deep"))
		sum = deep(calls);
	else
		for (int i = 0; i < calls; i++)
			sum += leaf(i);
	if (!strcmp(how, "idle") || !strcmp(how, "deep"))
		pthread_barrier_wait(&all);
	__asm__ volatile("" : : "r"(sum));
	return unused;
}

int main(int argc, char **argv)
{
	int count_of_threads = argc > 3 ? atoi(argv[2]) : 1, wave;
	pthread_t *threads = calloc((size_t)count_of_threads, sizeof(*threads));
	pthread_attr_t small;

	how = argc > 3 ? argv[1] : "busy";
	calls = argc > 3 ? atoi(argv[3]) : 1;
	rounds = argc > 4 ? atoi(argv[4]) : 0;
	count(1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 * 1024);
	pthread_barrier_init(&all, NULL, (unsigned)count_of_threads);
	wave = strcmp(how, "short") ? count_of_threads : 4;
	for (int i = 0; i < count_of_threads; i += wave) {
		int last = i + wave < count_of_threads ? i + wave : count_of_threads;

		for (int j = i; j < last; j++)
			if (pthread_create(&threads[j], &small, work, NULL)) {
				perror("pthread_create");
				return 1;
			}
		for (int j = i; j < last; j++)
			pthread_join(threads[j], NULL);
	}
	printf("made=%lu\n", made);
	return 0;
}
