/* SPDX-License-Identifier: MIT */
/*
 * Ends in the middle of its calls, in the way that the first argument names. What it counted is
 * written just before. The open calls are then main, outer, middle and inner.
 */
#include "tests/programs/count.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *kind;
static volatile long sum;
static volatile int *volatile bad = (volatile int *)8;

COUNTED void leaf(long n)
{
	ENTER();
	sum += n;
	LEAVE();
}

COUNTED void *busy(void *argument)
{
	ENTER();
	*(volatile int *)argument = 1;
	for (;;)
		pause();
	LEAVE();
	return NULL;
}

COUNTED void at_end(void)
{
	ENTER();
	leaf(1);
	LEAVE();
}

COUNTED void inner(int n)
{
	ENTER();
	for (int i = 0; i < n; i++)
		leaf(i);
	printf("%s\n", kind);
	fflush(stdout);
	if (!strcmp(kind, "exit"))
		exit(42);
	count_write();
	if (!strcmp(kind, "_exit"))
		_exit(43);
	if (!strcmp(kind, "thread-exit"))
		syscall(SYS_exit, 44);
	if (!strcmp(kind, "segv"))
		*bad = 1;
	if (!strcmp(kind, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(kind, "term"))
		kill(getpid(), SIGTERM);
	if (!strcmp(kind, "abort"))
		abort();
	if (!strcmp(kind, "trap"))
		__asm__ volatile("int3");
	if (!strcmp(kind, "stop")) {
		leaf(1);
		kill(getpid(), SIGSTOP);
		leaf(1);
	}
	leaf(1);
	count_write();
	LEAVE();
}

COUNTED void middle(int n)
{
	ENTER();
	leaf(1);
	inner(n);
	leaf(2);
	LEAVE();
}

COUNTED void outer(int n)
{
	ENTER();
	middle(n);
	leaf(3);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 2)
		return 2;
	struct rlimit none = { 0, 0 };
	setrlimit(RLIMIT_CORE, &none);
	kind = argv[1];
	if (!strcmp(kind, "exit"))
		atexit(at_end);
	if (argc > 3) {
		static volatile int waits;
		pthread_t thread;
		pthread_create(&thread, NULL, busy, (void *)&waits);
		while (!waits)
			usleep(100);
	}
	outer(argc > 2 ? atoi(argv[2]) : 1000);
	LEAVE();
	return 5;
}
