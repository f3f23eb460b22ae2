/* SPDX-License-Identifier: MIT */
/*
 * Function_graph text to calls: which call a brace closes, whose it is, what its self time is, and
 * what is counted instead of guessed. Each text is fed whole, byte by byte and in pieces: the rows
 * must be the same.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "read/text_trace.h"

struct rows {
	char text[4096];
	size_t used;
	uint64_t count;
	int result;
};

static int take(void *user, const struct gt_text_call *call)
{
	struct rows *rows = user;

	rows->count++;
	if (rows->used < sizeof rows->text - 200)
		rows->used += (size_t)snprintf(
			rows->text + rows->used, sizeof rows->text - rows->used,
			"%.*s %lld %llu %llu\n", (int)call->function_len, call->function,
			(long long)call->tid, (unsigned long long)call->latency_ns,
			(unsigned long long)call->self_ns);
	return rows->result;
}

static struct gt_text_trace_report run(const char *text, size_t len, size_t piece, bool peek,
				       struct rows *rows)
{
	struct gt_text_trace_report report;
	struct gt_text_trace *trace;

	memset(rows, 0, sizeof *rows);
	assert_int_equal(gt_text_trace_create(&trace, take, rows), GT_OK);
	if (peek)
		assert_int_equal(gt_text_trace_peek(trace, text, len), GT_OK);
	for (size_t at = 0; at < len; at += piece) {
		size_t part = len - at < piece ? len - at : piece;

		assert_int_equal(gt_text_trace_feed(trace, text + at, part), GT_OK);
	}
	assert_int_equal(gt_text_trace_finish(trace), GT_OK);
	report = *gt_text_trace_report(trace);
	gt_text_trace_destroy(trace);
	return report;
}

static struct gt_text_trace_report expect(const char *text, const char *wanted)
{
	static const size_t pieces[] = { 1, 2, 7, 64, 1u << 20 };
	struct gt_text_trace_report report;
	struct rows rows;

	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		report = run(text, strlen(text), pieces[i], true, &rows);
		assert_string_equal(rows.text, wanted);
		assert_int_equal(report.calls, rows.count);
		assert_int_equal(report.bytes, strlen(text));
	}
	return report;
}

static void self_time_is_without_the_direct_callees(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 0)               |    b() {\n"
						    " 0)   1.000 us    |      c();\n"
						    " 0)   4.000 us    |    }\n"
						    " 0)   2.000 us    |    c();\n"
						    " 0) + 10.000 us   |  }\n",
						    "c 0 1000 1000\n"
						    "b 0 4000 3000\n"
						    "c 0 2000 2000\n"
						    "a 0 10000 4000\n");

	(void)state;
	assert_int_equal(report.lines, 6);
	assert_int_equal(report.open_at_start.count, 0);
	assert_int_equal(report.open_at_end.count, 0);
	assert_int_equal(report.other.count, 0);
}

static void a_last_line_without_a_newline_counts(void **state)
{
	(void)state;
	expect(" 0)   1.000 us    |  a();", "a 0 1000 1000\n");
	expect(" 0)               |  a() {\r\n 0)   1.000 us    |  }\r", "a 0 1000 1000\n");
}

static void each_cpu_has_its_own_stack(void **state)
{
	(void)state;
	expect(" 0)               |  a() {\n"
	       " 12)               |  b() {\n"
	       " 0)   1.000 us    |  }\n"
	       " 12)   2.000 us    |  }\n",
	       "a 0 1000 1000\n"
	       "b -12 2000 2000\n");
}

static void a_task_takes_its_open_calls_to_another_cpu(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " ------------------------------------------\n"
						    " 0)     sh-86      =>    cat-133    \n"
						    " ------------------------------------------\n"
						    "\n"
						    " 0)               |  b() {\n"
						    " 1)   <idle>-0      =>     sh-86    \n"
						    " 1)   0.500 us    |    x();\n"
						    " 1)   3.000 us    |  }\n"
						    " 0)   2.000 us    |  }\n",
						    "x 86 500 500\n"
						    "a 86 3000 2500\n"
						    "b 133 2000 2000\n");

	(void)state;
	assert_int_equal(report.switches, 2);
	assert_int_equal(report.open_at_start.count, 0);
}

static void the_first_switch_names_the_task_before_it(void **state)
{
	static const char text[] = " 3)   1.000 us    |  a();\n"
				   " 3)   cat-7 => sh-9 \n"
				   " 3)   1.000 us    |  b();\n"
				   " 3)   sh-9 => cat-7 \n"
				   " 3)   1.000 us    |  c();\n";
	struct rows rows;

	(void)state;
	expect(text, "a 7 1000 1000\nb 9 1000 1000\nc 7 1000 1000\n");
	/* A pipe cannot be looked ahead: the number says only which CPU it was. */
	run(text, strlen(text), 1000, false, &rows);
	assert_string_equal(rows.text, "a -3 1000 1000\nb 9 1000 1000\nc 7 1000 1000\n");
}

