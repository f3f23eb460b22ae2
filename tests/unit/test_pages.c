/* SPDX-License-Identifier: MIT */
/*
 * Pages of Linux's ring: records come out one by one as they were put in, whatever is damaged stays
 * within its page, and packed pages are the same when they are unpacked, or refused.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <zstd.h>
#include "read/kernel_page.h"
#include "read/pages.h"

#define PAGE   4096u
#define PAGES  40u
#define MOST   (64u << 20)
#define ENTRY  11u /* numbers of events */
#define RETURN 10u

/* Pages that are being filled. */
struct ring {
	uint8_t bytes[PAGES * PAGE];
	uint32_t page;
	uint32_t used;
};

static struct ring ring;

static void begin(uint32_t page, uint64_t clock)
{
	ring.page = page;
	ring.used = 0;
	memset(ring.bytes + page * PAGE, 0, PAGE);
	memcpy(ring.bytes + page * PAGE, &clock, sizeof(clock));
}

static void end(uint64_t flags)
{
	uint64_t commit = ring.used | flags;

	memcpy(ring.bytes + ring.page * PAGE + GT_KERNEL_PAGE_COMMIT, &commit, sizeof(commit));
}

static void put(const void *bytes, uint32_t count)
{
	memcpy(ring.bytes + ring.page * PAGE + GT_KERNEL_PAGE_HEAD + ring.used, bytes, count);
	ring.used += count;
}

static void put_word(uint32_t word)
{
	put(&word, sizeof(word));
}

/* A record of `words` words of four bytes, of event `id`. */
static void put_record(uint32_t id, uint32_t words, uint32_t delta, const uint32_t *data)
{
	put_word(delta << 5 | words);
	put_word(id);
	put(data, (words - 1) * 4);
}

/* A call as Linux's function_graph records it: an entry, and a return with both times. */
static void put_call(uint32_t function, uint64_t begins, uint32_t takes)
{
	const uint64_t ends = begins + takes;
	const uint32_t entry[] = { 1234, function, 0xffffffff, 3 };
	const uint32_t back[] = { 1234,
				  function,
				  0xffffffff,
				  3,
				  0,
				  (uint32_t)begins,
				  (uint32_t)(begins >> 32),
				  (uint32_t)ends,
				  (uint32_t)(ends >> 32) };

	put_record(ENTRY, 5, takes / 3, entry);
	put_record(RETURN, 10, takes, back);
}

/* Fills all pages with calls. Returns how many. */
static uint32_t fill_with_calls(void)
{
	uint64_t clock = 1ull << 40, random = 7;
	uint32_t calls = 0;

	for (uint32_t page = 0; page < PAGES; page++) {
		begin(page, clock);
		while (ring.used + 68 <= PAGE - GT_KERNEL_PAGE_HEAD) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			uint32_t takes = 80 + (uint32_t)(random >> 60) * 10;
			put_call(0x81000000u + (calls % 50) * 0x1234, clock, takes);
			clock += 2 * takes;
			calls++;
		}
		end(0);
	}
	return calls;
}

static int64_t pack(size_t bytes, const uint8_t **packed)
{
	static struct gt_pages_encoder *encoder;

	if (!encoder)
		encoder = gt_pages_encoder_create();
	return gt_pages_encode(encoder, ring.bytes, bytes, PAGE, packed);
}

static void assert_comes_back(uint32_t pages)
{
	const uint8_t *packed;
	uint8_t *back;
	size_t count;
	int64_t bytes = pack(pages * PAGE, &packed);

	assert_true(bytes > 0);
	assert_int_equal(gt_pages_decode(packed, (size_t)bytes, MOST, &back, &count), 0);
	assert_int_equal(count, pages * PAGE);
	assert_memory_equal(back, ring.bytes, count);
	free(back);
}

