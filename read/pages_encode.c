/* SPDX-License-Identifier: MIT */
/*
 * Encodes pages of Linux's ring, in two passes: the first looks at the heads of the records and gives
 * each a class (its event and length), the second gathers the records of a class column by column. What
 * is no record, or makes no sense, is stored as it stands.
 */
#include "read/pages.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <graftrace/file.h>
#include "read/kernel_page.h"

#define BYTES_MAX  (16u << 20)
#define CLASS_BITS 10 /* of the hash table of classes */
#define VALUE_BITS 13 /* … and of a column's values */
#define VALUES_MAX 4096u
/* bytes by which a dictionary may be longer than the differences so far */
#define VALUES_LEAD 8192u

struct record_class {
	uint64_t key; /* type, length word and event */
	struct graftrace_file_page_class head;
	uint32_t data_bytes;
	uint32_t first; /* of its records in `sorted` */
};

/* A slot of a column's dictionary. */
struct value {
	uint64_t value;
	uint32_t epoch; /* the column's; another: the slot is free */
	uint32_t index;
};

/* Bytes, and room for more. */
struct buffer {
	uint8_t *bytes;
	size_t used;
	size_t size;
};

struct gt_pages_encoder {
	struct record_class classes[GRAFTRACE_PAGE_CLASSES];
	uint32_t class_count;
	uint8_t class_slots[1u << CLASS_BITS]; /* class + 1; 0: free */
	uint32_t *places;		       /* of each record's data, in order … */
	uint8_t *place_classes;		       /* … and its class */
	uint32_t *sorted;		       /* the places, class by class */
	uint32_t record_count;
	size_t records_size;
	struct buffer codes, extra, clocks, out;
	struct buffer differences; /* of a column */
	uint16_t *indexes;	   /* of its values in its dictionary */
	uint64_t dictionary[VALUES_MAX];
	uint32_t epoch;
	struct value values[1u << VALUE_BITS];
};

struct gt_pages_encoder *gt_pages_encoder_create(void)
{
	return calloc(1, sizeof(struct gt_pages_encoder));
}

static void free_records(struct gt_pages_encoder *encoder)
{
	free(encoder->places);
	free(encoder->place_classes);
	free(encoder->sorted);
	free(encoder->indexes);
	encoder->places = encoder->sorted = NULL;
	encoder->place_classes = NULL;
	encoder->indexes = NULL;
	encoder->records_size = 0;
}

void gt_pages_encoder_destroy(struct gt_pages_encoder *encoder)
{
	if (encoder == NULL)
		return;
	free_records(encoder);
	free(encoder->codes.bytes);
	free(encoder->extra.bytes);
	free(encoder->clocks.bytes);
	free(encoder->differences.bytes);
	free(encoder->out.bytes);
	free(encoder);
}

/* ---- bytes ---- */

static bool make_buffer(struct buffer *buffer, size_t size)
{
	buffer->used = 0;
	if (size <= buffer->size)
		return true;
	free(buffer->bytes);
	buffer->bytes = malloc(size);
	buffer->size = buffer->bytes != NULL ? size : 0;
	return buffer->bytes != NULL;
}

static void put(struct buffer *buffer, const void *bytes, size_t count)
{
	if (count) /* else the memory may be NULL */
		memcpy(buffer->bytes + buffer->used, bytes, count);
	buffer->used += count;
}

static void put_number(struct buffer *buffer, uint64_t number)
{
	uint8_t *at = buffer->bytes + buffer->used;

	for (; number >= 0x80; number >>= 7)
		*at++ = (uint8_t)(number | 0x80);
	*at++ = (uint8_t)number;
	buffer->used = (size_t)(at - buffer->bytes);
}

