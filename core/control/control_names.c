/* SPDX-License-Identifier: MIT */
/*
 * Names of threads, and what stands in for formats that a kernel has: saved_cmdlines, saved_tgids,
 * printk_formats. Lists are made of the target's writers, a line at a time.
 */
#include "core/control/control_row.h"
#include "core/control/control_table.h"

/* Only the newest writer of a thread's number has a line, and of those only as many as are kept. */
static int open_lines(struct gt_control_handle *handle, unsigned access, struct gt_message *message)
{
	struct gt_target *view = handle->target->view;
	uint64_t kept = UINT64_MAX;
	uint32_t count;

	if (!(access & GT_CONTROL_READ))
		return 0;
	if (view == NULL)
		return gt_row_not_here(message);
	/* as on Linux processes are known of those that were seen with record-tgid on */
	if (handle->file->argument && handle->target->ops->get != NULL) {
		uint64_t options = GT_OPTION_RECORD_TGID;

		handle->target->ops->get(handle->target, GT_CONTROL_OPTIONS, &options);
		if (!(options & GT_OPTION_RECORD_TGID)) {
			handle->line = UINT32_MAX;
			return 0;
		}
	}
	count = gt_row_threads.count(handle->target);
	if (handle->target->ops->get != NULL)
		handle->target->ops->get(handle->target, GT_CONTROL_CMDLINES, &kept);
	handle->line = count > kept ? count - kept : 0;
	return 0;
}

/* `tid name` or `tid process`, by the row's argument. */
static int64_t read_lines(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	struct gt_control_target *target = handle->target;
	struct gt_target *view = target->view;
	size_t given = 0;

	(void)message;
	while (given < bytes) {
		struct gt_row_line line = { { handle->text } };
		struct gt_writer writer = { 0 };
		uint32_t index = (uint32_t)handle->line;

		if (target->ops->known_thread != NULL
			    ? target->ops->known_thread(target, index, &writer.tid, writer.comm) !=
				      0
			    : view->ring->writer(view, index, &writer) != 0)
			break;
		handle->text_bytes = 0;
		append(handle, "%u ", writer.tid);
		if (handle->file->argument) {
			append(handle, "%u", writer.pid);
		} else {
			for (size_t i = 0; i < sizeof(writer.comm) && writer.comm[i] != '\0'; i++)
				append(handle, "%c", writer.comm[i] >= ' ' ? writer.comm[i] : '?');
		}
		append(handle, "\n");
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

static int open_cmdlines_size(struct gt_control_handle *handle, unsigned access,
			      struct gt_message *message)
{
	uint64_t value = 0;
	int error;

	if (!(access & GT_CONTROL_READ))
		return 0;
	error = gt_row_get(handle, GT_CONTROL_CMDLINES, &value, message);
	if (error == 0)
		append(handle, "%llu\n", (unsigned long long)value);
	return error;
}

static int64_t write_cmdlines_size(struct gt_control_handle *handle, const char *bytes,
				   size_t count, struct gt_message *message)
{
	uint64_t value = 0;
	int error = gt_row_number(bytes, count, 32768, &value, message);

	if (error == 0 && value == 0)
		return REFUSE(message, GT_EINVAL, "a number from 1 to 32768 is wanted");
	if (error == 0)
		error = gt_row_set(handle, GT_CONTROL_CMDLINES, value, message);
	return error != 0 ? error : (int64_t)count;
}

/* Strings of trace_printk: programs have none, kernels bring a row of their own. */
static int64_t read_empty(struct gt_control_handle *handle, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	(void)handle;
	(void)buffer;
	(void)bytes;
	(void)message;
	return 0;
}

static const struct gt_control_file files[] = {
	ROW("saved_cmdlines", "names of threads, by their numbers", GT_CONTROL_ALL,
	    .flags = GT_CONTROL_TOP, .open = open_lines, .read = read_lines),
	ROW("saved_cmdlines_size", "how many names saved_cmdlines keeps", GT_CONTROL_LIVE,
	    .flags = GT_CONTROL_TOP, .open = open_cmdlines_size, .read = gt_row_read_text,
	    .write = write_cmdlines_size),
	ROW("saved_tgids", "processes of threads, by their numbers", GT_CONTROL_ALL,
	    .flags = GT_CONTROL_TOP, .argument = 1, .open = open_lines, .read = read_lines),
	ROW("printk_formats", "texts of trace_printk, by address: none here", GT_CONTROL_ALL,
	    .flags = GT_CONTROL_TOP, .read = read_empty),
};

const struct gt_control_group gt_control_names_files = { files, COUNT(files) };
