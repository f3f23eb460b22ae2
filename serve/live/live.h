/* SPDX-License-Identifier: MIT */
/*
 * The control files of a program that is being traced: the operations of struct gt_control_target
 * over a session. Any number of threads may use them; they lock what they share, and hold no lock
 * while a reader's bytes are on their way. The functions take the locks of live_private.h: call them
 * with none of those held, nor the session's.
 */
#ifndef GT_SERVE_LIVE_H
#define GT_SERVE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach/session/session.h"
#include "core/control/control.h"

struct gt_live;

/* Options that the session was started with and cannot be asked for. */
struct gt_live_options {
	size_t size;	     /* sizeof(struct gt_live_options), or more: room to grow */
	const char *program; /* path of the program's own object: its functions have no [object] */
	/* As the session was started with them, these and the following ones. Takes references to the
	 * lists; `on` is not read: the session knows it. */
	struct gt_trace_settings settings;
	enum graftrace_arena_mode mode;
	uint64_t buffer_bytes;
	bool no_fork;
	const char *const *event_filters; /* NULL-terminated, as `values`; NULL: none */
	const char *const *values;	  /* arguments and results */
	/* Takes the text of the command `dump`; called from any thread, maybe with change.lock and
	 * instances.turn held: it must use no control file. NULL: it is thrown away. */
	void (*dump)(void *data, const char *text, size_t bytes);
	void *dump_data;
};

/* Makes the control files of a session, which must outlive them. The options are copied. Its writers keep
 * their numbers from now on (gt_session_keep_writers). No thread is started. GT_ENOMEM; GT_EINVAL: options
 * of an older size; *live is not set then. */
int gt_live_create(struct gt_session *session, const struct gt_live_options *options,
		   struct gt_live **live, struct gt_message *message);

/* The control files themselves: never NULL, valid until gt_live_destroy. Takes no lock. */
struct gt_control_target *gt_live_control(struct gt_live *live);

/* The top's records as `trace` shows them, with the same clock. Valid until gt_live_destroy; from any
 * thread. Takes live->lock. */
struct gt_target *gt_live_view(struct gt_live *live);

/* The one or two targets that have the top's records, in order of time; for writing a recording once
 * the program has ended and no other thread changes settings. If the top has a buffer of its own, the
 * last records are copied into it first, and it gets no more. Valid until gt_live_destroy. Returns how
 * many. */
uint32_t gt_live_rings(struct gt_live *live, struct gt_target *rings[2]);

/* The markers of trace_marker as a target, for writing a recording. Valid until gt_live_destroy; takes no
 * lock. */
struct gt_target *gt_live_marks(struct gt_live *live);

/* For the handler of gt_session_trigger_handler, with the thread that polls the session: carries out the
 * commands snapshot, dump and cpudump; after the latter two tracing is off. traceon and traceoff: the
 * windows of context switches follow. Other hits are ignored. What fails is left out. */
void gt_live_hit(struct gt_live *live, const struct gt_trigger_hit *hit);

/* Tells that the program has ended: files can still be read, trace_pipe ends when it is empty, writes
 * are refused with GT_EGONE. Records go on being copied into the buffers of instances. From any
 * thread. */
void gt_live_end(struct gt_live *live);

/* Ends the copying thread and frees all. No handle of its files may be open, and no other thread may use it
 * any more; the session still lives. Not NULL. */
void gt_live_destroy(struct gt_live *live);

#endif
