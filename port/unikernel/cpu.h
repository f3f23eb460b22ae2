/* SPDX-License-Identifier: MIT */
/*
 * A processor: its block at %gs:0, the registers that an interrupt saves, and the few instructions
 * that C does not have. No floating point or vector register is used anywhere in the kernel.
 */
#ifndef PORT_UNIKERNEL_CPU_H
#define PORT_UNIKERNEL_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "port/unikernel/layout.h"

#define CPU_MAX	 64
#define UNTRACED __attribute__((patchable_function_entry(0), section(".text.untraced")))

struct thread;

struct cpu {
	/* The tracer's, which finds its block at %gs:0. Zero until it begins. */
	uint64_t recorder[CPU_RECORDER_BYTES / 8];
	struct cpu *self;
	struct thread *current;	  /* whose turn it is */
	uint64_t interrupt_stack; /* top of the stack that interrupts run on */
	uint32_t depth;		  /* interrupts that are being handled, one in the other */
	uint32_t needs_switch;	  /* 1: call the scheduler as soon as it is allowed */
	uint32_t preempt_off;	  /* > 0: no switch but where the thread itself asks for it */
	uint32_t number;
	uint32_t apic_id;
	uint32_t online;
	uint64_t boot_stack; /* top of the stack that its idle thread runs on */
	uint64_t gdt[8];
	uint8_t tss[104];
	uint64_t interrupts;   /* handled so far */
	uint64_t idle_ticks;   /* spent waiting for interrupts */
	uint64_t idle_since;   /* it waits for one since then; 0: it works */
	uint32_t stands_still; /* 1: text may be changed, no handler of an NMI is called */
	uint32_t later;	       /* a bit for each exception whose handler waits for VECTOR_LATER */
} __attribute__((aligned(64)));

_Static_assert(offsetof(struct cpu, self) == CPU_SELF, "layout.h");
_Static_assert(offsetof(struct cpu, current) == CPU_CURRENT, "layout.h");
_Static_assert(offsetof(struct cpu, interrupt_stack) == CPU_INTERRUPT_STACK, "layout.h");
_Static_assert(offsetof(struct cpu, depth) == CPU_DEPTH, "layout.h");
_Static_assert(offsetof(struct cpu, needs_switch) == CPU_NEEDS_SWITCH, "layout.h");
_Static_assert(offsetof(struct cpu, preempt_off) == CPU_PREEMPT_OFF, "layout.h");

/* What an interrupt or exception finds and goes back to; interrupts.S pushes it. */
struct registers {
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	uint64_t vector, error;
	uint64_t rip, cs, rflags, rsp, ss;
};

_Static_assert(offsetof(struct registers, vector) == REGISTERS_VECTOR, "layout.h");
_Static_assert(offsetof(struct registers, cs) == REGISTERS_CS, "layout.h");
_Static_assert(offsetof(struct registers, rsp) == REGISTERS_RSP, "layout.h");
_Static_assert(offsetof(struct registers, rip) == REGISTERS_RIP, "layout.h");
_Static_assert(offsetof(struct registers, rflags) == REGISTERS_RFLAGS, "layout.h");

#define FLAGS_INTERRUPT 0x200

extern struct cpu cpus[CPU_MAX];
extern uint32_t cpu_count; /* that run */

/* Makes the block of processor `number` and gives it to the one that calls. */
void cpu_init(uint32_t number, uint32_t apic_id);
/* Its segments, its task state with the stacks for NMI and double faults, the common table of
 * interrupts. Once for each processor, by itself, when stacks can be had. */
void cpu_tables_init(struct cpu *cpu);

/* The top of the stack of an exception that has its own (STACK_NMI … in interrupts.h). */
uint64_t cpu_fault_stack(const struct cpu *cpu, unsigned stack);

/* The block of the processor that runs this. A thread that can be preempted may be on another one
 * by the time it looks. */
static inline __attribute__((always_inline)) struct cpu *cpu_this(void)
{
	struct cpu *cpu;
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(cpu) : "i"(CPU_SELF));
	return cpu;
}

static inline __attribute__((always_inline)) struct thread *thread_this(void)
{
	struct thread *thread;
	__asm__ volatile("mov %%gs:%c1, %0" : "=r"(thread) : "i"(CPU_CURRENT));
	return thread;
}

/* Where interrupts and preemption are switched, the latency tracers are told. */
#ifdef GT_TRACE
#include "core/record/latency.h"
#else
#define GT_LATENCY_IRQS_OFF(condition)	  (void)(condition)
#define GT_LATENCY_IRQS_ON(condition)	  (void)(condition)
#define GT_LATENCY_PREEMPT_OFF(condition) (void)(condition)
#define GT_LATENCY_PREEMPT_ON(condition)  (void)(condition)
#endif

static inline __attribute__((always_inline)) uint64_t interrupts_save(void)
{
	uint64_t flags;
	__asm__ volatile("pushf; pop %0; cli" : "=r"(flags)::"memory");
	GT_LATENCY_IRQS_OFF(flags & FLAGS_INTERRUPT);
	return flags;
}

static inline __attribute__((always_inline)) void interrupts_restore(uint64_t flags)
{
	if (flags & FLAGS_INTERRUPT) {
		GT_LATENCY_IRQS_ON(true);
		__asm__ volatile("sti" ::: "memory");
	}
}

static inline __attribute__((always_inline)) void interrupts_on(void)
{
	GT_LATENCY_IRQS_ON(true);
	__asm__ volatile("sti" ::: "memory");
}

static inline __attribute__((always_inline)) void interrupts_off(void)
{
	__asm__ volatile("cli" ::: "memory");
	GT_LATENCY_IRQS_OFF(true);
}

/* Sleeps until an interrupt; none can come between the two instructions. */
static inline __attribute__((always_inline)) void cpu_wait_for_interrupt(void)
{
	GT_LATENCY_IRQS_ON(true);
	__asm__ volatile("sti; hlt; cli" ::: "memory");
	GT_LATENCY_IRQS_OFF(true);
}

static inline __attribute__((always_inline)) void cpu_pause(void)
{
	__asm__ volatile("pause" ::: "memory");
}

/* No instruction that was fetched before is used after it. */
static inline __attribute__((always_inline)) void cpu_serialize(void)
{
	uint32_t eax = 0, ecx = 0;
	__asm__ volatile("cpuid" : "+a"(eax), "+c"(ecx)::"ebx", "edx", "memory");
}

static inline __attribute__((always_inline)) uint64_t cpu_ticks(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static inline __attribute__((always_inline)) void msr_write(uint32_t number, uint64_t value)
{
	__asm__ volatile("wrmsr" ::"c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

#define DEFINE_PORT(name, type, suffix)                                                          \
	static inline                                                                            \
		__attribute__((always_inline)) void port_write_##name(uint16_t port, type value) \
	{                                                                                        \
		__asm__ volatile("out" suffix " %0, %1" ::"a"(value), "Nd"(port));               \
	}                                                                                        \
	static inline __attribute__((always_inline)) type port_read_##name(uint16_t port)        \
	{                                                                                        \
		type value;                                                                      \
		__asm__ volatile("in" suffix " %1, %0" : "=a"(value) : "Nd"(port));              \
		return value;                                                                    \
	}
DEFINE_PORT(8, uint8_t, "b")
DEFINE_PORT(16, uint16_t, "w")
DEFINE_PORT(32, uint32_t, "l")

#endif
