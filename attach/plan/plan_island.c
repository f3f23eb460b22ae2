/* SPDX-License-Identifier: MIT */
/*
 * Room for a long jump where a short one reaches it: padding between functions, or, where compilers
 * leave none (-Os), a block of instructions in the middle of a function nearby, which move out of
 * line for that.
 */
#include "attach/plan/plan_private.h"

#include <string.h>

#define BLOCK_BYTES    10 /* two jumps: past the block, and the island */
#define CLEAR_OF_ENTRY 5  /* of the function that lends a block: its own first bytes stay */

/* Whether nothing runs on behind the function's last instruction. */
static bool ends_for_good(struct gt_plan *plan, const struct gt_object_function *function)
{
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, function->address, &room);
	struct gt_instruction instruction = { .kind = GT_INSTRUCTION_OTHER };
	uint32_t at = 0;

	if (code == NULL || room < function->bytes)
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

	if (code == NULL)
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
	return padding_at(plan, *start, next != NULL ? next->address : *start + 64);
}

/* Whether an island of `bytes` at `address` is written no later than the short jump to it. */
static bool is_in_time(uint64_t address, uint64_t bytes, uint64_t from,
		       enum gt_plan_extra_kind kind)
{
	return kind == GT_EXTRA_STUB || (gt_plan_on_one_page(address, bytes) &&
					 address / GT_PLAN_PAGE == (from - 1) / GT_PLAN_PAGE);
}

/* Five free bytes of padding that a short jump, which ends at `from`, reaches. 0: none. */
static uint64_t find_padding(struct gt_plan_work *work, uint64_t from, enum gt_plan_extra_kind kind)
{
	struct gt_plan *plan = work->plan;
	const uint32_t count = gt_object_function_count(plan->object);
	uint32_t low = work->index;

	while (low > 0 && gt_object_function(plan->object, low - 1)->address + 160 > from)
		low--;
	low = low > 0 ? low - 1 : 0;
	for (uint32_t high = low; high < count; high++) {
		const struct gt_object_function *function = gt_object_function(plan->object, high);
		uint64_t start, bytes;

		if (function->address > from + 127)
			break;
		if (!(function->flags & GT_FUNCTION_SIZED))
			continue;
		bytes = gap_behind(plan, high, &start);
		if (bytes < GT_JUMP_BYTES || start > from + 127 || start + bytes + 128 < from ||
		    !ends_for_good(plan, function))
			continue;
		for (uint64_t at = start; at + GT_JUMP_BYTES <= start + bytes; at++) {
			const int64_t distance = (int64_t)(at - from);

			if (distance < INT8_MIN || distance > INT8_MAX ||
			    !is_in_time(at, GT_JUMP_BYTES, from, kind))
				continue;
			if (!(gt_scan_marks_of(plan->scan, at, GT_JUMP_BYTES) &
			      (GT_MARK_TARGET | GT_MARK_USED)))
				return at;
		}
	}
	return 0;
}

uint64_t gt_plan_padding_behind(struct gt_plan *plan, uint32_t index)
{
	uint64_t start;

	return gap_behind(plan, index, &start);
}

static bool take_place(struct gt_plan_work *work, uint64_t address, enum gt_plan_extra_kind kind,
		       uint8_t target)
{
	struct gt_plan_extra extra = {
		.address = address, .kind = (uint8_t)kind, .bytes = GT_JUMP_BYTES, .target = target
	};
	uint64_t room;
	const uint8_t *code = gt_scan_code(work->plan->scan, address, &room);

	if (code == NULL || room < GT_JUMP_BYTES)
		return false;
	memcpy(extra.original, code, GT_JUMP_BYTES);
	if (!gt_plan_add_extra(work, &extra))
		return false;
	gt_scan_use(work->plan->scan, address, GT_JUMP_BYTES);
	return true;
}

/* ---- Blocks ---- */

/*
 * Going through a function from its start: `runs` tells whether the instruction at `at` is reached,
 * by the one before it or because something leads there. What is not may be data.
 */
