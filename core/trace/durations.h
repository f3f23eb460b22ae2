/* SPDX-License-Identifier: MIT */
/*
 * How long the calls of a function took, as the function profiler counts them (graftrace/profile.h): a
 * histogram as text, and what lies below which share of the calls. Reentrant, allocates nothing. The
 * counts may be anything, for a traced program can write them.
 */
#ifndef GT_CORE_TRACE_DURATIONS_H
#define GT_CORE_TRACE_DURATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/profile.h>
#include "core/trace/target.h"

#define GT_DURATIONS GRAFTRACE_PROFILE_BUCKETS
/* A line's bytes, and the columns of one with a bar of GT_DURATIONS_BAR. */
#define GT_DURATIONS_LINE    128
#define GT_DURATIONS_COLUMNS 82
#define GT_DURATIONS_BAR     40

/* Where the buckets begin; where the next one begins, a bucket ends, and the last has no end. */
void gt_durations_starts(const struct gt_clock *clock, uint64_t starts_ns[GT_DURATIONS]);

struct gt_durations {
	const uint64_t *counts, *starts_ns; /* GT_DURATIONS of each */
};

/* How many calls were counted. */
uint64_t gt_durations_sum(const struct gt_durations *durations);
/* The first and the last bucket that has calls; false: there are none. */
bool gt_durations_range(const struct gt_durations *durations, uint32_t *first, uint32_t *last);

/* `hits` calls have begun: how many of them are counted, and what half of them, 90 and 99 in a hundred
 * took at most, as far as buckets tell. Returns the text's length, as the next one. */
size_t gt_durations_head(const struct gt_durations *durations, uint64_t hits, char *text,
			 size_t bytes);
/* A bucket's line as graftrace report --hist has it, without its end: `24 ns - 49 ns  990 |###   |`, of
 * GT_DURATIONS_COLUMNS columns if `columns` is 0, else of no more than that where it can be. */
size_t gt_durations_line(const struct gt_durations *durations, uint32_t bucket, uint32_t columns,
			 char *line, size_t bytes);

#endif
