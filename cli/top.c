/* SPDX-License-Identifier: MIT */
/*
 * graftrace top: what a program does now, or what a recording has, as a table on the whole
 * terminal. The newest calls of a running program are kept in memory and read once an interval;
 * nothing is written to disk.
 */
#define _GNU_SOURCE
#include "cli/command.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/process/clock.h"
#include "attach/session/session.h"
#include "cli/looking.h"
#include "cli/record_report.h"
#include "cli/running.h"
#include "cli/session_options.h"
#include "cli/top_screen.h"
#include "cli/values.h"
#include "core/trace/message.h"

#define NAME	     "top"
#define KEY_MS	     50
#define LEAVE_MS     3000 /* for a program to end in, before we detach from it */
#define BUFFER_BYTES (16u << 20)

static const char help[] =
	"Usage: graftrace top [OPTION...] -P PID\n"
	"       graftrace top [OPTION...] -- PROGRAM [ARGUMENT...]\n"
	"       graftrace top [FILE]\n\n"
	"Shows the functions of a process, of a program that is started, or of a recording\n"
	"(default: graftrace.data), on the whole terminal: shares, calls, times and\n"
	"percentiles, of a live program those of the last interval. The key ? lists the\n"
	"others: sort, filter, callers and callees, the slowest call, stop and start.\n\n"
	"  -P, --pid PID[,PID...]     these processes; they are left as they were (-p\n"
	"                             PID is the same)\n"
	"  -d, --interval TIME        of a live program (default 1s)\n"
	"  -l, --filter GLOB          only these functions (repeatable)\n"
	"  -n, --notrace GLOB         not these functions (repeatable)\n"
	"      --libs                 also the system's libraries\n"
	"      --lib GLOB             also system libraries whose name matches (repeatable)\n"
	"  -b, --buffer-size SIZE     memory for the newest calls (default 16M)\n"
	"  -o, --output FILE          where the program's output goes (default: nowhere)\n"
	"  -i, --input FILE           the same as FILE\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be shown; 2 wrong command line; 127, 126: the\n"
	"program is not there, or cannot be run.\n";

enum { OPTION_LIBS = 256, OPTION_LIB };

