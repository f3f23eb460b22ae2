/* SPDX-License-Identifier: MIT */
/*
 * Any x86-64 instruction, as far as patching needs it: a table for what is common, Zydis for the rest; and how it changes
 * the stack pointer. Pure functions, from any thread.
 */
#ifndef GT_ATTACH_INSTRUCTION_H
#define GT_ATTACH_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "arch/x86_64/code/instruction.h"

/* Decodes what stands at `address`. false: no instruction, or cut after `room` bytes. */
bool gt_instruction_decode(const uint8_t *code, size_t room, uint64_t address,
			   struct gt_instruction *instruction);

/* How an instruction changes the stack pointer, for following it through a function. */
struct gt_stack_effect {
	bool unknown;	     /* rsp becomes something that cannot be told */
	bool from_frame;     /* rsp = rbp + delta (leave, lea -8(%rbp),%rsp, mov %rbp,%rsp) */
	bool sets_frame;     /* mov %rsp,%rbp */
	bool loads_stack;    /* rsp = memory off the stack, or loaded_from: perhaps another stack */
	uint8_t loaded_from; /* that register's number, 0xff: memory */
	uint8_t saved_to;    /* a register's number that becomes rsp, or near it; 0xff: none */
	int32_t delta;	     /* added to rsp otherwise */
};
void gt_instruction_stack(const uint8_t *code, size_t room, struct gt_stack_effect *effect);

#endif
