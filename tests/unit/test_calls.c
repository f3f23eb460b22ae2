/* SPDX-License-Identifier: MIT */
/*
 * Calls of a target as rows, of scripted sub-buffers: order, threads, self times, and what is
 * counted instead of guessed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "read/calls.h"
#include "tests/unit/fake_target.h"

static struct gt_calls_report report;
static char rows[4096];

static int take(void *user, const struct gt_call *call)
{
	size_t used = strlen(rows);

	(void)user;
	snprintf(rows + used, sizeof rows - used, "%s %u %llu %llu\n", call->function, call->tid,
		 (unsigned long long)call->latency_ns, (unsigned long long)call->self_ns);
	return GT_OK;
}

static void expect(const char *wanted)
{
	rows[0] = '\0';
	assert_int_equal(gt_calls_read(&fake.target, false, take, NULL, &report), GT_OK);
	assert_string_equal(rows, wanted);
}

static void rows_of_all_threads_come_in_the_order_of_their_returns(void **state)
{
	struct builder *a =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 1000, 0, 64);
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 99, "b", 1000), 1000, 1, 64);

	(void)state;
	builder_entry(a, 1, 10);   /* 1010 */
	builder_entry(a, 2, 10);   /* 1020 */
	builder_return(a, 2, 80);  /* 1100 */
	builder_return(a, 1, 400); /* 1500 */
	builder_close(a);
	builder_entry(b, 2, 50);   /* 1050 */
	builder_return(b, 2, 250); /* 1300 */
	builder_close(b);
	expect("f2 86 80 80\n"
	       "f2 99 250 250\n"
	       "f1 86 490 410\n");
	assert_int_equal(report.calls, 3);
	assert_int_equal(report.open_at_start + report.open_at_end, 0);
	assert_int_equal(report.cut_by_loss + report.never_returned + report.unreadable, 0);
}

static void calls_open_at_the_end_are_counted(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 1000, 0, 64);

	(void)state;
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 10);
	builder_return(b, 3, 5);
	builder_close(b);
	expect("f3 86 5 5\n");
	assert_int_equal(report.open_at_end, 2);
}

static void calls_open_before_the_first_record_are_counted(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 2000, 0, 64);

	(void)state;
	builder_open(b, 7, 1500);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 10);
	builder_return(b, 7, 10);
	builder_close(b);
	expect("f2 86 10 10\n");
	assert_int_equal(report.open_at_start, 1);
}

static void a_gap_costs_the_calls_around_it(void **state)
{
	uint32_t thread = fake_thread(&fake, 86, "a", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, thread, 1000, 0, 64);

	(void)state;
	builder_entry(b, 1, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, thread, 2000, 0, 64);
	builder_close(b);
	builder_free(b);
	b->sub_buffer = NULL;
	b = fake_sub_buffer_of(&fake, thread, 3000, 0, 64);
	builder_open(b, 1, 1010);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 10);
	builder_return(b, 1, 10);
	builder_close(b);
	expect("f2 86 10 10\n");
	assert_int_equal(report.gaps, 1);
	assert_int_equal(report.cut_by_loss + report.open_at_start, 1);
}

static void unwound_calls_and_entries_without_returns_make_no_row(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 1000, 0, 64);

	(void)state;
	builder_entry(b, 1, 10);
	builder_entry_only(b, 9, 5);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 10);
	builder_special(b, GRAFTRACE_SPECIAL_UNWOUND, 2);
	builder_return(b, 1, 100);
	builder_close(b);
	rows[0] = '\0';
	assert_int_equal(gt_calls_read(&fake.target, false, take, NULL, &report), GT_OK);
	assert_int_equal(report.calls, 1);
	assert_memory_equal(rows, "f1 86 ", 6);
	assert_int_equal(report.never_returned, 2);
	assert_int_equal(report.entry_only, 1);
}

static void functions_without_a_name_are_told_by_their_number(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 1000, 0, 64);

	(void)state;
	builder_entry(b, 200000, 10);
	builder_return(b, 200000, 10);
	builder_close(b);
	expect("function#200000 86 10 10\n");
}

static void the_function_tracers_records_are_counted(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 1000, 0, 64);

	(void)state;
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(b, 1, 10, 0x401234);
	builder_close(b);
	expect("");
	assert_int_equal(report.without_return, 1);
}

static int refuse(void *user, const struct gt_call *call)
{
	(void)call;
	++*(int *)user;
	return GT_EIO;
}

static void the_callbacks_error_ends_the_reading(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "a", 1000), 1000, 0, 64);
	int count = 0;

	(void)state;
	builder_entry(b, 1, 10);
	builder_return(b, 1, 10);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 10);
	builder_close(b);
	assert_int_equal(gt_calls_read(&fake.target, false, refuse, &count, &report), GT_EIO);
	assert_int_equal(count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			rows_of_all_threads_come_in_the_order_of_their_returns, fake_setup,
			fake_teardown),
		cmocka_unit_test_setup_teardown(calls_open_at_the_end_are_counted, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(calls_open_before_the_first_record_are_counted,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(a_gap_costs_the_calls_around_it, fake_setup,
						fake_teardown),
		cmocka_unit_test_setup_teardown(
			unwound_calls_and_entries_without_returns_make_no_row, fake_setup,
			fake_teardown),
		cmocka_unit_test_setup_teardown(functions_without_a_name_are_told_by_their_number,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(the_function_tracers_records_are_counted,
						fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(the_callbacks_error_ends_the_reading, fake_setup,
						fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
