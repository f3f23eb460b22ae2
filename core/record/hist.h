/* SPDX-License-Identifier: MIT */
/* Histograms of events (graftrace/hist.h): the writer's side. */
#ifndef GT_CORE_RECORD_HIST_H
#define GT_CORE_RECORD_HIST_H

#include <graftrace/arena.h>
#include <graftrace/filter.h>
#include <graftrace/hist.h>

/* Counts the event in the histogram whose description lies in `room` bytes. clock: of the time stamp
 * counter. From anywhere: it may be interrupted by itself at any instruction, also in the same table, and
 * takes a bounded number of steps whatever stands in the table. */
void gt_hist_count(const struct graftrace_arena *arena, const struct graftrace_hist *description,
		   uint64_t room, const struct graftrace_filter_event *event, uint64_t clock);

#endif
