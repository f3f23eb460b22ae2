/* SPDX-License-Identifier: MIT */
/*
 * Proposes a known word in place of one that is unknown: see command.h.
 */
#include "cli/command.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WORD_MAX 64

unsigned gt_word_distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	size_t b_len = strlen(b);

	if (strlen(a) > WORD_MAX || b_len > WORD_MAX)
		return 99;
	for (unsigned j = 0; j <= b_len; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b_len];
}

void gt_propose(struct gt_proposal *proposal, const char *word, const char *known)
{
	unsigned distance = gt_word_distance(word, known);
	size_t length = strlen(word);

	/* The beginning of a known word is always a proposal, however much is missing. */
	if (length >= 3 && strncmp(word, known, length) == 0)
		distance = 0;
	/* With more than three changes, or in more than half of the word, it is another word. */
	if (distance > 3 || distance * 2 > length)
		return;
	if (proposal->word != NULL && distance >= proposal->distance)
		return;
	proposal->word = known;
	proposal->distance = distance;
}

/* Options that people know of perf, uftrace, strace and trace-cmd, and what is here instead. */
static const struct {
	const char *command;
	int letter;	  /* 0: none */
	const char *word; /* of the long option; NULL: none */
	const char *here;
} others[] = {
	{ "record", 'F', "freq",
	  "every call is recorded: there is no frequency or period to be chosen; uftrace's -F "
	  "FUNC is -g FUNC" },
	{ "record", 'c', "count",
	  "every call is recorded: there is no frequency or period to be chosen; strace's -c is "
	  "'graftrace profile'" },
	{ "record", 't', "time-filter", "the time that calls must take is --threshold TIME" },
	{ "record", 'f', "follow-forks", "children are followed: --no-fork leaves them alone" },
	{ "record", 'd', "data", "the recording is a file: -o FILE" },
	{ "record", 'T', NULL, "every call is recorded with its duration: 'graftrace show'" },
	{ "record", 0, "call-graph",
	  "the callers of each call are recorded: 'graftrace graph' prints the tree" },
	{ "record", 0, "depth", "the outermost levels of calls are -D N" },
	{ "record", 0, "max-depth", "the outermost levels of calls are -D N" },
	{ "record", 0, "time",
	  "calls that took longer than a time are --threshold TIME; how long to record is --for "
	  "TIME" },
	{ "record", 0, "duration", "how long is --for TIME" },
	{ "record", 0, "timeout", "how long is --for TIME" },
	{ "report", 0, "stdio", "text is what it prints; --no-pager writes it at once" },
	{ "report", 0, "no-children", "Self is a function's own time, Total with what it calls" },
	{ "report", 0, "children", "Self is a function's own time, Total with what it calls" },
	{ "report", 'n', NULL, "Calls is how often each function was called" },
	{ "report", 'F', NULL, "only what is called below a function is -g GLOB" },
	{ "show", 'F', NULL, "only what is called below a function is -g GLOB" },
	{ "list", 'e', NULL, "events are what it lists: 'graftrace list PROGRAM'" },
	{ "list", 'F', NULL, "the fields stand beside each event: 'graftrace list PROGRAM'" },
	{ "list", 'f', NULL, "functions are listed by 'graftrace functions'" },
	{ "graph", 'F', NULL, "only what is called below a function: graftrace graph FUNC" },
};

/* Says what is here instead of another tool's option. False: it is none that is known. */
static bool tell_other(const char *name, int letter, const char *word)
{
	const char *command = strrchr(name, ' ');

	for (size_t i = 0; command != NULL && i < sizeof(others) / sizeof(others[0]); i++) {
		if (strcmp(command + 1, others[i].command) != 0 ||
		    (letter != 0 ? letter != others[i].letter
				 : others[i].word == NULL || strcmp(word, others[i].word) != 0))
			continue;
		fprintf(stderr, "%s: %s\n", name, others[i].here);
		return true;
	}
	return false;
}

int gt_next_option(int argc, char **argv, const char *letters, const struct option *options)
{
	int option = getopt_long(argc, argv, letters, options, NULL);
	struct gt_proposal proposal = { .word = NULL };
	char word[WORD_MAX] = "";

	if (option == '?' && optopt != 0)
		tell_other(argv[0], optopt, "");
	if (option != '?' || optopt != 0 || optind < 2 || strncmp(argv[optind - 1], "--", 2) != 0)
		return option;
	/* An option may be followed by its value. */
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(argv[optind - 1] + 2, "="),
		 argv[optind - 1] + 2);
	if (tell_other(argv[0], 0, word))
		return option;
	for (; options->name != NULL; options++)
		gt_propose(&proposal, word, options->name);
	/* getopt itself has reported an abbreviation that fits several options. */
	if (proposal.word != NULL && strncmp(word, proposal.word, strlen(word)) != 0)
		fprintf(stderr, "%s: did you mean '--%s'?\n", argv[0], proposal.word);
	return option;
}
