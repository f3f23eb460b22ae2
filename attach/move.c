/* SPDX-License-Identifier: MIT */
/*
 * Emits instructions for another place than the one they were made for, and the small jumps that a
 * patch consists of. Nothing here may touch a register, a flag or memory below the stack pointer
 * that the instruction itself would not have touched.
 */
#include "attach/plan.h"
#include "attach/instruction.h"

#include <string.h>

struct output {
	uint8_t *bytes;
	size_t room;
	size_t used;
	uint64_t address; /* of bytes[0] */
	int error;
};

static uint64_t here(const struct output *output)
{
	return output->address + output->used;
}

static void emit(struct output *output, const void *bytes, size_t count)
{
	if (count > output->room - output->used) {
		output->error = output->error ? output->error : GT_EINVAL;
		return;
	}
	memcpy(output->bytes + output->used, bytes, count);
	output->used += count;
}

/* A 32-bit displacement from the byte behind it (and `behind` more bytes) to the target. */
static void emit_displacement(struct output *output, uint64_t target, uint32_t behind)
{
	const int64_t distance = (int64_t)(target - (here(output) + 4 + behind));
	const int32_t value = (int32_t)distance;

	if (distance != value && !output->error)
		output->error = GT_ENOTSUP;
	emit(output, &value, 4);
}

static void emit_jump(struct output *output, uint64_t target)
{
	emit(output, "\xe9", 1);
	emit_displacement(output, target, 0);
}

/*
 * What a call at the old place would have pushed. push has a sign-extended immediate; the upper
 * half is written behind it where it differs. Neither touches flags.
 */
static void emit_push(struct output *output, uint64_t address)
{
	const uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);

	emit(output, "\x68", 1);
	emit(output, &low, 4);
	if (high != (low & 0x80000000u ? 0xffffffffu : 0)) {
		emit(output, "\xc7\x44\x24\x04", 4); /* movl $high, 4(%rsp) */
		emit(output, &high, 4);
	}
}

/* The instruction as it is, but for an operand relative to rip. */
static void emit_copy(struct output *output, const uint8_t *code,
		      const struct gt_instruction *instruction)
{
	const uint32_t at = instruction->rip_offset;

	if (!at) {
		emit(output, code, instruction->bytes);
		return;
	}
	emit(output, code, at);
	emit_displacement(output, instruction->rip_target, instruction->bytes - at - 4u);
	emit(output, code + at + 4, instruction->bytes - at - 4u);
}

/* call *operand becomes push $return; jmp *operand. The operand may use rsp, which push moves by 8.
 */
static void emit_indirect_call(struct output *output, const uint8_t *code,
			       const struct gt_instruction *instruction, uint64_t back)
{
	uint8_t jump[16];
	uint32_t at = 0;

	emit_push(output, back);
	memcpy(jump, code, instruction->bytes);
	while (at + 2u < instruction->bytes && jump[at] != 0xff)
		at++;
	if (jump[at] != 0xff || (jump[at + 1] >> 3 & 7) != 2 ||
	    (!instruction->memory && (jump[at + 1] & 7) == 4 &&
	     !(at && jump[at - 1] & 1 && (jump[at - 1] & 0xf0) == 0x40))) {
		output->error = GT_ENOTSUP; /* a far call, or call *%rsp */
		return;
	}
	jump[at + 1] = (uint8_t)((jump[at + 1] & ~0x38) | 0x20); /* /2 call -> /4 jmp */
	if (instruction->memory && instruction->base == 4) {
		const int64_t displacement = (int64_t)instruction->displacement + 8;
		const int32_t value = (int32_t)displacement;

		/* modrm, sib, then always a 32-bit displacement */
		if (value != displacement) {
			output->error = GT_ENOTSUP;
			return;
		}
		jump[at + 1] = (uint8_t)((jump[at + 1] & 0x3f) | 0x80);
		emit(output, jump, at + 3);
		emit(output, &value, 4);
		return;
	}
	emit_copy(output, jump, instruction);
}

/* loop and jrcxz reach 127 bytes only: they jump over a jump. */
static void emit_loop(struct output *output, const uint8_t *code,
		      const struct gt_instruction *instruction, uint64_t target)
{
	emit(output, code, instruction->bytes - 1u);
	emit(output, "\x02\xeb\x05", 3); /* taken: skip the next one. jmp +5 */
	emit_jump(output, target);
}

