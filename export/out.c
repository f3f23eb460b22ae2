/* SPDX-License-Identifier: MIT */
/* Buffered output: see out.h. */
#define _GNU_SOURCE
#include "export/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int gt_out_init(struct gt_out *out, int fd)
{
	*out = (struct gt_out){ .fd = fd, .room = GT_OUT_BYTES, .buffer = malloc(GT_OUT_BYTES) };
	return out->buffer != NULL ? 0 : GT_ENOMEM;
}

int gt_out_init_memory(struct gt_out *out)
{
	return gt_out_init(out, -1);
}

/* Makes room for `count` more bytes in memory; false: no memory. */
static bool grow(struct gt_out *out, size_t count)
{
	size_t room = out->room;
	char *grown;

	while (room - out->used < count)
		room *= 2;
	grown = realloc(out->buffer, room);
	if (grown == NULL) {
		out->error = ENOMEM;
		return false;
	}
	out->buffer = grown;
	out->room = room;
	return true;
}

static void write_all(struct gt_out *out, const char *bytes, size_t count)
{
	while (count > 0 && !out->error) {
		ssize_t done = write(out->fd, bytes, count);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0) {
			out->error = done < 0 ? errno : EIO;
			return;
		}
		out->bytes += (uint64_t)done;
		bytes += done;
		count -= (size_t)done;
	}
}

int gt_out_flush(struct gt_out *out)
{
	if (out->fd < 0)
		return out->error ? GT_ENOMEM : 0;
	write_all(out, out->buffer, out->used);
	out->used = 0;
	return out->error ? GT_EIO : 0;
}

int gt_out_again(struct gt_out *out)
{
	out->used = 0;
	out->error = 0;
	if (out->bytes != 0 && (ftruncate(out->fd, 0) != 0 || lseek(out->fd, 0, SEEK_SET) != 0))
		out->error = errno;
	out->bytes = 0;
	return out->error ? GT_EIO : 0;
}

void gt_out_fini(struct gt_out *out)
{
	free(out->buffer);
	out->buffer = NULL;
}

__attribute__((noinline, cold)) void gt_out_bytes_slow(struct gt_out *out, const void *bytes,
						       size_t count)
{
	if (out->fd < 0) {
		if (out->error || !grow(out, count))
			return;
	} else {
		gt_out_flush(out);
		if (count >= out->room) {
			write_all(out, bytes, count);
			return;
		}
	}
	memcpy(out->buffer + out->used, bytes, count);
	out->used += count;
}

/* Writes the digits so that they end before `end`. */
static void digits(char *end, uint64_t number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";

	while (number >= 100) {
		end -= 2;
		memcpy(end, &pairs[number % 100 * 2], 2);
		number /= 100;
	}
	if (number >= 10) {
		end -= 2;
		memcpy(end, &pairs[number * 2], 2);
	} else {
		*--end = (char)('0' + number);
	}
}

static unsigned digit_count(uint64_t number)
{
	static const uint64_t powers[] = { 0,
					   10,
					   100,
					   1000,
					   10000,
					   100000,
					   1000000,
					   10000000,
					   100000000,
					   1000000000,
					   10000000000,
					   100000000000,
					   1000000000000,
					   10000000000000,
					   100000000000000,
					   1000000000000000,
					   10000000000000000,
					   100000000000000000,
					   1000000000000000000,
					   10000000000000000000u };
	/* 1233 / 4096 is the logarithm of 2, nearly. */
	const unsigned least = (64 - (unsigned)__builtin_clzll(number | 1)) * 1233 >> 12;

	return least + (number >= powers[least]);
}

/* Where a number of at most so many bytes can be written: in the buffer, or in `text`, which put_number() gives to
 * gt_out_bytes() then. */
#define NUMBER_BYTES 24

static char *number_at(struct gt_out *out, char text[NUMBER_BYTES])
{
	return out->room - out->used >= NUMBER_BYTES ? out->buffer + out->used : text;
}

static void put_number(struct gt_out *out, const char *text, size_t count)
{
	if (text == out->buffer + out->used)
		out->used += count;
	else
		gt_out_bytes(out, text, count);
}

