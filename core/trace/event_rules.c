/* SPDX-License-Identifier: MIT */
/* Rules of events: see event_rules.h. */
#include "core/trace/event_rules.h"
#include "core/trace/message.h"
#include "core/trace/event_filter.h"
#include "core/trace/strings.h"

void gt_event_rules_init(struct gt_event_rules *rules, const struct gt_rules_host *host)
{
	struct gt_rules_arena arena = { 0 };

	host->arena(host->data, 0, &arena);
	rules->host = host;
	rules->word_count = arena.memory->rule_word_count < GRAFTRACE_ARENA_WORDS
				    ? arena.memory->rule_word_count
				    : GRAFTRACE_ARENA_WORDS;
	gt_rule_pool_init(&rules->pool, arena.memory);
	gt_hists_init(&rules->hists, host);
}

static const struct gt_memory *memory_of(const struct gt_event_rules *rules)
{
	return &rules->host->memory;
}

/* One more than `count`, of `bytes` each. NULL: no memory, and `list` stays. */
static void *grow(const struct gt_event_rules *rules, void *list, size_t count, size_t bytes)
{
	const struct gt_memory *memory = memory_of(rules);

	return memory->resize(memory->data, list, count * bytes, (count + 1) * bytes);
}

/* Keeps the text, NULL too. False: no memory. */
static bool keep(const struct gt_event_rules *rules, const char *text, char **kept)
{
	*kept = text != NULL ? gt_string_keep(memory_of(rules), text, gt_string_bytes(text)) : NULL;
	return text == NULL || *kept != NULL;
}

static void forget_action(struct gt_event_rules *rules, struct gt_event_action *action)
{
	gt_string_drop(memory_of(rules), action->trigger.filter);
	gt_string_drop(memory_of(rules), action->trigger.target);
	gt_string_drop(memory_of(rules), action->trigger.hist);
	gt_hists_free(&rules->hists, action->hist);
}

static void forget(struct gt_event_rules *rules, struct gt_event_rule *rule)
{
	for (uint32_t i = 0; i < rule->action_count; i++)
		forget_action(rules, &rule->actions[i]);
	gt_memory_put(memory_of(rules), rule->actions, rule->action_room * sizeof(*rule->actions));
	gt_memory_put(memory_of(rules), rule->waiting,
		      rule->waiting_count * sizeof(*rule->waiting));
	gt_string_drop(memory_of(rules), rule->word);
	gt_string_drop(memory_of(rules), rule->filter);
}

void gt_event_rules_fini(struct gt_event_rules *rules)
{
	if (rules->host == NULL)
		return;
	for (size_t i = 0; i < rules->count; i++)
		forget(rules, &rules->rules[i]);
	gt_hists_fini(&rules->hists);
	gt_memory_put(memory_of(rules), rules->rules, rules->count * sizeof(*rules->rules));
	rules->rules = NULL;
	rules->count = 0;
}

static struct gt_event_rule *find_word(const struct gt_event_rules *rules, const char *word)
{
	for (size_t i = 0; i < rules->count; i++)
		if (gt_string_is(rules->rules[i].word, word))
			return &rules->rules[i];
	return NULL;
}

/* That of the word, made if there is none. NULL: no memory. */
static struct gt_event_rule *need(struct gt_event_rules *rules, const char *word)
{
	struct gt_event_rule *rule = find_word(rules, word), *grown;
	char *copy;

	if (rule != NULL)
		return rule;
	grown = keep(rules, word, &copy)
			? grow(rules, rules->rules, rules->count, sizeof(*rules->rules))
			: NULL;
	if (grown == NULL) {
		gt_string_drop(memory_of(rules), copy);
		return NULL;
	}
	rules->rules = grown;
	grown[rules->count] = (struct gt_event_rule){ .word = copy };
	return &grown[rules->count++];
}

int gt_event_rules_set_filter(struct gt_event_rules *rules, const char *word, const char *filter,
			      struct gt_message *message)
{
	char *copy;
	struct gt_event_rule *rule = keep(rules, filter, &copy) ? need(rules, word) : NULL, moved;

