/* SPDX-License-Identifier: MIT */
/*
 * The control files of a session, over a made-up session with one thread whose sub-buffer grows:
 * what is consumed, what filters come down to, what is refused; and many threads at it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "serve/live/live.h"
#include "tests/unit/fake_session.h"

#define TEXT_BYTES 65536

static struct gt_live *live;
static struct gt_message message;
static uint32_t depth; /* of the thread's calls that began before its sub-buffer */

/* The linker puts this before the library's (meson.build). */
static atomic_size_t largest_bytes;
static atomic_int reallocs_left = -1; /* the one after so many fails; -1: none */
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
	if (bytes > largest_bytes)
		largest_bytes = bytes;
	if (bytes > 1 << 30 || reallocs_left == 0)
		return NULL;
	if (reallocs_left > 0)
		reallocs_left--;
	return __real_realloc(memory, bytes);
}

static uint32_t writer_count(struct gt_target *target)
{
	(void)target;
	return 1;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	(void)target;
	if (index != 0)
		return GT_ENOENT;
	*out = (struct gt_writer){ .generation = 1,
				   .pid = 7,
				   .tid = 7,
				   .comm = "prog",
				   .first = 0,
				   .next = 1,
				   .start = 100 };
	return 0;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct graftrace_sub_buffer *copy = buffer;

	(void)target;
	if (index != 0 || sequence != 0)
		return GT_ENOENT;
	pthread_mutex_lock(&session.lock);
	*copy = (struct graftrace_sub_buffer){
		.magic = GRAFTRACE_SUB_BUFFER_MAGIC,
		.bytes = sizeof(*copy) + WORDS * 8,
		.generation = 1,
		.pid = 7,
		.tid = 7,
		.clock = session.begin,
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.depth = depth,
	};
	memcpy(copy + 1, session.words, sizeof(session.words));
	pthread_mutex_unlock(&session.lock);
	*bytes = buffer;
	return WORDS;
}

static int function(void *data, uint32_t number, struct gt_function *out)
{
	(void)data;
	if (number == 0 || number > NAMES)
		return GT_ENOENT;
	*out = (struct gt_function){ .name = names[number - 1],
				     .object = "/bin/prog",
				     .address = 0x1000 + number,
				     .size = 16 };
	return 0;
}

static int function_at(void *data, uint32_t pid, uint64_t address, struct gt_function *out)
{
	(void)data;
	(void)pid;
	(void)address;
	(void)out;
	return GT_ENOENT;
}

static uint32_t read_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	uint32_t count = 0;

	(void)data;
	pthread_mutex_lock(&session.lock);
	while (count < room && *cursor < session.switch_count)
		out[count++] = session.switches[(*cursor)++];
	pthread_mutex_unlock(&session.lock);
	return count;
}

static int off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	(void)data;
	(void)tid;
	pthread_mutex_lock(&session.lock);
	*time = (struct gt_off_cpu){ .from = session.off_from,
				     .to = session.off_from + session.off_ticks };
	pthread_mutex_unlock(&session.lock);
	if (time->to == time->from)
		return GT_ENOTSUP;
	if (after >= time->to)
		*time = (struct gt_off_cpu){ .from = UINT64_MAX,
					     .to = UINT64_MAX,
					     .before = time->to - time->from };
	return 0;
}

static const struct gt_ring_ops ring = { .writer_count = writer_count,
					 .writer = writer,
					 .sub_buffer = sub_buffer };
static const struct gt_name_ops name_ops = { .function = function, .function_at = function_at };
static const struct gt_switch_ops switches = { .off_cpu = off_cpu, .read = read_switches };

/* The thread calls the function and returns. */
static void call(uint32_t number)
{
	pthread_mutex_lock(&session.lock);
	for (int is_return = 0; is_return < 2; is_return++) {
		uint32_t at = session.written++;

		session.words[at] = graftrace_word(number, is_return, session.begin + at * 1000);
	}
	pthread_mutex_unlock(&session.lock);
}

/* The thread calls the function now, and is off the CPU for some of its ticks. */
static void sleep_in(uint32_t number, uint64_t ticks, uint64_t off_ticks)
{
	uint64_t now = __builtin_ia32_rdtsc();

	pthread_mutex_lock(&session.lock);
	session.off_from = now + 1;
	session.off_ticks = off_ticks;
	session.words[session.written++] = graftrace_word(number, 0, now);
	session.words[session.written++] = graftrace_word(number, 1, now + ticks);
	pthread_mutex_unlock(&session.lock);
}

