/* SPDX-License-Identifier: MIT */
/* Functions that ask who called them: see askers.h. */
#include "attach/agent/askers.h"

#include <stdlib.h>

int gt_askers_find(struct gt_catalog_file *file)
{
	uint32_t index, room = 0;

	if (file->askers_known || !file->plan)
		return 0;
	for (index = 0; index < file->function_count; index++) {
		if (!gt_plan_asks_caller(file->plan, index))
			continue;
		if (file->asker_count == room) {
			uint32_t *grown;

			room = room ? room * 2 : 64;
			grown = realloc(file->askers, room * sizeof(*grown));
			if (!grown)
				return GT_ENOMEM;
			file->askers = grown;
		}
		file->askers[file->asker_count++] = index;
	}
	file->askers_known = true;
	return 0;
}

bool gt_askers_has(const struct gt_catalog_file *file, uint32_t index)
{
	uint32_t low = 0, high = file->asker_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (file->askers[middle] < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low < file->asker_count && file->askers[low] == index;
}
