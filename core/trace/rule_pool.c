/* SPDX-License-Identifier: MIT */
/*
 * Rules of events: see rule_pool.h. The next room that fits is taken, from where the last one was on:
 * so what was given back is used again after all else, when nobody is likely to be inside of it.
 */
#include "core/trace/rule_pool.h"

#include <stdbool.h>

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

static uint32_t units_for(const struct graftrace_event_rules *block)
{
	return (uint32_t)((block->bytes + sizeof(struct head) - 1) / sizeof(struct head));
}

/* The unit of room for the block; 0: there is none. */
static uint32_t take(struct gt_rule_pool *pool, const struct graftrace_event_rules *block)
{
	const uint32_t at = take_from(pool, piece_from(pool, pool->next), units_for(block));

	return at ? at : take_from(pool, 0, units_for(block));
}

void gt_rule_pool_init(struct gt_rule_pool *pool, struct graftrace_arena *arena)
{
	static const struct graftrace_event_rules empty = { sizeof(empty), 0 };

	*pool = (struct gt_rule_pool){ .arena = arena };
	if (units_of(pool) == 0)
		return;
	*head_at(pool, 0) = (struct head){ units_of(pool), 0 };
	pool->empty = take(pool, &empty);
	if (pool->empty)
		__builtin_memcpy(head_at(pool, pool->empty), &empty, sizeof(empty));
}

/* Whether so many units, and their head, have room where a piece is, with what is free beside it. */
static bool has_room_in(const struct gt_rule_pool *pool, uint32_t piece, uint32_t units)
{
	uint32_t run = 0;
	bool found = false;

	for (uint32_t at = 0; at < units_of(pool); at += head_at(pool, at)->units) {
		const struct head *head = head_at(pool, at);

		found |= at == piece;
		run = head->used && at != piece ? 0 : run + head->units;
		if (found && (run == 0 || run > units))
			return run != 0;
	}
	return false;
}

/* Room in the place of the event's old block, which is the empty one meanwhile; 0: there is none. */
static uint32_t take_over(struct gt_rule_pool *pool, uint32_t *entry,
			  const struct graftrace_event_rules *block)
{
	const uint32_t before = *entry;

	if (!before || !pool->empty || !has_room_in(pool, before - 1, units_for(block)))
		return 0;
	__atomic_store_n(entry, pool->empty, __ATOMIC_RELEASE);
	head_at(pool, before - 1)->used = 0;
	return take(pool, block);
}

static bool is_same(const struct graftrace_event_rules *a, const struct graftrace_event_rules *b)
{
	return a->bytes == b->bytes && __builtin_memcmp(a, b, a->bytes) == 0;
}

int gt_rule_pool_put(struct gt_rule_pool *pool, uint32_t event,
		     const struct graftrace_event_rules *block)
{
	const struct graftrace_event_rules *const old = gt_rule_pool_get(pool, event);
	uint32_t *entry, before, at = 0;

	if (event >= pool->arena->event_count)
		return block != NULL ? GT_ENOSPC : 0;
	if (block != NULL && old != NULL && is_same(block, old))
		return 0;
	entry = &graftrace_arena_event_table(pool->arena)[event];
	before = *entry;
	if (block != NULL) {
		at = take(pool, block);
		if (!at) {
			at = take_over(pool, entry, block);
			before = 0;
		}
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
