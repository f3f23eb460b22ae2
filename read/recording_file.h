/* SPDX-License-Identifier: MIT */
/*
 * Creates the file of a recording, which belongs to this user alone. A recording has command lines,
 * paths and the course of a program, so no other user may read it; and the directory may be another
 * user's, who could put links there for root to follow. Any thread.
 */
#ifndef GT_READ_RECORDING_FILE_H
#define GT_READ_RECORDING_FILE_H

#include <stdbool.h>

/*
 * Creates `path` with mode 0600 and opens it for writing. An ordinary file or a link of that name is first
 * renamed to PATH.old, in place of an older one. Exceptions, which are opened as they are: a pipe or a device,
 * also by a link that belongs to this user or root, and the file that such a link below /dev or /proc leads to
 * (/dev/stdout), which is emptied first if it is an ordinary one. Waits for a pipe's reader. No link is followed
 * to a place where there is nothing.
 *
 * Returns a descriptor (close-on-exec), or -1 with errno (EEXIST: other files were put there meanwhile;
 * EISDIR); then a renamed file has its name again.
 */
int gt_recording_file_create(const char *path);

/* Whether `path` may be followed: it is no link (or does not exist), or the link belongs to this (effective) user or
 * root. */
bool gt_link_is_own(const char *path);

#endif
