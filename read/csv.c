/* SPDX-License-Identifier: MIT */
/*
 * The CSV reader. It fills a block, takes its whole rows, and moves the rest to the front. Fields
 * are scanned once; only a field with doubled quotes is copied.
 */
#include "read/csv.h"
#include "core/trace/message.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES (256u << 10) /* at first; doubled for a longer row, up to GT_CSV_ROW_MAX */
#define US_MAX	    1e15

enum column {
	COLUMN_FUNCTION,
	COLUMN_TID,
	COLUMN_LATENCY,
	COLUMN_SELF,
	COLUMNS_WANTED,
};

static const char *const column_names[COLUMNS_WANTED] = {
	"function",
	"tid",
	"latency_us",
	"latency_us_self",
};

struct field {
	const char *text;
	size_t len;
	bool doubled; /* quoted, with doubled quotes that are still to be halved */
};

enum row_end {
	ROW_WHOLE,
	ROW_CUT,    /* ROW_CUT, the block ends within the row */
	ROW_BROKEN, /* ROW_BROKEN, bytes after a closing quote */
};

struct reader {
	struct gt_csv_report *report;
	int wanted[GT_CSV_COLUMNS_MAX]; /* by column of the file: which of ours it is, or -1 */
	size_t columns;
	char *name; /* a name with its quotes halved */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int parse_us_slow(const char *text, size_t len, int64_t *ns)
{
	char copy[64];
	char *end;
	double us;

	if (len == 0 || len >= sizeof copy)
		return GT_EFORMAT;
	for (size_t i = 0; i < len; i++)
		if (memchr("+-.eE0123456789", text[i], 15) == NULL)
			return GT_EFORMAT;
	memcpy(copy, text, len);
	copy[len] = '\0';
	us = strtod(copy, &end);
	if (end != copy + len)
		return GT_EFORMAT;
	if (!(us <= US_MAX && us >= -US_MAX))
		return GT_EINVAL;
	*ns = llround(us * 1000);
	return 0;
}

int gt_csv_parse_us(const char *text, size_t len, int64_t *ns)
{
	const char *p = text;
	const char *end = text + len;
	int64_t value = 0;
	int digits;

	while (p < end && is_digit(*p) && p - text < 15)
		value = value * 10 + (*p++ - '0');
	if (p == text)
		return parse_us_slow(text, len, ns);
	if (p < end && *p == '.')
		p++;
	else if (p < end)
		return parse_us_slow(text, len, ns);
	for (digits = 0; digits < 3 && p < end && is_digit(*p); digits++)
		value = value * 10 + (*p++ - '0');
	if (p < end)
		return parse_us_slow(text, len, ns);
	for (; digits < 3; digits++)
		value *= 10;
	*ns = value;
	return 0;
}

static int parse_tid(const char *text, size_t len, int64_t *tid)
{
	bool negative = len > 0 && text[0] == '-';
	size_t i = negative;
	int64_t value = 0;

	if (len == i || len - i > 18)
		return GT_EFORMAT;
	for (; i < len && is_digit(text[i]); i++)
		value = value * 10 + (text[i] - '0');
	/* pandas writes 12.0 for 12 in a column that had a missing value. */
	if (len - i == 2 && text[i] == '.' && text[i + 1] == '0')
		i = len;
	if (i != len)
		return GT_EFORMAT;
	*tid = negative ? -value : value;
	return 0;
}

/* Splits the row at *p into at most GT_CSV_COLUMNS_MAX fields (further ones are counted, not
 * kept) and sets *p after its line end. last: the block ends with the file, so the last row may
 * have no line end. */
static enum row_end split(const char **p, const char *end, bool last, struct field *fields,
			  size_t *count, uint64_t *lines)
{
	const char *q = *p;
	size_t n = 0;

	for (;;) {
		struct field field = { .text = q };

		if (q < end && *q == '"') {
			q++;
			field.text = q;
			for (;;) {
				const char *quote = memchr(q, '"', (size_t)(end - q));

				if (quote == NULL)
					return ROW_CUT;
				if (quote + 1 == end && !last)
					return ROW_CUT;
				q = quote + 1;
				if (q == end || *q != '"')
					break;
				field.doubled = true;
				q++;
			}
			field.len = (size_t)(q - 1 - field.text);
			for (const char *c = field.text;
			     (c = memchr(c, '\n', (size_t)(q - c))) != NULL; c++)
				(*lines)++;
			if (q < end && *q == '\r')
				q++;
		} else {
			while (q < end && *q != ',' && *q != '\n')
				q++;
			field.len = (size_t)(q - field.text);
			if (field.len > 0 && q[-1] == '\r' && (q == end || *q == '\n'))
				field.len--;
		}
		if (n < GT_CSV_COLUMNS_MAX)
			fields[n] = field;
		n++;
		if (q == end) {
			if (!last)
				return ROW_CUT;
			break;
		}
		if (*q == '\n') {
			q++;
			break;
		}
		if (*q != ',') {
			*p = q;
			return ROW_BROKEN;
		}
		q++;
	}
	*p = q;
	*count = n;
	(*lines)++;
	return ROW_WHOLE;
}

static struct field trimmed(struct field field)
{
	while (field.len > 0 && (field.text[0] == ' ' || field.text[0] == '\t')) {
		field.text++;
		field.len--;
	}
	while (field.len > 0 &&
	       (field.text[field.len - 1] == ' ' || field.text[field.len - 1] == '\t'))
		field.len--;
	return field;
}

static int take_header(struct reader *reader, const struct field *fields, size_t count,
		       struct gt_message *message)
{
	bool found[COLUMNS_WANTED] = { false };

