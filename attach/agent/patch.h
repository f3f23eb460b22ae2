/* SPDX-License-Identifier: MIT */
/*
 * Patching the functions and hooks of one object in one process. What jumps will lead to (stubs,
 * moved code) and the journal are written at once, which no thread notices; the jumps themselves
 * become edits (tracee->edits), applied by gt_tracee_apply() or gt_edits_apply(). Bytes are
 * compared with those that must be there now and again before each write: a function where they
 * differ is left alone.
 */
#ifndef GT_ATTACH_PATCH_H
#define GT_ATTACH_PATCH_H

#include "attach/agent/tracee.h"

/* Prepares the edits by which every function of the object becomes what the selection says. running: other threads may be
 * inside them, so replaced instructions are noted in tracee->edits (gt_displaced). */
int gt_patch_functions(struct gt_tracee *tracee, struct gt_tracee_object *object,
		       const struct gt_selection *selection, bool running,
		       struct gt_message *message);

/* The same for the functions that one of these plain words names, in an object that runs. */
int gt_patch_named(struct gt_tracee *tracee, struct gt_tracee_object *object,
		   const struct gt_selection *selection, const char *const *words, size_t count,
		   struct gt_message *message);

/* Plans the functions that gt_patch_functions() will patch, so that it takes less time. GT_ENOMEM. */
int gt_patch_plan(struct gt_tracee_object *object, const struct gt_selection *selection);

/* Prepares the edits of the agent's hooks in this object (attach/plan/hooks.c). */
int gt_patch_hooks(struct gt_tracee *tracee, struct gt_tracee_object *object, bool running,
		   struct gt_message *message);

/* Whether the function's return slot must stay as it is, by its plan, its object or its process. */
bool gt_patch_is_entry_only(const struct gt_tracee *tracee, const struct gt_tracee_object *object,
			    const struct gt_plan_entry *entry);

/* The address of the instruction in the program's own code of which a copy stands at `address` in moved code; 0: there
 * is none. */
uint64_t gt_patch_old_place(const struct gt_tracee *tracee, uint64_t address);

#endif
