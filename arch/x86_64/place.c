/* SPDX-License-Identifier: MIT */
/*
 * Places inside a kernel's functions (core/record/kernel_place.h): where instructions begin, and their cells as bytes.
 * Nothing is written here; the caller puts the bytes where they belong.
 */
#include "core/record/arch.h"
#include "arch/x86_64/code/instruction.h"
#include "arch/x86_64/code/move.h"

_Static_assert(GT_ARCH_CODE_BYTES >= GT_INSTRUCTION_BYTES_MAX, "what the table reads");

enum { CALL = 0xe8, STI = 0xfb };

extern const char gt_glue_event[] __attribute__((visibility("hidden"))); /* in glue.S */

uint32_t gt_arch_instruction_bytes(const uint8_t code[GT_ARCH_CODE_BYTES], uint64_t address)
{
	struct gt_instruction instruction;

	return gt_instruction_decode_common(code, GT_ARCH_CODE_BYTES, address, &instruction)
		       ? instruction.bytes
		       : 0;
}

/* Behind whatever prefixes, which say nothing here. */
static bool is_sti(const uint8_t *code)
{
	for (uint32_t at = 0; at < GT_INSTRUCTION_BYTES_MAX; at++) {
		switch (code[at]) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x40 ... 0x4f:
		case 0x64 ... 0x67:
		case 0xf2:
		case 0xf3:
			break;
		default:
			return code[at] == STI;
		}
	}
	return false;
}

/* Traps of the kernel's own, and what waits for an interrupt, are known by their addresses. Behind sti no interrupt comes
 * before the next instruction is done, which has to stand there: sti; hlt. */
static bool may_move(const struct gt_instruction *instruction, const uint8_t *code)
{
	return instruction->kind != GT_INSTRUCTION_INT3 &&
	       instruction->kind != GT_INSTRUCTION_TRAP &&
	       instruction->kind != GT_INSTRUCTION_XBEGIN && !is_sti(code);
}

bool gt_arch_place_write(uint8_t bytes[GT_PLACE_BYTES], uint64_t at,
			 const uint8_t code[GT_ARCH_CODE_BYTES], uint64_t address)
{
	static const uint8_t call = CALL;
	struct gt_code cell = { .bytes = bytes, .room = GT_PLACE_BYTES, .address = at };
	struct gt_instruction instruction;

	for (int i = 0; i < GT_PLACE_BYTES; i++)
		bytes[i] = GT_ARCH_TRAP;
	if (!gt_instruction_decode_common(code, GT_ARCH_CODE_BYTES, address, &instruction) ||
	    !may_move(&instruction, code))
		return false;
	gt_code_emit(&cell, &call, 1);
	gt_code_emit_displacement(&cell, (uint64_t)gt_glue_event, 0);
	gt_code_move(&cell, code, &instruction, address + instruction.bytes, instruction.target);
	if (!gt_instruction_ends(&instruction))
		gt_code_emit_jump(&cell, address + instruction.bytes);
	return cell.error == 0;
}
