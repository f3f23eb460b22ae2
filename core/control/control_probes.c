/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes: dynamic_events, uprobe_events, uprobe_profile. A line is a command, as in kernel/trace/trace_dynevent.c and
 * trace_uprobe.c: p and r set a probe, "-:" removes some; the shell's `>` removes all of them first, and none
 * while one is recorded.
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"
#include "core/trace/probe.h"

static bool has_probes(const struct gt_control_target *target)
{
	return target->ops->probe_set != NULL;
}

static bool has_hits(const struct gt_control_target *target)
{
	return target->ops->probe_hits != NULL;
}

static int open_probes(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	return (access & GT_CONTROL_WRITE) && (access & GT_CONTROL_TRUNCATE)
		       ? handle->target->ops->probes_remove(handle->target, "", "", message)
		       : 0;
}

static int64_t read_lines(struct gt_control_handle *handle,
			  int (*get)(struct gt_control_target *target, uint64_t index, char *line,
				     size_t bytes),
			  char *buffer, size_t bytes)
{
	size_t given = 0;
	char text[2048];

	while (given < bytes && get(handle->target, handle->line, text, sizeof(text)) == 0) {
		const struct gt_row_line line = { { text, "\n" } };

		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

static int64_t read_probes(struct gt_control_handle *handle, char *buffer, size_t bytes,
			   struct gt_message *message)
{
	(void)message;
	return read_lines(handle, handle->target->ops->probe, buffer, bytes);
}

static int64_t read_profile(struct gt_control_handle *handle, char *buffer, size_t bytes,
			    struct gt_message *message)
{
	(void)message;
	return read_lines(handle, handle->target->ops->probe_hits, buffer, bytes);
}

/* One command: [line, line + bytes), which begins `at` bytes behind the first that was written. */
static int take_line(struct gt_control_handle *handle, const char *line, size_t bytes, size_t at,
		     struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_probe_definition probe;
	struct gt_probe_error unfit;
	int error;

	if (line[0] == '-') {
		error = gt_probe_parse(line, bytes, GT_PROBES_ANY, &probe, &unfit);
		if (error == 0)
			return ops->probes_remove(handle->target, probe.group, probe.name, message);
		gt_message_set(message, "%s", unfit.text);
	} else {
		error = ops->probe_set(handle->target, line, bytes,
				       handle->target->kind == GT_CONTROL_KERNEL ? GT_PROBES_KERNEL
				       : handle->file->argument != 0		 ? GT_PROBES_PROGRAM
										 : GT_PROBES_ANY,
				       &unfit, message);
	}
	handle->bad_at = at + unfit.at;
	return error;
}

static int64_t write_probes(struct gt_control_handle *handle, const char *bytes, size_t count,
			    struct gt_message *message)
{
	size_t at = 0;

	while (at < count) {
		size_t length = 0, used;
		int error = 0;

		while (at + length < count && bytes[at + length] != '\n')
			length++;
		for (used = 0; used < length && bytes[at + used] != '#'; used++)
			;
		while (used > 0 && gt_row_is_blank(bytes[at + used - 1]))
			used--;
		while (used > 0 && gt_row_is_blank(bytes[at])) {
			at++;
			used--;
			length--;
		}
		if (used > 0)
			error = take_line(handle, bytes + at, used, at, message);
		if (error != 0)
			return error;
		at += length + 1;
	}
	return (int64_t)count;
}

static const struct gt_control_file files[] = {
	ROW("dynamic_events",
	    "probes that are set by a line each: p:GRP/NAME PLACE ARGS, -:GRP/NAME",
	    GT_CONTROL_LIVE, .flags = GT_CONTROL_TOP, .exists = has_probes, .open = open_probes,
	    .read = read_probes, .write = write_probes),
	ROW("uprobe_events", "the same, of programs: PATH:OFFSET", GT_CONTROL_PROGRAM,
	    .flags = GT_CONTROL_TOP, .argument = 1, .exists = has_probes, .open = open_probes,
	    .read = read_probes, .write = write_probes),
	ROW("uprobe_profile", "file, name and hits of each probe", GT_CONTROL_PROGRAM,
	    .flags = GT_CONTROL_TOP, .exists = has_hits, .read = read_profile),
};

const struct gt_control_group gt_control_probes_files = { files, COUNT(files) };
