/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints in a process (struct graftrace_traps): the action of SIGTRAP becomes the agent's, and
 * is given back. What has to hold before the first breakpoint stands is looked at here; from then
 * on the agent's hooks see to it (port/program/traps.c).
 */
#ifndef GT_ATTACH_TRAPS_H
#define GT_ATTACH_TRAPS_H

#include "attach/process/threads.h"
#include "attach/agent/tracee.h"

/* Makes SIGTRAP the agent's and looks at all threads, with the world stopped meanwhile, once the
 * hooks are there that this takes. Sets tracee->traps, or tracee->no_traps to the reason why there
 * can be no breakpoints (now, or ever): all is as before then. */
void gt_traps_begin(struct gt_tracee *tracee);

/* Tells the agent of a breakpoint, before it is written. GT_ENOSPC: there are too many. */
int gt_traps_note(struct gt_tracee *tracee, uint64_t address, uint64_t stub);

/* The thread, which is stopped, has run into a breakpoint, and the signal has yet to reach it. Without the
 * agent's handler it would be killed. */
bool gt_traps_is_on_its_way(const struct gt_process *process,
			    const struct graftrace_agent_state *state, pid_t tid);

/* While detaching, with the world stopped, and code and hooks as they were: first leave_threads blocks SIGTRAP in the
 * threads that believe that they have it blocked; then leave, with one of the threads, gives SIGTRAP the program's own
 * action. Errors as of gt_remote_call(). */
void gt_traps_leave_threads(const struct gt_process *process,
			    const struct graftrace_agent_state *state,
			    const struct gt_stopped_threads *threads);
int gt_traps_leave(struct gt_remote *remote, const struct graftrace_agent_image *header,
		   uint64_t image, const struct graftrace_agent_state *state);

#endif
