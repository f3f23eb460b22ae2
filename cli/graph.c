/* SPDX-License-Identifier: MIT */
/* graftrace graph: a recording as a merged call tree. */
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
#include "core/trace/message.h"
#include "export/graph.h"

#define NAME "graph"

static const char help[] =
	"Usage: graftrace graph [OPTION...] [FUNCTION]\n\n"
	"Prints a recording (default: graftrace.data) as a call tree: each different stack\n"
	"once, with its calls, total and own time, the longest first. With FUNCTION (a glob),\n"
	"only its calls and what they call.\n\n"
	"  -i, --input FILE           another recording\n"
	"      --callers GLOB         instead: these functions, below each who called it\n"
	"  -t, --time FROM-TO         only what happened between (as graftrace show -t)\n"
	"      --tid N                only this thread\n"
	"      --user                 the program's calls alone, without the kernel's (record\n"
	"                             --kernel)\n"
	"      --kernel               the kernel's functions and events alone\n"
	"  -D, --max-graph-depth N    N levels\n"
	"      --min SIZE             leave out stacks of less total time: 1ms, or 0.5% of\n"
	"                             all (default: nothing)\n"
	"      --format FORMAT        text (default), json\n"
	"      --names WHICH          short (default on terminals: C++ and Rust without template\n"
	"                             arguments), full\n"
	"      --lines                behind a function's name file and line of its source\n"
	"      --source               and that line itself, if the file is there\n"
	"      --no-pager             write to the terminal at once\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be made, or not of all that was recorded; 2 wrong\n"
	"command line.\n";

enum {
	OPTION_TID = 256,
	OPTION_CALLERS,
	OPTION_MIN,
	OPTION_FORMAT,
	OPTION_NO_PAGER,
	OPTION_NAMES,
	OPTION_USER,
	OPTION_KERNEL,
	OPTION_LINES,
	OPTION_SOURCE
};

static const struct option options[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "callers", required_argument, NULL, OPTION_CALLERS },
	{ "time", required_argument, NULL, 't' },
	{ "tid", required_argument, NULL, OPTION_TID },
	{ "max-graph-depth", required_argument, NULL, 'D' },
	{ "min", required_argument, NULL, OPTION_MIN },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "user", no_argument, NULL, OPTION_USER },
	{ "kernel", no_argument, NULL, OPTION_KERNEL },
	{ "names", required_argument, NULL, OPTION_NAMES },
	{ "lines", no_argument, NULL, OPTION_LINES },
	{ "source", no_argument, NULL, OPTION_SOURCE },
	{ "no-pager", no_argument, NULL, OPTION_NO_PAGER },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	unsigned parts; /* enum gt_look_parts */
	const char *path;
	struct gt_window window;
	const char *globs[2];
	struct gt_filter filter;
	struct gt_graph_options graph;
	bool pager;
	const char *names;
};

/* Parses "1ms", or "0.5%" of the sum. */
static int parse_min(const char *text, struct gt_graph_options *graph, struct gt_message *message)
{
	char *end;
	double part;

	if (text[0] == '\0' || text[strlen(text) - 1] != '%')
		return gt_value_time(text, 1000000000, &graph->least_ns, message);
	errno = 0;
	part = strtod(text, &end);
	if (errno != 0 || end == text || strcmp(end, "%") != 0 || !(part >= 0 && part <= 100))
		return gt_fail(message, GT_EINVAL, "'%s' is not a part of all: use 0%% to 100%%",
			       text);
	graph->least_part = part / 100;
	return 0;
}

