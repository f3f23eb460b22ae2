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
 *	+0   the entry's word but for the clock (8 bytes)	GT_STUB_WORD
 *	+8   call gt_hot_entry		GT_STUB_START: the function's own first instruction jumps here
 *	+13  movabs $word, %rcx		GT_STUB_RETURN: the body comes back to here
 *	+23  jmp gt_hot_exit
 *	+28  jmp body			GT_STUB_UNTRACED: gt_hot_entry returns here
 *	+33  the body's address (8 bytes)	GT_STUB_BODY
 *
 *     Each call has its ret here as well: a call that is traced is not returned from by gt_hot_entry, which
 *     puts its own return address into the slot and jumps to the body, for the body to return to.
 *     Each page of stubs begins with a copy of both straight lines, GT_STUB_HEAD bytes from gt_hot_entry on
 *     (stub.c), that the stubs behind it call and jump to. What leaves a line is noted for those who copy it:
 *     OUT, NOTE_FAR.
 *  I. Between the body's return and our own, the slot lies below the stack pointer. An exception on the
 *     same stack writes there, and no slot of a call that it makes is that one: it pushes more first.
 *     The return address is in the mirror.
 */

/*
 * gt_hot_entry
 * stack: 0 stub + GT_STUB_RETURN | 8 real return address (its address is the slot)
 * out: in the body, stub + GT_STUB_RETURN in the slot: traced, the mirror has the return address
 *	at stub + GT_STUB_UNTRACED, the slot as it was: not traced
 */
#ifdef GT_CLOCKS_APART
	.macro NOTE_FAR				/* these lines are not copied */
	.endm
#else
	/* The last four bytes are a distance to something outside. */
	.macro NOTE_FAR
.Lfar\@:
	.pushsection .rodata.gt_hot_line, "a", @progbits
	.short .Lfar\@ - 4 - gt_hot_entry
	.popsection
	.endm
	.pushsection .rodata.gt_hot_line, "a", @progbits
	.globl gt_hot_line_far
	.hidden gt_hot_line_far
gt_hot_line_far:
	.popsection
#endif
	/* j<condition> target, always with four bytes of distance */
	.macro OUT condition, target
	.byte 0x0f, \condition
	.long \target - . - 4
	NOTE_FAR
	.endm
#define LESS	    0x8c
#define ABOVE_EQUAL 0x83
#define EQUAL	    0x84
#define NOT_EQUAL   0x85

	.p2align 6
gt_hot_entry:
	cmp T(GT_THREAD_GATE), %rsp		/* G */
	OUT LESS, entry_gate
	pop %r11				/* the stub's; rsp is the slot's address from here on */
	mov T(GT_THREAD_TOP), %rax
	cmp GT_FRAME_SLOT(%rax), %rsp
	OUT ABOVE_EQUAL, entry_off_the_line
	cmp T(GT_THREAD_LIMIT), %rax
	OUT ABOVE_EQUAL, entry_off_the_line
	mov (%rsp), %r10
	cmp gt_hot_stubs(%rip), %r10		/* perhaps a stub's own return point */
	NOTE_FAR
	OUT ABOVE_EQUAL, entry_off_the_line
	mov T(GT_THREAD_MIRROR), %rax
	mov %r10, (%rsp, %rax)
	mov $8, %r10d				/* A: reserve … */
	xadd %r10, T(GT_THREAD_CUR)
	test %r10, T(GT_THREAD_INSIDE)
	OUT EQUAL, entry_no_place
	push %rdx
	READ_CLOCK				/* … read the clock … */
	cmp T(GT_THREAD_HIGH), %edx
	OUT NOT_EQUAL, entry_new_high
	pop %rdx
	mov %r11, (%rsp)			/* the slot */
	or (GT_STUB_WORD - GT_STUB_RETURN)(%r11), %rax		/* H */
	mov %rax, (%r10)			/* … store */
	addq $GT_FRAME_BYTES, T(GT_THREAD_TOP)	/* B */
	mov T(GT_THREAD_TOP), %r10
	mov %rax, GT_FRAME_WORD(%r10)
	mov T(GT_THREAD_HIGH), %rax
	mov %rax, GT_FRAME_HIGH(%r10)		/* and the epoch, no flags */
	mov %rsp, GT_FRAME_SLOT(%r10)
	jmp *(GT_STUB_BODY - GT_STUB_RETURN)(%r11)

/*
 * gt_hot_exit: a stub jumps here after its function's body returned.
 * in: rcx = the return's word but for the clock; rsp = slot + 8
 * rax and rdx are the function's results. Returns to the real caller, from the mirror.
 */
	.p2align 4
gt_hot_exit:
	lea -8(%rsp), %r8
	mov T(GT_THREAD_TOP), %r9
	cmp GT_FRAME_SLOT(%r9), %r8
	OUT NOT_EQUAL, exit_off_the_line
	mov GT_FRAME_EPOCH(%r9), %esi
	cmp T(GT_THREAD_GATE_EPOCH), %esi	/* G */
	OUT NOT_EQUAL, exit_off_the_line
	mov $8, %edi				/* A */
	xadd %rdi, T(GT_THREAD_CUR)
	test %rdi, T(GT_THREAD_INSIDE)
	OUT EQUAL, exit_no_place
	mov %rax, %r10
	mov %rdx, %r11
	READ_CLOCK
	cmp T(GT_THREAD_HIGH), %edx
	OUT NOT_EQUAL, exit_new_high
	or %rcx, %rax
	mov %rax, (%rdi)
	movq $-1, GT_FRAME_SLOT(%r9)		/* B */
	subq $GT_FRAME_BYTES, T(GT_THREAD_TOP)
	mov %r10, %rax
	mov %r11, %rdx
	mov T(GT_THREAD_MIRROR), %rcx
	push (%r8, %rcx)
	ret
#ifndef GT_CLOCKS_APART
	.org gt_hot_entry + GT_STUB_HEAD, 0xcc	/* no longer than that */
#endif

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

	/* On as in a program, with the stub's return address on the stack. */
entry_off_the_line:
	push %r11
	jmp entry_general
entry_new_high:
	pop %rdx
entry_no_place:
	push %r11
	SAVE
	mov %r10, %rcx
	jmp entry_slow_hole

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

#ifndef GT_CLOCKS_APART
	.pushsection .rodata.gt_hot_line, "a", @progbits
	.short 0
	.popsection
#endif
