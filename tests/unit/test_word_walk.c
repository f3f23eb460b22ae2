/* SPDX-License-Identifier: MIT */
/* The walk over a sub-buffer's words: records, holes, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/word_walk.h"

static struct {
	struct graftrace_sub_buffer sub;
	uint64_t words[8];
} buffer;

#define WORDS(tracer_, ...) put(tracer_, (const uint64_t[8]){ __VA_ARGS__ })

static void put(uint16_t tracer, const uint64_t *words)
{
	buffer.sub.tracer = tracer;
	memcpy(buffer.words, words, sizeof(buffer.words));
}

static uint64_t event(uint32_t type, uint32_t words)
{
	return graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | words);
}

static void expect(uint32_t count, uint64_t records, uint64_t calls, uint32_t hole, uint32_t end)
{
	struct gt_word_sum sum;

	gt_words_sum(&buffer.sub, count, &sum);
	assert_int_equal(sum.records, records);
	assert_int_equal(sum.calls, calls);
	assert_int_equal(sum.hole, hole);
	assert_int_equal(sum.end, end);
	assert_int_equal(gt_words_records(&buffer.sub, 0, count), records);
	assert_int_equal(gt_words_before_hole(&buffer.sub, count), hole);
}

static void data_of_events_is_no_hole(void **state)
{
	(void)state;
	WORDS(GRAFTRACE_TRACER_FUNCTION_GRAPH, event(GRAFTRACE_EVENT_LONG_RETURN, 3),
	      graftrace_word(5, 1, 0), 0, 0, graftrace_word(6, 0, 1),
	      graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 2), 0, 0);
	expect(8, 2, 1, 8, 8);
	buffer.words[4] = 0;
	expect(8, 1, 0, 4, 8);
	/* An event that claims more than there is. */
	buffer.words[0] = event(0, 0xffff);
	expect(8, 1, 0, 8, 8);
}

/* Rule 6 of graftrace/record.h: a special word there has a filler, whatever stands in it. */
static void filler_of_the_function_tracer_is_no_record(void **state)
{
	(void)state;
	WORDS(GRAFTRACE_TRACER_FUNCTION, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0), 0x401000,
	      graftrace_word(5, 0, 1), 0x401000);
	expect(4, 1, 1, 4, 4);
	/* A place whose second word alone is stored is in use, and a hole. */
	buffer.words[2] = 0;
	expect(8, 0, 0, 2, 4);
}

static void what_was_written_ends_behind_the_last_record(void **state)
{
	(void)state;
	WORDS(GRAFTRACE_TRACER_FUNCTION_GRAPH, graftrace_word(5, 0, 1), 0,
	      event(GRAFTRACE_EVENT_MARKER, 3), 7, 0, 0, 0, 0);
	/* the event's last words are zero, and its own; the two behind it were never used */
	expect(8, 2, 1, 1, 6);
	/* it may lack them */
	expect(4, 2, 1, 1, 4);
	WORDS(GRAFTRACE_TRACER_FUNCTION_GRAPH, 0, 0);
	expect(8, 0, 0, 0, 0);
	expect(0, 0, 0, 0, 0);
}

static void an_event_whose_first_word_is_to_come_is_not_whole(void **state)
{
	(void)state;
	WORDS(GRAFTRACE_TRACER_FUNCTION_GRAPH, graftrace_word(5, 0, 1),
	      event(GRAFTRACE_EVENT_SWITCH, 4), 0, 1, 2, 3, graftrace_word(5, 1, 9));
	assert_int_equal(gt_words_whole(&buffer.sub, 8), 1);
	/* what took the sub-buffer away would have its words stored into other records */
	expect(7, 3, 1, 1, 7);
	buffer.words[2] = 7;
	expect(7, 3, 1, 7, 7);
	assert_int_equal(gt_words_whole(&buffer.sub, 8), 7);
	assert_int_equal(gt_words_whole(&buffer.sub, 7), 7);
	/* of the function tracer's a pair */
	WORDS(GRAFTRACE_TRACER_FUNCTION, graftrace_word(5, 0, 1), 0x401000,
	      graftrace_word(5, 0, 2));
	assert_int_equal(gt_words_whole(&buffer.sub, 8), 2);
}

static void records_are_counted_from_a_place(void **state)
{
	(void)state;
	WORDS(GRAFTRACE_TRACER_FUNCTION_GRAPH, graftrace_word(5, 0, 1), graftrace_word(6, 0, 1),
	      graftrace_special_word(GRAFTRACE_SPECIAL_CLOCK, 1), graftrace_word(6, 1, 3));
	assert_int_equal(gt_words_records(&buffer.sub, 1, 4), 2);
	assert_int_equal(gt_words_records(&buffer.sub, 4, 4), 0);
	assert_int_equal(gt_words_records(&buffer.sub, 5, 4), 0);
	WORDS(GRAFTRACE_TRACER_FUNCTION, graftrace_word(5, 0, 1), graftrace_word(5, 0, 1),
	      graftrace_word(6, 0, 2), 3);
	assert_int_equal(gt_words_records(&buffer.sub, 1, 4), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_of_events_is_no_hole),
		cmocka_unit_test(filler_of_the_function_tracer_is_no_record),
		cmocka_unit_test(what_was_written_ends_behind_the_last_record),
		cmocka_unit_test(an_event_whose_first_word_is_to_come_is_not_whole),
		cmocka_unit_test(records_are_counted_from_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
