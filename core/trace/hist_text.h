/* SPDX-License-Identifier: MIT */
/* The text of all histograms of an event, as the file `hist` has it. Freestanding. One thread at a time, no locks. */
#ifndef GT_CORE_TRACE_HIST_TEXT_H
#define GT_CORE_TRACE_HIST_TEXT_H

#include "core/trace/hist.h"
#include "core/trace/memory.h"

/* All zero but for the memory, which the owner sets: no histogram. */
struct gt_hist_text {
	struct gt_memory memory;
	char *bytes;
	size_t count;
	size_t room;
};

/* Appends a histogram, which stays the caller's. Calls `names` for each entry. An entry's line has
 * GT_HIST_LINE_BYTES at most, and is cut off there. GT_ENOMEM: a part of it may have been appended. */
int gt_hist_text_add(struct gt_hist_text *text, const struct gt_hist_copy *copy,
		     const struct gt_hist_names *names);

/* Copies the text from `offset` on, without a zero byte; returns the number of bytes, 0 at the end. */
size_t gt_hist_text_read(const struct gt_hist_text *text, uint64_t offset, char *buffer,
			 size_t bytes);

/* Frees the text. Then it is empty, and gt_hist_text_add() may follow. */
void gt_hist_text_fini(struct gt_hist_text *text);

#endif
