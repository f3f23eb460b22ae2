/* SPDX-License-Identifier: MIT */
/*
 * The table of control files as a directory (FUSE): what looks and feels like /sys/kernel/tracing.
 * Two threads of its own: one takes the kernel's requests in, the other one carries them out in
 * their order, so that what a closed file has changed is there for whoever asks next. A reader that
 * waits (trace_pipe) holds no thread.
 *
 * The errno of what goes wrong is Linux's; the words of a message have no place in it.
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
	size_t size;	       /* sizeof(struct gt_fuse_options): room to grow */
	const char *directory; /* to mount on; exists */
	bool allow_other;      /* other users may look in, as the files' modes say */
	/* As tracefs's mount options: owners of all files, mode of the root (else 0700). */
	bool has_uid, has_gid, has_mode;
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

/*
 * Mounts, so that it is known whether that works before anything is traced; who looks in already
 * waits. GT_ENOENT: no such directory; GT_ENOTSUP: this machine has no /dev/fuse; GT_EPERM;
 * GT_EBUSY: the mount of one that was killed is still there; GT_EINVAL: not a directory; GT_EIO;
 * GT_ENOMEM.
 */
int gt_fuse_open(const struct gt_fuse_options *options, struct gt_fuse **fuse,
		 struct gt_message *message);

/* Begins to serve; once. control's operations are called from one thread, until gt_fuse_close. All
 * signals are blocked in the threads. GT_EIO, GT_ENOMEM. */
int gt_fuse_start(struct gt_fuse *fuse, struct gt_control_target *control,
		  struct gt_message *message);

/* Somebody has unmounted the directory. From any thread. */
bool gt_fuse_is_gone(const struct gt_fuse *fuse);

/* Unmounts. Readers of files that wait are given grace_ms to come to the end of the trace, which
 * they do when the target has ended. What is still open then gives ENOTCONN. Frees. */
void gt_fuse_close(struct gt_fuse *fuse, unsigned grace_ms);

#endif
