/* SPDX-License-Identifier: MIT */
/*
 * Plans all functions of an object at once: first those that need nothing but their own bytes and
 * the padding behind them, then the others, which borrow what is left over. So what a function gets
 * does not depend on which are asked for, and in which order.
 */
#include "attach/plan/plan_private.h"
#include "core/trace/message.h"

#include <stdlib.h>
#include <string.h>

static void use_entry(struct gt_plan *plan, const struct gt_plan_entry *entry)
{
	if (entry->way == GT_PLAN_NONE)
		return;
	gt_scan_use(plan->scan, entry->patch_address, entry->covered_bytes);
	for (uint32_t i = 0; i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, i);

		gt_scan_use(plan->scan, extra->address,
			    extra->covered ? extra->covered : extra->bytes);
	}
}

static int plan_rest(struct gt_plan *plan, uint32_t *again, uint32_t *again_count,
		     struct gt_message *message)
{
	const uint32_t count = gt_object_function_count(plan->object);
	struct gt_plan_entry entry;
	int error = 0;

	for (uint32_t i = 0; !error && i < count; i++) {
		if (plan->planned[i] != GT_PLAN_NO_ENTRY)
			continue;
		error = gt_plan_one(plan, i, false, &entry, message);
		if (error)
			break;
		if (entry.way == GT_PLAN_NONE && gt_plan_may_borrow(entry.reason)) {
			again[(*again_count)++] = i;
			continue;
		}
		use_entry(plan, &entry);
		error = gt_plan_keep(plan, &entry, message);
	}
	return error;
}

int gt_plan_all(struct gt_plan *plan, struct gt_message *message)
{
	uint32_t *again, again_count = 0;
	struct gt_plan_entry entry;
	int error;

	if (plan->complete)
		return 0;
	if (gt_plan_cache_load(plan)) {
		plan->complete = true;
		return 0;
	}
	error = gt_scan_all(plan->scan, message);
	if (error)
		return error;
	again = malloc((gt_object_function_count(plan->object) + 1ul) * sizeof(*again));
	if (again == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for the patch plan");
	for (uint32_t i = 0; i < plan->hooked_count; i++)
		use_entry(plan, &plan->hooked[i]);
	for (uint32_t i = 0; i < plan->entry_count; i++)
		use_entry(plan, &plan->entries[i]);
	error = plan_rest(plan, again, &again_count, message);
	for (uint32_t i = 0; !error && i < again_count; i++) {
		error = gt_plan_one(plan, again[i], true, &entry, message);
		if (!error)
			error = gt_plan_keep(plan, &entry, message);
	}
	free(again);
	plan->complete = !error;
	if (!error)
		gt_plan_cache_store(plan);
	return error;
}
