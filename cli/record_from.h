/* SPDX-License-Identifier: MIT */
/* record --from: the trace of a kernel that serves it over HTTP, into a file, as it comes. */
#ifndef GT_CLI_RECORD_FROM_H
#define GT_CLI_RECORD_FROM_H

#include <stdint.h>

/* Drains http://HOST:PORT until the other side ends, Ctrl-C, or for_ns (0: no limit). An old file
 * becomes FILE.old. Returns the exit code; all has been said. */
int gt_record_from(const char *url, const char *output, uint64_t for_ns);

#endif
