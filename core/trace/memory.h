/* SPDX-License-Identifier: MIT */
/*
 * Memory for the viewer: the caller's allocator, and private copies of the four functions that
 * compilers call on their own (memcpy, memmove, memset, memcmp), so that the viewer links with no
 * symbol of a C library. The build includes this header in front of every file of the viewer; with
 * GT_VIEW_MEMORY_ALIASES unset (host code that includes it for struct gt_memory) nothing is
 * renamed.
 */
#ifndef GT_CORE_TRACE_MEMORY_H
#define GT_CORE_TRACE_MEMORY_H

#include <stddef.h>

/*
 * The only way in which the viewer gets memory. resize works as realloc does, with the old size
 * said: memory NULL makes, new_bytes 0 frees (and returns NULL). NULL for new_bytes > 0: there is
 * none, and the old memory stays as it is. Contents up to the smaller size are kept.
 */
struct gt_memory {
	void *(*resize)(void *data, void *memory, size_t old_bytes, size_t new_bytes);
	void *data;
};

static inline void *gt_memory_get(const struct gt_memory *memory, size_t bytes)
{
	return memory->resize(memory->data, NULL, 0, bytes);
}

static inline void gt_memory_put(const struct gt_memory *memory, void *old, size_t bytes)
{
	if (old != NULL)
		memory->resize(memory->data, old, bytes, 0);
}

void *gt_view_memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *gt_view_memmove(void *to, const void *from, size_t bytes);
void *gt_view_memset(void *to, int byte, size_t bytes);
int gt_view_memcmp(const void *a, const void *b, size_t bytes);

#ifdef GT_VIEW_MEMORY_ALIASES
void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);
/* The assembler resolves the left names to the right ones, whoever wrote the call. */
__asm__("memcpy = gt_view_memcpy\n\t"
	"memmove = gt_view_memmove\n\t"
	"memset = gt_view_memset\n\t"
	"memcmp = gt_view_memcmp");
#endif

#endif
