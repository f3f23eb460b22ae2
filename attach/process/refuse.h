/* SPDX-License-Identifier: MIT */
/*
 * What cannot be attached to, found out before anything is done to it. Each message says what to
 * do.
 */
#ifndef GT_ATTACH_REFUSE_H
#define GT_ATTACH_REFUSE_H

#include <sys/types.h>
#include <graftrace/error.h>

/* 0: nothing speaks against it. GT_EGONE: no such process; GT_EPERM: this user may not, or somebody
 * else traces it; GT_ENOTSUP: no process like it can be traced; GT_EBUSY: it cannot be stopped now.
 */
int gt_refuse_process(pid_t pid, struct gt_message *message);

#endif
