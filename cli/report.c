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
#include <unistd.h>

#include "cli/looking.h"
#include "cli/stop_when.h"
#include "cli/progress.h"
#include "cli/values.h"
#include "cli/window.h"
#include "core/trace/message.h"
#include "export/events.h"
#include "export/open_calls.h"
#include "export/report.h"
#include "export/rests.h"

#define NAME	  "report"
#define GLOBS_MAX 256

static const char help[] =
	"Usage: graftrace report [OPTION...] [FILE]\n\n"
	"Prints a table of a recording (default: graftrace.data): calls and times of each\n"
	"function. Total is from entry to return, recursion counted once; self is without\n"
	"direct callees, and Self % the share of all self times. On CPU and Off CPU are the\n"
	"two parts of self, where context switches were recorded. Of 100 calls 50, 90 or 99\n"
	"took no longer than p50, p90, p99.\n\n"
	"  -i, --input FILE           the same as FILE\n"
	"  -s, --sort KEY             total (default), self, on-cpu, off-cpu, calls, avg,\n"
	"                             min, max, p50, p90, p99, stddev, name\n"
	"      --limit N              only the first N rows\n"
	"  -f, --fields KEY[,KEY...]  only these times, of the keys of --sort; without p50, p90,\n"
	"                             p99 the spread of the durations is not kept either\n"
	"      --by WHAT              function (default), thread, process, object, event: how\n"
	"                             often each was, and its fields' least, mean and greatest\n"
	"      --callers GLOB         instead: who has called these functions; the figures\n"
	"                             are those of their calls\n"
	"      --callees GLOB         instead: whom these functions have called themselves\n"
	"      --hist GLOB            instead: how the durations of these functions' calls\n"
	"                             are spread\n"
	"      --crash                instead: the calls that were open at the end, thread by\n"
	"                             thread, innermost last\n"
	"  -t, --time FROM-TO         only what happened between (as graftrace show -t)\n"
	"      --tid N                only this thread\n"
	"      --pid N                only this process\n"
	"      --user                 the program's calls alone, without the kernel's (record\n"
	"                             --kernel)\n"
	"      --kernel               the kernel's functions and events alone\n"
	"      --rests                instead: why threads were off the CPU: how long they\n"
	"                             slept until whom, and waited for a CPU\n"
	"  -g, --graph GLOB           only these functions and what they call (repeatable)\n"
	"      --min TIME             only calls that took at least so long (10us, 1ms)\n"
	"      --format FORMAT        text (default), csv, json; both with times in\n"
	"                             nanoseconds\n"
	"      --names WHICH          short (default on terminals: C++ and Rust without template\n"
	"                             arguments), full\n"
	"      --lines                behind a function's name file and line of its source\n"
	"      --source               and that line itself, if the file is there\n"
	"      --html FILE            instead: a page to look at in a browser, with time line\n"
	"                             and flame graph (graftrace export --to html)\n"
	"      --color WHEN           auto (default), always, never\n"
	"      --no-pager             write to the terminal at once\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be made, or not of all that was recorded; 2 wrong\n"
	"command line.\n";

enum {
	OPTION_LIMIT = 256,
	OPTION_BY,
	OPTION_FORMAT,
	OPTION_NO_PAGER,
	OPTION_CRASH,
	OPTION_RESTS,
	OPTION_CALLERS,
	OPTION_CALLEES,
	OPTION_TID,
	OPTION_PID,
	OPTION_MIN,
	OPTION_HIST,
	OPTION_HTML,
	OPTION_COLOR,
	OPTION_NAMES,
	OPTION_USER,
	OPTION_KERNEL,
	OPTION_LINES,
	OPTION_SOURCE
};

