/* SPDX-License-Identifier: MIT */
/* core/trace/durations.c: buckets and their bounds, the text of a histogram, and numbers that nobody has counted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/trace/durations.h"

static uint64_t counts[GT_DURATIONS], starts_ns[GT_DURATIONS];
static const struct gt_durations durations = { counts, starts_ns };
static char text[256];

static int begin(void **state)
{
	(void)state;
	memset(counts, 0, sizeof(counts));
	/* two ticks a nanosecond */
	gt_durations_starts(&(struct gt_clock){ .mult = 1u << 29, .shift = 30 }, starts_ns);
	return 0;
}

static const char *line(uint32_t bucket, uint32_t columns)
{
	const size_t bytes = gt_durations_line(&durations, bucket, columns, text, sizeof(text));

	assert_int_equal(bytes, strlen(text));
	return text;
}

static const char *head(uint64_t hits)
{
	const size_t bytes = gt_durations_head(&durations, hits, text, sizeof(text));

	assert_int_equal(bytes, strlen(text));
	return text;
}

static void each_bucket_has_what_lies_between_its_bounds(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < GT_DURATIONS; i++) {
		const uint64_t start = graftrace_profile_bucket_start(i);

		assert_int_equal(graftrace_profile_bucket(start), i);
		assert_int_equal(graftrace_profile_bucket(start + start / 2), i);
		if (i > 0)
			assert_int_equal(graftrace_profile_bucket(start - 1), i - 1);
	}
	assert_int_equal(graftrace_profile_bucket(UINT64_MAX), GT_DURATIONS - 1);
	assert_int_equal(starts_ns[0], 0);
	assert_int_equal(starts_ns[1], 32);
	assert_int_equal(starts_ns[27], 1ull << 31);
}

static void lines_have_bounds_counts_and_bars(void **state)
{
	(void)state;
	counts[1] = 400;
	counts[2] = 100;
	counts[27] = 9;
	assert_string_equal(line(0, 0), "        0 ns -        32 ns           0 |"
					"                                        |");
	assert_string_equal(line(1, 0), "       32 ns -        64 ns         400 |"
					"########################################|");
	assert_int_equal(strlen(text), GT_DURATIONS_COLUMNS);
	/* what is there at all can be seen */
	assert_string_equal(line(2, 70), "       64 ns -       128 ns         100 |"
					 "########                    |");
	assert_int_equal(strlen(text), 70);
	assert_string_equal(line(5, 10), "      512 ns -     1.024 us           0 |        |");
	assert_string_equal(line(9, 10), "    8.192 us -    16.384 us           0 |        |");
	assert_string_equal(line(27, 10), "    2.147 s  -     and more           9 |#       |");
}

static void the_range_is_from_the_first_call_to_the_last(void **state)
{
	uint32_t first = 7, last = 7;

	(void)state;
	assert_false(gt_durations_range(&durations, &first, &last));
	counts[4] = counts[19] = 1;
	assert_true(gt_durations_range(&durations, &first, &last));
	assert_int_equal(first, 4);
	assert_int_equal(last, 19);
}

static void shares_of_the_calls_are_taken_as_spread_in_their_bucket(void **state)
{
	(void)state;
	assert_string_equal(head(0), "0 calls");
	assert_string_equal(head(1), "1 call, 1 not timed");
	counts[3] = 1; /* 128 … 256 ns */
	assert_string_equal(head(1),
			    "1 call: p50 about 192 ns, p90 about 192 ns, p99 about 192 ns");
	counts[3] = 100;
	assert_string_equal(head(103), "103 calls, 3 not timed: p50 about 192 ns, "
				       "p90 about 243 ns, p99 about 254 ns");
	counts[0] = 100;
	counts[27] = 50;
	assert_string_equal(head(250), "250 calls: p50 about 160 ns, p90 above 2.14 s, "
				       "p99 above 2.14 s");
	counts[0] = 1000;
	assert_string_equal(head(1150), "1150 calls: p50 below 32 ns, p90 about 172 ns, "
					"p99 above 2.14 s");
}

static void what_nobody_can_have_counted_is_text_too(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < GT_DURATIONS; i++)
		counts[i] = UINT64_MAX - i * i;
	assert_true(strlen(head(UINT64_MAX)) < 128);
	for (uint32_t i = 0; i < GT_DURATIONS; i++)
		assert_true(strlen(line(i, 0)) < GT_DURATIONS_LINE);
	memset(counts, 0, sizeof(counts));
	counts[5] = UINT64_MAX;
	assert_true(strlen(head(0)) < 128);
	assert_non_null(
		strstr(line(5, 0), "18446744073709551615 |################################"));
	/* a clock that is not known yet, and one of years a tick */
	memset(starts_ns, 0, sizeof(starts_ns));
	assert_true(strlen(head(3)) < 128);
	memset(starts_ns, 0xff, sizeof(starts_ns));
	assert_true(strlen(line(5, 0)) < GT_DURATIONS_LINE);
	assert_true(strlen(head(3)) < 128);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_bucket_has_what_lies_between_its_bounds),
		TEST(lines_have_bounds_counts_and_bars),
		TEST(the_range_is_from_the_first_call_to_the_last),
		TEST(shares_of_the_calls_are_taken_as_spread_in_their_bucket),
		TEST(what_nobody_can_have_counted_is_text_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
