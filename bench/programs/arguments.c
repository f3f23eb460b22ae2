/* SPDX-License-Identifier: MIT */
/*
 * Calls of functions with and without an argument, timed by the program itself:
 *
 *	arguments WHAT N
 *
 * WHAT is number, text (of 16 bytes, in the program's own data), stack (the same on the stack) or result.
 * Prints `CPU_NS`: of a call, the median of 21 passes of N calls.
 */
#include "bench/programs/passes.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__attribute__((noinline, noipa)) void number(int n)
{
	__asm__ volatile("" : : "r"(n));
}

__attribute__((noinline, noipa)) void text(const char *s)
{
	__asm__ volatile("" : : "r"(s));
}

__attribute__((noinline, noipa)) int result(void)
{
	__asm__ volatile("");
	return 7;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "number";
	const long count = argc > 2 ? atol(argv[2]) : 1000000;
	char on_stack[17] = "sixteen bytes it";
	const char *string = strcmp(what, "stack") == 0 ? on_stack : "sixteen bytes it";
	double passes[PASSES];

	for (int pass = 0; pass < PASSES; pass++) {
		const uint64_t start = now_ns();

		if (strcmp(what, "number") == 0)
			for (long i = 0; i < count; i++)
				number((int)i);
		else if (strcmp(what, "result") == 0)
			for (long i = 0; i < count; i++)
				result();
		else
			for (long i = 0; i < count; i++)
				text(string);
		passes[pass] = (double)(now_ns() - start) / (double)count;
	}
	print_median(passes);
	return 0;
}
