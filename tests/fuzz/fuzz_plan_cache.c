/* SPDX-License-Identifier: MIT */
/*
 * A plan's file with any content behind its header, of this program itself. What is taken must be
 * plans that can be carried out: moved code no longer than it says, bytes that are the object's.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attach/plan/plan_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gt_object *object;
	struct gt_cache_header header = { .version = GT_CACHE_VERSION };
	struct gt_plan *plan;
	uint32_t entries, i, k;
	size_t bytes;
	uint8_t *file;

	if (!object && gt_object_open("/proc/self/exe", &object, NULL))
		abort();
	if (size < 12)
		return 0;
	/* Entries for the first functions come from the input, the others are of no way. */
	memcpy(header.magic, GT_CACHE_MAGIC, sizeof(GT_CACHE_MAGIC));
	header.functions = gt_object_function_count(object);
	memcpy(&header.extras, data, 1);
	data += 12;
	size -= 12;
	entries = (uint32_t)(size / 2 / sizeof(struct gt_cache_entry));
	if (entries > header.functions)
		entries = header.functions;
	bytes = sizeof(header) + header.functions * sizeof(struct gt_cache_entry);
	file = calloc(1, bytes + size);
	if (!file || gt_plan_create(object, &plan, NULL))
		abort();
	memcpy(file + sizeof(header), data, entries * sizeof(struct gt_cache_entry));
	size -= entries * sizeof(struct gt_cache_entry);
	memcpy(file + bytes, data + entries * sizeof(struct gt_cache_entry), size);
	header.checksum =
		gt_plan_cache_checksum(file + sizeof(header), bytes + size - sizeof(header));
	memcpy(file, &header, sizeof(header));
	if (gt_plan_cache_take(plan, file, bytes + size, header.key))
		for (i = 0; i < plan->entry_count; i++) {
			const struct gt_plan_entry *entry = &plan->entries[i];
			uint8_t out[GT_PLAN_MOVED_MAX];

			if (entry->moved_bytes_max &&
			    gt_plan_move(plan, entry, 0, entry->patch_address + 4096, out,
					 entry->moved_bytes_max, NULL) != entry->moved_bytes_max)
				abort();
			for (k = 0; k < entry->extra_count; k++)
				gt_plan_extra_bytes(gt_plan_extra(plan, entry, k), 0, 4096, 8192,
						    out);
		}
	else if (plan->entry_count || plan->extra_count)
		abort();
	gt_plan_destroy(plan);
	free(file);
	return 0;
}
