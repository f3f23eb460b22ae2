/* SPDX-License-Identifier: MIT */
/*
 * Why threads were off the CPU, by thread and by what ended it: how often, how long they slept until
 * somebody woke them, and how long they then waited for a CPU. Of recordings with Linux's switches
 * and wake-ups, whose reader writes an event graftrace:off_cpu where a thread runs again. One thread at a time.
 */
#ifndef GT_EXPORT_RESTS_H
#define GT_EXPORT_RESTS_H

#include <stdbool.h>
#include <stddef.h>
#include "core/trace/target.h"

/* Reads the target and writes the table as text, or as CSV with times in nanoseconds; "" if nothing is known. Rows are
 * ordered by sleep and wait for a CPU together, the longest first. *text, NUL-terminated, is the caller's to free.
 * GT_ENOMEM. */
int gt_rests_report(struct gt_target *target, bool csv, char **text, size_t *bytes);

#endif
