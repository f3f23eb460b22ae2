/* SPDX-License-Identifier: MIT */
/* What the page answers of scripted recordings, against figures made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "export/page/page.h"
#include "tests/unit/fake_target.h"

static struct gt_page *page;
static struct gt_out out;
static bool one_thread;

static int setup(void **state)
{
	(void)state;
	fake_init(&fake);
	page = NULL;
	return gt_out_init_memory(&out);
}

static int teardown(void **state)
{
	(void)state;
	if (page)
		gt_page_destroy(page);
	gt_out_fini(&out);
	fake_free(&fake);
	return 0;
}

static void read_page(uint64_t most_calls)
{
	const struct gt_page_options options = {
		.target = &fake.target,
		.about = { .command_line = "./prog",
			   .program = "/bin/prog",
			   .host = "",
			   .made_by = "",
			   .start = 1000 },
		.expected_calls = 10,
		.most_calls = most_calls,
		.one_thread = one_thread,
	};

	assert_int_equal(gt_page_create(&options, &page), GT_OK);
	assert_true(gt_page_progress(page) < 1);
	assert_int_equal(gt_page_read(page, NULL), GT_OK);
	assert_true(gt_page_progress(page) == 1);
}

static const char *parameter(void *user, const char *name)
{
	for (const char **pair = user; pair[0]; pair += 2)
		if (strcmp(pair[0], name) == 0)
			return pair[1];
	return NULL;
}

/* Asks with up to three parameters; the answer as a string. */
static int ask(const char *question, const char *a, const char *a_value, const char *b,
	       const char *b_value, const char *c, const char *c_value)
{
	const char *pairs[] = { a, a_value, b, b_value, c, c_value, NULL };
	int error;

	out.used = 0;
	error = gt_page_answer(page, question, parameter, pairs, &out);
	gt_out_char(&out, '\0');
	return error;
}

static void expect(const char *part)
{
	if (!strstr(out.buffer, part))
		fail_msg("no %s in %s", part, out.buffer);
}

/* f1 calls f2 three times: 100, 200 and 300 long, with 10 around each. A second thread has f2 once. */
static void make_two_threads(void)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "first", 1000), 1000, 0, 64);

	builder_entry(b, 1, 10);
	for (int i = 1; i <= 3; i++) {
		builder_entry(b, 2, 10);
		builder_return(b, 2, i * 100);
	}
	builder_return(b, 1, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 87, "second", 1000), 1000, 0, 64);
	builder_entry(b, 2, 50);
	builder_return(b, 2, 1000);
	builder_close(b);
}

static void overview_tells_the_run(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"program\":\"/bin/prog\"");
	expect("\"length\":1050,\"calls\":5,\"returned\":5");
	expect("\"name\":\"first\",\"first\":10,\"last\":650,\"calls\":4,\"depth\":2,\"self\":640");
}

/* f1 lasts the whole run, and calls itself twenty times, for 10; with `slow` once for 500. */
static void make_recursion_with(bool slow)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "first", 1000), 1000, 0, 64);

	builder_entry(b, 1, 1);
	for (int i = 0; i < 20; i++) {
		builder_entry(b, 1, 100);
		builder_return(b, 1, slow && i == 7 ? 500 : 10);
	}
	builder_return(b, 1, 1);
	builder_close(b);
}

static void a_call_that_is_the_whole_run_does_not_stand_out(void **state)
{
	(void)state;
	make_recursion_with(true);
	read_page(0);
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"outliers\":[[0,871,500,0,1,10]]");
}

static void it_does_if_nothing_else_does(void **state)
{
	(void)state;
	make_recursion_with(false);
	read_page(0);
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"outliers\":[[0,1,2201,0,0,10]]");
}

static void time_line_shows_each_call(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("timeline", "from", "0", "to", "1000", "lanes", "0-1"), GT_OK);
	expect("\"rows\":[[[10,640,0]],[[20,100,1],[130,200,1],[340,300,1]]]");
	expect("\"rows\":[[[50,1000,1]]]");
	/* What begins before the window begins below 0. */
	assert_int_equal(ask("timeline", "from", "140", "to", "150", "lanes", "0"), GT_OK);
	expect("\"rows\":[[[-130,640,0]],[[-10,200,1]]]");
}

