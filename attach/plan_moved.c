/* SPDX-License-Identifier: MIT */
/*
 * Plans functions that no compiler has prepared: whole instructions move out of line, so that five
 * bytes become free for a jump; a function that is too short borrows the padding behind it, or a
 * two-byte jump reaches padding nearby. Nothing may lead into the replaced bytes.
 */
#include "attach/plan_private.h"

#include <string.h>

static const char no_room[] = "is shorter than a jump, and no padding is near it";
static const char reached_inside[] = "a jump leads into its first bytes";
static const char call_inside[] = "calls within its first bytes, and no padding is near it";
static const char own_loop[] = "its own loop begins at its first byte, and no padding is near it";
static const char no_code[] = "its first bytes are no instructions";
static const char unbounded[] = "its end is not known";

/* Takes back what was added for a way that did not work out. */
static void drop_extras(struct gt_plan_work *work)
{
	work->plan->extra_count -= work->entry->extra_count;
	work->entry->extra_count = 0;
}

/* ---- Padding ---- */

/* Whether nothing runs on behind the function's last instruction. */
static bool ends_for_good(struct gt_plan *plan, const struct gt_object_function *function)
{
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, function->address, &room);
	struct gt_instruction instruction = { .kind = GT_INSTRUCTION_OTHER };
	uint32_t at = 0;

	if (!code || room < function->bytes)
		return false;
	while (at < function->bytes) {
		if (!gt_instruction_decode(code + at, function->bytes - at, function->address + at,
					   &instruction))
			return false;
		at += instruction.bytes;
	}
	/* Behind a call that never returns there is nothing either: a call is never the last
	 * instruction of a function that goes on into the next. */
	return gt_instruction_ends(&instruction) || instruction.kind == GT_INSTRUCTION_CALL ||
	       instruction.kind == GT_INSTRUCTION_INT3;
}

/* How many bytes of padding begin here: nops, int3, or nothing but zeroes up to `limit`. */
static uint64_t padding_at(struct gt_plan *plan, uint64_t address, uint64_t limit)
{
	uint64_t room, bytes = 0;
	const uint8_t *code = gt_scan_code(plan->scan, address, &room);
	struct gt_instruction instruction;

	if (!code)
		return 0;
	if (limit - address < room)
		room = limit - address;
	while (bytes < room && code[bytes] == 0)
		bytes++;
	if (bytes == room)
		return bytes;
	bytes = 0;
	while (bytes < room &&
	       gt_instruction_decode(code + bytes, room - bytes, address + bytes, &instruction) &&
	       (instruction.kind == GT_INSTRUCTION_NOP || instruction.kind == GT_INSTRUCTION_INT3))
		bytes += instruction.bytes;
	return bytes;
}

/* The gap behind the function `index`, NULL-function: none. Returns its padding. */
static uint64_t gap_behind(struct gt_plan *plan, uint32_t index, uint64_t *start)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	const struct gt_object_function *next = gt_object_function(plan->object, index + 1);

	*start = function->address + function->bytes;
	return padding_at(plan, *start, next ? next->address : *start + 64);
}

/* Five free bytes of padding that a short jump, which ends at `from`, reaches. 0: none. */
static uint64_t find_padding(struct gt_plan_work *work, uint64_t from)
{
	struct gt_plan *plan = work->plan;
	const uint32_t count = gt_object_function_count(plan->object);
	uint32_t low = work->index, high;

	while (low > 0 && gt_object_function(plan->object, low - 1)->address + 160 > from)
		low--;
	low = low > 0 ? low - 1 : 0;
	for (high = low; high < count; high++) {
		const struct gt_object_function *function = gt_object_function(plan->object, high);
		uint64_t at, start, bytes;

		if (function->address > from + 127)
			break;
		if (!(function->flags & GT_FUNCTION_SIZED))
			continue;
		bytes = gap_behind(plan, high, &start);
		if (bytes < GT_JUMP_BYTES || start > from + 127 || start + bytes + 128 < from ||
		    !ends_for_good(plan, function))
			continue;
		for (at = start; at + GT_JUMP_BYTES <= start + bytes; at++) {
			const int64_t distance = (int64_t)(at - from);

			if (distance < INT8_MIN || distance > INT8_MAX)
				continue;
			if (!(gt_scan_marks_of(plan->scan, at, GT_JUMP_BYTES) &
			      (GT_MARK_TARGET | GT_MARK_USED)))
				return at;
		}
	}
	return 0;
}

