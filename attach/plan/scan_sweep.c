/* SPDX-License-Identifier: MIT */
/*
 * Decodes every instruction of an object once, from function to function, and looks through its
 * data and relocations.
 */
#include "attach/plan/scan_private.h"
#include "core/trace/message.h"

#define TABLE_ENTRIES_MAX 65536u
#define TABLE_ENTRIES_MIN 3u /* no compiler makes a smaller one; constants look like one or two */

/* The function that is being decoded: [start, end), 0 none. */
struct current {
	uint64_t start;
	uint64_t end;
};

static void note_inward(struct gt_scan *scan, const struct current *current, uint64_t address,
			const struct gt_instruction *instruction, bool inside)
{
	const uint64_t target = instruction->target;
	const struct gt_inward_jump jump = { target,
					     address,
					     instruction->bytes,
					     instruction->target_offset,
					     instruction->target_bytes,
					     inside };
	uint64_t start = current->start;

	if (!inside) {
		const struct gt_object_function *function =
			gt_scan_function_before(scan->object, target);

		/* To its first byte is a call in tail position. */
		if (function == NULL || function->address == target)
			return;
		start = function->address;
	}
	if (target - start < GT_INWARD_BYTES)
		gt_scan_push(scan, &scan->inward, &jump, sizeof(jump));
}

static void note_branch(struct gt_scan *scan, const struct current *current, uint64_t address,
			const struct gt_instruction *instruction)
{
	const bool inside =
		instruction->target >= current->start && instruction->target < current->end;
	uint8_t marks;

	if (instruction->kind == GT_INSTRUCTION_CALL)
		marks = GT_MARK_CALLED;
	else if (inside)
		marks = GT_MARK_INNER;
	else if (instruction->kind == GT_INSTRUCTION_JMP)
		marks = GT_MARK_JUMPED;
	else
		marks = GT_MARK_COND;
	gt_scan_mark(scan, instruction->target, marks);
	if (marks != GT_MARK_CALLED)
		note_inward(scan, current, address, instruction, inside);
}

static void note_special(struct gt_scan *scan, uint64_t address,
			 const struct gt_instruction *instruction)
{
	struct gt_special_site site = { .address = address, .bytes = instruction->bytes };

	site.special = (uint8_t)gt_scan_special(scan, instruction);
	if (site.special == GT_SPECIAL_NONE)
		return;
	site.call = instruction->kind == GT_INSTRUCTION_CALL ||
		    instruction->kind == GT_INSTRUCTION_CALL_INDIRECT;
	gt_scan_push(scan, &scan->sites, &site, sizeof(site));
}

static void note_instruction(struct gt_scan *scan, const struct current *current, uint64_t address,
			     const uint8_t *code, const struct gt_instruction *instruction,
			     bool fixed)
{
	const bool special = scan->slots.count || scan->functions.count;

	if (instruction->target_bytes) {
		note_branch(scan, current, address, instruction);
		if (special && instruction->kind <= GT_INSTRUCTION_JMP)
			note_special(scan, address, instruction);
	}
	if (instruction->rip_offset) {
		if (gt_scan_range_at(scan, instruction->rip_target) != NULL)
			gt_scan_mark(scan, instruction->rip_target, GT_MARK_POINTED);
		else if (instruction->is_lea)
			gt_scan_push(scan, &scan->tables, &instruction->rip_target,
				     sizeof(uint64_t));
		if (special && (instruction->kind == GT_INSTRUCTION_CALL_INDIRECT ||
				instruction->kind == GT_INSTRUCTION_JMP_INDIRECT))
			note_special(scan, address, instruction);
	}
	if (fixed && instruction->immediate_offset) {
		uint64_t value = 0;

		memcpy(&value, code + instruction->immediate_offset, instruction->immediate_bytes);
		gt_scan_mark(scan, value, GT_MARK_POINTED);
	}
}

