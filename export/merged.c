/* SPDX-License-Identifier: MIT */
/* See merged.h. */
#include "export/merged.h"

int gt_merged_begin(struct gt_export *export)
{
	struct gt_merged *merged = export->state;

	return gt_tree_init(&merged->tree, export->function_end);
}

int gt_merged_enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call)
{
	struct gt_merged *merged = export->state;

	return gt_tree_enter(&merged->tree, lane, call->function);
}

int gt_merged_leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		    uint64_t end)
{
	struct gt_merged *merged = export->state;

	gt_tree_leave(&merged->tree, lane, call, end);
	return 0;
}

void gt_merged_fini(struct gt_export *export)
{
	struct gt_merged *merged = export->state;

	gt_tree_fini(&merged->tree);
}
