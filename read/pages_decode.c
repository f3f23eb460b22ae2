/* SPDX-License-Identifier: MIT */
/*
 * Decodes packed pages of Linux's ring. Nothing that they say is believed: each length is compared with
 * the bytes that are there, and all of them have to be used up.
 */
#include "read/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <graftrace/file.h>
#include "read/kernel_page.h"

/* Bytes that are read from the front. */
struct bytes {
	const uint8_t *at, *end;
};

struct column {
	struct bytes bytes;    /* numbers of values, or differences */
	const uint8_t *values; /* NULL: differences */
	uint32_t count;	       /* of the values */
	uint32_t width;	       /* of a value: 4 or 8 bytes */
	uint64_t before;       /* the value in the last row */
};

struct record_class {
	struct graftrace_file_page_class head;
	uint32_t data_bytes;
	uint32_t first; /* column */
};

struct decoder {
	struct graftrace_file_pages head;
	struct record_class classes[GRAFTRACE_PAGE_CLASSES];
	struct column *columns;
	uint32_t column_count;
	struct bytes codes, extra, clocks;
	uint8_t *pages;
	uint8_t *at, *end; /* in the page that is being filled; NULL: none yet */
	uint32_t page_count;
};

/* ---- bytes ---- */

static const uint8_t *take(struct bytes *from, size_t count)
{
	const uint8_t *at = from->at;

	if (count > (size_t)(from->end - at))
		return NULL;
	from->at += count;
	return at;
}

static bool take_copy(struct bytes *from, void *to, size_t count)
{
	const uint8_t *at = take(from, count);

	if (at != NULL)
		memcpy(to, at, count);
	return at != NULL;
}

static bool take_part(struct bytes *from, size_t count, struct bytes *part)
{
	const uint8_t *at = take(from, count);

	*part = (struct bytes){ at, at != NULL ? at + count : at };
	return at != NULL;
}

