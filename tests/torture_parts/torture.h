/* SPDX-License-Identifier: MIT */
/*
 * What the programs share that tests/torture makes: the counts of their own calls, and what becomes
 * the sum that they print.
 *
 * The counts lie in the file that $TORTURE_COUNTS names, mapped shared: those of children and of
 * the programs that are executed later add up with the others, and a killed process keeps its own.
 * Number 0 counts what makes the others inexact: handlers that do not return, threads cancelled at
 * any instruction, children that go on in the middle of a function.
 */
#ifndef TORTURE_H
#define TORTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define TORTURE_COUNTS 4096

#ifdef __clang__
#define COUNTED __attribute__((noinline, unused))
#else
#define COUNTED __attribute__((noipa, unused))
#endif
#define TORTURE_INLINE static inline __attribute__((always_inline, unused))

static unsigned long torture_own_counts[TORTURE_COUNTS];
static unsigned long *torture_counts = torture_own_counts;
static const char *torture_program, *torture_library;

/* The first thing that a counted function does. */
#define COUNT(function) \
	((void)__atomic_fetch_add(&torture_counts[N_##function], 1, __ATOMIC_RELAXED))

TORTURE_INLINE void torture_inexact(void)
{
	__atomic_fetch_add(&torture_counts[0], 1, __ATOMIC_RELAXED);
}

TORTURE_INLINE long mix(long sum, long value)
{
	unsigned long mixed = ((unsigned long)sum ^ (unsigned long)value) * 0x9e3779b97f4a7c15ul;
	return (long)(mixed ^ mixed >> 29);
}

/* What a call gave, so that no compiler makes a loop of the recursion. */
TORTURE_INLINE long torture_kept(long value)
{
	__asm__ volatile("" : "+r"(value));
	return value;
}

/* The program has noticed by itself that something came out wrong: it ends at once. */
__attribute__((noinline, unused)) static void torture_wrong(const char *what, long got, long wanted)
{
	char text[200];
	int length =
		snprintf(text, sizeof text, "wrong %s: %ld instead of %ld\n", what, got, wanted);
	if (write(1, text, (size_t)length) < 0)
		_exit(98);
	_exit(99);
}

#define EXPECT(what, got, wanted)                                              \
	do {                                                                   \
		long expect_got = (long)(got), expect_wanted = (long)(wanted); \
		if (expect_got != expect_wanted)                               \
			torture_wrong(what, expect_got, expect_wanted);        \
	} while (0)

__attribute__((unused)) static void torture_map_counts(void)
{
	const char *path = getenv("TORTURE_COUNTS");
	int file = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
	void *mapped;

	if (file < 0)
		return;
	if (ftruncate(file, sizeof torture_own_counts) == 0) {
		mapped = mmap(NULL, sizeof torture_own_counts, PROT_READ | PROT_WRITE, MAP_SHARED,
			      file, 0);
		if (mapped != MAP_FAILED)
			torture_counts = (unsigned long *)mapped;
	}
	close(file);
}

/* Waits for a child whatever signals come; its status as wait(2) has it. */
__attribute__((unused)) static int torture_wait(pid_t child)
{
	int status = -1;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

__attribute__((unused)) static pthread_t torture_start(void *(*start)(void *), void *argument,
						       size_t stack_bytes)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	pthread_attr_init(&attributes);
	if (stack_bytes)
		pthread_attr_setstacksize(&attributes, stack_bytes);
	error = pthread_create(&thread, &attributes, start, argument);
	EXPECT("pthread_create", error, 0);
	pthread_attr_destroy(&attributes);
	return thread;
}

__attribute__((unused)) static void torture_handle(int number, void (*handler)(int), int flags)
{
	struct sigaction action;
	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(number, &action, NULL);
}

#endif
