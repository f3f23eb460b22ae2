/* SPDX-License-Identifier: MIT */
/*
 * Reads the CSV of calls (export/csv.h writes it; Nanos' parse-trace.py, spreadsheets and pandas
 * write it, too). The columns are found by their names in the first line, in any order among any
 * others: function, tid, latency_us, latency_us_self. RFC 4180, with LF or CRLF, with or without a
 * byte order mark, quoted fields that hold line ends included.
 *
 * A row that cannot be read is counted and skipped, the first few are kept by line. Memory: one
 * block. One thread.
 */
#ifndef GT_READ_CSV_H
#define GT_READ_CSV_H

#include <stddef.h>
#include <stdint.h>

#include "read/cases.h"
#include <graftrace/error.h>

/* A longer row is counted as one that cannot be read. */
#define GT_CSV_ROW_MAX	   (1u << 20)
#define GT_CSV_COLUMNS_MAX 256

struct gt_csv_row {
	const char *function; /* not terminated; valid during the callback */
	size_t function_len;
	int64_t tid;
	int64_t latency_ns; /* rounded to whole nanoseconds */
	int64_t self_ns;    /* may be negative: some writers subtract rounded numbers */
};

struct gt_csv_report {
	uint64_t rows;	/* given */
	uint64_t lines; /* ended, header included */
	uint64_t bytes;
	struct gt_cases bad; /* rows that could not be read */
};

/*
 * Reads fd to its end and gives each row to the callback, whose negative result ends the reading
 * and is returned. *report is filled as far as it got. GT_EFORMAT: the first line does not name the
 * columns; GT_EIO; GT_ENOMEM; *message has the words.
 */
int gt_csv_read(int fd, int (*take)(void *user, const struct gt_csv_row *row), void *user,
		struct gt_csv_report *report, struct gt_message *message);

/*
 * A number of microseconds as pandas, Python or a person writes it ("0.071", "1e-05", "-0.5") as
 * nanoseconds. GT_EFORMAT if it is anything else, GT_EINVAL if it is over 10^15 us.
 */
int gt_csv_parse_us(const char *text, size_t len, int64_t *ns);

#endif
