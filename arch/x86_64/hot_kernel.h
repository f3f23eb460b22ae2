/* SPDX-License-Identifier: MIT */
/*
 * The recording path of a kernel: what hot.S, which says what each name means, leaves to it. For assembly.
 */
#ifndef GT_ARCH_X86_64_HOT_KERNEL_H
#define GT_ARCH_X86_64_HOT_KERNEL_H

#include "arch/x86_64/leave.h"

/* clang-format off */
#define REGION(field) (gt_hot_region + (field))(%rip)
#define F(field, frame) (field)(frame)
#define TO_MIRROR(slot) add T(GT_THREAD_MIRROR), slot
/* gt_hot_entry and gt_hot_exit are those of hot_kernel.S. */
#define GENERAL_ENTRY entry_general
#define GENERAL_EXIT exit_general

/* ---- whose block, and stops: the CPU's, and gt_hot_entry has looked at stops. One that came since is met by the
 * next call. ---- */

#define CHECK_OWNER(otherwise)
	.macro CHECK_STOPS
	.endm
	.macro STOPPED_ENTRIES
entry_nop:
	LEAVE_UNTRACED
	.endm
	.macro ENTRY_INSIDE kind
	jmp gt_hot_entry
	.endm
	.macro STOPPED_ONLY
	LEAVE_CALLED
	.endm

/* ---- the stub has the function's word (hot_kernel.S, H) ---- */

	.macro FUNCTION_32 stub, register
	mov \stub(%rsp), \register
	mov (GT_STUB_WORD - GT_STUB_RETURN)(\register), \register
	shr $28, \register
	.endm
	.macro FUNCTION_WORD stub
	mov \stub(%rsp), %rdx
	mov (GT_STUB_WORD - GT_STUB_RETURN)(%rdx), %rdx
	.endm
	.macro LEAVE_TRACED_NO_CARRY
	LEAVE_TRACED
	.endm

/* ---- return addresses: all stubs lie in one place ---- */

	/* behind where they begin? */
	.macro CHECK_STUB maybe
	cmp gt_hot_stubs(%rip), %rax
	jae \maybe
	.endm
	.macro MAYBE_STUB name
entry_maybe_stub_\name:
	mov %rax, %rdx
	sub gt_hot_stubs(%rip), %rdx
	cmp gt_hot_stubs + 8(%rip), %rdx
	jae entry_goes_on_\name
	jmp entry_slow
	.endm
	.macro CHECK_TAIL_CALL
	mov (%rcx), %rax
	sub gt_hot_stubs(%rip), %rax
	cmp gt_hot_stubs + 8(%rip), %rax
	jae entry_slow
	add gt_hot_stubs(%rip), %rax
	mov (GT_STUB_WORD - GT_STUB_RETURN)(%rax), %rax		/* the stub's word */
	xor F(GT_FRAME_WORD, %rdx), %rax
	shr $33, %rax
	jnz entry_slow
	.endm

/* ---- frames, and the gate of hot_kernel.S's lines (G, K) ---- */

	/* An interrupt that came behind the look at the mode may have opened the gate: then no return goes
	 * straight until it is set again, above this frame (K). */
	.macro FRAME_WITH_FLAGS
	movq $-1, %gs:GT_THREAD_GATE_TOP
	.endm
	.macro IF_PLAIN frame, there
	cmp T(GT_THREAD_GATE_TOP), \frame	/* K */
	ja \there
	.endm
	/* The context's first frame is a sentinel. */
	.macro FRAME_DEPTH
	sub GT_CONTEXT_FRAMES(%rdx), %rsi
	shr $GT_FRAME_SHIFT, %rsi
	dec %rsi
	.endm
	.macro POPPED
	cmp T(GT_THREAD_GATE_TOP), %rdx
	je exit_lower_gate
exit_gate_is_lower:
	.endm
	/* The newest unplain frame is gone (K). The comparison fails if the gate was closed meanwhile, by
	 * another CPU (so it is locked), or set by an interrupt. */
	.macro LOWER_GATE
exit_lower_gate:
	mov %rdx, %rax
	lea -GT_FRAME_BYTES(%rdx), %rcx
	lock cmpxchg %rcx, T(GT_THREAD_GATE_TOP)
	jmp exit_gate_is_lower
	.endm
	.macro CLOSE_GATE
	movl $(GT_GATE_CLOSED >> 32), T(GT_THREAD_GATE + 4)
	movq $-1, T(GT_THREAD_GATE_TOP)
	.endm

/* ---- entries ---- */

	.macro MORE_ENTRIES
	.endm
	/* where stubs go (stub.c) */
	.macro HOT_NAMES
	.globl gt_hot_entry, gt_hot_entry_root, gt_hot_entry_only, gt_hot_entry_trigger, gt_hot_exit, gt_hot_end
	.hidden gt_hot_entry, gt_hot_entry_root, gt_hot_entry_only, gt_hot_exit, gt_hot_end
	.globl gt_hot_entry_notrace, gt_hot_entry_silent
	.hidden gt_hot_entry_notrace, gt_hot_entry_silent
	.endm
/* clang-format on */

#endif
