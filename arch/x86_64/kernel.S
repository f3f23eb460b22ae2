/* SPDX-License-Identifier: MIT */
/*
 * What the recorder of a kernel needs of the processor beside the recording path: the CPU's block
 * and the interrupt flag. With GT_UNPRIVILEGED (the recorder's own test, in a process) the flag is
 * left alone: there gt_thread.busy alone holds interrupts back.
 */
#include "core/record/layout.h"

#ifdef GT_KERNEL
	.section .gt_hot, "ax", @progbits	/* no switch of threads from here: gt_kernel_in_recorder */
#else
	.text
#endif
	/* The block is at %gs:0 and knows its own address once its CPU has started. */
	.globl gt_arch_block
	.hidden gt_arch_block
	.p2align 4
gt_arch_block:
	mov %gs:GT_THREAD_SELF, %rax
	ret

	.globl gt_arch_interrupts_off
	.hidden gt_arch_interrupts_off
	.p2align 4
gt_arch_interrupts_off:
#ifdef GT_UNPRIVILEGED
	xor %eax, %eax
#else
	pushf
	pop %rax
	cli
#endif
	ret

	.globl gt_arch_interrupts_restore
	.hidden gt_arch_interrupts_restore
	.p2align 4
gt_arch_interrupts_restore:
#ifndef GT_UNPRIVILEGED
	test $0x200, %edi
	jz 1f
	sti
1:
#endif
	ret

	.section .note.GNU-stack, "", @progbits
