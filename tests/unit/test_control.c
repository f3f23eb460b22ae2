/* SPDX-License-Identifier: MIT */
/* The control files: each row read and written, good and bad values, in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/fake_control.h"

static struct fake_control fake;
static struct gt_message message;
static char text[16384];

static int set_up(void **state)
{
	(void)state;
	fake_control_init(&fake, GT_CONTROL_PROGRAM);
	message.text[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return fake.opened; /* every list, edit and text is closed again */
}

/* The whole of a file, read in pieces; or the error. */
static int64_t get_pieces(const char *path, size_t piece)
{
	struct gt_control_handle handle;
	struct gt_control_node node;
	size_t total = 0;
	int64_t got;
	int error = gt_control_find(&fake.control, path, strlen(path), &node);

	if (error == 0)
		error = gt_control_open(&handle, &fake.control, &node, GT_CONTROL_READ, &message);
	if (error != 0)
		return error;
	do {
		assert_true(total + piece < sizeof(text));
		got = gt_control_read(&handle, text + total, piece, &message);
		if (got > 0)
			total += (size_t)got;
		assert_true(got <= (int64_t)piece);
	} while (got > 0);
	text[total] = '\0';
	assert_int_equal(gt_control_close(&handle, true, &message), 0);
	return got < 0 ? got : (int64_t)total;
}

static const char *get(const char *path)
{
	assert_true(get_pieces(path, 4000) >= 0);
	return text;
}

static int put_as(const char *path, const char *bytes, bool truncate)
{
	struct gt_control_node node;
	int error = gt_control_find(&fake.control, path, strlen(path), &node);

	message.text[0] = '\0';
	if (error == 0)
		error = gt_control_put(&fake.control, &node, truncate, bytes, strlen(bytes),
				       &message);
	return error;
}

static int put(const char *path, const char *bytes)
{
	return put_as(path, bytes, true);
}

/* A refused write says why. */
static void refuses(const char *path, const char *bytes, int error)
{
	assert_int_equal(put(path, bytes), error);
	assert_string_not_equal(message.text, "");
}

static void every_file_reads_the_same_in_pieces_of_any_size(void **state)
{
	char whole[sizeof(text)];

	(void)state;
	fake.pipe_ended = true;
	for (uint32_t i = 0; i < gt_control_file_count; i++) {
		const char *path = gt_control_files[i].path;

		if (strchr(path, '#') != NULL)
			path = "per_thread/101/stats";
		fake.pipe_at = 0;
		assert_true(get_pieces(path, 4000) > 0);
		strcpy(whole, text);
		for (size_t piece = 1; piece < 9; piece++) {
			fake.pipe_at = 0;
			assert_true(get_pieces(path, piece) > 0);
			assert_string_equal(text, whole);
		}
	}
}

static void every_row_is_whole(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < gt_control_file_count; i++) {
		const struct gt_control_file *file = &gt_control_files[i];

		assert_non_null(file->help);
		assert_true(file->kinds != 0);
		assert_true((file->readable | file->writable) != 0);
		assert_true(((file->readable | file->writable) & ~file->kinds) == 0);
		assert_true(file->readable == 0 || file->read != NULL);
		assert_true(file->writable == 0 || file->write != NULL);
		for (uint32_t other = 0; other < i; other++)
			assert_string_not_equal(gt_control_files[other].path, file->path);
	}
}

