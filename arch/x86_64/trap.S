/* SPDX-License-Identifier: MIT */
/*
 * The handler of SIGTRAP while there are breakpoints (struct graftrace_traps): ours go on at their
 * stubs, what else comes goes to the program's own handler, on the same signal frame.
 */
#include "arch/x86_64/unwind.h"

	.text
	/*
	 * As the kernel calls it: edi = signal, rsi = siginfo, rdx = ucontext, rsp = the frame, whose
	 * first word is the restorer's address. All signals are blocked.
	 */
	.globl gt_trap_entry
	.hidden gt_trap_entry
	.p2align 4
gt_trap_entry:
	ENTRY_RULES 0
	STACK_PUSH %rdi
	STACK_PUSH %rsi
	STACK_PUSH %rdx
	mov %rsi, %rdi
	mov %rdx, %rsi
	cld
	call gt_agent_trap		/* (siginfo, ucontext): a handler to go on with, or 0 */
	STACK_POP %rdx
	STACK_POP %rsi
	STACK_POP %rdi
	test %rax, %rax
	jz 1f
	jmp *%rax
1:	ret
	NO_RULES

	/* The very bytes of the C library's, by which unwinders and the host know it: unwind data would
	 * be asked first. */
	.globl gt_trap_restorer
	.hidden gt_trap_restorer
	nop
	.p2align 4
gt_trap_restorer:
	mov $15, %rax
	syscall

	.section .note.GNU-stack, "", @progbits
