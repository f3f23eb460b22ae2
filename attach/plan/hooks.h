/* SPDX-License-Identifier: MIT */
/*
 * The functions of libc, libgcc and the dynamic loader that the agent itself wants to see
 * (enum graftrace_hook): found by name in an object, each with its plan.
 */
#ifndef GT_ATTACH_HOOKS_H
#define GT_ATTACH_HOOKS_H

#include "attach/plan/plan.h"
#include <graftrace/agent.h>

#define GT_HOOKS_MAX 48 /* of one object */

struct gt_hook {
	uint32_t kind;	  /* enum graftrace_hook */
	const char *name; /* of the function, static */
	uint64_t address; /* the object's */
	/* Address for graftrace_hook_site.argument (add the bias), 0: none. _Unwind_GetCFA for
	 * GRAFTRACE_HOOK_UNWIND_SETIP, _r_debug for GRAFTRACE_HOOK_DEBUG_STATE. */
	uint64_t argument;
	uint64_t number; /* … and a number that is none (GRAFTRACE_HOOK_WAITMASK): no bias */
	struct gt_plan_entry entry; /* way GT_PLAN_NONE: cannot be hooked, entry.reason says why */
};

/* Fills hooks[GT_HOOKS_MAX] and returns how many there are, no two with the same address; 0: the
 * object has none. Negative: as gt_plan_hook. *switches: the object, which is not the C library, names
 * functions that switch contexts (swapcontext and kin). */
int gt_hooks_find(struct gt_object *object, struct gt_plan *plan, struct gt_hook *hooks,
		  bool *switches, struct gt_message *message);

#endif
