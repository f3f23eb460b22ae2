/* SPDX-License-Identifier: MIT */
/*
 * The writers of an arena as the host knows them, and the emptying of their sub-buffers into a
 * sink. Everything read here was written by the target and is checked; a broken arena gives counted
 * corruption, never a fault, a hang or a sub-buffer that the sink could trip over.
 *
 * One thread at a time: call all of it with the session's lock held, or while no other thread knows the drain, as when
 * a session starts or is destroyed; no function takes a lock. The sink is called by gt_drain_scan() and gt_drain_pass()
 * alone. A writer is named by its index in drain->writers, of which an index that is too large counts as no writer (but
 * for gt_drain_forget()).
 */
#ifndef GT_ATTACH_DRAIN_H
#define GT_ATTACH_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach/ring/arena.h"
#include "core/trace/target.h"

/* A writer: from its claim of a stream until for ever (the views go on naming it), or, where nobody
 * views (gt_drain.forgets), until it has ended and nothing of it is left: then its place is
 * another's. */
struct gt_live_writer {
	struct gt_writer writer; /* first, next: kept up by gt_drain_scan */
	uint32_t stream;	 /* of a free place: index + 1 of the next, 0 = none */
	bool live;		 /* it still has the stream */
	bool ended;	      /* its thread has ended: what is ACTIVE is as finished as it gets */
	bool in_ring;	      /* ring modes, of one pass: there is something of it to be read */
	bool told;	      /* to the sink, as it is */
	bool damaged;	      /* its numbers were impossible: somebody has written over them */
	uint64_t lost_events; /* as its stream says */
	uint64_t looked_ns;   /* when its numbers were read last */
	uint64_t expected;    /* drain mode: next sequence for the sink */
	uint64_t block;	      /* number of its thread block, as it says; 0 = none yet */
	uint64_t noted;	      /* address of that, as its process's own memory confirms; 0 = not
				 * looked for yet */
	uint64_t gone_below;  /* none of its sub-buffers before that sequence is there any more */
	uint32_t look;	      /* the last one (drain_view.c); 0 = none was */
	uint32_t found; /* of it: the first of the writer's sub-buffers, index + 1; 0 = none */
	uint64_t found_below;	/* and the sequence up to which those are all that there are */
	uint64_t start_time;	/* of the thread, /proc's starttime: tells it from a later one */
	uint64_t waiting_since; /* ns; a hole is being waited for, or a sub-buffer is missing. 0 =
				   no */
};

/* What is kept of writers that were forgotten. The ring modes' losses are at gt_drain.sum_writer. */
struct gt_drain_forgotten {
	uint32_t count; /* without that one */
	uint32_t damaged;
	struct gt_writer damaged_first;
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* of those that are not damaged */
	uint64_t lost_events;
	uint32_t *pids; /* [GT_DRAIN_PIDS] by hash; NULL: none yet */
	uint32_t processes;
};

#define GT_DRAIN_PIDS \
	16384 /* a power of two; more processes than three quarters are not told apart */

struct gt_drain_quarantined {
	uint32_t index;
	uint32_t writer;
	uint64_t calls; /* that were there when it was delivered */
};

struct gt_drain {
	struct gt_arena *arena;
	const struct gt_sink *sink; /* NULL in the ring modes */
	enum graftrace_arena_mode mode;

	struct gt_live_writer *writers;
	uint32_t writer_count;
	uint32_t writer_room;
	uint32_t free_writer; /* index + 1 of one whose place is free, 0 = none */
	bool forgets;	      /* there are no views */
	uint32_t sum_writer;  /* index + 1 of the writer that has the losses of all that were
			       * forgotten in a ring mode: of no thread, the first one's process.
			       * 0 = none was */
	struct gt_drain_forgotten forgotten;
	uint32_t *of_stream; /* [stream_count]: index + 1 of the writer that has it, 0 = none */
	uint32_t *live;	     /* indexes of the writers with a stream */
	uint32_t live_count;
	bool *is_closed; /* [stream_count], during one scan: ended, and no sub-buffer is open */
	uint32_t generations; /* arena.generations when the streams were last searched */
	/* The numbers by which the host knows a thread that has written its own into a stream: in another PID namespace it
	 * has others. False: not to be told yet. NULL: they are the same. */
	bool (*number)(void *data, uint32_t arena, const struct graftrace_stream *stream,
		       uint32_t *pid, uint32_t *tid);
	/* Whether a process has another arena than that number's: it writes none of this one. NULL: there
	 * is but one. */
	bool (*is_foreign)(void *data, uint32_t arena, uint32_t pid);
	void *data;
	bool refused; /* a stream that says it is such a process's, or has such a number */

	uint32_t looks;	      /* number of the last look (drain_view.c) */
	uint32_t *found_next; /* of that, one a sub-buffer: its writer's next one, index + 1 */

	struct gt_drain_item *items;		 /* one a sub-buffer, of one pass */
	void *copy;				 /* one sub-buffer */
	struct gt_drain_quarantined *quarantine; /* one a sub-buffer */
	uint32_t quarantined;
	uint32_t held; /* ring modes: sub-buffers whose records a consuming reader gives */

	bool pool_is_held; /* all sub-buffers were taken once, most of them by threads' open ones */
	uint64_t words;	   /* records given to the sink */
	uint64_t calls;	   /* calls that they tell of */
	uint64_t begun_ns;
	uint64_t corrupt;    /* sub-buffers thrown away: the target has written over its arena */
	uint64_t last_clock; /* the latest full clock seen */
};

