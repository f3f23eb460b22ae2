/* SPDX-License-Identifier: MIT */
/* The table of functions of scripted traces, against figures made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "export/report.h"
#include "tests/unit/fake_target.h"

static struct gt_report *report;

static int setup(void **state)
{
	(void)state;
	fake_init(&fake);
	report = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_report_destroy(report);
	fake_free(&fake);
	return 0;
}

static void make(enum gt_report_by by)
{
	gt_report_destroy(report);
	report = NULL;
	const struct gt_report_options options = { .by = by, .of = "f2" };
	assert_int_equal(gt_report_make(&fake.target, &options, &report, NULL), 0);
	gt_report_sort(report, GT_REPORT_TOTAL);
}

static int format(enum gt_report_format format, size_t limit, uint32_t width, char **text,
		  size_t *bytes)
{
	const struct gt_report_style style = { .format = format, .limit = limit, .width = width };

	return gt_report_format(report, &style, text, bytes);
}

static const struct gt_report_row *row(const char *name)
{
	for (size_t i = 0; i < report->row_count; i++)
		if (strcmp(report->rows[i].name, name) == 0)
			return &report->rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void times_are_those_of_the_calls(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	for (int i = 1; i <= 3; i++) {
		builder_entry(b, 2, 10);
		builder_return(b, 2, i * 100);
	}
	builder_return(b, 1, 10);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(report->row_count, 2);
	assert_string_equal(report->rows[0].name, "f1");
	assert_int_equal(row("f1")->total, 640);
	assert_int_equal(row("f1")->self, 40);
	assert_int_equal(row("f1")->deviation, 0);
	const struct gt_report_row *r = row("f2");
	assert_int_equal(r->calls, 3);
	assert_int_equal(r->total, 600);
	assert_int_equal(r->self, 600);
	assert_int_equal(r->average, 200);
	assert_int_equal(r->minimum, 100);
	assert_int_equal(r->maximum, 300);
	assert_int_equal(r->deviation, 82); /* sqrt(20000 / 3) */
	assert_string_equal(r->object, "/usr/bin/prog");
}

static void total_of_a_thread_has_the_calls_in_open_ones(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 20);
	builder_return(b, 3, 30);
	builder_return(b, 2, 40);
	builder_entry(b, 4, 10);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 50);
	builder_entry(b, 5, 10);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 5);
	builder_close(b);
	make(GT_REPORT_THREAD);
	assert_int_equal(report->row_count, 1);
	assert_int_equal(report->rows[0].not_returned, 3);
	assert_int_equal(report->rows[0].total, (20 + 30 + 40) + 50 + 5);
	assert_int_equal(report->rows[0].self, (20 + 30 + 40) + 50 + 5);
}

static void average_of_one_call_is_that_call(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	fake.target.clock.mult = 3; /* a tick is 0.75 ns */
	fake.target.clock.shift = 2;
	builder_entry(b, 1, 10);
	builder_return(b, 1, 102);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(row("f1")->maximum, 76); /* of 76.5 */
	assert_int_equal(row("f1")->average, 76);
}

static void recursion_counts_its_outermost_call_once(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 10);
	builder_return(b, 2, 10);
	builder_return(b, 1, 10);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 5);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(row("f1")->calls, 3);
	assert_int_equal(row("f1")->total, 50 + 5);
	assert_int_equal(row("f1")->self, 20 + 10 + 5);
	assert_int_equal(row("f1")->average, (50 + 10 + 5 + 1) / 3);
	assert_int_equal(row("f2")->total, 30);
}

/* The header of the second sub-buffer tells of f1 and f2; nobody saw their entries. */
static void recursion_into_a_call_open_before_the_recording_is_known(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 2000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 2000, 0, 64);
	builder_open(b, 1, 1500);
	builder_open(b, 2, 1600);
	builder_entry(b, 1, 100);
	builder_return(b, 1, 100);
	builder_long_return(b, 2, 100, 1600, 1);
	builder_long_return(b, 1, 100, 1500, 0);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(row("f1")->calls, 2);
	assert_int_equal(row("f1")->total, 900);
	assert_int_equal(row("f1")->self_upper_bound, 1);
}

