/* SPDX-License-Identifier: MIT */
/*
 * Fills every register, calls a function that touches none of them, and keeps what is there
 * afterwards. A static function may be called like this: gcc's -fipa-ra knows what it leaves alone.
 */
#include "tests/programs/registers.h"

#ifdef PATCHABLE
	/* What -fpatchable-function-entry=5 makes of a function. */
	.macro	FUNCTION name
	.p2align 4
	.type	\name, @function
\name:
.Lentry_\name:
	.byte	0x90, 0x90, 0x90, 0x90, 0x90
	.pushsection __patchable_function_entries, "awo", @progbits, .text
	.p2align 3
	.quad	.Lentry_\name
	.popsection
	.endm
#else
	.macro	FUNCTION name
	.p2align 4
	.type	\name, @function
\name:
	.endm
#endif

	.macro	COUNT name
	lock incq \name\()_site + SITE_CALLS(%rip)
	.endm

	.text
	.cfi_startproc
	FUNCTION bare_leaf
	COUNT	bare_leaf
	ret
	.cfi_endproc
	.size	bare_leaf, . - bare_leaf

	/* Lives in the red zone below its stack pointer. */
	.cfi_startproc
	FUNCTION red_leaf
	COUNT	red_leaf
	mov	%rax, -8(%rsp)
	mov	%rbx, -128(%rsp)
	mov	%rcx, -64(%rsp)
	xor	%eax, %eax
	xor	%ebx, %ebx
	xor	%ecx, %ecx
	mov	-64(%rsp), %rcx
	mov	-128(%rsp), %rbx
	mov	-8(%rsp), %rax
	ret
	.cfi_endproc
	.size	red_leaf, . - red_leaf

	/* Its frame and the next one's are 8 bytes apart. */
	.cfi_startproc
	FUNCTION near_caller
	COUNT	near_caller
	call	bare_leaf
	call	red_leaf
	ret
	.cfi_endproc
	.size	near_caller, . - near_caller

	.cfi_startproc
	FUNCTION tail_caller
	COUNT	tail_caller
	jmp	near_caller
	.cfi_endproc
	.size	tail_caller, . - tail_caller

	/* Pushes itself down through every distance, then calls. */
	.cfi_startproc
	FUNCTION odd_frame
	COUNT	odd_frame
	lea	-3(%rsp), %rsp
	call	bare_leaf
	lea	3(%rsp), %rsp
	ret
	.cfi_endproc
	.size	odd_frame, . - odd_frame

	.section .data.rel.ro, "aw"
	.globl	registers_targets
	.p2align 3
registers_targets:
	.quad	bare_leaf, red_leaf, near_caller, tail_caller, odd_frame

	.text
#define LOW_16  0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
#define HIGH_16 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31

	.macro	VECTORS_LOAD move, kind, numbers:vararg
	.irp	number, \numbers
	\move	registers_before + REGISTERS_VECTORS + 64 * \number(%rip), %\kind\number
	.endr
	.endm
	.macro	VECTORS_STORE move, kind, numbers:vararg
	.irp	number, \numbers
	\move	%\kind\number, registers_after + REGISTERS_VECTORS + 64 * \number(%rip)
	.endr
	.endm

	.macro	GENERAL_LOAD base
	mov	\base + 0(%rip), %rax
	mov	\base + 8(%rip), %rbx
	mov	\base + 16(%rip), %rcx
	mov	\base + 24(%rip), %rdx
	mov	\base + 32(%rip), %rsi
	mov	\base + 40(%rip), %rdi
	mov	\base + 48(%rip), %rbp
	mov	\base + 56(%rip), %r8
	mov	\base + 64(%rip), %r9
	mov	\base + 72(%rip), %r10
	mov	\base + 80(%rip), %r11
	mov	\base + 88(%rip), %r12
	mov	\base + 96(%rip), %r13
	mov	\base + 104(%rip), %r14
	mov	\base + 112(%rip), %r15
	.endm
	.macro	GENERAL_STORE base
	mov	%rax, \base + 0(%rip)
	mov	%rbx, \base + 8(%rip)
	mov	%rcx, \base + 16(%rip)
	mov	%rdx, \base + 24(%rip)
	mov	%rsi, \base + 32(%rip)
	mov	%rdi, \base + 40(%rip)
	mov	%rbp, \base + 48(%rip)
	mov	%r8, \base + 56(%rip)
	mov	%r9, \base + 64(%rip)
	mov	%r10, \base + 72(%rip)
	mov	%r11, \base + 80(%rip)
	mov	%r12, \base + 88(%rip)
	mov	%r13, \base + 96(%rip)
	mov	%r14, \base + 104(%rip)
	mov	%r15, \base + 112(%rip)
	.endm

