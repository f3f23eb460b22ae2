/* SPDX-License-Identifier: MIT */
/* Functions that ask who called them: see askers.h. */
#include "attach/agent/askers.h"

#include <stdlib.h>

int gt_askers_find(struct gt_catalog_file *file)
{
	if (file->askers != NULL)
		return 0;
	file->askers = calloc(file->function_count + 1, 1);
	if (file->askers == NULL)
		return GT_ENOMEM;
	for (uint32_t index = 0; index < file->function_count; index++)
		file->askers[index] = gt_plan_asks_caller(file->plan, index);
	return 0;
}

bool gt_askers_has(const struct gt_catalog_file *file, uint32_t index)
{
	return file->askers != NULL && file->askers[index];
}
