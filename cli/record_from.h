/* SPDX-License-Identifier: MIT */
/* record --from: the trace of a kernel that serves it over HTTP, into a file, as it comes. */
#ifndef GT_CLI_RECORD_FROM_H
#define GT_CLI_RECORD_FROM_H

#include "cli/record_options.h"

/* Drains options->from, http://HOST:PORT, until the other side ends, Ctrl-C, or the time is over; with
 * this machine's kernel beside if that is asked for. An old file becomes FILE.old. Returns the exit
 * code; all has been said. */
int gt_record_from(const struct gt_record_options *options);

#endif
