/* SPDX-License-Identifier: MIT */
/*
 * The recorder inside a kernel: one stream a CPU, one frame array a stack. What a kernel calls, in
 * the order in which it comes to need it; doc/porting.md tells the same as a story. The kernel also
 * supplies what port.h lists.
 *
 * Rules, for every function here:
 *  - none is traced, and none calls what is traced;
 *  - those that say "interrupts off" are called with interrupts off on this CPU; an NMI may still
 *    come (gt_kernel_enter_nmi);
 *  - what %gs points to on a CPU begins with its struct gt_thread (x86-64), all zero until
 *    gt_kernel_cpu_start: traced functions may run before, and are not recorded then (with stacks
 *    in the lower half of addresses none may).
 *
 * Stacks: each has its mirror at gt_kernel_mirror(address), mapped before it is used. A stack that
 * has none is no context; traced functions that run on it go unrecorded, and are counted.
 *
 * No preemption inside the recorder: an interrupt that finds gt_kernel_in_recorder(rip) true must
 * not switch threads on its way out (the switch comes with the next interrupt), nor call a traced
 * function behind gt_kernel_leave: a call that is half recorded lies below it, and readers would be
 * told of one call too few.
 */
#ifndef GT_CORE_RECORD_KERNEL_H
#define GT_CORE_RECORD_KERNEL_H

#include "core/record/recorder.h"

/* Numbers of contexts: a thread's is its own number, below this … */
#define GT_KERNEL_INTERRUPT GRAFTRACE_CONTEXT_INTERRUPT
/* … and an interrupt stack's is this plus a number that no other has. */

/* ---- the ring ---- */

/* Bytes that an arena takes with `ring_bytes` of records for `cpus` CPUs: whole pages. Who reads
 * the ring inside the kernel wants sub-buffers of at most 1 MiB: a copy of one is a piece of memory
 * (arena_control.h). */
uint64_t gt_kernel_arena_bytes(uint64_t ring_bytes, uint32_t sub_buffer_bytes, uint32_t cpus);
/* Lays the arena out in zeroed memory of that many bytes: consecutive addresses, which the port may
 * put together from pieces of any size. Tracing is off, the tracer is function_graph. */
void gt_kernel_arena_init(struct graftrace_arena *arena, uint64_t ring_bytes,
			  uint32_t sub_buffer_bytes, uint32_t cpus);

/* ---- contexts ---- */

/*
 * A stack: [low, high), which has its mirror. `frames`: room for that many open calls less one;
 * deeper ones are counted as lost. A context is the caller's memory, as are its frames, and must
 * stay until it never runs again.
 */
void gt_kernel_context_init(struct gt_context *context, uint32_t number, uint64_t low,
			    uint64_t high, struct gt_frame *frames, uint32_t frame_count);

/* ---- CPUs ---- */

/*
 * What the slow half needs of stack at most: block->slow_stack is the top of a piece of that size,
 * of this CPU alone, noted before gt_kernel_cpu_start; the recorder then takes at most
 * GT_KERNEL_STACK_USE of any other stack. 0: all of it runs on whatever stack makes a traced call.
 */
#define GT_KERNEL_SLOW_STACK_BYTES 2048
#define GT_KERNEL_STACK_USE	   512

/* This CPU (whose %gs block begins with `block`) starts recording, on the stack of `context`.
 * Interrupts off. name: of the CPU, in lists of writers. False: no stream is left. */
bool gt_kernel_cpu_start(struct gt_thread *block, uint32_t cpu, struct gt_context *context,
			 const char *name);

/* For the recorder's own files: before `busy` goes down, where the block was changed. */
void gt_kernel_set_gate(struct gt_thread *block);

/* ---- while threads run. Interrupts off ---- */

/* The CPU goes on with another thread's stack: called at the switch, on either stack. state: what
 * the old one is left in, as Linux's sched_switch has it (0 runnable, 1 sleeping …). To the context
 * that runs already: nothing happens. */
void gt_kernel_switch(struct gt_context *next, uint32_t state);

