/* SPDX-License-Identifier: MIT */
/*
 * Linux's records, task by task, as the decoder reads them back: durations that the kernel measured,
 * interrupts that fall between a call and its record, losses, tasks that change their CPU, and the
 * kernel's calls below a program's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/decode_fast.h"
#include "linux/tasks.h"
#include "port/host/memory.h"

static struct gt_decode decode;
static struct gt_tasks *tasks;
static char said[4096];

/* One line a record: what, function, depth, and of a return its duration. */
static void say(const struct gt_record *record)
{
	size_t used = strlen(said);

	switch (record->kind) {
	case GT_RECORD_ENTRY:
		snprintf(said + used, sizeof(said) - used, "%u( d%u\n", record->function,
			 record->depth);
		break;
	case GT_RECORD_RETURN:
		snprintf(said + used, sizeof(said) - used, "%u) d%u %llu\n", record->function,
			 record->depth, (unsigned long long)(record->clock - record->start));
		break;
	case GT_RECORD_UNWOUND:
		snprintf(said + used, sizeof(said) - used, "%u~ d%u\n", record->function,
			 record->depth);
		break;
	case GT_RECORD_MARKER:
		snprintf(said + used, sizeof(said) - used, "%.*s cpu%u\n", (int)record->text_bytes,
			 record->text, record->cpu);
		break;
	case GT_RECORD_EVENT:
		snprintf(said + used, sizeof(said) - used, "event %llu of %u at %llu\n",
			 (unsigned long long)record->value, record->text_bytes,
			 (unsigned long long)record->clock);
		break;
	case GT_RECORD_LOST:
		snprintf(said + used, sizeof(said) - used, "lost %llu\n",
			 (unsigned long long)record->value);
		break;
	}
}

static int take_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer,
			   uint32_t words)
{
	struct gt_record record;
	struct gt_message message = { "" };

	(void)data;
	assert_int_equal(gt_decode_feed(&decode, sub_buffer, words, false, &message), GT_OK);
	while (gt_decode_next(&decode, &record) != GT_RECORD_NONE)
		say(&record);
	assert_int_equal(decode.damaged, 0);
	return GT_OK;
}

static int take_writer(void *data, const struct gt_writer *writer)
{
	(void)data;
	assert_int_equal(writer->tid, 7);
	return GT_OK;
}

static const struct gt_sink sink = { .sub_buffer = take_sub_buffer, .writer = take_writer };

static int setup(void **state)
{
	const struct gt_tasks_options options = { .sink = &sink,
						  .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
						  .slack = 1000 };

	(void)state;
	said[0] = '\0';
	gt_decode_init(&decode, &gt_host_memory);
	return gt_tasks_create(&options, &tasks);
}

static int teardown(void **state)
{
	(void)state;
	gt_tasks_destroy(tasks);
	gt_decode_fini(&decode);
	return 0;
}

static struct gt_tasks_moment at(uint64_t clock, uint32_t cpu)
{
	return (struct gt_tasks_moment){ .clock = clock, .cpu = cpu, .tid = 7 };
}

static void enter(uint64_t clock, uint32_t function, uint32_t depth)
{
	struct gt_tasks_moment moment = at(clock, 0);

	assert_int_equal(gt_tasks_enter(tasks, &moment, function, depth), GT_OK);
}

/* The record comes at `clock`; the call was from `start` to `end`. */
static void leave(uint64_t clock, uint32_t function, uint32_t depth, uint64_t start, uint64_t end)
{
	struct gt_tasks_moment moment = at(clock, 0);
	struct gt_tasks_return call = { function, depth, start, end - start };

	assert_int_equal(gt_tasks_leave(tasks, &moment, &call), GT_OK);
}

static void user(uint64_t clock, uint32_t function, uint32_t depth, uint64_t start)
{
	struct gt_tasks_moment moment = at(clock, 0);
	struct gt_tasks_return call = { function, depth, start, clock - start };

	moment.is_user = true;
	assert_int_equal(start ? gt_tasks_leave(tasks, &moment, &call)
			       : gt_tasks_enter(tasks, &moment, function, depth),
			 GT_OK);
}

static void expect(const char *wanted)
{
	struct gt_tasks_totals totals;

	assert_int_equal(gt_tasks_finish(tasks, &totals), GT_OK);
	assert_string_equal(said, wanted);
}

static void calls_last_as_long_as_the_kernel_measured(void **state)
{
	(void)state;
	enter(10050, 1, 0);
	enter(10160, 2, 1);
	leave(10260, 2, 1, 10110, 10210);
	leave(10400, 1, 0, 10000, 10350);
	expect("1( d0\n2( d1\n2) d1 100\n1) d0 350\n");
}

static void an_interrupt_before_the_record_of_an_entry_stands_in_the_call(void **state)
{
	(void)state;
	enter(10050, 1, 0);
	leave(10100, 1, 0, 10000, 10060); /* the clocks are one */
	enter(20050, 2, 0);
	enter(20500, 9, 2); /* an interrupt, in the call of 3, whose record comes next */
	leave(20600, 9, 2, 20460, 20560);
	enter(20700, 3, 1);
	leave(20900, 3, 1, 20100, 20850);
	leave(21000, 2, 0, 20000, 20950);
	expect("1( d0\n1) d0 60\n2( d0\n3( d1\n9( d2\n9) d2 100\n3) d1 750\n2) d0 950\n");
}

