/* SPDX-License-Identifier: MIT */
/* Calls merged by their stacks: see call_tree.h. */
#include "export/call_tree.h"

#include <stdlib.h>
#include <string.h>

int gt_tree_init(struct gt_tree *tree, uint32_t function_end)
{
	*tree = (struct gt_tree){
		.room = 1024, .count = 1, .table_mask = 4095, .function_end = function_end
	};
	tree->nodes = calloc(tree->room, sizeof(*tree->nodes));
	tree->table = calloc(tree->table_mask + 1u, sizeof(*tree->table));
	return tree->nodes != NULL && tree->table != NULL ? 0 : GT_ENOMEM;
}

static uint32_t place_of(const struct gt_tree *tree, uint32_t parent, uint32_t function)
{
	uint64_t key = ((uint64_t)parent << 32 | function) * 0x9e3779b97f4a7c15ull;
	uint32_t at = (uint32_t)(key >> 32) & tree->table_mask;

	while (tree->table[at] != 0 && (tree->nodes[tree->table[at]].parent != parent ||
					tree->nodes[tree->table[at]].function != function))
		at = (at + 1) & tree->table_mask;
	return at;
}

static int grow(struct gt_tree *tree)
{
	if (tree->count == tree->room) {
		struct gt_tree_node *nodes =
			realloc(tree->nodes, (size_t)tree->room * 2 * sizeof(*nodes));

		if (nodes == NULL)
			return GT_ENOMEM;
		tree->nodes = nodes;
		tree->room *= 2;
	}
	if ((uint64_t)tree->count * 2 > tree->table_mask) {
		uint32_t size = (tree->table_mask + 1) * 2;
		uint32_t *table = calloc(size, sizeof(*table));

		if (table == NULL)
			return GT_ENOMEM;
		free(tree->table);
		tree->table = table;
		tree->table_mask = size - 1;
		for (uint32_t i = 1; i < tree->count; i++)
			table[place_of(tree, tree->nodes[i].parent, tree->nodes[i].function)] = i;
	}
	return 0;
}

static uint32_t *innermost(struct gt_tree *tree, uint32_t lane)
{
	if (lane >= tree->lane_room) {
		uint32_t room = (lane + 1) * 2;
		uint32_t *lanes = realloc(tree->lanes, room * sizeof(*lanes));

		if (lanes == NULL)
			return NULL;
		memset(lanes + tree->lane_room, 0, (room - tree->lane_room) * sizeof(*lanes));
		tree->lanes = lanes;
		tree->lane_room = room;
	}
	return &tree->lanes[lane];
}

/* Returns the node of a function below `parent`, and makes it if there is none. UINT32_MAX: no
 * memory. */
static uint32_t child_of(struct gt_tree *tree, uint32_t parent, uint32_t number)
{
	uint32_t function = number <= tree->function_end ? number : 0;
	uint32_t newest = tree->nodes[parent].child, place;

	if (newest != 0 && tree->nodes[newest].function == function)
		return newest;
	place = place_of(tree, parent, function);
	if (tree->table[place] == 0) {
		if (grow(tree) != 0)
			return UINT32_MAX;
		place = place_of(tree, parent, function);
		tree->table[place] = tree->count;
		tree->nodes[tree->count++] = (struct gt_tree_node){
			.function = function,
			.parent = parent,
			.sibling = tree->nodes[parent].child,
			.depth = tree->nodes[parent].depth + 1,
		};
		tree->nodes[parent].child = tree->count - 1;
	}
	return tree->table[place];
}

int gt_tree_split(struct gt_tree *tree, const struct gt_lane *lane, uint32_t key, uint32_t *node)
{
	uint32_t *at = innermost(tree, lane->number);

	*node = at != NULL ? child_of(tree, 0, key) : UINT32_MAX;
	if (*node == UINT32_MAX)
		return GT_ENOMEM;
	*at = *node;
	return 0;
}

