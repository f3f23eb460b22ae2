/* SPDX-License-Identifier: MIT */
/*
 * Filters of events: from an expression ("count > 3 && what ~ \"app*\"") to the comparisons that are
 * evaluated where the event happens (graftrace/filter.h). Grammar, errors and the places that they
 * point at are those of kernel/trace/trace_events_filter.c, Linux 6.1. Freestanding, without
 * recursion: brackets may be as deep as the expression is long.
 */
#ifndef GT_CORE_TRACE_EVENT_FILTER_H
#define GT_CORE_TRACE_EVENT_FILTER_H

#include <graftrace/error.h>
#include <graftrace/filter.h>
#include "core/trace/event.h"

/* What is done at an event ("traceoff:3 if count > 7"). */
struct gt_event_trigger {
	enum graftrace_rule_action action;
	uint64_t limit;	    /* how often it acts, GRAFTRACE_RULE_UNLIMITED */
	const char *filter; /* an expression; NULL: always */
	const char *
		target; /* ENABLE, DISABLE, HIST_ON, HIST_OFF: the other event, "system:name"; else NULL */
	const char *hist; /* HIST: which one (core/trace/hist.h); else NULL */
	bool is_paused;	  /* HIST: it does not count */
};

/* What an expression of `bytes` bytes can need. */
#define GT_EVENT_FILTER_ROOM(bytes)        \
	(sizeof(struct graftrace_filter) + \
	 ((uint64_t)(bytes) / 2 + 2) * (sizeof(struct graftrace_filter_op) + 2) + (bytes))

struct gt_event_filter_error {
	const char *text; /* NULL: it is no error of the expression's text */
	uint32_t at;	  /* where in the expression, as Linux counts */
};

/*
 * Makes the filter, at most `room` bytes; 8-byte aligned. NULL: only says whether it can be made. Returns
 * its bytes. Errors: GT_EINVAL,
 * GT_EPERM, GT_ENOENT, GT_ESRCH as Linux has them, GT_ENOSPC: there is no room.
 */
int64_t gt_event_filter_make(const struct gt_event_format *format, const char *expression,
			     size_t bytes, struct graftrace_filter *filter, uint64_t room,
			     struct gt_event_filter_error *error);

#endif
