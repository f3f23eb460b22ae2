/* SPDX-License-Identifier: MIT */
/* Boxes of the time line: see tracks.h. */
#include "export/page/tracks.h"

#include <stdlib.h>
#include <string.h>

#define LEVEL_ENOUGH 1024u /* so few boxes need no coarser grain */
#define LEVEL_STEP   8u	   /* between two grains */
#define PART_ALL     65535u

/* Boxes in memory: a single call … */
struct single {
	uint32_t start_low, took_low;
	uint32_t function; /* its two highest bits are the flags */
	uint16_t start_high, took_high;
};

/* … and several joined ones. Parts are in 1/65,535 of `took`. */
struct joined {
	uint32_t start_low, took_low;
	uint32_t function, count;
	uint16_t start_high, took_high;
	uint16_t busy, weight;
};

static size_t box_bytes(const struct gt_track_level *level)
{
	return level->grain == 0 ? sizeof(struct single) : sizeof(struct joined);
}

static uint16_t part_of(uint64_t part, uint64_t all)
{
	return part >= all ? PART_ALL : (uint16_t)((double)part / (double)all * PART_ALL + 0.5);
}

static uint64_t of_part(uint64_t all, uint16_t part)
{
	return part == PART_ALL ? all : (uint64_t)((double)all * part / PART_ALL + 0.5);
}

static void put_box(struct gt_track_level *level, size_t index, const struct gt_box *box)
{
	if (level->grain == 0) {
		((struct single *)level->boxes)[index] = (struct single){
			.start_low = (uint32_t)box->start,
			.start_high = (uint16_t)(box->start >> 32),
			.took_low = (uint32_t)box->took,
			.took_high = (uint16_t)(box->took >> 32),
			.function = box->function | box->flags << 30,
		};
		return;
	}
	((struct joined *)level->boxes)[index] = (struct joined){
		.start_low = (uint32_t)box->start,
		.start_high = (uint16_t)(box->start >> 32),
		.took_low = (uint32_t)box->took,
		.took_high = (uint16_t)(box->took >> 32),
		.function = box->function | box->flags << 30,
		.count = box->count,
		.busy = part_of(box->busy, box->took),
		.weight = part_of(box->weight, box->took),
	};
}

static inline struct gt_box single_at(const struct gt_track_level *level, size_t index)
{
	const struct single *single = (const struct single *)level->boxes + index;
	struct gt_box box;

	box.start = (uint64_t)single->start_high << 32 | single->start_low;
	box.took = (uint64_t)single->took_high << 32 | single->took_low;
	box.busy = box.weight = box.took;
	box.function = single->function & (GT_BOX_FUNCTIONS - 1);
	box.flags = single->function >> 30;
	box.count = 1;
	return box;
}

static struct gt_box joined_at(const struct gt_track_level *level, size_t index)
{
	const struct joined *joined = (const struct joined *)level->boxes + index;
	struct gt_box box;

	box.start = (uint64_t)joined->start_high << 32 | joined->start_low;
	box.took = (uint64_t)joined->took_high << 32 | joined->took_low;
	box.busy = of_part(box.took, joined->busy);
	box.weight = of_part(box.took, joined->weight);
	box.function = joined->function & (GT_BOX_FUNCTIONS - 1);
	box.flags = joined->function >> 30;
	box.count = joined->count;
	return box;
}

static inline struct gt_box box_at(const struct gt_track_level *level, size_t index)
{
	return level->grain == 0 ? single_at(level, index) : joined_at(level, index);
}

/* Makes `next` a part of the box. */
static inline void join(struct gt_box *box, const struct gt_box *next)
{
	uint64_t end = next->start + next->took;

	/* The majority vote of Boyer and Moore, by time. */
	if (next->function == box->function) {
		box->weight += next->weight;
	} else if (next->weight > box->weight) {
		box->function = next->function;
		box->weight = next->weight - box->weight;
	} else {
		box->weight -= next->weight;
	}
	box->busy += next->busy;
	box->count = next->count > UINT32_MAX - box->count ? UINT32_MAX : box->count + next->count;
	box->flags = 0;
	if (end > box->start + box->took)
		box->took = end - box->start;
}