int gt_tree_merge(struct gt_tree *tree, const struct gt_tree *from, uint32_t top,
		  int (*added)(void *user, uint32_t node, uint32_t from_node), void *user)
{
	uint32_t into[GT_TREE_DEPTH_MAX + 2] = { 0 }, level = 0, at = from->nodes[top].child;
	int error = 0;

	while (at != 0) {
		const struct gt_tree_node *node = &from->nodes[at];
		uint32_t made = child_of(tree, into[level], node->function);

		if (made == UINT32_MAX)
			return GT_ENOMEM;
		tree->nodes[made].calls += node->calls;
		tree->nodes[made].total += node->total;
		tree->nodes[made].self += node->self;
		error = added(user, made, at);
		if (error != 0)
			return error;
		if (node->child != 0) {
			into[++level] = made;
			at = node->child;
			continue;
		}
		while (at != top && from->nodes[at].sibling == 0) {
			at = from->nodes[at].parent;
			level -= at != top;
		}
		at = at != top ? from->nodes[at].sibling : 0;
	}
	return 0;
}

int gt_tree_enter(struct gt_tree *tree, const struct gt_lane *lane, uint32_t function)
{
	uint32_t *at = innermost(tree, lane->number), node;

	if (at == NULL)
		return GT_ENOMEM;
	if (lane->open > GT_TREE_DEPTH_MAX)
		return 0; /* its time is counted for the deepest node */
	node = child_of(tree, *at, function);
	if (node == UINT32_MAX)
		return GT_ENOMEM;
	*at = node;
	return 0;
}

int gt_tree_add_path(struct gt_tree *tree, const struct gt_lane *lane,
		     const struct gt_stack_call *call, uint64_t end)
{
	uint64_t took = end - call->start;
	uint64_t self = call->children < took ? took - call->children : 0;
	uint32_t function = call->function, node = 0, up = lane->open;

	for (uint32_t depth = 0; depth < GT_TREE_DEPTH_MAX; depth++) {
		node = child_of(tree, node, function);
		if (node == UINT32_MAX)
			return GT_ENOMEM;
		tree->nodes[node].calls++;
		tree->nodes[node].total += took;
		tree->nodes[node].self += self;
		if (up == 0)
			break;
		function = lane->calls[--up].function;
	}
	return 0;
}

void gt_tree_leave(struct gt_tree *tree, struct gt_lane *lane, const struct gt_stack_call *call,
		   uint64_t end)
{
	uint32_t *at = innermost(tree, lane->number);
	uint64_t took = end - call->start;
	struct gt_tree_node *node;

	/* The call has been removed from the lane: its depth was open + 1. */
	if (at == NULL || lane->open + 1 > GT_TREE_DEPTH_MAX)
		return;
	node = &tree->nodes[*at];
	node->calls++;
	node->total += took;
	/* The time of calls too deep for a node is counted for this one. */
	if (lane->open + 1 == GT_TREE_DEPTH_MAX)
		node->self += took;
	else
		node->self += call->children < took ? took - call->children : 0;
	*at = node->parent;
}

struct ranked {
	uint64_t total;
	uint32_t node;
};

static int by_total(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

int gt_tree_finish(struct gt_tree *tree)
{
	struct ranked *ranked = malloc(tree->count * sizeof(*ranked));

	if (ranked == NULL)
		return GT_ENOMEM;
	for (uint32_t i = tree->nodes[0].child; i != 0; i = tree->nodes[i].sibling)
		tree->nodes[0].total += tree->nodes[i].total;
	for (uint32_t parent = 0; parent < tree->count; parent++) {
		uint32_t count = 0;

		for (uint32_t i = tree->nodes[parent].child; i != 0; i = tree->nodes[i].sibling)
			ranked[count++] = (struct ranked){ tree->nodes[i].total, i };
		qsort(ranked, count, sizeof(*ranked), by_total);
		tree->nodes[parent].child = count ? ranked[0].node : 0;
		for (uint32_t i = 0; i < count; i++)
			tree->nodes[ranked[i].node].sibling =
				i + 1 < count ? ranked[i + 1].node : 0;
	}
	free(ranked);
	return 0;
}

void gt_tree_fini(struct gt_tree *tree)
{
	free(tree->nodes);
	free(tree->table);
	free(tree->lanes);
	*tree = (struct gt_tree){ 0 };
}
