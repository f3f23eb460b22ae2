/* SPDX-License-Identifier: MIT */
/*
 * The file under a recording that is being written: created beside the one that stood there, filled
 * with checked blocks, cut back to its last whole block when a write fails. One thread at a time.
 */
#ifndef GT_READ_BLOCK_OUTPUT_H
#define GT_READ_BLOCK_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include <graftrace/file.h>

struct gt_block_output {
	int fd;
	bool regular;	 /* it can be cut back */
	int error;	 /* the first one; nothing is written after it */
	uint64_t offset; /* where the next block goes */
	uint64_t number; /* of the next block */
	struct gt_message message;
	char path[4096];
};

/* Creates the file and writes its magic. An ordinary file at `path` becomes PATH.old first. 0,
 * GT_EINVAL (path too long), GT_ENOENT, GT_EPERM, GT_ENOSPC, GT_EIO, GT_ENOMEM (the kernel's), with
 * output->message set; gt_block_output_close() is to follow in any case. */
int gt_block_output_create(struct gt_block_output *output, const char *path);

/* Goes on with a file that has whole blocks up to `offset`, `number` of them: what follows is cut off.
 * The same errors. GT_EPERM also: it is not an ordinary file of this user's with one name, or it is
 * shorter than that. */
int gt_block_output_append(struct gt_block_output *output, const char *path, uint64_t offset,
			   uint64_t number);

/*
 * Writes one block. `block` begins with room for the header (64 bytes), then comes the payload, and
 * 8 bytes more are free behind it. The header is filled here from the arguments. 0 or the output's
 * error.
 */
int gt_block_output_put(struct gt_block_output *output, uint8_t *block,
			enum graftrace_block_type type, uint32_t flags, size_t payload_bytes,
			size_t raw_bytes, size_t head_bytes);

/* Notes an error that the caller met. The first one is kept and returned from then on. */
int gt_block_output_fail(struct gt_block_output *output, int error, const char *what);

/* 0, or the output's error, an error of closing included. */
int gt_block_output_close(struct gt_block_output *output);

#endif