	if (rule == NULL) {
		gt_string_drop(memory_of(rules), copy);
		return gt_fail(message, GT_ENOMEM, "no memory for a filter");
	}
	gt_string_drop(memory_of(rules), rule->filter);
	rule->filter = copy;
	rule->has_filter = true;
	rule->tried = rule->fitted = 0;
	rule->misfit.text[0] = 0;
	/* The last one says. */
	moved = *rule;
	__builtin_memmove(rule, rule + 1,
			  (size_t)(&rules->rules[rules->count - 1] - rule) * sizeof(*rule));
	rules->rules[rules->count - 1] = moved;
	return 0;
}

/* ---- triggers ---- */

/* What does the opposite is of the same kind. */
static enum graftrace_rule_action kind_of(enum graftrace_rule_action action)
{
	return action == GRAFTRACE_RULE_TRACEOFF   ? GRAFTRACE_RULE_TRACEON
	       : action == GRAFTRACE_RULE_DISABLE  ? GRAFTRACE_RULE_ENABLE
	       : action == GRAFTRACE_RULE_HIST_OFF ? GRAFTRACE_RULE_HIST_ON
						   : action;
}

static bool is_same(const struct gt_event_trigger *a, const struct gt_event_trigger *b)
{
	return kind_of(a->action) == kind_of(b->action) && gt_string_is(a->target, b->target);
}

/* As Linux has them: one of each kind, and one that enables or disables a target. */
static struct gt_event_action *find_action(const struct gt_event_rule *rule,
					   const struct gt_event_trigger *trigger)
{
	for (uint32_t i = 0;
	     rule != NULL && trigger->action != GRAFTRACE_RULE_HIST && i < rule->action_count; i++)
		if (is_same(&rule->actions[i].trigger, trigger))
			return &rule->actions[i];
	return NULL;
}

/* In all arenas, each of whose processes have their own. */
static void write_word(struct gt_event_rules *rules, uint32_t word, uint64_t value)
{
	struct gt_rules_arena arena;

	for (uint32_t i = 0; rules->host->arena(rules->host->data, i, &arena); i++)
		__atomic_store_n(&graftrace_arena_rule_words(arena.memory)[word], value,
				 __ATOMIC_RELEASE);
}

/* 0: there is none left. */
static uint32_t take_word(struct gt_event_rules *rules, uint64_t value)
{
	for (uint32_t i = 1; i < rules->word_count; i++) {
		if (rules->words[i])
			continue;
		rules->words[i] = 1;
		write_word(rules, i, value);
		return i;
	}
	return 0;
}

static uint64_t value_of(const struct gt_event_rules *rules, uint32_t word)
{
	struct gt_rules_arena arena;
	uint64_t most = 0;

	for (uint32_t i = 0; rules->host->arena(rules->host->data, i, &arena); i++) {
		uint64_t value = __atomic_load_n(&graftrace_arena_rule_words(arena.memory)[word],
						 __ATOMIC_RELAXED);

		most = value > most ? value : most;
	}
	return most;
}

static void remove_action(struct gt_event_rules *rules, struct gt_event_rule *rule,
			  struct gt_event_action *action)
{
	struct gt_event_rule *target =
		action->trigger.target != NULL ? find_word(rules, action->trigger.target) : NULL;

	if (target != NULL && target->targeted > 0)
		target->targeted--;
	rules->words[action->word] = 0;
	forget_action(rules, action);
	rule->action_count--;
	__builtin_memmove(action, action + 1,
			  (size_t)(&rule->actions[rule->action_count] - action) * sizeof(*action));
}

static void open_gate(struct gt_event_rules *rules, struct gt_event_rule *rule, bool on)
{
	rule->gate_recorded = on;
	write_word(rules, rule->gate, on);
}

/* Room for one more action. NULL: no memory. */
static struct gt_event_action *need_action(struct gt_event_rules *rules, struct gt_event_rule *rule)
{
	struct gt_event_action *grown = rule->actions;

	if (rule->action_count == rule->action_room) {
		grown = grow(rules, rule->actions, rule->action_room, sizeof(*grown));
		if (grown == NULL)
			return NULL;
		rule->actions = grown;
		rule->action_room++;
	}
	return grown;
}

