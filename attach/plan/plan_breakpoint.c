/* SPDX-License-Identifier: MIT */
/*
 * The last way: one byte of a function becomes a breakpoint (int3), and the agent's handler leads
 * on to the stub. For those that no jump fits in, and only if it was asked for. Such plans are made
 * from what the others have left, change nothing of them and are not kept on disk.
 */
#include "attach/plan/plan_private.h"

#include <string.h>

#define BREAKPOINT 0xcc

bool gt_plan_is_taken(const struct gt_plan *plan, uint64_t address, uint64_t bytes)
{
	for (uint32_t i = 0; i < plan->extra_count; i++) {
		const struct gt_plan_extra *extra = &plan->extras[i];
		const uint64_t covered = extra->covered ? extra->covered : extra->bytes;

		if (extra->address < address + bytes && address < extra->address + covered)
			return true;
	}
	for (uint32_t i = 0; i < plan->entry_count; i++) {
		const struct gt_plan_entry *entry = &plan->entries[i];

		if (entry->way != GT_PLAN_NONE && entry->patch_address < address + bytes &&
		    address < entry->patch_address + entry->covered_bytes)
			return true;
	}
	return false;
}

/* Whether the function jumps to its own start: that would trap again and look like a call. */
static bool loops_to_start(struct gt_plan *plan, const struct gt_object_function *function,
			   uint64_t patch_address)
{
	uint64_t room, at = 0;
	const uint8_t *code = gt_scan_code(plan->scan, function->address, &room);

	if (code == NULL)
		return true;
	if (room > function->bytes)
		room = function->bytes;
	while (at < room) {
		struct gt_instruction instruction;

		if (!gt_instruction_decode(code + at, room - at, function->address + at,
					   &instruction)) {
			at++;
			continue;
		}
		if (instruction.target_bytes && instruction.kind != GT_INSTRUCTION_CALL &&
		    instruction.target >= function->address && instruction.target <= patch_address)
			return true;
		at += instruction.bytes;
	}
	return false;
}

bool gt_plan_breakpoint(struct gt_plan *plan, struct gt_plan_entry *entry)
{
	const struct gt_object_function *function =
		gt_object_function(plan->object, entry->function);
	struct gt_plan_entry made = *entry;
	uint8_t moved[GT_PLAN_MOVED_MAX];
	struct gt_instruction first;
	uint64_t room;
	const uint8_t *code;
	int bytes;

	if (entry->way != GT_PLAN_NONE || !gt_plan_may_break(entry->reason))
		return false;
	/* Its code runs with every signal blocked, which no trap survives. */
	if (gt_plan_blocks_signals(plan)) {
		entry->reason = GT_REASON_BLOCKED_SIGNALS;
		return false;
	}
	made.patch_address = entry->address;
	code = gt_scan_code(plan->scan, made.patch_address, &room);
	if (code != NULL && room > GT_ENDBR64_BYTES && function->bytes > GT_ENDBR64_BYTES &&
	    memcmp(code, GT_ENDBR64, GT_ENDBR64_BYTES) == 0) {
		made.patch_address += GT_ENDBR64_BYTES;
		code += GT_ENDBR64_BYTES;
		room -= GT_ENDBR64_BYTES;
	}
	if (code == NULL || *code == BREAKPOINT ||
	    !gt_instruction_decode(code, room, made.patch_address, &first) ||
	    gt_plan_is_taken(plan, made.patch_address, first.bytes))
		return false;
	made.way = GT_PLAN_BREAKPOINT;
	made.patch_bytes = 1;
	made.covered_bytes = first.bytes;
	made.body = 0;
	made.neutral = 0;
	made.extra_count = 0;
	made.reason = GT_REASON_NONE;
	memcpy(made.original, code, first.bytes);
	bytes = gt_plan_move(plan, &made, 0, made.patch_address + 4096, moved, sizeof(moved), NULL);
	if (bytes <= 0)
		return false;
	made.moved_bytes_max = (uint8_t)bytes;
	made.reason =
		(uint8_t)(plan->object_reason ? plan->object_reason : gt_rule_entry_only(function));
	if (!made.reason)
		made.reason = (uint8_t)gt_rule_code(plan->scan, function, false, &plan->scratch);
	if (!made.reason && loops_to_start(plan, function, made.patch_address))
		made.reason = GT_REASON_LOOP_COUNTS;
	made.entry_only = made.reason != GT_REASON_NONE;
	*entry = made;
	return true;
}
