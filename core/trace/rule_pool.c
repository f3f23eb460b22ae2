/* SPDX-License-Identifier: MIT */
/*
 * Rules of events: see rule_pool.h. The next room that fits is taken, from where the last one was on:
 * so what was given back is used again after all else, when nobody is likely to be inside of it.
 */
#include "core/trace/rule_pool.h"

/* Before each piece of the pool. */
struct head {
	uint32_t units; /* of 8 bytes, itself included */
	uint32_t used;
};

static struct head *head_at(const struct gt_rule_pool *pool, uint32_t unit)
{
	return (struct head *)((char *)pool->arena + pool->arena->rules_offset) + unit;
}

static uint32_t units_of(const struct gt_rule_pool *pool)
{
	return pool->arena->rules_bytes / sizeof(struct head);
}

void gt_rule_pool_init(struct gt_rule_pool *pool, struct graftrace_arena *arena)
{
	*pool = (struct gt_rule_pool){ .arena = arena };
	if (units_of(pool) > 0)
		*head_at(pool, 0) = (struct head){ units_of(pool), 0 };
}

/* What is free behind it becomes a part of it. */
static void join(const struct gt_rule_pool *pool, uint32_t at)
{
	struct head *head = head_at(pool, at);

	while (!head->used && at + head->units < units_of(pool) &&
	       !head_at(pool, at + head->units)->used)
		head->units += head_at(pool, at + head->units)->units;
}

/* The unit of a piece with `units` units behind its head; 0: there is none. */
static uint32_t take_from(struct gt_rule_pool *pool, uint32_t from, uint32_t units)
{
	for (uint32_t at = from; at < units_of(pool); at += head_at(pool, at)->units) {
		struct head *head = head_at(pool, at);

		join(pool, at);
		if (head->used || head->units < units + 1)
			continue;
		if (head->units > units + 1) {
			*head_at(pool, at + units + 1) =
				(struct head){ head->units - units - 1, 0 };
			head->units = units + 1;
		}
		head->used = 1;
		pool->next = at + units + 1 < units_of(pool) ? at + units + 1 : 0;
		return at + 1;
	}
	return 0;
}

/* The place where the search begins was joined with what is before it, if it is no piece's any more. */
static uint32_t piece_from(const struct gt_rule_pool *pool, uint32_t unit)
{
	uint32_t at = 0;

	while (at < unit)
		at += head_at(pool, at)->units;
	return at < units_of(pool) ? at : 0;
}

int gt_rule_pool_put(struct gt_rule_pool *pool, uint32_t event,
		     const struct graftrace_event_rules *block)
{
	uint32_t *entry, before, units, at = 0;

	if (event >= pool->arena->event_count)
		return block != NULL ? GT_ENOSPC : 0;
	entry = &graftrace_arena_event_table(pool->arena)[event];
	before = *entry;
	if (block != NULL) {
		units = (uint32_t)((block->bytes + sizeof(struct head) - 1) / sizeof(struct head));
		at = take_from(pool, piece_from(pool, pool->next), units);
		if (!at)
			at = take_from(pool, 0, units);
		if (!at)
			return GT_ENOSPC;
		for (uint32_t i = 0; i < block->bytes; i++)
			((char *)head_at(pool, at))[i] = ((const char *)block)[i];
	}
	__atomic_store_n(entry, at, __ATOMIC_RELEASE);
	if (before)
		head_at(pool, before - 1)->used = 0;
	if (at)
		__atomic_store_n(&pool->arena->has_rules, 1, __ATOMIC_RELEASE);
	return 0;
}

const struct graftrace_event_rules *gt_rule_pool_get(const struct gt_rule_pool *pool,
						     uint32_t event)
{
	const uint32_t at = event < pool->arena->event_count
				    ? graftrace_arena_event_table(pool->arena)[event]
				    : 0;

	return at ? (const void *)head_at(pool, at) : NULL;
}
