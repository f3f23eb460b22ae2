/* SPDX-License-Identifier: MIT */
/*
 * How the instructions that programs are mostly made of change the stack pointer: exactly what Zydis says of them; in
 * doubt this says "no".
 */
#include "attach/plan/instruction_private.h"

#include <string.h>

bool gt_instruction_stack_common(const uint8_t *code, size_t room, struct gt_stack_effect *effect)
{
	uint8_t rex = 0, opcode, modrm;
	uint32_t at = 0;
	int32_t value;

	if (room < GT_INSTRUCTION_BYTES_MAX)
		return false;
	if ((code[at] & 0xf0) == 0x40)
		rex = code[at++];
	opcode = code[at];
	modrm = code[at + 1];
	memset(effect, 0, sizeof(*effect));
	effect->loaded_from = 0xff;
	effect->saved_to = 0xff;
	switch (opcode) {
	case 0x50 ... 0x57:
	case 0x68:
	case 0x6a:
		effect->delta = -8;
		return true;
	case 0x58 ... 0x5f:
		effect->delta = 8;
		return opcode != 0x5c || rex & 1; /* not pop %rsp */
	case 0xc9:
		effect->from_frame = true;
		effect->delta = 8;
		return true;
	case 0x81:
	case 0x83:
		/* add and sub of a constant to rsp itself */
		if (!(rex & 8) || rex & 1 || (modrm != 0xc4 && modrm != 0xec))
			break;
		value = (int8_t)code[at + 2];
		if (opcode == 0x81)
			memcpy(&value, code + at + 2, 4);
		effect->delta = modrm == 0xec ? -value : value;
		return true;
	case 0x89:
		if (rex == 0x48 && modrm == 0xe5) { /* mov %rsp,%rbp */
			effect->saved_to = 5;
			effect->sets_frame = true;
			return true;
		}
		break;
	default:
		break;
	}
	/* What is called 4 in ModRM may be r12: plain moves and sums of that are nothing to us. */
	switch (opcode) {
	case 0x00 ... 0x03:
	case 0x08 ... 0x0b:
	case 0x20 ... 0x23:
	case 0x28 ... 0x2b:
	case 0x88 ... 0x8b:
		return ((modrm & 0x38) != 0x20 || rex & 4) && ((modrm & 0xc7) != 0xc4 || rex & 1);
	case 0x80:
	case 0x81:
	case 0x83:
	case 0xc6:
	case 0xc7:
		return (modrm & 0xc7) != 0xc4 || rex & 1;
	default:
		return false;
	}
}
