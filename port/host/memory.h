/* SPDX-License-Identifier: MIT */
/*
 * Memory for the viewer (core/trace/memory.h) where there is a C library: malloc's. Any thread.
 */
#ifndef GT_PORT_HOST_MEMORY_H
#define GT_PORT_HOST_MEMORY_H

#include <stdlib.h>
#include "core/trace/memory.h"

static inline void *gt_host_resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	(void)data;
	(void)old_bytes;
	if (new_bytes != 0)
		return realloc(memory, new_bytes);
	free(memory);
	return NULL;
}

static const struct gt_memory gt_host_memory = { gt_host_resize, NULL };

#endif
