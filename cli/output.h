/* SPDX-License-Identifier: MIT */
/*
 * A result file that is there whole or not at all: it is written under another name beside its
 * place and moved there when it is complete, so a failure or Ctrl-C leaves an earlier one as it
 * was. "-" is stdout; what is there and is no regular file (a pipe, /dev/null) is written as it is.
 */
#ifndef GT_CLI_OUTPUT_H
#define GT_CLI_OUTPUT_H

#include <limits.h>
#include <stdbool.h>

#include <graftrace/error.h>

struct gt_output {
	int fd;
	char path[PATH_MAX];
	char temporary[PATH_MAX]; /* "" : written in place */
	bool is_directory;	  /* fd is the new folder's */
	bool replace;		  /* … and a folder that is in its place goes */
};

/* GT_EIO, GT_EINVAL (the name is too long). */
int gt_output_open(struct gt_output *output, const char *path, struct gt_message *message);

/* The same with a folder: `fd` is that of a new one, for openat(2). What is in its place already
 * stays, and is an error (GT_EEXIST), unless `replace`, and it is a folder. Also GT_EIO, GT_EINVAL. */
int gt_output_open_directory(struct gt_output *output, const char *path, bool replace,
			     struct gt_message *message);

/* Moves the file to its place and closes it. GT_EIO: then it is gone as after gt_output_abandon. */
int gt_output_commit(struct gt_output *output, struct gt_message *message);

/* Removes what was written and closes. */
void gt_output_abandon(struct gt_output *output);

#endif
