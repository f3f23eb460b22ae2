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
		error = gt_control_open(&handle, &node, GT_CONTROL_READ, &message);
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
	assert_int_equal(gt_control_close(&handle, &message), 0);
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
		error = gt_control_put(&node, truncate, bytes, strlen(bytes), &message);
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

/* A path that the row's pattern matches: `#` becomes a number that there is. */
static const char *path_of(const struct gt_control_file *file)
{
	static char path[128];
	const char *number = strchr(file->path, '#');
	const char *value = strncmp(file->path, "per_thread", 10) == 0 ? "101" : "1";

	if (number == NULL)
		return file->path;
	snprintf(path, sizeof(path), "%.*s%s%s", (int)(number - file->path), file->path, value,
		 number + 1);
	return path;
}

/* Files that a program has for those who look for them, with nothing inside. */
static bool may_be_empty(const char *path)
{
	return strcmp(path, "printk_formats") == 0 || strcmp(path, "available_events") == 0 ||
	       strcmp(path, "set_event") == 0;
}

static void every_file_reads_the_same_in_pieces_of_any_size(void **state)
{
	const struct gt_control_file *file;
	char whole[sizeof(text)];

	(void)state;
	fake.pipe_ended = true;
	put("trace_clock", "nosuch");	 /* error_log has a line */
	put("options/record-tgid", "1"); /* else saved_tgids is empty */
	for (uint32_t i = 0; (file = gt_control_row(NULL, i)) != NULL; i++) {
		const char *path = path_of(file);

		if (file->read == NULL || !gt_control_exists(&fake.control, file))
			continue;
		fake.pipe_at = 0;
		assert_true(get_pieces(path, 4000) >= 0);
		assert_true(text[0] != '\0' || may_be_empty(path));
		strcpy(whole, text);
		for (size_t piece = 1; piece < 9; piece++) {
			fake.pipe_at = 0;
			assert_true(get_pieces(path, piece) >= 0);
			assert_string_equal(text, whole);
		}
	}
}

static void every_row_is_whole(void **state)
{
	const struct gt_control_file *file;

	(void)state;
	for (uint32_t i = 0; (file = gt_control_row(NULL, i)) != NULL; i++) {
		assert_non_null(file->help);
		assert_true(file->kinds != 0);
		assert_true(file->read != NULL || file->write != NULL);
		assert_true(strchr(file->path, '#') == NULL || file->numbers != NULL);
		for (uint32_t other = 0; other < i; other++)
			assert_string_not_equal(gt_control_row(NULL, other)->path, file->path);
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

static void events_came(struct gt_control_target *target)
{
	(void)target;
}

static void a_change_may_hold_up_names_of_threads_instances_and_events_only(void **state)
{
	static const struct {
		const char *path;
		bool waits;
	} paths[] = {
		{ "", false },
		{ "trace", false },
		{ "nosuch", false },
		{ "options/sym-addr", false },
		{ "per_cpu/cpu0/stats", false },
		{ "per_threads", false },
		{ "per_thread", true },
		{ "per_thread/100", true },
		{ "per_thread/100/stats", true },
		{ "instances", true },
		{ "instances/one/trace", true },
		{ "instances2", false },
		{ "events", true },
		{ "events/enable", true },
		{ "events2", false },
	};
	struct gt_control_ops ops = *fake.control.ops;
	struct gt_control_target target = fake.control;

	(void)state;
	ops.events_came = events_came;
	target.ops = &ops;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		assert_int_equal(
			gt_control_find_waits(&target, paths[i].path, strlen(paths[i].path)),
			paths[i].waits);
	assert_false(gt_control_find_waits(&fake.control, "events/enable", 13));
}

static void directories_list_each_entry_once(void **state)
{
	struct gt_control_node node;
	struct gt_control_entry entry;
	int options = 0;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "", 0, &node), 0);
	while (gt_control_list(&node, count, &entry) == 0) {
		options += strcmp(entry.name, "options") == 0;
		if (strcmp(entry.name, "options") == 0)
			assert_null(entry.node.file);
		count++;
	}
	assert_int_equal(options, 1);
	assert_true(count > 15);

	assert_int_equal(gt_control_find(&fake.control, "per_thread", 10, &node), 0);
	assert_int_equal(gt_control_list(&node, 1, &entry), 0);
	assert_string_equal(entry.name, "101");
	assert_int_equal(gt_control_list(&node, 2, &entry), GT_ENOENT);

	assert_int_equal(gt_control_find(&fake.control, "per_thread/101", 14, &node), 0);
	assert_int_equal(gt_control_list(&node, 0, &entry), 0);
	assert_string_equal(entry.name, "trace");
	assert_int_equal(gt_control_list(&node, 2, &entry), 0);
	assert_string_equal(entry.name, "stats");
	assert_string_equal(entry.node.file->path, "per_thread/#/stats");
	assert_int_equal(entry.node.number, 101);
	assert_int_equal(gt_control_list(&node, 3, &entry), GT_ENOENT);
	assert_int_equal(gt_control_list(&entry.node, 0, &entry), GT_ENOENT);

	assert_int_equal(gt_control_find(&fake.control, "per_cpu", 7, &node), 0);
	assert_int_equal(gt_control_list(&node, 1, &entry), 0);
	assert_string_equal(entry.name, "cpu1");
	assert_int_equal(gt_control_list(&node, 2, &entry), GT_ENOENT);
	assert_int_equal(gt_control_find(&fake.control, "per_cpu/cpu1/trace", 18, &node), 0);
	assert_int_equal(node.number, 1);
	assert_int_equal(gt_control_find(&fake.control, "per_cpu/cpu2", 12, &node), GT_ENOENT);
}

