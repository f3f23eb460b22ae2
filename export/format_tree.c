/* SPDX-License-Identifier: MIT */
/*
 * Formats of merged stacks: `folded` (a line a stack, as flame graph tools read it), `callgrind`
 * (KCachegrind, callgrind_annotate), `dot` (Graphviz) and `pprof` (profile.proto, not packed). All threads are merged; --tid picks one. Values are
 * nanoseconds.
 */
#include "export/export.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "export/merged.h"
#include "export/proto.h"

/* Returns the node after `at` in a walk from the root, children before siblings; 0: it was the
 * last one. */
static uint32_t next_node(const struct gt_tree *tree, uint32_t at)
{
	if (tree->nodes[at].child != 0)
		return tree->nodes[at].child;
	while (at != 0 && tree->nodes[at].sibling == 0)
		at = tree->nodes[at].parent;
	return at != 0 ? tree->nodes[at].sibling : 0;
}

/* Semicolons separate frames, line ends separate stacks: both are replaced. */
static void folded_name(struct gt_out *out, const char *name)
{
	for (; *name; name++)
		gt_out_char(out, *name == ';' ? ':' : *name == '\n' ? ' ' : *name);
}

static int end_folded(struct gt_export *export, const struct gt_stack_report *report)
{
	struct gt_merged *state = export->state;
	struct gt_tree *tree = &state->tree;
	uint32_t path[GT_TREE_DEPTH_MAX + 1];
	char number[24];

	(void)report;
	if (gt_tree_finish(tree) != 0)
		return GT_ENOMEM;
	for (uint32_t at = next_node(tree, 0); at != 0; at = next_node(tree, at)) {
		const struct gt_tree_node *node = &tree->nodes[at];
		uint64_t self = gt_export_duration_ns(export, node->self);

		path[node->depth] = node->function;
		if (self == 0)
			continue;
		for (uint32_t depth = 1; depth <= node->depth; depth++) {
			if (depth > 1)
				gt_out_char(&export->out, ';');
			folded_name(&export->out,
				    gt_export_name(export, path[depth], number, NULL));
		}
		gt_out_char(&export->out, ' ');
		gt_out_number(&export->out, self);
		gt_out_char(&export->out, '\n');
	}
	return export->out.error ? GT_EIO : 0;
}

/* A function's sums over all its nodes. Of recursive calls only the outermost counts for the
 * total. */
struct sums {
	uint64_t calls, total, self;
};

/* A caller and a callee. */
struct edge {
	uint32_t caller, callee;
	uint64_t calls, total;
};

static int by_functions(const void *left, const void *right)
{
	const struct edge *a = left, *b = right;

	if (a->caller != b->caller)
		return a->caller < b->caller ? -1 : 1;
	return (a->callee > b->callee) - (a->callee < b->callee);
}

static bool is_recursive(const struct gt_tree *tree, uint32_t at)
{
	uint32_t function = tree->nodes[at].function;

	while ((at = tree->nodes[at].parent) != 0)
		if (tree->nodes[at].function == function)
			return true;
	return false;
}

/* Computes sums by function, and edges sorted by functions. GT_ENOMEM. */
static int sum_up(struct gt_export *export, struct sums **sums, struct edge **edges,
		  uint32_t *count)
{
	struct gt_merged *state = export->state;
	struct gt_tree *tree = &state->tree;

	*sums = calloc(export->function_end + 1u, sizeof(**sums));
	*edges = calloc(tree->count, sizeof(**edges));
	*count = 0;
	if (*sums == NULL || *edges == NULL || gt_tree_finish(tree) != 0)
		return GT_ENOMEM;
	for (uint32_t at = 1; at < tree->count; at++) {
		const struct gt_tree_node *node = &tree->nodes[at];
		struct sums *sum =
			&(*sums)[node->function <= export->function_end ? node->function : 0];

		sum->calls += node->calls;
		sum->self += node->self;
		if (!is_recursive(tree, at))
			sum->total += node->total;
		(*edges)[(*count)++] = (struct edge){ tree->nodes[node->parent].function,
						      node->function, node->calls, node->total };
	}
	qsort(*edges, *count, sizeof(**edges), by_functions);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < *count; i++) {
		struct edge *last = kept ? &(*edges)[kept - 1] : NULL;

		if (last != NULL && by_functions(last, &(*edges)[i]) == 0) {
			last->calls += (*edges)[i].calls;
			last->total += (*edges)[i].total;
		} else {
			(*edges)[kept++] = (*edges)[i];
		}
	}
	*count = kept;
	return 0;
}

