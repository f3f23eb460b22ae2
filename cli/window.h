/* SPDX-License-Identifier: MIT */
/* A window of time on the command line, FROM-TO: what happened between is looked at. */
#ifndef GT_CLI_WINDOW_H
#define GT_CLI_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "core/trace/filter.h"
#include "read/recording.h"

/* One side. Relative ones are made absolute when the recording is known. */
struct gt_window_side {
	uint64_t ns;
	bool set;
	bool relative; /* since the recording began */
};

/* All zero: the whole recording. */
struct gt_window {
	struct gt_window_side from, to;
};

/* "7.5-7.6" (seconds as funcgraph-abstime shows them), "+10ms-+20ms" (since the start), "5-", "-+2s".
 * GT_EINVAL, also of an end before the beginning; the message says what is wanted. */
int gt_window_parse(const char *text, struct gt_window *window, struct gt_message *message);

/* Sets the filter's from_ns and to_ns. */
void gt_window_set(const struct gt_window *window, struct gt_recording *recording,
		   struct gt_filter *filter);

#endif