static void records_come_one_by_one_with_their_clocks(void **state)
{
	struct gt_kernel_page page;
	const uint32_t data[] = { 1, 2 };
	uint32_t bytes;

	(void)state;
	begin(0, 1000);
	put_word(5 << 5 | GT_KERNEL_PAGE_TIME_EXTEND);
	put_word(2); /* … times 2^27 */
	put_record(7, 3, 10, data);
	put_word(1 << 5 | GT_KERNEL_PAGE_PADDING); /* a record that was discarded */
	put_word(8);
	put_word(0xffffffff);
	put_record(8, 3, 20, data);
	put_word(3 << 5 | GT_KERNEL_PAGE_TIME_STAMP);
	put_word(1 << 13);    /* … times 2^27 */
	put_word(4 << 5 | 0); /* a long one */
	put_word(4 + 10);
	put(ring.bytes, 12);
	put_word(GT_KERNEL_PAGE_PADDING); /* nothing up to the end */
	put_word(0);
	end(GT_KERNEL_PAGE_LOST);
	assert_true(gt_kernel_page_open(&page, ring.bytes, PAGE));
	assert_int_equal(page.lost, -1);
	assert_non_null(gt_kernel_page_next(&page, &bytes));
	assert_int_equal(bytes, 12);
	assert_int_equal(page.clock, 1000 + 5 + (2u << 27) + 10);
	assert_non_null(gt_kernel_page_next(&page, &bytes));
	assert_int_equal(page.clock, 1000 + 5 + (2u << 27) + 10 + 1 + 20);
	assert_non_null(gt_kernel_page_next(&page, &bytes));
	assert_int_equal(bytes, 12);
	assert_int_equal(page.clock, (1ull << 40) + 3 + 4);
	assert_null(gt_kernel_page_next(&page, &bytes));
	assert_null(gt_kernel_page_next(&page, &bytes));
	assert_false(page.is_damaged);
	assert_comes_back(1);
}

static void the_number_of_lost_records_stands_behind_the_others(void **state)
{
	const uint32_t data[] = { 1, 2 };
	const uint64_t lost = 120;
	struct gt_kernel_page page;

	(void)state;
	begin(0, 1000);
	put_record(7, 3, 10, data);
	end(GT_KERNEL_PAGE_LOST | GT_KERNEL_PAGE_LOST_STORED);
	put(&lost, sizeof(lost));
	assert_true(gt_kernel_page_open(&page, ring.bytes, PAGE));
	assert_int_equal(page.lost, 120);
	assert_comes_back(1);
	assert_true(gt_kernel_page_open(&page, ring.bytes, GT_KERNEL_PAGE_HEAD + 16));
	assert_int_equal(page.lost, -1); /* the number is cut off */
	assert_false(gt_kernel_page_open(&page, ring.bytes, GT_KERNEL_PAGE_HEAD + 15));
}

static void a_record_that_leads_out_ends_the_page(void **state)
{
	static const uint32_t wrong[][2] = { { 28, 0 },
					     { 0, 1000 },
					     { 0, 3 },
					     { 0, UINT32_MAX },
					     { 1 << 5 | GT_KERNEL_PAGE_PADDING, UINT32_MAX } };
	const uint32_t data[] = { 1, 2 };
	struct gt_kernel_page page;
	uint32_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin(0, 1000);
		put_record(7, 3, 10, data);
		put(wrong[i], 8);
		end(0);
		assert_true(gt_kernel_page_open(&page, ring.bytes, PAGE));
		assert_non_null(gt_kernel_page_next(&page, &bytes));
		assert_null(gt_kernel_page_next(&page, &bytes));
		assert_true(page.is_damaged);
		assert_comes_back(1);
	}
}

