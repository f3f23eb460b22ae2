/* SPDX-License-Identifier: MIT */
/*
 * Emits instructions for another place than the one they were made for. Nothing here may touch a register, a flag or
 * memory below the stack pointer that the instruction itself would not have touched. Pure functions, from anywhere;
 * freestanding.
 */
#ifndef GT_ARCH_CODE_MOVE_H
#define GT_ARCH_CODE_MOVE_H

#include <stddef.h>
#include <stdint.h>
#include "arch/x86_64/code/instruction.h"

/* Code that is being made. */
struct gt_code {
	uint8_t *bytes;
	size_t room;
	size_t used;
	uint64_t address; /* of bytes[0], at run time */
	int error; /* the first one: GT_EINVAL, no room; GT_ENOTSUP, too far, or an instruction that cannot be moved */
};

/* Appends bytes. */
void gt_code_emit(struct gt_code *output, const void *bytes, size_t count);

/* Appends a 32-bit displacement from the byte behind it (and `behind` more bytes) to the target. */
void gt_code_emit_displacement(struct gt_code *output, uint64_t target, uint32_t behind);

/* Appends a jump to the target. */
void gt_code_emit_jump(struct gt_code *output, uint64_t target);

/*
 * Appends what does the same as the instruction at `code`, and goes on behind it. back: the address behind the original,
 * which a call pushes; target: where a branch leads. A call is made as a push and a jump, so that it returns to `back`,
 * not to what is appended next.
 */
void gt_code_move(struct gt_code *output, const uint8_t *code,
		  const struct gt_instruction *instruction, uint64_t back, uint64_t target);

#endif
