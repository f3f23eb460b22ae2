/* SPDX-License-Identifier: MIT */
/*
 * A kernel's own ring as a target: what reads the arena inside the kernel that writes it, while it
 * writes. Several readers may look at once, each with a struct gt_arena_target of its own (they
 * share struct gt_arena_ring, whose lock the kernel supplies); at most one of them should consume.
 *
 * A sub-buffer is copied and looked at again afterwards: one that was reused meanwhile is gone, and
 * never shown torn. Nothing here stops the writers, or is stopped by them.
 */
#ifndef GT_CORE_VIEW_ARENA_TARGET_H
#define GT_CORE_VIEW_ARENA_TARGET_H

#include <graftrace/arena.h>
#include "core/view/merge.h"
#include "core/view/target.h"

#define GT_ARENA_WRITERS 64

/* What a kernel knows of itself. */
struct gt_arena_names {
	/* As in struct gt_target_ops; number from 1. */
	int (*function)(void *data, uint32_t number, struct gt_function *function);
	int (*function_at)(void *data, uint64_t address, struct gt_function *function);
	int (*thread)(void *data, uint32_t tid, char comm[16]);
	void *data;
};

struct gt_arena_ring {
	struct graftrace_arena *arena;
	const struct gt_arena_names *names;
	struct gt_clock clock;
	uint32_t consuming; /* 1: somebody reads and consumes */
	/* By writer: what the reader who consumes was given, and what `clear` took. The lock of who
	 * consumes or clears guards them. */
	struct gt_merge_given given[GT_ARENA_WRITERS];
	uint64_t first[GT_ARENA_WRITERS]; /* sequences below are consumed */
};

struct gt_arena_target {
	struct gt_target target;
	struct gt_arena_ring *ring;
	uint32_t found[GT_ARENA_WRITERS]; /* where a writer's last sub-buffer was: the next is near
					   */
};

void gt_arena_target_init(struct gt_arena_target *target, struct gt_arena_ring *ring);

/* Gives every closed sub-buffer back, and notes how far the open ones are written: readers that
 * begin now leave that out. One caller at a time, and nobody who consumes beside it. */
void gt_arena_ring_clear(struct gt_arena_ring *ring);

/* Bytes of the ring in use. */
uint64_t gt_arena_ring_used(const struct gt_arena_ring *ring);

#endif
