/* SPDX-License-Identifier: MIT */
/*
 * The instructions that programs and kernels are mostly made of, decoded by table: fifteen times as fast as
 * Zydis, which looks at everything else in programs. What is decoded here is exactly what Zydis says (a test
 * compares them at every byte of large programs); in doubt this says "no".
 *
 * All opcodes, forms and lengths: Intel's manual, volume 2, appendix A.
 */
#include "arch/x86_64/code/instruction.h"

#include <stddef.h>

/* What an opcode is made of. 0: not decoded here. */
enum shape {
	VALID = 1,
	MODRM = 2,
	IMM8 = 4,
	IMMZ = 8,	   /* 4 bytes, 2 with an operand-size prefix */
	IMMV = 16,	   /* 4 bytes, 2 with that prefix, 8 with REX.W */
	REL8 = 32,	   /* a branch */
	REL32 = 64,	   /* a branch */
	STACK = 128,	   /* always touches the stack pointer */
	STACK_MODRM = 256, /* if one of its operands is it */
	MEMORY = 512,	   /* the operand must be memory */
	PLAIN = 1024,	   /* no operand-size prefix */
	GROUP = 2048,	   /* ModRM's reg is a part of the opcode: special_group() */
	/* Mandatory prefixes that may stand before it; without any of these bits: none or 66. */
	P_NONE = 4096,
	P_66 = 8192,
	P_F3 = 16384,
	P_F2 = 32768,
};
#define P_ANY (P_NONE | P_66 | P_F3 | P_F2)
#define RM    (VALID | MODRM)

#define ARITHMETIC(base, stack)                                                      \
	[base] = RM | (stack), [base + 1] = RM | (stack), [base + 2] = RM | (stack), \
	[base + 3] = RM | (stack), [base + 4] = VALID | IMM8, [base + 5] = VALID | IMMZ

static const uint16_t one_byte[256] = {
	ARITHMETIC(0x00, STACK_MODRM), /* add */
	ARITHMETIC(0x08, STACK_MODRM), /* or */
	ARITHMETIC(0x10, 0),	       /* adc */
	ARITHMETIC(0x18, 0),	       /* sbb */
	ARITHMETIC(0x20, STACK_MODRM), /* and */
	ARITHMETIC(0x28, STACK_MODRM), /* sub */
	ARITHMETIC(0x30, 0),	       /* xor */
	ARITHMETIC(0x38, 0),	       /* cmp */
	[0x50 ... 0x5f] = VALID | STACK,
	[0x63] = RM, /* movsxd */
	[0x68] = VALID | IMMZ | STACK,
	[0x69] = RM | IMMZ,
	[0x6a] = VALID | IMM8 | STACK,
	[0x6b] = RM | IMM8,
	[0x70 ... 0x7f] = VALID | REL8 | PLAIN,
	[0x80] = RM | IMM8 | GROUP,
	[0x81] = RM | IMMZ | GROUP,
	[0x83] = RM | IMM8 | GROUP,
	[0x84 ... 0x85] = RM,
	[0x86 ... 0x8b] = RM | STACK_MODRM,
	[0x8d] = RM | STACK_MODRM | MEMORY,
	[0x90] = VALID | P_NONE | P_66 | P_F3, /* nop, pause */
	[0x98 ... 0x99] = VALID,
	[0x9c ... 0x9d] = VALID | PLAIN | STACK,	/* pushf, popf */
	[0xa4 ... 0xa5] = VALID | P_NONE | P_66 | P_F3, /* movs */
	[0xa8] = VALID | IMM8,
	[0xa9] = VALID | IMMZ,
	[0xaa ... 0xab] = VALID | P_NONE | P_66 | P_F3, /* stos */
	[0xb0 ... 0xb7] = VALID | IMM8,
	[0xb8 ... 0xbf] = VALID | IMMV,
	[0xc0 ... 0xc1] = RM | IMM8 | GROUP,
	[0xc3] = VALID | PLAIN,
	[0xc6] = RM | IMM8 | GROUP,
	[0xc7] = RM | IMMZ | GROUP,
	[0xc9] = VALID | PLAIN | STACK,
	[0xcc] = VALID | PLAIN,
	[0xd0 ... 0xd3] = RM | GROUP,
	[0xe4 ... 0xe7] = VALID | IMM8, /* in, out */
	[0xe8 ... 0xe9] = VALID | REL32 | PLAIN,
	[0xeb] = VALID | REL8 | PLAIN,
	[0xec ... 0xef] = VALID,
	[0xf4] = VALID | PLAIN,
	[0xf5] = VALID | PLAIN, /* cmc */
	[0xf6 ... 0xf7] = RM | GROUP,
	[0xf8 ... 0xfd] = VALID | PLAIN, /* clc, stc, cli, sti, cld, std */
	[0xfe ... 0xff] = RM | GROUP,
};

