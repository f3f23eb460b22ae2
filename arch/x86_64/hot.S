/* SPDX-License-Identifier: MIT */
/*
 * The recording path: what a stub calls at a function's entry and jumps to at its return. One straight
 * line each; whatever is unlikely leaves by one jump. Every register but the flags is preserved, no
 * stack alignment is assumed, vector registers are not touched.
 *
 * In a program this text is copied beside the code it serves (struct graftrace_region lies one page before
 * it), so it refers to itself and to the region only relative to rip, and leaves through the region's
 * pointers. In a kernel it is linked where it is: there is one region, and a block belongs to its CPU whatever
 * runs there. What differs between the two has names here; hot_program.h and hot_kernel.h say what they do.
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

#define T(field) %gs:(field)
/* A field of the frame above that of F, which is being pushed. */
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
 * What differs between programs and kernels, as macros. Each stands behind SAVE unless its line says otherwise,
 * so that rax, rcx and rdx may change.
 *
 * REGION(field)		a pointer of the region
 * F(field, frame)		a field of a frame that TOP has led to
 * TO_MIRROR(slot)		slot = its mirror
 *
 * Whose block it is, and whether anything is stopped:
 * CHECK_OWNER(otherwise)	rax: jumps if the block is not this thread's
 * CHECK_OWNER_OF_STOP(otherwise)	before SAVE, keeping all registers: the same
 * CHECK_STOPS			before SAVE: leaves if something is stopped
 * STOPPED_ENTRIES		where CHECK_STOPS leaves to, and entry_nop: the tracer is nop
 * ENTRY_INSIDE kind		before SAVE: on to gt_hot_entry, or by the slow path if the block is not this thread's
 * STOPPED_ONLY			before SAVE: something is stopped, at an entry whose return address stays where it is
 *
 * The stub that has called:
 * FUNCTION_32 stub, register	register = function number * 32; stub: where the stub's return address stands
 * FUNCTION_WORD stub		rdx = function number << 33
 * STUB_CALLED, LEAVE_…		before SAVE, or behind RESTORE: how an entry begins and ends (leave.h)
 * LEAVE_TRACED_NO_CARRY	LEAVE_TRACED where CF = 0
 *
 * Return addresses that are a stub's own:
 * CHECK_STUB maybe		rax = return address; jumps if it may be one. rdx changes
 * MAYBE_STUB name		there: on to entry_goes_on_NAME if it is none
 * CHECK_TAIL_CALL		rcx = slot, rdx = top frame: leaves unless the slot has the stub's return point of
 *				the frame's function
 *
 * Frames:
 * FRAME_WITH_FLAGS		a frame with flags is being pushed
 * IF_PLAIN frame, there	jumps if the frame is one of a kernel's shorter lines, which has no epoch
 * FRAME_DEPTH			rdx = context, rsi = frame: rsi = calls that are open around it
 * POPPED			rdx = the frame that has been popped
 * LOWER_GATE			where POPPED leaves to
 * CLOSE_GATE			from here on no call and no return takes a kernel's shorter lines
 *
 * Names:
 * GENERAL_ENTRY, GENERAL_EXIT	these lines; a kernel has gt_hot_entry and gt_hot_exit of its own, shorter ones
 * MORE_ENTRIES			entries that kernels do not have
 * HOT_NAMES			tells others where the entries are
 */
#ifdef GT_KERNEL
#include "arch/x86_64/hot_kernel.h"
#include "arch/x86_64/hot_kernel.S"
#else
#include "arch/x86_64/hot_program.h"
#endif

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
	CHECK_STUB entry_maybe_stub_\name
entry_goes_on_\name:
	TO_MIRROR(%rcx)
	mov %rax, (%rcx)
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
	.p2align 5
GENERAL_ENTRY:
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
	FUNCTION_WORD 24
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
	LEAVE_TRACED_NO_CARRY		/* CF = 0 since the addition to TOP */

	/* Stopped, or another tracer. For lack of room alone an entry is counted. */
entry_other:
	cmpl $(GT_MODE_PROFILE << GT_STOP_MODE_SHIFT), T(GT_THREAD_STOP)
	je entry_profile
	CHECK_STOPS
	cmpb $GT_MODE_FUNCTION, T(GT_THREAD_STOP + 3)
	je entry_function
	cmpb $GT_MODE_THRESHOLD, T(GT_THREAD_STOP + 3)
	je entry_threshold
	cmpb $GT_MODE_NOP, T(GT_THREAD_STOP + 3)
	je entry_nop
	cmpb $GT_MODE_NOTRACE, T(GT_THREAD_STOP + 3)
	je entry_below_notrace
	SAVE
	jmp entry_slow
	PUSHED 0
	STOPPED_ENTRIES

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
	FUNCTION_WORD 24
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
	FUNCTION_WORD 24
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
1:	ENTRY_INSIDE GT_ENTRY_ROOT

/* A function whose return address must stay where it is. */
	.p2align 4
	PUSHED 0
gt_hot_entry_only:
	testl $GT_STOP_CAUSES, T(GT_THREAD_STOP)
	jnz 1f
entry_only_slow:
	STUB_CALLED
	SAVE
entry_only_saved:
	mov $GT_ENTRY_ONLY, %eax
	jmp entry_slow_kind
	PUSHED 0
1:	STOPPED_ONLY

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

	MORE_ENTRIES

/*
 * gt_hot_exit: a stub jumps here after its function's body returned.
 * stack: 0 function << 1 | 1, in the slot that held the stub's return point
 * All other registers are the function's results. Returns to the real caller, from the mirror.
 */
	.p2align 5
GENERAL_EXIT:
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
	POPPED
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

	LOWER_GATE

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
	CLOSE_GATE
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
	FRAME_DEPTH
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
	IF_PLAIN %rdx, 1f
	mov F(GT_FRAME_EPOCH, %rdx), %eax
	cmp T(GT_THREAD_EPOCH), %eax
	jne entry_slow
1:	CHECK_TAIL_CALL
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
	FUNCTION_WORD 32
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
#include "arch/x86_64/hot_events.S"
#endif

#include "arch/x86_64/profile.S"

	NO_RULES
gt_hot_end:

	HOT_NAMES

	.section .note.GNU-stack, "", @progbits
