/* SPDX-License-Identifier: MIT */
/*
 * graftrace show: a recording as ftrace's text.
 */
#include "cli/command.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/looking.h"
#include "cli/progress.h"
#include "cli/values.h"
#include "cli/window.h"
#include "linux/beside.h"
#include "linux/trace_dat.h"
#include "core/trace/message.h"
#include "core/control/control.h"
#include "core/text/text.h"
#include "export/export.h"
#include "export/short_names.h"
#include "read/syscall_text.h"
#include "export/sources.h"
#include "port/host/memory.h"

#define NAME	    "show"
#define WRITE_BYTES (256u << 10)
#define GLOBS_MAX   256

static const char help[] =
	"Usage: graftrace show [OPTION...] [FILE]\n\n"
	"Prints a recording (default: graftrace.data) as ftrace's text, oldest call first.\n\n"
	"  -i, --input FILE           the same as FILE\n"
	"  -O, --option NAME          an option of Linux's trace_options, no before it to turn\n"
	"                             it off:\n"
	"                             funcgraph-proc, -abstime, -tail (off), -cpu, -duration,\n"
	"                             -overhead (on); print-parent, irq-info, context-info (on),\n"
	"                             sym-offset, sym-addr, latency-format, verbose, raw, hex,\n"
	"                             bin, func-no-repeats (off); sleep-time (on:\n"
	"                             durations count the time off the CPU)\n"
	"      --switch-events        also a line where a thread leaves the CPU or comes back\n"
	"  -t, --time FROM-TO         only what happened between: seconds as\n"
	"                             funcgraph-abstime shows them, or with a + since the\n"
	"                             start; us, ms may follow; one side may be left out\n"
	"      --tid N                only this thread\n"
	"      --user                 the program's calls alone, without the kernel's (record\n"
	"                             --kernel)\n"
	"      --kernel               the kernel's functions and events alone\n"
	"      --context kernel       behind the kernel's functions whose they are: [kernel], a\n"
	"                             module as [md_mod], [bpf]\n"
	"  -g, --graph GLOB           only these functions and what they call (repeatable)\n"
	"  -D, --max-graph-depth N    not deeper than N calls\n"
	"      --min TIME             only calls that took at least so long (10us, 1ms): their\n"
	"                             returns, with the durations\n"
	"      --ns                   time stamps with nanoseconds (turns funcgraph-abstime on)\n"
	"      --format FORMAT        text (default); json: an object a line and call, as\n"
	"                             graftrace export --to json writes it\n"
	"      --names WHICH          short (default on terminals: C++ and Rust without template\n"
	"                             arguments), full\n"
	"      --syscalls WHICH       strace (default): system calls of programs with names of\n"
	"                             flags and errors; linux: as Linux's trace has them\n"
	"      --lines                behind a function's name file and line of its source\n"
	"      --source               and that line itself, if the file is there\n"
	"      --color WHEN           auto (default), always, never\n"
	"      --no-pager             write to the terminal at once\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be shown, or not all of it; 2 wrong command line.\n";

enum {
	OPTION_TID = 256,
	OPTION_COLOR,
	OPTION_NO_PAGER,
	OPTION_SWITCH_EVENTS,
	OPTION_MIN,
	OPTION_NS,
	OPTION_FORMAT,
	OPTION_NAMES,
	OPTION_SYSCALLS,
	OPTION_USER,
	OPTION_KERNEL,
	OPTION_CONTEXT,
	OPTION_LINES,
	OPTION_SOURCE
};

static const struct option options[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "option", required_argument, NULL, 'O' },
	{ "time", required_argument, NULL, 't' },
	{ "tid", required_argument, NULL, OPTION_TID },
	{ "graph", required_argument, NULL, 'g' },
	{ "max-graph-depth", required_argument, NULL, 'D' },
	{ "user", no_argument, NULL, OPTION_USER },
	{ "kernel", no_argument, NULL, OPTION_KERNEL },
	{ "context", required_argument, NULL, OPTION_CONTEXT },
	{ "names", required_argument, NULL, OPTION_NAMES },
	{ "syscalls", required_argument, NULL, OPTION_SYSCALLS },
	{ "lines", no_argument, NULL, OPTION_LINES },
	{ "source", no_argument, NULL, OPTION_SOURCE },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "no-pager", no_argument, NULL, OPTION_NO_PAGER },
	{ "min", required_argument, NULL, OPTION_MIN },
	{ "ns", no_argument, NULL, OPTION_NS },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "switch-events", no_argument, NULL, OPTION_SWITCH_EVENTS },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	unsigned parts; /* enum gt_look_parts */
	const char *path;
	uint64_t text_options;
	struct gt_window window;
	const char *color;
	const char *names;
	bool brief;
	bool linux_calls; /* system calls as Linux writes them */
	bool lines;
	bool source;
	bool pager;
	bool switches;
	bool context;
	bool nanoseconds;
	bool json;
	uint64_t least_ns;
	const char *globs[GLOBS_MAX + 1];
	size_t globs_count;
	struct gt_filter filter;
};

