/* SPDX-License-Identifier: MIT */
/*
 * The arguments of `graftrace record`. Reads up to the first word that is no option: the rest is
 * the program's. Every value is checked here, before anything is started.
 */
#define _GNU_SOURCE
#include "cli/record_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/values.h"
#include "core/view/control.h"
#include "serve/address.h"
#include "serve/http.h"

#define NAME "record"

static const char help[] =
	"Usage: graftrace record [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"       graftrace record [OPTION...] -P PID\n"
	"       graftrace record [-o FILE] [--for TIME] --from http://HOST:PORT\n"
	"\n"
	"Runs PROGRAM and records every call of its functions. The program's input, output,\n"
	"signals and exit code are its own; one line on stderr ends the recording.\n"
	"With -P, records a process that runs already, until Ctrl-C, and leaves it as it was.\n"
	"\n"
	"What is traced:\n"
	"  -P, --pid PID[,PID...]    these processes, with all their threads and the children "
	"that\n"
	"                            they will have; may be repeated. -p PID is the same\n"
	"      --children            and the children that they have already\n"
	"      --for TIME            no longer than this: 10s, 500ms\n"
	"      --from URL            a kernel that serves its trace: taken out of its ring\n"
	"                            as it comes, until Ctrl-C or the kernel's end\n"
	"What is recorded:\n"
	"  -p, --tracer NAME         function_graph (default: entries and returns),\n"
	"                            function (entries with their callers), nop\n"
	"  -l, --filter GLOB         only these functions; may be repeated\n"
	"  -n, --notrace GLOB        not these functions; may be repeated\n"
	"  -g, --graph GLOB          only what is called below these; may be repeated\n"
	"  -N, --graph-notrace GLOB  not these, nor what is called below them; may be repeated\n"
	"      --max-graph-depth N   only the N outermost levels of calls\n"
	"      --threshold TIME      only calls that took longer: 10us, 1.5ms\n"
	"      --libs                also the system's libraries\n"
	"      --lib GLOB            also those of them that are called so; may be repeated\n"
	"      --libcall             also calls across the linkage table, as puts@plt\n"
	"      --breakpoints         also functions that no jump fits in, by a trap (int3): slow\n"
	"      --unprepared          in prepared programs, also the functions that are not\n"
	"      --no-fork             leave the program's children alone\n"
	"      --no-switch-events    not when threads leave the CPU and come back (default:\n"
	"                            also that, where the kernel tells it)\n"
	"Where it goes:\n"
	"  -o, --output FILE         the recording (default graftrace.data; an old one\n"
	"                            becomes FILE.old)\n"
	"  -b, --buffer-size SIZE    memory for what is not written yet (default 64M)\n"
	"      --overwrite           keep the newest that fit in the buffer, write them at\n"
	"                            the end (default: write all as it comes)\n"
	"      --stop-when CONDITION end the recording when it happens, while the program goes "
	"on;\n"
	"                            may be repeated: 'FUNC > 10ms' (a call took longer),\n"
	"                            'FUNC hit 100' (its 100th call), 'signal SIGUSR1', 'crash'\n"
	"      --compress[=LEVEL]    pack the file with zstd (default), LEVEL 1 to 19\n"
	"      --no-compress         do not\n"
	"      --serve[=ADDR:PORT]   keep the trace in the buffer and serve it over HTTP while\n"
	"                            the program runs (default 127.0.0.1:9090)\n"
	"      --linger[=TIME]       go on serving afterwards, until Ctrl-C or for TIME\n"
	"  -h, --help                this text\n"
	"\n"
	"Exit codes: the program's own; if a signal killed it, graftrace dies of the same\n"
	"one. 127: no such program, 126: it cannot be run, 1: it cannot be recorded, 2: the\n"
	"command line is wrong.\n";

enum {
	OPTION_MAX_DEPTH = 256,
	OPTION_THRESHOLD,
	OPTION_OVERWRITE,
	OPTION_COMPRESS,
	OPTION_NO_COMPRESS,
	OPTION_SERVE,
	OPTION_LINGER,
	OPTION_NO_FORK,
	OPTION_UNPREPARED,
	OPTION_LIBS,
	OPTION_FOR,
	OPTION_FROM,
	OPTION_STOP_WHEN,
	OPTION_LIB,
	OPTION_LIBCALL,
	OPTION_BREAKPOINTS,
	OPTION_SWITCH_EVENTS,
	OPTION_NO_SWITCH_EVENTS,
	OPTION_CHILDREN,
};

