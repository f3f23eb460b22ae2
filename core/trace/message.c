/* SPDX-License-Identifier: MIT */
/*
 * A small printf and the messages made with it. Never writes past the caller's buffer and always
 * ends it with a NUL; callable from anywhere.
 */
#include "core/trace/message.h"

#include <stdint.h>

struct sink {
	char *at;
	char *end; /* room for the NUL stays behind it */
	int cut;
};

struct conversion {
	int left;
	int zero;
	int width;
	int precision; /* -1: none */
	int longs;     /* -2 hh, -1 h, 0, 1 l z j t, 2 ll */
};

static void put(struct sink *sink, char c)
{
	if (sink->at < sink->end)
		*sink->at++ = c;
	else
		sink->cut = 1;
}

static void fill(struct sink *sink, char c, int count)
{
	while (count-- > 0) {
		if (sink->at >= sink->end) {
			sink->cut = 1;
			return;
		}
		*sink->at++ = c;
	}
}

static void put_text(struct sink *sink, const struct conversion *how, const char *text, int length)
{
	if (!how->left)
		fill(sink, ' ', how->width - length);
	for (int i = 0; i < length && !sink->cut; i++)
		put(sink, text[i]);
	if (how->left)
		fill(sink, ' ', how->width - length);
}

static void put_string(struct sink *sink, const struct conversion *how, const char *text)
{
	int length = 0;
	if (text == NULL)
		text = "(null)";
	/* With a precision the text need not end in a NUL. No text here is near 2^30 long. */
	while (length < 1 << 30 && (how->precision < 0 || length < how->precision) && text[length])
		length++;
	put_text(sink, how, text, length);
}

static void put_number(struct sink *sink, const struct conversion *how, uint64_t value,
		       int negative, unsigned base, const char *prefix, int capitals)
{
	const char *digits = capitals ? "0123456789ABCDEF" : "0123456789abcdef";
	char text[24];
	int at = sizeof(text);
	do {
		text[--at] = digits[value % base];
		value /= base;
	} while (value);
	int length = (int)sizeof(text) - at;
	int around = negative;
	for (const char *p = prefix; *p; p++)
		around++;
	if (!how->left && !how->zero)
		fill(sink, ' ', how->width - length - around);
	if (negative)
		put(sink, '-');
	while (*prefix)
		put(sink, *prefix++);
	if (!how->left && how->zero)
		fill(sink, '0', how->width - length - around);
	for (int i = at; i < (int)sizeof(text); i++)
		put(sink, text[i]);
	if (how->left)
		fill(sink, ' ', how->width - length - around);
}

/* Reads flags, width, precision and length; returns the conversion's character. va_list is passed
 * by address, as a callee may not go on with a caller's copy. */
static const char *parse(const char *format, struct conversion *how, va_list *arguments)
{
	*how = (struct conversion){ .precision = -1 };
	for (;; format++) {
		if (*format == '-')
			how->left = 1;
		else if (*format == '0')
			how->zero = 1;
		else if (*format != ' ' && *format != '+' && *format != '#')
			break;
	}
	if (*format == '*') {
		how->width = va_arg(*arguments, int);
		if (how->width < 0) {
			how->left = 1;
			how->width = how->width < -65536 ? 65536 : -how->width;
		}
		format++;
	}
	for (; *format >= '0' && *format <= '9'; format++)
		if (how->width < 65536)
			how->width = how->width * 10 + (*format - '0');
	if (*format == '.') {
		format++;
		how->precision = 0;
		if (*format == '*') {
			how->precision = va_arg(*arguments, int);
			format++;
		}
		for (; *format >= '0' && *format <= '9'; format++)
			if (how->precision < 1 << 24)
				how->precision = how->precision * 10 + (*format - '0');
	}
	for (;; format++) {
		if (*format == 'l')
			how->longs++;
		else if (*format == 'h')
			how->longs--;
		else if (*format == 'z' || *format == 'j' || *format == 't')
			how->longs = 1;
		else
			break;
	}
	return format;
}

