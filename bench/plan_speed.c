/* SPDX-License-Identifier: MIT */
/*
 * What bench/plan.py times: opening objects and planning their functions.
 *
 *	plan_speed ROUNDS FILE…
 *
 * A line each round and file: its name, functions, functions that can be traced, those that should
 * be but cannot, and nanoseconds for opening, for finding the hooks and for planning everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/plan/hooks.h"

static long long now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1000000000ll + at.tv_nsec;
}

/* What is left alone on purpose is not missing: only what is ours to patch and did not go. */
static int is_missing(const struct gt_object_function *function, const struct gt_plan_entry *entry)
{
	return entry->way == GT_PLAN_NONE && !(function->flags & GT_FUNCTION_PLT) &&
	       entry->reason >= GT_REASON_NO_ROOM && entry->reason < GT_REASON_BLOCKED_SIGNALS;
}

static int measure(const char *path)
{
	struct gt_message message = { "" };
	struct gt_hook hooks[GT_HOOKS_MAX];
	bool switches;
	struct gt_object *object;
	struct gt_plan *plan;
	long long start = now(), opened, hooked, planned;
	uint32_t i, count, traced = 0, missing = 0;

	if (gt_object_open(path, &object, &message)) {
		fprintf(stderr, "%s\n", message.text);
		return 1;
	}
	opened = now();
	if (gt_plan_create(object, &plan, &message) ||
	    gt_hooks_find(object, plan, hooks, &switches, &message) < 0)
		return 1;
	hooked = now();
	count = gt_object_function_count(object);
	for (i = 0; i < count; i++) {
		struct gt_plan_entry entry;

		if (gt_plan_function(plan, i, &entry, &message))
			return 1;
		if (!(gt_object_function(object, i)->flags & GT_FUNCTION_PLT))
			traced += entry.way != GT_PLAN_NONE;
		missing += (uint32_t)is_missing(gt_object_function(object, i), &entry);
	}
	planned = now();
	printf("%s %u %u %u %lld %lld %lld\n", path, count, traced, missing, opened - start,
	       hooked - opened, planned - hooked);
	gt_plan_destroy(plan);
	gt_object_close(object);
	return 0;
}

int main(int argc, char **argv)
{
	const int rounds = argc > 2 ? atoi(argv[1]) : 0;
	int round, i;

	if (rounds < 1)
		return 2;
	for (round = 0; round < rounds; round++)
		for (i = 2; i < argc; i++)
			if (measure(argv[i]))
				return 1;
	return 0;
}