void gt_out_number(struct gt_out *out, uint64_t number)
{
	const unsigned count = digit_count(number);
	char text[NUMBER_BYTES], *at = number_at(out, text);

	digits(at + count, number);
	put_number(out, at, count);
}

void gt_out_us(struct gt_out *out, uint64_t ns)
{
	const uint64_t us = ns / 1000, rest = ns % 1000;
	const unsigned count = digit_count(us);
	char text[NUMBER_BYTES], *at = number_at(out, text);

	digits(at + count, us);
	at[count] = '.';
	at[count + 1] = (char)('0' + rest / 100);
	at[count + 2] = (char)('0' + rest / 10 % 10);
	at[count + 3] = (char)('0' + rest % 10);
	put_number(out, at, count + 4);
}

unsigned gt_utf8_length(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;
	unsigned length = byte[0] < 0x80   ? 1
			  : byte[0] < 0xc2 ? 0
			  : byte[0] < 0xe0 ? 2
			  : byte[0] < 0xf0 ? 3
			  : byte[0] < 0xf5 ? 4
					   : 0;

	for (unsigned i = 1; i < length; i++)
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
	if ((byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] >= 0xa0) ||
	    (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] >= 0x90))
		return 0;
	return length;
}

#define REPLACEMENT "\xef\xbf\xbd"

/* How many bytes at the beginning stand in a string of JSON as they are. */
static size_t plain_json(const char *text)
{
	size_t count = 0;

	while ((unsigned char)text[count] >= 0x20 && (unsigned char)text[count] < 0x7f &&
	       text[count] != '"' && text[count] != '\\')
		count++;
	return count;
}

void gt_out_json(struct gt_out *out, const char *text)
{
	gt_out_char(out, '"');
	for (;;) {
		size_t plain = plain_json(text);
		unsigned length;

		gt_out_bytes(out, text, plain);
		text += plain;
		if (*text == '\0')
			break;
		length = gt_utf8_length(text);
		if (length == 0)
			gt_out_text(out, REPLACEMENT);
		else if (*text == '"' || *text == '\\')
			gt_out_printf(out, "\\%c", *text);
		else if ((unsigned char)*text < 0x20 || *text == 0x7f)
			gt_out_printf(out, "\\u%04x", (unsigned)*text);
		else
			gt_out_bytes(out, text, length);
		text += length ? length : 1;
	}
	gt_out_char(out, '"');
}

void gt_out_csv(struct gt_out *out, const char *text)
{
	if (text[strcspn(text, ",\"\r\n")] == '\0') {
		gt_out_text(out, text);
		return;
	}
	gt_out_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			gt_out_char(out, '"');
		gt_out_char(out, *text);
	}
	gt_out_char(out, '"');
}

void gt_out_tab_text(struct gt_out *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '\t' || *text == '\n') {
			gt_out_char(out, '\\');
			gt_out_char(out, *text == '\t' ? 't' : *text == '\n' ? 'n' : '\\');
		} else {
			gt_out_char(out, *text);
		}
	}
}

void gt_out_xml(struct gt_out *out, const char *text)
{
	while (*text != '\0') {
		unsigned length = gt_utf8_length(text);

		if (length == 0 || (unsigned char)*text < 0x20)
			gt_out_text(out, REPLACEMENT);
		else if (*text == '<')
			gt_out_text(out, "&lt;");
		else if (*text == '>')
			gt_out_text(out, "&gt;");
		else if (*text == '&')
			gt_out_text(out, "&amp;");
		else if (*text == '"')
			gt_out_text(out, "&quot;");
		else
			gt_out_bytes(out, text, length);
		text += length ? length : 1;
	}
}

void gt_out_printf(struct gt_out *out, const char *format, ...)
{
	char text[4096];
	va_list arguments;
	int count;

	va_start(arguments, format);
	count = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (count > 0)
		gt_out_bytes(out, text,
			     (size_t)count < sizeof(text) ? (size_t)count : sizeof(text) - 1);
}
