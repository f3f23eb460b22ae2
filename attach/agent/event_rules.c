/* SPDX-License-Identifier: MIT */
/* Rules of events: see event_rules.h. */
#include "attach/agent/event_rules.h"
#include "attach/object/fail.h"
#include "core/trace/event_filter.h"

#include <stdlib.h>
#include <string.h>

void gt_event_rules_init(struct gt_event_rules *rules, struct gt_arena *arena)
{
	gt_rule_pool_init(&rules->pool, arena->memory);
}

static void forget(struct gt_event_rule *rule)
{
	free(rule->word);
	free(rule->filter);
}

void gt_event_rules_fini(struct gt_event_rules *rules)
{
	size_t i;

	for (i = 0; i < rules->count; i++)
		forget(&rules->rules[i]);
	free(rules->rules);
	rules->rules = NULL;
	rules->count = 0;
}

static void remove_word(struct gt_event_rules *rules, const char *word)
{
	size_t i;

	for (i = 0; i < rules->count; i++) {
		if (strcmp(rules->rules[i].word, word) != 0)
			continue;
		forget(&rules->rules[i]);
		rules->count--;
		memmove(&rules->rules[i], &rules->rules[i + 1],
			(rules->count - i) * sizeof(*rules->rules));
		return;
	}
}

int gt_event_rules_set_filter(struct gt_event_rules *rules, const char *word, const char *filter,
			      struct gt_message *message)
{
	struct gt_event_rule rule = { strdup(word), filter ? strdup(filter) : NULL, 0, 0, { "" } };
	struct gt_event_rule *grown =
		realloc(rules->rules, (rules->count + 1) * sizeof(*rules->rules));

	if (grown)
		rules->rules = grown;
	if (!grown || !rule.word || (filter && !rule.filter)) {
		forget(&rule);
		return gt_fail(message, GT_ENOMEM, "no memory for a filter");
	}
	remove_word(rules, word);
	rules->rules[rules->count++] = rule;
	return 0;
}

static struct gt_event_rule *find(const struct gt_event_rules *rules,
				  const struct gt_event_format *event)
{
	size_t i;

	for (i = rules->count; i-- > 0;)
		if (gt_event_word_matches(rules->rules[i].word, event->system, event->name))
			return &rules->rules[i];
	return NULL;
}

/* With one rule, which has the filter. False: it does not fit. */
static bool make_block(struct graftrace_event_rules *block, uint32_t room,
		       struct gt_event_rule *rule, const struct gt_event_format *event)
{
	struct graftrace_rule *record = (struct graftrace_rule *)(block + 1);
	const uint32_t used = sizeof(*block) + sizeof(*record);
	struct gt_event_filter_error error;
	int64_t bytes =
		gt_event_filter_make(event, rule->filter, strlen(rule->filter),
				     (struct graftrace_filter *)(record + 1), room - used, &error);

	rule->tried++;
	if (bytes < 0) {
		if (!rule->misfit.text[0])
			gt_fail(&rule->misfit, GT_EINVAL, "filter '%s' of %s:%s: %s", rule->filter,
				event->system, event->name, error.text ? error.text : "Error");
		return false;
	}
	rule->fitted++;
	*record = (struct graftrace_rule){ .action = GRAFTRACE_RULE_RECORD, .filter = used };
	*block = (struct graftrace_event_rules){ used + (uint32_t)bytes, 1 };
	return true;
}

int gt_event_rules_arm(struct gt_event_rules *rules, const struct gt_event_format *event,
		       struct gt_message *message)
{
	struct gt_event_rule *rule = find(rules, event);
	const bool filters = rule && rule->filter;
	const uint64_t room = filters ? sizeof(struct graftrace_event_rules) +
						sizeof(struct graftrace_rule) +
						GT_EVENT_FILTER_ROOM(strlen(rule->filter))
				      : 0;
	struct graftrace_event_rules *block = NULL;
	bool fits = false;
	int error = 0;

	if (filters) {
		block = calloc(1, room);
		if (!block)
			return gt_fail(message, GT_ENOMEM, "no memory for a filter");
		fits = make_block(block, (uint32_t)room, rule, event);
	}
	if (fits || gt_rule_pool_get(&rules->pool, event->number))
		error = gt_rule_pool_put(&rules->pool, event->number, fits ? block : NULL);
	if (error)
		gt_fail(message, error, "no room for the filters of so many events");
	free(block);
	return error;
}

int gt_event_rules_check(const struct gt_event_rules *rules, struct gt_message *message)
{
	size_t i;

	for (i = 0; i < rules->count; i++)
		if (rules->rules[i].tried && !rules->rules[i].fitted)
			return gt_fail(message, GT_EINVAL, "%s", rules->rules[i].misfit.text);
	return 0;
}
