/* SPDX-License-Identifier: MIT */
/* A kernel's control files on port/fake's machine: counts that add up, a snapshot that has each
 * record once, a recording that ends at one moment, commands, marks and the profiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <graftrace/file.h>
#include "core/kernel/kernel_control.h"
#include "core/kernel/kernel_file.h"
#include "port/fake/fake.h"
#include "port/host/memory.h"

#define FUNCTIONS 4
#define RING	  (16 * 4096)

static const char *const names[FUNCTIONS] = { "outer", "inner", "leaf", "other" };
static struct gt_arena_ring ring;
static struct gt_arena_control control;
static uint8_t patched[FUNCTIONS];
static char printed[65536];
static int allocated;
static size_t largest; /* piece that was asked for */
static uint64_t now;
static int closed; /* how often */

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	allocated += (memory == NULL) - (new_bytes == 0);
	assert_true(new_bytes <= GT_ARENA_PIECE_BYTES);
	largest = new_bytes > largest ? new_bytes : largest;
	return gt_host_resize(data, memory, old_bytes, new_bytes);
}

static int function(void *data, uint32_t number, struct gt_function *out)
{
	(void)data;
	if (number - 1 >= FUNCTIONS)
		return GT_ENOENT;
	*out = (struct gt_function){ .name = names[number - 1], .object = "kernel" };
	return GT_OK;
}

static int function_at(void *data, uint64_t address, struct gt_function *out)
{
	(void)data;
	(void)address;
	(void)out;
	return GT_ENOENT;
}

/* The kernel has had `threads`; those from number `first_named` on have names. */
static uint32_t threads = 3, first_named = 1;

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data;
	if (tid < first_named)
		return GT_ENOENT;
	snprintf(comm, 16, "t%u", tid);
	return GT_OK;
}

static void lock(void *data)
{
	(void)data;
}

static void set_tracing_on(void *data, bool on)
{
	(void)data;
	gt_kernel_set_tracing_on(on);
}

static void set_tracer(void *data, enum graftrace_tracer tracer)
{
	(void)data;
	gt_kernel_set_tracer(tracer);
}

static void patch(void *data, const uint8_t *wanted)
{
	(void)data;
	memcpy(patched, wanted, FUNCTIONS);
}

static uint64_t now_ns(void *data)
{
	(void)data;
	return now;
}

static void close_all(void *data)
{
	(void)data;
	closed++;
	for (uint32_t cpu = 0; cpu < 2; cpu++)
		gt_kernel_close(&gt_fake_cpu(cpu)->block);
}

static uint32_t thread_number(void *data, uint32_t index)
{
	(void)data;
	return index < threads ? index + 1 : 0;
}

static bool mark(void *data, const char *bytes, size_t count, bool raw)
{
	(void)data;
	return gt_kernel_mark(bytes, (uint32_t)count, raw);
}

static void watch(void *data)
{
	++*(int *)data;
}

static void print(void *data, const char *text, size_t bytes)
{
	(void)data;
	strncat(printed, text, bytes);
}

static int watched;

static int start(void **state)
{
	static const struct gt_arena_names arena_names = { function, function_at, thread_name, NULL,
							   NULL };
	static const struct gt_arena_machine machine = { .lock = lock,
							 .unlock = lock,
							 .set_tracing_on = set_tracing_on,
							 .set_tracer = set_tracer,
							 .patch = patch,
							 .now_ns = now_ns,
							 .close_all = close_all,
							 .thread_number = thread_number,
							 .mark = mark,
							 .watch = watch,
							 .print = print,
							 .data = &watched };
	static const struct gt_memory memory = { resize, NULL };
	(void)state;
	allocated = watched = closed = 0;
	now = 1000000;
	printed[0] = '\0';
	gt_fake_start(RING, 4096);
	memset(&ring, 0, sizeof(ring));
	ring.arena = gt_fake_arena();
	ring.names = &arena_names;
	ring.clock = (struct gt_clock){ .tsc_base = 1ull << 40, .mult = 1 };
	gt_fake_cpu_start(0, gt_fake_stack(1));
	gt_fake_cpu_start(1, gt_fake_stack(2));
	assert_int_equal(
		gt_arena_control_init(&control, &ring, &machine, &memory, FUNCTIONS, "fake"), 0);
	gt_arena_control_patch(&control);
	gt_kernel_set_tracing_on(true);
	return 0;
}