static void paths_name_files_and_directories(void **state)
{
	struct gt_control_node node;
	static const char *const none[] = { "nosuch",
					    "trac",
					    "traces",
					    "trace/x",
					    "options/nosuch",
					    "/",
					    "//trace",
					    "options//x",
					    "per_thread/99/stats",
					    "per_thread/0/stats",
					    ".",
					    "../trace",
					    "per_thread/x",
					    "per_thread/0101/stats",
					    "per_thread/99999999999/stats",
					    "per_thread/#/stats" };

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "", 0, &node), 0);
	assert_null(node.file);
	assert_int_equal(gt_control_find(&fake.control, "trace", 5, &node), 0);
	assert_string_equal(node.file->path, "trace");
	assert_int_equal(gt_control_find(&fake.control, "options", 7, &node), 0);
	assert_null(node.file);
	assert_int_equal(gt_control_find(&fake.control, "options/", 8, &node), 0);
	assert_null(node.file);
	assert_int_equal(gt_control_find(&fake.control, "per_thread/101/stats", 20, &node), 0);
	assert_int_equal(node.number, 101);
	assert_int_equal(gt_control_find(&fake.control, "per_thread/100", 14, &node), 0);
	assert_null(node.file);
	for (size_t i = 1; i < sizeof(none) / sizeof(none[0]); i++) {
		if (strcmp(none[i], "/") == 0)
			continue;
		assert_int_equal(gt_control_find(&fake.control, none[i], strlen(none[i]), &node),
				 GT_ENOENT);
	}
}

static void directories_list_each_entry_once(void **state)
{
	struct gt_control_node node;
	struct gt_control_entry entry;
	int options = 0;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "", 0, &node), 0);
	while (gt_control_list(&fake.control, &node, count, &entry) == 0) {
		options += strcmp(entry.name, "options") == 0;
		if (strcmp(entry.name, "options") == 0)
			assert_null(entry.node.file);
		count++;
	}
	assert_int_equal(options, 1);
	assert_true(count > 15);

	assert_int_equal(gt_control_find(&fake.control, "per_thread", 10, &node), 0);
	assert_int_equal(gt_control_list(&fake.control, &node, 1, &entry), 0);
	assert_string_equal(entry.name, "101");
	assert_int_equal(gt_control_list(&fake.control, &node, 2, &entry), GT_ENOENT);

	assert_int_equal(gt_control_find(&fake.control, "per_thread/101", 14, &node), 0);
	assert_int_equal(gt_control_list(&fake.control, &node, 0, &entry), 0);
	assert_string_equal(entry.name, "stats");
	assert_string_equal(entry.node.file->path, "per_thread/#/stats");
	assert_int_equal(entry.node.number, 101);
	assert_int_equal(gt_control_list(&fake.control, &node, 1, &entry), GT_ENOENT);
	assert_int_equal(gt_control_list(&fake.control, &entry.node, 0, &entry), GT_ENOENT);
}

static void tracing_on_takes_what_linux_takes(void **state)
{
	(void)state;
	assert_string_equal(get("tracing_on"), "1\n");
	assert_int_equal(put("tracing_on", "0\n"), 0);
	assert_string_equal(get("tracing_on"), "0\n");
	assert_int_equal(put("tracing_on", " 2 \n"), 0);
	assert_string_equal(get("tracing_on"), "1\n");
	refuses("tracing_on", "-1", GT_EINVAL);
	refuses("tracing_on", "x", GT_EINVAL);
	refuses("tracing_on", "", GT_EINVAL);
	refuses("tracing_on", "\n", GT_EINVAL);
	refuses("tracing_on", "1 0", GT_EINVAL);
	refuses("tracing_on", "99999999999999999999999", GT_EINVAL);
	assert_string_equal(get("tracing_on"), "1\n");
}

static void tracing_enable_acts_when_read_and_when_written(void **state)
{
	(void)state;
	assert_string_equal(get("tracing_enable/off"), "0\n");
	assert_string_equal(get("tracing_on"), "0\n");
	assert_string_equal(get("tracing_enable/on"), "1\n");
	assert_string_equal(get("tracing_on"), "1\n");
	assert_int_equal(put("tracing_enable/off", ""), 0);
	assert_string_equal(get("tracing_on"), "0\n");
	assert_int_equal(put("tracing_enable/on", "1\n"), 0);
	assert_string_equal(get("tracing_on"), "1\n");
}

