/* SPDX-License-Identifier: MIT */
/* A writer's contexts, decoded: each has its own calls, whoever interrupts whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/decoding.h"

static void contexts_keep_their_own_frames(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 7);
	builder_entry(&b, 2, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_entry(&b, 3, 10);
	builder_return(&b, 3, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 7);
	builder_long_return(&b, 2, 10, 1020, 0);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_long_return(&b, 1, 10, 1010, 0);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_CONTEXT, 0, 0);
	assert_int_equal(record.value, 7);
	expect(GT_RECORD_ENTRY, 2, 0);
	assert_int_equal(record.context, 7);
	expect(GT_RECORD_CONTEXT, 0, 1);
	expect(GT_RECORD_ENTRY, 3, 1);
	expect_return(3, 1, 10, 0);
	expect(GT_RECORD_CONTEXT, 0, 1);
	expect_return(2, 0, 30, 0);
	expect(GT_RECORD_CONTEXT, 0, 1);
	expect_return(1, 0, 50, 10);
	builder_free(&b);
}

static void the_depth_told_behind_a_context_is_no_loss(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 7);
	builder_special(&b, GRAFTRACE_SPECIAL_RESUMED, 3);
	builder_entry(&b, 2, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_special(&b, GRAFTRACE_SPECIAL_RESUMED, 1);
	builder_long_return(&b, 1, 10, 1010, 0);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_CONTEXT, 0, 0);
	expect(GT_RECORD_ENTRY, 2, 3);
	expect(GT_RECORD_CONTEXT, 0, 1);
	expect_return(1, 0, 20, 0);
	assert_int_equal(record.flags, GT_RECORD_ENTRY_SEEN);
	builder_free(&b);
}

/* A handler's context ends at the end of a sub-buffer; the next one begins in the context that the
 * handler interrupted, of which `open` and nothing else is said to be open. */
static void begin_with_handler(struct builder *a, struct builder *b, uint32_t open)
{
	builder_entry(a, 1, 10);
	builder_entry(a, 3, 10);
	builder_special(a, GRAFTRACE_SPECIAL_CONTEXT, 7);
	builder_entry(a, 4, 10);
	builder_return(a, 4, 10);
	feed(a);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 3, 1);
	expect(GT_RECORD_CONTEXT, 0, 0);
	expect(GT_RECORD_ENTRY, 4, 0);
	expect_return(4, 0, 10, 0);
	expect_none();
	b->sub_buffer->sequence = 1;
	builder_open(b, 1, 1010);
	builder_open(b, open, 1015);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 0);
}

/* The handler came between the records of a tail call and its frame, which the header still has as
 * it was before. */
static void a_header_that_knows_less_than_was_followed_changes_no_calls(void **state)
{
	struct builder a = builder_make(1000), b = builder_make(2000);
	(void)state;
	begin_with_handler(&a, &b, 2);
	builder_return(&b, 3, 10);
	builder_long_return(&b, 1, 10, 1010, 0);
	feed(&b);
	expect(GT_RECORD_CONTEXT, 0, 2);
	expect_return(3, 1, 990, 0);
	expect_return(1, 0, 1010, 990);
	expect_none();
	assert_int_equal(decode.damaged, 0);
	builder_free(&a);
	builder_free(&b);
}

static void where_calls_may_be_missing_the_header_tells_them(void **state)
{
	struct builder a = builder_make(1000), b = builder_make(2000);
	(void)state;
	begin_with_handler(&a, &b, 2);
	builder_special(&b, GRAFTRACE_SPECIAL_RESUMED, 2);
	builder_long_return(&b, 2, 10, 1015, 1);
	builder_long_return(&b, 1, 10, 1010, 0);
	feed(&b);
	expect(GT_RECORD_CONTEXT, 0, 2);
	expect(GT_RECORD_UNWOUND, 3, 1);
	expect(GT_RECORD_RETURN, 2, 1);
	assert_int_equal(record.start, 1015);
	assert_false(record.flags & GT_RECORD_START_UNKNOWN);
	expect(GT_RECORD_RETURN, 1, 0);
	expect_none();
	assert_int_equal(decode.damaged, 0);
	builder_free(&a);
	builder_free(&b);
}