static void tracing_on_takes_what_linux_takes(void **state)
{
	(void)state;
	assert_string_equal(get("tracing_on"), "1\n");
	assert_int_equal(put("tracing_on", "0\n"), 0);
	assert_string_equal(get("tracing_on"), "0\n");
	assert_int_equal(put("tracing_on", "2\n"), 0);
	assert_string_equal(get("tracing_on"), "1\n");
	refuses("tracing_on", " 1", GT_EINVAL);
	refuses("tracing_on", "1 ", GT_EINVAL);
	refuses("tracing_on", "18446744073709551616", GT_ERANGE);
	refuses("tracing_on", "-1", GT_EINVAL);
	refuses("tracing_on", "x", GT_EINVAL);
	refuses("tracing_on", "", GT_EINVAL);
	refuses("tracing_on", "\n", GT_EINVAL);
	refuses("tracing_on", "1\n\n", GT_EINVAL);
	refuses("tracing_on", "1 0", GT_EINVAL);
	refuses("tracing_on", "99999999999999999999999", GT_ERANGE);
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
	refuses("available_tracers", "nop", GT_EINVAL);
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

static void a_refused_filter_leaves_what_linux_leaves(void **state)
{
	(void)state;
	/* Opened with >: it is empty, and the words before the bad one are taken. */
	assert_int_equal(put("set_ftrace_filter", "alpha"), 0);
	refuses("set_ftrace_filter", "beta nosuch gamma", GT_EINVAL);
	assert_string_equal(get("set_ftrace_filter"), "beta\n");
	refuses("set_ftrace_filter", "nosuch", GT_EINVAL);
	assert_string_equal(get("set_ftrace_filter"), "#### all functions enabled ####\n");
	assert_int_equal(put("set_ftrace_filter", "alpha"), 0);
	/* With >> nothing is lost. */
	assert_int_equal(put_as("set_ftrace_filter", "beta !gamma", false), GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_filter", "5", false), GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_filter", "0", false), GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_filter", "alpha:nosuch", false), GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_filter", ":mod:x", false), GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_filter", ":mod:", false), GT_EINVAL);
	assert_string_equal(get("set_ftrace_filter"), "alpha\nbeta\n");
}

