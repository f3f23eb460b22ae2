/* SPDX-License-Identifier: MIT */
/*
 * graftrace export: writes a recording in the format of another tool. The output is either complete
 * or not there: formats that are a folder are made beside their place and moved there when they are
 * complete.
 */
#define _GNU_SOURCE
#include "cli/command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/looking.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/trace_dat.h"
#include "cli/values.h"
#include "cli/window.h"
#include "export/export.h"

#define NAME	  "export"
#define GLOBS_MAX 256

static const char help_head[] =
	"Usage: graftrace export --to FORMAT [OPTION...] [FILE]\n\n"
	"Writes a recording (default: graftrace.data) in the format of another tool.\n\n"
	"      --to FORMAT            one of these:\n";
static const char help_tail[] =
	"  -o, --output OUT           where to (default: as the format says; - is stdout)\n"
	"  -t, --time FROM-TO         only what happened between (as graftrace show -t)\n"
	"      --tid N                only this thread\n"
	"  -g, --graph GLOB           only these functions and what they call (repeatable)\n"
	"  -D, --max-graph-depth N    not deeper than N calls\n"
	"      --create-table         only print the statement that makes the table for it\n"
	"  -f, --force                replace a folder that is there\n"
	"  -q, --quiet                no summary\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be written, or not all was readable; 2 wrong command\n"
	"line.\n";

enum { OPTION_TO = 256, OPTION_TID, OPTION_CREATE_TABLE };

static const struct option options[] = {
	{ "to", required_argument, NULL, OPTION_TO },
	{ "output", required_argument, NULL, 'o' },
	{ "time", required_argument, NULL, 't' },
	{ "tid", required_argument, NULL, OPTION_TID },
	{ "graph", required_argument, NULL, 'g' },
	{ "max-graph-depth", required_argument, NULL, 'D' },
	{ "create-table", no_argument, NULL, OPTION_CREATE_TABLE },
	{ "force", no_argument, NULL, 'f' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	const char *path;
	const char *output;
	const struct gt_export_format *format;
	struct gt_window window;
	const char *globs[GLOBS_MAX + 1];
	size_t globs_count;
	struct gt_filter filter;
	bool force, quiet, create_table;
};

/* trace.dat is made of control files; the other formats are made of calls. */
static const struct gt_export_format trace_dat = {
	.name = "trace.dat",
	.help = "trace-cmd's file, version 6: trace-cmd report, KernelShark",
	.file = "trace.dat",
	.needs_file = true,
};

/* Returns the format at an index, NULL after the last one. */
static const struct gt_export_format *format_at(size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (gt_export_formats[i] == NULL)
			return NULL;
	return gt_export_formats[index] != NULL ? gt_export_formats[index] : &trace_dat;
}

static int print_help(void)
{
	char text[8192];
	size_t used = (size_t)snprintf(text, sizeof(text), "%s", help_head);

	for (size_t i = 0; format_at(i) != NULL; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "          %-12s %s\n",
					 format_at(i)->name, format_at(i)->help);
	snprintf(text + used, sizeof(text) - used, "%s", help_tail);
	return gt_print_help(text);
}

/* name: "" if none was said. */
static void complain_format(const char *name)
{
	struct gt_proposal nearest = { .word = NULL };
	char list[512] = "";

	for (size_t i = 0; format_at(i) != NULL; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s", used ? ", " : "",
			 format_at(i)->name);
		gt_propose(&nearest, name, format_at(i)->name);
	}
	if (name[0] == '\0')
		gt_complain(NAME, "which format? Say --to FORMAT; there are %s", list);
	else if (nearest.word != NULL)
		gt_complain(NAME, "there is no format '%s'; did you mean '%s'?", name,
			    nearest.word);
	else
		gt_complain(NAME, "there is no format '%s'; there are %s", name, list);
}

