/* SPDX-License-Identifier: MIT */
/*
 * Self times of calls that are told at their ends only (tracing_thresh): a call's callees are those
 * one level deeper that ended since the last call of its own level did.
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
	size_t last; /* that was asked for */
};

/* What is deeper is nobody's callee. */
#define GT_LEVELS_MAX 4096

/* A call at `level` (0: the outermost) of the stack `key` ended after `time`. Returns what is left
 * of it without its callees; without memory, all of it. */
uint64_t gt_levels_end(struct gt_levels *levels, uint64_t key, uint32_t level, uint64_t time);

void gt_levels_fini(struct gt_levels *levels);

#endif
