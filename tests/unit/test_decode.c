/* SPDX-License-Identifier: MIT */
/* One writer's words, and the records that come of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/word_walk.h"
#include "tests/unit/decoding.h"

static void calls_nest_and_know_their_children(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 10);
	builder_entry(&b, 2, 5);
	builder_return(&b, 2, 7);
	builder_entry(&b, 3, 1);
	builder_return(&b, 3, 2);
	builder_return(&b, 1, 4);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	assert_int_equal(record.clock, 1010);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect_return(2, 1, 7, 0);
	assert_int_equal(record.flags, GT_RECORD_ENTRY_SEEN);
	expect(GT_RECORD_ENTRY, 3, 1);
	expect_return(3, 1, 2, 0);
	expect_return(1, 0, 19, 9);
	assert_int_equal(record.clock, 1029);
	expect_none();
	builder_free(&b);
}

static void clocks_run_on_past_their_32_bits(void **state)
{
	uint64_t start = 0xfffffff0ull;
	struct builder b = builder_make(start);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_entry(&b, 2, 0x20);
	builder_return(&b, 2, 0x7fffffff);
	builder_return(&b, 1, 0x500000000ll);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 2, 1);
	assert_int_equal(record.clock, start + 0x21);
	expect_return(2, 1, 0x7fffffff, 0);
	expect_return(1, 0, 0x500000000ull + 0x7fffffff + 0x20, 0x7fffffff);
	builder_free(&b);
}

static void a_word_may_stand_before_the_clock_word_that_it_belongs_behind(void **state)
{
	struct builder b = builder_make(0x1fffffff0ull);
	(void)state;
	builder_entry(&b, 1, 5);
	builder_word(&b, graftrace_word(2, 0, 7));
	builder_word(&b, graftrace_word(3, 0, 3));
	builder_special(&b, GRAFTRACE_SPECIAL_CLOCK, 2);
	builder_word(&b, graftrace_word(3, 1, 5));
	builder_word(&b, graftrace_word(2, 1, 0xf0000000));
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	assert_int_equal(record.clock, 0x1fffffff5ull);
	expect(GT_RECORD_ENTRY, 2, 1);
	assert_int_equal(record.clock, 0x200000007ull);
	expect(GT_RECORD_ENTRY, 3, 2);
	assert_int_equal(record.clock, 0x200000003ull);
	expect_return(3, 2, 2, 0);
	expect(GT_RECORD_RETURN, 2, 1);
	assert_int_equal(record.clock, 0x2f0000000ull);
	builder_free(&b);
}

static void a_nested_writers_clock_may_run_backwards(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 100);
	builder_word(&b, graftrace_word(2, 0, 1090));
	builder_word(&b, graftrace_word(2, 1, 1080));
	builder_return(&b, 1, 50);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 2, 1);
	assert_int_equal(record.clock, 1090);
	expect_return(2, 1, 0, 0);
	expect_return(1, 0, 50, 0);
	builder_free(&b);
}

static void holes_and_pads_are_skipped(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_word(&b, 0);
	builder_entry(&b, 1, 1);
	builder_special(&b, GRAFTRACE_SPECIAL_PAD, 2);
	builder_word(&b, graftrace_word(9, 0, 1));
	builder_word(&b, graftrace_word(9, 0, 2));
	builder_word(&b, 0);
	builder_special(&b, GRAFTRACE_SPECIAL_PAD, 0);
	builder_return(&b, 1, 1);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_return(1, 0, 1, 0);
	expect_none();
	assert_int_equal(decode.holes, 2);
	assert_int_equal(decode.damaged, 0);
	builder_free(&b);
}

static void a_call_goes_on_across_sub_buffers(void **state)
{
	struct builder a = builder_make(1000), b = builder_make(2000);
	(void)state;
	builder_entry(&a, 1, 10);
	builder_entry(&a, 2, 10);
	builder_return(&a, 2, 10);
	feed(&a);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect_return(2, 1, 10, 0);
	expect_none();
	b.sub_buffer->sequence = 1;
	builder_open(&b, 1, 1010);
	builder_long_return(&b, 1, 10, 1010, 0);
	feed(&b);
	expect_return(1, 0, 1000, 10);
	assert_int_equal(record.flags, GT_RECORD_ENTRY_SEEN);
	expect_none();
	builder_free(&a);
	builder_free(&b);
}

static void a_sub_buffer_can_be_read_alone(void **state)
{
	struct builder b = builder_make_of(5000, 128);
	(void)state;
	b.sub_buffer->sequence = 77;
	for (uint32_t i = 0; i < 20; i++)
		builder_open(&b, 100 + i, 1000 + i);
	builder_entry(&b, 5, 1);
	builder_return(&b, 5, 1);
	for (uint32_t i = 20; i-- > 0;)
		builder_long_return(&b, 100 + i, 1, 1000 + i, i);
	feed(&b);
	expect(GT_RECORD_ENTRY, 5, 20);
	expect_return(5, 20, 1, 0);
	for (uint32_t i = 20; i-- > 0;) {
		expect(GT_RECORD_RETURN, 100 + i, i);
		assert_int_equal(record.start, 1000 + i);
		assert_true(record.flags & GT_RECORD_CHILDREN_UNKNOWN);
		assert_false(record.flags & (GT_RECORD_START_UNKNOWN | GT_RECORD_ENTRY_SEEN));
	}
	expect_none();
	assert_int_equal(decode.depth, 0);
	builder_free(&b);
}

static void missing_sub_buffers_are_said_and_calls_still_open_go_on(void **state)
{
	struct builder a = builder_make(1000), b = builder_make(9000);
	(void)state;
	builder_entry(&a, 1, 10);
	builder_entry(&a, 2, 10);
	builder_entry(&a, 3, 10);
	feed(&a);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect(GT_RECORD_ENTRY, 3, 2);
	b.sub_buffer->sequence = 4;
	b.sub_buffer->lost[GRAFTRACE_LOST_OVERRUN] = 99;
	builder_open(&b, 1, 1010);
	builder_open(&b, 4, 8000);
	builder_long_return(&b, 4, 10, 8000, 1);
	builder_long_return(&b, 1, 10, 1010, 0);
	feed(&b);
	expect(GT_RECORD_GAP, 0, 3);
	assert_int_equal(record.value, 3);
	assert_int_equal(record.start, 99);
	/* What became of the two inner ones nobody saw. */
	expect(GT_RECORD_UNWOUND, 3, 2);
	assert_int_equal(record.flags, GT_RECORD_UNSEEN | GT_RECORD_FIRST | GT_RECORD_ENTRY_SEEN);
	assert_int_equal(record.value, 2);
	expect(GT_RECORD_UNWOUND, 2, 1);
	expect(GT_RECORD_RETURN, 4, 1);
	assert_int_equal(record.clock - record.start, 1010);
	assert_false(record.flags & GT_RECORD_ENTRY_SEEN);
	expect(GT_RECORD_RETURN, 1, 0);
	assert_int_equal(record.flags, GT_RECORD_ENTRY_SEEN | GT_RECORD_CHILDREN_UNKNOWN);
	expect_none();
	builder_free(&a);
	builder_free(&b);
}

