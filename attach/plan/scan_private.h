/* SPDX-License-Identifier: MIT */
/* What the files of the scan share: its lists and marks. */
#ifndef GT_ATTACH_SCAN_PRIVATE_H
#define GT_ATTACH_SCAN_PRIVATE_H

#include "attach/plan/scan.h"

#include <stdlib.h>
#include <string.h>

/* A piece of code: an executable section, or segment where there are no sections. */
struct gt_scan_range {
	uint64_t start;
	uint64_t end;
	const uint8_t *code;
	uint8_t *marks; /* NULL until gt_scan_all */
};

/* Where the dynamic loader stores a special function's address, or where the function is. */
struct gt_scan_slot {
	uint64_t address;
	uint8_t special;
};

struct gt_scan_list {
	void *items;
	uint32_t count;
	uint32_t room;
};

struct gt_scan {
	struct gt_object *object;
	struct gt_scan_range *ranges; /* sorted */
	uint32_t range_count;
	struct gt_scan_list slots;     /* struct gt_scan_slot: of the global offset table */
	struct gt_scan_list functions; /* struct gt_scan_slot: the functions themselves */
	struct gt_scan_list sites;     /* struct gt_special_site */
	struct gt_scan_list inward;    /* struct gt_inward_jump */
	struct gt_scan_list tables;    /* uint64_t: addresses outside of code that lea takes */
	struct gt_scan_list used;      /* uint64_t: bytes of padding that patches have taken */
	bool has[GT_SPECIAL_CALLER + 1];
	bool complete;
	bool no_memory;
};

/* False: no memory, which is noted. */
static inline bool gt_scan_push(struct gt_scan *scan, struct gt_scan_list *list, const void *item,
				size_t bytes)
{
	if (list->count == list->room) {
		const uint32_t room = list->room ? list->room * 2 : 64;
		void *grown = realloc(list->items, room * bytes);

		if (grown == NULL) {
			scan->no_memory = true;
			return false;
		}
		list->items = grown;
		list->room = room;
	}
	memcpy((char *)list->items + list->count++ * bytes, item, bytes);
	return true;
}

/* NULL: no code there. */
static inline struct gt_scan_range *gt_scan_range_at(const struct gt_scan *scan, uint64_t address)
{
	uint32_t low = 0, high = scan->range_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (scan->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < scan->range_count && address >= scan->ranges[low].start ? &scan->ranges[low]
									     : NULL;
}

static inline void gt_scan_mark(struct gt_scan *scan, uint64_t address, uint8_t marks)
{
	struct gt_scan_range *range = gt_scan_range_at(scan, address);

	if (range != NULL && range->marks != NULL)
		range->marks[address - range->start] |= marks;
}

/* The last function that begins at or before the address. NULL: none. */
const struct gt_object_function *gt_scan_function_before(const struct gt_object *object,
							 uint64_t address);

/* Fills in the special functions of the object, and the slots of its global offset table that lead to
 * them. False: no memory. */
bool gt_scan_find_specials(struct gt_scan *scan);

#endif
