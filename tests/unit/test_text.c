/* SPDX-License-Identifier: MIT */
/*
 * ftrace's text of scripted traces. Texts stand in tests/golden/function_graph and
 * tests/golden/function; GRAFTRACE_REBASE=1 in the environment writes them anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/text/text.h"
#include "port/host/memory.h"
#include "tests/unit/fake_target.h"

static size_t memory_now, memory_most;

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	memory_now += new_bytes - old_bytes;
	if (memory_now > memory_most)
		memory_most = memory_now;
	return gt_host_resize(data, memory, old_bytes, new_bytes);
}

static const struct gt_memory memory = { resize, NULL };
static struct gt_text text;
static struct gt_text_options options;
static struct gt_filter filter;
static char got[1 << 20];

static int setup(void **state)
{
	(void)state;
	memory_now = memory_most = 0;
	fake_init(&fake);
	memset(&filter, 0, sizeof(filter));
	options = (struct gt_text_options){ .options = GT_OPTIONS_DEFAULT,
					    .mode = GT_MERGE_SNAPSHOT,
					    .header = true };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fake_free(&fake);
	return memory_now ? -1 : 0;
}

static void start(void)
{
	assert_int_equal(gt_text_init(&text, &fake.target, &memory, &options), 0);
}

/* Reads to the end, or until there is nothing for now, in pieces of `piece`; what the last read
 * said. */
static int64_t read_all(size_t piece)
{
	size_t length = 0;
	for (;;) {
		assert_true(length + piece < sizeof(got));
		int64_t bytes = gt_text_read(&text, got + length, piece);
		if (bytes <= 0) {
			got[length] = 0;
			return bytes;
		}
		length += (size_t)bytes;
	}
}

static void is_golden(const char *name)
{
	char path[4096], *wanted;
	snprintf(path, sizeof(path), "%s/%s.txt", GOLDEN, name);
	if (getenv("GRAFTRACE_REBASE")) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(got, file);
		fclose(file);
	}
	FILE *file = fopen(path, "r");
	if (!file)
		fail_msg("cannot open %s", path);
	wanted = calloc(1, sizeof(got));
	assert_non_null(wanted);
	assert_true(fread(wanted, 1, sizeof(got) - 1, file) > 0);
	fclose(file);
	assert_string_equal(got, wanted);
	free(wanted);
}

static void expect_golden(const char *name)
{
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	is_golden(name);
}

/* The seeds' example, and one of each mark. */
static void script_marks(void)
{
	static const char *const names[] = { "mcache_alloc", "runtime_memcpy", "objcache_allocate",
					     "install_fallback_fault_handler" };
	for (uint32_t i = 0; i < 4; i++)
		fake_name(&fake, i + 1, names[i]);
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 0, 200);
	builder_entry(b, 1, 100);
	builder_entry(b, 2, 30);
	builder_return(b, 2, 207666);
	builder_entry(b, 2, 100);
	builder_return(b, 2, 71);
	builder_entry(b, 3, 100);
	builder_return(b, 3, 77);
	builder_return(b, 1, 129);
	builder_entry(b, 4, 500);
	builder_return(b, 4, 93);
	static const uint64_t durations[] = { 0,	  9999,	       10000,	   10001,
					      99999,	  100000,      100001,	   1000000,
					      1000001,	  1513203,     10000000,   20588754,
					      293131799,  999999999,   1000000000, 1000000001,
					      1200887123, 99999999999, 0 };
	for (unsigned i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		builder_entry(b, 5, 1000);
		builder_return(b, 5, (int64_t)durations[i]);
	}
	builder_close(b);
}

static void durations_and_marks_are_linuxs(void **state)
{
	(void)state;
	script_marks();
	expect_golden("function_graph/marks");
}

static void a_reader_of_a_byte_at_a_time_gets_the_same_text(void **state)
{
	static char whole[sizeof(got)];
	(void)state;
	script_marks();
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	memcpy(whole, got, sizeof(got));
	for (size_t piece = 1; piece < 100; piece += 33) {
		start();
		assert_int_equal(read_all(piece), 0);
		gt_text_fini(&text);
		assert_string_equal(got, whole);
	}
}