/* Entered before the first record, three calls in each other: their time counts once. */
static void calls_entered_before_the_recording_take_each_others_time_off(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 10, "t", 100000), 100000, 0, 100);
	builder_special(b, GRAFTRACE_SPECIAL_RESUMED, 3);
	builder_entry(b, 4, 0);
	builder_return(b, 4, 50);
	builder_long_return(b, 3, 50, 1000, 2);
	builder_entry(b, 4, 100);
	builder_return(b, 4, 100);
	builder_long_return(b, 2, 100, 900, 1);
	builder_long_return(b, 1, 100, 800, 0);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(row("f1")->self, 200);
	assert_int_equal(row("f2")->self, 300);
	assert_int_equal(row("f3")->self, 99050);
	assert_int_equal(row("f4")->self, 150);
	make(GT_REPORT_THREAD);
	assert_int_equal(report->rows[0].total, 99700);
	assert_int_equal(report->rows[0].self, 99700);
}

static void coroutines_are_not_each_others_recursion(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 5);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 10);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_long_return(b, 1, 10, 1010, 0);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(row("f1")->total, 10 + 30);
}

/* Context 5 begins in one thread and ends in another. */
static void a_coroutine_that_moves_to_another_thread_is_counted_once(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000), c = fake_thread(&fake, 87, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 5);
	builder_special(b, GRAFTRACE_SPECIAL_RESUMED, 0);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_special(b, GRAFTRACE_SPECIAL_RESUMED, 0);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, c, 2000, 1, 64);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 5);
	builder_special(b, GRAFTRACE_SPECIAL_RESUMED, 2);
	builder_long_return(b, 2, 20, 1020, 1);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(row("f2")->calls, 1);
	assert_int_equal(row("f2")->not_returned, 0);
	assert_int_equal(row("f2")->total, 1000);
	assert_int_equal(row("f1")->calls, 1);
	assert_int_equal(row("f1")->not_returned, 1);
}

static void calls_that_did_not_return_are_counted_and_not_timed(void **state)
{
	(void)state;
	char *text;
	size_t bytes;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 1000);
	builder_special(b, GRAFTRACE_SPECIAL_UNWOUND, 2);
	builder_entry_only(b, 4, 10);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(report->calls, 4);
	assert_int_equal(report->not_returned, 3);
	assert_int_equal(report->untimed, 1);
	assert_int_equal(row("f1")->not_returned, 1);
	assert_int_equal(row("f2")->total, 0);
	assert_int_equal(format(GT_REPORT_TEXT, 0, 0, &text, &bytes), 0);
	assert_non_null(strstr(text, "3 of the calls did not return"));
	free(text);
	assert_int_equal(format(GT_REPORT_CSV, 0, 0, &text, &bytes), 0);
	assert_non_null(strstr(text, "f1,/usr/bin/prog,1,1,,,,,,,,,\n"));
	free(text);
}

/* Number 3 is the function 1 of another process: mapped elsewhere, at the same place of a page. */
static int moved_function(void *data, uint32_t number, struct gt_function *function)
{
	int error = fake_function(data, number == 3 ? 1 : number, function);

	if (number == 3)
		function->address += 0x7000;
	return error;
}

static void a_function_of_several_processes_has_one_row(void **state)
{
	(void)state;
	struct gt_name_ops names = *fake.target.names;
	names.function = moved_function;
	fake.target.names = &names;
	fake_name(&fake, 2, "f1"); /* another one of that name */
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	for (uint32_t number = 1; number <= 3; number++) {
		builder_entry(b, number, 10);
		builder_return(b, number, number == 2 ? 5 : 10 * number);
	}
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(report->row_count, 2);
	assert_int_equal(report->rows[0].calls, 2);
	assert_int_equal(report->rows[0].total, 40);
	assert_int_equal(report->rows[1].total, 5);
}