/* Its strings are copied. hist: its own from now on, also if it cannot be. */
static int add_action(struct gt_event_rules *rules, const char *word,
		      const struct gt_event_trigger *trigger, struct gt_hist_use *hist)
{
	struct gt_event_action action = { .hist = hist }, *grown;
	struct gt_event_rule *rule, *target;
	bool copied;

	if (trigger->target != NULL) {
		target = need(rules, trigger->target);
		if (target == NULL)
			return GT_ENOMEM;
		if (!target->gate)
			target->gate = take_word(rules, 0);
		if (!target->gate)
			return GT_ENOSPC;
		if (!target->targeted) /* it begins as set_event has it */
			open_gate(rules, target, false);
	}
	rule = need(rules, word);
	grown = rule != NULL ? need_action(rules, rule) : NULL;
	action.trigger =
		(struct gt_event_trigger){ .action = trigger->action, .limit = trigger->limit };
	copied = keep(rules, trigger->filter, (char **)&action.trigger.filter);
	copied &= keep(rules, trigger->target, (char **)&action.trigger.target);
	copied &= keep(rules, trigger->hist, (char **)&action.trigger.hist);
	action.word = grown != NULL && copied
			      ? take_word(rules, hist != NULL && hist->hist.is_paused)
			      : 0;
	if (!action.word || rule->action_count + 1 >= GRAFTRACE_RULES_MAX) {
		rules->words[action.word] = 0;
		forget_action(rules, &action);
		return grown != NULL && copied ? GT_ENOSPC : GT_ENOMEM;
	}
	if (hist != NULL) {
		grown[rule->action_count] = action;
	} else {
		__builtin_memmove(&grown[1], &grown[0], rule->action_count * sizeof(*grown));
		grown[0] = action;
	}
	rule->action_count++;
	if (trigger->target != NULL)
		find_word(rules, trigger->target)->targeted++;
	return 0;
}

/* ---- histograms ---- */

/* Of those without a name, or of those with the same one. */
static bool is_hist(const struct gt_event_action *action, const struct gt_hist *hist)
{
	return action->hist != NULL && gt_string_is(action->hist->hist.name, hist->name) &&
	       gt_hist_is_same(&action->hist->hist, hist);
}

static struct gt_event_action *find_hist(const struct gt_event_rule *rule,
					 const struct gt_hist_use *use, const char *filter)
{
	for (uint32_t i = 0; rule != NULL && i < rule->action_count; i++)
		if (is_hist(&rule->actions[i], &use->hist) &&
		    gt_string_is(rule->actions[i].trigger.filter, filter))
			return &rule->actions[i];
	return NULL;
}

const struct gt_hist_use *gt_event_rules_same(const struct gt_event_rules *rules, const char *word,
					      const struct gt_hist *hist)
{
	const struct gt_event_rule *rule = find_word(rules, word);

	for (uint32_t i = 0; rule != NULL && i < rule->action_count; i++)
		if (is_hist(&rule->actions[i], hist))
			return rule->actions[i].hist;
	return NULL;
}

/* Another one of its name, of any event, that is not the same. */
static bool is_misnamed(const struct gt_event_rules *rules, const struct gt_hist_use *use)
{
	for (size_t i = 0; use->hist.name != NULL && i < rules->count; i++)
		for (uint32_t k = 0; k < rules->rules[i].action_count; k++) {
			const struct gt_hist_use *other = rules->rules[i].actions[k].hist;

			if (other != NULL && other->table == use->table &&
			    !gt_hist_is_same(&other->hist, &use->hist))
				return true;
		}
	return false;
}

/* With those that were made for it. */
static void remove_hist(struct gt_event_rules *rules, const struct gt_hist_use *use)
{
	for (size_t i = 0; i < rules->count; i++)
		for (uint32_t k = rules->rules[i].action_count; k-- > 0;) {
			struct gt_event_action *action = &rules->rules[i].actions[k];

			if (action->hist != NULL &&
			    (action->hist == use || action->made_for == use))
				remove_action(rules, &rules->rules[i], action);
		}
}

