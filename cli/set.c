/* SPDX-License-Identifier: MIT */
/*
 * graftrace get and graftrace set: read or write a control file of a running recording through its
 * socket (serve/door.h).
 */
#include "cli/control_door.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/values.h"
#include "serve/door.h"

static const char get_help[] =
	"Usage: graftrace get [-P PID] [FILE]\n\n"
	"Prints a control file of the program that is being recorded, or the names of a folder.\n\n"
	"  -P, --pid PID   of that program, where several are being recorded\n"
	"  -h, --help      this text\n\n"
	"'man graftrace-control-files' tells what there is.\n";

static const char set_help[] =
	"Usage: graftrace set [-a] [-P PID] FILE [VALUE...]\n\n"
	"Writes a control file of the program that is being recorded, as 'echo VALUE... > FILE'\n"
	"does. Without a VALUE it is emptied.\n\n"
	"  -a, --append    as 'echo VALUE... >> FILE'\n"
	"  -m, --make      FILE is an instance to be made (mkdir instances/NAME)\n"
	"  -r, --remove    … or to be removed\n"
	"  -P, --pid PID   of that program, where several are being recorded\n"
	"  -h, --help      this text\n\n"
	"'man graftrace-control-files' tells what there is.\n";

static const struct option get_options[] = {
	{ "pid", required_argument, NULL, 'P' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static const struct option options[] = {
	{ "pid", required_argument, NULL, 'P' }, { "help", no_argument, NULL, 'h' },
	{ "append", no_argument, NULL, 'a' },	 { "make", no_argument, NULL, 'm' },
	{ "remove", no_argument, NULL, 'r' },	 { NULL, 0, NULL, 0 },
};

/* Sends the whole request and closes this direction of the connection. */
static bool send_request(int connection, const char *word, const char *path, char **values)
{
	char *request = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&request, &bytes);
	bool sent;

	if (to == NULL)
		return false;
	fprintf(to, "%s %s\n", word, path);
	for (int i = 0; values != NULL && values[i] != NULL; i++)
		fprintf(to, "%s%s", i > 0 ? " " : "", values[i]);
	if (values != NULL)
		fputc('\n', to);
	sent = fclose(to) == 0;
	for (size_t at = 0; sent && at < bytes;) {
		ssize_t got = send(connection, request + at, bytes - at, MSG_NOSIGNAL);

		if (got < 0 && errno == EINTR)
			continue;
		sent = got > 0;
		at += sent ? (size_t)got : 0;
	}
	free(request);
	shutdown(connection, SHUT_WR);
	return sent;
}

/* Takes the answer: after `ok`, what was read goes to `to`; otherwise the error goes to
 * stderr. */
static int take_answer(const char *name, int connection, FILE *to)
{
	FILE *from = fdopen(connection, "r");
	char line[1024];
	char block[65536];
	ssize_t got;

	if (from == NULL || setvbuf(from, NULL, _IONBF, 0) != 0 ||
	    fgets(line, sizeof(line), from) == NULL) {
		gt_complain(name, "the recording has ended");
		return GT_EXIT_FAILED;
	}
	if (strcmp(line, "ok\n") != 0) {
		const char *reason = strchr(line, ' ');

		reason = reason != NULL ? strchr(reason + 1, ' ') : NULL;
		line[strcspn(line, "\n")] = '\0';
		gt_complain(name, "%s", reason != NULL ? reason + 1 : line);
		return GT_EXIT_FAILED;
	}
	while ((got = read(connection, block, sizeof(block))) > 0 || (got < 0 && errno == EINTR)) {
		/* Output appears as it arrives: trace_pipe. */
		if (got > 0 &&
		    (fwrite(block, 1, (size_t)got, to) != (size_t)got || fflush(to) != 0))
			break;
	}
	if (fflush(to) == 0 && !ferror(to))
		return GT_EXIT_DONE;
	gt_complain(name, "cannot write: %s", strerror(errno));
	return GT_EXIT_FAILED;
}

int gt_control_ask(const char *name, const char *word, const char *path, char **values, pid_t pid,
		   FILE *to)
{
	struct gt_message message = { "" };
	int connection = gt_door_connect(pid, &message);

	if (connection < 0) {
		gt_complain(name, "%s", message.text);
		return GT_EXIT_FAILED;
	}
	if (!send_request(connection, word, path, values)) {
		gt_complain(name, "the recording has ended");
		return GT_EXIT_FAILED;
	}
	return take_answer(name, connection, to);
}

static bool parse_pid(const char *name, const char *text, pid_t *pid)
{
	struct gt_message message = { "" };
	uint64_t number;

	if (gt_value_number(text, 1, INT32_MAX, &number, &message) != 0) {
		gt_complain(name, "--pid: %s", message.text);
		return false;
	}
	*pid = (pid_t)number;
	return true;
}

int gt_cmd_get(int argc, char **argv)
{
	pid_t pid = 0;
	int option;

	while ((option = gt_next_option(argc, argv, "P:h", get_options)) != -1) {
		switch (option) {
		case 'P':
			if (!parse_pid("get", optarg, &pid))
				return GT_EXIT_USAGE;
			break;
		case 'h':
			return gt_print_help(get_help);
		default:
			return gt_usage_error("get");
		}
	}
	if (argc - optind > 1) {
		gt_complain("get", "one file is wanted, not also '%s'", argv[optind + 1]);
		return gt_usage_error("get");
	}
	return gt_control_ask("get", "get", optind < argc ? argv[optind] : "", NULL, pid, stdout);
}

int gt_cmd_set(int argc, char **argv)
{
	const char *word = "set";
	pid_t pid = 0;
	int option;

	/* `+`: getopt stops at the first operand, so values such as -1 are no options. */
	while ((option = gt_next_option(argc, argv, "+amrP:h", options)) != -1) {
		switch (option) {
		case 'a':
			word = "add";
			break;
		case 'm':
			word = "make";
			break;
		case 'r':
			word = "remove";
			break;
		case 'P':
			if (!parse_pid("set", optarg, &pid))
				return GT_EXIT_USAGE;
			break;
		case 'h':
			return gt_print_help(set_help);
		default:
			return gt_usage_error("set");
		}
	}
	if (optind == argc) {
		gt_complain("set", "which file?");
		return gt_usage_error("set");
	}
	return gt_control_ask("set", word, argv[optind], argv + optind + 1, pid, stdout);
}
