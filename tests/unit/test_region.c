/* SPDX-License-Identifier: MIT */
/*
 * attach/agent/region.c: where regions lie, and their bytes.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "attach/process/process.h"
#include "attach/agent/region.h"

/* Of libgcc: what an unwinder finds for an address among the stubs. */
struct bases {
	void *text;
	void *data;
	void *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct bases *bases);
extern void __register_frame(const void *begin);
extern void __deregister_frame(const void *begin);

static const struct graftrace_agent_image image = {
	.entry = 0x100,
	.entry_root = 0x200,
	.entry_only = 0x300,
	.exit = 0x400,
	.hook = 0x500,
	.entry_slow = 0x1000,
	.exit_slow = 0x2000,
	.hook_slow = 0x3000,
	.state_offset = 0x4000,
};

static uint64_t place(struct gt_map *entries, size_t count, uint64_t bytes)
{
	struct gt_maps maps = { entries, count, NULL };
	uint64_t start = 0, low = entries[0].start, high = entries[0].end;
	struct gt_region region;
	size_t i;

	assert_int_equal(gt_region_place(&maps, low, high, bytes, &start), 0);
	for (i = 0; i < count; i++)
		assert_true(start + bytes < entries[i].start || start > entries[i].end);
	gt_region_init(&region, start, bytes, 1, 1);
	assert_true(gt_region_reaches(&region, low, high));
	return start;
}

static void region_of_a_pie_lies_below_it_and_leaves_the_heap_alone(void **state)
{
	struct gt_map maps[] = {
		{ .start = 0x555555554000, .end = 0x555555600000 },
		{ .start = 0x555555900000, .end = 0x555555921000 }, /* its heap */
		{ .start = 0x7ffff7d00000, .end = 0x7ffff7fff000 },
	};

	(void)state;
	assert_true(place(maps, 3, 1 << 20) < maps[0].start);
	assert_true(place(maps, 3, 64 << 20) < maps[0].start);
}

static void region_of_a_fixed_program_lies_above_what_the_heap_needs(void **state)
{
	struct gt_map maps[] = {
		{ .start = 0x400000, .end = 0x500000 },
		{ .start = 0x2000000, .end = 0x2021000 },
	};

	(void)state;
	assert_in_range(place(maps, 2, 1 << 20), 0x6f000000, 0x70000000);
}

static void region_goes_round_what_is_mapped(void **state)
{
	struct gt_map maps[] = {
		{ .start = 0x7f0000000000, .end = 0x7f0000100000 },
		/* the next ones lie where it would go */
		{ .start = 0x7effd0000000, .end = 0x7effe8000000 },
	};
	struct gt_map sorted[] = { maps[1], maps[0] };
	struct gt_maps all = { sorted, 2, NULL };
	uint64_t start;

	(void)state;
	assert_int_equal(gt_region_place(&all, maps[0].start, maps[0].end, 1 << 20, &start), 0);
	assert_true(start > sorted[0].end || start + (1 << 20) < sorted[0].start);
}

static void no_gap_is_said(void **state)
{
	struct gt_map maps[] = {
		{ .start = 0x10000, .end = 0x100000000 },
	};
	struct gt_maps all = { maps, 1, NULL };
	uint64_t start;

	(void)state;
	assert_int_equal(gt_region_place(&all, 0x10000, 0x20000, 1 << 20, &start), GT_ENOSPC);
	assert_int_equal(gt_region_place(&all, 0, 1ull << 33, 1 << 20, &start), GT_ENOSPC);
}

