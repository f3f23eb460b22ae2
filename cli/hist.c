/* SPDX-License-Identifier: MIT */
/* graftrace hist: the histograms of events that a recording has, as their control files show them. */
#include "cli/command.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/looking.h"
#include "core/trace/event.h"

#define NAME "hist"

static const char help[] =
	"Usage: graftrace hist [-e SYSTEM:NAME] [FILE]\n\n"
	"Prints the histograms of events that a recording has (default: graftrace.data), of\n"
	"'graftrace record -e SYSTEM:NAME --trigger hist:keys=FIELD'. Of a program that runs,\n"
	"'graftrace get events/SYSTEM/NAME/hist' prints them.\n"
	"How long functions' calls take, 'graftrace profile --hist' counts, and 'graftrace\n"
	"report --hist' tells of a recording.\n\n"
	"  -e, --event SYSTEM:NAME    of these events only; each may be a glob\n"
	"  -i, --input FILE           the same as FILE\n"
	"  -h, --help\n\n"
	"Exit code: 0 done; 1 it could not be read, is damaged, or has no such histogram;\n"
	"2 wrong command line.\n";

static const struct option options[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "input", required_argument, NULL, 'i' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

/* Whether one of the words names the event before the line feed. */
static bool is_asked_for(const char *word, const char *text)
{
	const char *colon = strchr(text, ':'), *end = strchr(text, '\n');
	char system[256], name[256];

	if (word == NULL || colon == NULL || end == NULL || colon > end)
		return word == NULL;
	snprintf(system, sizeof(system), "%.*s", (int)(colon - text), text);
	snprintf(name, sizeof(name), "%.*s", (int)(end - colon - 1), colon + 1);
	return gt_event_word_matches(word, system, name);
}

/* Prints text of the file, which may be anybody's: control characters of terminals become '?'. */
static void print(const char *text)
{
	for (; *text != '\0'; text++)
		putchar(((unsigned char)*text < ' ' && *text != '\n' && *text != '\t') ||
					*text == 0x7f
				? '?'
				: *text);
}

static int print_all(struct gt_recording *recording, const char *word)
{
	int count = 0;

	for (const char *const *text = gt_recording_info(recording)->hists; *text != NULL; text++) {
		const char *end = strchr(*text, '\n');

		if (end == NULL || !is_asked_for(word, *text))
			continue;
		printf("%s# event: ", count++ > 0 ? "\n\n" : "");
		print(*text);
	}
	return count;
}

int gt_cmd_hist(int argc, char **argv)
{
	const char *path = GT_DEFAULT_RECORDING, *input = NULL, *word = NULL;
	struct gt_recording *recording;
	int option, result;

	optind = 1;
	while ((option = gt_next_option(argc, argv, "e:i:h", options)) != -1) {
		if (option == 'e')
			word = optarg;
		else if (option == 'i')
			input = optarg;
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
	if (print_all(recording, word) == 0) {
		gt_complain(NAME, "'%s' has no histograms%s%s", path, word != NULL ? " of " : "",
			    word != NULL ? word : "");
		gt_recording_close(recording);
		return GT_EXIT_FAILED;
	}
	result = gt_look_tell(NAME, path, recording);
	gt_recording_close(recording);
	return result;
}
