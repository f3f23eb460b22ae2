/* SPDX-License-Identifier: MIT */
/*
 * Looks at functions that are not planned: which of them ask who called them, and which lead to such a one
 * by a jump through a pointer.
 */
#include "attach/plan/plan_private.h"
#include "attach/plan/rules.h"

bool gt_plan_asks_caller(struct gt_plan *plan, uint32_t index)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	enum gt_plan_reason reason = gt_rule_entry_only(function);

	/* What -finstrument-functions compiled loads its return address for its own calls. */
	if (!reason)
		reason =
			gt_rule_code(plan->scan, function,
				     gt_scan_has(plan->scan, GT_SPECIAL_CYG_ENTER), &plan->scratch);
	return reason == GT_REASON_TWICE || reason == GT_REASON_ASKS_CALLER ||
	       reason == GT_REASON_USES_RETURN_ADDRESS || reason == GT_REASON_TAKES_RETURN_ADDRESS;
}

bool gt_plan_jumps_on(struct gt_plan *plan, uint32_t index)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, function->address, &room);
	uint32_t at = 0;

	while (code && at < function->bytes && at < room) {
		struct gt_instruction instruction;

		if (!gt_instruction_decode(code + at, room - at, function->address + at,
					   &instruction)) {
			at++;
			continue;
		}
		if (instruction.kind == GT_INSTRUCTION_JMP_INDIRECT)
			return true;
		at += instruction.bytes;
	}
	return false;
}