static void unwound_calls_come_innermost_first(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	for (uint32_t i = 1; i <= 4; i++)
		builder_entry(&b, i, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_UNWOUND, 2);
	builder_return(&b, 2, 10);
	builder_return(&b, 1, 10);
	feed(&b);
	for (uint32_t i = 1; i <= 4; i++)
		expect(GT_RECORD_ENTRY, i, i - 1);
	expect(GT_RECORD_UNWOUND, 4, 3);
	assert_int_equal(record.value, 2);
	assert_int_equal(record.flags, GT_RECORD_FIRST | GT_RECORD_ENTRY_SEEN);
	expect(GT_RECORD_UNWOUND, 3, 2);
	assert_int_equal(record.value, 1);
	assert_int_equal(record.flags, GT_RECORD_ENTRY_SEEN);
	expect_return(2, 1, 30, 10);
	expect_return(1, 0, 50, 30);
	builder_free(&b);
}

static void two_hundred_thousand_frames_return_one_by_one(void **state)
{
	enum { DEPTH = 200000 };
	struct builder b = builder_make_of(1000, 2 * DEPTH);
	(void)state;
	for (uint32_t i = 0; i < DEPTH; i++)
		builder_entry(&b, 1 + i % 1000, 1);
	for (uint32_t i = DEPTH; i-- > 0;)
		builder_return(&b, 1 + i % 1000, 1);
	feed(&b);
	for (uint32_t i = 0; i < DEPTH; i++)
		expect(GT_RECORD_ENTRY, 1 + i % 1000, i);
	for (uint32_t i = DEPTH; i-- > 0;)
		expect(GT_RECORD_RETURN, 1 + i % 1000, i);
	assert_int_equal(record.clock - record.start, 2 * DEPTH - 1);
	expect_none();
	builder_free(&b);
}

