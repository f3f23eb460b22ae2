/* SPDX-License-Identifier: MIT */
/*
 * Plans functions that no compiler has prepared: whole instructions move out of line, so that five
 * bytes become free for a jump; a function that is too short borrows the padding behind it, or a
 * two-byte jump reaches padding nearby. Nothing may lead into the replaced bytes.
 */
#include "attach/plan/plan_private.h"

#include <string.h>

/* Takes back what was added for a way that did not work out. */
static void drop_extras(struct gt_plan_work *work)
{
	struct gt_plan *plan = work->plan;

	while (work->entry->extra_count) {
		const struct gt_plan_extra *extra = &plan->extras[--plan->extra_count];

		gt_scan_give_back(plan->scan, extra->address,
				  extra->covered ? extra->covered : extra->bytes);
		work->entry->extra_count--;
	}
}

/* The jumps into what is moved that can be led to the moved code, in the marks. */
#define REDIRECTED (GT_MARK_JUMPED | GT_MARK_COND | GT_MARK_INNER)

/* ---- Moving ---- */

/* What stands in the first bytes. */
struct cover {
	uint32_t bytes; /* whole instructions, at least what was asked for unless `reason` */
	bool runs_out;	/* the function ends before */
	bool ends;	/* the last one does not go on */
	bool calls;	/* a call would return into the replaced bytes */
	enum gt_plan_reason reason; /* it cannot be moved */
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
			cover->reason = GT_REASON_NO_INSTRUCTIONS;
			return;
		}
		cover->bytes += instruction.bytes;
		if (cover->bytes > limit && work->function->flags & GT_FUNCTION_SIZED) {
			cover->reason = GT_REASON_NO_INSTRUCTIONS;
			return;
		}
		cover->ends = gt_instruction_ends(&instruction);
		if ((instruction.kind == GT_INSTRUCTION_CALL ||
		     instruction.kind == GT_INSTRUCTION_CALL_INDIRECT) &&
		    cover->bytes < need)
			cover->calls = true;
	}
}

/* Whether the `need` bytes at the patch may be replaced, as far as can be told before the jumps
 * into them have been looked at. */
static enum gt_plan_reason check_marks(struct gt_plan_work *work, uint32_t need)
{
	uint8_t marks;

	if (work->quick)
		return work->reached ? GT_REASON_REACHED_INSIDE : GT_REASON_NONE;
	if (gt_scan_marks(work->plan->scan, work->entry->patch_address) & GT_MARK_USED)
		return GT_REASON_BORROWED;
	marks = gt_scan_marks_of(work->plan->scan, work->entry->patch_address + 1, need - 1);
	if (marks & GT_MARK_USED)
		return GT_REASON_BORROWED;
	return marks & (GT_MARK_TARGET & ~REDIRECTED) ? GT_REASON_REACHED_INSIDE : GT_REASON_NONE;
}

/* Leads one jump to `target` in the moved code. */
static bool redirect(struct gt_plan_work *work, const struct gt_inward_jump *jump, uint8_t target)
{
	struct gt_plan *plan = work->plan;
	struct gt_plan_extra extra = { .address = jump->address,
				       .bytes = jump->bytes,
				       .target = target };
	const uint64_t next = jump->address + jump->bytes;
	uint64_t room, island;
	const uint8_t *code = gt_scan_code(plan->scan, jump->address, &room);

	/* What is decoded as a jump, but is data, must not be written to. */
	if (code == NULL || room < jump->bytes || jump->bytes > sizeof(extra.replacement) ||
	    gt_scan_marks_of(plan->scan, jump->address, jump->bytes) & GT_MARK_USED ||
	    !gt_plan_is_code(plan, jump->address))
		return false;
	memcpy(extra.original, code, jump->bytes);
	memcpy(extra.replacement, code, jump->bytes);
	gt_scan_use(plan->scan, jump->address, jump->bytes);
	if (jump->target_bytes == 4 && jump->target_offset + 4 == jump->bytes &&
	    gt_plan_on_one_page(next - 4, 4)) {
		extra.kind = GT_EXTRA_BRANCH;
	} else if (jump->target_bytes == 1 && jump->target_offset + 1 == jump->bytes) {
		island = gt_plan_take_island(work, next, GT_EXTRA_JUMP, target);
		if (!island)
			goto give_back;
		extra.kind = GT_EXTRA_BYTES;
		extra.replacement[jump->target_offset] = (uint8_t)(island - next);
	} else {
		goto give_back;
	}
	if (gt_plan_add_extra(work, &extra))
		return true;
give_back:
	gt_scan_give_back(plan->scan, jump->address, jump->bytes);
	return false;
}

