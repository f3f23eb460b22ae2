/* SPDX-License-Identifier: MIT */
/*
 * Rules of events: filters and triggers, which are evaluated where an event happens. A session or a kernel sets
 * them for words ("system:name", or a glob) and then arms each event: its fields are known then, and its rules are
 * written into the arena (graftrace/filter.h). Until an event is armed anew its old rules stay in force.
 *
 * Freestanding. No function takes a lock; one thread at a time: a session or a kernel calls all of it with its own lock
 * held, or while no other thread knows it (init, fini, and what it begins with). Strings that are passed in are copied.
 * What is returned as a pointer is valid until the rules change.
 */
#ifndef GT_CORE_TRACE_EVENT_RULES_H
#define GT_CORE_TRACE_EVENT_RULES_H

#include "core/trace/event_filter.h"
#include "core/trace/hists.h"
#include "core/trace/rule_pool.h"

struct gt_event_action {
	struct gt_event_trigger trigger; /* its strings are its own */
	struct gt_hist_use *hist;	 /* of a histogram; else NULL */
	const struct gt_hist_use
		*made_for; /* it is removed with this one, which reads it; NULL: it was asked for */
	uint32_t word;	   /* it counts in; of a histogram: whether it is paused */
	struct gt_message misfit; /* its filter does not fit the event, and it does nothing */
	int unfit;		  /* … the error */
};

struct gt_event_rule {
	char *word;	 /* gt_event_word_matches(); of triggers "system:name" alone */
	bool has_filter; /* a filter was set, or set to none */
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
		*looking; /* the histogram whose variables are looked for; NULL: a new one */
	bool is_waiting;  /* a variable was found whose histogram has no table yet */
	bool is_placed;	  /* a table has got room */
	uint32_t word_count;
	uint8_t words[GRAFTRACE_ARENA_WORDS]; /* 1: it is in use; the first one is never */
};

/* Begins without rules; *rules must be all zero. `host` must stay valid until gt_event_rules_fini(), and have at
 * least one arena. */
void gt_event_rules_init(struct gt_event_rules *rules, const struct gt_rules_host *host);
/* Frees all that belongs to the rules; what stands in the arenas stays. Allowed if *rules is all zero. */
void gt_event_rules_fini(struct gt_event_rules *rules);

/* Sets the filter of the events that the word matches, from their next arming on; NULL: they have none. It takes
 * precedence over filters that were set before. The syntax is not checked. GT_ENOMEM: nothing has changed. */
int gt_event_rules_set_filter(struct gt_event_rules *rules, const char *word, const char *filter,
			      struct gt_message *message);

/* Writes the rules of the event into the arena, and then those of events that waited for a histogram of it.
 * recorded: set_event asks for the event. If it does not have the fields of its filter it is recorded without a
 * filter, as on Linux with the filter of a system; if it does not have those of a trigger, the trigger does nothing
 * (gt_event_rules_check() and _fits() tell). GT_ENOSPC, GT_ENOMEM: the event keeps its old rules; or, if its own are
 * written, an event that waited keeps its old ones, and others that waited may be left as they are. */
int gt_event_rules_arm(struct gt_event_rules *rules, const struct gt_event_format *event,
		       bool recorded, struct gt_message *message);

/* Adds a trigger to the event `word` ("system:name"), or takes it away; in force once the event and the trigger's
 * target are armed anew; but a histogram is paused or goes on at once. An event has one trigger of a kind, and one
 * that enables or disables a given target. GT_EEXIST: it has such a trigger; GT_ENOENT: it has none, or no histogram
 * that is to be continued or cleared; GT_ENOSPC; GT_ENOMEM. Of histograms also GT_EINVAL: another one has its name, or
 * it needs one of another event that is not there; GT_EBUSY: another histogram reads its variables. After any error
 * nothing has changed. */
int gt_event_rules_trigger(struct gt_event_rules *rules, const char *word,
			   const struct gt_event_trigger *trigger, bool remove,
			   struct gt_message *message);
/* Gives the index'th trigger of the event, with what is left of its limit; its strings are those of the rules.
 * False: there is none. */
bool gt_event_rules_get_trigger(const struct gt_event_rules *rules, const char *word,
				uint32_t index, struct gt_event_trigger *trigger);
/* The same with copies of the strings in `text`, which has room for `room` bytes; false also if that is too
 * little. */
