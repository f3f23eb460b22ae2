/* SPDX-License-Identifier: MIT */
/*
 * Counts cases and keeps the first few.
 */
#include "read/cases.h"

void gt_cases_keep(struct gt_cases *cases, uint64_t line, uint64_t offset, int64_t tid,
		   const char *why, const char *text, size_t len)
{
	struct gt_case *kept;
	size_t i;

	if (cases->count++ >= GT_CASES_KEPT)
		return;
	kept = &cases->kept[cases->kept_count++];
	kept->line = line;
	kept->offset = offset;
	kept->tid = tid;
	kept->why = why;
	if (len > GT_CASE_EXCERPT)
		len = GT_CASE_EXCERPT;
	for (i = 0; i < len; i++)
		kept->text[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	kept->text[i] = '\0';
}
