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
 *     closed as well. At a return, K says the same. Who closes the gate from another
 *     CPU writes the stop word first; who opens it looks at the stop word again behind that.
 *  H. The stub has the function's word ready, so that nothing is computed:
 *
 *	+0   the entry's word but for the clock (8 bytes)	GT_STUB_WORD
 *	+8   pop %r10			GT_STUB_START: the function's own first instruction jumps here
 *	+10  call gt_hot_entry
 *	+15  movabs $word, %rcx		GT_STUB_RETURN: the body comes back to here
 *	+25  jmp gt_hot_exit
 *	+30  jmp body			GT_STUB_UNTRACED: where a call that is not traced may go on
 *	+35  the body's address (8 bytes)	GT_STUB_BODY
 *
 *     The stub takes the real return address out of the slot, so its call puts its own one there, which is
 *     where a traced call needs it. Each call has its ret here as well: of a traced call, the body's.
 *     Each page of stubs begins with a copy of both straight lines, GT_STUB_HEAD bytes from gt_hot_entry on
 *     (stub.c), that the stubs behind it call and jump to. What leaves a line is noted for those who copy it:
 *     OUT, NOTE_FAR.
 *  I. The slot lies below the stack pointer between the stub's pop and its call, and between the body's
 *     return and our push. An exception on the same stack writes there, and no slot of a call that it
 *     makes is that one: it pushes more first. The return address is in r10, or in the mirror.
 *  J. There is room for a frame wherever the gate lets a call through. Slots of open calls differ by 8 bytes
 *     or more, so between a stack's top and the gate there are no more of them than the array has frames,
 *     or than max_graph_depth lets be (set_gate). Calls that go deeper take entry_general, which looks.
 *  K. Frames of this line have no epoch: that they are of the running one, and without flags, is told by
 *     where they are, above GT_THREAD_GATE_TOP. That is the top when the epoch began, or a later frame with
 *     flags; returns from there on downwards take exit_general, which reads the frame, and lowers it.
 *     Other lines that push a frame with flags set it to ~0 first (FRAME_WITH_FLAGS): an interrupt behind
 *     their look at the mode may have opened the gate. No epoch is 0, which these frames have.
 *     A return that an interrupt stopped behind its compare may leave it above the top: the next frame there
 *     returns by LONG_RETURN, as one without an epoch does, which says the same in more words.
 *  L. Each line reads TOP once, and has its frame in a register from there on. Where it is an interrupt's and its CPU is
 *     suspended in its middle, TOP is the interrupted thread's from there on (gt_kernel_suspend): what the line adds to
 *     it or takes from it is undone when the CPU is woken, and the thread's frames stay as they are.
 */

/*
 * gt_hot_entry
 * in: r10 = the real return address; rsp = the slot, which has stub + GT_STUB_RETURN
 * out: in the body, the slot as it is: traced, the mirror has the return address
 *	in the body, or at stub + GT_STUB_UNTRACED, the real return address in the slot: not traced
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
#define BELOW_EQUAL 0x86
#define ABOVE_EQUAL 0x83
#define EQUAL	    0x84
#define NOT_EQUAL   0x85

	.p2align 6
gt_hot_entry:
	cmp T(GT_THREAD_GATE), %rsp		/* G */
	OUT LESS, entry_gate
	mov T(GT_THREAD_TOP), %rax
	cmp GT_FRAME_SLOT(%rax), %rsp
	OUT ABOVE_EQUAL, entry_off_the_line
	cmp gt_hot_stubs(%rip), %r10		/* perhaps a stub's own return point */
	NOTE_FAR
	OUT ABOVE_EQUAL, entry_off_the_line
	mov T(GT_THREAD_MIRROR), %rax
	mov %r10, (%rsp, %rax)
	mov $8, %r10d				/* A: reserve … */
	xadd %r10, T(GT_THREAD_CUR)
	test %r10, T(GT_THREAD_INSIDE)
	OUT EQUAL, entry_no_place
	mov (%rsp), %r11			/* the stub's return point */
	push %rdx
	READ_CLOCK				/* … read the clock … */
	cmp T(GT_THREAD_HIGH), %edx
	OUT NOT_EQUAL, entry_new_high
	or (GT_STUB_WORD - GT_STUB_RETURN)(%r11), %rax		/* H */
	mov %rax, (%r10)			/* … store */
	mov $GT_FRAME_BYTES, %r10d
	xadd %r10, T(GT_THREAD_TOP)		/* B, L */
	mov %rax, NEW(GT_FRAME_WORD, %r10)
	mov %rdx, NEW(GT_FRAME_HIGH, %r10)	/* and no epoch, no flags (K) */
	pop %rdx
	mov %rsp, NEW(GT_FRAME_SLOT, %r10)
	jmp *(GT_STUB_BODY - GT_STUB_RETURN)(%r11)

/*
 * gt_hot_exit: a stub jumps here after its function's body returned.
 * in: rcx = the return's word but for the clock; rsp = slot + 8
 * rax and rdx are the function's results. Returns to the real caller, from the mirror.
 */
	.p2align 4
gt_hot_exit:
	mov T(GT_THREAD_TOP), %r9
	cmp T(GT_THREAD_GATE_TOP), %r9		/* G, K; first: the CPU may be suspended, on any stack */
	OUT BELOW_EQUAL, exit_off_the_line
	mov T(GT_THREAD_MIRROR), %r8
	push -8(%rsp, %r8)			/* the real return address, into the slot */
	cmp GT_FRAME_SLOT(%r9), %rsp
	OUT NOT_EQUAL, exit_not_of_top
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
	subq $GT_FRAME_BYTES, T(GT_THREAD_TOP)	/* L */
	mov %r10, %rax
	mov %r11, %rdx
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
	LEAVE_CALLED
entry_other_stop:
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz entry_untraced
	cmpb $0, T(GT_THREAD_STOP)
	jne entry_full

	/* On as in a program, with the stub's return address on the stack. */
entry_off_the_line:
	STUB_CALLED
	jmp entry_general
entry_new_high:
	pop %rdx
entry_no_place:
	mov %r10, %rax				/* the place */
	mov T(GT_THREAD_MIRROR), %r10
	mov (%rsp, %r10), %r10
	STUB_CALLED
	mov %rax, %r10
	SAVE
	mov %r10, %rcx
	jmp entry_slow_hole

	/* On as in a program, with function << 1 | 1 in the slot. */
exit_off_the_line:
	shr $32, %rcx
	push %rcx
	jmp exit_general
exit_not_of_top:
	shr $32, %rcx
	mov %rcx, (%rsp)
	jmp exit_general
exit_new_high:
	mov %r10, %rax
	mov %r11, %rdx
exit_no_place:
	shr $32, %rcx
	mov %rcx, (%rsp)
	SAVE
	mov %rdi, %rcx
	jmp exit_slow_hole

#ifndef GT_CLOCKS_APART
	.pushsection .rodata.gt_hot_line, "a", @progbits
	.short 0
	.popsection
#endif
