/* SPDX-License-Identifier: MIT */
/*
 * graftrace probe: the lines, functions and variables of a program for which probes can be set, as
 * perf-probe(1) prints them, and the probes of a program that is being recorded or mounted: set, listed, removed.
 */
#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/object/object.h"
#include "attach/object/variables.h"
#include "cli/probe_control.h"
#include "cli/probe_lines.h"
#include "cli/values.h"
#include "core/trace/glob.h"

#define NAME "probe"

static const char help[] =
	"Usage: graftrace probe [-x PROGRAM | -P PID] -L FUNC[:N[-M]] | FILE:N[-M]\n"
	"       graftrace probe [-x PROGRAM | -P PID] -V FUNC[:LINE] | FILE:LINE\n"
	"       graftrace probe [-x PROGRAM | -P PID] -F [GLOB]\n"
	"       graftrace probe [-P PID | --at DIR] [-x PROGRAM] [-a] DEFINITION...\n"
	"       graftrace probe [-P PID | --at DIR] -l | -d GLOB...\n"
	"\n"
	"Shows where probes can be set in a program, and with which variables; sets them in a\n"
	"program that is being recorded or mounted, lists and removes them. 'record --probe'\n"
	"and 'mount --probe' set them from the start.\n"
	"\n"
	"  -L, --line PLACE   source of a function, or of a file from a line on; the lines with\n"
	"                     a number have code\n"
	"  -V, --vars PLACE   variables that can be had there\n"
	"  -F, --funcs        functions, all or those that match GLOB\n"
	"  -a, --add DEF      a probe: '[[GROUP:]EVENT=]PLACE [[NAME=]ARG[:TYPE]...]'; PLACE is\n"
	"                     FUNC, FUNC+OFFSET, FUNC:LINE, FILE:LINE or FUNC%return\n"
	"  -l, --list         the probes that are set\n"
	"  -d, --del GLOB     removes those whose GROUP:EVENT, or EVENT, matches\n"
	"  -x, --exec FILE    the program or library that is meant\n"
	"  -P, --pid PID      the program of that process; the recording of it\n"
	"      --at DIR       probes of what is mounted there (graftrace mount)\n"
	"  -h, --help         this text\n"
	"\n"
	"Exit codes: 0 done; 1 it cannot be done, or nothing matches; 2 the command line is\n"
	"wrong.\n";

enum { OPTION_AT = 256 };

