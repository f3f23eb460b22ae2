/* SPDX-License-Identifier: MIT */
/* What drain.c (taking what was written) and drain_view.c (reading what is there) share. */
#ifndef GT_ATTACH_DRAIN_PRIVATE_H
#define GT_ATTACH_DRAIN_PRIVATE_H

#include "attach/ring/drain.h"

/* Reads what the writer's stream says of it. Only of one that has a stream. */
void gt_drain_update(struct gt_drain *drain, struct gt_live_writer *writer);

/* Whether a copied header can be the writer's; repairs nothing. */
bool gt_drain_header_fits(const struct gt_drain *drain, const struct graftrace_sub_buffer *header,
			  uint32_t index, const struct gt_live_writer *writer, uint64_t sequence);

/* In a copied header: the numbers by which the host knows the thread, in place of its own. */
static inline void gt_drain_put_numbers(struct graftrace_sub_buffer *header,
					const struct gt_live_writer *writer)
{
	header->pid = writer->writer.pid;
	header->tid = writer->writer.tid;
}

/* Makes a FULL sub-buffer the host's (READING). *word: its state as it was read, and as it is then.
 * False: it has changed meanwhile. */
bool gt_drain_take(struct gt_drain *drain, uint32_t index, uint64_t *word);

/* In drain mode what is READING is on its way to the sink. */
static inline bool gt_drain_is_readable(const struct gt_drain *drain, uint32_t state)
{
	return state == GRAFTRACE_SUB_BUFFER_ACTIVE || state == GRAFTRACE_SUB_BUFFER_FULL ||
	       (state == GRAFTRACE_SUB_BUFFER_READING && drain->mode != GRAFTRACE_MODE_DRAIN);
}

#endif