/* Writes the function's file, if it differs from *file, the last one written. */
static void callgrind_file(struct gt_export *export, const char *key, uint32_t function,
			   const char **file)
{
	const struct gt_export_line *line = gt_export_line(export, function);
	const char *name = line->line ? line->file : "???";

	if (*file != NULL && strcmp(*file, name) == 0)
		return;
	gt_out_text(&export->out, key);
	gt_out_char(&export->out, '=');
	folded_name(&export->out, name);
	gt_out_char(&export->out, '\n');
	*file = name;
}

/* Writes a name with its number the first time, the number alone later (callgrind's name
 * compression). */
static void callgrind_name(struct gt_export *export, const char *key, uint32_t function)
{
	struct gt_out *out = &export->out;
	char number[24];

	gt_out_printf(out, "%s=(%" PRIu32 ")", key, function);
	if (!export->function_seen[function]) {
		export->function_seen[function] = 1;
		gt_out_char(out, ' ');
		folded_name(out, gt_export_name(export, function, number, NULL));
	}
	gt_out_char(out, '\n');
}

static int end_callgrind(struct gt_export *export, const struct gt_stack_report *report)
{
	struct gt_out *out = &export->out;
	struct sums *sums = NULL;
	struct edge *edges = NULL;
	uint32_t count = 0, at = 0, line;
	const char *file = NULL;
	uint64_t all = 0;
	char lacks[128];
	int error = sum_up(export, &sums, &edges, &count);

	gt_export_lacks(report, lacks, sizeof(lacks));
	if (error == 0) {
		gt_out_text(out, "# callgrind format\nversion: 1\ncreator: ");
		gt_out_text(out, export->about.made_by);
		gt_out_text(out, "\ncmd: ");
		folded_name(out, export->about.command_line);
		if (lacks[0])
			gt_out_printf(out, "\ndesc: Recording: %s", lacks);
		gt_out_text(out, "\npositions: line\nevents: ns\n\n");
	}
	for (uint32_t function = 1; error == 0 && function <= export->function_end; function++) {
		uint64_t self = gt_export_duration_ns(export, sums[function].self);

		while (at < count && edges[at].caller < function)
			at++;
		if (sums[function].calls == 0 && (at == count || edges[at].caller != function))
			continue;
		all += self;
		line = gt_export_line(export, function)->line;
		callgrind_file(export, "fl", function, &file);
		callgrind_name(export, "fn", function);
		gt_out_printf(out, "%" PRIu32 " %" PRIu64 "\n", line, self);
		for (; at < count && edges[at].caller == function; at++) {
			/* Without a line of its own, the callee's file is the caller's. */
			const char *callees = file;

			callgrind_file(export, "cfi", edges[at].callee, &callees);
			callgrind_name(export, "cfn", edges[at].callee);
			gt_out_printf(
				out, "calls=%" PRIu64 " %" PRIu32 "\n%" PRIu32 " %" PRIu64 "\n",
				edges[at].calls, gt_export_line(export, edges[at].callee)->line,
				line, gt_export_duration_ns(export, edges[at].total));
		}
		gt_out_char(out, '\n');
	}
	if (error == 0)
		gt_out_printf(out, "totals: %" PRIu64 "\n", all);
	free(sums);
	free(edges);
	return error == 0 && out->error ? GT_EIO : error;
}

static void dot_text(struct gt_out *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			gt_out_char(out, '\\');
		gt_out_char(out, (unsigned char)*text < ' ' ? ' ' : *text);
	}
}

