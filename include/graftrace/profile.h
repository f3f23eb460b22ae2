/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's tables: how often each function was called and how long its calls took,
 * kept by each thread for itself, without records. They lie in the arena, behind the sub-buffers:
 *
 *	profile states[profile_page_count] | profile pages[profile_page_count]
 *
 * A page holds the entries of 16 functions with consecutive numbers of one writer: 4096 bytes. A
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

#define GRAFTRACE_PROFILE_FUNCTIONS  16 /* of a page */
#define GRAFTRACE_PROFILE_PAGE_BYTES 4096

/*
 * Durations are counted by their highest bit: bucket 0 has those below 2^6 ticks (about the clock's
 * grain), each further one a power of two, the last one all from 2^32 on (a second or two). Those of
 * the long ones are of 32 bits: each of their calls takes some milliseconds.
 */
#define GRAFTRACE_PROFILE_LEAST 5  /* the highest bit of bucket 0 */
#define GRAFTRACE_PROFILE_LONG	25 /* … of the first long one */
#define GRAFTRACE_PROFILE_MOST	32 /* … of the last one */

#define GRAFTRACE_PROFILE_SHORT_BUCKETS (GRAFTRACE_PROFILE_LONG - GRAFTRACE_PROFILE_LEAST)
#define GRAFTRACE_PROFILE_LONG_BUCKETS	(GRAFTRACE_PROFILE_MOST - GRAFTRACE_PROFILE_LONG + 1)
#define GRAFTRACE_PROFILE_BUCKETS	(GRAFTRACE_PROFILE_SHORT_BUCKETS + GRAFTRACE_PROFILE_LONG_BUCKETS)

/* One function as one writer called it. Times are ticks of the clock. */
struct graftrace_profile_entry {
	uint64_t hits;		  /* entries */
	uint64_t ticks;		  /* of the calls that have ended, their callees' included */
	uint64_t self_ticks;	  /* without their callees' */
	uint64_t squares[2];	  /* sum of the squares of `ticks`: low, high half */
	uint64_t self_squares[2]; /* of `self_ticks` */
	/* 0: no call has ended. Else 1 << GRAFTRACE_PROFILE_LEAST, or'ed to the ticks of the one that has
	 * ended last. The next one puts it into its bucket; the first one has put the 0 into bucket 0. So
	 * which word is written to does not depend on the clock that was just read: some processors (AMD's)
	 * hold their next reading of the clock up until they know that. graftrace_profile_histogram() adds
	 * it. */
	uint64_t last;
	uint64_t buckets[GRAFTRACE_PROFILE_SHORT_BUCKETS];
	uint32_t long_buckets[GRAFTRACE_PROFILE_LONG_BUCKETS];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_profile_entry) * GRAFTRACE_PROFILE_FUNCTIONS ==
				GRAFTRACE_PROFILE_PAGE_BYTES,
			"a page is 4096 bytes");

/* The bucket of a call of so many ticks. */
static inline uint32_t graftrace_profile_bucket(uint64_t ticks)
{
	const uint32_t bit =
		63 - (uint32_t)__builtin_clzll(ticks | 1ull << GRAFTRACE_PROFILE_LEAST);

	return (bit < GRAFTRACE_PROFILE_MOST ? bit : GRAFTRACE_PROFILE_MOST) -
	       GRAFTRACE_PROFILE_LEAST;
}

/* The shortest call of a bucket, in ticks; where the next bucket begins, it ends. */
static inline uint64_t graftrace_profile_bucket_start(uint32_t bucket)
{
	return bucket == 0 ? 0 : 1ull << (GRAFTRACE_PROFILE_LEAST + bucket);
}

/* How many of the calls that have ended took so long, by bucket. The owner may be counting. */
static inline void graftrace_profile_histogram(const struct graftrace_profile_entry *entry,
					       uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS])
{
	const uint32_t shorts = GRAFTRACE_PROFILE_SHORT_BUCKETS;

	for (uint32_t i = 0; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		buckets[i] = i < shorts ? __atomic_load_n(&entry->buckets[i], __ATOMIC_ACQUIRE)
					: __atomic_load_n(&entry->long_buckets[i - shorts],
							  __ATOMIC_ACQUIRE);
	const uint64_t last = __atomic_load_n(&entry->last, __ATOMIC_ACQUIRE);

	if (last == 0)
		return;
	buckets[0] -= buckets[0] != 0; /* it may be about to be put there */
	buckets[graftrace_profile_bucket(last)]++;
}

/* The owner of a page. Written by the writer when it takes the page, `generation` last (release). */
struct graftrace_profile_state {
	uint32_t generation; /* of the writer; 0 = free */
	uint32_t stream;     /* its index */
	uint32_t first;	     /* number of the page's first function / 16 */
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
