/* SPDX-License-Identifier: MIT */
/*
 * Processes that share the memory of another without being its threads: children of vfork and of
 * clone(CLONE_VM). They run the same code, so they have to stand still while it is patched.
 */
#ifndef GT_ATTACH_SHARERS_H
#define GT_ATTACH_SHARERS_H

#include <stdbool.h>
#include <sys/types.h>

struct gt_process;

/* Brings process->sharers up to date; true: there are new ones. A new one comes from a thread or a
 * sharer: once all are stopped and a look has found none, there is none. */
bool gt_sharers_look(struct gt_process *process);

/* Whether process pid is one, as things are now. */
bool gt_sharers_has(const struct gt_process *process, pid_t pid);

/* Whether one of the threads that gt_threads_stop() has stopped is the process's own, not a sharer's. With no sharers
 * nobody is asked. */
bool gt_sharers_is_own(const struct gt_process *process, pid_t tid);

#endif