static int change_hist(struct gt_event_rules *rules, struct gt_event_action *action,
		       const struct gt_hist *asked, struct gt_message *message)
{
	if (!asked->is_paused && !asked->is_continued)
		return gt_hists_clear(&rules->hists, action->hist, message);
	write_word(rules, action->word, asked->is_paused);
	return 0;
}

int gt_event_rules_add_hist(struct gt_event_rules *rules, const char *word,
			    const struct gt_event_trigger *trigger,
			    const struct gt_hist_use *made_for, struct gt_message *message)
{
	struct gt_hist_use *use = gt_hists_new(&rules->hists, trigger->hist);
	struct gt_event_rule *rule;
	int error = use != NULL ? add_action(rules, word, trigger, use) : GT_ENOMEM;

	if (error)
		return gt_fail(message, error, "no room for a histogram");
	rule = find_word(rules, word);
	rule->actions[rule->action_count - 1].made_for = made_for;
	return 0;
}

/* With those of other events that it reads. */
static int add_hist(struct gt_event_rules *rules, const char *word,
		    const struct gt_event_trigger *trigger, struct gt_hist_use *use,
		    struct gt_message *message)
{
	struct gt_hist *parsed = gt_memory_get(memory_of(rules), sizeof(*parsed));
	struct gt_hist_error wrong;
	int error = parsed != NULL ? add_action(rules, word, trigger, use) : GT_ENOMEM;

	if (error) {
		gt_memory_put(memory_of(rules), parsed, sizeof(*parsed));
		return gt_fail(message, error, "no room for a histogram");
	}
	/* Where the event is not known yet, neither is what it needs. */
	rules->looking = use;
	if (gt_event_rules_parse_hist(rules, word, trigger->hist, false, parsed, &wrong) == 0)
		error = gt_event_rules_make_foreign(rules, parsed, use, message);
	rules->looking = NULL;
	gt_memory_put(memory_of(rules), parsed, sizeof(*parsed));
	if (error)
		remove_hist(rules, use);
	return error;
}

static int trigger_hist(struct gt_event_rules *rules, const char *word,
			const struct gt_event_trigger *trigger, bool remove,
			struct gt_message *message)
{
	struct gt_hist_use *use = gt_hists_new(&rules->hists, trigger->hist);
	struct gt_event_rule *rule = find_word(rules, word);
	struct gt_event_action *there = use != NULL ? find_hist(rule, use, trigger->filter) : NULL;
	int error = 0;

	if (use == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a histogram");
	if (remove && there != NULL && gt_event_rules_are_read(rules, there->hist))
		error = gt_fail(message, GT_EBUSY, "another histogram reads its variables");
	else if (remove && there != NULL)
		remove_hist(rules, there->hist);
	else if (remove)
		error = gt_fail(message, GT_ENOENT, "%s has no such histogram", word);
	else if (is_misnamed(rules, use))
		error = gt_fail(message, GT_EINVAL,
				"Named hist trigger doesn't match existing named trigger (includes "
				"variables)");
	else if (there != NULL &&
		 (use->hist.is_paused || use->hist.is_continued || use->hist.is_cleared))
		error = change_hist(rules, there, &use->hist, message);
	else if (there != NULL)
		error = gt_fail(message, GT_EEXIST, "Hist trigger already exists");
	else if (use->hist.is_continued || use->hist.is_cleared)
		error = gt_fail(message, GT_ENOENT,
				"Can't clear or continue a nonexistent hist trigger");
	else
		return add_hist(rules, word, trigger, use, message);
	gt_hists_free(&rules->hists, use);
	return error;
}

int gt_event_rules_trigger(struct gt_event_rules *rules, const char *word,
			   const struct gt_event_trigger *trigger, bool remove,
			   struct gt_message *message)
{
	struct gt_event_rule *rule = find_word(rules, word);
	struct gt_event_action *there = find_action(rule, trigger);
	int error;

