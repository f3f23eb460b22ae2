/* SPDX-License-Identifier: MIT */
/*
 * Where a child of clone(2) begins that must not be taken for its creator: see on_clone in
 * port/program/hooks.c. As the C library calls it, rdi: {block, function, argument}. The function is jumped
 * to, so nothing returns here.
 */
	.text
	.globl gt_clone_start
	.hidden gt_clone_start
	.p2align 4
gt_clone_start:
	push %rdi
	mov (%rdi), %rdi
	call gt_agent_clone_start
	pop %rdi
	mov 8(%rdi), %rax
	mov 16(%rdi), %rdi
	jmp *%rax

	.section .note.GNU-stack, "", @progbits
