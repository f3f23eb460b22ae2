/* SPDX-License-Identifier: MIT */
/* Pages of the binary trace. The judge is libtraceevent, with the formats that the table gives:
 * what it reads is compared, not what was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <traceevent/event-parse.h>
#include <traceevent/kbuffer.h>

#include "core/control/control.h"
#include "core/text/raw.h"
#include "port/host/memory.h"
#include "tests/unit/fake_target.h"

static struct gt_raw raw;
static struct tep_handle *tep;
static struct kbuffer *kbuffer;
static char lines[1 << 20]; /* what the judge has read, a line an event */
static size_t lines_bytes;
static uint32_t events;

/* A control file of no target in particular. */
static size_t read_file(const char *path, char *text, size_t room)
{
	static const struct gt_control_ops none;
	struct gt_control_target target = { .ops = &none, .kind = GT_CONTROL_RECORDING };
	struct gt_control_handle handle;
	struct gt_control_node node;
	struct gt_message message;
	int64_t got;

	assert_int_equal(gt_control_find(&target, path, strlen(path), &node), 0);
	assert_int_equal(gt_control_open(&handle, &node, GT_CONTROL_READ, &message), 0);
	got = gt_control_read(&handle, text, room - 1, &message);
	assert_true(got > 0);
	text[got] = '\0';
	gt_control_close(&handle, &message);
	return (size_t)got;
}

static int set_up(void **state)
{
	static const char *const formats[] = { "function", "funcgraph_entry", "funcgraph_exit",
					       "print", "context_switch" };
	char text[4096];
	char path[128];

	(void)state;
	fake_init(&fake);
	lines_bytes = 0;
	events = 0;
	tep = tep_alloc();
	kbuffer = kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_LITTLE);
	tep_set_long_size(tep, 8);
	tep_set_page_size(tep, 4096);
	assert_int_equal(
		tep_parse_header_page(tep, text, read_file("events/header_page", text, 4096), 8),
		0);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		snprintf(path, sizeof(path), "events/ftrace/%s/format", formats[i]);
		assert_int_equal(
			tep_parse_event(tep, text, read_file(path, text, sizeof(text)), "ftrace"),
			TEP_ERRNO__SUCCESS);
	}
	for (uint32_t i = 1; i < FAKE_FUNCTIONS; i++)
		tep_register_function(tep, fake.names[i], 0x401000 + i * 0x100, NULL);
	tep_register_function(tep, (char *)"tracing_mark_write", GT_RAW_MARK_ADDRESS, NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kbuffer_free(kbuffer);
	tep_free(tep);
	fake_free(&fake);
	return 0;
}

static void open_raw(uint32_t cpu, enum gt_merge_mode mode)
{
	struct gt_raw_options options = { .cpu = cpu, .mode = mode };

	assert_int_equal(gt_raw_init(&raw, &fake.target, &gt_host_memory, &options), 0);
}

/* Has the judge read a page; its events become lines. Returns what it says was missed. */
static int judge(void *page)
{
	struct trace_seq text;
	unsigned long long ts;
	void *data;
	int missed;

	assert_int_equal(kbuffer_load_subbuffer(kbuffer, page), 0);
	missed = kbuffer_missed_events(kbuffer);
	assert_true(kbuffer_subbuffer_size(kbuffer) <= GT_RAW_PAGE_BYTES);
	trace_seq_init(&text);
	for (data = kbuffer_read_event(kbuffer, &ts); data != NULL;
	     data = kbuffer_next_event(kbuffer, &ts)) {
		struct tep_record record = {
			.ts = ts,
			.data = data,
			.size = kbuffer_event_size(kbuffer),
		};

		trace_seq_reset(&text);
		tep_print_event(tep, &text, &record, "%d %s %s", TEP_PRINT_PID, TEP_PRINT_NAME,
				TEP_PRINT_INFO);
		trace_seq_terminate(&text);
		text.buffer[strcspn(text.buffer, "\n")] = '\0';
		lines_bytes += (size_t)snprintf(lines + lines_bytes, sizeof(lines) - lines_bytes,
						"%llu %s\n", ts, text.buffer);
		assert_true(lines_bytes < sizeof(lines));
		events++;
	}
	trace_seq_destroy(&text);
	return missed;
}

