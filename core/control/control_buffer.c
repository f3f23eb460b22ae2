/* SPDX-License-Identifier: MIT */
/*
 * The ring: its size, and counts of records that are in it, were read or were lost. Behaviour:
 * kernel/trace/trace.c (tracing_entries_read, tracing_stats_read).
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

static int open_size(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	uint64_t value = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = gt_row_get(handle, (enum gt_control_value)handle->file->argument, &value, message);
	if (error == 0)
		append(handle, "%llu\n", (unsigned long long)(value / 1024));
	return error;
}

static int64_t write_size(struct gt_control_handle *handle, const char *bytes, size_t count,
			  struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, UINT64_MAX / 1024, &value, message);

	if (error == 0 && value == 0)
		return REFUSE(message, GT_EINVAL, "a size above zero is wanted");
	if (error == 0)
		error = gt_row_set(handle, GT_CONTROL_BUFFER_BYTES, value * 1024, message);
	return error != 0 ? error : (int64_t)count;
}

/* What was lost, and where the writers stand */

static void append_count(struct gt_control_handle *handle, const char *name, uint64_t count)
{
	append(handle, "%s: %llu\n", name, (unsigned long long)count);
}

static void append_time(struct gt_control_handle *handle, const char *name, uint64_t ns)
{
	append(handle, "%s: %5llu.%06llu\n", name, (unsigned long long)(ns / 1000000000),
	       (unsigned long long)(ns / 1000 % 1000000));
}

/* Writes the lines of Linux's stats that the target counts. */
static int append_stats(struct gt_control_handle *handle, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_scope scope = gt_row_scope(handle);
	struct gt_control_stats stats = { 0 };
	int error;

	if (target->ops->stats == NULL)
		return 0;
	error = target->ops->stats(target, &scope, &stats, message);
	if (error != 0)
		return error;
	append_count(handle, "entries", stats.entries);
	append_count(handle, "overrun", stats.overrun);
	append_count(handle, "commit overrun", stats.commit_overrun);
	append_count(handle, "bytes", stats.bytes);
	append_time(handle, "oldest event ts", stats.oldest_ns);
	append_time(handle, "now ts", stats.now_ns);
	append_count(handle, "dropped events", stats.dropped);
	append_count(handle, "read events", stats.read);
	if (stats.damaged != 0)
		append_count(handle, "damaged", stats.damaged);
	return 0;
}

static void append_lost(struct gt_control_handle *handle, const uint64_t *lost)
{
	if (handle->target->ops->stats == NULL) {
		append_count(handle, "dropped events", lost[GRAFTRACE_LOST_FULL]);
		append_count(handle, "overrun", lost[GRAFTRACE_LOST_OVERRUN]);
	}
	append_count(handle, "lost calls", graftrace_lost_calls(lost));
	append_count(handle, "entries without return", lost[GRAFTRACE_LOST_WINDOW]);
	append_count(handle, "too deep", lost[GRAFTRACE_LOST_DEPTH]);
	append_count(handle, "no stream", lost[GRAFTRACE_LOST_STREAM]);
	append_count(handle, "late", lost[GRAFTRACE_LOST_LATE]);
}

static int open_cpu_stats(struct gt_control_handle *handle, unsigned access,
			  struct gt_message *message)
{
	if (!(access & GT_CONTROL_READ))
		return 0;
	if (handle->target->ops->stats == NULL)
		return gt_row_not_here(message);
	return append_stats(handle, message);
}