/* Calls of a leaf, two records each, on one CPU. */
static void calls(uint32_t cpu, uint32_t function_number, int count)
{
	gt_fake_run(cpu);
	for (int i = 0; i < count; i++) {
		gt_fake_call(function_number);
		gt_fake_return();
	}
}

static char *read_file(const char *path)
{
	struct gt_control_node node;
	struct gt_control_handle handle;
	struct gt_message message;
	char *text = calloc(1, 1 << 20);
	size_t length = 0;
	int64_t got;
	assert_int_equal(gt_control_find(&control.control, path, strlen(path), &node), 0);
	assert_int_equal(gt_control_open(&handle, &node, GT_CONTROL_READ, &message), 0);
	while ((got = gt_control_read(&handle, text + length, 4096, &message)) > 0)
		length += (size_t)got;
	gt_control_close(&handle, &message);
	return text;
}

static int put(const char *path, const char *value)
{
	struct gt_control_node node;
	struct gt_message message;
	assert_int_equal(gt_control_find(&control.control, path, strlen(path), &node), 0);
	return gt_control_put(&node, false, value, strlen(value), &message);
}

static int occurrences(const char *text, const char *what)
{
	int count = 0;
	for (; (text = strstr(text, what)) != NULL; text++)
		count++;
	return count;
}

static int count_in(const char *path, const char *what)
{
	char *text = read_file(path);
	int count = occurrences(text, what);
	free(text);
	return count;
}

static uint64_t number_in(const char *path, const char *name)
{
	char *text = read_file(path);
	const char *at = strstr(text, name);
	assert_non_null(at);
	uint64_t value = strtoull(at + strlen(name), NULL, 10);
	free(text);
	return value;
}

/* entries + overrun + dropped + read */
static uint64_t sum(const char *path)
{
	return number_in(path, "entries: ") + number_in(path, "overrun: ") +
	       number_in(path, "dropped events: ") + number_in(path, "read events: ");
}

static void counts_add_up_in_a_ring_that_is_full_and_read(void **state)
{
	(void)state;
	for (int round = 0; round < 6; round++) {
		calls(0, 3, 700);
		calls(1, 3, 900);
		if (round == 2)
			free(read_file("trace_pipe"));
		/* a dropped call is one event: it has no return */
		uint64_t dropped = number_in("stats", "dropped events: ");
		uint64_t kept = sum("stats") - dropped;
		assert_int_equal(kept + 2 * dropped, 2ull * (700 + 900) * (uint64_t)(round + 1));
		assert_int_equal(sum("per_cpu/cpu0/stats") + sum("per_cpu/cpu1/stats"),
				 sum("stats"));
	}
	assert_true(number_in("stats", "dropped events: ") > 0);
	assert_true(number_in("stats", "read events: ") > 0);
}

static void trace_self_takes_what_the_other_options_take(void **state)
{
	(void)state;
	assert_int_equal(put("options/trace-self", "1\n"), 0);
	assert_int_equal(count_in("options/trace-self", "1\n"), 1);
	assert_int_equal(put("options/trace-self", "2\n"), GT_EINVAL);
	assert_int_equal(put("options/trace-self", "0"), 0);
	assert_int_equal(count_in("options/trace-self", "0\n"), 1);
}

static void counts_add_up_where_the_oldest_is_overwritten(void **state)
{
	(void)state;
	assert_int_equal(put("options/overwrite", "1"), 0);
	for (int round = 1; round < 6; round++) {
		calls(0, 3, 1500);
		calls(1, 3, 500);
		assert_int_equal(sum("stats"), 4000 * round);
	}
	assert_true(number_in("stats", "overrun: ") > 0);
	assert_int_equal(number_in("stats", "dropped events: "), 0);
}

