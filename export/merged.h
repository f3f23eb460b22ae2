/* SPDX-License-Identifier: MIT */
/*
 * The filling of a call tree, for the formats that write merged stacks when the last call has been
 * given. A format's state begins with a struct gt_merged.
 */
#ifndef GT_EXPORT_MERGED_H
#define GT_EXPORT_MERGED_H

#include "export/call_tree.h"
#include "export/export.h"

struct gt_merged {
	struct gt_tree tree;
};

/* Functions of a struct gt_export_format (export.h). GT_ENOMEM. */
int gt_merged_begin(struct gt_export *export);
int gt_merged_enter(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call);
int gt_merged_leave(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		    uint64_t end);
void gt_merged_fini(struct gt_export *export);

#endif
