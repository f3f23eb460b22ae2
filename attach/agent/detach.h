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
 * Takes the agent out of a process. From any thread: the work is done by a thread of gt_tracer_run(), and all
 * threads of the process run when this returns. It takes no lock. With a tracee the caller holds the lock of
 * the tracee's session, unless no other thread knows that yet.
 *
 * tracee: what this host knows of the process; NULL: nothing, so the agent is looked for in the process.
 * limit_ms: threads that stand inside the agent are waited for so long, or four times as long while fewer
 * than 50 rounds were done (on a busy machine).
 * Returns 0 also if something stays, which *left names, and with GT_DETACH_ALL_GONE also if there is no
 * agent. Whatever stays, the code is the program's own, except for places that someone else has written over
 * and, while a thread stands inside, the hooks by which unwinders find unwind data.
 * GT_EGONE: the process has ended; GT_EBUSY: a thread cannot be stopped; GT_EFORMAT: the agent's state was
 * overwritten; GT_EAGAIN: a thread has brought the process into a sandbox at that moment; GT_ENOTSUP: too many
 * processes share its memory, or a thread runs 32-bit code; GT_EPERM, GT_EIO, GT_ENOMEM. After an error *left
 * means nothing, and a part may be out; the call can be repeated.
 */
int gt_detach_process(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      enum gt_detach_left *left, struct gt_message *message);

/* The same for a process of which threads may wait in a hook of the agent for an answer of the host. Calls
 * led_nowhere(data) after each round without an error, in the thread that does the work, while the caller
 * waits with its locks: from then on no new call comes into the agent, and open calls return past it (unless
 * V8 walks a stack at that moment), so the answers can be sent. */
int gt_detach_waiting(struct gt_process *process, struct gt_tracee *tracee, int limit_ms,
		      void (*led_nowhere)(void *data), void *data, enum gt_detach_left *left,
		      struct gt_message *message);

/* The three below only read the process, which may run. They take no lock; from any thread. */

/* The address of an agent's image in the process, by its maps and what stands there; 0: it has none, or it cannot
 * be read. */
uint64_t gt_detach_find(const struct gt_process *process, const struct gt_maps *maps);

/* The number of the process that serves the agent whose image is at `image`, if it lives; 0: there is none, the
 * agent cannot be read, or there is no memory. */
pid_t gt_detach_host(const struct gt_process *process, uint64_t image);

/* The address in the process at which its arena is mapped, as the agent's state says. The process may have
 * written anything there. 0: there is none, the agent cannot be read, or there is no memory. */
uint64_t gt_detach_arena(const struct gt_process *process, uint64_t image);

#endif
