/* SPDX-License-Identifier: MIT */
/* <stdio.h> and <stdlib.h> for targets. */
#include "port/unikernel/include/stdio.h"

#include "port/unikernel/console.h"
#include "port/unikernel/include/string.h"
#include "port/unikernel/include/unistd.h"

#define LONGEST_PRINT 1024

int vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
	return format_text(text, size, format, arguments);
}

int snprintf(char *text, size_t size, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int length = format_text(text, size, format, arguments);
	va_end(arguments);
	return length;
}

int printf(const char *format, ...)
{
	char text[LONGEST_PRINT];
	va_list arguments;
	va_start(arguments, format);
	int length = format_text(text, sizeof(text), format, arguments);
	va_end(arguments);
	write(1, text, length < LONGEST_PRINT ? (size_t)length : LONGEST_PRINT - 1);
	return length;
}

int puts(const char *text)
{
	write(1, text, strlen(text));
	write(1, "\n", 1);
	return 1;
}