static const struct option options[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "sort", required_argument, NULL, 's' },
	{ "fields", required_argument, NULL, 'f' },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "by", required_argument, NULL, OPTION_BY },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "no-pager", no_argument, NULL, OPTION_NO_PAGER },
	{ "callers", required_argument, NULL, OPTION_CALLERS },
	{ "callees", required_argument, NULL, OPTION_CALLEES },
	{ "crash", no_argument, NULL, OPTION_CRASH },
	{ "rests", no_argument, NULL, OPTION_RESTS },
	{ "time", required_argument, NULL, 't' },
	{ "tid", required_argument, NULL, OPTION_TID },
	{ "pid", required_argument, NULL, OPTION_PID },
	{ "graph", required_argument, NULL, 'g' },
	{ "min", required_argument, NULL, OPTION_MIN },
	{ "hist", required_argument, NULL, OPTION_HIST },
	{ "user", no_argument, NULL, OPTION_USER },
	{ "kernel", no_argument, NULL, OPTION_KERNEL },
	{ "names", required_argument, NULL, OPTION_NAMES },
	{ "lines", no_argument, NULL, OPTION_LINES },
	{ "source", no_argument, NULL, OPTION_SOURCE },
	{ "html", required_argument, NULL, OPTION_HTML },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	unsigned parts;	  /* enum gt_look_parts */
	const char *html; /* file for the page; NULL: print a table */
	const char *path;
	enum gt_report_key sort;
	struct gt_report_options wanted;
	struct gt_report_style style;
	struct gt_window window;
	const char *globs[GLOBS_MAX + 1];
	size_t globs_count;
	const char *spread; /* --hist */
	const char *color;
	const char *names;
	bool lines;
	struct gt_sources sources;
	bool pager;
	bool crash;
	bool rests;
	bool events; /* --by event */
};

/* Returns the index of `text` among `words`, or GT_EINVAL. */
static int choose(const char *what, const char *text, const char *const *words, int count,
		  struct gt_message *message)
{
	char all[128] = "";
	size_t used = 0;

	for (int i = 0; i < count; i++) {
		if (strcmp(text, words[i]) == 0)
			return i;
		used += gt_format(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", words[i]);
	}
	return gt_fail(message, GT_EINVAL, "%s '%s' is none of %s", what, text, all);
}

/* Returns 0, or an exit code + 1 if the command is to end now. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	static const char *const rows[] = { "function", "thread", "object", "process", "event" };
	static const enum gt_report_by row_kinds[] = { GT_REPORT_FUNCTION, GT_REPORT_THREAD,
						       GT_REPORT_OBJECT, GT_REPORT_PROCESS };
	static const char *const formats[] = { "text", "csv", "json" };
	struct gt_message message = { "" };
	const char *input = NULL;
	uint64_t number = 0;
	int option;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "i:s:f:t:g:h", options)) != -1) {
		int chosen = 0;
		switch (option) {
		case 'i':
			input = optarg;
			break;
		case 's':
			chosen = gt_report_parse_key(optarg, &arguments->sort, &message);
			break;
		case 'f':
			chosen = gt_report_parse_fields(optarg, &arguments->style.fields, &message);
			break;
		case OPTION_LIMIT:
			chosen = gt_value_number(optarg, 1, UINT32_MAX, &number, &message);
			arguments->style.limit = (size_t)number;
			break;
		case OPTION_BY:
			chosen = choose("--by", optarg, rows, 5, &message);
			arguments->events = chosen == 4;
			arguments->wanted.by =
				chosen < 0 || chosen == 4 ? GT_REPORT_FUNCTION : row_kinds[chosen];
			break;
		case OPTION_FORMAT:
			chosen = choose("--format", optarg, formats, 3, &message);
			arguments->style.format = (enum gt_report_format)chosen;
			break;
		case 't':
			chosen = gt_window_parse(optarg, &arguments->window, &message);
			break;
		case OPTION_TID:
			chosen = gt_value_number(optarg, 1, UINT32_MAX, &number, &message);
			arguments->wanted.tid = (uint32_t)number;
			break;
		case OPTION_PID:
			chosen = gt_value_number(optarg, 1, UINT32_MAX, &number, &message);
			arguments->wanted.pid = (uint32_t)number;
			break;
		case 'g':
			if (arguments->globs_count == GLOBS_MAX) {
				gt_message_set(&message, "more than %d -g", GLOBS_MAX);
				chosen = GT_EINVAL;
				break;
			}
			arguments->globs[arguments->globs_count++] = optarg;
			arguments->wanted.graph = arguments->globs;
			break;
		case OPTION_MIN:
			chosen = gt_value_time(optarg, 1000000000, &arguments->wanted.least_ns,
					       &message);
			break;
		case OPTION_HIST:
			arguments->spread = optarg;
			break;
		case OPTION_USER:
			arguments->parts |= GT_LOOK_USER;
			break;
		case OPTION_KERNEL:
			arguments->parts |= GT_LOOK_KERNEL;
			break;
		case OPTION_NAMES:
			arguments->names = optarg;
			break;
		case OPTION_SOURCE:
			arguments->sources.with_text = true;
			/* fall through */
		case OPTION_LINES:
			arguments->lines = true;
			break;
		case OPTION_HTML:
			arguments->html = optarg;
			break;
		case OPTION_COLOR:
			arguments->color = optarg;
			break;
		case OPTION_NO_PAGER:
			arguments->pager = false;
			break;
		case OPTION_CALLERS:
		case OPTION_CALLEES:
			arguments->wanted.by =
				option == OPTION_CALLERS ? GT_REPORT_CALLER : GT_REPORT_CALLEE;
			arguments->wanted.of = optarg;
			break;
		case OPTION_CRASH:
			arguments->crash = true;
			break;
		case OPTION_RESTS:
			arguments->rests = true;
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
	if (input != NULL || optind < argc)
		arguments->path = input != NULL ? input : argv[optind];
	if (arguments->spread != NULL && arguments->style.format == GT_REPORT_CSV) {
		gt_complain(NAME, "--hist is text or json");
		return 1 + gt_usage_error(NAME);
	}
	if (arguments->html != NULL && arguments->parts) {
		gt_complain(NAME, "--html is of the whole recording");
		return 1 + gt_usage_error(NAME);
	}
	if (gt_look_color(arguments->color, STDOUT_FILENO, &arguments->style.color, &message) !=
		    0 ||
	    gt_look_names(arguments->names, STDOUT_FILENO, &arguments->style.brief, &message) !=
		    0) {
		gt_complain(NAME, "%s", message.text);
		return 1 + gt_usage_error(NAME);
	}
	return 0;
}