/* Returns 0, or an exit code + 1 if the command is to end now. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	struct gt_message message = { "" };
	uint64_t number;
	int option;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "i:t:D:h", options)) != -1) {
		int error = 0;
		switch (option) {
		case 'i':
			arguments->path = optarg;
			break;
		case OPTION_CALLERS:
			arguments->graph.callers_of = optarg;
			break;
		case 't':
			error = gt_window_parse(optarg, &arguments->window, &message);
			break;
		case OPTION_TID:
			error = gt_value_number(optarg, 1, UINT32_MAX, &number, &message);
			arguments->filter.tid = (uint32_t)number;
			break;
		case 'D':
			error = gt_value_number(optarg, 0, UINT32_MAX, &number, &message);
			arguments->graph.depth = (uint32_t)number;
			break;
		case OPTION_MIN:
			error = parse_min(optarg, &arguments->graph, &message);
			break;
		case OPTION_FORMAT:
			arguments->graph.json = strcmp(optarg, "json") == 0;
			if (!arguments->graph.json && strcmp(optarg, "text") != 0) {
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
		case OPTION_NAMES:
			arguments->names = optarg;
			break;
		case OPTION_SOURCE:
			arguments->graph.source = true;
			/* fall through */
		case OPTION_LINES:
			arguments->graph.lines = true;
			break;
		case OPTION_NO_PAGER:
			arguments->pager = false;
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
	if (argc - optind > 1) {
		gt_complain(NAME, "one FUNCTION at a time; another recording is -i FILE");
		return 1 + gt_usage_error(NAME);
	}
	if (optind < argc && arguments->graph.callers_of != NULL) {
		gt_complain(
			NAME,
			"FUNCTION and --callers do not go together; another recording is -i FILE");
		return 1 + gt_usage_error(NAME);
	}
	if (gt_look_names(arguments->names, STDOUT_FILENO, &arguments->graph.brief, &message) !=
	    0) {
		gt_complain(NAME, "%s", message.text);
		return 1 + gt_usage_error(NAME);
	}
	arguments->graph.width = gt_look_width();
	if (optind < argc) {
		arguments->globs[0] = argv[optind];
		arguments->filter.graph = arguments->globs;
	}
	return 0;
}

static int print(struct arguments *arguments, struct gt_recording *recording)
{
	char proposal[GT_LOOK_PROPOSAL_BYTES];
	struct gt_stack_report report;
	struct gt_pager pager;
	struct gt_out out;
	int error, failed = 0;

	signal(SIGPIPE, SIG_IGN);
	/* The whole text is made in memory before the pager takes the terminal. Its size is
	 * bounded by the number of different stacks. */
	error = gt_out_init_memory(&out);
	gt_progress_reading(recording, 1);
	if (error == 0)
		error = gt_graph_write(gt_recording_target(recording), &arguments->graph, &out,
				       &report);
	gt_progress_end();
	if (error == 0) {
		gt_pager_start(&pager, arguments->pager);
		if (!arguments->graph.json)
			gt_look_begin(recording, arguments->path, pager.fd);
		if (gt_look_write(pager.fd, out.buffer, out.used) < 0) {
			error = GT_EIO;
			failed = errno;
		}
		gt_pager_stop(&pager);
	}
	gt_out_fini(&out);
	if (error == GT_ENOMEM)
		gt_complain(NAME, "out of memory");
	else if (error == GT_ENOENT)
		gt_complain(NAME,
			    "'%s': no call is left to be shown; 'graftrace report -i %s' lists the "
			    "functions%s",
			    arguments->path, arguments->path,
			    gt_look_propose(recording,
					    arguments->globs[0] != NULL
						    ? arguments->globs[0]
						    : arguments->graph.callers_of,
					    proposal));
	else if (error == GT_EIO)
		gt_complain(NAME, "cannot write: %s", strerror(failed));
	else
		return GT_EXIT_DONE;
	return GT_EXIT_FAILED;
}

int gt_cmd_graph(int argc, char **argv)
{
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	struct gt_recording *recording;
	int result;

	if (arguments == NULL) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	arguments->path = GT_DEFAULT_RECORDING;
	arguments->pager = true;
	result = parse(argc, argv, arguments);
	if (result != 0) {
		free(arguments);
		return result - 1;
	}
	recording = gt_look_open_parts(NAME, arguments->path, arguments->parts);
	result = GT_EXIT_FAILED;
	if (recording != NULL) {
		gt_window_set(&arguments->window, recording, &arguments->filter);
		arguments->graph.filter = &arguments->filter;
		arguments->graph.function_end = gt_recording_function_end(recording);
		result = print(arguments, recording);
		if (gt_look_tell(NAME, arguments->path, recording) != GT_EXIT_DONE)
			result = GT_EXIT_FAILED;
		gt_recording_close(recording);
	}
	free(arguments);
	return result;
}
