/* SPDX-License-Identifier: MIT */
/*
 * Threads as servers have them: prints "made=N", the calls that it made, and what the words below say.
 *	many_threads idle T N	T threads call N times each, then sleep until all have: "vmsize=BYTES" while they do
 *	many_threads short T N	T threads that call N times each, four at a time: "us=MICROSECONDS" of each one's life
 *	many_threads switch T S	T threads switch between two contexts each, for S tenths of a second: "switches=N"
 *				and "cpu_us=N", the processor time of it
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define STACK_BYTES 65536

static unsigned long made, switches;
static int calls;
static volatile int over;
static pthread_barrier_t all, end;

static void count(unsigned long *what, unsigned long number)
{
	__atomic_fetch_add(what, number, __ATOMIC_RELAXED);
}

__attribute__((noinline, noclone)) static int leaf(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void call(void)
{
	int sum = 0;

	for (int i = 0; i < calls; i++)
		sum += leaf(i);
	__asm__ volatile("" : : "r"(sum));
}

__attribute__((noinline, noclone)) static void *work(void *unused)
{
	count(&made, (unsigned long)calls + 1);
	call();
	return unused;
}

__attribute__((noinline, noclone)) static void *work_and_wait(void *unused)
{
	count(&made, (unsigned long)calls + 1);
	call();
	pthread_barrier_wait(&all);
	pthread_barrier_wait(&end);
	return unused;
}

static _Thread_local ucontext_t here, there;

static void body(void)
{
	for (;;) {
		leaf(0);
		swapcontext(&there, &here);
	}
}

static void *switch_contexts(void *unused)
{
	unsigned long rounds = 0;

	getcontext(&there);
	there.uc_stack.ss_sp = malloc(STACK_BYTES);
	there.uc_stack.ss_size = STACK_BYTES;
	makecontext(&there, body, 0);
	for (; !over; rounds++) {
		leaf(1);
		swapcontext(&here, &there);
	}
	count(&switches, 2 * rounds);
	return unused;
}

static double now_us(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void print_size(void)
{
	char line[256];
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long size = 0;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "VmSize: %lu", &size) == 1)
			printf("vmsize=%lu\n", size * 1024);
	if (status)
		fclose(status);
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[1] : "short";
	int threads = argc > 3 ? atoi(argv[2]) : 1, is_short = !strcmp(how, "short");
	void *(*begin)(void *) = is_short		  ? work
				 : !strcmp(how, "switch") ? switch_contexts
							  : work_and_wait;
	pthread_t *ids = calloc((size_t)threads, sizeof(*ids));
	int wave = is_short ? 4 : threads;
	double before = now_us(CLOCK_MONOTONIC);
	pthread_attr_t small;

	calls = argc > 3 ? atoi(argv[3]) : 1;
	count(&made, 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 * 1024);
	pthread_barrier_init(&all, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int i = 0; i < threads; i += wave) {
		int last = i + wave < threads ? i + wave : threads;

		for (int j = i; j < last; j++)
			if (pthread_create(&ids[j], &small, begin, NULL)) {
				perror("pthread_create");
				return 1;
			}
		if (!strcmp(how, "switch")) {
			struct timespec nap = { calls / 10, calls % 10 * 100000000L };

			nanosleep(&nap, NULL);
			over = 1;
		} else if (!is_short) {
			pthread_barrier_wait(&all);
			print_size();
			pthread_barrier_wait(&end);
		}
		for (int j = i; j < last; j++)
			pthread_join(ids[j], NULL);
	}
	printf("us=%.3f\n", (now_us(CLOCK_MONOTONIC) - before) / threads);
	printf("switches=%lu\ncpu_us=%.0f\n", switches, now_us(CLOCK_PROCESS_CPUTIME_ID));
	printf("made=%lu\n", made);
	return 0;
}
