/* SPDX-License-Identifier: MIT */
/*
 * New processes in every way: fork (from main, from deep calls that the child returns through, from
 * a thread, by the bare system call, in a tree), vfork, posix_spawn, exec, system, popen. Both
 * sides go on with their calls. The first argument names the way, the second is the program to
 * exec.
 */
#include "tests/programs/count.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile long sum;
static char *target;

COUNTED void leaf(long n)
{
	ENTER();
	sum += n;
	LEAVE();
}

COUNTED void work(int n)
{
	ENTER();
	for (int i = 0; i < n; i++)
		leaf(i);
	LEAVE();
}

/* Prints how a child ended, so that the output tells. */
COUNTED void reap(pid_t child)
{
	ENTER();
	int status = -1;
	if (waitpid(child, &status, 0) != child)
		printf("waitpid failed: %d\n", errno);
	else if (WIFEXITED(status))
		printf("exited %d\n", WEXITSTATUS(status));
	else
		printf("signal %d\n", WTERMSIG(status));
	LEAVE();
}

COUNT_PLAIN static pid_t forked(void)
{
	fflush(stdout);
	pid_t child = fork();
	if (!child)
		count_forget();
	return child;
}

/* Both sides return through the open calls; 0 in the child. */
COUNTED pid_t nested(int levels)
{
	ENTER();
	leaf(levels);
	pid_t child = levels ? nested(levels - 1) : forked();
	leaf(levels);
	work(child ? 20 : 30);
	LEAVE();
	return child;
}

COUNTED void plain(void)
{
	ENTER();
	for (int i = 0; i < 20; i++) {
		pid_t child = forked();
		if (!child) {
			work(100 + i);
			printf("child %ld\n", sum & 1);
			exit(i);
		}
		work(50);
		reap(child);
	}
	LEAVE();
}

COUNTED void deep(void)
{
	ENTER();
	pid_t child = nested(20);
	if (!child) {
		work(7);
		LEAVE();
		printf("child returns\n");
		return;
	}
	reap(child);
	LEAVE();
}

COUNTED void bare(void)
{
	ENTER();
	fflush(stdout);
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!child) {
		count_forget();
		work(33);
		count_write();
		_exit(9);
	}
	reap(child);
	fflush(stdout);
	child = _Fork();
	if (!child) {
		count_forget();
		work(34);
		count_write();
		_exit(10);
	}
	reap(child);
	LEAVE();
}

COUNTED void tree(int levels)
{
	ENTER();
	work(10 * levels);
	if (levels) {
		pid_t child = forked();
		tree(levels - 1);
		if (!child) {
			count_write();
			_exit(levels);
		}
		int status;
		waitpid(child, &status, 0);
		if (WEXITSTATUS(status) != levels)
			printf("child of %d ended with %d\n", levels, status);
	}
	LEAVE();
}

COUNTED void *in_thread(void *argument)
{
	ENTER();
	work(5);
	pid_t child = nested(6);
	if (!child) {
		printf("child of a thread\n");
		LEAVE();
		return argument; /* the child's only thread: the process ends */
	}
	reap(child);
	LEAVE();
	return NULL;
}

COUNTED void *other_thread(void *argument)
{
	ENTER();
	for (int i = 0; i < 100; i++)
		leaf(i);
	LEAVE();
	return argument;
}

/* The child of vfork borrows the parent's memory: it only execs or leaves. */
COUNTED void vforks(void)
{
	ENTER();
	char *arguments[] = { target, "17", NULL };
	for (volatile int i = 0; i < 10; i++) {
		fflush(stdout);
		pid_t child = vfork();
		if (!child) {
			if (i & 1)
				_exit(60 + i);
			execv(target, arguments);
			_exit(1);
		}
		leaf(i);
		reap(child);
	}
	LEAVE();
}

COUNTED void spawns(void)
{
	ENTER();
	char *arguments[] = { target, "18", NULL };
	for (int i = 0; i < 5; i++) {
		pid_t child;
		fflush(stdout);
		int failed = posix_spawn(&child, target, NULL, NULL, arguments, environ);
		leaf(i);
		if (failed)
			printf("posix_spawn: %d\n", failed);
		else
			reap(child);
		printf("no such: %d\n",
		       posix_spawn(&child, "/nonexistent", NULL, NULL, arguments, environ));
	}
	LEAVE();
}

COUNTED void shell(void)
{
	ENTER();
	char command[4096];
	snprintf(command, sizeof command, "exec '%s' 19", target);
	for (int i = 0; i < 3; i++) {
		fflush(stdout);
		printf("system %d\n", WEXITSTATUS(system(command)));
		leaf(i);
		FILE *pipe = popen(command, "r");
		char line[100] = "";
		if (!fgets(line, sizeof line, pipe))
			printf("no line\n");
		printf("popen: %s", line);
		printf("pclose %d\n", WEXITSTATUS(pclose(pipe)));
	}
	LEAVE();
}

COUNTED void exec_nested(int levels)
{
	ENTER();
	leaf(levels);
	if (levels) {
		exec_nested(levels - 1);
	} else {
		char *arguments[] = { target, "21", NULL };
		execv("/nonexistent/program", arguments);
		printf("exec: %d\n", errno);
		leaf(1);
		fflush(stdout);
		count_write();
		execv(target, arguments);
		printf("not reached\n");
	}
	LEAVE();
}

COUNTED void *exec_thread(void *argument)
{
	ENTER();
	exec_nested(4);
	LEAVE();
	return argument;
}

/* The parent ends first: what the child does is recorded all the same. */
COUNTED void orphan(void)
{
	ENTER();
	int ends[2];
	char byte;
	if (pipe(ends))
		exit(1);
	pid_t child = forked();
	if (!child) {
		close(ends[1]);
		while (read(ends[0], &byte, 1) > 0)
			;
		usleep(20000);
		work(77);
		exit(0);
	}
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	if (argc < 3)
		return 2;
	const char *kind = argv[1];
	target = argv[2];
	if (!strcmp(kind, "plain")) {
		plain();
	} else if (!strcmp(kind, "deep")) {
		deep();
	} else if (!strcmp(kind, "bare")) {
		bare();
	} else if (!strcmp(kind, "tree")) {
		tree(3);
	} else if (!strcmp(kind, "thread")) {
		pthread_t thread, other;
		for (int i = 0; i < 5; i++) {
			pthread_create(&other, NULL, other_thread, NULL);
			pthread_create(&thread, NULL, in_thread, NULL);
			pthread_join(thread, NULL);
			pthread_join(other, NULL);
		}
	} else if (!strcmp(kind, "vfork")) {
		vforks();
	} else if (!strcmp(kind, "spawn")) {
		spawns();
	} else if (!strcmp(kind, "shell")) {
		shell();
	} else if (!strcmp(kind, "exec")) {
		exec_nested(6);
	} else if (!strcmp(kind, "exec-thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, exec_thread, NULL);
		pthread_join(thread, NULL);
	} else if (!strcmp(kind, "orphan")) {
		orphan();
	}
	printf("end %s\n", kind);
	LEAVE();
	return 0;
}
