/* SPDX-License-Identifier: MIT */
/*
 * The trace as text, the whole of it, of one CPU or of one thread; and trace_marker, which writes
 * into it. `trace` reads what is there and leaves it; `trace_pipe` takes it out and waits for more.
 * Behaviour: kernel/trace/trace.c (tracing_open, tracing_read_pipe, tracing_mark_write).
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

#define MARK_BYTES 1024 /* of one record, as Linux's TRACE_BUF_SIZE */

static int open_trace(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_control_scope scope = gt_row_scope(handle);

	/* As in Linux: only opening it with `>` clears it. */
	if ((access & GT_CONTROL_WRITE) && (access & GT_CONTROL_TRUNCATE)) {
		int error;

		gt_message_clear(message);
		/* trace-cmd extract empties what it has read: a recording stays */
		if (target->kind == GT_CONTROL_RECORDING && !(access & GT_CONTROL_READ))
			return 0;
		error = target->ops->clear != NULL ? target->ops->clear(target, &scope, message)
						   : gt_row_not_here(message);
		if (error != 0)
			return error;
	}
	if (!(access & GT_CONTROL_READ))
		return 0;
	if (target->ops->text_open == NULL)
		return gt_row_not_here(message);
	return target->ops->text_open(target, &scope, handle->file->flags & GT_CONTROL_WAITS,
				      &handle->opened, message);
}

static int64_t read_trace(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	int64_t got = target->ops->text_read(target, handle->opened, buffer, bytes, message);
	uint64_t on = 1;

	/* As on Linux, a waiting trace_pipe ends once it has given something and tracing is off. */
	if (got == GT_EAGAIN && handle->given && !handle->nonblocking && target->ops->get != NULL &&
	    target->ops->get(target, GT_CONTROL_TRACING_ON, &on) == 0 && on == 0)
		return 0;
	handle->given |= got > 0;
	return got;
}

static int close_trace(struct gt_control_handle *handle, struct gt_message *message)
{
	(void)message;
	if (handle->opened != NULL)
		handle->target->ops->text_close(handle->target, handle->opened);
	return 0;
}

static bool can_mark(const struct gt_control_target *target)
{
	return target->ops->mark != NULL;
}

static int64_t write_marker(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	bool raw = handle->file->argument;
	uint64_t options = 0;
	int error = gt_row_get(handle, GT_CONTROL_OPTIONS, &options, message);

	if (error != 0)
		return error;
	if (!(options & GT_OPTION_MARKERS))
		return REFUSE(message, GT_EINVAL, "options/markers is off");
	if (raw && count < 4)
		return REFUSE(message, GT_EINVAL, "four bytes of an identifier are wanted");
	if (raw && count > MARK_BYTES)
		return REFUSE(message, GT_EINVAL, "more than %d bytes", MARK_BYTES);
	if (count > MARK_BYTES)
		count = MARK_BYTES;
	if (count == 0)
		return 0;
	error = target->ops->mark(target, &handle->writer, bytes, count, raw, message);
	return error != 0 ? error : (int64_t)count;
}

/* A kernel's ring is taken out as a whole. */
static bool can_take_part(const struct gt_control_target *target)
{
	return target->kind != GT_CONTROL_KERNEL;
}

#define TRACE(prefix, scope, kinds, which, ...)                                               \
	ROW(prefix "trace",                                                                   \
	    "the ring as text, which stays in it" which "; emptied by opening with >", kinds, \
	    .argument = (scope), .open = open_trace, .read = read_trace,                      \
	    .write = gt_row_write_nothing, .close = close_trace, ##__VA_ARGS__)

#define PIPE(prefix, scope, which, ...)                                                         \
	ROW(prefix "trace_pipe",                                                                \
	    "the ring as text, taken out of it" which "; waits for more; one reader at a time", \
	    GT_CONTROL_LIVE, .argument = (scope), .open = open_trace, .read = read_trace,       \
	    .close = close_trace, ##__VA_ARGS__)

static const struct gt_control_file files[] = {
	TRACE("", GT_SCOPE_ALL, GT_CONTROL_ALL, "", .writable = GT_CONTROL_ALL),
	PIPE("", GT_SCOPE_ALL, "", .flags = GT_CONTROL_WAITS),
	TRACE("per_cpu/cpu#/", GT_SCOPE_CPU, GT_CONTROL_ALL, ", of one CPU",
	      .numbers = &gt_row_cpus),
	PIPE("per_cpu/cpu#/", GT_SCOPE_CPU, ", of one CPU", .numbers = &gt_row_cpus,
	     .exists = can_take_part, .flags = GT_CONTROL_WAITS),
	TRACE("per_thread/#/", GT_SCOPE_THREAD, GT_CONTROL_ALL, ", of one thread",
	      .numbers = &gt_row_threads),
	PIPE("per_thread/#/", GT_SCOPE_THREAD, ", of one thread", .numbers = &gt_row_threads,
	     .exists = can_take_part, .flags = GT_CONTROL_WAITS),
	ROW("trace_marker", "what is written here stands in the trace at its time", GT_CONTROL_LIVE,
	    .exists = can_mark, .write = write_marker),
	ROW("trace_marker_raw", "the same for bytes: a 4-byte identifier, then anything",
	    GT_CONTROL_LIVE, .flags = GT_CONTROL_BINARY, .argument = 1, .exists = can_mark,
	    .write = write_marker),
};

const struct gt_control_group gt_control_trace_files = { files, COUNT(files) };
