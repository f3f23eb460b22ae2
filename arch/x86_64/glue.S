/* SPDX-License-Identifier: MIT */
/*
 * The cold half's way from the recording path into C and back: saves what C may clobber (general
 * registers only: the agent's C is compiled without vector registers), aligns the stack.
 */
#include "arch/x86_64/clock.h"
#include "arch/x86_64/unwind.h"
#include "core/record/layout.h"

#ifdef GT_KERNEL
#include "arch/x86_64/leave.h"
	.section .gt_hot, "ax", @progbits	/* no switch of threads from here: gt_kernel_in_recorder */
#else
	.text
#endif
#ifdef GT_KERNEL
	/*
	 * A kernel's stacks are small: the slow half runs on one of the CPU's own, if it has one, with
	 * interrupts off. `busy` comes first: an NMI that sees it records nothing, so nothing nests here.
	 * -8(%rbp): the flags.
	 */
	.macro ENTER_SLOW_HALF
	pushf
#ifndef GT_UNPRIVILEGED
	cli
#endif
	incl %gs:GT_THREAD_BUSY
	mov %gs:GT_THREAD_SLOW_STACK, %r11
	test %r11, %r11
	cmovnz %r11, %rsp
	and $-16, %rsp
	cld
	.endm
	.macro LEAVE_SLOW_HALF
	lea -8(%rbp), %rsp
	decl %gs:GT_THREAD_BUSY
	testb $2, 1(%rsp)			/* interrupts were on */
	jz 9f
#ifndef GT_UNPRIVILEGED
	sti
#endif
9:	mov %rbp, %rsp
	.endm
#else
	.macro ENTER_SLOW_HALF
	and $-16, %rsp
	cld
	.endm
	.macro LEAVE_SLOW_HALF
	mov %rbp, %rsp
	.endm
#endif

	/* rbp, as the last of the words that are pushed, and then as what frames are found by. */
	.macro SAVE_FRAME
	STACK_PUSH %rbp
	mov %rsp, %rbp
	RULES_BY_FRAME
	.endm
	.macro RESTORE_FRAME
	RULES_BY_STACK
	STACK_POP %rbp
	RULES_FRAME_RESTORED
	.endm
	.macro SAVE_OTHERS
	STACK_PUSH %rsi
	STACK_PUSH %rdi
	STACK_PUSH %r8
	STACK_PUSH %r9
	STACK_PUSH %r10
	STACK_PUSH %r11
	.endm
	.macro RESTORE_ALL
	STACK_POP %r11
	STACK_POP %r10
	STACK_POP %r9
	STACK_POP %r8
	STACK_POP %rdi
	STACK_POP %rsi
	STACK_POP %rdx
	STACK_POP %rcx
	STACK_POP %rax
	.endm

	/*
	 * in: rax = kind, rcx = reserved place or 0, rdx = function * 32
	 * stack: 0 rdx 8 rcx 16 rax | 24 stub + 5 | 32 slot
	 */
	.globl gt_glue_entry
	.hidden gt_glue_entry
	.p2align 4
gt_glue_entry:
	ENTRY_RULES 3
	SAVE_OTHERS
	SAVE_FRAME
	lea 88(%rsp), %rdi
	mov %rdx, %rsi
	shr $5, %rsi
	mov %rcx, %rdx
	mov %eax, %ecx
	ENTER_SLOW_HALF
	call gt_agent_entry		/* (slot, function, hole, kind): 1 traced, 0 not */
	LEAVE_SLOW_HALF
	cmp $1, %eax			/* CF = not traced; pops leave the flags */
	RESTORE_FRAME
	RESTORE_ALL
#ifdef GT_KERNEL
	jc 1f
	LEAVE_TRACED
1:	LEAVE_UNTRACED
#else
	ret
#endif

	/*
	 * in: rcx = reserved place or 0
	 * stack: 0 rdx 8 rcx 16 rax | 24 slot (function << 1 | 1)
	 */
	.globl gt_glue_exit
	.hidden gt_glue_exit
	.p2align 4
gt_glue_exit:
	EXIT_RULES 3
	SAVE_OTHERS
	SAVE_FRAME
	lea 80(%rsp), %rdi
	mov 80(%rsp), %esi
	shr $1, %esi
	mov %rcx, %rdx
	ENTER_SLOW_HALF
	call gt_agent_exit		/* (slot, function, hole): the real return address */
	LEAVE_SLOW_HALF
	mov %rax, 80(%rsp)
	RESTORE_FRAME
	RESTORE_ALL
	ret

	/*
	 * stack: 0 stub + 10 | 8 site | 16 return address
	 * Makes struct gt_hook_frame: rax rcx rdx rsi rdi r8 r9 r10 r11 rbx rbp | stub | site | return.
	 * gt_agent_hook says 0: go on with the function (registers as in the frame), 1: it is done,
	 * return rax to the caller.
	 */
	.globl gt_glue_hook
	.hidden gt_glue_hook
	.p2align 4