/* Reports an unknown option: proposes the one that is meant, or lists all. */
static void report_option(const char *name, struct gt_message *message)
{
	static const char *const names[] = {
		"funcgraph-proc",
		"funcgraph-abstime",
		"funcgraph-tail",
		"funcgraph-cpu",
		"funcgraph-duration",
		"funcgraph-overhead",
		"funcgraph-args",
		"funcgraph-retval",
		"funcgraph-retval-hex",
		"func-args",
		"print-parent",
		"irq-info",
		"context-info",
		"sym-offset",
		"sym-addr",
		"latency-format",
		"verbose",
		"raw",
		"hex",
		"bin",
		"func-no-repeats",
		"sleep-time",
	};
	const char *bare = strncmp(name, "no", 2) == 0 ? name + 2 : name;
	struct gt_proposal nearest = { .word = NULL };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		gt_propose(&nearest, bare, names[i]);
	if (nearest.word != NULL)
		gt_message_set(message, "there is no option '%s'; did you mean '%s%s'?", name,
			       bare == name ? "" : "no", nearest.word);
	else
		gt_message_set(message,
			       "there is no option '%s'; 'graftrace show --help' lists "
			       "them",
			       name);
}

static int set_option(struct arguments *arguments, const char *name, struct gt_message *message)
{
	bool on = true;
	uint64_t bit = gt_control_option(name, strlen(name));
	if (!bit && strncmp(name, "no", 2) == 0) {
		on = false;
		bit = gt_control_option(name + 2, strlen(name + 2));
	}
	/* Linux has funcgraph-overrun for calls that its limit of 50 open ones leaves out: here
	 * there are none. */
	if (!bit &&
	    (strcmp(name, "funcgraph-overrun") == 0 || strcmp(name, "nofuncgraph-overrun") == 0))
		return 0;
	if (!bit) {
		report_option(name, message);
		return GT_EINVAL;
	}
	if (on)
		arguments->text_options |= bit;
	else
		arguments->text_options &= ~bit;
	return 0;
}

/* Returns 0, or an exit code + 1 if the command is to end now. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	struct gt_message message = { "" };
	const char *input = NULL;
	uint64_t number;
	int option;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "i:O:t:g:D:h", options)) != -1) {
		int error = 0;
		switch (option) {
		case 'i':
			input = optarg;
			break;
		case 'O':
			error = set_option(arguments, optarg, &message);
			break;
		case 't':
			error = gt_window_parse(optarg, &arguments->window, &message);
			break;
		case 'g':
			if (arguments->globs_count == GLOBS_MAX) {
				gt_message_set(&message, "more than %d -g", GLOBS_MAX);
				error = GT_EINVAL;
				break;
			}
			arguments->globs[arguments->globs_count++] = optarg;
			arguments->filter.graph = arguments->globs;
			break;
		case OPTION_TID:
			error = gt_value_number(optarg, 1, UINT32_MAX, &number, &message);
			arguments->filter.tid = (uint32_t)number;
			break;
		case 'D':
			error = gt_value_number(optarg, 0, UINT32_MAX, &number, &message);
			arguments->filter.max_depth = (uint32_t)number;
			break;
		case OPTION_MIN:
			error = gt_value_time(optarg, 1000000000, &arguments->least_ns, &message);
			break;
		case OPTION_NS:
			arguments->nanoseconds = true;
			arguments->text_options |= GT_OPTION_GRAPH_ABSTIME;
			break;
		case OPTION_FORMAT:
			arguments->json = strcmp(optarg, "json") == 0;
			if (!arguments->json && strcmp(optarg, "text") != 0) {
				gt_message_set(&message, "--format '%s' is none of text, json",
					       optarg);
				error = GT_EINVAL;
			}
			break;
		case OPTION_USER:
			arguments->parts |= GT_LOOK_USER;
			break;
		case OPTION_KERNEL:
			arguments->parts |= GT_LOOK_KERNEL;
			break;
		case OPTION_CONTEXT:
			arguments->context = strcmp(optarg, "kernel") == 0;
			if (!arguments->context) {
				gt_message_set(&message, "--context takes kernel, not '%s'",
					       optarg);
				error = GT_EINVAL;
			}
			break;
		case OPTION_SYSCALLS:
			arguments->linux_calls = strcmp(optarg, "linux") == 0;
			if (!arguments->linux_calls && strcmp(optarg, "strace") != 0) {
				gt_message_set(&message, "--syscalls '%s' is none of strace, linux",
					       optarg);
				error = GT_EINVAL;
			}
			break;
		case OPTION_NAMES:
			arguments->names = optarg;
			break;
		case OPTION_SOURCE:
			arguments->source = true;
			/* fall through */
		case OPTION_LINES:
			arguments->lines = true;
			break;
		case OPTION_COLOR:
			arguments->color = optarg;
			break;
		case OPTION_NO_PAGER:
			arguments->pager = false;
			break;
		case OPTION_SWITCH_EVENTS:
			arguments->switches = true;
			break;
		case 'h':
			return 1 + gt_print_help(help);
		default:
			return 1 + gt_usage_error(NAME);
		}
		if (error != 0) {
			gt_complain(NAME, "%s", message.text);
			return 1 + gt_usage_error(NAME);
		}
	}
	if (gt_one_operand(NAME, argc - optind + (input != NULL), NULL, "one recording at a time"))
		return 1 + GT_EXIT_USAGE;
	if (input != NULL || optind < argc)
		arguments->path = input != NULL ? input : argv[optind];
	return 0;
}