static const struct option options_known[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "interval", required_argument, NULL, 'd' },
	{ "filter", required_argument, NULL, 'l' },
	{ "notrace", required_argument, NULL, 'n' },
	{ "libs", no_argument, NULL, OPTION_LIBS },
	{ "lib", required_argument, NULL, OPTION_LIB },
	{ "buffer-size", required_argument, NULL, 'b' },
	{ "output", required_argument, NULL, 'o' },
	{ "input", required_argument, NULL, 'i' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

#define GLOBS_MAX 256

struct globs {
	const char *list[GLOBS_MAX + 1];
	size_t count;
};

struct arguments {
	const char *path;
	char **argv; /* NULL: no program is started */
	int32_t *pids;
	size_t pid_count;
	struct gt_trace_settings settings;
	struct globs libs;
	bool libraries;
	uint64_t interval_ns, buffer_bytes;
	const char *output;
};

static int add(struct globs *globs, const char *glob, struct gt_message *message)
{
	if (globs->count == GLOBS_MAX)
		return gt_fail(message, GT_EINVAL, "more than %d globs", GLOBS_MAX);
	globs->list[globs->count++] = glob;
	return 0;
}

static int take(int option, struct arguments *arguments, struct gt_message *message)
{
	switch (option) {
	case 'p': /* as perf top, top and htop have it */
	case 'P':
		return gt_value_pids(optarg, &arguments->pids, &arguments->pid_count, message);
	case 'd':
		return gt_value_time(optarg, 1000000000, &arguments->interval_ns, message);
	case 'l':
		return gt_settings_add(&arguments->settings, GT_LIST_FILTER, optarg, message);
	case 'n':
		return gt_settings_add(&arguments->settings, GT_LIST_NOTRACE, optarg, message);
	case OPTION_LIB:
		return add(&arguments->libs, optarg, message);
	case OPTION_LIBS:
		arguments->libraries = true;
		return 0;
	case 'b':
		return gt_value_size(optarg, &arguments->buffer_bytes, message);
	case 'o':
		arguments->output = optarg;
		return 0;
	default:
		arguments->path = optarg;
		return 0;
	}
}

/* Operands after "--" are a program, without it a recording. Returns 0, or GT_EXIT_USAGE. */
static int take_operands(struct arguments *arguments, int argc, char **argv)
{
	bool is_program = optind > 1 && optind < argc && strcmp(argv[optind - 1], "--") == 0;

	if (is_program)
		arguments->argv = argv + optind;
	else if (argc - optind == 1 && arguments->path == NULL)
		arguments->path = argv[optind];
	else if (optind < argc) {
		gt_complain(NAME, "one recording at a time; a program to start stands behind --: "
				  "graftrace top -- PROGRAM");
		return gt_usage_error(NAME);
	}
	if ((arguments->argv != NULL) + (arguments->pid_count > 0) + (arguments->path != NULL) >
	    1) {
		gt_complain(NAME, "a process, a program or a recording: one of them");
		return gt_usage_error(NAME);
	}
	if (arguments->argv == NULL && !arguments->pid_count && arguments->path == NULL)
		arguments->path = GT_DEFAULT_RECORDING;
	return 0;
}

/* Returns 0, or an exit code + 1 if the command is to end now. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	struct gt_message message = { "" };
	int option, code;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "+P:p:d:l:n:b:o:i:h", options_known)) != -1) {
		if (option == 'h')
			return 1 + gt_print_help(help);
		if (option == '?')
			return 1 + gt_usage_error(NAME);
		if (take(option, arguments, &message) != 0) {
			gt_complain(NAME, "%s", message.text);
			return 1 + gt_usage_error(NAME);
		}
	}
	code = take_operands(arguments, argc, argv);
	return code ? 1 + code : 0;
}

/* ---- a recording ---- */

static int show_recording(const struct arguments *arguments)
{
	struct gt_recording *recording = gt_look_open(NAME, arguments->path);
	struct gt_message message = { "" };
	struct gt_top_screen *screen;
	int result = GT_EXIT_FAILED, error;
	char title[640];

	if (recording == NULL)
		return GT_EXIT_FAILED;
	if (gt_top_screen_open(&screen, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		gt_recording_close(recording);
		return GT_EXIT_FAILED;
	}
	gt_look_headline(recording, arguments->path, title, sizeof(title));
	const struct gt_top_head head = { .title = title, .state = "recorded" };
	error = gt_top_screen_read(screen, gt_recording_target(recording), 0, 0);
	gt_run_handle_signals();
	while (error == 0 && !gt_run_to_forward) {
		gt_top_screen_draw(screen, &head);
		if (gt_top_screen_key(screen, 500) == GT_TOP_QUIT)
			break;
	}
	gt_top_screen_close(screen);
	if (error != 0)
		gt_complain(NAME, "'%s': it cannot be read, or memory is short", arguments->path);
	else
		result = gt_look_tell(NAME, arguments->path, recording);
	gt_recording_close(recording);
	return result;
}

/* ---- a live program ---- */

struct live {
	struct gt_session *session;
	struct gt_top_screen *screen;
	uint64_t interval_ns, buffer_bytes;
	uint64_t stopped_ns; /* since when recording has been off; 0: it is on */
	bool stopped;	     /* by a key */
	bool ended;
};

static void stop_or_start(struct live *live)
{
	if (live->ended)
		return;
	gt_session_set_tracing_on(live->session, live->stopped);
	live->stopped = !live->stopped;
	live->stopped_ns = live->stopped ? gt_monotonic_ns() : 0;
}

/* Reads the newest interval; after recording was switched off, the last one before that. */
static int read_newest(struct live *live)
{
	uint64_t to = live->stopped_ns ? live->stopped_ns : gt_monotonic_ns();

	return gt_top_screen_read(live->screen, gt_session_target(live->session),
				  to > live->interval_ns ? to - live->interval_ns : 1, to);
}

static const char *state_of(const struct live *live)
{
	return live->ended ? "ended" : live->stopped ? "stopped" : "recording";
}

/* Runs until the user quits. */
static int follow(struct live *live, const char *title, struct gt_message *message)
{
	uint64_t next = gt_monotonic_ns() + live->interval_ns / 4; /* the first table comes early */
	int state = 1;

	while (!gt_run_to_forward) {
		const struct gt_top_head head = { title, state_of(live), live->interval_ns };
		enum gt_top_wish wish;

		gt_top_screen_draw(live->screen, &head);
		wish = gt_top_screen_key(live->screen, live->ended ? 500 : 0);
		if (wish == GT_TOP_QUIT)
			return 0;
		if (wish == GT_TOP_STOP_OR_START)
			stop_or_start(live);
		if (!live->ended)
			state = gt_session_poll(live->session, KEY_MS, message);
		if (state < 0)
			return state;
		if (state == 0 && !live->ended) {
			live->ended = true;
			live->stopped_ns = live->stopped_ns ? live->stopped_ns : gt_monotonic_ns();
			next = 0;
		}
		if (gt_top_screen_is_busy(live->screen) || gt_monotonic_ns() < next)
			continue;
		next = live->stopped_ns ? UINT64_MAX : gt_monotonic_ns() + live->interval_ns;
		int error = read_newest(live);
		if (error != 0)
			return gt_fail(message, error, "out of memory");
	}
	return 0;
}

/* Asks a program that was started here to end; detaches from an attached one. */
static void leave(struct live *live, bool started)
{
	struct gt_message message = { "" };
	uint64_t until = gt_monotonic_ns() + LEAVE_MS * 1000000ull;

	if (live->ended)
		return;
	if (started)
		gt_session_signal(live->session, SIGTERM);
	while (started && gt_monotonic_ns() < until)
		if (gt_session_poll(live->session, KEY_MS, &message) <= 0)
			return;
	message.text[0] = '\0';
	gt_session_detach(live->session, &message);
	if (message.text[0])
		gt_complain(NAME, "%s", message.text);
	while (gt_session_poll(live->session, KEY_MS, &message) > 0)
		;
}

/* The program's output goes elsewhere: it would write over the table. */
static int redirect(const struct arguments *arguments)
{
	const char *path = arguments->output != NULL ? arguments->output : "/dev/null";
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool done = in >= 0 && out >= 0 && dup2(in, STDIN_FILENO) >= 0 &&
		    dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0;

	if (!done)
		gt_complain(NAME, "cannot open '%s': %s", path, strerror(errno));
	return done ? 0 : GT_EIO;
}

static void title_of(const struct arguments *arguments, char *title, size_t bytes)
{
	size_t used;

	if (arguments->argv == NULL) {
		snprintf(title, bytes, "graftrace top: process %d%s", (int)arguments->pids[0],
			 arguments->pid_count > 1 ? " and others" : "");
		return;
	}
	used = (size_t)snprintf(title, bytes, "graftrace top:");
	for (char **word = arguments->argv; *word != NULL && used < bytes; word++)
		used += (size_t)snprintf(title + used, bytes - used, " %s", *word);
}

/* Is a program started that would show little without the calls of its libraries, and no functions were chosen? */
static bool wants_libcalls(const struct arguments *arguments, const char *program)
{
	return program != NULL && arguments->settings.lists[GT_LIST_FILTER] == NULL &&
	       arguments->settings.lists[GT_LIST_NOTRACE] == NULL && !arguments->libs.count &&
	       !arguments->libraries && gt_record_judge(program) != GT_POOR_NOT;
}

/* program: its file; NULL: none is started. */
static int show_live(const struct arguments *arguments, const char *program)
{
	struct gt_session_options options = {
		.size = sizeof(options),
		.argv = arguments->argv,
		.pids = arguments->pids,
		.pid_count = arguments->pid_count,
		.settings = arguments->settings,
		.mode = GRAFTRACE_MODE_OVERWRITE,
		.buffer_bytes = arguments->buffer_bytes,
		.libraries = arguments->libraries,
		.libcalls = wants_libcalls(arguments, program),
		.library_globs = arguments->libs.count ? arguments->libs.list : NULL,
	};
	struct live live = { .interval_ns = arguments->interval_ns };
	struct gt_message message = { "" };
	int complaints = dup(STDERR_FILENO), error, result = GT_EXIT_FAILED;
	char title[512];

	if (arguments->argv != NULL && redirect(arguments) != 0)
		goto out;
	error = gt_top_screen_open(&live.screen, &message);
	if (error == 0) {
		gt_run_handle_signals();
		error = gt_session_start(&options, &live.session, &message);
		if (error != 0) {
			result = arguments->argv != NULL ? gt_run_not_started(error)
							 : GT_EXIT_FAILED;
			gt_top_screen_close(live.screen);
		}
	}
	if (error == 0) {
		title_of(arguments, title, sizeof(title));
		error = follow(&live, title, &message);
		gt_top_screen_close(live.screen);
		if (error == 0)
			result = GT_EXIT_DONE;
	}
	if (complaints >= 0)
		dup2(complaints, STDERR_FILENO);
	if (error != 0)
		gt_complain(NAME, "%s", message.text);
	if (live.session != NULL) {
		leave(&live, arguments->argv != NULL);
		gt_session_destroy(live.session);
	}
out:
	if (complaints >= 0)
		close(complaints);
	return result;
}

int gt_cmd_top(int argc, char **argv)
{
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	char *program = NULL;
	int result;

	if (arguments == NULL) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	arguments->settings = (struct gt_trace_settings){
		.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.on = true,
	};
	arguments->interval_ns = 1000000000;
	arguments->buffer_bytes = BUFFER_BYTES;
	result = parse(argc, argv, arguments);
	if (result != 0)
		result--;
	else if (arguments->path != NULL)
		result = show_recording(arguments);
	else if (arguments->argv != NULL)
		result = gt_run_find_program(NAME, arguments->argv[0], &program);
	if (result == 0 && arguments->path == NULL &&
	    (arguments->argv != NULL || arguments->pid_count))
		result = show_live(arguments, program);
	free(program);
	gt_trace_settings_fini(&arguments->settings);
	free(arguments->pids);
	free(arguments);
	return result;
}
