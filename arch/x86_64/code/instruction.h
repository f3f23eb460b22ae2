/* SPDX-License-Identifier: MIT */
/*
 * One x86-64 instruction, as far as patching needs it: how long it is, where it may go, and which
 * of its bytes depend on where it stands. Pure functions, from anywhere; freestanding.
 */
#ifndef GT_ARCH_CODE_INSTRUCTION_H
#define GT_ARCH_CODE_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_instruction_kind {
	GT_INSTRUCTION_OTHER = 0,
	GT_INSTRUCTION_CALL,	      /* relative */
	GT_INSTRUCTION_CALL_INDIRECT, /* register or memory */
	GT_INSTRUCTION_JMP,	      /* relative */
	GT_INSTRUCTION_JMP_INDIRECT,
	GT_INSTRUCTION_JCC,  /* conditional, relative */
	GT_INSTRUCTION_LOOP, /* loop, loope, loopne, jrcxz, jecxz: 8-bit only */
	GT_INSTRUCTION_XBEGIN,
	GT_INSTRUCTION_RET,
	GT_INSTRUCTION_TRAP, /* ud2, hlt: does not go on */
	GT_INSTRUCTION_NOP,
	GT_INSTRUCTION_INT3,
	GT_INSTRUCTION_ENDBR64,
};

#define GT_INSTRUCTION_FAR 0xffffu

struct gt_instruction {
	uint8_t bytes;
	uint8_t kind;		  /* enum gt_instruction_kind */
	uint8_t target_offset;	  /* of the relative branch's displacement in the instruction */
	uint8_t target_bytes;	  /* 1, 2 or 4; 0: no relative branch */
	uint8_t rip_offset;	  /* of the 32-bit displacement from rip, 0: no such operand */
	uint8_t immediate_offset; /* of an immediate of 4 or 8 bytes, which could be an address; 0:
				     none */
	uint8_t immediate_bytes;
	bool is_lea;
	bool stack;   /* may change rsp, or copy it: ask gt_instruction_stack() */
	bool memory;  /* a ModRM operand that is memory */
	uint8_t base; /* its base register (number, 4 = rsp, 5 = rbp), 0xff: none, or not plain */
	uint8_t reg;  /* the other operand of the ModRM byte: a register's number (or an opcode's
			 part) */
	bool indexed; /* with an index register too */
	/* GT_INSTRUCTION_RET: bytes that it takes off the stack besides the return address, or
	 * GT_INSTRUCTION_FAR: lret and iret, which find more than a return address there */
	uint16_t takes;
	int32_t displacement;
	uint64_t target;     /* of the relative branch */
	uint64_t rip_target; /* that the operand names */
};

#define GT_INSTRUCTION_BYTES_MAX 16 /* what must be readable for the table: one more than needed */

/* Decodes what stands at `address`, by a table of what is common. false: not an instruction of the table, or fewer than
 * GT_INSTRUCTION_BYTES_MAX bytes of room. */
bool gt_instruction_decode_common(const uint8_t *code, size_t room, uint64_t address,
				  struct gt_instruction *instruction);

/* Whether what follows the instruction in memory is never reached from it. */
bool gt_instruction_ends(const struct gt_instruction *instruction);

#endif