static void a_clear_begins_all_counts_anew(void **state)
{
	(void)state;
	calls(0, 3, 100);
	struct gt_control_node node;
	struct gt_message message;
	gt_control_find(&control.control, "trace", 5, &node);
	assert_int_equal(gt_control_put(&node, true, "", 0, &message), 0);
	assert_int_equal(sum("stats"), 0);
	calls(0, 3, 5);
	assert_int_equal(number_in("stats", "entries: "), 10);
	assert_int_equal(count_in("trace", "leaf();"), 5);
}

static void a_record_is_in_the_snapshot_or_comes_later(void **state)
{
	(void)state;
	for (int round = 1; round < 5; round++) {
		calls(0, 3, 300 * round);
		calls(1, 3, 200 * round);
		assert_int_equal(put("snapshot", "1"), 0);
		assert_int_equal(count_in("trace", "leaf();"), 0);
		calls(1, 4, 7);
		assert_int_equal(count_in("snapshot", "leaf();"), 500 * round);
		assert_int_equal(count_in("per_cpu/cpu1/snapshot", "leaf();"), 200 * round);
		assert_int_equal(count_in("snapshot", "other();"), round > 1 ? 7 : 0);
		assert_int_equal(count_in("trace", "other();"), 7);
	}
	assert_int_equal(put("snapshot", "0"), 0);
	assert_int_equal(count_in("snapshot", "* Snapshot is freed *"), 1);
}

static void a_recording_ends_at_the_moment_it_was_asked_for(void **state)
{
	struct gt_arena_file *file;
	struct gt_message message;
	char block[4096];
	(void)state;
	calls(0, 3, 1000);
	calls(1, 3, 10);
	assert_int_equal(gt_arena_file_open(&control, false, &file, &message), 0);
	int64_t got = gt_arena_file_read(file, block, sizeof(block));
	/* goes on in the sub-buffer that is open, and into the next ones */
	calls(1, 3, 900);
	calls(0, 3, 10);
	while (got > 0)
		got = gt_arena_file_read(file, block, sizeof(block));
	/* a CONTEXT or a CLOCK word more in each sub-buffer at most */
	assert_in_range(file->words, 2020, 2020 + 2 * file->sub_buffers);
	gt_arena_file_close(file);
}

/* ---- a recording that is taken out ---- */

#define NUMBERS 8192

/* How often each sub-buffer was given, and what was in them. */
static struct {
	uint8_t times[2][NUMBERS];
	uint64_t entries[FUNCTIONS + 1], returns[FUNCTIONS + 1];
	uint32_t named;	  /* threads */
	uint32_t threads; /* as the last block has it */
	bool ended;
} taken;

static void take_block(const struct graftrace_block *block, const uint8_t *payload)
{
	const struct {
		struct graftrace_file_sub_buffers all;
		struct graftrace_file_group group;
		struct graftrace_file_sub_buffer one;
	} *head = (const void *)payload;
	if (block->type == GRAFTRACE_BLOCK_END) {
		taken.ended = true;
		taken.threads = ((const struct graftrace_file_end *)payload)->threads;
	} else if (block->type == GRAFTRACE_BLOCK_WRITERS) {
		const struct graftrace_file_writers *writers = (const void *)payload;
		const struct graftrace_file_writer *writer = (const void *)(writers + 1);
		for (uint32_t i = 0; i < writers->count; i++)
			taken.named += writer[i].generation >= GRAFTRACE_CONTEXT_INTERRUPT;
	}
	if (block->type != GRAFTRACE_BLOCK_SUB_BUFFERS)
		return;
	assert_in_range(head->group.generation, 1, 2);
	assert_in_range(head->group.first_sequence, 0, NUMBERS - 1);
	assert_int_equal(taken.times[head->group.generation - 1][head->group.first_sequence]++, 0);
	const uint64_t *words =
		(const uint64_t *)((const uint8_t *)(head + 1) + 128 + head->one.open_calls * 16);
	for (uint32_t i = 0; i < head->one.words;
	     i += graftrace_record_words(&words[i], head->one.words - i, false)) {
		uint64_t word = words[i];
		assert_int_not_equal(word, 0);
		if (word == GT_LONG_RETURN_WORD)
			taken.returns[graftrace_word_function(words[i + 1])]++;
		else if (graftrace_word_function(word) > FUNCTIONS)
			continue;
		else if (graftrace_word_is_return(word))
			taken.returns[graftrace_word_function(word)]++;
		else
			taken.entries[graftrace_word_function(word)]++;
	}
}