/* Are there other lines than the header's? */
static bool has_lines(const char *bytes, size_t count, bool *begins)
{
	for (size_t i = 0; i < count; i++) {
		if (*begins && bytes[i] != '#')
			return true;
		*begins = bytes[i] == '\n';
	}
	return false;
}

/* *shown: a line was printed. */
static int print(struct gt_text *text, int fd, bool *shown)
{
	char *buffer = malloc(WRITE_BYTES);
	int result = GT_EXIT_DONE;
	bool begins = true;
	int64_t bytes;

	if (buffer == NULL) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	while ((bytes = gt_text_read(text, buffer, WRITE_BYTES)) > 0) {
		*shown = *shown || has_lines(buffer, (size_t)bytes, &begins);
		int error = gt_look_write(fd, buffer, (size_t)bytes);
		if (error > 0)
			break; /* the reader has closed the pipe */
		if (error < 0) {
			gt_complain(NAME, "cannot write: %s", strerror(errno));
			result = GT_EXIT_FAILED;
			break;
		}
	}
	free(buffer);
	return result;
}

/* Whether switches of a program's threads were asked for as an event: without a tracer they are not recorded else.
 * Linux has them as events anyway. */
static bool is_of_switches(const char *path, struct gt_recording *recording)
{
	return gt_recording_target(recording)->tracer == GRAFTRACE_TRACER_NOP &&
	       gt_recording_info(recording)->has_switches && !gt_is_trace_dat_path(path) &&
	       !gt_has_linux(recording);
}

/* Is it known when threads were off the CPU? For `times` all records of a kernel are read once;
 * otherwise its CPUs' switches are enough. */
static bool is_known(struct gt_recording *recording, bool times)
{
	struct gt_target *target = gt_recording_target(recording);

	if (times ? gt_target_has_off_cpu(target)
		  : gt_recording_info(recording)->has_switches || gt_target_is_kernel(target))
		return true;
	gt_complain(NAME, "this recording does not have when threads were off the CPU");
	return false;
}

/* The first function that was asked for; NULL: none was. */
static const char *meant(const struct arguments *arguments)
{
	return arguments->filter.graph != NULL ? arguments->filter.graph[0] : NULL;
}

static const char *why_empty(const struct arguments *arguments)
{
	const struct gt_filter *filter = &arguments->filter;

	if (filter->tid || filter->graph != NULL || filter->from_ns || filter->to_ns ||
	    arguments->least_ns)
		return "no call is left by --tid, --graph, --min and --time: 'graftrace report' "
		       "lists "
		       "the functions, 'graftrace report --by thread' the threads";
	return "no call was recorded";
}

/* --format json. */
static int show_json(struct arguments *arguments, struct gt_recording *recording)
{
	char proposal[GT_LOOK_PROPOSAL_BYTES];
	struct gt_message message = { "" };
	struct gt_stack_report report;
	struct gt_pager pager;
	struct gt_export export = {
		.format = gt_export_find("json"),
		.target = gt_recording_target(recording),
		.filter = &arguments->filter,
		.least_ns = arguments->least_ns,
		.function_end = gt_recording_function_end(recording),
		.message = &message,
	};
	int error;

	gt_look_describe(&export.about, recording);
	signal(SIGPIPE, SIG_IGN);
	gt_pager_start(&pager, arguments->pager);
	export.fd = pager.fd;
	if (!isatty(STDOUT_FILENO))
		gt_progress_reading(recording, 2);
	error = gt_export_run(&export, &report);
	gt_progress_end();
	gt_pager_stop(&pager);
	if (error == 0 && export.out.bytes == 0)
		gt_complain(NAME, "'%s': %s%s", arguments->path, why_empty(arguments),
			    gt_look_propose(recording, meant(arguments), proposal));
	if (error == GT_ENOMEM)
		gt_complain(NAME, "out of memory");
	else if (error == GT_EIO && export.out.error != EPIPE)
		gt_complain(NAME, "cannot write: %s", message.text);
	else
		return GT_EXIT_DONE;
	return GT_EXIT_FAILED;
}