static void without_memory_the_innermost_frames_are_kept(void **state)
{
	struct builder b = builder_make_of(1000, 400);
	(void)state;
	memory_limit = 4096;
	for (uint32_t i = 0; i < 200; i++)
		builder_entry(&b, 1 + i, 1);
	for (uint32_t i = 200; i-- > 0;)
		builder_return(&b, 1 + i, 1);
	feed(&b);
	for (uint32_t i = 0; i < 200; i++)
		expect(GT_RECORD_ENTRY, 1 + i, i);
	for (uint32_t i = 200; i-- > 0;) {
		expect(GT_RECORD_RETURN, 1 + i, i);
		if (i >= 150)
			assert_int_equal(record.flags, GT_RECORD_ENTRY_SEEN);
		if (i == 0)
			assert_true(record.flags & GT_RECORD_START_UNKNOWN);
	}
	assert_true(memory_most <= 4096);
	builder_free(&b);
}

static void a_threshold_recording_has_returns_only(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_long_return(&b, 3, 100, 1050, 5);
	builder_long_return(&b, 2, 100, 1020, 2);
	builder_long_return(&b, 4, 100, 1220, 7);
	builder_long_return(&b, 1, 100, 1010, 0);
	feed(&b);
	expect(GT_RECORD_RETURN, 3, 5);
	expect(GT_RECORD_RETURN, 2, 2);
	expect(GT_RECORD_RETURN, 4, 7);
	expect(GT_RECORD_RETURN, 1, 0);
	assert_int_equal(record.clock - record.start, 390);
	assert_int_equal(decode.damaged, 0);
	builder_free(&b);
}

/* An interrupt between an entry's word and its frame may have brought a new high half. */
static void a_long_return_whose_entry_is_told_one_half_too_late_is_its_own(void **state)
{
	struct builder b = builder_make((1ull << 33) - 100);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_entry(&b, 2, 1);
	builder_entry(&b, 2, 1);
	builder_long_return(&b, 2, 200, (1ull << 33) - 97 + (1ull << 32), 1);
	builder_long_return(&b, 2, 6ll << 32, (1ull << 33) - 98 + (1ull << 32), 1);
	builder_long_return(&b, 1, 10, (1ull << 33) - 99, 0);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect(GT_RECORD_ENTRY, 2, 2);
	expect_return(2, 2, 200, 0);
	expect_return(2, 1, 201 + (6ull << 32), 200);
	expect(GT_RECORD_RETURN, 1, 0);
	assert_int_equal(decode.damaged, 0);
	builder_free(&b);
}

/* What a handler recorded stands behind the word that it interrupted, and before the CLOCK word. */
static void a_word_that_belongs_behind_its_clock_moves_nobody_else(void **state)
{
	struct builder b = builder_make((2ull << 32) - 100);
	(void)state;
	builder_word(&b, graftrace_word(1, 0, 50));
	builder_word(&b, graftrace_word(2, 0, (uint32_t)-80));
	builder_word(&b, graftrace_word(2, 1, (uint32_t)-70));
	builder_special(&b, GRAFTRACE_SPECIAL_CLOCK, 2);
	builder_word(&b, graftrace_word(1, 1, 90));
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	assert_int_equal(record.clock, (2ull << 32) + 50);
	expect(GT_RECORD_ENTRY, 2, 1);
	assert_int_equal(record.clock, (2ull << 32) - 80);
	expect(GT_RECORD_RETURN, 2, 1);
	assert_int_equal(record.clock, (2ull << 32) - 70);
	expect(GT_RECORD_RETURN, 1, 0);
	assert_int_equal(record.clock - record.start, 40);
	builder_free(&b);
}

