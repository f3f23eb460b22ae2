/* SPDX-License-Identifier: MIT */
/* Any bytes as an object: opened as a file and as an image, and all that comes of it is asked for.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attach/plan/hooks.h"

#define FUNCTIONS_MAX 64u /* planned of one object */

struct bytes {
	const uint8_t *data;
	size_t size;
};

static int read_bytes(void *data, uint64_t offset, void *buffer, size_t bytes)
{
	const struct bytes *from = data;

	if (offset > from->size || bytes > from->size - offset)
		return GT_ECUT;
	memcpy(buffer, from->data + offset, bytes);
	return 0;
}

static int each_symbol(void *data, const struct gt_object_symbol *symbol)
{
	*(size_t *)data += strlen(symbol->name);
	return 0;
}

static int each_relocation(void *data, const struct gt_object_relocation *relocation)
{
	*(size_t *)data += strlen(relocation->name);
	return 0;
}

static void plan_all(struct gt_object *object)
{
	struct gt_hook hooks[GT_HOOKS_MAX];
	bool switches;
	struct gt_message message;
	struct gt_plan *plan;
	uint32_t i;

	if (gt_plan_create(object, &plan, &message))
		return;
	gt_hooks_find(object, plan, hooks, &switches, &message);
	gt_plan_is_prepared(plan);
	for (i = 0; i < gt_object_function_count(object) && i < FUNCTIONS_MAX; i++) {
		struct gt_plan_entry entry;
		struct gt_plan_map map;
		uint8_t out[GT_PLAN_MOVED_MAX];
		uint32_t k;

		gt_object_function_name(object, i);
		if (gt_plan_function(plan, i, &entry, &message))
			continue;
		gt_plan_jump(plan, &entry, 0, entry.patch_address + 100, out);
		gt_plan_move(plan, &entry, 0, entry.patch_address + 4096, out, sizeof(out), &map);
		for (k = 0; k < entry.extra_count; k++)
			gt_plan_extra_bytes(gt_plan_extra(plan, &entry, k), 0, 4096, 8192, out);
	}
	gt_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = { data, size };
	int memory;

	for (memory = 0; memory < 2; memory++) {
		struct gt_message message = { "" };
		struct gt_object *object;
		size_t total = 0;

		if (gt_object_open_read("input", read_bytes, &bytes, size, memory, &object,
					&message)) {
			if (!message.text[0])
				abort(); /* an error without words */
			continue;
		}
		gt_object_each_symbol(object, each_symbol, &total);
		gt_object_each_relocation(object, each_relocation, &total);
		gt_object_soname(object);
		gt_object_runpath(object, NULL);
		plan_all(object);
		gt_object_close(object);
	}
	return 0;
}