static void rows_can_be_threads_or_objects(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000), c = fake_thread(&fake, 87, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_entry(b, 70, 10);
	builder_return(b, 70, 10);
	builder_return(b, 2, 10);
	builder_return(b, 1, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, c, 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 7);
	builder_close(b);
	make(GT_REPORT_THREAD);
	assert_int_equal(row("sh-86")->calls, 3);
	assert_int_equal(row("sh-86")->total, 50);
	assert_int_equal(row("sh-86")->self, 50);
	assert_int_equal(row("sh-87")->total, 7);
	make(GT_REPORT_OBJECT);
	assert_int_equal(report->row_count, 2);
	assert_int_equal(row("/usr/bin/prog")->total, 57);
	assert_int_equal(row("/usr/bin/prog")->self, 47);
	assert_int_equal(row("/usr/lib/libx.so")->total, 10);
}

/* f1 { f2 { f3 f2 } } f2 f3 */
static void callers_and_callees_of_a_function_are_told(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 10);
	builder_return(b, 3, 5);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 7);
	builder_return(b, 2, 10);
	builder_return(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 3);
	builder_entry(b, 3, 10);
	builder_return(b, 3, 10);
	builder_close(b);
	make(GT_REPORT_CALLER);
	assert_int_equal(report->row_count, 3);
	assert_int_equal(row("f1")->calls, 1);
	assert_int_equal(row("f1")->total, 42);
	assert_int_equal(row("f1")->self, 42 - 5 - 7);
	assert_int_equal(row("f2")->calls, 1);
	assert_int_equal(row("f2")->total, 7);
	assert_int_equal(row("(outermost)")->calls, 1);
	assert_int_equal(row("(outermost)")->total, 3);
	make(GT_REPORT_CALLEE);
	assert_int_equal(report->row_count, 2);
	assert_int_equal(row("f3")->calls, 1);
	assert_int_equal(row("f3")->total, 5);
	assert_int_equal(row("f2")->total, 7);
}

/* f1 does not return: of 1.1 seconds, 0.1 are in f2. */
static void time_that_no_call_has_is_told(void **state)
{
	(void)state;
	char *text;
	size_t bytes;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 1000000000);
	builder_return(b, 2, 100000000);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(report->span, 1100000000);
	assert_int_equal(report->outside, 1000000000);
	assert_int_equal(format(GT_REPORT_TEXT, 0, 0, &text, &bytes), 0);
	assert_non_null(strstr(text, "Outside: 1.000 s of the threads' 1.100 s are in none"));
	free(text);
}

static void the_text_is_aligned_and_sorted(void **state)
{
	(void)state;
	char *text;
	size_t bytes;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	fake_name(&fake, 1, "std::map<int, \"x\">::at\n");
	builder_entry(b, 1, 10);
	builder_return(b, 1, 1234567);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 71);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 71);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_int_equal(format(GT_REPORT_TEXT, 0, 0, &text, &bytes), 0);
	assert_string_equal(
		text,
		"  Self %       Calls        Total         Self      Average          Min"
		"          p50          p90          p99          Max       StdDev  Function\n"
		"   99.99           1     1.234 ms     1.234 ms     1.234 ms     1.234 ms"
		"     1.234 ms     1.234 ms     1.234 ms     1.234 ms         0 ns"
		"  std::map<int, \"x\">::at?\n"
		"    0.01           2       142 ns       142 ns        71 ns        71 ns"
		"        71 ns        71 ns        71 ns        71 ns         0 ns  f2\n");
	assert_int_equal(bytes, strlen(text));
	free(text);
	gt_report_sort(report, GT_REPORT_CALLS);
	assert_int_equal(format(GT_REPORT_CSV, 1, 0, &text, &bytes), 0);
	assert_string_equal(text, "function,object,calls,not_returned,total_ns,self_ns,average_ns,"
				  "minimum_ns,maximum_ns,stddev_ns,p50_ns,p90_ns,p99_ns\n"
				  "f2,/usr/bin/prog,2,0,142,142,71,71,71,0,71,71,71\n");
	free(text);
	assert_int_equal(format(GT_REPORT_CSV, 2, 0, &text, &bytes), 0);
	assert_non_null(strstr(text, "\n\"std::map<int, \"\"x\"\">::at\n\",/usr/bin/prog,1,"));
	free(text);
	assert_int_equal(format(GT_REPORT_JSON, 0, 0, &text, &bytes), 0);
	assert_non_null(strstr(text, "\"function\": \"std::map<int, \\\"x\\\">::at\\u000a\""));
	free(text);
}

