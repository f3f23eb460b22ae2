/* SPDX-License-Identifier: MIT */
/* Nested calls of scripted recordings: read twice, and by a sink to which order does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "export/stacks.h"
#include "tests/unit/fake_target.h"

#define CALLS_MAX 64

static char calls[CALLS_MAX][80];
static unsigned count;

static int take_leave(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end)
{
	(void)user;
	assert_true(count < CALLS_MAX);
	snprintf(calls[count++], sizeof(calls[0]), "%u: f%u %d to %d, flags %u", lane->number,
		 call->function, (int)call->start, (int)end, call->flags);
	return GT_OK;
}

static int by_text(const void *left, const void *right)
{
	return strcmp(left, right);
}

/* Reads all; the calls are in order of their texts then. */
static struct gt_stack_report read_calls(bool in_any_order)
{
	const struct gt_stack_sink sink = { .leave = take_leave, .in_any_order = in_any_order };
	struct gt_stack_report report;

	count = 0;
	fake.copies = 0;
	assert_int_equal(gt_stacks_read(&fake.target, NULL, &sink, &report), GT_OK);
	qsort(calls, count, sizeof(calls[0]), by_text);
	return report;
}

/* Both ways give these calls. */
static void expect_calls(const char *const *expected, unsigned expected_count, uint64_t copies)
{
	for (int in_any_order = 0; in_any_order < 2; in_any_order++) {
		struct gt_stack_report report = read_calls(in_any_order);

		assert_int_equal(count, expected_count);
		for (unsigned i = 0; i < count; i++)
			assert_string_equal(calls[i], expected[i]);
		assert_int_equal(report.calls + report.without_return, expected_count);
		assert_int_equal(report.without_start, 0);
		assert_int_equal(fake.copies, in_any_order ? copies : 2 * copies);
	}
}

static void entries_that_are_missing_are_found_in_one_reading(void **state)
{
	static const char *const expected[] = {
		"0: f1 1010 to 1120, flags 9",
		"0: f2 1020 to 1060, flags 9",
		"0: f3 1070 to 1100, flags 9",
		"0: f4 1130 to 1180, flags 0",
	};
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "t", 1000), 1000, 0, 64);

	(void)state;
	builder_long_return(b, 2, 60, 1020, 1);
	builder_long_return(b, 3, 40, 1070, 1);
	builder_long_return(b, 1, 20, 1010, 0);
	builder_entry(b, 4, 10);
	builder_return(b, 4, 50);
	builder_close(b);
	expect_calls(expected, 4, 1);
}

static void a_call_that_never_ends_is_open_at_the_end(void **state)
{
	static const char *const expected[] = {
		"0: f1 990 to 1050, flags 5",
		"0: f2 1010 to 1050, flags 4",
		"0: f3 1020 to 1050, flags 0",
	};
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "t", 900), 1000, 0, 64);

	(void)state;
	builder_open(b, 1, 990);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 10);
	builder_return(b, 3, 30);
	builder_close(b);
	expect_calls(expected, 3, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(entries_that_are_missing_are_found_in_one_reading,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(a_call_that_never_ends_is_open_at_the_end,
						fake_setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
