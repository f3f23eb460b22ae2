/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's tables on the host's side: the counts of all threads so far, also of ended
 * ones, whose pages are added to a table of the host's own and freed. Switching the profiler on starts
 * from 0: the counts that the pages have then are kept and subtracted.
 *
 * Everything read here was written by the target and is checked. Call all of it with the session's lock held.
 */
#ifndef GT_ATTACH_PROFILE_H
#define GT_ATTACH_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/profile.h>
#include "attach/ring/arena.h"
#include "attach/agent/catalog.h"
#include "attach/ring/drain.h"

/* What was counted of a function: as struct graftrace_profile_entry, with all of the histogram. */
struct gt_profile_counts {
	uint64_t hits, ticks, self_ticks;
	uint64_t squares[2], self_squares[2]; /* low, high half */
	uint64_t buckets[GRAFTRACE_PROFILE_BUCKETS];
};

/* By the first function's number / 16; NULL: none of these was called. */
struct gt_profile_pages {
	struct gt_profile_counts **pages;
	uint32_t count;
};

struct gt_profile {
	struct gt_arena *arena;
	struct gt_drain *drain;
	struct gt_catalog *catalog;
	struct gt_profile_pages dead; /* of ended threads */
	/* by the page's index: what it had when the profiler was switched on; NULL: zeroes */
	struct gt_profile_counts **before;
	bool out_of_memory; /* counts of ended threads were lost: reported once, in rows */
};

/* Begins with no counts. Cannot fail. The three pointers must stay valid until gt_profile_fini(), which frees what it
 * has allocated. */
void gt_profile_init(struct gt_profile *profile, struct gt_arena *arena, struct gt_drain *drain,
		     struct gt_catalog *catalog);
void gt_profile_fini(struct gt_profile *profile);

/* Starts from 0: subtracts all counts made before. GT_ENOMEM. */
int gt_profile_reset(struct gt_profile *profile);

/* Adds up and frees the pages of ended threads if many pages are in use. Cheap otherwise. */
void gt_profile_collect(struct gt_profile *profile);

/* One function. Times in ticks. */
struct gt_profile_sum {
	uint32_t function; /* its number in one process; other processes may have others */
	struct gt_profile_counts entry;
};

/*
 * All functions that were called, of all threads (tid 0) or of one that lives; in no order, each
 * function of a file once. The array is the caller's to free. GT_ENOMEM.
 */
int gt_profile_read(struct gt_profile *profile, uint32_t tid, struct gt_profile_sum **sums,
		    uint32_t *count);

/* Adds up, in place, entries of the same function: sums[] has the sums of several arenas, one after the other.
 * *count: the number of entries, before and after. */
void gt_profile_merge(const struct gt_catalog *catalog, struct gt_profile_sum *sums,
		      uint32_t *count);

#endif