/* It leaves its CPU. */
static void leave(void)
{
	pthread_mutex_lock(&session.lock);
	session.switches[session.switch_count++] = (struct gt_switch){
		.clock = __builtin_ia32_rdtsc(), .tid = 7, .flags = GT_SWITCH_OUT
	};
	pthread_mutex_unlock(&session.lock);
}

static int set_up(void **state)
{
	static const char *const filter[] = { "alp*", NULL };
	struct gt_live_options options = { .size = sizeof(options),
					   .program = "/bin/prog",
					   .settings = { .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
							 .max_depth = 4 },
					   .mode = GRAFTRACE_MODE_RING,
					   .buffer_bytes = 1 << 20 };
	struct gt_live_options older = options;
	bool failed;

	(void)state;
	memset(&session, 0, sizeof(session));
	depth = 0;
	pthread_mutex_init(&session.lock, NULL);
	session.on = true;
	session.begin = 100;
	session.target = (struct gt_target){
		.ring = &ring,
		.names = &name_ops,
		.switches = &switches,
		.clock = { 0, 0, 1, 0 },
		.sub_buffer_bytes = sizeof(struct graftrace_sub_buffer) + WORDS * 8,
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.cpu_count = 1,
	};
	older.size--;
	failed = gt_trace_settings_append(&options.settings, GT_LIST_FILTER, &gt_host_memory,
					  filter) != 0 ||
		 gt_live_create(&session, &older, &live, &message) != GT_EINVAL ||
		 gt_live_create(&session, &options, &live, &message);
	gt_trace_settings_fini(&options.settings);
	return failed;
}

static int tear_down(void **state)
{
	(void)state;
	gt_live_destroy(live);
	gt_trace_settings_fini(&session.asked);
	return 0;
}

/* Opens `path` for reading; the error. */
static int open_file(struct gt_control_handle *handle, const char *path)
{
	struct gt_control_node node;
	struct gt_message why;

	if (gt_control_find(gt_live_control(live), path, strlen(path), &node) != 0)
		return GT_ENOENT;
	return gt_control_open(handle, &node, GT_CONTROL_READ, &why);
}

/* The text of `path` so far, in the caller's buffer; what its reading ended with. */
static int64_t read_file(const char *path, char text[TEXT_BYTES])
{
	struct gt_control_handle handle;
	struct gt_message why;
	size_t bytes = 0;
	int64_t got = open_file(&handle, path);

	text[0] = '\0';
	if (got != 0)
		return got;
	while ((got = gt_control_read(&handle, text + bytes, TEXT_BYTES - 1 - bytes, &why)) > 0)
		bytes += (size_t)got;
	text[bytes] = '\0';
	gt_control_close(&handle, &why);
	return got;
}

static char text[TEXT_BYTES];

static const char *get(const char *path)
{
	assert_int_equal(read_file(path, text), 0);
	return text;
}

static int put_as(const char *path, const char *value, bool truncate)
{
	struct gt_control_node node;

	message.text[0] = '\0';
	assert_int_equal(gt_control_find(gt_live_control(live), path, strlen(path), &node), 0);
	return gt_control_put(&node, truncate, value, strlen(value), &message);
}

static int put(const char *path, const char *value)
{
	return put_as(path, value, true);
}

static unsigned count(const char *in, const char *what)
{
	unsigned found = 0;

	for (const char *at = in; (at = strstr(at, what)) != NULL; at++)
		found++;
	return found;
}

static void what_trace_pipe_gave_is_nobodys_any_more(void **state)
{
	(void)state;
	call(1);
	call(2);
	assert_int_equal(count(get("trace"), "alpha();"), 1);
	assert_int_equal(count(get("trace"), "alpha();"), 1);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "alpha();"), 1);
	assert_int_equal(count(text, "beta();"), 1);
	assert_null(strstr(text, "# tracer"));
	assert_null(strstr(get("trace"), "();"));
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_string_equal(text, "");
	call(3);
	assert_int_equal(count(get("trace"), "beta_two();"), 1);
	assert_int_equal(count(get("trace"), "alpha"), 0);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "beta_two();"), 1);
	call(1);
	gt_live_end(live);
	assert_int_equal(read_file("trace_pipe", text), 0);
	assert_int_equal(count(text, "alpha();"), 1);
}

