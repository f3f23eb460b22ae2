/* SPDX-License-Identifier: MIT */
/*
 * graftrace report: a recording as a table of functions, threads or objects.
 */
#define _GNU_SOURCE
#include "cli/command.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/looking.h"
#include "cli/stop_when.h"
#include "cli/values.h"
#include "core/trace/message.h"
#include "export/open_calls.h"
#include "export/report.h"

#define NAME "report"

static const char help[] =
	"Usage: graftrace report [OPTION...] [FILE]\n\n"
	"Prints a table of a recording (default: graftrace.data): calls and times of each "
	"function.\n"
	"Total is from entry to return, recursion counted once; self is without direct callees.\n"
	"On CPU and Off CPU are the two parts of self, where context switches were recorded.\n\n"
	"  -i, --input FILE           the same as FILE\n"
	"  -s, --sort KEY             total (default), self, on-cpu, off-cpu, calls, avg, min, "
	"max,\n"
	"                             stddev, name\n"
	"      --limit N              only the first N rows\n"
	"      --by WHAT              function (default), thread, object\n"
	"      --callers GLOB         instead: who has called these functions; the figures are\n"
	"                             those of their calls\n"
	"      --callees GLOB         instead: whom these functions have called themselves\n"
	"      --crash                instead: the calls that were open at the end, thread by\n"
	"                             thread, innermost last\n"
	"      --format FORMAT        text (default), csv, json; both with times in nanoseconds\n"
	"      --no-pager             write to the terminal at once\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be made, or not of all that was recorded; 2 wrong "
	"command\n"
	"line.\n";

enum {
	OPTION_LIMIT = 256,
	OPTION_BY,
	OPTION_FORMAT,
	OPTION_NO_PAGER,
	OPTION_CRASH,
	OPTION_CALLERS,
	OPTION_CALLEES
};

static const struct option options[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "sort", required_argument, NULL, 's' },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "by", required_argument, NULL, OPTION_BY },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "no-pager", no_argument, NULL, OPTION_NO_PAGER },
	{ "callers", required_argument, NULL, OPTION_CALLERS },
	{ "callees", required_argument, NULL, OPTION_CALLEES },
	{ "crash", no_argument, NULL, OPTION_CRASH },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	const char *path;
	enum gt_report_key sort;
	enum gt_report_by by;
	const char *of; /* --callers, --callees */
	enum gt_report_format format;
	uint64_t limit;
	bool pager;
	bool crash;
};

