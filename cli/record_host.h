/* SPDX-License-Identifier: MIT */
/*
 * record --from with --kernel: what this machine's kernel does goes into the recording of a kernel that
 * is drained, which is most likely a guest of this machine. Messages are printed here; after the first
 * one, gt_record_host_failed says that the recording cannot go on.
 */
#ifndef GT_CLI_RECORD_HOST_H
#define GT_CLI_RECORD_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include <graftrace/file.h>
#include "cli/record_options.h"

struct gt_record_host;

/* Sets up, before anything is drained. *host stays NULL where no kernel is asked for, or --kernel=try
 * found that it cannot be. 0, or an exit code. */
int gt_record_host_create(const struct gt_record_options *options, struct gt_record_host **host);

/*
 * The file has its first block, `start`, and ends after `bytes` bytes. From here on the file is written
 * by the functions below, and the host's kernel is recorded. `connection` is a further one to the drained
 * kernel, by which the clocks are compared; `name` is what that kernel is called in requests.
 */
bool gt_record_host_begin(struct gt_record_host *host, uint64_t bytes,
			  const struct graftrace_file_start *start, int connection,
			  const char *name);

/* A block of the drained kernel. */
bool gt_record_host_put(struct gt_record_host *host, const struct graftrace_block *block,
			const void *payload);

/* To be called often: takes what the host's kernel has recorded, now and then. NULL is fine. */
void gt_record_host_take(struct gt_record_host *host);

bool gt_record_host_failed(const struct gt_record_host *host);

/* Compares the clocks once more, if there is a connection (else -1), and takes the rest. */
bool gt_record_host_finish(struct gt_record_host *host, int connection, const char *name);

/* Bytes of the file. */
uint64_t gt_record_host_bytes(const struct gt_record_host *host);

/* Puts everything back. NULL is fine. */
void gt_record_host_destroy(struct gt_record_host *host);

#endif