static void a_switch_names_the_calls_already_open(void **state)
{
	static const char text[] = " 0)               |  a() {\n"
				   " 0)   cat-7 => sh-9 \n"
				   " 0)   sh-9 => cat-7 \n"
				   " 0)   1.000 us    |  }\n";
	struct rows rows;

	(void)state;
	run(text, strlen(text), 1000, false, &rows);
	assert_string_equal(rows.text, "a 7 1000 1000\n");
}

static void each_cpu_has_its_own_idle_task(void **state)
{
	(void)state;
	expect(" 0)   cat-7 => <idle>-0 \n"
	       " 1)   sh-9 => <idle>-0 \n"
	       " 0)               |  a() {\n"
	       " 1)               |  b() {\n"
	       " 0)   1.000 us    |  }\n"
	       " 1)   2.000 us    |  }\n",
	       "a 0 1000 1000\nb 0 2000 2000\n");
}

static void tasks_of_trace_cmd_and_of_the_task_column_are_told_apart(void **state)
{
	(void)state;
	expect("a-1 [000] 1.0: funcgraph_entry:                   |  f() {\n"
	       "b-2 [000] 1.1: funcgraph_entry:                   |  g() {\n"
	       "a-1 [001] 1.2: funcgraph_exit:         1.000 us   |  }\n"
	       "b-2 [000] 1.3: funcgraph_exit:         2.000 us   |  }\n",
	       "f 1 1000 1000\ng 2 2000 2000\n");
	expect(" 0)    a-1    |               |  f() {\n"
	       " 0)    b-2    |               |  g() {\n"
	       " 1)    a-1    |   1.000 us    |  }\n"
	       " 0)    b-2    |   2.000 us    |  }\n",
	       "f 1 1000 1000\ng 2 2000 2000\n");
}

static void a_call_open_at_the_start_is_reported_and_makes_no_row(void **state)
{
	struct gt_text_trace_report report = expect(" 0)   1.000 us    |    a();\n"
						    " 0)   2.000 us    |  }\n"
						    " 0)   9.000 us    |  } /* main */\n"
						    " 0)   1.000 us    |  b();\n",
						    "a 0 1000 1000\nb 0 1000 1000\n");

	(void)state;
	assert_int_equal(report.open_at_start.count, 2);
	assert_int_equal(report.open_at_start.kept[0].line, 2);
	assert_string_equal(report.open_at_start.kept[0].text, "");
	assert_int_equal(report.open_at_start.kept[1].line, 3);
	assert_string_equal(report.open_at_start.kept[1].text, "main");
	assert_int_equal(report.never_returned, 0);
}

/* With tracing_thresh each line is a call, told at its end. */
static void ends_alone_are_whole_calls(void **state)
{
	struct gt_text_trace_report report = expect(" 0)   1.000 us    |      } /* a */\n"
						    " 0)   2.000 us    |      } /* a */\n"
						    " 0)   9.000 us    |    } /* b */\n"
						    " 0)   4.000 us    |    }\n"
						    " 0) + 20.000 us   |  } /* c */\n",
						    "a 0 1000 1000\na 0 2000 2000\n"
						    "b 0 9000 6000\nc 0 20000 11000\n");

	(void)state;
	assert_int_equal(report.calls, 4);
	/* the one without a name */
	assert_int_equal(report.open_at_start.count, 1);
}

static void each_text_decides_anew_what_its_ends_are(void **state)
{
	struct gt_text_trace_report report = expect("# tracer: function_graph\n"
						    " 0)   1.000 us    |  } /* a */\n"
						    "# tracer: function_graph\n"
						    " 0)   2.000 us    |  } /* b */\n"
						    " 0)   3.000 us    |  c();\n",
						    "a 0 1000 1000\nc 0 3000 3000\n");

	(void)state;
	assert_int_equal(report.open_at_start.count, 1);
}

