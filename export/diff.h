/* SPDX-License-Identifier: MIT */
/*
 * The difference between two sides, each of one or more runs: what got slower or faster, new, gone.
 * A row stands for the functions of one name in the program, or in libraries of one file name.
 *
 * With two runs or more of each side, Welch's t-test says how probable a difference of the means of
 * the runs' figures is if both sides do the same; a row *stands out* if it does at a false discovery
 * rate of 5 % (Benjamini and Hochberg 1995) over all rows: of those that are called so one of twenty
 * is expected to be noise, however many functions there are. One thread at a time; errors of writing are in out->error.
 */
#ifndef GT_EXPORT_DIFF_H
#define GT_EXPORT_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/histogram.h"
#include "export/out.h"
#include "export/report.h"

enum gt_diff_key {
	GT_DIFF_SELF = 0,
	GT_DIFF_TOTAL = 1,
	GT_DIFF_CALLS = 2,
	GT_DIFF_P50 = 3,
	GT_DIFF_P99 = 4,
	GT_DIFF_KEYS = 5,
	GT_DIFF_NAME = 5, /* rows in order of their names; self times are tested */
};

#define GT_DIFF_RUNS_MAX 32 /* of a side */

struct gt_diff_side {
	uint32_t runs;
	/* Means of the runs (of p50 and p99: of the calls of all runs together): calls and times in
	 * ns. */
	double mean[GT_DIFF_KEYS];
	double *values; /* run by run, GT_DIFF_KEYS each */
	struct gt_histogram durations;
};

struct gt_diff_row {
	char *name;
	char *object; /* as gt_diff_object calls it */
	struct gt_diff_side side[2];
	double change; /* of the key, from the first side to the second */
	double p;      /* NaN: not tested */
	bool stands_out;
};

struct gt_diff {
	struct gt_diff_row *rows;
	size_t count, room;
	uint32_t runs[2];
	enum gt_diff_key key;
	/* private */
	uint32_t *table;
	size_t table_mask;
};

/* Parses "self", "total", "calls", "p50" (or "median"), "p99" or "name". GT_EINVAL with the message. */
int gt_diff_parse_key(const char *text, enum gt_diff_key *key, struct gt_message *message);

/* Makes an empty one in the caller's memory. */
void gt_diff_init(struct gt_diff *diff);
/* Adds a run's report (by function) to side 0 or 1; what is needed of it is copied. program: the file
 * that was run. GT_ENOSPC: too many runs, nothing has changed; GT_ENOMEM: only gt_diff_fini may follow. */
int gt_diff_add(struct gt_diff *diff, unsigned side, const struct gt_report *report,
		const char *program);

/* The name that rows have for an object: "(program)" if its file name is the program's, as builds may lie in several
 * places; otherwise its file name. Returns a constant, or a part of `path`. */
const char *gt_diff_object(const char *path, const char *program);
/* Call once, when all runs were added: tests the rows, and orders them by how much the key changed. GT_ENOMEM: only
 * gt_diff_fini may follow. */
int gt_diff_finish(struct gt_diff *diff, enum gt_diff_key key);
void gt_diff_fini(struct gt_diff *diff);

/* The probability that |t| is at least so large, with `degrees` degrees of freedom. */
double gt_diff_t_probability(double t, double degrees);

/* After gt_diff_finish. Text: the first `limit` rows (0: all) of which the key or the number of calls changed, and how
 * many did not; width as in struct gt_report_style, brief: names as gt_short_name has them. JSON: the first `limit` rows (0:
 * all), changed or not. Neither flushes `out`. */
void gt_diff_write_text(const struct gt_diff *diff, size_t limit, uint32_t width, bool color,
			bool brief, struct gt_out *out);
void gt_diff_write_json(const struct gt_diff *diff, size_t limit, struct gt_out *out);

#endif
