/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints in the traced program (struct graftrace_traps): the handler of SIGTRAP, and what
 * keeps SIGTRAP unblocked and ours for the kernel while the program sees what it has set. All do
 * nothing while there are no breakpoints. Those that return int: as gt_agent_hook().
 */
#ifndef GT_PORT_PROGRAM_TRAPS_H
#define GT_PORT_PROGRAM_TRAPS_H

#include "port/program/agent.h"

/* In a fork's child: a thread that is not here may have been changing the program's action. */
void gt_traps_forked(void);
int gt_traps_sigaction(struct gt_hook_frame *frame, uint64_t body);
int gt_traps_sigmask(struct gt_hook_frame *frame);
void gt_traps_wait_mask(struct gt_hook_frame *frame, uint64_t which);
int gt_traps_pending(struct gt_hook_frame *frame);
int gt_traps_wait(struct gt_hook_frame *frame, bool with_info);
int gt_traps_syscall(struct gt_hook_frame *frame);
/* setcontext, swapcontext: the mask in this ucontext is about to be set. */
void gt_traps_context(uint64_t ucontext);
/* An exec: mask and action go to the new program as this one believes them to be. */
int gt_traps_exec(struct gt_hook_frame *frame, uint64_t body);

#endif