static int open_stats(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_target *view = handle->target->view;
	uint64_t lost[GRAFTRACE_LOST_CAUSES] = { 0 };
	uint64_t sub_buffers = 0;
	uint64_t live = 0;
	uint32_t count;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	if (view == NULL)
		return gt_row_not_here(message);
	error = append_stats(handle, message);
	if (error != 0)
		return error;
	count = view->ring->writer_count(view);
	for (uint32_t i = 0; i < count; i++) {
		struct gt_writer writer;

		if (view->ring->writer(view, i, &writer) != 0)
			continue;
		for (uint32_t cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			lost[cause] += writer.lost[cause];
		sub_buffers += writer.next - writer.first;
		live += writer.end == 0;
	}
	if (view->ring->lost != NULL)
		view->ring->lost(view, lost);
	append_count(handle, "threads", count);
	append_count(handle, "not ended", live);
	append_count(handle, "sub-buffers", sub_buffers);
	append_lost(handle, lost);
	return 0;
}

static int open_thread_stats(struct gt_control_handle *handle, unsigned access,
			     struct gt_message *message)
{
	struct gt_target *view = handle->target->view;
	struct gt_writer writer;
	uint32_t i = view->ring->writer_count(view);
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	/* The kernel gives a thread's number again: the newest of that number is meant. */
	while (i > 0 &&
	       (view->ring->writer(view, i - 1, &writer) != 0 || writer.tid != handle->number))
		i--;
	if (i == 0)
		return REFUSE(message, GT_ENOENT, "no such thread");
	error = append_stats(handle, message);
	if (error != 0)
		return error;
	append(handle, "%s", "name: ");
	for (size_t at = 0; at < sizeof(writer.comm) && writer.comm[at] != '\0'; at++)
		append(handle, "%c", writer.comm[at] >= ' ' ? writer.comm[at] : '?');
	append(handle, "\n");
	append_count(handle, "process", writer.pid);
	append_count(handle, "thread", writer.tid);
	append_count(handle, "ended", writer.end != 0);
	append_count(handle, "sub-buffers", writer.next - writer.first);
	append_count(handle, "oldest sub-buffer", writer.first);
	append_count(handle, "started ns", gt_clock_ns(&view->clock, writer.start));
	append_lost(handle, writer.lost);
	return 0;
}

/* Closing free_buffer empties the ring, and stops the tracing first if an option says so. */
static int close_free(struct gt_control_handle *handle, struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	const struct gt_control_scope all = { GT_SCOPE_ALL, 0 };
	uint64_t options = 0;
	int error = gt_row_get(handle, GT_CONTROL_OPTIONS, &options, message);

	if (error == 0 && options & GT_OPTION_DISABLE_ON_FREE)
		error = gt_row_set(handle, GT_CONTROL_TRACING_ON, 0, message);
	return error != 0 ? error : ops->clear(handle->target, &all, message);
}

static bool can_clear(const struct gt_control_target *target)
{
	return target->ops->clear != NULL;
}

static bool has_stats(const struct gt_control_target *target)
{
	return target->ops->stats != NULL;
}

static const struct gt_control_file files[] = {
	ROW("buffer_size_kb", "kilobytes that one thread (or CPU) may fill", GT_CONTROL_LIVE,
	    .argument = GT_CONTROL_BUFFER_BYTES, .open = open_size, .read = gt_row_read_text,
	    .write = write_size),
	ROW("buffer_total_size_kb", "kilobytes of the ring in all", GT_CONTROL_LIVE,
	    .argument = GT_CONTROL_TOTAL_BYTES, .open = open_size, .read = gt_row_read_text),
	ROW("per_cpu/cpu#/buffer_size_kb", "the same of one CPU", GT_CONTROL_LIVE,
	    .numbers = &gt_row_cpus, .argument = GT_CONTROL_BUFFER_BYTES, .open = open_size,
	    .read = gt_row_read_text, .write = write_size),
	ROW("free_buffer", "closing it empties the ring", GT_CONTROL_LIVE, .exists = can_clear,
	    .write = gt_row_write_nothing, .close = close_free),
	ROW("stats", "records by what became of them, threads, losses by cause", GT_CONTROL_ALL,
	    .open = open_stats, .read = gt_row_read_text),
	ROW("per_cpu/cpu#/stats", "one CPU: records by what became of them", GT_CONTROL_ALL,
	    .numbers = &gt_row_cpus, .exists = has_stats, .argument = GT_SCOPE_CPU,
	    .open = open_cpu_stats, .read = gt_row_read_text),
	ROW("per_thread/#/stats", "one thread: its records, where it stands, losses by cause",
	    GT_CONTROL_PROGRAM | GT_CONTROL_RECORDING, .numbers = &gt_row_threads,
	    .argument = GT_SCOPE_THREAD, .open = open_thread_stats, .read = gt_row_read_text),
};

const struct gt_control_group gt_control_buffer_files = { files, COUNT(files) };
