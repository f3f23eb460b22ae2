/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel tells the tracer what happens. With TRACE=ftrace (GT_TRACE) trace.c is linked
 * in; else nothing of this is left in the kernel, as the empty functions below show.
 *
 * What the tracer can count on: %gs:0 is the processor's struct cpu, whose first CPU_RECORDER_BYTES
 * are the tracer's, zero until it writes them; each stack that ever runs is made by stack_allocate,
 * has its twin and never moves; struct thread has room for the tracer (`recorder`), zero in a new
 * thread. All hooks run with interrupts off unless said otherwise.
 */
#ifndef PORT_UNIKERNEL_TRACE_H
#define PORT_UNIKERNEL_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "port/unikernel/console.h"

struct cpu;
struct registers;
struct thread;

#ifdef GT_TRACE

/* False: no entry is patched, and no hook below needs more than this test. Changes while all
 * processors stand still. */
extern bool trace_live;
extern bool trace_packet_paused;
bool gt_kernel_in_recorder(uint64_t rip);
void trace_switch_live(struct cpu *cpu, struct thread *from, struct thread *to);
void trace_interrupt_begin_live(struct cpu *cpu, const struct registers *registers);
void trace_interrupt_end_live(struct cpu *cpu);
bool trace_exception_begin_live(struct cpu *cpu, const struct registers *registers);
void trace_exception_end_live(struct cpu *cpu, const struct registers *registers);
void trace_packet_begin_live(const uint8_t *frame, uint32_t bytes);
void trace_packet_end_live(void);

/* Once, on the boot processor, before the others start and before the first interrupt. Memory, the
 * clock and symbols work; no thread runs yet. */
void trace_init(void);
/* Once, in the first thread, when all processors run and the network is up: tracing begins, and the
 * server for /ftrace/ is started. Interrupts on. */
void trace_start(void);
/* On each processor but the first, by itself, before it takes its first interrupt. */
void trace_cpu_init(struct cpu *cpu);
/* Then, while the boot processor compares clocks with it: both at once, whether it came or not. */
void trace_clock_answer(struct cpu *cpu);
void trace_clock_measure(struct cpu *cpu);
/* A new thread, before it can run; and one that is over, from another thread. Interrupts as the
 * caller has them. */
void trace_thread_init(struct thread *thread);
void trace_thread_fini(struct thread *thread);
/* `to` goes on in place of `from`, on the stack of `from` still; untraced code alone runs until the
 * stacks are switched. */
static inline void trace_switch(struct cpu *cpu, struct thread *from, struct thread *to)
{
	if (trace_live)
		trace_switch_live(cpu, from, to);
}
/* The first interrupt begins on the processor's interrupt stack, or is over (nested ones say
 * nothing: they stay on that stack). registers: what was interrupted. */
static inline void trace_interrupt_begin(struct cpu *cpu, const struct registers *registers)
{
	if (trace_live)
		trace_interrupt_begin_live(cpu, registers);
}
static inline void trace_interrupt_end(struct cpu *cpu)
{
	if (trace_live)
		trace_interrupt_end_live(cpu);
}
/* An NMI or a debug exception begins, on the stack that it has for itself. False: it found the
 * tracer at work, and nothing that is traced may be called. True: it is told when it is over. */
static inline bool trace_exception_begin(struct cpu *cpu, const struct registers *registers)
{
	return !trace_live || trace_exception_begin_live(cpu, registers);
}
static inline void trace_exception_end(struct cpu *cpu, const struct registers *registers)
{
	if (trace_live)
		trace_exception_end_live(cpu, registers);
}
/* May the thread that was interrupted here lose the processor now? Else it is asked again soon. */
static inline bool trace_may_switch(uint64_t rip)
{
	return !gt_kernel_in_recorder(rip);
}
/* The real return address that belongs to a stack word with `value` in it (crash reports). */
uint64_t trace_return_address(uint64_t slot, uint64_t value);
/* The place in a function that an address stands for, which may be in moved code of a probe; and what stood at an
 * address of text before there was one (crash reports). */
uint64_t trace_place(uint64_t address);
uint8_t trace_text_byte(uint64_t address);
/* The network's thread gives a received Ethernet frame to lwIP, and has done so. Interrupts on. */
static inline void trace_packet_begin(const uint8_t *frame, uint32_t bytes)
{
	if (trace_live)
		trace_packet_begin_live(frame, bytes);
}
static inline void trace_packet_end(void)
{
	if (trace_packet_paused)
		trace_packet_end_live();
}
/* The end of a crash report: the last calls of each processor. Any state. */
void trace_report(void);
/* The program is over and the machine goes on for so long: says what that means. Interrupts off. */
void trace_lingers(uint64_t seconds);
/* All other processors stand still for good, interrupts are off, crash_is_alone is set: what can
 * still be served of /ftrace/ is, for so long. */
void trace_serve_alone(uint64_t seconds);

#else

static inline void trace_init(void)
{
}
static inline void trace_start(void)
{
}
static inline void trace_cpu_init(struct cpu *cpu)
{
	(void)cpu;
}
static inline void trace_clock_answer(struct cpu *cpu)
{
	(void)cpu;
}
static inline void trace_clock_measure(struct cpu *cpu)
{
	(void)cpu;
}
static inline void trace_thread_init(struct thread *thread)
{
	(void)thread;
}
static inline void trace_thread_fini(struct thread *thread)
{
	(void)thread;
}
static inline void trace_switch(struct cpu *cpu, struct thread *from, struct thread *to)
{
	(void)cpu, (void)from, (void)to;
}
static inline void trace_interrupt_begin(struct cpu *cpu, const struct registers *registers)
{
	(void)cpu, (void)registers;
}
static inline void trace_interrupt_end(struct cpu *cpu)
{
	(void)cpu;
}
static inline bool trace_exception_begin(struct cpu *cpu, const struct registers *registers)
{
	(void)cpu, (void)registers;
	return true;
}
static inline void trace_exception_end(struct cpu *cpu, const struct registers *registers)
{
	(void)cpu, (void)registers;
}
static inline bool trace_may_switch(uint64_t rip)
{
	(void)rip;
	return true;
}
static inline uint64_t trace_return_address(uint64_t slot, uint64_t value)
{
	(void)slot;
	return value;
}
static inline uint64_t trace_place(uint64_t address)
{
	return address;
}
static inline uint8_t trace_text_byte(uint64_t address)
{
	return *(const uint8_t *)address;
}
static inline void trace_packet_begin(const uint8_t *frame, uint32_t bytes)
{
	(void)frame, (void)bytes;
}
static inline void trace_packet_end(void)
{
}
static inline void trace_report(void)
{
}
static inline void trace_lingers(uint64_t seconds)
{
	if (seconds)
		console_print("the machine goes on for %lu second%s (LINGER)\n", seconds,
			      seconds == 1 ? "" : "s");
}
static inline void trace_serve_alone(uint64_t seconds)
{
	(void)seconds;
}

#endif
#endif