/* Reads all there is, a whole number of blocks. 0: the file has ended, or GT_EAGAIN. */
static int64_t take(struct gt_arena_file *file)
{
	static uint8_t bytes[4 << 20] __attribute__((aligned(8)));
	size_t length = 0, at = 0;
	int64_t got;
	while ((got = gt_arena_file_read(file, (char *)bytes + length, 1000)) > 0)
		length += (size_t)got;
	if (length >= GRAFTRACE_FILE_MAGIC_BYTES &&
	    memcmp(bytes, GRAFTRACE_FILE_MAGIC, GRAFTRACE_FILE_MAGIC_BYTES) == 0)
		at = GRAFTRACE_FILE_MAGIC_BYTES;
	while (at < length) {
		const struct graftrace_block *block = (const void *)(bytes + at);
		assert_true(length - at >= sizeof(*block));
		take_block(block, bytes + at + sizeof(*block));
		at += sizeof(*block) + ((block->payload_bytes + 7) & ~7ull);
	}
	assert_int_equal(at, length);
	return got;
}

static struct gt_arena_file *begin_to_take(void)
{
	struct gt_arena_file *file;
	struct gt_message message;
	taken.ended = false;
	assert_int_equal(gt_arena_file_open(&control, true, &file, &message), 0);
	return file;
}

static void what_is_open_for_a_while_is_taken_out(void **state)
{
	(void)state;
	memset(&taken, 0, sizeof(taken));
	struct gt_arena_file *file = begin_to_take();
	calls(0, 3, 5);
	assert_int_equal(take(file), GT_EAGAIN);
	assert_int_equal(taken.entries[3], 0);
	now += 300000000;
	assert_int_equal(take(file), GT_EAGAIN);
	now += 300000000;
	assert_int_equal(take(file), GT_EAGAIN);
	assert_int_equal(taken.entries[3], 5);
	assert_int_equal(taken.returns[3], 5);
	assert_int_equal(closed, 1);
	/* and nobody is disturbed for what is empty */
	for (int look = 0; look < 5; look++) {
		now += 300000000;
		assert_int_equal(take(file), GT_EAGAIN);
	}
	assert_int_equal(closed, 1);
	gt_arena_file_close(file);
}

/* Writers go on, in the middle of their calls, and recordings come one behind the other. */
static void recordings_share_nothing_and_miss_nothing(void **state)
{
	uint64_t made = 0, seed = 5;
	uint32_t depth[2] = { 0 };
	(void)state;
	memset(&taken, 0, sizeof(taken));
	for (int recording = 0; recording < 30; recording++) {
		struct gt_arena_file *file = begin_to_take();
		for (int step = 0; step < 60; step++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			uint32_t cpu = (uint32_t)(seed >> 40) % 2;
			uint32_t count = (uint32_t)(seed >> 50) % 64;
			gt_fake_run(cpu);
			if (count % 3 == 0 && depth[cpu] < 30) {
				gt_fake_call(1);
				depth[cpu]++;
			} else if (count % 3 == 1 && depth[cpu] != 0) {
				gt_fake_return();
				depth[cpu]--;
			}
			calls(cpu, 3, (int)count);
			made += count;
			now += (seed >> 35) % 200000000;
			assert_int_equal(take(file), GT_EAGAIN);
		}
		assert_int_equal(put("trace_pipe.data", "0\n"), 0);
		assert_int_equal(put("trace_pipe.data", "0\n"), 0); /* it is known */
		assert_int_equal(take(file), 0);
		assert_true(taken.ended);
		assert_int_equal(taken.entries[3], made);
		assert_int_equal(taken.returns[3], made);
		assert_int_equal(taken.entries[1] - taken.returns[1], depth[0] + depth[1]);
		/* too late for this one */
		calls(0, 3, 3);
		made += 3;
		assert_int_equal(take(file), 0);
		gt_arena_file_close(file);
	}
	assert_int_equal(ring.arena->sub_buffer_count - ring.arena->free_count, 1);
	assert_int_equal(number_in("stats", "dropped events: "), 0);
}

