/* SPDX-License-Identifier: MIT */
/*
 * Events with fields, counted: how many there were of each, how often, and the least, mean and
 * greatest value of each field that is a number. One thread at a time.
 */
#ifndef GT_EXPORT_EVENTS_H
#define GT_EXPORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include "core/trace/target.h"
#include "export/report.h"

/* Which events are counted: all 0, all of them. */
struct gt_events_options {
	uint64_t from_ns, to_ns; /* only between; since the clock's beginning */
	uint32_t pid, tid;	 /* only of this one */
	bool without_rests;	 /* graftrace:off_cpu is left out: rests.h makes a table of it */
	size_t limit;		 /* events, the most frequent first */
	enum gt_report_format format;
};

/* Reads the target and writes the counts: as text a line for each event and, indented, one for each field; as CSV a row
 * for each field (one for an event without fields); as JSON an object for each event. *text, NUL-terminated, "" if there
 * was no event, is the caller's to free. GT_ENOMEM. */
int gt_events_count(struct gt_target *target, const struct gt_events_options *options, char **text,
		    size_t *bytes);

/* The number whose bits a GT_EVENT_FRACTION has. */
double gt_event_fraction(const struct gt_event_field *field, uint64_t bits);

#endif
