/* SPDX-License-Identifier: MIT */
/*
 * The recording path of a program: what hot.S, which says what each name means, leaves to it. For assembly.
 */
#ifndef GT_ARCH_X86_64_HOT_PROGRAM_H
#define GT_ARCH_X86_64_HOT_PROGRAM_H

/* clang-format off */
#define REGION(field) (gt_hot_start - 4096 + (field))(%rip)
#define F(field, frame) %gs:(GT_THREAD_SCRAP + (field))(frame)
#define TO_MIRROR(slot)			\
	btc $GT_MIRROR_BIT, slot;	\
	xor $GT_MIRROR_TURN, slot
#define GENERAL_ENTRY gt_hot_entry
#define GENERAL_EXIT gt_hot_exit

/* ---- whose block, and stops: a thread may have inherited another one's block, or have none of its own yet ---- */

#define CHECK_OWNER(otherwise)			\
	mov %fs:0, %rax;			\
	cmp T(GT_THREAD_OWNER), %rax;		\
	jne otherwise
#define CHECK_OWNER_OF_STOP(otherwise)		\
	STACK_PUSH %rax;			\
	mov %fs:0, %rax;			\
	cmp T(GT_THREAD_OWNER), %rax;		\
	STACK_POP %rax;				\
	jne otherwise
	.macro CHECK_STOPS
	cmpl $(GT_MODE_PROFILE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je entry_profile_graph
	testl $GT_STOP_CAUSES, T(GT_THREAD_STOP)
	jnz entry_stopped
	.endm
	.macro STOPPED_ENTRIES
	/* A stop is one thread's: it may be the block that a new one has inherited. */
entry_stopped:
	CHECK_OWNER_OF_STOP(entry_not_mine)
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz entry_nop
	cmpb $GT_MODE_NOTRACE, T(GT_THREAD_STOP + 3)
	je entry_nop
	STACK_PUSH %rax
	mov T(GT_THREAD_LOST_FULL), %rax
	test %rax, %rax				/* W */
	jz 2f
	incq (%rax)
2:
	STACK_POP %rax
	stc
	ret
entry_nop:
	stc
	ret
entry_not_mine:
	SAVE
	jmp entry_slow
	.endm
	/* a block that is not this thread's: outside or not is not known from it */
	.macro ENTRY_INSIDE kind
	STACK_PUSH %rax
	mov %fs:0, %rax
	cmp T(GT_THREAD_OWNER), %rax
	STACK_POP %rax
	je gt_hot_entry
	SAVE
	mov $\kind, %eax
	jmp entry_slow_kind
	.endm
	.macro STOPPED_ONLY
	CHECK_OWNER_OF_STOP(entry_only_slow)
	SAVE
	mov 32(%rsp), %eax			/* perhaps a stub's return point, which has to go */
	sub $21, %eax
	test $31, %al
	jz entry_only_saved
	RESTORE
	stc
	ret
	.endm

/* ---- the stub's place says which function it is of, by the region's bias ---- */

	.macro FUNCTION_32 stub, register
	mov \stub(%rsp), \register
	sub REGION(GT_REGION_BIAS), \register
	.endm
	.macro FUNCTION_WORD stub
	mov \stub(%rsp), %rdx
	sub REGION(GT_REGION_BIAS), %rdx
	shl $28, %rdx
	.endm
	.macro STUB_CALLED			/* what a kernel's stub leaves to be done */
	.endm
#define LEAVE_TRACED   clc; ret
#define LEAVE_TRACED_NO_CARRY ret
#define LEAVE_UNTRACED stc; ret
#define LEAVE_CALLED LEAVE_UNTRACED

/* ---- return addresses: a stub's return point is 21 bytes into 32; each region has stubs ---- */

	/* does it end like one? */
	.macro CHECK_STUB maybe
	lea -21(%rax), %edx
	test $31, %dl
	jz \maybe
	.endm
	.macro MAYBE_STUB name
entry_maybe_stub_\name:
	STACK_PUSH %rsi
	mov REGION(GT_REGION_STATE), %rdx
	mov GT_STATE_REGION_COUNT(%rdx), %esi
	add $GT_STATE_REGIONS, %rdx
1:	dec %esi
	js 2f
	sub (%rdx), %rax
	cmp 8(%rdx), %rax
	jb 3f
	add (%rdx), %rax
	add $16, %rdx
	jmp 1b
2:	STACK_POP %rsi
	jmp entry_goes_on_\name
	PUSHED 4
3:	STACK_POP %rsi
	jmp entry_slow
	.endm
	.macro CHECK_TAIL_CALL
	mov F(GT_FRAME_WORD, %rdx), %rax
	shr $33, %rax
	shl $5, %rax				/* its return point: bias + 16 + 32 * function */
	add REGION(GT_REGION_BIAS), %rax
	add $16, %rax
	cmp (%rcx), %rax
	jne entry_slow
	.endm

/* ---- frames ---- */

	.macro FRAME_WITH_FLAGS
	.endm
	.macro IF_PLAIN frame, there		/* none is: there are no shorter lines */
	.endm
	/* The context's first frame is a sentinel; the frame's address is relative to the block. */
	.macro FRAME_DEPTH
	test %rdx, %rdx				/* W */
	jz exit_long_high
	cmpb $0, GT_CONTEXT_HIDES(%rdx)		/* frames are not what readers count */
	jne exit_long_high
	add T(GT_THREAD_SELF), %rsi
	sub GT_CONTEXT_FRAMES(%rdx), %rsi
	add $(GT_THREAD_SCRAP - GT_FRAME_BYTES), %rsi
	shr $GT_FRAME_SHIFT, %rsi
	.endm
	.macro POPPED
	.endm
	.macro LOWER_GATE
	.endm
	.macro CLOSE_GATE
	.endm

/* ---- entries ---- */

	.macro MORE_ENTRIES
/* One that no filter names, among others that are in stack traces, and that needs its real return
 * address: nothing is to do unless a stub's return point is there. */
	.p2align 4
	PUSHED 0
gt_hot_entry_nothing:
	SAVE
	mov 32(%rsp), %eax
	sub $21, %eax
	test $31, %al
	mov $GT_ENTRY_NOTHING, %eax		/* leaves the flags */
	jz entry_slow_kind
	RESTORE
	LEAVE_UNTRACED

/* A function whose return a probe waits for, by what its entry is besides: routine GT_ENTRY_… stands so many
 * times GRAFTRACE_PROBED_BYTES further. The slow half keeps a frame of it, whatever is recorded. */
	.p2align 4
	PUSHED 0
gt_hot_entry_probed:
	.set probed_kind, GT_ENTRY_PROBED
	.rept GT_ENTRY_TRIGGER + 1
	.p2align 4
	PUSHED 0
	SAVE
	mov $probed_kind, %eax
	jmp entry_slow_kind
	.set probed_kind, probed_kind + 1
	.endr
	.endm

	.macro OFFSET symbol
	.long \symbol - gt_hot_start
	.endm
	/* The hot text's part of the image's header (struct graftrace_agent_image). */
	.macro HOT_NAMES
	.section .image_header.hot, "a", @progbits
	OFFSET gt_hot_end		/* hot_bytes */
	OFFSET gt_hot_entry
	OFFSET gt_hot_entry_root
	OFFSET gt_hot_entry_only
	OFFSET gt_hot_exit
	OFFSET gt_hot_hook
	OFFSET gt_hot_entry_trigger
	OFFSET gt_hot_entry_notrace
	OFFSET gt_hot_entry_silent
	OFFSET gt_hot_entry_nothing
	OFFSET gt_hot_event
	OFFSET gt_hot_arguments
	OFFSET gt_hot_result
	OFFSET gt_hot_entry_probed
	OFFSET gt_hot_place
	.endm
/* clang-format on */

#endif
