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
 *
 * One thread at a time; a report that was made is only read by gt_report_format…().
 */
#ifndef GT_EXPORT_REPORT_H
#define GT_EXPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"
#include "export/histogram.h"
#include "export/sources.h"

enum gt_report_by {
	GT_REPORT_FUNCTION = 0,
	GT_REPORT_THREAD = 1,
	GT_REPORT_OBJECT = 2,
	GT_REPORT_CALLER = 3,  /* who has called a function; figures are those of its calls */
	GT_REPORT_CALLEE = 4,  /* whom a function has called */
	GT_REPORT_PROCESS = 5, /* of a kernel: as by thread */
};

/* All zero: all calls, by function. */
struct gt_report_options {
	enum gt_report_by by;
	const char *of; /* by caller or callee: a glob of functions that these are asked of; must
			 * outlive the call */
	/* Only what happened between, on the target's clock. A call that was open then counts with
	 * its part of that time; one that had not returned by then counts as open. 0: no end. */
	uint64_t from_ns, to_ns;
	uint32_t pid, tid; /* only of this one; 0: of all */
	/* Only these functions and what they call: globs, NULL-terminated. NULL: all. */
	const char *const *graph;
	uint64_t least_ns;   /* leaves out calls that took less; 0: none */
	bool without_spread; /* p50, p90, p99 and durations of the rows are not wanted: all zero */
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
	GT_REPORT_P50,
	GT_REPORT_P90,
	GT_REPORT_P99,
	GT_REPORT_NAME, /* ascending; all others descending */
};

enum gt_report_format {
	GT_REPORT_TEXT = 0,
	GT_REPORT_CSV = 1,
	GT_REPORT_JSON = 2,
};

/* Times in nanoseconds. */
struct gt_report_row {
	const char *name;   /* lives as long as the target and the report */
	const char *object; /* of a function; "" else */
	uint32_t function; /* its number (one of them, where several are one row); 0: no function */
	uint64_t calls;	   /* all: returned, not returned, recorded without their return */
	uint64_t returned; /* those with a known duration */
	uint64_t not_returned; /* unwound, or still open at the end */
	uint64_t total, self, average, minimum, maximum, deviation;
	uint64_t p50, p90, p99;	       /* of the durations, to a thirty-second of themselves */
	struct gt_histogram durations; /* in ns, of all that returned */
	uint64_t self_off;	       /* of self: off the CPU; also in calls that did not return */
	uint64_t total_off;	       /* of total: off the CPU */
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
	uint64_t self;						 /* of all rows together */
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

/* Keys with commas between them: a bit, 1 << key, for each. GT_EINVAL. */
int gt_report_parse_fields(const char *text, unsigned *fields, struct gt_message *message);

/* Reads the target and makes the rows, in no order. By caller, calls without a recorded caller have the caller
 * "(outermost)". The caller destroys *report; the target must outlive it. GT_ENOMEM, GT_EIO. */
int gt_report_make(struct gt_target *target, const struct gt_report_options *options,
		   struct gt_report **report, struct gt_message *message);

/* Leaves only the rows whose names match the glob. The sums stay as they are. */
void gt_report_keep(struct gt_report *report, const char *glob);

/* Orders the rows; equal ones by calls, then by name. */
void gt_report_sort(struct gt_report *report, enum gt_report_key key);

/* All zero: all rows as plain text. */
struct gt_report_style {
	enum gt_report_format format;
	size_t limit; /* only the first so many rows; 0: all */
	unsigned
		fields; /* only these of the times (gt_report_parse_fields); 0: all, as text those that have room */
	/* Of a line of text, in columns; 0: any. If there is no room for the beginning of a name, columns of
	 * times are left out, which a line below tells, but never the one by which the rows are ordered. */
	uint32_t width;
	bool color;
	bool brief; /* of text: names as gt_short_name has them, cut where the line ends */
	struct gt_sources *sources; /* file and line of functions, too; NULL: not wanted */
};

/* Writes the table. *text, NUL-terminated, is the caller's to free. GT_ENOMEM. */
int gt_report_format(const struct gt_report *report, const struct gt_report_style *style,
		     char **text, size_t *bytes);

/* Instead of a table, how the durations of each row are spread: a line for each power of two of
 * nanoseconds. As gt_report_format; `style` says how many rows, in which format, and with colors. */
int gt_report_format_spread(const struct gt_report *report, const struct gt_report_style *style,
			    char **text, size_t *bytes);

/* The part of a call's own time that recording it takes: shorter durations are not told from none. */
#define GT_REPORT_GRAIN_NS 20

void gt_report_destroy(struct gt_report *report);

#endif
