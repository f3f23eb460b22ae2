/* SPDX-License-Identifier: MIT */
/*
 * A static event with three integers, or what stands beside it, in a loop that the program times itself:
 *
 *	events N [wait]
 *
 * "wait": says "ready" and begins at a line of its standard input.
 * What is in the loop is chosen when this is compiled: -DEVENT the event, -DCLOCK one bare clock read, -DCALL a
 * function with two arguments (`probed`), -DTWO_CLOCK_READS two clock reads, -DLTTNG a tracepoint of LTTng-UST's;
 * nothing: neither. Prints `CPU_NS`: of a round of the loop, the median of 21 passes of N rounds.
 */
#include "bench/programs/passes.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(LTTNG)
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "bench/programs/events_lttng.h"
#define HAPPENS(a, b, c) tracepoint(bench, three, a, b, c)
#elif defined(EVENT)
#include <graftrace/event.h>
#define HAPPENS(a, b, c)                                                                           \
	GRAFTRACE_EVENT(bench, three, GRAFTRACE_INT(int, first, a), GRAFTRACE_INT(int, second, b), \
			GRAFTRACE_INT(int, third, c))
#elif defined(CLOCK)
#define HAPPENS(a, b, c) __asm__ volatile("rdtsc" : : "r"(a), "r"(b), "r"(c) : "rax", "rdx")
#elif defined(TWO_CLOCK_READS)
#define HAPPENS(a, b, c) \
	__asm__ volatile("rdtsc\n\trdtsc" : : "r"(a), "r"(b), "r"(c) : "rax", "rdx")
#elif defined(CALL)
#define HAPPENS(a, b, c) probed(a, b)
#else
#define HAPPENS(a, b, c) __asm__ volatile("" : : "r"(a), "r"(b), "r"(c))
#endif

/* Its first instructions are as long as those of most functions are. */
__attribute__((noipa)) int probed(int a, int b)
{
	__asm__ volatile("");
	return a * 77 + b * 33;
}

/* The work of a round is a step of a generator of numbers, which the fields are taken from. */
int main(int argc, char **argv)
{
	const long count = argc > 1 ? atol(argv[1]) : 1000000;
	uint64_t state = 88172645463325252u;
	double passes[PASSES];

	if (argc > 2) {
		puts("ready");
		fflush(stdout);
		getchar();
	}
	for (int pass = 0; pass < PASSES; pass++) {
		const uint64_t start = now_ns();

		for (long i = 0; i < count; i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			HAPPENS((int)i & 15, (int)state & 1023, (int)(state >> 32));
		}
		passes[pass] = (double)(now_ns() - start) / (double)count;
	}
	print_median(passes);
	return state == 0;
}