static bool take_padding(struct gt_plan_work *work, uint64_t address, enum gt_plan_extra_kind kind)
{
	struct gt_plan_extra extra = { .address = address,
				       .kind = (uint8_t)kind,
				       .bytes = GT_JUMP_BYTES };
	uint64_t room;
	const uint8_t *code = gt_scan_code(work->plan->scan, address, &room);

	if (!code || room < GT_JUMP_BYTES)
		return false;
	memcpy(extra.original, code, GT_JUMP_BYTES);
	if (!gt_plan_add_extra(work, &extra))
		return false;
	gt_scan_use(work->plan->scan, address, GT_JUMP_BYTES);
	return true;
}

/* ---- Moving ---- */

/* What stands in the first bytes. */
struct cover {
	uint32_t bytes;	    /* whole instructions, at least what was asked for unless `reason` */
	bool runs_out;	    /* the function ends before */
	bool ends;	    /* the last one does not go on */
	bool calls;	    /* a call would return into the replaced bytes */
	const char *reason; /* it cannot be moved */
};

static void cover_bytes(struct gt_plan_work *work, const uint8_t *code, uint64_t room,
			uint32_t need, struct cover *cover)
{
	const struct gt_plan_entry *entry = work->entry;
	const uint64_t end = work->function->address + work->function->bytes;
	const uint64_t limit =
		end - entry->patch_address < room ? end - entry->patch_address : room;

	memset(cover, 0, sizeof(*cover));
	while (cover->bytes < need && !cover->ends) {
		struct gt_instruction instruction;
		const uint64_t at = entry->patch_address + cover->bytes;

		if (cover->bytes >= limit) {
			cover->runs_out = true;
			return;
		}
		if (!gt_instruction_decode(code + cover->bytes, room - cover->bytes, at,
					   &instruction) ||
		    instruction.kind == GT_INSTRUCTION_INT3 ||
		    (instruction.kind == GT_INSTRUCTION_XBEGIN && instruction.target_bytes != 4)) {
			cover->reason = no_code;
			return;
		}
		cover->bytes += instruction.bytes;
		if (cover->bytes > limit && work->function->flags & GT_FUNCTION_SIZED) {
			cover->reason = no_code;
			return;
		}
		cover->ends = gt_instruction_ends(&instruction);
		if ((instruction.kind == GT_INSTRUCTION_CALL ||
		     instruction.kind == GT_INSTRUCTION_CALL_INDIRECT) &&
		    cover->bytes < need)
			cover->calls = true;
	}
}

/* Whether the `need` bytes at the patch may be replaced. */
static const char *check_marks(struct gt_plan_work *work, uint32_t need)
{
	uint8_t marks;

	if (work->quick)
		return work->reached ? reached_inside : NULL;
	marks = gt_scan_marks_of(work->plan->scan, work->entry->patch_address + 1, need - 1);
	return marks & (GT_MARK_TARGET | GT_MARK_USED) ? reached_inside : NULL;
}

/*
 * The function's jumps to its own start must not count as calls: they go to the moved code. Those
 * among the moved instructions do so anyway.
 */
static const char *redirect_own_jumps(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	const struct gt_own_jump *jumps;
	const uint32_t count = gt_scan_own_jumps(work->plan->scan, function->address,
						 function->address + function->bytes, &jumps);
	uint64_t padding = 0;
	uint32_t i;

	for (i = 0; i < count; i++) {
		const struct gt_own_jump *jump = &jumps[i];
		struct gt_plan_extra extra = { .address = jump->address, .bytes = jump->bytes };
		const uint64_t next = jump->address + jump->bytes;
		const uint8_t *code;
		uint64_t room;

		if (jump->address >= entry->patch_address &&
		    jump->address - entry->patch_address < entry->covered_bytes)
			continue;
		code = gt_scan_code(work->plan->scan, jump->address, &room);
		if (!code || room < jump->bytes || jump->bytes > sizeof(extra.original))
			return own_loop;
		memcpy(extra.original, code, jump->bytes);
		memcpy(extra.replacement, code, jump->bytes);
		if (jump->target_bytes == 4 && jump->target_offset + 4 == jump->bytes) {
			extra.kind = GT_EXTRA_BRANCH;
		} else if (jump->target_bytes == 1) {
			const int64_t distance = (int64_t)(padding - next);

			if (!padding || distance < INT8_MIN || distance > INT8_MAX) {
				padding = find_padding(work, next);
				if (!padding || !take_padding(work, padding, GT_EXTRA_JUMP))
					return own_loop;
			}
			extra.kind = GT_EXTRA_BYTES;
			extra.replacement[jump->target_offset] = (uint8_t)(padding - next);
		} else {
			return own_loop;
		}
		if (!gt_plan_add_extra(work, &extra))
			return own_loop;
	}
	return NULL;
}