static void emptying_the_ring_leaves_nothing_of_a_growing_sub_buffer(void **state)
{
	(void)state;
	call(1);
	assert_int_equal(put("trace", ""), 0);
	assert_int_equal(session.cleared, 1);
	call(2);
	assert_int_equal(count(get("trace"), "alpha"), 0);
	assert_int_equal(count(get("trace"), "beta();"), 1);
	assert_int_equal(put("current_tracer", "function_graph"), 0);
	assert_int_equal(session.cleared, 1); /* the same tracer: nothing is lost */
	assert_int_equal(put("current_tracer", "nop"), 0);
	assert_int_equal(session.cleared, 2);
}

static void a_mark_stands_in_the_trace_at_its_time(void **state)
{
	(void)state;
	assert_int_equal(put("trace_marker", "hello marks\n"), 0);
	assert_non_null(strstr(get("trace"), "/* hello marks */\n"));
	assert_int_equal(put("trace_marker_raw", "\x01\x02\x03\x04xy"), 0);
	assert_non_null(strstr(get("trace"), "/* # 4030201 buf: 78 79 */\n"));
	/* taken out once */
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "hello marks"), 1);
	assert_int_equal(count(get("trace"), "hello marks"), 0);
	assert_int_equal(put("tracing_on", "0"), 0);
	assert_int_equal(put("trace_marker", "x"), GT_EBADF);
	assert_int_equal(put("tracing_on", "1"), 0);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(put("trace_marker", "many\n"), 0);
	assert_int_equal(count(get("trace"), "/* many */"), 2000);
	assert_int_equal(put("trace", ""), 0);
	assert_int_equal(count(get("trace"), "many"), 0);
	assert_int_equal(put("trace_marker", "last\n"), 0);
	assert_int_equal(count(get("trace"), "last"), 1);
}

static uint64_t number_of(const char *in, const char *name)
{
	const char *at = strstr(in, name);

	assert_non_null(at);
	return strtoull(at + strlen(name), NULL, 10);
}

static void stats_add_up(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		call(1);
	assert_int_equal(number_of(get("stats"), "entries: "), 10);
	assert_int_equal(number_of(text, "read events: "), 0);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	call(2);
	assert_int_equal(number_of(get("per_thread/7/stats"), "entries: "), 2);
	assert_int_equal(number_of(text, "read events: "), 10);
	assert_int_equal(number_of(get("per_cpu/cpu0/stats"), "entries: "), 2);
	assert_int_equal(put("trace", ""), 0);
	assert_int_equal(number_of(get("stats"), "entries: "), 0);
	assert_int_equal(number_of(text, "read events: "), 0);
	call(2);
	assert_int_equal(number_of(get("stats"), "entries: "), 2);
}

/* A page of the CPU's records as trace-cmd reads them: bytes, or GT_EAGAIN. */
static int64_t read_raw(void)
{
	struct gt_control_handle handle;
	static char page[65536];
	int64_t got;

	assert_int_equal(open_file(&handle, "per_cpu/cpu0/trace_pipe_raw"), 0);
	got = gt_control_read(&handle, page, sizeof(page), &message);
	gt_control_close(&handle, &message);
	return got;
}

static void a_thread_has_a_pipe_of_its_own(void **state)
{
	struct gt_control_handle one;
	struct gt_control_handle two;

	(void)state;
	call(1);
	assert_int_equal(read_file("per_thread/7/trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "alpha();"), 1);
	assert_int_equal(count(get("trace"), "alpha();"), 0);
	call(2);
	assert_int_equal(open_file(&one, "per_thread/7/trace_pipe"), 0);
	assert_int_equal(open_file(&two, "trace_pipe"), GT_EBUSY);
	gt_control_close(&one, &message);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "beta();"), 1);
	assert_int_equal(count(text, "alpha();"), 0);
}

