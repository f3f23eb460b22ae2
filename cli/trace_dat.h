/* SPDX-License-Identifier: MIT */
/*
 * A recording as trace-cmd's file, version 6 (trace-cmd.dat.v6(5)), as if trace-cmd had recorded the
 * control files: formats of the events, names of functions and threads, and the pages of each CPU.
 */
#ifndef GT_CLI_TRACE_DAT_H
#define GT_CLI_TRACE_DAT_H

#include <graftrace/error.h>

#include "read/recording.h"

/* Writes to fd, a regular file. GT_EIO, GT_ENOMEM; the message says why. */
int gt_trace_dat_write(struct gt_recording *recording, int fd, struct gt_message *message);

#endif
