/* SPDX-License-Identifier: MIT */
/*
 * Formats text as C's vsnprintf does, without floating point. It uses nothing but its arguments.
 */
#include "port/unikernel/console.h"

#include <stdbool.h>
#include <stdint.h>

struct output {
	char *text;
	size_t size;   /* of text; 0: only counted */
	size_t length; /* bytes that the whole text needs */
};

struct field {
	bool left, zeros, alternate;
	int width, precision; /* precision -1: none was given */
};

static void put(struct output *output, char character)
{
	if (output->length + 1 < output->size)
		output->text[output->length] = character;
	output->length++;
}

static void put_field(struct output *output, const struct field *field, const char *prefix,
		      const char *text, int length)
{
	int padding = field->width - length;
	for (const char *p = prefix; *p; p++)
		padding--;
	bool zeros = field->zeros && !field->left;
	if (!zeros && !field->left)
		for (; padding > 0; padding--)
			put(output, ' ');
	while (*prefix)
		put(output, *prefix++);
	if (zeros)
		for (; padding > 0; padding--)
			put(output, '0');
	for (int i = 0; i < length; i++)
		put(output, text[i]);
	for (; padding > 0; padding--)
		put(output, ' ');
}

static void put_number(struct output *output, const struct field *field, const char *prefix,
		       uint64_t number, unsigned base, bool capitals)
{
	const char *digits = capitals ? "0123456789ABCDEF" : "0123456789abcdef";
	char text[64];
	int at = sizeof(text);
	do {
		text[--at] = digits[number % base];
		number /= base;
	} while (number);
	while (field->precision > (int)sizeof(text) - at && at > 0)
		text[--at] = '0';
	put_field(output, field, prefix, text + at, (int)sizeof(text) - at);
}

static uint64_t next_integer(va_list *arguments, int longs, bool is_signed)
{
	if (longs > 0)
		return va_arg(*arguments, uint64_t);
	uint32_t value = va_arg(*arguments, uint32_t);
	if (longs == -1)
		value = is_signed ? (uint32_t)(int16_t)value : (uint16_t)value;
	if (longs <= -2)
		value = is_signed ? (uint32_t)(int8_t)value : (uint8_t)value;
	return is_signed ? (uint64_t)(int32_t)value : value;
}

static int number_of(const char **format, va_list *arguments)
{
	int number = 0;
	if (**format == '*') {
		(*format)++;
		return va_arg(*arguments, int);
	}
	while (**format >= '0' && **format <= '9')
		number = number * 10 + *(*format)++ - '0';
	return number;
}

static void put_string(struct output *output, struct field *field, const char *text)
{
	int length = 0;
	if (!text)
		text = "(null)";
	while (length != field->precision && text[length])
		length++;
	field->zeros = false;
	put_field(output, field, "", text, length);
}

/* Formats one conversion; `format` is after the % and moves after the conversion. */
static void convert(struct output *output, const char **format, va_list *arguments)
{
	struct field field = { .precision = -1 };
	for (;; (*format)++) {
		if (**format == '-')
			field.left = true;
		else if (**format == '0')
			field.zeros = true;
		else if (**format == '#')
			field.alternate = true;
		else
			break;
	}
	field.width = number_of(format, arguments);
	if (**format == '.') {
		(*format)++;
		field.precision = number_of(format, arguments);
	}
	int longs = 0;
	for (;; (*format)++) {
		if (**format == 'l' || **format == 'z' || **format == 'j' || **format == 't')
			longs++;
		else if (**format == 'h')
			longs--;
		else
			break;
	}
	char conversion = **format;
	if (conversion)
		(*format)++;
	switch (conversion) {
	case 'd':
	case 'i': {
		int64_t value = (int64_t)next_integer(arguments, longs, true);
		put_number(output, &field, value < 0 ? "-" : "",
			   value < 0 ? -(uint64_t)value : (uint64_t)value, 10, false);
		break;
	}
	case 'u':
		put_number(output, &field, "", next_integer(arguments, longs, false), 10, false);
		break;
	case 'x':
	case 'X':
		put_number(output, &field, field.alternate ? "0x" : "",
			   next_integer(arguments, longs, false), 16, conversion == 'X');
		break;
	case 'o':
		put_number(output, &field, "", next_integer(arguments, longs, false), 8, false);
		break;
	case 'p':
		put_number(output, &field, "0x", next_integer(arguments, 1, false), 16, false);
		break;
	case 'c': {
		char character = (char)va_arg(*arguments, int);
		put_field(output, &field, "", &character, 1);
		break;
	}
	case 's':
		put_string(output, &field, va_arg(*arguments, const char *));
		break;
	case '%':
		put(output, '%');
		break;
	default:
		put(output, '%');
		if (conversion)
			put(output, conversion);
	}
}

int format_text(char *text, size_t size, const char *format, va_list arguments)
{
	struct output output = { text, size, 0 };
	va_list rest;
	va_copy(rest, arguments);
	while (*format) {
		if (*format != '%') {
			put(&output, *format++);
			continue;
		}
		format++;
		convert(&output, &format, &rest);
	}
	va_end(rest);
	if (size)
		text[output.length < size ? output.length : size - 1] = 0;
	return (int)output.length;
}