static void a_word_that_is_cut_goes_on_in_the_next_write(void **state)
{
	struct gt_control_handle handle;
	struct gt_control_node node;

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "set_ftrace_filter", 17, &node), 0);
	assert_int_equal(
		gt_control_open(&handle, &node, GT_CONTROL_WRITE | GT_CONTROL_TRUNCATE, &message),
		0);
	assert_int_equal(gt_control_write(&handle, "al", 2, &message), 2);
	assert_int_equal(gt_control_write(&handle, "pha be", 6, &message), 4);
	assert_int_equal(gt_control_write(&handle, "be", 2, &message), 2);
	assert_int_equal(gt_control_write(&handle, "ta", 2, &message), 2);
	assert_int_equal(gt_control_close(&handle, &message), 0);
	assert_string_equal(get("set_ftrace_filter"), "alpha\nbeta\n");
}

static void functions_are_named_with_their_object(void **state)
{
	(void)state;
	assert_int_equal(put("set_ftrace_filter", ":mod:libfake.so.1"), 0);
	assert_string_equal(get("set_ftrace_filter"), "gamma [libfake.so.1]\n");
	assert_int_equal(put("set_ftrace_filter", "g*:mod:libfake.so.1"), 0);
	assert_string_equal(get("set_ftrace_filter"), "gamma [libfake.so.1]\n");
	refuses("set_ftrace_filter", "alpha:mod:libfake.so.1", GT_EINVAL);
}