static void flame_graphs_are_of_all_or_one(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("flame", "of", "all", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"nodes\":[[0,1,1,1000,1000,0],[0,0,1,640,40,0],[1,1,3,600,600,0]]");
	assert_int_equal(ask("flame", "of", "lane:0", "path", "0", NULL, NULL), GT_OK);
	expect("\"all\":640,\"total\":640,\"path\":[[0,0,1,640,40,0]],\"nodes\":[[0,1,3,600,600,0]"
	       "]");
	assert_int_equal(ask("flame", "of", "pid:100", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"all\":1640");
	assert_int_equal(ask("flame", "of", "pid:99", NULL, NULL, NULL, NULL), GT_ENOENT);
	assert_int_equal(ask("flame", "of", "lane:2", NULL, NULL, NULL, NULL), GT_ENOENT);
	assert_int_equal(ask("flame", "of", "lane:", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("flame", "of", "all", "path", "1.1", NULL, NULL), GT_ENOENT);
}

static void functions_have_sums_callers_and_slowest_calls(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("function", "id", "1", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"name\":\"f2\"");
	expect("\"calls\":4,\"returned\":4,\"total\":1600,\"self\":1600");
	expect("\"min\":100,\"max\":1000");
	expect("\"slowest\":[[50,1000,1,0],[340,300,0,1],[130,200,0,1],[20,100,0,1]]");
	expect("\"callers\":[[-1,1,1000],[0,3,600]],\"callees\":[]");
	expect("\"lanes\":[[0,3,600,600],[1,1,1000,1000]]");
	assert_int_equal(ask("function", "id", "0", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"callees\":[[1,3,600]]");
	assert_int_equal(ask("function", "id", "7", NULL, NULL, NULL, NULL), GT_ENOENT);
	assert_int_equal(ask("function", "id", "x", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("function", NULL, NULL, NULL, NULL, NULL, NULL), GT_ENOENT);
}

static void recursion_counts_once(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "r", 1000), 1000, 0, 64);

	(void)state;
	builder_entry(b, 3, 0);
	builder_entry(b, 3, 10);
	builder_entry(b, 3, 10);
	builder_return(b, 3, 100);
	builder_return(b, 3, 10);
	builder_return(b, 3, 10);
	builder_close(b);
	read_page(0);
	assert_int_equal(ask("function", "id", "0", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"calls\":3,\"returned\":3,\"total\":140,\"self\":140");
	expect("\"callers\":[[-1,1,140],[0,2,0]]");
}

static void a_call_that_is_open_is_shown_and_in_no_sum(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "o", 1000), 1000, 0, 64);

	(void)state;
	builder_entry(b, 1, 0);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 100);
	builder_close(b);
	read_page(0);
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"calls\":2,\"returned\":1,\"withoutReturn\":1");
	assert_int_equal(ask("timeline", "lanes", "0", NULL, NULL, NULL, NULL), GT_OK);
	expect("[[[0,110,0,1,1]],[[10,100,1]]]");
	assert_int_equal(ask("function", "id", "0", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"calls\":1,\"returned\":0,\"total\":0,\"self\":0");
}

/* A return whose entry was not recorded says when that was: all is read again for it. */
static void a_call_whose_entry_is_missing_begins_at_its_time(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "l", 1000), 1000, 0, 64);

	(void)state;
	builder_long_return(b, 1, 160, 1020, 0);
	builder_entry(b, 2, 40);
	builder_return(b, 2, 50);
	builder_close(b);
	read_page(0);
	assert_int_equal(ask("timeline", "lanes", "0", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"rows\":[[[20,140,0,1,2],[200,50,1]]]");
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"calls\":2,\"returned\":2");
}

static void lists_are_ordered_searched_and_limited(void **state)
{
	(void)state;
	fake_name(&fake, 1, "Alpha<x>");
	fake_name(&fake, 2, "beta\"\x01");
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("functions", "sort", "name", NULL, NULL, NULL, NULL), GT_OK);
	assert_true(strstr(out.buffer, "Alpha") < strstr(out.buffer, "beta"));
	expect("beta\\\"\\u0001");
	assert_int_equal(ask("functions", "sort", "max", "limit", "1", NULL, NULL), GT_OK);
	expect("\"found\":2");
	assert_null(strstr(out.buffer, "Alpha"));
	assert_int_equal(ask("functions", "q", "ALPHA", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"found\":1");
	assert_int_equal(ask("functions", "sort", "colour", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("functions", "limit", "-1", NULL, NULL, NULL, NULL), GT_EINVAL);
}

static void the_next_call_is_found_either_way(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("find", "id", "1", "from", "130", "way", "1"), GT_OK);
	expect("{\"start\":340,\"took\":300,\"lane\":0,\"depth\":1}");
	assert_int_equal(ask("find", "id", "1", "from", "130", "way", "-1"), GT_OK);
	expect("{\"start\":50,\"took\":1000,\"lane\":1,\"depth\":0}");
	assert_int_equal(ask("find", "id", "1", "from", "340", "way", "1"), GT_OK);
	assert_string_equal(out.buffer, "{}");
}

static void self_times_are_by_lane(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("selftimes", "by", "lane", NULL, NULL, NULL, NULL), GT_OK);
	/* f2 has the most, then f1; behind them all others. */
	expect("\"bars\":[[1,1000,[1000,0,0]],[0,640,[600,40,0]]]");
	assert_int_equal(ask("selftimes", "by", "cpu", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"bars\":[[0,1640,[1600,40,0]]]");
}