/* From function to function; a known start is always the start of an instruction. */
static void sweep(struct gt_scan *scan, const struct gt_scan_range *range, bool fixed)
{
	const uint32_t count = gt_object_function_count(scan->object);
	struct current current = { 0 };
	uint64_t at = range->start, next_start;
	uint32_t next = 0, high = count;

	while (next < high) {
		const uint32_t middle = next + (high - next) / 2;

		if (gt_object_function(scan->object, middle)->address < at)
			next = middle + 1;
		else
			high = middle;
	}
	next_start = next < count ? gt_object_function(scan->object, next)->address : UINT64_MAX;
	while (at < range->end) {
		const uint8_t *code = range->code + (at - range->start);
		struct gt_instruction instruction;

		while (at >= next_start) {
			const struct gt_object_function *function =
				gt_object_function(scan->object, next++);

			current.start = function->address;
			current.end = function->address + function->bytes;
			next_start = next < count ? gt_object_function(scan->object, next)->address
						  : UINT64_MAX;
		}
		if (!gt_instruction_decode(code, range->end - at, at, &instruction)) {
			at++;
			continue;
		}
		if (at < next_start && instruction.bytes > next_start - at) {
			/* data, or an instruction that shares its bytes */
			note_instruction(scan, &current, at, code, &instruction, fixed);
			at = next_start;
			continue;
		}
		note_instruction(scan, &current, at, code, &instruction, fixed);
		at += instruction.bytes;
	}
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Tables of 32-bit offsets from their own start, as compilers make them for switch: from each
 * address that lea takes, for as long as the offsets lead into code, at most up to the next such
 * address.
 */
static uint32_t follow_table(struct gt_scan *scan, uint64_t table, uint64_t end, bool marks)
{
	uint32_t count = 0;

	while (count < TABLE_ENTRIES_MAX && table + count * 4ull < end) {
		const uint8_t *bytes = gt_object_bytes(scan->object, table + count * 4ull, 4);
		int32_t offset;

		if (bytes == NULL)
			break;
		memcpy(&offset, bytes, 4);
		if (gt_scan_range_at(scan, table + (uint64_t)(int64_t)offset) == NULL)
			break;
		if (marks)
			gt_scan_mark(scan, table + (uint64_t)(int64_t)offset, GT_MARK_TABLE);
		count++;
	}
	return count;
}

static void follow_tables(struct gt_scan *scan)
{
	uint64_t *tables = scan->tables.items;

	if (!scan->tables.count)
		return;
	qsort(tables, scan->tables.count, sizeof(*tables), compare_addresses);
	for (uint32_t i = 0; i < scan->tables.count; i++) {
		const uint64_t end = i + 1 < scan->tables.count ? tables[i + 1] : UINT64_MAX;

		if (follow_table(scan, tables[i], end, false) >= TABLE_ENTRIES_MIN)
			follow_table(scan, tables[i], end, true);
	}
}

static int mark_relocation(void *data, const struct gt_object_relocation *relocation)
{
	if (relocation->defined)
		gt_scan_mark(data, relocation->value, GT_MARK_POINTED | GT_MARK_WORD);
	return 0;
}

/* Every aligned word of the data that could be an address of code. */
static void scan_data(struct gt_scan *scan)
{
	for (uint32_t i = 0; i < gt_object_segment_count(scan->object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(scan->object, i);
		const uint64_t skip = -segment->address & 7;
		const uint8_t *bytes;

		if (segment->execute || segment->file_bytes <= skip)
			continue;
		bytes = gt_object_bytes(scan->object, segment->address, segment->file_bytes);
		for (uint64_t at = skip; bytes != NULL && at + 8 <= segment->file_bytes; at += 8) {
			uint64_t value;

			memcpy(&value, bytes + at, 8);
			if (value)
				gt_scan_mark(scan, value, GT_MARK_POINTED | GT_MARK_WORD);
		}
	}
}

static int compare_inward(const void *a, const void *b)
{
	const struct gt_inward_jump *x = a, *y = b;

	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

int gt_scan_all(struct gt_scan *scan, struct gt_message *message)
{
	const bool fixed = gt_object_is_fixed(scan->object);

	if (scan->complete)
		return 0;
	for (uint32_t i = 0; i < scan->range_count; i++) {
		struct gt_scan_range *range = &scan->ranges[i];

		if (range->marks == NULL)
			range->marks = calloc(1, range->end - range->start);
		scan->no_memory = scan->no_memory || range->marks == NULL;
	}
	if (!scan->no_memory) {
		for (uint32_t i = 0; i < scan->range_count; i++)
			sweep(scan, &scan->ranges[i], fixed);
		if (scan->inward.count)
			qsort(scan->inward.items, scan->inward.count, sizeof(struct gt_inward_jump),
			      compare_inward);
		follow_tables(scan);
		gt_object_each_relocation(scan->object, mark_relocation, scan);
		if (fixed)
			scan_data(scan);
		for (uint32_t i = 0; i < scan->used.count; i++)
			gt_scan_mark(scan, ((uint64_t *)scan->used.items)[i], GT_MARK_USED);
	}
	if (scan->no_memory)
		return gt_fail(message, GT_ENOMEM, "no memory to look through the code");
	scan->complete = true;
	return 0;
}