static int print_text(const struct arguments *arguments, struct gt_recording *recording, char *text,
		      size_t bytes)
{
	struct gt_pager pager;

	signal(SIGPIPE, SIG_IGN);
	gt_pager_start(&pager, arguments->pager);
	if (arguments->style.format == GT_REPORT_TEXT)
		gt_look_begin(recording, arguments->path, pager.fd);
	int error = gt_look_write(pager.fd, text, bytes);
	int reason = errno;
	gt_pager_stop(&pager);
	free(text);
	if (error < 0)
		gt_complain(NAME, "cannot write: %s", strerror(reason));
	return error < 0 ? GT_EXIT_FAILED : GT_EXIT_DONE;
}

static struct gt_events_options events_of(const struct arguments *arguments)
{
	return (struct gt_events_options){
		.from_ns = arguments->wanted.from_ns,
		.to_ns = arguments->wanted.to_ns,
		.pid = arguments->wanted.pid,
		.tid = arguments->wanted.tid,
		.limit = arguments->style.limit,
		.format = arguments->style.format,
	};
}

/* Adds the events after the functions, in the table as text. */
static int add_events(const struct arguments *arguments, struct gt_recording *recording,
		      char **text, size_t *bytes)
{
	struct gt_events_options options = events_of(arguments);
	size_t event_bytes;
	char *events, *whole;

	options.without_rests = true; /* On CPU and Off CPU are columns of the functions */
	if (gt_events_count(gt_recording_target(recording), &options, &events, &event_bytes) != 0)
		return GT_ENOMEM;
	whole = realloc(*text, *bytes + event_bytes + 1);
	if (whole != NULL) {
		memcpy(whole + *bytes, events, event_bytes + 1);
		*text = whole;
		*bytes += event_bytes;
	}
	free(events);
	return whole != NULL ? 0 : GT_ENOMEM;
}