	if (trigger->action == GRAFTRACE_RULE_HIST)
		return trigger_hist(rules, word, trigger, remove, message);
	if (remove && there == NULL)
		return gt_fail(message, GT_ENOENT, "%s has no such trigger", word);
	if (remove) {
		remove_action(rules, rule, there);
		return 0;
	}
	if (there != NULL)
		return gt_fail(message, GT_EEXIST, "%s has such a trigger", word);
	error = add_action(rules, word, trigger, NULL);
	return error ? gt_fail(message, error, "no room for a trigger") : 0;
}

int gt_event_rules_fits(struct gt_event_rules *rules, const char *word,
			const struct gt_event_trigger *trigger, struct gt_message *message)
{
	struct gt_event_rule *rule = find_word(rules, word);

	for (uint32_t i = 0;
	     rule != NULL && trigger->action == GRAFTRACE_RULE_HIST && i < rule->action_count; i++)
		if (rule->actions[i].hist != NULL && rule->actions[i].misfit.text[0]) {
			const int error = rule->actions[i].unfit;

			gt_fail(message, error, "%s", rule->actions[i].misfit.text);
			remove_hist(rules, rule->actions[i].hist);
			return error;
		}
	return 0;
}

int gt_event_rules_hist(const struct gt_event_rules *rules, const char *word, uint32_t index,
			struct gt_hist_copy *copy)
{
	const struct gt_event_rule *rule = find_word(rules, word);
	const struct gt_event_action *action = NULL;
	int error;

	for (uint32_t i = 0; rule != NULL && action == NULL && i < rule->action_count; i++)
		if (rule->actions[i].hist != NULL && index-- == 0)
			action = &rule->actions[i];
	if (action == NULL)
		return GT_ENOENT;
	error = gt_hists_copy(&rules->hists, action->hist, copy);
	if (error)
		return error;
	copy->is_paused = value_of(rules, action->word) != 0;
	if (!keep(rules, action->trigger.filter, &copy->filter)) {
		gt_hist_copy_free(copy);
		return GT_ENOMEM;
	}
	return 0;
}

bool gt_event_rules_get_trigger(const struct gt_event_rules *rules, const char *word,
				uint32_t index, struct gt_event_trigger *trigger)
{
	const struct gt_event_rule *rule = find_word(rules, word);
	uint64_t hits;

	if (rule == NULL || index >= rule->action_count)
		return false;
	*trigger = rule->actions[index].trigger;
	trigger->is_paused = rule->actions[index].hist != NULL &&
			     value_of(rules, rule->actions[index].word) != 0;
	if (trigger->limit != GRAFTRACE_RULE_UNLIMITED) {
		hits = value_of(rules, rule->actions[index].word);
		trigger->limit = hits < trigger->limit ? trigger->limit - hits : 0;
	}
	return true;
}

/* Moves the string, if there is one, to what is left of the room. False: it does not fit. */
static bool put_string(const char **string, char **text, size_t *room)
{
	const size_t bytes = *string != NULL ? gt_string_bytes(*string) + 1 : 0;

	if (bytes > *room)
		return false;
	if (*string != NULL)
		*string = __builtin_memcpy(*text, *string, bytes);
	*text += bytes;
	*room -= bytes;
	return true;
}

bool gt_event_rules_copy_trigger(const struct gt_event_rules *rules, const char *word,
				 uint32_t index, struct gt_event_trigger *trigger, char *text,
				 size_t room)
{
	return gt_event_rules_get_trigger(rules, word, index, trigger) &&
	       put_string(&trigger->filter, &text, &room) &&
	       put_string(&trigger->target, &text, &room) &&
	       put_string(&trigger->hist, &text, &room);
}

static const struct gt_event_rule *find_name(const struct gt_event_rules *rules, const char *system,
					     const char *name)
{
	for (size_t i = 0; i < rules->count; i++)
		if (gt_string_names(rules->rules[i].word, system, name))
			return &rules->rules[i];
	return NULL;
}

bool gt_event_rules_act(const struct gt_event_rules *rules, const char *system, const char *name)
{
	const struct gt_event_rule *rule = find_name(rules, system, name);

	return rule != NULL && (rule->action_count || rule->targeted);
}

bool gt_event_rules_gate(const struct gt_event_rules *rules, const char *system, const char *name,
			 bool *on)
{
	const struct gt_event_rule *rule = find_name(rules, system, name);

	if (rule == NULL || !rule->targeted)
		return false;
	*on = value_of(rules, rule->gate) != 0;
	return true;
}

static bool takes_snapshots(const struct gt_hist_use *use)
{
	for (uint32_t i = 0; use != NULL && i < use->hist.action_count; i++)
		if (use->hist.actions[i].act == GRAFTRACE_HIST_SNAPSHOT)
			return true;
	return false;
}

bool gt_event_rules_have_action(const struct gt_event_rules *rules, const char *word,
				enum graftrace_rule_action action)
{
	const struct gt_event_rule *rule = find_word(rules, word);

