/* SPDX-License-Identifier: MIT */
/*
 * graftrace profile: runs a program with the function profiler on, or attaches to a running one,
 * and prints the table at the end. Nothing is recorded: each thread counts its own calls, so memory
 * does not grow with the time of the run.
 */
#define _GNU_SOURCE
#include "cli/command.h"
#include "core/trace/message.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/process/clock.h"
#include "attach/session/session.h"
#include "cli/looking.h"
#include "cli/output.h"
#include "cli/profile_interval.h"
#include "cli/profile_table.h"
#include "cli/progress.h"
#include "cli/running.h"
#include "cli/session_options.h"
#include "cli/values.h"

#define NAME		  "profile"
#define POLL_MS		  100
#define LEAST_INTERVAL_NS 100000000
#define INTERVAL_ROWS	  20 /* of a table as text, unless --limit says more */

static const char help[] =
	"Usage: graftrace profile [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"       graftrace profile [OPTION...] -P PID\n"
	"\n"
	"Runs PROGRAM, counts the calls of its functions and their times, and prints a table\n"
	"on stderr when it has ended. With -P, does so for a process that runs already, until\n"
	"Ctrl-C, leaves it as it was, and prints on stdout. Nothing is recorded: the memory it\n"
	"takes does not grow with the run. Total is from entry to return (of each call: recursion\n"
	"counts as often as it goes down), self is without callees.\n"
	"\n"
	"  -P, --pid PID[,PID...]    these processes, with all their threads and the children "
	"that\n"
	"                            they will have; may be repeated. -p PID is the same\n"
	"      --children            and the children that they have already\n"
	"      --for TIME            no longer than this: 10s, 500ms\n"
	"      --hist GLOB           instead of the table: how the durations of these functions'\n"
	"                            calls are spread; may be repeated\n"
	"      --interval TIME       a table of what was counted in each TIME, again and again\n"
	"      --to FORMAT           the figures of each interval for ClickHouse, OpenTelemetry\n"
	"                            or Prometheus: clickhouse, otlp, prometheus\n"
	"  -l, --filter GLOB         only these functions; may be repeated\n"
	"  -n, --notrace GLOB        not these functions; may be repeated\n"
	"  -g, --graph GLOB          only what is called below these; may be repeated\n"
	"      --libs                also the system's libraries\n"
	"      --lib GLOB            also system libraries whose name matches; may be repeated\n"
	"      --unprepared          also functions compiled without tracing support\n"
	"      --no-fork             leave the program's children alone\n"
	"      --sort KEY            total (default), self, calls, avg, stddev, name\n"
	"      --limit N             only the first N rows\n"
	"      --format FORMAT       text (default) or csv, with times in nanoseconds\n"
	"      --names WHICH         short (default on terminals: C++ and Rust without\n"
	"                            template arguments), full\n"
	"      --create-table        only print the statement that makes ClickHouse's table\n"
	"  -o, --output FILE         the table goes there (- is stdout); with --to also\n"
	"                            http://HOST:PORT, the server that takes it\n"
	"  -h, --help                this text\n"
	"\n"
	"Exit codes: the program's own; if a signal killed it, graftrace dies of the same\n"
	"one. 127: no such program, 126: it cannot be run, 1: it cannot be profiled, 2: the\n"
	"command line is wrong.\n";

enum {
	OPTION_SORT = 256,
	OPTION_LIMIT,
	OPTION_FORMAT,
	OPTION_NAMES,
	OPTION_LIBS,
	OPTION_LIB,
	OPTION_UNPREPARED,
	OPTION_NO_FORK,
	OPTION_CHILDREN,
	OPTION_FOR,
	OPTION_INTERVAL,
	OPTION_TO,
	OPTION_CREATE_TABLE,
	OPTION_HIST,
};