static void an_interrupt_before_the_record_of_a_return_stands_behind_the_call(void **state)
{
	(void)state;
	enter(10050, 1, 0);
	enter(10150, 2, 1);
	enter(10300, 9, 1); /* as deep as 2, which has returned */
	leave(10400, 9, 1, 10270, 10370);
	leave(10500, 2, 1, 10110, 10210);
	leave(10600, 1, 0, 10000, 10550);
	expect("1( d0\n2( d1\n2) d1 100\n9( d1\n9) d1 100\n1) d0 550\n");
}

static void a_call_is_one_whatever_its_two_clocks_say(void **state)
{
	(void)state;
	enter(1000050, 4, 0); /* the clock of calls is 1000000 behind that of records */
	leave(1000150, 4, 0, 40, 140);
	enter(1010050, 1, 0);
	enter(1070050, 2, 1); /* the machine stood still before this record */
	leave(1070150, 2, 1, 10060, 70140);
	leave(1070200, 1, 0, 10040, 70190);
	/* so far apart as clocks drift at most is believed: 20 here */
	enter(1090050, 1, 0);
	enter(1090250, 3, 1);
	leave(1090350, 3, 1, 90240, 90340);
	leave(1090400, 1, 0, 90040, 90390);
	expect("4( d0\n4) d0 100\n1( d0\n2( d1\n2) d1 60080\n1) d0 60170\n"
	       "1( d0\n3( d1\n3) d1 100\n1) d0 350\n");
}

static void a_return_without_its_entry_keeps_its_time(void **state)
{
	struct gt_tasks_moment moment = at(30000, 0);

	(void)state;
	enter(10050, 1, 0);
	enter(10150, 2, 1);
	leave(10250, 2, 1, 10110, 10210);
	assert_int_equal(gt_tasks_lost(tasks, &moment, 12), GT_OK);
	leave(30100, 3, 1, 29000, 30050); /* in a later call of 1 */
	leave(30200, 1, 0, 28000, 30150);
	expect("1( d0\n2( d1\n2) d1 100\nlost 12\n3) d1 1050\n0~ d0\n1) d0 2150\n");
}

static void a_task_takes_its_calls_to_another_cpu(void **state)
{
	struct gt_tasks_moment moment = at(10100, 5);

	(void)state;
	enter(10050, 1, 0);
	assert_int_equal(gt_tasks_text(tasks, &moment, "hello", 5, true), GT_OK);
	leave(10400, 1, 0, 10000, 10350);
	expect("1( d0\nhello cpu5\n1) d0 350\n");
}

static void the_kernels_calls_stand_below_the_programs(void **state)
{
	(void)state;
	user(10000, 1, 0, 0);
	user(10100, 2, 1, 0);
	enter(10250, 8, 0);
	enter(10300, 9, 1);
	leave(10400, 9, 1, 10290, 10390);
	leave(10500, 8, 0, 10240, 10490);
	user(10700, 2, 1, 10100);
	enter(10850, 8, 0);
	leave(10900, 8, 0, 10840, 10890);
	user(11000, 1, 0, 10000);
	expect("1( d0\n2( d1\n8( d2\n9( d3\n9) d3 100\n8) d2 250\n2) d1 600\n8( d1\n8) d1 50\n"
	       "1) d0 1000\n");
}

static void a_programs_event_stands_where_it_happened_in_its_own_words(void **state)
{
	const uint64_t fields[] = { 5, 0 };
	const struct gt_tasks_moment moment = at(10150, 0);
	struct gt_tasks_words words = { .type = GRAFTRACE_EVENT_PROBE,
					.head = { 10150, 3 },
					.head_count = 2,
					.bytes = fields,
					.byte_count = sizeof(fields) };

	(void)state;
	user(10000, 1, 0, 0);
	assert_int_equal(gt_tasks_words(tasks, &moment, &words), GT_OK);
	enter(10250, 8, 0);
	leave(10500, 8, 0, 10240, 10490);
	user(11000, 1, 0, 10000);
	expect("1( d0\nevent 3 of 16 at 10150\n8( d1\n8) d1 250\n1) d0 1000\n");
}

static void words_that_fit_in_no_sub_buffer_are_damaged(void **state)
{
	static const uint64_t many[8192];
	const struct gt_tasks_moment moment = at(10150, 0);
	struct gt_tasks_words words = { .type = GRAFTRACE_EVENT_PROBE,
					.head = { 10150, 3 },
					.head_count = 2,
					.bytes = many,
					.byte_count = sizeof(many) };
	struct gt_tasks_totals totals;

	(void)state;
	user(10000, 1, 0, 0);
	assert_int_equal(gt_tasks_words(tasks, &moment, &words), GT_OK);
	user(11000, 1, 0, 10000);
	assert_int_equal(gt_tasks_finish(tasks, &totals), GT_OK);
	assert_int_equal(totals.damaged, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(calls_last_as_long_as_the_kernel_measured),
		TEST(an_interrupt_before_the_record_of_an_entry_stands_in_the_call),
		TEST(an_interrupt_before_the_record_of_a_return_stands_behind_the_call),
		TEST(a_call_is_one_whatever_its_two_clocks_say),
		TEST(a_return_without_its_entry_keeps_its_time),
		TEST(a_task_takes_its_calls_to_another_cpu),
		TEST(the_kernels_calls_stand_below_the_programs),
		TEST(a_programs_event_stands_where_it_happened_in_its_own_words),
		TEST(words_that_fit_in_no_sub_buffer_are_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