static void a_narrow_line_keeps_the_name_and_what_is_sorted_by(void **state)
{
	(void)state;
	char *text;
	size_t bytes;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 71);
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	gt_report_sort(report, GT_REPORT_MINIMUM);
	assert_int_equal(format(GT_REPORT_TEXT, 0, 74, &text, &bytes), 0);
	assert_string_equal(text, "  Self %       Calls        Total          Min  Function\n"
				  "  100.00           1        71 ns        71 ns  f1\n"
				  "\nToo narrow (74 columns) for: Self, Average, p50, p90, p99, "
				  "Max, StdDev.\n");
	free(text);
}

static void keys_can_be_shortened_but_not_invented(void **state)
{
	struct gt_message message;
	enum gt_report_key key;
	(void)state;
	assert_int_equal(gt_report_parse_key("max", &key, &message), 0);
	assert_int_equal(key, GT_REPORT_MAXIMUM);
	assert_int_equal(gt_report_parse_key("avg", &key, &message), 0);
	assert_int_equal(key, GT_REPORT_AVERAGE);
	assert_int_equal(gt_report_parse_key("", &key, &message), GT_EINVAL);
	assert_int_equal(gt_report_parse_key("size", &key, &message), GT_EINVAL);
	assert_non_null(strstr(message.text, "'size'"));
}

static void an_empty_trace_makes_an_empty_table(void **state)
{
	char *text;
	size_t bytes;
	(void)state;
	make(GT_REPORT_FUNCTION);
	assert_int_equal(report->row_count, 0);
	assert_int_equal(format(GT_REPORT_JSON, 0, 0, &text, &bytes), 0);
	assert_non_null(strstr(text, "\"rows\": []"));
	free(text);
}

/* f1 calls f2 three times (100, 200, 300 ns), 10 ns between; a second thread calls f2 alone. */
static void script_two_threads(void)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);

	builder_entry(b, 1, 10);
	for (int i = 1; i <= 3; i++) {
		builder_entry(b, 2, 10);
		builder_return(b, 2, i * 100);
	}
	builder_return(b, 1, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 87, "other", 1000), 1000, 0, 64);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 5000);
	builder_close(b);
}

static void make_wanted(struct gt_report_options wanted)
{
	gt_report_destroy(report);
	report = NULL;
	assert_int_equal(gt_report_make(&fake.target, &wanted, &report, NULL), 0);
	gt_report_sort(report, GT_REPORT_TOTAL);
}

static void percentiles_are_those_of_the_calls(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 4096);

	for (int i = 1; i <= 1000; i++) {
		builder_entry(b, 1, 1);
		builder_return(b, 1, i * 10);
	}
	builder_close(b);
	make(GT_REPORT_FUNCTION);
	assert_in_range(row("f1")->p50, 5000 - 5000 / 32, 5000 + 5000 / 32);
	assert_in_range(row("f1")->p90, 9000 - 9000 / 32, 9000 + 9000 / 32);
	assert_in_range(row("f1")->p99, 9900 - 9900 / 32, 9900 + 9900 / 32);
	assert_int_equal(gt_histogram_count(&row("f1")->durations), 1000);
	assert_int_equal(gt_histogram_between(&row("f1")->durations, 512, 1024), 51);
}

static void a_thread_a_caller_or_a_length_can_be_picked(void **state)
{
	static const char *const f1[] = { "f1", NULL };

	(void)state;
	script_two_threads();
	make_wanted((struct gt_report_options){ .tid = 87 });
	assert_int_equal(report->row_count, 1);
	assert_int_equal(row("f2")->total, 5000);
	make_wanted((struct gt_report_options){ .graph = f1 });
	assert_int_equal(row("f2")->calls, 3);
	assert_int_equal(row("f2")->total, 600);
	assert_int_equal(row("f1")->total, 640);
	assert_int_equal(row("f1")->self, 40);
	make_wanted((struct gt_report_options){ .least_ns = 200 });
	assert_int_equal(row("f2")->calls, 3);
	assert_int_equal(row("f2")->total, 5500);
	assert_int_equal(row("f2")->minimum, 200);
	assert_int_equal(row("f1")->self, 40);
	make_wanted((struct gt_report_options){ .least_ns = 6000 });
	assert_int_equal(report->row_count, 0);
}