static void tracers_are_listed_and_chosen_by_name(void **state)
{
	(void)state;
	assert_string_equal(get("available_tracers"), "function_graph function nop\n");
	assert_string_equal(get("current_tracer"), "function_graph\n");
	assert_int_equal(put("current_tracer", "  function \n"), 0);
	assert_string_equal(get("current_tracer"), "function\n");
	refuses("current_tracer", "functio", GT_EINVAL);
	refuses("current_tracer", "", GT_EINVAL);
	refuses("current_tracer", "nop\x01\xff", GT_EINVAL);
	assert_null(strchr(message.text, '\x01'));
	refuses("available_tracers", "nop", GT_EPERM);
	assert_string_equal(get("current_tracer"), "function\n");
}

static void functions_are_listed_with_their_objects(void **state)
{
	(void)state;
	assert_string_equal(get("available_filter_functions"),
			    "alpha\nbeta\nbeta_two\ngamma [libfake.so.1]\n");
}

static void filters_are_set_added_to_and_taken_from(void **state)
{
	(void)state;
	assert_string_equal(get("set_ftrace_filter"), "#### all functions enabled ####\n");
	assert_string_equal(get("set_ftrace_notrace"), "#### no functions disabled ####\n");
	assert_int_equal(put("set_ftrace_filter", "alpha  gamma\n"), 0);
	assert_string_equal(get("set_ftrace_filter"), "alpha\ngamma [libfake.so.1]\n");
	assert_int_equal(put_as("set_ftrace_filter", "beta_*", false), 0);
	assert_string_equal(get("set_ftrace_filter"), "alpha\nbeta_two\ngamma [libfake.so.1]\n");
	assert_int_equal(put_as("set_ftrace_filter", "!gamma\n!alpha", false), 0);
	assert_string_equal(get("set_ftrace_filter"), "beta_two\n");
	assert_int_equal(put("set_graph_function", "gamma [libfake.so.1]\n"), 0);
	assert_string_equal(get("set_graph_function"), "gamma [libfake.so.1]\n");
	assert_int_equal(put("set_ftrace_filter", "3"), 0);
	assert_string_equal(get("set_ftrace_filter"), "beta_two\n");
	assert_int_equal(put("set_ftrace_filter", "#### all functions enabled ####\n"), 0);
	assert_string_equal(get("set_ftrace_filter"), "#### all functions enabled ####\n");
	assert_int_equal(put("set_ftrace_filter", ""), 0);
	assert_string_equal(get("set_ftrace_filter"), "#### all functions enabled ####\n");
}

static void a_refused_filter_changes_nothing(void **state)
{
	(void)state;
	assert_int_equal(put("set_ftrace_filter", "alpha"), 0);
	refuses("set_ftrace_filter", "beta nosuch", GT_EINVAL);
	refuses("set_ftrace_filter", "beta !gamma", GT_EINVAL);
	refuses("set_ftrace_filter", "5", GT_EINVAL);
	refuses("set_ftrace_filter", "0", GT_EINVAL);
	refuses("set_ftrace_filter", "alpha:traceoff", GT_EINVAL);
	refuses("set_ftrace_filter", ":mod:x", GT_EINVAL);
	assert_string_equal(get("set_ftrace_filter"), "alpha\n");
}

static void a_list_takes_one_word_a_write(void **state)
{
	struct gt_control_handle handle;
	struct gt_control_node node;

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "set_ftrace_filter", 17, &node), 0);
	assert_int_equal(gt_control_open(&handle, &fake.control, &node,
					 GT_CONTROL_WRITE | GT_CONTROL_TRUNCATE, &message),
			 0);
	assert_int_equal(gt_control_write(&handle, "alpha beta\n", 11, &message), 6);
	assert_int_equal(gt_control_write(&handle, "beta\n", 5, &message), 5);
	assert_int_equal(gt_control_write(&handle, " \n", 2, &message), 2);
	assert_int_equal(gt_control_read(&handle, text, 10, &message), GT_EPERM);
	assert_int_equal(gt_control_close(&handle, true, &message), 0);
	assert_string_equal(get("set_ftrace_filter"), "alpha\nbeta\n");
}

