/* SPDX-License-Identifier: MIT */
/*
 * Which functions are left alone, or recorded at their entry only, and why.
 */
#ifndef GT_ATTACH_RULES_H
#define GT_ATTACH_RULES_H

#include "attach/object/object.h"
#include "attach/plan/reasons.h"
#include "attach/plan/returns.h"
#include "attach/plan/scan.h"

/* Why this function must not be touched, judged by its marks and name. GT_REASON_NONE: it may. */
enum gt_plan_reason gt_rule_never(const struct gt_object *object,
				  const struct gt_object_function *function);

/*
 * What holds for all functions of an object because of what is in it: GT_REASON_NONE, or why they
 * are left alone (*never) or recorded at their entry only. Goes through all symbols: once an object.
 */
enum gt_plan_reason gt_rule_object(const struct gt_object *object, bool *never);

/* The word in which V8 keeps its resolver of return addresses, if the object exports the function
 * that sets it, and it is as it has always been. 0: no. */
uint64_t gt_rule_resolver(struct gt_scan *scan, const struct gt_object *object);

/* Why calls of a process that has this object in it are recorded at their entries only, whatever
 * object they are of: it copies stacks away and back, or reads return addresses off them.
 * GT_REASON_NONE: it does not. */
enum gt_plan_reason gt_rule_entries_only(const struct gt_object *object);

/* The same of an object that looks at the process's mappings when it starts, and ends the program if
 * something lies where mirrors of stacks do. It matters where functions that run before are traced. */
enum gt_plan_reason gt_rule_checks_mappings(const struct gt_object *object);

/* Why a program that is this file must not have the agent in it at all. NULL: it may. */
const char *gt_rule_refused(const struct gt_object *object);

/* Why nothing of a program that is this file will be seen, though the agent does it no harm. NULL:
 * something may be. */
const char *gt_rule_nothing(const struct gt_object *object);

/* Why only its entries may be recorded, by its name. GT_REASON_NONE: no reason known. */
enum gt_plan_reason gt_rule_entry_only(const struct gt_object_function *function);

struct gt_rule_scratch {
	int32_t *depths; /* for gt_rule_code: grows */
	uint32_t room;
	struct gt_returns returns;
};
void gt_rule_scratch_free(struct gt_rule_scratch *scratch);

/*
 * The same from its code: it loads or stores its return address, switches stacks, takes its
 * arguments off the stack, or ends in a jump to setjmp and its kind. instrumented:
 * -finstrument-functions was used, which loads the return address for its own calls only.
 * GT_REASON_NONE: nothing of the kind seen (or no memory: it is a guess anyway).
 */
enum gt_plan_reason gt_rule_code(struct gt_scan *scan, const struct gt_object_function *function,
				 bool instrumented, struct gt_rule_scratch *scratch);

/* Whether an object is the C library or one of its companions, by its name. */
bool gt_rule_is_libc(const struct gt_object *object);

#endif
