/* SPDX-License-Identifier: MIT */
/*
 * Bytes of many lanes, given in turns and read back lane by lane: for formats that want each thread's
 * events in one piece. Full pieces go to a temporary file without a name, so memory is a piece of
 * GT_SPOOL_PIECE bytes a lane. One thread at a time.
 */
#ifndef GT_EXPORT_SPOOL_H
#define GT_EXPORT_SPOOL_H

#include <stddef.h>
#include <stdint.h>
#include "export/out.h"

#define GT_SPOOL_PIECE 4096u

struct gt_spool_lane;

struct gt_spool {
	struct gt_spool_lane *lanes;
	uint32_t count;
	uint64_t file_bytes;
	int fd;	   /* -1: nothing was written yet */
	int error; /* errno */
};

/* Makes an empty one; no file is opened yet. */
void gt_spool_init(struct gt_spool *spool);
/* Appends bytes to a lane. GT_ENOMEM; GT_EIO (spool->error has the errno): a part may be there, and the spool is of no
 * use. */
int gt_spool_add(struct gt_spool *spool, uint32_t lane, const void *bytes, size_t count);
/* Writes all of a lane's bytes, from the first to the last; of a lane without any, nothing. GT_ENOMEM; GT_EIO: the
 * temporary file cannot be read (spool->error), or out->error is set. */
int gt_spool_copy(struct gt_spool *spool, uint32_t lane, struct gt_out *out);
/* Closes the temporary file, which is gone then. */
void gt_spool_fini(struct gt_spool *spool);

#endif
