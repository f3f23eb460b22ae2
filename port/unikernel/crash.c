/* SPDX-License-Identifier: MIT */
/*
 * Crash reports on the console, and the end of the machine.
 */
#include "port/unikernel/crash.h"

#include "port/unikernel/acpi.h"
#include "port/unikernel/apic.h"
#include "port/unikernel/boot.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/interrupts.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/smp.h"
#include "port/unikernel/symbols.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"

#define DEEPEST_STACK	  40
#define DEBUG_EXIT_PORT	  0xf4 /* QEMU's isa-debug-exit */
#define DEBUG_EXIT_FAILED 1    /* QEMU ends with 2 * value + 1 */
#define DEBUG_EXIT_WELL	  2    /* 0 would look like a reset by a triple fault */
#define SLEEP_ENABLE	  0x2000

uint32_t crash_is_alone;
static struct spinlock reporting; /* one report of a thread's fault at a time */
static uint32_t crashed; /* number of the processor that reports, + 1; the machine then ends */
static uint32_t halting; /* an NMI means: stop */
static uint32_t ending;	 /* machine_end was called */

static struct cpu *asked; /* an NMI means: print where you are */

static const char *const names[VECTOR_EXCEPTIONS] = {
	[0] = "division by zero", [1] = "debug exception",     [2] = "non-maskable interrupt",
	[3] = "breakpoint",	  [6] = "invalid instruction", [7] = "no floating point here",
	[8] = "double fault",	  [12] = "stack fault",	       [13] = "general protection fault",
	[14] = "page fault",	  [18] = "machine check",
};

static void print_address(uint64_t address)
{
	uint32_t symbol = symbol_find(address);
	if (symbol == symbol_count)
		console_print("  %016lx\n", address);
	else
		console_print("  %016lx %s+%#lx\n", address, symbol_name(symbol),
			      address - symbol_start(symbol));
}

void crash_print_stack(uint64_t frame_pointer)
{
	uint64_t low, top, last = 0, repeated = 0, stacks = 0;
	for (int printed = 0; printed < DEEPEST_STACK;) {
		if (frame_pointer & 7 || !stack_bounds(frame_pointer, &low, &top) ||
		    top - frame_pointer < 16)
			return;
		const uint64_t *frame = (const uint64_t *)frame_pointer;
		uint64_t address = trace_return_address((uint64_t)&frame[1], frame[1]);
		if (!address)
			return;
		repeated = address == last ? repeated + 1 : 0;
		if (repeated == 1)
			console_print("  … and again\n");
		if (!repeated) {
			print_address(address - 1);
			printed++;
		}
		last = address;
		/* Callers' frames are at higher addresses, except that interrupted code has
		 * another stack. */
		if (frame[0] <= frame_pointer && (frame[0] >= low || ++stacks > INTERRUPT_STACKS))
			return;
		frame_pointer = frame[0];
	}
	console_print("  … and so on\n");
}

/* A function that has not pushed the frame pointer yet (0x55), or never does (gcc omits it in
 * some), or is no function: its return address is at the stack pointer. */
static void print_caller_of_frameless(const struct registers *registers)
{
	uint64_t low, top;
	uint64_t rip = trace_place(registers->rip);
	uint32_t symbol = symbol_find(rip);
	if (registers->rsp & 7 || !stack_bounds(registers->rsp, &low, &top))
		return;
	for (uint64_t at = symbol_start(symbol); symbol != symbol_count && at < rip; at++)
		if (trace_text_byte(at) == 0x55)
			return;
	uint64_t caller = trace_return_address(registers->rsp, *(const uint64_t *)registers->rsp);
	if (symbol != symbol_count || symbol_find(caller - 1) != symbol_count)
		print_address(caller - 1);
}

static uint64_t fault_address(void)
{
	uint64_t address;
	__asm__ volatile("mov %%cr2, %0" : "=r"(address));
	return address;
}

static void print_registers(const struct registers *r)
{
	console_print("  rax %016lx  rbx %016lx  rcx %016lx  rdx %016lx\n", r->rax, r->rbx, r->rcx,
		      r->rdx);
	console_print("  rsi %016lx  rdi %016lx  rbp %016lx  rsp %016lx\n", r->rsi, r->rdi, r->rbp,
		      r->rsp);
	console_print("  r8  %016lx  r9  %016lx  r10 %016lx  r11 %016lx\n", r->r8, r->r9, r->r10,
		      r->r11);
	console_print("  r12 %016lx  r13 %016lx  r14 %016lx  r15 %016lx\n", r->r12, r->r13, r->r14,
		      r->r15);
	console_print("  rip %016lx  rflags %lx  error %lx  cr2 %016lx\n", r->rip, r->rflags,
		      r->error, fault_address());
}

static void print_where(void)
{
	struct cpu *cpu = cpu_this();
	console_print("on CPU %u, thread %u (%s)%s\n", cpu->number,
		      cpu->current ? cpu->current->number : 0,
		      cpu->current ? cpu->current->name : "boot",
		      cpu->depth ? ", in an interrupt" : "");
}

