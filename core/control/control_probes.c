/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes: dynamic_events, uprobe_events, kprobe_events and their profiles. A line is a command, as in
 * kernel/trace/trace_dynevent.c, trace_uprobe.c and trace_kprobe.c: p and r set a probe, "-:" removes some; the shell's `>` removes all of them first, and none
 * while one is recorded. dynamic_events has synthetic events, too: "s:" defines one (trace_events_synth.c).
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"
#include "core/trace/probe.h"
#include "core/trace/synthetic.h"

#define BEFORE_NAME GT_EVENT_SYNTHETIC "/"

static bool has_probes(const struct gt_control_target *target)
{
	return target->ops->probe_set != NULL;
}

static bool has_hits(const struct gt_control_target *target)
{
	return target->ops->probe_hits != NULL;
}

static bool has_any(const struct gt_control_target *target)
{
	return has_probes(target) || target->ops->synthetic_set != NULL;
}

/* uprobe_events has probes alone. */
static bool has_synthetics(const struct gt_control_handle *handle)
{
	return handle->file->argument == 0 && handle->target->ops->synthetic_set != NULL;
}

static int open_probes(struct gt_control_handle *handle, unsigned access,
		       struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	int error;

	if (!(access & GT_CONTROL_WRITE) || !(access & GT_CONTROL_TRUNCATE))
		return 0;
	error = has_probes(handle->target) ? ops->probes_remove(handle->target, "", "", message)
					   : 0;
	if (error == 0 && has_synthetics(handle))
		error = ops->synthetics_remove(handle->target, "", message);
	return error;
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

/* The line of the index'th synthetic event. */
static int get_synthetic(struct gt_control_target *target, uint64_t index, char *line, size_t bytes)
{
	struct gt_event_format event;
	char text[2 * GT_SYNTHETIC_BYTES];
	const int error = target->ops->synthetic(target, index, &event);

	if (error != 0)
		return error;
	gt_synthetic_put(&event, text, sizeof(text));
	gt_format(line, bytes, "s:" BEFORE_NAME "%s", text);
	return 0;
}

/* The probes, then the synthetic events. */
static int get_any(struct gt_control_target *target, uint64_t index, char *line, size_t bytes)
{
	uint64_t probes = 0;

	if (has_probes(target) && target->ops->probe(target, index, line, bytes) == 0)
		return 0;
	while (has_probes(target) && probes < index &&
	       target->ops->probe(target, probes, line, bytes) == 0)
		probes++;
	return get_synthetic(target, index - probes, line, bytes);
}

static int64_t read_probes(struct gt_control_handle *handle, char *buffer, size_t bytes,
			   struct gt_message *message)
{
	(void)message;
	return read_lines(handle, has_synthetics(handle) ? get_any : handle->target->ops->probe,
			  buffer, bytes);
}

static int64_t read_profile(struct gt_control_handle *handle, char *buffer, size_t bytes,
			    struct gt_message *message)
{
	(void)message;
	return read_lines(handle, handle->target->ops->probe_hits, buffer, bytes);
}

/* "s:[synthetic/]NAME FIELDS": as in synthetic_events behind what stands before the name. */
static int define_synthetic(struct gt_control_handle *handle, const char *line, size_t bytes,
			    struct gt_probe_error *unfit, struct gt_message *message)
{
	size_t name = 2, blank = 0, slash = 2;
	int error;

	handle->bad_in = "synthetic_events"; /* as Linux says it */
	while (blank < bytes && !gt_row_is_blank(line[blank]))
		blank++;
	while (slash < bytes && line[slash] != '/')
		slash++;
	if (blank == bytes)
		return REFUSE(message, GT_EINVAL,
			      "Command must be of the form: <name> field[;field] ...");
	if (slash < bytes && !gt_row_is_word(line + 2, slash - 2, GT_EVENT_SYNTHETIC))
		return REFUSE(
			message, GT_EINVAL,
			"Command must be of the form: s or -:[synthetic/]<name> field[;field] ...");
	if (slash < bytes)
		name = slash + 1;
	error = handle->target->ops->synthetic_set(handle->target, line + name, bytes - name, unfit,
						   message);
	unfit->at += (uint32_t)name;
	return error;
}

/* Of the group and name, "" any. */
static int remove_named(struct gt_control_handle *handle, const char *group, const char *name,
			struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	const bool may_be_synthetic =
		has_synthetics(handle) &&
		(group[0] == '\0' ||
		 gt_row_is_word(group, gt_row_length(group), GT_EVENT_SYNTHETIC));
	int error = GT_ENOENT, more;

	if (has_probes(handle->target))
		error = ops->probes_remove(handle->target, group, name, message);
	if (!may_be_synthetic || (error != 0 && error != GT_ENOENT))
		return error;
	more = ops->synthetics_remove(handle->target, name, message);
	return more == GT_ENOENT ? error : more;
}

/* One command: [line, line + bytes), which begins `at` bytes behind the first that was written. */
static int take_line(struct gt_control_handle *handle, const char *line, size_t bytes, size_t at,
		     struct gt_message *message)
{
	const struct gt_control_ops *ops = handle->target->ops;
	struct gt_probe_definition probe;
	struct gt_probe_error unfit = { "", 0 };
	const bool is_kernel = handle->target->kind == GT_CONTROL_KERNEL;
	int error;

	if (line[0] == '-') {
		error = gt_probe_parse(line, bytes, GT_PROBES_ANY, &probe, &unfit);
		if (error == 0)
			return remove_named(handle, probe.group, probe.name, message);
		gt_message_set(message, "%s", unfit.text);
	} else if (has_synthetics(handle) && bytes >= 2 && line[0] == 's' && line[1] == ':') {
		error = define_synthetic(handle, line, bytes, &unfit, message);
	} else if (!has_probes(handle->target)) {
		error = REFUSE(message, GT_ENOTSUP, "there are no probes here");
	} else {
		handle->bad_in = is_kernel ? "trace_kprobe" : "trace_uprobe"; /* as Linux says it */
		error = ops->probe_set(handle->target, line, bytes,
				       is_kernel		     ? GT_PROBES_KERNEL
				       : handle->file->argument != 0 ? GT_PROBES_PROGRAM
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
	    GT_CONTROL_LIVE, .flags = GT_CONTROL_TOP, .exists = has_any, .open = open_probes,
	    .read = read_probes, .write = write_probes),
	ROW("uprobe_events", "the same, of programs: PATH:OFFSET", GT_CONTROL_PROGRAM,
	    .flags = GT_CONTROL_TOP, .argument = 1, .exists = has_probes, .open = open_probes,
	    .read = read_probes, .write = write_probes),
	ROW("kprobe_events", "the same, of a kernel: SYM or an address", GT_CONTROL_KERNEL,
	    .flags = GT_CONTROL_TOP, .argument = 1, .exists = has_probes, .open = open_probes,
	    .read = read_probes, .write = write_probes),
	ROW("kprobe_profile", "name, hits and misses of each probe", GT_CONTROL_KERNEL,
	    .flags = GT_CONTROL_TOP, .exists = has_hits, .read = read_profile),
	ROW("uprobe_profile", "file, name and hits of each probe", GT_CONTROL_PROGRAM,
	    .flags = GT_CONTROL_TOP, .exists = has_hits, .read = read_profile),
};

const struct gt_control_group gt_control_probes_files = { files, COUNT(files) };
