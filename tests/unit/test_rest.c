/* SPDX-License-Identifier: MIT */
/* The event graftrace:off_cpu: written into words, read back, and as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/rest.h"

static uint64_t words[GT_REST_WORDS];
static struct gt_event_format format;

static struct gt_record record_of(const struct gt_rest *rest)
{
	gt_rest_format(7, &format);
	return (struct gt_record){ .kind = GT_RECORD_EVENT,
				   .value = 7,
				   .text = (const char *)words,
				   .text_bytes = gt_rest_words(rest, words) * 8 };
}

static const char *text_of(const struct gt_rest *rest)
{
	static char text[256];
	const struct gt_record record = record_of(rest);

	*gt_event_put(&format, &record, false, text, sizeof(text) - 1) = '\0';
	return text;
}

static void what_is_written_comes_back(void **state)
{
	const struct gt_rest slept = { .by_interrupt = true,
				       .slept_ns = 2047946,
				       .waited_ns = 12638,
				       .waker_tid = 5969,
				       .waker_bytes = 2,
				       .waker = "sh" };
	const struct gt_record record = record_of(&slept);
	struct gt_rest read;

	(void)state;
	assert_true(gt_rest_read(&format, &record, &read));
	assert_false(read.preempted);
	assert_true(read.by_interrupt);
	assert_int_equal(read.slept_ns, 2047946);
	assert_int_equal(read.waited_ns, 12638);
	assert_int_equal(read.waker_tid, 5969);
	assert_int_equal(read.waker_bytes, 2);
	assert_memory_equal(read.waker, "sh", 2);
}

static void people_read_it_as_a_sentence(void **state)
{
	struct gt_rest rest = { .by_interrupt = true,
				.slept_ns = 2047946,
				.waited_ns = 12008,
				.waker_tid = 5969,
				.waker_bytes = 3,
				.waker = "s\033h" };

	(void)state;
	assert_string_equal(text_of(&rest), "off_cpu: slept 2047.946 us until an interrupt in "
					    "s?h-5969 woke it, waited 12.008 us for a CPU");
	rest.by_interrupt = false;
	rest.slept_ns = 5;
	rest.waker = "a name of 21 letters!";
	rest.waker_bytes = 21;
	assert_string_equal(text_of(&rest),
			    "off_cpu: slept 0.005 us until a name of 21 letters-5969 "
			    "woke it, waited 12.008 us for a CPU");
	rest = (struct gt_rest){ .preempted = true, .waited_ns = 1000000, .waker = "" };
	assert_string_equal(text_of(&rest), "off_cpu: preempted, waited 1000.000 us for a CPU");
}

static void other_events_and_cut_ones_are_not_taken_for_it(void **state)
{
	const struct gt_rest rest = { .waker_bytes = 2, .waker = "sh" };
	struct gt_record record = record_of(&rest);
	struct gt_rest read;

	(void)state;
	record.text_bytes = 8;
	assert_true(gt_rest_read(&format, &record, &read));
	assert_int_equal(read.waker_bytes, 0);
	format.field_count--;
	assert_false(gt_rest_read(&format, &record, &read));
	format.field_count++;
	format.system = "shop";
	assert_false(gt_rest_read(&format, &record, &read));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_comes_back),
		cmocka_unit_test(people_read_it_as_a_sentence),
		cmocka_unit_test(other_events_and_cut_ones_are_not_taken_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