/* arena and sink must outlive it; sink: NULL in the ring modes. The caller may set `forgets`, `number`,
 * `is_foreign` and `data` afterwards. GT_ENOMEM: nothing is left to be freed. */
int gt_drain_init(struct gt_drain *drain, struct gt_arena *arena, enum graftrace_arena_mode mode,
		  const struct gt_sink *sink, struct gt_message *message);
/* Frees its tables; the arena stays the caller's. */
void gt_drain_fini(struct gt_drain *drain);

/* Adds the writers that have claimed a stream since the last call. 0 or GT_ENOMEM: those that were not added come
 * with the next call. */
int gt_drain_find_writers(struct gt_drain *drain);

/* The same; then updates the numbers of all writers, notes which have ended, and gives the sink those that it
 * does not know. 0, GT_ENOMEM or the sink's error. */
int gt_drain_scan(struct gt_drain *drain);

/* Notes which sub-buffers each writer has. Call it before the functions below are called for many writers: without
 * it each call searches all sub-buffers. What was noted is used until the next look. */
void gt_drain_look(struct gt_drain *drain);

/* Fills in *writer as the views see it: `first` is the oldest sequence that is there, `next` if there is none.
 * GT_ENOENT: there is no such writer, or it was forgotten. */
int gt_drain_writer(struct gt_drain *drain, uint32_t index, struct gt_writer *writer);

/* The oldest sequence of the writer that is there, not below `sequence`; if there is none, its `next`, or
 * `sequence` if that is greater. `sequence` if there is no such writer. */
uint64_t gt_drain_next(struct gt_drain *drain, uint32_t index, uint64_t sequence);

/* Tells that the writer's thread has ended: the next gt_drain_pass takes its ACTIVE sub-buffer as it stands.
 * whole: its process has ended too (or the image it ran). Otherwise, if a living thread of the process has begun to
 * close the stream, the sub-buffer is taken once it is closed. No effect if it has no stream any more. */
void gt_drain_end_writer(struct gt_drain *drain, uint32_t writer, bool whole);

/*
 * One pass over all sub-buffers. Drain mode: each writer's FULL ones go to the sink in order, are zeroed
 * and freed; an ended writer's ACTIVE one too, and then its stream. Ring modes: an ended writer's ACTIVE
 * one is closed; of a ring that keeps the newest records the oldest FULL ones of all are freed where the
 * pool is short, and count as overrun. Streams of ended writers of which nothing is left are free then,
 * and the writers forgotten (gt_drain_forget). It begins with gt_drain_scan(). now_ns: CLOCK_MONOTONIC.
 * Returns how many sub-buffers were worked on, GT_ENOMEM, or the sink's error.
 */
int gt_drain_pass(struct gt_drain *drain, uint64_t now_ns);

/* Forgets a writer, if drain->forgets is set: its counts are added to those of drain->forgotten (of a damaged one
 * only that there was one), and its index may be given to another writer. In the ring modes the losses are added to
 * one writer, which is kept: the first one that is forgotten (drain->sum_writer). The index is not checked. The caller
 * makes sure that it has ended, that it has no sub-buffer left, and that the sink has all of it. */
void gt_drain_forget(struct gt_drain *drain, uint32_t index);

/* Ring modes: views read the writers from now on. No writer is forgotten any more, and no index is given to
 * another one. No effect in drain mode. */
void gt_drain_keep_writers(struct gt_drain *drain);

/* Adds to lost[], by cause, the losses that the arena counts for no writer. ns: how long the recording has taken.
 * Any process can write these counts, so one that is more than a loss a nanosecond is left out; returns how many
 * were. */
uint32_t gt_drain_add_lost(const struct gt_drain *drain, uint64_t ns,
			   uint64_t lost[GRAFTRACE_LOST_CAUSES]);

/* Whether a writer of that process was forgotten. False also for processes beyond three quarters of
 * GT_DRAIN_PIDS. */
bool gt_drain_has_forgotten(const struct gt_drain *drain, uint32_t pid);

/* Ring modes: keeps a FULL sub-buffer until gt_drain_consume(): writers do not overwrite it. 0 also if it is held
 * already, or if a quarter of all sub-buffers is held: then it is not, and may be overwritten. GT_EAGAIN: it is
 * being written. GT_ENOENT: the writer has none with that sequence. */
int gt_drain_hold(struct gt_drain *drain, uint32_t writer, uint64_t sequence);

/* Frees that one FULL or held sub-buffer of the writer (ring modes). GT_ENOENT: there is none with that
 * sequence, or it is being written. Writers that wait for room are woken. */
int gt_drain_consume(struct gt_drain *drain, uint32_t writer, uint64_t sequence);

/* Ring modes: empties the ring. All FULL and held sub-buffers of all writers are freed. Writers that wait for room are
 * woken. */
void gt_drain_clear(struct gt_drain *drain);

/*
 * Copies the sub-buffer `sequence` of `writer` into `buffer`, of arena->sub_buffer_bytes, and checks its header; the
 * words are not checked. Returns the number of words behind the header; of one that is being written *active is set
 * to true, and all words that it has room for are counted. GT_ENOENT: it is not there, or was overwritten during the
 * copy; GT_EFORMAT: the target has damaged its header.
 */
int64_t gt_drain_copy(struct gt_drain *drain, uint32_t writer, uint64_t sequence, void *buffer,
		      bool *active);

#endif
