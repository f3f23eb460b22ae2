/* SPDX-License-Identifier: MIT */
/*
 * Parses the conditions of --stop-when: see stop_when.h. They are parsed from the right, since
 * names of C++ functions contain blanks and '>': the time is what follows the last '>'.
 */
#define _GNU_SOURCE
#include "cli/stop_when.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/values.h"
#include "core/trace/message.h"

#define SHOWN_MAX 160 /* bytes of a wrong text in the message */

static const char no_duration[] =
	"that is not a duration: use a number and ns, us, ms or s, such as 10us or 1.5ms";

/* Reports what is wrong at `at`, a place in `text`. */
static int wrong(struct gt_message *message, const char *text, const char *at, const char *what)
{
	size_t bytes = strlen(text);
	size_t column = (size_t)(at - text);
	size_t from = column > SHOWN_MAX / 2 ? column - SHOWN_MAX / 2 : 0;

	if (bytes - from > SHOWN_MAX)
		bytes = from + SHOWN_MAX;
	/* gt_fail() would make one line of it. */
	snprintf(message->text, sizeof(message->text), "--stop-when: %s\n  %.*s\n  %*s^", what,
		 (int)(bytes - from), text + from, (int)(column - from), "");
	return GT_EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* [first, last) without the blanks around it. */
struct part {
	const char *first, *last;
};

static struct part trim(const char *first, const char *last)
{
	while (first < last && is_blank(*first))
		first++;
	while (last > first && is_blank(last[-1]))
		last--;
	return (struct part){ first, last };
}

static size_t length(struct part part)
{
	return (size_t)(part.last - part.first);
}

static bool is_word(struct part part, const char *word)
{
	return length(part) == strlen(word) && memcmp(part.first, word, length(part)) == 0;
}

/* The last word of a part, and the part before it. */
static struct part last_word(struct part part, struct part *before)
{
	const char *at = part.last;

	while (at > part.first && !is_blank(at[-1]))
		at--;
	*before = trim(part.first, at);
	return (struct part){ at, part.last };
}

static int take_function(struct part part, struct gt_stop_condition *condition,
			 struct gt_message *message)
{
	condition->function = strndup(part.first, length(part));
	if (condition->function != NULL)
		return 0;
	return gt_fail(message, GT_ENOMEM, "no memory");
}

static int parse_signal(const char *text, struct part name, struct gt_stop_condition *condition,
			struct gt_message *message)
{
	struct part bare = name;
	uint64_t number = 0;
	char word[32];

	condition->kind = GT_STOP_SIGNAL;
	if (length(name) == 0)
		return wrong(message, text, name.first,
			     "the signal is missing: a name as SIGUSR1, or a number");
	if (length(bare) > 3 && memcmp(bare.first, "SIG", 3) == 0)
		bare.first += 3;
	if (length(bare) < sizeof(word)) {
		memcpy(word, bare.first, length(bare));
		word[length(bare)] = '\0';
		for (int i = 1; i < 32; i++) {
			const char *known = sigabbrev_np(i);

			if (known != NULL && strcmp(known, word) == 0)
				condition->signal = i;
		}
		if (condition->signal == 0 && gt_value_number(word, 1, 64, &number, message) == 0)
			condition->signal = (int)number;
	}
	if (condition->signal == 0)
		return wrong(message, text, name.first,
			     "there is no such signal: a name as SIGUSR1, or a number up to 64");
	if (condition->signal == SIGKILL || condition->signal == SIGSTOP)
		return wrong(
			message, text, name.first,
			"no program sees that signal: 'crash' or SIGTERM may be what is meant");
	return 0;
}

static int parse_hit(const char *text, struct part function, struct part count,
		     struct gt_stop_condition *condition, struct gt_message *message)
{
	char word[32];

	condition->kind = GT_STOP_HIT;
	if (length(function) == 0)
		return wrong(message, text, function.first, "the function is missing: FUNC hit N");
	if (length(count) >= sizeof(word))
		return wrong(message, text, count.first, "that number is too large");
	memcpy(word, count.first, length(count));
	word[length(count)] = '\0';
	if (gt_value_number(word, 1, INT64_MAX, &condition->hits, message) != 0)
		return wrong(message, text, count.first,
			     "how many calls it takes is wanted: a number from 1");
	return take_function(function, condition, message);
}

static int parse_late(const char *text, struct part function, struct part time,
		      struct gt_stop_condition *condition, struct gt_message *message)
{
	char word[32];

	condition->kind = GT_STOP_LATE;
	if (length(function) == 0)
		return wrong(message, text, function.first, "the function is missing: FUNC > TIME");
	/* A '>' that belongs to the function's name comes before the separator: "operator> >
	 * 10ms". */
	if (function.last[-1] == '>' && (length(function) == 1 || is_blank(function.last[-2])))
		return wrong(message, text, function.last - 1, "one > is enough: FUNC > TIME");
	if (length(time) == 0)
		return wrong(message, text, time.first,
			     "the time is missing: FUNC > TIME, as 10us or 1.5ms");
	if (length(time) >= sizeof(word))
		return wrong(message, text, time.first, no_duration);
	memcpy(word, time.first, length(time));
	word[length(time)] = '\0';
	if (strspn(word, "0123456789.") == length(time))
		return wrong(message, text, time.last,
			     "the time's unit is missing: ns, us, ms or s");
	if (gt_value_time(word, 1, &condition->ns, message) != 0)
		return wrong(message, text, time.first, no_duration);
	if (condition->ns == 0)
		return wrong(message, text, time.first,
			     "every call takes longer than that: FUNC hit 1 may be what is meant");
	return take_function(function, condition, message);
}

int gt_stop_parse(const char *text, struct gt_stop_condition *condition, struct gt_message *message)
{
	struct part all = trim(text, text + strlen(text));
	struct part before, word, rest, hit;
	const char *greater;

	*condition = (struct gt_stop_condition){ .function = NULL };
	if (is_word(all, "crash")) {
		condition->kind = GT_STOP_CRASH;
		return 0;
	}
	if (length(all) >= 6 && memcmp(all.first, "signal", 6) == 0 &&
	    (length(all) == 6 || is_blank(all.first[6]))) {
		word = trim(all.first + 6, all.last);
		hit = last_word(word, &before);
		/* it is a function called "hit" */
		if (!is_word(last_word(before, &rest), "hit") && !is_word(hit, "hit") &&
		    (length(word) == 0 || *word.first != '>'))
			return parse_signal(text, word, condition, message);
	}
	word = last_word(all, &before);
	if (is_word(word, "hit"))
		return wrong(message, text, all.last, "the number is missing: FUNC hit N");
	hit = last_word(before, &rest);
	if (is_word(hit, "hit"))
		return parse_hit(text, rest, word, condition, message);
	greater = memrchr(all.first, '>', length(all));
	if (greater != NULL)
		return parse_late(text, trim(all.first, greater), trim(greater + 1, all.last),
				  condition, message);
	if (length(all) == 0)
		return wrong(
			message, text, text,
			"a condition is wanted: FUNC > TIME, FUNC hit N, signal NAME or crash");
	return wrong(message, text, all.last,
		     "that is not a condition: use FUNC > TIME, FUNC hit N, signal NAME or crash");
}

void gt_stop_condition_fini(struct gt_stop_condition *condition)
{
	free(condition->function);
	condition->function = NULL;
}

bool gt_stop_trigger(const struct gt_stop_condition *condition, struct gt_trigger *trigger)
{
	*trigger = (struct gt_trigger){ .glob = condition->function, .action = GT_TRIGGER_STOP };
	switch (condition->kind) {
	case GT_STOP_LATE:
		trigger->longer_than_ns = condition->ns;
		return true;
	case GT_STOP_HIT:
		trigger->skip = condition->hits - 1;
		trigger->count = 1;
		return true;
	default:
		return false;
	}
}

const char *gt_stop_signal_name(int signal, char *text, size_t bytes)
{
	const char *name = sigabbrev_np(signal);
	const char *words = sigdescr_np(signal);

	if (name != NULL && words != NULL)
		snprintf(text, bytes, "SIG%s (%s)", name, words);
	else
		snprintf(text, bytes, "signal %d", signal);
	return text;
}
