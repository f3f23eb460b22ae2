/* SPDX-License-Identifier: MIT */
/*
 * The recording path of a program's events: dynamic probes, and the values of calls. A part of hot.S, with its
 * macros and its rules (signals by letter). A kernel records its events in C (core/record/kernel_event.c).
 */

/*
 * gt_hot_event: the target of a probe's stub, in the middle of a function. All registers and flags are
 * the function's.
 * stack: 0 stub + 10 | 8 what the function may use below its stack pointer
 */
	PUSHED 0
gt_hot_event:
	jmp *REGION(GT_REGION_EVENT_SLOW)

/*
 * gt_hot_place: the target of the first call of an event's straight line (attach/agent/event_line.c), in the middle of
 * a function. Takes a place for the record as core/record/event.c does, and stores its head and number.
 * stack: 0 line + 10 | 8 what the function may use below its stack pointer
 * out: rcx = the place; -8, -16, -24(%rsp), as they are here: rax, rcx, rdx; -32: flags. Where no place can be
 * taken it returns to the call in the probe's stub instead, with all registers and flags as they were.
 */
	.p2align 5
	PUSHED 0
gt_hot_place:
	mov %rax, -8(%rsp)
	lahf
	seto %al
	mov %eax, -32(%rsp)
	mov %rcx, -16(%rsp)
	mov %rdx, -24(%rsp)
	mov REGION(GT_REGION_STATE), %rdx
	mov (%rsp), %rcx
	mov GT_STATE_ARENA(%rdx), %rdx
	mov GT_LINE_BYTES - GT_LINE_RETURN(%rcx), %rcx
	cmpl $0, GT_ARENA_HAS_RULES(%rdx)
	jne place_slow
	test %ecx, %ecx
	jz place_slow
	cmpl $(GT_MODE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	jne place_nop
	/* Not before a block with a mode is seen: a program that begins has no thread storage yet. */
1:	mov %fs:0, %rax
	cmp T(GT_THREAD_OWNER), %rax
	jne place_slow
	mov T(GT_THREAD_CUR), %rax
	mov T(GT_THREAD_INSIDE), %rdx
	lea -8(%rax, %rcx), %rcx		/* the last word */
	test %rax, %rdx
	jz place_slow
	test %rcx, %rdx
	jz place_slow
	add $8, %rcx
	cmpxchg %rcx, T(GT_THREAD_CUR)
	jne place_slow
	mov (%rsp), %rdx
	mov %rax, %rcx
	mov GT_LINE_HEAD - GT_LINE_RETURN(%rdx), %rax
	mov GT_LINE_NUMBER - GT_LINE_RETURN(%rdx), %rdx
	mov %rax, (%rcx)
	mov %rdx, 16(%rcx)
	ret
	/* As in cursor_of(), core/record/event.c. */
place_nop:
	cmpl $(GT_MODE_NOP << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	jne place_slow
	cmpb $0, T(GT_THREAD_TIGHT)
	jne place_slow
	cmpq $0, T(GT_THREAD_RESUME)
	je 1b
place_slow:
	mov (%rsp), %rcx
	mov GT_LINE_SLOW - GT_LINE_RETURN(%rcx), %rcx
	mov -32(%rsp), %eax
	mov %rcx, (%rsp)
	add $0x7f, %al				/* 1: overflow */
	sahf
	mov -8(%rsp), %rax
	mov -16(%rsp), %rcx
	mov -24(%rsp), %rdx
	ret

/*
 * gt_hot_arguments: the target of a values stub's call, of a function whose arguments are numbers in
 * general registers, 1 to 6 of them: routines of 256 bytes each. All registers are the caller's, and stay;
 * what has to make room for them lies below the stack pointer, where no function has anything by now.
 * stack: 0 values stub + 5 | 8 stub + 5 | 16 slot
 * gt_hot_result: the same of a result in rax.
 * stack: 0 values stub + 5 | 8 function << 1 | 1, in the slot
 * A place is taken as in core/record/event.c; where it cannot be, gt_hot_event does it all.
 */
#define VALUES_HEAD(type, count) ((GT_VALUES_WORD) + ((type) << 16) + 1 + (count))
	.macro TAKE_VALUES type, count
	cmpl $(GT_MODE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	jne gt_hot_event
	mov %rdx, -8(%rsp)
	mov %rcx, -16(%rsp)
	mov %rax, -24(%rsp)
	mov %fs:0, %rax
	cmp T(GT_THREAD_OWNER), %rax
	jne values_slow
	mov T(GT_THREAD_CUR), %rax
	mov T(GT_THREAD_INSIDE), %rdx
	lea 8 * (1 + \count)(%rax), %rcx		/* the last word */
	test %rax, %rdx
	jz values_slow
	test %rcx, %rdx
	jz values_slow
	add $8, %rcx
	cmpxchg %rcx, T(GT_THREAD_CUR)
	jne values_slow
	movabs $VALUES_HEAD(\type, \count), %rcx
	mov %rcx, (%rax)
	mov 8(%rsp), %rcx			/* the stub, or the slot's word */
	.endm
	.macro VALUES_TAKEN
	mov %rcx, 8(%rax)			/* function, and no faults: the record is complete */
	mov -24(%rsp), %rax
	mov -16(%rsp), %rcx
	mov -8(%rsp), %rdx
	ret
	.endm
	.macro ARGUMENTS count
	.p2align 8
	TAKE_VALUES GT_EVENT_ARGUMENTS, \count
	mov %rdi, 16(%rax)
	.if \count > 1
	mov %rsi, 24(%rax)
	.endif
	.if \count > 2
	mov -8(%rsp), %rdx
	mov %rdx, 32(%rax)
	.endif
	.if \count > 3
	mov -16(%rsp), %rdx
	mov %rdx, 40(%rax)
	.endif
	.if \count > 4
	mov %r8, 48(%rax)
	.endif
	.if \count > 5
	mov %r9, 56(%rax)
	.endif
	sub REGION(GT_REGION_BIAS), %rcx
	shr $5, %rcx
	VALUES_TAKEN
	.endm

	.p2align 8
gt_hot_arguments:
	ARGUMENTS 1
	ARGUMENTS 2
	ARGUMENTS 3
	ARGUMENTS 4
	ARGUMENTS 5
	ARGUMENTS 6
	.p2align 6
gt_hot_result:
	TAKE_VALUES GT_EVENT_RESULT, 1
	mov -24(%rsp), %rdx
	mov %rdx, 16(%rax)
	shr %ecx
	VALUES_TAKEN
values_slow:
	mov -24(%rsp), %rax
	mov -16(%rsp), %rcx
	mov -8(%rsp), %rdx
	jmp gt_hot_event