/* The object of a function, if its name is in brackets as the kernel's modules are. */
static const char *note_context(void *data, uint32_t number)
{
	struct gt_function function;

	if (gt_target_function(data, number, &function) != 0 || function.object == NULL ||
	    function.object[0] != '[')
		return NULL;
	return function.object;
}

static int show(struct arguments *arguments, bool color)
{
	struct gt_recording *recording =
		gt_look_open_parts(NAME, arguments->path, arguments->parts);
	struct gt_text *text = malloc(sizeof(*text));
	struct gt_short_names names = { .names = NULL };
	struct gt_sources sources = { .with_text = arguments->source };
	char proposal[GT_LOOK_PROPOSAL_BYTES];
	struct gt_pager pager;
	int result = GT_EXIT_FAILED;
	bool shown = false;

	if (recording == NULL || text == NULL)
		goto out;
	gt_window_set(&arguments->window, recording, &arguments->filter);
	if (arguments->json) {
		result = show_json(arguments, recording);
		if (gt_look_tell(NAME, arguments->path, recording) != GT_EXIT_DONE)
			result = GT_EXIT_FAILED;
		goto out;
	}
	arguments->filter.least_ns = arguments->least_ns;
	sources.target = gt_recording_target(recording);
	struct gt_text_options text_options = {
		.options = arguments->text_options,
		.mode = GT_MERGE_SNAPSHOT,
		.header = true,
		.color = color,
		.switches = arguments->switches || is_of_switches(arguments->path, recording),
		.nanoseconds = arguments->nanoseconds,
		.rename = arguments->brief ? gt_short_names_keep : NULL,
		.rename_data = &names,
		.note = arguments->lines     ? gt_sources_note
			: arguments->context ? note_context
					     : NULL,
		.note_data = arguments->lines ? (void *)&sources : sources.target,
		.event = arguments->linux_calls ? NULL : gt_syscall_text_put,
		.filter = &arguments->filter,
	};
	bool times = !(text_options.options & GT_OPTION_SLEEP_TIME);
	if ((times || text_options.switches) && !is_known(recording, times))
		goto out;
	if (gt_text_init(text, gt_recording_target(recording), &gt_host_memory, &text_options) !=
	    0) {
		gt_complain(NAME, "out of memory");
		goto out;
	}
	signal(SIGPIPE, SIG_IGN);
	gt_pager_start(&pager, arguments->pager);
	gt_look_begin(recording, arguments->path, pager.fd);
	if (!isatty(STDOUT_FILENO))
		gt_progress_reading(recording, 1);
	result = print(text, pager.fd, &shown);
	gt_progress_end();
	gt_pager_stop(&pager);
	if (!shown && result == GT_EXIT_DONE)
		gt_complain(NAME, "'%s': %s%s", arguments->path, why_empty(arguments),
			    gt_look_propose(recording, meant(arguments), proposal));
	if (gt_look_tell(NAME, arguments->path, recording) != GT_EXIT_DONE)
		result = GT_EXIT_FAILED;
	if (text->merge.out_of_memory) {
		gt_complain(NAME, "out of memory: %llu threads are not shown",
			    (unsigned long long)text->merge.out_of_memory);
		result = GT_EXIT_FAILED;
	}
	gt_text_fini(text);
out:
	gt_short_names_fini(&names);
	gt_sources_fini(&sources);
	free(text);
	if (recording != NULL)
		gt_recording_close(recording);
	return result;
}

int gt_cmd_show(int argc, char **argv)
{
	struct gt_message message = { "" };
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	bool color;
	int result;

	if (arguments == NULL) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	arguments->path = GT_DEFAULT_RECORDING;
	arguments->text_options = GT_OPTIONS_DEFAULT | GT_OPTIONS_RECORDED_VALUES;
	arguments->color = "auto";
	arguments->pager = true;
	result = parse(argc, argv, arguments);
	if (result != 0) {
		result--;
	} else if (gt_look_color(arguments->color, STDOUT_FILENO, &color, &message) != 0 ||
		   gt_look_names(arguments->names, STDOUT_FILENO, &arguments->brief, &message) !=
			   0) {
		gt_complain(NAME, "%s", message.text);
		result = gt_usage_error(NAME);
	} else {
		result = show(arguments, color);
	}
	free(arguments);
	return result;
}