static void numbers_are_kept_in_their_units(void **state)
{
	(void)state;
	assert_int_equal(put("max_graph_depth", "3\n"), 0);
	assert_string_equal(get("max_graph_depth"), "3\n");
	refuses("max_graph_depth", "x", GT_EINVAL);
	refuses("max_graph_depth", "-1", GT_EINVAL);
	refuses("max_graph_depth", "4294967296", GT_EINVAL);
	assert_int_equal(put("tracing_thresh", "100"), 0);
	assert_int_equal(fake.values[GT_CONTROL_THRESHOLD_NS], 100000);
	assert_string_equal(get("tracing_thresh"), "100\n");
	refuses("tracing_thresh", "1.5", GT_EINVAL);
	refuses("tracing_thresh", "-5", GT_EINVAL);
	assert_string_equal(get("buffer_size_kb"), "65536\n");
	assert_string_equal(get("buffer_total_size_kb"), "65536\n");
	refuses("buffer_total_size_kb", "1", GT_EPERM);
	refuses("buffer_size_kb", "1", GT_EPERM);
	assert_non_null(strstr(message.text, "--buffer-size"));
	fake.control.kind = GT_CONTROL_KERNEL;
	assert_int_equal(put("buffer_size_kb", "100"), 0);
	refuses("buffer_size_kb", "0", GT_EINVAL);
	assert_string_equal(get("buffer_size_kb"), "100\n");
}

static void the_clock_stands_in_brackets(void **state)
{
	(void)state;
	assert_string_equal(get("trace_clock"), "[mono]\n");
	assert_int_equal(put("trace_clock", "mono\n"), 0);
	refuses("trace_clock", "nosuch", GT_EINVAL);
}

static void options_are_set_by_name_or_by_their_file(void **state)
{
	(void)state;
	assert_non_null(strstr(get("trace_options"), "nofuncgraph-proc\n"));
	assert_int_equal(put("trace_options", "funcgraph-proc\n"), 0);
	assert_non_null(strstr(get("trace_options"), "\nfuncgraph-proc\n"));
	assert_string_equal(get("options/funcgraph-proc"), "1\n");
	assert_int_equal(put("trace_options", "nofuncgraph-proc"), 0);
	assert_string_equal(get("options/funcgraph-proc"), "0\n");
	assert_int_equal(put("options/funcgraph-proc", "1\n"), 0);
	assert_int_equal(put("options/funcgraph-proc", "0"), 0);
	refuses("options/funcgraph-proc", "2", GT_EINVAL);
	refuses("options/funcgraph-proc", "x", GT_EINVAL);
	refuses("options/overwrite", "1", GT_EINVAL);
	assert_string_equal(message.text, "not while it runs");
	refuses("trace_options", "nosuch", GT_EINVAL);
	refuses("trace_options", "no", GT_EINVAL);
	refuses("trace_options", "", GT_EINVAL);
	/* as on Linux: the options of a tracer are listed while it is current */
	assert_int_equal(put("current_tracer", "function"), 0);
	assert_null(strstr(get("trace_options"), "funcgraph"));
	assert_string_equal(get("options/funcgraph-cpu"), "1\n");
}

static void trace_stays_and_trace_pipe_waits(void **state)
{
	(void)state;
	assert_string_equal(get("trace"), FAKE_TRACE);
	assert_string_equal(get("trace"), FAKE_TRACE);
	assert_int_equal(get_pieces("trace_pipe", 7), GT_EAGAIN);
	assert_string_equal(text, FAKE_TRACE);
	assert_int_equal(get_pieces("trace_pipe", 7), GT_EAGAIN);
	assert_string_equal(text, "");
	fake.pipe_ended = true;
	assert_int_equal(get_pieces("trace_pipe", 7), 0);
	fake.pipe_busy = true;
	assert_int_equal(get_pieces("trace_pipe", 7), GT_EBUSY);
	refuses("trace_pipe", "x", GT_EPERM);
}

