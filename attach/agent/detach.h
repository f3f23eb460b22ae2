/* SPDX-License-Identifier: MIT */
/*
 * Taking the agent out of a process that runs: code bytes, return slots, mappings and %gs become
 * what they were. It works from what stands in the process's own memory (the agent's state, the
 * journals of its regions, the mirror), so a host can also clean up after one that was killed.
 * doc/design/attach.md argues the protocol.
 */
#ifndef GT_ATTACH_DETACH_H
#define GT_ATTACH_DETACH_H

#include <stdbool.h>
#include <stdint.h>
#include "attach/process/process.h"

struct gt_maps;
struct gt_tracee;

/* What could not be taken out. No call comes into it any more, but for lookups of unwinders (below). */
enum gt_detach_left {
	GT_DETACH_ALL_GONE = 0,
	/* A thread stands in the agent's code, or holds an address of it, and stays so. */
	GT_DETACH_LEFT_THREAD = 1,
	GT_DETACH_LEFT_PATCH = 2,      /* someone else has written over a patch of ours */
	GT_DETACH_LEFT_BREAKPOINT = 3, /* … a breakpoint: a debugger, or a uprobe of the kernel */
};

/*
 * Calls gt_tracer_run() itself, and lets all threads go at its end. A tracee is used under its session's lock.
 *
 * Takes everything out, in limit_ms, on a machine that is so busy that the process has hardly run
 * meanwhile in four times as much. tracee: what this host knows of the process, or NULL.
 * *left: what stays, if it could not be all; the code is the program's own in any case, but for
 * places that someone else has written to and, while a thread stands inside, the hooks by which
 * unwinders find what it stands in. 0 with GT_DETACH_ALL_GONE also where there is no agent.
 * GT_EGONE: the process has ended; GT_EBUSY: a thread cannot be stopped; GT_EFORMAT: the agent's
 * state was overwritten; GT_EPERM, GT_EIO, GT_ENOMEM. *left says nothing then, and a part may be out.
 */
int gt_detach_process(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      enum gt_detach_left *left, struct gt_message *message);

/* The same; threads may wait in the agent, in a hook. Calls back after each round, in another thread
 * that has the caller's locks: the code is the program's own, and, unless a walk over a stack by V8 has to
 * be waited for, no call that is open returns to us. Such threads can be let go on to what they wait to
 * do. */
int gt_detach_waiting(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      void (*led_nowhere)(void *data), void *data, enum gt_detach_left *left,
		      struct gt_message *message);

/* The address of an agent's image in the process; 0 = it has none. */
uint64_t gt_detach_find(const struct gt_process *process, const struct gt_maps *maps);

/* The host that serves the agent in this process, if that host lives; 0 = none, or it cannot be read. */
pid_t gt_detach_host(const struct gt_process *process, uint64_t image);

/* Where the arena of the agent lies in this process, as the process says: hostile. 0 = nowhere, or it
 * cannot be read. */
uint64_t gt_detach_arena(const struct gt_process *process, uint64_t image);

#endif