static void dot_time(struct gt_out *out, uint64_t ns)
{
	if (ns < 1000)
		gt_out_printf(out, "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		gt_out_printf(out, "%.3g us", (double)ns / 1e3);
	else if (ns < 1000000000)
		gt_out_printf(out, "%.3g ms", (double)ns / 1e6);
	else
		gt_out_printf(out, "%.4g s", (double)ns / 1e9);
}

/* Functions and edges with less than this part of all time are left out of the graph. */
#define DOT_PART 200u

static int end_dot(struct gt_export *export, const struct gt_stack_report *report)
{
	struct gt_merged *state = export->state;
	struct gt_out *out = &export->out;
	struct sums *sums = NULL;
	struct edge *edges = NULL;
	uint32_t count = 0;
	char number[24], lacks[128];
	int error = sum_up(export, &sums, &edges, &count);

	gt_export_lacks(report, lacks, sizeof(lacks));
	if (error == 0) {
		uint64_t all = state->tree.nodes[0].total;

		gt_out_text(out, "digraph calls {\n\tnode [shape=box, fontname=\"sans-serif\"];\n");
		if (lacks[0])
			gt_out_printf(out, "\tlabel=\"%s\";\n", lacks);
		for (uint32_t i = 1; i <= export->function_end; i++) {
			if (sums[i].calls == 0 || sums[i].total < all / DOT_PART)
				continue;
			gt_out_printf(out, "\tf%" PRIu32 " [label=\"", i);
			dot_text(out, gt_export_name(export, i, number, NULL));
			gt_out_text(out, "\\ntotal ");
			dot_time(out, gt_export_duration_ns(export, sums[i].total));
			gt_out_text(out, ", self ");
			dot_time(out, gt_export_duration_ns(export, sums[i].self));
			gt_out_printf(out, "\\n%" PRIu64 " calls\"];\n", sums[i].calls);
		}
		for (uint32_t i = 0; i < count; i++) {
			const struct edge *edge = &edges[i];

			if (edge->caller == 0 || edge->total < all / DOT_PART ||
			    sums[edge->caller].total < all / DOT_PART ||
			    sums[edge->callee].total < all / DOT_PART)
				continue;
			gt_out_printf(out, "\tf%" PRIu32 " -> f%" PRIu32 " [label=\"%" PRIu64 "x ",
				      edge->caller, edge->callee, edge->calls);
			dot_time(out, gt_export_duration_ns(export, edge->total));
			gt_out_text(out, "\"];\n");
		}
		gt_out_text(out, "}\n");
	}
	free(sums);
	free(edges);
	return error == 0 && out->error ? GT_EIO : error;
}

/* profile.proto: field numbers of github.com/google/pprof/proto/profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
};

static void flush_proto(struct gt_export *export, struct gt_proto *proto)
{
	gt_out_bytes(&export->out, proto->bytes, proto->used);
	proto->used = 0;
}

static void pprof_sample_types(struct gt_proto *whole, struct gt_proto *part)
{
	/* String numbers 1 to 4, as pprof_strings writes them. */
	gt_proto_number(part, 1, 1);
	gt_proto_number(part, 2, 2);
	gt_proto_message(whole, PROFILE_SAMPLE_TYPE, part);
	gt_proto_number(part, 1, 3);
	gt_proto_number(part, 2, 4);
	gt_proto_message(whole, PROFILE_SAMPLE_TYPE, part);
	gt_proto_number(whole, PROFILE_DEFAULT_TYPE, 3);
}

static void pprof_samples(struct gt_export *export, struct gt_proto *whole, struct gt_proto *part,
			  struct gt_proto *list)
{
	struct gt_merged *state = export->state;
	struct gt_tree *tree = &state->tree;

	for (uint32_t at = next_node(tree, 0); at != 0; at = next_node(tree, at)) {
		const struct gt_tree_node *node = &tree->nodes[at];

		for (uint32_t up = at; up != 0; up = tree->nodes[up].parent)
			gt_proto_varint(list, tree->nodes[up].function);
		gt_proto_message(part, 1, list);
		gt_proto_varint(list, node->calls);
		gt_proto_varint(list, gt_export_duration_ns(export, node->self));
		gt_proto_message(part, 2, list);
		gt_proto_message(whole, PROFILE_SAMPLE, part);
		if (whole->used > GT_OUT_BYTES)
			flush_proto(export, whole);
		export->function_seen[node->function <= export->function_end ? node->function : 0] =
			1;
	}
}

