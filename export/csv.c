/* SPDX-License-Identifier: MIT */
/*
 * The CSV of calls. Numbers are written two digits at a time from a table: at ten million rows
 * a second printf would be nine tenths of the work.
 */
#include "export/csv.h"
#include "core/trace/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (256u << 10)
/* Three numbers of at most 20 digits and a sign, points, commas, newline. */
#define NUMBERS_MAX 80

static const char two_digits[201] =
	"00010203040506070809101112131415161718192021222324252627282930313233"
	"34353637383940414243444546474849505152535455565758596061626364656667"
	"6869707172737475767778798081828384858687888990919293949596979899";

static char *put_number(char *p, uint64_t value)
{
	char digits[20];
	char *at = digits + sizeof digits;

	while (value >= 100) {
		at -= 2;
		memcpy(at, two_digits + value % 100 * 2, 2);
		value /= 100;
	}
	if (value >= 10) {
		at -= 2;
		memcpy(at, two_digits + value * 2, 2);
	} else {
		*--at = (char)('0' + value);
	}
	memcpy(p, at, (size_t)(digits + sizeof digits - at));
	return p + (digits + sizeof digits - at);
}

static char *put_us(char *p, uint64_t ns)
{
	unsigned fraction = (unsigned)(ns % 1000);

	p = put_number(p, ns / 1000);
	p[0] = '.';
	p[1] = (char)('0' + fraction / 100);
	memcpy(p + 2, two_digits + fraction % 100 * 2, 2);
	return p + 4;
}

static int write_out(struct gt_csv_writer *writer)
{
	const char *p = writer->buffer;
	size_t left = writer->used;

	while (left > 0 && writer->error == 0) {
		ssize_t count = write(writer->fd, p, left);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			writer->error = errno;
			break;
		}
		p += count;
		left -= (size_t)count;
		writer->bytes += (uint64_t)count;
	}
	writer->used = 0;
	return writer->error == 0 ? 0 : GT_EIO;
}

static inline bool has_byte(uint64_t word, unsigned char byte)
{
	uint64_t zero = word ^ (0x0101010101010101u * byte);

	return ((zero - 0x0101010101010101u) & ~zero & 0x8080808080808080u) != 0;
}

static inline bool word_needs_quotes(const char *p)
{
	uint64_t word;

	memcpy(&word, p, 8);
	return has_byte(word, ',') || has_byte(word, '"') || has_byte(word, '\n') ||
	       has_byte(word, '\r');
}

/* Tests eight bytes at a time; the last eight overlap those before. */
static bool needs_quotes(const char *name, size_t len)
{
	const char *end = name + len;

	if (len >= 8) {
		for (; end - name > 8; name += 8)
			if (word_needs_quotes(name))
				return true;
		return word_needs_quotes(end - 8);
	}
	for (; name < end; name++)
		if (*name == ',' || *name == '"' || *name == '\n' || *name == '\r')
			return true;
	return false;
}

/* Writes names of any length, piece by piece through the buffer. */
static int put_bytes_slow(struct gt_csv_writer *writer, const char *bytes, size_t len, bool quote)
{
	for (size_t i = 0; i < len; i++) {
		if (BUFFER_BYTES - writer->used < 2 && write_out(writer) != 0)
			return GT_EIO;
		if (quote && bytes[i] == '"')
			writer->buffer[writer->used++] = '"';
		writer->buffer[writer->used++] = bytes[i];
	}
	return 0;
}

static int put_name_slow(struct gt_csv_writer *writer, const char *name, size_t len, bool quote)
{
	if (quote && put_bytes_slow(writer, "\"", 1, false) != 0)
		return GT_EIO;
	if (put_bytes_slow(writer, name, len, quote) != 0)
		return GT_EIO;
	if (quote && put_bytes_slow(writer, "\"", 1, false) != 0)
		return GT_EIO;
	return 0;
}

int gt_csv_writer_init(struct gt_csv_writer *writer, int fd)
{
	memset(writer, 0, sizeof *writer);
	writer->buffer = malloc(BUFFER_BYTES);
	if (writer->buffer == NULL)
		return GT_ENOMEM;
	writer->fd = fd;
	writer->used = sizeof GT_CSV_HEADER - 1;
	memcpy(writer->buffer, GT_CSV_HEADER, writer->used);
	return 0;
}

int gt_csv_write_call(struct gt_csv_writer *writer, const char *function, size_t function_len,
		      int64_t tid, uint64_t latency_ns, uint64_t self_ns)
{
	const bool quote = needs_quotes(function, function_len);
	char *p;

	if (writer->error != 0)
		return GT_EIO;
	if (BUFFER_BYTES - writer->used < NUMBERS_MAX + (quote ? 0 : function_len) &&
	    write_out(writer) != 0)
		return GT_EIO;
	if (quote || function_len > BUFFER_BYTES - NUMBERS_MAX) {
		if (put_name_slow(writer, function, function_len, quote) != 0)
			return GT_EIO;
		if (BUFFER_BYTES - writer->used < NUMBERS_MAX && write_out(writer) != 0)
			return GT_EIO;
	} else {
		memcpy(writer->buffer + writer->used, function, function_len);
		writer->used += function_len;
	}
	p = writer->buffer + writer->used;
	*p++ = ',';
	if (tid < 0)
		*p++ = '-';
	p = put_number(p, tid < 0 ? 0 - (uint64_t)tid : (uint64_t)tid);
	*p++ = ',';
	p = put_us(p, latency_ns);
	*p++ = ',';
	p = put_us(p, self_ns);
	*p++ = '\n';
	writer->used = (size_t)(p - writer->buffer);
	return 0;
}

int gt_csv_writer_flush(struct gt_csv_writer *writer, struct gt_message *message)
{
	if (write_out(writer) == 0)
		return 0;
	return gt_fail(message, GT_EIO, "cannot write after %llu bytes: %s",
		       (unsigned long long)writer->bytes, strerror(writer->error));
}

void gt_csv_writer_fini(struct gt_csv_writer *writer)
{
	free(writer->buffer);
	memset(writer, 0, sizeof *writer);
}
