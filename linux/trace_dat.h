/* SPDX-License-Identifier: MIT */
/*
 * trace-cmd's files (trace.dat, versions 6 and 7) as recordings: libtracecmd reads, a process of its
 * own turns what it reads into a recording in a file without a name, and all that can be done with a
 * recording can be done with that. A file that makes the library crash or take all memory costs that
 * process only.
 */
#ifndef GT_LINUX_TRACE_DAT_H
#define GT_LINUX_TRACE_DAT_H

#include <stdbool.h>

#include "linux/convert.h"

/* Does the file begin as trace-cmd's do? False where it cannot be read, or read twice. */
bool gt_is_trace_dat(int fd);
bool gt_is_trace_dat_path(const char *path);

/*
 * Opens the file as a recording. GT_EFORMAT: trace-cmd's library cannot read it; GT_EIO; GT_ENOMEM;
 * GT_ENOSPC: no room for the recording below $TMPDIR. Forks: the caller has one thread.
 */
int gt_trace_dat_open(const char *path, struct gt_recording **recording,
		      struct gt_linux_notes *notes, struct gt_message *message);

#endif
