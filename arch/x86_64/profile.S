/* SPDX-License-Identifier: MIT */
/*
 * The function profiler's straight line: an entry counts a hit and pushes a frame, a return adds its
 * time to the function's numbers. Alone nothing is written to the ring; beside function_graph the same
 * records as without it. Included by hot.S at its end: it is
 * a part of the hot text, with the same macros and the same rules (registers, signals by letter).
 *
 *  D. Each number of a table is changed by one instruction on memory, so that a signal handler's calls
 *     of the same function, between any two of them, lose nothing. Squares have two words: the carry
 *     lives in the flags, which a signal saves and restores.
 *  E. The hit is counted before the frame's slot is stored: a handler that comes between finds a frame
 *     in flight (B) and passes over it.
 *
 * struct graftrace_profile_entry is found by number: the thread's directory has an element for 16
 * functions. No page, or no directory: the slow path makes them.
 */

/* in: the stub's number as gt_hot_entry. out: CF = 0 traced */
	.p2align 5
	ENTRY_RULES 0
entry_profile:
	SAVE
	CHECK_GRAPH_ENTRY profile
	FUNCTION_32 24, %rcx
	mov %rcx, %rdx
	shr $(GT_PROFILE_SHIFT + 5), %rdx
	mov T(GT_THREAD_PROFILE), %rax		/* first: hot.S, W */
	cmp T(GT_THREAD_PROFILE_PAGES), %rdx
	jae entry_slow
	mov (%rax, %rdx, 8), %rdx
	test %rdx, %rdx
	jz entry_slow
	and $(((1 << GT_PROFILE_SHIFT) - 1) << 5), %ecx
	lea (%rdx, %rcx, 1 << (GT_PROFILE_BYTES_SHIFT - 5)), %rcx
	READ_CLOCK
	incq GT_PROFILE_HITS(%rcx)		/* E */
	mov $GT_FRAME_BYTES, %ecx
	xadd %rcx, T(GT_THREAD_TOP)		/* B */
	FRAME_WITH_FLAGS
	mov %edx, NEW(GT_FRAME_HIGH, %rcx)
	movl $GT_FRAME_PROFILE, NEW(GT_FRAME_EPOCH, %rcx)
	FUNCTION_WORD 24
	or %rax, %rdx
	mov %rdx, NEW(GT_FRAME_WORD, %rcx)
	movq $0, NEW(GT_FRAME_CHILDREN, %rcx)
	lea 32(%rsp), %rdx
	mov %rdx, NEW(GT_FRAME_SLOT, %rcx)
	RESTORE
	LEAVE_TRACED
	PUSHED 3
	MAYBE_STUB profile

/* The same with its record. The page is looked for first: what leaves must not have counted. */
	.p2align 5
	PUSHED 0
entry_profile_graph:
	SAVE
	CHECK_GRAPH_ENTRY profile_graph
	FUNCTION_32 24, %rdx
	shr $(GT_PROFILE_SHIFT + 5), %rdx
	mov T(GT_THREAD_PROFILE), %rax
	cmp T(GT_THREAD_PROFILE_PAGES), %rdx
	jae entry_slow
	cmpq $0, (%rax, %rdx, 8)
	je entry_slow
	mov $8, %ecx				/* A */
	xadd %rcx, T(GT_THREAD_CUR)
	test %rcx, T(GT_THREAD_INSIDE)
	jz entry_slow_hole
	CLOCK entry_slow_hole
	FUNCTION_WORD 24
	or %rax, %rdx
	mov %rdx, (%rcx)
	mov $GT_FRAME_BYTES, %ecx
	xadd %rcx, T(GT_THREAD_TOP)		/* B */
	FRAME_WITH_FLAGS
	mov %rdx, NEW(GT_FRAME_WORD, %rcx)
	mov T(GT_THREAD_HIGH), %rax
	mov %rax, NEW(GT_FRAME_HIGH, %rcx)	/* and the epoch */
	orl $GT_FRAME_PROFILE, NEW(GT_FRAME_EPOCH, %rcx)
	movq $0, NEW(GT_FRAME_CHILDREN, %rcx)
	lea 32(%rsp), %rdx
	mov %rdx, NEW(GT_FRAME_SLOT, %rcx)
	FUNCTION_32 24, %rcx
	mov %rcx, %rdx
	shr $(GT_PROFILE_SHIFT + 5), %rdx
	mov T(GT_THREAD_PROFILE), %rax
	test %rax, %rax
	jz 1f
	mov (%rax, %rdx, 8), %rdx
	and $(((1 << GT_PROFILE_SHIFT) - 1) << 5), %ecx
	incq GT_PROFILE_HITS(%rdx, %rcx, 1 << (GT_PROFILE_BYTES_SHIFT - 5))