/* Two threads that take turns on CPU 1, calls left open, losses, comments. */
static void script_threads(void)
{
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	uint32_t c = fake_thread(&fake, 1133, "trace-cmd", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 1, 200);
	builder_entry(b, 1, 100);
	builder_entry(b, 2, 100);
	builder_marker(b, 50, "hello\nworld\n");
	builder_entry(b, 3, 100);
	builder_entry_only(b, 9, 10);
	builder_special(b, GRAFTRACE_SPECIAL_UNWOUND, 2);
	builder_return(b, 1, 20000);
	builder_entry(b, 4, 30000);
	builder_entry(b, 5, 100);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, c, 5000, 1, 200);
	builder_open(b, 7, 500);
	builder_entry(b, 6, 100);
	builder_special(b, GRAFTRACE_SPECIAL_LOST, 12);
	builder_special(b, GRAFTRACE_SPECIAL_RESUMED, 1);
	builder_long_return(b, 7, 1000000, 500, 0);
	builder_special(b, GRAFTRACE_SPECIAL_CPU, 0);
	builder_entry(b, 8, 10);
	builder_return(b, 8, 10);
	builder_close(b);
}

static void threads_take_turns_on_a_cpu(void **state)
{
	(void)state;
	script_threads();
	expect_golden("function_graph/threads");
}

static void the_columns_are_chosen_by_options(void **state)
{
	(void)state;
	script_threads();
	options.options |= GT_OPTION_GRAPH_PROC | GT_OPTION_GRAPH_ABSTIME | GT_OPTION_GRAPH_TAIL;
	expect_golden("function_graph/all_columns");
	options.options = GT_OPTION_CONTEXT_INFO | GT_OPTION_GRAPH_CPU;
	expect_golden("function_graph/cpu_only");
	options.options = GT_OPTIONS_DEFAULT & ~(uint32_t)GT_OPTION_GRAPH_OVERHEAD;
	expect_golden("function_graph/no_overhead");
	options.options = GT_OPTIONS_DEFAULT & ~(uint32_t)GT_OPTION_CONTEXT_INFO;
	expect_golden("function_graph/no_context_info");
}

static void a_stack_trace_is_a_line_a_call(void **state)
{
	static const uint32_t functions[] = { 3, 2, 1 };
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 1000, 1, 64);
	(void)state;
	builder_entry(b, 1, 100);
	builder_stack(b, 50, functions, 3);
	builder_return(b, 1, 100);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 87, "sh", 1000), 2000, 1, 64);
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(b, 1, 10, 0x401215);
	builder_stack(b, 50, functions, 3);
	builder_word(b, 0); /* an even length in all */
	builder_function(b, 2, 10, 0x401215);
	builder_close(b);
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	for (int thread = 86; thread <= 87; thread++) { /* in the graph as among functions */
		char line[64];

		snprintf(line, sizeof(line), "sh-%d ", thread);
		assert_non_null(strstr(got, line));
		assert_non_null(
			strstr(strstr(got, line), ": <stack trace>\n => f3\n => f2\n => f1\n"));
	}
	assert_non_null(strstr(got, ": f2 <-"));
}

static void script_function(void)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 7499611600, 0, 64);
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(b, 1, 10, 0x401215);
	builder_function(b, 2, 1000, 0x1234);
	builder_marker(b, 1000, "a mark");
	builder_close(b);
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 1234567, "a-long-name-16c", 1000),
			       7499611700, 1, 64);
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(b, 3, 10, 0x401290);
	builder_close(b);
}

static void the_function_tracer_prints_callers(void **state)
{
	(void)state;
	script_function();
	expect_golden("function/default");
	options.options |= GT_OPTION_SYM_OFFSET | GT_OPTION_SYM_ADDR;
	expect_golden("function/symbols");
	options.options = GT_OPTION_CONTEXT_INFO | GT_OPTION_RECORD_CMD;
	expect_golden("function/no_flags");
	options.options = GT_OPTION_PRINT_PARENT;
	expect_golden("function/no_context_info");
	fake.writers[1]->info.lost[GRAFTRACE_LOST_OVERRUN] = 5;
	options.options = GT_OPTIONS_DEFAULT;
	expect_golden("function/overrun");
}

/* Times to the next record are of any writer; they come out alike whatever the buffer. */
static void expect_golden_in_pieces(const char *name)
{
	char *whole;

	expect_golden(name);
	whole = strdup(got);
	start();
	assert_int_equal(read_all(1), 0);
	gt_text_fini(&text);
	assert_string_equal(got, whole);
	free(whole);
}

static void latency_format_is_linuxs(void **state)
{
	(void)state;
	script_function();
	options.options |= GT_OPTION_LATENCY_FORMAT;
	options.release = "6.1.0";
	options.time_start = 7499600000;
	expect_golden_in_pieces("function/latency");
	options.options |= GT_OPTION_VERBOSE;
	expect_golden_in_pieces("function/latency_verbose");
	options.options = GT_OPTIONS_DEFAULT | GT_OPTION_VERBOSE;
	expect_golden("function/verbose");
}

