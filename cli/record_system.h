/* SPDX-License-Identifier: MIT */
/* graftrace record --kernel -a: what Linux does for everybody, without a program. */
#ifndef GT_CLI_RECORD_SYSTEM_H
#define GT_CLI_RECORD_SYSTEM_H

#include "cli/record_options.h"
#include "core/trace/target.h"

/* Until Ctrl-C, SIGTERM or SIGHUP, or until the time is over. The clock is that of the start. The
 * exit code; all has been said. */
int gt_record_system(const struct gt_record_options *options, const struct gt_clock *clock);

#endif