/* 600 calls, each two ticks longer than the one in it: the tree has 512 nodes. */
static void time_of_calls_too_deep_for_the_tree_is_the_deepest_nodes(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "deep", 1000), 1000, 0, 1200);

	(void)state;
	for (unsigned i = 0; i < 600; i++)
		builder_entry(b, 1 + i % 2, 1);
	for (unsigned i = 600; i-- > 0;)
		builder_return(b, 1 + i % 2, 1);
	builder_close(b);
	read_page(0);
	assert_int_equal(ask("selftimes", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	/* 256 nodes of f1; 255 of f2, and the deepest, with all that is in its call. */
	expect("\"bars\":[[0,1199,[512,687,0]]]");
}

static void questions_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	make_two_threads();
	read_page(0);
	assert_int_equal(ask("nothing", NULL, NULL, NULL, NULL, NULL, NULL), GT_ENOENT);
	assert_int_equal(ask("timeline", "from", "5", "to", "5", NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("timeline", "lanes", "0,", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("timeline", "lanes", "0-", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("timeline", "width", "0", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("timeline", "width", "99999999", NULL, NULL, NULL, NULL), GT_EINVAL);
	assert_int_equal(ask("timeline", "from", "18446744073709551615", NULL, NULL, NULL, NULL),
			 GT_EINVAL);
	assert_int_equal(ask("names", "ids", "0-4294967295", NULL, NULL, NULL, NULL), GT_OK);
	assert_string_equal(out.buffer, "{\"0\":\"f1\",\"1\":\"f2\"}");
	assert_int_equal(ask("names", "ids", "4294967296", NULL, NULL, NULL, NULL), GT_OK);
	assert_string_equal(out.buffer, "{}");
	assert_int_equal(ask("names", "ids", "a", NULL, NULL, NULL, NULL), GT_EINVAL);
}

static void many_calls_are_kept_in_little_memory(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "m", 1000), 1000, 0, 4096);

	(void)state;
	for (int i = 0; i < 2000; i++) {
		builder_entry(b, 2, 20);
		builder_return(b, 2, 30);
	}
	builder_close(b);
	read_page(500);
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"grain\":1024");
	assert_int_equal(ask("function", "id", "0", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"calls\":2000,\"returned\":2000,\"total\":60000");
}

/* More calls, functions and threads than there is room for at first: arrays are moved while the
 * helper works. */
static void functions_and_threads_come_while_it_is_read(void **state)
{
	char calls[80];

	(void)state;
	for (uint32_t thread = 0; thread < 150; thread++) {
		struct builder *b = fake_sub_buffer_of(
			&fake, fake_thread(&fake, 100 + thread, "t", 1000), 1000, 0, 512);

		for (uint32_t i = 0; i < 100; i++) {
			builder_entry(b, 1 + (thread * 7 + i) % 600, 10);
			builder_return(b, 1 + (thread * 7 + i) % 600, 30);
		}
		builder_close(b);
	}
	read_page(0);
	assert_int_equal(ask("overview", NULL, NULL, NULL, NULL, NULL, NULL), GT_OK);
	expect("\"calls\":15000,\"returned\":15000");
	for (uint32_t lane = 0; lane < 150; lane++) {
		snprintf(calls, sizeof(calls), "\"tid\":%u", 100 + lane);
		expect(calls);
	}
	expect("\"first\":10,\"last\":4000,\"calls\":100,\"depth\":1,\"self\":3000");
	assert_int_equal(ask("functions", "sort", "calls", "limit", "1", NULL, NULL), GT_OK);
	expect("\"found\":600");
	assert_int_equal(ask("flame", "of", "all", NULL, NULL, NULL, NULL), GT_OK);
	expect("\"all\":450000");
}

int main(void)
{
	int failed = 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(overview_tells_the_run, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_that_is_the_whole_run_does_not_stand_out,
						setup, teardown),
		cmocka_unit_test_setup_teardown(it_does_if_nothing_else_does, setup, teardown),
		cmocka_unit_test_setup_teardown(time_line_shows_each_call, setup, teardown),
		cmocka_unit_test_setup_teardown(flame_graphs_are_of_all_or_one, setup, teardown),
		cmocka_unit_test_setup_teardown(functions_have_sums_callers_and_slowest_calls,
						setup, teardown),
		cmocka_unit_test_setup_teardown(recursion_counts_once, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_that_is_open_is_shown_and_in_no_sum, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_call_whose_entry_is_missing_begins_at_its_time,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lists_are_ordered_searched_and_limited, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_next_call_is_found_either_way, setup, teardown),
		cmocka_unit_test_setup_teardown(self_times_are_by_lane, setup, teardown),
		cmocka_unit_test_setup_teardown(
			time_of_calls_too_deep_for_the_tree_is_the_deepest_nodes, setup, teardown),
		cmocka_unit_test_setup_teardown(questions_that_make_no_sense_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(many_calls_are_kept_in_little_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(functions_and_threads_come_while_it_is_read, setup,
						teardown),
	};

	failed += cmocka_run_group_tests_name("with a helper", tests, NULL, NULL);
	one_thread = true;
	failed += cmocka_run_group_tests_name("in one thread", tests, NULL, NULL);
	return failed;
}
