/* SPDX-License-Identifier: MIT */
/*
 * Plans probes: places in the middle of functions, where a compiler left a nop, or any instruction. Five
 * bytes are replaced by a jump. Where the nop, or the instruction, is shorter those behind it are moved with
 * it, as at a function's entry, but with less to choose from: nothing may lead into the five bytes, and
 * nothing is led elsewhere.
 */
#include "attach/plan/plan_private.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t nop5[GT_JUMP_BYTES] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

static bool is_hook_there(const struct gt_plan *plan, uint64_t address, uint64_t bytes)
{
	for (uint32_t i = 0; i < plan->hooked_count; i++) {
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
static enum gt_plan_reason cover(bool anywhere, const struct gt_plan_entry *entry,
				 const uint8_t *code, uint64_t room, uint32_t *covered)
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
	/* Nothing leads to the rest of them, as the marks say; but an unwinder goes to where an
	 * exception is caught, and no mark is there. */
	if (*covered < GT_JUMP_BYTES && anywhere)
		return GT_REASON_NO_ROOM;
	if (*covered < GT_JUMP_BYTES)
		*covered = GT_JUMP_BYTES;
	return *covered <= room && *covered <= GT_PLAN_ORIGINAL_MAX ? GT_REASON_NONE
								    : GT_REASON_RUNS_ON;
}

static enum gt_plan_reason plan_jump(struct gt_plan *plan, struct gt_plan_entry *entry,
				     const uint8_t *code, uint64_t room, bool anywhere)
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
	reason = cover(anywhere, entry, code, room, &covered);
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

/* The last way: the first instruction alone becomes int3. */
static enum gt_plan_reason plan_trap(struct gt_plan *plan, struct gt_plan_entry *entry,
				     const uint8_t *code, uint32_t first,
				     enum gt_plan_reason reason)
{
	uint8_t moved[GT_PLAN_MOVED_MAX];
	int bytes;

	if (!plan->breakpoints || !first || !is_free(plan, entry->patch_address, first))
		return reason;
	if (gt_plan_blocks_signals(plan))
		return GT_REASON_BLOCKED_SIGNALS;
	entry->way = GT_PLAN_BREAKPOINT;
	entry->patch_bytes = 1;
	entry->covered_bytes = (uint8_t)first;
	memcpy(entry->original, code, first);
	bytes = gt_plan_move(plan, entry, 0, entry->patch_address + 4096, moved, sizeof(moved),
			     NULL);
	if (bytes <= 0) {
		entry->way = GT_PLAN_NONE;
		return reason;
	}
	entry->moved_bytes_max = (uint8_t)bytes;
	return GT_REASON_NONE;
}

/* Of the instruction there, or 0: it may not be replaced by a trap. */
static uint32_t first_bytes(uint64_t address, const uint8_t *code, uint64_t room)
{
	struct gt_instruction first;

	return gt_instruction_decode(code, room, address, &first) &&
			       first.kind != GT_INSTRUCTION_INT3 &&
			       first.kind != GT_INSTRUCTION_XBEGIN
		       ? first.bytes
		       : 0;
}

/* anywhere: whatever stands there. */
static void plan_probe(struct gt_plan *plan, uint64_t address, bool anywhere,
		       struct gt_plan_entry *entry)
{
	const struct gt_object_function *function;
	enum gt_plan_reason reason;
	const uint8_t *code;
	uint64_t room;

	/* entry->address stays 0: no jump leads to a start that would have to be led elsewhere. */
	*entry = (struct gt_plan_entry){ .patch_address = address };
	code = gt_scan_code(plan->scan, address, &room);
	if (code == NULL || gt_object_function_at(plan->object, address, &entry->function)) {
		entry->reason = GT_REASON_UNKNOWN;
		return;
	}
	function = gt_object_function(plan->object, entry->function);
	if (function->address + function->bytes - address < room)
		room = function->address + function->bytes - address;
	reason = plan->object_never ? plan->object_reason : gt_rule_never(plan->object, function);
	if (!reason && anywhere && !gt_plan_is_code(plan, address))
		reason = GT_REASON_NO_INSTRUCTIONS;
	if (!reason && !anywhere && *code != 0x90 &&
	    (room < sizeof(nop5) || memcmp(code, nop5, sizeof(nop5))))
		reason = GT_REASON_NO_NOP;
	if (!reason) {
		reason = plan_jump(plan, entry, code, room, anywhere);
		if (reason)
			reason = plan_trap(plan, entry, code,
					   anywhere	   ? first_bytes(address, code, room)
					   : *code == 0x90 ? 1
							   : 0,
					   reason);
	}
	if (reason)
		entry->reason = (uint8_t)reason;
	else
		gt_scan_use(plan->scan, address, entry->covered_bytes);
}

int gt_plan_prepare_places(struct gt_plan *plan, struct gt_message *message)
{
	const int error = gt_scan_all(plan->scan, message);

	/* What is on disk was planned without them. */
	if (!error && !plan->complete) {
		free(plan->cache);
		plan->cache = NULL;
	}
	return error;
}

int gt_plan_probes(struct gt_plan *plan, const uint64_t *addresses, uint32_t count,
		   struct gt_plan_entry *entries, struct gt_message *message)
{
	const int error = gt_plan_prepare_places(plan, message);

	for (uint32_t i = 0; !error && i < count; i++)
		plan_probe(plan, addresses[i], false, &entries[i]);
	return error;
}

int gt_plan_place(struct gt_plan *plan, uint64_t address, struct gt_plan_entry *entry,
		  struct gt_message *message)
{
	const int error = gt_plan_prepare_places(plan, message);

	if (!error)
		plan_probe(plan, address, true, entry);
	return error;
}
