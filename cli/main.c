/* SPDX-License-Identifier: MIT */
/*
 * graftrace: finds the subcommand and calls it. A new subcommand needs only a row in the table.
 */
#include "cli/command.h"
#include "cli/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order of the help: recording, looking, converting. */
static const struct gt_command commands[] = {
	{ "record", "run a program or attach to it, and record the calls of its functions",
	  gt_cmd_record },
	{ "profile",
	  "run a program or attach to it, and print how often and how long its functions ran",
	  gt_cmd_profile },
	{ "show", "print a recording as ftrace's text", gt_cmd_show },
	{ "report", "print a recording as a table of functions", gt_cmd_report },
	{ "top", "show what a program does now, or a recording, on the whole terminal",
	  gt_cmd_top },
	{ "graph", "print a recording as a call tree, each different stack once", gt_cmd_graph },
	{ "diff", "print what differs between two recordings, or several runs of each side",
	  gt_cmd_diff },
	{ "hist", "print the histograms of events that a recording has", gt_cmd_hist },
	{ "info", "print what is known about a recording", gt_cmd_info },
	{ "export", "write a recording in the format of another tool", gt_cmd_export },
	{ "functions", "list what can be traced in a program, how, and what cannot and why",
	  gt_cmd_functions },
	{ "list", "list the events of a program and its libraries", gt_cmd_list },
	{ "probe", "show where probes can be set; set, list and remove those of what is recorded",
	  gt_cmd_probe },
	{ "parse-trace", "turn a function_graph text into CSV, a row a call", gt_cmd_parse_trace },
	{ "runtime-breakdown", "turn that CSV into a page with a bar chart of self times",
	  gt_cmd_runtime_breakdown },
	{ "get", "print a control file of a program that is being recorded", gt_cmd_get },
	{ "set", "write a control file of a program that is being recorded", gt_cmd_set },
	{ "mount", "make the control files of a program or a recording a directory", gt_cmd_mount },
	{ "serve", "serve a recording over HTTP, as ftrace's control files", gt_cmd_serve },
};

#define COMMANDS_COUNT (sizeof commands / sizeof commands[0])

void gt_complain(const char *name, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	gt_progress_wipe();
	fprintf(stderr, "graftrace %s: %s\n", name, text);
}

int gt_usage_error(const char *name)
{
	fprintf(stderr, "Try 'graftrace %s --help'.\n", name);
	return GT_EXIT_USAGE;
}

int gt_one_operand(const char *name, int count, const char *none, const char *more)
{
	if (count == 1 || (count < 1 && none == NULL))
		return 0;
	gt_complain(name, "%s", count < 1 ? none : more);
	return gt_usage_error(name);
}

static int print_help(void)
{
	char text[8192];
	size_t used = (size_t)snprintf(text, sizeof(text),
				       "Usage: graftrace COMMAND "
				       "[ARGUMENT...]\n\n");

	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "  %-18s %s\n",
					 commands[i].name, commands[i].help);
	snprintf(text + used, sizeof(text) - used,
		 "\n'graftrace help COMMAND' or 'graftrace COMMAND --help' tells a command's "
		 "options, 'man graftrace-COMMAND' everything.\n");
	return gt_print_help(text);
}

/* Flushes stdout and reports its errors: it may be a full disk or a closed pipe. */
static int stdout_result(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return GT_EXIT_DONE;
	perror("graftrace: cannot write");
	return GT_EXIT_FAILED;
}

static const struct gt_command *find(const char *name)
{
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* Names that perf, uftrace, strace and trace-cmd have for subcommands of ours. */
static const struct {
	const char *word, *here;
} elsewhere[] = {
	{ .word = "annotate", .here = "report --source" },
	{ .word = "attach", .here = "record -P PID" },
	{ .word = "dump", .here = "export" },
	{ .word = "evlist", .here = "list" },
	{ .word = "live", .here = "record PROGRAM' and then 'graftrace show" },
	{ .word = "ltrace", .here = "record --libcall PROGRAM" },
	{ .word = "replay", .here = "show" },
	{ .word = "reset", .here = "set" },
	{ .word = "script", .here = "show" },
	{ .word = "start", .here = "set tracing_on 1" },
	{ .word = "stat", .here = "profile" },
	{ .word = "stop", .here = "set tracing_on 0" },
	{ .word = "strace", .here = "record -e syscalls PROGRAM" },
	{ .word = "trace", .here = "record -e syscalls PROGRAM" },
	{ .word = "tui", .here = "top" },
	{ .word = "version", .here = "--version" },
};

static int unknown(const char *name)
{
	struct gt_proposal nearest = { .word = NULL };

	if (name[0] == '-') {
		fprintf(stderr,
			"graftrace: options stand behind a command: 'graftrace record %s ...', as "
			"'graftrace help' lists them\n",
			name);
		return GT_EXIT_USAGE;
	}
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (strcmp(name, elsewhere[i].word) == 0) {
			fprintf(stderr,
				"graftrace: there is no command '%s'; here it is 'graftrace %s'\n",
				name, elsewhere[i].here);
			return GT_EXIT_USAGE;
		}
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		gt_propose(&nearest, name, commands[i].name);
	if (nearest.word != NULL)
		fprintf(stderr, "graftrace: there is no command '%s'; did you mean '%s'?\n", name,
			nearest.word);
	else if (strchr(name, '/') != NULL || access(name, X_OK) == 0)
		fprintf(stderr,
			"graftrace: there is no command '%s'; to run and record it: 'graftrace "
			"record %s'\n",
			name, name);
	else
		fprintf(stderr,
			"graftrace: there is no command '%s'; 'graftrace help' lists them\n", name);
	return GT_EXIT_USAGE;
}

/* argv[0] is the prefix of getopt's messages. */
static int run(const struct gt_command *command, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof name, "graftrace %s", command->name);
	argv[0] = name;
	return command->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct gt_command *command;
	char help_option[] = "--help";
	char *help_argv[] = { NULL, help_option, NULL };

	if (argc < 2) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		print_help();
		return GT_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("graftrace %s\n", GRAFTRACE_VERSION);
		return stdout_result();
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0) {
		if (argc < 3) {
			return print_help();
		}
		command = find(argv[2]);
		if (command == NULL)
			return unknown(argv[2]);
		return run(command, 2, help_argv);
	}
	command = find(argv[1]);
	if (command == NULL)
		return unknown(argv[1]);
	return run(command, argc - 1, argv + 1);
}