/* An interrupt or exception that runs on a stack of its own: after its way in has changed stacks,
 * before it calls what is traced. rip: where it came from. The same context is not entered twice:
 * what nests on the same stack needs no call at all. */
void gt_kernel_enter(struct gt_context *context, uint64_t rip);
/* Where nothing was entered, nothing happens. */
void gt_kernel_leave(void);

/* The same for an NMI, which can also find the slow half at work. False: it does, and nothing was
 * entered: nothing that is traced may be called. An NMI's work then waits until interrupts are on
 * again, a few microseconds: the slow half has them off. */
bool gt_kernel_enter_nmi(struct gt_context *context, uint64_t rip);

/*
 * While no entry is patched nothing has to be told: a CPU is suspended and woken by whoever patches
 * text, while all CPUs stand still (gt_sites_apply comes before the first is suspended, and after
 * the last is woken). Meanwhile gt_kernel_switch, _enter and _leave do nothing and need not be
 * called. Calls that were open return as ever, unrecorded; those that still are when the CPU is
 * woken return recorded. running: whose stack an address is in, of those that the calling CPU uses.
 * thread: whose stack the woken CPU is on; interrupt: what it is doing on an interrupt's stack
 * (which has been entered then), or NULL.
 */
void gt_kernel_suspend(struct gt_thread *block, struct gt_context *(*running)(uint64_t address));
void gt_kernel_wake(struct gt_thread *block, struct gt_context *thread,
		    struct gt_context *interrupt);

/* The CPU's open sub-buffer ends here, if anything is in it: readers can take it out, and the next
 * record opens another. Of a CPU that stands still in an interrupt, or of the caller's own with
 * interrupts off. Nothing happens to one that was halted (by an NMI) in the slow half. */
void gt_kernel_close(struct gt_thread *block);

/* Is this address in the recorder's own text? The linker script says where that is:
 * gt_recorder_text_start, gt_recorder_text_end. */
bool gt_kernel_in_recorder(uint64_t rip);

/* The running context records nothing until it has been resumed as often as paused. With
 * interrupts on or off; calls that are open go on, and their returns are recorded. */
void gt_kernel_pause(void);
void gt_kernel_resume(void);

/* A line (raw: bytes) into the trace, at this moment, as the running thread's: trace_marker. At
 * most GT_KERNEL_MARK_BYTES. Interrupts on or off; paused contexts too. Not from the recorder's
 * hooks: it takes up to GT_KERNEL_MARK_STACK_USE of the stack that it is called on, slow_stack or
 * not. False: tracing is off, or there is no room. */
#define GT_KERNEL_MARK_BYTES	 1024
#define GT_KERNEL_MARK_STACK_USE 1024
bool gt_kernel_mark(const void *bytes, uint32_t count, bool raw);

/* What a static event (graftrace/event_kernel.h) takes of the stack that it is on. */
#define GT_KERNEL_EVENT_STACK_USE 1536

/* ---- settings. From any CPU, at any time ---- */

void gt_kernel_set_tracing_on(bool on);
void gt_kernel_set_tracer(enum graftrace_tracer tracer);
void gt_kernel_set_max_depth(uint32_t depth);
void gt_kernel_set_threshold(uint64_t ticks);
/* Functions whose stubs enter the graph (gt_site_kind ROOT) are in use, or not any more. */
void gt_kernel_set_graph_only(bool graph_only);
void gt_kernel_set_func_stack(bool on);

/*
 * Threads that are traced alone, or not at all, by their numbers: zero-terminated tables in the
 * arena (graftrace/selected.h), which whoever reads the trace writes. A CPU looks at them when it
 * takes another context up: stop all CPUs by an interrupt (as gt_sites_apply does) where that shall
 * be now.
 */

/* The function profiler. CPU's table: an address for each page of 64 functions, `pages` of them,
 * each of zeroed memory that stays. Before it is switched on, once for each CPU that has started.
 */
void gt_kernel_profile_table(uint32_t cpu, struct graftrace_profile_entry **table, uint32_t pages);
void gt_kernel_set_profile(bool on);

#endif