/* Sets the entry for moving `covered` bytes, of which patch_bytes are replaced. */
static const char *settle(struct gt_plan_work *work, enum gt_plan_way way, uint32_t patch_bytes,
			  uint32_t covered, const uint8_t *code)
{
	struct gt_plan_entry *entry = work->entry;
	uint8_t moved[GT_PLAN_MOVED_MAX];
	int bytes;

	entry->way = (uint8_t)way;
	entry->patch_bytes = (uint8_t)patch_bytes;
	entry->covered_bytes = (uint8_t)covered;
	memcpy(entry->original, code, covered);
	/* Addresses as in a process, where the longer forms are needed. */
	bytes = gt_plan_move(entry, 0x7f0000000000ull + entry->patch_address,
			     0x7f0000000000ull + entry->patch_address + 4096, moved, sizeof(moved),
			     NULL);
	if (bytes < 0)
		return "its first instructions cannot be moved";
	entry->moved_bytes_max = (uint8_t)bytes;
	return redirect_own_jumps(work);
}

/* A short jump at the entry, and the jump to the stub in padding nearby. */
static const char *plan_short(struct gt_plan_work *work, const uint8_t *code, uint64_t room,
			      const char *why)
{
	struct gt_plan_entry *entry = work->entry;
	struct cover cover;
	uint64_t padding;

	if (work->quick)
		return why;
	cover_bytes(work, code, room, GT_SHORT_BYTES, &cover);
	if (cover.reason || cover.calls || cover.bytes < GT_SHORT_BYTES ||
	    cover.bytes > GT_PLAN_ORIGINAL_MAX || check_marks(work, GT_SHORT_BYTES))
		return why;
	padding = find_padding(work, entry->patch_address + GT_SHORT_BYTES);
	if (!padding || !take_padding(work, padding, GT_EXTRA_STUB))
		return why;
	if (settle(work, GT_PLAN_SHORT, GT_SHORT_BYTES, cover.bytes, code))
		return why;
	return NULL;
}

static const char *plan_moved_here(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	struct cover cover;
	uint64_t room, gap;
	const uint8_t *code = gt_scan_code(work->plan->scan, entry->patch_address, &room);
	const char *reason;

	if (!code || entry->patch_address >= function->address + function->bytes)
		return no_room;
	cover_bytes(work, code, room, GT_JUMP_BYTES, &cover);
	if (cover.reason)
		return cover.reason;
	if (cover.bytes >= GT_JUMP_BYTES) {
		/* Without known bounds a jump over the end would not be seen. */
		reason = check_marks(work, GT_JUMP_BYTES);
		if (!reason && !cover.calls && cover.bytes <= GT_PLAN_ORIGINAL_MAX)
			return settle(work, GT_PLAN_MOVED, GT_JUMP_BYTES, cover.bytes, code);
		return plan_short(work, code, room, reason ? reason : call_inside);
	}
	if (!(function->flags & GT_FUNCTION_SIZED))
		return unbounded;
	if (!cover.ends)
		return "goes on into the next function within its first bytes";
	/* The rest of the five bytes: dead code of the function itself, then padding. */
	gap = function->address + function->bytes;
	if (gap < entry->patch_address + GT_JUMP_BYTES) {
		const uint64_t padding = gap_behind(work->plan, work->index, &gap);

		if (gap + padding < entry->patch_address + GT_JUMP_BYTES)
			return plan_short(work, code, room, no_room);
		reason = check_marks(work, GT_JUMP_BYTES);
		if (reason)
			return plan_short(work, code, room, reason);
		reason = settle(work, GT_PLAN_PADDING, GT_JUMP_BYTES, GT_JUMP_BYTES, code);
	} else {
		reason = check_marks(work, GT_JUMP_BYTES);
		if (reason)
			return plan_short(work, code, room, reason);
		reason = settle(work, GT_PLAN_MOVED, GT_JUMP_BYTES, GT_JUMP_BYTES, code);
	}
	if (!reason && gap < entry->patch_address + GT_JUMP_BYTES)
		gt_scan_use(work->plan->scan, gap, entry->patch_address + GT_JUMP_BYTES - gap);
	return reason;
}

/* Behind endbr64 where that is possible, else on it. */
const char *gt_plan_find_moved(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const char *reason = plan_moved_here(work);

	if (reason && entry->patch_address != entry->address) {
		drop_extras(work);
		entry->patch_address = entry->address;
		if (!plan_moved_here(work))
			return NULL;
		entry->patch_address = entry->address + GT_ENDBR64_BYTES;
	}
	if (reason) {
		drop_extras(work);
		entry->way = GT_PLAN_NONE;
	}
	return reason;
}
