/* SPDX-License-Identifier: MIT */
/*
 * Patching the functions and hooks of one object in one process: stubs, moved code, jumps. Before
 * each write the bytes that are there are compared with those that must be: a function where they
 * differ is left alone.
 */
#ifndef GT_ATTACH_PATCH_H
#define GT_ATTACH_PATCH_H

#include "attach/tracee.h"

/* Makes every function of the object what the selection says. running: other threads may be inside
 * them (the world is stopped): what is displaced is noted in tracee->displaced. */
int gt_patch_functions(struct gt_tracee *tracee, struct gt_tracee_object *object,
		       const struct gt_selection *selection, bool running,
		       struct gt_message *message);

/* Takes all jumps of the object's functions away again; none = also the hooks'. */
int gt_patch_undo(struct gt_tracee *tracee, struct gt_tracee_object *object,
		  struct gt_message *message);

/* Hooks what the agent wants to see in this object. */
int gt_patch_hooks(struct gt_tracee *tracee, struct gt_tracee_object *object, bool running,
		   struct gt_message *message);

/* The displaced[] entry whose bytes hold `address` (not at their first byte), NULL = none; sorted.
 * */
const struct gt_displaced *gt_patch_displaced(const struct gt_tracee *tracee, uint64_t address);
void gt_patch_sort_displaced(struct gt_tracee *tracee);
/* Where a thread that stands at `address` within it goes on. 0: nowhere. */
uint64_t gt_patch_new_place(const struct gt_displaced *displaced, uint64_t address);

#endif
