/* SPDX-License-Identifier: MIT */
/*
 * A stack switch of the program's own, as schedulers have them: no library call, no preparation for
 * tracing, no unwind data that would describe it.
 *
 * void switch_stack(void **from, void *to)
 *	from: where the stack pointer is kept, to: that of the other stack. Keeps rbx, rbp, r12-r15.
 */
	.text
	.globl	switch_stack
	.type	switch_stack, @function
	.p2align 4
switch_stack:
	endbr64
	push	%rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, (%rdi)
	mov	%rsi, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
	ret
	.size	switch_stack, . - switch_stack

/*
 * void *prepare_stack(void *top, void (*start)(void))
 *	The stack pointer to switch to, so that start() runs with nothing below it.
 */
	.globl	prepare_stack
	.type	prepare_stack, @function
	.p2align 4
prepare_stack:
	endbr64
	and	$-16, %rdi
	movq	$0, -8(%rdi)
	mov	%rsi, -16(%rdi)
	lea	-64(%rdi), %rax
	movq	$0, (%rax)
	movq	$0, 8(%rax)
	movq	$0, 16(%rax)
	movq	$0, 24(%rax)
	movq	$0, 32(%rax)
	movq	$0, 40(%rax)
	ret
	.size	prepare_stack, . - prepare_stack

	.section .note.GNU-stack, "", @progbits
