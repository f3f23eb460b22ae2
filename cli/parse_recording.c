/* SPDX-License-Identifier: MIT */
/*
 * graftrace parse-trace of a recording: its calls to CSV, one row for each call, in order of
 * return. Calls without a row are reported on stderr; so is damage, even with -q.
 */
#define _GNU_SOURCE
#include "cli/parse_recording.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/looking.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "export/csv.h"
#include "linux/trace_dat.h"
#include "read/calls.h"
#include "read/recording.h"
#include <graftrace/file.h>

#define NAME "parse-trace"

bool gt_is_recording(int fd)
{
	char magic[GRAFTRACE_FILE_MAGIC_BYTES];

	return (pread(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
		memcmp(magic, GRAFTRACE_FILE_MAGIC, sizeof(magic)) == 0) ||
	       gt_is_trace_dat(fd);
}

static int write_row(void *user, const struct gt_call *call)
{
	return gt_csv_write_call(user, call->function, strlen(call->function), call->tid,
				 call->latency_ns, call->self_ns);
}

static void tell(uint64_t count, const char *one, const char *many)
{
	if (count > 0)
		fprintf(stderr, "  %llu %s\n", (unsigned long long)count, count == 1 ? one : many);
}

static void tell_report(const struct gt_calls_report *report, const char *path, const char *to)
{
	fprintf(stderr, "graftrace parse-trace: %llu call%s from %s to %s\n",
		(unsigned long long)report->calls, report->calls == 1 ? "" : "s", path,
		strcmp(to, "-") == 0 ? "stdout" : to);
	tell(report->open_at_start, "return of a call whose entry was not recorded; no row",
	     "returns of calls whose entries were not recorded; no rows");
	tell(report->open_at_end, "call still open at the end; no row",
	     "calls still open at the end; no rows");
	tell(report->never_returned,
	     "call that never returned (a jump, an exception, the end of its thread); no row",
	     "calls that never returned (jumps, exceptions, the ends of their threads); no rows");
	tell(report->unseen, "call that may have returned while nothing was recorded; no row",
	     "calls that may have returned while nothing was recorded; no rows");
	tell(report->cut_by_loss, "call in which records are missing; no row",
	     "calls in which records are missing; no rows");
	tell(report->entry_only, "call of a function whose returns are not recorded; no row",
	     "calls of functions whose returns are not recorded; no rows");
	tell(report->without_return,
	     "record of the tracer function, which records no durations; no row",
	     "records of the tracer function, which records no durations; no rows");
	tell(report->lost, "record was lost", "records were lost");
	tell(report->gaps, "place where a part of a thread's trace is missing",
	     "places where parts of threads' traces are missing");
	tell(report->left_out, "thread left out for lack of memory",
	     "threads left out for lack of memory");
}

static int convert(struct gt_recording *recording, const char *path, const char *to, bool no_sleep,
		   bool quiet)
{
	struct gt_message message = { "" };
	struct gt_csv_writer writer = { .fd = -1 };
	struct gt_calls_report report;
	struct gt_output output;
	int error, result;

	if (no_sleep && !gt_target_has_off_cpu(gt_recording_target(recording))) {
		gt_complain(NAME, "'%s' does not have when threads were off the CPU", path);
		return GT_EXIT_FAILED;
	}
	if (gt_output_open(&output, to, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	error = gt_csv_writer_init(&writer, output.fd);
	gt_progress_reading(recording, 1);
	if (error == 0)
		error = gt_calls_read(gt_recording_target(recording), no_sleep, write_row, &writer,
				      &report);
	gt_progress_end();
	result = gt_look_tell(NAME, path, recording);
	if (error == 0 && report.calls == 0 && report.without_return > 0) {
		gt_complain(NAME,
			    "'%s' is a recording of the tracer function, which records no "
			    "durations; choose function_graph and record again",
			    path);
		goto abandon;
	}
	if (error == 0)
		error = gt_csv_writer_flush(&writer, &message);
	if (error == 0)
		error = gt_output_commit(&output, &message);
	if (error != 0) {
		if (writer.error != 0)
			gt_complain(NAME, "cannot write '%s': %s", to, strerror(writer.error));
		else if (error == GT_ENOMEM)
			gt_complain(NAME, "out of memory");
		else
			gt_complain(NAME, "'%s': %s", to, message.text);
		goto abandon;
	}
	gt_csv_writer_fini(&writer);
	if (!quiet)
		tell_report(&report, path, to);
	return result;
abandon:
	gt_csv_writer_fini(&writer);
	gt_output_abandon(&output);
	return GT_EXIT_FAILED;
}

int gt_parse_recording(int fd, const char *path, const char *to, bool no_sleep, bool quiet)
{
	struct gt_recording *recording;
	char name[32]; /* stdin has no name of its own */

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	recording = gt_look_open(NAME, strcmp(path, "-") == 0 ? name : path);
	if (recording == NULL)
		return GT_EXIT_FAILED;
	int result = convert(recording, path, to, no_sleep, quiet);
	gt_recording_close(recording);
	return result;
}
