/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter's rate, by comparing it with CLOCK_MONOTONIC at two moments. The longer
 * the time between them, the better: a millisecond gives about 0.01 %, a second a thousand times
 * less.
 */
#include "attach/process/clock.h"

#include <x86intrin.h>

#define SHIFT 32

static uint64_t read_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

struct gt_instant gt_clock_read(clockid_t clock)
{
	struct gt_instant best = { 0, 0 };
	uint64_t narrowest = ~0ull;

	/* The reading with the counter's two values closest together was not interrupted. */
	for (int i = 0; i < 8; i++) {
		uint64_t before = __rdtsc(), ns = read_ns(clock), after = __rdtsc();

		if (after - before >= narrowest)
			continue;
		narrowest = after - before;
		best.tsc = before + (after - before) / 2;
		best.ns = ns;
	}
	return best;
}

struct gt_instant gt_clock_now(void)
{
	return gt_clock_read(CLOCK_MONOTONIC);
}

uint64_t gt_clock_counter(void)
{
	uint64_t counter;

	_mm_lfence();
	counter = __rdtsc();
	_mm_lfence();
	return counter;
}

uint64_t gt_monotonic_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t gt_monotonic_ms(void)
{
	return gt_monotonic_ns() / 1000000;
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