static void latency_format_of_the_graph_has_flags(void **state)
{
	(void)state;
	script_threads();
	options.options |=
		GT_OPTION_LATENCY_FORMAT | GT_OPTION_GRAPH_ABSTIME | GT_OPTION_GRAPH_PROC;
	expect_golden_in_pieces("function_graph/latency");
}

static void latency_format_prints_no_header_of_an_empty_trace(void **state)
{
	(void)state;
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	options.options |= GT_OPTION_LATENCY_FORMAT;
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_string_equal(got, "# tracer: function\n#\n");
}

static void records_are_shown_as_numbers_and_bytes(void **state)
{
	static const unsigned char bytes[] = { 86, 0, 0, 0, 0, 0, 0, 0 };
	const char *record;

	(void)state;
	script_function();
	options.options |= GT_OPTION_RAW;
	expect_golden("function/raw");
	options.options = GT_OPTIONS_DEFAULT | GT_OPTION_HEX;
	expect_golden("function/hex");
	options.options = GT_OPTION_BIN | GT_OPTION_CONTEXT_INFO;
	options.header = false;
	start();
	assert_int_equal(gt_text_read(&text, got, 65536), 3 * 32 + 16 + 8);
	gt_text_fini(&text);
	record = got;
	assert_memory_equal(record, bytes, sizeof(bytes));
}

static void repeated_calls_become_one_line(void **state)
{
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "sh", 1000), 7499611600, 0, 64);

	(void)state;
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(b, 1, 10, 0x401215);
	for (int i = 0; i < 3; i++)
		builder_function(b, 2, 1000, 0x401215);
	builder_function(b, 2, 1000, 0x1234); /* another caller */
	builder_function(b, 1, 1000, 0x401215);
	builder_function(b, 1, 1000, 0x401215); /* not told: nothing else came */
	builder_close(b);
	options.options |= GT_OPTION_FUNC_NO_REPEATS;
	expect_golden_in_pieces("function/no_repeats");
}

static void an_empty_trace_has_its_header(void **state)
{
	(void)state;
	expect_golden("function_graph/empty");
	fake.target.tracer = GRAFTRACE_TRACER_NOP;
	expect_golden("function/empty");
}

/* A leaf whose return lies in the next sub-buffer is a leaf all the same. */
static void a_leaf_may_span_two_sub_buffers(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	options.header = false;
	builder_entry(b, 1, 10);
	builder_entry(b, 2, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, a, 2000, 0, 64);
	builder_open(b, 1, 1010);
	builder_open(b, 2, 1020);
	builder_long_return(b, 2, 20, 1020, 1);
	builder_long_return(b, 1, 20, 1010, 0);
	builder_close(b);
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	assert_string_equal(got, " 0)               |  f1() {\n"
				 " 0)   1.000 us    |    f2();\n"
				 " 0)   1.030 us    |  }\n");
}

static void a_name_is_told_where_the_opening_was_not_printed(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 2000, 0, 64);
	options.header = false;
	builder_open(b, 1, 1010);
	builder_long_return(b, 1, 20, 1010, 0);
	builder_close(b);
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	assert_string_equal(got, " 0)   1.010 us    |  } /* f1 */\n");
}

static void any_number_of_missing_sub_buffers_takes_no_time(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	builder_entry(b, 1, 10);
	builder_close(b);
	fake.writers[a]->info.next = 1ull << 60;
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	assert_non_null(strstr(got, "f1() {"));
	assert_true(fake.copies < 10);
	fake.writers[a]->info.next = 1;
}

static void a_call_of_another_stack_is_named_at_its_end(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	options.header = false;
	builder_entry(b, 1, 10);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 2);
	builder_entry(b, 2, 10);
	builder_entry(b, 3, 10);
	builder_return(b, 3, 10);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 0);
	builder_long_return(b, 1, 10, 1010, 0);
	builder_close(b);
	start();
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	assert_string_equal(got, " 0)               |  f1() {\n"
				 " 0)               |  /* stack 2 */\n"
				 " 0)               |  f2() {\n"
				 " 0)   0.010 us    |    f3();\n"
				 " 0)               |  /* stack 0 */\n"
				 " 0)   0.040 us    |  } /* f1 */\n");
}