/* Returns 0, or an exit code + 1 if the command is to end now. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	struct gt_message message = { "" };
	const char *format = NULL;
	uint64_t number;
	int option;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "o:t:g:D:fqh", options)) != -1) {
		int error = 0;
		switch (option) {
		case OPTION_TO:
			format = optarg;
			break;
		case 'o':
			arguments->output = optarg;
			break;
		case 't':
			error = gt_window_parse(optarg, &arguments->window, &message);
			break;
		case OPTION_TID:
			error = gt_value_number(optarg, 1, UINT32_MAX, &number, &message);
			arguments->filter.tid = (uint32_t)number;
			break;
		case 'g':
			if (arguments->globs_count == GLOBS_MAX) {
				gt_complain(NAME, "more than %d -g", GLOBS_MAX);
				return 1 + gt_usage_error(NAME);
			}
			arguments->globs[arguments->globs_count++] = optarg;
			arguments->filter.graph = arguments->globs;
			break;
		case 'D':
			error = gt_value_number(optarg, 0, UINT32_MAX, &number, &message);
			arguments->filter.max_depth = (uint32_t)number;
			break;
		case OPTION_CREATE_TABLE:
			arguments->create_table = true;
			break;
		case 'f':
			arguments->force = true;
			break;
		case 'q':
			arguments->quiet = true;
			break;
		case 'h':
			return 1 + print_help();
		default:
			return 1 + gt_usage_error(NAME);
		}
		if (error != 0) {
			gt_complain(NAME, "%s", message.text);
			return 1 + gt_usage_error(NAME);
		}
	}
	if (gt_one_operand(NAME, argc - optind, NULL, "one recording at a time"))
		return 1 + GT_EXIT_USAGE;
	if (optind < argc)
		arguments->path = argv[optind];
	if (format == NULL) {
		complain_format("");
		return 1 + gt_usage_error(NAME);
	}
	arguments->format =
		strcmp(format, trace_dat.name) == 0 ? &trace_dat : gt_export_find(format);
	if (arguments->format == NULL) {
		complain_format(format);
		return 1 + gt_usage_error(NAME);
	}
	if (arguments->create_table && arguments->format->create_table == NULL) {
		gt_complain(NAME,
			    "%s goes into no table: --create-table is of clickhouse and "
			    "events-tsv",
			    format);
		return 1 + GT_EXIT_USAGE;
	}
	if (arguments->format == &trace_dat &&
	    (arguments->filter.tid || arguments->filter.graph != NULL ||
	     arguments->filter.max_depth || arguments->window.from.set ||
	     arguments->window.to.set)) {
		gt_complain(NAME, "trace.dat takes the whole recording: trace-cmd report and "
				  "KernelShark choose");
		return 1 + gt_usage_error(NAME);
	}
	if (arguments->output == NULL)
		arguments->output = arguments->format->file;
	if (arguments->format->is_directory && strcmp(arguments->output, "-") == 0) {
		gt_complain(NAME, "%s is a folder and cannot go to stdout: say -o FOLDER", format);
		return 1 + GT_EXIT_USAGE;
	}
	if (arguments->format->needs_file && strcmp(arguments->output, "-") == 0) {
		gt_complain(NAME, "%s cannot go to stdout: say -o FILE", format);
		return 1 + GT_EXIT_USAGE;
	}
	return 0;
}

static void tell(uint64_t count, const char *one, const char *many)
{
	if (count > 0)
		fprintf(stderr, "  %" PRIu64 " %s\n", count, count == 1 ? one : many);
}

static uint64_t calls_of(const struct gt_stack_report *report)
{
	return report->calls + report->without_return + report->entries_only;
}

/* Has a row for each event, and none for calls. */
static bool is_of_events(const struct gt_export_format *format)
{
	return strncmp(format->name, "events-", strlen("events-")) == 0;
}

static void tell_written(const struct arguments *arguments, const struct gt_stack_report *report)
{
	const uint64_t calls = calls_of(report);

	fprintf(stderr, "graftrace export: ");
	if (is_of_events(arguments->format))
		fprintf(stderr, "%" PRIu64 " event%s", report->marks,
			report->marks == 1 ? "" : "s");
	else
		fprintf(stderr, "%" PRIu64 " call%s of %" PRIu32 " stack%s", calls,
			calls == 1 ? "" : "s", report->lanes, report->lanes == 1 ? "" : "s");
	fprintf(stderr, " to %s\n",
		strcmp(arguments->output, "-") == 0 ? "stdout" : arguments->output);
}

static void tell_nothing_left(const struct arguments *arguments, struct gt_recording *recording,
			      const struct gt_stack_report *report)
{
	char proposal[GT_LOOK_PROPOSAL_BYTES];

	if (is_of_events(arguments->format) ? report->marks : calls_of(report))
		return;
	if (report->marks)
		gt_complain(NAME,
			    "'%s' has events alone, no calls: --to events-csv, events-json and "
			    "events-tsv have a row for each",
			    arguments->path);
	else
		gt_complain(NAME, "'%s': no %s is left to be exported%s", arguments->path,
			    is_of_events(arguments->format) ? "event" : "call",
			    gt_look_propose(recording, arguments->globs[0], proposal));
}

