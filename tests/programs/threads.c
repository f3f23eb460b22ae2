/* SPDX-License-Identifier: MIT */
/*
 * Threads: a thousand one after another, a thousand at once, detached ones, and those that end
 * from the middle of their calls by pthread_exit or cancellation (with clean-up handlers and
 * destructors of thread-specific data, which are traced calls too).
 */
#include "tests/programs/count.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long sum;
static pthread_key_t key;
static pthread_barrier_t barrier;

COUNTED void leaf(long n)
{
	ENTER();
	__atomic_fetch_add(&sum, n, __ATOMIC_RELAXED);
	LEAVE();
}

COUNTED void nest(int levels)
{
	ENTER();
	leaf(levels);
	if (levels)
		nest(levels - 1);
	leaf(levels);
	LEAVE();
}

COUNTED void *worker(void *argument)
{
	ENTER();
	long n = (long)argument;
	for (int i = 0; i < 5; i++)
		nest((int)(n % 4));
	LEAVE();
	return (void *)(n * 2);
}

COUNTED void *holder(void *argument)
{
	ENTER();
	long n = (long)argument;
	nest((int)(n % 4));
	pthread_barrier_wait(&barrier);
	nest((int)(n % 3));
	LEAVE();
	return NULL;
}

COUNTED void leave_quietly(int levels)
{
	ENTER();
	leaf(levels);
	if (levels)
		leave_quietly(levels - 1);
	else
		pthread_exit((void *)78);
	leaf(levels);
	LEAVE();
}

/* Called when all of a thread's calls are gone. */
COUNTED void last_destructor(void *value)
{
	count_depth = 0;
	ENTER();
	leaf((long)value);
	LEAVE();
}

COUNTED void *leaver(void *argument)
{
	ENTER();
	pthread_setspecific(key, (void *)5);
	if (argument)
		leave_quietly(6);
	leave_quietly(3);
	LEAVE();
	return NULL;
}

static volatile int waiting;

COUNTED void wait_forever(int levels)
{
	ENTER();
	leaf(levels);
	if (levels)
		wait_forever(levels - 1);
	waiting = 1;
	for (;;)
		pause();
	LEAVE();
}

COUNTED void spin_forever(int levels)
{
	ENTER();
	leaf(levels);
	if (levels)
		spin_forever(levels - 1);
	waiting = 1;
	for (;;)
		__asm__ volatile("pause");
	LEAVE();
}

COUNTED void *cancelled(void *argument)
{
	ENTER();
	pthread_setspecific(key, (void *)6);
	if (argument) {
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
		spin_forever(5);
	}
	wait_forever(5);
	LEAVE();
	return NULL;
}

/* A handler's depth is not told: the frames that end are gone one by one. */
COUNTED void cleanup_anywhere(void *value)
{
	ENTER_ANYWHERE();
	__atomic_fetch_add(&sum, (long)value, __ATOMIC_RELAXED);
}

COUNTED void leave_cleanly(int levels)
{
	ENTER();
	pthread_cleanup_push(cleanup_anywhere, (void *)(long)levels);
	leaf(levels);
	if (levels)
		leave_cleanly(levels - 1);
	else
		pthread_exit((void *)79);
	pthread_cleanup_pop(0);
	LEAVE();
}

COUNTED void *clean_leaver(void *argument)
{
	ENTER();
	(void)argument;
	pthread_setspecific(key, (void *)7);
	leave_cleanly(4);
	LEAVE();
	return NULL;
}

COUNT_PLAIN static void one(void *(*body)(void *), void *argument, int cancel)
{
	pthread_t thread;
	void *result;
	waiting = 0;
	pthread_create(&thread, NULL, body, argument);
	if (cancel) {
		while (!waiting)
			usleep(100);
		usleep(300);
		pthread_cancel(thread);
	}
	pthread_join(thread, &result);
	__atomic_fetch_add(&sum, result == PTHREAD_CANCELED ? 1000 : (long)result,
			   __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2)
		return 2;
	const char *kind = argv[1];
	int count = argc > 2 ? atoi(argv[2]) : 1000;
	pthread_key_create(&key, last_destructor);
	if (!strcmp(kind, "serial")) {
		for (long i = 0; i < count; i++)
			one(worker, (void *)i, 0);
	} else if (!strcmp(kind, "together")) {
		pthread_t *threads = calloc((size_t)count, sizeof *threads);
		pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
		for (long i = 0; i < count; i++)
			pthread_create(&threads[i], NULL, holder, (void *)i);
		pthread_barrier_wait(&barrier);
		for (int i = 0; i < count; i++)
			pthread_join(threads[i], NULL);
		free(threads);
	} else if (!strcmp(kind, "exit")) {
		for (int i = 0; i < 20; i++) {
			one(leaver, i & 1 ? &sum : NULL, 0);
			one(clean_leaver, NULL, 0);
		}
	} else if (!strcmp(kind, "cancel")) {
		for (int i = 0; i < 10; i++) {
			one(cancelled, NULL, 1);
			one(cancelled, &sum, 1);
		}
	} else if (!strcmp(kind, "main-exits")) {
		pthread_t thread;
		pthread_create(&thread, NULL, worker, (void *)3);
		nest(2);
		printf("main leaves\n");
		fflush(stdout);
		leave_quietly(3);
	} else {
		return 2;
	}
	printf("%s %ld\n", kind, sum);
	LEAVE();
	return 0;
}
