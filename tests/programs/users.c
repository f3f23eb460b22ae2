/* SPDX-License-Identifier: MIT */
/*
 * A server of root's whose workers are of a user each. They wait for each other, so that all of them are there at once,
 * and until the recorder has given each its memory, or none. Then each makes calls and events, and says which memory it
 * has and how many times it has looked for that.
 *
 *	users WORKERS CALLS
 */
#define _GNU_SOURCE
#include <graftrace/event.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/programs/recorder_memory.h"

#define FIRST_USER 60000
#define LOOKS	   10000

static int *ready; /* workers that have their memory */

__attribute__((noinline)) int parent_work(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 1;
}

__attribute__((noinline)) int worker_work(int x)
{
	__asm__ volatile("" : : : "memory");
	GRAFTRACE_EVENT(shop, made, GRAFTRACE_INT(int, number, x & 3));
	return x + 1;
}

__attribute__((noinline)) int worker_looks(int x)
{
	__asm__ volatile("" : : : "memory");
	return x + 1;
}

QUIET static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
}

QUIET static int work_as(int number, int workers, int calls)
{
	const gid_t user = (gid_t)(FIRST_USER + number);
	const unsigned long from = arena_inode();
	int looks = worker_looks(0), sum = 0;
	unsigned long at = from;
	char line[128];

	if (setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user))
		return 4;
	for (; at == from && looks < LOOKS; nap(), at = arena_inode())
		looks = worker_looks(looks);
	__atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(ready, __ATOMIC_SEQ_CST) < workers)
		nap();
	for (int i = 0; i < calls; i++)
		sum = worker_work(sum);
	int bytes = snprintf(line, sizeof(line), "worker %d from %lu at %lu waited %d\n",
			     (int)getpid(), from, at, looks);
	return write(1, line, (size_t)bytes) != bytes || sum != calls;
}

int main(int argc, char **argv)
{
	const int workers = argc == 3 ? atoi(argv[1]) : 0, calls = argc == 3 ? atoi(argv[2]) : 0;
	int sum = 0, failed = 0, status;

	ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	for (int i = 0; i < workers; i++)
		if (fork() == 0)
			_exit(work_as(i, workers, calls));
	for (int i = 0; i < calls; i++)
		sum = parent_work(sum);
	while (wait(&status) > 0)
		failed += status != 0;
	printf("parent %d from %lu at %lu waited 0\n", (int)getpid(), arena_inode(), arena_inode());
	return failed + (sum != calls);
}
