/* SPDX-License-Identifier: MIT */
/* graftrace diff: what differs between two recordings, or between the runs of two sides. */
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
#include "cli/progress.h"
#include "cli/output.h"
#include "cli/values.h"
#include "core/trace/message.h"
#include "export/diff.h"
#include "export/diff_flame.h"

#define NAME "diff"

static const char help[] =
	"Usage: graftrace diff [OPTION...] A B\n"
	"       graftrace diff [OPTION...] A1 A2... -- B1 B2...\n\n"
	"Prints what differs from recording A to recording B, function by function: what got\n"
	"slower or faster, is new or gone. With several runs of each side the figures are\n"
	"means of a side's runs, p is the probability of such a difference between runs of\n"
	"the same program, and what stands out from that noise has a star.\n\n"
	"  -s, --sort KEY             by how much this changed: self (default), total, calls,\n"
	"                             p50, p99; or by name\n"
	"      --limit N              only the first N rows (0: all; default 40 on a terminal)\n"
	"      --format FORMAT        text (default), json, with times in nanoseconds; svg: a\n"
	"                             flame graph, red where B takes longer, blue where less\n"
	"  -g, --graph GLOB           only these functions and what they call (repeatable;\n"
	"                             not of a flame graph)\n"
	"  -o, --output FILE          where to (default: stdout; svg: diff.svg)\n"
	"      --names WHICH          short (default on terminals: C++ and Rust without template\n"
	"                             arguments), full\n"
	"      --color WHEN           auto (default), always, never\n"
	"      --no-pager             write to the terminal at once\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be made, or not of all that was recorded; 2 wrong\n"
	"command line.\n";

enum { OPTION_LIMIT = 256, OPTION_FORMAT, OPTION_COLOR, OPTION_NO_PAGER, OPTION_NAMES };
enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SVG };

static const struct option options[] = {
	{ "sort", required_argument, NULL, 's' },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "graph", required_argument, NULL, 'g' },
	{ "output", required_argument, NULL, 'o' },
	{ "names", required_argument, NULL, OPTION_NAMES },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "no-pager", no_argument, NULL, OPTION_NO_PAGER },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

#define GLOBS_MAX 256

struct arguments {
	const char *sides[2][GT_DIFF_RUNS_MAX];
	uint32_t runs[2];
	char *programs[2];	/* of the first run of each; NULL: not known */
	char headlines[2][640]; /* … and gt_look_headline() */
	enum gt_diff_key sort;
	enum format format;
	const char *output;
	const char *globs[GLOBS_MAX + 1];
	size_t globs_count;
	uint64_t limit;
	bool limited;
	bool color;
	bool brief;
	bool pager;
	struct gt_diff diff;
};

static int parse_format(const char *text, enum format *format, struct gt_message *message)
{
	static const char *const formats[] = { "text", "json", "svg" };

	for (int i = 0; i < 3; i++)
		if (strcmp(text, formats[i]) == 0) {
			*format = (enum format)i;
			return 0;
		}
	return gt_fail(message, GT_EINVAL, "--format '%s' is none of text, json, svg", text);
}

static int add_run(struct arguments *arguments, unsigned side, const char *path,
		   struct gt_message *message)
{
	if (arguments->runs[side] == GT_DIFF_RUNS_MAX)
		return gt_fail(message, GT_EINVAL, "more than %d runs of a side", GT_DIFF_RUNS_MAX);
	arguments->sides[side][arguments->runs[side]++] = path;
	return 0;
}

/* Without "--" two recordings are meant, one a side. */
static int take_sides(struct arguments *arguments, int argc, char **argv)
{
	struct gt_message message = { "" };
	int error = 0;

	if (optind < argc)
		for (int i = optind; i < argc && error == 0; i++)
			error = add_run(arguments, 1, argv[i], &message);
	else if (arguments->runs[0] == 2)
		arguments->sides[1][arguments->runs[1]++] =
			arguments->sides[0][--arguments->runs[0]];
	if (error == 0 && arguments->runs[0] && arguments->runs[1])
		return 0;
	if (error == 0)
		gt_message_set(&message, "%s",
			       arguments->runs[0] > 2
				       ? "which of these runs are of the second side? Say -- "
					 "before them: graftrace diff A1 A2 -- B1 B2"
				       : "which two recordings? graftrace diff A B");
	gt_complain(NAME, "%s", message.text);
	return GT_EINVAL;
}

