/* SPDX-License-Identifier: MIT */
#include "read/levels.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct gt_level_stack {
	uint64_t key;
	uint64_t *times; /* by level: of the calls that ended while their callers are open */
	uint32_t count;
};

/* NULL: no memory. */
static struct gt_level_stack *stack_of(struct gt_levels *levels, uint64_t key)
{
	if (levels->last < levels->count && levels->stacks[levels->last].key == key)
		return &levels->stacks[levels->last];
	for (levels->last = 0; levels->last < levels->count; levels->last++)
		if (levels->stacks[levels->last].key == key)
			return &levels->stacks[levels->last];
	if (levels->count == levels->room) {
		size_t room = levels->room != 0 ? levels->room * 2 : 16;
		struct gt_level_stack *grown = realloc(levels->stacks, room * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		levels->stacks = grown;
		levels->room = room;
	}
	levels->stacks[levels->count++] = (struct gt_level_stack){ .key = key };
	return &levels->stacks[levels->last];
}

static bool reach(struct gt_level_stack *stack, uint32_t level)
{
	uint32_t count = stack->count != 0 ? stack->count : 16;
	uint64_t *grown;

	if (level < stack->count)
		return true;
	if (level >= GT_LEVELS_MAX)
		return false;
	while (count <= level)
		count *= 2;
	grown = realloc(stack->times, count * sizeof(*grown));
	if (grown == NULL)
		return false;
	memset(grown + stack->count, 0, (count - stack->count) * sizeof(*grown));
	stack->times = grown;
	stack->count = count;
	return true;
}

uint64_t gt_levels_end(struct gt_levels *levels, uint64_t key, uint32_t level, uint64_t time)
{
	struct gt_level_stack *stack = stack_of(levels, key);
	uint64_t callees;

	if (stack == NULL || !reach(stack, level))
		return time;
	callees = level + 1 < stack->count ? stack->times[level + 1] : 0;
	/* Deeper times were added to their callers, or belong to a call that was not recorded. */
	memset(stack->times + level + 1, 0, (stack->count - level - 1) * sizeof(*stack->times));
	stack->times[level] += time;
	return callees < time ? time - callees : 0;
}

void gt_levels_fini(struct gt_levels *levels)
{
	for (size_t i = 0; i < levels->count; i++)
		free(levels->stacks[i].times);
	free(levels->stacks);
	*levels = (struct gt_levels){ .count = 0 };
}
