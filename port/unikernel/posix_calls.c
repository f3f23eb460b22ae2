/* SPDX-License-Identifier: MIT */
/*
 * Prints the target's calls on the console (OPTIONS=debugsyscalls), with Linux's system call
 * numbers.
 */
#include "port/unikernel/posix_calls.h"

#include "port/unikernel/boot.h"
#include "port/unikernel/console.h"

#define LINE_BYTES 256

bool calls_shown;

void calls_init(void)
{
	calls_shown = option_number("debugsyscalls", 0) != 0;
}

static int append(char *line, int at, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int more = format_text(line + at, (size_t)(LINE_BYTES - at), format, arguments);
	va_end(arguments);
	return at + more < LINE_BYTES ? at + more : LINE_BYTES - 1;
}

void call_show(const char *name, unsigned count, ...)
{
	char line[LINE_BYTES];
	va_list arguments;
	int at = append(line, 0, "%u %s", thread_this()->number, name);
	va_start(arguments, count);
	for (unsigned i = 0; i < count; i++) {
		const char *argument = va_arg(arguments, const char *);
		at = append(line, at, "%s %s 0x%lx", i ? "," : ":", argument,
			    va_arg(arguments, unsigned long));
	}
	va_end(arguments);
	at = append(line, at, "\n");
	console_write(line, (size_t)at);
}

void call_show_return(long result, const void *stack)
{
	char line[LINE_BYTES];
	int at = append(line, 0, "%u direct return: %ld, rsp 0x%lx\n", thread_this()->number,
			result, (unsigned long)(uintptr_t)stack);
	console_write(line, (size_t)at);
}