struct stroll {
	struct gt_plan *plan;
	const uint8_t *code;
	uint64_t start;
	uint64_t at; /* of `instruction` */
	uint64_t end;
	bool runs;
	bool falls; /* from the one before */
	bool begun;
	struct gt_instruction instruction;
};

static bool stroll_begin(struct stroll *stroll, struct gt_plan *plan,
			 const struct gt_object_function *function)
{
	uint64_t room;

	memset(stroll, 0, sizeof(*stroll));
	stroll->plan = plan;
	stroll->code = gt_scan_code(plan->scan, function->address, &room);
	stroll->start = stroll->at = function->address;
	stroll->end = function->address + (function->bytes < room ? function->bytes : room);
	return stroll->code != NULL && function->flags & GT_FUNCTION_SIZED;
}

/* An address that the code takes may be one of data; one that stands in the data is a function's,
 * or of a jump table. */
#define LEADS_HERE ((GT_MARK_TARGET & ~GT_MARK_POINTED) | GT_MARK_WORD)

/* The next instruction. false: the end, or something that is none, or that nothing reaches (data, a
 * landing pad): nothing behind it is trusted. */
static bool stroll_on(struct stroll *stroll)
{
	if (stroll->begun) {
		stroll->falls = stroll->runs && !gt_instruction_ends(&stroll->instruction) &&
				stroll->instruction.kind != GT_INSTRUCTION_INT3;
		stroll->at += stroll->instruction.bytes;
	} else {
		stroll->falls = true;
	}
	stroll->begun = true;
	if (stroll->at >= stroll->end ||
	    !gt_instruction_decode(stroll->code + (stroll->at - stroll->start),
				   stroll->end - stroll->at, stroll->at, &stroll->instruction))
		return false;
	stroll->runs = stroll->falls || gt_scan_marks(stroll->plan->scan, stroll->at) & LEADS_HERE;
	return stroll->runs || stroll->instruction.kind == GT_INSTRUCTION_NOP ||
	       stroll->instruction.kind == GT_INSTRUCTION_INT3;
}

bool gt_plan_is_code(struct gt_plan *plan, uint64_t address)
{
	const struct gt_object_function *function;
	struct stroll stroll;
	uint32_t index;

	if (gt_object_function_at(plan->object, address, &index))
		return false;
	function = gt_object_function(plan->object, index);
	if (!stroll_begin(&stroll, plan, function))
		return false;
	while (stroll_on(&stroll))
		if (stroll.at >= address)
			return stroll.at == address && stroll.runs;
	return false;
}

/* Whether the instruction may be executed elsewhere, from a copy that nobody returns to. */
static bool can_be_lent(const struct gt_instruction *instruction)
{
	switch (instruction->kind) {
	case GT_INSTRUCTION_CALL:
	case GT_INSTRUCTION_CALL_INDIRECT:
	case GT_INSTRUCTION_XBEGIN:
	case GT_INSTRUCTION_LOOP:
	case GT_INSTRUCTION_INT3:
	case GT_INSTRUCTION_TRAP:
		return false;
	default:
		return true;
	}
}

/*
 * A block in this function whose island a short jump reaches that ends at `from`: straight on from
 * its first instruction to its last, nothing leads into it, no patch stands there, and both jumps
 * are on one page. 0: none.
 */