/* The recording begins at 1000; f1 at 1010, f2 at 1020 to 1120, 1130 to 1330, 1340 to 1640; f1
 * returns at 1650. */
static void a_window_has_each_call_with_its_part_of_it(void **state)
{
	(void)state;
	script_two_threads();
	make_wanted((struct gt_report_options){ .tid = 86, .from_ns = 1100, .to_ns = 1340 });
	assert_int_equal(row("f1")->calls, 1);
	assert_int_equal(row("f1")->not_returned, 1);
	assert_int_equal(row("f2")->calls, 3);
	assert_int_equal(row("f2")->returned, 2);
	assert_int_equal(row("f2")->total, 20 + 200);
	make_wanted((struct gt_report_options){ .tid = 86, .from_ns = 1125 });
	assert_int_equal(row("f1")->total, 1650 - 1125);
	assert_int_equal(row("f1")->self, 5 + 10 + 10);
	assert_int_equal(row("f1")->not_returned, 0);
	assert_int_equal(row("f2")->calls, 2);
	/* f1's own return is the first record of the window */
	make_wanted((struct gt_report_options){ .tid = 86, .from_ns = 1645 });
	assert_int_equal(report->calls, 1);
	assert_int_equal(row("f1")->total, 5);
	assert_int_equal(row("f1")->self, 5);
	make_wanted((struct gt_report_options){ .tid = 86, .to_ns = 1005 });
	assert_int_equal(report->calls, 0);
}

static void durations_are_spread_over_powers_of_two(void **state)
{
	const struct gt_report_style style = { .format = GT_REPORT_JSON };
	char *text;
	size_t bytes;

	(void)state;
	script_two_threads();
	make(GT_REPORT_FUNCTION);
	gt_report_keep(report, "?2");
	assert_int_equal(report->row_count, 1);
	assert_int_equal(gt_report_format_spread(report, &style, &text, &bytes), 0);
	assert_non_null(strstr(text, "{\"from_ns\": 64, \"to_ns\": 128, \"calls\": 1}, "
				     "{\"from_ns\": 128, \"to_ns\": 256, \"calls\": 1}, "));
	assert_non_null(strstr(text, "{\"from_ns\": 4096, \"to_ns\": 8192, \"calls\": 1}]"));
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(times_are_those_of_the_calls),
		TEST(percentiles_are_those_of_the_calls),
		TEST(a_thread_a_caller_or_a_length_can_be_picked),
		TEST(a_window_has_each_call_with_its_part_of_it),
		TEST(durations_are_spread_over_powers_of_two),
		TEST(total_of_a_thread_has_the_calls_in_open_ones),
		TEST(average_of_one_call_is_that_call),
		TEST(recursion_counts_its_outermost_call_once),
		TEST(recursion_into_a_call_open_before_the_recording_is_known),
		TEST(calls_entered_before_the_recording_take_each_others_time_off),
		TEST(coroutines_are_not_each_others_recursion),
		TEST(a_coroutine_that_moves_to_another_thread_is_counted_once),
		TEST(calls_that_did_not_return_are_counted_and_not_timed),
		TEST(a_function_of_several_processes_has_one_row),
		TEST(callers_and_callees_of_a_function_are_told),
		TEST(time_that_no_call_has_is_told),
		TEST(rows_can_be_threads_or_objects),
		TEST(a_narrow_line_keeps_the_name_and_what_is_sorted_by),
		TEST(the_text_is_aligned_and_sorted),
		TEST(keys_can_be_shortened_but_not_invented),
		TEST(an_empty_trace_makes_an_empty_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
