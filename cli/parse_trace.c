/* SPDX-License-Identifier: MIT */
/*
 * graftrace parse-trace: a function_graph text (or a recording: parse_recording.c) to CSV, one row
 * for each call, in order of return. What is missing in the text is reported on stderr and never
 * guessed.
 */
#define _GNU_SOURCE
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/parse_recording.h"
#include "export/csv.h"
#include "read/text_trace.h"

#define NAME "parse-trace"

static const char help[] =
	"Usage: graftrace parse-trace [-o FILE] [-q] TRACE\n"
	"\n"
	"Turns the text of a function_graph trace into CSV with the columns\n"
	"function,tid,latency_us,latency_us_self: a row a call, in order of return.\n"
	"TRACE is a recording (graftrace.data) or a text of graftrace, Nanos, Linux\n"
	"(trace, trace_pipe) or trace-cmd report; '-' reads it from stdin. Memory does\n"
	"not grow with its length.\n"
	"\n"
	"  -o, --output FILE  write the CSV to FILE ('-' is stdout); default trace.csv\n"
	"      --no-sleep-time  times without those off the CPU: of a recording that has them\n"
	"  -q, --quiet        say nothing on stderr but errors\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit codes: 0 the CSV is written; 1 it could not be, or the text is no trace, or a\n"
	"recording is damaged and only what is whole was written;\n"
	"2 the command line is wrong.\n";

enum { OPTION_NO_SLEEP = 256 };

