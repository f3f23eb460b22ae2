/* SPDX-License-Identifier: MIT */
/*
 * A wait without system calls: see wait_for_turn in port/program/hooks.c. A host that looks for threads which may
 * make one knows by the address that this one does not (attach/agent/silence.c).
 */
	.text
	/*
	 * void gt_turn(uint32_t *word, uint64_t ticks): waits until *word is 0 and makes it 1, for so many ticks of
	 * the time stamp counter at most; then *word is as others have left it.
	 */
	.globl gt_turn, gt_turn_end
	.hidden gt_turn, gt_turn_end
	.type gt_turn, @function
	.p2align 4
gt_turn:
	.cfi_startproc
	rdtsc
	shl $32, %rdx
	or %rax, %rdx
	add %rdx, %rsi			/* when to give up */
	mov $1, %ecx
1:	xor %eax, %eax
	lock cmpxchg %ecx, (%rdi)
	je 2f
	pause
	rdtsc
	shl $32, %rdx
	or %rax, %rdx
	cmp %rsi, %rdx
	jb 1b
2:	ret
	.cfi_endproc
gt_turn_end:

	.section .note.GNU-stack, "", @progbits