/* All pages there are; the number of them. */
static uint32_t judge_all(void)
{
	char page[GT_RAW_PAGE_BYTES] __attribute__((aligned(8)));
	uint32_t pages = 0;

	while (gt_raw_read(&raw, page, sizeof(page)) == GT_RAW_PAGE_BYTES) {
		judge(page);
		pages++;
	}
	return pages;
}

static void calls_are_events_of_function_graph(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 1, 64);

	(void)state;
	builder_entry(b, 5, 10);
	builder_entry(b, 6, 3);
	builder_return(b, 6, 20);
	builder_return(b, 5, 1);
	builder_close(b);
	open_raw(1, GT_MERGE_SNAPSHOT);
	assert_int_equal(judge_all(), 1);
	assert_string_equal(lines,
			    "1010 101 funcgraph_entry --> f5 (0)\n"
			    "1013 101 funcgraph_entry --> f6 (1)\n"
			    "1033 101 funcgraph_exit <-- f6 (1) (start: 3f5  end: 409) over: 1\n"
			    "1034 101 funcgraph_exit <-- f5 (0) (start: 3f2  end: 40a) over: 0\n");
	gt_raw_fini(&raw);
}

static void a_return_whose_beginning_is_not_known_is_no_event(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 1, 64);

	(void)state;
	builder_entry(b, 6, 3);
	builder_return(b, 6, 20);
	builder_return(b, 5, 1);
	builder_long_return(b, 4, 10, 500, 0);
	builder_close(b);
	open_raw(1, GT_MERGE_SNAPSHOT);
	assert_int_equal(judge_all(), 1);
	assert_string_equal(lines,
			    "1003 101 funcgraph_entry --> f6 (0)\n"
			    "1023 101 funcgraph_exit <-- f6 (0) (start: 3eb  end: 3ff) over: 0\n"
			    "1034 101 funcgraph_exit <-- f4 (0) (start: 1f4  end: 40a) over: 0\n");
	gt_raw_fini(&raw);
}

static void each_cpu_has_its_own_in_order_of_time(void **state)
{
	uint32_t one = fake_thread(&fake, 101, "one", 1000);
	uint32_t two = fake_thread(&fake, 102, "two", 1000);
	uint32_t three = fake_thread(&fake, 103, "three", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, one, 1000, 0, 64);

	(void)state;
	builder_entry(b, 1, 10);
	builder_return(b, 1, 20);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, two, 1000, 0, 64);
	builder_entry(b, 2, 15);
	builder_return(b, 2, 20);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, three, 1000, 1, 64);
	builder_entry(b, 3, 12);
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	judge_all();
	gt_raw_fini(&raw);
	assert_string_equal(lines,
			    "1010 101 funcgraph_entry --> f1 (0)\n"
			    "1015 102 funcgraph_entry --> f2 (0)\n"
			    "1030 101 funcgraph_exit <-- f1 (0) (start: 3f2  end: 406) over: 0\n"
			    "1035 102 funcgraph_exit <-- f2 (0) (start: 3f7  end: 40b) over: 0\n");
	lines_bytes = 0;
	open_raw(1, GT_MERGE_SNAPSHOT);
	judge_all();
	gt_raw_fini(&raw);
	assert_string_equal(lines, "1012 103 funcgraph_entry --> f3 (0)\n");
}