static void calls_take_a_third_of_what_zstd_makes_of_their_pages(void **state)
{
	const uint8_t *packed;
	static uint8_t out[2 * PAGES * PAGE];

	(void)state;
	assert_true(fill_with_calls() > 2000);
	assert_comes_back(PAGES);
	int64_t bytes = pack(sizeof(ring.bytes), &packed);
	size_t plain = ZSTD_compress(out, sizeof(out), ring.bytes, sizeof(ring.bytes), 3);
	size_t columns = ZSTD_compress(out, sizeof(out), packed, (size_t)bytes, 3);
	assert_true(columns * 3 <= plain);
}

static void more_events_than_classes_come_back(void **state)
{
	const uint32_t data[28] = { 1, 2, 3 };
	uint32_t id = 1;

	(void)state;
	for (uint32_t page = 0; page < PAGES; page++) {
		begin(page, page * 100000ull);
		while (ring.used + 116 <= PAGE - GT_KERNEL_PAGE_HEAD) {
			put_record(id % 600, 2 + id % 27, id, data);
			id++;
		}
		end(0);
	}
	assert_comes_back(PAGES);
}

static void pages_of_anything_come_back(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(ring.bytes); i += 8) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			uint64_t word = random >> (round % 5 * 12);
			memcpy(ring.bytes + i, &word, sizeof(word));
		}
		for (uint32_t page = 0; page < PAGES; page++)
			ring.bytes[page * PAGE + GT_KERNEL_PAGE_COMMIT + 2] = 0;
		assert_comes_back(PAGES);
	}
	memset(ring.bytes, 0, sizeof(ring.bytes));
	assert_comes_back(PAGES);
}

static void what_cannot_be_packed_is_refused(void **state)
{
	struct gt_pages_encoder *encoder = gt_pages_encoder_create();
	const uint8_t *packed;

	(void)state;
	assert_int_equal(gt_pages_encode(encoder, ring.bytes, PAGE + 8, PAGE, &packed), GT_EINVAL);
	assert_int_equal(gt_pages_encode(encoder, ring.bytes, 16, 16, &packed), GT_EINVAL);
	assert_int_equal(gt_pages_encode(encoder, ring.bytes, 0, 2u << 20, &packed), GT_EINVAL);
	gt_pages_encoder_destroy(encoder);
}

/* Each byte is changed in turn: the pages are refused, or as many come as before. */
static void changed_bytes_are_refused_or_only_change_what_is_read(void **state)
{
	const uint8_t *packed;
	uint8_t *back, *copy;
	size_t count;

	(void)state;
	fill_with_calls();
	int64_t bytes = pack(2 * PAGE, &packed);
	copy = malloc((size_t)bytes);
	for (int64_t i = 0; i < bytes; i++) {
		memcpy(copy, packed, (size_t)bytes);
		copy[i] ^= (uint8_t)(1 << i % 8);
		if (gt_pages_decode(copy, (size_t)bytes, 2 * PAGE, &back, &count) == 0)
			assert_true(count <= 2 * PAGE);
		free(back);
	}
	free(copy);
	for (int64_t cut = 0; cut < bytes; cut++) {
		copy = malloc((size_t)cut + 1); /* of that length: reading on is noticed */
		memcpy(copy, packed, (size_t)cut);
		assert_int_equal(gt_pages_decode(copy, (size_t)cut, MOST, &back, &count),
				 GT_EFORMAT);
		assert_null(back);
		free(copy);
	}
	assert_int_equal(gt_pages_decode(packed, (size_t)bytes, 2 * PAGE - 1, &back, &count),
			 GT_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_one_by_one_with_their_clocks),
		cmocka_unit_test(the_number_of_lost_records_stands_behind_the_others),
		cmocka_unit_test(a_record_that_leads_out_ends_the_page),
		cmocka_unit_test(calls_take_a_third_of_what_zstd_makes_of_their_pages),
		cmocka_unit_test(more_events_than_classes_come_back),
		cmocka_unit_test(pages_of_anything_come_back),
		cmocka_unit_test(what_cannot_be_packed_is_refused),
		cmocka_unit_test(changed_bytes_are_refused_or_only_change_what_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