static void what_trace_pipe_gave_of_switches_it_gives_once(void **state)
{
	(void)state;
	assert_int_equal(put("events/enable", "1"), 0);
	call(1);
	leave();
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "sched_switch:"), 1);
	assert_int_equal(count(get("trace"), "sched_switch:"), 0);
	/* its reader is made anew behind that of a thread */
	call(2);
	assert_int_equal(read_file("per_thread/7/trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(get("trace"), "sched_switch:"), 0);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "sched_switch:"), 0);
}

static void a_snapshot_takes_the_switches_along(void **state)
{
	(void)state;
	assert_int_equal(put("events/enable", "1"), 0);
	call(1);
	leave();
	assert_int_equal(put("snapshot", "1"), 0);
	assert_int_equal(count(get("trace"), "sched_switch:"), 0);
	call(2);
	leave();
	assert_int_equal(count(get("trace"), "sched_switch:"), 1);
	assert_int_equal(count(get("snapshot"), "sched_switch:"), 1);
	assert_int_equal(put("trace", ""), 0);
	assert_int_equal(count(get("snapshot"), "sched_switch:"), 1);
}

static void what_a_cpus_pipe_has_given_is_in_no_snapshot(void **state)
{
	(void)state;
	call(1);
	assert_int_equal(read_file("per_cpu/cpu0/trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "alpha();"), 1);
	call(2);
	assert_int_equal(put("snapshot", "1"), 0);
	assert_int_equal(count(get("snapshot"), "alpha();"), 0);
	assert_int_equal(count(get("snapshot"), "beta();"), 1);
}

static void what_a_raw_pipe_gave_of_switches_nobody_gives_again(void **state)
{
	(void)state;
	assert_int_equal(put("events/enable", "1"), 0);
	call(1);
	leave();
	assert_true(read_raw() > 0);
	assert_int_equal(read_raw(), GT_EAGAIN);
	assert_int_equal(count(get("trace"), "sched_switch:"), 0);
	call(2);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "sched_switch:"), 0);
	assert_int_equal(count(text, "beta();"), 1);
	/* and the other way round */
	leave();
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(count(text, "sched_switch:"), 1);
	assert_int_equal(read_raw(), GT_EAGAIN);
}

static void clocks_move_the_time_stamps_only(void **state)
{
	(void)state;
	assert_int_equal(put("options/funcgraph-abstime", "1"), 0);
	call(1);
	assert_non_null(strstr(get("trace"), "    0.000000 |"));
	/* another clock clears */
	assert_int_equal(put("trace_clock", "x86-tsc"), 0);
	assert_int_equal(count(get("trace"), "alpha"), 0);
	call(1);
	assert_non_null(strstr(get("trace"), "    0.000002 |   0)   1.000 us    |  alpha();"));
	assert_int_equal(put("trace_clock", "boot"), 0);
	assert_non_null(strstr(get("trace_clock"), "[boot]"));
}

static void commands_become_triggers(void **state)
{
	(void)state;
	assert_int_equal(put_as("set_ftrace_filter", "beta*:traceoff:3", false), 0);
	assert_int_equal(session.trigger.action, GT_TRIGGER_TRACEOFF);
	assert_int_equal(session.trigger.count, 3);
	assert_non_null(strstr(get("set_ftrace_filter"), "beta*:traceoff:count=3\n"));
	assert_int_equal(put_as("set_ftrace_filter", "!beta*:traceon:0", false), GT_ENODEV);
	assert_int_equal(put_as("set_ftrace_filter", "!beta*:traceoff:0", false), 0);
	assert_null(session.trigger.glob);
}

/* One process of several cannot be stopped: the others have the new settings. */
static void what_the_session_took_is_shown_though_it_failed(void **state)
{
	(void)state;
	session.unpatched = true;
	assert_int_equal(put("set_ftrace_filter", "beta"), GT_EBUSY);
	assert_string_equal(get("set_ftrace_filter"), "beta\n");
	assert_int_equal(put("current_tracer", "function"), GT_EBUSY);
	assert_string_equal(get("current_tracer"), "function\n");
}

/* Of two writers of one command the second has not seen the first one's. */
static void a_command_of_an_instance_stays_if_the_same_one_is_refused(void **state)
{
	struct gt_control_command command = {
		.function = "beta", .function_bytes = 4, .action = GT_ACTION_TRACEOFF, .count = 3
	};
	struct gt_control_node node;

	(void)state;
	assert_int_equal(gt_control_make(gt_live_control(live), "instances/some", 14, &message), 0);
	assert_int_equal(gt_control_find(gt_live_control(live), "instances/some/trace", 20, &node),
			 0);
	assert_int_equal(node.target->ops->command_set(node.target, &command, &message), 0);
	session.unpatched = true;
	command.count = 5;
	assert_int_equal(node.target->ops->command_set(node.target, &command, &message), GT_EINVAL);
	command.function = "alpha", command.function_bytes = 5;
	assert_int_equal(node.target->ops->command_set(node.target, &command, &message), GT_EBUSY);
	assert_non_null(strstr(get("instances/some/set_ftrace_filter"), "beta:traceoff:count=3\n"));
	assert_null(strstr(get("instances/some/set_ftrace_filter"), "alpha:"));
}

static void pausing_holds_while_the_trace_is_open(void **state)
{
	struct gt_control_handle handle;

	(void)state;
	assert_int_equal(put("options/pause-on-trace", "1"), 0);
	assert_int_equal(open_file(&handle, "trace"), 0);
	assert_false(session.on);
	gt_control_close(&handle, &message);
	assert_true(session.on);
	assert_int_equal(put("options/pause-on-trace", "0"), 0);
	assert_int_equal(open_file(&handle, "trace"), 0);
	assert_true(session.on);
	gt_control_close(&handle, &message);
}

static void trace_pipe_has_one_reader_and_holds_the_tracer(void **state)
{
	struct gt_control_handle one;
	struct gt_control_handle two;

	(void)state;
	assert_int_equal(open_file(&one, "trace_pipe"), 0);
	assert_int_equal(open_file(&two, "trace_pipe"), GT_EBUSY);
	assert_int_equal(put("current_tracer", "nop"), GT_EBUSY);
	assert_string_equal(get("current_tracer"), "function_graph\n");
	gt_control_close(&one, &message);
	assert_int_equal(open_file(&two, "trace_pipe"), 0);
	gt_control_close(&two, &message);
	assert_int_equal(put("current_tracer", "nop"), 0);
}

static void a_trace_stays_the_same_while_the_clock_gets_better(void **state)
{
	char before[TEXT_BYTES];

	(void)state;
	call(1);
	strcpy(before, get("trace"));
	session.target.clock.mult = 3;
	assert_string_equal(get("trace"), before);
}

static void filters_reach_the_session_as_they_were_written(void **state)
{
	(void)state;
	assert_string_equal(get("set_ftrace_filter"), "alpha\n"); /* of the start */
	assert_string_equal(get("max_graph_depth"), "4\n");
	assert_int_equal(put_as("set_ftrace_filter", "b*", false), 0);
	assert_string_equal(session.filter, "alp* b* ///");
	assert_int_equal(put("set_ftrace_notrace", "beta_two"), 0);
	assert_string_equal(session.filter, "alp* b* /beta_two //");
	assert_int_equal(put("set_graph_function", "4"), 0);
	assert_string_equal(session.filter, "alp* b* /beta_two /operator\\* /");
	assert_string_equal(get("set_graph_function"), "operator* [libx.so.1]\n");
	assert_int_equal(put_as("set_ftrace_filter", "!alp*", false), 0);
	assert_string_equal(session.filter, "b* /beta_two /operator\\* /");
	/* not as it was written: names are left */
	assert_int_equal(put_as("set_ftrace_filter", "!beta", false), 0);
	assert_string_equal(session.filter, "beta_two /beta_two /operator\\* /");
	assert_int_equal(put_as("set_ftrace_filter", "!alpha", false), 0);
	assert_string_equal(session.filter, "beta_two /beta_two /operator\\* /");
	assert_int_equal(put_as("set_ftrace_filter", "!nosuch", false), GT_EINVAL);
	assert_int_equal(put("set_ftrace_filter", "beta nosuch"), GT_EINVAL);
	assert_non_null(strstr(message.text, "nosuch"));
	/* as on Linux: the words before the refused one */
	assert_string_equal(get("set_ftrace_filter"), "beta\n");
	assert_int_equal(put("set_ftrace_filter", ""), 0);
	assert_string_equal(session.filter, "/beta_two /operator\\* /");
}

static void numbers_reach_the_session(void **state)
{
	(void)state;
	assert_int_equal(put("max_graph_depth", "2"), 0);
	assert_int_equal(session.depth, 2);
	assert_string_equal(get("max_graph_depth"), "2\n");
	assert_int_equal(put("tracing_thresh", "5"), 0);
	assert_int_equal(session.threshold, 5000);
	assert_int_equal(put("tracing_on", "0"), 0);
	assert_false(session.on);
	assert_string_equal(get("buffer_total_size_kb"), "1024\n");
	assert_int_equal(put("options/overwrite", "1"), 0);
	assert_true(session.overwrite);
	assert_int_equal(put("options/function-fork", "0"), 0);
	assert_int_equal(put("options/funcgraph-proc", "1"), 0);
	assert_string_equal(get("options/funcgraph-proc"), "1\n");
}

static void when_it_has_ended_it_can_be_read_and_not_changed(void **state)
{
	(void)state;
	call(1);
	session.gone = true;
	gt_live_end(live);
	assert_string_equal(get("available_filter_functions"),
			    "alpha\nbeta\nbeta_two\noperator* [libx.so.1]\n");
	assert_int_equal(count(get("trace"), "alpha();"), 1);
	assert_int_equal(put("tracing_on", "1"), GT_EGONE);
	assert_int_equal(put("set_ftrace_filter", "beta"), GT_EGONE);
	assert_int_equal(put("current_tracer", "nop"), GT_EGONE);
	assert_int_equal(put("trace_options", "funcgraph-proc"), 0);
	assert_int_equal(gt_live_control(live)->ops->instance_make(gt_live_control(live), "late", 4,
								   &message),
			 GT_EGONE);
}

/* Threads at once */

static atomic_uint piped;
static atomic_bool over;

static void *read_and_write(void *data)
{
	char mine[TEXT_BYTES];
	unsigned seed = (unsigned)(uintptr_t)data;

	while (!atomic_load(&over)) {
		struct gt_control_node node;
		struct gt_message why;
		const char *value = seed % 2 != 0 ? "alpha" : "beta*";

		if (read_file("trace_pipe", mine) != GT_EBUSY)
			atomic_fetch_add(&piped, count(mine, "();"));
		read_file("trace", mine);
		read_file("set_ftrace_filter", mine);
		read_file("available_filter_functions", mine);
		if (gt_control_find(gt_live_control(live), "set_ftrace_filter", 17, &node) == 0)
			gt_control_put(&node, true, value, 5, &why);
		seed++;
	}
	return NULL;
}

static void readers_and_writers_at_once_lose_nothing(void **state)
{
	pthread_t threads[4];

	(void)state;
	atomic_store(&piped, 0);
	atomic_store(&over, false);
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, read_and_write, (void *)i);
	for (int i = 0; i < WORDS / 2; i++)
		call(1 + (uint32_t)i % 3);
	/* All were written: whoever reads trace_pipe now gets the last of them. */
	atomic_store(&over, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(read_file("trace_pipe", text), GT_EAGAIN);
	assert_int_equal(atomic_load(&piped) + count(text, "();"), WORDS / 2);
}

#define PROFILE_HEADER                                                                          \
	"  Function                               Hit    Time            Avg             s^2\n" \
	"  --------                               ---    ----            ---             ---\n"

static void the_profilers_table_reads_as_linuxs(void **state)
{
	char small[8];
	struct gt_control_handle handle;
	size_t bytes = 0;
	int64_t got;

	(void)state;
	assert_string_equal(get("function_profile_enabled"), "0\n");
	assert_int_equal(put("function_profile_enabled", "2"), 0);
	assert_true(session.profiles);
	assert_string_equal(get("function_profile_enabled"), "1\n");
	assert_int_equal(put("function_profile_enabled", "x"), GT_EINVAL);
	assert_int_equal(put("function_profile_enabled", " 1"), GT_EINVAL);
	assert_int_equal(put("function_profile_enabled", "1\n"), 0);
	assert_string_equal(
		get("trace_stat/function0"), PROFILE_HEADER
		"  a_name_that_is_longer_than_the           3    12345678 us     4115226 us      "
		"0.007 us    \n"
		"  beta                                     2    99.000 us       49.500 us       "
		"1234.567 us \n");
	/* in pieces it is the same */
	assert_int_equal(open_file(&handle, "trace_stat/function0"), 0);
	while ((got = gt_control_read(&handle, small, 7, &message)) > 0) {
		assert_memory_equal(small, text + bytes, (size_t)got);
		bytes += (size_t)got;
	}
	assert_int_equal(bytes, strlen(text));
	gt_control_close(&handle, &message);
	assert_string_equal(
		get("trace_stat/function_hist0"),
		"a_name_that_is_longer_than_the_column_it_stands_in\n"
		"  3 calls, 1 not timed: p50 above 4.29 s, p90 above 4.29 s, p99 above 4.29 s\n"
		"    4.294 s  -     and more           2 "
		"|########################################|\n"
		"\n"
		"beta\n"
		"  2 calls: p50 about 24.5 us, p90 about 98.3 us, p99 about 98.3 us\n"
		"   16.384 us -    32.768 us           1 "
		"|########################################|\n"
		"   32.768 us -    65.536 us           0 |                                        "
		"|\n"
		"   65.536 us -   131.072 us           1 "
		"|########################################|\n");
	bytes = 0;
	assert_int_equal(open_file(&handle, "trace_stat/function_hist0"), 0);
	while ((got = gt_control_read(&handle, small, 7, &message)) > 0) {
		assert_memory_equal(small, text + bytes, (size_t)got);
		bytes += (size_t)got;
	}
	assert_int_equal(bytes, strlen(text));
	gt_control_close(&handle, &message);
	assert_int_equal(put("options/graph-time", "0"), 0);
	assert_non_null(strstr(get("trace_stat/function0"), "  3    1.200 us        0.400 us "));
	assert_int_equal(put("tracing_thresh", "10"), 0);
	assert_null(strstr(get("trace_stat/function0"), "a_name"));
	assert_non_null(strstr(text, "beta"));
}

/* Where one process of several cannot be stopped, the profiler is on in the others. */
static void sleep_is_left_out_though_switching_the_profiler_failed(void **state)
{
	(void)state;
	session.begin = __builtin_ia32_rdtsc();
	assert_int_equal(put("options/sleep-time", "0"), 0);
	session.unpatched = true;
	assert_int_equal(put("function_profile_enabled", "1"), GT_EBUSY);
	assert_string_equal(get("function_profile_enabled"), "1\n");
	sleep_in(2, 50000, 30000);
	assert_non_null(strstr(get("trace_stat/function0"),
			       "  beta                                     2    69.000 us "));
}

/* The traced program writes the depth into its ring. */
static void a_made_up_depth_takes_no_memory_from_the_profiler(void **state)
{
	static const uint32_t depths[] = { 1 << 13, 1 << 20, 1 << 30 };

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		/* The thread that copies records may be at work since the depth before. */
		pthread_mutex_lock(&session.lock);
		session.begin = __builtin_ia32_rdtsc();
		session.written = 0;
		depth = depths[i];
		pthread_mutex_unlock(&session.lock);
		assert_int_equal(put("options/sleep-time", "0"), 0);
		assert_int_equal(put("function_profile_enabled", "1"), 0);
		largest_bytes = 0;
		sleep_in(2, 50000, 30000);
		assert_non_null(strstr(get("trace_stat/function0"), "  beta  "));
		assert_true(largest_bytes < 256 << 10);
	}
}

