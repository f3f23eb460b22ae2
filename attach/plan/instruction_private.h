/* SPDX-License-Identifier: MIT */
/*
 * The two decoders behind gt_instruction_decode(): a table for common instructions
 * (instruction_common.c), and Zydis for all (instruction.c).
 */
#ifndef GT_ATTACH_INSTRUCTION_PRIVATE_H
#define GT_ATTACH_INSTRUCTION_PRIVATE_H

#include "attach/plan/instruction.h"

#define GT_INSTRUCTION_BYTES_MAX \
	16 /* what must be readable for the table: one more than needed \
	    */

/* false: not an instruction of the table, or fewer than GT_INSTRUCTION_BYTES_MAX bytes of room. */
bool gt_instruction_decode_common(const uint8_t *code, size_t room, uint64_t address,
				  struct gt_instruction *instruction);
bool gt_instruction_decode_any(const uint8_t *code, size_t room, uint64_t address,
			       struct gt_instruction *instruction);

/* The same for gt_instruction_stack(), for instructions that have `stack` set. */
bool gt_instruction_stack_common(const uint8_t *code, size_t room, struct gt_stack_effect *effect);
void gt_instruction_stack_any(const uint8_t *code, size_t room, struct gt_stack_effect *effect);

#endif