	for (uint32_t i = 0; rule != NULL && i < rule->action_count; i++)
		if (rule->actions[i].trigger.action == action ||
		    (action == GRAFTRACE_RULE_SNAPSHOT && takes_snapshots(rule->actions[i].hist)))
			return true;
	return false;
}

/* ---- blocks ---- */

/* The last one that says something of the event's filter. */
static struct gt_event_rule *find_filter(const struct gt_event_rules *rules,
					 const struct gt_event_format *event)
{
	for (size_t i = rules->count; i-- > 0;)
		if (rules->rules[i].has_filter &&
		    gt_event_word_matches(rules->rules[i].word, event->system, event->name))
			return &rules->rules[i];
	return NULL;
}

struct builder {
	struct graftrace_event_rules *block;
	uint64_t used; /* rules are counted from the start: there is room for all of them */
	uint64_t room;
	bool waits; /* a histogram was left out: another one has no table yet */
};

/* Adds a rule. False: the event does not have what its filter asks for; nothing is added. */
static bool add(struct builder *builder, struct graftrace_rule rule,
		const struct gt_event_format *event, const char *filter,
		struct gt_event_filter_error *error)
{
	struct graftrace_rule *at = (struct graftrace_rule *)(builder->block + 1);
	int64_t bytes = 0;

	if (filter != NULL) {
		bytes = gt_event_filter_make(
			event, filter, gt_string_bytes(filter),
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

	if (filter != NULL && filter->filter != NULL) {
		filter->tried++;
		if (add(builder, record, event, filter->filter, &error)) {
			filter->fitted++;
			return;
		}
		if (!filter->misfit.text[0])
			gt_fail(&filter->misfit, GT_EINVAL, "filter '%s' of %s:%s: %s",
				filter->filter, event->system, event->name,
				error.text != NULL ? error.text : "Error");
	}
	add(builder, record, event, NULL, &error);
}

/* Where its description is in the block; 0: it has none. */
static uint64_t add_description(struct builder *builder, struct gt_event_rules *rules,
				struct gt_event_action *action, const struct gt_event_format *event)
{
	const struct gt_hist_world world = gt_event_rules_world(rules, false);
	const bool had_room = action->hist->table->bytes != 0;
	const uint64_t at = builder->used;
	struct gt_message message = { 0 };
	int error;

	rules->is_waiting = false;
	rules->looking = action->hist;
	error = gt_hists_describe(&rules->hists, action->hist, event, &world, &message);
	rules->looking = NULL;
	rules->is_placed |= !had_room && !error;
	if (rules->is_waiting) {
		builder->waits = true;
		return 0;
	}
	if (error) {
		action->misfit = message;
		action->unfit = error;
		return 0;
	}
	__builtin_memcpy((char *)builder->block + at, &action->hist->description,
			 sizeof(action->hist->description));
	__builtin_memcpy((char *)builder->block + at + sizeof(action->hist->description),
			 action->hist->parts,
			 action->hist->description_bytes - sizeof(action->hist->description));
	builder->used += action->hist->description_bytes;
	return at;
}

static bool is_of_hists(const struct gt_event_action *action)
{
	return action->trigger.action == GRAFTRACE_RULE_HIST_ON ||
	       action->trigger.action == GRAFTRACE_RULE_HIST_OFF;
}

/* A rule for each of the target's histograms, of which the last one counts. */
static uint32_t rules_of(const struct gt_event_rules *rules, const struct gt_event_action *action)
{
	const struct gt_event_rule *target =
		is_of_hists(action) ? find_word(rules, action->trigger.target) : NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; target != NULL && i < target->action_count; i++)
		count += target->actions[i].hist != NULL;
	return is_of_hists(action) ? count : 1;
}

/* False: the filter does not fit. */
static bool add_switches(struct builder *builder, const struct gt_event_rules *rules,
			 const struct gt_event_action *action, struct graftrace_rule made,
			 const struct gt_event_format *event, struct gt_event_filter_error *error)
{
	const struct gt_event_rule *target = find_word(rules, action->trigger.target);
	uint32_t left = rules_of(rules, action), i;

	for (i = 0; target != NULL && i < target->action_count; i++) {
		if (target->actions[i].hist == NULL)
			continue;
		made.argument = target->actions[i].word;
		made.more = --left > 0;
		if (!add(builder, made, event, action->trigger.filter, error))
			return false;
	}
	return true;
}

static void add_one(struct builder *builder, struct gt_event_rules *rules,
		    struct gt_event_action *action, const struct gt_event_format *event)
{
	const struct gt_event_rule *target =
		action->trigger.target != NULL ? find_word(rules, action->trigger.target) : NULL;
	struct gt_event_filter_error error;
	struct graftrace_rule made = {
		.action = action->trigger.action,
		.word = action->word,
		.limit = action->trigger.limit,
		.argument = target != NULL ? target->gate : 0,
	};

