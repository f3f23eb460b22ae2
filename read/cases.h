/* SPDX-License-Identifier: MIT */
/*
 * Counts cases of one kind (bad lines of a text, calls that never ended), and keeps the first few for
 * a message. Fixed memory; no errors; one thread at a time.
 */
#ifndef GT_READ_CASES_H
#define GT_READ_CASES_H

#include <stddef.h>
#include <stdint.h>

#define GT_CASES_KEPT	5
#define GT_CASE_EXCERPT 80

struct gt_case {
	uint64_t line;	 /* from 1; 0: it belongs to no single line */
	uint64_t offset; /* of the line's first byte */
	int64_t tid;	 /* of a call; 0 else */
	const char *why; /* a constant text, or NULL */
	/* Terminated, cut to fit; what is not printable ASCII is '?'. */
	char text[GT_CASE_EXCERPT + 1];
};

struct gt_cases {
	uint64_t count;
	unsigned kept_count; /* min(count, GT_CASES_KEPT) */
	struct gt_case kept[GT_CASES_KEPT];
};

/* Counts a case, and keeps it if it is among the first; text is of len bytes. */
void gt_cases_keep(struct gt_cases *cases, uint64_t line, uint64_t offset, int64_t tid,
		   const char *why, const char *text, size_t len);

#endif
