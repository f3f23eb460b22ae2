/* SPDX-License-Identifier: MIT */
/*
 * Triggers of events as text: `[!]command[:parameter][ if filter]`, as
 * kernel/trace/trace_events_trigger.c of Linux 6.1 takes them. Freestanding.
 */
#ifndef GT_CORE_TRACE_EVENT_TRIGGER_H
#define GT_CORE_TRACE_EVENT_TRIGGER_H

#include "core/trace/event_filter.h"

#define GT_EVENT_TRIGGER_BYTES 512

struct gt_event_trigger_text {
	struct gt_event_trigger trigger; /* its strings are these: */
	char filter[GT_EVENT_TRIGGER_BYTES];
	char target[GT_EVENT_TRIGGER_BYTES];
	char hist[GT_EVENT_TRIGGER_BYTES];
	bool remove; /* `!`: only what it is says which one */
};

/* 0 or GT_EINVAL. Whether the target is there, the filter fits, and what a histogram says is right, is not
 * looked at. */
int gt_event_trigger_parse(const char *text, size_t bytes, struct gt_event_trigger_text *parsed);

/* Whether it takes snapshots, by itself or by a histogram's action. */
bool gt_event_trigger_takes_snapshots(const struct gt_event_trigger *trigger);

/* "traceoff", …; and all of them, with blanks between. */
const char *gt_event_trigger_name(enum graftrace_rule_action action);
#define GT_EVENT_TRIGGER_NAMES                                             \
	"traceon traceoff snapshot stacktrace enable_event disable_event " \
	"enable_hist disable_hist hist"

#endif
