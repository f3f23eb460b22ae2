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
 *  H. Each function's stub has the straight lines themselves, from gt_hot_stub below, with its words
 *     and distances filled in (stub.c). Emulators, QEMU's for one, follow a jump within a page at no
 *     cost, and look the next piece of code up wherever else one leads; and what a stub is about need
 *     not be computed. Whatever is unlikely calls gt_hot_entry, which does all of it, and comes back
 *     by ret $8 (traced: the caller's address is taken off) or behind the jump there (not traced).
 *     Each call has its ret.
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
	.p2align 5
#ifdef GT_CLOCKS_APART
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

#else
gt_hot_entry:
	test %r10, %r10				/* the stub has reserved a place, and no clock for it */
	jnz entry_no_place
	cmp T(GT_THREAD_GATE), %rsp
	jge entry_general
#endif
	/* A stop costs as little as can be; lack of room is counted in the block. */
	.p2align 4
entry_gate:
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz entry_untraced
	cmpb $0, T(GT_THREAD_STOP)
	je entry_general
	incq T(GT_THREAD_LOST_FULL)
entry_untraced:
	LEAVE_UNTRACED

#ifdef GT_CLOCKS_APART
entry_new_high:
	pop %rdx
#endif
entry_no_place:
	SAVE
	mov %r10, %rcx
	jmp entry_slow_hole

/*
 * gt_hot_exit: a stub jumps here after its function's body returned.
 * in: rcx = the return's word but for the clock; rsp = slot + 8
 * rax and rdx are the function's results. Returns to the real caller, from the mirror.
 */
#ifdef GT_CLOCKS_APART
	.p2align 5
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

#else
	.p2align 5
gt_hot_exit:
#endif
	/* On as in a program, with function << 1 | 1 in the slot. */
exit_off_the_line:
	shr $32, %rcx
	push %rcx
	jmp exit_general
#ifdef GT_CLOCKS_APART
exit_new_high:
	mov %r10, %rax
	mov %r11, %rdx
exit_no_place:
#else
	/* rdi = a place that the stub has reserved */
gt_hot_exit_reserved:
#endif
	shr $32, %rcx
	push %rcx
	SAVE
	mov %rdi, %rcx
	jmp exit_slow_hole

#ifndef GT_CLOCKS_APART
/*
 * A stub. A function's first instruction jumps to stub_start; its body returns to GT_STUB_RETURN. The
 * words before it are an entry's and a return's but for the clock. `.long 0`: stub.c fills it in.
 */
	.macro DISTANCE name
stub_\name:
	.long 0
	.endm

	.p2align 6
gt_hot_stub:
	.quad 0, 0
stub_start:					/* rsp = slot */
	cmp T(GT_THREAD_GATE), %rsp		/* G */
	jl stub_gate
	mov T(GT_THREAD_TOP), %rax
	cmp GT_FRAME_SLOT(%rax), %rsp
	jae stub_cold
	cmp T(GT_THREAD_LIMIT), %rax
	jae stub_cold
	mov (%rsp), %r10
	.byte 0x4c, 0x3b, 0x15			/* cmp gt_hot_stubs(%rip), %r10: perhaps a stub's own */
	DISTANCE stubs
	jae stub_cold
	mov T(GT_THREAD_MIRROR), %rax
	mov %r10, (%rsp, %rax)
	mov $8, %r10d				/* A: reserve … */
	xadd %r10, T(GT_THREAD_CUR)
	test %r10, T(GT_THREAD_INSIDE)
	jz stub_reserved
	mov %rdx, %r11
	READ_CLOCK				/* … read the clock … */
	cmp T(GT_THREAD_HIGH), %edx
	jne stub_new_high
	or gt_hot_stub(%rip), %rax
	mov %rax, (%r10)			/* … store */
	addq $GT_FRAME_BYTES, T(GT_THREAD_TOP)	/* B */
	mov T(GT_THREAD_TOP), %r10
	mov %rax, GT_FRAME_WORD(%r10)
	mov T(GT_THREAD_HIGH), %rax
	mov %rax, GT_FRAME_HIGH(%r10)		/* and the epoch, no flags */
	mov %rsp, GT_FRAME_SLOT(%r10)
	mov %r11, %rdx
	lea 8(%rsp), %rsp
stub_call:
	.byte 0xe8				/* call body */
	DISTANCE call_body
stub_return:					/* rsp = slot + 8 */
	lea -8(%rsp), %r8
	mov T(GT_THREAD_TOP), %r9
	cmp GT_FRAME_SLOT(%r9), %r8
	jne stub_exit
	mov GT_FRAME_EPOCH(%r9), %esi
	cmp T(GT_THREAD_GATE_EPOCH), %esi	/* G */
	jne stub_exit
	mov $8, %edi				/* A */
	xadd %rdi, T(GT_THREAD_CUR)
	test %rdi, T(GT_THREAD_INSIDE)
	jz stub_exit_reserved
	mov %rax, %r10
	mov %rdx, %r11
	READ_CLOCK
	cmp T(GT_THREAD_HIGH), %edx
	jne stub_exit_high
	or gt_hot_stub + 8(%rip), %rax
	mov %rax, (%rdi)
	movq $-1, GT_FRAME_SLOT(%r9)		/* B */
	subq $GT_FRAME_BYTES, T(GT_THREAD_TOP)
	mov %r10, %rax
	mov %r11, %rdx
	mov T(GT_THREAD_MIRROR), %rcx
	push (%r8, %rcx)
	ret

	/* A stop costs as little as can be; lack of room is counted in the block. */
stub_gate:
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz stub_untraced
	cmpb $0, T(GT_THREAD_STOP)
	je stub_cold
	incq T(GT_THREAD_LOST_FULL)
	jmp stub_untraced
stub_new_high:
	mov %r11, %rdx
	jmp stub_reserved
stub_cold:
	xor %r10d, %r10d
stub_reserved:
	.byte 0xe8				/* call gt_hot_entry, or what it is for this function */
	DISTANCE entry
stub_called:
	jmp stub_call				/* here it comes back of a traced call */
stub_untraced:
	.byte 0xe9				/* jmp body */
	DISTANCE jump_body
stub_exit_high:
	mov %r10, %rax
	mov %r11, %rdx
stub_exit_reserved:
	mov gt_hot_stub + 8(%rip), %rcx
	.byte 0xe9				/* jmp gt_hot_exit_reserved */
	.long 0
stub_exit:
	mov gt_hot_stub + 8(%rip), %rcx
	.byte 0xe9				/* jmp gt_hot_exit */
	.long 0
stub_end:

	.macro PLACE name
	.long stub_\name - gt_hot_stub
	.endm
	.section .rodata
	.p2align 2
gt_hot_stub_places:				/* struct places in stub.c */
	PLACE start
	PLACE return
	PLACE called
	PLACE untraced
	PLACE cold
	PLACE exit
	PLACE end
	PLACE stubs
	PLACE call_body
	PLACE entry
	PLACE jump_body
	.long stub_exit + 8 - gt_hot_stub
	.long stub_exit_reserved + 8 - gt_hot_stub
	.section .gt_hot, "ax", @progbits
	.globl gt_hot_stub, gt_hot_stub_places, gt_hot_exit_reserved
	.hidden gt_hot_stub, gt_hot_stub_places, gt_hot_exit_reserved
#endif
