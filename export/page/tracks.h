/* SPDX-License-Identifier: MIT */
/*
 * What the time line draws. A *track* is one depth of one call stack: calls one behind the other,
 * none within another. A *box* is a call, or many short ones that are drawn as one. A track holds its
 * boxes at several grains: level 0 each call as it was, the higher ones with calls shorter than their
 * grain drawn together, so that a view of any width looks at some boxes a pixel and no more.
 * Times in nanoseconds since the start of the recording, below 2^48 (78 hours). One thread at a time.
 */
#ifndef GT_EXPORT_PAGE_TRACKS_H
#define GT_EXPORT_PAGE_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

#define GT_BOX_NO_RETURN 1u /* the call ended without a return, or is open */
#define GT_BOX_NO_ENTRY	 2u
#define GT_BOX_FUNCTIONS (1u << 30)

struct gt_box {
	uint64_t start, took;
	uint64_t busy;	   /* of `took`, in calls */
	uint64_t weight;   /* how much more of it is `function`'s than the others', at least */
	uint32_t function; /* below GT_BOX_FUNCTIONS; of many calls that of the most time */
	uint32_t count;	   /* calls; UINT32_MAX: that many or more */
	uint32_t flags;	   /* of a single call: GT_BOX_… */
};

struct gt_track_level {
	uint64_t grain; /* 0: each call is a box */
	void *boxes;
	size_t count, room;
};

struct gt_track {
	struct gt_track_level *levels; /* from the finest to the coarsest */
	uint32_t level_count;
};

/* Draws `next`, which begins behind `box`, together with it if both are shorter than the grain and
 * begin in the same grain of time. False: they stay two. */
bool gt_box_join(struct gt_box *box, const struct gt_box *next, uint64_t grain);

/* Adds a box behind the others. grain: that of the level, as gt_track_coarsen has left it, or 0.
 * GT_ENOMEM. */
int gt_track_add(struct gt_track *track, const struct gt_box *box, uint64_t grain);
static inline size_t gt_track_count(const struct gt_track *track)
{
	return track->level_count ? track->levels[0].count : 0;
}

/* Draws calls shorter than the grain together, for good: takes less memory. Before gt_track_finish.
 * GT_ENOMEM. */
int gt_track_coarsen(struct gt_track *track, uint64_t grain);
/* Call when all boxes were added: makes the levels. GT_ENOMEM. */
int gt_track_finish(struct gt_track *track);
/* Gives the boxes that reach into [from, to), joined to the grain. A negative result of `take` ends
 * this and is returned. */
int gt_track_look(const struct gt_track *track, uint64_t from, uint64_t to, uint64_t grain,
		  int (*take)(void *user, const struct gt_box *box), void *user);
/* Finds the call of a function that begins nearest to a time. forward: the first one that begins after `from` and before
 * `limit`; else the last one that begins before `from`, at `limit` or later. A box of many calls counts for the function
 * that it shows. False: there is none. */
bool gt_track_find(const struct gt_track *track, uint32_t function, uint64_t from, uint64_t limit,
		   bool forward, struct gt_box *found);
void gt_track_fini(struct gt_track *track);

#endif
