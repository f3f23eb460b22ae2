/* SPDX-License-Identifier: MIT */
/* See move.h. */
#include "arch/x86_64/code/move.h"
#include <graftrace/error.h>

static uint64_t here(const struct gt_code *output)
{
	return output->address + output->used;
}

void gt_code_emit(struct gt_code *output, const void *bytes, size_t count)
{
	if (count > output->room - output->used) {
		output->error = output->error ? output->error : GT_EINVAL;
		return;
	}
	for (size_t i = 0; i < count; i++)
		output->bytes[output->used++] = ((const uint8_t *)bytes)[i];
}

void gt_code_emit_displacement(struct gt_code *output, uint64_t target, uint32_t behind)
{
	const int64_t distance = (int64_t)(target - (here(output) + 4 + behind));
	const int32_t value = (int32_t)distance;

	if (distance != value && !output->error)
		output->error = GT_ENOTSUP;
	gt_code_emit(output, &value, 4);
}

void gt_code_emit_jump(struct gt_code *output, uint64_t target)
{
	gt_code_emit(output, "\xe9", 1);
	gt_code_emit_displacement(output, target, 0);
}

/*
 * What a call at the old place would have pushed. push has a sign-extended immediate; the upper
 * half is written behind it, also where it is the same, so that the code is as long for every
 * place. Neither touches flags.
 */
static void emit_push(struct gt_code *output, uint64_t address)
{
	const uint32_t low = (uint32_t)address, high = (uint32_t)(address >> 32);

	gt_code_emit(output, "\x68", 1);
	gt_code_emit(output, &low, 4);
	gt_code_emit(output, "\xc7\x44\x24\x04", 4); /* movl $high, 4(%rsp) */
	gt_code_emit(output, &high, 4);
}

/* The instruction as it is, but for an operand relative to rip. */
static void emit_copy(struct gt_code *output, const uint8_t *code,
		      const struct gt_instruction *instruction)
{
	const uint32_t at = instruction->rip_offset;

	if (!at) {
		gt_code_emit(output, code, instruction->bytes);
		return;
	}
	gt_code_emit(output, code, at);
	gt_code_emit_displacement(output, instruction->rip_target, instruction->bytes - at - 4u);
	gt_code_emit(output, code + at + 4, instruction->bytes - at - 4u);
}

/* call *operand becomes push $return; jmp *operand. The operand may use rsp, which push moves by 8.
 */
static void emit_indirect_call(struct gt_code *output, const uint8_t *code,
			       const struct gt_instruction *instruction, uint64_t back)
{
	uint8_t jump[16] = { 0 };
	uint32_t at = 0;

	emit_push(output, back);
	for (uint32_t i = 0; i < instruction->bytes; i++)
		jump[i] = code[i];
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
		gt_code_emit(output, jump, at + 3);
		gt_code_emit(output, &value, 4);
		return;
	}
	emit_copy(output, jump, instruction);
}

/* loop and jrcxz reach 127 bytes only: they jump over a jump. */
static void emit_loop(struct gt_code *output, const uint8_t *code,
		      const struct gt_instruction *instruction, uint64_t target)
{
	gt_code_emit(output, code, instruction->bytes - 1u);
	gt_code_emit(output, "\x02\xeb\x05", 3); /* taken: skip the next one. jmp +5 */
	gt_code_emit_jump(output, target);
}

static void emit_conditional(struct gt_code *output, const uint8_t *code,
			     const struct gt_instruction *instruction, uint64_t target)
{
	/* Both forms have the condition in the last opcode byte's low half. */
	const uint8_t opcode = code[instruction->target_offset - 1];
	const uint8_t bytes[2] = { 0x0f, (uint8_t)(0x80 | (opcode & 0x0f)) };

	gt_code_emit(output, bytes, 2);
	gt_code_emit_displacement(output, target, 0);
}

void gt_code_move(struct gt_code *output, const uint8_t *code,
		  const struct gt_instruction *instruction, uint64_t back, uint64_t target)
{
	switch (instruction->kind) {
	case GT_INSTRUCTION_CALL:
		emit_push(output, back);
		gt_code_emit_jump(output, instruction->target);
		break;
	case GT_INSTRUCTION_CALL_INDIRECT:
		emit_indirect_call(output, code, instruction, back);
		break;
	case GT_INSTRUCTION_JMP:
		gt_code_emit_jump(output, target);
		break;
	case GT_INSTRUCTION_JCC:
		emit_conditional(output, code, instruction, target);
		break;
	case GT_INSTRUCTION_LOOP:
		emit_loop(output, code, instruction, target);
		break;
	case GT_INSTRUCTION_XBEGIN:
		if (instruction->target_bytes != 4)
			output->error = GT_ENOTSUP;
		gt_code_emit(output, code, instruction->target_offset);
		gt_code_emit_displacement(output, target, 0);
		break;
	default:
		emit_copy(output, code, instruction);
		break;
	}
}
