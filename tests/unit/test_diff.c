/* SPDX-License-Identifier: MIT */
/* Differences of made-up runs, and the probabilities against tables of Student's t. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "export/diff.h"
#include "export/out.h"

static void near(double value, double wanted, double off)
{
	if (!(fabs(value - wanted) <= off))
		fail_msg("%.9f is not %.9f", value, wanted);
}

static void probabilities_are_those_of_students_table(void **state)
{
	(void)state;
	/* two-sided, from the usual tables */
	near(gt_diff_t_probability(12.706, 1), 0.05, 1e-5);
	near(gt_diff_t_probability(2.7764, 4), 0.05, 1e-5);
	near(gt_diff_t_probability(-2.2281, 10), 0.05, 1e-5);
	near(gt_diff_t_probability(3.1693, 10), 0.01, 1e-5);
	near(gt_diff_t_probability(1.6604, 99), 0.10, 1e-5);
	near(gt_diff_t_probability(0, 7), 1, 1e-12);
	near(gt_diff_t_probability(60, 6.5), 0, 1e-8);
	/* one degree is Cauchy's distribution */
	near(gt_diff_t_probability(3, 1), 1 - 2 / acos(-1) * atan(3), 1e-9);
}

/* A run in which function i has self time `self[i]`; 0: it is not there. */
static void add(struct gt_diff *diff, unsigned side, const char *path, const uint64_t *self,
		unsigned count)
{
	static char names[64][16];
	struct gt_report_row rows[64] = { { .name = NULL } };
	struct gt_report report = { .rows = rows };

	for (unsigned i = 0; i < count; i++) {
		struct gt_report_row *row = &rows[report.row_count];

		if (!self[i])
			continue;
		snprintf(names[i], sizeof(names[i]), "f%u", i);
		*row = (struct gt_report_row){ .name = names[i],
					       .object = path,
					       .calls = 1,
					       .returned = 1,
					       .total = self[i],
					       .self = self[i],
					       .p50 = self[i],
					       .p99 = self[i] };
		assert_true(gt_histogram_add(&row->durations, self[i]));
		report.row_count++;
	}
	assert_int_equal(gt_diff_add(diff, side, &report, path), 0);
	for (size_t i = 0; i < report.row_count; i++)
		gt_histogram_fini(&rows[i].durations);
}

static const struct gt_diff_row *row_of(const struct gt_diff *diff, const char *name)
{
	for (size_t i = 0; i < diff->count; i++)
		if (strcmp(diff->rows[i].name, name) == 0)
			return &diff->rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void one_run_of_each_side_is_compared_without_a_test(void **state)
{
	struct gt_diff diff;

	(void)state;
	gt_diff_init(&diff);
	add(&diff, 0, "/old/prog", (uint64_t[]){ 100, 50, 7 }, 3);
	add(&diff, 1, "/new/build/prog", (uint64_t[]){ 100, 300, 0, 9 }, 4);
	assert_int_equal(gt_diff_finish(&diff, GT_DIFF_SELF), 0);
	assert_int_equal(diff.count, 4);
	assert_string_equal(diff.rows[0].name, "f1");
	near(diff.rows[0].change, 250, 0);
	near(row_of(&diff, "f2")->change, -7, 0);
	near(row_of(&diff, "f3")->side[1].mean[GT_DIFF_P99], 9, 0);
	near(row_of(&diff, "f3")->side[0].mean[GT_DIFF_CALLS], 0, 0);
	assert_true(isnan(diff.rows[0].p));
	assert_false(diff.rows[0].stands_out);
	gt_diff_fini(&diff);
}

/* Of forty functions with the same noise one is slower: it alone stands out, and Welch's p of its
 * figures is what the formula gives by hand. */
static void what_stands_out_is_not_the_noise(void **state)
{
	static const uint64_t slow[2][4] = { { 1000, 1010, 990, 1005 },
					     { 1100, 1110, 1090, 1120 } };
	uint64_t random = 1, self[40];
	struct gt_diff diff;

	(void)state;
	gt_diff_init(&diff);
	for (unsigned side = 0; side < 2; side++)
		for (unsigned run = 0; run < 4; run++) {
			for (unsigned i = 0; i < 40; i++) {
				random = random * 6364136223846793005u + 1442695040888963407u;
				self[i] = 1000 + (random >> 33) % 100;
			}
			self[17] = slow[side][run];
			add(&diff, side, "prog", self, 40);
		}
	assert_int_equal(gt_diff_finish(&diff, GT_DIFF_SELF), 0);
	for (size_t i = 0; i < diff.count; i++)
		assert_int_equal(diff.rows[i].stands_out, strcmp(diff.rows[i].name, "f17") == 0);
	/* means 1001.25 and 1105, variances 72.9167 and 166.667: t 13.406, degrees 5.205 */
	near(row_of(&diff, "f17")->p, gt_diff_t_probability(13.4063, 5.2054), 1e-7);
	near(row_of(&diff, "f17")->change, 103.75, 1e-9);
	gt_diff_fini(&diff);
}

static void figures_without_any_noise_differ_or_do_not(void **state)
{
	struct gt_diff diff;

	(void)state;
	gt_diff_init(&diff);
	for (unsigned run = 0; run < 3; run++) {
		add(&diff, 0, "prog", (uint64_t[]){ 5, 5 }, 2);
		add(&diff, 1, "prog", (uint64_t[]){ 6, 5 }, 2);
	}
	assert_int_equal(gt_diff_finish(&diff, GT_DIFF_TOTAL), 0);
	near(row_of(&diff, "f0")->p, 0, 0);
	near(row_of(&diff, "f1")->p, 1, 0);
	assert_true(row_of(&diff, "f0")->stands_out);
	assert_false(row_of(&diff, "f1")->stands_out);
	gt_diff_fini(&diff);
}

static void a_function_with_more_calls_in_the_same_time_is_not_the_same(void **state)
{
	struct gt_diff diff;
	struct gt_out out;

	(void)state;
	gt_diff_init(&diff);
	for (unsigned side = 0; side < 2; side++) {
		struct gt_report_row rows[] = {
			{ .name = "f0", .object = "prog", .calls = 3 + 2 * side, .self = 300 },
			{ .name = "f1", .object = "prog", .calls = 4, .self = 300 },
		};
		struct gt_report report = { .rows = rows, .row_count = 2 };

		assert_int_equal(gt_diff_add(&diff, side, &report, "prog"), 0);
	}
	assert_int_equal(gt_diff_finish(&diff, GT_DIFF_SELF), 0);
	assert_int_equal(gt_out_init_memory(&out), 0);
	gt_diff_write_text(&diff, 0, 80, false, false, &out);
	gt_out_char(&out, 0);
	assert_non_null(strstr(out.buffer, "       0 ns    +0.0%      300 ns      300 ns  f0\n"));
	assert_non_null(strstr(out.buffer, "\n1 function is the same.\n"));
	gt_out_fini(&out);
	gt_diff_fini(&diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probabilities_are_those_of_students_table),
		cmocka_unit_test(one_run_of_each_side_is_compared_without_a_test),
		cmocka_unit_test(what_stands_out_is_not_the_noise),
		cmocka_unit_test(figures_without_any_noise_differ_or_do_not),
		cmocka_unit_test(a_function_with_more_calls_in_the_same_time_is_not_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
