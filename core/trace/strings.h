/* SPDX-License-Identifier: MIT */
/* Texts that end with a zero byte, without a C library: compared, and copied into the caller's memory. */
#ifndef GT_CORE_TRACE_STRINGS_H
#define GT_CORE_TRACE_STRINGS_H

#include <stdbool.h>
#include "core/trace/memory.h"

static inline size_t gt_string_bytes(const char *text)
{
	size_t bytes = 0;

	while (text[bytes] != '\0')
		bytes++;
	return bytes;
}

/* Either may be NULL, which is the same as NULL alone. */
static inline bool gt_string_is(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	while (*a != '\0' && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Whether `word` is "SYSTEM:NAME". */
static inline bool gt_string_names(const char *word, const char *system, const char *name)
{
	while (*system != '\0' && *word == *system)
		word++, system++;
	return *system == '\0' && *word == ':' && gt_string_is(word + 1, name);
}

/* The first `bytes` bytes, and a zero byte. NULL: no memory. */
static inline char *gt_string_keep(const struct gt_memory *memory, const char *text, size_t bytes)
{
	char *const kept = gt_memory_get(memory, bytes + 1);

	if (kept != NULL) {
		__builtin_memcpy(kept, text, bytes);
		kept[bytes] = '\0';
	}
	return kept;
}

/* One that was kept; NULL is allowed. */
static inline void gt_string_drop(const struct gt_memory *memory, const char *kept)
{
	if (kept != NULL)
		gt_memory_put(memory, (char *)kept, gt_string_bytes(kept) + 1);
}

#endif