/*
 * void registers_round(void): registers_target is called with the stack pointer lowered by
 * registers_shift, the direction flag set if registers_direction is, and the registers of
 * registers_before; registers_after gets what is there on return. Not prepared for tracing.
 */
	.globl	registers_round
	.type	registers_round, @function
	.p2align 4
registers_round:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	stmxcsr	kept_mxcsr(%rip)
	fnstcw	kept_control(%rip)
	mov	%rsp, kept_stack(%rip)
	sub	registers_shift(%rip), %rsp

	cmpl	$1, registers_level(%rip)
	jb	1f
	je	2f
	VECTORS_LOAD vmovdqu64, zmm, LOW_16, HIGH_16
	kmovw	registers_before + REGISTERS_MASKS + 2(%rip), %k1
	kmovw	registers_before + REGISTERS_MASKS + 4(%rip), %k2
	kmovw	registers_before + REGISTERS_MASKS + 6(%rip), %k3
	kmovw	registers_before + REGISTERS_MASKS + 8(%rip), %k4
	kmovw	registers_before + REGISTERS_MASKS + 10(%rip), %k5
	kmovw	registers_before + REGISTERS_MASKS + 12(%rip), %k6
	kmovw	registers_before + REGISTERS_MASKS + 14(%rip), %k7
	jmp	3f
2:
	VECTORS_LOAD vmovdqu, ymm, LOW_16
	jmp	3f
1:
	VECTORS_LOAD movdqu, xmm, LOW_16
3:
	fninit
	fldt	registers_before + REGISTERS_X87 + 112(%rip)
	fldt	registers_before + REGISTERS_X87 + 96(%rip)
	fldt	registers_before + REGISTERS_X87 + 80(%rip)
	fldt	registers_before + REGISTERS_X87 + 64(%rip)
	fldt	registers_before + REGISTERS_X87 + 48(%rip)
	fldt	registers_before + REGISTERS_X87 + 32(%rip)
	fldt	registers_before + REGISTERS_X87 + 16(%rip)
	fldt	registers_before + REGISTERS_X87 + 0(%rip)
	fldcw	registers_before + REGISTERS_CONTROL(%rip)
	ldmxcsr	registers_before + REGISTERS_MXCSR(%rip)
	GENERAL_LOAD registers_before
	cmpl	$0, registers_direction(%rip)
	je	4f
	std
4:
	call	*registers_target(%rip)
	GENERAL_STORE registers_after
	cld
	mov	%rsp, registers_after + REGISTERS_STACK(%rip)
	mov	kept_stack(%rip), %rax
	sub	registers_shift(%rip), %rax
	mov	%rax, registers_before + REGISTERS_STACK(%rip)
	mov	kept_stack(%rip), %rsp
	stmxcsr	registers_after + REGISTERS_MXCSR(%rip)
	fnstcw	registers_after + REGISTERS_CONTROL(%rip)
	fstpt	registers_after + REGISTERS_X87 + 0(%rip)
	fstpt	registers_after + REGISTERS_X87 + 16(%rip)
	fstpt	registers_after + REGISTERS_X87 + 32(%rip)
	fstpt	registers_after + REGISTERS_X87 + 48(%rip)
	fstpt	registers_after + REGISTERS_X87 + 64(%rip)
	fstpt	registers_after + REGISTERS_X87 + 80(%rip)
	fstpt	registers_after + REGISTERS_X87 + 96(%rip)
	fstpt	registers_after + REGISTERS_X87 + 112(%rip)
	fninit
	fldcw	kept_control(%rip)
	ldmxcsr	kept_mxcsr(%rip)

	cmpl	$1, registers_level(%rip)
	jb	1f
	je	2f
	VECTORS_STORE vmovdqu64, zmm, LOW_16, HIGH_16
	kmovw	%k1, registers_after + REGISTERS_MASKS + 2(%rip)
	kmovw	%k2, registers_after + REGISTERS_MASKS + 4(%rip)
	kmovw	%k3, registers_after + REGISTERS_MASKS + 6(%rip)
	kmovw	%k4, registers_after + REGISTERS_MASKS + 8(%rip)
	kmovw	%k5, registers_after + REGISTERS_MASKS + 10(%rip)
	kmovw	%k6, registers_after + REGISTERS_MASKS + 12(%rip)
	kmovw	%k7, registers_after + REGISTERS_MASKS + 14(%rip)
	vzeroupper
	jmp	3f
2:
	VECTORS_STORE vmovdqu, ymm, LOW_16
	vzeroupper
	jmp	3f
1:
	VECTORS_STORE movdqu, xmm, LOW_16
3:
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size	registers_round, . - registers_round

	.bss
	.p2align 3
kept_stack:
	.zero	8
kept_mxcsr:
	.zero	4
kept_control:
	.zero	4

	.section .note.GNU-stack, "", @progbits
