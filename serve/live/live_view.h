/* SPDX-License-Identifier: MIT */
/*
 * A session's target as its readers see it: markers of trace_marker are added as writers of their own,
 * cleared records are left out, and consumed records are counted. Any thread may use it, from gt_live_view_init() on.
 * The functions take view->lock, for moments, and never while they call the session's target (`inner`); init takes no
 * lock. gt_live_view_stats() holds view->taking while it counts, and the target's `consume` while it takes a sub-buffer
 * out; no other function takes that.
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

/* Values of set_event_pid and set_event_notrace_pid, and from when on they hold. */
struct gt_live_view_threads {
	uint64_t from; /* clock */
	uint64_t fork; /* threads that listed ones start after this clock are listed, too; 0: not */
	uint32_t *tids[2];
	uint32_t count[2]; /* 0: the list is not set */
};
#define GT_LIVE_VIEW_THREADS 8

struct gt_live_view {
	struct gt_target target; /* the operations */
	struct gt_target *shown; /* the owner's copy of it, which readers use: the owner sets its
				  * clock and tracer */
	struct gt_target marks;	 /* the marks' writers alone, for a file */
	/* The session's target, or since a detour the store that replaces it. Written under `lock`, read without it:
	 * atomic. */
	struct gt_target *inner;
	/* Held while a sub-buffer is consumed and counted as read, and while `stats` counts: a
	 * record consumed in between would count neither as an entry nor as read. Taken before
	 * `lock` and before the lock of `inner`. */
	pthread_mutex_t taking;
	pthread_mutex_t lock; /* guards what follows */
	struct gt_live_view_writer *writers;
	uint32_t count;
	uint32_t room;
	uint64_t lost_before[GRAFTRACE_LOST_CAUSES]; /* of no writer, when it was cleared */
	uint32_t inner_count; /* writers of `inner` that have a place among `writers` */
	struct gt_live_marks *mark_writers[64];
	uint32_t mark_count;
	bool overwrite; /* a full ring of marks drops its oldest */
	struct gt_live_view_threads event_threads[GT_LIVE_VIEW_THREADS]; /* in order of times */
	uint32_t event_thread_count;
	struct gt_session *session; /* knows which thread started which; NULL: unknown */
	uint64_t read_of_cpu[GT_FILTER_CPU_WORDS * 64]; /* records taken out */
};

/* Makes the view of the target `inner`, with its locks, and fills *shown with the target that readers use. view, inner
 * and shown must stay valid, at their addresses, until gt_live_view_fini(). Call it before another thread knows the
 * view; takes no lock. Cannot fail. */
void gt_live_view_init(struct gt_live_view *view, struct gt_target *inner, struct gt_target *shown);
/* Frees what the view has allocated, and its locks; no other thread may use it any more. Call it with no lock of the
 * view held: it takes view->lock once more before it frees that. */
void gt_live_view_fini(struct gt_live_view *view);

/* Writes a line into the trace, at the present time; count: 1024 bytes at most. raw: the bytes of trace_marker_raw, which
 * are shown as numbers. GT_ENOSPC: no room, and not `overwrite`; GT_ENOMEM. */
int gt_live_view_mark(struct gt_live_view *view, const struct gt_control_writer *writer,
		      const char *bytes, size_t count, bool raw);

/* Clears all writers of the view: those of marks, of `inner`, and after a detour those of `archive`. Consumes their full
 * sub-buffers, which so leave the ring or store that they are in, and sets the counts to 0. Readers themselves leave out
 * the cleared part of open sub-buffers. Takes view->lock for moments, and view->taking not at all. Without memory
 * nothing is consumed; that is not reported. */
void gt_live_view_clear(struct gt_live_view *view);

/* Changes where the session's records come from. Those up to now come from `archive`, under the same indexes of
 * writers as before. Later records come from `inner`, which becomes view->inner, under view->lock: its writers are
 * further ones with indexes of their own, or, if `inner` is `archive`, the same. GT_ENOMEM: nothing has changed. */
int gt_live_view_detour(struct gt_live_view *view, struct gt_target *archive,
			struct gt_target *inner);

/* Notes how far consuming readers have read, by writer, for gt_live_view_stats(). The array stays the caller's. */
void gt_live_view_note_given(struct gt_live_view *view, const struct gt_merge_given *given,
			     uint32_t count);

/* live_events.c. of_threads: removes from the array the switches of threads that set_event_pid does not let through,
 * and returns how many are left. forget: drops all but the newest `keep` values. Both take view->lock. */
uint32_t gt_live_events_of_threads(struct gt_live_view *view, struct gt_switch *switches,
				   uint32_t count);
void gt_live_events_forget_threads(struct gt_live_view *view, uint32_t keep);

/* Adds the counts of a scope's records to *stats; now_ns and damaged are not set. GT_ENOMEM; GT_ENOENT: no such
 * thread. */
int gt_live_view_stats(struct gt_live_view *view, const struct gt_control_scope *scope,
		       struct gt_control_stats *stats);

#endif
