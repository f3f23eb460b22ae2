/* SPDX-License-Identifier: MIT */
/*
 * The triggers of a session (core/trace/target.h), and the arena's table through which the agents
 * know them. Rules are globs; each function that is patched gets its slots in the table from the
 * rules that name it. Under the session's lock.
 */
#ifndef GT_ATTACH_TRIGGERS_H
#define GT_ATTACH_TRIGGERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "attach/ring/arena.h"
#include "core/trace/target.h"

struct gt_trigger_rule {
	struct gt_trigger trigger;
	char *glob; /* trigger.glob; NULL: removed, its place is free */
};

struct gt_triggers {
	struct gt_arena *arena;
	const struct gt_clock *clock; /* for times in ticks */
	struct gt_trigger_rule *rules;
	uint32_t count;
	uint32_t room;
};

void gt_triggers_init(struct gt_triggers *triggers, struct gt_arena *arena,
		      const struct gt_clock *clock);
void gt_triggers_fini(struct gt_triggers *triggers);

/* Adds a rule (the glob is copied), or sets skip and count of the same one, which start anew. Functions get their slots
 * when they are patched next. GT_ENOMEM; GT_ENOSPC: there are too many rules. */
int gt_triggers_add(struct gt_triggers *triggers, const struct gt_trigger *trigger,
		    struct gt_message *message);
/* Removes the rule with that glob, action and longer_than_ns. GT_ENOENT: there is none. */
int gt_triggers_remove(struct gt_triggers *triggers, const struct gt_trigger *trigger);
/* The index-th rule, with the hits that are left: see gt_session_trigger_get(). Its glob is the rule's own, valid until
 * that is removed. GT_ENOENT after the last. */
int gt_triggers_get(const struct gt_triggers *triggers, uint32_t index, struct gt_trigger *trigger,
		    bool *spent);

/* Has the function a trigger with that action? */
bool gt_triggers_has(const struct gt_triggers *triggers, uint32_t function,
		     enum gt_trigger_action action);

/* Does a rule name the function? triggers may be NULL: no. */
bool gt_triggers_match(const struct gt_triggers *triggers, const char *plain, const char *shown);

/* How a function that a rule names is recorded besides. */
struct gt_trigger_role {
	bool named;	 /* by the filters too: else it is silent, if that can be */
	bool root;	 /* of set_graph_function */
	bool notrace;	 /* of set_graph_notrace */
	bool entry_only; /* its returns are not recorded */
};

/* Fills the function's slots. GT_ENOSPC: the table is full, it has none. */
int gt_triggers_arm(struct gt_triggers *triggers, uint32_t function, const char *plain,
		    const char *shown, const struct gt_trigger_role *role);

#endif
