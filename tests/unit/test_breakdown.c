/* SPDX-License-Identifier: MIT */
/*
 * Sums by function and thread, names that wait, and the page: its data as JSON, whatever the names.
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

#include "export/breakdown.h"
#include "export/html.h"
#include "export/waiting.h"

static void add(struct gt_breakdown *breakdown, const char *name, int64_t tid, int64_t latency,
		int64_t self)
{
	assert_int_equal(gt_breakdown_add(breakdown, name, strlen(name), tid, latency, self),
			 GT_OK);
}

/* The page between <script id="data"> and its end; malloc'd. */
static char *data_of(const struct gt_breakdown *breakdown, const char *source, uint64_t bad)
{
	static const char begin[] = "<script id=\"data\" type=\"application/json\">";
	struct gt_message message;
	FILE *file = tmpfile();
	char *page;
	char *data;
	size_t len;

	assert_int_equal(gt_html_write_breakdown(fileno(file), breakdown, source, bad, &message),
			 GT_OK);
	len = (size_t)lseek(fileno(file), 0, SEEK_END);
	page = calloc(1, len + 1);
	assert_int_equal(pread(fileno(file), page, len, 0), len);
	fclose(file);
	assert_memory_equal(page, "<!DOCTYPE html>", 15);
	assert_null(strstr(page, "@@"));
	data = strstr(page, begin);
	assert_non_null(data);
	data += sizeof begin - 1;
	memmove(page, data, strlen(data) + 1);
	data = strstr(page, "</script>");
	assert_non_null(data);
	*data = '\0';
	return page;
}

static void calls_are_summed_by_function_and_thread(void **state)
{
	struct gt_breakdown breakdown;
	uint32_t *order;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	add(&breakdown, "a", 1, 10, 4);
	add(&breakdown, "b", 1, 6, 6);
	add(&breakdown, "a", 2, 3, 3);
	add(&breakdown, "a", 1, 1, 1);
	assert_int_equal(breakdown.functions_count, 2);
	assert_int_equal(breakdown.threads_count, 2);
	assert_int_equal(breakdown.cells_count, 3);
	assert_int_equal(breakdown.functions[0].calls, 3);
	assert_int_equal(breakdown.functions[0].latency_ns, 14);
	assert_int_equal(breakdown.functions[0].self_ns, 8);
	assert_int_equal(breakdown.threads[0].self_ns, 11);
	assert_int_equal(breakdown.cells[0].self_ns, 5);
	assert_int_equal(breakdown.self_ns, 14);
	assert_int_equal(gt_breakdown_rank_functions(&breakdown, &order), GT_OK);
	assert_int_equal(order[0], 0);
	free(order);
	assert_int_equal(gt_breakdown_rank_threads(&breakdown, &order), GT_OK);
	assert_int_equal(order[1], 1);
	free(order);
	gt_breakdown_fini(&breakdown);
}

static void many_functions_and_threads_are_told_apart(void **state)
{
	struct gt_breakdown breakdown;
	char name[32];

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 50000; i++) {
			snprintf(name, sizeof name, "function_%d", i);
			add(&breakdown, name, i % 700, 2, 1);
		}
	assert_int_equal(breakdown.functions_count, 50000);
	assert_int_equal(breakdown.threads_count, 700);
	assert_int_equal(breakdown.cells_count, 50000);
	for (uint32_t i = 0; i < breakdown.functions_count; i++)
		assert_int_equal(breakdown.functions[i].calls, 2);
	gt_breakdown_fini(&breakdown);
}

static void sums_stop_at_their_limit(void **state)
{
	struct gt_breakdown breakdown;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	add(&breakdown, "a", 1, INT64_MAX, INT64_MIN);
	add(&breakdown, "a", 1, INT64_MAX, INT64_MIN);
	assert_int_equal(breakdown.functions[0].latency_ns, INT64_MAX);
	assert_int_equal(breakdown.functions[0].self_ns, INT64_MIN);
	gt_breakdown_fini(&breakdown);
}

static void names_that_wait_are_told_by_their_words(void **state)
{
	static const char *const wait[] = {
		"kernel_sleep",
		"usleep",
		"clock_nanosleep",
		"epoll_wait",
		"ep_poll",
		"poll",
		"do_select",
		"__x64_sys_pselect6",
		"futex_wait_queue",
		"cpu_idle",
		"idle",
		"pause",
		"lwip_recv",
		"recvfrom",
		"accept4",
		"std::thread::join",
		"pthread_cond_timedwait",
		"std::condition_variable::wait(std::unique_lock<std::mutex>&)",
		"waitForEvent",
		"WaitForSingleObject",
		"HTTPPoll",
		"schedule",
		"thread::park",
	};
	static const char *const work[] = {
		"main",		  "middle",   "second",
		"selection_sort", "idler2x",  "await_count",
		"runtime_memcpy", "joiner",   "f(wait_queue*)",
		"pollute",	  "accepted", "conditional",
		"parking_lot",	  "",
	};

	(void)state;
	for (size_t i = 0; i < sizeof wait / sizeof wait[0]; i++)
		if (!gt_name_waits(wait[i], strlen(wait[i])))
			fail_msg("'%s' is not taken for one that waits", wait[i]);
	for (size_t i = 0; i < sizeof work / sizeof work[0]; i++)
		if (gt_name_waits(work[i], strlen(work[i])))
			fail_msg("'%s' is taken for one that waits", work[i]);
}

