/* SPDX-License-Identifier: MIT */
/* Threads of graftrace itself, in its own process. Any thread may start one. */
#ifndef GT_ATTACH_OWN_THREAD_H
#define GT_ATTACH_OWN_THREAD_H

#include <pthread.h>

/*
 * pthread_create(3) with all signals held: they are for the threads of the caller, Ctrl-C among
 * them. Returns 0 or an errno, as pthread_create does.
 */
int gt_own_thread_start(pthread_t *thread, void *(*work)(void *data), void *data);

#endif
