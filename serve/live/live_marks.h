/* SPDX-License-Identifier: MIT */
/*
 * What was written into trace_marker, as sub-buffers of a writer of its own: a small ring in our
 * memory, in the format of any other. Any thread; each call locks.
 */
#ifndef GT_SERVE_LIVE_MARKS_H
#define GT_SERVE_LIVE_MARKS_H

#include <stdbool.h>
#include "core/control/control.h"

#define GT_LIVE_MARKS_BYTES 8192 /* of a sub-buffer */

struct gt_live_marks;

/* number: of the writer among those of marks. NULL: no memory. */
struct gt_live_marks *gt_live_marks_create(const struct gt_control_writer *writer, uint32_t number);
void gt_live_marks_destroy(struct gt_live_marks *marks);

bool gt_live_marks_are_of(struct gt_live_marks *marks, const struct gt_control_writer *writer);

/* tracer: the one that is current, whose lines it will stand among. At most 1024 bytes. GT_ENOSPC:
 * the ring is full and not to be overwritten; GT_ENOMEM. */
int gt_live_marks_put(struct gt_live_marks *marks, enum graftrace_tracer tracer, const char *bytes,
		      size_t count, bool raw, bool overwrite);

/* As struct gt_ring_ops has them. */
int gt_live_marks_writer(struct gt_live_marks *marks, struct gt_writer *writer);
int64_t gt_live_marks_copy(struct gt_live_marks *marks, uint64_t sequence, void *buffer,
			   const struct graftrace_sub_buffer **bytes);
int gt_live_marks_consume(struct gt_live_marks *marks, uint64_t sequence);

#endif
