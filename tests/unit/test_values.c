/* SPDX-License-Identifier: MIT */
/* Values on the command line: what they mean, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "cli/values.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct gt_message message;

static uint64_t size(const char *text)
{
	uint64_t bytes = 0;

	assert_int_equal(gt_value_size(text, &bytes, &message), 0);
	return bytes;
}

static uint64_t us(const char *text)
{
	uint64_t ns = 0;

	assert_int_equal(gt_value_time(text, 1000, &ns, &message), 0);
	return ns;
}

static void sizes_have_units_of_1024(void **state)
{
	static const char *const bad[] = { "",
					   "0",
					   "0k",
					   "k",
					   "-1",
					   "1.5M",
					   "64X",
					   "64 M",
					   "64MM",
					   "0x10",
					   "64kBx",
					   "16777216T",
					   "99999999999999999999" };
	uint64_t bytes;

	(void)state;
	assert_int_equal(size("1"), 1);
	assert_int_equal(size("4096"), 4096);
	assert_int_equal(size("512k"), 512 << 10);
	assert_int_equal(size("512K"), 512 << 10);
	assert_int_equal(size("64M"), 64 << 20);
	assert_int_equal(size("64MB"), 64 << 20);
	assert_int_equal(size("64MiB"), 64 << 20);
	assert_int_equal(size("100B"), 100);
	assert_int_equal(size("2G"), UINT64_C(2) << 30);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(gt_value_size(bad[i], &bytes, &message), GT_EINVAL);
		assert_non_null(strstr(message.text, "64M"));
	}
}

static void times_are_exact_to_the_nanosecond(void **state)
{
	static const char *const bad[] = { "",
					   "x",
					   "-1",
					   "1.",
					   ".5",
					   "1.5.5",
					   "10 us",
					   "10u",
					   "1.5ns",
					   "1.0001us",
					   "1e3",
					   "10usx",
					   "99999999999999999999s",
					   "18446744073709551615s" };
	uint64_t ns;

	(void)state;
	assert_int_equal(us("10us"), 10000);
	assert_int_equal(us("10"), 10000);
	assert_int_equal(us("1.5ms"), 1500000);
	assert_int_equal(us("1.1ms"), 1100000);
	assert_int_equal(us("0"), 0);
	assert_int_equal(us("100ns"), 100);
	assert_int_equal(us("1.234567891s"), 1234567891);
	assert_int_equal(us("1.500000000000s"), 1500000000);
	assert_int_equal(us("0.001us"), 1);
	assert_int_equal(us("2m"), UINT64_C(120000000000));
	assert_int_equal(gt_value_time("5", 1000000000, &ns, &message), 0);
	assert_int_equal(ns, UINT64_C(5000000000));
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(gt_value_time(bad[i], 1000, &ns, &message), GT_EINVAL);
		assert_non_null(strstr(message.text, "10us"));
	}
}

static void numbers_keep_to_their_range(void **state)
{
	uint64_t number = 0;

	(void)state;
	assert_int_equal(gt_value_number("7", 0, 9, &number, &message), 0);
	assert_int_equal(number, 7);
	assert_int_equal(gt_value_number("10", 0, 9, &number, &message), GT_EINVAL);
	assert_int_equal(gt_value_number("0", 1, 9, &number, &message), GT_EINVAL);
	assert_int_equal(gt_value_number("7x", 0, 9, &number, &message), GT_EINVAL);
	assert_int_equal(gt_value_number("", 0, 9, &number, &message), GT_EINVAL);
	assert_int_equal(gt_value_number("18446744073709551616", 0, UINT64_MAX, &number, &message),
			 GT_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_have_units_of_1024),
		cmocka_unit_test(times_are_exact_to_the_nanosecond),
		cmocka_unit_test(numbers_keep_to_their_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
