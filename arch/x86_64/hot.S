/* SPDX-License-Identifier: MIT */
/*
 * The recording path: what a stub calls at a function's entry and jumps to at its return. One straight
 * line each; whatever is unlikely leaves by one jump. Every register but the flags is preserved, no
 * stack alignment is assumed, vector registers are not touched.
 *
 * In a program this text is copied beside the code it serves (struct graftrace_region lies one page before
 * it), so it refers to itself and to the region only relative to rip, and leaves through the region's
 * pointers. With GT_KERNEL it is linked into a kernel.
 *
 * Signals may arrive between any two instructions and run traced functions:
 *  A. a record's place is reserved by one instruction (xadd), then the clock is read, then one store
 *     fills it. A nested writer takes later places; ours stays zero until the store. Whether the
 *     place is one is told by its own address, never by what the block says by then: sub-buffers
 *     are aligned to their size, so a place behind the last word lies where the next one's header
 *     would. A nested writer may have opened another sub-buffer, or none, or changed the tracer: a
 *     place of ours stays ours, and the cursor of a tracer that is not the chosen one is 0.
 *  B. a frame is reserved by one instruction (xadd to TOP) while its slot is GT_SLOT_UNSET ("in flight"),
 *     the slot is stored last of its fields that matter. Which frame it is, that instruction alone says: TOP
 *     is not read again, for by then it may be that of a fork's child (W), where no frame in flight counts.
 *     Popping moves TOP first, then stores GT_SLOT_UNSET: a top that is it is a push, whose record is there.
 *     A program's nested entry above it takes the slow half, since no slot lies below 0: what runs there may
 *     be another stack, whose slots the floor does not tell from this one's. A kernel's stands on it as on
 *     any other. The slow half passes over it, or takes it off with the frame beneath it.
 *  C. nested calls leave TOP as they found it and never move a frame array under a running context but
 *     twice, when it outgrows its first and its second one (then the slow path of the return repairs it).
 *     A handler that goes on in another coroutine, by edited registers or by stacks that it switches itself,
 *     keeps neither this nor LIFO: then the push or the pop is of a frame of whichever context runs.
 *     Arrays have margins (GT_MARGIN_FRAMES) for what that moves TOP beyond them, and the slow half, which
 *     is next, as a margin's frames are unset, puts it back.
 *  W. a handler may fork, and the child, whose block fork has wiped, returns from it to the middle of a
 *     straight line. No mode and no owner lead the next call to the slow path; the one that goes on must not
 *     fault. A wiped cursor is no place (A). Frames are reached from TOP by addresses relative to the
 *     block, so a TOP of 0, or of one frame, is the block's own middle (GT_THREAD_SCRAP), which nobody
 *     reads before the block is made anew. Other pointers are loaded once, and looked at before or with what
 *     is wiped with them.
 */
#include "arch/x86_64/clock.h"
#include "arch/x86_64/unwind.h"
#include "core/record/layout.h"

#ifdef GT_KERNEL
/* Linked into a kernel: there is one region, and a block belongs to its CPU whatever runs there. */
#define REGION(field) (gt_hot_region + (field))(%rip)
#define CHECK_OWNER(otherwise)

#include "arch/x86_64/leave.h"
#define TO_MIRROR(slot) add T(GT_THREAD_MIRROR), slot
/* out: register = function number * 32; stub: where the stub's return address stands */
	.macro FUNCTION_32 stub, register
	mov \stub(%rsp), \register
	mov (GT_STUB_WORD - GT_STUB_RETURN)(\register), \register
	shr $28, \register
	.endm
	/* A frame with flags is being pushed. An interrupt that came behind the look at the mode may have
	 * opened the gate: then no return goes straight until it is set again, above this frame (K). */
	.macro FRAME_WITH_FLAGS
	movq $-1, %gs:GT_THREAD_GATE_TOP
	.endm
	/* rdx = function number << 33 */
	.macro FUNCTION_WORD
	mov 24(%rsp), %rdx
	mov (GT_STUB_WORD - GT_STUB_RETURN)(%rdx), %rdx
	.endm
#else
#define REGION(field) (gt_hot_start - 4096 + (field))(%rip)

