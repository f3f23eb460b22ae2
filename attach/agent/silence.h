/* SPDX-License-Identifier: MIT */
/*
 * An agent that makes no system calls: before a thread enters a sandbox (seccomp) that may forbid them. Such a
 * sandbox may be meant for all threads at once (SECCOMP_FILTER_FLAG_TSYNC), and kill the process for a call.
 */
#ifndef GT_ATTACH_SILENCE_H
#define GT_ATTACH_SILENCE_H

#include "attach/agent/tracee.h"

/*
 * Tells the agent to make no system calls any more, for good, and waits, in stops of the world, until each thread was
 * seen outside the agent once since then: it makes none again. waits: a thread that waits in the agent for the end of
 * this; it is not looked at. It gives up after a number of rounds, with GT_EBUSY (also: a thread cannot be stopped):
 * a thread waits in the agent, perhaps for the caller; call it again. Other errors: GT_EGONE, GT_EPERM, GT_EIO, GT_ENOMEM.
 */
int gt_silence(struct gt_tracee *tracee, pid_t waits);

#endif
