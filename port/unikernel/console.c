/* SPDX-License-Identifier: MIT */
/*
 * The first serial port, written by polling. Nothing here waits for an interrupt or allocates, so a
 * crash report can use it.
 */
#include "port/unikernel/console.h"

#include "port/unikernel/cpu.h"
#include "port/unikernel/events.h"

#define COM1		0x3f8
#define LINE_STATUS	(COM1 + 5)
#define TRANSMIT_EMPTY	0x20
#define DIVISOR_ACCESS	0x80
#define EIGHT_BITS	0x03
#define FIFOS_ON	0x07
#define READY_TO_SEND	0x03
#define DIVISOR_115200	1
#define LONGEST_MESSAGE 512

static uint32_t owner; /* number of the processor that writes, + 1; 0: none */

void console_init(void)
{
	port_write_8(COM1 + 1, 0);
	port_write_8(COM1 + 3, DIVISOR_ACCESS);
	port_write_8(COM1, DIVISOR_115200);
	port_write_8(COM1 + 1, 0);
	port_write_8(COM1 + 3, EIGHT_BITS);
	port_write_8(COM1 + 2, FIFOS_ON);
	port_write_8(COM1 + 4, READY_TO_SEND);
}

static void put(char character)
{
	/* A port that does not exist reads as all ones: no endless loop. */
	while (!(port_read_8(LINE_STATUS) & TRANSMIT_EMPTY))
		cpu_pause();
	port_write_8(COM1, (uint8_t)character);
}

bool console_enter(void)
{
	uint32_t self = cpu_this()->number + 1, nobody = 0;
	/* An NMI during a write of this processor must not wait for the processor itself. */
	if (__atomic_load_n(&owner, __ATOMIC_RELAXED) == self)
		return false;
	while (!__atomic_compare_exchange_n(&owner, &nobody, self, true, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		nobody = 0;
		cpu_pause();
	}
	return true;
}

void console_leave(bool entered)
{
	if (entered)
		__atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
}

void console_write(const char *text, size_t length)
{
	uint64_t flags = interrupts_save();
	bool entered = console_enter();
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\n')
			put('\r');
		put(text[i]);
	}
	console_leave(entered);
	interrupts_restore(flags);
}

void console_take_over(void)
{
	__atomic_store_n(&owner, cpu_this()->number + 1, __ATOMIC_RELEASE);
}

void console_print(const char *format, ...)
{
	char text[LONGEST_MESSAGE];
	va_list arguments;
	va_start(arguments, format);
	int length = format_text(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!crash_is_alone)
		event_printk_console(text);
	console_write(text, length < LONGEST_MESSAGE ? (size_t)length : sizeof(text) - 1);
}
