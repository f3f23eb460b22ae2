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

static void forget_action(struct gt_event_action *action)
{
	free((char *)action->trigger.filter);
	free((char *)action->trigger.target);
}

static void forget(struct gt_event_rule *rule)
{
	uint32_t i;

	for (i = 0; i < rule->action_count; i++)
		forget_action(&rule->actions[i]);
	free(rule->actions);
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

static struct gt_event_rule *find_word(const struct gt_event_rules *rules, const char *word)
{
	size_t i;

	for (i = 0; i < rules->count; i++)
		if (strcmp(rules->rules[i].word, word) == 0)
			return &rules->rules[i];
	return NULL;
}

/* That of the word, made if there is none. NULL: no memory. */
static struct gt_event_rule *need(struct gt_event_rules *rules, const char *word)
{
	struct gt_event_rule *rule = find_word(rules, word), *grown;
	char *copy;

	if (rule)
		return rule;
	copy = strdup(word);
	grown = copy ? realloc(rules->rules, (rules->count + 1) * sizeof(*rules->rules)) : NULL;
	if (!grown) {
		free(copy);
		return NULL;
	}
	rules->rules = grown;
	grown[rules->count] = (struct gt_event_rule){ .word = copy };
	return &grown[rules->count++];
}

int gt_event_rules_set_filter(struct gt_event_rules *rules, const char *word, const char *filter,
			      struct gt_message *message)
{
	char *copy = filter ? strdup(filter) : NULL;
	struct gt_event_rule *rule = filter && !copy ? NULL : need(rules, word), moved;

	if (!rule) {
		free(copy);
		return gt_fail(message, GT_ENOMEM, "no memory for a filter");
	}
	free(rule->filter);
	rule->filter = copy;
	rule->has_filter = true;
	rule->tried = rule->fitted = 0;
	rule->misfit.text[0] = 0;
	/* The last one says. */
	moved = *rule;
	memmove(rule, rule + 1, (size_t)(&rules->rules[rules->count - 1] - rule) * sizeof(*rule));
	rules->rules[rules->count - 1] = moved;
	return 0;
}

/* ---- triggers ---- */

/* What does the opposite is of the same kind. */
static enum graftrace_rule_action kind_of(enum graftrace_rule_action action)
{
	return action == GRAFTRACE_RULE_TRACEOFF  ? GRAFTRACE_RULE_TRACEON
	       : action == GRAFTRACE_RULE_DISABLE ? GRAFTRACE_RULE_ENABLE
						  : action;
}

static bool is_same(const struct gt_event_trigger *a, const struct gt_event_trigger *b)
{
	return kind_of(a->action) == kind_of(b->action) &&
	       (!a->target || !b->target ? a->target == b->target
					 : strcmp(a->target, b->target) == 0);
}

/* As Linux has them: one of each kind, and one that enables or disables a target. */
static struct gt_event_action *find_action(const struct gt_event_rule *rule,
					   const struct gt_event_trigger *trigger)
{
	uint32_t i;

	for (i = 0; rule && i < rule->action_count; i++)
		if (is_same(&rule->actions[i].trigger, trigger))
			return &rule->actions[i];
	return NULL;
}

/* 0: there is none left. */
static uint32_t take_word(struct gt_event_rules *rules, uint64_t value)
{
	uint32_t i;

	for (i = 1; i < GRAFTRACE_ARENA_WORDS; i++) {
		if (rules->words[i])
			continue;
		rules->words[i] = 1;
		__atomic_store_n(&graftrace_arena_rule_words(rules->pool.arena)[i], value,
				 __ATOMIC_RELEASE);
		return i;
	}
	return 0;
}

static uint64_t value_of(const struct gt_event_rules *rules, uint32_t word)
{
	return __atomic_load_n(&graftrace_arena_rule_words(rules->pool.arena)[word],
			       __ATOMIC_RELAXED);
}

static void remove_action(struct gt_event_rules *rules, struct gt_event_rule *rule,
			  struct gt_event_action *action)
{
	struct gt_event_rule *target =
		action->trigger.target ? find_word(rules, action->trigger.target) : NULL;

	if (target && target->targeted > 0)
		target->targeted--;
	rules->words[action->word] = 0;
	forget_action(action);
	rule->action_count--;
	memmove(action, action + 1,
		(size_t)(&rule->actions[rule->action_count] - action) * sizeof(*action));
}

static void open_gate(struct gt_event_rules *rules, struct gt_event_rule *rule, bool on)
{
	rule->gate_recorded = on;
	__atomic_store_n(&graftrace_arena_rule_words(rules->pool.arena)[rule->gate], on,
			 __ATOMIC_RELEASE);
}

static int add_action(struct gt_event_rules *rules, const char *word,
		      const struct gt_event_trigger *trigger)
{
	struct gt_event_action action = { .trigger = *trigger }, *grown;
	struct gt_event_rule *rule, *target;

	if (trigger->target) {
		target = need(rules, trigger->target);
		if (!target)
			return GT_ENOMEM;
		if (!target->gate)
			target->gate = take_word(rules, 0);
		if (!target->gate)
			return GT_ENOSPC;
		if (!target->targeted) /* it begins as set_event has it */
			open_gate(rules, target, false);
	}
	rule = need(rules, word);
	grown = rule ? realloc(rule->actions, (rule->action_count + 1) * sizeof(*grown)) : NULL;
	if (!grown)
		return GT_ENOMEM;
	rule->actions = grown;
	if (rule->action_count + 1 >= GRAFTRACE_RULES_MAX)
		return GT_ENOSPC;
	action.trigger.filter = trigger->filter ? strdup(trigger->filter) : NULL;
	action.trigger.target = trigger->target ? strdup(trigger->target) : NULL;
	action.word = take_word(rules, 0);
	if (!action.word || (trigger->filter && !action.trigger.filter) ||
	    (trigger->target && !action.trigger.target)) {
		rules->words[action.word] = 0;
		forget_action(&action);
		return GT_ENOMEM;
	}
	memmove(&grown[1], &grown[0], rule->action_count * sizeof(*grown));
	grown[0] = action;
	rule->action_count++;
	if (trigger->target)
		find_word(rules, trigger->target)->targeted++;
	return 0;
}

int gt_event_rules_trigger(struct gt_event_rules *rules, const char *word,
			   const struct gt_event_trigger *trigger, bool remove,
			   struct gt_message *message)
{
	struct gt_event_rule *rule = find_word(rules, word);
	struct gt_event_action *there = find_action(rule, trigger);
	int error;

	if (remove && !there)
		return gt_fail(message, GT_ENOENT, "%s has no such trigger", word);
	if (remove) {
		remove_action(rules, rule, there);
		return 0;
	}
	if (there)
		return gt_fail(message, GT_EEXIST, "%s has such a trigger", word);
	error = add_action(rules, word, trigger);
	return error ? gt_fail(message, error, "no room for a trigger") : 0;
}

bool gt_event_rules_get_trigger(const struct gt_event_rules *rules, const char *word,
				uint32_t index, struct gt_event_trigger *trigger)
{
	const struct gt_event_rule *rule = find_word(rules, word);
	uint64_t hits;

	if (!rule || index >= rule->action_count)
		return false;
	*trigger = rule->actions[index].trigger;
	if (trigger->limit != GRAFTRACE_RULE_UNLIMITED) {
		hits = value_of(rules, rule->actions[index].word);
		trigger->limit = hits < trigger->limit ? trigger->limit - hits : 0;
	}
	return true;
}

static const struct gt_event_rule *find_name(const struct gt_event_rules *rules, const char *system,
					     const char *name)
{
	const size_t bytes = strlen(system);
	size_t i;

	for (i = 0; i < rules->count; i++) {
		const char *word = rules->rules[i].word;

		if (strncmp(word, system, bytes) == 0 && word[bytes] == ':' &&
		    strcmp(word + bytes + 1, name) == 0)
			return &rules->rules[i];
	}
	return NULL;
}

bool gt_event_rules_act(const struct gt_event_rules *rules, const char *system, const char *name)
{
	const struct gt_event_rule *rule = find_name(rules, system, name);

	return rule && (rule->action_count || rule->targeted);
}

bool gt_event_rules_gate(const struct gt_event_rules *rules, const char *system, const char *name,
			 bool *on)
{
	const struct gt_event_rule *rule = find_name(rules, system, name);

	if (!rule || !rule->targeted)
		return false;
	*on = value_of(rules, rule->gate) != 0;
	return true;
}

bool gt_event_rules_have_action(const struct gt_event_rules *rules, const char *word,
				enum graftrace_rule_action action)
{
	const struct gt_event_rule *rule = find_word(rules, word);
	uint32_t i;

	for (i = 0; rule && i < rule->action_count; i++)
		if (rule->actions[i].trigger.action == action)
			return true;
	return false;
}

/* ---- blocks ---- */

/* The last one that says something of the event's filter. */
static struct gt_event_rule *find_filter(const struct gt_event_rules *rules,
					 const struct gt_event_format *event)
{
	size_t i;

	for (i = rules->count; i-- > 0;)
		if (rules->rules[i].has_filter &&
		    gt_event_word_matches(rules->rules[i].word, event->system, event->name))
			return &rules->rules[i];
	return NULL;
}

struct builder {
	struct graftrace_event_rules *block;
	uint64_t used; /* rules are counted from the start: there is room for all of them */
	uint64_t room;
};

/* Adds a rule. False: the event does not have what its filter asks for; nothing is added. */
static bool add(struct builder *builder, struct graftrace_rule rule,
		const struct gt_event_format *event, const char *filter,
		struct gt_event_filter_error *error)
{
	struct graftrace_rule *at = (struct graftrace_rule *)(builder->block + 1);
	int64_t bytes = 0;

	if (filter) {
		bytes = gt_event_filter_make(
			event, filter, strlen(filter),
			(struct graftrace_filter *)((char *)builder->block + builder->used),
			builder->room - builder->used, error);
		if (bytes < 0)
			return false;
		rule.filter = (uint32_t)builder->used;
	}
	at[builder->block->count++] = rule;
	builder->used += ((uint64_t)bytes + 7) & ~7ull;
	return true;
}

/* The event is recorded, where its filter says so. */
static void add_record(struct builder *builder, struct gt_event_rule *filter, uint32_t gate,
		       const struct gt_event_format *event)
{
	const struct graftrace_rule record = { .action = GRAFTRACE_RULE_RECORD, .word = gate };
	struct gt_event_filter_error error;

	if (filter && filter->filter) {
		filter->tried++;
		if (add(builder, record, event, filter->filter, &error)) {
			filter->fitted++;
			return;
		}
		if (!filter->misfit.text[0])
			gt_fail(&filter->misfit, GT_EINVAL, "filter '%s' of %s:%s: %s",
				filter->filter, event->system, event->name,
				error.text ? error.text : "Error");
	}
	add(builder, record, event, NULL, &error);
}

static void add_actions(struct builder *builder, const struct gt_event_rules *rules,
			struct gt_event_rule *rule, const struct gt_event_format *event)
{
	struct gt_event_filter_error error;
	uint32_t i;

	for (i = rule->action_count; i-- > 0;) {
		struct gt_event_action *action = &rule->actions[i];
		const struct gt_event_rule *target =
			action->trigger.target ? find_word(rules, action->trigger.target) : NULL;

		const struct graftrace_rule made = {
			.action = action->trigger.action,
			.word = action->word,
			.limit = action->trigger.limit,
			.argument = target ? target->gate : 0,
		};

		if (!add(builder, made, event, action->trigger.filter, &error))
			gt_fail(&action->misfit, GT_EINVAL, "trigger of %s:%s if '%s': %s",
				event->system, event->name, action->trigger.filter,
				error.text ? error.text : "Error");
	}
}

static uint64_t room_of(const char *filter)
{
	return filter ? GT_EVENT_FILTER_ROOM(strlen(filter)) + 8 : 0;
}

/* What of the arena the event's rules take at most. */
static uint64_t room_for(const struct gt_event_rule *filter, const struct gt_event_rule *own)
{
	uint64_t room = sizeof(struct graftrace_event_rules) + sizeof(struct graftrace_rule);
	uint32_t i;

	room += filter ? room_of(filter->filter) : 0;
	for (i = 0; own && i < own->action_count; i++)
		room += sizeof(struct graftrace_rule) + room_of(own->actions[i].trigger.filter);
	return room;
}

/* While others enable and disable the event, set_event does as well. */
static void set_gate(struct gt_event_rules *rules, struct gt_event_rule *own, bool recorded)
{
	if (own->gate_recorded != recorded)
		open_gate(rules, own, recorded);
}

int gt_event_rules_arm(struct gt_event_rules *rules, const struct gt_event_format *event,
		       bool recorded, struct gt_message *message)
{
	struct gt_event_rule *filter = find_filter(rules, event);
	struct gt_event_rule *own =
		(struct gt_event_rule *)find_name(rules, event->system, event->name);
	const bool gated = own && own->targeted;
	const bool needed = (filter && filter->filter) || (own && own->action_count) || gated;
	struct builder builder = { .room = room_for(filter, own) };
	int error = 0;

	if (!needed)
		return gt_rule_pool_get(&rules->pool, event->number)
			       ? gt_rule_pool_put(&rules->pool, event->number, NULL)
			       : 0;
	builder.block = calloc(1, builder.room);
	if (!builder.block)
		return gt_fail(message, GT_ENOMEM, "no memory for an event's rules");
	builder.used = sizeof(*builder.block) +
		       (1 + (own ? own->action_count : 0)) * sizeof(struct graftrace_rule);
	if (gated)
		set_gate(rules, own, recorded);
	if (recorded || gated)
		add_record(&builder, filter, gated ? own->gate : 0, event);
	if (own)
		add_actions(&builder, rules, own, event);
	builder.block->bytes = (uint32_t)builder.used;
	error = gt_rule_pool_put(&rules->pool, event->number, builder.block);
	if (error)
		gt_fail(message, error, "no room for the filters of so many events");
	free(builder.block);
	return error;
}

int gt_event_rules_check(const struct gt_event_rules *rules, struct gt_message *message)
{
	size_t i;
	uint32_t k;

	for (i = 0; i < rules->count; i++) {
		const struct gt_event_rule *rule = &rules->rules[i];

		if (rule->tried && !rule->fitted)
			return gt_fail(message, GT_EINVAL, "%s", rule->misfit.text);
		for (k = 0; k < rule->action_count; k++)
			if (rule->actions[k].misfit.text[0])
				return gt_fail(message, GT_EINVAL, "%s",
					       rule->actions[k].misfit.text);
	}
	return 0;
}
