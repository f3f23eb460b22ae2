/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes: text to the console, without floating point. */
#ifndef PORT_UNIKERNEL_INCLUDE_STDIO_H
#define PORT_UNIKERNEL_INCLUDE_STDIO_H

#include <stdarg.h>
#include <stddef.h>

int printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int puts(const char *text);
int snprintf(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int vsnprintf(char *text, size_t size, const char *format, va_list arguments);

#endif
