/* SPDX-License-Identifier: MIT */
/*
 * Contexts that nobody runs now: a signal interrupted a coroutine, its handler switched to another
 * one (swapcontext, preemptive schedulers), and where it will go on stands in memory that is no
 * stack of a thread. Where that is within bytes that become a jump, it has to be moved as threads are.
 */
#ifndef GT_ATTACH_SUSPENDED_H
#define GT_ATTACH_SUSPENDED_H

#include "attach/agent/world.h"

/* Whether the process may have such: one of its objects switches contexts by the C library. Symbols are
 * looked up once for each file. Before the process is stopped. */
bool gt_suspended_possible(const struct gt_tracee *tracee);

/*
 * Looks through the process's own writable memory, at most 256 MB of it, for registers that the
 * kernel has saved, and calls back for each whose instruction pointer is wanted and whose stack pointer
 * lies in writable memory. What was left over from a handler that has returned is found as well.
 * With the world stopped; maps: of now. Returns what the callback returns if it is not 0; GT_ENOMEM.
 */
int gt_suspended_each(const struct gt_process *process, const struct gt_maps *maps,
		      bool (*wants)(const void *data, uint64_t rip),
		      int (*each)(void *data, const struct gt_frame_place *place), void *data);

#endif