static const struct option options[] = {
	{ "line", required_argument, NULL, 'L' },
	{ "vars", required_argument, NULL, 'V' },
	{ "funcs", no_argument, NULL, 'F' },
	{ "add", required_argument, NULL, 'a' },
	{ "list", no_argument, NULL, 'l' },
	{ "del", required_argument, NULL, 'd' },
	{ "exec", required_argument, NULL, 'x' },
	{ "pid", required_argument, NULL, 'P' },
	{ "at", required_argument, NULL, OPTION_AT },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct request {
	int what; /* the option's letter, 0 none */
	const char *place;
	const char **words; /* definitions, or globs */
	int count;
	char path[PATH_MAX]; /* of the program; "": unknown */
	struct gt_probe_control control;
};

static int failed(const struct gt_message *message)
{
	gt_complain(NAME, "%s", *message->text ? message->text : "no memory");
	return GT_EXIT_FAILED;
}

/* ---- lines ---- */

struct lines {
	FILE *source;
	bool opened;
	uint32_t next; /* line that the source's next one is */
	uint32_t base; /* of the numbers that are shown; 0: they are the file's */
	uint32_t first, last;
	bool of_function;
	const char *function;
	bool any;
};

/* "FUNC:3-8": the range is cut off. */
static bool take_range(char *place, uint32_t *first, uint32_t *last)
{
	char *colon = strrchr(place, ':'), *end;
	unsigned long from, to;

	*first = 0;
	*last = UINT32_MAX;
	if (colon == NULL || !isdigit((unsigned char)colon[1]))
		return true;
	from = strtoul(colon + 1, &end, 10);
	to = *end == '-' || *end == '+' ? strtoul(end + 1, &end, 10) : UINT32_MAX;
	if (strchr(colon, '+') != NULL)
		to += from;
	*first = (uint32_t)from;
	*last = to < UINT32_MAX ? (uint32_t)to : UINT32_MAX;
	return *end == '\0' && from < UINT32_MAX && to >= from;
}

static void open_source(struct lines *lines, const char *file)
{
	lines->opened = true;
	lines->source = fopen(file, "r");
	lines->next = 1;
	if (lines->source == NULL)
		fprintf(stderr, "graftrace probe: cannot read the source '%s': %s\n", file,
			strerror(errno));
}

/* The text of a line, without its end; "" unknown. */
static const char *text_of(struct lines *lines, uint32_t line, char *text, size_t size)
{
	*text = '\0';
	while (lines->source != NULL && lines->next <= line &&
	       fgets(text, (int)size, lines->source) != NULL) {
		const bool whole = strchr(text, '\n') != NULL;

		lines->next += whole;
		if (!whole && lines->next == line) /* a very long one */
			break;
	}
	text[strcspn(text, "\n")] = '\0';
	return lines->next == line + 1 || *text ? text : "";
}

static int print_line(void *data, const char *file, uint32_t line, bool code)
{
	struct lines *lines = data;
	char text[4096];
	uint32_t shown;

	if (!lines->opened) {
		open_source(lines, file);
		lines->base = lines->of_function ? line : 0;
		if (lines->of_function)
			printf("<%s@%s:%u>\n", lines->function, file, lines->first);
		else
			printf("<%s:%u>\n", file, lines->first);
	}
	shown = line - lines->base;
	if (shown < lines->first || shown > lines->last)
		return 0;
	text_of(lines, line, text, sizeof(text));
	lines->any |= code;
	if (code)
		printf("%7u  %s\n", shown, text);
	else
		printf("         %s\n", text);
	return 0;
}

static int show_lines(struct request *request, struct gt_variables *variables)
{
	struct gt_message message = { "" };
	struct gt_source_place place;
	struct lines lines = { .source = NULL };
	char text[1024], room[1024], whole[1100];
	int error;

	snprintf(text, sizeof(text), "%s", request->place);
	if (!take_range(text, &lines.first, &lines.last)) {
		gt_complain(NAME, "'%s': lines are FUNC:FIRST-LAST or FILE:FIRST-LAST",
			    request->place);
		return GT_EXIT_USAGE;
	}
	snprintf(whole, sizeof(whole), "%.*s", (int)strcspn(text, "\n"), text);
	/* Removes the line number after a file's name. */
	if (strrchr(whole, ':') != NULL && isdigit((unsigned char)strrchr(whole, ':')[1]))
		*strrchr(whole, ':') = '\0';
	if (strchr(whole, '.') != NULL || strchr(whole, '/') != NULL)
		snprintf(whole + strlen(whole), sizeof(whole) - strlen(whole), ":%u",
			 lines.first ? lines.first : 1);
	error = gt_probe_place(whole, &place, room, sizeof(room), &message);
	place.last = lines.last < UINT32_MAX ? lines.last : 0;
	lines.of_function = place.function != NULL;
	lines.function = place.function;
	if (error == 0)
		error = gt_variables_each_line(variables, &place, print_line, &lines, &message);
	if (lines.source != NULL)
		fclose(lines.source);
	if (error != 0)
		return failed(&message);
	if (!lines.any) {
		gt_complain(NAME, "'%s': no code comes from there", request->place);
		return GT_EXIT_FAILED;
	}
	return GT_EXIT_DONE;
}

/* ---- variables ---- */

struct variables_work {
	struct request *request;
	struct gt_variables *variables;
	const struct gt_source_place *place;
	uint64_t entry; /* of the function; 0 unknown */
	bool told;	/* the heading is printed */
	bool any;
	struct gt_message *message;
};

static int print_variable(void *data, const char *type, const char *name)
{
	struct variables_work *work = data;

	work->any = true;
	printf("\t\t%s\t%s\n", type, name);
	return 0;
}

static int note_entry(void *data, uint64_t address)
{
	*(uint64_t *)data = address;
	return 1;
}

static int print_place(void *data, uint64_t address)
{
	struct variables_work *work = data;
	const char *function = work->place->function;

	if (!work->told)
		printf("Available variables at %s\n", work->request->place);
	work->told = true;
	if (function != NULL && work->entry != 0)
		printf("\t@<%s+%llu>\n", function, (unsigned long long)(address - work->entry));
	else
		printf("\t@<0x%llx>\n", (unsigned long long)address);
	work->any = false;
	if (gt_variables_each(work->variables, address, false, print_variable, work,
			      work->message) != 0 ||
	    !work->any)
		printf("\t\t(No matched variables)\n");
	return 0;
}

static int show_variables(struct request *request, struct gt_variables *variables)
{
	struct gt_message message = { "" }, other = { "" };
	struct gt_source_place place, function;
	struct variables_work work = { request, variables, &place, 0, false, false, &other };
	char room[1024];
	int error = gt_probe_place(request->place, &place, room, sizeof(room), &message);

	if (error != 0)
		return failed(&message);
	function = place;
	function.has_line = false;
	if (place.function != NULL)
		gt_variables_each_address(variables, &function, true, note_entry, &work.entry,
					  &other);
	error = gt_variables_each_address(variables, &place, false, print_place, &work, &message);
	return error != 0 ? failed(&message) : GT_EXIT_DONE;
}

/* ---- functions ---- */

static int by_name(const void *left, const void *right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int show_functions(struct request *request)
{
	const char *glob = request->count > 0 ? request->words[0] : "*";
	struct gt_message message = { "" };
	struct gt_object *object;
	const char **names;
	size_t count = 0;

	if (gt_object_open(request->path, &object, &message) != 0)
		return failed(&message);
	names = calloc(gt_object_function_count(object) + 1ul, sizeof(*names));
	for (uint32_t i = 0; names != NULL && i < gt_object_function_count(object); i++) {
		const struct gt_object_function *function = gt_object_function(object, i);
		const char *name = gt_object_function_name(object, i);

		if (!(function->flags & (GT_FUNCTION_PLT | GT_FUNCTION_COLD)) && *name &&
		    (gt_glob_match(glob, name) || gt_glob_match(glob, function->name)))
			names[count++] = name;
	}
	if (count > 0)
		qsort(names, count, sizeof(*names), by_name);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
			puts(names[i]);
	free(names);
	gt_object_close(object);
	if (count > 0)
		return GT_EXIT_DONE;
	gt_complain(NAME, "no function of '%s' matches '%s'", request->path, glob);
	return GT_EXIT_FAILED;
}

/* ---- what is set ---- */

struct add_work {
	struct request *request;
	unsigned count;
};

static int add_line(void *data, const char *line, const char *event)
{
	struct add_work *work = data;
	const char *place = strchr(line, ' ');

	if (gt_probe_control_add(&work->request->control, NAME, line) != 0)
		return GT_EIO;
	if (work->count++ == 0)
		printf("Added new event:\n");
	printf("  %s (on%s)\n", event, place != NULL ? place : "");
	return 0;
}

static int add_probes(struct request *request)
{
	struct gt_message message = { "" };
	struct add_work work = { request, 0 };

	for (int i = 0; i < request->count; i++) {
		const int error =
			gt_probe_lines(request->words[i], request->path, add_line, &work, &message);

		if (error != 0) {
			if (*message.text)
				gt_complain(NAME, "%s", message.text);
			return GT_EXIT_FAILED;
		}
	}
	printf("\nIt is recorded once its events/GROUP/NAME/enable has a 1 written to it.\n");
	return GT_EXIT_DONE;
}

/* ---- the command line ---- */

static bool take_words(struct request *request, const char *word)
{
	const char **grown =
		realloc(request->words, ((size_t)request->count + 1) * sizeof(*request->words));

	if (grown == NULL)
		return false;
	request->words = grown;
	grown[request->count++] = word;
	return true;
}

/* One thing is asked for. */
static bool take_what(struct request *request, int what)
{
	if (request->what != 0 && (request->what != what || what == 'L' || what == 'V')) {
		gt_complain(NAME,
			    "--line, --vars, --funcs, --add, --list and --del do not go together");
		return false;
	}
	request->what = what;
	return true;
}

static bool take_option(struct request *request, int option)
{
	struct gt_message message = { "" };
	uint64_t pid;

	switch (option) {
	case 'L':
	case 'V':
		request->place = optarg;
		return take_what(request, option);
	case 'F':
	case 'l':
		return take_what(request, option);
	case 'a':
	case 'd':
		return take_what(request, option) && take_words(request, optarg);
	case 'x':
		gt_value_program(optarg, request->path, sizeof(request->path));
		return true;
	case OPTION_AT:
		request->control.directory = optarg;
		return true;
	case 'P':
		if (gt_value_number(optarg, 1, INT32_MAX, &pid, &message) != 0) {
			gt_complain(NAME, "--pid: %s", message.text);
			return false;
		}
		request->control.pid = (pid_t)pid;
		return true;
	default:
		return false;
	}
}

/* Takes the file of the process's program, if no file was named. */
static void find_program(struct request *request)
{
	char link[64];
	ssize_t bytes;

	if (request->path[0] != '\0' || request->control.pid == 0)
		return;
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)request->control.pid);
	bytes = readlink(link, request->path, sizeof(request->path) - 1);
	request->path[bytes > 0 ? bytes : 0] = '\0';
}