static const uint16_t two_bytes[256] = {
	[0x01] = RM | PLAIN | GROUP, /* lidt, invlpg, swapgs … */
	[0x0b] = VALID | PLAIN,	     /* ud2 */
	[0x10 ... 0x11] = RM | P_ANY,
	[0x1f] = RM, /* nop */
	[0x28 ... 0x29] = RM | P_NONE | P_66,
	[0x2e ... 0x2f] = RM | P_NONE | P_66,
	[0x30 ... 0x32] = VALID | PLAIN, /* wrmsr, rdtsc, rdmsr */
	[0x40 ... 0x43] = RM,
	[0x44 ... 0x45] = RM | STACK_MODRM, /* cmovz, cmovnz */
	[0x46 ... 0x4f] = RM,
	[0x51] = RM | P_ANY,
	[0x54 ... 0x57] = RM | P_NONE | P_66,
	[0x58 ... 0x59] = RM | P_ANY,
	[0x5a] = RM | P_ANY,
	[0x5c ... 0x5f] = RM | P_ANY,
	[0x6e] = RM | P_NONE | P_66,
	[0x6f] = RM | P_NONE | P_66 | P_F3,
	[0x7f] = RM | P_NONE | P_66 | P_F3,
	[0x7e] = RM | P_NONE | P_66 | P_F3,
	[0x80 ... 0x8f] = VALID | REL32 | PLAIN,
	[0x90 ... 0x9f] = RM,
	[0xa2] = VALID | PLAIN, /* cpuid */
	[0xa3] = RM,
	[0xa4] = RM | IMM8, /* shld */
	[0xa5] = RM,
	[0xab] = RM,	    /* bts */
	[0xac] = RM | IMM8, /* shrd */
	[0xad] = RM,
	[0xae] = RM | PLAIN | GROUP, /* fences */
	[0xaf] = RM,
	[0xb0 ... 0xb1] = RM, /* cmpxchg */
	[0xb3] = RM,	      /* btr */
	[0xb6 ... 0xb7] = RM,
	[0xba] = RM | IMM8 | GROUP,
	[0xbb] = RM,				     /* btc */
	[0xbc ... 0xbd] = RM | P_NONE | P_66 | P_F3, /* bsf, bsr, tzcnt, lzcnt */
	[0xbe ... 0xbf] = RM,
	[0xc0 ... 0xc1] = RM, /* xadd */
	[0xc8 ... 0xcf] = VALID | PLAIN,
	[0xef] = RM | P_NONE | P_66,
};