bool gt_event_rules_copy_trigger(const struct gt_event_rules *rules, const char *word,
				 uint32_t index, struct gt_event_trigger *trigger, char *text,
				 size_t room);
/* Call after a trigger was added and its event was armed. If it is a histogram and the event has one that could not
 * be armed, takes that one away and returns why, with the message: GT_EINVAL: it does not fit the event; GT_ENOSPC:
 * there is no room for its table. Otherwise 0. */
int gt_event_rules_fits(struct gt_event_rules *rules, const char *word,
			const struct gt_event_trigger *trigger, struct gt_message *message);
/* Copies the index'th histogram of the event, with what was counted until now. The caller frees the copy by
 * gt_hist_copy_free(). GT_ENOENT: there is none; GT_ENOMEM: the copy is empty. */
int gt_event_rules_hist(const struct gt_event_rules *rules, const char *word, uint32_t index,
			struct gt_hist_copy *copy);
/* Whether the event has triggers, or others enable and disable it: then its places are patched even if it is not
 * asked for. */
bool gt_event_rules_act(const struct gt_event_rules *rules, const char *system, const char *name);
/* Whether triggers of others enable and disable the event. If so, *on: whether it is recorded now; else *on is not
 * set. */
bool gt_event_rules_gate(const struct gt_event_rules *rules, const char *system, const char *name,
			 bool *on);
/* Whether the event `word` ("system:name") has a trigger with this action; for GRAFTRACE_RULE_SNAPSHOT also whether
 * one of its histograms takes snapshots. */
bool gt_event_rules_have_action(const struct gt_event_rules *rules, const char *word,
				enum graftrace_rule_action action);

/* hist_world.c: for gt_hist_parse() and gt_hists_describe(): how they find events and other histograms' variables.
 * Valid as long as `rules`. is_new: the histogram in question is not there yet. */
struct gt_hist_world gt_event_rules_world(struct gt_event_rules *rules, bool is_new);
/* Parses the text of a histogram of the event `word` into *hist, as gt_hist_parse() does, with the event's fields
 * and the other histograms. *hist has all of its strings in itself. GT_EINVAL, GT_EDOM, GT_EEXIST: *error says what is
 * wrong; GT_ENOENT: there is no such event yet, or no memory to look for it, and *error is empty. */
int gt_event_rules_parse_hist(struct gt_event_rules *rules, const char *word, const char *text,
			      bool is_new, struct gt_hist *hist, struct gt_hist_error *error);
/* The event's histogram that is equal to `hist`; filters are not compared. NULL: it has none. */
const struct gt_hist_use *gt_event_rules_same(const struct gt_event_rules *rules, const char *word,
					      const struct gt_hist *hist);
/* The first histogram of the event that has the same keys as `hist`; system NULL: of any event. NULL: there is
 * none. */
const struct gt_event_action *gt_event_rules_alike(const struct gt_event_rules *rules,
						   const char *system, const char *event,
						   const struct gt_hist *hist);
/* Adds the histograms that `hist` needs of other events, whose fields its actions name: each keeps a field as a
 * variable. They are removed with `made_for`. GT_EINVAL: the other event has no histogram with the same keys;
 * GT_ENOSPC; GT_ENOMEM. After any error some may have been added; they go with made_for. */
int gt_event_rules_make_foreign(struct gt_event_rules *rules, const struct gt_hist *hist,
				const struct gt_hist_use *made_for, struct gt_message *message);
/* event_rules.c: adds a trigger that is a histogram, without a check whether it is there already; it is removed with
 * `made_for`. GT_ENOSPC, GT_ENOMEM: it was not added. */
int gt_event_rules_add_hist(struct gt_event_rules *rules, const char *word,
			    const struct gt_event_trigger *trigger,
			    const struct gt_hist_use *made_for, struct gt_message *message);
/* Whether another histogram reads variables of this one. */
bool gt_event_rules_are_read(const struct gt_event_rules *rules, const struct gt_hist_use *use);
/* Whether an action of a histogram makes the synthetic event of that name. */
bool gt_event_rules_are_making(const struct gt_event_rules *rules, const char *synthetic);

/* Call when all known events were armed. GT_EINVAL, with the message: there is a filter that fits none of the events
 * that its word matches, a trigger that does not fit its event, or a histogram for whose table there is no room. */
int gt_event_rules_check(const struct gt_event_rules *rules, struct gt_message *message);

#endif
