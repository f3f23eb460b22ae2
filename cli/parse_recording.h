/* SPDX-License-Identifier: MIT */
/*
 * The half of parse-trace that reads recordings, graftrace.data.
 */
#ifndef GT_CLI_PARSE_RECORDING_H
#define GT_CLI_PARSE_RECORDING_H

#include <stdbool.h>

/* Does the file begin as a recording does? Moves no offset; of a pipe it is not known: false. */
bool gt_is_recording(int fd);

/* Makes the CSV `to` of the recording that is open at `fd` and named `path`; returns the exit code.
 */
int gt_parse_recording(int fd, const char *path, const char *to, bool no_sleep, bool quiet);

#endif
