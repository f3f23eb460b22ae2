/* SPDX-License-Identifier: MIT */
/*
 * Where rules of events lie (graftrace/filter.h): the writer's side. One thread at a time; readers need
 * nothing of it. Freestanding.
 */
#ifndef GT_CORE_TRACE_RULE_POOL_H
#define GT_CORE_TRACE_RULE_POOL_H

#include <stddef.h>
#include <graftrace/arena.h>
#include <graftrace/error.h>
#include <graftrace/filter.h>

struct gt_rule_pool {
	struct graftrace_arena *arena;
	uint32_t next; /* where it is looked for room first, in units of 8 bytes */
};

/* The arena's table and pool are all zero. */
void gt_rule_pool_init(struct gt_rule_pool *pool, struct graftrace_arena *arena);

/* The block (NULL: none) is the event's from now on; it is copied. GT_ENOSPC: no room, or the number is
 * too high; then what was before holds. */
int gt_rule_pool_put(struct gt_rule_pool *pool, uint32_t event,
		     const struct graftrace_event_rules *block);

/* The event's block, NULL: none. */
const struct graftrace_event_rules *gt_rule_pool_get(const struct gt_rule_pool *pool,
						     uint32_t event);

#endif
