/* SPDX-License-Identifier: MIT */
/*
 * What Linux recorded as a recording: made in a process of its own, in a file without a name. A file
 * that makes a library crash or take all memory costs that process only.
 */
#ifndef GT_LINUX_CONVERT_H
#define GT_LINUX_CONVERT_H

#include <stdint.h>

#include <graftrace/error.h>
#include "read/recording.h"

/* What the recording does not say by itself. */
struct gt_linux_notes {
	uint64_t lost;		 /* records, as far as their number is known */
	uint64_t unknown_losses; /* places where records are missing, nobody knows how many */
	uint64_t damaged;	 /* records that make no sense */
	uint64_t unknown;	 /* records of events without a format */
	uint64_t lines;		 /* of a text that are not understood */
};

/* Reads `path` and writes a recording to `to`. */
typedef int gt_linux_converter(const char *path, const char *to, struct gt_linux_notes *notes,
			       struct gt_message *message);

/*
 * Runs the converter and opens what it wrote. Its errors, GT_EFORMAT if it died; GT_EIO, GT_ENOSPC:
 * no room below $TMPDIR; GT_ENOMEM. Forks: the caller has one thread.
 */
int gt_linux_convert(const char *path, gt_linux_converter *convert, struct gt_recording **recording,
		     struct gt_linux_notes *notes, struct gt_message *message);

#endif
