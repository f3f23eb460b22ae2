/* SPDX-License-Identifier: MIT */
/* graftrace info: what is known about a recording, a line a fact. */
#define _GNU_SOURCE
#include "cli/command.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/looking.h"
#include "cli/stop_when.h"

#define NAME "info"

static const char help[] =
	"Usage: graftrace info [FILE]\n\n"
	"Prints what is known about a recording (default: graftrace.data): program, machine,\n"
	"when, how it ended, how much was recorded and lost, with which options.\n\n"
	"  -i, --input FILE           the same as FILE\n"
	"      --check                read the whole trace, to find all that is damaged in it\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be read, or what was read of it is damaged; 2 wrong\n"
	"command line.\n";

enum { OPTION_CHECK = 256 };

static const struct option options[] = {
	{ "input", required_argument, NULL, 'i' },
	{ "check", no_argument, NULL, OPTION_CHECK },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void line(const char *name, const char *text)
{
	char shown[2048];
	size_t used = 0;

	if (text[0] == '\0')
		return;
	for (; *text && used + 1 < sizeof(shown); text++)
		shown[used++] = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
	shown[used] = '\0';
	printf("%-14s %s\n", name, shown);
}

static void number(const char *name, uint64_t value)
{
	printf("%-14s %" PRIu64 "\n", name, value);
}

static void when(uint64_t realtime_ns)
{
	time_t seconds = (time_t)(realtime_ns / 1000000000);
	struct tm local;
	char text[64];

	if (realtime_ns != 0 && localtime_r(&seconds, &local) != NULL &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &local) > 0)
		line("started", text);
}

static void how_it_ended(const struct gt_recording_info *info)
{
	char text[128], name[64];

	if (!info->ended)
		snprintf(text, sizeof(text), "not known: the recorder did not come to its end");
	else if (WIFSIGNALED(info->exit_status))
		snprintf(text, sizeof(text), "died of %s",
			 gt_stop_signal_name(WTERMSIG(info->exit_status), name, sizeof(name)));
	else
		snprintf(text, sizeof(text), "exit code %d", WEXITSTATUS(info->exit_status));
	line("end", text);
}

static void print(const char *path, struct gt_recording *recording)
{
	const struct gt_recording_info *info = gt_recording_info(recording);
	struct gt_target *target = gt_recording_target(recording);
	struct gt_recording_object object;
	char text[64];

	line("file", path);
	number("bytes", info->file_bytes);
	line("command", info->command_line);
	line("program", info->program);
	line("directory", info->directory);
	line("host", info->host);
	line("system", info->system);
	line("cpu", info->cpu);
	line("made by", info->made_by);
	when(info->realtime_ns);
	if (info->ns != 0) {
		snprintf(text, sizeof(text), "%" PRIu64 ".%03u s", info->ns / 1000000000,
			 (unsigned)(info->ns / 1000000 % 1000));
		line("duration", text);
	}
	how_it_ended(info);
	if (info->ended) {
		number("calls", info->calls);
		number("threads", info->threads);
		number("processes", info->processes);
	} else {
		number("threads", target->ring->writer_count(target));
	}
	number("lost", graftrace_lost_calls(info->lost));
	number("sub-buffers", info->sub_buffers);
	if (info->has_switches)
		number("switches", info->switches);
	for (const char *const *option = info->options; option != NULL && *option != NULL; option++)
		line("option", *option);
	for (uint32_t i = 0; gt_recording_object(recording, i, &object) == 0; i++) {
		char id[2 * 20 + 1] = "";

		for (uint32_t at = 0; at < object.build_id_bytes && at < 20; at++)
			snprintf(id + 2 * at, 3, "%02x", object.build_id[at]);
		printf("%-14s %s%s%s\n", "object", object.path, id[0] ? " build ID " : "", id);
	}
}

/* Reads all, so that every problem of the file is known. Returns 0 or the exit code. */
static int check(const char *path, struct gt_recording *recording)
{
	int error = gt_recording_verify(recording);

	if (error == 0)
		return 0;
	gt_complain(NAME, "'%s': %s", path, error == GT_ENOMEM ? "no memory" : "cannot be read");
	return GT_EXIT_FAILED;
}

int gt_cmd_info(int argc, char **argv)
{
	const char *path = GT_DEFAULT_RECORDING, *input = NULL;
	struct gt_recording *recording;
	bool checks = false;
	int option, result;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "i:h", options)) != -1) {
		if (option == 'i')
			input = optarg;
		else if (option == OPTION_CHECK)
			checks = true;
		else if (option == 'h')
			return gt_print_help(help);
		else
			return gt_usage_error(NAME);
	}
	if (gt_one_operand(NAME, argc - optind + (input != NULL), NULL, "one recording at a time"))
		return GT_EXIT_USAGE;
	if (input != NULL || optind < argc)
		path = input != NULL ? input : argv[optind];
	recording = gt_look_open(NAME, path);
	if (recording == NULL)
		return GT_EXIT_FAILED;
	print(path, recording);
	result = checks ? check(path, recording) : 0;
	if (result == 0)
		result = gt_look_tell(NAME, path, recording);
	if (result == 0 && checks)
		line("check", "the whole trace was read: nothing in it is damaged");
	gt_recording_close(recording);
	return result;
}
