/* SPDX-License-Identifier: MIT */
/*
 * Unwind data of the recording path, for assembly: where the return slot and the return address are
 * at each instruction, so that whoever interrupts it can walk through (doc/design/recording.md,
 * "Unwinding"). The assembler makes .eh_frame of it; the host copies what is said of the hot text
 * into each region (attach/agent/region_unwind.c). A kernel has none.
 *
 * The words on the stack are counted from the stub's call (or, at a return, from the slot): PUSHED 3
 * says that three more have been pushed. It is needed behind whatever does not go on (jmp, ret).
 */
#ifndef GT_ARCH_X86_64_UNWIND_H
#define GT_ARCH_X86_64_UNWIND_H

/* clang-format off */
#ifdef GT_KERNEL
	.macro STACK_PUSH register
	push \register
	.endm
	.macro STACK_POP register
	pop \register
	.endm
	.macro PUSHED words
	.endm
	.macro PUSHED_MORE bytes
	.endm
	.macro ENTRY_RULES words
	.endm
	.macro EXIT_RULES words
	.endm
	.macro NO_RULES
	.endm
	.macro RULES_BY_FRAME rbp=0, rbx=-1
	.endm
	.macro RULES_BY_STACK
	.endm
	.macro RULES_FRAME_RESTORED
	.endm
#else
	.set gt_rules_open, 0

	.macro STACK_PUSH register
	push \register
	.cfi_adjust_cfa_offset 8
	.endm
	.macro STACK_POP register
	pop \register
	.cfi_adjust_cfa_offset -8
	.endm
	.macro PUSHED words
	.cfi_def_cfa_offset 8 + 8 * \words
	.endm
	.macro PUSHED_MORE bytes
	.cfi_adjust_cfa_offset \bytes
	.endm
	.macro NO_RULES
	.if gt_rules_open
	.cfi_endproc
	.endif
	.set gt_rules_open, 0
	.endm
	/* Called by a stub. */
	.macro ENTRY_RULES words
	NO_RULES
	.set gt_rules_open, 1
	.cfi_startproc
	.if \words
	PUSHED \words
	.endif
	.endm
	/* Jumped to in the place of a return: the return address is in the slot's mirror,
	 * CFA - 8 XOR GRAFTRACE_MIRROR. */
	.macro EXIT_RULES words
	ENTRY_RULES \words
	.cfi_escape 0x10, 16, 12, 0x38, 0x1c, 0x0e, 0, 0x80, 0, 0, 0, 0x40, 0, 0, 0x27
	.endm
	/* rbp has just become the stack pointer; the caller's is saved so far above it, and rbx too
	 * if it is given. */
	.macro RULES_BY_FRAME rbp=0, rbx=-1
	.cfi_rel_offset %rbp, \rbp
	.if \rbx >= 0
	.cfi_rel_offset %rbx, \rbx
	.endif
	.cfi_def_cfa_register %rbp
	.endm
	/* The stack pointer is what it was then. */
	.macro RULES_BY_STACK
	.cfi_def_cfa_register %rsp
	.endm
	/* rbx and rbp have been popped. */
	.macro RULES_FRAME_RESTORED
	.cfi_restore %rbx
	.cfi_restore %rbp
	.endm
#endif
/* clang-format on */

#endif