/* Returns 0, or an exit code + 1 if the command is to end now. */
static int parse(int argc, char **argv, struct arguments *arguments)
{
	const char *color = "auto", *names = NULL;
	struct gt_message message = { "" };
	int option;

	optind = 1;
	/* '-': getopt returns operands in their order; those after "--" are the runs of side B. */
	while ((option = gt_next_option(argc, argv, "-s:g:o:h", options)) != -1) {
		int error = 0;
		switch (option) {
		case 1:
			error = add_run(arguments, 0, optarg, &message);
			break;
		case 's':
			error = gt_diff_parse_key(optarg, &arguments->sort, &message);
			break;
		case OPTION_LIMIT:
			error = gt_value_number(optarg, 0, UINT32_MAX, &arguments->limit, &message);
			arguments->limited = true;
			break;
		case OPTION_FORMAT:
			error = parse_format(optarg, &arguments->format, &message);
			break;
		case 'g':
			if (arguments->globs_count == GLOBS_MAX) {
				gt_message_set(&message, "more than %d -g", GLOBS_MAX);
				error = GT_EINVAL;
				break;
			}
			arguments->globs[arguments->globs_count++] = optarg;
			break;
		case 'o':
			arguments->output = optarg;
			break;
		case OPTION_NAMES:
			names = optarg;
			break;
		case OPTION_COLOR:
			color = optarg;
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
	if (take_sides(arguments, argc, argv) != 0)
		return 1 + gt_usage_error(NAME);
	if (gt_look_color(color, STDOUT_FILENO, &arguments->color, &message) != 0 ||
	    gt_look_names(names, STDOUT_FILENO, &arguments->brief, &message) != 0) {
		gt_complain(NAME, "%s", message.text);
		return 1 + gt_usage_error(NAME);
	}
	if (arguments->format == FORMAT_SVG && arguments->globs_count) {
		gt_complain(NAME, "a flame graph has all functions: leave out -g");
		return 1 + gt_usage_error(NAME);
	}
	if (!arguments->limited && isatty(STDOUT_FILENO) && arguments->output == NULL)
		arguments->limit = 40;
	return 0;
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Returns a copy of the program's path, NULL if that cannot be told. */
static char *program_of(const char *path)
{
	struct gt_recording *recording;
	struct gt_message message;
	char *program = NULL;

	if (gt_recording_open(path, &recording, &message) != 0)
		return NULL;
	program = strdup(gt_recording_info(recording)->program);
	gt_recording_close(recording);
	return program;
}

/* Returns what is compared as the program: of a run that was started by another program (taskset, env, a shell)
 * the file that is the other side's program. */
static const char *compared_program(struct gt_recording *recording, const char *other)
{
	const char *own = gt_recording_info(recording)->program;
	struct gt_recording_object object;

	if (other == NULL || other[0] == '\0' || strcmp(file_of(own), file_of(other)) == 0)
		return own;
	for (uint32_t i = 0; gt_recording_object(recording, i, &object) == 0; i++)
		if (strcmp(file_of(object.path), file_of(other)) == 0)
			return other;
	return own;
}

/* Adds one run to the table, or to the flame graph. GT_EXIT_FAILED: its recording cannot be
 * opened or is damaged. */
static int take_run(struct arguments *arguments, struct gt_diff_flame *flame, unsigned side,
		    const char *path, bool *usable)
{
	const struct gt_report_options wanted = {
		.by = GT_REPORT_FUNCTION,
		.graph = arguments->globs_count ? arguments->globs : NULL,
	};
	struct gt_recording *recording = gt_look_open(NAME, path);
	struct gt_message message = { "not enough memory" };
	struct gt_report *report = NULL;
	int error, result;

	*usable = recording != NULL;
	if (recording == NULL)
		return GT_EXIT_FAILED;
	const char *program = compared_program(recording, arguments->programs[!side]);
	if (arguments->headlines[side][0] == '\0')
		gt_look_headline(recording, path, arguments->headlines[side],
				 sizeof(arguments->headlines[side]));
	gt_progress_reading(recording, flame != NULL ? 2 : 1);
	if (flame != NULL) {
		error = gt_diff_flame_add(flame, side, gt_recording_target(recording), program);
	} else {
		error = gt_report_make(gt_recording_target(recording), &wanted, &report, &message);
		if (error == 0)
			error = gt_diff_add(&arguments->diff, side, report, program);
		gt_report_destroy(report);
	}
	if (error != 0) {
		gt_complain(NAME, "'%s': %s", path, message.text);
		*usable = false;
	}
	gt_progress_end();
	result = gt_look_tell(NAME, path, recording);
	gt_recording_close(recording);
	return error != 0 ? GT_EXIT_FAILED : result;
}

/* On a terminal, as all views begin: which program, file and time each side is. */
static void put_headlines(const struct arguments *arguments, struct gt_out *out)
{
	for (unsigned side = 0; side < 2; side++) {
		gt_out_printf(out, "# %c: %s", side ? 'B' : 'A', arguments->headlines[side]);
		if (arguments->runs[side] > 1)
			gt_out_printf(out, ", and %" PRIu32 " more", arguments->runs[side] - 1);
		gt_out_char(out, '\n');
	}
}

static int write_diff(struct arguments *arguments, struct gt_diff_flame *flame, int fd,
		      uint32_t width, int *reason)
{
	char title[512];
	struct gt_out out;
	int error = gt_out_init(&out, fd);

	if (error != 0)
		return error;
	if (flame != NULL) {
		snprintf(title, sizeof(title), "from %.200s to %.200s: red takes longer, blue less",
			 arguments->sides[0][0], arguments->sides[1][0]);
		error = gt_diff_flame_write(flame, title, &out);
	} else if (arguments->format == FORMAT_JSON) {
		gt_diff_write_json(&arguments->diff, (size_t)arguments->limit, &out);
	} else {
		if (arguments->output == NULL && isatty(STDOUT_FILENO))
			put_headlines(arguments, &out);
		gt_diff_write_text(&arguments->diff, (size_t)arguments->limit, width,
				   arguments->color, arguments->brief, &out);
	}
	if (error == 0)
		error = gt_out_flush(&out);
	*reason = out.error;
	gt_out_fini(&out);
	return error;
}

static int write_result(struct arguments *arguments, struct gt_diff_flame *flame)
{
	struct gt_message message = { "" };
	struct gt_output output;
	struct gt_pager pager;
	int error, reason = 0;

	signal(SIGPIPE, SIG_IGN);
	if (arguments->output == NULL) {
		gt_pager_start(&pager, arguments->pager);
		error = write_diff(arguments, flame, pager.fd, gt_look_width(), &reason);
		gt_pager_stop(&pager);
		if (error == GT_EIO && reason == EPIPE)
			return GT_EXIT_DONE;
	} else {
		if (gt_output_open(&output, arguments->output, &message) != 0) {
			gt_complain(NAME, "%s", message.text);
			return GT_EXIT_FAILED;
		}
		error = write_diff(arguments, flame, output.fd, 0, &reason);
		if (error != 0) {
			gt_output_abandon(&output);
		} else if (gt_output_commit(&output, &message) != 0) {
			gt_complain(NAME, "%s", message.text);
			return GT_EXIT_FAILED;
		}
	}
	if (error == GT_ENOMEM)
		gt_complain(NAME, "out of memory");
	else if (error != 0)
		gt_complain(NAME, "cannot write: %s", strerror(reason));
	return error == 0 ? GT_EXIT_DONE : GT_EXIT_FAILED;
}

static int run(struct arguments *arguments)
{
	const bool is_default = arguments->format == FORMAT_SVG && arguments->output == NULL;
	struct gt_diff_flame *flame = NULL;
	int result = GT_EXIT_DONE;
	bool usable = true;

	if (arguments->format == FORMAT_SVG) {
		flame = gt_diff_flame_create();
		if (flame == NULL) {
			gt_complain(NAME, "out of memory");
			return GT_EXIT_FAILED;
		}
		if (is_default)
			arguments->output = "diff.svg";
	}
	for (unsigned side = 0; side < 2; side++)
		arguments->programs[side] = program_of(arguments->sides[side][0]);
	for (unsigned side = 0; side < 2; side++)
		for (uint32_t i = 0; i < arguments->runs[side] && usable; i++)
			if (take_run(arguments, flame, side, arguments->sides[side][i], &usable) !=
			    GT_EXIT_DONE)
				result = GT_EXIT_FAILED;
	if (usable && flame == NULL && gt_diff_finish(&arguments->diff, arguments->sort) != 0) {
		gt_complain(NAME, "out of memory");
		usable = false;
	}
	if (!usable || write_result(arguments, flame) != GT_EXIT_DONE)
		result = GT_EXIT_FAILED;
	else if (is_default)
		gt_complain(NAME, "the flame graph is in diff.svg (-o FILE: elsewhere)");
	gt_diff_flame_destroy(flame);
	free(arguments->programs[0]);
	free(arguments->programs[1]);
	return result;
}

int gt_cmd_diff(int argc, char **argv)
{
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	int result;

	if (arguments == NULL) {
		gt_complain(NAME, "out of memory");
		return GT_EXIT_FAILED;
	}
	arguments->pager = true;
	gt_diff_init(&arguments->diff);
	result = parse(argc, argv, arguments);
	result = result != 0 ? result - 1 : run(arguments);
	gt_diff_fini(&arguments->diff);
	free(arguments);
	return result;
}
