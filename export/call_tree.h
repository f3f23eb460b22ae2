/* SPDX-License-Identifier: MIT */
/*
 * Calls merged by their stacks: a node for each different stack, with calls, total and own time. Calls deeper
 * than GT_TREE_DEPTH_MAX have no nodes: they are not counted, and their time stays in the node at that depth.
 * Nodes stay at their indices, not at their addresses. Memory grows with the number of different stacks. One
 * thread at a time.
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

/* Makes a tree with the root alone. All functions with numbers above function_end count as number 0. GT_ENOMEM: call
 * gt_tree_fini all the same. */
int gt_tree_init(struct gt_tree *tree, uint32_t function_end);
/* Puts all calls of the lane below a node of its own, a child of the root with `key` for its function (at most
 * function_end), which counts nothing. Call it before the lane's first call. *node: the node's number. GT_ENOMEM. */
int gt_tree_split(struct gt_tree *tree, const struct gt_lane *lane, uint32_t key, uint32_t *node);
/* Call when a call of `function` was entered: it is the lane's innermost one. GT_ENOMEM. */
int gt_tree_enter(struct gt_tree *tree, const struct gt_lane *lane, uint32_t function);
/* Call when `call` was removed from the lane: adds its times to its node. end: the tick at which it ended. */
void gt_tree_leave(struct gt_tree *tree, struct gt_lane *lane, const struct gt_stack_call *call,
		   uint64_t end);
/* Instead of gt_tree_leave, for callers that keep the sums themselves: returns the node of the call that was just
 * removed from the lane, without counting it; of a call that is too deep the node at the greatest depth. Only for a lane
 * that was split. */
static inline uint32_t gt_tree_pop(struct gt_tree *tree, const struct gt_lane *lane)
{
	uint32_t *at = &tree->lanes[lane->number], node = *at;

	if (lane->open < GT_TREE_DEPTH_MAX)
		*at = tree->nodes[node].parent;
	return node;
}

/* Instead of gt_tree_enter and gt_tree_leave, for a tree of callers below their callees: adds the times of the call,
 * which was just removed from the lane, to the node of its function below the root, to that of its caller below this
 * one, and so on up the lane. GT_ENOMEM: a part was added. */
int gt_tree_add_path(struct gt_tree *tree, const struct gt_lane *lane,
		     const struct gt_stack_call *call, uint64_t end);
/* Adds the nodes below node `top` of `from` to those below the root. Calls `added` (not NULL) for each of them with the
 * numbers of both nodes; a result other than 0 ends this and is returned. Then, and after GT_ENOMEM, a part was added. */
int gt_tree_merge(struct gt_tree *tree, const struct gt_tree *from, uint32_t top,
		  int (*added)(void *user, uint32_t node, uint32_t from_node), void *user);
/* Adds the totals of the topmost calls to the root, and puts each node's children in order of their
 * totals, the largest first. Once, when all was read. GT_ENOMEM: nothing was done. */
int gt_tree_finish(struct gt_tree *tree);
/* Frees the nodes. Allowed if *tree is all zero, and twice. */
void gt_tree_fini(struct gt_tree *tree);

#endif
