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
 * has none is no context; traced functions that run on it go unrecorded, and are counted. All stacks
 * agree in bit 46 of their addresses: their mirrors are at the same distance.
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

/* Bytes that an arena takes with `ring_bytes` of records for `cpus` CPUs: whole pages. To read
 * the ring inside the kernel, sub-buffers must be of at most 1 MiB: a copy of one is one piece of memory
 * (core/kernel/kernel_control.h). */
uint64_t gt_kernel_arena_bytes(uint64_t ring_bytes, uint32_t sub_buffer_bytes, uint32_t cpus);
/* Lays the arena out in zeroed memory of that many bytes: consecutive addresses, which the port may
 * put together from pieces of any size. Tracing is off, the tracer is function_graph. */
void gt_kernel_arena_init(struct graftrace_arena *arena, uint64_t ring_bytes,
			  uint32_t sub_buffer_bytes, uint32_t cpus);

/* Events that can be defined while the kernel runs, besides `events` static ones: probes, and those that histograms make. */
#define GT_KERNEL_LATER_EVENTS 1536
/* Filters, triggers and histograms of static events (graftrace/filter.h, hist.h): what they take for `events` events,
 * with `hists_bytes` for the tables of histograms (0: there are none; the usual one of 2,048 entries takes some
 * 100 KiB). Whole pages. */
uint64_t gt_kernel_rules_bytes(uint32_t events, uint64_t hists_bytes);
/* Lays that out in zeroed memory of that many bytes, on a page's start, at higher addresses than the arena; once, after
 * gt_kernel_arena_init and before the control files. A kernel that does not call it has events without them. */
void gt_kernel_rules_init(struct graftrace_arena *arena, void *memory, uint32_t events,
			  uint64_t hists_bytes);

/* ---- contexts ---- */

/*
 * A stack: [low, high), which has its mirror. `frames`: room for that many open calls less one;
 * deeper ones are counted as lost. Calls in the upper 8 * frame_count bytes of the stack are recorded
 * fastest. A context is the caller's memory, as are its frames, and must
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

/* For the recorder's own files: call it after the block was changed, before `busy` goes down. */
void gt_kernel_set_gate(struct gt_thread *block);

/* ---- while threads run. Interrupts off ---- */

/* Tells that the CPU goes on with another thread's stack. Called at the switch, on either stack. state:
 * the old thread's, as Linux's sched_switch has it (0 runnable, 1 sleeping …). Does nothing if `next` is
 * the running context. */
void gt_kernel_switch(struct gt_context *next, uint32_t state);

/* For an interrupt or exception that runs on a stack of its own: call it after the change of stacks and
 * before the first traced function. rip: the interrupted instruction. A context is not entered twice: an
 * interrupt that nests on the same stack needs no call. */
void gt_kernel_enter(struct gt_context *context, uint64_t rip);
/* Ends that. Does nothing where no context was entered. */
void gt_kernel_leave(void);

/* The same for an NMI, which can also interrupt the slow half. False: it did, the context was not entered,
 * and no traced function may be called. The NMI's work then has to wait until interrupts are on again, a
 * few microseconds, since the slow half has them off. */
bool gt_kernel_enter_nmi(struct gt_context *context, uint64_t rip);

/*
 * While no entry is patched, a CPU can be suspended: then gt_kernel_switch, _enter and _leave do nothing
 * and need not be called. The code that patches text suspends and wakes CPUs, while all CPUs stand still
 * (it calls gt_sites_apply before it suspends the first one, and after it has woken the last). Calls that
 * were open return as ever, unrecorded; those that are still open when the CPU is woken return recorded.
 * running: returns the context of those that the calling CPU uses whose stack has the address. thread:
 * the context of the woken CPU's stack; interrupt: the one of its interrupt stack, which counts as
 * entered, or NULL.
 */
void gt_kernel_suspend(struct gt_thread *block, struct gt_context *(*running)(uint64_t address));
void gt_kernel_wake(struct gt_thread *block, struct gt_context *thread,
		    struct gt_context *interrupt);

/* Closes the CPU's open sub-buffer, if it has records: readers can consume it, and the next record opens
 * another. Call it for a CPU that stands still in an interrupt, or for the caller's own with interrupts
 * off. Does nothing for a CPU that an NMI halted in the slow half. */
void gt_kernel_close(struct gt_thread *block);

/* Whether the address is in the recorder's own text, from gt_recorder_text_start to gt_recorder_text_end
 * of the linker script. */
bool gt_kernel_in_recorder(uint64_t rip);

/* Between pause and resume, which nest, the running context records no entries. Interrupts may be on or
 * off. Returns of open calls are recorded. */
void gt_kernel_pause(void);
void gt_kernel_resume(void);

/* Writes a line (raw: bytes) into the trace, as trace_marker of the running thread; at most
 * GT_KERNEL_MARK_BYTES. Interrupts may be on or off, the context paused. It takes up to
 * GT_KERNEL_MARK_STACK_USE of the stack that it is called on, so do not call it from the recorder's hooks.
 * False: tracing is off, or there is no room. */
#define GT_KERNEL_MARK_BYTES	 1024
#define GT_KERNEL_MARK_STACK_USE 1024
bool gt_kernel_mark(const void *bytes, uint32_t count, bool raw);

/* What a static event (graftrace/event_kernel.h) takes of the stack that it is on, with histograms; half of it without
 * them. */
#define GT_KERNEL_EVENT_STACK_USE 2304

/* ---- settings. From any CPU, at any time ---- */

void gt_kernel_set_tracing_on(bool on);
void gt_kernel_set_tracer(enum graftrace_tracer tracer);
void gt_kernel_set_max_depth(uint32_t depth);
void gt_kernel_set_threshold(uint64_t ticks);
/* Whether functions of set_graph_function (GRAFTRACE_ENTRY_ROOT) are in use: only calls below them are
 * recorded then. */
void gt_kernel_set_graph_only(bool graph_only);
void gt_kernel_set_func_stack(bool on);

/*
 * Threads that are traced alone, or not at all: zero-terminated tables of their numbers in the arena
 * (graftrace/selected.h), which the reader's side writes. A CPU looks at them when it takes up another
 * context. To make a change take effect at once, stop all CPUs by an interrupt, as gt_sites_apply does.
 * As on Linux, the function profiler counts the calls of all threads whatever the tables say, unless a tracer
 * other than nop is on: a CPU looks at these two at the same time.
 */

/* The function profiler. `table` has `pages` addresses, one for each 16 functions, of zeroed pages that
 * are never freed. Give each CPU that has started its table before the profiler is first switched on. */
void gt_kernel_profile_table(uint32_t cpu, struct graftrace_profile_entry **table, uint32_t pages);
void gt_kernel_set_profile(bool on);

#endif