static void sub_buffers_that_vanished_are_told_as_lost(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	options.header = false;
	for (unsigned i = 0; i < 4; i++) {
		struct builder *b = fake_sub_buffer_of(&fake, a, 1000 * (i + 1), 0, 64);
		b->sub_buffer->lost[GRAFTRACE_LOST_OVERRUN] = i == 3 ? 40 : 0;
		builder_entry(b, i + 1, 10);
		builder_return(b, i + 1, 10);
		builder_close(b);
	}
	start();
	assert_true(gt_text_read(&text, got, 10) == 10);
	fake.writers[a]->info.first = 3;
	assert_int_equal(read_all(65536), 0);
	assert_string_equal(got, "0 us    |  f1();\nCPU:0 [LOST 40 EVENTS]\n"
				 " 0)   0.010 us    |  f4();\n");
	gt_text_fini(&text);
}

static void a_pipe_prints_what_is_being_written_and_consumes_what_is_closed(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	options.header = false;
	options.mode = GT_MERGE_CONSUME;
	start();
	assert_int_equal(read_all(65536), GT_EAGAIN);
	builder_entry(b, 1, 10);
	assert_int_equal(read_all(65536), GT_EAGAIN);
	assert_string_equal(got, " 0)               |  f1() {\n");
	builder_entry(b, 2, 10);
	builder_return(b, 2, 10);
	builder_close(b);
	b = fake_sub_buffer_of(&fake, a, 2000, 0, 64);
	builder_open(b, 1, 1010);
	builder_long_return(b, 1, 20, 1010, 0);
	assert_int_equal(read_all(65536), GT_EAGAIN);
	assert_string_equal(got, " 0)   0.010 us    |    f2();\n"
				 " 0)   1.010 us    |  }\n");
	assert_int_equal(fake.writers[a]->consumed, 1);
	/* A thread that comes later. */
	uint32_t c = fake_thread(&fake, 99, "late", 3000);
	b = fake_sub_buffer_of(&fake, c, 3000, 1, 64);
	builder_entry(b, 3, 1);
	builder_return(b, 3, 1);
	assert_int_equal(read_all(65536), GT_EAGAIN);
	assert_string_equal(got, " 1)   0.001 us    |  f3();\n");
	assert_int_equal(fake.writers[c]->consumed, 0);
	gt_text_finish(&text);
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
}

static void a_snapshot_ends_though_the_writer_goes_on(void **state)
{
	(void)state;
	uint32_t a = fake_thread(&fake, 86, "sh", 1000);
	struct builder *b = fake_sub_buffer_of(&fake, a, 1000, 0, 64);
	options.header = false;
	builder_entry(b, 1, 10);
	builder_close(b);
	start();
	b = fake_sub_buffer_of(&fake, a, 2000, 0, 64);
	builder_entry(b, 2, 10);
	builder_close(b);
	assert_int_equal(read_all(65536), 0);
	gt_text_fini(&text);
	assert_string_equal(got, " 0)               |  f1() {\n");
}

static void filters_choose_threads_times_and_calls(void **state)
{
	const char *graph[] = { "f2", NULL };
	(void)state;
	script_threads();
	options.header = false;
	options.filter = &filter;
	filter.tid = 1133;
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_non_null(strstr(got, "f8();"));
	assert_null(strstr(got, "f1"));
	filter.tid = 86;
	filter.graph = graph;
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_string_equal(got,
			    " 1)               |  f2() {\n"
			    " 1)               |  /* hello\nworld */\n"
			    " 1)               |    f3() {\n"
			    " 1)               |      /* f9() entered, return not recorded */\n"
			    " 1)               |  /* unwound 2 calls: f3 ... */\n");
	filter.graph = NULL;
	filter.max_depth = 1;
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_string_equal(got, " 1) + 20.260 us   |  f1();\n"
				 " 1)               |  f4() {\n");
	filter.max_depth = 0;
	filter.from_ns = 20000;
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_string_equal(got, " 1) + 20.260 us   |  } /* f1 */\n"
				 " 1)               |  f4() {\n"
				 " 1)               |    f5() {\n");
	filter.from_ns = 0;
	filter.to_ns = 1150;
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_string_equal(got, " 1)               |  f1() {\n");
}