static void a_profiler_that_found_no_memory_for_sleep_can_be_read(void **state)
{
	int tries = 0, error;

	(void)state;
	assert_int_equal(put("options/sleep-time", "0"), 0);
	do {
		reallocs_left = tries++;
		error = put("function_profile_enabled", "1");
		reallocs_left = -1;
		assert_true(error == 0 || error == GT_ENOMEM);
		assert_non_null(strstr(get("trace_stat/function0"), "  beta  "));
		assert_int_equal(put("function_profile_enabled", "0"), 0);
	} while (error != 0);
	assert_true(tries > 1);
}

static void add_event(const char *system, const char *name)
{
	session.events[session.event_count] = (struct gt_event_format){
		.number = ++session.event_count,
		.system = system,
		.name = name,
		.object = "/bin/prog",
	};
	session.event_version++;
}

static void events_are_collected_when_there_are_others_and_only_then(void **state)
{
	(void)state;
	add_event("shop", "sold");
	add_event("shop", "sold"); /* a second place */
	add_event("shop", "closed");
	session.events_told = 0;
	assert_non_null(strstr(get("available_events"), "shop:sold\nshop:closed\n"));
	assert_int_equal(session.events_told, 1);
	get("set_event");
	get("available_events");
	get("events/enable");
	assert_int_equal(session.events_told, 1);
	add_event("shop", "opened");
	assert_non_null(strstr(get("available_events"), "shop:closed\nshop:opened\n"));
	assert_int_equal(session.events_told, 2);
	session.event_count -= 2;
	session.event_version++;
	assert_null(strstr(get("available_events"), "closed"));
	assert_int_equal(session.events_told, 3);
}