static int32_t displacement(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void stub_calls_entry_body_and_exit(void **state)
{
	uint64_t bytes = gt_region_bytes(16, 4096), hot, at, body = 0x7f0000000000;
	uint8_t stub[GRAFTRACE_STUB_BYTES];
	struct gt_region region;

	(void)state;
	gt_region_init(&region, 0x7effff000000, bytes, 16, 1000);
	hot = region.start + GRAFTRACE_REGION_HOT_OFFSET;
	at = gt_region_stub_address(&region, 3);
	assert_int_equal(at % GRAFTRACE_STUB_BYTES, 0);
	assert_int_equal(gt_region_stub(&region, &image, image.entry, 3, body, stub), 0);
	assert_int_equal(stub[0], 0xe8);
	assert_int_equal(at + 5 + (int64_t)displacement(stub + 1), hot + image.entry);
	assert_memory_equal(stub + 5, "\x0f\x82", 2);
	assert_int_equal(at + 11 + (int64_t)displacement(stub + 7), body);
	assert_memory_equal(stub + 11, "\x48\x8d\x64\x24\x08\xe8", 6);
	assert_int_equal(at + 21 + (int64_t)displacement(stub + 17), body);
	assert_int_equal(stub[GRAFTRACE_STUB_RETURN], 0x68);
	assert_int_equal(displacement(stub + 22), 1003 << 1 | 1);
	assert_int_equal(stub[26], 0xe9);
	assert_int_equal(at + 31 + (int64_t)displacement(stub + 27), hot + image.exit);
	/* Out of reach. */
	assert_int_equal(gt_region_stub(&region, &image, image.entry, 3, 0x1000, stub), GT_ENOTSUP);
}

static void number_of_a_stub_follows_from_its_address(void **state)
{
	struct graftrace_region page;
	struct gt_region region;
	uint64_t return_address;

	(void)state;
	gt_region_init(&region, 0x7effff000000, gt_region_bytes(16, 0), 16, 500);
	gt_region_header(&region, &image, 0x7e0000000000, &page);
	return_address = gt_region_stub_address(&region, 7) + 5;
	assert_int_equal((return_address - page.bias) / GRAFTRACE_STUB_BYTES, 507);
	assert_int_equal(page.entry_slow, 0x7e0000001000);
	assert_int_equal(page.state, 0x7e0000004000);
}

static uint8_t memory[1 << 18] __attribute__((aligned(4096)));

static void unwinder_finds_the_stubs_and_the_moved_code(void **state)
{
	uint64_t bytes = gt_region_bytes(64, 4096), start = (uint64_t)memory;
	struct graftrace_region_unwind *unwind = (void *)(memory + GRAFTRACE_REGION_UNWIND_OFFSET);
	uint64_t first = start + GRAFTRACE_REGION_STUBS_OFFSET;
	struct gt_region region;
	struct bases bases;

	(void)state;
	assert_true(bytes <= sizeof(memory));
	gt_region_init(&region, start, bytes, 64, 1);
	assert_int_equal(gt_region_unwind(&region, &image, NULL, 0, unwind), 0);
	__register_frame(unwind->eh_frame);
	assert_non_null(
		_Unwind_Find_FDE((void *)(first + 63 * 32 + GRAFTRACE_STUB_RETURN), &bases));
	assert_ptr_equal(bases.function, (void *)first);
	/* The moved code has rules of its own. */
	assert_non_null(_Unwind_Find_FDE((void *)(region.moved + 8), &bases));
	assert_ptr_equal(bases.function, (void *)region.moved);
	/* What lies around it has none. */
	assert_null(_Unwind_Find_FDE((void *)(first - 1), &bases));
	assert_null(_Unwind_Find_FDE((void *)region.moved_end, &bases));
	__deregister_frame(unwind->eh_frame);
}

static void a_header_that_lies_about_its_unwind_data_is_refused(void **state)
{
	struct graftrace_agent_image header = image;
	struct graftrace_region_unwind unwind;
	uint32_t text[64] = { 0 };
	struct gt_region region;

	(void)state;
	header.hot_source = 0;
	header.hot_bytes = sizeof(text);
	header.eh_frame_hdr = 64;
	gt_region_init(&region, 0x10000000, gt_region_bytes(1, 0), 1, 1);
	text[18] = 1000; /* more entries than there is room for */
	assert_int_equal(gt_region_unwind(&region, &header, (uint8_t *)text, sizeof(text), &unwind),
			 GT_EFORMAT);
	text[18] = 1;
	text[19] = 0;	       /* of the table's own address … */
	text[20] = 0xfffffff0; /* … somewhere else */
	assert_int_equal(gt_region_unwind(&region, &header, (uint8_t *)text, sizeof(text), &unwind),
			 GT_EFORMAT);
	text[20] = 0;
	assert_int_equal(gt_region_unwind(&region, &header, (uint8_t *)text, sizeof(text), &unwind),
			 GT_EFORMAT);
	header.eh_frame_hdr = 0xfffffffc;
	assert_int_equal(gt_region_unwind(&region, &header, (uint8_t *)text, sizeof(text), &unwind),
			 GT_EFORMAT);
}

static void room_among_moved_code_ends(void **state)
{
	struct gt_region region;
	uint64_t at;

	(void)state;
	gt_region_init(&region, 0x10000000, gt_region_bytes(1, 4096), 1, 1);
	at = gt_region_alloc(&region, 100, 16);
	/* behind the stubs, on a page of its own */
	assert_int_equal(at % 4096, 0);
	assert_int_equal(at, region.moved_first);
	assert_int_equal(gt_region_alloc(&region, 100, 16), at + 112);
	assert_int_equal(gt_region_alloc(&region, 8192, 16), 0);
}

static void moved_code_has_room_for_what_it_stands_for(void **state)
{
	uint64_t moved;

	(void)state;
	for (moved = 0; moved < 1 << 20; moved += 4000) {
		struct gt_region region;

		gt_region_init(&region, 0x10000000, gt_region_bytes(100, moved), 100, 1);
		assert_true(region.moved_end - region.moved >= moved);
		assert_true(gt_region_places(&region, region.moved_end) <= region.journal);
	}
}

/* As the expressions of the unwind data read it. */
static uint64_t stands_for(const struct gt_region *region, uint32_t word, uint64_t record_at,
			   const struct graftrace_places *record, uint32_t byte)
{
	const uint64_t zero = region->start - GRAFTRACE_PLACES_BIAS;

	if (zero + word != record_at)
		return zero + word + byte;
	return zero + record->base + (record->at[byte] & 0x7f);
}

static void moved_code_stands_for_what_it_was(void **state)
{
	uint8_t at[GRAFTRACE_PLACES_BYTES];
	struct graftrace_places record;
	struct gt_region region;
	uint64_t record_at;
	uint32_t word, i;

	(void)state;
	gt_region_init(&region, 0x7effff000000, gt_region_bytes(16, 4096), 16, 1);
	/* As it stood: nothing but a word. */
	for (i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		at[i] = (uint8_t)(16 + i);
	word = gt_region_place_word(&region, 0x7f0000000123, at, &record_at, &record);
	assert_int_equal(record_at, 0);
	for (i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		assert_int_equal(stands_for(&region, word, 0, NULL, i), 0x7f0000000133 + i);
	/* Something became longer; on the other side of the region. */
	for (i = 9; i < GRAFTRACE_PLACES_BYTES; i++)
		at[i] -= 4;
	word = gt_region_place_word(&region, 0x7eff8f000123, at, &record_at, &record);
	assert_int_not_equal(record_at, 0);
	for (i = 0; i < GRAFTRACE_PLACES_BYTES; i++)
		assert_int_equal(stands_for(&region, word, record_at, &record, i),
				 0x7eff8f000133 + i - (i >= 9 ? 4 : 0));
	/* Without room for that: the first instruction at least. */
	while (gt_region_alloc(&region, 4, 4))
		;
	word = gt_region_place_word(&region, 0x7f0000000123, at, &record_at, &record);
	assert_int_equal(record_at, 0);
	assert_int_equal(stands_for(&region, word, 0, NULL, 0), 0x7f0000000123);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(region_of_a_pie_lies_below_it_and_leaves_the_heap_alone),
		cmocka_unit_test(region_of_a_fixed_program_lies_above_what_the_heap_needs),
		cmocka_unit_test(region_goes_round_what_is_mapped),
		cmocka_unit_test(no_gap_is_said),
		cmocka_unit_test(stub_calls_entry_body_and_exit),
		cmocka_unit_test(number_of_a_stub_follows_from_its_address),
		cmocka_unit_test(unwinder_finds_the_stubs_and_the_moved_code),
		cmocka_unit_test(a_header_that_lies_about_its_unwind_data_is_refused),
		cmocka_unit_test(room_among_moved_code_ends),
		cmocka_unit_test(moved_code_has_room_for_what_it_stands_for),
		cmocka_unit_test(moved_code_stands_for_what_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