static void many_ends_alone_do_not_wait_for_a_begin(void **state)
{
	static char text[64 * 2000];
	struct rows rows;
	char *at = text;

	(void)state;
	for (int i = 0; i < 1500; i++)
		at += sprintf(at, " 0)   1.000 us    |  } /* a */\n");
	sprintf(at, " 0)   1.000 us    |  b();\n");
	assert_int_equal(run(text, strlen(text), 1u << 20, true, &rows).open_at_start.count, 0);
	assert_int_equal(rows.count, 1501);
}

static void a_call_open_at_the_end_is_reported_and_makes_no_row(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 1)               |  b() {\n"
						    " 0)               |    c() {\n",
						    "");

	(void)state;
	assert_int_equal(report.open_at_end.count, 3);
	assert_int_equal(report.open_at_end.kept_count, 3);
}

static void a_call_that_never_returns_does_not_shift_the_others(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 0)               |    jumps() {\n"
						    " 0)   1.000 us    |      leaf();\n"
						    " 0)   2.000 us    |    b();\n"
						    " 0)               |    jumps() {\n"
						    " 0) + 10.000 us   |  }\n"
						    " 0)   1.000 us    |  c();\n",
						    "leaf 0 1000 1000\n"
						    "b 0 2000 2000\n"
						    "a 0 10000 7000\n"
						    "c 0 1000 1000\n");

	(void)state;
	assert_int_equal(report.never_returned, 2);
}

static void without_depth_the_name_behind_the_brace_decides(void **state)
{
	struct gt_text_trace_report report = expect("0) | a() {\n"
						    "0) | jumps() {\n"
						    "0) + 10.000 us | } /* a */\n"
						    "0) 1.000 us | } /* unseen */\n",
						    "a 0 10000 10000\n");

	(void)state;
	assert_int_equal(report.never_returned, 1);
	assert_int_equal(report.open_at_start.count, 1);
}

static void another_name_at_the_same_depth_is_not_closed(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 0)               |    b() {\n"
						    " 0)   2.000 us    |    } /* other */\n"
						    " 0) + 10.000 us   |  }\n",
						    "a 0 10000 8000\n");

	(void)state;
	assert_int_equal(report.open_at_start.count, 1);
	assert_int_equal(report.never_returned, 1);
}

static void a_loss_cuts_only_what_was_open_on_its_cpu(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 1)               |  b() {\n"
						    "CPU:0 [LOST 500 EVENTS]\n"
						    " 0)   1.000 us    |  }\n"
						    " 1)   2.000 us    |  }\n"
						    " 0)               |  c() {\n"
						    " 0)   3.000 us    |  }\n",
						    "b -1 2000 2000\nc 0 3000 3000\n");

	(void)state;
	assert_int_equal(report.cut_by_loss, 1);
	assert_int_equal(report.lost_events, 500);
	assert_int_equal(report.open_at_start.count, 1);
}

static void a_loss_cuts_tasks_that_wait_on_that_cpu(void **state)
{
	struct gt_text_trace_report report = expect(" 0)  x-0 => a-1 \n"
						    " 0)               |  a() {\n"
						    " 0)  a-1 => b-2 \n"
						    "CPU:0 [LOST EVENTS]\n"
						    " 1)  x-0 => a-1 \n"
						    " 1)   1.000 us    |  }\n",
						    "");

	(void)state;
	assert_int_equal(report.cut_by_loss, 1);
	assert_int_equal(report.open_at_start.count, 1);
}

static void self_time_is_never_negative(void **state)
{
	/* 1200887 us stands for up to 1200887.999: Linux cuts what does not fit its column. */
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 0) $ 1200887 us  |    b();\n"
						    " 0)   0.500 us    |    c();\n"
						    " 0) $ 1200887 us  |  }\n",
						    "b 0 1200887000 1200887000\n"
						    "c 0 500 500\n"
						    "a 0 1200887000 0\n");

	(void)state;
	assert_int_equal(report.children_exceed, 1);
}

static void a_callee_of_an_unseen_call_is_not_counted_twice(void **state)
{
	expect(" 0)               |  a() {\n"
	       " 0)   1.000 us    |      deep();\n"
	       " 0)   4.000 us    |    } /* unseen */\n"
	       " 0) + 10.000 us   |  }\n",
	       "deep 0 1000 1000\na 0 10000 6000\n");
	(void)state;
}

static void texts_behind_each_other_do_not_share_stacks(void **state)
{
	struct gt_text_trace_report report = expect("# tracer: function_graph\n"
						    " 0)               |  a() {\n"
						    "# tracer: function_graph\n"
						    " 0)   1.000 us    |  }\n",
						    "");

	(void)state;
	assert_int_equal(report.traces, 2);
	assert_int_equal(report.open_at_end.count, 1);
	assert_int_equal(report.open_at_start.count, 1);
	assert_string_equal(report.tracer, "function_graph");
}

