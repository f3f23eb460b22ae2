/* SPDX-License-Identifier: MIT */
/*
 * A page of the ring of a 64-bit little-endian Linux, record by record: what libtraceevent's kbuffer
 * does for every layout, for the one layout that nearly every machine has. The page may hold anything:
 * nothing outside of its bytes is read, and a record reaches no further than they do.
 */
#ifndef GT_READ_KERNEL_PAGE_H
#define GT_READ_KERNEL_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Its clock, its length with flags, records; then, if the flags say so, how many were lost before. */
#define GT_KERNEL_PAGE_COMMIT	   8
#define GT_KERNEL_PAGE_HEAD	   16
#define GT_KERNEL_PAGE_USED	   0x7ffffffu /* of the length: the bytes of records */
#define GT_KERNEL_PAGE_LOST	   (1u << 31)
#define GT_KERNEL_PAGE_LOST_STORED (1u << 30)

/* Linux' enum ring_buffer_type; below PADDING: the length of the data in words of 4 bytes. */
#define GT_KERNEL_PAGE_PADDING	   29u
#define GT_KERNEL_PAGE_TIME_EXTEND 30u
#define GT_KERNEL_PAGE_TIME_STAMP  31u
#define GT_KERNEL_PAGE_DELTA_BITS  27
#define GT_KERNEL_PAGE_STAMP_BEHIND \
	(0xf8ull << 56) /* a full time stamp has no room for these bits */

struct gt_kernel_page {
	const uint8_t *at, *end;
	uint64_t clock;
	int64_t lost;	 /* records before the first one; -1: some */
	bool is_damaged; /* it ended with a record that reaches beyond it */
};

/* False: the length that it states is not within its `bytes`. */
static inline bool gt_kernel_page_open(struct gt_kernel_page *page, const void *memory,
				       size_t bytes)
{
	const uint8_t *begin = memory;
	uint64_t commit;

	if (bytes < GT_KERNEL_PAGE_HEAD)
		return false;
	memcpy(&page->clock, begin, sizeof(page->clock));
	memcpy(&commit, begin + GT_KERNEL_PAGE_COMMIT, sizeof(commit));
	if ((commit & GT_KERNEL_PAGE_USED) > bytes - GT_KERNEL_PAGE_HEAD)
		return false;
	page->at = begin + GT_KERNEL_PAGE_HEAD;
	page->end = page->at + (commit & GT_KERNEL_PAGE_USED);
	page->lost = commit & GT_KERNEL_PAGE_LOST ? -1 : 0;
	if (page->lost && commit & GT_KERNEL_PAGE_LOST_STORED &&
	    begin + bytes - page->end >= (ptrdiff_t)sizeof(page->lost))
		memcpy(&page->lost, page->end, sizeof(page->lost));
	page->is_damaged = false;
	return true;
}

/* Time goes on without a record. */
static inline void gt_kernel_page_advance(struct gt_kernel_page *page, uint32_t type,
					  uint64_t delta, uint32_t more)
{
	uint64_t time = delta + ((uint64_t)more << GT_KERNEL_PAGE_DELTA_BITS);

	if (type == GT_KERNEL_PAGE_TIME_EXTEND)
		page->clock += time;
	else
		page->clock = time | (page->clock & GT_KERNEL_PAGE_STAMP_BEHIND);
}

/* Moves to the next record, whose clock is page->clock then. NULL: there is none. */
static inline const uint8_t *gt_kernel_page_next(struct gt_kernel_page *page, uint32_t *bytes)
{
	while (page->end - page->at >= 4) {
		const uint8_t *data = page->at + 4;
		uint32_t word, more = 0;
		memcpy(&word, page->at, sizeof(word));
		uint32_t type = word & 31, delta = word >> 5;
		uint32_t length = type * 4; /* of the data */
		if (type == 0 || type >= GT_KERNEL_PAGE_PADDING) {
			if (type == GT_KERNEL_PAGE_PADDING && delta == 0)
				break; /* nothing up to the end */
			if (page->end - data < 4) {
				page->is_damaged = true;
				break;
			}
			memcpy(&more, data, sizeof(more));
			length = type >= GT_KERNEL_PAGE_TIME_EXTEND ? 4 : more;
		}
		if (type == 0) { /* the length counts itself, and is rounded up */
			data += 4;
			length = more >= 4 ? (more - 4 + 3) & ~3u : UINT32_MAX;
		}
		if (length > (size_t)(page->end - data)) {
			page->is_damaged = true;
			break;
		}
		page->at = data + length;
		if (type < GT_KERNEL_PAGE_PADDING) {
			page->clock += delta;
			*bytes = length;
			return data;
		}
		if (type == GT_KERNEL_PAGE_PADDING)
			page->clock += delta;
		else
			gt_kernel_page_advance(page, type, delta, more);
	}
	page->at = page->end;
	return NULL;
}

#endif
