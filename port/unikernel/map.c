/* SPDX-License-Identifier: MIT */
/* Large pieces of memory in one row of addresses, made of 2 MiB pages (the last part of small
 * ones). */
#include "port/unikernel/memory.h"

#include "port/unikernel/include/string.h"

static uint64_t next = MAP_BASE;

void *map_allocate(uint64_t bytes)
{
	bytes = (bytes + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;
	if (bytes > pages_free_bytes())
		return NULL;
	uint64_t room = (bytes + LARGE_PAGE_BYTES - 1) & -(uint64_t)LARGE_PAGE_BYTES;
	uint64_t start = __atomic_fetch_add(&next, room, __ATOMIC_RELAXED);
	for (uint64_t at = 0; at < bytes;) {
		bool large = bytes - at >= LARGE_PAGE_BYTES;
		unsigned order = large ? PAGES_ORDER_MAX : 0;
		void *pages = pages_allocate(order);
		if (!pages || !paging_map(start + at, physical_of_direct(pages),
					  (uint64_t)PAGE_BYTES << order, MAP_WRITE))
			return NULL;
		memset(pages, 0, (size_t)PAGE_BYTES << order);
		at += (uint64_t)PAGE_BYTES << order;
	}
	return (void *)start;
}