/* The index of `text` among `words`, or GT_EINVAL. */
static int choose(const char *what, const char *text, const char *const *words, int count,
		  struct gt_message *message)
{
	for (int i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	gt_message_set(message, "%s '%s' is none of %s, %s, %s", what, text, words[0], words[1],
		       words[2]);
	return GT_EINVAL;
}

/* 0, or an exit code + 1 when there is nothing more to do. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	static const char *const rows[] = { "function", "thread", "object" };
	static const char *const formats[] = { "text", "csv", "json" };
	struct gt_message message = { "" };
	const char *input = NULL;
	int option;

	optind = 1;
	while ((option = getopt_long(argc, argv, "i:s:h", options, NULL)) != -1) {
		int chosen = GT_OK;
		switch (option) {
		case 'i':
			input = optarg;
			break;
		case 's':
			chosen = gt_report_parse_key(optarg, &arguments->sort, &message);
			break;
		case OPTION_LIMIT:
			chosen =
				gt_value_number(optarg, 1, UINT32_MAX, &arguments->limit, &message);
			break;
		case OPTION_BY:
			chosen = choose("--by", optarg, rows, 3, &message);
			arguments->by = (enum gt_report_by)chosen;
			break;
		case OPTION_FORMAT:
			chosen = choose("--format", optarg, formats, 3, &message);
			arguments->format = (enum gt_report_format)chosen;
			break;
		case OPTION_NO_PAGER:
			arguments->pager = false;
			break;
		case OPTION_CALLERS:
		case OPTION_CALLEES:
			arguments->by =
				option == OPTION_CALLERS ? GT_REPORT_CALLER : GT_REPORT_CALLEE;
			arguments->of = optarg;
			break;
		case OPTION_CRASH:
			arguments->crash = true;
			break;
		case 'h':
			return 1 + gt_print_help(help);
		default:
			return 1 + gt_usage_error(NAME);
		}
		if (chosen < 0) {
			gt_complain(NAME, "%s", message.text);
			return 1 + gt_usage_error(NAME);
		}
	}
	if (gt_one_operand(NAME, argc - optind + (input != NULL), NULL, "one recording at a time"))
		return 1 + GT_EXIT_USAGE;
	if (input || optind < argc)
		arguments->path = input ? input : argv[optind];
	return 0;
}

static int print_text(const struct arguments *arguments, char *text, size_t bytes)
{
	struct gt_pager pager;

	signal(SIGPIPE, SIG_IGN);
	gt_pager_start(&pager, arguments->pager);
	int error = gt_look_write(pager.fd, text, bytes);
	int reason = errno;
	gt_pager_stop(&pager);
	free(text);
	if (error < 0)
		gt_complain(NAME, "cannot write: %s", strerror(reason));
	return error < 0 ? GT_EXIT_FAILED : GT_EXIT_DONE;
}

static int print(const struct arguments *arguments, const struct gt_report *report)
{
	char *text;
	size_t bytes;

	if (gt_report_format(report, arguments->format, arguments->limit, gt_look_width(), &text,
			     &bytes) != GT_OK) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	return print_text(arguments, text, bytes);
}

/* The calls that were open at the end. */
static int print_crash(const struct arguments *arguments, struct gt_recording *recording)
{
	const struct gt_recording_info *info = gt_recording_info(recording);
	struct gt_message message = { "" };
	struct gt_open_calls *open;
	char *text, *whole, name[64];
	char died[80] = "";
	size_t bytes;
	int error = gt_open_calls_make(gt_recording_target(recording), 0, &open, &message);

	if (info->ended && WIFSIGNALED(info->exit_status))
		snprintf(died, sizeof(died), " died of %s",
			 gt_stop_signal_name(WTERMSIG(info->exit_status), name, sizeof(name)));
	if (error == 0)
		error = gt_open_calls_format(open, (uint32_t)arguments->limit, 0, &text, &bytes);
	gt_open_calls_destroy(open);
	if (error == 0) {
		bytes = (size_t)asprintf(&whole, "%s%s; open at the end were, innermost last:\n%s",
					 info->program, died, text);
		free(text);
		error = (ssize_t)bytes < 0 ? GT_ENOMEM : 0;
	}
	if (error != 0) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	error = print_text(arguments, whole, bytes);
	if (gt_look_tell(NAME, arguments->path, recording) != GT_EXIT_DONE)
		error = GT_EXIT_FAILED;
	return error;
}

int gt_cmd_report(int argc, char **argv)
{
	struct arguments arguments = { .path = GT_DEFAULT_RECORDING, .pager = true };
	struct gt_message message = { "" };
	struct gt_report *report;
	int result = parse(argc, argv, &arguments);

	if (result != 0)
		return result - 1;
	struct gt_recording *recording = gt_look_open(NAME, arguments.path);
	if (!recording)
		return GT_EXIT_FAILED;
	if (arguments.of && gt_recording_target(recording)->tracer == GRAFTRACE_TRACER_FUNCTION) {
		gt_complain(NAME,
			    "'%s': the tracer function does not record who called whom; "
			    "'graftrace show' has the parent of each call",
			    arguments.path);
		gt_recording_close(recording);
		return GT_EXIT_FAILED;
	}
	if (arguments.crash) {
		result = print_crash(&arguments, recording);
		gt_recording_close(recording);
		return result;
	}
	if (gt_report_make(gt_recording_target(recording), arguments.by, arguments.of, &report,
			   &message) != GT_OK) {
		gt_complain(NAME, "'%s': %s", arguments.path, message.text);
		gt_recording_close(recording);
		return GT_EXIT_FAILED;
	}
	if ((arguments.sort == GT_REPORT_ON_CPU || arguments.sort == GT_REPORT_OFF_CPU) &&
	    !report->has_off_cpu) {
		gt_complain(NAME,
			    "'%s' does not have when threads were off the CPU: it cannot be sorted "
			    "by that",
			    arguments.path);
		gt_report_destroy(report);
		gt_recording_close(recording);
		return GT_EXIT_FAILED;
	}
	gt_report_sort(report, arguments.sort);
	if (arguments.of && report->row_count == 0)
		gt_complain(NAME, "'%s': %s", arguments.path,
			    arguments.by == GT_REPORT_CALLER
				    ? "no function that matches was called"
				    : "no function that matches has called a recorded one");
	result = print(&arguments, report);
	if (report->damaged)
		gt_complain(NAME, "'%s': %llu records make no sense and are left out",
			    arguments.path, (unsigned long long)report->damaged);
	if (gt_look_tell(NAME, arguments.path, recording) != GT_EXIT_DONE)
		result = GT_EXIT_FAILED;
	if (report->known_by_return)
		gt_complain(NAME, "'%s': %llu of these are in the table all the same: %s",
			    arguments.path, (unsigned long long)report->known_by_return,
			    "what came after their beginning was kept");
	gt_report_destroy(report);
	gt_recording_close(recording);
	return result;
}