static uint32_t word_at(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/*
 * A byte of input is a quarter of a code at most. What is stored as it stands is at least four bytes, or
 * the end of a page, with a length of four bytes. A record is at least eight bytes, of which four may
 * become five in CLOCKS; its data are counted with the columns: differences are ten bytes of eight.
 */
static bool make_room(struct gt_pages_encoder *encoder, size_t bytes, size_t page_bytes)
{
	size_t records = bytes / 8 + 1, pages = bytes / page_bytes;

	if (records > encoder->records_size) {
		free_records(encoder);
		encoder->places = malloc(records * sizeof(*encoder->places));
		encoder->place_classes = malloc(records);
		encoder->sorted = malloc(records * sizeof(*encoder->sorted));
		encoder->indexes = malloc(records * sizeof(*encoder->indexes));
		if (encoder->places == NULL || encoder->place_classes == NULL ||
		    encoder->sorted == NULL || encoder->indexes == NULL) {
			free_records(encoder);
			return false;
		}
		encoder->records_size = records;
	}
	return make_buffer(&encoder->codes, bytes / 4 + 2 * pages) &&
	       make_buffer(&encoder->extra, 2 * bytes + 4 * pages) &&
	       make_buffer(&encoder->clocks, bytes) &&
	       make_buffer(&encoder->differences, records * 10);
}

/* ---- the first pass ---- */

/* Returns the class of a record, or GRAFTRACE_PAGE_RAW: there are too many. */
static uint32_t class_of(struct gt_pages_encoder *encoder, uint32_t type, uint32_t length,
			 const uint8_t *data, uint32_t data_bytes)
{
	uint64_t key = (uint64_t)(word_at(data) & 0xffff) << 40 | (uint64_t)length << 8 | type;
	uint32_t slot = (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - CLASS_BITS));

	for (; encoder->class_slots[slot]; slot = (slot + 1) & ((1u << CLASS_BITS) - 1))
		if (encoder->classes[encoder->class_slots[slot] - 1].key == key)
			return encoder->class_slots[slot] - 1u;
	if (encoder->class_count == GRAFTRACE_PAGE_CLASSES)
		return GRAFTRACE_PAGE_RAW;
	struct record_class *class = &encoder->classes[encoder->class_count];
	*class = (struct record_class){ .key = key,
					.head = { .type = type, .length = length },
					.data_bytes = data_bytes };
	encoder->class_slots[slot] = (uint8_t)++encoder->class_count;
	return encoder->class_count - 1;
}

static void put_raw(struct gt_pages_encoder *encoder, const uint8_t *from, size_t count)
{
	uint32_t length = (uint32_t)count;

	encoder->codes.bytes[encoder->codes.used++] = GRAFTRACE_PAGE_RAW;
	put(&encoder->extra, &length, sizeof(length));
	put(&encoder->extra, from, count);
}

static void put_record(struct gt_pages_encoder *encoder, const uint8_t *pages, const uint8_t *from,
		       uint32_t head_bytes, uint32_t data_bytes)
{
	uint32_t head = word_at(from), type = head & 31;
	uint32_t length = type == 0 ? word_at(from + 4) : 0;
	uint32_t class = class_of(encoder, type, length, from + head_bytes, data_bytes);

	if (class == GRAFTRACE_PAGE_RAW) {
		put_raw(encoder, from, head_bytes + data_bytes);
		return;
	}
	encoder->codes.bytes[encoder->codes.used++] = (uint8_t) class;
	put_number(&encoder->clocks, head >> 5);
	encoder->classes[class].head.rows++;
	encoder->places[encoder->record_count] = (uint32_t)(from + head_bytes - pages);
	encoder->place_classes[encoder->record_count++] = (uint8_t) class;
}

/* Finds how long the piece at `from` is: *head_bytes before its data. False: it makes no sense. */
static bool measure(const uint8_t *from, size_t room, uint32_t *head_bytes, uint32_t *data_bytes)
{
	if (room < 4)
		return false;
	uint32_t head = word_at(from), type = head & 31;
	*head_bytes = 4;
	*data_bytes = type * 4;
	if (type == 0 || type >= GT_KERNEL_PAGE_PADDING) {
		uint32_t length = room < 8 ? 0 : word_at(from + 4);
		*head_bytes = 8;
		*data_bytes = 0;
		/* these lengths count themselves */
		if (type < GT_KERNEL_PAGE_TIME_EXTEND) {
			if (length < 4 || length > room || head == GT_KERNEL_PAGE_PADDING)
				return false;
			*data_bytes = type ? length - 4 : (length - 4 + 3) & ~3u;
		}
	}
	return *head_bytes + *data_bytes <= room;
}