static void commands_stand_behind_the_functions(void **state)
{
	(void)state;
	assert_int_equal(put_as("set_ftrace_filter", "alpha:traceoff", false), 0);
	assert_string_equal(get("set_ftrace_filter"),
			    "#### all functions enabled ####\nalpha:traceoff:unlimited\n");
	assert_int_equal(put_as("set_ftrace_filter", "beta", false), 0);
	assert_int_equal(put_as("set_ftrace_filter", "a::b:snapshot:3", false), 0);
	/* `>` empties the functions only. */
	assert_int_equal(put("set_ftrace_filter", ""), 0);
	assert_string_equal(get("set_ftrace_filter"),
			    "#### all functions enabled ####\na::b:snapshot:count=3\n");
	refuses("set_ftrace_filter", "alpha:traceon:x", GT_EINVAL);
	refuses("set_ftrace_filter", "alpha:traceon:", GT_EINVAL);
	refuses("set_ftrace_filter", "!alpha:dump:0", GT_ENODEV);
	refuses("set_ftrace_notrace", "alpha:traceoff", GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_filter", "!a::b:snapshot:0", false), 0);
	assert_string_equal(get("set_ftrace_filter"), "#### all functions enabled ####\n");
}

static void threads_are_listed_by_number(void **state)
{
	(void)state;
	assert_string_equal(get("set_ftrace_pid"), "no pid\n");
	assert_int_equal(put("set_ftrace_pid", "12 7\n12 99999\n"), 0);
	assert_string_equal(get("set_ftrace_pid"), "12\n7\n99999\n");
	assert_string_equal(get("set_ftrace_notrace_pid"), "no pid\n");
	assert_int_equal(put_as("set_ftrace_pid", "1", false), 0);
	assert_string_equal(get("set_ftrace_pid"), "12\n7\n99999\n1\n");
	assert_int_equal(put_as("set_ftrace_pid", "2 x", false), GT_EINVAL);
	assert_int_equal(put_as("set_ftrace_pid", "-1", false), GT_EINVAL);
	assert_string_equal(get("set_ftrace_pid"), "12\n7\n99999\n1\n");
	assert_int_equal(put("set_ftrace_pid", "\n"), 0);
	assert_string_equal(get("set_ftrace_pid"), "no pid\n");
}

static void a_marker_is_written_while_tracing_is_on(void **state)
{
	char large[3000];

	(void)state;
	memset(large, 'x', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	assert_int_equal(put("trace_marker", "hello\n"), 0);
	assert_string_equal(fake.mark, "0 hello\n");
	fake.marks = 0;
	assert_int_equal(put("trace_marker", large), 0);
	assert_int_equal(fake.marks, 3); /* of at most 1024 bytes each */
	assert_int_equal(put("trace_marker_raw", "abcd12"), 0);
	assert_string_equal(fake.mark, "0 raw abcd12");
	refuses("trace_marker_raw", "abc", GT_EINVAL);
	assert_int_equal(put("tracing_on", "0"), 0);
	refuses("trace_marker", "x", GT_EBADF);
	assert_int_equal(put("tracing_on", "1"), 0);
	assert_int_equal(put("options/markers", "0"), 0);
	refuses("trace_marker", "x", GT_EINVAL);
	assert_int_equal(get_pieces("trace_marker", 10), GT_EINVAL);
}

static void errors_are_kept_with_a_caret(void **state)
{
	(void)state;
	assert_string_equal(get("error_log"), "");
	refuses("set_ftrace_filter", "alpha nosuch\n", GT_EINVAL);
	assert_string_equal(get("error_log"),
			    "[    5.270468] set_ftrace_filter: error: no function matches\n"
			    "  Command: nosuch\n"
			    "           ^\n");
	for (int i = 0; i < 12; i++)
		refuses("trace_clock", "  nosuch", GT_EINVAL);
	get("error_log");
	assert_null(strstr(text, "set_ftrace_filter"));
	for (int i = 0; i < 8; i++)
		assert_non_null(strstr(text, "  Command:   nosuch\n             ^\n"));
	assert_int_equal(put("error_log", ""), 0);
	assert_string_equal(get("error_log"), "");
}

static void cpus_are_a_hexadecimal_mask(void **state)
{
	(void)state;
	assert_string_equal(get("tracing_cpumask"), "3\n");
	assert_int_equal(put("tracing_cpumask", "1\n"), 0);
	assert_string_equal(get("tracing_cpumask"), "1\n");
	assert_int_equal(put("tracing_cpumask", "FF"), 0); /* CPUs that are not there */
	assert_string_equal(get("tracing_cpumask"), "3\n");
	refuses("tracing_cpumask", "x", GT_EINVAL);
	fake.view.cpu_count = 40;
	assert_int_equal(put("tracing_cpumask", "80,00000001"), 0);
	assert_string_equal(get("tracing_cpumask"), "80,00000001\n");
	assert_int_equal(fake.values[GT_CONTROL_CPUMASK], 0x8000000001);
}

static void names_of_threads_are_listed(void **state)
{
	(void)state;
	assert_string_equal(get("saved_cmdlines"), "100 prog?\n101 prog?\n");
	assert_string_equal(get("saved_tgids"), "");
	assert_int_equal(put("options/record-tgid", "1"), 0);
	assert_string_equal(get("saved_tgids"), "100 100\n101 100\n");
	assert_int_equal(put("options/record-tgid", "0"), 0);
	assert_string_equal(get("saved_cmdlines_size"), "128\n");
	assert_int_equal(put("saved_cmdlines_size", "1"), 0);
	assert_string_equal(get("saved_cmdlines"), "101 prog?\n");
	refuses("saved_cmdlines_size", "0", GT_EINVAL);
	refuses("saved_cmdlines_size", "32769", GT_EINVAL);
}

static void instances_are_targets_of_their_own(void **state)
{
	struct gt_control_node node;
	struct gt_control_entry entry;

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "instances", 9, &node), 0);
	assert_int_equal(gt_control_list(&node, 0, &entry), GT_ENOENT);
	assert_int_equal(gt_control_find(&fake.control, "instances/one", 13, &node), GT_ENOENT);
	assert_int_equal(gt_control_make(&fake.control, "instances/one", 13, &message), 0);
	assert_int_equal(gt_control_make(&fake.control, "instances/one", 13, &message), GT_EEXIST);
	assert_int_equal(gt_control_make(&fake.control, "options/one", 11, &message), GT_EPERM);
	assert_int_equal(gt_control_make(&fake.control, "instances/a/b", 13, &message), GT_EPERM);
	assert_int_equal(gt_control_find(&fake.control, "instances", 9, &node), 0);
	assert_int_equal(gt_control_list(&node, 0, &entry), 0);
	assert_string_equal(entry.name, "one");
	assert_int_equal(gt_control_list(&entry.node, 0, &entry), 0);
	assert_ptr_equal(entry.node.target, &fake.instance);
	assert_string_equal(get("instances/one/tracing_on"), "1\n");
	assert_int_equal(put("instances/one/options/sym-addr", "1"), 0);
	/* Linux has these at the top only. */
	assert_int_equal(get_pieces("instances/one/README", 10), GT_ENOENT);
	assert_int_equal(get_pieces("instances/one/instances", 10), GT_ENOENT);
	assert_int_equal(gt_control_remove(&fake.control, "instances/two", 13, &message),
			 GT_ENOENT);
	assert_int_equal(gt_control_remove(&fake.control, "instances/one/", 14, &message), 0);
	assert_int_equal(gt_control_find(&fake.control, "instances/one", 13, &node), GT_ENOENT);
}