static void after_a_stop_the_calls_that_ended_meanwhile_are_taken_off(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_entry(&b, 2, 1);
	builder_entry(&b, 3, 1);
	builder_special(&b, GRAFTRACE_SPECIAL_LOST, 12);
	builder_special(&b, GRAFTRACE_SPECIAL_RESUMED, 1);
	builder_entry(&b, 4, 100);
	builder_return(&b, 4, 1);
	builder_return(&b, 1, 1);
	feed(&b);
	for (uint32_t i = 1; i <= 3; i++)
		expect(GT_RECORD_ENTRY, i, i - 1);
	expect(GT_RECORD_LOST, 0, 3);
	assert_int_equal(record.value, 12);
	expect(GT_RECORD_UNWOUND, 3, 2);
	assert_true(record.flags & GT_RECORD_UNSEEN);
	expect(GT_RECORD_UNWOUND, 2, 1);
	expect(GT_RECORD_ENTRY, 4, 1);
	expect_return(4, 1, 1, 0);
	assert_false(record.flags & GT_RECORD_CHILDREN_UNKNOWN);
	expect(GT_RECORD_RETURN, 1, 0);
	assert_true(record.flags & GT_RECORD_CHILDREN_UNKNOWN);
	builder_free(&b);
}

static void entry_only_calls_and_markers_do_not_nest(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_entry_only(&b, 2, 1);
	builder_marker(&b, 1, "hello, world");
	builder_special(&b, GRAFTRACE_SPECIAL_CPU, 3);
	builder_return(&b, 1, 1);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY_ONLY, 2, 1);
	expect(GT_RECORD_MARKER, 0, 1);
	assert_int_equal(record.clock, 1003);
	assert_int_equal(record.text_bytes, 12);
	assert_memory_equal(record.text, "hello, world", 12);
	expect(GT_RECORD_CPU, 0, 1);
	assert_int_equal(record.cpu, 3);
	expect_return(1, 0, 3, 0);
	assert_int_equal(record.cpu, 3);
	builder_free(&b);
}

static void a_stack_trace_gives_its_words(void **state)
{
	static const uint32_t functions[] = { 3, 2, 1 };
	struct builder b = builder_make(1000);
	uint64_t word;
	(void)state;
	builder_entry(&b, 1, 1);
	builder_stack(&b, 5, functions, 3);
	builder_return(&b, 1, 1);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_STACK, 0, 1);
	assert_int_equal(record.clock, 1006);
	assert_int_equal(record.text_bytes, 24);
	memcpy(&word, record.text, 8);
	assert_int_equal(graftrace_word_function(word), 3);
	expect_return(1, 0, 6, 0);
	builder_free(&b);
}

static void the_function_tracers_records_are_two_words(void **state)
{
	struct builder b = builder_make(0xfffffff0);
	(void)state;
	b.sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(&b, 1, 1, 0x401000);
	builder_word(&b, 0);
	builder_word(&b, 0);
	builder_function(&b, 2, 0x100, 0x402000);
	builder_special(&b, GRAFTRACE_SPECIAL_LOST, 5);
	builder_function(&b, 3, 1, 0x403000);
	feed(&b);
	expect(GT_RECORD_FUNCTION, 1, 0);
	assert_int_equal(record.value, 0x401000);
	expect(GT_RECORD_FUNCTION, 2, 0);
	assert_int_equal(record.clock, 0xfffffff0ull + 0x101);
	expect(GT_RECORD_LOST, 0, 0);
	expect(GT_RECORD_FUNCTION, 3, 0);
	expect_none();
	assert_int_equal(decode.damaged, 0);
	builder_free(&b);
}

/* A place of two words that was given up is a PAD of one more word: it ends where the next begins.
 */
