/* SPDX-License-Identifier: MIT */
/*
 * Calls of one small function, timed by the program itself: the price of a call pair is the
 * time here less the time of the plain build.
 *
 *	fib N PASSES THREADS
 *
 * Each thread calls fib(N) PASSES times after two passes that only warm up, and the program
 * prints `CALLS CPU_NS WALL_NS`: calls counts all of them (the warm-up too), the times are of the
 * median pass, a call, averaged over the threads. CPU time leaves out what other programs of the
 * machine took; wall time has in it what a tracer made the thread wait. Built with
 *-DTWO_CLOCK_READS the function reads the clock at its entry and before its return: no tracer that
 * takes two stamps a call can cost less.
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
	double cpu_ns; /* a call, of the median pass */
	double wall_ns;
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

static double now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_a_call(double *times)
{
	qsort(times, (size_t)passes, sizeof(times[0]), by_value);
	return times[passes / 2] / (double)calls_of(argument);
}

static void *work(void *data)
{
	struct worker *worker = data;
	double cpu[MAX_PASSES], wall[MAX_PASSES];
	volatile uint64_t sink = 0;

	for (int i = -WARM_UP; i < passes; i++) {
		double wall_begin, cpu_begin;

		if (i == 0)
			pthread_barrier_wait(&all_ready);
		wall_begin = now_ns(CLOCK_MONOTONIC);
		cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
		sink += fib(argument);
		if (i >= 0) {
			cpu[i] = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
			wall[i] = now_ns(CLOCK_MONOTONIC) - wall_begin;
		}
	}
	worker->cpu_ns = median_a_call(cpu);
	worker->wall_ns = median_a_call(wall);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[MAX_THREADS];
	int threads;
	double cpu = 0, wall = 0;

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
		cpu += workers[i].cpu_ns;
		wall += workers[i].wall_ns;
	}
	printf("%llu %.4f %.4f\n",
	       (unsigned long long)calls_of(argument) * (unsigned long long)(passes + WARM_UP) *
		       (unsigned long long)threads,
	       cpu / threads, wall / threads);
	return 0;
}