bool gt_box_join(struct gt_box *box, const struct gt_box *next, uint64_t grain)
{
	if (box->took >= grain || next->took >= grain || box->start / grain != next->start / grain)
		return false;
	join(box, next);
	return true;
}

static int append(struct gt_track_level *level, const struct gt_box *box)
{
	if (level->count == level->room) {
		size_t room = level->room ? level->room + level->room / 2 : 16;
		void *boxes = realloc(level->boxes, room * box_bytes(level));

		if (boxes == NULL)
			return GT_ENOMEM;
		level->boxes = boxes;
		level->room = room;
	}
	put_box(level, level->count++, box);
	return 0;
}

/* As append, but joins the box with the last one if both are drawn as one. */
static int append_joined(struct gt_track_level *level, const struct gt_box *box)
{
	if (level->count > 0) {
		struct gt_box last = box_at(level, level->count - 1);

		if (gt_box_join(&last, box, level->grain)) {
			put_box(level, level->count - 1, &last);
			return 0;
		}
	}
	return append(level, box);
}

static struct gt_track_level *add_level(struct gt_track *track, uint64_t grain)
{
	struct gt_track_level *levels =
		realloc(track->levels, (track->level_count + 1u) * sizeof(*levels));

	if (levels == NULL)
		return NULL;
	track->levels = levels;
	levels[track->level_count] = (struct gt_track_level){ .grain = grain };
	return &levels[track->level_count++];
}

int gt_track_add(struct gt_track *track, const struct gt_box *box, uint64_t grain)
{
	if (track->level_count == 0 && add_level(track, grain) == NULL)
		return GT_ENOMEM;
	return track->levels[0].grain == 0 ? append(&track->levels[0], box)
					   : append_joined(&track->levels[0], box);
}

/* As gt_box_join box by box, with one division for each box that is made: all boxes pass here. A box is
 * packed once, when the next one does not join it: packing rounds, too. */
static inline __attribute__((always_inline)) int
join_boxes(const struct gt_track_level *from, struct gt_track_level *to,
	   struct gt_box (*at)(const struct gt_track_level *level, size_t index))
{
	const uint64_t grain = to->grain;
	struct gt_box joined = at(from, 0);
	uint64_t begin = joined.start - joined.start % grain;
	int error = 0;

	for (size_t i = 1; i < from->count && error == 0; i++) {
		struct gt_box box = at(from, i);

		if (joined.took < grain && box.took < grain && box.start - begin < grain) {
			join(&joined, &box);
			continue;
		}
		error = append(to, &joined);
		joined = box;
		begin = box.start - box.start % grain;
	}
	return error == 0 ? append(to, &joined) : error;
}

/* Joins the boxes of `from` into those of `to`, which has none. */
static int join_level(const struct gt_track_level *from, struct gt_track_level *to)
{
	if (from->count == 0)
		return 0;
	return from->grain == 0 ? join_boxes(from, to, single_at) : join_boxes(from, to, joined_at);
}

/* Frees memory that is not used. */
static void trim(struct gt_track_level *level)
{
	void *boxes = realloc(level->boxes, (level->count ? level->count : 1) * box_bytes(level));

	if (boxes != NULL) {
		level->boxes = boxes;
		level->room = level->count ? level->count : 1;
	}
}

int gt_track_coarsen(struct gt_track *track, uint64_t grain)
{
	struct gt_track_level made = { .grain = grain };
	int error;

	if (track->level_count == 0)
		return 0;
	error = join_level(&track->levels[0], &made);
	if (error != 0) {
		free(made.boxes);
		return error;
	}
	trim(&made);
	free(track->levels[0].boxes);
	track->levels[0] = made;
	return 0;
}

