/* SPDX-License-Identifier: MIT */
/*
 * Prints the merged call tree: see graph.h.
 */
#include "export/graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/glob.h"
#include "export/call_tree.h"
#include "export/report.h"
#include "export/short_names.h"
#include "export/sources.h"

#define BEFORE_WIDTH 47 /* columns before the lines of the tree */
#define NAME_WIDTH   20 /* the least for a name in a narrow line */
#define LEVEL_WIDTH  3	/* of the lines of the tree, for each level */
#define LEVELS_MIN   4	/* that have their lines however narrow it is */
#define NUMBER_WIDTH 6	/* of a depth in place of the outer levels' lines: that of two levels */

struct graph {
	struct gt_target *target;
	const struct gt_graph_options *options;
	struct gt_tree tree;
	uint8_t *matches;  /* by function: 0 not tested yet, 1 no, 2 yes */
	uint64_t left_out; /* stacks */
	bool has_numbers;  /* a depth was written in place of lines */
	struct gt_sources sources;
};

static const char *name_of(struct gt_target *target, uint32_t function, char number[24],
			   const char **object)
{
	struct gt_function found = { .name = "", .object = "" };

	if (gt_target_function(target, function, &found) != 0 || found.name[0] == '\0') {
		snprintf(number, 24, "function#%" PRIu32, function);
		found.name = number;
	}
	if (object != NULL)
		*object = found.object != NULL ? found.object : "";
	return found.name;
}

static int enter(void *user, struct gt_lane *lane, struct gt_stack_call *call)
{
	struct graph *graph = user;

	return gt_tree_enter(&graph->tree, lane, call->function);
}

static int leave(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	struct graph *graph = user;

	gt_tree_leave(&graph->tree, lane, call, end);
	return 0;
}

static int again(void *user)
{
	struct graph *graph = user;

	gt_tree_fini(&graph->tree);
	return gt_tree_init(&graph->tree, graph->options->function_end);
}

static bool matches(struct graph *graph, uint32_t function)
{
	char number[24];

	if (function > graph->options->function_end)
		return false;
	if (graph->matches[function] == 0) {
		const char *name = name_of(graph->target, function, number, NULL);

		graph->matches[function] = gt_glob_match(graph->options->callers_of, name) ? 2 : 1;
	}
	return graph->matches[function] == 2;
}

/* Inverted tree: the call's time goes to its function at the root, the caller below it, and so
 * on. Of recursive calls only the outermost counts. */
static int leave_turned(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	struct graph *graph = user;

	if (!matches(graph, call->function))
		return 0;
	for (uint32_t i = 0; i < lane->open; i++)
		if (lane->calls[i].function == call->function)
			return 0;
	return gt_tree_add_path(&graph->tree, lane, call, end);
}

/* of_one: the duration of one call, which is unknown below the clock's grain. */
static void time_text(struct gt_target *target, uint64_t ticks, bool of_one, char text[32])
{
	uint64_t ns = gt_clock_duration_ns(&target->clock, ticks);

	if (of_one && ns < GT_REPORT_GRAIN_NS)
		snprintf(text, 32, "<%u ns", (unsigned)GT_REPORT_GRAIN_NS);
	else if (ns < 1000)
		snprintf(text, 32, "%u ns", (unsigned)ns);
	else if (ns < 1000000)
		snprintf(text, 32, "%" PRIu64 ".%03u us", ns / 1000, (unsigned)(ns % 1000));
	else if (ns < 1000000000)
		snprintf(text, 32, "%" PRIu64 ".%03u ms", ns / 1000000,
			 (unsigned)(ns / 1000 % 1000));
	else
		snprintf(text, 32, "%" PRIu64 ".%03u s", ns / 1000000000,
			 (unsigned)(ns / 1000000 % 1000));
}

/* Writes a name with '?' in place of control characters. width: columns that there are for a short one; 0 any. */
static void put_name(struct gt_out *out, const char *name, bool brief, uint32_t width)
{
	char text[GT_SHORT_NAME_MAX + 4];

	if (brief) {
		gt_short_name(name, text);
		if (width != 0)
			gt_cut_middle(text, width);
		name = text;
	}
	for (; *name; name++)
		gt_out_char(out, gt_clean_char(*name));
}

