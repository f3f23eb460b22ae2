/* SPDX-License-Identifier: MIT */
/*
 * What the page keeps of a call that has ended: its box, and its part of the sums of its function
 * and its lane. One thread at a time: the helper, or the reader if there is none (helper.c). Of the
 * page it reads and writes only what page_private.h says is the helper's, and the functions.
 */
#include <stdlib.h>
#include <string.h>
#include "export/page/page_private.h"

/* Merges short calls when there are too many boxes. */
static int coarsen(struct gt_page *page)
{
	int error = 0;

	page->grain = page->grain ? page->grain * 4 : 1024;
	page->boxes = 0;
	for (uint32_t i = 0; i < page->lanes_used; i++) {
		for (uint32_t j = 0; j < page->lanes[i].track_count && error == 0; j++) {
			error = gt_track_coarsen(&page->lanes[i].tracks[j], page->grain);
			page->boxes += gt_track_count(&page->lanes[i].tracks[j]);
		}
	}
	return error;
}

static int add_box(struct gt_page *page, struct gt_page_lane *lane, uint32_t depth,
		   const struct gt_box *box)
{
	struct gt_track *track;
	size_t before;
	int error;

	if (depth >= GT_PAGE_DEPTH_MAX) {
		page->too_deep++;
		return 0;
	}
	if (depth >= lane->track_count) {
		struct gt_track *tracks = realloc(lane->tracks, (depth + 1u) * sizeof(*tracks));

		if (tracks == NULL)
			return GT_ENOMEM;
		memset(tracks + lane->track_count, 0,
		       (depth + 1u - lane->track_count) * sizeof(*tracks));
		lane->tracks = tracks;
		lane->track_count = depth + 1;
	}
	track = &lane->tracks[depth];
	before = gt_track_count(track);
	error = gt_track_add(track, box, page->grain);
	page->boxes += gt_track_count(track) - before;
	while (error == 0 && page->boxes > page->options.most_calls && page->grain < UINT64_MAX / 8)
		error = coarsen(page);
	return error;
}

static int grow_node_sums(struct gt_page *page, uint32_t node)
{
	uint32_t room = page->node_sum_room ? page->node_sum_room : 512;
	struct gt_page_node_sum *sums;

	while (room <= node)
		room *= 2;
	sums = realloc(page->node_sums, room * sizeof(*sums));
	if (sums == NULL)
		return GT_ENOMEM;
	memset(sums + page->node_sum_room, 0, (room - page->node_sum_room) * sizeof(*sums));
	page->node_sums = sums;
	page->node_sum_room = room;
	return 0;
}

/* Adds a call to its node, as gt_tree_leave does: too deep ones count for the deepest node. */
static int add_to_node(struct gt_page *page, const struct gt_page_left *left)
{
	struct gt_page_node_sum *sum;

	if (left->node >= page->node_sum_room && grow_node_sums(page, left->node) != 0)
		return GT_ENOMEM;
	sum = &page->node_sums[left->node];
	sum->off += left->off;
	if (left->depth >= GT_TREE_DEPTH_MAX)
		return 0;
	sum->calls++;
	sum->total += left->took;
	sum->self += left->depth + 1 == GT_TREE_DEPTH_MAX ? left->took : left->self;
	return 0;
}

/* Adds a call that returned to the sums. */
static int add_sums(struct gt_page *page, struct gt_page_lane *lane,
		    const struct gt_page_left *left, const struct gt_box *box)
{
	struct gt_page_function *function = &page->functions.items[left->function];
	uint64_t off = left->off < left->self ? left->off : left->self;

	function->returned++;
	function->sum += left->took;
	function->self += left->self;
	function->self_off += off;
	if (!left->again)
		function->total += left->took;
	if (left->took < function->minimum)
		function->minimum = left->took;
	if (left->took > function->maximum)
		function->maximum = left->took;
	function->self_upper += (left->flags & GT_STACK_SELF_UPPER) != 0;
	lane->self += left->self;
	lane->self_off += off;
	if (gt_page_function_is_slow(function, box->took))
		gt_page_function_note_slow(function, &(struct gt_page_slow){
							     .start = box->start,
							     .took = box->took,
							     .lane = left->lane,
							     .depth = left->depth,
						     });
	return gt_histogram_add(&function->times, box->took)
		       ? gt_page_function_add_cpu(function, left->cpu, left->self)
		       : GT_ENOMEM;
}

int gt_page_add_left(struct gt_page *page, const struct gt_page_left *left)
{
	struct gt_page_lane *lane = &page->lanes[left->lane];
	bool has_no_return = left->flags & (GT_STACK_NO_RETURN | GT_STACK_OPEN);
	struct gt_box box = {
		.start = gt_page_at(page, left->start),
		.took = gt_page_ns(page, left->took),
		.function = left->function,
		.count = 1,
		.flags = (has_no_return ? GT_BOX_NO_RETURN : 0) |
			 (left->flags & GT_STACK_NO_ENTRY ? GT_BOX_NO_ENTRY : 0),
	};
	int error = add_to_node(page, left);

	if (error != 0)
		return error;
	box.busy = box.weight = box.took;
	if (left->lane >= page->lanes_used)
		page->lanes_used = left->lane + 1;
	page->functions.items[left->function].calls++;
	lane->calls++;
	if (box.start < lane->first)
		lane->first = box.start;
	if (box.start + box.took > lane->last)
		lane->last = box.start + box.took;
	if (!has_no_return)
		error = add_sums(page, lane, left, &box);
	return error == 0 ? add_box(page, lane, left->depth, &box) : error;
}
