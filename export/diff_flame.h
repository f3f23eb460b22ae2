/* SPDX-License-Identifier: MIT */
/*
 * The difference between two sides of runs as one flame graph: a frame is as wide as the mean of
 * both sides' times for its stack, red where the second side takes longer, blue where it takes less,
 * so that stacks which are new or gone are there too. Functions are the same by name and by what
 * gt_diff_object calls their object. One thread at a time.
 */
#ifndef GT_EXPORT_DIFF_FLAME_H
#define GT_EXPORT_DIFF_FLAME_H

#include "core/trace/target.h"
#include "export/out.h"

struct gt_diff_flame;

/* Makes an empty one. NULL: no memory. */
struct gt_diff_flame *gt_diff_flame_create(void);
/* Reads a run of a program (the path of its file) to side 0 or 1: first all of side 0, then all of side 1. What is needed
 * of it is copied. GT_ENOMEM: only gt_diff_flame_destroy() may follow. */
int gt_diff_flame_add(struct gt_diff_flame *flame, unsigned side, struct gt_target *target,
		      const char *program);
/* Writes the picture; once, when all runs were added. GT_ENOMEM; GT_EIO: out->error. Does not flush `out`. */
int gt_diff_flame_write(struct gt_diff_flame *flame, const char *title, struct gt_out *out);
/* NULL is allowed. */
void gt_diff_flame_destroy(struct gt_diff_flame *flame);

#endif