static bool take_number(struct bytes *from, uint64_t *number)
{
	*number = 0;
	for (unsigned shift = 0; shift < 64 && from->at < from->end; shift += 7) {
		uint8_t byte = *from->at++;
		*number |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

/* ---- what there is ---- */

static bool take_class(struct decoder *decoder, struct bytes *from, struct record_class *class)
{
	if (!take_copy(from, &class->head, sizeof(class->head)))
		return false;
	uint32_t type = class->head.type, length = class->head.length;
	if (type >= GT_KERNEL_PAGE_PADDING || (type != 0 && length != 0) ||
	    (type == 0 && (length <= 4 || length > decoder->head.page_bytes)))
		return false;
	class->data_bytes = type ? type * 4 : (length - 4 + 3) & ~3u;
	class->first = decoder->column_count;
	decoder->column_count += (class->data_bytes + 7) / 8;
	return true;
}

static bool take_column(struct bytes *from, const struct record_class *class, struct column *column)
{
	struct graftrace_file_page_column head;

	if (!take_copy(from, &head, sizeof(head)) || !take_part(from, head.bytes, &column->bytes))
		return false;
	column->count = head.values;
	if (head.values == 0)
		return true;
	uint64_t dictionary = (uint64_t)head.values * column->width;
	uint32_t index_bytes = head.values <= 256 ? 1 : 2;
	if (head.values > 65536 ||
	    head.bytes != dictionary + (uint64_t) class->head.rows * index_bytes)
		return false;
	column->values = take(&column->bytes, (size_t)dictionary);
	return true;
}

static bool take_columns(struct decoder *decoder, struct bytes *from)
{
	for (uint32_t i = 0; i < decoder->head.classes; i++) {
		struct record_class *class = &decoder->classes[i];
		for (uint32_t offset = 0; offset < class->data_bytes; offset += 8) {
			struct column *column = &decoder->columns[class->first + offset / 8];
			column->width = class->data_bytes - offset < 8 ? 4 : 8;
			if (!take_column(from, class, column))
				return false;
		}
	}
	return from->at == from->end;
}

static int open_packed(struct decoder *decoder, struct bytes from, size_t most)
{
	struct graftrace_file_pages *head = &decoder->head;

	if (!take_copy(&from, head, sizeof(*head)) || head->page_bytes < GRAFTRACE_PAGE_MIN ||
	    head->page_bytes > GRAFTRACE_PAGE_MAX || head->classes > GRAFTRACE_PAGE_CLASSES ||
	    (uint64_t)head->page_bytes * head->pages > most || head->pages > head->codes ||
	    head->pages > head->extra_bytes / GT_KERNEL_PAGE_HEAD)
		return GT_EFORMAT;
	for (uint32_t i = 0; i < head->classes; i++)
		if (!take_class(decoder, &from, &decoder->classes[i]))
			return GT_EFORMAT;
	if (!take_part(&from, head->codes, &decoder->codes) ||
	    !take_part(&from, head->extra_bytes, &decoder->extra) ||
	    !take_part(&from, head->clock_bytes, &decoder->clocks) ||
	    decoder->column_count >
		    (size_t)(from.end - from.at) / sizeof(struct graftrace_file_page_column))
		return GT_EFORMAT;
	decoder->columns = calloc((size_t)decoder->column_count + 1, sizeof(*decoder->columns));
	decoder->pages = calloc((size_t)head->pages + 1, head->page_bytes);
	if (decoder->columns == NULL || decoder->pages == NULL)
		return GT_ENOMEM;
	return take_columns(decoder, &from) ? 0 : GT_EFORMAT;
}

/* ---- pages ---- */

static bool put(struct decoder *decoder, const void *bytes, size_t count)
{
	if (bytes == NULL || decoder->at == NULL || count > (size_t)(decoder->end - decoder->at))
		return false;
	memcpy(decoder->at, bytes, count);
	decoder->at += count;
	return true;
}

static bool put_raw(struct decoder *decoder)
{
	uint32_t count;

	return take_copy(&decoder->extra, &count, sizeof(count)) &&
	       put(decoder, take(&decoder->extra, count), count);
}

static bool begin_page(struct decoder *decoder)
{
	if (decoder->page_count == decoder->head.pages)
		return false;
	decoder->at = decoder->pages + (size_t)decoder->page_count++ * decoder->head.page_bytes;
	decoder->end = decoder->at + decoder->head.page_bytes;
	return put(decoder, take(&decoder->extra, GT_KERNEL_PAGE_HEAD), GT_KERNEL_PAGE_HEAD);
}

static bool put_value(struct decoder *decoder, struct column *column)
{
	const uint8_t *value;
	uint16_t index = 0;
	uint64_t number;

	if (column->values != NULL) {
		/* little endian, as all numbers of the file */
		if (!take_copy(&column->bytes, &index, column->count <= 256 ? 1 : 2) ||
		    index >= column->count)
			return false;
		value = column->values + (size_t)index * column->width;
	} else {
		if (!take_number(&column->bytes, &number))
			return false;
		column->before += number >> 1 ^ -(number & 1);
		value = (const uint8_t *)&column->before;
	}
	memcpy(decoder->at, value, column->width);
	decoder->at += column->width;
	return true;
}

static bool put_record(struct decoder *decoder, const struct record_class *class)
{
	uint32_t columns = (class->data_bytes + 7) / 8;
	uint64_t delta;

	if (!take_number(&decoder->clocks, &delta) || delta >> GT_KERNEL_PAGE_DELTA_BITS)
		return false;
	uint32_t head = (uint32_t)delta << 5 | class->head.type;
	if (!put(decoder, &head, sizeof(head)) ||
	    (class->head.type == 0 &&
	     !put(decoder, &class->head.length, sizeof(class->head.length))) ||
	    class->data_bytes > (size_t)(decoder->end - decoder->at))
		return false;
	for (uint32_t i = 0; i < columns; i++)
		if (!put_value(decoder, &decoder->columns[class->first + i]))
			return false;
	return true;
}

static bool put_pages(struct decoder *decoder)
{
	bool is_right = true;

	while (is_right && decoder->codes.at < decoder->codes.end) {
		uint8_t code = *decoder->codes.at++;
		if (code == GRAFTRACE_PAGE_NEXT)
			is_right = begin_page(decoder);
		else if (code == GRAFTRACE_PAGE_RAW)
			is_right = put_raw(decoder);
		else
			is_right = code < decoder->head.classes &&
				   put_record(decoder, &decoder->classes[code]);
	}
	return is_right;
}

static bool is_used_up(const struct decoder *decoder)
{
	for (uint32_t i = 0; i < decoder->column_count; i++)
		if (decoder->columns[i].bytes.at != decoder->columns[i].bytes.end)
			return false;
	return decoder->page_count == decoder->head.pages &&
	       decoder->extra.at == decoder->extra.end && decoder->clocks.at == decoder->clocks.end;
}

int gt_pages_decode(const uint8_t *packed, size_t bytes, size_t most, uint8_t **pages,
		    size_t *count)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));
	int error;

	*pages = NULL;
	*count = 0;
	if (decoder == NULL)
		return GT_ENOMEM;
	error = open_packed(decoder, (struct bytes){ packed, packed + bytes }, most);
	if (error == 0 && (!put_pages(decoder) || !is_used_up(decoder)))
		error = GT_EFORMAT;
	if (error == 0) {
		*pages = decoder->pages;
		*count = (size_t)decoder->head.pages * decoder->head.page_bytes;
		decoder->pages = NULL;
	}
	free(decoder->pages);
	free(decoder->columns);
	free(decoder);
	return error;
}
