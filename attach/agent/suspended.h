/* SPDX-License-Identifier: MIT */
/*
 * Contexts that nobody runs now: a signal interrupted a coroutine, its handler switched to another
 * one (swapcontext, preemptive schedulers), and where it will go on stands in memory that is no
 * stack of a thread. Where that is within bytes that become a jump, it has to be moved as threads are.
 */
#ifndef GT_ATTACH_SUSPENDED_H
#define GT_ATTACH_SUSPENDED_H

#include "attach/agent/tracee.h"
#include "attach/process/process.h"

/* Whether the process may have such: one of its objects switches contexts by the C library. Looked
 * up once for each file. Before the process is stopped. */
bool gt_suspended_possible(const struct gt_tracee *tracee);

/*
 * Looks through the process's own writable memory, at most 256 MB of it, for registers that the
 * kernel has saved. For each whose instruction pointer is wanted by new_place (not 0), that is moved
 * there. What was left over from a handler that has returned is moved as well, and nobody reads it.
 * With the world stopped; maps: of now. GT_ENOMEM.
 */
int gt_suspended_move(const struct gt_process *process, const struct gt_maps *maps,
		      uint64_t (*new_place)(const void *data, uint64_t rip), const void *data);

#endif
