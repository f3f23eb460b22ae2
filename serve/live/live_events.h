/* SPDX-License-Identifier: MIT */
/*
 * Which context switches are shown: sched_switch on or off, tracing_cpumask, set_event_pid; and of which
 * threads a route takes events with fields (serve/store/route.h). Switches are recorded whatever these say. So each
 * value is kept with the time when it was set, and readers look up the value that was in force at a record's time.
 * There is room for a few values: for older times the oldest kept value counts. From any thread.
 */
#ifndef GT_SERVE_LIVE_EVENTS_H
#define GT_SERVE_LIVE_EVENTS_H

#include "serve/live/live_private.h"

/* Call the functions up to gt_live_events_clear() with live->lock held. show: switches sched_switch on or off from now
 * on. switched: the same at that clock, when a function's command switched tracing; a traced program wrote it, so a
 * clock that cannot be is replaced by the present one. mask, set_mask: word number `word` of tracing_cpumask, CPUs
 * 64 * word and up. clear: call when the ring was emptied: older switches are not shown any more. */
void gt_live_events_show(struct gt_live *live, bool on);
void gt_live_events_switched(struct gt_live *live, bool on, uint64_t clock);
uint64_t gt_live_events_mask(const struct gt_live *live, uint32_t word);
void gt_live_events_set_mask(struct gt_live *live, uint32_t word, uint64_t cpus);
void gt_live_events_clear(struct gt_live *live);

/* Takes live->lock. Adds to *stats the switches of that scope that are shown; those up to the clock
 * `given` were read. */
void gt_live_events_count(struct gt_live *live, const struct gt_control_scope *scope,
			  uint64_t given, struct gt_control_stats *stats);

/* The functions below take view->lock. */

/* set_event_pid and set_event_notrace_pid, as the operations thread and threads_set: GT_ENOENT after the
 * last; GT_ENOMEM. */
int gt_live_event_thread(struct gt_live_view *view, enum gt_control_threads which, uint32_t index,
			 uint32_t *tid);
int gt_live_event_threads_set(struct gt_live_view *view, enum gt_control_threads which,
			      const uint32_t *tids, uint32_t count, struct gt_message *message);
/* have: whether one of the lists is set now. take: whether the lists let events of that thread through. */
bool gt_live_events_have_threads(struct gt_live_view *view);
bool gt_live_events_take_thread(struct gt_live_view *view, uint32_t tid);
/* Sets options/event-fork: from now on threads that listed ones start are listed, too, or not. GT_ENOMEM. */
int gt_live_event_fork(struct gt_live_view *view, bool on, struct gt_message *message);

#endif
