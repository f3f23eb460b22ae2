/* SPDX-License-Identifier: MIT */
/*
 * Text without a C library: a small printf into the caller's buffer, and the messages that every
 * part hands up. Reentrant, allocates nothing, callable from anywhere.
 *
 * Formats: %s %c %d %i %u %x %X %p %%, with the lengths hh h l ll z j t, the flags - 0 and
 * space-padded widths, and a precision for %s (%.*s, %.10s). A NULL %s prints "(null)". An unknown
 * conversion is printed as it stands. There is no floating point.
 */
#ifndef GT_CORE_TRACE_MESSAGE_H
#define GT_CORE_TRACE_MESSAGE_H

#include <stdarg.h>
#include <stddef.h>
#include <graftrace/error.h>

/* Writes at most bytes - 1 characters and a NUL (nothing if bytes is 0). Returns the number of
 * characters written, without the NUL: what does not fit is cut off. */
size_t gt_format(char *buffer, size_t bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
size_t gt_format_v(char *buffer, size_t bytes, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

/* Sets the message; message may be NULL (nobody wants it). What does not fit ends in "...".
 * Control characters (a newline in a file's name) become '?', so it stays one line. */
void gt_message_set(struct gt_message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, and returns `error`: return gt_fail(message, GT_EINVAL, "no such word: '%s'", word); */
int gt_fail(struct gt_message *message, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts text in front: gt_message_prefix(m, "'%s': ", path) makes "'path': old text". */
void gt_message_prefix(struct gt_message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static inline void gt_message_clear(struct gt_message *message)
{
	if (message != NULL)
		message->text[0] = 0;
}

#endif
