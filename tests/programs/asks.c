/* SPDX-License-Identifier: MIT */
/*
 * Functions that ask who called them, or return twice to the address that they found, at the end
 * of traced functions: by a jump through a pointer, or to another object. Says how often the caller
 * is not the function that made the call. With -DLIBRARY the functions that ask.
 */
#define _GNU_SOURCE
#define KEPT __attribute__((noinline, visibility("default")))

#ifdef LIBRARY
KEPT void *who(void)
{
	return __builtin_return_address(0);
}

KEPT void *who_else(void *unused)
{
	(void)unused;
	return __builtin_return_address(0);
}
#else
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

void *who(void);
void *who_else(void *);
int _setjmp(jmp_buf);

static void *(*volatile pointer)(void *) = who_else;
static int (*volatile twice)(jmp_buf) = _setjmp;
static jmp_buf place;

KEPT void *over(void)
{
	return who();
}

KEPT void *through(void *unused)
{
	return pointer(unused);
}

KEPT int jumps(void)
{
	return twice(place);
}

/* Not the last thing that it does: its own call. */
KEPT void *caller(bool way)
{
	void *volatile found = way ? over() : through(NULL);

	return found;
}

KEPT int lands(int n)
{
	volatile int left = n;

	if (jumps() == 0 || --left > 0)
		longjmp(place, 1);
	return left;
}

/* At each line so many rounds. */
int main(void)
{
	/* A caller's return address is behind its first byte. */
	char *start = (char *)caller;
	char line[64];

	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long wrong = 0;

		for (long i = atol(line); i > 0; i--) {
			char *found = caller(i & 1);

			wrong += found < start || found > start + 200;
			wrong += lands(3) != 0;
		}
		printf(wrong ? "%ld wrong\n" : "done\n", wrong);
		fflush(stdout);
	}
	return 3;
}
#endif
