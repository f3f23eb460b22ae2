/* SPDX-License-Identifier: MIT */
/*
 * What is behind gt_instruction_decode() and gt_instruction_stack(): tables for common instructions
 * (arch/x86_64/code/instruction.h, instruction_stack.c), and Zydis for all (instruction.c).
 */
#ifndef GT_ATTACH_INSTRUCTION_PRIVATE_H
#define GT_ATTACH_INSTRUCTION_PRIVATE_H

#include "attach/plan/instruction.h"

bool gt_instruction_decode_any(const uint8_t *code, size_t room, uint64_t address,
			       struct gt_instruction *instruction);

/* The same for gt_instruction_stack(), for instructions that have `stack` set. */
bool gt_instruction_stack_common(const uint8_t *code, size_t room, struct gt_stack_effect *effect);
void gt_instruction_stack_any(const uint8_t *code, size_t room, struct gt_stack_effect *effect);

#endif
