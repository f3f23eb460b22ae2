/* SPDX-License-Identifier: MIT */
/*
 * What a process does about its signals: asked, and changed, by system calls in a thread's name.
 */
#ifndef GT_ATTACH_HANDLERS_H
#define GT_ATTACH_HANDLERS_H

#include "attach/agent/tracee.h"

/* The kernel's struct sigaction. */
struct gt_signal_action {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/* rt_sigaction(2) in the stopped thread's name; set, get: may be NULL. scratch: 64 bytes of its
 * memory. GT_ENOTSUP: the kernel says no; else errors of gt_remote_call(). */
int gt_signal_action(struct gt_remote *remote, uint64_t scratch, int signal,
		     const struct gt_signal_action *set, struct gt_signal_action *get);

/* The bits (n - 1) of the signals that the process has handlers for. 0 also if it has ended. */
uint64_t gt_signals_caught(pid_t pid);

/* The handlers of the signals whose bits are set, in handlers[n - 1]; 0: it has none. The process
 * has the agent; one of its threads is stopped meanwhile. Errors of gt_thread_stop_any() and
 * gt_signal_action(). */
int gt_signals_handlers(struct gt_tracee *tracee, uint64_t signals, uint64_t handlers[64],
			struct gt_message *message);

#endif
