/* SPDX-License-Identifier: MIT */
/* The serial console (the terminal that runs QEMU), and text made from a format. */
#ifndef PORT_UNIKERNEL_CONSOLE_H
#define PORT_UNIKERNEL_CONSOLE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

void console_init(void);
/* Writes all of it; lines of several processors do not mix within one call. From anywhere. */
void console_write(const char *text, size_t length);
/* The console is this processor's for more than one call; false: it was before. Interrupts off. */
bool console_enter(void);
void console_leave(bool entered);
/* From now on, whoever writes: all others are stopped for good. Interrupts off. */
void console_take_over(void);
/* A line of the kernel's own; at most 512 bytes of it are shown. From anywhere. */
void console_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * C's vsnprintf without floating point: flags - 0 #, width and precision (also *), h hh l ll z j t,
 * conversions d i u x X o c s p %. Any other is copied as it stands.
 */
int format_text(char *text, size_t size, const char *format, va_list arguments);

#endif
