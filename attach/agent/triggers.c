/* SPDX-License-Identifier: MIT */
/*
 * Triggers: see triggers.h. The target can write the table too; of what stands there only the
 * numbers that this side put in are compared, and no loop is longer than the table.
 */
#define _GNU_SOURCE
#include "attach/agent/triggers.h"
#include "attach/process/process.h"
#include "core/trace/message.h"
#include "attach/process/clock.h"
#include "core/trace/glob.h"

#include <stdlib.h>
#include <string.h>

#define RULES_MAX 65535u

void gt_triggers_init(struct gt_triggers *triggers, struct gt_arena *arena,
		      const struct gt_clock *clock)
{
	*triggers = (struct gt_triggers){ .arena = arena, .clock = clock };
}

void gt_triggers_fini(struct gt_triggers *triggers)
{
	for (uint32_t i = 0; i < triggers->count; i++)
		free(triggers->rules[i].glob);
	free(triggers->rules);
	triggers->rules = NULL;
	triggers->count = triggers->room = 0;
}

static int64_t find(const struct gt_triggers *triggers, const struct gt_trigger *trigger)
{
	for (uint32_t i = 0; i < triggers->count; i++) {
		const struct gt_trigger_rule *rule = &triggers->rules[i];

		if (rule->glob != NULL && rule->trigger.action == trigger->action &&
		    rule->trigger.longer_than_ns == trigger->longer_than_ns &&
		    (rule->trigger.count == 0) == (trigger->count == 0) &&
		    strcmp(rule->glob, trigger->glob) == 0)
			return i;
	}
	return -1;
}

/* Each arena counts its own processes' hits. */
static void clear_hits(const struct gt_triggers *triggers, uint32_t slot)
{
	const struct gt_arena *arena;

	for (arena = triggers->arena; arena != NULL; arena = arena->next)
		__atomic_store_n(gt_arena_trigger_hits(arena, slot), 0, __ATOMIC_RELEASE);
}

static uint64_t most_hits(const struct gt_triggers *triggers, uint32_t slot)
{
	const struct gt_arena *arena;
	uint64_t most = 0;

	for (arena = triggers->arena; arena != NULL; arena = arena->next) {
		uint64_t hits =
			__atomic_load_n(gt_arena_trigger_hits(arena, slot), __ATOMIC_RELAXED);

		most = hits > most ? hits : most;
	}
	return most;
}

/* The slots of one rule: what changes in each. */
static void each_slot(struct gt_triggers *triggers, uint32_t rule, bool remove)
{
	for (uint32_t i = 0; i < triggers->arena->trigger_count; i++) {
		struct graftrace_trigger *slot = gt_arena_trigger(triggers->arena, i);

		if (slot->function == 0 || slot->function == GRAFTRACE_TRIGGER_GONE ||
		    slot->host != rule)
			continue;
		if (remove) {
			__atomic_store_n(&slot->function, GRAFTRACE_TRIGGER_GONE, __ATOMIC_RELEASE);
			continue;
		}
		slot->skip = triggers->rules[rule].trigger.skip;
		slot->count = triggers->rules[rule].trigger.count;
		clear_hits(triggers, i);
	}
}

/* Index of a rule that is free, or -1. */
static int64_t free_rule(struct gt_triggers *triggers)
{
	struct gt_trigger_rule *grown;
	uint32_t room;

	for (uint32_t i = 0; i < triggers->count; i++)
		if (triggers->rules[i].glob == NULL)
			return i;
	if (triggers->count == triggers->room) {
		room = triggers->room ? triggers->room * 2 : 16;
		grown = realloc(triggers->rules, room * sizeof(*grown));
		if (grown == NULL)
			return -1;
		triggers->rules = grown;
		triggers->room = room;
	}
	return triggers->count++;
}

int gt_triggers_add(struct gt_triggers *triggers, const struct gt_trigger *trigger,
		    struct gt_message *message)
{
	int64_t at = find(triggers, trigger);
	char *glob;

	if (at >= 0) {
		triggers->rules[at].trigger.skip = trigger->skip;
		triggers->rules[at].trigger.count = trigger->count;
		each_slot(triggers, (uint32_t)at, false);
		return 0;
	}
	if (triggers->count == RULES_MAX)
		return gt_fail(message, GT_ENOSPC, "there are too many triggers");
	glob = strdup(trigger->glob);
	at = glob != NULL ? free_rule(triggers) : -1;
	if (at < 0) {
		free(glob);
		return gt_fail(message, GT_ENOMEM, "no memory for a trigger");
	}
	triggers->rules[at].trigger = *trigger;
	triggers->rules[at].trigger.glob = glob;
	triggers->rules[at].glob = glob;
	return 0;
}

int gt_triggers_remove(struct gt_triggers *triggers, const struct gt_trigger *trigger)
{
	int64_t at = find(triggers, trigger);

	if (at < 0)
		return GT_ENOENT;
	each_slot(triggers, (uint32_t)at, true);
	free(triggers->rules[at].glob);
	triggers->rules[at].glob = NULL;
	return 0;
}

