/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's tables: how often each function was called and how long its calls took,
 * kept by each thread for itself, without records. They lie in the arena, behind the sub-buffers:
 *
 *	profile states[profile_page_count] | profile pages[profile_page_count]
 *
 * A page holds the entries of 64 functions with consecutive numbers of one writer: 4096 bytes. A
 * writer takes a page at its first call of one of them: from the free stack (arena.profile_free,
 * pushed to by the host only), else the next one that was never used (arena.profile_next). The host
 * adds a dead writer's pages to its own table, zeroes and frees them.
 *
 * Only the writer writes an entry, each number by one instruction (squares: an addition and one
 * with carry), so that a signal handler's own calls, which write the same entries, lose nothing. A
 * reader sees numbers that each are right and that may be a call apart from one another.
 */
#ifndef GRAFTRACE_PROFILE_H
#define GRAFTRACE_PROFILE_H

#include <stdint.h>
#include <graftrace/arena.h>

#define GRAFTRACE_PROFILE_FUNCTIONS  64 /* of a page */
#define GRAFTRACE_PROFILE_PAGE_BYTES 4096

/* One function as one writer called it. Times are ticks of the clock. */
struct graftrace_profile_entry {
	uint64_t hits;		  /* entries */
	uint64_t ticks;		  /* of the calls that have ended, their callees' included */
	uint64_t self_ticks;	  /* without their callees' */
	uint64_t squares[2];	  /* sum of the squares of `ticks`: low, high half */
	uint64_t self_squares[2]; /* of `self_ticks` */
	uint64_t reserved;
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_profile_entry) * GRAFTRACE_PROFILE_FUNCTIONS ==
				GRAFTRACE_PROFILE_PAGE_BYTES,
			"a page is 4096 bytes");

/* The owner of a page. Written by the writer when it takes the page, `generation` last (release). */
struct graftrace_profile_state {
	uint32_t generation; /* of the writer; 0 = free */
	uint32_t stream;     /* its index */
	uint32_t first;	     /* number of the page's first function / 64 */
	uint32_t next;	     /* in the free stack: index + 1, 0 = end */
};

static inline struct graftrace_profile_state *
graftrace_arena_profile_states(struct graftrace_arena *arena)
{
	return (struct graftrace_profile_state *)((char *)arena + arena->profile_states_offset);
}

static inline struct graftrace_profile_entry *
graftrace_arena_profile_page(struct graftrace_arena *arena, uint32_t index)
{
	return (struct graftrace_profile_entry *)((char *)arena + arena->profile_pages_offset +
						  (uint64_t)index * GRAFTRACE_PROFILE_PAGE_BYTES);
}

#endif
