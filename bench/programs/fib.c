/* SPDX-License-Identifier: MIT */
/*
 * Calls of one small function, timed by the program itself: the price of a call pair is the
 * time here less the time of the plain build.
 *
 *	fib N PASSES THREADS
 *
 * Each thread calls fib(N) PASSES times after two passes that only warm up, and the program
 * prints `calls NS_PER_CALL`, where calls counts all of them (the warm-up too) and the time is
 * the median pass, averaged over the threads. Built with -DTWO_CLOCK_READS the function reads
 * the clock at its entry and before its return: no tracer that takes two stamps a call can cost
 * less.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_PASSES  101
#define MAX_THREADS 64
#define WARM_UP	    2

#ifdef TWO_CLOCK_READS
#define READ_CLOCK() __asm__ volatile("rdtsc" ::: "rax", "rdx")
#else
#define READ_CLOCK() ((void)0)
#endif

struct worker {
	pthread_t thread;
	double ns_per_call;
};

static unsigned argument;
static int passes;
static pthread_barrier_t all_ready;

__attribute__((noinline)) uint64_t fib(unsigned n)
{
	uint64_t result;

	READ_CLOCK();
	result = n < 2 ? n : fib(n - 1) + fib(n - 2);
	READ_CLOCK();
	return result;
}

/* How often fib is called for fib(n), that call included. */
static uint64_t calls_of(unsigned n)
{
	uint64_t before = 1, now = 1;

	for (unsigned i = 1; i < n; i++) {
		uint64_t next = before + now + 1;
		before = now;
		now = next;
	}
	return now;
}

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void *work(void *data)
{
	struct worker *worker = data;
	double times[MAX_PASSES];
	volatile uint64_t sink = 0;

	for (int i = -WARM_UP; i < passes; i++) {
		double begin;

		if (i == 0)
			pthread_barrier_wait(&all_ready);
		begin = now_ns();
		sink += fib(argument);
		if (i >= 0)
			times[i] = now_ns() - begin;
	}
	qsort(times, (size_t)passes, sizeof(times[0]), by_value);
	worker->ns_per_call = times[passes / 2] / (double)calls_of(argument);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	int threads;
	double sum = 0;

	if (argc != 4)
		return 2;
	argument = (unsigned)atoi(argv[1]);
	passes = atoi(argv[2]);
	threads = atoi(argv[3]);
	if (passes < 1 || passes > MAX_PASSES || threads < 1 || threads > MAX_THREADS)
		return 2;
	pthread_barrier_init(&all_ready, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++) {
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 1;
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		sum += workers[i].ns_per_call;
	}
	printf("%llu %.4f\n",
	       (unsigned long long)calls_of(argument) * (unsigned long long)(passes + WARM_UP) *
		       (unsigned long long)threads,
	       sum / threads);
	return 0;
}
