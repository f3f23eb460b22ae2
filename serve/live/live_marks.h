/* SPDX-License-Identifier: MIT */
/*
 * Markers of trace_marker, as a writer of its own: a small ring of sub-buffers in the host's memory.
 * Any thread may call; each call locks.
 */
#ifndef GT_SERVE_LIVE_MARKS_H
#define GT_SERVE_LIVE_MARKS_H

#include <stdbool.h>
#include "core/control/control.h"

#define GT_LIVE_MARKS_BYTES 8192 /* of a sub-buffer */

struct gt_live_marks;

/* Makes the empty ring of one writing thread. writer: copied. number: the count of such rings before it. The caller
 * owns it. NULL: no memory. */
struct gt_live_marks *gt_live_marks_create(const struct gt_control_writer *writer, uint32_t number);
/* Frees it; no other thread may know it any more. */
void gt_live_marks_destroy(struct gt_live_marks *marks);

/* Whether the ring is that of this thread. */
bool gt_live_marks_are_of(struct gt_live_marks *marks, const struct gt_control_writer *writer);

/* Adds a marker of at most 1024 bytes. tracer: the current one, which decides how the line looks.
 * GT_ENOSPC: the ring is full, and not `overwrite`; GT_ENOMEM. */
int gt_live_marks_put(struct gt_live_marks *marks, enum graftrace_tracer tracer, const char *bytes,
		      size_t count, bool raw, bool overwrite);

/* As the operations writer, sub_buffer and consume of struct gt_ring_ops (core/trace/target.h). */
int gt_live_marks_writer(struct gt_live_marks *marks, struct gt_writer *writer);
int64_t gt_live_marks_copy(struct gt_live_marks *marks, uint64_t sequence, void *buffer,
			   const struct graftrace_sub_buffer **bytes);
int gt_live_marks_consume(struct gt_live_marks *marks, uint64_t sequence);

#endif