static void put_page(struct gt_pages_encoder *encoder, const uint8_t *pages, const uint8_t *page,
		     size_t page_bytes)
{
	const uint8_t *at = page + GT_KERNEL_PAGE_HEAD, *end = page + page_bytes;
	uint32_t used = word_at(page + GT_KERNEL_PAGE_COMMIT) & GT_KERNEL_PAGE_USED;
	uint32_t head_bytes, data_bytes;

	encoder->codes.bytes[encoder->codes.used++] = GRAFTRACE_PAGE_NEXT;
	put(&encoder->extra, page, GT_KERNEL_PAGE_HEAD);
	while (used <= (size_t)(end - at) && measure(at, used, &head_bytes, &data_bytes)) {
		uint32_t type = word_at(at) & 31;
		if (type < GT_KERNEL_PAGE_PADDING && data_bytes)
			put_record(encoder, pages, at, head_bytes, data_bytes);
		else
			put_raw(encoder, at, head_bytes + data_bytes);
		at += head_bytes + data_bytes;
		used -= head_bytes + data_bytes;
	}
	while (end > at && end[-1] == 0)
		end--;
	if (end > at)
		put_raw(encoder, at, (size_t)(end - at));
}

/* ---- the second pass ---- */

static void sort_records(struct gt_pages_encoder *encoder)
{
	uint32_t first = 0, next[GRAFTRACE_PAGE_CLASSES];

	for (uint32_t i = 0; i < encoder->class_count; i++) {
		encoder->classes[i].first = next[i] = first;
		first += encoder->classes[i].head.rows;
	}
	for (uint32_t i = 0; i < encoder->record_count; i++)
		encoder->sorted[next[encoder->place_classes[i]]++] = encoder->places[i];
}

/* Returns the number of a value in the dictionary; VALUES_MAX: that is full. */
static uint32_t index_of(struct gt_pages_encoder *encoder, uint64_t value, uint32_t *count)
{
	uint32_t at = (uint32_t)(value * 0x9e3779b97f4a7c15u >> (64 - VALUE_BITS));
	struct value *slot = &encoder->values[at];

	for (; slot->epoch == encoder->epoch; slot = &encoder->values[at]) {
		if (slot->value == value)
			return slot->index;
		at = (at + 1) & ((1u << VALUE_BITS) - 1);
	}
	if (*count == VALUES_MAX)
		return VALUES_MAX;
	*slot = (struct value){ value, encoder->epoch, *count };
	encoder->dictionary[*count] = value;
	return (*count)++;
}

