/* SPDX-License-Identifier: MIT */
/*
 * CPU shadow stacks (x86's CET, prctl and arch_prctl of Linux 6.6). The processor keeps a second
 * stack of return addresses and faults where a `ret` goes elsewhere. A stub's tail call, moved
 * calls, hooks and calls made from outside all leave it behind, so none is used in a process that
 * has one: attaching to it is refused, and a traced program gets none.
 */
#ifndef GT_ATTACH_SHADOW_STACK_H
#define GT_ATTACH_SHADOW_STACK_H

#include <stdbool.h>
#include "attach/process/threads.h"

/* Whether a thread has one, by the text of its /proc/PID/task/TID/status. */
bool gt_shadow_stack_is_on(const char *status);

/* The process, stopped for calls, and what it starts, cannot switch one on any more, until it
 * executes another program; the C library goes on without. Where the kernel knows of none nothing
 * happens. Errors of gt_remote_call(). */
int gt_shadow_stack_forbid(struct gt_remote *remote, struct gt_message *message);

#endif