static bool is_shown(const struct graph *graph, uint32_t at)
{
	const struct gt_tree_node *node = &graph->tree.nodes[at];

	return gt_clock_duration_ns(&graph->target->clock, node->total) >=
		       graph->options->least_ns &&
	       (double)node->total >=
		       graph->options->least_part * (double)graph->tree.nodes[0].total;
}

/* Returns the next sibling that is shown; 0: none. */
static uint32_t next_shown(const struct graph *graph, uint32_t at)
{
	do
		at = graph->tree.nodes[at].sibling;
	while (at != 0 && !is_shown(graph, at));
	return at;
}

/* The most columns that lines of the tree may take. */
static uint32_t lines_width(uint32_t width)
{
	uint32_t levels = width > BEFORE_WIDTH + NAME_WIDTH
				  ? (width - BEFORE_WIDTH - NAME_WIDTH) / LEVEL_WIDTH
				  : 0;

	return (levels > LEVELS_MIN ? levels : LEVELS_MIN) * LEVEL_WIDTH;
}

/* Writes the lines of the tree before a name: of a node that is too deep for the width its depth, and the lines of the
 * innermost levels. Returns their columns. */
static uint32_t put_lines(struct graph *graph, struct gt_out *out, uint32_t depth,
			  const char *lines)
{
	uint32_t length = (uint32_t)strlen(lines), most = lines_width(graph->options->width);

	if (graph->options->width == 0 || length <= most) {
		gt_out_text(out, lines);
		return length;
	}
	graph->has_numbers = true;
	gt_out_printf(out, "%*" PRIu32 " %s", NUMBER_WIDTH - 1, depth,
		      lines + length - (most - NUMBER_WIDTH));
	return most;
}

static void print_line(struct graph *graph, struct gt_out *out, uint32_t at, const char *lines)
{
	const struct gt_tree_node *node = &graph->tree.nodes[at];
	char total[32], self[32], number[24];
	double all = (double)graph->tree.nodes[0].total;
	uint32_t width = graph->options->width, used = BEFORE_WIDTH;
	const char *note;

	time_text(graph->target, node->total, node->calls == 1, total);
	time_text(graph->target, node->self, node->calls == 1, self);
	gt_out_printf(out, "%6.2f %% %12s %12s %10" PRIu64 "  ",
		      all > 0 ? 100 * (double)node->total / all : 0, total, self, node->calls);
	used += put_lines(graph, out, node->depth, lines);
	note = graph->options->lines ? gt_sources_note(&graph->sources, node->function) : NULL;
	if (note != NULL)
		used += 2 + gt_text_columns(note);
	if (width != 0)
		width = width > used + NAME_WIDTH ? width - used : NAME_WIDTH;
	put_name(out, name_of(graph->target, node->function, number, NULL), graph->options->brief,
		 width);
	if (note != NULL) {
		gt_out_text(out, "  ");
		gt_out_text(out, note);
	}
	gt_out_char(out, '\n');
}

static void print_text(struct graph *graph, struct gt_out *out)
{
	const struct gt_tree *tree = &graph->tree;
	/* Three columns for each level: a line if another sibling follows. */
	char lines[GT_TREE_DEPTH_MAX * 4 + 8];
	size_t used[GT_TREE_DEPTH_MAX + 2] = { 0 };
	uint32_t at = tree->nodes[0].child;

	gt_out_text(out, " Total %        Total         Self      Calls  Function\n");
	if (at != 0 && !is_shown(graph, at))
		at = next_shown(graph, at);
	while (at != 0) {
		const struct gt_tree_node *node = &tree->nodes[at];
		uint32_t child = node->child, depth = node->depth;
		bool last = next_shown(graph, at) == 0;
		size_t length = used[depth];

		if (depth > 1)
			memcpy(lines + length, last ? "`- " : "|- ", 4);
		else
			lines[length] = '\0';
		print_line(graph, out, at, lines);
		if (child != 0 && !is_shown(graph, child))
			child = next_shown(graph, child);
		if (child != 0 && (graph->options->depth == 0 || depth < graph->options->depth)) {
			if (depth > 1)
				memcpy(lines + length, last ? "   " : "|  ", LEVEL_WIDTH);
			used[depth + 1] = depth > 1 ? length + LEVEL_WIDTH : length;
			at = child;
			continue;
		}
		while (at != 0 && next_shown(graph, at) == 0)
			at = tree->nodes[at].parent;
		at = at != 0 ? next_shown(graph, at) : 0;
	}
	if (graph->left_out > 0)
		gt_out_printf(out, "# %" PRIu64 " stacks of less time are not shown (--min)\n",
			      graph->left_out);
	if (graph->has_numbers)
		gt_out_text(out, "# a number before a name is its depth: the terminal is too "
				 "narrow for its lines\n");
}