static const struct option options_known[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "children", no_argument, NULL, OPTION_CHILDREN },
	{ "for", required_argument, NULL, OPTION_FOR },
	{ "hist", required_argument, NULL, OPTION_HIST },
	{ "interval", required_argument, NULL, OPTION_INTERVAL },
	{ "create-table", no_argument, NULL, OPTION_CREATE_TABLE },
	{ "to", required_argument, NULL, OPTION_TO },
	{ "filter", required_argument, NULL, 'l' },
	{ "notrace", required_argument, NULL, 'n' },
	{ "graph", required_argument, NULL, 'g' },
	{ "libs", no_argument, NULL, OPTION_LIBS },
	{ "lib", required_argument, NULL, OPTION_LIB },
	{ "unprepared", no_argument, NULL, OPTION_UNPREPARED },
	{ "no-fork", no_argument, NULL, OPTION_NO_FORK },
	{ "sort", required_argument, NULL, OPTION_SORT },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "names", required_argument, NULL, OPTION_NAMES },
	{ "output", required_argument, NULL, 'o' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct arguments {
	struct gt_trace_settings settings;
	const char **libs, **hists; /* NULL-terminated, malloc'ed */
	const char *names;	    /* --names; NULL: as the place wants it */
	const char *output;	    /* NULL: stderr; stdout with pids */
	int32_t *pids;
	size_t pid_count;
	uint64_t for_ns;		    /* 0 = to the end */
	uint64_t interval_ns;		    /* 0: one table at the end */
	const struct gt_counted_format *to; /* NULL: tables */
	bool children, libraries, unprepared, no_fork, create_table;
	struct gt_profile_table table;
	char **argv;
};

static void add(const char **list, const char *word)
{
	while (*list != NULL)
		list++;
	*list = word;
}

static int take_format(struct arguments *arguments, struct gt_message *message)
{
	struct gt_proposal nearest = { .word = NULL };
	const struct gt_counted_format *format = gt_counted_formats;

	for (; format->name != NULL; format++) {
		if (strcmp(format->name, optarg) == 0) {
			arguments->to = format;
			return 0;
		}
		gt_propose(&nearest, optarg, format->name);
	}
	return gt_fail(message, GT_EINVAL,
		       "--to '%.80s' is none of clickhouse, otlp, prometheus%s%s%s", optarg,
		       nearest.word != NULL ? "; did you mean '" : "",
		       nearest.word != NULL ? nearest.word : "", nearest.word != NULL ? "'?" : "");
}

/* Returns 0, or GT_EINVAL with the message. */
static int take(int option, struct arguments *arguments, struct gt_message *message)
{
	switch (option) {
	case 'p':
	case 'P':
		return gt_value_pids(optarg, &arguments->pids, &arguments->pid_count, message);
	case OPTION_CHILDREN:
		arguments->children = true;
		break;
	case OPTION_FOR:
		return gt_value_time(optarg, 1000000000, &arguments->for_ns, message);
	case OPTION_INTERVAL:
		if (gt_value_time(optarg, 1000000000, &arguments->interval_ns, message) != 0)
			return GT_EINVAL;
		if (arguments->interval_ns >= LEAST_INTERVAL_NS)
			break;
		return gt_fail(message, GT_EINVAL,
			       "--interval '%.80s' is too short: 100ms at least", optarg);
	case OPTION_CREATE_TABLE:
		arguments->create_table = true;
		break;
	case OPTION_TO:
		return take_format(arguments, message);
	case OPTION_HIST:
		add(arguments->hists, optarg);
		break;
	case 'l':
		return gt_settings_add(&arguments->settings, GT_LIST_FILTER, optarg, message);
	case 'n':
		return gt_settings_add(&arguments->settings, GT_LIST_NOTRACE, optarg, message);
	case 'g':
		return gt_settings_add(&arguments->settings, GT_LIST_GRAPH, optarg, message);
	case 'o':
		arguments->output = optarg;
		break;
	case OPTION_NAMES:
		arguments->names = optarg;
		return gt_look_names(optarg, -1, &arguments->table.brief, message);
	case OPTION_LIB:
		add(arguments->libs, optarg);
		break;
	case OPTION_LIBS:
		arguments->libraries = true;
		break;
	case OPTION_UNPREPARED:
		arguments->unprepared = true;
		break;
	case OPTION_NO_FORK:
		arguments->no_fork = true;
		break;
	case OPTION_LIMIT:
		return gt_value_number(optarg, 1, UINT32_MAX, &arguments->table.limit, message);
	case OPTION_FORMAT:
		arguments->table.csv = strcmp(optarg, "csv") == 0;
		if (arguments->table.csv || strcmp(optarg, "text") == 0)
			break;
		return gt_fail(message, GT_EINVAL, "--format '%.80s' is none of text, csv", optarg);
	case OPTION_SORT:
		if (gt_profile_table_sort_by(optarg))
			return 0;
		return gt_fail(
			message, GT_EINVAL,
			"cannot sort by '%.80s': it is total, self, calls, avg, stddev or name",
			optarg);
	}
	return 0;
}

static int usage(const char *what)
{
	gt_complain(NAME, "%s", what);
	return gt_usage_error(NAME);
}

/* Returns -1 to go on, or the exit code. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	struct gt_message message = { "" };
	size_t words = (size_t)argc + 1;
	int option;

	*arguments = (struct arguments){
		.settings = { .tracer = GRAFTRACE_TRACER_NOP, .on = true },
		.libs = calloc(words, sizeof(char *)),
		.hists = calloc(words, sizeof(char *)),
	};
	if (arguments->libs == NULL || arguments->hists == NULL) {
		gt_complain(NAME, "no memory");
		return GT_EXIT_FAILED;
	}
	while ((option = gt_next_option(argc, argv, "+P:p:l:n:g:o:h", options_known)) != -1) {
		if (option == '?')
			return gt_usage_error(NAME);
		if (option == 'h') {
			return gt_print_help(help);
		}
		if (take(option, arguments, &message) != 0)
			return usage(message.text);
	}
	if (arguments->create_table) {
		if (arguments->to == NULL || arguments->to->create_table == NULL)
			return usage("--create-table is of --to clickhouse");
		return printf("%s;\n", arguments->to->create_table) > 0 && fflush(stdout) == 0
			       ? GT_EXIT_DONE
			       : GT_EXIT_FAILED;
	}
	if (arguments->pid_count > 0 && optind < argc)
		return usage("either a program is run, or -P names processes that run already");
	if (arguments->pid_count == 0 && optind >= argc)
		return usage("the program to run is missing");
	if (arguments->pid_count == 0 && arguments->children)
		return usage("--children says what -P takes: a program that is run has none yet");
	if (arguments->to != NULL && arguments->table.csv)
		return usage("--format is of tables, and --to of something else: one of them");
	if (arguments->hists[0] != NULL && (arguments->interval_ns != 0 || arguments->to != NULL))
		return usage(
			"--hist is of the whole run: neither --interval nor --to goes with it");
	if (arguments->output != NULL && strstr(arguments->output, "://") != NULL &&
	    arguments->to == NULL)
		return usage("a server takes the formats of --to, no tables");
	if (arguments->pid_count == 0)
		arguments->argv = argv + optind;
	if (arguments->output == NULL) {
		int fd = arguments->pid_count > 0 ? STDOUT_FILENO : STDERR_FILENO;

		if (arguments->names == NULL)
			arguments->table.brief = isatty(fd);
		arguments->table.width = gt_look_width_of(fd);
	}
	return -1;
}

/* Returns 0, or an error that has been reported. */
static int write_table(const struct arguments *arguments, struct gt_session *session,
		       const struct gt_profile_row *rows, uint32_t count)
{
	struct gt_message message = { "" };
	struct gt_output output;
	char *text = NULL;
	size_t bytes = 0, done = 0;
	FILE *memory = open_memstream(&text, &bytes);
	int fd = arguments->pid_count > 0 ? STDOUT_FILENO : STDERR_FILENO, error = 0;

	if (memory == NULL) {
		gt_complain(NAME, "no memory");
		return GT_ENOMEM;
	}
	if (arguments->hists[0] != NULL) {
		uint64_t starts_ns[GT_DURATIONS];

		gt_session_profile_starts(session, starts_ns);
		if (!gt_profile_hists_print(memory, &arguments->table, arguments->hists, starts_ns,
					    rows, count) &&
		    (count != 0 || arguments->pid_count == 0))
			gt_complain(NAME, "no function that matches --hist was called");
	} else {
		gt_profile_table_print(memory, &arguments->table, rows, count);
	}
	fclose(memory);
	if (arguments->output != NULL) {
		error = gt_output_open(&output, arguments->output, &message);
		fd = output.fd;
	}
	while (error == 0 && done < bytes) {
		ssize_t got = write(fd, text + done, bytes - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == EPIPE)
			break; /* the reader has closed the pipe */
		if (got < 0) {
			error = GT_EIO;
			gt_message_set(&message, "cannot write: %s", strerror(errno));
			if (arguments->output != NULL)
				gt_output_abandon(&output);
			break;
		}
		done += (size_t)got;
	}
	if (error == 0 && arguments->output != NULL)
		error = gt_output_commit(&output, &message);
	if (error != 0)
		gt_complain(NAME, "%s", message.text);
	free(text);
	return error;
}

static void report_lost(struct gt_session *session)
{
	struct gt_session_totals totals;
	uint64_t lost;

	gt_session_totals(session, &totals);
	lost = totals.lost[GRAFTRACE_LOST_PROFILE] + totals.lost[GRAFTRACE_LOST_DEPTH];
	if (lost)
		gt_complain(NAME, "%llu calls are not in the table: %s", (unsigned long long)lost,
			    totals.lost[GRAFTRACE_LOST_PROFILE]
				    ? "there was no room for more functions and threads"
				    : "too many calls were open at a time");
	if (totals.lost[GRAFTRACE_LOST_STREAM])
		gt_complain(NAME, "there were too many threads at a time: some were not counted");
}

/* The run */

static int finish(const struct arguments *arguments, struct gt_session *session)
{
	struct gt_profile_row *rows;
	uint32_t count;
	int error = gt_session_profile(session, 0, false, &rows, &count);

	if (error != 0) {
		gt_complain(NAME, "no memory for the table");
		return error;
	}
	gt_profile_table_sort(rows, count);
	if (count == 0 && arguments->pid_count > 0)
		gt_complain(NAME, "no function that is counted was called meanwhile: look at "
				  "--filter, --graph, --libs and --children");
	error = write_table(arguments, session, rows, count);
	free(rows);
	report_lost(session);
	return error;
}

/* Are the figures written once an interval? */
static bool by_intervals(const struct arguments *arguments)
{
	return arguments->interval_ns != 0 || arguments->to != NULL;
}

static int start_intervals(const struct arguments *arguments, struct gt_session *session,
			   char program[PATH_MAX], struct gt_intervals **intervals)
{
	pid_t pid = arguments->argv != NULL ? gt_session_pid(session) : arguments->pids[0];
	struct gt_message message = { "" };
	struct gt_intervals_options options = {
		.command = NAME,
		.format = arguments->to,
		.table = arguments->table,
		.output = arguments->output,
		.fd = arguments->argv != NULL ? STDERR_FILENO : STDOUT_FILENO,
		.pid = (uint32_t)pid,
		.program = program,
	};
	char link[64];
	ssize_t length;

	/* Figures in another tool's format are not mixed with the program's messages. */
	if (arguments->to != NULL)
		options.fd = STDOUT_FILENO;
	if (options.table.limit == 0 && !options.table.csv)
		options.table.limit = INTERVAL_ROWS;
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	length = readlink(link, program, PATH_MAX - 1);
	program[length > 0 ? length : 0] = '\0';
	if (length <= 0 && arguments->argv != NULL)
		snprintf(program, PATH_MAX, "%s", arguments->argv[0]);
	if (gt_intervals_create(&options, intervals, &message) == 0)
		return 0;
	gt_complain(NAME, "%s", message.text);
	return GT_EIO;
}

/* Runs until all processes have ended or are left: attached ones at Ctrl-C and SIGTERM, all of
 * them when the time is over, or when the figures can no longer be written; *lost is then the
 * error. Returns as gt_session_poll does. */
static int follow(const struct arguments *arguments, struct gt_session *session,
		  struct gt_intervals *intervals, bool *left, int *lost, struct gt_message *message)
{
	uint64_t start = gt_monotonic_ns(), ticked = start;
	bool attached = arguments->pid_count > 0;
	int state;

	while ((state = gt_session_poll(session, POLL_MS, message)) > 0) {
		int signal = gt_run_to_forward;
		uint64_t now = gt_monotonic_ns();
		bool late = arguments->for_ns != 0 && now - start >= arguments->for_ns;

		if (intervals != NULL && arguments->interval_ns && !*left && *lost == 0 &&
		    now - ticked >= arguments->interval_ns) {
			ticked = now;
			*lost = gt_intervals_tick(intervals, session, false);
		}
		late |= *lost != 0;

		if (!*left && (late || (attached && (signal != 0 || gt_run_interrupted)))) {
			struct gt_message why = { "" };

			*left = true;
			gt_session_detach(session, &why);
			if (why.text[0] != '\0')
				gt_complain(NAME, "%s", why.text);
		} else if (signal != 0 && !attached) {
			gt_run_to_forward = 0;
			gt_session_signal(session, signal);
		}
	}
	return state;
}

static void report_untraced(struct gt_session *session)
{
	struct gt_session_untraced untraced;

	for (uint32_t i = 0; gt_session_untraced(session, i, &untraced); i++)
		gt_complain(NAME, "process %d %s: %s", (int)untraced.pid,
			    untraced.is_traced ? "stays traced" : "runs untraced", untraced.why);
}

static void report_attached(const struct arguments *arguments, struct gt_session *session)
{
	struct gt_session_totals totals;

	gt_session_totals(session, &totals);
	fprintf(stderr,
		"graftrace: counting calls of process %d%s (its threads were stopped for %.1f ms), "
		"until %sCtrl-C or its end\n",
		(int)arguments->pids[0], totals.processes > 1 ? " and others" : "",
		(double)totals.stopped_ns / 1e6, arguments->for_ns ? "the time is over, " : "");
}

static int run(const struct arguments *arguments)
{
	struct gt_message message = { "" };
	struct gt_session *session = NULL;
	struct gt_session_options options = {
		.size = sizeof(options),
		.argv = arguments->argv,
		.pids = arguments->pids,
		.pid_count = arguments->pid_count,
		.children = arguments->children,
		.settings = arguments->settings,
		.mode = GRAFTRACE_MODE_RING,
		.no_fork = arguments->no_fork,
		.no_switches = true,
		.libraries = arguments->libraries,
		.library_globs = arguments->libs,
		.unprepared = arguments->unprepared,
		.profile = true,
	};
	struct gt_intervals *intervals = NULL;
	char *program = NULL, path[PATH_MAX];
	bool left = false;
	int state, error, status = 0, lost = 0;
	int code = arguments->argv != NULL ? gt_run_find_program(NAME, arguments->argv[0], &program)
					   : 0;

	free(program);
	if (code != 0)
		return code;
	gt_run_handle_signals();
	gt_progress_waiting(arguments->argv != NULL ? "getting the program ready" : "attaching");
	error = gt_session_start(&options, &session, &message);
	gt_progress_end();
	if (error != 0) {
		gt_complain(NAME, "%s", message.text);
		return arguments->argv != NULL ? gt_run_not_started(error) : GT_EXIT_FAILED;
	}
	if (arguments->argv == NULL)
		report_attached(arguments, session);
	if (by_intervals(arguments))
		lost = start_intervals(arguments, session, path, &intervals);
	state = follow(arguments, session, intervals, &left, &lost, &message);
	if (state < 0)
		gt_complain(NAME, "%s", message.text);
	if (!by_intervals(arguments))
		error = finish(arguments, session);
	else if (lost == 0)
		error = gt_intervals_tick(intervals, session, true);
	else
		error = lost;
	if (error == GT_ENOENT) /* the reader has closed the pipe */
		error = 0;
	if (by_intervals(arguments))
		report_lost(session);
	report_untraced(session);
	if (intervals != NULL)
		gt_intervals_destroy(intervals);
	if (arguments->argv != NULL)
		status = gt_run_wait(session);
	gt_session_destroy(session);
	return error != 0 || state < 0 ? GT_EXIT_FAILED : gt_run_end_as(status);
}

int gt_cmd_profile(int argc, char **argv)
{
	struct arguments arguments;
	int code = parse(argc, argv, &arguments);

	if (code < 0)
		code = run(&arguments);
	gt_trace_settings_fini(&arguments.settings);
	free(arguments.libs);
	free(arguments.hists);
	free(arguments.pids);
	return code;
}
