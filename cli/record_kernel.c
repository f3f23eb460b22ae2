/* SPDX-License-Identifier: MIT */
/*
 * graftrace record --kernel: Linux's tracers run together with the program's, and stop with it.
 */
#include "cli/record_kernel.h"

#include <stdio.h>

#include "cli/command.h"
#include "core/trace/message.h"
#include "linux/tracer.h"

#define NAME "record"

static void print_note(void *data, const char *text)
{
	(void)data;
	fprintf(stderr, "graftrace: %s\n", text);
}

int gt_record_kernel_create(const struct gt_record_options *options,
			    struct gt_kernel_tracer **tracer)
{
	struct gt_kernel_options kernel = {
		.size = sizeof(kernel),
		.what = options->kernel_what,
		.events = options->events,
		.settings = options->kernel_settings,
		.setting_count = options->kernel_setting_count,
		.whole_system = options->kernel_all,
		.pids = options->pids,
		.pid_count = options->pid_count,
		.note = print_note,
	};
	struct gt_message message = { "" };
	int error = gt_kernel_tracer_create(&kernel, tracer, &message);

	if (error == 0)
		return 0;
	if (error == GT_ENOMEM)
		gt_complain(NAME, "no memory");
	else
		gt_complain(NAME, "%s%s", message.text,
			    options->kernel_try ? "; recorded without the kernel" : "");
	return options->kernel_try ? 0 : GT_EXIT_FAILED;
}

int gt_record_kernel_start(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	struct gt_message message = { "" };

	if (tracer == NULL)
		return 0;
	if (gt_kernel_tracer_describe(tracer, writer) != 0)
		gt_message_set(&message, "%s", gt_file_writer_error(writer));
	else if (gt_kernel_tracer_start(tracer, &message) == 0)
		return 0;
	gt_complain(NAME, "%s", message.text);
	return GT_EXIT_FAILED;
}

void gt_record_kernel_end(struct gt_kernel_tracer **tracer, struct gt_file_writer *writer)
{
	struct gt_message losses = { "" };
	uint64_t lost = 0;

	if (*tracer != NULL && writer != NULL)
		gt_kernel_tracer_finish(*tracer, writer, &lost, &losses);
	if (lost > 0)
		gt_complain(NAME,
			    "%llu of the kernel's records were lost: its buffer was full (%s)",
			    (unsigned long long)lost, losses.text);
	gt_kernel_tracer_destroy(*tracer);
	*tracer = NULL;
}