	if (action->hist != NULL) {
		made.argument = add_description(builder, rules, action, event);
		if (!made.argument)
			return;
		made.more = action->hist->hist.action_count != 0 ||
			    action->hist->hist.reference_count != 0;
	}
	if (is_of_hists(action) ? !add_switches(builder, rules, action, made, event, &error)
				: !add(builder, made, event, action->trigger.filter, &error)) {
		action->unfit = GT_EINVAL;
		gt_fail(&action->misfit, GT_EINVAL, "trigger of %s:%s if '%s': %s", event->system,
			event->name, action->trigger.filter,
			error.text != NULL ? error.text : "Error");
	}
}

/* The oldest first. */
static void add_actions(struct builder *builder, struct gt_event_rules *rules,
			struct gt_event_rule *rule, const struct gt_event_format *event)
{
	for (uint32_t i = rule->action_count; i-- > 0;)
		if (rule->actions[i].hist == NULL)
			add_one(builder, rules, &rule->actions[i], event);
	for (uint32_t i = 0; i < rule->action_count; i++)
		if (rule->actions[i].hist != NULL)
			add_one(builder, rules, &rule->actions[i], event);
}

static uint64_t room_of(const char *filter)
{
	return filter != NULL ? GT_EVENT_FILTER_ROOM(gt_string_bytes(filter)) + 8 : 0;
}

/* Whether it is recorded is one. */
static uint32_t rule_count(const struct gt_event_rules *rules, const struct gt_event_rule *own)
{
	uint32_t count = 1;

	for (uint32_t i = 0; own != NULL && i < own->action_count; i++)
		count += rules_of(rules, &own->actions[i]);
	return count;
}

/* What of the arena the event's rules take at most. */
static uint64_t room_for(const struct gt_event_rules *rules, const struct gt_event_rule *filter,
			 const struct gt_event_rule *own)
{
	uint64_t room = sizeof(struct graftrace_event_rules) +
			rule_count(rules, own) * sizeof(struct graftrace_rule);

	room += filter != NULL ? room_of(filter->filter) : 0;
	for (uint32_t i = 0; own != NULL && i < own->action_count; i++)
		room += rules_of(rules, &own->actions[i]) *
				room_of(own->actions[i].trigger.filter) +
			(own->actions[i].hist != NULL ? GT_HIST_DESCRIPTION_BYTES : 0);
	return room;
}

/* While others enable and disable the event, set_event does as well. */
static void set_gate(struct gt_event_rules *rules, struct gt_event_rule *own, bool recorded)
{
	if (own->gate_recorded != recorded)
		open_gate(rules, own, recorded);
}

/* It is armed anew once the other histogram has a table. */
static void wait_for(const struct gt_event_rules *rules, struct gt_event_rule *rule,
		     const struct gt_event_format *event, bool recorded)
{
	struct gt_event_waiting *grown;
	uint32_t i = 0;

	while (i < rule->waiting_count && rule->waiting[i].event.number != event->number)
		i++;
	grown = i == rule->waiting_count ? grow(rules, rule->waiting, i, sizeof(*grown))
					 : rule->waiting;
	if (grown == NULL)
		return;
	rule->waiting = grown;
	rule->waiting_count += i == rule->waiting_count;
	grown[i] = (struct gt_event_waiting){ *event, recorded };
}

static int arm(struct gt_event_rules *rules, const struct gt_event_format *event, bool recorded,
	       struct gt_message *message)
{
	struct gt_event_rule *filter = find_filter(rules, event);
	struct gt_event_rule *own =
		(struct gt_event_rule *)find_name(rules, event->system, event->name);
	const bool gated = own != NULL && own->targeted;
	/* One that is made by an action is recorded only where a rule says so. */
	const bool needed = (filter != NULL && filter->filter != NULL) ||
			    (own != NULL && own->action_count) || gated ||
			    gt_string_is(event->system, GT_EVENT_SYNTHETIC);
	struct builder builder = { .room = room_for(rules, filter, own) };
	int error = 0;

