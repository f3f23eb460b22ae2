/* SPDX-License-Identifier: MIT */
/*
 * What is done with events where they happen: filters, of all events that a word names, and triggers. They are made
 * for an event when its probe is armed, since its fields are known then; they stand in the arena
 * (graftrace/filter.h). Freestanding; one thread at a time.
 */
#ifndef GT_CORE_TRACE_EVENT_RULES_H
#define GT_CORE_TRACE_EVENT_RULES_H

#include "core/trace/event_filter.h"
#include "core/trace/hists.h"
#include "core/trace/rule_pool.h"

struct gt_event_action {
	struct gt_event_trigger trigger; /* its strings are its own */
	struct gt_hist_use *hist;	 /* of a histogram; else NULL */
	const struct gt_hist_use *
		made_for; /* it goes with this one, whose action reads it; NULL: it was asked for */
	uint32_t word;	  /* it counts in; of a histogram: whether it is paused */
	struct gt_message misfit; /* its filter does not fit the event, and it does nothing */
	int unfit;		  /* … the error */
};

struct gt_event_rule {
	char *word;	 /* gt_event_word_matches(); of triggers "system:name" alone */
	bool has_filter; /* that it has none is said, too */
	char *filter;	 /* the expression; NULL: none */
	struct gt_event_action *actions; /* the newest first; then histograms, the oldest first */
	uint32_t action_count;
	uint32_t action_room;
	/* Events of the name that wait for another histogram, and whether they are recorded. */
	struct gt_event_waiting {
		struct gt_event_format event;
		bool recorded;
	} * waiting;
	uint32_t waiting_count;
	uint32_t targeted;  /* triggers that enable or disable the event … */
	uint32_t gate;	    /* … by this word; 0: none yet */
	bool gate_recorded; /* as it was set by set_event last */
	/* Events that it names and that were armed, and those of them that have its fields. */
	uint32_t tried;
	uint32_t fitted;
	struct gt_message misfit; /* of the first one that has not */
};

struct gt_event_rules {
	struct gt_rule_pool pool;
	struct gt_hists hists;
	struct gt_event_rule *rules; /* the last one that names an event holds for it */
	size_t count;
	const struct gt_rules_host *host;
	struct gt_event_format found;
	const struct gt_hist_use
		*looking; /* it looks for variables; NULL: one that is to be made */
	bool is_waiting;  /* a variable was found whose histogram has no table yet */
	bool is_placed;	  /* a table has got room */
	uint32_t word_count;
	uint8_t words[GRAFTRACE_ARENA_WORDS]; /* 1: it is in use; the first one is never */
};

/* `host` stays, and has an arena at least. */
void gt_event_rules_init(struct gt_event_rules *rules, const struct gt_rules_host *host);
/* Also of one that is all zero. */
void gt_event_rules_fini(struct gt_event_rules *rules);

/* The events of the word have this filter from now on (NULL: none), once they are armed anew.
 * GT_ENOMEM. */
int gt_event_rules_set_filter(struct gt_event_rules *rules, const char *word, const char *filter,
			      struct gt_message *message);

/* The arena has what the rules say of the event. recorded: set_event says so. As for a system's filter on Linux, events without its
 * fields are recorded all. GT_ENOSPC, GT_ENOMEM. */
int gt_event_rules_arm(struct gt_event_rules *rules, const struct gt_event_format *event,
		       bool recorded, struct gt_message *message);

/* Adds or takes away a trigger of the event ("system:name"); effective once it, and its target, is
 * armed anew. GT_EEXIST, GT_ENOENT, GT_ENOMEM, GT_ENOSPC. */
int gt_event_rules_trigger(struct gt_event_rules *rules, const char *word,
			   const struct gt_event_trigger *trigger, bool remove,
			   struct gt_message *message);
/* The index'th trigger of the event, with what is left of its limit; false: there is none. */
bool gt_event_rules_get_trigger(const struct gt_event_rules *rules, const char *word,
				uint32_t index, struct gt_event_trigger *trigger);
/* The same, with its strings in `text`; false also where they have no room. */
bool gt_event_rules_copy_trigger(const struct gt_event_rules *rules, const char *word,
				 uint32_t index, struct gt_event_trigger *trigger, char *text,
				 size_t room);
/* 0, or GT_EINVAL and GT_ENOSPC with the message: the trigger, which was added last, could not be armed; it is
 * taken away. */
int gt_event_rules_fits(struct gt_event_rules *rules, const char *word,
			const struct gt_event_trigger *trigger, struct gt_message *message);
/* The index'th histogram of the event as it is now. GT_ENOENT; GT_ENOMEM. */
int gt_event_rules_hist(const struct gt_event_rules *rules, const char *word, uint32_t index,
			struct gt_hist_copy *copy);
/* Whether something is done at the event, so that its places are patched in any case. */
bool gt_event_rules_act(const struct gt_event_rules *rules, const char *system, const char *name);
/* It is enabled or disabled by triggers of others; *on: it is recorded now. */
bool gt_event_rules_gate(const struct gt_event_rules *rules, const char *system, const char *name,
			 bool *on);
bool gt_event_rules_have_action(const struct gt_event_rules *rules, const char *word,
				enum graftrace_rule_action action);

/* hist_world.c: what histograms see of each other. is_new: one is to be added. */
struct gt_hist_world gt_event_rules_world(struct gt_event_rules *rules, bool is_new);
/* As gt_hist_parse(); also GT_ENOENT: there is no such event yet. */
int gt_event_rules_parse_hist(struct gt_event_rules *rules, const char *word, const char *text,
			      bool is_new, struct gt_hist *hist, struct gt_hist_error *error);
/* The event's histogram that is the same, whatever its filter; NULL: it has none. */
const struct gt_hist_use *gt_event_rules_same(const struct gt_event_rules *rules, const char *word,
					      const struct gt_hist *hist);
/* A histogram of the event with keys of the same kinds; NULL: it has none. */
const struct gt_event_action *gt_event_rules_alike(const struct gt_event_rules *rules,
						   const char *system, const char *event,
						   const struct gt_hist *hist);
/* The histograms of other events whose variables `hist` needs. GT_EINVAL, GT_ENOSPC, GT_ENOMEM. */
int gt_event_rules_make_foreign(struct gt_event_rules *rules, const struct gt_hist *hist,
				const struct gt_hist_use *made_for, struct gt_message *message);
/* event_rules.c: a trigger that is a histogram. The same errors. */
int gt_event_rules_add_hist(struct gt_event_rules *rules, const char *word,
			    const struct gt_event_trigger *trigger,
			    const struct gt_hist_use *made_for, struct gt_message *message);
/* Whether another histogram reads its variables. */
bool gt_event_rules_are_read(const struct gt_event_rules *rules, const struct gt_hist_use *use);
/* Whether a histogram makes the synthetic event. */
bool gt_event_rules_make(const struct gt_event_rules *rules, const char *synthetic);

/* 0, or GT_EINVAL with the message: there is a filter that none of its events has the fields of, or a
 * trigger's. */
int gt_event_rules_check(const struct gt_event_rules *rules, struct gt_message *message);

#endif