	reader->columns = count < GT_CSV_COLUMNS_MAX ? count : GT_CSV_COLUMNS_MAX;
	for (size_t i = 0; i < reader->columns; i++) {
		struct field field = trimmed(fields[i]);

		reader->wanted[i] = -1;
		for (int c = 0; c < COLUMNS_WANTED; c++) {
			if (found[c] || field.len != strlen(column_names[c]) ||
			    memcmp(field.text, column_names[c], field.len) != 0)
				continue;
			found[c] = true;
			reader->wanted[i] = c;
		}
	}
	for (int c = 0; c < COLUMNS_WANTED; c++) {
		if (found[c])
			continue;
		return gt_fail(
			message, GT_EFORMAT,
			"the first line (byte 0) names no column '%s'; it must name function, tid, "
			"latency_us and latency_us_self, as 'graftrace parse-trace' writes them",
			column_names[c]);
	}
	return 0;
}

/* Gets the row's values; returns NULL, or what is wrong with it. */
static const char *row_values(struct reader *reader, const struct field *fields, size_t count,
			      struct gt_csv_row *row)
{
	unsigned seen = 0;

	for (size_t i = 0; i < count && i < reader->columns; i++) {
		struct field field = fields[i];

		switch (reader->wanted[i]) {
		case COLUMN_FUNCTION:
			if (field.len == 0)
				return "the function has no name";
			row->function = field.text;
			row->function_len = field.len;
			if (field.doubled) {
				size_t n = 0;

				for (size_t j = 0; j < field.len; j++) {
					reader->name[n++] = field.text[j];
					j += field.text[j] == '"';
				}
				row->function = reader->name;
				row->function_len = n;
			}
			break;
		case COLUMN_TID:
			field = trimmed(field);
			if (parse_tid(field.text, field.len, &row->tid) != 0)
				return "the tid is no number";
			break;
		case COLUMN_LATENCY:
			field = trimmed(field);
			if (gt_csv_parse_us(field.text, field.len, &row->latency_ns) != 0)
				return "latency_us is no number";
			break;
		case COLUMN_SELF:
			field = trimmed(field);
			if (gt_csv_parse_us(field.text, field.len, &row->self_ns) != 0)
				return "latency_us_self is no number";
			break;
		default:
			continue;
		}
		seen++;
	}
	return seen == COLUMNS_WANTED ? NULL : "it has too few columns";
}

static void bad_row(struct reader *reader, uint64_t line, uint64_t offset, const char *why,
		    const char *text, const char *end)
{
	const char *stop = memchr(text, '\n', (size_t)(end - text));

	gt_cases_keep(&reader->report->bad, line, offset, 0, why, text,
		      (size_t)((stop != NULL ? stop : end) - text));
}

/* Takes all whole rows of the block. *taken: bytes used; the rest is the beginning of the next
 * block. */
static int take_rows(struct reader *reader, const char *block, size_t len, bool last,
		     int (*take)(void *user, const struct gt_csv_row *row), void *user,
		     size_t *taken, struct gt_message *message)
{
	struct field fields[GT_CSV_COLUMNS_MAX];
	struct gt_csv_report *report = reader->report;
	const char *end = block + len;
	const char *p = block;

	while (p < end) {
		const char *begin = p;
		const uint64_t line = report->lines + 1;
		const uint64_t offset = report->bytes + (uint64_t)(begin - block);
		uint64_t lines = 0;
		size_t count = 0;
		enum row_end how = split(&p, end, last, fields, &count, &lines);
		struct gt_csv_row row;
		const char *why;
		int result;

		if (how == ROW_CUT && !last && (size_t)(end - begin) < GT_CSV_ROW_MAX) {
			p = begin;
			break;
		}
		if (how != ROW_WHOLE) {
			/* Continues with the next line: a stray quote costs one row only. */
			const char *stop = memchr(begin, '\n', (size_t)(end - begin));

			if (reader->columns == 0)
				return gt_fail(message, GT_EFORMAT,
					       "the first line (byte 0) is no CSV header");
			bad_row(reader, line, offset,
				how == ROW_BROKEN ? "something follows a closing quote"
						  : "the row is too long, or a quote does not end",
				begin, end);
			p = stop != NULL ? stop + 1 : end;
			report->lines++;
			continue;
		}
		report->lines += lines;
		if (reader->columns == 0) {
			result = take_header(reader, fields, count, message);
			if (result != 0)
				return result;
			continue;
		}
		if (count == 1 && fields[0].len == 0)
			continue; /* an empty line */
		why = row_values(reader, fields, count, &row);
		if (why != NULL) {
			bad_row(reader, line, offset, why, begin, end);
			continue;
		}
		report->rows++;
		result = take(user, &row);
		if (result < 0)
			return result;
	}
	*taken = (size_t)(p - block);
	return 0;
}

/* A block, and a buffer for a name with its quotes halved. */
struct block {
	char *bytes;
	char *name;
	size_t size; /* of each */
	size_t len;  /* bytes read and not yet used */
};

static int block_grow(struct block *block, size_t size)
{
	char *bytes = realloc(block->bytes, size);
	char *name;

	if (bytes == NULL)
		return GT_ENOMEM;
	block->bytes = bytes;
	name = realloc(block->name, size);
	if (name == NULL)
		return GT_ENOMEM;
	block->name = name;
	block->size = size;
	return 0;
}

/* Fills the block. *last: the file ends there. */
static int fill(int fd, struct block *block, bool *last, uint64_t offset,
		struct gt_message *message)
{
	while (block->len < block->size) {
		ssize_t count = read(fd, block->bytes + block->len, block->size - block->len);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return gt_fail(message, GT_EIO, "cannot read at byte %llu: %s",
				       (unsigned long long)(offset + block->len), strerror(errno));
		if (count == 0) {
			*last = true;
			break;
		}
		block->len += (size_t)count;
	}
	return 0;
}

int gt_csv_read(int fd, int (*take)(void *user, const struct gt_csv_row *row), void *user,
		struct gt_csv_report *report, struct gt_message *message)
{
	struct reader reader = { .report = report };
	struct block block = { .size = 0 };
	bool last = false;
	int result;

	memset(report, 0, sizeof *report);
	result = block_grow(&block, BLOCK_BYTES);
	while (result == 0 && !last) {
		size_t skip = 0;
		size_t taken = 0;

		result = fill(fd, &block, &last, report->bytes, message);
		if (result != 0)
			break;
		if (report->bytes == 0 && block.len >= 3 &&
		    memcmp(block.bytes, "\xef\xbb\xbf", 3) == 0) {
			skip = 3;
			report->bytes = 3;
		}
		reader.name = block.name;
		result = take_rows(&reader, block.bytes + skip, block.len - skip, last, take, user,
				   &taken, message);
		if (result != 0)
			break;
		report->bytes += taken;
		block.len -= skip + taken;
		memmove(block.bytes, block.bytes + skip + taken, block.len);
		if (skip + taken == 0 && !last)
			result = block_grow(&block, block.size * 2);
	}
	if (result == GT_ENOMEM)
		gt_message_set(message, "out of memory");
	if (result == 0 && reader.columns == 0) {
		gt_message_set(message, "it is empty");
		result = GT_EFORMAT;
	}
	free(block.name);
	free(block.bytes);
	return result;
}