gt_glue_hook:
	ENTRY_RULES 0
	STACK_PUSH %rbp
	STACK_PUSH %rbx
	STACK_PUSH %r11
	STACK_PUSH %r10
	STACK_PUSH %r9
	STACK_PUSH %r8
	STACK_PUSH %rdi
	STACK_PUSH %rsi
	STACK_PUSH %rdx
	STACK_PUSH %rcx
	STACK_PUSH %rax
	mov %rsp, %rbp
	RULES_BY_FRAME (10 * 8), (9 * 8)
	mov %rsp, %rdi
	and $-16, %rsp
	cld
	call gt_agent_hook
	mov %rbp, %rsp
	test %eax, %eax
	RULES_BY_STACK
	STACK_POP %rax
	STACK_POP %rcx
	STACK_POP %rdx
	STACK_POP %rsi
	STACK_POP %rdi
	STACK_POP %r8
	STACK_POP %r9
	STACK_POP %r10
	STACK_POP %r11
	STACK_POP %rbx
	STACK_POP %rbp
	RULES_FRAME_RESTORED
	jnz 1f
	ret
1:	lea 16(%rsp), %rsp		/* now at the slot itself */
	ret

	/*
	 * stack: 0 stub + 10 | 8 what the function may use below its stack pointer; in a kernel
	 *	0 where the stub goes on | 8 slot
	 * Makes struct gt_event_frame: flags | rax rcx rdx rbx - rbp rsi rdi r8 … r15 | stub + 10. Flags go
	 * back by sahf and an addition that makes the overflow flag: popf is slow, and would bring back
	 * a debugger's trap flag, too.
	 */
	.globl gt_glue_event
	.hidden gt_glue_event
	.p2align 4
gt_glue_event:
	ENTRY_RULES 0
	STACK_PUSH %r15
	STACK_PUSH %r14
	STACK_PUSH %r13
	STACK_PUSH %r12
	STACK_PUSH %r11
	STACK_PUSH %r10
	STACK_PUSH %r9
	STACK_PUSH %r8
	STACK_PUSH %rdi
	STACK_PUSH %rsi
	STACK_PUSH %rbp
	STACK_PUSH %rsp
	STACK_PUSH %rbx
	STACK_PUSH %rdx
	STACK_PUSH %rcx
	STACK_PUSH %rax
	pushf
	PUSHED_MORE 8
	mov %rsp, %rbp
	RULES_BY_FRAME (6 * 8), (4 * 8)
	mov %rsp, %rdi
	and $-16, %rsp
	cld
	call gt_agent_event
	mov %rbp, %rsp
	RULES_BY_STACK
	mov (%rsp), %ecx
	test $0x400, %ecx			/* the direction flag */
	jz 1f
	std
1:	mov %ecx, %eax
	shl $8, %eax				/* ah: sign, zero, adjust, parity, carry */
	shr $11, %ecx
	and $1, %cl
	mov %cl, %al
	add $0x7f, %al				/* 1: overflow */
	sahf
	lea 8(%rsp), %rsp
	PUSHED_MORE -8
	STACK_POP %rax
	STACK_POP %rcx
	STACK_POP %rdx
	STACK_POP %rbx
	lea 8(%rsp), %rsp
	PUSHED_MORE -8
	STACK_POP %rbp
	RULES_FRAME_RESTORED
	STACK_POP %rsi
	STACK_POP %rdi
	STACK_POP %r8
	STACK_POP %r9
	STACK_POP %r10
	STACK_POP %r11
	STACK_POP %r12
	STACK_POP %r13
	STACK_POP %r14
	STACK_POP %r15
	ret

#ifdef GT_KERNEL
	/* A call returns to here whose return a probe waits for (core/record/kernel_probe.h). gt_agent_event puts
	 * the real return address into the slot. */
	.globl gt_arch_probe_return, gt_arch_probe_returned
	.hidden gt_arch_probe_return, gt_arch_probe_returned
	.p2align 4
gt_arch_probe_return:
	lea -8(%rsp), %rsp
	call gt_glue_event
gt_arch_probe_returned:
	ret

	/* in: rdi = event, esi = kind, and 0x100: switched off; rbp = the frame of the site's function */
	.globl gt_arch_latency_edge
	.p2align 4
gt_arch_latency_edge:
	push %rax
	push %rcx
	push %rdx
	SAVE_OTHERS
	SAVE_FRAME
	mov %esi, %edx
	shr $8, %edx				/* off */
	movzbl %sil, %esi
	mov (%rbp), %rcx
	mov 80(%rbp), %r8			/* where the site goes on */
	and $-16, %rsp
	cld
	call gt_latency_edge
	mov %rbp, %rsp
	RESTORE_FRAME
	RESTORE_ALL
	ret
#else /* a kernel's: kernel_functions.c */

	.globl gt_arch_clock
	.hidden gt_arch_clock
	.p2align 4
gt_arch_clock:
	ENTRY_RULES 0
	READ_CLOCK
	shl $32, %rdx
	or %rdx, %rax
	ret
#endif

	.globl gt_arch_clear_words
	.hidden gt_arch_clear_words
	.p2align 4
gt_arch_clear_words:
	mov %rsi, %rcx
	xor %eax, %eax
	rep stosq
	ret
	NO_RULES

	.section .note.GNU-stack, "", @progbits
