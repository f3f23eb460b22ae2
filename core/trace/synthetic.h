/* SPDX-License-Identifier: MIT */
/*
 * Synthetic events as text: `NAME TYPE FIELD[; TYPE FIELD …]`, as kernel/trace/trace_events_synth.c of Linux
 * 6.1 takes them. Histograms' actions make them. Freestanding.
 */
#ifndef GT_CORE_TRACE_SYNTHETIC_H
#define GT_CORE_TRACE_SYNTHETIC_H

#include <graftrace/error.h>
#include "core/trace/event.h"
#include "core/trace/probe.h"

#define GT_SYNTHETIC_BYTES 512 /* of a line, its zero byte included */

/* Its strings lie in it. */
struct gt_synthetic {
	struct gt_event_format format; /* of system "synthetic", without a number */
	size_t used;
	char text[3 * GT_SYNTHETIC_BYTES];
};

/* GT_EINVAL with the error. Whether there is one of its name is not looked at. */
int gt_synthetic_parse(const char *text, size_t bytes, struct gt_synthetic *made,
		       struct gt_probe_error *error);

/* Its line, as synthetic_events shows it, with a zero byte. */
void gt_synthetic_put(const struct gt_event_format *event, char *at, size_t room);

#endif