static void lines_that_are_no_trace_are_counted_and_named(void **state)
{
	struct gt_text_trace_report report = expect("\xef\xbb\xbf# tracer: function_graph\n"
						    " 0)   1.000 us    |  a();\n"
						    "garbage\x01\x80\n"
						    "\n"
						    "1\n2\n3\n4\n5\n",
						    "a 0 1000 1000\n");

	(void)state;
	assert_int_equal(report.other.count, 6);
	assert_int_equal(report.other.kept_count, GT_CASES_KEPT);
	assert_int_equal(report.other.kept[0].line, 3);
	assert_int_equal(report.other.kept[0].offset, 54);
	assert_string_equal(report.other.kept[0].text, "garbage??");
}

static void a_markers_text_may_have_lines(void **state)
{
	struct gt_text_trace_report report = expect(" 0)               |  a() {\n"
						    " 0)               |    /* one\n"
						    "\n"
						    "two: three() {\n"
						    "four */\n"
						    " 0)               |    /* cut off\n"
						    "here\n"
						    " 0)   2.000 us    |  }\n"
						    "five */\n",
						    "a 0 2000 2000\n");

	(void)state;
	assert_int_equal(report.events, 2);
	assert_int_equal(report.other.count, 1);
	assert_int_equal(report.other.kept[0].line, 9);
}

static void a_line_over_the_limit_is_skipped_and_the_next_is_read(void **state)
{
	static const size_t pieces[] = { 1000, 65536, 65537, 1u << 24 };
	static const char tail[] = "\n 0)   1.000 us    |  a();\n";
	size_t longer = 3 * GT_TEXT_LINE_MAX;
	char *text = malloc(longer + sizeof tail);

	(void)state;
	memset(text, 'x', longer);
	memcpy(text + longer, tail, sizeof tail);
	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		struct rows rows;
		struct gt_text_trace_report report =
			run(text, longer + sizeof tail - 1, pieces[i], true, &rows);

		assert_string_equal(rows.text, "a 0 1000 1000\n");
		assert_int_equal(report.lines, 2);
		assert_int_equal(report.other.count, 1);
		assert_int_equal(report.other.kept[0].line, 1);
		assert_int_equal(report.other.kept[0].offset, 0);
	}
	free(text);
}

static void the_callbacks_error_stops_the_parser(void **state)
{
	static const char text[] = " 0)   1.000 us    |  a();\n 0)   1.000 us    |  b();\n";
	struct rows rows = { .result = GT_EIO };
	struct gt_text_trace *trace;

	(void)state;
	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	assert_int_equal(gt_text_trace_feed(trace, text, strlen(text)), GT_EIO);
	assert_int_equal(rows.count, 1);
	gt_text_trace_destroy(trace);
}

static void deep_recursion_is_followed(void **state)
{
	const unsigned depth = 200000;
	struct gt_text_trace *trace;
	struct rows rows = { .count = 0 };
	char line[64];

	(void)state;
	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	for (unsigned i = 0; i < depth; i++)
		assert_int_equal(gt_text_trace_feed(trace, "0) | f() {\n", 11), GT_OK);
	for (unsigned i = 1; i <= depth; i++) {
		int len = snprintf(line, sizeof line, "0) %u.000 us | }\n", i);

		assert_int_equal(gt_text_trace_feed(trace, line, (size_t)len), GT_OK);
	}
	assert_int_equal(gt_text_trace_finish(trace), GT_OK);
	assert_int_equal(rows.count, depth);
	assert_int_equal(gt_text_trace_report(trace)->open_at_start.count, 0);
	gt_text_trace_destroy(trace);
}

static void calls_that_open_without_end_stay_within_the_memory_limit(void **state)
{
	struct rows rows = { .count = 0 };
	struct gt_text_trace *trace;
	const struct gt_text_trace_report *report;
	const uint64_t opened = 8u << 20;

	(void)state;
	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	for (uint64_t i = 0; i < opened; i++)
		assert_int_equal(gt_text_trace_feed(trace, "0) | f() {\n", 11), GT_OK);
	assert_int_equal(gt_text_trace_finish(trace), GT_OK);
	report = gt_text_trace_report(trace);
	assert_true(report->forgotten > 0);
	assert_int_equal(report->forgotten + report->open_at_end.count, opened);
	gt_text_trace_destroy(trace);
}

