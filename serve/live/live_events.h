/* SPDX-License-Identifier: MIT */
/*
 * What of a trace is an event, and of whom, at the time when it was made: sched_switch on or off,
 * tracing_cpumask, set_event_pid. All of it is recorded whatever these say, so that each keeps when
 * it was set, and readers look up what held at a record's time. What was set longer ago than there
 * is room to remember counts as what followed it.
 */
#ifndef GT_SERVE_LIVE_EVENTS_H
#define GT_SERVE_LIVE_EVENTS_H

#include "serve/live/live_private.h"

/* Under the live's lock: from now on switches are events, or are none; a word of tracing_cpumask;
 * the ring was emptied, and nothing of before is shown any more. */
void gt_live_events_show(struct gt_live *live, bool on);
uint64_t gt_live_events_mask(const struct gt_live *live, uint32_t word);
void gt_live_events_set_mask(struct gt_live *live, uint32_t word, uint64_t cpus);
void gt_live_events_clear(struct gt_live *live);

/* Adds the switches of that scope that are shown: those up to the clock `given` were read. */
void gt_live_events_count(struct gt_live *live, const struct gt_control_scope *scope,
			  uint64_t given, struct gt_control_stats *stats);

/* set_event_pid and set_event_notrace_pid, as the operations thread and threads_set. */
int gt_live_event_thread(struct gt_live_view *view, enum gt_control_threads which, uint32_t index,
			 uint32_t *tid);
int gt_live_event_threads_set(struct gt_live_view *view, enum gt_control_threads which,
			      const uint32_t *tids, uint32_t count, struct gt_message *message);
/* options/event-fork. GT_ENOMEM. */
int gt_live_event_fork(struct gt_live_view *view, bool on, struct gt_message *message);

#endif
