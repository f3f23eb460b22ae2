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

/* What could not be taken out. Nothing of it is used by the program any more. */
enum gt_detach_left {
	GT_DETACH_ALL_GONE = 0,
	GT_DETACH_LEFT_THREAD = 1,     /* a thread stands in the agent's code, and stays there */
	GT_DETACH_LEFT_PATCH = 2,      /* someone else has written over a patch of ours */
	GT_DETACH_LEFT_BREAKPOINT = 3, /* … a breakpoint: a debugger, or a uprobe of the kernel */
};

/*
 * Takes everything out, in limit_ms, on a machine that is so busy that the process has hardly run
 * meanwhile in four times as much. tracee: what this host knows of the process, or NULL.
 * *left: what stays, if it could not be all; the code is the program's own in any case, but for
 * places that someone else has written to and, while a thread stands inside, the hooks by which
 * unwinders find what it stands in. GT_EGONE: the process has ended; GT_EBUSY: a thread
 * cannot be stopped; GT_EIO, GT_ENOMEM.
 */
int gt_detach_process(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      enum gt_detach_left *left, struct gt_message *message);

/* The same; threads may wait in the agent, in a hook. Calls back when the code is the program's own
 * and no call that is open returns to us, and after each round from then on: such threads can be let
 * go on to what they wait to do. */
int gt_detach_waiting(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      void (*led_nowhere)(void *data), void *data, enum gt_detach_left *left,
		      struct gt_message *message);

/* The address of an agent's image in the process; 0 = it has none. */
uint64_t gt_detach_find(const struct gt_process *process, const struct gt_maps *maps);

/* The host that serves the agent in this process, if that host lives; 0 = none. */
pid_t gt_detach_host(const struct gt_process *process, uint64_t image);

/* Where the arena of the agent lies in this process, as it says; 0 = nowhere. */
uint64_t gt_detach_arena(const struct gt_process *process, uint64_t image);

#endif