static void thousands_of_threads_cost_what_those_alive_at_a_time_cost(void **state)
{
	enum { THREADS = 4000 };
	(void)state;
	options.header = false;
	for (uint32_t i = 0; i < THREADS; i++) {
		uint32_t thread = fake_thread(&fake, 1000 + i, "t", 1000 + 100 * i);
		struct builder *b = fake_sub_buffer_of(&fake, thread, 1000 + 100 * i, i % 2, 8);
		builder_entry(b, 1, 1);
		builder_return(b, 1, 140);
		builder_close(b);
	}
	start();
	size_t lines = 0;
	int64_t bytes;
	while ((bytes = gt_text_read(&text, got, sizeof(got))) > 0)
		for (int64_t i = 0; i < bytes; i++)
			lines += got[i] == ';';
	assert_int_equal(lines, THREADS);
	gt_text_fini(&text);
	assert_true(memory_most < 5 * (fake.target.sub_buffer_bytes + 8192) +
					  THREADS * (sizeof(struct gt_source) + 64));
}

static void names_cannot_drive_the_terminal(void **state)
{
	(void)state;
	options.header = false;
	fake_name(&fake, 1, "a\033[2Jb");
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 86, "s\nh", 1000), 1000, 0, 64);
	builder_entry(b, 1, 1);
	builder_return(b, 1, 1);
	builder_entry(b, 127 + 50, 1);
	builder_close(b);
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_string_equal(got, " 0)   0.001 us    |  a?[2Jb();\n"
				 " 0)               |  function#177() {\n");
}

/* An interrupt has a stack and depths of its own; on Linux it uses what it came upon. */
static void an_interrupts_calls_stand_in_the_one_that_it_came_upon(void **state)
{
	(void)state;
	struct builder *b =
		fake_sub_buffer_of(&fake, fake_thread(&fake, 7, "main", 1000), 1000, 0, 200);
	fake.writers[0]->info.pid = b->sub_buffer->pid = 0;
	b->sub_buffer->context = 7;
	builder_entry(b, 1, 1);
	builder_entry(b, 2, 1);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, GRAFTRACE_CONTEXT_INTERRUPT + 1);
	builder_entry(b, 3, 1);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, GRAFTRACE_CONTEXT_INTERRUPT + 2);
	builder_entry(b, 4, 1);
	builder_return(b, 4, 1);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, GRAFTRACE_CONTEXT_INTERRUPT + 1);
	builder_entry(b, 5, 1);
	builder_return(b, 5, 1);
	builder_return(b, 3, 1);
	builder_special(b, GRAFTRACE_SPECIAL_CONTEXT, 7);
	builder_return(b, 2, 1);
	builder_return(b, 1, 1);
	builder_close(b);
	start();
	read_all(65536);
	gt_text_fini(&text);
	assert_non_null(strstr(got, " 0)               |  f1() {\n"
				    " 0)               |    f2() {\n"
				    " 0)   ==========> |\n"
				    " 0)               |      f3() {\n"
				    " 0)   0.001 us    |        f4();\n"
				    " 0)   0.001 us    |        f5();\n"
				    " 0)   0.005 us    |      } /* f3 */\n"
				    " 0)   <========== |\n"
				    " 0)   0.007 us    |    } /* f2 */\n"
				    " 0)   0.009 us    |  } /* f1 */\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(durations_and_marks_are_linuxs),
		TEST(a_reader_of_a_byte_at_a_time_gets_the_same_text),
		TEST(threads_take_turns_on_a_cpu),
		TEST(a_stack_trace_is_a_line_a_call),
		TEST(the_columns_are_chosen_by_options),
		TEST(the_function_tracer_prints_callers),
		TEST(latency_format_is_linuxs),
		TEST(latency_format_of_the_graph_has_flags),
		TEST(latency_format_prints_no_header_of_an_empty_trace),
		TEST(records_are_shown_as_numbers_and_bytes),
		TEST(repeated_calls_become_one_line),
		TEST(an_empty_trace_has_its_header),
		TEST(a_leaf_may_span_two_sub_buffers),
		TEST(a_name_is_told_where_the_opening_was_not_printed),
		TEST(any_number_of_missing_sub_buffers_takes_no_time),
		TEST(a_call_of_another_stack_is_named_at_its_end),
		TEST(sub_buffers_that_vanished_are_told_as_lost),
		TEST(a_pipe_prints_what_is_being_written_and_consumes_what_is_closed),
		TEST(a_snapshot_ends_though_the_writer_goes_on),
		TEST(filters_choose_threads_times_and_calls),
		TEST(thousands_of_threads_cost_what_those_alive_at_a_time_cost),
		TEST(names_cannot_drive_the_terminal),
		TEST(an_interrupts_calls_stand_in_the_one_that_it_came_upon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
