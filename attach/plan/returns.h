/* SPDX-License-Identifier: MIT */
/*
 * Functions that take their arguments off the stack when they return (`ret $8`), or that end in a
 * jump to one that does: assembly, and compilers' conventions for guaranteed tail calls (LLVM's
 * tailcc and swifttailcc). The stack pointer behind such a return does not tell the slot of the
 * call, so the mirror of that slot cannot be found.
 */
#ifndef GT_ATTACH_RETURNS_H
#define GT_ATTACH_RETURNS_H

#include "attach/object/object.h"
#include "attach/plan/scan.h"

/* What is known of an object's functions. Starts as zeroes. */
struct gt_returns {
	bool ready;
	uint8_t *takes; /* by function, 1: it is one of these; NULL: no function is */
};
void gt_returns_free(struct gt_returns *returns);

/* Whether the function is one of these. Looks through the object's code the first time, about a
 * millisecond a megabyte where there is none. */
bool gt_returns_take(struct gt_returns *returns, struct gt_scan *scan,
		     const struct gt_object_function *function);
#endif
