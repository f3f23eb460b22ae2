/* SPDX-License-Identifier: MIT */
/* What the files of events' filters show: the filters themselves, or what is wrong with one that was refused.
 * Freestanding; one thread at a time. */
#ifndef GT_CORE_TRACE_FILTER_TEXTS_H
#define GT_CORE_TRACE_FILTER_TEXTS_H

#include "core/trace/event_filter.h"
#include "core/trace/memory.h"

/* All zero but for the memory: no event has a filter. */
struct gt_filter_texts {
	struct gt_memory memory;
	struct gt_filter_text {
		char *word; /* "system:name" */
		char *text; /* NULL: none */
	} * entries;
	size_t count;
};

/* The event's filter of `bytes` bytes, 0: none; failed: what is wrong with it, or NULL. GT_ENOMEM. */
int gt_filter_texts_set(struct gt_filter_texts *texts, const char *word, const char *filter,
			size_t bytes, const struct gt_event_filter_error *failed);

/* What the event's file shows from `offset` on; returns the bytes, 0: nothing (more). */
size_t gt_filter_texts_read(const struct gt_filter_texts *texts, const char *word, uint64_t offset,
			    char *buffer, size_t bytes);

void gt_filter_texts_fini(struct gt_filter_texts *texts);

#endif
