/* SPDX-License-Identifier: MIT */
/*
 * A machine made up for tests: CPUs that take turns as the test says, a clock that moves as the
 * test says, threads that are a stack each. It is also the smallest port there is: fake.c supplies
 * what core/record/port.h and arch.h list, and nothing else.
 *
 * A call is made of its two halves, gt_fake_call and gt_fake_return, on the running thread's stack;
 * between them anything may happen: other calls, a switch, an interrupt, another CPU.
 */
#ifndef GT_PORT_FAKE_FAKE_H
#define GT_PORT_FAKE_FAKE_H

#include "core/record/kernel.h"

#define GT_FAKE_CPUS	    8
#define GT_FAKE_STACK_BYTES 65536
#define GT_FAKE_FRAMES	    512

/* A thread, or an interrupt's stack. */
struct gt_fake_stack {
	struct gt_context context; /* low and high are the stack's */
	struct gt_frame *frames;
	uint64_t low;
	uint64_t sp;
};

struct gt_fake_cpu {
	struct gt_thread block;
	struct gt_fake_stack *running;
	struct gt_fake_stack *interrupted[4];
	uint32_t nested;
	uint64_t clock_offset;
	bool interrupts_off; /* as events tell */
	uint32_t state;	     /* what gt_port_state says */
};

/* The machine: all its CPUs off, an empty ring, the clock at 1 << 40. Forgets the one before. */
void gt_fake_start(uint64_t ring_bytes, uint32_t sub_buffer_bytes);
/* Memory for filters, triggers and histograms of events, after a start. */
void gt_fake_rules(uint32_t events, uint64_t hists_bytes);
struct graftrace_arena *gt_fake_arena(void);

/* A stack with its mirror. number: the thread's, or GT_KERNEL_INTERRUPT + n. */
struct gt_fake_stack *gt_fake_stack(uint32_t number);
/* One of up to 8 MiB, with room for that many open calls less one. */
struct gt_fake_stack *gt_fake_stack_of(uint32_t number, uint64_t bytes, uint32_t frames);

/* CPU `cpu` begins with the stack, and is the one that runs. */
void gt_fake_cpu_start(uint32_t cpu, struct gt_fake_stack *stack);
/* From here on this CPU runs. */
void gt_fake_run(uint32_t cpu);
struct gt_fake_cpu *gt_fake_cpu(uint32_t cpu);

/* The next read of the clock gives `ticks` (and this CPU's offset more), each later one a tick
 * more. */
void gt_fake_clock(uint64_t ticks);
/* What is told of a trigger (gt_port_trigger); NULL: nobody. */
extern void (*gt_fake_trigger)(uint32_t action);

/* An entry and a return on the running stack. The entry tells whether it was traced; a return of
 * one that was not is a return too. */
bool gt_fake_call(uint32_t function);
/* The same of a function of set_graph_function. */
bool gt_fake_call_root(uint32_t function);
void gt_fake_return(void);
/* The stack pointer is put back by `calls` traced calls: they never return. */
void gt_fake_jump_out(uint32_t calls);

void gt_fake_switch(struct gt_fake_stack *next, uint32_t state);
void gt_fake_interrupt(struct gt_fake_stack *stack);
void gt_fake_interrupt_end(void);

/* All CPUs that have started are suspended, as where no entry is patched any more, and woken with
 * whatever they run by then. Calls, switches and interrupts go on meanwhile, and nobody is told. */
void gt_fake_suspend(void);
void gt_fake_wake(void);

#endif
