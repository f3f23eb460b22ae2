/* SPDX-License-Identifier: MIT */
/*
 * Starts processors by INIT and start-up interrupts, and stops all of them by an interrupt of the
 * highest class.
 */
#include "port/unikernel/smp.h"

#include "port/unikernel/acpi.h"
#include "port/unikernel/apic.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"
#include "port/unikernel/watchdog.h"
#include "port/unikernel/include/string.h"

#define START_LIMIT_NS	  10000000000ull
#define SECOND_STARTUP_NS 10000000
#define IDLE_STACK_BYTES  32768

extern const char trampoline_start[], trampoline_end[], trampoline_stack[], trampoline_cpu[];

void smp_cpu_start(struct cpu *cpu) __attribute__((noreturn));

static struct {
	struct mutex mutex; /* one gathering at a time */
	uint32_t wanted;    /* number of the current stop, 0 at first */
	uint32_t present;   /* processors that have stopped */
	uint32_t released;  /* number of the stop that has ended */
} stop;

static void wait_for_startup(struct cpu *cpu, uint64_t limit)
{
	uint64_t end = clock_ns() + limit;
	while (!__atomic_load_n(&cpu->online, __ATOMIC_ACQUIRE) && clock_ns() < end)
		cpu_pause();
}

static bool start(uint32_t number, uint32_t apic)
{
	struct cpu *cpu = &cpus[number];
	uint8_t *trampoline = direct_of_physical(TRAMPOLINE);
	uint64_t low, top = stack_allocate(IDLE_STACK_BYTES, &low);
	if (!top)
		return false;
	cpu->online = 0;
	cpu->boot_stack = top;
	cpu->number = number;
	cpu->apic_id = apic;
	thread_init_idle(cpu, low, top);
	memcpy(trampoline, trampoline_start, (size_t)(trampoline_end - trampoline_start));
	*(uint64_t *)(trampoline + (trampoline_stack - trampoline_start)) = top - 8;
	*(uint64_t *)(trampoline + (trampoline_cpu - trampoline_start)) = (uint64_t)cpu;
	apic_send_init(apic);
	apic_send_startup(apic, TRAMPOLINE);
	wait_for_startup(cpu, SECOND_STARTUP_NS);
	if (!cpu->online) {
		apic_send_startup(apic, TRAMPOLINE);
		wait_for_startup(cpu, START_LIMIT_NS);
	}
	if (!cpu->online) {
		/* A late start must not use the number and the stack that the next processor
		 * gets. */
		apic_send_init(apic);
		return false;
	}
	trace_clock_measure(cpu);
	return true;
}

/* On the new processor, on its own stack. */
UNTRACED void smp_cpu_start(struct cpu *cpu)
{
	cpu_init(cpu->number, cpu->apic_id);
	cpu_tables_init(cpu);
	apic_init();
	trace_cpu_init(cpu);
	__atomic_store_n(&cpu->online, 1, __ATOMIC_RELEASE);
	trace_clock_answer(cpu);
	watchdog_cpu_start();
	/* Its queue is served from now on; cpu_count makes it visible. */
	schedule_idle();
}

/* The other processors wait here while one works. */
static UNTRACED void stand_still(void *argument)
{
	uint32_t number = __atomic_load_n(&stop.wanted, __ATOMIC_ACQUIRE);
	uint64_t flags = interrupts_save();
	(void)argument;
	cpu_this()->stands_still = 1;
	__atomic_add_fetch(&stop.present, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&stop.released, __ATOMIC_ACQUIRE) != number)
		cpu_pause();
	cpu_serialize();
	cpu_this()->stands_still = 0;
	interrupts_restore(flags);
}

void smp_stopped(void (*function)(void *argument), void *argument)
{
	mutex_lock(&stop.mutex);
	preempt_keep(1);
	struct cpu *here = cpu_this();
	uint32_t number = stop.wanted + 1;
	stop.present = 0;
	__atomic_store_n(&stop.wanted, number, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < cpu_count; i++)
		if (i != here->number)
			apic_send(cpus[i].apic_id, VECTOR_STOP);
	while (__atomic_load_n(&stop.present, __ATOMIC_ACQUIRE) != cpu_count - 1)
		cpu_pause();
	uint64_t flags = interrupts_save();
	here->stands_still = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	function(argument);
	cpu_serialize();
	here->stands_still = 0;
	/* release: the others see the changes before they continue */
	__atomic_store_n(&stop.released, number, __ATOMIC_RELEASE);
	interrupts_restore(flags);
	preempt_keep(-1);
	mutex_unlock(&stop.mutex);
	if (cpu_this()->needs_switch) /* which was not possible meanwhile */
		thread_yield();
}

UNTRACED void smp_halt_others(void)
{
	for (uint32_t i = 0; i < cpu_count; i++)
		if (&cpus[i] != cpu_this())
			apic_send_nmi(cpus[i].apic_id);
}

void smp_start(uint32_t limit)
{
	interrupt_set(VECTOR_STOP, stand_still, NULL);
	uint32_t self = apic_id(), started = 1;
	for (uint32_t i = 0; i < acpi_cpu_count && started < limit; i++) {
		if (acpi_apic_ids[i] == self)
			continue;
		if (start(started, acpi_apic_ids[i]))
			started++;
		else
			console_print("CPU with APIC number %u does not start\n", acpi_apic_ids[i]);
	}
	__atomic_store_n(&cpu_count, started, __ATOMIC_RELEASE);
}