static void threads_without_a_name_are_counted(void **state)
{
	(void)state;
	memset(&taken, 0, sizeof(taken));
	threads = 3000;
	first_named = 2500;
	struct gt_arena_file *file = begin_to_take();
	assert_int_equal(put("trace_pipe.data", "0\n"), 0);
	assert_int_equal(take(file), 0);
	threads = 3;
	first_named = 1;
	assert_true(taken.ended);
	assert_int_equal(taken.named, 501);
	assert_int_equal(taken.threads, 3000);
	gt_arena_file_close(file);
}

static void only_a_recording_that_runs_can_be_ended(void **state)
{
	(void)state;
	assert_int_equal(put("trace_pipe.data", "0"), GT_EBADF);
	struct gt_arena_file *file = begin_to_take();
	assert_int_equal(put("trace_pipe.data", "1"), GT_EINVAL);
	assert_int_equal(put("trace_pipe.data", ""), GT_EINVAL);
	gt_arena_file_close(file);
	assert_int_equal(put("trace_pipe.data", "0"), GT_EBADF);
	file = begin_to_take();
	assert_int_equal(take(file), GT_EAGAIN);
	gt_arena_file_close(file);
}

/* An interrupt came between a writer's taking a place and its storing the word. */
static void a_word_that_is_late_is_waited_for(void **state)
{
	(void)state;
	memset(&taken, 0, sizeof(taken));
	calls(0, 3, 5);
	struct gt_thread *block = &gt_fake_cpu(0)->block;
	uint64_t *late = (uint64_t *)block->cur - 3, word = *late;
	*late = 0;
	struct gt_arena_file *file = begin_to_take();
	assert_int_equal(put("trace_pipe.data", "0"), 0);
	assert_int_equal(take(file), GT_EAGAIN);
	assert_int_equal(taken.entries[3], 0);
	*late = word;
	assert_int_equal(take(file), 0);
	assert_int_equal(taken.entries[3], 5);
	assert_int_equal(taken.returns[3], 5);
	gt_arena_file_close(file);
}

static void commands_make_functions_look_at_the_table(void **state)
{
	(void)state;
	assert_int_equal(put("set_ftrace_filter", "leaf:traceoff:2"), 0);
	assert_int_equal(patched[2], GRAFTRACE_ENTRY_TRIGGER);
	assert_int_equal(patched[1], GRAFTRACE_ENTRY_ON);
	assert_int_equal(count_in("set_ftrace_filter", "leaf:traceoff:count=2"), 1);
	assert_int_equal(put("set_ftrace_filter", "*:stacktrace"), 0);
	assert_int_equal(patched[0], GRAFTRACE_ENTRY_TRIGGER);
	assert_int_equal(put("set_ftrace_filter", "!*:stacktrace"), 0);
	assert_int_equal(patched[0], GRAFTRACE_ENTRY_ON);
	assert_int_equal(patched[2], GRAFTRACE_ENTRY_TRIGGER);
	assert_int_equal(put("set_ftrace_filter", "nothing:traceoff"), GT_EINVAL);
	assert_int_equal(put("set_ftrace_filter", "!inner:traceoff"), GT_ENODEV);
	assert_int_equal(put("set_ftrace_filter", "!leaf:traceoff"), GT_ENODEV);
	assert_int_equal(put("set_ftrace_filter", "!leaf:traceoff:0"), 0);
	assert_int_equal(patched[2], GRAFTRACE_ENTRY_ON);
	/* only so many, and then in words */
	for (int set = 0; set <= GT_ARENA_COMMANDS; set++) {
		char command[64];
		snprintf(command, sizeof(command), "%c%c%c%c:%s", set & 1 ? 'l' : '?',
			 set & 2 ? 'e' : '?', set & 4 ? 'a' : '?', set & 8 ? 'f' : '?',
			 set < 16   ? "traceon"
			 : set < 32 ? "traceoff"
				    : "stacktrace");
		assert_int_equal(put("set_ftrace_filter", command),
				 set < GT_ARENA_COMMANDS ? 0 : GT_ENOSPC);
	}
}