static int print(const struct arguments *arguments, struct gt_recording *recording,
		 const struct gt_report *report)
{
	char *text;
	size_t bytes;

	if ((arguments->spread != NULL ? gt_report_format_spread : gt_report_format)(
		    report, &arguments->style, &text, &bytes) != 0 ||
	    (arguments->style.format == GT_REPORT_TEXT && arguments->spread == NULL &&
	     gt_recording_info(recording)->events != 0 &&
	     add_events(arguments, recording, &text, &bytes) != 0)) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	return print_text(arguments, recording, text, bytes);
}

/* Prints the events alone. */
static int print_events(const struct arguments *arguments, struct gt_recording *recording)
{
	const struct gt_events_options options = events_of(arguments);
	char *text;
	size_t bytes;

	if (gt_events_count(gt_recording_target(recording), &options, &text, &bytes) != 0) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	if (bytes == 0 || gt_recording_info(recording)->events == 0)
		gt_complain(NAME, "no event was recorded");
	int result = print_text(arguments, recording, text, bytes);
	int told = gt_look_tell(NAME, arguments->path, recording);
	return result == GT_EXIT_DONE ? told : result;
}

/* Prints why threads were off the CPU. */
static int print_rests(const struct arguments *arguments, struct gt_recording *recording)
{
	char *text = NULL;
	size_t bytes = 0;

	if (arguments->style.format == GT_REPORT_JSON) {
		gt_complain(NAME, "--rests is a text or csv");
		return GT_EXIT_USAGE;
	}
	if (gt_rests_report(gt_recording_target(recording),
			    arguments->style.format == GT_REPORT_CSV, &text, &bytes) != 0) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	if (bytes == 0) {
		free(text);
		gt_complain(NAME,
			    "'%s' does not say why threads were off the CPU: 'graftrace record "
			    "--kernel' and trace-cmd's sched_switch with sched_waking do",
			    arguments->path);
		return GT_EXIT_FAILED;
	}
	int result = print_text(arguments, recording, text, bytes);
	int told = gt_look_tell(NAME, arguments->path, recording);
	return result == GT_EXIT_DONE ? told : result;
}

/* Prints the calls that were open at the end. */
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
		error = gt_open_calls_format(open, (uint32_t)arguments->style.limit, 0, &text,
					     &bytes);
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
	error = print_text(arguments, recording, whole, bytes);
	if (gt_look_tell(NAME, arguments->path, recording) != GT_EXIT_DONE)
		error = GT_EXIT_FAILED;
	return error;
}

/* Are percentiles asked for? */
static bool wants_spread(const struct arguments *arguments)
{
	const unsigned percentiles =
		1u << GT_REPORT_P50 | 1u << GT_REPORT_P90 | 1u << GT_REPORT_P99;

	return !arguments->style.fields || arguments->spread != NULL ||
	       ((arguments->style.fields | 1u << arguments->sort) & percentiles) != 0;
}

/* Sets --time and --graph in the form that the table needs. */
static void set_wanted(struct arguments *arguments, struct gt_recording *recording)
{
	struct gt_filter filter = { .from_ns = 0 };

	gt_window_set(&arguments->window, recording, &filter);
	arguments->wanted.from_ns = filter.from_ns;
	arguments->wanted.to_ns = filter.to_ns;
	arguments->style.width = gt_look_width();
	arguments->wanted.without_spread = !wants_spread(arguments);
	arguments->sources.target = gt_recording_target(recording);
	if (arguments->lines)
		arguments->style.sources = &arguments->sources;
}

/* The first function that was asked for; NULL: none was. */
static const char *meant(const struct arguments *arguments)
{
	const struct gt_report_options *wanted = &arguments->wanted;

	if (arguments->spread != NULL)
		return arguments->spread;
	if (wanted->of != NULL)
		return wanted->of;
	return wanted->graph != NULL ? wanted->graph[0] : NULL;
}

static const char *why_empty(const struct arguments *arguments)
{
	const struct gt_report_options *wanted = &arguments->wanted;

	if (arguments->spread != NULL)
		return "no function that matches --hist has calls that are left";
	if (wanted->by == GT_REPORT_CALLER)
		return "no function that matches was called";
	if (wanted->by == GT_REPORT_CALLEE)
		return "no function that matches has called a recorded one";
	if (wanted->tid || wanted->pid || wanted->graph != NULL || wanted->least_ns ||
	    wanted->from_ns || wanted->to_ns)
		return "no call is left by --tid, --pid, --graph, --min and --time";
	return "no call was recorded";
}

