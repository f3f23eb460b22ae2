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
	uint32_t next;	/* where the search for room begins, in units of 8 bytes */
	uint32_t empty; /* a block without a rule; 0: the pool is none */
};

/* Takes an arena whose table and pool are all zero. */
void gt_rule_pool_init(struct gt_rule_pool *pool, struct graftrace_arena *arena);

/* Copies the block into the pool and makes it the event's; NULL: the event has no rules from now on. 0,
 * or GT_ENOSPC: no room, or the number is too high; the event then keeps its old block. A block that has room only in
 * the place of the old one comes there: in between nothing is done where the event happens, nor is it recorded. */
int gt_rule_pool_put(struct gt_rule_pool *pool, uint32_t event,
		     const struct graftrace_event_rules *block);

/* Returns the event's block in the pool, valid until the next gt_rule_pool_put; NULL: none. */
const struct graftrace_event_rules *gt_rule_pool_get(const struct gt_rule_pool *pool,
						     uint32_t event);

#endif
