/* SPDX-License-Identifier: MIT */
/*
 * The table of control files as a directory (FUSE): what looks and feels like /sys/kernel/tracing.
 * Two threads of its own: one takes the kernel's requests in, and answers those that look names up, list
 * directories or ask for attributes; the other one carries the rest out in their order, so that the change of a closed
 * file is visible to the next request. A reader that waits (trace_pipe) holds no thread.
 *
 * Failed requests get Linux's errno; the message's text is lost, except in error_log.
 */
#ifndef GT_SERVE_FUSE_H
#define GT_SERVE_FUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <graftrace/error.h>
#include "core/control/control.h"

struct gt_fuse;

struct gt_fuse_options {
	size_t size;	       /* sizeof(struct gt_fuse_options), or more: room to grow */
	const char *directory; /* to mount on; exists */
	bool allow_other;      /* other users may look in, as the files' modes say */
	/* As tracefs's mount options: owners of all files, mode of the root (else 0700). */
	bool has_uid, has_gid, has_mode;
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/*
 * Mounts, before anything is traced, so that errors come early. Processes that use the directory wait
 * until gt_fuse_start. GT_ENOENT: no such directory; GT_ENOTSUP: this machine has no /dev/fuse; GT_EPERM;
 * GT_EBUSY: the mount of a graftrace that was killed is still there; GT_EINVAL: not a directory, or options of an
 * older size; GT_EIO; GT_ENOMEM. All with the message; *fuse is not set then. Nothing of the options is kept.
 */
int gt_fuse_open(const struct gt_fuse_options *options, struct gt_fuse **fuse,
		 struct gt_message *message);

/* Starts the threads, once. control's operations are called from both, at once, until gt_fuse_close returns; `control`
 * must live until then. All signals are blocked in the threads. GT_EIO, with the message: no thread can be made, and
 * the mount is still to be closed. */
int gt_fuse_start(struct gt_fuse *fuse, struct gt_control_target *control,
		  struct gt_message *message);

/* Whether the mount serves no more: another process has unmounted it, or its device fails. False before gt_fuse_start.
 * From any thread; no lock. */
bool gt_fuse_is_gone(const struct gt_fuse *fuse);

/* Unmounts, ends the threads and frees. Readers of files that wait have grace_ms to reach the end of the
 * trace, which exists once the target has ended. Files that are still open then return ENOTCONN. Also
 * if it was never started. Not from its threads, and with no lock held that the control files take. */
void gt_fuse_close(struct gt_fuse *fuse, unsigned grace_ms);

#endif
