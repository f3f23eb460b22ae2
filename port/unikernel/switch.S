/* SPDX-License-Identifier: MIT */
/*
 * Switches from one thread's stack to another's. Not traced.
 */

	.text
/*
 * struct thread *switch_stacks(uint64_t *save, uint64_t sp, struct thread *previous)
 * Leaves the stack pointer in *save and goes on where `sp` was left, which gets `previous`.
 */
	.p2align 4
	.globl switch_stacks
	.type switch_stacks, @function
switch_stacks:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdi)
	mov %rsi, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	mov %rdx, %rax
	ret
	.size switch_stacks, . - switch_stacks

/* The address to which a new thread's first switch returns: rax = the thread before it. */
	.p2align 4
	.globl thread_first_steps
	.type thread_first_steps, @function
thread_first_steps:
	mov %rax, %rdi
	xor %ebp, %ebp
	call thread_run
	ud2
	.size thread_first_steps, . - thread_first_steps

	.section .note.GNU-stack, "", @progbits