static void whether_an_event_is_on_is_asked_each_time(void **state)
{
	(void)state;
	add_event("shop", "sold");
	assert_null(strstr(get("set_event"), "sold"));
	session.events_on = true;
	assert_non_null(strstr(get("set_event"), "shop:sold\n"));
	session.events_on = false;
	assert_null(strstr(get("set_event"), "sold"));
}

static pthread_t finder;
static atomic_bool has_looked;

static int find_made(void)
{
	static const char path[] = "events/synthetic/made/enable";
	struct gt_control_node node;

	return gt_control_find(gt_live_control(live), path, strlen(path), &node);
}

static void *look_for_made(void *data)
{
	find_made();
	atomic_store(&has_looked, true);
	return data;
}

/* Another thread looks at the events while one is defined. It may have to wait until that is done. */
static void look_meanwhile(void)
{
	assert_int_equal(pthread_create(&finder, NULL, look_for_made, NULL), 0);
	for (int ms = 0; ms < 200 && !atomic_load(&has_looked); ms++)
		usleep(1000);
}

static void
a_synthetic_event_that_was_seen_too_early_leaves_no_files_when_it_is_removed(void **state)
{
	(void)state;
	session.defined = look_meanwhile;
	assert_int_equal(put_as("synthetic_events", "made int x\n", false), 0);
	assert_int_equal(pthread_join(finder, NULL), 0);
	assert_int_equal(find_made(), 0);
	assert_int_equal(put_as("synthetic_events", "!made\n", false), 0);
	assert_int_equal(find_made(), GT_ENOENT);
}

