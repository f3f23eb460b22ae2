/* SPDX-License-Identifier: MIT */
/*
 * What is done with events where they happen: filters, of all events that a word names. They are made
 * for an event when its probe is armed, since its fields are known then; they stand in the arena
 * (graftrace/filter.h). Under the session's lock.
 */
#ifndef GT_ATTACH_AGENT_EVENT_RULES_H
#define GT_ATTACH_AGENT_EVENT_RULES_H

#include "attach/ring/arena.h"
#include "core/trace/event.h"
#include "core/trace/rule_pool.h"

struct gt_event_rule {
	char *word;   /* gt_event_word_matches() */
	char *filter; /* the expression; NULL: none */
	/* Events that it names and that were armed, and those of them that have its fields. */
	uint32_t tried;
	uint32_t fitted;
	struct gt_message misfit; /* of the first one that has not */
};

struct gt_event_rules {
	struct gt_rule_pool pool;
	struct gt_event_rule *rules; /* the last one that names an event holds for it */
	size_t count;
};

void gt_event_rules_init(struct gt_event_rules *rules, struct gt_arena *arena);
void gt_event_rules_fini(struct gt_event_rules *rules);

/* The events of the word have this filter from now on (NULL: none), once they are armed anew.
 * GT_ENOMEM. */
int gt_event_rules_set_filter(struct gt_event_rules *rules, const char *word, const char *filter,
			      struct gt_message *message);

/* The arena has what the rules say of the event. As for a system's filter on Linux, events without its
 * fields are recorded all. GT_ENOSPC, GT_ENOMEM. */
int gt_event_rules_arm(struct gt_event_rules *rules, const struct gt_event_format *event,
		       struct gt_message *message);

/* 0, or GT_EINVAL with the message: there is a filter that none of its events has the fields of. */
int gt_event_rules_check(const struct gt_event_rules *rules, struct gt_message *message);

#endif