/* Opcodes that share a byte. Returns the shape for this ModRM, 0: not here. */
static uint32_t special_group(uint8_t opcode, uint8_t modrm, uint32_t shape, bool wide,
			      uint8_t *kind)
{
	const uint8_t which = modrm >> 3 & 7;

	switch (opcode) {
	case 0x80:
	case 0x81:
	case 0x83: /* add, or, and, sub touch it */
		return which == 0 || which == 1 || which == 4 || which == 5 ? shape | STACK_MODRM
									    : shape;
	case 0xc0:
	case 0xc1:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
		return which == 6 ? 0 : shape;
	case 0xc6:
	case 0xc7:
		return which == 0 ? shape | STACK_MODRM : 0;
	case 0xf6:
		return which == 0 ? shape | IMM8 : which == 1 ? 0 : shape;
	case 0xf7:
		return which == 0 ? shape | IMMZ : which == 1 ? 0 : shape;
	case 0x01: /* in memory; swapgs */
		return modrm == 0xf8 || (modrm < 0xc0 && (which <= 3 || which == 7)) ? shape : 0;
	case 0xae: /* lfence, mfence, sfence */
		return modrm == 0xe8 || modrm == 0xf0 || modrm == 0xf8 ? shape : 0;
	case 0xba: /* bt, bts, btr, btc */
		return which >= 4 ? shape : 0;
	case 0xfe:
		return which <= 1 ? shape : 0;
	case 0xff:
		if (which <= 1)
			return shape;
		if (wide)
			return 0;
		*kind = which == 2   ? GT_INSTRUCTION_CALL_INDIRECT
			: which == 4 ? GT_INSTRUCTION_JMP_INDIRECT
				     : GT_INSTRUCTION_OTHER;
		return which == 2 || which == 4 ? shape : which == 6 ? shape | STACK : 0;
	default:
		return 0;
	}
}

static uint8_t kind_of(uint8_t opcode, bool two)
{
	if (two)
		return opcode == 0x1f	      ? GT_INSTRUCTION_NOP
		       : opcode == 0x0b	      ? GT_INSTRUCTION_TRAP
		       : (opcode >> 4) == 0x8 ? GT_INSTRUCTION_JCC
					      : GT_INSTRUCTION_OTHER;
	switch (opcode) {
	case 0xe8:
		return GT_INSTRUCTION_CALL;
	case 0xe9:
	case 0xeb:
		return GT_INSTRUCTION_JMP;
	case 0x90:
		return GT_INSTRUCTION_NOP;
	case 0xc3:
		return GT_INSTRUCTION_RET;
	case 0xcc:
		return GT_INSTRUCTION_INT3;
	case 0xf4:
		return GT_INSTRUCTION_TRAP;
	default:
		return (opcode >> 4) == 7 ? GT_INSTRUCTION_JCC : GT_INSTRUCTION_OTHER;
	}
}

/* The prefix that makes it one step for other CPUs: the operand is memory, and the instruction changes it. */
static bool may_be_locked(uint8_t opcode, bool two, uint8_t modrm)
{
	const uint8_t which = modrm >> 3 & 7;

	if (two)
		return opcode == 0xab || opcode == 0xb0 || opcode == 0xb1 || opcode == 0xb3 ||
		       opcode == 0xbb || opcode == 0xc0 || opcode == 0xc1 ||
		       (opcode == 0xba && which >= 5);
	switch (opcode) {
	case 0x80:
	case 0x81:
	case 0x83:
		return which != 7;
	case 0x86:
	case 0x87:
		return true;
	case 0xf6:
	case 0xf7:
		return which == 2 || which == 3;
	case 0xfe:
	case 0xff:
		return which <= 1;
	default:
		return opcode < 0x38 && (opcode & 7) <= 1;
	}
}

bool gt_instruction_decode_common(const uint8_t *code, size_t room, uint64_t address,
				  struct gt_instruction *instruction)
{
	uint32_t at = 0, shape, mandatory = P_NONE, immediate = 0;
	uint8_t rex = 0, opcode, modrm = 0, kind;
	bool size16 = false, two = false, segment = false, lock = false;

