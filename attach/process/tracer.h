/* SPDX-License-Identifier: MIT */
/*
 * Threads of ours that trace, and end.
 *
 * A traced thread that sleeps in the kernel where no stop reaches it (a parent in vfork, a call to
 * a file server) cannot be let go by PTRACE_DETACH, which wants it stopped; and once it has come
 * back and stopped, only the thread that traces it can let it go. If that has given up and does
 * something else by then, the traced thread stands still for ever. The end of the thread that
 * traces lets go of all at once, wherever they are (exit_ptrace() in the kernel; a stop that is
 * asked for and not reached is forgotten). So whatever stops threads of a process that runs does it
 * here.
 */
#ifndef GT_ATTACH_TRACER_H
#define GT_ATTACH_TRACER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Calls work(data) in a new thread, waits for it, and returns what it returned. Within such a call:
 * directly, as part of it. Any thread; locks that the caller holds count as the work's. Where no
 * thread can be made, the caller calls it: then what was said above can happen until it ends.
 */
int gt_tracer_run(int (*work)(void *data), void *data);

/* The same beside the caller, within such a call or not: the new thread is another tracer. */
struct gt_tracer {
	int (*work)(void *data);
	void *data;
	int result;
	pid_t tid; /* 0: it has not begun */
	pthread_t thread;
	bool is_done; /* written by the thread itself */
};

/* False: no thread can be made, and nothing was done. The structure stays where it is until
 * gt_tracer_join(). */
bool gt_tracer_start(struct gt_tracer *tracer, int (*work)(void *data), void *data);
/* gt_tracer_join() would not wait for the work. */
bool gt_tracer_is_done(const struct gt_tracer *tracer);
/* Waits for its end, when all that it traced has been let go. Returns what the work returned. */
int gt_tracer_join(struct gt_tracer *tracer);

#endif
