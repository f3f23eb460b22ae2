/* SPDX-License-Identifier: MIT */
/* What programs that time one loop share: passes over it, of which the median is printed. */
#ifndef BENCH_PASSES_H
#define BENCH_PASSES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PASSES 21

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int by_size(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/* CPU_NS of a round; passes: of each pass, sorted afterwards. */
static void print_median(double passes[PASSES])
{
	qsort(passes, PASSES, sizeof(passes[0]), by_size);
	printf("%.3f\n", passes[PASSES / 2]);
}

#endif
