/* SPDX-License-Identifier: MIT */
/* Histograms of events (graftrace/hist.h): the writer's side. */
#ifndef GT_CORE_RECORD_HIST_H
#define GT_CORE_RECORD_HIST_H

#include <stdbool.h>

#include <graftrace/arena.h>
#include <graftrace/filter.h>
#include <graftrace/hist.h>

struct gt_thread;

/* What a histogram counts, and where. */
struct gt_hist_event {
	const struct graftrace_filter_event *event;
	const struct gt_thread *thread; /* whose calls are open; NULL: none are known */
	uint64_t clock;			/* of the time stamp counter */
	uint32_t depth;			/* how many events led to this one, each by an action */
};

/* Events that are made of an event, of that one, …: deeper ones are not made. */
#define GT_HIST_DEPTH 3

/* Counts the event in the histogram whose description lies in `room` bytes, and which neither reads variables of
 * others nor has actions. From anywhere: it may be interrupted by itself at any instruction, also in the same
 * table, and takes a bounded number of steps whatever stands in the tables. */
void gt_hist_count(const struct graftrace_arena *arena, const struct graftrace_hist *description,
		   uint64_t room, const struct gt_hist_event *counted);

/* The same of one that does, and does what its actions say; true: what is left of that is a snapshot. As things
 * stand: it needs more of the stack than there is where signals are masked. */
bool gt_hist_follow(const struct graftrace_arena *arena, const struct graftrace_hist *description,
		    uint64_t room, const struct gt_hist_event *counted);

#endif
