/* SPDX-License-Identifier: MIT */
/* How errors of attach/ are told: see fail.h. */
#include "attach/object/fail.h"

#include <stdarg.h>
#include <stdio.h>

int gt_fail(struct gt_message *message, int error, const char *format, ...)
{
	va_list arguments;

	if (message) {
		va_start(arguments, format);
		vsnprintf(message->text, sizeof(message->text), format, arguments);
		va_end(arguments);
	}
	return error;
}