static void snapshot_and_dump_wait_for_the_kernels_thread(void **state)
{
	(void)state;
	calls(0, 3, 3);
	assert_int_equal(put("set_ftrace_filter", "leaf:dump:1"), 0);
	assert_int_equal(watched, 1);
	assert_true(gt_arena_control_must_act(&control));
	gt_arena_control_act(&control);
	assert_string_equal(printed, "");
	gt_arena_control_note(&control, GRAFTRACE_TRIGGER_DUMP);
	gt_arena_control_note(&control, GRAFTRACE_TRIGGER_SNAPSHOT);
	gt_arena_control_act(&control);
	/* the snapshot is taken first, as its moment is the more exact */
	assert_int_equal(count_in("snapshot", "leaf();"), 3);
	assert_int_equal(occurrences(printed, "# tracer: function_graph"), 1);
	assert_int_equal(put("set_ftrace_filter", "!leaf:dump:0"), 0);
	assert_false(gt_arena_control_must_act(&control));
}

static void marks_stand_between_calls(void **state)
{
	char *text;
	(void)state;
	calls(0, 3, 1);
	assert_int_equal(put("trace_marker", "between"), 0);
	calls(0, 4, 1);
	text = read_file("trace");
	const char *first = strstr(text, "leaf();"), *mark_at = strstr(text, "/* between */");
	assert_true(first != NULL && mark_at > first && strstr(mark_at, "other();") != NULL);
	free(text);
	assert_int_equal(put("tracing_on", "0"), 0);
	assert_int_equal(put("trace_marker", "nobody"), GT_EBADF);
}

/* ---- a kernel that supplies what it must, and no more ---- */

static const struct gt_arena_machine least = {
	.lock = lock,
	.unlock = lock,
	.set_tracing_on = set_tracing_on,
	.patch = patch,
	.now_ns = now_ns,
	.thread_number = thread_number,
};

static int start_least(void **state)
{
	start(state);
	control.machine = &least;
	return 0;
}

