/* SPDX-License-Identifier: MIT */
/*
 * A scan's life, the code that it is of, and what it has found: one byte of marks for each byte of
 * code, and two sorted lists. scan_sweep.c finds it.
 */
#include "attach/plan/scan_private.h"
#include "core/trace/message.h"

static int add_range(struct gt_scan *scan, uint64_t start, uint64_t bytes)
{
	struct gt_scan_range *grown;
	const uint8_t *code = bytes ? gt_object_bytes(scan->object, start, bytes) : NULL;

	if (code == NULL)
		return 0;
	grown = realloc(scan->ranges, (scan->range_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return GT_ENOMEM;
	scan->ranges = grown;
	/* Sections of one file may stand in any order, and overlap in a broken one. */
	for (uint32_t i = 0; i < scan->range_count; i++)
		if (start < grown[i].end && grown[i].start < start + bytes)
			return 0;
	grown[scan->range_count++] = (struct gt_scan_range){ start, start + bytes, code, NULL };
	return 0;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct gt_scan_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int gt_scan_create(struct gt_object *object, struct gt_scan **scan, struct gt_message *message)
{
	struct gt_scan *created = calloc(1, sizeof(*created));
	int error = GT_ENOMEM;

	*scan = NULL;
	if (created == NULL)
		goto no_memory;
	created->object = object;
	for (uint32_t i = 0; i < gt_object_section_count(object); i++) {
		const struct gt_object_section *section = gt_object_section(object, i);

		if (section->execute && add_range(created, section->address, section->bytes))
			goto no_memory;
	}
	if (!created->range_count)
		for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
			const struct gt_object_segment *segment = gt_object_segment(object, i);

			if (segment->execute &&
			    add_range(created, segment->address, segment->file_bytes))
				goto no_memory;
		}
	if (created->range_count)
		qsort(created->ranges, created->range_count, sizeof(*created->ranges),
		      compare_ranges);
	if (!gt_scan_find_specials(created))
		goto no_memory;
	*scan = created;
	return 0;

no_memory:
	gt_scan_destroy(created);
	return gt_fail(message, error, "no memory to look through the code");
}

void gt_scan_destroy(struct gt_scan *scan)
{
	if (scan == NULL)
		return;
	for (uint32_t i = 0; i < scan->range_count; i++)
		free(scan->ranges[i].marks);
	free(scan->ranges);
	free(scan->slots.items);
	free(scan->functions.items);
	free(scan->sites.items);
	free(scan->inward.items);
	free(scan->tables.items);
	free(scan->used.items);
	free(scan);
}

const struct gt_object *gt_scan_object(const struct gt_scan *scan)
{
	return scan->object;
}

bool gt_scan_is_complete(const struct gt_scan *scan)
{
	return scan->complete;
}

uint64_t gt_scan_code_bytes(const struct gt_scan *scan)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < scan->range_count; i++)
		bytes += scan->ranges[i].end - scan->ranges[i].start;
	return bytes;
}

const uint8_t *gt_scan_code(struct gt_scan *scan, uint64_t address, uint64_t *room)
{
	const struct gt_scan_range *range = gt_scan_range_at(scan, address);

	*room = range != NULL ? range->end - address : 0;
	return range != NULL ? range->code + (address - range->start) : NULL;
}

const struct gt_object_function *gt_scan_function_before(const struct gt_object *object,
							 uint64_t address)
{
	uint32_t low = 0, high = gt_object_function_count(object);

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (gt_object_function(object, middle)->address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? gt_object_function(object, low - 1) : NULL;
}

uint8_t gt_scan_marks(const struct gt_scan *scan, uint64_t address)
{
	const struct gt_scan_range *range = gt_scan_range_at(scan, address);

	return range != NULL && range->marks != NULL ? range->marks[address - range->start] : 0;
}

uint8_t gt_scan_marks_of(const struct gt_scan *scan, uint64_t address, uint64_t bytes)
{
	const struct gt_scan_range *range = gt_scan_range_at(scan, address);
	uint8_t marks = 0;

	for (uint64_t i = 0;
	     range != NULL && range->marks != NULL && i < bytes && address + i < range->end; i++)
		marks |= range->marks[address - range->start + i];
	return marks;
}

void gt_scan_use(struct gt_scan *scan, uint64_t address, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++) {
		const uint64_t byte = address + i;

		gt_scan_mark(scan, byte, GT_MARK_USED);
		if (!scan->complete)
			gt_scan_push(scan, &scan->used, &byte, sizeof(byte));
	}
}

void gt_scan_give_back(struct gt_scan *scan, uint64_t address, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i++) {
		const struct gt_scan_range *range = gt_scan_range_at(scan, address + i);

		if (range != NULL && range->marks != NULL)
			range->marks[address + i - range->start] &= (uint8_t)~GT_MARK_USED;
	}
}

/* Index of the first item whose address is not below `address`; each begins with its address. */
static uint32_t lower_bound(const struct gt_scan_list *list, size_t bytes, uint64_t address)
{
	uint32_t low = 0, high = list->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)list->items + middle * bytes, sizeof(at));
		if (at < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t gt_scan_sites(const struct gt_scan *scan, uint64_t start, uint64_t end,
		       const struct gt_special_site **first)
{
	const uint32_t from = lower_bound(&scan->sites, sizeof(**first), start);

	*first =
		from ? (const struct gt_special_site *)scan->sites.items + from : scan->sites.items;
	return lower_bound(&scan->sites, sizeof(**first), end) - from;
}

uint32_t gt_scan_inward_jumps(const struct gt_scan *scan, uint64_t start, uint64_t end,
			      const struct gt_inward_jump **first)
{
	const uint32_t from = lower_bound(&scan->inward, sizeof(**first), start);

	*first = from ? (const struct gt_inward_jump *)scan->inward.items + from
		      : scan->inward.items;
	return lower_bound(&scan->inward, sizeof(**first), end) - from;
}

/* Where instructions begin for sure, at or before the address: a function's start, or its end. */