static void a_list_takes_one_word_a_write(void **state)
{
	struct gt_control_handle handle;
	struct gt_control_node node;

	(void)state;
	assert_int_equal(gt_control_find(&fake.control, "set_ftrace_filter", 17, &node), 0);
	assert_int_equal(
		gt_control_open(&handle, &node, GT_CONTROL_WRITE | GT_CONTROL_TRUNCATE, &message),
		0);
	assert_int_equal(gt_control_write(&handle, "alpha beta\n", 11, &message), 6);
	assert_int_equal(gt_control_write(&handle, "beta\n", 5, &message), 5);
	assert_int_equal(gt_control_write(&handle, " \n", 2, &message), 2);
	assert_int_equal(gt_control_read(&handle, text, 10, &message), GT_EBADF);
	assert_int_equal(gt_control_close(&handle, &message), 0);
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
	refuses("buffer_total_size_kb", "1", GT_EINVAL);
	assert_int_equal(put("buffer_size_kb", "100"), 0);
	refuses("buffer_size_kb", "0", GT_EINVAL);
	assert_string_equal(get("buffer_size_kb"), "100\n");
}

static void the_clock_stands_in_brackets(void **state)
{
	(void)state;
	assert_string_equal(get("trace_clock"),
			    "[local] global counter uptime perf mono mono_raw boot tai x86-tsc\n");
	assert_int_equal(put("trace_clock", "mono\n"), 0);
	assert_string_equal(get("trace_clock"),
			    "local global counter uptime perf [mono] mono_raw boot tai x86-tsc\n");
	assert_string_equal(get("timestamp_mode"), "[delta] absolute\n");
	refuses("trace_clock", "nosuch", GT_EINVAL);
}

static const struct gt_control_ops *fake_ops;

/* Whoever asks for the options is overtaken by another one who sets sym-addr. */
static int get_and_be_overtaken(struct gt_control_target *target, enum gt_control_value which,
				uint64_t *value)
{
	int error = fake_ops->get(target, which, value);

	if (which == GT_CONTROL_OPTIONS)
		fake.values[which] |= GT_OPTION_SYM_ADDR;
	return error;
}

