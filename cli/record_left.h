/* SPDX-License-Identifier: MIT */
/* What a graftrace that was killed had not written, into its file. */
#ifndef GT_CLI_RECORD_LEFT_H
#define GT_CLI_RECORD_LEFT_H

#include <stddef.h>
#include <sys/types.h>

/* Before these processes are attached to, and before a file gets the name of another. Says on standard
 * error what was found, and what cannot be had any more. */
void gt_record_take_left(const pid_t *pids, size_t count);

#endif
