/* SPDX-License-Identifier: MIT */
/*
 * Self times of calls of which only the ends are recorded (tracing_thresh): a call's callees are those
 * one level deeper that ended after the last call of its own level. One thread at a time.
 */
#ifndef GT_READ_LEVELS_H
#define GT_READ_LEVELS_H

#include <stddef.h>
#include <stdint.h>

struct gt_level_stack;

/* All zero: nothing has ended. */
struct gt_levels {
	struct gt_level_stack *stacks;
	size_t count, room;
	size_t last; /* the stack that was used last */
};

/* Calls deeper than this are no call's callees. */
#define GT_LEVELS_MAX 4096

/* Call when a call at `level` (0: the outermost) of the stack `key` has ended, which took `time`. Returns the time
 * without that of its callees; if there is no memory, all of it. */
uint64_t gt_levels_end(struct gt_levels *levels, uint64_t key, uint32_t level, uint64_t time);

void gt_levels_fini(struct gt_levels *levels);

#endif
