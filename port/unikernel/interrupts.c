/* SPDX-License-Identifier: MIT */
/*
 * The table of vectors and their handlers.
 */
#include "port/unikernel/interrupts.h"

#include "port/unikernel/apic.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/events.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"

#define GATE 0x8e00 /* present, interrupt gate */

struct gate {
	uint16_t offset_0, segment, flags, offset_16;
	uint32_t offset_32, reserved;
};

static struct gate gates[256] __attribute__((aligned(16)));

static struct {
	interrupt_handler *handler;
	void *argument;
	const char *name; /* of a device's */
} handlers[256];

static exception_handler *exceptions[VECTOR_EXCEPTIONS];
static uint32_t next_vector = VECTOR_DEVICES;

extern const char interrupt_stubs[];

/* Runs a handler that exception_dispatch could not call. */
static void handle_later(void *argument)
{
	uint32_t later = __atomic_exchange_n(&cpu_this()->later, 0, __ATOMIC_ACQ_REL);
	(void)argument;
	for (; later; later &= later - 1) {
		exception_handler *handler = exceptions[__builtin_ctz(later)];
		if (handler)
			handler(NULL);
	}
}

void interrupts_init(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint64_t stub = (uint64_t)interrupt_stubs + 16 * i;
		uint16_t stack = i == VECTOR_NMI	    ? STACK_NMI
				 : i == VECTOR_DOUBLE_FAULT ? STACK_DOUBLE
				 : i == VECTOR_DEBUG	    ? STACK_DEBUG
							    : 0;
		gates[i] = (struct gate){ .offset_0 = (uint16_t)stub,
					  .segment = GDT_CODE,
					  .flags = GATE | stack,
					  .offset_16 = (uint16_t)(stub >> 16),
					  .offset_32 = (uint32_t)(stub >> 32) };
	}
	interrupt_set(VECTOR_LATER, handle_later, NULL);
}

void interrupts_load_table(void)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) pointer = { sizeof(gates) - 1, (uint64_t)gates };
	__asm__ volatile("lidt %0" ::"m"(pointer));
}

uint32_t interrupt_allocate(interrupt_handler *handler, void *argument, const char *name)
{
	uint32_t vector = __atomic_fetch_add(&next_vector, 1, __ATOMIC_RELAXED);
	if (vector >= VECTOR_RESCHEDULE)
		return 0;
	handlers[vector].name = name;
	interrupt_set(vector, handler, argument);
	return vector;
}

void interrupt_set(uint32_t vector, interrupt_handler *handler, void *argument)
{
	handlers[vector].argument = argument;
	__atomic_store_n(&handlers[vector].handler, handler, __ATOMIC_RELEASE);
}

void exception_set(uint32_t vector, exception_handler *handler)
{
	__atomic_store_n(&exceptions[vector], handler, __ATOMIC_RELEASE);
}

UNTRACED void interrupt_dispatch(struct registers *registers)
{
	struct cpu *cpu = cpu_this();
	uint32_t vector = (uint32_t)registers->vector;
	interrupt_handler *handler = __atomic_load_n(&handlers[vector].handler, __ATOMIC_ACQUIRE);
	cpu->interrupts++;
	if (registers->rflags & FLAGS_INTERRUPT)
		GT_LATENCY_IRQS_OFF(true); /* by the processor */
	if (cpu->idle_since) {
		cpu->idle_ticks += cpu_ticks() - cpu->idle_since;
		cpu->idle_since = 0;
	}
	if (cpu->depth == 1)
		trace_interrupt_begin(cpu, registers);
	/* What is interrupted keeps its processor meanwhile, as by Linux's preempt count. */
	GT_LATENCY_PREEMPT_OFF(cpu->depth == 1 && !cpu->preempt_off);
	if (vector != VECTOR_SPURIOUS) {
		event_irq_entry(vector, handlers[vector].name);
		/* Interrupts of a higher class may nest. */
		interrupts_on();
		if (handler)
			handler(handlers[vector].argument);
		interrupts_off();
		event_irq_exit(vector, handler != NULL);
		apic_end_of_interrupt();
	}
	GT_LATENCY_PREEMPT_ON(cpu->depth == 1 && !cpu->preempt_off);
	if (cpu->depth == 1)
		trace_interrupt_end(cpu);
	if (registers->rflags & FLAGS_INTERRUPT && !(cpu->depth == 1 && cpu->needs_switch))
		GT_LATENCY_IRQS_ON(true); /* by iretq; or at the end of interrupt_switch */
}

/* At the end of the outermost interrupt, lets another thread run if its turn has come. */
UNTRACED void interrupt_switch(struct registers *registers)
{
	struct cpu *cpu = cpu_this();
	bool on = registers->rflags & FLAGS_INTERRUPT;
	if (!cpu->preempt_off && on) {
		if (trace_may_switch(registers->rip))
			schedule();
		else
			apic_timer_soon();
	}
	if (on)
		GT_LATENCY_IRQS_ON(true);
}

/* Calls a handler on a stack of its own, at any instruction. */
static UNTRACED bool call_apart(exception_handler *handler, struct registers *registers)
{
	struct cpu *cpu = cpu_this();
	if (cpu->stands_still || !trace_exception_begin(cpu, registers)) {
		__atomic_or_fetch(&cpu->later, 1u << registers->vector, __ATOMIC_ACQ_REL);
		apic_send_self(VECTOR_LATER);
		return true;
	}
	bool handled = handler(registers);
	trace_exception_end(cpu, registers);
	return handled;
}

UNTRACED void exception_dispatch(struct registers *registers)
{
	uint64_t vector = registers->vector;
	exception_handler *handler = __atomic_load_n(&exceptions[vector], __ATOMIC_ACQUIRE);
	if (vector == VECTOR_NMI && crash_nmi(registers, handler != NULL))
		return;
	if (handler &&
	    (vector == VECTOR_NMI || vector == VECTOR_DEBUG ? call_apart(handler, registers)
							    : handler(registers)))
		return;
	crash_exception(registers);
}