int gt_triggers_get(const struct gt_triggers *triggers, uint32_t index, struct gt_trigger *trigger,
		    bool *spent)
{
	uint64_t most = 0;
	uint32_t i, slots = 0;

	for (i = 0; i < triggers->count; i++)
		if (triggers->rules[i].glob != NULL && index-- == 0)
			break;
	if (i >= triggers->count)
		return GT_ENOENT;
	*trigger = triggers->rules[i].trigger;
	*spent = false;
	if (!trigger->count)
		return 0;
	for (index = 0; index < triggers->arena->trigger_count; index++) {
		struct graftrace_trigger *slot = gt_arena_trigger(triggers->arena, index);
		uint64_t hits = most_hits(triggers, index), left;

		if (slot->function == 0 || slot->function == GRAFTRACE_TRIGGER_GONE ||
		    slot->host != i)
			continue;
		left = hits <= trigger->skip ? trigger->count
		       : hits - trigger->skip < trigger->count
			       ? trigger->count - (hits - trigger->skip)
			       : 0;
		most = left > most ? left : most;
		slots++;
	}
	*spent = slots && !most;
	if (slots)
		trigger->count = most;
	return 0;
}

bool gt_triggers_has(const struct gt_triggers *triggers, uint32_t function,
		     enum gt_trigger_action action)
{
	uint32_t at = graftrace_trigger_slot(function), i;

	if (function == 0 || function == GRAFTRACE_TRIGGER_GONE)
		return false;
	for (i = 0; i < triggers->arena->trigger_count; i++, at++) {
		const struct graftrace_trigger *slot =
			gt_arena_trigger(triggers->arena, at % triggers->arena->trigger_count);

		if (slot->function == 0)
			return false;
		if (slot->function == function && slot->action == (uint8_t)action)
			return true;
	}
	return false;
}

static bool names(const struct gt_trigger_rule *rule, const char *plain, const char *shown)
{
	return rule->glob != NULL && (gt_glob_match(rule->glob, plain) ||
				      (shown != plain && gt_glob_match(rule->glob, shown)));
}

bool gt_triggers_match(const struct gt_triggers *triggers, const char *plain, const char *shown)
{
	for (uint32_t i = 0; triggers != NULL && i < triggers->count; i++)
		if (names(&triggers->rules[i], plain, shown))
			return true;
	return false;
}

static int put(struct gt_triggers *triggers, uint32_t rule, uint32_t function, uint8_t kind)
{
	const struct gt_trigger *trigger = &triggers->rules[rule].trigger;
	struct graftrace_trigger *free_slot = NULL;
	uint32_t at = graftrace_trigger_slot(function), free_at = 0, i;
	uint64_t ticks = 0;

	for (i = 0; i < triggers->arena->trigger_count; i++, at++) {
		uint32_t index = at % triggers->arena->trigger_count;
		struct graftrace_trigger *slot = gt_arena_trigger(triggers->arena, index);
		uint32_t there = __atomic_load_n(&slot->function, __ATOMIC_ACQUIRE);

		if (there == function && slot->host == rule) {
			slot->kind = kind;
			return 0;
		}
		if (free_slot == NULL && (there == 0 || there == GRAFTRACE_TRIGGER_GONE)) {
			free_slot = slot;
			free_at = index;
		}
		if (there == 0)
			break;
	}
	if (free_slot == NULL)
		return GT_ENOSPC;
	if (trigger->longer_than_ns) {
		ticks = gt_clock_ticks(triggers->clock, trigger->longer_than_ns);
		ticks = ticks ? ticks : 1;
	}
	free_slot->action = (uint8_t)trigger->action;
	free_slot->kind = kind;
	free_slot->host = (uint16_t)rule;
	free_slot->longer_than = ticks;
	free_slot->skip = trigger->skip;
	free_slot->count = trigger->count;
	clear_hits(triggers, free_at);
	__atomic_store_n(&free_slot->function, function, __ATOMIC_RELEASE);
	return 0;
}

int gt_triggers_arm(struct gt_triggers *triggers, uint32_t function, const char *plain,
		    const char *shown, const struct gt_trigger_role *role)
{
	uint8_t kind = role->entry_only ? GRAFTRACE_ENTRY_ONLY
		       : role->notrace	? GRAFTRACE_ENTRY_NOTRACE
		       : role->root	? GRAFTRACE_ENTRY_ROOT
					: GRAFTRACE_ENTRY_ON;
	bool silent = !role->named;
	int error = 0;

	/* How long a call took is known only of recorded ones. */
	for (uint32_t i = 0; i < triggers->count; i++)
		if (names(&triggers->rules[i], plain, shown) &&
		    triggers->rules[i].trigger.longer_than_ns)
			silent = false;
	for (uint32_t i = 0; !error && i < triggers->count; i++)
		if (names(&triggers->rules[i], plain, shown))
			error = put(triggers, i, function,
				    !silent	       ? kind
				    : role->entry_only ? GRAFTRACE_ENTRY_NOTHING
						       : GRAFTRACE_ENTRY_SILENT);
	return error;
}
