/* SPDX-License-Identifier: MIT */
/* The table of graftrace profile, as text and CSV, of a whole run or of an interval; and its histograms. */
#ifndef GT_CLI_PROFILE_TABLE_H
#define GT_CLI_PROFILE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "attach/session/session.h"

struct gt_profile_table {
	bool csv;
	bool no_deviation; /* it is not known of an interval */
	bool no_head;	   /* of CSV: there was one */
	bool brief;	   /* of text: short names (export/short_names.h) … */
	uint32_t width;	   /* … cut in the middle to lines of so many columns; 0: not */
	uint64_t limit;	   /* rows; 0 = all */
	uint64_t from_ns;  /* of an interval, since 1970: in the rows of CSV; 0, 0 none */
	uint64_t to_ns;
};

/* total, self, calls, avg, stddev or name, for all tables from now on. False: no such key. */
bool gt_profile_table_sort_by(const char *key);

void gt_profile_table_sort(struct gt_profile_row *rows, uint32_t count);

void gt_profile_table_print(FILE *to, const struct gt_profile_table *table,
			    const struct gt_profile_row *rows, uint32_t count);

/* How long the calls took, of the functions whose names match one of the globs (a NULL ends them). As text, or as CSV
 * with a row for each bucket that has calls. starts_ns: gt_session_profile_starts(). False: none of them was called. */
bool gt_profile_hists_print(FILE *to, const struct gt_profile_table *table,
			    const char *const *globs, const uint64_t starts_ns[GT_DURATIONS],
			    const struct gt_profile_row *rows, uint32_t count);

#endif
