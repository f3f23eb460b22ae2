/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes: threads, mutexes (not recursive) and condition variables. */
#ifndef PORT_UNIKERNEL_INCLUDE_PTHREAD_H
#define PORT_UNIKERNEL_INCLUDE_PTHREAD_H

#include <stddef.h>
#include <stdint.h>
#include "port/unikernel/thread.h"
#include "port/unikernel/include/time.h"

typedef struct thread *pthread_t;
typedef struct mutex pthread_mutex_t;
typedef struct wait_queue pthread_cond_t;
typedef struct {
	size_t stack_bytes;
	int detached;
} pthread_attr_t;
typedef int pthread_mutexattr_t;
typedef int pthread_condattr_t;

#define PTHREAD_MUTEX_INITIALIZER \
	{                         \
		0                 \
	}
#define PTHREAD_COND_INITIALIZER \
	{                        \
		0                \
	}
#define PTHREAD_CREATE_JOINABLE 0
#define PTHREAD_CREATE_DETACHED 1

int pthread_attr_init(pthread_attr_t *attributes);
int pthread_attr_destroy(pthread_attr_t *attributes);
/* At most 1 MiB. */
int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t bytes);
int pthread_attr_setdetachstate(pthread_attr_t *attributes, int state);
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
		   void *argument);
int pthread_join(pthread_t thread, void **result);
int pthread_detach(pthread_t thread);
pthread_t pthread_self(void);
void pthread_exit(void *result) __attribute__((noreturn));
/* As Linux has it: 15 characters that crash reports, the watchdog and the trace show. */
int pthread_setname_np(pthread_t thread, const char *name);
int sched_yield(void);

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int pthread_mutex_destroy(pthread_mutex_t *mutex);
int pthread_mutex_lock(pthread_mutex_t *mutex);
int pthread_mutex_trylock(pthread_mutex_t *mutex);
int pthread_mutex_unlock(pthread_mutex_t *mutex);

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int pthread_cond_destroy(pthread_cond_t *condition);
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
			   const struct timespec *until);
int pthread_cond_signal(pthread_cond_t *condition);
int pthread_cond_broadcast(pthread_cond_t *condition);

#endif
