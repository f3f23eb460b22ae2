/* SPDX-License-Identifier: MIT */
/* The text of all histograms of an event, as the file `hist` has it. Freestanding. */
#ifndef GT_CORE_TRACE_HIST_TEXT_H
#define GT_CORE_TRACE_HIST_TEXT_H

#include "core/trace/hist.h"
#include "core/trace/memory.h"

/* All zero but for the memory: no histogram. */
struct gt_hist_text {
	struct gt_memory memory;
	char *bytes;
	size_t count;
	size_t room;
};

/* One more. GT_ENOMEM. */
int gt_hist_text_add(struct gt_hist_text *text, const struct gt_hist_copy *copy,
		     const struct gt_hist_names *names);

/* From `offset` on; returns the bytes, 0 at the end. */
size_t gt_hist_text_read(const struct gt_hist_text *text, uint64_t offset, char *buffer,
			 size_t bytes);

void gt_hist_text_fini(struct gt_hist_text *text);

#endif
