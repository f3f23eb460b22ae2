/* SPDX-License-Identifier: MIT */
/*
 * A table of a trace: calls and times for each function, thread or object. Reads every record of a
 * target once, writer by writer; memory is a row for each function (thread, object) and the calls
 * open at a time.
 *
 * What counts: `total` is the time from entry to return of the calls that have no call of the same
 * row around them (recursion counts once); `self` is each call's time without its direct callees;
 * average, minimum, maximum and deviation are of all calls that returned. Calls that did not return
 * are counted, and are in no time.
 *
 * Where the target knows when threads were off the CPU, self time has two parts: on the CPU and off
 * it. What a thread slept belongs to the call that was its innermost then.
 */
#ifndef GT_EXPORT_REPORT_H
#define GT_EXPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

enum gt_report_by {
	GT_REPORT_FUNCTION = 0,
	GT_REPORT_THREAD = 1,
	GT_REPORT_OBJECT = 2,
	GT_REPORT_CALLER = 3, /* who has called a function; figures are those of its calls */
	GT_REPORT_CALLEE = 4, /* whom a function has called */
};

enum gt_report_key {
	GT_REPORT_TOTAL = 0,
	GT_REPORT_SELF,
	GT_REPORT_CALLS,
	GT_REPORT_AVERAGE,
	GT_REPORT_MINIMUM,
	GT_REPORT_MAXIMUM,
	GT_REPORT_DEVIATION,
	GT_REPORT_ON_CPU,
	GT_REPORT_OFF_CPU,
	GT_REPORT_NAME, /* ascending; all others descending */
};

enum gt_report_format {
	GT_REPORT_TEXT = 0,
	GT_REPORT_CSV = 1,
	GT_REPORT_JSON = 2,
};

/* Times in nanoseconds. */
struct gt_report_row {
	const char *name;      /* lives as long as the target and the report */
	const char *object;    /* of a function; "" else */
	uint64_t calls;	       /* all: returned, not returned, recorded without their return */
	uint64_t returned;     /* those with a known duration */
	uint64_t not_returned; /* unwound, or still open at the end */
	uint64_t total, self, average, minimum, maximum, deviation;
	uint64_t self_off;	   /* of self: off the CPU; also in calls that did not return */
	uint64_t total_off;	   /* of total: off the CPU */
	uint64_t self_upper_bound; /* calls during which records are missing: their self may be less
				    */
};

struct gt_report {
	enum gt_report_by by;
	enum gt_report_key sorted; /* the order of the rows */
	struct gt_report_row *rows;
	size_t row_count;
	uint64_t records;
	uint64_t calls, not_returned, untimed, self_upper_bound; /* sums over the rows */
	/* The threads' times together, in ns: each from its first record to its last; and what of
	 * that is in no row's self time. Of those that have all records. */
	uint64_t span, outside;
	uint32_t threads;
	bool has_off_cpu;		      /* self_off and total_off are known */
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* sums over the writers */
	/* Calls whose entries were overwritten and which are in the table all the same: kept
	 * records tell of them. lost[] has them too. */
	uint64_t known_by_return;
	uint64_t damaged;    /* words and events that made no sense */
	uint64_t unreadable; /* sub-buffers that could not be read */
	void *names;	     /* private */
};

/* "total", "self", "calls", "avg" … or a beginning of one. GT_EINVAL. */
int gt_report_parse_key(const char *text, enum gt_report_key *key, struct gt_message *message);

/* of: by caller or callee, a glob of functions that these are asked of; must outlive the call. A
 * call that no recorded one has made has the caller "(outermost)". GT_ENOMEM, GT_EIO. *report is to
 * be destroyed. The target must outlive it. */
int gt_report_make(struct gt_target *target, enum gt_report_by by, const char *of,
		   struct gt_report **report, struct gt_message *message);

/* Orders the rows; equal ones by calls, then by name. */
void gt_report_sort(struct gt_report *report, enum gt_report_key key);

/* The first `limit` rows (0: all) as text. Of GT_REPORT_TEXT's lines, `width` columns (0: any
 * number) have room for the beginning of a name: columns of times that take it are left out, which
 * is said, but never the one that the rows are in order of. *text is malloc'd, NUL-terminated, the
 * caller's. GT_ENOMEM. */
int gt_report_format(const struct gt_report *report, enum gt_report_format format, size_t limit,
		     uint32_t width, char **text, size_t *bytes);

void gt_report_destroy(struct gt_report *report);

#endif