static void convert(struct sink *sink, const char *format, va_list *arguments)
{
	for (; *format; format++) {
		struct conversion how;
		if (*format != '%') {
			put(sink, *format);
			continue;
		}
		const char *start = format;
		format = parse(format + 1, &how, arguments);
		switch (*format) {
		case '%':
			put(sink, '%');
			break;
		case 'c': {
			char c = (char)va_arg(*arguments, int);
			put_text(sink, &how, &c, 1);
			break;
		}
		case 's':
			put_string(sink, &how, va_arg(*arguments, const char *));
			break;
		case 'd':
		case 'i': {
			int64_t value = how.longs > 0 ? va_arg(*arguments, long long)
						      : va_arg(*arguments, int);
			put_number(sink, &how, value < 0 ? -(uint64_t)value : (uint64_t)value,
				   value < 0, 10, "", 0);
			break;
		}
		case 'u':
		case 'x':
		case 'X': {
			uint64_t value = how.longs > 0 ? va_arg(*arguments, unsigned long long)
						       : va_arg(*arguments, unsigned);
			put_number(sink, &how, value, 0, *format == 'u' ? 10 : 16, "",
				   *format == 'X');
			break;
		}
		case 'p':
			put_number(sink, &how, (uintptr_t)va_arg(*arguments, void *), 0, 16, "0x",
				   0);
			break;
		default:
			/* Unknown: as it stands, so that the mistake is seen. */
			while (start < format)
				put(sink, *start++);
			if (!*format)
				return;
			put(sink, *format);
		}
	}
}

_Static_assert(sizeof(long) == sizeof(long long), "a long is read as a long long");

static size_t format_into(char *buffer, size_t bytes, const char *format, va_list arguments,
			  int *cut)
{
	*cut = 0;
	if (!bytes)
		return 0;
	struct sink sink = { .at = buffer, .end = buffer + bytes - 1 };
	va_list copy;
	va_copy(copy, arguments);
	convert(&sink, format, &copy);
	va_end(copy);
	*sink.at = 0;
	*cut = sink.cut;
	return (size_t)(sink.at - buffer);
}

size_t gt_format_v(char *buffer, size_t bytes, const char *format, va_list arguments)
{
	int cut;
	return format_into(buffer, bytes, format, arguments, &cut);
}

size_t gt_format(char *buffer, size_t bytes, const char *format, ...)
{
	va_list arguments;
	int cut;
	va_start(arguments, format);
	size_t length = format_into(buffer, bytes, format, arguments, &cut);
	va_end(arguments);
	return length;
}

static void make_one_line(struct gt_message *message, size_t length, int cut)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)message->text[i] < ' ' || message->text[i] == 0x7f)
			message->text[i] = '?';
	for (size_t i = 0; cut && i < 3 && i < length; i++)
		message->text[length - 1 - i] = '.';
}

static void set_v(struct gt_message *message, const char *format, va_list arguments)
{
	int cut;
	if (message == NULL)
		return;
	size_t length = format_into(message->text, sizeof(message->text), format, arguments, &cut);
	make_one_line(message, length, cut);
}

void gt_message_set(struct gt_message *message, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	set_v(message, format, arguments);
	va_end(arguments);
}

int gt_fail(struct gt_message *message, int error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	set_v(message, format, arguments);
	va_end(arguments);
	return error;
}

void gt_message_prefix(struct gt_message *message, const char *format, ...)
{
	va_list arguments;
	struct gt_message old;
	int cut, cut_old;
	if (message == NULL)
		return;
	for (size_t i = 0; i < sizeof(old.text); i++)
		old.text[i] = message->text[i];
	old.text[sizeof(old.text) - 1] = 0;
	va_start(arguments, format);
	size_t length = format_into(message->text, sizeof(message->text), format, arguments, &cut);
	va_end(arguments);
	struct sink sink = { .at = message->text + length,
			     .end = message->text + sizeof(message->text) - 1 };
	for (const char *p = old.text; *p; p++)
		put(&sink, *p);
	*sink.at = 0;
	cut_old = sink.cut;
	make_one_line(message, (size_t)(sink.at - message->text), cut || cut_old);
}
