/* SPDX-License-Identifier: MIT */
/*
 * The shorter way for few functions: looks for bytes that may be branches, and decodes only where it
 * finds one that leads into a function.
 */
#include "attach/plan/scan_private.h"
#include "core/trace/message.h"

/* Where instructions begin for sure, at or before the address: a function's start, or its end. */
static bool known_start(const struct gt_scan *scan, uint64_t address, uint64_t *start)
{
	const struct gt_object_function *function = gt_scan_function_before(scan->object, address);

	if (function == NULL)
		return false;
	*start = address - function->address < function->bytes
			 ? function->address
			 : function->address + function->bytes;
	return true;
}

/* Whether the byte at `address` really is in a branch that leads there: decodes from the last place
 * that is known. Where that is not possible, it is. */
static bool is_branch(struct gt_scan *scan, uint64_t address, uint64_t target)
{
	struct gt_instruction instruction;
	uint64_t at, room;

	if (!known_start(scan, address, &at))
		return true;
	for (; at <= address; at += instruction.bytes) {
		const uint8_t *code = gt_scan_code(scan, at, &room);

		if (code == NULL || !gt_instruction_decode(code, room, at, &instruction))
			return true;
		if (instruction.target_bytes && instruction.target == target &&
		    address < at + instruction.bytes)
			return true;
	}
	return false;
}

/* Which of the addresses has `target` among its bytes 1 to 4; -1 none. Few: one after the other. */
static int inside_of(const uint64_t *addresses, uint32_t count, uint64_t target)
{
	for (uint32_t i = 0; i < count; i++)
		if (target > addresses[i] && target < addresses[i] + 5)
			return (int)i;
	return -1;
}

int gt_scan_some(struct gt_scan *scan, const uint64_t *addresses, uint32_t count, bool *reached,
		 struct gt_message *message)
{
	/* Last bytes of the opcodes of call, jmp and xbegin: 2, of jcc, which 0f goes before: 1. */
	static const uint8_t ends_opcode[256] = {
		[0x80 ... 0x8f] = 1, [0xe8] = 2, [0xe9] = 2, [0xf8] = 2
	};
	uint64_t low = UINT64_MAX, high = 0;
	uint8_t *filter;
	int hit;

	memset(reached, 0, count * sizeof(*reached));
	if (!count)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		low = addresses[i] < low ? addresses[i] : low;
		high = addresses[i] + 5 > high ? addresses[i] + 5 : high;
	}
	/* A bit for each 16 bytes: nearly all displacements are turned away by it. */
	filter = calloc(1, (high - low) / 128 + 2);
	if (filter == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory to look through the code");
	for (uint32_t i = 0; i < count; i++)
		for (uint64_t at = addresses[i] + 1; at < addresses[i] + 5; at++)
			filter[(at - low) >> 7] |= (uint8_t)(1u << ((at - low) >> 4 & 7));
	for (uint32_t i = 0; i < scan->range_count; i++) {
		const struct gt_scan_range *range = &scan->ranges[i];
		const uint64_t bytes = range->end - range->start;

		for (uint64_t o = 1; o + 4 <= bytes; o++) {
			const uint64_t base = range->start + o;
			uint64_t target;
			int32_t offset;

			if (ends_opcode[range->code[o - 1]] <=
			    (o < 2 || range->code[o - 2] != 0x0f))
				continue;
			memcpy(&offset, range->code + o, 4);
			target = base + 4 + (uint64_t)(int64_t)offset;
			if (target - low >= high - low ||
			    !(filter[(target - low) >> 7] >> ((target - low) >> 4 & 7) & 1))
				continue;
			hit = inside_of(addresses, count, target);
			if (hit >= 0 && !reached[hit] && is_branch(scan, base, target))
				reached[hit] = true;
		}
	}
	free(filter);
	for (uint32_t i = 0; i < count; i++)
		for (uint64_t at = addresses[i] > 130 ? addresses[i] - 130 : 0;
		     at < addresses[i] + 135; at++) {
			uint64_t room, target;
			const uint8_t *code = gt_scan_code(scan, at, &room);

			if (code == NULL || room < 2 ||
			    !((code[0] & 0xf0) == 0x70 || code[0] == 0xeb ||
			      (code[0] & 0xfc) == 0xe0))
				continue;
			target = at + 2 + (uint64_t)(int64_t)(int8_t)code[1];
			if (target > addresses[i] && target < addresses[i] + 5 && !reached[i])
				reached[i] = is_branch(scan, at, target);
		}
	return 0;
}
