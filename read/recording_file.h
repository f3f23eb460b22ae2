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
 * Creates `path` with mode 0600 and opens it for writing. An ordinary file of that name becomes
 * PATH.old first, in place of an older one, and so does a link. A pipe or a device, also one that a link of
 * this user's or root's leads to, is written to as it is, and so is what such a link below /dev or /proc
 * names (/dev/stdout); an ordinary file that is named so is emptied first. Waits for a pipe's reader. No
 * link is followed to a place where there is nothing.
 *
 * Returns a descriptor (close-on-exec), or -1 with errno (EEXIST: somebody puts other files there
 * meanwhile; EISDIR); then what was moved is moved back.
 */
int gt_recording_file_create(const char *path);

/* Whether a link may be followed: `path` is none (or is not there), or is this (effective) user's or root's. */
bool gt_link_is_own(const char *path);

#endif