static void an_option_that_another_one_sets_meanwhile_stays(void **state)
{
	struct gt_control_ops ops;

	(void)state;
	fake_ops = fake.control.ops;
	ops = *fake_ops;
	ops.get = get_and_be_overtaken;
	fake.control.ops = &ops;
	assert_int_equal(put("options/sym-offset", "1"), 0);
	fake.control.ops = fake_ops;
	assert_string_equal(get("options/sym-offset"), "1\n");
	assert_string_equal(get("options/sym-addr"), "1\n");
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
	assert_int_equal(put("options/func_stack_trace", "1"), 0);
	assert_int_equal(put("options/func-no-repeats", "1"), 0);
	assert_int_equal(put("options/func_stack_trace", "0"), 0);
	assert_int_equal(put("options/func-no-repeats", "0"), 0);
	refuses("trace_options", "no", GT_EINVAL);
	refuses("trace_options", "", GT_EINVAL);
	/* as on Linux: the options of a tracer are listed while it is current */
	assert_int_equal(put("current_tracer", "function"), 0);
	assert_null(strstr(get("trace_options"), "funcgraph"));
	refuses("trace_options", "funcgraph-proc", GT_EINVAL);
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
	refuses("trace_pipe", "x", GT_EINVAL);
}

static void trace_pipe_ends_when_it_has_given_something_and_tracing_is_off(void **state)
{
	(void)state;
	assert_int_equal(put("tracing_on", "0"), 0);
	assert_true(get_pieces("trace_pipe", 7) > 0);
	assert_string_equal(text, FAKE_TRACE);
	/* nothing was given yet: it waits */
	assert_int_equal(get_pieces("trace_pipe", 7), GT_EAGAIN);
}

static void a_thread_and_a_cpu_have_traces_of_their_own(void **state)
{
	(void)state;
	get("per_cpu/cpu1/trace");
	assert_int_equal(fake.scope.kind, GT_SCOPE_CPU);
	assert_int_equal(fake.scope.number, 1);
	get("per_thread/101/trace");
	assert_int_equal(fake.scope.kind, GT_SCOPE_THREAD);
	assert_int_equal(fake.scope.number, 101);
	assert_int_equal(put("per_thread/100/trace", ""), 0);
	assert_int_equal(fake.scope.number, 100);
	get("per_cpu/cpu0/stats");
	assert_int_equal(fake.scope.kind, GT_SCOPE_CPU);
	get("trace");
	assert_int_equal(fake.scope.kind, GT_SCOPE_ALL);
}

static void only_truncating_clears_the_trace(void **state)
{
	(void)state;
	assert_int_equal(put_as("trace", "x\n", false), 0);
	assert_int_equal(fake.cleared, 0);
	assert_int_equal(put("trace", ""), 0);
	assert_int_equal(fake.cleared, 1);
}

#define COUNTS                                                                                 \
	"entries: 1\noverrun: 2\ncommit overrun: 0\nbytes: 8\noldest event ts:     0.001500\n" \
	"now ts:    62.000003\ndropped events: 5\nread events: 7\n"

static void stats_say_what_became_of_every_record(void **state)
{
	(void)state;
	assert_string_equal(get("per_cpu/cpu1/stats"), COUNTS);
	assert_string_equal(get("per_thread/101/stats"), COUNTS
			    "name: prog?\nprocess: 100\nthread: 101\nended: 0\nsub-buffers: 5\n"
			    "oldest sub-buffer: 2\nstarted ns: 0\nlost calls: 12\n"
			    "entries without return: 1\n"
			    "too deep: 2\nno stream: 4\nlate: 0\n");
	assert_string_equal(get("stats"), COUNTS
			    "threads: 2\nnot ended: 2\nsub-buffers: 10\nlost calls: 23\n"
			    "entries without return: 2\ntoo deep: 4\nno stream: 8\nlate: 0\n");
}

static void the_readme_names_every_file_of_the_target(void **state)
{
	const struct gt_control_file *file;
	char line[128];

	(void)state;
	get("README");
	for (uint32_t i = 0; (file = gt_control_row(NULL, i)) != NULL; i++) {
		snprintf(line, sizeof(line), "\n  %s\t", file->path);
		assert_int_equal(strstr(text, line) != NULL,
				 gt_control_exists(&fake.control, file));
	}
	fake.control.kind = GT_CONTROL_RECORDING;
	assert_null(strstr(get("README"), "set_ftrace_filter\t"));
}