static const struct option options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "no-sleep-time", no_argument, NULL, OPTION_NO_SLEEP },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int write_row(void *user, const struct gt_text_call *call)
{
	return gt_csv_write_call(user, call->function, call->function_len, call->tid,
				 call->latency_ns, call->self_ns);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void tell_cases(const struct gt_cases *cases)
{
	for (unsigned i = 0; i < cases->kept_count; i++) {
		const struct gt_case *kept = &cases->kept[i];

		fputs("    ", stderr);
		if (kept->line != 0)
			fprintf(stderr, "line %llu: ", (unsigned long long)kept->line);
		if (kept->why != NULL)
			fprintf(stderr, "%s: '%s'\n", kept->why, kept->text);
		else if (kept->text[0] != '\0')
			fprintf(stderr, "%s (tid %lld)\n", kept->text, (long long)kept->tid);
		else
			fprintf(stderr, "a '}' without a name (tid %lld)\n", (long long)kept->tid);
	}
	if (cases->count > cases->kept_count)
		fprintf(stderr, "    and %llu more\n",
			(unsigned long long)(cases->count - cases->kept_count));
}

static void tell(uint64_t count, const char *one, const char *many)
{
	if (count > 0)
		fprintf(stderr, "  %llu %s\n", (unsigned long long)count, count == 1 ? one : many);
}

static void tell_report(const struct gt_text_trace_report *report, const char *to)
{
	fprintf(stderr, "graftrace parse-trace: %llu call%s from %llu line%s to %s\n",
		(unsigned long long)report->calls, plural(report->calls),
		(unsigned long long)report->lines, plural(report->lines), to);
	tell(report->open_at_start.count,
	     "return of a call that was open before the text begins, or whose begin was lost; no "
	     "row:",
	     "returns of calls that were open before the text begins, or whose begin was lost; no "
	     "rows:");
	tell_cases(&report->open_at_start);
	tell(report->open_at_end.count,
	     "call still open at the end; no row:", "calls still open at the end; no rows:");
	tell_cases(&report->open_at_end);
	tell(report->never_returned,
	     "call that never returned (its caller did); no row, its own time is in its caller's "
	     "self time",
	     "calls that never returned (their callers did); no rows, their own time is in their "
	     "callers' self time");
	tell(report->cut_by_loss, "call open where events were lost; no row",
	     "calls open where events were lost; no rows");
	tell(report->forgotten, "open call dropped at the memory limit; no row",
	     "open calls dropped at the memory limit; no rows");
	if (report->lost_marks > 0)
		fprintf(stderr,
			"  the text says in %llu place%s that events were lost, %llu in all\n",
			(unsigned long long)report->lost_marks, plural(report->lost_marks),
			(unsigned long long)report->lost_events);
	tell(report->children_exceed, "row has self 0: its callees' printed times add up to more",
	     "rows have self 0: their callees' printed times add up to more");
	tell(report->untimed, "call without a duration; no row (set the option funcgraph-duration)",
	     "calls without a duration; no rows (set the option funcgraph-duration)");
	tell(report->other.count, "line is no trace:", "lines are no trace:");
	tell_cases(&report->other);
}

/* Is the text a function_graph trace, even one without a complete call? */
static int judge(const struct gt_text_trace_report *report, const char *path)
{
	if (report->calls > 0)
		return GT_EXIT_DONE;
	if (report->tracer[0] != '\0' && strncmp(report->tracer, "function_graph", 14) != 0) {
		gt_complain(NAME,
			    "'%s' is a trace of the tracer %s, which records no durations; choose "
			    "function_graph and trace again",
			    path, report->tracer);
		return GT_EXIT_FAILED;
	}
	if (report->untimed > 0) {
		gt_complain(NAME, "'%s' has no durations; set the option funcgraph-duration", path);
		return GT_EXIT_FAILED;
	}
	if (report->trace_lines > 0 || report->traces > 0)
		return GT_EXIT_DONE;
	if (report->bytes == 0)
		gt_complain(NAME, "'%s' is empty", path);
	else if (report->other.kept_count > 0)
		gt_complain(NAME,
			    "'%s' is no function_graph text: not one of its %llu lines is of a "
			    "trace; line %llu is '%s'",
			    path, (unsigned long long)report->lines,
			    (unsigned long long)report->other.kept[0].line,
			    report->other.kept[0].text);
	else
		gt_complain(NAME, "'%s' is no function_graph text: it has no line of a trace",
			    path);
	return GT_EXIT_FAILED;
}

static void complain_of(int error, const char *path, const char *to, struct gt_message *message,
			const struct gt_csv_writer *writer)
{
	if (writer->error != 0)
		gt_complain(NAME, "cannot write '%s': %s", to, strerror(writer->error));
	else if (error == GT_ENOMEM)
		gt_complain(NAME, "out of memory");
	else
		gt_complain(NAME, "'%s': %s", path, message->text);
}

static int convert(int fd, const char *path, const char *to, bool quiet)
{
	struct gt_message message = { "" };
	struct gt_csv_writer writer = { .fd = -1 };
	struct gt_text_trace *trace = NULL;
	struct gt_output output;
	int result = GT_EXIT_FAILED;
	int error;

	if (gt_output_open(&output, to, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	error = gt_csv_writer_init(&writer, output.fd);
	if (error == 0)
		error = gt_text_trace_create(&trace, write_row, &writer);
	if (error == 0)
		error = gt_text_trace_read(trace, fd, &message);
	if (error != 0) {
		complain_of(error, path, to, &message, &writer);
		goto abandon;
	}
	result = judge(gt_text_trace_report(trace), path);
	if (result != GT_EXIT_DONE)
		goto abandon;
	if (gt_csv_writer_flush(&writer, &message) != 0 ||
	    gt_output_commit(&output, &message) != 0) {
		complain_of(GT_EIO, to, to, &message, &writer);
		result = GT_EXIT_FAILED;
		goto abandon;
	}
	if (!quiet)
		tell_report(gt_text_trace_report(trace), strcmp(to, "-") == 0 ? "stdout" : to);
	goto destroy;
abandon:
	gt_output_abandon(&output);
destroy:
	gt_text_trace_destroy(trace);
	gt_csv_writer_fini(&writer);
	return result;
}

static int no_switches_in_text(const char *path)
{
	gt_complain(NAME,
		    "'%s' is a text, which has durations only as they are: of a recording, "
		    "--no-sleep-time or 'graftrace show -O nosleep-time' takes out the time off "
		    "the CPU",
		    path);
	return GT_EXIT_FAILED;
}

int gt_cmd_parse_trace(int argc, char **argv)
{
	const char *to = "trace.csv";
	bool quiet = false, no_sleep = false;
	int fd = STDIN_FILENO;
	int option;
	int result;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "o:qh", options)) != -1) {
		switch (option) {
		case 'o':
			to = optarg;
			break;
		case 'q':
			quiet = true;
			break;
		case OPTION_NO_SLEEP:
			no_sleep = true;
			break;
		case 'h':
			return gt_print_help(help);
		default:
			return gt_usage_error(NAME);
		}
	}
	if (gt_one_operand(NAME, argc - optind, "which trace? Name its file, or '-' for stdin",
			   "one trace at a time"))
		return GT_EXIT_USAGE;
	if (strcmp(argv[optind], "-") != 0) {
		fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			gt_complain(NAME, "cannot open '%s': %s", argv[optind], strerror(errno));
			return GT_EXIT_FAILED;
		}
	}
	if (gt_is_recording(fd))
		result = gt_parse_recording(fd, argv[optind], to, no_sleep, quiet);
	else if (no_sleep)
		result = no_switches_in_text(argv[optind]);
	else
		result = convert(fd, argv[optind], to, quiet);
	if (fd != STDIN_FILENO)
		close(fd);
	return result;
}
