/* SPDX-License-Identifier: MIT */
/*
 * The boot, in order. Everything up to the first thread happens on the boot stack, on one
 * processor, with interrupts off; the rest in the first thread, which then becomes the program.
 */
#include "port/unikernel/boot.h"

#include "port/unikernel/acpi.h"
#include "port/unikernel/apic.h"
#include "port/unikernel/boot_info.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/crash.h"
#include "port/unikernel/devices.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/posix_calls.h"
#include "port/unikernel/smp.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"
#include "port/unikernel/watchdog.h"

#define IDLE_STACK_BYTES 32768

int main(void);

static void *first_thread(void *argument)
{
	(void)argument;
	smp_start((uint32_t)option_number("cpus", CPU_MAX));
	devices_init();
	calls_init();
	watchdog_start();
	trace_start();
	console_print("graftrace unikernel: %u CPU%s, %lu MiB free, up after %lu ms\n", cpu_count,
		      cpu_count == 1 ? "" : "s", pages_free_bytes() >> 20, clock_ns() / 1000000);
	thread_this()->program = true;
	int code = main();
	if (code)
		console_print("the program ended with %d\n", code);
	machine_end(code != 0);
}

/* The boot processor continues as its idle thread, on a stack that has a twin. */
static __attribute__((noreturn)) void go_on_idle(void)
{
	if (!thread_create("main", first_thread, NULL, 0, true))
		crash("no memory for the first thread");
	watchdog_cpu_start();
	schedule_idle();
}

static __attribute__((noreturn)) void leave_boot_stack(uint64_t top)
{
	__asm__ volatile("mov %0, %%rsp; xor %%ebp, %%ebp; push $0; call *%1" ::"r"(top - 8),
			 "r"(go_on_idle)
			 : "memory");
	__builtin_unreachable();
}

void kernel_start(uint64_t start_info)
{
	console_init();
	cpu_init(0, 0);
	if (!boot_info_read(start_info)) {
		console_print("no PVH start information: the kernel must be booted with -kernel\n");
		crash("cannot boot");
	}
	pages_init();
	paging_init();
	interrupts_init();
	cpu_tables_init(&cpus[0]);
	if (!acpi_init())
		console_print("no ACPI tables: one processor\n");
	apic_map();
	apic_init();
	cpus[0].apic_id = apic_id();
	cpus[0].online = 1;
	clock_init();
	timer_init();
	schedule_init();
	uint64_t low, top = stack_allocate(IDLE_STACK_BYTES, &low);
	if (!top)
		crash("no memory for the first stack");
	thread_init_idle(&cpus[0], low, top);
	trace_init();
	leave_boot_stack(top);
}
