/* SPDX-License-Identifier: MIT */
/* Threads and processes that could be taken for others: they inherit what those had. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL __attribute__((noinline))

static pthread_t untraced, heir;
static volatile int creator_is_gone, is_inside, others_are_done;

CALL int leaf(int x)
{
	__asm__ volatile("");
	return x + 1;
}

static void *call_once(void *unused)
{
	leaf(1);
	return unused;
}

static void start_others(void)
{
	for (int i = 0; i < 4; i++) {
		pthread_t other;
		pthread_create(&other, NULL, call_once, NULL);
		pthread_join(other, NULL);
	}
}

CALL int wait_inside(int x)
{
	is_inside = 1;
	while (!others_are_done)
		usleep(1000);
	return x + leaf(x);
}

static void *inherit(void *unused)
{
	wait_inside(1);
	wait_inside(2);
	return unused;
}

/* Calls nothing that is traced (the test's filter), and makes a thread when its creator is gone. */
static void *wait_for_the_end(void *unused)
{
	while (!creator_is_gone)
		usleep(1000);
	pthread_create(&heir, NULL, inherit, NULL);
	pthread_join(heir, NULL);
	return unused;
}

static void *create(void *unused)
{
	leaf(1);
	pthread_create(&untraced, NULL, wait_for_the_end, NULL);
	return unused;
}

/* The heir gets the stack of its creator's creator, and with it the thread pointer. */
static void make_heir(void)
{
	pthread_t creator;
	leaf(0);
	pthread_create(&creator, NULL, create, NULL);
	pthread_join(creator, NULL);
	usleep(20000);
	creator_is_gone = 1;
	while (!is_inside)
		usleep(1000);
	start_others();
	others_are_done = 1;
	pthread_join(untraced, NULL);
}

/* A child whose first traced call is made by a vfork child of its own. */
CALL int fork_twice(int x)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		pid_t second = vfork();
		if (second == 0) {
			leaf(1);
			_exit(0);
		}
		waitpid(second, NULL, 0);
		start_others();
		return x;
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "vfork") == 0)
		return fork_twice(5);
	make_heir();
	return 5;
}