static void emit_conditional(struct output *output, const uint8_t *code,
			     const struct gt_instruction *instruction, uint64_t target)
{
	/* Both forms have the condition in the last opcode byte's low half. */
	const uint8_t opcode = code[instruction->target_offset - 1];
	const uint8_t bytes[2] = { 0x0f, (uint8_t)(0x80 | (opcode & 0x0f)) };

	emit(output, bytes, 2);
	emit_displacement(output, target, 0);
}

int gt_plan_move(const struct gt_plan_entry *entry, uint64_t code, uint64_t moved, uint8_t *out,
		 size_t size, struct gt_plan_map *map)
{
	struct output output = { .bytes = out, .room = size, .address = moved };
	struct gt_instruction instruction;
	const uint64_t start = code - (entry->patch_address - entry->address);
	uint32_t at = 0;
	bool ends = false;

	if (entry->way != GT_PLAN_MOVED && entry->way != GT_PLAN_PADDING &&
	    entry->way != GT_PLAN_SHORT)
		return GT_EINVAL;
	if (map)
		memset(map->offset, 0xff, sizeof(map->offset));
	/* What follows an instruction that does not go on is padding, or dead. */
	while (at < entry->covered_bytes && !ends && !output.error) {
		const uint8_t *from = entry->original + at;
		uint64_t target;

		if (!gt_instruction_decode(from, entry->covered_bytes - at, code + at,
					   &instruction))
			return GT_EINVAL;
		if (map)
			map->offset[at] = (int16_t)output.used;
		target = instruction.target;
		/* Back to its own start is a loop, not a call. */
		if (target == code || target == start)
			target = moved;
		ends = gt_instruction_ends(&instruction);
		if (entry->neutral == at + 1) {
			at += instruction.bytes;
			continue;
		}
		switch (instruction.kind) {
		case GT_INSTRUCTION_CALL:
			emit_push(&output, code + at + instruction.bytes);
			emit_jump(&output, instruction.target);
			break;
		case GT_INSTRUCTION_CALL_INDIRECT:
			emit_indirect_call(&output, from, &instruction,
					   code + at + instruction.bytes);
			break;
		case GT_INSTRUCTION_JMP:
			emit_jump(&output, target);
			break;
		case GT_INSTRUCTION_JCC:
			emit_conditional(&output, from, &instruction, target);
			break;
		case GT_INSTRUCTION_LOOP:
			emit_loop(&output, from, &instruction, target);
			break;
		case GT_INSTRUCTION_XBEGIN:
			if (instruction.target_bytes != 4)
				return GT_ENOTSUP;
			emit(&output, from, instruction.target_offset);
			emit_displacement(&output, target, 0);
			break;
		default:
			emit_copy(&output, from, &instruction);
			break;
		}
		at += instruction.bytes;
	}
	if (map)
		map->offset[entry->covered_bytes] = (int16_t)output.used;
	if (!ends)
		emit_jump(&output, code + entry->covered_bytes);
	if (map)
		map->bytes = (uint16_t)output.used;
	return output.error ? output.error : (int)output.used;
}

int gt_plan_extra_bytes(const struct gt_plan_extra *extra, uint64_t bias, uint64_t stub,
			uint64_t moved, uint8_t *out)
{
	struct output output = { .bytes = out, .room = 8, .address = extra->address + bias };

	switch (extra->kind) {
	case GT_EXTRA_BYTES:
		memcpy(out, extra->replacement, extra->bytes);
		return 0;
	case GT_EXTRA_BRANCH:
		emit(&output, extra->replacement, extra->bytes - 4u);
		emit_displacement(&output, moved, 0);
		return output.error;
	case GT_EXTRA_JUMP:
		emit_jump(&output, moved);
		return output.error;
	case GT_EXTRA_STUB:
		emit_jump(&output, stub);
		return output.error;
	default:
		return GT_EINVAL;
	}
}

int gt_plan_jump(const struct gt_plan *plan, const struct gt_plan_entry *entry, uint64_t bias,
		 uint64_t stub, uint8_t *out)
{
	struct output output = { .bytes = out, .room = 5, .address = entry->patch_address + bias };
	uint32_t i;

	if (entry->way == GT_PLAN_NONE)
		return GT_EINVAL;
	if (entry->way != GT_PLAN_SHORT) {
		emit_jump(&output, stub);
		return output.error;
	}
	for (i = 0; i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, i);

		if (extra && extra->kind == GT_EXTRA_STUB) {
			out[0] = 0xeb;
			out[1] = (uint8_t)(extra->address - (entry->patch_address + 2));
			return 0;
		}
	}
	return GT_EINVAL;
}