/*
 * Jumps into the bytes that are replaced go to the moved code, and so do the function's jumps to
 * its own start, which must not count as calls. Those among the moved instructions do so anyway.
 */
static enum gt_plan_reason redirect_jumps(struct gt_plan_work *work, const struct gt_plan_map *map)
{
	struct gt_plan_entry *entry = work->entry;
	const struct gt_inward_jump *jumps;
	const uint32_t count =
		gt_scan_inward_jumps(work->plan->scan, entry->address,
				     entry->patch_address + entry->patch_bytes, &jumps);

	for (uint32_t i = 0; i < count; i++) {
		const struct gt_inward_jump *jump = &jumps[i];
		const bool inside = jump->target > entry->patch_address;
		const uint64_t offset = inside ? jump->target - entry->patch_address : 0;

		/* Others that jump to the start call it. */
		if ((!inside && !jump->own) ||
		    jump->address - entry->patch_address < entry->covered_bytes)
			continue;
		if (map->offset[offset] < 0 || !redirect(work, jump, (uint8_t)map->offset[offset]))
			return inside ? GT_REASON_REACHED_INSIDE : GT_REASON_OWN_LOOP;
	}
	return GT_REASON_NONE;
}

/* How much the moved code and the blocks take. The addresses do not matter. */
static int moved_bytes(const struct gt_plan_work *work, struct gt_plan_map *map)
{
	uint8_t moved[GT_PLAN_MOVED_MAX];

	return gt_plan_move(work->plan, work->entry, 0, work->entry->patch_address + 4096, moved,
			    sizeof(moved), map);
}

/* Sets the entry for moving `covered` bytes, of which patch_bytes are replaced. */
static enum gt_plan_reason settle(struct gt_plan_work *work, enum gt_plan_way way,
				  uint32_t patch_bytes, uint32_t covered, const uint8_t *code)
{
	struct gt_plan_entry *entry = work->entry;
	struct gt_plan_map map;
	enum gt_plan_reason reason;
	uint64_t island;
	int bytes;

	entry->way = (uint8_t)way;
	entry->patch_bytes = (uint8_t)patch_bytes;
	entry->covered_bytes = (uint8_t)covered;
	memcpy(entry->original, code, covered);
	bytes = moved_bytes(work, &map);
	if (bytes < 0)
		return GT_REASON_UNMOVABLE;
	entry->moved_bytes_max = (uint8_t)bytes;
	if (work->quick)
		return GT_REASON_NONE;
	/* Nobody may borrow what the patch itself needs. */
	gt_scan_use(work->plan->scan, entry->patch_address, covered);
	reason = redirect_jumps(work, &map);
	if (!reason && way == GT_PLAN_SHORT) {
		island = gt_plan_take_island(work, entry->patch_address + GT_SHORT_BYTES,
					     GT_EXTRA_STUB, 0);
		reason = island ? GT_REASON_NONE : GT_REASON_NO_ROOM;
	}
	if (!reason) {
		bytes = moved_bytes(work, &map);
		if (bytes > 0) {
			entry->moved_bytes_max = (uint8_t)bytes;
			return GT_REASON_NONE;
		}
		reason = GT_REASON_NO_ROOM;
	}
	gt_scan_give_back(work->plan->scan, entry->patch_address, covered);
	drop_extras(work);
	return reason;
}

/* A short jump at the entry, and the jump to the stub in padding nearby. */
static enum gt_plan_reason plan_short(struct gt_plan_work *work, const uint8_t *code, uint64_t room,
				      enum gt_plan_reason why)
{
	struct cover cover;

