/* SPDX-License-Identifier: MIT */
/*
 * A session's target as its readers see it: with what was written into trace_marker as writers of
 * their own, without what was cleared, and with counts of what readers took out. Any thread may use
 * it; it locks for moments, and never while it calls the session's target.
 */
#ifndef GT_SERVE_LIVE_VIEW_H
#define GT_SERVE_LIVE_VIEW_H

#include <pthread.h>
#include <stdbool.h>
#include "core/control/control.h"
#include "core/trace/merge.h"
#include "core/trace/target.h"

struct gt_live_view_writer;
struct gt_live_marks;

/* set_event_pid and set_event_notrace_pid, since when. */
struct gt_live_view_threads {
	uint64_t from; /* clock */
	uint64_t fork; /* what listed threads start from that clock on is listed; 0: is not */
	uint32_t *tids[2];
	uint32_t count[2]; /* 0: the list is not set */
};
#define GT_LIVE_VIEW_THREADS 8

struct gt_live_view {
	struct gt_target target; /* what readers use: the owner's copy is used, … */
	struct gt_target *shown; /* … which is this: its clock and tracer are the owner's to keep */
	struct gt_target marks; /* the marks' writers alone, for a file */
	struct gt_target *inner;
	/* While a sub-buffer is taken out and counted as read, and while all are counted: what
	 * goes meanwhile would be neither an entry nor read. Before `lock`, and the inner's. */
	pthread_mutex_t taking;
	pthread_mutex_t lock; /* guards what follows */
	struct gt_live_view_writer *writers;
	uint32_t count;
	uint32_t room;
	uint32_t inner_count; /* writers of `inner` that have a place among `writers` */
	struct gt_live_marks *mark_writers[64];
	uint32_t mark_count;
	bool overwrite; /* when marks find no room the oldest go */
	struct gt_live_view_threads event_threads[GT_LIVE_VIEW_THREADS]; /* in order of times */
	uint32_t event_thread_count;
	struct gt_session *session; /* that knows who started whom; NULL: nobody does */
	uint64_t read_of_cpu[GT_FILTER_CPU_WORDS * 64]; /* records taken out */
};

/* *shown becomes what readers use; it stays where it is. */
void gt_live_view_init(struct gt_live_view *view, struct gt_target *inner, struct gt_target *shown);
void gt_live_view_fini(struct gt_live_view *view);

/* A line into the trace, now. GT_ENOSPC: no room and not overwrite; GT_ENOMEM. */
int gt_live_view_mark(struct gt_live_view *view, const struct gt_control_writer *writer,
		      const char *bytes, size_t count, bool raw);

/* Frees what is full, and counts from here on. Of what is being written readers know by themselves
 * what is gone. */
void gt_live_view_clear(struct gt_live_view *view);

/* From now on: what its session's writers have is `archive`'s, with the same indexes, and what
 * comes is `inner`'s, whose writers are others, unless it is the same. GT_ENOMEM: nothing has
 * changed. */
int gt_live_view_detour(struct gt_live_view *view, struct gt_target *archive,
			struct gt_target *inner);

/* Consuming readers have come so far. */
void gt_live_view_note_given(struct gt_live_view *view, const struct gt_merge_given *given,
			     uint32_t count);

/* live_events.c: leaves those switches that are of wanted threads, and says how many; forgets all
 * but the newest `keep` lists. */
uint32_t gt_live_events_of_threads(struct gt_live_view *view, struct gt_switch *switches,
				   uint32_t count);
void gt_live_events_forget_threads(struct gt_live_view *view, uint32_t keep);

/* GT_ENOMEM; GT_ENOENT: no such thread. */
int gt_live_view_stats(struct gt_live_view *view, const struct gt_control_scope *scope,
		       struct gt_control_stats *stats);

#endif