static int end_pprof(struct gt_export *export, const struct gt_stack_report *report)
{
	struct gt_merged *state = export->state;
	struct gt_proto whole = { 0 }, part = { 0 }, list = { 0 };
	char number[24], lacks[128];
	uint64_t strings = 5;
	bool failed;

	gt_export_lacks(report, lacks, sizeof(lacks));
	if (gt_tree_finish(&state->tree) != 0)
		return GT_ENOMEM;
	pprof_sample_types(&whole, &part);
	pprof_samples(export, &whole, &part, &list);
	for (uint32_t i = 1; i <= export->function_end; i++) {
		if (!export->function_seen[i])
			continue;
		uint32_t line = gt_export_line(export, i)->line;

		gt_proto_number(&part, 1, i);
		gt_proto_number(&list, 1, i);
		gt_proto_number(&list, 2, line);
		gt_proto_message(&part, 4, &list);
		gt_proto_message(&whole, PROFILE_LOCATION, &part);
		gt_proto_number(&part, 1, i);
		gt_proto_number(&part, 2, strings);
		gt_proto_number(&part, 3, strings);
		gt_proto_number(&part, 4, strings + 1);
		gt_proto_number(&part, 5, line);
		gt_proto_message(&whole, PROFILE_FUNCTION, &part);
		strings += 2;
	}
	gt_proto_text(&whole, PROFILE_STRING, "");
	gt_proto_text(&whole, PROFILE_STRING, "calls");
	gt_proto_text(&whole, PROFILE_STRING, "count");
	gt_proto_text(&whole, PROFILE_STRING, "time");
	gt_proto_text(&whole, PROFILE_STRING, "nanoseconds");
	for (uint32_t i = 1; i <= export->function_end; i++) {
		struct gt_function function;

		if (!export->function_seen[i])
			continue;
		gt_export_name(export, i, number, &function);
		gt_proto_text(&whole, PROFILE_STRING, function.name);
		gt_proto_text(&whole, PROFILE_STRING,
			      gt_export_line(export, i)->line ? gt_export_line(export, i)->file
							      : function.object);
	}
	if (lacks[0]) {
		gt_proto_text(&whole, PROFILE_STRING, lacks);
		gt_proto_number(&whole, PROFILE_COMMENT, strings);
	}
	gt_proto_number(&whole, PROFILE_TIME, export->about.realtime_ns);
	gt_proto_number(&whole, PROFILE_DURATION,
			gt_export_duration_ns(export, state->tree.nodes[0].total));
	failed = whole.failed || part.failed || list.failed;
	flush_proto(export, &whole);
	gt_proto_fini(&whole);
	gt_proto_fini(&part);
	gt_proto_fini(&list);
	return failed ? GT_ENOMEM : export->out.error ? GT_EIO : 0;
}

#define MERGED                                                                                    \
	.state_bytes = sizeof(struct gt_merged), .writes_at_end = true, .begin = gt_merged_begin, \
	.enter = gt_merged_enter, .leave = gt_merged_leave, .fini = gt_merged_fini

const struct gt_export_format gt_format_folded = {
	.name = "folded",
	.help = "a line a stack with its own nanoseconds, for flame graph tools",
	.file = "trace.folded",
	.end = end_folded,
	MERGED,
};

const struct gt_export_format gt_format_callgrind = {
	.name = "callgrind",
	.help = "KCachegrind and callgrind_annotate",
	.file = "callgrind.out.graftrace",
	.end = end_callgrind,
	MERGED,
};

const struct gt_export_format gt_format_dot = {
	.name = "dot",
	.help = "the call graph for Graphviz, without what is below half a percent",
	.file = "trace.dot",
	.end = end_dot,
	MERGED,
};

const struct gt_export_format gt_format_pprof = {
	.name = "pprof",
	.help = "pprof's profile.proto: calls and own time by stack",
	.file = "trace.pb",
	.end = end_pprof,
	MERGED,
};