static uint64_t zigzag(uint64_t difference, uint32_t width)
{
	int64_t number = width == 8 ? (int64_t)difference : (int32_t)(uint32_t)difference;

	return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

/* Makes the column's differences, and its dictionary; the latter as long as it may be the shorter one.
 * Returns the number of its values; 0: it was given up. */
static uint32_t gather(struct gt_pages_encoder *encoder, const uint8_t *pages,
		       const struct record_class *class, uint32_t offset, uint32_t width)
{
	const uint32_t *places = encoder->sorted + class->first;
	uint64_t before = 0;
	uint32_t count = 0;
	bool has_dictionary = true;

	encoder->differences.used = 0;
	encoder->epoch++;
	for (uint32_t i = 0; i < class->head.rows; i++) {
		uint64_t value = 0;
		memcpy(&value, pages + places[i] + offset, width);
		put_number(&encoder->differences, zigzag(value - before, width));
		before = value;
		if (!has_dictionary)
			continue;
		uint32_t index = index_of(encoder, value, &count);
		encoder->indexes[i] = (uint16_t)index;
		has_dictionary = index < VALUES_MAX &&
				 (size_t)count * width <= encoder->differences.used + VALUES_LEAD;
	}
	return has_dictionary ? count : 0;
}

static void put_column(struct gt_pages_encoder *encoder, const uint8_t *pages,
		       const struct record_class *class, uint32_t offset)
{
	uint32_t rows = class->head.rows, width = class->data_bytes - offset < 8 ? 4 : 8;
	uint32_t count = gather(encoder, pages, class, offset, width);
	uint32_t index_bytes = count <= 256 ? 1 : 2;
	struct graftrace_file_page_column head = { count, count * width + rows * index_bytes };

	if (!count || head.bytes > encoder->differences.used) {
		head = (struct graftrace_file_page_column){ 0,
							    (uint32_t)encoder->differences.used };
		put(&encoder->out, &head, sizeof(head));
		put(&encoder->out, encoder->differences.bytes, encoder->differences.used);
		return;
	}
	put(&encoder->out, &head, sizeof(head));
	for (uint32_t i = 0; i < count; i++)
		put(&encoder->out, &encoder->dictionary[i], width);
	if (index_bytes == 2) {
		put(&encoder->out, encoder->indexes, (size_t)rows * 2);
		return;
	}
	for (uint32_t i = 0; i < rows; i++)
		encoder->out.bytes[encoder->out.used++] = (uint8_t)encoder->indexes[i];
}

static bool make_out(struct gt_pages_encoder *encoder, size_t bytes)
{
	size_t columns = 0;

	for (uint32_t i = 0; i < encoder->class_count; i++)
		columns += (encoder->classes[i].data_bytes + 7) / 8;
	/* a column of differences is the longest: ten bytes of eight, or five of four */
	return make_buffer(
		&encoder->out,
		sizeof(struct graftrace_file_pages) +
			encoder->class_count * sizeof(struct graftrace_file_page_class) +
			encoder->codes.used + encoder->extra.used + encoder->clocks.used +
			columns * sizeof(struct graftrace_file_page_column) + bytes + bytes / 4);
}

static void put_all(struct gt_pages_encoder *encoder, const uint8_t *pages, size_t bytes,
		    size_t page_bytes)
{
	struct graftrace_file_pages head = {
		.page_bytes = (uint32_t)page_bytes,
		.pages = (uint32_t)(bytes / page_bytes),
		.classes = encoder->class_count,
		.codes = (uint32_t)encoder->codes.used,
		.extra_bytes = (uint32_t)encoder->extra.used,
		.clock_bytes = (uint32_t)encoder->clocks.used,
	};

	put(&encoder->out, &head, sizeof(head));
	for (uint32_t i = 0; i < encoder->class_count; i++)
		put(&encoder->out, &encoder->classes[i].head, sizeof(encoder->classes[i].head));
	put(&encoder->out, encoder->codes.bytes, encoder->codes.used);
	put(&encoder->out, encoder->extra.bytes, encoder->extra.used);
	put(&encoder->out, encoder->clocks.bytes, encoder->clocks.used);
	for (uint32_t i = 0; i < encoder->class_count; i++)
		for (uint32_t offset = 0; offset < encoder->classes[i].data_bytes; offset += 8)
			put_column(encoder, pages, &encoder->classes[i], offset);
}

int64_t gt_pages_encode(struct gt_pages_encoder *encoder, const uint8_t *pages, size_t bytes,
			size_t page_bytes, const uint8_t **out)
{
	if (page_bytes < GRAFTRACE_PAGE_MIN || page_bytes > GRAFTRACE_PAGE_MAX ||
	    bytes > BYTES_MAX || bytes % page_bytes)
		return GT_EINVAL;
	if (!make_room(encoder, bytes, page_bytes))
		return GT_ENOMEM;
	encoder->class_count = encoder->record_count = 0;
	memset(encoder->class_slots, 0, sizeof(encoder->class_slots));
	for (size_t at = 0; at < bytes; at += page_bytes)
		put_page(encoder, pages, pages + at, page_bytes);
	sort_records(encoder);
	if (!make_out(encoder, bytes))
		return GT_ENOMEM;
	put_all(encoder, pages, bytes, page_bytes);
	*out = encoder->out.bytes;
	return (int64_t)encoder->out.used;
}