/* The thread that copies records says so from now on. */
static bool says_that_threads_wait(bool waits)
{
	uint32_t before = __atomic_load_n(&session.told[waits], __ATOMIC_RELAXED);

	for (int i = 0; i < 5000; i++) {
		if (__atomic_load_n(&session.told[waits], __ATOMIC_RELAXED) > before + 1)
			return true;
		usleep(1000);
	}
	return false;
}

static void threads_wait_for_room_in_the_ring_where_a_buffer_has_some(void **state)
{
	(void)state;
	assert_int_equal(put("buffer_size_kb", "2048"), 0);
	__atomic_store_n(&session.used, 100, __ATOMIC_RELAXED);
	assert_true(says_that_threads_wait(true));
	assert_int_equal(put("buffer_size_kb", "1"), 0);
	assert_true(says_that_threads_wait(false));
	assert_int_equal(put("options/overwrite", "1"), 0);
	assert_true(says_that_threads_wait(true));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_trace_pipe_gave_is_nobodys_any_more),
		TEST(emptying_the_ring_leaves_nothing_of_a_growing_sub_buffer),
		TEST(a_mark_stands_in_the_trace_at_its_time),
		TEST(stats_add_up),
		TEST(a_thread_has_a_pipe_of_its_own),
		TEST(what_trace_pipe_gave_of_switches_it_gives_once),
		TEST(a_snapshot_takes_the_switches_along),
		TEST(what_a_raw_pipe_gave_of_switches_nobody_gives_again),
		TEST(what_a_cpus_pipe_has_given_is_in_no_snapshot),
		TEST(clocks_move_the_time_stamps_only),
		TEST(commands_become_triggers),
		TEST(what_the_session_took_is_shown_though_it_failed),
		TEST(a_command_of_an_instance_stays_if_the_same_one_is_refused),
		TEST(pausing_holds_while_the_trace_is_open),
		TEST(trace_pipe_has_one_reader_and_holds_the_tracer),
		TEST(a_trace_stays_the_same_while_the_clock_gets_better),
		TEST(filters_reach_the_session_as_they_were_written),
		TEST(numbers_reach_the_session),
		TEST(when_it_has_ended_it_can_be_read_and_not_changed),
		TEST(the_profilers_table_reads_as_linuxs),
		TEST(sleep_is_left_out_though_switching_the_profiler_failed),
		TEST(a_made_up_depth_takes_no_memory_from_the_profiler),
		TEST(a_profiler_that_found_no_memory_for_sleep_can_be_read),
		TEST(readers_and_writers_at_once_lose_nothing),
		TEST(events_are_collected_when_there_are_others_and_only_then),
		TEST(a_synthetic_event_that_was_seen_too_early_leaves_no_files_when_it_is_removed),
		TEST(whether_an_event_is_on_is_asked_each_time),
		TEST(threads_wait_for_room_in_the_ring_where_a_buffer_has_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