static void tasks_without_end_stay_within_the_memory_limit(void **state)
{
	struct rows rows = { .count = 0 };
	struct gt_text_trace *trace;
	const struct gt_text_trace_report *report;
	const unsigned opened = 600000;
	char line[96];

	(void)state;
	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	for (unsigned i = 1; i <= opened; i++) {
		int len = snprintf(line, sizeof line, "a-%u [%u] 1.0: funcgraph_entry: |  f() {\n",
				   i, i % 300);

		assert_int_equal(gt_text_trace_feed(trace, line, (size_t)len), GT_OK);
	}
	assert_int_equal(gt_text_trace_finish(trace), GT_OK);
	report = gt_text_trace_report(trace);
	assert_true(report->forgotten > 0);
	assert_int_equal(report->forgotten + report->open_at_end.count, opened);
	gt_text_trace_destroy(trace);
}

static void a_file_and_a_pipe_are_read_to_their_end(void **state)
{
	static const char text[] = " 3)   1.000 us    |  a();\n 3)   cat-7 => sh-9 \n";
	struct gt_message message = { "" };
	struct rows rows = { .count = 0 };
	struct gt_text_trace *trace;
	FILE *file = tmpfile();
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
	close(ends[1]);
	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	assert_int_equal(gt_text_trace_read(trace, ends[0], &message), GT_OK);
	assert_string_equal(rows.text, "a 7 1000 1000\n");
	gt_text_trace_destroy(trace);

	memset(&rows, 0, sizeof rows);
	for (int i = 0; i < 40000; i++)
		fputs(" 3)   1.000 us    |  a();\n", file);
	fputs(text, file);
	rewind(file);
	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	assert_int_equal(gt_text_trace_read(trace, fileno(file), &message), GT_OK);
	assert_int_equal(rows.count, 40001);
	assert_memory_equal(rows.text, "a 7 1000 1000\n", 14);
	gt_text_trace_destroy(trace);

	assert_int_equal(gt_text_trace_create(&trace, take, &rows), GT_OK);
	assert_int_equal(gt_text_trace_read(trace, ends[1], &message), GT_EIO);
	assert_non_null(strstr(message.text, "cannot read at byte 0"));
	gt_text_trace_destroy(trace);
	fclose(file);
	close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(self_time_is_without_the_direct_callees),
		cmocka_unit_test(a_last_line_without_a_newline_counts),
		cmocka_unit_test(each_cpu_has_its_own_stack),
		cmocka_unit_test(a_task_takes_its_open_calls_to_another_cpu),
		cmocka_unit_test(the_first_switch_names_the_task_before_it),
		cmocka_unit_test(a_switch_names_the_calls_already_open),
		cmocka_unit_test(each_cpu_has_its_own_idle_task),
		cmocka_unit_test(tasks_of_trace_cmd_and_of_the_task_column_are_told_apart),
		cmocka_unit_test(a_call_open_at_the_start_is_reported_and_makes_no_row),
		cmocka_unit_test(ends_alone_are_whole_calls),
		cmocka_unit_test(each_text_decides_anew_what_its_ends_are),
		cmocka_unit_test(many_ends_alone_do_not_wait_for_a_begin),
		cmocka_unit_test(a_call_open_at_the_end_is_reported_and_makes_no_row),
		cmocka_unit_test(a_call_that_never_returns_does_not_shift_the_others),
		cmocka_unit_test(without_depth_the_name_behind_the_brace_decides),
		cmocka_unit_test(another_name_at_the_same_depth_is_not_closed),
		cmocka_unit_test(a_loss_cuts_only_what_was_open_on_its_cpu),
		cmocka_unit_test(a_loss_cuts_tasks_that_wait_on_that_cpu),
		cmocka_unit_test(self_time_is_never_negative),
		cmocka_unit_test(a_callee_of_an_unseen_call_is_not_counted_twice),
		cmocka_unit_test(texts_behind_each_other_do_not_share_stacks),
		cmocka_unit_test(lines_that_are_no_trace_are_counted_and_named),
		cmocka_unit_test(a_markers_text_may_have_lines),
		cmocka_unit_test(a_line_over_the_limit_is_skipped_and_the_next_is_read),
		cmocka_unit_test(the_callbacks_error_stops_the_parser),
		cmocka_unit_test(deep_recursion_is_followed),
		cmocka_unit_test(calls_that_open_without_end_stay_within_the_memory_limit),
		cmocka_unit_test(tasks_without_end_stay_within_the_memory_limit),
		cmocka_unit_test(a_file_and_a_pipe_are_read_to_their_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
