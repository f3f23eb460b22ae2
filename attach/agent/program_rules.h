/* SPDX-License-Identifier: MIT */
/*
 * What rules of events (core/trace/event_rules.h) need where the events are programs': the session's arenas, and
 * the events that it knows. Under the session's lock.
 */
#ifndef GT_ATTACH_AGENT_PROGRAM_RULES_H
#define GT_ATTACH_AGENT_PROGRAM_RULES_H

#include "attach/agent/catalog.h"
#include "attach/ring/arena.h"
#include "core/trace/event_rules.h"

struct gt_rules_of_program {
	struct gt_rules_host host;
	struct gt_arena *arena;
	struct gt_catalog *catalog;
};

/* Fills in *of. arena: the first one of the session. The three pointers must stay valid as long as it. */
void gt_rules_of_program_init(struct gt_rules_of_program *of, struct gt_arena *arena,
			      const struct gt_clock *clock, struct gt_catalog *catalog);

#endif
