/* SPDX-License-Identifier: MIT */
/*
 * The first serial port, written by polling. Nothing here waits for an interrupt or allocates, so a
 * crash report can use it.
 */
#include "port/unikernel/console.h"

#include "port/unikernel/cpu.h"
#include "port/unikernel/spinlock.h"

#define COM1		0x3f8
#define LINE_STATUS	(COM1 + 5)
#define TRANSMIT_EMPTY	0x20
#define DIVISOR_ACCESS	0x80
#define EIGHT_BITS	0x03
#define FIFOS_ON	0x07
#define READY_TO_SEND	0x03
#define DIVISOR_115200	1
#define LONGEST_MESSAGE 512

static struct spinlock lock;

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
	/* A port that is not there reads as all ones: no endless loop. */
	while (!(port_read_8(LINE_STATUS) & TRANSMIT_EMPTY))
		cpu_pause();
	port_write_8(COM1, (uint8_t)character);
}

void console_write(const char *text, size_t length)
{
	uint64_t flags = spin_lock(&lock);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\n')
			put('\r');
		put(text[i]);
	}
	spin_unlock(&lock, flags);
}

void console_take_over(void)
{
	lock = (struct spinlock){ 0 };
}

void console_print(const char *format, ...)
{
	char text[LONGEST_MESSAGE];
	va_list arguments;
	va_start(arguments, format);
	int length = format_text(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length >= (int)sizeof(text))
		length = sizeof(text) - 1;
	console_write(text, (size_t)length);
}