static void records_behind_padding_of_any_length_are_counted(void **state)
{
	const uint64_t kernels = 0xffffffff81000000; /* looks like a special word */
	struct builder b = builder_make(1000);
	(void)state;
	b.sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(&b, 1, 1, kernels);
	for (uint32_t more = 0; more < 4; more++) {
		builder_word(&b, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, more));
		for (uint32_t i = 0; i < (more | 1); i++)
			builder_word(&b, kernels);
		builder_function(&b, 2, 1, kernels);
	}
	assert_int_equal(gt_words_records(b.sub_buffer, 0, b.count), 5);
	feed(&b);
	expect(GT_RECORD_FUNCTION, 1, 0);
	for (int i = 0; i < 4; i++)
		expect(GT_RECORD_FUNCTION, 2, 0);
	expect_none();
	builder_free(&b);
}

static void a_growing_sub_buffer_is_read_as_it_fills(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	assert_int_equal(gt_decode_feed(&decode, b.sub_buffer, b.capacity, true, NULL), 0);
	expect_none();
	builder_entry(&b, 1, 1);
	gt_decode_extend(&decode, b.sub_buffer, b.capacity, true);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_none();
	/* A place that is reserved and not written yet is waited for … */
	builder_word(&b, 0);
	builder_return(&b, 2, 3);
	gt_decode_extend(&decode, b.sub_buffer, b.capacity, true);
	expect_none();
	b.words[1] = graftrace_word(2, 0, 1002);
	gt_decode_extend(&decode, b.sub_buffer, b.capacity, true);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect_return(2, 1, 2, 0);
	/* … and a hole once nothing more can come. */
	builder_word(&b, 0);
	builder_return(&b, 1, 1);
	builder_close(&b);
	gt_decode_extend(&decode, b.sub_buffer, b.capacity, false);
	expect_return(1, 0, 4, 2);
	expect_none();
	assert_int_equal(decode.holes, 1);
	builder_free(&b);
}

/* A host that cuts unwritten words off the end of a sub-buffer cannot tell a zero that was written.
 */
static void an_events_last_zeros_may_be_missing(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 10);
	builder_long_return(&b, 1, 10, 1010, 0);
	b.count--;
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_return(1, 0, 10, 0);
	expect_none();
	assert_int_equal(decode.damaged, 0);
	builder_free(&b);
}

static void calls_open_at_the_end_are_told(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_entry(&b, 2, 1);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 9);
	builder_entry(&b, 3, 1);
	feed(&b);
	while (gt_decode_next(&decode, &record))
		;
	gt_decode_end(&decode);
	expect(GT_RECORD_OPEN, 3, 0);
	expect(GT_RECORD_OPEN, 2, 1);
	expect(GT_RECORD_OPEN, 1, 0);
	expect_none();
	expect_none();
	builder_free(&b);
}

static void a_return_whose_entry_is_missing_is_told_without_a_duration(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 1);
	builder_return(&b, 9, 5);
	builder_return(&b, 1, 1);
	builder_return(&b, 8, 5);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_RETURN, 9, 1);
	assert_true(record.flags & GT_RECORD_START_UNKNOWN);
	expect(GT_RECORD_RETURN, 1, 0);
	assert_int_equal(record.clock - record.start, 6);
	expect(GT_RECORD_RETURN, 8, 0);
	assert_int_equal(decode.damaged, 2);
	builder_free(&b);
}

static void impossible_headers_are_refused_in_words(void **state)
{
	struct gt_message message;
	struct builder b = builder_make(1000);
	(void)state;
	b.sub_buffer->magic = 1;
	assert_int_equal(gt_decode_feed(&decode, b.sub_buffer, 0, false, &message), GT_EFORMAT);
	assert_non_null(strstr(message.text, "byte 0"));
	b.sub_buffer->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	b.sub_buffer->open_calls = 17;
	b.sub_buffer->depth = 20;
	assert_int_equal(gt_decode_feed(&decode, b.sub_buffer, 0, false, &message), GT_EFORMAT);
	b.sub_buffer->open_calls = 3;
	b.sub_buffer->depth = 2;
	assert_int_equal(gt_decode_feed(&decode, b.sub_buffer, 0, false, &message), GT_EFORMAT);
	b.sub_buffer->open_calls = 0;
	b.sub_buffer->tracer = 9;
	assert_int_equal(gt_decode_feed(&decode, b.sub_buffer, 0, false, &message), GT_EFORMAT);
	builder_free(&b);
}

