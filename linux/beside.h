/* SPDX-License-Identifier: MIT */
/*
 * Recordings of a program with the kernel beside (graftrace record --kernel): the kernel's pages are
 * read by libtraceevent, and what each thread did in the kernel stands where it did it, below the
 * program's calls, on one time line.
 */
#ifndef GT_LINUX_BESIDE_H
#define GT_LINUX_BESIDE_H

#include <stdbool.h>

#include "linux/convert.h"

/* Has the recording what Linux recorded beside? (Whether it is a kernel's own: gt_target_is_kernel().) */
bool gt_has_linux(struct gt_recording *recording);

/* As gt_linux_convert, of the recording at `path`. */
int gt_beside_open(const char *path, struct gt_recording **recording, struct gt_linux_notes *notes,
		   struct gt_message *message);

/* The same without the program's calls: a thread's outermost functions are the kernel's. */
int gt_beside_open_kernel(const char *path, struct gt_recording **recording,
			  struct gt_linux_notes *notes, struct gt_message *message);

#endif