#define TO_MIRROR(slot)			\
	btc $GT_MIRROR_BIT, slot;	\
	xor $GT_MIRROR_TURN, slot
#define LEAVE_TRACED   clc; ret
#define LEAVE_UNTRACED stc; ret
	/* What a kernel's stub leaves to be done. */
	.macro STUB_CALLED
	.endm
	.macro FRAME_WITH_FLAGS
	.endm
#define LEAVE_CALLED LEAVE_UNTRACED
	.macro FUNCTION_32 stub, register
	mov \stub(%rsp), \register
	sub REGION(GT_REGION_BIAS), \register
	.endm
	.macro FUNCTION_WORD
	mov 24(%rsp), %rdx
	sub REGION(GT_REGION_BIAS), %rdx
	shl $28, %rdx
	.endm
#define CHECK_OWNER(otherwise)			\
	mov %fs:0, %rax;			\
	cmp T(GT_THREAD_OWNER), %rax;		\
	jne otherwise
/* The same before SAVE, keeping all registers. */
#define CHECK_OWNER_OF_STOP(otherwise)		\
	STACK_PUSH %rax;			\
	mov %fs:0, %rax;			\
	cmp T(GT_THREAD_OWNER), %rax;		\
	STACK_POP %rax;				\
	jne otherwise
#endif
#define T(field)      %gs:(field)
/* A field of a frame that TOP has led to. */
#ifdef GT_KERNEL
#define F(field, frame) (field)(frame)
#else
#define F(field, frame) %gs:(GT_THREAD_SCRAP + (field))(frame)
#endif
/* A field of the frame above it, which is being pushed. */
#define NEW(field, frame) F(GT_FRAME_BYTES + (field), frame)

	.section .gt_hot, "ax", @progbits
	.p2align 6
	.globl gt_hot_start
	.hidden gt_hot_start
gt_hot_start:

	/* stack after it: 0 rdx 8 rcx 16 rax | 24 stub + 5 | 32 slot */
	.macro SAVE
	STACK_PUSH %rax
	STACK_PUSH %rcx
	STACK_PUSH %rdx
	.endm
	.macro RESTORE
	STACK_POP %rdx
	STACK_POP %rcx
	STACK_POP %rax
	.endm

	/*
	 * The checks of a graph entry: the block is this thread's, the slot lies below the top frame's and
	 * has a mirror, the frame array has room, the return address is no stub's. Then the mirror has it.
	 */
	.macro CHECK_GRAPH_ENTRY name
	CHECK_OWNER(entry_slow)
	lea 32(%rsp), %rcx
	mov T(GT_THREAD_TOP), %rdx
	cmp T(GT_THREAD_FLOOR), %rcx
	jb entry_slow
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jae entry_not_below
	cmp T(GT_THREAD_LIMIT), %rdx
	jae entry_limit
	mov (%rcx), %rax
#ifdef GT_KERNEL
	cmp gt_hot_stubs(%rip), %rax
	jae entry_maybe_stub_\name
#else
	lea -21(%rax), %edx
	test $31, %dl
	jz entry_maybe_stub_\name
#endif
entry_goes_on_\name:
	TO_MIRROR(%rcx)
	mov %rax, (%rcx)
	.endm

	.macro MAYBE_STUB name
#ifdef GT_KERNEL
	/* The return address lies behind where stubs begin. */
entry_maybe_stub_\name:
	mov %rax, %rdx
	sub gt_hot_stubs(%rip), %rdx
	cmp gt_hot_stubs + 8(%rip), %rdx
	jae entry_goes_on_\name
	jmp entry_slow
#else
entry_maybe_stub_\name:
	/* The return address ends like a stub's return point: look whether it is one. */
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
#endif
	.endm

	/* in: rcx = reserved place; out: rax = low half of the clock. Leaves when the high half is new. */
	.macro CLOCK clock_slow
	READ_CLOCK
	cmp T(GT_THREAD_HIGH), %edx
	jne \clock_slow
	.endm

/*
 * gt_hot_entry: the target of every stub's first call. All registers are the caller's.
 * stack: 0 stub + 5 | 8 real return address (its address is the slot)
 * out: CF = 0: traced, the mirror has the return address; CF = 1: not traced, nothing changed.
 */