static void tell_report(const struct arguments *arguments, const struct gt_stack_report *report)
{
	tell_written(arguments, report);
	tell(report->without_return, "call without a return ends when that was seen",
	     "calls without a return end when that was seen");
	tell(report->without_start, "return of a call whose start is not known is left out",
	     "returns of calls whose starts are not known are left out");
	tell(report->entries_only, "call has only its entry", "calls have only their entries");
	/* Of the whole recording it is told, with the cause, of the recording itself. */
	if (arguments->window.from.set || arguments->window.to.set || arguments->filter.tid)
		tell(report->lost, "record was lost", "records were lost");
	tell(report->gaps, "place where a part of a thread's trace is missing",
	     "places where parts of threads' traces are missing");
}

static int export_to(struct arguments *arguments, struct gt_recording *recording,
		     struct gt_output *output, struct gt_stack_report *report)
{
	struct gt_message message = { "" };
	struct gt_export export = {
		.format = arguments->format,
		.target = gt_recording_target(recording),
		.filter = &arguments->filter,
		.function_end = gt_recording_function_end(recording),
		.fd = output->fd,
		.is_new = output->temporary[0] && !output->is_directory,
		.message = &message,
	};
	int error;

	gt_look_describe(&export.about, recording);
	gt_progress_reading(recording, gt_export_reads_once(&export) ? 1 : 2);
	error = gt_export_run(&export, report);
	gt_progress_end();
	if (error == 0)
		return GT_EXIT_DONE;
	if (error == GT_ENOMEM)
		gt_complain(NAME, "out of memory");
	else
		gt_complain(NAME, "cannot write '%s': %s", arguments->output, message.text);
	return GT_EXIT_FAILED;
}

static int export_trace_dat(const struct arguments *arguments, struct gt_recording *recording,
			    const struct gt_output *output)
{
	struct gt_message message = { "" };

	if (gt_trace_dat_write(recording, output->fd, &message) == 0)
		return GT_EXIT_DONE;
	gt_complain(NAME, "cannot write '%s': %s", arguments->output, message.text);
	return GT_EXIT_FAILED;
}

static int run(struct arguments *arguments)
{
	struct gt_recording *recording = gt_look_open(NAME, arguments->path);
	struct gt_message message = { "" };
	struct gt_stack_report report;
	struct gt_output output;
	int result = GT_EXIT_FAILED, opened;

	if (recording == NULL)
		return GT_EXIT_FAILED;
	gt_window_set(&arguments->window, recording, &arguments->filter);
	signal(SIGPIPE, SIG_IGN);
	opened = arguments->format->is_directory
			 ? gt_output_open_directory(&output, arguments->output, arguments->force,
						    &message)
			 : gt_output_open(&output, arguments->output, &message);
	if (opened != 0) {
		gt_complain(NAME, "%s", message.text);
		goto close;
	}
	result = arguments->format == &trace_dat
			 ? export_trace_dat(arguments, recording, &output)
			 : export_to(arguments, recording, &output, &report);
	if (result == GT_EXIT_DONE && arguments->format != &trace_dat)
		tell_nothing_left(arguments, recording, &report);
	if (result == GT_EXIT_DONE && gt_output_commit(&output, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		result = GT_EXIT_FAILED;
	} else if (result == GT_EXIT_DONE && !arguments->quiet) {
		if (arguments->format == &trace_dat)
			fprintf(stderr,
				"graftrace export: '%s' to %s, for trace-cmd report and "
				"KernelShark\n",
				arguments->path, arguments->output);
		else
			tell_report(arguments, &report);
	} else if (result != GT_EXIT_DONE) {
		gt_output_abandon(&output);
	}
	if (gt_look_tell(NAME, arguments->path, recording) != GT_EXIT_DONE)
		result = GT_EXIT_FAILED;
close:
	gt_recording_close(recording);
	return result;
}

int gt_cmd_export(int argc, char **argv)
{
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	int result;

	if (arguments == NULL) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	arguments->path = GT_DEFAULT_RECORDING;
	result = parse(argc, argv, arguments);
	if (result != 0)
		result--;
	else if (arguments->create_table)
		result = printf("%s;\n", arguments->format->create_table) > 0 && fflush(stdout) == 0
				 ? GT_EXIT_DONE
				 : GT_EXIT_FAILED;
	else
		result = run(arguments);
	free(arguments);
	return result;
}
