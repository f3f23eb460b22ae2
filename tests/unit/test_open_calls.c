/* SPDX-License-Identifier: MIT */
/* The calls that were open at the end of scripted traces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "export/open_calls.h"
#include "tests/unit/fake_target.h"

static struct gt_open_calls *open_calls;

static int setup(void **state)
{
	(void)state;
	fake_init(&fake);
	open_calls = NULL;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gt_open_calls_destroy(open_calls);
	fake_free(&fake);
	return 0;
}

static void the_open_calls_stand_outermost_first(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_return(b, 2, 10);
	builder_entry(b, 3, 10);
	builder_entry(b, 2, 10);
	builder_close(b);
	assert_int_equal(gt_open_calls_make(&fake.target, 0, &open_calls, NULL), 0);
	assert_int_equal(open_calls->count, 1);
	assert_int_equal(open_calls->threads[0].count, 3);
	assert_int_equal(open_calls->threads[0].calls[0].function, 1);
	assert_int_equal(open_calls->threads[0].calls[1].function, 3);
	assert_int_equal(open_calls->threads[0].calls[2].function, 2);
	assert_int_equal(open_calls->threads[0].calls[2].depth, 2);
	assert_int_equal(open_calls->threads[0].calls[1].start, 1040);
	assert_int_equal(open_calls->last, 1050);
}

static void threads_without_an_open_call_are_left_out_and_the_latest_is_first(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 1, "early", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 2, "done", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_return(b, 1, 500);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 3, "late", 1000), 1000, 0, 64);
	builder_entry(b, 2, 100);
	builder_close(b);
	assert_int_equal(gt_open_calls_make(&fake.target, 0, &open_calls, NULL), 0);
	assert_int_equal(open_calls->count, 2);
	assert_string_equal(open_calls->threads[0].writer.comm, "late");
	assert_string_equal(open_calls->threads[1].writer.comm, "early");
}

static void contexts_of_one_thread_come_in_order_of_their_numbers(void **state)
{
	static const uint32_t contexts[] = { 0, 7, 8, 9 };

	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	for (uint32_t i = 0; i < 4; i++) {
		if (i)
			builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, contexts[i]);
		builder_entry(b, i + 1, 10);
	}
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_close(b);
	assert_int_equal(gt_open_calls_make(&fake.target, 0, &open_calls, NULL), 0);
	assert_int_equal(open_calls->count, 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(open_calls->threads[i].context, contexts[i]);
		assert_int_equal(open_calls->threads[i].calls[0].function, i + 1);
	}
}

static void text_shows_the_innermost_calls_when_there_are_too_many(void **state)
{
	char *text;
	size_t bytes;

	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	for (uint32_t i = 1; i <= 5; i++)
		builder_entry(b, i, 10);
	builder_close(b);
	assert_int_equal(gt_open_calls_make(&fake.target, 0, &open_calls, NULL), 0);
	assert_int_equal(gt_open_calls_format(open_calls, 1, 2, &text, &bytes), 0);
	assert_non_null(strstr(text, "thread 86 of process"));
	assert_non_null(strstr(text, "3 calls around these"));
	assert_null(strstr(text, "f3  "));
	assert_true(strstr(text, "f4  ") < strstr(text, "f5  "));
	assert_int_equal(strlen(text), bytes);
	free(text);
}

static void only_one_process_is_shown_when_asked_for(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_close(b);
	assert_int_equal(gt_open_calls_make(&fake.target, 999999, &open_calls, NULL), 0);
	assert_int_equal(open_calls->count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_open_calls_stand_outermost_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			threads_without_an_open_call_are_left_out_and_the_latest_is_first, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			contexts_of_one_thread_come_in_order_of_their_numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(
			text_shows_the_innermost_calls_when_there_are_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(only_one_process_is_shown_when_asked_for, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
