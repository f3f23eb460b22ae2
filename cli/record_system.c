/* SPDX-License-Identifier: MIT */
/*
 * Records the kernel alone: its pages are written to the file as they come; there is no program and
 * no session.
 */
#include "cli/record_system.h"

#include <poll.h>
#include <stdio.h>

#include "cli/command.h"
#include "cli/record_kernel.h"
#include "cli/record_report.h"
#include "cli/running.h"
#include "linux/tracer.h"
#include "attach/process/clock.h"
#include "read/writer.h"

#define NAME		 "record"
#define POLL_MS		 20
#define SUB_BUFFER_BYTES 65536

static bool is_over(const struct gt_record_options *options, uint64_t start)
{
	return gt_run_interrupted || gt_run_to_forward ||
	       (options->for_ns != 0 && gt_monotonic_ns() - start >= options->for_ns);
}

/* Returns 0, or the writer's error. */
static int follow(const struct gt_record_options *options, struct gt_kernel_tracer *tracer,
		  struct gt_file_writer *writer)
{
	uint64_t start = gt_monotonic_ns();
	int error = 0;

	while (error == 0 && !is_over(options, start)) {
		poll(NULL, 0, POLL_MS);
		error = gt_kernel_tracer_take(tracer, writer);
		if (error == 0)
			error = gt_file_writer_flush_old(writer);
	}
	return error;
}

/* Ends the file, with the clock as measured over the whole run. */
static int finish(struct gt_file_writer *writer, const struct gt_clock *clock,
		  struct gt_message *message)
{
	struct gt_instant from = { clock->tsc_base, clock->ns_base }, now = gt_clock_now();
	struct gt_file_writer_totals end = { .clock = *clock, .ns = now.ns - from.ns };

	gt_clock_calibrate(&end.clock, from, now);
	return gt_file_writer_finish(writer, &end, message);
}

static int record(const struct gt_record_options *options, const struct gt_clock *clock,
		  struct gt_kernel_tracer **tracer, struct gt_file_writer *writer)
{
	struct gt_message message = { "" };

	fprintf(stderr, "graftrace: recording the whole system, until %sCtrl-C\n",
		options->for_ns != 0 ? "the time is over or " : "");
	int error = follow(options, *tracer, writer);
	gt_record_kernel_end(tracer, writer);
	if (error == 0)
		error = finish(writer, clock, &message);
	if (error != 0) {
		gt_complain(NAME, "%s",
			    message.text[0] != '\0' ? message.text : gt_file_writer_error(writer));
		return GT_EXIT_FAILED;
	}
	gt_record_report_file(options->output, gt_file_writer_bytes(writer));
	return GT_EXIT_DONE;
}

int gt_record_system(const struct gt_record_options *options, const struct gt_clock *clock)
{
	struct gt_file_writer_options file = {
		.size = sizeof(file),
		.path = options->output,
		.compress = options->compress,
		.level = options->level,
		.clock = *clock,
		.tracer = options->choice.settings.tracer,
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
	};
	struct gt_kernel_tracer *tracer = NULL;
	struct gt_file_writer *writer = NULL;
	struct gt_message message = { "" };

	gt_run_handle_signals();
	/* before the file is opened: if the kernel refuses, an older recording stays */
	int code = gt_record_kernel_create(options, &tracer);
	if (code == 0 && gt_file_writer_create(&file, &writer, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		code = GT_EXIT_FAILED;
	}
	if (code == 0)
		code = gt_record_kernel_start(tracer, writer);
	if (code == 0)
		code = record(options, clock, &tracer, writer);
	gt_record_kernel_end(&tracer, NULL);
	gt_file_writer_destroy(writer);
	return code;
}
