/* SPDX-License-Identifier: MIT */
/*
 * Threads that are traced alone, or not at all (set_ftrace_pid, set_ftrace_notrace_pid): two tables
 * of thread numbers in the arena. The host writes them; an agent reads them when a thread makes its
 * first traced call, and, where children follow (function-fork), adds the new thread's number if
 * its creator's is there. A slot is a number or 0; slots are taken by compare-and-swap and given
 * back by the host alone. A host that changes the lists writes the slots, then the switch
 * (selected, left_out), then the stop bytes of the blocks there are; a new thread publishes its
 * block, then reads.
 */
#ifndef GRAFTRACE_SELECTED_H
#define GRAFTRACE_SELECTED_H

#include <stdint.h>
#include <graftrace/arena.h>

#define GRAFTRACE_SELECTED_SLOTS 2048 /* of each table */

/* The host's byte of the stop word: nothing is recorded while any of it is set. */
#define GRAFTRACE_STOP_OFF	1 /* tracing_on = 0 */
#define GRAFTRACE_STOP_LEFT_OUT 2 /* the thread is not traced */

struct graftrace_selected {
	uint32_t only[GRAFTRACE_SELECTED_SLOTS];   /* these alone, if arena.selected */
	uint32_t except[GRAFTRACE_SELECTED_SLOTS]; /* not these, if arena.left_out */
};

static inline struct graftrace_selected *graftrace_arena_selected(struct graftrace_arena *arena)
{
	return (struct graftrace_selected *)((char *)arena + arena->selected_offset);
}

static inline int graftrace_selected_has(const uint32_t *slots, uint32_t tid)
{
	for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS; i++)
		if (__atomic_load_n(&slots[i], __ATOMIC_SEQ_CST) == tid)
			return tid != 0;
	return 0;
}

/* False: the table is full. */
static inline int graftrace_selected_add(uint32_t *slots, uint32_t tid)
{
	if (graftrace_selected_has(slots, tid))
		return 1;
	for (uint32_t i = 0; i < GRAFTRACE_SELECTED_SLOTS; i++) {
		uint32_t unused = 0;
		if (__atomic_load_n(&slots[i], __ATOMIC_RELAXED) == 0 &&
		    __atomic_compare_exchange_n(&slots[i], &unused, tid, 0, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED))
			return 1;
	}
	return 0;
}

/* Whether a thread is left out, by the tables as they are. */
static inline int graftrace_selected_leaves_out(struct graftrace_arena *arena, uint32_t tid)
{
	struct graftrace_selected *selected = graftrace_arena_selected(arena);
	return (__atomic_load_n(&arena->selected, __ATOMIC_SEQ_CST) == GRAFTRACE_LIST_STRICT &&
		!graftrace_selected_has(selected->only, tid)) ||
	       (__atomic_load_n(&arena->left_out, __ATOMIC_SEQ_CST) == GRAFTRACE_LIST_STRICT &&
		graftrace_selected_has(selected->except, tid));
}

#endif