/* Whether the report is the table of a recording of events alone, and so has no function. */
static bool is_of_events_alone(const struct arguments *arguments, struct gt_recording *recording,
			       const struct gt_report *report)
{
	return report->row_count == 0 && arguments->style.format == GT_REPORT_TEXT &&
	       arguments->spread == NULL && arguments->wanted.by == GT_REPORT_FUNCTION &&
	       gt_recording_target(recording)->tracer == GRAFTRACE_TRACER_NOP &&
	       gt_recording_info(recording)->events != 0;
}

static int write_html(const struct arguments *arguments)
{
	char command[] = "export", to[] = "--to=html", output[] = "-o", end[] = "--";
	char *words[] = { command, to,
			  output,  (char *)(uintptr_t)arguments->html,
			  end,	   (char *)(uintptr_t)arguments->path,
			  NULL };

	return gt_cmd_export(6, words);
}

int gt_cmd_report(int argc, char **argv)
{
	struct arguments arguments = { .path = GT_DEFAULT_RECORDING,
				       .pager = true,
				       .color = "auto" };
	char proposal[GT_LOOK_PROPOSAL_BYTES];
	struct gt_message message = { "" };
	struct gt_report *report;
	int result = parse(argc, argv, &arguments);

	if (result != 0)
		return result - 1;
	if (arguments.html != NULL)
		return write_html(&arguments);
	struct gt_recording *recording = gt_look_open_parts(NAME, arguments.path, arguments.parts);
	if (recording == NULL)
		return GT_EXIT_FAILED;
	if (arguments.wanted.of != NULL &&
	    gt_recording_target(recording)->tracer == GRAFTRACE_TRACER_FUNCTION) {
		gt_complain(NAME,
			    "'%s': the tracer function does not record who called whom; "
			    "'graftrace show' has the parent of each call",
			    arguments.path);
		gt_recording_close(recording);
		return GT_EXIT_FAILED;
	}
	if (arguments.rests) {
		result = print_rests(&arguments, recording);
		gt_recording_close(recording);
		return result;
	}
	if (arguments.crash) {
		result = print_crash(&arguments, recording);
		gt_recording_close(recording);
		return result;
	}
	set_wanted(&arguments, recording);
	if (arguments.events) {
		result = print_events(&arguments, recording);
		gt_sources_fini(&arguments.sources);
		gt_recording_close(recording);
		return result;
	}
	gt_progress_reading(recording, 1);
	int made = gt_report_make(gt_recording_target(recording), &arguments.wanted, &report,
				  &message);
	gt_progress_end();
	if (made != 0) {
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
	if (arguments.spread != NULL)
		gt_report_keep(report, arguments.spread);
	gt_report_sort(report, arguments.sort);
	if (is_of_events_alone(&arguments, recording, report)) {
		result = print_events(&arguments, recording);
		gt_sources_fini(&arguments.sources);
		gt_report_destroy(report);
		gt_recording_close(recording);
		return result;
	}
	if (report->row_count == 0)
		gt_complain(NAME, "'%s': %s%s", arguments.path, why_empty(&arguments),
			    gt_look_propose(recording, meant(&arguments), proposal));
	result = print(&arguments, recording, report);
	if (report->damaged)
		gt_complain(NAME, "'%s': %llu records make no sense and are left out",
			    arguments.path, (unsigned long long)report->damaged);
	if (gt_look_tell(NAME, arguments.path, recording) != GT_EXIT_DONE)
		result = GT_EXIT_FAILED;
	if (report->known_by_return)
		gt_complain(NAME, "'%s': %llu of these are in the table all the same: %s",
			    arguments.path, (unsigned long long)report->known_by_return,
			    "what came after their beginning was kept");
	gt_sources_fini(&arguments.sources);
	gt_report_destroy(report);
	gt_recording_close(recording);
	return result;
}
