/* SPDX-License-Identifier: MIT */
/*
 * The function profiler: function_profile_enabled, and its tables in trace_stat/. A program's
 * threads are not its CPUs: function0 has all of them, per_thread/TID/trace_stat one. Behaviour and
 * text: kernel/trace/ftrace.c (ftrace_profile_write, function_stat_show). Beside each of Linux's tables
 * there is one of histograms.
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

#define NAME_COLUMNS 30

static bool can_profile(const struct gt_control_target *target)
{
	return target->ops->profile_open != NULL;
}

static int open_enabled(struct gt_control_handle *handle, unsigned access,
			struct gt_message *message)
{
	uint64_t value = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = gt_row_get(handle, GT_CONTROL_PROFILE, &value, message);
	if (error == 0)
		append(handle, "%llu\n", (unsigned long long)value);
	return error;
}

static int64_t write_enabled(struct gt_control_handle *handle, const char *bytes, size_t count,
			     struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, UINT64_MAX, &value, message);

	if (error == 0)
		error = gt_row_set(handle, GT_CONTROL_PROFILE, value != 0, message);
	return error != 0 ? error : (int64_t)count;
}

static int open_table(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_scope scope = gt_row_scope(handle);

	if (!(access & GT_CONTROL_READ))
		return 0;
	return target->ops->profile_open(target, &scope, &handle->opened, message);
}

/* As trace_print_graph_duration: microseconds with at most seven digits in all, and blanks. */
static void append_duration(struct gt_control_handle *handle, uint64_t ns)
{
	size_t before = handle->text_bytes, bytes;

	append(handle, "%llu", (unsigned long long)(ns / 1000));
	bytes = handle->text_bytes - before;
	if (bytes < 7) {
		append(handle, ".%03u", (unsigned)(ns % 1000));
		if (bytes > 4)
			handle->text_bytes -= bytes - 4;
		bytes = handle->text_bytes - before;
	}
	handle->text[handle->text_bytes] = '\0';
	append(handle, " us ");
	for (; bytes < 8; bytes++)
		append(handle, " ");
}

static void append_row(struct gt_control_handle *handle, const struct gt_control_profile_row *row)
{
	size_t columns = 0;

	handle->text_bytes = 0;
	append(handle, "  ");
	for (; columns < NAME_COLUMNS && row->name[columns] != '\0'; columns++) {
		unsigned char byte = (unsigned char)row->name[columns];

		append(handle, "%c", byte < ' ' || byte == 0x7f ? '?' : row->name[columns]);
	}
	for (; columns < NAME_COLUMNS; columns++)
		append(handle, " ");
	append(handle, "  %10llu    ", (unsigned long long)row->hits);
	append_duration(handle, row->time_ns);
	append(handle, "    ");
	append_duration(handle, row->hits != 0 ? row->time_ns / row->hits : 0);
	append(handle, "    ");
	append_duration(handle, row->variance);
	append(handle, "\n");
}

static int64_t read_table(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	size_t given = 0;

	(void)message;
	while (given < bytes) {
		struct gt_row_line line = { { "  Function                               "
					      "Hit    Time            Avg             s^2\n"
					      "  --------                               "
					      "---    ----            ---             ---\n" } };

		if (handle->line > 0) {
			struct gt_control_profile_row row;

			if (target->ops->profile_read(target, handle->opened, handle->line - 1,
						      &row) != 0)
				break;
			append_row(handle, &row);
			line = (struct gt_row_line){ { handle->text } };
		}
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

/* A function's line of calls, one for each bucket from its first to its last that has some, and between
 * functions an empty one. */
#define HIST_LINES (GT_DURATIONS + 1)

static void append_hist_line(struct gt_control_handle *handle,
			     const struct gt_control_profile_row *row, uint32_t line)
{
	uint32_t first, last;

	handle->text_bytes = 0;
	handle->text[0] = '\0';
	if (line == 0) {
		append(handle, "%s", handle->line != 0 ? "\n" : "");
		for (const char *c = row->name; *c != '\0' && handle->text_bytes < 1024; c++)
			append(handle, "%c", (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c);
		append(handle, "\n  ");
		handle->text_bytes += gt_durations_head(&row->durations, row->hits,
							handle->text + handle->text_bytes,
							sizeof(handle->text) - handle->text_bytes);
		append(handle, "\n");
	} else if (gt_durations_range(&row->durations, &first, &last) && line - 1 >= first &&
		   line - 1 <= last) {
		handle->text_bytes = gt_durations_line(&row->durations, line - 1, 0, handle->text,
						       sizeof(handle->text));
		append(handle, "\n");
	}
}

static int64_t read_hists(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_profile_row row;
	size_t given = 0;

	(void)message;
	while (given < bytes && target->ops->profile_read(target, handle->opened,
							  handle->line / HIST_LINES, &row) == 0) {
		append_hist_line(handle, &row, (uint32_t)(handle->line % HIST_LINES));
		const struct gt_row_line line = { { handle->text } };

		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

static int close_table(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if (handle->opened != NULL)
		handle->target->ops->profile_close(handle->target, handle->opened);
	return 0;
}

/* All of a program's threads together stand where Linux has the first CPU. */
static uint32_t count_tables(struct gt_control_target *target)
{
	return target->kind == GT_CONTROL_KERNEL ? gt_row_cpus.count(target) : 1;
}

static int table_number(struct gt_control_target *target, uint32_t index, uint64_t *number)
{
	if (index >= count_tables(target))
		return GT_ENOENT;
	*number = index;
	return 0;
}

static const struct gt_control_numbers tables = { count_tables, table_number, .waits = false };

static const struct gt_control_file files[] = {
	ROW("function_profile_enabled",
	    "1: hits and times of functions are counted, anew; trace_stat has them",
	    GT_CONTROL_LIVE, .flags = GT_CONTROL_TOP, .exists = can_profile, .open = open_enabled,
	    .read = gt_row_read_text, .write = write_enabled),
	ROW("trace_stat/function#",
	    "the function profiler's table: hits, time, average, variance; 0: all threads",
	    GT_CONTROL_LIVE, .flags = GT_CONTROL_TOP, .numbers = &tables, .exists = can_profile,
	    .argument = GT_SCOPE_CPU, .open = open_table, .read = read_table, .close = close_table),
	ROW("trace_stat/function_hist#",
	    "the same functions: how many calls took how long, by powers of two", GT_CONTROL_LIVE,
	    .flags = GT_CONTROL_TOP, .numbers = &tables, .exists = can_profile,
	    .argument = GT_SCOPE_CPU, .open = open_table, .read = read_hists, .close = close_table),
	ROW("per_thread/#/trace_stat", "the same of one thread that lives", GT_CONTROL_PROGRAM,
	    .flags = GT_CONTROL_TOP, .numbers = &gt_row_threads, .exists = can_profile,
	    .argument = GT_SCOPE_THREAD, .open = open_table, .read = read_table,
	    .close = close_table),
};

const struct gt_control_group gt_control_profile_files = { files, COUNT(files) };
