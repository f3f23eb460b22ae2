/* SPDX-License-Identifier: MIT */
/*
 * A kernel's own ring as a target: reads the arena inside the kernel that writes it, while it writes.
 * Several readers may read at once, each with a struct gt_arena_target of its own (they share struct
 * gt_arena_ring, whose lock the kernel supplies); at most one of them consumes.
 *
 * A sub-buffer is copied, and its state is checked again afterwards: one that was reused meanwhile is
 * not given, so none is ever torn. Readers and writers never wait for each other.
 */
#ifndef GT_CORE_KERNEL_KERNEL_TARGET_H
#define GT_CORE_KERNEL_KERNEL_TARGET_H

#include <graftrace/arena.h>
#include "core/trace/merge.h"
#include "core/trace/target.h"

#define GT_ARENA_WRITERS 64
#define GT_ARENA_LATER	 1536 /* events that are defined while the kernel runs */

/* Names, which the kernel supplies. */
struct gt_arena_names {
	/* As in struct gt_name_ops; number from 1. */
	int (*function)(void *data, uint32_t number, struct gt_function *function);
	int (*function_at)(void *data, uint64_t address, struct gt_function *function);
	int (*thread)(void *data, uint32_t tid, char comm[16]);
	void *data;
	/* Static events, number from 1 without a gap; GT_ENOENT behind the last. NULL: none. */
	int (*event)(void *data, uint32_t number, struct gt_event_format *format);
};

struct gt_arena_ring {
	struct graftrace_arena *arena;
	const struct gt_arena_names *names;
	struct gt_clock clock;
	/* The counter, as this CPU's records have it (gt_arch_clock). NULL: what is read while it is
	 * written is no cut at one time. */
	uint64_t (*now)(void);
	uint32_t consuming; /* 1: a reader consumes */
	/* By writer: what the consuming reader was given and `clear` took. Guarded by the lock that
	 * consuming and clearing take. */
	struct gt_merge_given given[GT_ARENA_WRITERS];
	uint64_t first[GT_ARENA_WRITERS]; /* sequences below are consumed */
	/* For `stats`, by writer: records of consumed sub-buffers; the position of the last `clear`,
	 * and the losses up to then. */
	uint64_t read[GT_ARENA_WRITERS];
	struct gt_merge_given cleared[GT_ARENA_WRITERS];
	uint64_t lost_full[GT_ARENA_WRITERS], lost_overrun[GT_ARENA_WRITERS];
	/* By writer and cause: the losses that are those of recordings which have ended, or were cleared.
	 * A recording that begins tells what was lost since. */
	uint64_t lost_before[GT_ARENA_WRITERS][GRAFTRACE_LOST_CAUSES];
	/* Events that were defined while the kernel runs, by number from later_first on: the formats stay, also of
	 * those that were removed, for the records of them. The count grows (release), under the kernel's lock. */
	const struct gt_event_format *later[GT_ARENA_LATER];
	uint32_t later_first;
	uint32_t later_count;
};

struct gt_arena_target {
	struct gt_target target;
	struct gt_arena_ring *ring;
	uint32_t
		found[GT_ARENA_WRITERS]; /* index of a writer's last sub-buffer: the next is near */
};

void gt_arena_target_init(struct gt_arena_target *target, struct gt_arena_ring *ring);

/* The event of that number, static or not; GT_ENOENT. */
int gt_arena_ring_event(const struct gt_arena_ring *ring, uint32_t number,
			struct gt_event_format *format);

/* Frees every closed sub-buffer, and notes how far the open ones are written: readers that begin later
 * leave that part out. One caller at a time, and no consuming reader meanwhile. */
void gt_arena_ring_clear(struct gt_arena_ring *ring);

/* Takes a writer's sub-buffers before `sequence`, and the first `words` of that one, out of the ring: they
 * were copied elsewhere. The same condition holds. */
void gt_arena_ring_take(struct gt_arena_ring *ring, uint32_t writer, uint64_t sequence,
			uint64_t words);

/* Entries that a CPU did not record for lack of room. */
uint64_t gt_arena_lost_full(const struct graftrace_stream *stream);

#endif