1:	RESTORE
	LEAVE_TRACED
	PUSHED 3
	MAYBE_STUB profile_graph

/* stack: 0 rdx 8 rcx 16 rax | 24 the slot, with function << 1 | 1 */
	.p2align 5
	EXIT_RULES 3
exit_profile:
	lea 24(%rsp), %rcx
	mov T(GT_THREAD_TOP), %rdx
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jne exit_slow
	cmpb $GT_FRAME_PROFILE, F(GT_FRAME_EPOCH, %rdx)
	jne exit_slow				/* a root, or an entry that was not counted */
	mov 24(%rsp), %ecx
	shr $(GT_PROFILE_SHIFT + 1), %ecx
	mov T(GT_THREAD_PROFILE), %rax
	cmp T(GT_THREAD_PROFILE_PAGES), %rcx
	jae exit_slow
	mov (%rax, %rcx, 8), %rcx
	test %rcx, %rcx
	jz exit_slow				/* the entry was another thread's */
	mov 24(%rsp), %eax
	and $(((1 << GT_PROFILE_SHIFT) - 1) << 1), %eax
	shl $(GT_PROFILE_BYTES_SHIFT - 1), %eax	/* (function % 16) * 256 */
	add %rax, %rcx
	STACK_PUSH %rsi
	STACK_PUSH %rdi
	mov F(GT_FRAME_HIGH, %rdx), %esi
	shl $32, %rsi
	mov F(GT_FRAME_WORD, %rdx), %edi
	or %rdi, %rsi				/* the entry's clock */
	READ_CLOCK
	shl $32, %rdx
	or %rdx, %rax
	mov T(GT_THREAD_TOP), %rdi
exit_profile_count:				/* rax = now, rsi = then, rcx = numbers, rdi = frame */
	sub %rsi, %rax				/* the call's ticks */
	jb exit_profile_backwards
exit_profile_goes_on:
	mov F(GT_FRAME_CHILDREN, %rdi), %rsi
	subq $GT_FRAME_BYTES, T(GT_THREAD_TOP)	/* B */
	movq $GT_SLOT_UNSET, F(GT_FRAME_SLOT, %rdi)
	add %rax, F(GT_FRAME_CHILDREN - GT_FRAME_BYTES, %rdi)
	add %rax, GT_PROFILE_TICKS(%rcx)	/* D */
	mov %rax, %rdi
	xor %edx, %edx
	sub %rsi, %rdi				/* its own, without its callees' */
	cmovb %rdx, %rdi
	/* The call before comes into its bucket, this one waits for the next: graftrace/profile.h */
	mov %rax, %rsi
	mov %rax, %rdx
	or $(1 << GT_PROFILE_LEAST), %rdx
	mov GT_PROFILE_LAST(%rcx), %rax
	cmpxchg %rdx, GT_PROFILE_LAST(%rcx)	/* D: who takes it counts it */
	jne exit_profile_taken
exit_profile_last:
	or $(1 << GT_PROFILE_LEAST), %rax
	bsr %rax, %rax
	cmp $GT_PROFILE_LONG, %eax
	jae exit_profile_long
	incq GT_PROFILE_BUCKETS - 8 * GT_PROFILE_LEAST(%rcx, %rax, 8)