static void what_is_between_two_events_may_be_long(void **state)
{
	static const int64_t gaps[] = {
		1, (1 << 27) - 1, 1 << 27, (1 << 27) + 1, INT64_C(1) << 33, INT64_C(1) << 45
	};
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 64);
	char line[64];
	uint64_t at = 1000;

	(void)state;
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
		builder_entry(b, 1, gaps[i]);
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	judge_all();
	gt_raw_fini(&raw);
	for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++) {
		at += (uint64_t)gaps[i];
		snprintf(line, sizeof(line), "%llu 101 funcgraph_entry --> f1 (%zu)\n",
			 (unsigned long long)at, i);
		assert_non_null(strstr(lines, line));
	}
	assert_int_equal(events, 6);
}

static void a_full_page_is_followed_by_the_next_and_nothing_is_lost(void **state)
{
	enum { CALLS = 2000 };
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 4000);
	char line[64];

	(void)state;
	for (int i = 0; i < CALLS; i++) {
		builder_entry(b, 1 + (uint32_t)i % 100, 10);
		builder_return(b, 1 + (uint32_t)i % 100, 10);
	}
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	/* 24 and 44 bytes a call */
	assert_int_equal(judge_all(),
			 (CALLS * 68 + GT_RAW_ROOM_BYTES - 45) / (GT_RAW_ROOM_BYTES - 44));
	gt_raw_fini(&raw);
	assert_int_equal(events, CALLS * 2);
	snprintf(line, sizeof(line), "\n%d 101 funcgraph_entry --> f100 (0)\n",
		 1000 + CALLS * 20 - 10);
	assert_non_null(strstr(lines, line));
}

static void pages_are_the_same_in_pieces_of_any_size(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 4000);
	static char whole[8 * GT_RAW_PAGE_BYTES];
	static char again[sizeof(whole)];
	size_t bytes = 0;
	int64_t got;

	(void)state;
	for (int i = 0; i < 300; i++) {
		builder_entry(b, 1, 10);
		builder_return(b, 1, 10);
	}
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	while ((got = gt_raw_read(&raw, whole + bytes, sizeof(whole) - bytes)) > 0)
		bytes += (size_t)got;
	gt_raw_fini(&raw);
	assert_int_equal(bytes % GT_RAW_PAGE_BYTES, 0);
	for (size_t piece = 1; piece < 3 * GT_RAW_PAGE_BYTES; piece = piece * 3 + 1) {
		size_t given = 0;

		open_raw(0, GT_MERGE_SNAPSHOT);
		while ((got = gt_raw_read(&raw, again + given, piece)) > 0)
			given += (size_t)got;
		gt_raw_fini(&raw);
		assert_int_equal(given, bytes);
		assert_memory_equal(again, whole, bytes);
	}
}

static void what_is_missing_is_said_by_the_page_behind_it(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 64);
	struct fake_writer *writer = fake.writers[index];
	char page[GT_RAW_PAGE_BYTES] __attribute__((aligned(8)));

	(void)state;
	builder_entry(b, 1, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, index, 2000, 0, 64);
	/* … which is the fifth: three are not there. */
	writer->sub_buffers[4] = *b;
	*b = (struct builder){ .sub_buffer = NULL };
	b = &writer->sub_buffers[4];
	b->sub_buffer->sequence = 4;
	writer->info.next = 5;
	b->sub_buffer->lost[GRAFTRACE_LOST_OVERRUN] = 17;
	builder_entry(b, 2, 10);
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), sizeof(page));
	assert_int_equal(judge(page), 0);
	assert_string_equal(lines, "1010 101 funcgraph_entry --> f1 (0)\n");
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), sizeof(page));
	assert_int_equal(judge(page), 17);
	assert_non_null(strstr(lines, "2010 101 funcgraph_entry --> f2"));
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), 0);
	gt_raw_fini(&raw);
}

static void a_number_of_missing_events_that_is_not_known_is_said_too(void **state)
{
	struct gt_raw_page page;

	(void)state;
	gt_raw_page_begin(&page);
	gt_raw_page_finish(&page, GT_RAW_MISSED_UNKNOWN);
	assert_int_equal(judge(page.bytes), -1);
}