static const struct option options_known[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "children", no_argument, NULL, OPTION_CHILDREN },
	{ "for", required_argument, NULL, OPTION_FOR },
	{ "from", required_argument, NULL, OPTION_FROM },
	{ "tracer", required_argument, NULL, 'p' },
	{ "filter", required_argument, NULL, 'l' },
	{ "notrace", required_argument, NULL, 'n' },
	{ "graph", required_argument, NULL, 'g' },
	{ "graph-notrace", required_argument, NULL, 'N' },
	{ "max-graph-depth", required_argument, NULL, OPTION_MAX_DEPTH },
	{ "threshold", required_argument, NULL, OPTION_THRESHOLD },
	{ "buffer-size", required_argument, NULL, 'b' },
	{ "overwrite", no_argument, NULL, OPTION_OVERWRITE },
	{ "output", required_argument, NULL, 'o' },
	{ "compress", optional_argument, NULL, OPTION_COMPRESS },
	{ "no-compress", no_argument, NULL, OPTION_NO_COMPRESS },
	{ "serve", optional_argument, NULL, OPTION_SERVE },
	{ "linger", optional_argument, NULL, OPTION_LINGER },
	{ "no-fork", no_argument, NULL, OPTION_NO_FORK },
	{ "unprepared", no_argument, NULL, OPTION_UNPREPARED },
	{ "libs", no_argument, NULL, OPTION_LIBS },
	{ "stop-when", required_argument, NULL, OPTION_STOP_WHEN },
	{ "lib", required_argument, NULL, OPTION_LIB },
	{ "libcall", no_argument, NULL, OPTION_LIBCALL },
	{ "breakpoints", no_argument, NULL, OPTION_BREAKPOINTS },
	{ "switch-events", no_argument, NULL, OPTION_SWITCH_EVENTS },
	{ "no-switch-events", no_argument, NULL, OPTION_NO_SWITCH_EVENTS },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void add(const char **list, const char *word)
{
	while (*list != NULL)
		list++;
	*list = word;
}

/* 1234 or 12,34,56. */
static int take_pids(struct gt_record_options *options, struct gt_message *message)
{
	const char *at = optarg;
	uint64_t number = 0;
	int error;

	for (;;) {
		size_t length = strcspn(at, ",");
		char word[32];
		int32_t *pids = realloc(options->pids, (options->pid_count + 1) * sizeof(*pids));

		if (pids == NULL) {
			snprintf(message->text, sizeof(message->text), "no memory");
			return GT_ENOMEM;
		}
		options->pids = pids;
		snprintf(word, sizeof(word), "%.*s", (int)(length < 31 ? length : 31), at);
		error = gt_value_number(word, 1, INT32_MAX, &number, message);
		if (error != 0)
			return error;
		options->pids[options->pid_count++] = (int32_t)number;
		if (at[length] == '\0')
			return 0;
		at += length + 1;
	}
}

