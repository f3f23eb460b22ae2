/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter's rate, by comparing it with CLOCK_MONOTONIC at two moments. The longer
 * the time between them, the better: a millisecond gives about 0.01 %, a second a thousand times
 * less.
 */
#include "attach/session_private.h"

#include <time.h>
#include <x86intrin.h>

#define SHIFT 32

struct gt_instant gt_clock_now(void)
{
	struct gt_instant best = { 0, 0 };
	uint64_t narrowest = ~0ull;
	int i;

	/* The reading with the counter's two values closest together was not interrupted. */
	for (i = 0; i < 8; i++) {
		struct timespec time;
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC, &time);
		after = __rdtsc();
		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		best.tsc = before + (after - before) / 2;
		best.ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	}
	return best;
}

void gt_clock_calibrate(struct gt_clock *clock, struct gt_instant from, struct gt_instant to)
{
	__extension__ typedef unsigned __int128 u128;

	if (to.tsc <= from.tsc || to.ns <= from.ns)
		return;
	*clock = (struct gt_clock){
		.tsc_base = from.tsc,
		.ns_base = from.ns,
		.mult = (uint64_t)(((u128)(to.ns - from.ns) << SHIFT) / (to.tsc - from.tsc)),
		.shift = SHIFT,
	};
}

uint64_t gt_clock_ticks(const struct gt_clock *clock, uint64_t ns)
{
	__extension__ typedef unsigned __int128 u128;

	return clock->mult ? (uint64_t)(((u128)ns << clock->shift) / clock->mult) : 0;
}