static void the_page_holds_the_sums(void **state)
{
	struct gt_breakdown breakdown;
	char *data;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	add(&breakdown, "run", 12, 3500, 1500);
	add(&breakdown, "epoll_wait", -3, 2000, 2000);
	add(&breakdown, "run", -3, 100, -100);
	data = data_of(&breakdown, "trace.csv", 4);
	assert_string_equal(data, "{\"source\":\"trace.csv\",\"bad\":4,\"calls\":3,\"self\":3.400,"
				  "\"functionsCount\":2,\"threadsCount\":2,\n"
				  "\"threads\":[-3,12],\n"
				  "\"functions\":[\n"
				  "[\"epoll_wait\",1,2.000,2.000,1,[0,2.000]],\n"
				  "[\"run\",2,3.600,1.400,0,[0,-0.100,1,1.500]]],\n"
				  "\"others\":[],\n"
				  "\"rest\":[]}");
	free(data);
	gt_breakdown_fini(&breakdown);
}

static void names_cannot_leave_the_data(void **state)
{
	struct gt_breakdown breakdown;
	char *data;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	add(&breakdown, "</script><script>alert(1)</script>&\"\\\n\x01\x7f", 1, 1, 4);
	add(&breakdown, "\xc3\xa9 \xff\xc3 \xed\xa0\x80 \xf0\x9f\x98\x80 \xe2\x82", 1, 1, 3);
	data = data_of(&breakdown, "<b>", 0);
	assert_null(strchr(data, '<'));
	assert_null(strchr(data, '&'));
	assert_non_null(
		strstr(data, "\"\\u003c/script\\u003e\\u003cscript\\u003ealert(1)"
			     "\\u003c/script\\u003e\\u0026\\u0022\\u005c\\u000a\\u0001\\u007f\""));
	assert_non_null(strstr(data, "\"\xc3\xa9 \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd "
				     "\xf0\x9f\x98\x80 \\ufffd\\ufffd\""));
	assert_non_null(strstr(data, "\"source\":\"\\u003cb\\u003e\""));
	free(data);
	gt_breakdown_fini(&breakdown);
}

static void beyond_the_top_functions_are_lumped_together(void **state)
{
	struct gt_breakdown breakdown;
	char name[32];
	char *data;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof name, i >= 190 ? "wait_%d" : "run_%d", i);
		add(&breakdown, name, 5 + i % 2, 2000, 1000 * (1000 - i));
	}
	data = data_of(&breakdown, "x", 0);
	/* 150..189 sum to 40 * (1000 - 169.5), 190..199 to 10 * (1000 - 194.5). */
	assert_non_null(strstr(data,
			       "{\"waits\":0,\"count\":40,\"calls\":40,\"total\":80.000,\"self\":"
			       "33220.000,\"cells\":[0,16620.000,1,16600.000]}"));
	assert_non_null(strstr(data,
			       "{\"waits\":1,\"count\":10,\"calls\":10,\"total\":20.000,\"self\":"
			       "8055.000,\"cells\":[0,4030.000,1,4025.000]}"));
	assert_non_null(strstr(data, "\"rest\":[\n[\"run_150\",1,2.000,850.000]"));
	free(data);
	gt_breakdown_fini(&breakdown);
}

static void beyond_the_top_threads_are_lumped_together(void **state)
{
	struct gt_breakdown breakdown;
	char *data;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	for (int i = 0; i < 1100; i++)
		add(&breakdown, "f", i, 1000, 1000 * (2000 - i));
	data = data_of(&breakdown, "x", 0);
	assert_non_null(strstr(data, ",97,98,null],"));
	/* 99..1099: 1001 * (2000 - 599). */
	assert_non_null(strstr(data, ",99,1402401.000]]"));
	free(data);
	gt_breakdown_fini(&breakdown);
}

static void an_empty_breakdown_makes_a_page(void **state)
{
	struct gt_breakdown breakdown;
	char *data;

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	data = data_of(&breakdown, "x", 0);
	assert_non_null(strstr(data, "\"threads\":[],"));
	free(data);
	gt_breakdown_fini(&breakdown);
}

static void a_full_disk_is_reported(void **state)
{
	struct gt_breakdown breakdown;
	struct gt_message message;
	FILE *full = fopen("/dev/full", "w");

	(void)state;
	assert_int_equal(gt_breakdown_init(&breakdown), GT_OK);
	assert_int_equal(gt_html_write_breakdown(fileno(full), &breakdown, "x", 0, &message),
			 GT_EIO);
	assert_non_null(strstr(message.text, "No space left"));
	gt_breakdown_fini(&breakdown);
	fclose(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_summed_by_function_and_thread),
		cmocka_unit_test(many_functions_and_threads_are_told_apart),
		cmocka_unit_test(sums_stop_at_their_limit),
		cmocka_unit_test(names_that_wait_are_told_by_their_words),
		cmocka_unit_test(the_page_holds_the_sums),
		cmocka_unit_test(names_cannot_leave_the_data),
		cmocka_unit_test(beyond_the_top_functions_are_lumped_together),
		cmocka_unit_test(beyond_the_top_threads_are_lumped_together),
		cmocka_unit_test(an_empty_breakdown_makes_a_page),
		cmocka_unit_test(a_full_disk_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