/* Sub-buffers are missing since the interrupted context ran: the header tells more. */
static void after_a_gap_the_header_tells_a_contexts_calls(void **state)
{
	struct builder a = builder_make(1000), b = builder_make(2000), c = builder_make(1500);
	(void)state;
	begin_with_handler(&a, &b, 2);
	c.sub_buffer->sequence = 5;
	c.sub_buffer->context = 7;
	builder_entry(&c, 4, 10);
	builder_return(&c, 4, 10);
	feed(&c);
	expect(GT_RECORD_GAP, 0, 0);
	expect(GT_RECORD_ENTRY, 4, 0);
	expect_return(4, 0, 10, 0);
	expect_none();
	b.sub_buffer->sequence = 6;
	builder_long_return(&b, 2, 10, 1015, 1);
	feed(&b);
	expect(GT_RECORD_UNWOUND, 3, 1);
	expect(GT_RECORD_CONTEXT, 0, 2);
	expect(GT_RECORD_RETURN, 2, 1);
	assert_false(record.flags & GT_RECORD_START_UNKNOWN);
	assert_int_equal(decode.damaged, 0);
	builder_free(&a);
	builder_free(&b);
	builder_free(&c);
}

static void of_many_contexts_those_that_rest_longest_are_forgotten(void **state)
{
	struct builder b = builder_make_of(1000, 4000);
	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, i);
		builder_entry(&b, i + 1, 1);
	}
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 999);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 5);
	builder_long_return(&b, 6, 1, 1006, 0);
	feed(&b);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(gt_decode_next(&decode, &record), GT_RECORD_CONTEXT);
		expect(GT_RECORD_ENTRY, i + 1, 0);
	}
	expect(GT_RECORD_CONTEXT, 0, 1);
	expect(GT_RECORD_CONTEXT, 0, 0);
	expect(GT_RECORD_RETURN, 6, 0);
	assert_int_equal(record.start, 1006);
	assert_false(record.flags & GT_RECORD_ENTRY_SEEN);
	assert_true(decode.context_count <= GT_DECODE_CONTEXTS);
	builder_free(&b);
}

/* A kernel's CONTEXT has no clock of its own: it gets that of what comes next, but not of what another
 * thread does. */
static void a_kernels_thread_is_told_with_the_clock_of_what_it_does(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	b.sub_buffer->pid = 0;
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 7);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, GRAFTRACE_CONTEXT_INTERRUPT);
	builder_entry(&b, 1, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 8);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 9);
	builder_entry(&b, 2, 10);
	feed(&b);
	expect(GT_RECORD_CONTEXT, 0, 0); /* whom the sub-buffer begins with */
	expect(GT_RECORD_CONTEXT, 0, 0);
	assert_int_equal(record.value, 7);
	assert_int_equal(record.clock, 1010); /* the interrupt's is its own */
	expect(GT_RECORD_CONTEXT, 0, 0);
	assert_int_equal(record.clock, 1010);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_CONTEXT, 0, 0);
	assert_int_equal(record.value, 8);
	assert_int_equal(record.clock, 1010); /* it did nothing */
	expect(GT_RECORD_CONTEXT, 0, 0);
	assert_int_equal(record.value, 9);
	assert_int_equal(record.clock, 1020);
	expect(GT_RECORD_ENTRY, 2, 0);
	builder_free(&b);
}

static void a_decoder_can_be_used_for_another_writer(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 9);
	builder_entry(&b, 2, 1);
	feed(&b);
	while (gt_decode_next(&decode, &record))
		;
	gt_decode_reset(&decode);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_CONTEXT, 0, 0);
	expect(GT_RECORD_ENTRY, 2, 0);
	builder_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DECODING_TEST(contexts_keep_their_own_frames),
		DECODING_TEST(the_depth_told_behind_a_context_is_no_loss),
		DECODING_TEST(a_header_that_knows_less_than_was_followed_changes_no_calls),
		DECODING_TEST(where_calls_may_be_missing_the_header_tells_them),
		DECODING_TEST(after_a_gap_the_header_tells_a_contexts_calls),
		DECODING_TEST(of_many_contexts_those_that_rest_longest_are_forgotten),
		DECODING_TEST(a_kernels_thread_is_told_with_the_clock_of_what_it_does),
		DECODING_TEST(a_decoder_can_be_used_for_another_writer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
