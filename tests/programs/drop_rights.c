/* SPDX-License-Identifier: MIT */
/*
 * A server of root's: its workers drop their rights to those of user 65534, look until they have memory of the
 * recorder's that their parent has not, and then work. Says which memory each process has, and how many calls were
 * made.
 *
 *	drop_rights WORKERS CALLS		workers with one thread
 *	drop_rights WORKERS CALLS stay	… that go on until a file "end" is there, as their parent does
 *	drop_rights WORKERS CALLS threads	… with another thread, which sleeps
 */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/recorder_memory.h"

#define USER 65534

static const char *mode = "";

__attribute__((noinline)) int parent_work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 1;
}

__attribute__((noinline)) int worker_work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 2;
}

__attribute__((noinline)) int worker_waits(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 3;
}

QUIET static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

QUIET static void *sleeper(void *unused)
{
	for (;;) /* setuid interrupts it */
		pause();
	return unused;
}

QUIET static void say(const char *who, unsigned long from, unsigned long at, int waited)
{
	char line[128];
	int bytes = snprintf(line, sizeof(line), "%s %d from %lu at %lu waited %d\n", who,
			     (int)getpid(), from, at, waited);
	if (write(1, line, (size_t)bytes) != bytes)
		exit(5);
}

/* Entered with one arena, left with another. */
__attribute__((noinline)) int worker_main(int calls)
{
	unsigned long from = arena_inode(), at = from;
	int waited = 0, sum = worker_waits(0), i;
	pthread_t thread;

	if (strcmp(mode, "threads") == 0)
		pthread_create(&thread, NULL, sleeper, NULL);
	if (setgroups(0, NULL) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		exit(4);
	for (waited = 1; (at == from || at == 0) && waited < 60000; waited++) {
		sum = worker_waits(sum);
		nap();
		at = arena_inode();
	}
	for (i = 0; i < calls; i++)
		sum = worker_work(sum);
	say("worker", from, at, waited);
	while (*mode && access("end", F_OK) != 0) {
		sum = worker_work(sum);
		nap();
	}
	return sum;
}

int main(int argc, char **argv)
{
	int workers = argc > 2 ? atoi(argv[1]) : 0, calls = argc > 2 ? atoi(argv[2]) : 0;
	int sum = 0, i, failed = 0, status;

	mode = argc > 3 ? argv[3] : "";
	sum = parent_work(sum);
	for (i = 0; i < workers; i++)
		if (fork() == 0) {
			sum = worker_main(calls);
			_exit(sum < 0);
		}
	for (i = 1; i < calls; i++)
		sum = parent_work(sum);
	while (*mode && access("end", F_OK) != 0) {
		sum = parent_work(sum);
		nap();
	}
	while (wait(&status) > 0)
		failed += status != 0;
	say("parent", arena_inode(), arena_inode(), failed);
	return failed + (sum < 0);
}
