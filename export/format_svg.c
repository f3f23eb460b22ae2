/* SPDX-License-Identifier: MIT */
/* The calls of a recording as a flame graph (flame.h). */
#include "export/export.h"

#include <inttypes.h>
#include <stdio.h>
#include "core/trace/hash.h"
#include "export/flame.h"
#include "export/merged.h"

struct flame {
	struct gt_merged merged;
	char number[24];
};

static const char *name_of(void *user, uint32_t node)
{
	struct gt_export *export = user;
	struct flame *state = export->state;

	return gt_export_name(export, state->merged.tree.nodes[node].function, state->number, NULL);
}

static void words_of(void *user, uint32_t at, char text[GT_FLAME_WORDS])
{
	struct gt_export *export = user;
	struct flame *state = export->state;
	const struct gt_tree_node *node = &state->merged.tree.nodes[at];
	uint64_t all = state->merged.tree.nodes[0].total;
	char total[32], self[32];

	gt_flame_time(total, gt_export_duration_ns(export, node->total));
	gt_flame_time(self, gt_export_duration_ns(export, node->self));
	snprintf(text, GT_FLAME_WORDS, "%s in all, %s of its own, %" PRIu64 " call%s, %.2f %%",
		 total, self, node->calls, node->calls == 1 ? "" : "s",
		 all ? 100.0 * (double)node->total / (double)all : 0.0);
}

/* Warm colors; a name has the same color in every graph. */
static void color_of(void *user, uint32_t node, unsigned color[3])
{
	uint32_t hash = gt_hash_text(GT_HASH_BEGIN, name_of(user, node));

	color[0] = 205 + hash % 50;
	color[1] = 80 + (hash >> 8) % 130;
	color[2] = 40 + (hash >> 16) % 50;
}

static int end(struct gt_export *export, const struct gt_stack_report *report)
{
	struct flame *state = export->state;
	char title[2300], whole[32], lacks[128];

	if (gt_tree_finish(&state->merged.tree) != 0)
		return GT_ENOMEM;
	gt_flame_time(whole, gt_export_duration_ns(export, state->merged.tree.nodes[0].total));
	gt_export_lacks(report, lacks, sizeof(lacks));
	snprintf(title, sizeof(title), "%.2000s (%s in all threads%s%s)",
		 export->about.command_line[0] ? export->about.command_line : export->about.program,
		 whole, lacks[0] ? "; " : "", lacks);
	const struct gt_flame flame = { .tree = &state->merged.tree,
					.title = title,
					.user = export,
					.name = name_of,
					.words = words_of,
					.color = color_of };
	return gt_flame_write(&flame, &export->out);
}

const struct gt_export_format gt_format_svg = {
	.name = "svg",
	.help = "a flame graph for a browser, whole in itself; a click zooms",
	.file = "trace.svg",
	.state_bytes = sizeof(struct flame),
	.writes_at_end = true,
	.begin = gt_merged_begin,
	.enter = gt_merged_enter,
	.leave = gt_merged_leave,
	.end = end,
	.fini = gt_merged_fini,
};
