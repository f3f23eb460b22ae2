/* SPDX-License-Identifier: MIT */
/* Copies the records that are in a ring, when its program has ended, into a recording. */
#ifndef GT_READ_RING_DUMP_H
#define GT_READ_RING_DUMP_H

#include <stdint.h>
#include "core/trace/target.h"

/* Gives every writer with all of its sub-buffers to the sink, in order, and consumes none. *words and
 * *calls: the numbers of records and of entries given. One thread at a time, which may use the target.
 * 0, the sink's error, or GT_ENOMEM. */
int gt_ring_dump(struct gt_target *target, const struct gt_sink *sink, uint64_t *words,
		 uint64_t *calls);

#endif
