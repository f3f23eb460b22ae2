/* SPDX-License-Identifier: MIT */
/*
 * synthetic_events: events that histograms make. A line defines one, `!NAME` removes it, the shell's `>` removes
 * all of them first, and none while one is in use: kernel/trace/trace_events_synth.c, Linux 6.1.
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"
#include "core/trace/message.h"
#include "core/trace/synthetic.h"

static bool has_synthetics(const struct gt_control_target *target)
{
	return target->ops->synthetic_set != NULL;
}

static int open_synthetics(struct gt_control_handle *handle, unsigned access,
			   struct gt_message *message)
{
	return (access & GT_CONTROL_WRITE) && (access & GT_CONTROL_TRUNCATE)
		       ? handle->target->ops->synthetics_remove(handle->target, "", message)
		       : 0;
}

static int64_t read_synthetics(struct gt_control_handle *handle, char *buffer, size_t bytes,
			       struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_event_format event;
	char text[2 * GT_SYNTHETIC_BYTES];
	size_t given = 0;

	(void)message;
	while (given < bytes && ops->synthetic(handle->target, handle->line, &event) == 0) {
		const struct gt_row_line line = { { text, "\n" } };

		gt_synthetic_put(&event, text, sizeof(text));
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

/* Takes "!NAME"; the rest of the line is ignored. */
static int remove_one(struct gt_control_handle *handle, const char *line, size_t bytes,
		      struct gt_message *message)
{
	char name[GT_SYNTHETIC_BYTES];
	size_t length = 0;

	for (line++, bytes--; length < bytes && !gt_row_is_blank(line[length]); length++)
		;
	if (length == 0 || length >= sizeof(name))
		return REFUSE(message, GT_ENOENT, "there is no such synthetic event");
	gt_format(name, sizeof(name), "%.*s", (int)length, line);
	return handle->target->ops->synthetics_remove(handle->target, name, message);
}

/* Takes one line, [line, line + bytes). at: its offset in what was written. */
static int take_line(struct gt_control_handle *handle, const char *line, size_t bytes, size_t at,
		     struct gt_message *message)
{
	struct gt_probe_error error = { "", 0 };
	int result;

	if (line[0] == '!')
		return remove_one(handle, line, bytes, message);
	result = handle->target->ops->synthetic_set(handle->target, line, bytes, &error, message);
	handle->bad_at = at + error.at;
	return result;
}

static int64_t write_synthetics(struct gt_control_handle *handle, const char *bytes, size_t count,
				struct gt_message *message)
{
	for (size_t at = 0; at < count;) {
		size_t end = at, next;
		int error = 0;

		while (end < count && bytes[end] != '\n' && bytes[end] != '#')
			end++;
		for (next = end; next < count && bytes[next] != '\n'; next++)
			;
		while (at < end && gt_row_is_blank(bytes[at]))
			at++;
		while (end > at && gt_row_is_blank(bytes[end - 1]))
			end--;
		if (end > at)
			error = take_line(handle, bytes + at, end - at, at, message);
		if (error != 0)
			return error;
		at = next + 1;
	}
	return (int64_t)count;
}

static const struct gt_control_file files[] = {
	ROW("synthetic_events",
	    "events that histograms make, defined by a line each: NAME TYPE FIELD[; …], !NAME",
	    GT_CONTROL_LIVE, .flags = GT_CONTROL_TOP, .exists = has_synthetics,
	    .open = open_synthetics, .read = read_synthetics, .write = write_synthetics),
};

const struct gt_control_group gt_control_synthetic_files = { files, COUNT(files) };
