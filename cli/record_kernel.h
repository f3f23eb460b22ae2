/* SPDX-License-Identifier: MIT */
/* The Linux kernel's part of `graftrace record`. What goes wrong is said here. */
#ifndef GT_CLI_RECORD_KERNEL_H
#define GT_CLI_RECORD_KERNEL_H

#include "cli/record_options.h"
#include "read/writer.h"

struct gt_kernel_tracer;

/* Sets up, before the program is started. *tracer stays NULL where --kernel=try found that it cannot be.
 * 0, or an exit code. */
int gt_record_kernel_create(const struct gt_record_options *options,
			    struct gt_kernel_tracer **tracer);

/* From here on it records. The tracer may be NULL. 0, or an exit code. */
int gt_record_kernel_start(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer);

/* Takes the rest to the file, and puts everything back. *tracer may be NULL, and is then. */
void gt_record_kernel_end(struct gt_kernel_tracer **tracer, struct gt_file_writer *writer);

#endif
