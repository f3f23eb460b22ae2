/* SPDX-License-Identifier: MIT */
/* Offsets between the clocks of CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/record/offset.h"

static void the_shortest_round_trip_decides(void **state)
{
	(void)state;
	struct gt_offset offset;
	gt_offset_init(&offset);
	assert_false(gt_offset_applies(&offset));
	gt_offset_sample(&offset, 1000, 6000, 3000);
	assert_int_equal(offset.ticks, 4000);
	assert_int_equal(offset.error, 1000);
	gt_offset_sample(&offset, 4000, 9105, 4200);
	assert_int_equal(offset.ticks, 5005);
	assert_int_equal(offset.error, 100);
	/* longer, and far off: not believed */
	gt_offset_sample(&offset, 5000, 5000, 9000);
	assert_int_equal(offset.ticks, 5005);
	assert_true(gt_offset_applies(&offset));
	assert_int_equal(gt_offset_apply(&offset, 10000), 4995);
}

static void an_offset_within_its_error_is_not_applied(void **state)
{
	(void)state;
	struct gt_offset offset;
	gt_offset_init(&offset);
	gt_offset_sample(&offset, 1000, 1090, 1100);
	assert_int_equal(offset.ticks, 40);
	assert_int_equal(offset.error, 50);
	assert_false(gt_offset_applies(&offset));
	assert_int_equal(gt_offset_apply(&offset, 777), 777);
	gt_offset_sample(&offset, 2000, 2050, 2002);
	assert_true(gt_offset_applies(&offset));
}

static void a_clock_behind_gives_a_negative_offset(void **state)
{
	(void)state;
	struct gt_offset offset;
	gt_offset_init(&offset);
	gt_offset_sample(&offset, 1ull << 40, 100, (1ull << 40) + 10);
	assert_true(gt_offset_applies(&offset));
	assert_true(offset.ticks < 0);
	assert_int_equal(gt_offset_apply(&offset, 100), (1ull << 40) + 5);
}

static void an_answer_before_its_question_is_none(void **state)
{
	(void)state;
	struct gt_offset offset;
	gt_offset_init(&offset);
	gt_offset_sample(&offset, 1000, 1000, 999);
	assert_true(offset.error == ~0ull);
	/* a clock that stood still between: no error at all */
	gt_offset_sample(&offset, 1000, 1000, 1000);
	assert_int_equal(offset.error, 0);
	assert_false(gt_offset_applies(&offset));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shortest_round_trip_decides),
		cmocka_unit_test(an_offset_within_its_error_is_not_applied),
		cmocka_unit_test(a_clock_behind_gives_a_negative_offset),
		cmocka_unit_test(an_answer_before_its_question_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
