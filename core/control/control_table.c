/* SPDX-License-Identifier: MIT */
/* The table of control files: its groups in the order in which they are listed, and README. */
#include "core/control/control_table.h"
#include "core/control/control_row.h"

const struct gt_control_group *const gt_control_groups[] = {
	&gt_control_readme,	  &gt_control_tracer_files,    &gt_control_trace_files,
	&gt_control_filter_files, &gt_control_buffer_files,    &gt_control_names_files,
	&gt_control_log_files,	  &gt_control_snapshot_files,  &gt_control_profile_files,
	&gt_control_raw_files,	  &gt_control_events_files,    &gt_control_options_files,
	&gt_control_probes_files, &gt_control_synthetic_files,
};

const uint32_t gt_control_group_count = COUNT(gt_control_groups);

/* README: a line for each row that the target has. */
static int64_t read_readme(struct gt_control_handle *handle, char *buffer, size_t bytes,
			   struct gt_message *message)
{
	size_t given = 0;

	(void)message;
	while (given < bytes) {
		struct gt_row_line line = {
			{ "tracing mini-HOWTO:\n\n"
			  "# echo 0 > tracing_on : quick way to disable tracing\n"
			  "# echo 1 > tracing_on : quick way to re-enable tracing\n\n"
			  " Important files:\n" }
		};

		if (handle->line > 0) {
			const struct gt_control_file *file =
				gt_control_row(handle->target, (uint32_t)handle->line - 1);

			if (file == NULL)
				break;
			if (!gt_control_exists(handle->target, file)) {
				handle->line++;
				continue;
			}
			line = (struct gt_row_line){ { "  ", file->path, "\t- ", file->help,
						       "\n" } };
		}
		if (!gt_row_give_line(handle, &line, buffer, bytes, &given))
			break;
	}
	return (int64_t)given;
}

static const struct gt_control_file files[] = {
	ROW("README", "this text: the control files and what they are for", GT_CONTROL_ALL,
	    .flags = GT_CONTROL_TOP, .read = read_readme),
};

const struct gt_control_group gt_control_readme = { files, COUNT(files) };
