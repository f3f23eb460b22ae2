/* SPDX-License-Identifier: MIT */
/*
 * What a fork costs while many threads stand in the middle of nested calls.
 *
 *	fork_threads [THREADS [FORKS]]		1000 and 40 if not given
 *
 * Prints one line: `fork MICROSECONDS`, the median time that fork() takes in the parent.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_barrier_t standing, done;

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Holds `levels` calls open, with frames of different sizes. */
__attribute__((noinline)) static int stand(int levels)
{
	volatile char room[100];
	int r = 0;

	room[levels] = (char)levels;
	if (levels) {
		r = stand(levels - 1) + room[levels];
	} else {
		pthread_barrier_wait(&standing);
		pthread_barrier_wait(&done);
	}
	return r + 1;
}

static void *thread(void *argument)
{
	return (void *)((long)argument + stand(10));
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1000, forks = argc > 2 ? atoi(argv[2]) : 40;
	double *times = calloc((size_t)forks + 1, sizeof *times);
	pthread_attr_t attributes;

	pthread_barrier_init(&standing, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < threads; i++) {
		pthread_t made;
		if (pthread_create(&made, &attributes, thread, NULL)) {
			fprintf(stderr, "fork_threads: no thread %d\n", i);
			return 1;
		}
	}
	pthread_barrier_wait(&standing);
	for (int i = 0; i < forks; i++) {
		double begin = now_us();
		pid_t child = fork();
		if (!child)
			_exit(0);
		times[i] = now_us() - begin;
		if (child < 0) {
			perror("fork_threads: fork");
			return 1;
		}
		waitpid(child, NULL, 0);
	}
	pthread_barrier_wait(&done);
	qsort(times, (size_t)forks, sizeof *times, by_size);
	printf("fork %.1f\n", times[forks / 2]);
	return 0;
}
