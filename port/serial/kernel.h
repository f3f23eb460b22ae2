/* SPDX-License-Identifier: MIT */
/* The kernel's own things, and where it tells the tracer what happens (trace.c). */
#ifndef PORT_SERIAL_KERNEL_H
#define PORT_SERIAL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define THREADS	    4
#define STACK_BYTES 65536u

struct thread {
	const char *name;
	void (*run)(void);
	uint64_t sp; /* while it does not run */
	uint64_t stack_low, stack_top;
	int alive;
};

extern struct thread threads[THREADS];
extern char stacks[]; /* 2 MiB, with a mirror */

/* The serial ports: 0 the console, 1 the one that takes the recording, 2 the one that is asked. */
int uart_is_there(int port);
void uart_write(int port, const char *bytes, size_t count);
int uart_read(int port, char *byte); /* 0: nothing has come */
void print(const char *text);
uint64_t ticks_per_second(void);

/* ---- trace.c ---- */

/* On the first thread's stack, before any other thread is made. */
void trace_init(void);
void trace_thread(uint32_t index);
/* The CPU goes on with that thread; just before the stacks are switched. */
void trace_switch(uint32_t index, int runnable);
/* The trace as text to the console, and as a recording to the other port. */
void trace_send(void);
/* The control files over HTTP, at the third port, for good; returns at once where there is none. */
void trace_serve(void);

static inline uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static inline void out_8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t in_8(uint16_t port)
{
	uint8_t value;
	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

#endif