void power_off(bool failed)
{
	port_write_8(DEBUG_EXIT_PORT, failed ? DEBUG_EXIT_FAILED : DEBUG_EXIT_WELL);
	port_write_16(acpi_power_port, SLEEP_ENABLE);
	for (;;)
		__asm__ volatile("cli; hlt");
}

/* The first processor that crashes reports; the others no longer matter. */
static void take_the_console(void)
{
	interrupts_off();
	uint32_t self = cpu_this()->number + 1, nobody = 0;
	if (!__atomic_compare_exchange_n(&crashed, &nobody, self, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		if (nobody == self) {
			console_take_over();
			console_print("\n*** and a crash after that: this is the end\n");
			power_off(true);
		}
		for (;;)
			__asm__ volatile("hlt");
	}
	__atomic_store_n(&halting, 1, __ATOMIC_RELEASE);
	smp_halt_others();
	console_take_over();
}

/* Only the processor that crashed is left, and it may have held any lock: it serves the trace
 * without threads, interrupts and locks. */
static __attribute__((noreturn)) void end_alone(void)
{
	cpu_count = 1;
	crash_is_alone = 1;
	trace_serve_alone(option_number("linger", 0));
	power_off(true);
}

void crash(const char *format, ...)
{
	char text[256];
	va_list arguments;
	va_start(arguments, format);
	format_text(text, sizeof(text), format, arguments);
	va_end(arguments);
	take_the_console();
	console_print("\n*** kernel crash: %s ", text);
	print_where();
	crash_print_stack((uint64_t)__builtin_frame_address(0));
	trace_report();
	end_alone();
}

void crash_ask_cpu(struct cpu *cpu)
{
	__atomic_store_n(&asked, cpu, __ATOMIC_RELEASE);
	if (cpu != cpu_this())
		apic_send_nmi(cpu->apic_id);
}

static void *linger(void *argument)
{
	(void)argument;
	machine_end(true);
}

/* Only a fault of a thread's own code can be survived: code that runs with interrupts on,
 * outside of interrupts, holds no lock of the kernel. */
static bool is_survivable(const struct registers *registers)
{
	struct cpu *cpu = cpu_this();
	return registers->rflags & FLAGS_INTERRUPT && !cpu->depth && !cpu->preempt_off &&
	       cpu->current && cpu->current->number;
}

/* A thread that faulted continues here: it waits for ever, with its stack unchanged. */
static __attribute__((noreturn)) void thread_park(void)
{
	thread_this()->program = false;
	if (!thread_create("linger", linger, NULL, 0, true))
		power_off(true);
	for (;;)
		thread_sleep_until(TIMER_NEVER);
}

bool crash_nmi(struct registers *registers, bool wanted)
{
	struct cpu *cpu = cpu_this();
	if (__atomic_load_n(&halting, __ATOMIC_ACQUIRE) && crashed != cpu->number + 1)
		for (;;)
			__asm__ volatile("cli; hlt");
	bool is_asked = __atomic_compare_exchange_n(&asked, &cpu, NULL, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	if (!is_asked && wanted)
		return false;
	bool entered = console_enter(); /* until the report is complete */
	if (!is_asked)
		console_print("\n*** non-maskable interrupt ");
	print_where();
	print_address(trace_place(registers->rip));
	crash_print_stack(registers->rbp);
	console_leave(entered);
	return true;
}

void crash_exception(struct registers *registers)
{
	uint64_t vector = registers->vector, address = fault_address();
	bool overflow = (vector == VECTOR_DOUBLE_FAULT || vector == VECTOR_PAGE_FAULT) &&
			stack_is_guard(address);
	bool survivable = is_survivable(registers);
	uint64_t flags = survivable ? spin_lock(&reporting) : 0;
	if (!survivable)
		take_the_console();
	const char *name =
		vector < VECTOR_EXCEPTIONS && names[vector] ? names[vector] : "exception";
	console_print("\n*** %s", overflow ? "stack overflow" : name);
	if (!overflow && vector == VECTOR_PAGE_FAULT)
		console_print(": %s %016lx",
			      registers->error & 16  ? "execution at"
			      : registers->error & 2 ? "write to"
						     : "read of",
			      address);
	console_print(" ");
	print_where();
	print_registers(registers);
	console_print("call stack:\n");
	print_address(trace_place(registers->rip));
	print_caller_of_frameless(registers);
	crash_print_stack(registers->rbp);
	trace_report();
	if (!survivable)
		end_alone();
	console_print("thread %s is stopped for good, the others go on\n", thread_this()->name);
	spin_unlock(&reporting, flags);
	/* Uses the stack's top: the stack may be full or damaged, and its contents are not
	 * needed any more. */
	registers->rip = (uint64_t)thread_park;
	registers->rsp = thread_this()->stack_top - 8;
	registers->rbp = 0;
}

void machine_end(bool failed)
{
	uint64_t seconds = option_number("linger", 0);
	if (__atomic_exchange_n(&ending, 1, __ATOMIC_ACQ_REL))
		thread_sleep_until(TIMER_NEVER);
	uint64_t flags = spin_lock(&reporting);
	trace_lingers(seconds);
	spin_unlock(&reporting, flags);
	thread_sleep_until(clock_ns() + seconds * 1000000000);
	power_off(failed);
}
