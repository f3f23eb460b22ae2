/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's tables on the host's side: what all threads have counted so far, dead
 * ones included. Pages of dead threads are added to a table of the host's own and given back.
 * Switching the profiler on begins anew: what stood in the pages then is remembered and taken off.
 *
 * Everything read here was written by the target and is checked. Under the session's lock.
 */
#ifndef GT_ATTACH_PROFILE_H
#define GT_ATTACH_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/profile.h>
#include "attach/ring/arena.h"
#include "attach/agent/catalog.h"
#include "attach/ring/drain.h"

struct gt_profile {
	struct gt_arena *arena;
	struct gt_drain *drain;
	struct gt_catalog *catalog;
	/* by the first function's number / 64; NULL: nobody dead has called any of these */
	struct graftrace_profile_entry **dead;
	uint32_t dead_count;
	/* by the page's index: what it had when the profiler was switched on; NULL: zeroes */
	struct graftrace_profile_entry **before;
	bool out_of_memory; /* something of the dead was lost: said once, in rows */
};

void gt_profile_init(struct gt_profile *profile, struct gt_arena *arena, struct gt_drain *drain,
		     struct gt_catalog *catalog);
void gt_profile_fini(struct gt_profile *profile);

/* Begins anew: all counts are 0 from here on. GT_ENOMEM. */
int gt_profile_reset(struct gt_profile *profile);

/* Takes the pages of dead threads, when many are in use. Cheap if not. */
void gt_profile_collect(struct gt_profile *profile);

/* One function. Times in ticks. */
struct gt_profile_sum {
	uint32_t function; /* a number of it: other processes may have others */
	struct graftrace_profile_entry entry;
};

/*
 * All functions that were called, of all threads (tid 0) or of one that lives; in no order, each
 * function of a file once. The array is the caller's to free. GT_ENOMEM.
 */
int gt_profile_read(struct gt_profile *profile, uint32_t tid, struct gt_profile_sum **sums,
		    uint32_t *count);

#endif
