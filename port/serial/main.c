/* SPDX-License-Identifier: MIT */
/*
 * The smallest kernel that is worth tracing: one processor, threads that hand it to each other, three
 * serial ports, no interrupts. All of this file is compiled with room for the tracer.
 */
#include "kernel.h"

#define UNTRACED __attribute__((patchable_function_entry(0)))

void switch_stacks(uint64_t *save, uint64_t sp);
void thread_first_steps(void);
void kernel_main(void);
void thread_run(void);

struct thread threads[THREADS];
static uint32_t current;

/* ---- devices, which the tracer itself uses to send ---- */

static const uint16_t uarts[] = { 0x3f8, 0x2f8, 0x3e8 };

UNTRACED int uart_is_there(int port)
{
	return in_8(uarts[port] + 5) != 0xff;
}

UNTRACED int uart_read(int port, char *byte)
{
	if (!(in_8(uarts[port] + 5) & 1))
		return 0;
	*byte = (char)in_8(uarts[port]);
	return 1;
}

UNTRACED void uart_write(int port, const char *bytes, size_t count)
{
	uint16_t base = uarts[port];
	for (size_t i = 0; i < count; i++) {
		while (!(in_8(base + 5) & 0x20))
			;
		out_8(base, (uint8_t)bytes[i]);
	}
}

UNTRACED void print(const char *text)
{
	size_t count = 0;
	while (text[count])
		count++;
	uart_write(0, text, count);
}

/* Measures 10 ms by the second counter of the PIT, which counts down at 1,193,182 Hz. */
UNTRACED uint64_t ticks_per_second(void)
{
	const uint32_t count = 11932;
	out_8(0x61, (in_8(0x61) & ~2u) | 1);
	out_8(0x43, 0xb0);
	out_8(0x42, count & 0xff);
	out_8(0x42, count >> 8);
	uint64_t start = ticks();
	while (!(in_8(0x61) & 0x20))
		;
	return (ticks() - start) * 100;
}

/* ---- threads ---- */

static void yield(void)
{
	uint32_t from = current, to = current;
	do
		to = (to + 1) % THREADS;
	while (!threads[to].alive && to != from);
	if (to == from)
		return;
	current = to;
	trace_switch(to, threads[from].alive);
	switch_stacks(&threads[from].sp, threads[to].sp);
}

UNTRACED void thread_run(void)
{
	threads[current].run();
	threads[current].alive = 0;
	for (;;)
		yield();
}

static void thread_create(uint32_t index, const char *name, void (*run)(void))
{
	struct thread *thread = &threads[index];
	thread->name = name;
	thread->run = run;
	thread->stack_low = (uint64_t)stacks + index * STACK_BYTES;
	thread->stack_top = thread->stack_low + STACK_BYTES;
	uint64_t *sp = (uint64_t *)thread->stack_top - 1;
	*--sp = (uint64_t)thread_first_steps;
	thread->sp = (uint64_t)(sp - 6); /* the registers that switch_stacks pops */
	thread->alive = 1;
	trace_thread(index);
}

/* ---- the work of the threads ---- */

static uint32_t fibonacci(uint32_t n)
{
	if (n < 2)
		return n;
	if (n == 6)
		yield(); /* during a call, so that other threads' calls come in between */
	return fibonacci(n - 1) + fibonacci(n - 2);
}

static void calculate(void)
{
	if (fibonacci(10) != 55)
		print("fibonacci(10) is wrong\n");
}

void kernel_main(void)
{
	threads[0] = (struct thread){ .name = "main",
				      .stack_low = (uint64_t)stacks,
				      .stack_top = (uint64_t)stacks + STACK_BYTES,
				      .alive = 1 };
	print("serial: a kernel of one page\n");
	trace_init();
	thread_create(1, "first", calculate);
	thread_create(2, "second", calculate);
	while (threads[1].alive || threads[2].alive)
		yield();
	trace_send();
	trace_serve();
	out_8(0xf4, 0); /* ends QEMU */
	for (;;)
		__asm__ volatile("hlt");
}
