/* SPDX-License-Identifier: MIT */
/*
 * The hooks by which unwinders, and whoever lists the loaded objects, find the agent's code: that of the image and
 * of the regions, with its unwind data. The host takes them out last (attach/agent/detach.c).
 *
 * They run in any context of the program, with signals not masked; they take no lock and no memory. The functions
 * with a frame are hooks as gt_agent_hook() calls them: they return 0: go on with the function, 1: it is done,
 * frame->rax is its result.
 */
#ifndef GT_PORT_PROGRAM_UNWIND_H
#define GT_PORT_PROGRAM_UNWIND_H

#include "port/program/agent.h"

/* The region that the address lies in; NULL: none. */
const struct graftrace_region *gt_agent_region(uint64_t address);
/* Whether it is in the image's text. */
bool gt_agent_is_image(uint64_t address);

/* _dl_find_object(address, found): also finds the agent's code, and the jumps of ours at other places than entries. */
int gt_unwind_find_object(struct gt_hook_frame *frame, const struct graftrace_hook_site *site);
/* dl_iterate_phdr(callback, data): also tells of the agent's code, last. */
int gt_unwind_iterate_phdr(struct gt_hook_frame *frame, const struct graftrace_hook_site *site);
/* _Unwind_Backtrace(callback, data): does not tell of the agent's frames. */
int gt_unwind_backtrace(struct gt_hook_frame *frame, const struct graftrace_hook_site *site);

#endif
