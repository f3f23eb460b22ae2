/* SPDX-License-Identifier: MIT */
/* The flame graph's question. See page.h. */
#include "export/page/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH_MOST   8000u
#define FLAME_NODES  6000u
#define FLAME_LEVELS 200u

/* Follows a path of function numbers, "3.17.4". UINT32_MAX: there is no such path. */
static uint32_t node_at(const struct gt_tree *tree, const char *path)
{
	uint32_t node = 0;

	while (*path != '\0') {
		char *end;
		unsigned long function = strtoul(path, &end, 10);
		uint32_t child = tree->nodes[node].child;

		if (end == path || (*end != '.' && *end != '\0'))
			return UINT32_MAX;
		while (child != 0 && tree->nodes[child].function != function + 1)
			child = tree->nodes[child].sibling;
		if (child == 0)
			return UINT32_MAX;
		node = child;
		path = *end == '.' ? end + 1 : end;
	}
	return node;
}

/* depth, function, calls, total, self, of self off the CPU */
static void put_node(const struct gt_question *question, const struct gt_page_selection *selection,
		     uint32_t number, uint32_t depth)
{
	const struct gt_tree_node *node = &selection->tree.nodes[number];

	gt_put_number(question->out, "[", depth);
	gt_put_number(question->out, ",", node->function - 1);
	gt_put_number(question->out, ",", node->calls);
	gt_put_ticks(question, ",", node->total);
	gt_put_ticks(question, ",", node->self);
	gt_put_ticks(question, ",", selection->off != NULL ? selection->off[number] : 0);
	gt_out_char(question->out, ']');
}

/* Writes the calls around the node, outermost first, and the node itself. */
static void put_path(const struct gt_question *question, const struct gt_page_selection *selection,
		     uint32_t node)
{
	uint32_t path[GT_TREE_DEPTH_MAX + 2], length = 0;

	for (uint32_t up = node; up != 0; up = selection->tree.nodes[up].parent)
		path[length++] = up;
	gt_out_text(question->out, ",\"path\":[");
	for (uint32_t i = 0; i < length; i++) {
		if (i > 0)
			gt_out_char(question->out, ',');
		put_node(question, selection, path[length - 1 - i], i);
	}
	gt_out_char(question->out, ']');
}

/* Writes what is below `top`, callers before callees, the longest first; leaves stacks out that
 * are shorter than `least` ticks, and returns their number. */
static uint32_t put_below(const struct gt_question *question,
			  const struct gt_page_selection *selection, uint32_t top, uint64_t least)
{
	const struct gt_tree_node *nodes = selection->tree.nodes;
	uint32_t at = nodes[top].child, depth = 0, given = 0, left_out = 0;

	gt_out_text(question->out, ",\"nodes\":[");
	while (at != 0) {
		/* Siblings are sorted: after one that is too short, all are. */
		bool shown =
			nodes[at].total >= least && given < FLAME_NODES && depth < FLAME_LEVELS;

		left_out += !shown;
		if (shown) {
			if (given++ > 0)
				gt_out_char(question->out, ',');
			put_node(question, selection, at, depth);
			if (nodes[at].child != 0) {
				at = nodes[at].child;
				depth++;
				continue;
			}
		}
		while (at != top && (!shown || nodes[at].sibling == 0)) {
			at = nodes[at].parent;
			depth--;
			shown = true;
		}
		at = at != top ? nodes[at].sibling : 0;
	}
	gt_out_char(question->out, ']');
	return left_out;
}

int gt_answer_flame(const struct gt_question *question)
{
	const char *of = gt_question_text(question, "of", "all");
	struct gt_page_selection *selection;
	uint64_t width, total;
	uint32_t top, left_out;
	int error;

	if (!gt_question_number(question, "width", 1000, WIDTH_MOST, &width) || width == 0)
		return GT_EINVAL;
	error = gt_page_select(question->page, of, &selection);
	if (error != 0)
		return error;
	top = node_at(&selection->tree, gt_question_text(question, "path", ""));
	if (top == UINT32_MAX)
		return GT_ENOENT;
	total = selection->tree.nodes[top].total;
	gt_put_ticks(question, "{\"all\":", selection->tree.nodes[0].total);
	gt_put_ticks(question, ",\"total\":", total);
	put_path(question, selection, top);
	left_out = put_below(question, selection, top, total / (2 * width));
	gt_put_number(question->out, ",\"leftOut\":", left_out);
	gt_out_char(question->out, '}');
	return 0;
}