static int run(struct request *request)
{
	struct gt_message message = { "" };
	struct gt_variables *variables;
	int result;

	if (request->what == 'l')
		return gt_probe_control_list(&request->control, NAME);
	if (request->what == 'd')
		return gt_probe_control_remove(&request->control, NAME, request->words,
					       request->count);
	find_program(request);
	if (request->path[0] == '\0') {
		if (request->control.pid == 0) {
			gt_complain(NAME, "which program? -x FILE or -P PID says");
			return gt_usage_error(NAME);
		}
		gt_complain(NAME, "there is no process %d that can be looked at",
			    (int)request->control.pid);
		return GT_EXIT_FAILED;
	}
	if (request->what == 'F')
		return show_functions(request);
	if (request->what == 'a')
		return add_probes(request);
	if (gt_variables_open(request->path, &variables, &message) != 0)
		return failed(&message);
	result = request->what == 'L' ? show_lines(request, variables)
				      : show_variables(request, variables);
	gt_variables_close(variables);
	return result;
}

int gt_cmd_probe(int argc, char **argv)
{
	struct request request = { .what = 0 };
	int option, result = -1;

	while (result < 0 &&
	       (option = gt_next_option(argc, argv, "L:V:Fa:ld:x:P:h", options)) != -1) {
		if (option == 'h')
			result = gt_print_help(help);
		else if (!take_option(&request, option))
			result = gt_usage_error(NAME);
	}
	if (result < 0 && request.what == 0 && optind < argc)
		request.what = 'a';
	for (; result < 0 && optind < argc; optind++)
		if ((request.what != 'a' && request.what != 'd' &&
		     !(request.what == 'F' && request.count == 0)) ||
		    !take_words(&request, argv[optind])) {
			gt_complain(NAME, "'%s' is not wanted here", argv[optind]);
			result = gt_usage_error(NAME);
		}
	if (result < 0 && request.what == 0) {
		gt_complain(NAME,
			    "what is to be done? --line, --vars, --funcs, --add, --list or --del");
		result = gt_usage_error(NAME);
	}
	if (result < 0)
		result = run(&request);
	free(request.words);
	if (fflush(stdout) != 0 && result == GT_EXIT_DONE) {
		gt_complain(NAME, "cannot write: %s", strerror(errno));
		result = GT_EXIT_FAILED;
	}
	return result;
}
