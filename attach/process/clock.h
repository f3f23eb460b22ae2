/* SPDX-License-Identifier: MIT */
/* The host's clocks, the time stamp counter and the rate between them. Any thread. */
#ifndef GT_ATTACH_CLOCK_H
#define GT_ATTACH_CLOCK_H

#include <stdint.h>
#include <time.h>
#include "core/trace/target.h"

/* The counter and a clock of the system at one moment. */
struct gt_instant {
	uint64_t tsc;
	uint64_t ns;
};

/* Both, as close together as some tries get. clock: of clock_gettime(2), one that is there. */
struct gt_instant gt_clock_read(clockid_t clock);
/* With CLOCK_MONOTONIC. */
struct gt_instant gt_clock_now(void);

/* The counter alone: no load behind the call is made before it is read. */
uint64_t gt_clock_counter(void);

/* CLOCK_MONOTONIC alone, for limits of time. */
uint64_t gt_monotonic_ns(void);
uint64_t gt_monotonic_ms(void);

/* Sets *clock from two instants; nothing if there is no time between them. */
void gt_clock_calibrate(struct gt_clock *clock, struct gt_instant from, struct gt_instant to);
/* 0 = not calibrated yet. */
uint64_t gt_clock_ticks(const struct gt_clock *clock, uint64_t ns);

#endif