int gt_track_finish(struct gt_track *track)
{
	struct gt_box first, last;
	uint64_t span, grain = 64;

	if (track->level_count == 0 || track->levels[0].count == 0)
		return 0;
	trim(&track->levels[0]);
	first = box_at(&track->levels[0], 0);
	last = box_at(&track->levels[0], track->levels[0].count - 1);
	span = last.start + last.took - first.start;
	while (grain < span / track->levels[0].count || grain < track->levels[0].grain)
		grain *= LEVEL_STEP;
	for (; grain < span && track->levels[track->level_count - 1].count > LEVEL_ENOUGH;
	     grain *= LEVEL_STEP) {
		struct gt_track_level made = { .grain = grain }, *added;
		const struct gt_track_level *finer = &track->levels[track->level_count - 1];
		int error = join_level(finer, &made);

		/* A level with nearly as many boxes would only cost memory. */
		if (error == 0 && made.count > finer->count / 2) {
			free(made.boxes);
			continue;
		}
		trim(&made);
		added = error == 0 ? add_level(track, grain) : NULL;
		if (added == NULL) {
			free(made.boxes);
			return GT_ENOMEM;
		}
		*added = made;
	}
	return 0;
}

/* Finds the first box that ends after `from`. */
static size_t first_behind(const struct gt_track_level *level, uint64_t from)
{
	size_t low = 0, high = level->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct gt_box box = box_at(level, middle);

		if (box.start + box.took > from || (box.took == 0 && box.start >= from))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

int gt_track_look(const struct gt_track *track, uint64_t from, uint64_t to, uint64_t grain,
		  int (*take)(void *user, const struct gt_box *box), void *user)
{
	const struct gt_track_level *level = track->levels;
	struct gt_box waiting;
	bool waits = false;
	int error = 0;

	if (track->level_count == 0)
		return 0;
	while (level + 1 < track->levels + track->level_count && level[1].grain <= grain)
		level++;
	for (size_t i = first_behind(level, from); i < level->count && error == 0; i++) {
		struct gt_box box = box_at(level, i);

		if (box.start >= to)
			break;
		if (waits && grain > 0 && gt_box_join(&waiting, &box, grain))
			continue;
		if (waits)
			error = take(user, &waiting);
		waiting = box;
		waits = true;
	}
	return waits && error == 0 ? take(user, &waiting) : error;
}

static uint64_t start_of(const struct gt_track_level *level, size_t index)
{
	return level->grain == 0 ? single_at(level, index).start : joined_at(level, index).start;
}

/* Finds the first box that begins at `start` or later. */
static size_t first_from(const struct gt_track_level *level, uint64_t start)
{
	size_t low = 0, high = level->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (start_of(level, middle) >= start)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The functions of boxes, one behind the other: what is looked at of millions. */
struct functions {
	const char *first;
	size_t stride;
};

static inline uint32_t function_at(const struct functions *functions, size_t index)
{
	uint32_t function;

	memcpy(&function, functions->first + index * functions->stride, sizeof(function));
	return function & (GT_BOX_FUNCTIONS - 1);
}

bool gt_track_find(const struct gt_track *track, uint32_t function, uint64_t from, uint64_t limit,
		   bool forward, struct gt_box *found)
{
	const struct gt_track_level *level = track->levels;
	struct functions functions;
	size_t at, end;

	if (track->level_count == 0 || (forward ? from >= limit : from <= limit))
		return false;
	functions.stride = box_bytes(level);
	functions.first = (const char *)level->boxes +
			  (level->grain == 0 ? offsetof(struct single, function)
					     : offsetof(struct joined, function));
	at = first_from(level, forward ? from + 1 : from);
	end = first_from(level, limit);
	if (forward) {
		while (at < end && function_at(&functions, at) != function)
			at++;
		if (at >= end)
			return false;
	} else {
		while (at > end && function_at(&functions, at - 1) != function)
			at--;
		if (at <= end)
			return false;
		at--;
		/* Of calls that took no time, several can begin at once: the first of them. */
		for (size_t i = at; i > end && start_of(level, i - 1) == start_of(level, at); i--)
			if (function_at(&functions, i - 1) == function)
				at = i - 1;
	}
	*found = box_at(level, at);
	return true;
}

void gt_track_fini(struct gt_track *track)
{
	for (uint32_t i = 0; i < track->level_count; i++)
		free(track->levels[i].boxes);
	free(track->levels);
	*track = (struct gt_track){ 0 };
}