/* 0, or GT_EINVAL with the message. */
static int take(int option, struct gt_record_options *options, struct gt_message *message)
{
	struct gt_address address;
	uint64_t number = 0;
	int error = 0;

	/* As perf's and uftrace's users type it. */
	if (option == 'p' && optarg[0] >= '0' && optarg[0] <= '9' &&
	    strspn(optarg, "0123456789,") == strlen(optarg))
		option = 'P';
	switch (option) {
	case 'P':
		error = take_pids(options, message);
		break;
	case OPTION_CHILDREN:
		options->children = true;
		break;
	case OPTION_FOR:
		error = gt_value_time(optarg, 1000000000, &options->for_ns, message);
		break;
	case OPTION_FROM:
		options->from = optarg;
		break;
	case 'p': {
		int tracer = gt_control_tracer(optarg, strlen(optarg));

		if (tracer < 0) {
			snprintf(message->text, sizeof(message->text),
				 "there is no tracer '%.80s': nop, function and function_graph are",
				 optarg);
			return GT_EINVAL;
		}
		options->tracer = (enum graftrace_tracer)tracer;
		break;
	}
	case 'l':
		add(options->filter, optarg);
		break;
	case 'n':
		add(options->notrace, optarg);
		break;
	case 'g':
		add(options->graph, optarg);
		break;
	case 'N':
		add(options->graph_notrace, optarg);
		break;
	case OPTION_MAX_DEPTH:
		error = gt_value_number(optarg, 0, UINT32_MAX, &number, message);
		options->max_graph_depth = (uint32_t)number;
		break;
	case OPTION_THRESHOLD:
		error = gt_value_time(optarg, 1000, &options->threshold_ns, message);
		break;
	case 'b':
		error = gt_value_size(optarg, &options->buffer_bytes, message);
		break;
	case OPTION_OVERWRITE:
		options->overwrite = true;
		break;
	case 'o':
		options->output = optarg;
		break;
	case OPTION_COMPRESS:
		options->compress = true;
		if (optarg != NULL)
			error = gt_value_number(optarg, 1, 19, &number, message);
		options->level = (int)number;
		break;
	case OPTION_NO_COMPRESS:
		options->compress = false;
		break;
	case OPTION_SERVE:
		options->serve = optarg != NULL ? optarg : GT_HTTP_DEFAULT_ADDRESS;
		error = gt_address_parse(options->serve, &address, message);
		break;
	case OPTION_LINGER:
		options->linger = true;
		if (optarg != NULL)
			error = gt_value_time(optarg, 1000000000, &options->linger_ns, message);
		if (error == 0 && optarg != NULL && options->linger_ns == 0)
			options->linger = false;
		break;
	case OPTION_NO_FORK:
		options->no_fork = true;
		break;
	case OPTION_UNPREPARED:
		options->unprepared = true;
		break;
	case OPTION_STOP_WHEN:
		error = gt_stop_parse(optarg, &options->stops[options->stop_count], message);
		if (error == 0)
			options->stop_count++;
		break;
	case OPTION_LIBS:
		options->libraries = true;
		break;
	case OPTION_BREAKPOINTS:
		options->breakpoints = true;
		break;
	case OPTION_SWITCH_EVENTS:
	case OPTION_NO_SWITCH_EVENTS:
		options->no_switches = option == OPTION_NO_SWITCH_EVENTS;
		break;
	case OPTION_LIBCALL:
		options->libcalls = true;
		break;
	case OPTION_LIB:
		add(options->library_globs, optarg);
		break;
	}
	return error;
}

static int usage(const char *what)
{
	gt_complain(NAME, "%s", what);
	return gt_usage_error(NAME);
}

int gt_record_options_parse(int argc, char **argv, struct gt_record_options *options)
{
	struct gt_message message = { "" };
	size_t words = (size_t)argc + 1;
	bool lingers = false;
	int option;

	*options = (struct gt_record_options){
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.buffer_bytes = 64 << 20,
		.output = "graftrace.data",
		.compress = true,
		.filter = calloc(words, sizeof(char *)),
		.notrace = calloc(words, sizeof(char *)),
		.graph = calloc(words, sizeof(char *)),
		.graph_notrace = calloc(words, sizeof(char *)),
		.stops = calloc(words, sizeof(*options->stops)),
		.pids = calloc(words, sizeof(*options->pids)),
		.library_globs = calloc(words, sizeof(char *)),
	};
	if (options->filter == NULL || options->notrace == NULL || options->graph == NULL ||
	    options->graph_notrace == NULL || options->pids == NULL || options->stops == NULL ||
	    options->library_globs == NULL) {
		gt_complain(NAME, "no memory");
		return GT_EXIT_FAILED;
	}
	while ((option = getopt_long(argc, argv, "+P:p:l:n:g:N:b:o:h", options_known, NULL)) !=
	       -1) {
		if (option == '?')
			return gt_usage_error(NAME);
		if (option == 'h') {
			fputs(help, stdout);
			return GT_EXIT_DONE;
		}
		lingers |= option == OPTION_LINGER;
		if (take(option, options, &message) != 0)
			return usage(message.text);
	}
	if (options->from != NULL && (options->pid_count > 0 || optind < argc))
		return usage("--from records what a kernel serves: no program besides");
	if (options->from != NULL)
		return -1;
	if (options->pid_count > 0 && optind < argc)
		return usage("either a program is run, or -P names processes that run already");
	if (optind >= argc && options->pid_count == 0)
		return usage("the program to run is missing");
	if (options->children && options->pid_count == 0)
		return usage("--children says what -P takes: a program that is run has none yet");
	if (lingers && options->serve == NULL)
		return usage("--linger says how long to serve: it wants --serve");
	if (options->pid_count == 0) {
		options->argv = argv + optind;
		options->subject = options->argv[0];
	}
	return -1;
}

void gt_record_options_fini(struct gt_record_options *options)
{
	free(options->filter);
	free(options->notrace);
	free(options->graph);
	free(options->graph_notrace);
	free(options->pids);
	for (size_t i = 0; i < options->stop_count; i++)
		gt_stop_condition_fini(&options->stops[i]);
	free(options->stops);
	free(options->library_globs);
}
