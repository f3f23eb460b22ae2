/* SPDX-License-Identifier: MIT */
/*
 * A program for tests of attach/: does what its first argument says, checks itself, and ends with 0
 * if all was as it should be. Built with patchable entries; `work` and `outer` are what is traced.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__ /* makes no clones, and does not know the word */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static atomic_ulong received, calls;
static volatile sig_atomic_t stop;

NOINLINE int work(int value)
{
	__asm__ volatile("" ::: "memory");
	return value + 1;
}

NOINLINE int outer(int value)
{
	int result = work(value);
	__asm__ volatile("" ::: "memory");
	return result + work(value);
}

/* What it inherited: descriptors beyond the first three, signals blocked and ignored, group. */
static int inherited(void)
{
	DIR *directory = opendir("/proc/self/fd");
	sigset_t mask;
	int extra = 0, signals = 0;

	for (struct dirent *entry; (entry = readdir(directory));)
		if (atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(directory))
			extra++;
	closedir(directory);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	for (int i = 1; i < NSIG; i++) {
		struct sigaction action;
		signals += sigismember(&mask, i) == 1;
		if (sigaction(i, NULL, &action) == 0)
			signals += action.sa_handler == SIG_IGN;
	}
	printf("%d %d %d %d\n", extra, signals, getpgrp() == getpgid(getppid()),
	       getsid(0) == getsid(getppid()));
	return 0;
}

static void count(int signal)
{
	(void)signal;
	received++;
}

static void *receive(void *data)
{
	(void)data;
	while (!stop)
		calls += (unsigned long)work(0);
	return NULL;
}

/* argv[2] threads that work while argv[3] real-time signals are sent to each: all must arrive. */
static int storm(int threads, int signals)
{
	pthread_t ids[256];
	struct sigaction action = { .sa_handler = count, .sa_flags = SA_RESTART };
	unsigned long sent = 0;

	sigaction(SIGRTMIN, &action, NULL);
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, receive, NULL);
	for (int round = 0; round < signals; round++) {
		for (int i = 0; i < threads; i++)
			sent += pthread_kill(ids[i], SIGRTMIN) == 0;
		usleep(500);
	}
	/* A signal that its thread has not taken yet is taken before the thread ends. */
	stop = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	printf("sent %lu received %lu\n", sent, (unsigned long)received);
	return sent == received ? 0 : 1;
}

static void wake(int signal)
{
	(void)signal;
}

/* Sleeps must last, and only a handler may end a pause. */
static int sleeps(void)
{
	struct sigaction action = { .sa_handler = wake };
	struct timespec before, after, time = { 0, 300000000 };
	struct itimerspec timer = { .it_value = { 0, 200000000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t id;
	long ms;

	sigaction(SIGUSR1, &action, NULL);
	clock_gettime(CLOCK_MONOTONIC, &before);
	if (nanosleep(&time, NULL) != 0) {
		printf("nanosleep: %s\n", strerror(errno));
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &after);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	if (ms < 299) {
		printf("slept only %ld ms\n", ms);
		return 1;
	}
	for (int i = 0; i < 3; i++) {
		timer_create(CLOCK_MONOTONIC, &event, &id);
		timer_settime(id, 0, &timer, NULL);
		if (pause() != -1 || errno != EINTR)
			return 1;
		timer_delete(id);
	}
	return 0;
}

/* Calls `outer` argv[2] times in each of argv[3] threads, then says how often. */
static void *call(void *data)
{
	for (long i = 0; i < (long)data; i++)
		outer((int)i);
	return NULL;
}

static int calls_in_threads(long each, int threads)
{
	pthread_t ids[256];

	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, call, (void *)each);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static void end(int signal)
{
	(void)signal;
	stop = 1;
}

/* Threads that call `outer` until SIGTERM, and check its result. */
static void *check(void *data)
{
	(void)data;
	while (!stop) {
		int value = (int)(calls++ & 0xffff);
		if (outer(value) != 2 * value + 2)
			abort();
	}
	return NULL;
}

static int busy(int threads)
{
	struct sigaction action = { .sa_handler = end };
	pthread_t ids[256];

	sigaction(SIGTERM, &action, NULL);
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, check, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

/* Threads that come and go until SIGTERM. */
static int births(void)
{
	struct sigaction action = { .sa_handler = end };

	sigaction(SIGTERM, &action, NULL);
	while (!stop) {
		pthread_t ids[8];
		for (int i = 0; i < 8; i++)
			pthread_create(&ids[i], NULL, call, (void *)10);
		for (int i = 0; i < 8; i++)
			pthread_join(ids[i], NULL);
	}
	return 0;
}

/* Sleeps for argv[2] ms in the kernel, where no stop reaches it; then ends with 7. */
static int sleeps_in_vfork(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (vfork() == 0) {
		nanosleep(&time, NULL);
		_exit(0);
	}
	return 7;
}

static atomic_int child; /* about to execute a program; 0: none, or it has been killed */

static void *kill_children(void *data)
{
	(void)data;
	while (!stop) {
		if (child != 0) {
			usleep(2000);
			kill(child, SIGKILL);
			child = 0;
		}
		usleep(100);
	}
	return NULL;
}

/* argv[2] times a vfork child that is killed, most likely while it waits for the host before its exec. Then calls as
 * busy() does. */
static int killed_vforks(long count)
{
	pthread_t killer;

	pthread_create(&killer, NULL, kill_children, NULL);
	for (long i = 0; i < count; i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			child = getpid();
			execl("/bin/sleep", "sleep", "1", (char *)NULL);
			_exit(127);
		}
		while (child != 0)
			usleep(100);
		waitpid(pid, NULL, 0);
	}
	return busy(1);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long first = argc > 2 ? atol(argv[2]) : 0, second = argc > 3 ? atol(argv[3]) : 0;

	alarm(240); /* a test that fails leaves nothing running */
	if (strcmp(what, "exit") == 0)
		return (int)first;
	if (strcmp(what, "kill") == 0)
		return raise((int)first);
	if (strcmp(what, "inherited") == 0)
		return inherited();
	if (strcmp(what, "storm") == 0)
		return storm((int)first, (int)second);
	if (strcmp(what, "sleeps") == 0)
		return sleeps();
	if (strcmp(what, "calls") == 0)
		return calls_in_threads(first, (int)second);
	if (strcmp(what, "busy") == 0)
		return busy((int)first);
	if (strcmp(what, "births") == 0)
		return births();
	if (strcmp(what, "vfork") == 0)
		return sleeps_in_vfork(first);
	if (strcmp(what, "killed_vforks") == 0)
		return killed_vforks(first);
	return 99;
}
