/* SPDX-License-Identifier: MIT */
/*
 * graftrace serve: the control files of a recording over HTTP, until Ctrl-C.
 */
#define _GNU_SOURCE
#include "cli/command.h"
#include "cli/looking.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/looking.h"
#include "read/recording.h"
#include "serve/http.h"
#include "serve/page.h"
#include "serve/recorded.h"

#define NAME "serve"

static const char help[] =
	"Usage: graftrace serve [-a ADDRESS:PORT] [FILE]\n"
	"\n"
	"Serves a recording over HTTP until Ctrl-C: http://127.0.0.1:9090/ is a page with\n"
	"its time line, flame graph and functions; below /ftrace/ are ftrace's control\n"
	"files, /ftrace/trace is its text. FILE is graftrace.data unless given. Nothing of\n"
	"the recording can be changed.\n"
	"\n"
	"  -a, --address ADDRESS:PORT  listen there (default 127.0.0.1:9090; port 0: any\n"
	"                              that is free); unix:PATH: at a Unix socket\n"
	"      --allow-users LIST      not only for this user and root, but for these too:\n"
	"                              names, numbers; all: everybody\n"
	"      --token FILE            also for whoever shows the token in FILE, which is\n"
	"                              made if it does not exist\n"
	"  -i, --input FILE            the same as FILE\n"
	"  -h, --help                  this text\n"
	"\n"
	"Exit codes: 0 ended by Ctrl-C or SIGTERM; 1 the file cannot be read, or the\n"
	"address not be had; 2 the command line is wrong.\n";

enum {
	OPTION_ALLOW_USERS = 256,
	OPTION_TOKEN,
};

static const struct option options[] = {
	{ "address", required_argument, NULL, 'a' },
	{ "allow-users", required_argument, NULL, OPTION_ALLOW_USERS },
	{ "token", required_argument, NULL, OPTION_TOKEN },
	{ "input", required_argument, NULL, 'i' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static int prepare_page(void *user, struct gt_page_options *options)
{
	*options = *(const struct gt_page_options *)user;
	return 0;
}

/* Serves until one of the signals comes. */
static int serve(struct gt_recording *recording, const char *path,
		 const struct gt_http_options *http)
{
	struct gt_http_server *server = NULL;
	struct gt_recorded *recorded = NULL;
	struct gt_page_server *page = NULL;
	struct gt_page_options looked_at = {
		.expected_calls = gt_recording_info(recording)->calls,
		.problem = gt_recording_problem(recording, 0),
	};
	const struct gt_page_source source = { .user = &looked_at, .prepare = prepare_page };
	struct gt_message message = { "" };
	sigset_t ends;
	int received;
	int error;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	error = gt_recorded_create(recording, &recorded, &message);
	gt_look_describe(&looked_at.about, recording);
	if (error == 0) {
		looked_at.target = gt_recorded_control(recorded)->view;
		error = gt_page_server_create(&source, &page, &message);
	}
	if (error == 0)
		error = gt_http_open(http, &server, &message);
	if (error == 0) {
		gt_http_show_page(server, page);
		error = gt_http_start(server, gt_recorded_control(recorded), path, &message);
	}
	if (error != 0) {
		gt_complain(NAME, "%s", message.text);
		if (server != NULL)
			gt_http_close(server, 0);
		if (page != NULL)
			gt_page_server_destroy(page);
		if (recorded != NULL)
			gt_recorded_destroy(recorded);
		return GT_EXIT_FAILED;
	}
	fprintf(stderr, "graftrace serve: %s at %s until Ctrl-C; control files at %s\n", path,
		gt_http_page_address(server), gt_http_address(server));
	while (sigwait(&ends, &received) != 0)
		continue;
	gt_http_close(server, 0);
	gt_page_server_destroy(page);
	gt_recorded_destroy(recorded);
	return GT_EXIT_DONE;
}

int gt_cmd_serve(int argc, char **argv)
{
	struct gt_http_options http = { .size = sizeof(http) };
	const char *path = "graftrace.data";
	struct gt_recording *recording;
	const char *problem;
	int option;
	const char *input = NULL;
	int code;

	while ((option = gt_next_option(argc, argv, "a:i:h", options)) != -1) {
		switch (option) {
		case 'a':
			http.address = optarg;
			break;
		case OPTION_ALLOW_USERS:
			http.allow_users = optarg;
			break;
		case OPTION_TOKEN:
			http.token_file = optarg;
			break;
		case 'i':
			input = optarg;
			break;
		case 'h':
			return gt_print_help(help);
		default:
			return gt_usage_error(NAME);
		}
	}
	if (gt_one_operand(NAME, argc - optind + (input != NULL), NULL, "one recording at a time"))
		return GT_EXIT_USAGE;
	if (input != NULL || optind < argc)
		path = input != NULL ? input : argv[optind];
	recording = gt_look_open(NAME, path);
	if (recording == NULL)
		return GT_EXIT_FAILED;
	for (uint32_t i = 0; (problem = gt_recording_problem(recording, i)) != NULL; i++)
		gt_complain(NAME, "%s: %s", path, problem);
	code = serve(recording, path, &http);
	gt_recording_close(recording);
	return code;
}