static void only_truncating_clears_the_trace(void **state)
{
	(void)state;
	assert_int_equal(put_as("trace", "x\n", false), 0);
	assert_int_equal(fake.cleared, 0);
	assert_int_equal(put("trace", ""), 0);
	assert_int_equal(fake.cleared, 1);
}

static void losses_are_shown_by_cause(void **state)
{
	(void)state;
	assert_string_equal(get("per_thread/101/stats"),
			    "name: prog?\nprocess: 100\nthread: 101\nended: 0\nsub-buffers: 5\n"
			    "oldest sub-buffer: 2\nstarted ns: 0\ndropped events: 6\noverrun: 3\n"
			    "entries without return: 1\ntoo deep: 2\nno stream: 4\n");
	assert_string_equal(get("stats"),
			    "threads: 2\nnot ended: 2\nsub-buffers: 10\ndropped events: 11\n"
			    "overrun: 6\nentries without return: 2\ntoo deep: 4\nno stream: 8\n");
}

static void the_readme_names_every_file_of_the_target(void **state)
{
	char line[128];

	(void)state;
	get("README");
	for (uint32_t i = 0; i < gt_control_file_count; i++) {
		snprintf(line, sizeof(line), "\n%s\n", gt_control_files[i].path);
		assert_non_null(strstr(text, line));
	}
	fake.control.kind = GT_CONTROL_RECORDING;
	assert_null(strstr(get("README"), "set_ftrace_filter"));
}

static void a_recording_cannot_be_changed(void **state)
{
	(void)state;
	fake.control.kind = GT_CONTROL_RECORDING;
	refuses("tracing_on", "1", GT_EPERM);
	assert_non_null(strstr(message.text, "recording"));
	refuses("trace", "", GT_EPERM);
	assert_int_equal(put("set_ftrace_filter", "alpha"), GT_ENOENT);
	assert_int_equal(get_pieces("trace_pipe", 10), GT_ENOENT);
	assert_string_equal(get("trace"), FAKE_TRACE);
	assert_int_equal(put("trace_options", "funcgraph-proc"), 0);
	assert_int_equal(fake.cleared, 0);
}

static void directories_cannot_be_opened(void **state)
{
	(void)state;
	assert_int_equal(get_pieces("options", 10), GT_EINVAL);
	refuses("options", "x", GT_EINVAL);
}

static void a_target_without_an_operation_says_so(void **state)
{
	static const struct gt_control_ops none;

	(void)state;
	fake.control.ops = &none;
	fake.control.view = NULL;
	for (uint32_t i = 0; i < gt_control_file_count; i++) {
		const char *path = gt_control_files[i].path;
		int64_t got = get_pieces(path, 4000);

		assert_true(got > 0 || got == GT_ENOTSUP || got == GT_ENOENT);
		if (gt_control_files[i].writable & GT_CONTROL_PROGRAM)
			put(path, "1");
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_file_reads_the_same_in_pieces_of_any_size),
		TEST(every_row_is_whole),
		TEST(paths_name_files_and_directories),
		TEST(directories_list_each_entry_once),
		TEST(tracing_on_takes_what_linux_takes),
		TEST(tracing_enable_acts_when_read_and_when_written),
		TEST(tracers_are_listed_and_chosen_by_name),
		TEST(functions_are_listed_with_their_objects),
		TEST(filters_are_set_added_to_and_taken_from),
		TEST(a_refused_filter_changes_nothing),
		TEST(a_list_takes_one_word_a_write),
		TEST(numbers_are_kept_in_their_units),
		TEST(the_clock_stands_in_brackets),
		TEST(options_are_set_by_name_or_by_their_file),
		TEST(trace_stays_and_trace_pipe_waits),
		TEST(only_truncating_clears_the_trace),
		TEST(losses_are_shown_by_cause),
		TEST(the_readme_names_every_file_of_the_target),
		TEST(a_recording_cannot_be_changed),
		TEST(directories_cannot_be_opened),
		TEST(a_target_without_an_operation_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
