/* SPDX-License-Identifier: MIT */
/* Triggers of events as text: see event_trigger.h. */
#include "core/trace/event_trigger.h"
#include "core/trace/hist.h"
#include "core/trace/message.h"

#define BLANKS " \t\n\v\f\r"

static const struct {
	const char *name;
	enum graftrace_rule_action action;
} actions[] = {
	{ "traceon", GRAFTRACE_RULE_TRACEON },	   { "traceoff", GRAFTRACE_RULE_TRACEOFF },
	{ "snapshot", GRAFTRACE_RULE_SNAPSHOT },   { "stacktrace", GRAFTRACE_RULE_STACKTRACE },
	{ "enable_event", GRAFTRACE_RULE_ENABLE }, { "disable_event", GRAFTRACE_RULE_DISABLE },
	{ "enable_hist", GRAFTRACE_RULE_HIST_ON }, { "disable_hist", GRAFTRACE_RULE_HIST_OFF },
	{ "hist", GRAFTRACE_RULE_HIST },
};

const char *gt_event_trigger_name(enum graftrace_rule_action action)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (actions[i].action == action)
			return actions[i].name;
	return "?";
}

bool gt_event_trigger_takes_snapshots(const struct gt_event_trigger *trigger)
{
	static const char action[] = ").snapshot(";
	size_t i;

	for (const char *at = trigger->hist; at != NULL && *at != '\0'; at++) {
		for (i = 0; action[i] != '\0' && at[i] == action[i]; i++)
			;
		if (action[i] == '\0')
			return true;
	}
	return trigger->action == GRAFTRACE_RULE_SNAPSHOT;
}

/* What is left to be read of a trigger. */
struct words {
	const char *at;
	size_t bytes;
};

static bool is_one_of(char c, const char *ends)
{
	while (*ends != '\0' && *ends != c)
		ends++;
	return *ends != '\0';
}

static void skip_blanks(struct words *words)
{
	while (words->bytes > 0 && is_one_of(words->at[0], BLANKS)) {
		words->at++;
		words->bytes--;
	}
}

/* Up to one of the ends, which is passed over. False: nothing is left. */
static bool next_of(struct words *words, const char *ends, struct words *word)
{
	if (words->bytes == 0)
		return false;
	*word = (struct words){ words->at, 0 };
	while (word->bytes < words->bytes && !is_one_of(words->at[word->bytes], ends))
		word->bytes++;
	words->at += word->bytes + (word->bytes < words->bytes);
	words->bytes -= word->bytes + (word->bytes < words->bytes);
	return true;
}

/* As kstrtoul with base 0. */
static bool count_of(const struct words *word, uint64_t *count)
{
	uint64_t base = 10, digit;
	size_t i = 0;

	if (word->bytes > 1 && word->at[0] == '0') {
		base = (word->at[1] | 0x20) == 'x' ? 16 : 8;
		i = base == 16 ? 2 : 1;
	}
	*count = 0;
	if (i >= word->bytes)
		return false;
	for (; i < word->bytes; i++) {
		const char c = word->at[i] | 0x20;

		digit = word->at[i] >= '0' && word->at[i] <= '9' ? (uint64_t)(word->at[i] - '0')
			: c >= 'a' && c <= 'f'			 ? (uint64_t)(c - 'a' + 10)
								 : 16;
		if (digit >= base || __builtin_mul_overflow(*count, base, count) ||
		    __builtin_add_overflow(*count, digit, count))
			return false;
	}
	return true;
}

static bool is_word(const struct words *word, const char *wanted)
{
	size_t i = 0;

	while (i < word->bytes && wanted[i] != '\0' && wanted[i] == word->at[i])
		i++;
	return i == word->bytes && wanted[i] == '\0';
}

static bool find_action(const struct words *command, enum graftrace_rule_action *action)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		*action = actions[i].action;
		if (is_word(command, actions[i].name))
			return true;
	}
	return false;
}

/* system:event of enable_event and its kin. */
static bool take_target(struct words *parameter, struct gt_event_trigger_text *parsed)
{
	struct words system, name;

	if (!next_of(parameter, ":", &system) || !next_of(parameter, ":", &name) ||
	    system.bytes == 0 || name.bytes == 0 ||
	    system.bytes + name.bytes + 2 > sizeof(parsed->target))
		return false;
	gt_format(parsed->target, sizeof(parsed->target), "%.*s:%.*s", (int)system.bytes, system.at,
		  (int)name.bytes, name.at);
	parsed->trigger.target = parsed->target;
	return true;
}

/* "if EXPRESSION" */
static bool take_condition(struct words words, struct gt_event_trigger_text *parsed)
{
	struct words word;

	next_of(&words, " \t", &word);
	if (!is_word(&word, "if") || words.bytes == 0 || words.bytes >= sizeof(parsed->filter))
		return false;
	gt_format(parsed->filter, sizeof(parsed->filter), "%.*s", (int)words.bytes, words.at);
	parsed->trigger.filter = parsed->filter;
	return true;
}

/* KEYS[:MORE …][ if EXPRESSION] */
static int take_hist(struct words words, struct gt_event_trigger_text *parsed)
{
	const int64_t filter = gt_hist_find_filter(words.at, words.bytes);

	if (words.bytes == 0 || filter <= 0 || (size_t)filter >= sizeof(parsed->hist))
		return GT_EINVAL;
	gt_format(parsed->hist, sizeof(parsed->hist), "%.*s", (int)filter, words.at);
	parsed->trigger.hist = parsed->hist;
	words.at += filter;
	words.bytes -= (size_t)filter;
	return words.bytes == 0 || take_condition(words, parsed) ? 0 : GT_EINVAL;
}

int gt_event_trigger_parse(const char *text, size_t bytes, struct gt_event_trigger_text *parsed)
{
	struct gt_event_trigger *trigger = &parsed->trigger;
	struct words words = { text, bytes }, command = { text, 0 }, parameter = { text, 0 }, count;
	bool has_target;

	*trigger = (struct gt_event_trigger){ .limit = GRAFTRACE_RULE_UNLIMITED };
	next_of(&words, ": \t", &command);
	skip_blanks(&words);
	parsed->remove = command.bytes > 0 && command.at[0] == '!';
	command.at += parsed->remove;
	command.bytes -= parsed->remove;
	if (!find_action(&command, &trigger->action))
		return GT_EINVAL;
	if (trigger->action == GRAFTRACE_RULE_HIST)
		return take_hist(words, parsed);
	has_target = trigger->action == GRAFTRACE_RULE_ENABLE ||
		     trigger->action == GRAFTRACE_RULE_DISABLE ||
		     trigger->action == GRAFTRACE_RULE_HIST_ON ||
		     trigger->action == GRAFTRACE_RULE_HIST_OFF;
	if (has_target || (words.bytes > 0 && words.at[0] >= '0' && words.at[0] <= '9')) {
		if (!next_of(&words, " \t", &parameter))
			return GT_EINVAL;
		skip_blanks(&words);
	}
	if (has_target && !take_target(&parameter, parsed))
		return GT_EINVAL;
	if (parsed->remove)
		return 0;
	if (next_of(&parameter, ":", &count) && !count_of(&count, &trigger->limit))
		return GT_EINVAL;
	return words.bytes == 0 || take_condition(words, parsed) ? 0 : GT_EINVAL;
}
