/* SPDX-License-Identifier: MIT */
/*
 * Plans probes: places in the middle of functions where a compiler left a nop. Five bytes of it are
 * replaced by a jump. Of one byte the instructions behind it are moved with it, as at a function's entry,
 * but with less to choose from: nothing may lead into the five bytes, and nothing is led elsewhere.
 */
#include "attach/plan/plan_private.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t nop5[GT_JUMP_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

static bool is_hook_there(const struct gt_plan *plan, uint64_t address, uint64_t bytes)
{
	uint32_t i;

	for (i = 0; i < plan->hooked_count; i++) {
		const struct gt_plan_entry *hook = &plan->hooked[i];

		if (hook->patch_address < address + bytes &&
		    address < hook->patch_address + hook->covered_bytes)
			return true;
	}
	return false;
}

static bool is_free(const struct gt_plan *plan, uint64_t address, uint64_t bytes)
{
	return !(gt_scan_marks_of(plan->scan, address, bytes) & GT_MARK_USED) &&
	       !gt_plan_is_taken(plan, address, bytes) && !is_hook_there(plan, address, bytes);
}

/* Whole instructions from the nop on, five bytes or more of them. */
static enum gt_plan_reason cover(const struct gt_plan_entry *entry, const uint8_t *code,
				 uint64_t room, uint32_t *covered)
{
	bool ends = false;

	*covered = 0;
	while (*covered < GT_JUMP_BYTES && !ends) {
		struct gt_instruction instruction;
		const uint64_t at = entry->patch_address + *covered;

		if (!gt_instruction_decode(code + *covered, room - *covered, at, &instruction) ||
		    instruction.kind == GT_INSTRUCTION_INT3 ||
		    instruction.kind == GT_INSTRUCTION_XBEGIN)
			return GT_REASON_UNMOVABLE;
		/* It would not pass the probe again. */
		if (instruction.target_bytes &&
		    instruction.target - entry->patch_address < GT_JUMP_BYTES)
			return GT_REASON_OWN_LOOP;
		*covered += instruction.bytes;
		ends = gt_instruction_ends(&instruction);
		if ((instruction.kind == GT_INSTRUCTION_CALL ||
		     instruction.kind == GT_INSTRUCTION_CALL_INDIRECT) &&
		    *covered < GT_JUMP_BYTES)
			return GT_REASON_CALL_INSIDE;
	}
	if (*covered < GT_JUMP_BYTES) /* nothing leads to the rest of them, as the marks say */
		*covered = GT_JUMP_BYTES;
	return *covered <= room && *covered <= GT_PLAN_ORIGINAL_MAX ? GT_REASON_NONE
								    : GT_REASON_RUNS_ON;
}

static enum gt_plan_reason plan_jump(struct gt_plan *plan, struct gt_plan_entry *entry,
				     const uint8_t *code, uint64_t room)
{
	const uint64_t address = entry->patch_address;
	uint8_t moved[GT_PLAN_MOVED_MAX];
	enum gt_plan_reason reason;
	uint32_t covered;
	int bytes;

	if (!gt_plan_on_one_page(address, GT_JUMP_BYTES))
		return GT_REASON_TWO_PAGES;
	if (room >= sizeof(nop5) && memcmp(code, nop5, sizeof(nop5)) == 0) {
		if (!is_free(plan, address, sizeof(nop5)))
			return GT_REASON_BORROWED;
		entry->way = GT_PLAN_NOPS;
		entry->patch_bytes = entry->covered_bytes = GT_JUMP_BYTES;
		entry->body = address + GT_JUMP_BYTES;
		memcpy(entry->original, code, GT_JUMP_BYTES);
		return GT_REASON_NONE;
	}
	if (room < GT_JUMP_BYTES ||
	    gt_scan_marks_of(plan->scan, address + 1, GT_JUMP_BYTES - 1) & GT_MARK_TARGET)
		return GT_REASON_REACHED_INSIDE;
	reason = cover(entry, code, room, &covered);
	if (reason)
		return reason;
	if (!is_free(plan, address, covered))
		return GT_REASON_BORROWED;
	entry->way = GT_PLAN_MOVED;
	entry->patch_bytes = GT_JUMP_BYTES;
	entry->covered_bytes = (uint8_t)covered;
	memcpy(entry->original, code, covered);
	bytes = gt_plan_move(plan, entry, 0, address + 4096, moved, sizeof(moved), NULL);
	if (bytes > 0) {
		entry->moved_bytes_max = (uint8_t)bytes;
		return GT_REASON_NONE;
	}
	entry->way = GT_PLAN_NONE;
	return GT_REASON_UNMOVABLE;
}

/* The last way: the nop alone becomes int3. */
static enum gt_plan_reason plan_trap(struct gt_plan *plan, struct gt_plan_entry *entry,
				     const uint8_t *code, enum gt_plan_reason reason)
{
	uint8_t moved[GT_PLAN_MOVED_MAX];
	int bytes;

	if (!plan->breakpoints || *code != 0x90 || !is_free(plan, entry->patch_address, 1))
		return reason;
	if (gt_plan_blocks_signals(plan))
		return GT_REASON_BLOCKED_SIGNALS;
	entry->way = GT_PLAN_BREAKPOINT;
	entry->patch_bytes = entry->covered_bytes = 1;
	entry->original[0] = *code;
	bytes = gt_plan_move(plan, entry, 0, entry->patch_address + 4096, moved, sizeof(moved),
			     NULL);
	entry->moved_bytes_max = bytes > 0 ? (uint8_t)bytes : 0;
	return GT_REASON_NONE;
}

static void plan_probe(struct gt_plan *plan, uint64_t address, struct gt_plan_entry *entry)
{
	const struct gt_object_function *function;
	enum gt_plan_reason reason;
	const uint8_t *code;
	uint64_t room;

	/* entry->address stays 0: no jump leads to a start that would have to be led elsewhere. */
	*entry = (struct gt_plan_entry){ .patch_address = address };
	code = gt_scan_code(plan->scan, address, &room);
	if (!code || gt_object_function_at(plan->object, address, &entry->function)) {
		entry->reason = GT_REASON_UNKNOWN;
		return;
	}
	function = gt_object_function(plan->object, entry->function);
	if (function->address + function->bytes - address < room)
		room = function->address + function->bytes - address;
	reason = plan->object_never ? plan->object_reason : gt_rule_never(plan->object, function);
	if (!reason && *code != 0x90 && (room < sizeof(nop5) || memcmp(code, nop5, sizeof(nop5))))
		reason = GT_REASON_NO_NOP;
	if (!reason) {
		reason = plan_jump(plan, entry, code, room);
		if (reason)
			reason = plan_trap(plan, entry, code, reason);
	}
	if (reason)
		entry->reason = (uint8_t)reason;
	else
		gt_scan_use(plan->scan, address, entry->covered_bytes);
}

int gt_plan_probes(struct gt_plan *plan, const uint64_t *addresses, uint32_t count,
		   struct gt_plan_entry *entries, struct gt_message *message)
{
	uint32_t i;
	int error = gt_scan_all(plan->scan, message);

	if (error)
		return error;
	/* What is on disk was planned without them. */
	if (!plan->complete) {
		free(plan->cache);
		plan->cache = NULL;
	}
	for (i = 0; i < count; i++)
		plan_probe(plan, addresses[i], &entries[i]);
	return 0;
}