	if (work->quick || !gt_plan_on_one_page(work->entry->patch_address, GT_SHORT_BYTES))
		return why;
	cover_bytes(work, code, room, GT_SHORT_BYTES, &cover);
	if (cover.reason || cover.calls || cover.bytes < GT_SHORT_BYTES ||
	    cover.bytes > GT_PLAN_ORIGINAL_MAX || check_marks(work, GT_SHORT_BYTES))
		return why;
	return settle(work, GT_PLAN_SHORT, GT_SHORT_BYTES, cover.bytes, code) ? why
									      : GT_REASON_NONE;
}

/* The long jump. Where something jumps into its bytes the short one is tried first: it leaves that
 * jump alone. */
static enum gt_plan_reason plan_long(struct gt_plan_work *work, enum gt_plan_way way,
				     uint32_t covered, const uint8_t *code, uint64_t room)
{
	const uint64_t behind = work->entry->patch_address + 1;
	enum gt_plan_reason reason = check_marks(work, GT_JUMP_BYTES);

	if (!reason && !work->quick &&
	    gt_scan_marks_of(work->plan->scan, behind, GT_JUMP_BYTES - 1) & REDIRECTED) {
		if (!work->may_borrow)
			return GT_REASON_REACHED_INSIDE;
		if (!plan_short(work, code, room, GT_REASON_REACHED_INSIDE))
			return GT_REASON_NONE;
	}
	/* A hook is worth more than the moment in which it could be torn. */
	if (!reason && !work->quick && !gt_plan_on_one_page(behind - 1, GT_JUMP_BYTES))
		reason = GT_REASON_TWO_PAGES;
	if (!reason)
		reason = settle(work, way, GT_JUMP_BYTES, covered, code);
	return reason ? plan_short(work, code, room, reason) : GT_REASON_NONE;
}

static enum gt_plan_reason plan_moved_here(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	const struct gt_object_function *function = work->function;
	struct cover cover;
	uint64_t room, gap;
	const uint8_t *code = gt_scan_code(work->plan->scan, entry->patch_address, &room);
	enum gt_plan_reason reason;

	if (code == NULL || entry->patch_address >= function->address + function->bytes)
		return GT_REASON_NO_ROOM;
	cover_bytes(work, code, room, GT_JUMP_BYTES, &cover);
	if (cover.reason)
		return cover.reason;
	if (cover.bytes >= GT_JUMP_BYTES) {
		/* Without known bounds a jump over the end would not be seen. */
		if (cover.calls || cover.bytes > GT_PLAN_ORIGINAL_MAX) {
			reason = check_marks(work, GT_JUMP_BYTES);
			return plan_short(work, code, room,
					  reason ? reason : GT_REASON_CALL_INSIDE);
		}
		return plan_long(work, GT_PLAN_MOVED, cover.bytes, code, room);
	}
	if (!(function->flags & GT_FUNCTION_SIZED))
		return GT_REASON_UNBOUNDED;
	if (!cover.ends)
		return GT_REASON_RUNS_ON;
	/* The rest of the five bytes: dead code of the function itself, then padding. */
	gap = function->address + function->bytes;
	if (gap >= entry->patch_address + GT_JUMP_BYTES)
		return plan_long(work, GT_PLAN_MOVED, GT_JUMP_BYTES, code, room);
	if (gap + gt_plan_padding_behind(work->plan, work->index) <
	    entry->patch_address + GT_JUMP_BYTES)
		return plan_short(work, code, room, GT_REASON_NO_ROOM);
	return plan_long(work, GT_PLAN_PADDING, GT_JUMP_BYTES, code, room);
}

/* Behind endbr64 where that is possible, else on it. */
enum gt_plan_reason gt_plan_find_moved(struct gt_plan_work *work)
{
	struct gt_plan_entry *entry = work->entry;
	enum gt_plan_reason reason = plan_moved_here(work);

	if (reason && entry->patch_address != entry->address) {
		entry->patch_address = entry->address;
		if (!plan_moved_here(work))
			return GT_REASON_NONE;
		entry->patch_address = entry->address + GT_ENDBR64_BYTES;
	}
	if (reason)
		entry->way = GT_PLAN_NONE;
	return reason;
}