static uint64_t block_in(struct gt_plan_work *work, const struct gt_object_function *function,
			 uint64_t from, enum gt_plan_extra_kind kind, uint8_t *covered)
{
	struct gt_scan *scan = work->plan->scan;
	uint64_t begins[GT_PLAN_ORIGINAL_MAX]; /* of the last instructions, straight on */
	uint32_t count = 0, first, k;
	struct stroll stroll;

	if (!stroll_begin(&stroll, work->plan, function))
		return 0;
	while (stroll_on(&stroll)) {
		const uint64_t end = stroll.at + stroll.instruction.bytes;
		const uint8_t marks = gt_scan_marks(scan, stroll.at);

		if (stroll.at > from + 128)
			break;
		if (!stroll.falls || marks & GT_MARK_TARGET)
			count = 0;
		if (!stroll.runs || !can_be_lent(&stroll.instruction) ||
		    stroll.at < function->address + GT_ENDBR64_BYTES + CLEAR_OF_ENTRY ||
		    gt_scan_marks_of(scan, stroll.at, stroll.instruction.bytes) & GT_MARK_USED ||
		    gt_scan_marks_of(scan, stroll.at + 1, stroll.instruction.bytes - 1u) &
			    GT_MARK_TARGET) {
			count = 0;
			continue;
		}
		if (count == GT_PLAN_ORIGINAL_MAX) {
			memmove(begins, begins + 1, (count - 1) * sizeof(*begins));
			count--;
		}
		begins[count++] = stroll.at;
		/* The shortest block that ends here. */
		for (first = count, k = count; k-- > 0;)
			if (end - begins[k] >= BLOCK_BYTES) {
				first = k;
				break;
			}
		if (first == count || end - begins[first] > GT_PLAN_ORIGINAL_MAX)
			continue;
		if (begins[first] + GT_JUMP_BYTES + 128 < from ||
		    begins[first] + GT_JUMP_BYTES > from + 127 ||
		    !gt_plan_on_one_page(begins[first], BLOCK_BYTES) ||
		    !is_in_time(begins[first], BLOCK_BYTES, from, kind))
			continue;
		*covered = (uint8_t)(end - begins[first]);
		return begins[first];
	}
	return 0;
}

static bool can_borrow(const struct gt_plan_work *work, uint32_t *borrowed)
{
	*borrowed = 0;
	for (uint32_t i = 0; i < work->entry->extra_count; i++)
		*borrowed += gt_plan_extra(work->plan, work->entry, i)->kind == GT_EXTRA_BLOCK;
	return work->may_borrow && *borrowed < GT_PLAN_BLOCKS_MAX;
}

/* Takes a block for the function. Returns where its island may stand, 0: there is none. */
static uint64_t take_block(struct gt_plan_work *work, uint64_t from, enum gt_plan_extra_kind kind)
{
	struct gt_plan *plan = work->plan;
	const uint32_t count = gt_object_function_count(plan->object);
	struct gt_plan_extra extra = { .kind = GT_EXTRA_BLOCK, .bytes = GT_JUMP_BYTES };
	uint32_t low = work->index, borrowed;
	uint8_t moved[GT_PLAN_MOVED_MAX];
	struct gt_plan_map map;
	const uint8_t *code;
	uint64_t room;
	int bytes;

	if (!can_borrow(work, &borrowed))
		return 0;
	while (low > 0 && gt_object_function(plan->object, low)->address + 160 > from)
		low--;
	/* The one before may be long. */
	for (low = low > 0 ? low - 1 : 0; low < count && !extra.address; low++) {
		const struct gt_object_function *function = gt_object_function(plan->object, low);

		if (function->address > from + 127)
			break;
		if (function->address + function->bytes + 160 > from &&
		    !gt_rule_never(plan->object, function))
			extra.address = block_in(work, function, from, kind, &extra.covered);
	}
	code = extra.address ? gt_scan_code(plan->scan, extra.address, &room) : NULL;
	if (code == NULL || room < extra.covered)
		return 0;
	memcpy(extra.original, code, extra.covered);
	if (!gt_plan_add_extra(work, &extra))
		return 0;
	bytes = gt_plan_move(plan, work->entry, 0, work->entry->patch_address + 4096, moved,
			     sizeof(moved), &map);
	if (bytes < 0 || map.block_count != borrowed + 1) {
		plan->extra_count--;
		work->entry->extra_count--;
		return 0;
	}
	plan->extras[plan->extra_count - 1].target = (uint8_t)map.block[borrowed].offset[0];
	gt_scan_use(plan->scan, extra.address, extra.covered);
	return extra.address + GT_JUMP_BYTES;
}

uint64_t gt_plan_take_island(struct gt_plan_work *work, uint64_t from, enum gt_plan_extra_kind kind,
			     uint8_t target)
{
	uint64_t place = work->may_borrow ? find_padding(work, from, kind) : 0;

	if (!place)
		place = take_block(work, from, kind);
	return place && take_place(work, place, kind, target) ? place : 0;
}
