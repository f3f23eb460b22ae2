/* SPDX-License-Identifier: MIT */
/*
 * A process gets another arena in the place of the one that it has, while it runs: what it records goes on there.
 */
#ifndef GT_ATTACH_MOVE_H
#define GT_ATTACH_MOVE_H

#include "attach/agent/tracee.h"

/*
 * Stops the process, maps the part of `arena` that processes write over that of the old one, and lets the agent begin
 * anew there, as in a fork's child. before_it_goes_on: called while it stands still, once it has the arena.
 * GT_EAGAIN: its thread stands in the agent: later. GT_EBUSY: it cannot be stopped now. GT_ENOTSUP: it has several
 * threads, shares its memory with another process, or its system calls cannot be used; GT_EGONE, GT_EIO, GT_ENOMEM. On
 * an error it has the old one as before.
 */
int gt_tracee_move(struct gt_tracee *tracee, const struct gt_arena *arena,
		   void (*before_it_goes_on)(void *data), void *data, struct gt_message *message);

/* Whether its sandbox (seccomp) forbids what taking the agent out or moving needs; *why says so. */
bool gt_tracee_is_in_sandbox(const struct gt_tracee *tracee, struct gt_message *why);

#endif