#ifdef GT_KERNEL
#include "arch/x86_64/hot_kernel.S"
	.p2align 5
entry_general:
#else
	.p2align 5
gt_hot_entry:
#endif
	ENTRY_RULES 0
	cmpl $(GT_MODE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	jne entry_other
	SAVE
	CHECK_GRAPH_ENTRY graph
	mov $8, %ecx				/* A: reserve … */
	xadd %rcx, T(GT_THREAD_CUR)
	test %rcx, T(GT_THREAD_INSIDE)
	jz entry_slow_hole
	CLOCK entry_slow_hole			/* … read the clock … */
	FUNCTION_WORD
	or %rax, %rdx
	mov %rdx, (%rcx)			/* … store */
	mov $GT_FRAME_BYTES, %ecx
	xadd %rcx, T(GT_THREAD_TOP)		/* B */
	mov %rdx, NEW(GT_FRAME_WORD, %rcx)
	mov T(GT_THREAD_HIGH), %rax
	mov %rax, NEW(GT_FRAME_HIGH, %rcx)	/* and the epoch, no flags */
	lea 32(%rsp), %rdx
	mov %rdx, NEW(GT_FRAME_SLOT, %rcx)
	RESTORE
#ifdef GT_KERNEL
	LEAVE_TRACED
#else
	ret				/* CF = 0 since the addition to TOP */
#endif

	/* Stopped, or another tracer. For lack of room alone an entry is counted. */
entry_other:
#ifdef GT_KERNEL
	/* Stops were looked at by gt_hot_entry; one that came since is met by the next call. */
	cmpl $(GT_MODE_PROFILE << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je entry_profile
#else
	cmpl $(GT_MODE_PROFILE << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je entry_profile
	cmpl $(GT_MODE_PROFILE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je entry_profile_graph
	testl $GT_STOP_CAUSES, T(GT_THREAD_STOP)
	jnz entry_stopped
#endif
	cmpb $GT_MODE_FUNCTION, T(GT_THREAD_STOP + 3)
	je entry_function
	cmpb $GT_MODE_THRESHOLD, T(GT_THREAD_STOP + 3)
	je entry_threshold
	cmpb $GT_MODE_NOP, T(GT_THREAD_STOP + 3)
	je 1f
	cmpb $GT_MODE_NOTRACE, T(GT_THREAD_STOP + 3)
	je entry_below_notrace
	SAVE
	jmp entry_slow
	PUSHED 0
#ifdef GT_KERNEL
1:	LEAVE_UNTRACED
#else
	/* A stop is one thread's: it may be the block that a new one has inherited. */
entry_stopped:
	CHECK_OWNER_OF_STOP(entry_not_mine)
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz 1f
	cmpb $GT_MODE_NOTRACE, T(GT_THREAD_STOP + 3)
	je 1f
	STACK_PUSH %rax
	mov T(GT_THREAD_LOST_FULL), %rax
	test %rax, %rax				/* W */
	jz 2f
	incq (%rax)
2:
	STACK_POP %rax
	stc
	ret
1:	stc
	ret
entry_not_mine:
	SAVE
	jmp entry_slow
#endif

	/* Below a function of set_graph_notrace, if that is still what runs: a longjmp may have left it,
	 * or another stack have taken over. */
	.p2align 4
	PUSHED 0
entry_below_notrace:
	SAVE
	CHECK_OWNER(entry_slow)
	lea 32(%rsp), %rcx
	mov T(GT_THREAD_TOP), %rdx
	cmp T(GT_THREAD_FLOOR), %rcx
	jb entry_slow
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jae entry_slow
	RESTORE
	LEAVE_UNTRACED

/* tracer function_graph with tracing_thresh: nothing is written until a long call returns */
	.p2align 4
	PUSHED 0
entry_threshold:
	SAVE
	CHECK_GRAPH_ENTRY threshold
	READ_CLOCK
	mov %edx, %ecx				/* the high half */
	FUNCTION_WORD
	or %rax, %rdx
	mov $GT_FRAME_BYTES, %eax
	xadd %rax, T(GT_THREAD_TOP)		/* B */
	FRAME_WITH_FLAGS
	mov %rdx, NEW(GT_FRAME_WORD, %rax)
	mov %ecx, NEW(GT_FRAME_HIGH, %rax)
	mov T(GT_THREAD_EPOCH), %ecx
	or $GT_FRAME_THRESHOLD, %ecx
	mov %ecx, NEW(GT_FRAME_EPOCH, %rax)
	lea 32(%rsp), %rdx
	mov %rdx, NEW(GT_FRAME_SLOT, %rax)
	RESTORE
	LEAVE_TRACED

/* tracer function: the entry and its caller, two words; the return is left alone */
	.p2align 4
	PUSHED 0
entry_function:
	SAVE
	CHECK_OWNER(entry_slow)
	mov $16, %ecx
	xadd %rcx, T(GT_THREAD_CUR_PAIR)
	test %rcx, T(GT_THREAD_INSIDE)
	jz entry_slow_hole
	mov 32(%rsp), %rax
	mov %rax, 8(%rcx)
	CLOCK entry_slow_hole
	FUNCTION_WORD
	or %rdx, %rax
	mov %rax, (%rcx)
	RESTORE
	LEAVE_UNTRACED

/* A function of set_graph_function: from outside it goes in by the slow path, inside it is one as all. */
	.p2align 4
	PUSHED 0
gt_hot_entry_root:
	testl $GT_STOP_OUTSIDE, T(GT_THREAD_STOP)
	jz 1f
	testl $(GT_STOP_CAUSES & ~GT_STOP_OUTSIDE), T(GT_THREAD_STOP)
	jnz 1f
	STUB_CALLED
	SAVE
	mov $GT_ENTRY_ROOT, %eax
	jmp entry_slow_kind
	PUSHED 0
1:
#ifdef GT_KERNEL
	jmp gt_hot_entry
#else
	/* a block that is not this thread's: outside or not is not known from it */
	STACK_PUSH %rax
	mov %fs:0, %rax
	cmp T(GT_THREAD_OWNER), %rax
	STACK_POP %rax
	je gt_hot_entry
	SAVE
	mov $GT_ENTRY_ROOT, %eax
	jmp entry_slow_kind
#endif

/* A function whose return address must stay where it is. */
	.p2align 4
	PUSHED 0
gt_hot_entry_only:
	testl $GT_STOP_CAUSES, T(GT_THREAD_STOP)
	jnz 1f
2:	STUB_CALLED
	SAVE
3:	mov $GT_ENTRY_ONLY, %eax
	jmp entry_slow_kind
	PUSHED 0
1:
#ifdef GT_KERNEL
	LEAVE_CALLED
#else
	CHECK_OWNER_OF_STOP(2b)
	SAVE
	mov 32(%rsp), %eax			/* perhaps a stub's return point, which has to go */
	sub $21, %eax
	test $31, %al
	jz 3b
	RESTORE
	stc
	ret
#endif

/* A function with a trigger: whatever is stopped, the slow path looks what is to happen. */
	.p2align 4
	PUSHED 0
gt_hot_entry_trigger:
	STUB_CALLED
	SAVE
	mov $GT_ENTRY_TRIGGER, %eax
	jmp entry_slow_kind

/* A function of set_graph_notrace: for function_graph a frame of its own that no record tells of. */
	.p2align 4
	PUSHED 0
gt_hot_entry_notrace:
	testl $(GT_STOP_CAUSES & ~(GT_STOP_OUTSIDE | GT_STOP_FULL)), T(GT_THREAD_STOP)
	jnz 1f
	cmpb $GT_MODE_FUNCTION, T(GT_THREAD_STOP + 3)
	je 1f
	cmpb $GT_MODE_PROFILE, T(GT_THREAD_STOP + 3)
	je 1f
	cmpb $GT_MODE_NOTRACE, T(GT_THREAD_STOP + 3)
	je 1f
	STUB_CALLED
	SAVE
	mov $GT_ENTRY_NOTRACE, %eax
	jmp entry_slow_kind
	PUSHED 0
1:	jmp gt_hot_entry

/* A function that is patched for the stack traces of others (GT_MODE_STACK). */
	.p2align 4
	PUSHED 0
gt_hot_entry_silent:
	testl $(GT_STOP_CAUSES & ~GT_STOP_FULL), T(GT_THREAD_STOP)
	jnz 1f
	cmpb $GT_MODE_STACK, T(GT_THREAD_STOP + 3)
	je 2f
	cmpb $0, T(GT_THREAD_STOP + 3)
	je 2f
1:	LEAVE_CALLED
2:	STUB_CALLED
	SAVE
	mov $GT_ENTRY_SILENT, %eax
	jmp entry_slow_kind

#ifndef GT_KERNEL
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
#endif

#ifndef GT_KERNEL
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
#endif

/*
 * gt_hot_exit: a stub jumps here after its function's body returned.
 * stack: 0 function << 1 | 1, in the slot that held the stub's return point
 * All other registers are the function's results. Returns to the real caller, from the mirror.
 */
	.p2align 5
#ifdef GT_KERNEL
exit_general:					/* from hot_kernel.S, which has put it there */
#else
gt_hot_exit:
#endif
	EXIT_RULES 0
	SAVE					/* 24(%rsp): the slot */
	cmpl $(GT_MODE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	jne exit_stopped
exit_goes_on:
	lea 24(%rsp), %rcx
	mov T(GT_THREAD_TOP), %rdx
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jne exit_slow
	mov F(GT_FRAME_EPOCH, %rdx), %eax
	cmp T(GT_THREAD_EPOCH), %eax
	jne exit_flags
	mov $8, %ecx
	xadd %rcx, T(GT_THREAD_CUR)
	test %rcx, T(GT_THREAD_INSIDE)
	jz exit_slow_hole
	CLOCK exit_slow_hole
	mov 24(%rsp), %rdx
	shl $32, %rdx
	or %rdx, %rax
	mov %rax, (%rcx)
exit_pop:
	mov T(GT_THREAD_TOP), %rdx
	subq $GT_FRAME_BYTES, T(GT_THREAD_TOP)	/* B */
	movq $GT_SLOT_UNSET, F(GT_FRAME_SLOT, %rdx)
#ifdef GT_KERNEL
	cmp T(GT_THREAD_GATE_TOP), %rdx
	je exit_lower_gate
exit_gate_is_lower:
#endif
	lea 24(%rsp), %rdx
	TO_MIRROR(%rdx)
	mov (%rdx), %rax
	mov %rax, 24(%rsp)
	RESTORE
	ret

	/* What is unlikely. */
	ENTRY_RULES 3
	MAYBE_STUB graph
	PUSHED 3
	MAYBE_STUB threshold
	EXIT_RULES 3

#ifdef GT_KERNEL
	/* The newest unplain frame is gone (K). The comparison fails if the gate was closed meanwhile, by
	 * another CPU (so it is locked), or set by an interrupt. */
exit_lower_gate:
	mov %rdx, %rax
	lea -GT_FRAME_BYTES(%rdx), %rcx
	lock cmpxchg %rcx, T(GT_THREAD_GATE_TOP)
	jmp exit_gate_is_lower
#endif

	/* Something is stopped. Lack of room and being outside are the entries' business. No mode: a block
	 * that fork wiped, or that has to read its settings. Tracing off, or another tracer's mode: the frame
	 * goes, nothing is recorded, and the next record says how deep it is. */
exit_stopped:
	cmpl $(GT_MODE_PROFILE << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je exit_profile
	cmpl $(GT_MODE_PROFILE_GRAPH << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je exit_profile_graph
	testl $(0xff << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	jz exit_slow
	CHECK_OWNER(exit_slow)			/* the function may have set %gs, and these are its own bytes */
	mov T(GT_THREAD_STOP), %eax
	and $(0xff000000 | GT_STOP_HOST * 0xff), %eax
	cmp $(GT_MODE_GRAPH << GT_STOP_MODE_SHIFT), %eax
	je exit_goes_on
	cmp $(GT_MODE_THRESHOLD << GT_STOP_MODE_SHIFT), %eax
	je exit_goes_on
	cmp $(GT_MODE_PROFILE_GRAPH << GT_STOP_MODE_SHIFT), %eax
	je exit_slow
	cmp $(GT_MODE_NOTRACE << GT_STOP_MODE_SHIFT), %eax
	je exit_slow
	lea 24(%rsp), %rcx
	mov T(GT_THREAD_TOP), %rdx
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jne exit_slow
	testb $~GT_FRAME_THRESHOLD, F(GT_FRAME_EPOCH, %rdx)
	jnz exit_slow
	orq $GT_RESUME_MISSED, T(GT_THREAD_RESUME)
	movb $0, T(GT_THREAD_STOP + 3)
#ifdef GT_KERNEL
	movl $(GT_GATE_CLOSED >> 32), T(GT_THREAD_GATE + 4)
	movq $-1, T(GT_THREAD_GATE_TOP)
#endif
	jmp exit_pop
	/* rdx = frame, eax = its epoch. With a threshold only a long call is worth the slow path. */
exit_flags:
	test %al, %al
	jz exit_long
	cmp $GT_FRAME_THRESHOLD, %al
	jne exit_slow
	mov %rdx, %rcx
	READ_CLOCK
	shl $32, %rdx
	or %rdx, %rax
	mov F(GT_FRAME_HIGH, %rcx), %edx
	shl $32, %rdx
	mov F(GT_FRAME_WORD, %rcx), %ecx
	or %rcx, %rdx
	sub %rdx, %rax
	cmp T(GT_THREAD_THRESHOLD), %rax
	jbe exit_pop
exit_slow:
	xor %ecx, %ecx
	jmp exit_slow_hole

	/*
	 * The call began before this sub-buffer or before its context was switched in: four words, as
	 * write_long_return() in slow.c. All calls that are open at the end of a sub-buffer come here,
	 * too many for the slow path. rdx = frame
	 */
exit_long:
	mov $32, %ecx
	xadd %rcx, T(GT_THREAD_CUR)
	lea 24(%rcx), %rax
	test %rax, T(GT_THREAD_INSIDE)		/* the last of the four */
	jz exit_slow_hole4
	STACK_PUSH %rsi
	mov %rdx, %rsi
	READ_CLOCK
	cmp T(GT_THREAD_HIGH), %edx
	jne exit_long_high
	cmp F(GT_FRAME_HIGH, %rsi), %edx		/* the entry's half is a handler's: gt_frame_start */
	jb exit_long_high
	movabs $GT_LONG_RETURN_WORD, %rdx
	mov %rdx, (%rcx)
	mov F(GT_FRAME_WORD, %rsi), %edx		/* the entry's clock */
	mov %edx, 16(%rcx)
	mov F(GT_FRAME_HIGH, %rsi), %edx
	mov %edx, 20(%rcx)
	mov T(GT_THREAD_CONTEXT), %rdx		/* the depth: frame - frames, without the sentinel */
#ifdef GT_KERNEL
	sub GT_CONTEXT_FRAMES(%rdx), %rsi
	shr $GT_FRAME_SHIFT, %rsi
	dec %rsi
#else
	test %rdx, %rdx				/* W */
	jz exit_long_high
	cmpb $0, GT_CONTEXT_HIDES(%rdx)		/* frames are not what readers count */
	jne exit_long_high
	add T(GT_THREAD_SELF), %rsi
	sub GT_CONTEXT_FRAMES(%rdx), %rsi
	add $(GT_THREAD_SCRAP - GT_FRAME_BYTES), %rsi
	shr $GT_FRAME_SHIFT, %rsi
#endif
	mov %rsi, 24(%rcx)
	mov 32(%rsp), %rdx
	shl $32, %rdx
	or %rdx, %rax
	mov %rax, 8(%rcx)
	STACK_POP %rsi
	jmp exit_pop
	PUSHED 4
exit_long_high:
	STACK_POP %rsi
exit_slow_hole4:
	or $3, %rcx				/* three more words than one */
exit_slow_hole:
	jmp *REGION(GT_REGION_EXIT_SLOW)

	/* The slot is at or above the top's: a tail call (same slot, and the return address is the stub's
	 * of the top's function, in this region): return of the old and entry of the new, one stamp. */
	ENTRY_RULES 3
entry_not_below:
	cmp F(GT_FRAME_SLOT, %rdx), %rcx
	jne entry_slow
#ifdef GT_KERNEL
	cmp T(GT_THREAD_GATE_TOP), %rdx		/* K */
	ja 1f
#endif
	mov F(GT_FRAME_EPOCH, %rdx), %eax
	cmp T(GT_THREAD_EPOCH), %eax
	jne entry_slow
1:
#ifdef GT_KERNEL
	mov (%rcx), %rax
	sub gt_hot_stubs(%rip), %rax
	cmp gt_hot_stubs + 8(%rip), %rax
	jae entry_slow
	add gt_hot_stubs(%rip), %rax
	mov (GT_STUB_WORD - GT_STUB_RETURN)(%rax), %rax		/* the stub's word */
	xor F(GT_FRAME_WORD, %rdx), %rax
	shr $33, %rax
	jnz entry_slow
#else
	mov F(GT_FRAME_WORD, %rdx), %rax
	shr $33, %rax
	shl $5, %rax				/* its return point: bias + 16 + 32 * function */
	add REGION(GT_REGION_BIAS), %rax
	add $16, %rax
	cmp (%rcx), %rax
	jne entry_slow
#endif
	mov $16, %ecx
	xadd %rcx, T(GT_THREAD_CUR)
	lea 8(%rcx), %rax
	test %rax, T(GT_THREAD_INSIDE)
	jz entry_slow_hole2
	CLOCK entry_slow_hole2
	STACK_PUSH %rsi
	mov T(GT_THREAD_TOP), %rsi
	mov F(GT_FRAME_WORD, %rsi), %rdx
	shr $32, %rdx
	shl $32, %rdx
	or %rax, %rdx
	bts $32, %rdx
	mov %rdx, (%rcx)			/* the old one's return */
	mov 32(%rsp), %rdx
#ifdef GT_KERNEL
	mov (GT_STUB_WORD - GT_STUB_RETURN)(%rdx), %rdx
#else
	sub REGION(GT_REGION_BIAS), %rdx
	shl $28, %rdx
#endif
	or %rax, %rdx
	mov %rdx, 8(%rcx)			/* the new one's entry */
	mov %rdx, F(GT_FRAME_WORD, %rsi)
	mov T(GT_THREAD_HIGH), %rax
	mov %rax, F(GT_FRAME_HIGH, %rsi)
	STACK_POP %rsi
	RESTORE
	LEAVE_TRACED
	PUSHED 3
entry_slow_hole2:
	/* one more word than one: the low bits say so */
	or $1, %rcx
	jmp entry_slow_hole

entry_limit:
	cmp T(GT_THREAD_DEPTH_LIMIT), %rdx
	jb entry_slow
	RESTORE
	LEAVE_UNTRACED

	PUSHED 3
entry_slow:
	xor %ecx, %ecx
entry_slow_hole:
	mov $GT_ENTRY_ON, %eax
	jmp 1f
entry_slow_kind:
	xor %ecx, %ecx
1:	FUNCTION_32 24, %rdx
	jmp *REGION(GT_REGION_ENTRY_SLOW)

/*
 * gt_hot_hook: the target of a hook's stub.
 * stack: 0 stub + 10 | 8 site (sign-extended) | 16 real return address
 */
	PUSHED 0
gt_hot_hook:
	jmp *REGION(GT_REGION_HOOK_SLOW)

#ifndef GT_KERNEL
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
#endif

#include "arch/x86_64/profile.S"

	NO_RULES
gt_hot_end:

#ifdef GT_KERNEL
	/* where stubs go (stub.c) */
	.globl gt_hot_entry, gt_hot_entry_root, gt_hot_entry_only, gt_hot_entry_trigger, gt_hot_exit, gt_hot_end
	.hidden gt_hot_entry, gt_hot_entry_root, gt_hot_entry_only, gt_hot_exit, gt_hot_end
	.globl gt_hot_entry_notrace, gt_hot_entry_silent
	.hidden gt_hot_entry_notrace, gt_hot_entry_silent
#else
	/* The hot text's part of the image's header (struct graftrace_agent_image). */
	.section .image_header.hot, "a", @progbits
	.macro OFFSET symbol
	.long \symbol - gt_hot_start
	.endm
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
#endif

	.section .note.GNU-stack, "", @progbits