static void print_json_line(struct graph *graph, struct gt_out *out, uint32_t function)
{
	struct gt_source_line line;

	if (gt_target_line(graph->target, function, &line) != 0)
		return;
	gt_out_text(out, ",\"file\":");
	gt_out_json(out, line.file);
	gt_out_printf(out, ",\"line\":%" PRIu32, line.line);
}

static void print_json(struct graph *graph, struct gt_out *out)
{
	const struct gt_tree *tree = &graph->tree;
	uint32_t at = tree->nodes[0].child;
	const char *before = "";

	gt_out_text(out, "{\"calls\":[");
	if (at != 0 && !is_shown(graph, at))
		at = next_shown(graph, at);
	while (at != 0) {
		const struct gt_tree_node *node = &tree->nodes[at];
		uint32_t child = node->child;
		const char *object;
		char number[24];

		gt_out_text(out, before);
		gt_out_text(out, "{\"function\":");
		gt_out_json(out, name_of(graph->target, node->function, number, &object));
		gt_out_text(out, ",\"object\":");
		gt_out_json(out, object);
		if (graph->options->lines)
			print_json_line(graph, out, node->function);
		gt_out_printf(
			out, ",\"count\":%" PRIu64 ",\"total_ns\":%" PRIu64 ",\"self_ns\":%" PRIu64,
			node->calls, gt_clock_duration_ns(&graph->target->clock, node->total),
			gt_clock_duration_ns(&graph->target->clock, node->self));
		gt_out_text(out, ",\"calls\":[");
		before = "";
		if (child != 0 && !is_shown(graph, child))
			child = next_shown(graph, child);
		if (child != 0 &&
		    (graph->options->depth == 0 || node->depth < graph->options->depth)) {
			at = child;
			continue;
		}
		gt_out_text(out, "]}");
		while (at != 0 && next_shown(graph, at) == 0) {
			at = tree->nodes[at].parent;
			if (at != 0)
				gt_out_text(out, "]}");
		}
		at = at != 0 ? next_shown(graph, at) : 0;
		before = ",";
	}
	gt_out_text(out, "]}\n");
}

int gt_graph_write(struct gt_target *target, const struct gt_graph_options *options,
		   struct gt_out *out, struct gt_stack_report *report)
{
	struct graph graph = { .target = target,
			       .options = options,
			       .sources = { .target = target, .with_text = options->source } };
	const struct gt_stack_sink sink = {
		.user = &graph,
		.again = again,
		.enter = options->callers_of != NULL ? NULL : enter,
		.leave = options->callers_of != NULL ? leave_turned : leave,
	};
	int error = gt_tree_init(&graph.tree, options->function_end);

	graph.matches = calloc(options->function_end + 1u, 1);
	if (error == 0 && graph.matches == NULL)
		error = GT_ENOMEM;
	if (error == 0)
		error = gt_stacks_read(target, options->filter, &sink, report);
	if (error == 0)
		error = gt_tree_finish(&graph.tree);
	if (error == 0 && graph.tree.count == 1)
		error = GT_ENOENT;
	if (error == 0) {
		for (uint32_t i = 1; i < graph.tree.count; i++)
			graph.left_out += !is_shown(&graph, i);
		if (options->json)
			print_json(&graph, out);
		else
			print_text(&graph, out);
		error = gt_out_flush(out);
	}
	gt_tree_fini(&graph.tree);
	gt_sources_fini(&graph.sources);
	free(graph.matches);
	return error;
}
