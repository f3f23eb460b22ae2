/* SPDX-License-Identifier: MIT */
/* Numbers as the formats write them, of every length, and where the buffer ends. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "export/out.h"

/* Writes the number twice, with `before` bytes of the buffer in use, and compares. */
static void check(uint64_t number, size_t before)
{
	char expected[64];
	struct gt_out out;
	int count;

	assert_int_equal(gt_out_init_memory(&out), 0);
	for (size_t i = 0; i < before; i++)
		gt_out_char(&out, 'x');
	gt_out_number(&out, number);
	gt_out_char(&out, ' ');
	gt_out_us(&out, number);
	count = snprintf(expected, sizeof(expected), "%" PRIu64 " %" PRIu64 ".%03u", number,
			 number / 1000, (unsigned)(number % 1000));
	assert_int_equal(out.error, 0);
	assert_int_equal(out.used, before + (size_t)count);
	assert_memory_equal(out.buffer + before, expected, (size_t)count);
	gt_out_fini(&out);
}

static void check_around(uint64_t number, size_t before)
{
	check(number - 1, before);
	check(number, before);
	check(number + 1, before);
}

static void numbers_of_every_length(void **state)
{
	(void)state;
	check(0, 0);
	check(UINT64_MAX, 0);
	for (uint64_t power = 1;; power *= 10) {
		check_around(power, 0);
		if (power > UINT64_MAX / 10)
			break;
	}
	for (unsigned bit = 1; bit < 64; bit++)
		check_around(UINT64_C(1) << bit, 0);
}

static void numbers_where_the_buffer_ends(void **state)
{
	(void)state;
	for (size_t left = 0; left < 60; left++) {
		check(UINT64_MAX, GT_OUT_BYTES - left);
		check(1234, GT_OUT_BYTES - left);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_every_length),
		cmocka_unit_test(numbers_where_the_buffer_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