static void what_a_kernel_lacks_is_refused_in_words(void **state)
{
	static const struct {
		const char *path, *value;
	} wishes[] = {
		{ "current_tracer", "nop" },
		{ "max_graph_depth", "3" },
		{ "tracing_thresh", "100" },
		{ "set_graph_function", "leaf" },
		{ "options/func_stack_trace", "1" },
		{ "options/sleep-time", "0" },
		{ "function_profile_enabled", "1" },
		{ "trace_marker", "here" },
		{ "trace_marker_raw", "here" },
		{ "set_ftrace_filter", "leaf:snapshot" },
		{ "set_ftrace_filter", "leaf:dump:1" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++)
		for (int truncate = 0; truncate < 2; truncate++) {
			const char *path = wishes[i].path, *value = wishes[i].value;
			struct gt_control_node node;
			struct gt_message message = { "" };
			assert_int_equal(
				gt_control_find(&control.control, path, strlen(path), &node), 0);
			assert_int_equal(
				gt_control_put(&node, truncate, value, strlen(value), &message),
				GT_ENOTSUP);
			assert_non_null(strstr(message.text, "this kernel"));
		}
	/* nothing of it has half happened */
	assert_int_equal(count_in("options/func_stack_trace", "0"), 1);
	assert_int_equal(count_in("tracing_thresh", "0"), 1);
	assert_int_equal(count_in("set_ftrace_filter", "leaf"), 0);
	calls(0, 3, 2);
	assert_int_equal(count_in("trace", "leaf();"), 2);
}

/* Whatever is written to whichever file, by `>` and by `>>`. */
static void every_file_can_be_written_where_little_is_supplied(void **state)
{
	static const char *const values[] = { "",
					      "0",
					      "1",
					      "nop",
					      "function",
					      "leaf",
					      "!leaf",
					      "leaf:dump",
					      "leaf:snapshot:1",
					      "leaf:traceon",
					      "func_stack_trace",
					      "uptime",
					      "ff" };
	const struct gt_control_file *file;
	int written = 0;
	(void)state;
	for (uint32_t row = 0; (file = gt_control_row(&control.control, row)) != NULL; row++) {
		char path[128];
		struct gt_control_node node;
		snprintf(path, sizeof(path), "%s", file->path);
		if (strchr(path, '#') != NULL)
			*strchr(path, '#') = '1';
		if (!gt_control_exists(&control.control, file) ||
		    !(gt_control_access(&control.control, file) & GT_CONTROL_WRITE))
			continue;
		assert_int_equal(gt_control_find(&control.control, path, strlen(path), &node), 0);
		for (size_t i = 0; i < 2 * sizeof(values) / sizeof(values[0]); i++) {
			struct gt_message message = { "" };
			const char *value = values[i / 2];
			int error = gt_control_put(&node, i & 1, value, strlen(value), &message);
			assert_true(error == 0 || message.text[0] != '\0');
			written++;
		}
	}
	assert_true(written > 40 * 26);
}

static void what_must_be_supplied_is_asked_for_at_once(void **state)
{
	static const struct gt_memory memory = { resize, NULL };
	struct gt_arena_control other;
	struct gt_arena_machine lacks[6];
	(void)state;
	for (int i = 0; i < 6; i++)
		lacks[i] = least;
	lacks[0].lock = NULL;
	lacks[1].unlock = NULL;
	lacks[2].set_tracing_on = NULL;
	lacks[3].patch = NULL;
	lacks[4].now_ns = NULL;
	lacks[5].thread_number = NULL;
	for (int i = 0; i < 6; i++)
		assert_int_equal(gt_arena_control_init(&other, &ring, &lacks[i], &memory, FUNCTIONS,
						       "lacks"),
				 GT_EINVAL);
}

/* ---- a kernel of many functions and deep stacks ---- */

#define MANY 100000

static char many_names[MANY][8];

static int one_of_many(void *data, uint32_t number, struct gt_function *out)
{
	(void)data;
	if (number - 1 >= MANY)
		return GT_ENOENT;
	*out = (struct gt_function){ .name = many_names[number - 1], .object = "kernel" };
	return GT_OK;
}

static void patch_nothing(void *data, const uint8_t *wanted)
{
	(void)data;
	(void)wanted;
}

static void set_profile(void *data, bool on)
{
	(void)data;
	gt_kernel_set_profile(on);
}

static void profile_table(void *data, uint32_t cpu, struct graftrace_profile_entry **table,
			  uint32_t pages)
{
	(void)data;
	gt_kernel_profile_table(cpu, table, pages);
}

static int start_large(void **state)
{
	static const struct gt_arena_names arena_names = { one_of_many, function_at, thread_name,
							   NULL, NULL };
	static struct gt_arena_machine machine;
	static const struct gt_memory memory = { resize, NULL };
	(void)state;
	for (int i = 0; i < MANY; i++)
		snprintf(many_names[i], sizeof(many_names[i]), "f%06d", i);
	allocated = 0;
	largest = 0;
	machine = least;
	machine.patch = patch_nothing;
	machine.set_profile = set_profile;
	machine.profile_table = profile_table;
	gt_fake_start(64 << 20, 1 << 20);
	memset(&ring, 0, sizeof(ring));
	ring.arena = gt_fake_arena();
	ring.names = &arena_names;
	ring.clock = (struct gt_clock){ .tsc_base = 1ull << 40, .mult = 1 };
	gt_fake_cpu_start(0, gt_fake_stack_of(1, 8 << 20, MANY + 1));
	assert_int_equal(gt_arena_control_init(&control, &ring, &machine, &memory, MANY, "large"),
			 0);
	gt_kernel_set_tracing_on(true);
	return 0;
}

/* Reads all of a file; how many lines have `what`, and not `without`. */
static int lines_in(const char *path, const char *what, const char *without)
{
	static char block[1 << 16], line[1 << 16];
	struct gt_control_node node;
	struct gt_control_handle handle;
	struct gt_message message;
	size_t length = 0;
	int64_t got;
	int found = 0;
	assert_int_equal(gt_control_find(&control.control, path, strlen(path), &node), 0);
	assert_int_equal(gt_control_open(&handle, &node, GT_CONTROL_READ, &message), 0);
	while ((got = gt_control_read(&handle, block, sizeof(block), &message)) > 0)
		for (int64_t i = 0; i < got; i++) {
			if (block[i] != '\n') {
				assert_true(length < sizeof(line) - 1);
				line[length++] = block[i];
				continue;
			}
			line[length] = '\0';
			length = 0;
			found += strstr(line, what) != NULL &&
				 (without == NULL || strstr(line, without) == NULL);
		}
	assert_int_equal(got, 0);
	gt_control_close(&handle, &message);
	return found;
}

/* Of calls deeper than a piece of memory has frames the decoder forgets the outermost. When they
 * return, another sub-buffer has begun, and the record itself says since when they ran. */
static void no_piece_is_larger_than_a_kernel_may_have_in_a_row(void **state)
{
	(void)state;
	gt_fake_run(0);
	for (uint32_t i = 0; i < MANY; i++)
		gt_fake_call(1 + i);
	for (uint32_t i = 0; i < MANY; i++)
		gt_fake_return();
	assert_int_equal(number_in("stats", "entries: "), 2 * MANY);
	assert_int_equal(lines_in("trace", "() {", NULL), MANY - 1);
	assert_int_equal(lines_in("trace", "f099999();", NULL), 1);
	assert_int_equal(lines_in("trace", "}", NULL), MANY - 1);
	assert_int_equal(lines_in("trace", "}", " us "), 0);
	assert_true(largest > GT_ARENA_PIECE_BYTES / 2);
	assert_int_equal(lines_in("available_filter_functions", "f", NULL), MANY);
	assert_int_equal(put("set_ftrace_filter", "f0*"), 0);
	assert_int_equal(lines_in("set_ftrace_filter", "f", NULL), MANY);
	assert_true(lines_in("trace.data", "f", NULL) > 0);
	assert_int_equal(put("snapshot", "1"), 0);
	assert_int_equal(lines_in("snapshot", "}", NULL), MANY - 1);
	assert_int_equal(put("function_profile_enabled", "1"), 0);
	for (uint32_t i = 0; i < MANY; i++) {
		gt_fake_call(1 + i);
		gt_fake_return();
	}
	assert_int_equal(lines_in("trace_stat/function0", "  f0", NULL), MANY);
	assert_int_equal(put("function_profile_enabled", "0"), 0);
	for (uint32_t i = 0; i <= MANY / GRAFTRACE_PROFILE_FUNCTIONS; i++)
		resize(NULL, control.profile[0][i], GRAFTRACE_PROFILE_PAGE_BYTES, 0);
	resize(NULL, control.profile[0], (MANY / GRAFTRACE_PROFILE_FUNCTIONS + 1) * sizeof(void *),
	       0);
}

static int finish(void **state)
{
	(void)state;
	put("snapshot", "0");
	assert_int_equal(allocated,
			 2); /* the lists of functions, which live as long as the kernel */
	free(control.marks);
	free(control.wanted);
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)
	const struct CMUnitTest tests[] = {
		TEST(counts_add_up_in_a_ring_that_is_full_and_read),
		TEST(trace_self_takes_what_the_other_options_take),
		TEST(counts_add_up_where_the_oldest_is_overwritten),
		TEST(a_clear_begins_all_counts_anew),
		TEST(a_record_is_in_the_snapshot_or_comes_later),
		TEST(a_recording_ends_at_the_moment_it_was_asked_for),
		TEST(what_is_open_for_a_while_is_taken_out),
		TEST(recordings_share_nothing_and_miss_nothing),
		TEST(threads_without_a_name_are_counted),
		TEST(only_a_recording_that_runs_can_be_ended),
		TEST(a_word_that_is_late_is_waited_for),
		TEST(commands_make_functions_look_at_the_table),
		TEST(snapshot_and_dump_wait_for_the_kernels_thread),
		TEST(marks_stand_between_calls),
		cmocka_unit_test_setup_teardown(what_a_kernel_lacks_is_refused_in_words,
						start_least, finish),
		cmocka_unit_test_setup_teardown(every_file_can_be_written_where_little_is_supplied,
						start_least, finish),
		TEST(what_must_be_supplied_is_asked_for_at_once),
		cmocka_unit_test_setup_teardown(no_piece_is_larger_than_a_kernel_may_have_in_a_row,
						start_large, finish),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
