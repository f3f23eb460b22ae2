/* SPDX-License-Identifier: MIT */
/* Measures the cost of a call in ticks: plain, traced, paused, ring full (batches=N: of 1000 calls). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef GT_TRACE
#include "core/record/kernel.h"
#else
static void gt_kernel_pause(void)
{
}
static void gt_kernel_resume(void)
{
}
#endif

#define BATCH	1000
#define BATCHES 400

__attribute__((noinline)) void called(void)
{
	__asm__ volatile("" ::: "memory");
}

/* Inline: no call of it is traced, and counted with the others. */
static inline uint64_t ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* The minimum of several batches: interrupts can only add time. */
static uint64_t cheapest(int batches)
{
	uint64_t least = UINT64_MAX;
	for (int batch = 0; batch < batches; batch++) {
		uint64_t start = ticks();
		for (int call = 0; call < BATCH; call++)
			called();
		uint64_t took = ticks() - start;
		if (took < least)
			least = took;
	}
	return least;
}

int main(void)
{
	uint64_t first = cheapest(20);
	gt_kernel_pause();
	uint64_t paused = cheapest(20);
	gt_kernel_resume();
	const char *batches = getenv("batches");
	cheapest(batches ? atoi(batches) : BATCHES); /* these fill a ring of a few megabytes */
	uint64_t last = cheapest(20);
	printf("calls: %lu ticks for %d calls at first, %lu paused, %lu at last\n", first, BATCH,
	       paused, last);
	return 0;
}
