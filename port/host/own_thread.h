/* SPDX-License-Identifier: MIT */
/* Threads of graftrace itself, in its own process. Any thread may start one. */
#ifndef GT_PORT_HOST_OWN_THREAD_H
#define GT_PORT_HOST_OWN_THREAD_H

#include <pthread.h>
#include <signal.h>

/*
 * pthread_create(3) with all signals held: they are for the threads of the caller, Ctrl-C among
 * them. Returns 0 or an errno, as pthread_create does.
 */
static inline int gt_own_thread_start(pthread_t *thread, void *(*work)(void *data), void *data)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int error = pthread_create(thread, NULL, work, data);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}

#endif
