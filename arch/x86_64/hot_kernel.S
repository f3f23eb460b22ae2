/* SPDX-License-Identifier: MIT */
/*
 * The straight lines of a kernel, shorter than a program's: a part of hot.S, with its macros and its
 * rules (interrupts by letter). What makes them shorter:
 *
 *  F. A kernel is compiled for its tracer: functions are entered and left as the ABI has it
 *     (-fno-ipa-ra). At an entry rax, r10 and r11 are free, at a return all but rax, rdx and what
 *     callees save. (rax counts vector registers for variadic functions: a kernel has none there.)
 *  G. One compare for "may this call be recorded here": the gate is the lowest stack pointer that may,
 *     and GT_GATE_CLOSED whenever anything but plain function_graph is wanted (set_gate in kernel.c).
 *     The compare is signed: a kernel's addresses are negative, so 0 (this CPU has not started) is
 *     closed as well. At a return the epoch's compare says the same. Who closes the gate from another
 *     CPU writes the stop word first; who opens it looks at the stop word again behind that.
 *  H. The stub has the function's word ready, so that nothing is computed:
 *
 *	+0   the entry's word but for the clock (8 bytes)
 *	+8   call gt_hot_entry		(the function's own first instruction jumps here)
 *	+13  call body			GT_STUB_CALLED: gt_hot_entry returns here with ret $8,
 *					which takes the caller's address off: the slot is free
 *	+18  movabs $word, %rcx		GT_STUB_RETURN: the body comes back to here
 *	+28  jmp gt_hot_exit
 *	+33  jmp body			GT_STUB_UNTRACED: gt_hot_entry returns here
 *
 *     Each call has its ret here as well. All functions share the straight lines: with a copy in each
 *     stub (432 bytes; 5 KB in an emulator's translation) a loop around one call was faster by 5
 *     instructions, and a program that calls a hundred functions had each copy to fetch anew.
 *  I. Between the body's return and our own, the slot lies below the stack pointer. An exception on the
 *     same stack writes there, and no slot of a call that it makes is that one: it pushes more first.
 *     The return address is in the mirror.
 */

/*
 * gt_hot_entry
 * stack: 0 stub + GT_STUB_CALLED | 8 real return address (its address is the slot)
 * out: at stub + GT_STUB_CALLED, the slot taken off: traced, the mirror has the return address
 *	at stub + GT_STUB_UNTRACED, the slot as it was: not traced
 */
	.p2align 6
gt_hot_entry:
	cmp T(GT_THREAD_GATE), %rsp		/* G */
	jl entry_gate
	lea 8(%rsp), %r11
	mov T(GT_THREAD_TOP), %rax
	cmp GT_FRAME_SLOT(%rax), %r11
	jae entry_general
	cmp T(GT_THREAD_LIMIT), %rax
	jae entry_general
	mov (%r11), %r10
	cmp gt_hot_stubs(%rip), %r10		/* perhaps a stub's own return point */
	jae entry_general
	mov T(GT_THREAD_MIRROR), %rax
	mov %r10, (%r11, %rax)
	mov $8, %r10d				/* A: reserve … */
	xadd %r10, T(GT_THREAD_CUR)
	test %r10, T(GT_THREAD_INSIDE)
	jz entry_no_place
	push %rdx
	READ_CLOCK				/* … read the clock … */
	cmp T(GT_THREAD_HIGH), %edx
	jne entry_new_high
	mov 8(%rsp), %rdx
	or -GT_STUB_CALLED(%rdx), %rax		/* H */
	mov %rax, (%r10)			/* … store */
	addq $GT_FRAME_BYTES, T(GT_THREAD_TOP)	/* B */
	mov T(GT_THREAD_TOP), %r10
	mov %rax, GT_FRAME_WORD(%r10)
	mov T(GT_THREAD_HIGH), %rax
	mov %rax, GT_FRAME_HIGH(%r10)		/* and the epoch, no flags */
	mov %r11, GT_FRAME_SLOT(%r10)
	pop %rdx
	LEAVE_TRACED

	/* A stop costs as little as can be; lack of room is counted in the block. */
	.p2align 4
entry_gate:
	cmpl $GT_STOP_FULL, T(GT_THREAD_STOP)	/* alone, as it mostly comes */
	jne entry_other_stop
entry_full:
	incq T(GT_THREAD_LOST_FULL)
entry_untraced:
	LEAVE_UNTRACED
entry_other_stop:
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz entry_untraced
	cmpb $0, T(GT_THREAD_STOP)
	jne entry_full
	jmp entry_general

entry_new_high:
	pop %rdx
entry_no_place:
	SAVE
	mov %r10, %rcx
	jmp entry_slow_hole

/*
 * gt_hot_exit: a stub jumps here after its function's body returned.
 * in: rcx = the return's word but for the clock; rsp = slot + 8
 * rax and rdx are the function's results. Returns to the real caller, from the mirror.
 */
	.p2align 6
gt_hot_exit:
	lea -8(%rsp), %r8
	mov T(GT_THREAD_TOP), %r9
	cmp GT_FRAME_SLOT(%r9), %r8
	jne exit_off_the_line
	mov GT_FRAME_EPOCH(%r9), %esi
	cmp T(GT_THREAD_GATE_EPOCH), %esi	/* G */
	jne exit_off_the_line
	mov $8, %edi				/* A */
	xadd %rdi, T(GT_THREAD_CUR)
	test %rdi, T(GT_THREAD_INSIDE)
	jz exit_no_place
	mov %rax, %r10
	mov %rdx, %r11
	READ_CLOCK
	cmp T(GT_THREAD_HIGH), %edx
	jne exit_new_high
	or %rcx, %rax
	mov %rax, (%rdi)
	movq $-1, GT_FRAME_SLOT(%r9)		/* B */
	subq $GT_FRAME_BYTES, T(GT_THREAD_TOP)
	mov %r10, %rax
	mov %r11, %rdx
	mov T(GT_THREAD_MIRROR), %rcx
	push (%r8, %rcx)
	ret

	/* On as in a program, with function << 1 | 1 in the slot. */
exit_off_the_line:
	shr $32, %rcx
	push %rcx
	jmp exit_general
exit_new_high:
	mov %r10, %rax
	mov %r11, %rdx
exit_no_place:
	shr $32, %rcx
	push %rcx
	SAVE
	mov %rdi, %rcx
	jmp exit_slow_hole