	if (!needed)
		return gt_rule_pool_get(&rules->pool, event->number) != NULL
			       ? gt_rule_pool_put(&rules->pool, event->number, NULL)
			       : 0;
	builder.block = gt_memory_get(memory_of(rules), builder.room);
	if (builder.block == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for an event's rules");
	__builtin_memset(builder.block, 0, builder.room);
	builder.used =
		sizeof(*builder.block) + rule_count(rules, own) * sizeof(struct graftrace_rule);
	if (gated)
		set_gate(rules, own, recorded);
	if (recorded || gated)
		add_record(&builder, filter, gated ? own->gate : 0, event);
	if (own != NULL)
		add_actions(&builder, rules, own, event);
	builder.block->bytes = (uint32_t)builder.used;
	error = gt_rule_pool_put(&rules->pool, event->number, builder.block);
	if (error)
		gt_fail(message, error, "no room for the filters of so many events");
	gt_memory_put(memory_of(rules), builder.block, builder.room);
	if (own != NULL && builder.waits)
		wait_for(rules, own, event, recorded);
	return error;
}

/* Those that waited for a table, which may wait again for another. */
static int arm_waiting(struct gt_event_rules *rules, struct gt_message *message)
{
	int error = 0;

	for (size_t i = 0; !error && i < rules->count; i++) {
		struct gt_event_waiting *waiting = rules->rules[i].waiting;
		const uint32_t count = rules->rules[i].waiting_count;

		rules->rules[i].waiting = NULL;
		rules->rules[i].waiting_count = 0;
		for (uint32_t k = 0; !error && k < count; k++)
			error = arm(rules, &waiting[k].event, waiting[k].recorded, message);
		gt_memory_put(memory_of(rules), waiting, count * sizeof(*waiting));
	}
	return error;
}

int gt_event_rules_arm(struct gt_event_rules *rules, const struct gt_event_format *event,
		       bool recorded, struct gt_message *message)
{
	int error = arm(rules, event, recorded, message);

	while (!error && rules->is_placed) {
		rules->is_placed = false;
		error = arm_waiting(rules, message);
	}
	return error;
}

int gt_event_rules_check(const struct gt_event_rules *rules, struct gt_message *message)
{
	for (size_t i = 0; i < rules->count; i++) {
		const struct gt_event_rule *rule = &rules->rules[i];

		if (rule->tried && !rule->fitted)
			return gt_fail(message, GT_EINVAL, "%s", rule->misfit.text);
		for (uint32_t k = 0; k < rule->action_count; k++)
			if (rule->actions[k].misfit.text[0])
				return gt_fail(message, GT_EINVAL, "%s",
					       rule->actions[k].misfit.text);
	}
	return 0;
}
