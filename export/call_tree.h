/* SPDX-License-Identifier: MIT */
/*
 * Calls merged by their stacks: a node for each different stack, with calls, total and own time. Of
 * what is deeper than GT_TREE_DEPTH_MAX calls the time stays in the node at that depth, and they are not
 * counted. Nodes stay at their indices, not at their addresses. Memory grows with the number of different
 * stacks. One thread at a time.
 */
#ifndef GT_EXPORT_CALL_TREE_H
#define GT_EXPORT_CALL_TREE_H

#include <stdint.h>
#include "export/stacks.h"

#define GT_TREE_DEPTH_MAX 512u

struct gt_tree_node {
	uint32_t function; /* 0: the root, and below it functions that are not known */
	uint32_t parent;   /* index; the root's is itself */
	uint32_t child;	   /* first one; 0: none */
	uint32_t sibling;  /* next one; 0: none */
	uint32_t depth;	   /* the root's is 0 */
	uint64_t calls;
	uint64_t total; /* ticks, or what `end` and the calls' times are in */
	uint64_t self;
};

struct gt_tree {
	struct gt_tree_node *nodes; /* [0] is the root */
	uint32_t count, room;
	uint32_t *table; /* index of a node by parent and function; 0 empty */
	uint32_t table_mask;
	uint32_t *lanes; /* by lane: the node of its innermost call */
	uint32_t lane_room;
	uint32_t function_end;
};

/* Functions with higher numbers than function_end are taken for one, number 0. GT_ENOMEM: to be ended by
 * gt_tree_fini all the same. */
int gt_tree_init(struct gt_tree *tree, uint32_t function_end);
/* From now on the lane's calls stand below a node of their own, a child of the root with `key` for
 * its function (at most function_end). Before its first call. The node counts nothing. *node: its number.
 * GT_ENOMEM. */
int gt_tree_split(struct gt_tree *tree, const struct gt_lane *lane, uint32_t key, uint32_t *node);
/* The lane's innermost call has been entered, one of `function`. GT_ENOMEM. */
int gt_tree_enter(struct gt_tree *tree, const struct gt_lane *lane, uint32_t function);
/* `call` has just been removed from the lane, and ended at the tick `end`: its node gets its times. */
void gt_tree_leave(struct gt_tree *tree, struct gt_lane *lane, const struct gt_stack_call *call,
		   uint64_t end);
/* For who keeps the sums: returns the node of the call that has just been removed from the lane, without
 * counting it; of one that is too deep, that at the greatest depth. Of a lane that was split. */
static inline uint32_t gt_tree_pop(struct gt_tree *tree, const struct gt_lane *lane)
{
	uint32_t *at = &tree->lanes[lane->number], node = *at;

	if (lane->open < GT_TREE_DEPTH_MAX)
		*at = tree->nodes[node].parent;
	return node;
}

/* Turned around: adds the call's time to the node of its function below the root, to that of its
 * caller below this one, and so on up the lane, with its own time. The call has just been removed from the lane;
 * instead of gt_tree_enter and gt_tree_leave. GT_ENOMEM: a part was added. */
int gt_tree_add_path(struct gt_tree *tree, const struct gt_lane *lane,
		     const struct gt_stack_call *call, uint64_t end);
/* Adds what stands below node `top` of `from` to what stands below the root. For each node that is
 * added, `added` (not NULL) is told both numbers. GT_ENOMEM, or `added`'s result that is not 0, which ends it:
 * a part was added. */
int gt_tree_merge(struct gt_tree *tree, const struct gt_tree *from, uint32_t top,
		  int (*added)(void *user, uint32_t node, uint32_t from_node), void *user);
/* Adds the totals of the topmost calls to the root, and puts each node's children in order of their
 * totals, the largest first. Once, when all was read. GT_ENOMEM: nothing was done. */
int gt_tree_finish(struct gt_tree *tree);
/* Also of one that is all zero, and again. */
void gt_tree_fini(struct gt_tree *tree);

#endif
