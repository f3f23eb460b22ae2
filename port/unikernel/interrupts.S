/* SPDX-License-Identifier: MIT */
/*
 * Where interrupts and exceptions enter: a stub for each vector, then one way for exceptions (below 32)
 * and one for interrupts. Not traced, and the registers below the frame are C's to use.
 */
#include "port/unikernel/layout.h"

	.text
	.p2align 4
	.globl interrupt_stubs
interrupt_stubs:				/* 16 bytes each */
	.set vector, 0
	.rept 256
	.p2align 4
	.if (vector != 8) && (vector != 10) && (vector != 11) && (vector != 12) && (vector != 13) && (vector != 14) && (vector != 17) && (vector != 21)
	push $0
	.endif
	push $vector
	.if vector < 32
	jmp exception_common
	.else
	jmp interrupt_common
	.endif
	.set vector, vector + 1
	.endr

	.macro RESTORE
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rbp
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rbx
	pop %rax
	.endm

	.macro SAVE
	push %rax
	push %rbx
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %rbp
	push %r8
	push %r9
	push %r10
	push %r11
	push %r12
	push %r13
	push %r14
	push %r15
	cld
	mov %rsp, %rdi				/* struct registers */
	mov %rsp, %rbx
	.endm

	.globl exception_common, interrupt_return
	.type interrupt_common, @function
exception_common:
	SAVE
	and $-16, %rsp
	call exception_dispatch
	mov %rbx, %rsp
	cmpq $3, REGISTERS_VECTOR(%rsp)		/* VECTOR_BREAKPOINT */
	je breakpoint_return
	/* in: rsp = struct registers */
interrupt_return:
	RESTORE
	add $16, %rsp
	iretq

	/*
	 * Goes on without iretq, which would let NMIs in while one is being handled, in whose midst a breakpoint may be.
	 * in: rsp = struct registers. Flags and address go to the stack that is gone back to, below what is in use there;
	 * of the frame they reach ss and rsp at most.
	 */
breakpoint_return:
	mov REGISTERS_RSP(%rsp), %rax
	mov REGISTERS_RIP(%rsp), %rcx
	mov REGISTERS_RFLAGS(%rsp), %rdx
	mov %rcx, -8(%rax)
	mov %rdx, -16(%rax)
	sub $16, %rax
	mov %rax, REGISTERS_CS(%rsp)
	RESTORE
	mov REGISTERS_CS - REGISTERS_VECTOR(%rsp), %rsp
	popf
	ret

interrupt_common:
	SAVE
	mov %gs:CPU_DEPTH, %eax
	incl %gs:CPU_DEPTH
	test %eax, %eax
	cmovz %gs:CPU_INTERRUPT_STACK, %rsp	/* the first one leaves the thread's stack */
	and $-16, %rsp
	push REGISTERS_RIP(%rbx)		/* a frame: the interrupted code, for call stacks, */
	incq (%rsp)				/* after the instruction, as return addresses are */
	push %rbp
	mov %rsp, %rbp
	call interrupt_dispatch			/* returns with interrupts off */
	mov %rbx, %rsp
	decl %gs:CPU_DEPTH
	jnz interrupt_return
	cmpl $0, %gs:CPU_NEEDS_SWITCH
	je interrupt_return
	mov %rsp, %rdi
	and $-16, %rsp
	call interrupt_switch			/* on the thread's stack: another thread may run meanwhile */
	mov %rbx, %rsp
	jmp interrupt_return
	.size interrupt_common, . - interrupt_common

	.section .note.GNU-stack, "", @progbits
