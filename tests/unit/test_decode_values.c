/* SPDX-License-Identifier: MIT */
/* Values of calls, decoded: they come before their calls, and are given with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/decoding.h"

/* The values of a call, before it: `first` and the number behind it. */
static void put_values(struct builder *b, enum graftrace_event type, uint32_t function,
		       uint64_t faults, uint64_t first)
{
	builder_word(b, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, (uint32_t)type << 16 | 3));
	builder_word(b, faults << 32 | function);
	builder_word(b, first);
	builder_word(b, first + 1);
}

static void expect_values(uint64_t faults, uint64_t first)
{
	struct gt_record values = { 0 };
	uint64_t words[2];

	assert_true(gt_record_values(&record, &values));
	assert_int_equal(values.start, faults);
	assert_int_equal(values.text_bytes, sizeof(words));
	memcpy(words, values.text, sizeof(words));
	assert_int_equal(words[0], first);
	assert_int_equal(words[1], first + 1);
}

static void expect_no_values(void)
{
	struct gt_record values;

	assert_false(gt_record_values(&record, &values));
}

static void values_come_with_their_calls(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 1, 2, 70);
	builder_entry(&b, 1, 10);
	builder_entry(&b, 2, 5);
	put_values(&b, GRAFTRACE_EVENT_RESULT, 2, 0, 80);
	builder_return(&b, 2, 3);
	builder_return(&b, 1, 2);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_values(2, 70);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect_no_values();
	expect_return(2, 1, 3, 0);
	expect_values(0, 80);
	expect_return(1, 0, 10, 3);
	expect_no_values();
	expect_none();
	builder_free(&b);
}

static void values_stay_while_a_handler_records(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 1, 0, 70);
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 2, 0, 80);
	builder_entry(&b, 2, 1);
	put_values(&b, GRAFTRACE_EVENT_RESULT, 2, 0, 90);
	builder_return(&b, 2, 1);
	builder_entry(&b, 1, 1);
	feed(&b);
	expect(GT_RECORD_ENTRY, 2, 0);
	expect_values(0, 80);
	expect_return(2, 0, 1, 0);
	expect_values(0, 90);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_values(0, 70);
	expect_none();
	builder_free(&b);
}

static void values_stay_while_a_handler_makes_many_calls(void **state)
{
	struct builder b = builder_make_of(1000, 256);
	(void)state;
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 1, 0, 70);
	for (uint64_t i = 0; i < 10; i++) {
		put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 2, 0, 80 + i);
		builder_entry(&b, 2, 1);
		put_values(&b, GRAFTRACE_EVENT_RESULT, 2, 0, 90 + i);
		builder_return(&b, 2, 1);
	}
	builder_entry(&b, 1, 1);
	feed(&b);
	for (uint64_t i = 0; i < 10; i++) {
		expect(GT_RECORD_ENTRY, 2, 0);
		expect_values(0, 80 + i);
		expect_return(2, 0, 1, 0);
		expect_values(0, 90 + i);
	}
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_values(0, 70);
	expect_none();
	builder_free(&b);
}

static void values_wait_for_the_next_sub_buffer(void **state)
{
	struct builder b = builder_make(1000), next = builder_make(2000);
	(void)state;
	next.sub_buffer->sequence = 1;
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 1, 0, 70);
	feed(&b);
	expect_none();
	builder_free(&b);
	builder_entry(&next, 1, 1);
	feed(&next);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_values(0, 70);
	builder_free(&next);
}

static void values_of_no_call_are_dropped(void **state)
{
	struct builder b = builder_make_of(1000, 2048), next = builder_make(9000);
	(void)state;
	/* a gap: whose it was nobody knows */
	next.sub_buffer->sequence = 5;
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 7, 0, 70);
	for (uint32_t i = 0; i < 300; i++) {
		builder_entry(&b, 1, 1);
		builder_return(&b, 1, 1);
	}
	builder_entry(&b, 7, 1);
	builder_return(&b, 7, 1);
	put_values(&b, GRAFTRACE_EVENT_ARGUMENTS, 7, 0, 70);
	feed(&b);
	for (uint32_t i = 0; i < 300; i++) {
		expect(GT_RECORD_ENTRY, 1, 0);
		expect_no_values();
		expect_return(1, 0, 1, 0);
	}
	expect(GT_RECORD_ENTRY, 7, 0);
	expect_no_values();
	expect_return(7, 0, 1, 0);
	expect_none();
	builder_entry(&next, 7, 1);
	feed(&next);
	assert_int_equal(gt_decode_next(&decode, &record), GT_RECORD_GAP);
	expect(GT_RECORD_ENTRY, 7, 0);
	expect_no_values();
	builder_free(&b);
	builder_free(&next);
}

static void values_of_any_length_are_within_bounds(void **state)
{
	struct builder b = builder_make_of(1000, 256);
	struct gt_record values;
	(void)state;
	builder_word(&b, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						GRAFTRACE_EVENT_ARGUMENTS << 16 | 100));
	for (uint64_t i = 0; i < 100; i++)
		builder_word(&b, 3);
	builder_entry(&b, 3, 1);
	feed(&b);
	expect(GT_RECORD_ENTRY, 3, 0);
	assert_true(gt_record_values(&record, &values));
	assert_int_equal(values.text_bytes, (GT_DECODE_VALUE_WORDS - 1) * 8);
	builder_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DECODING_TEST(values_come_with_their_calls),
		DECODING_TEST(values_stay_while_a_handler_records),
		DECODING_TEST(values_stay_while_a_handler_makes_many_calls),
		DECODING_TEST(values_wait_for_the_next_sub_buffer),
		DECODING_TEST(values_of_no_call_are_dropped),
		DECODING_TEST(values_of_any_length_are_within_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