static void nonsense_is_skipped_and_counted(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_special(&b, 77, 5);
	builder_word(&b, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, 99u << 16 | 1));
	builder_word(&b, 0x1234);
	builder_word(&b, 42); /* function 0 */
	builder_word(&b, graftrace_word(GRAFTRACE_SPECIAL + 1, 1, 5));
	builder_special(&b, GRAFTRACE_SPECIAL_UNWOUND, 0xffffffff);
	builder_special(&b, GRAFTRACE_SPECIAL_RESUMED, 0xffffffff);
	builder_long_return(&b, 5, 1, 1000, ~0ull);
	builder_entry(&b, 1, 1);
	builder_special(&b, GRAFTRACE_SPECIAL_EVENT, 0xffff);
	builder_return(&b, 1, 1);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect_none();
	assert_int_equal(decode.unknown, 2);
	assert_int_equal(decode.damaged, 5);
	builder_free(&b);
}

static void a_long_return_that_its_writer_was_cut_off_in_is_passed_over(void **state)
{
	struct builder b = builder_make(1000);
	(void)state;
	builder_entry(&b, 1, 10);
	builder_special(&b, GRAFTRACE_SPECIAL_EVENT, GRAFTRACE_EVENT_LONG_RETURN << 16 | 3);
	builder_word(&b, graftrace_word(1, 1, 1020));
	builder_word(&b, 0);
	builder_word(&b, 1010);
	builder_entry(&b, 2, 10);
	feed(&b);
	expect(GT_RECORD_ENTRY, 1, 0);
	expect(GT_RECORD_ENTRY, 2, 1);
	expect_none();
	assert_int_equal(decode.holes, 1);
	assert_int_equal(decode.damaged, 0);
	builder_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DECODING_TEST(calls_nest_and_know_their_children),
		DECODING_TEST(clocks_run_on_past_their_32_bits),
		DECODING_TEST(a_word_may_stand_before_the_clock_word_that_it_belongs_behind),
		DECODING_TEST(a_nested_writers_clock_may_run_backwards),
		DECODING_TEST(holes_and_pads_are_skipped),
		DECODING_TEST(a_call_goes_on_across_sub_buffers),
		DECODING_TEST(a_sub_buffer_can_be_read_alone),
		DECODING_TEST(missing_sub_buffers_are_said_and_calls_still_open_go_on),
		DECODING_TEST(unwound_calls_come_innermost_first),
		DECODING_TEST(two_hundred_thousand_frames_return_one_by_one),
		DECODING_TEST(without_memory_the_innermost_frames_are_kept),
		DECODING_TEST(a_threshold_recording_has_returns_only),
		DECODING_TEST(a_word_that_belongs_behind_its_clock_moves_nobody_else),
		DECODING_TEST(a_long_return_whose_entry_is_told_one_half_too_late_is_its_own),
		DECODING_TEST(after_a_stop_the_calls_that_ended_meanwhile_are_taken_off),
		DECODING_TEST(entry_only_calls_and_markers_do_not_nest),
		DECODING_TEST(a_stack_trace_gives_its_words),
		DECODING_TEST(the_function_tracers_records_are_two_words),
		DECODING_TEST(records_behind_padding_of_any_length_are_counted),
		DECODING_TEST(a_growing_sub_buffer_is_read_as_it_fills),
		DECODING_TEST(an_events_last_zeros_may_be_missing),
		DECODING_TEST(calls_open_at_the_end_are_told),
		DECODING_TEST(a_return_whose_entry_is_missing_is_told_without_a_duration),
		DECODING_TEST(impossible_headers_are_refused_in_words),
		DECODING_TEST(nonsense_is_skipped_and_counted),
		DECODING_TEST(a_long_return_that_its_writer_was_cut_off_in_is_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
