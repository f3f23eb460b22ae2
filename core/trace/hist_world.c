/* SPDX-License-Identifier: MIT */
/* What histograms know of other events and of other histograms' variables (core/trace/hist.h): see
 * event_rules.h. */
#include "core/trace/event_rules.h"
#include "core/trace/message.h"
#include "core/trace/strings.h"

static bool is_of(const struct gt_event_rule *rule, const char *system, const char *event)
{
	return system == NULL || gt_string_names(rule->word, system, event);
}

static bool find_in(const struct gt_hist_use *use, const char *name, struct gt_hist_found *found)
{
	return use != NULL &&
	       gt_hist_find_variable(&use->hist, name, (uint32_t)(use->table->offset / 64), found);
}

/* Whether the histogram that looks for variables sees this one's. Those that came after it are looked at only if it
 * finds none otherwise: as in Linux, it goes on to read what it read when it was made. */
static bool sees(const struct gt_event_rules *rules, const struct gt_hist_use *use, bool later)
{
	const struct gt_hist_use *looking = rules->looking;

	return use != NULL &&
	       (looking == NULL || (use != looking && (later || use->born < looking->born)));
}

static uint32_t find_those(struct gt_event_rules *rules, const char *system, const char *event,
			   const char *name, bool later, struct gt_hist_found *found)
{
	uint32_t count = 0;

	for (size_t i = 0; i < rules->count; i++) {
		const struct gt_event_rule *rule = &rules->rules[i];

		if (!is_of(rule, system, event))
			continue;
		for (uint32_t k = 0; k < rule->action_count; k++) {
			const struct gt_hist_use *use = rule->actions[k].hist;

			if (!sees(rules, use, later) || !find_in(use, name, found))
				continue;
			rules->is_waiting |= !use->is_described;
			count++;
		}
	}
	return count;
}

static uint32_t find_variable(void *data, const char *system, const char *event, const char *name,
			      struct gt_hist_found *found)
{
	const uint32_t count = find_those(data, system, event, name, false, found);

	return count != 0 ? count : find_those(data, system, event, name, true, found);
}

static const struct gt_event_format *find_event(void *data, const char *system, const char *name)
{
	struct gt_event_rules *rules = data;

	return rules->host->find_event(rules->host->data, system, name, &rules->found);
}

static bool is_alike(void *data, const char *system, const char *event, const struct gt_hist *hist)
{
	return gt_event_rules_alike(data, system, event, hist) != NULL;
}

const struct gt_event_action *gt_event_rules_alike(const struct gt_event_rules *rules,
						   const char *system, const char *event,
						   const struct gt_hist *hist)
{
	for (size_t i = 0; i < rules->count; i++)
		for (uint32_t k = 0;
		     is_of(&rules->rules[i], system, event) && k < rules->rules[i].action_count;
		     k++) {
			const struct gt_event_action *action = &rules->rules[i].actions[k];

			if (action->hist != NULL &&
			    gt_hist_has_same_keys(&action->hist->hist, hist))
				return action;
		}
	return NULL;
}

struct gt_hist_world gt_event_rules_world(struct gt_event_rules *rules, bool is_new)
{
	return (struct gt_hist_world){ find_variable, find_event, is_alike, rules, is_new };
}

int gt_event_rules_parse_hist(struct gt_event_rules *rules, const char *word, const char *text,
			      bool is_new, struct gt_hist *hist, struct gt_hist_error *error)
{
	const struct gt_hist_world world = gt_event_rules_world(rules, is_new);
	const struct gt_event_format *found = NULL;
	const struct gt_hist_use *const looking = rules->looking;
	struct gt_event_format event;
	char *system;
	size_t colon = 0;
	int failed;

	*error = (struct gt_hist_error){ 0 };
	while (word[colon] != '\0' && word[colon] != ':')
		colon++;
	if (word[colon] == '\0')
		return GT_ENOENT;
	system = gt_string_keep(&rules->host->memory, word, colon);
	found = system != NULL ? find_event(rules, system, word + colon + 1) : NULL;
	gt_string_drop(&rules->host->memory, system);
	if (found == NULL)
		return GT_ENOENT;
	event = *found;
	/* One that is there reads what it reads. */
	if (!is_new && rules->looking == NULL &&
	    gt_hist_parse(text, gt_string_bytes(text), NULL, NULL, hist, error) == 0)
		rules->looking = gt_event_rules_same(rules, word, hist);
	failed = gt_hist_parse(text, gt_string_bytes(text), &event, &world, hist, error);
	rules->looking = looking;
	return failed;
}

/* Each of the fields becomes a variable of a histogram with the keys of one that is there, and its filter. */
int gt_event_rules_make_foreign(struct gt_event_rules *rules, const struct gt_hist *hist,
				const struct gt_hist_use *made_for, struct gt_message *message)
{
	const struct gt_event_action *alike;
	struct gt_event_trigger trigger = { .action = GRAFTRACE_RULE_HIST,
					    .limit = GRAFTRACE_RULE_UNLIMITED };
	char text[2 * GT_HIST_BYTES], keys[GT_HIST_BYTES], filter[GT_HIST_BYTES],
		word[GT_HIST_BYTES];
	int error = 0;

	for (uint32_t i = 0; !error && i < hist->foreign_count; i++) {
		alike = gt_event_rules_alike(rules, hist->foreign[i].system, hist->foreign[i].event,
					     hist);
		if (alike == NULL)
			return gt_fail(message, GT_EINVAL, "Matching event histogram not found");
		gt_hist_put_key_text(&alike->hist->hist, keys, sizeof(keys));
		gt_format(text, sizeof(text), "keys=%s:" GT_HIST_FOREIGN_VARIABLE "%s=%s", keys,
			  hist->foreign[i].field, hist->foreign[i].field);
		gt_format(word, sizeof(word), "%s:%s", hist->foreign[i].system,
			  hist->foreign[i].event);
		gt_format(filter, sizeof(filter), "%s",
			  alike->trigger.filter != NULL ? alike->trigger.filter : "");
		trigger.filter = *filter ? filter : NULL;
		trigger.hist = text;
		error = gt_event_rules_add_hist(rules, word, &trigger, made_for, message);
	}
	return error;
}

/* Whether another histogram reads its variables. */
bool gt_event_rules_are_read(const struct gt_event_rules *rules, const struct gt_hist_use *use)
{
	for (size_t n = 0; n < rules->count; n++)
		for (uint32_t i = 0; i < rules->rules[n].action_count; i++) {
			const struct gt_hist_use *other = rules->rules[n].actions[i].hist;

			if (other == use)
				continue;
			for (uint32_t k = 0; other != NULL && k < other->hist.reference_count; k++)
				if (other->is_described && use->is_described &&
				    other->hist.references[k].table == use->table->offset / 64)
					return true;
		}
	return false;
}

bool gt_event_rules_are_making(const struct gt_event_rules *rules, const char *synthetic)
{
	for (size_t n = 0; n < rules->count; n++)
		for (uint32_t i = 0; i < rules->rules[n].action_count; i++) {
			const struct gt_hist_use *use = rules->rules[n].actions[i].hist;

			for (uint32_t k = 0; use != NULL && k < use->hist.action_count; k++)
				if (use->hist.actions[k].made != NULL &&
				    gt_string_is(use->hist.actions[k].made, synthetic))
					return true;
		}
	return false;
}
