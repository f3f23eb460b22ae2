/* SPDX-License-Identifier: MIT */
/* Encoding of pages: see raw_page.h. */
#include "core/text/raw_page.h"
#include "core/trace/memory.h"

#define TIME_BITS	    27
#define DATA_WORDS_MAX	    28 /* type_len: words of data; 0: the first word has the length */
#define TYPE_TIME_EXTEND    30
#define EXTEND_BYTES	    8
#define COMMIT_MISSED	    (UINT64_C(1) << 31) /* << 31) events were lost before this page */
#define COMMIT_MISSED_COUNT (UINT64_C(1) << 30) /* << 30) … their number follows the data */

static void put_u32(uint8_t *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> 8 * i);
}

static void put_u64(uint8_t *at, uint64_t value)
{
	put_u32(at, (uint32_t)value);
	put_u32(at + 4, (uint32_t)(value >> 32));
}

/* The word in front of an event. */
static uint32_t head(uint32_t type_len, uint64_t delta)
{
	return type_len | (uint32_t)(delta << (32 - TIME_BITS));
}

void gt_raw_page_begin(struct gt_raw_page *page)
{
	page->used = 0;
	page->last = 0;
}

bool gt_raw_page_add(struct gt_raw_page *page, uint64_t time, const void *event, uint32_t bytes)
{
	uint32_t words = (bytes + 3) / 4;
	bool is_long = words > DATA_WORDS_MAX;
	uint64_t delta = page->used == 0 || time < page->last ? 0 : time - page->last;
	bool extend = delta >> TIME_BITS != 0;
	uint32_t wants = 4 + (is_long ? 4 : 0) + words * 4 + (extend ? EXTEND_BYTES : 0);
	uint8_t *at = page->bytes + GT_RAW_HEADER_BYTES + page->used;

	if (bytes > GT_RAW_EVENT_BYTES_MAX || wants > GT_RAW_ROOM_BYTES - page->used)
		return false;
	if (page->used == 0) {
		put_u64(page->bytes, time);
		page->last = time;
	}
	page->used += wants;
	page->last += delta;
	if (extend) {
		put_u32(at, head(TYPE_TIME_EXTEND, delta & ((1u << TIME_BITS) - 1)));
		put_u32(at + 4, (uint32_t)(delta >> TIME_BITS));
		at += EXTEND_BYTES;
		delta = 0;
	}
	put_u32(at, head(is_long ? 0 : words, delta));
	at += 4;
	if (is_long) {
		put_u32(at, words * 4 + 4); /* with the length's own word */
		at += 4;
	}
	gt_view_memcpy(at, event, bytes);
	gt_view_memset(at + bytes, 0, words * 4 - bytes);
	return true;
}

void gt_raw_page_finish(struct gt_raw_page *page, uint64_t missed)
{
	uint32_t left = GT_RAW_ROOM_BYTES - page->used;
	uint8_t *behind = page->bytes + GT_RAW_HEADER_BYTES + page->used;
	uint64_t commit = page->used;

	if (page->used == 0)
		put_u64(page->bytes, 0);
	gt_view_memset(behind, 0, left);
	if (missed != 0) {
		commit |= COMMIT_MISSED;
		if (missed != GT_RAW_MISSED_UNKNOWN && left >= 8) {
			commit |= COMMIT_MISSED_COUNT;
			put_u64(behind, missed);
		}
	}
	put_u64(page->bytes + 8, commit);
}
