/* SPDX-License-Identifier: MIT */
/*
 * The page of what dl_iterate_phdr tells of the agent (struct graftrace_told): made by whoever puts the agent in.
 */
#ifndef GT_ATTACH_TOLD_H
#define GT_ATTACH_TOLD_H

#include "attach/agent/inject.h"

/* Finds the page that an earlier agent has left in the process, or maps one there, and fills in the image's part.
 * Returns its address; 0: there is no room for it, and none is needed. *kept: it is an earlier one's, and the program may
 * have pointers there. The thread of `remote` makes the call. */
uint64_t gt_told_map(struct gt_remote *remote, const struct graftrace_agent_image *header,
		     bool *kept);

/* Fills in the part of region `index` (< GRAFTRACE_AGENT_REGIONS), before the agent knows of it. told: the page's
 * address; 0: nothing is done. 0, GT_EIO, GT_EGONE. */
int gt_told_region(const struct gt_process *process, uint64_t told, uint32_t index,
		   const struct graftrace_region_unwind *unwind);

#endif