static void markers_are_prints_however_long(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 1000);
	char text[3001];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	builder_marker(b, 10, "hello");
	builder_marker(b, 10, "with a newline\n");
	builder_marker(b, 10, text);
	builder_marker(b, 10, "");
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	judge_all();
	gt_raw_fini(&raw);
	assert_non_null(strstr(lines, "1010 101 print tracing_mark_write: hello\n"));
	assert_non_null(strstr(lines, "1020 101 print tracing_mark_write: with a newline\n"));
	assert_non_null(strstr(lines, "1030 101 print tracing_mark_write: xxx"));
	assert_non_null(strstr(lines, "1040 101 print"));
	assert_int_equal(strspn(strstr(lines, "xxx"), "x"), 1024);
}

static void the_function_tracers_records_have_their_callers(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 64);

	(void)state;
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(b, 5, 10, 0x401000 + 7 * 0x100 + 0x20);
	builder_close(b);
	open_raw(0, GT_MERGE_SNAPSHOT);
	judge_all();
	gt_raw_fini(&raw);
	assert_string_equal(lines, "1010 101 function  f5 <-- f7\n");
}

static void what_follows_a_target_waits_and_ends(void **state)
{
	uint32_t index = fake_thread(&fake, 101, "one", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, index, 1000, 0, 64);
	char page[GT_RAW_PAGE_BYTES] __attribute__((aligned(8)));

	(void)state;
	builder_entry(b, 1, 10);
	open_raw(0, GT_MERGE_CONSUME);
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), sizeof(page));
	judge(page);
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), GT_EAGAIN);
	builder_return(b, 1, 10);
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), sizeof(page));
	judge(page);
	assert_int_equal(events, 2);
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), GT_EAGAIN);
	builder_close(b);
	gt_merge_finish(&raw.merge);
	assert_int_equal(gt_raw_read(&raw, page, sizeof(page)), 0);
	gt_raw_fini(&raw);
}

static void a_page_takes_what_fits_and_no_byte_more(void **state)
{
	static uint8_t event[GT_RAW_EVENT_BYTES_MAX + 4];
	struct gt_raw_page page;

	(void)state;
	gt_raw_page_begin(&page);
	assert_false(gt_raw_page_add(&page, 1, event, sizeof(event)));
	assert_int_equal(page.used, 0);
	assert_true(gt_raw_page_add(&page, 1, event, GT_RAW_EVENT_BYTES_MAX));
	assert_int_equal(page.used, GT_RAW_ROOM_BYTES);
	assert_false(gt_raw_page_add(&page, 1, event, 0));
	gt_raw_page_begin(&page);
	for (uint32_t used = 0; used + 24 <= GT_RAW_ROOM_BYTES; used += 24)
		assert_true(gt_raw_page_add(&page, 1, event, 20));
	assert_false(gt_raw_page_add(&page, 1, event, 20));
	/* An earlier time is the same time. */
	gt_raw_page_begin(&page);
	assert_true(gt_raw_page_add(&page, 1000, event, 8));
	assert_true(gt_raw_page_add(&page, 900, event, 8));
	assert_int_equal(page.last, 1000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(calls_are_events_of_function_graph),
		TEST(a_return_whose_beginning_is_not_known_is_no_event),
		TEST(each_cpu_has_its_own_in_order_of_time),
		TEST(what_is_between_two_events_may_be_long),
		TEST(a_full_page_is_followed_by_the_next_and_nothing_is_lost),
		TEST(pages_are_the_same_in_pieces_of_any_size),
		TEST(what_is_missing_is_said_by_the_page_behind_it),
		TEST(a_number_of_missing_events_that_is_not_known_is_said_too),
		TEST(markers_are_prints_however_long),
		TEST(the_function_tracers_records_have_their_callers),
		TEST(what_follows_a_target_waits_and_ends),
		TEST(a_page_takes_what_fits_and_no_byte_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