exit_profile_counted:
	mov %rsi, %rax
	mul %rax
	add %rax, GT_PROFILE_SQUARES(%rcx)	/* D */
	adc %rdx, GT_PROFILE_SQUARES + 8(%rcx)
	add %rdi, GT_PROFILE_SELF(%rcx)
	mov %rdi, %rax
	mul %rax
	add %rax, GT_PROFILE_SELF_SQUARES(%rcx)
	adc %rdx, GT_PROFILE_SELF_SQUARES + 8(%rcx)
	STACK_POP %rdi
	STACK_POP %rsi
	lea 24(%rsp), %rdx
	TO_MIRROR(%rdx)
	mov (%rdx), %rax
	mov %rax, 24(%rsp)
	RESTORE
	ret
	PUSHED 5
exit_profile_forked:
	STACK_POP %rdi
	STACK_POP %rsi
	jmp exit_pop
	PUSHED 5
exit_profile_backwards:
	/* read on another CPU whose counter is a little behind */
	xor %eax, %eax
	jmp exit_profile_goes_on

	PUSHED 5
exit_profile_taken:
	/* by a handler's call; xchg takes what there is, but as a locked instruction is too slow for each call */
	xchg %rdx, GT_PROFILE_LAST(%rcx)
	mov %rdx, %rax
	jmp exit_profile_last
	PUSHED 5
exit_profile_long:
	mov $GT_PROFILE_MOST, %edx
	cmp %edx, %eax
	cmova %edx, %eax
	incl GT_PROFILE_LONG_BUCKETS - 4 * GT_PROFILE_LONG(%rcx, %rax, 4)
	jmp exit_profile_counted

/* The same with its record; of a call that began in this sub-buffer. */
	.p2align 5
	PUSHED 3
exit_profile_graph:
	lea 24(%rsp), %rcx
	mov T(GT_THREAD_TOP), %rdx
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jne exit_slow
	mov F(GT_FRAME_EPOCH, %rdx), %eax
	xor T(GT_THREAD_EPOCH), %eax
	cmp $GT_FRAME_PROFILE, %eax
	jne exit_slow
	mov 24(%rsp), %edx
	shr $(GT_PROFILE_SHIFT + 1), %edx
	mov T(GT_THREAD_PROFILE), %rax
	cmp T(GT_THREAD_PROFILE_PAGES), %rdx
	jae exit_slow
	cmpq $0, (%rax, %rdx, 8)
	je exit_slow
	mov $8, %ecx				/* A */
	xadd %rcx, T(GT_THREAD_CUR)
	test %rcx, T(GT_THREAD_INSIDE)
	jz exit_slow_hole
	CLOCK exit_slow_hole
	mov 24(%rsp), %rdx
	shl $32, %rdx
	or %rax, %rdx
	mov %rdx, (%rcx)
	STACK_PUSH %rsi
	STACK_PUSH %rdi
	mov T(GT_THREAD_HIGH), %esi
	shl $32, %rsi
	mov %eax, %eax
	or %rsi, %rax				/* now */
	mov 40(%rsp), %ecx			/* function << 1 | 1 */
	mov %ecx, %edi
	shr $(GT_PROFILE_SHIFT + 1), %edi
	mov T(GT_THREAD_PROFILE), %rdx
	test %rdx, %rdx
	jz exit_profile_forked
	mov (%rdx, %rdi, 8), %rdx
	and $(((1 << GT_PROFILE_SHIFT) - 1) << 1), %ecx
	shl $(GT_PROFILE_BYTES_SHIFT - 1), %ecx
	add %rdx, %rcx
	mov T(GT_THREAD_TOP), %rdi
	mov F(GT_FRAME_HIGH, %rdi), %esi
	shl $32, %rsi
	mov F(GT_FRAME_WORD, %rdi), %edx
	or %rdx, %rsi				/* then */
	jmp exit_profile_count