static void a_recording_cannot_be_changed(void **state)
{
	(void)state;
	fake.control.kind = GT_CONTROL_RECORDING;
	refuses("current_tracer", "nop", GT_EPERM);
	assert_non_null(strstr(message.text, "recording"));
	assert_int_equal(put("trace", ""), 0); /* stays as it is */
	assert_int_equal(put("options/overwrite", "1"), GT_ENOENT);
	refuses("trace_options", "overwrite", GT_EINVAL);
	assert_null(strstr(get("trace_options"), "overwrite"));
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
	const struct gt_control_file *file;

	(void)state;
	fake.control.ops = &none;
	fake.control.view = NULL;
	fake.control.log = NULL;
	for (uint32_t i = 0; (file = gt_control_row(NULL, i)) != NULL; i++) {
		const char *path = path_of(file);
		int64_t got = get_pieces(path, 4000);

		assert_true(got > 0 || got == GT_ENOTSUP || got == GT_ENOENT || got == GT_EINVAL ||
			    (got == 0 && may_be_empty(path)));
		if (file->write != NULL)
			assert_true(put(path, "1") != 1);
	}
}

static void a_target_can_bring_rows_of_its_own(void **state)
{
	static const struct gt_control_file own[] = {
		{ .path = "own/file", .help = "its own", .kinds = GT_CONTROL_ALL },
	};
	static const struct gt_control_group groups[] = { { own, 1 } };
	struct gt_control_node node;

	(void)state;
	fake.control.groups = groups;
	fake.control.group_count = 1;
	assert_int_equal(gt_control_find(&fake.control, "own/file", 8, &node), 0);
	assert_ptr_equal(node.file, own);
	assert_int_equal(gt_control_access(&fake.control, node.file), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_file_reads_the_same_in_pieces_of_any_size),
		TEST(every_row_is_whole),
		TEST(paths_name_files_and_directories),
		TEST(a_change_may_hold_up_names_of_threads_instances_and_events_only),
		TEST(directories_list_each_entry_once),
		TEST(tracing_on_takes_what_linux_takes),
		TEST(tracing_enable_acts_when_read_and_when_written),
		TEST(tracers_are_listed_and_chosen_by_name),
		TEST(functions_are_listed_with_their_objects),
		TEST(filters_are_set_added_to_and_taken_from),
		TEST(a_refused_filter_leaves_what_linux_leaves),
		TEST(a_word_that_is_cut_goes_on_in_the_next_write),
		TEST(functions_are_named_with_their_object),
		TEST(commands_stand_behind_the_functions),
		TEST(threads_are_listed_by_number),
		TEST(a_marker_is_written_while_tracing_is_on),
		TEST(errors_are_kept_with_a_caret),
		TEST(cpus_are_a_hexadecimal_mask),
		TEST(names_of_threads_are_listed),
		TEST(instances_are_targets_of_their_own),
		TEST(a_list_takes_one_word_a_write),
		TEST(numbers_are_kept_in_their_units),
		TEST(the_clock_stands_in_brackets),
		TEST(options_are_set_by_name_or_by_their_file),
		TEST(an_option_that_another_one_sets_meanwhile_stays),
		TEST(trace_stays_and_trace_pipe_waits),
		TEST(only_truncating_clears_the_trace),
		TEST(trace_pipe_ends_when_it_has_given_something_and_tracing_is_off),
		TEST(a_thread_and_a_cpu_have_traces_of_their_own),
		TEST(stats_say_what_became_of_every_record),
		TEST(the_readme_names_every_file_of_the_target),
		TEST(a_recording_cannot_be_changed),
		TEST(directories_cannot_be_opened),
		TEST(a_target_without_an_operation_says_so),
		TEST(a_target_can_bring_rows_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
