/* SPDX-License-Identifier: MIT */
/* See own_thread.h. */
#include "attach/process/own_thread.h"

#include <signal.h>

int gt_own_thread_start(pthread_t *thread, void *(*work)(void *data), void *data)
{
	sigset_t all, old;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int error = pthread_create(thread, NULL, work, data);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return error;
}