	/* The longest form that is decoded here, so that no byte needs a check of its own. */
	if (room < GT_INSTRUCTION_BYTES_MAX)
		return false;
	while (code[at] == 0x66 || code[at] == 0x2e || code[at] == 0x64 || code[at] == 0x65 ||
	       code[at] == 0xf0) {
		size16 = size16 || code[at] == 0x66;
		segment = segment || code[at] == 0x64 || code[at] == 0x65;
		lock = lock || code[at] == 0xf0;
		if (++at > 4)
			return false;
	}
	if (code[at] == 0xf3 || code[at] == 0xf2) {
		if (at)
			return false;
		mandatory = code[at] == 0xf3 ? P_F3 : P_F2;
		at++;
	} else if (size16) {
		mandatory = P_66;
	}
	if ((code[at] & 0xf0) == 0x40)
		rex = code[at++];
	opcode = code[at++];
	if (opcode == 0x0f) {
		two = true;
		opcode = code[at++];
		shape = two_bytes[opcode];
	} else {
		shape = one_byte[opcode];
	}
	if (!shape || (shape & PLAIN && size16) ||
	    (shape & P_ANY ? !(shape & mandatory) : mandatory & (P_F3 | P_F2)))
		return false;
	kind = kind_of(opcode, two);
	if (!two && opcode == 0x90) {
		if (rex) /* perhaps xchg */
			return false;
		kind = mandatory == P_F3 ? GT_INSTRUCTION_OTHER : kind;
	}
	if ((segment || lock) && !(shape & MODRM))
		return false;
	if (shape & MODRM) {
		modrm = code[at];
		if (shape & GROUP)
			shape = special_group(opcode, modrm, shape, size16, &kind);
		if (!shape || (shape & MEMORY && modrm >= 0xc0) ||
		    (lock && (modrm >= 0xc0 || !may_be_locked(opcode, two, modrm))))
			return false;
		at++;
	}
	*instruction = (struct gt_instruction){ 0 };
	instruction->kind = kind;
	instruction->base = 0xff;
	instruction->reg = (uint8_t)((modrm >> 3 & 7) | (rex & 4) << 1);
	instruction->is_lea = !two && opcode == 0x8d;
	instruction->stack = shape & STACK || (shape & STACK_MODRM &&
					       ((modrm & 0x38) == 0x20 || (modrm & 0xc7) == 0xc4));
	if (shape & MODRM && modrm < 0xc0) {
		const uint8_t mod = modrm >> 6, rm = modrm & 7;
		const uint8_t extend = (uint8_t)((rex & 1) << 3);
		uint32_t bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;

		instruction->memory = true;
		if (rm == 4) {
			const uint8_t sib = code[at++];

			instruction->indexed = (sib & 0x38) != 0x20 || rex & 2;
			if (mod != 0 || (sib & 7) != 5)
				instruction->base = (uint8_t)((sib & 7) | extend);
			else
				bytes = 4;
		} else if (mod == 0 && rm == 5) {
			instruction->rip_offset = (uint8_t)at;
			bytes = 4;
		} else {
			instruction->base = (uint8_t)(rm | extend);
		}
		if (bytes == 4)
			__builtin_memcpy(&instruction->displacement, code + at, 4);
		else if (bytes == 1)
			instruction->displacement = (int8_t)code[at];
		at += bytes;
	}
	if (shape & IMM8)
		immediate = 1;
	else if (shape & IMMZ)
		immediate = size16 && !(rex & 8) ? 2 : 4;
	else if (shape & IMMV)
		immediate = rex & 8 ? 8 : size16 ? 2 : 4;
	else if (shape & (REL8 | REL32))
		immediate = shape & REL8 ? 1 : 4;
	if (shape & (REL8 | REL32)) {
		int32_t offset = (int8_t)code[at];

		if (shape & REL32)
			__builtin_memcpy(&offset, code + at, 4);
		instruction->target_offset = (uint8_t)at;
		instruction->target_bytes = (uint8_t)immediate;
		instruction->target = address + at + immediate + (uint64_t)(int64_t)offset;
	} else if (immediate >= 4) {
		instruction->immediate_offset = (uint8_t)at;
		instruction->immediate_bytes = (uint8_t)immediate;
	}
	at += immediate;
	if (at >= GT_INSTRUCTION_BYTES_MAX)
		return false;
	instruction->bytes = (uint8_t)at;
	if (instruction->rip_offset)
		instruction->rip_target =
			address + at + (uint64_t)(int64_t)instruction->displacement;
	return true;
}

bool gt_instruction_ends(const struct gt_instruction *instruction)
{
	switch (instruction->kind) {
	case GT_INSTRUCTION_JMP:
	case GT_INSTRUCTION_JMP_INDIRECT:
	case GT_INSTRUCTION_RET:
	case GT_INSTRUCTION_TRAP:
		return true;
	default:
		return false;
	}
}
