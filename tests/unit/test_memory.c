/* SPDX-License-Identifier: MIT */
/* The private memory functions: every size and distance that has a way of its own, beside bytes one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/memory.h"

#define MOST 300

static unsigned char area[3 * MOST], expected[3 * MOST];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(area); i++)
		area[i] = expected[i] = (unsigned char)(i * 7 + (i >> 8));
}

static void what_is_moved_may_overlap(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= MOST; bytes++) {
		for (size_t to = MOST - 40; to <= MOST + 40; to++) {
			unsigned char copy[MOST];

			fill();
			for (size_t i = 0; i < bytes; i++)
				copy[i] = expected[MOST + i];
			for (size_t i = 0; i < bytes; i++)
				expected[to + i] = copy[i];
			assert_ptr_equal(gt_view_memmove(area + to, area + MOST, bytes), area + to);
			assert_memory_equal(area, expected, sizeof(area));
		}
	}
}

static void what_is_copied_is_all_and_no_more(void **state)
{
	(void)state;
	for (size_t bytes = 0; bytes <= MOST; bytes++) {
		fill();
		for (size_t i = 0; i < bytes; i++)
			expected[MOST + 1 + i] = expected[i];
		gt_view_memcpy(area + MOST + 1, area, bytes);
		assert_memory_equal(area, expected, sizeof(area));
		fill();
		for (size_t i = 0; i < bytes; i++)
			expected[5 + i] = 0xa5;
		gt_view_memset(area + 5, 0xa5, bytes);
		assert_memory_equal(area, expected, sizeof(area));
	}
}

static void bytes_are_compared_without_a_sign(void **state)
{
	(void)state;
	assert_true(gt_view_memcmp("a\xff", "a\x01", 2) > 0);
	assert_true(gt_view_memcmp("a\x01", "a\xff", 2) < 0);
	assert_int_equal(gt_view_memcmp("ab", "ac", 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_moved_may_overlap),
		cmocka_unit_test(what_is_copied_is_all_and_no_more),
		cmocka_unit_test(bytes_are_compared_without_a_sign),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
