/* SPDX-License-Identifier: MIT */
/* <pthread.h>, <time.h> and the sleeping part of <unistd.h>, made of the kernel's threads. */
#include "port/unikernel/include/pthread.h"

#include "port/unikernel/clock.h"
#include "port/unikernel/posix_calls.h"
#include "port/unikernel/include/errno.h"
#include "port/unikernel/include/string.h"
#include "port/unikernel/include/unistd.h"

#define SECOND_NS 1000000000ull

int *errno_location(void)
{
	return &thread_this()->error_number;
}

int pthread_attr_init(pthread_attr_t *attributes)
{
	*attributes = (pthread_attr_t){ 0 };
	return 0;
}

int pthread_attr_destroy(pthread_attr_t *attributes)
{
	(void)attributes;
	return 0;
}

int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t bytes)
{
	if (bytes > 0x100000)
		return EINVAL;
	attributes->stack_bytes = bytes;
	return 0;
}

int pthread_attr_setdetachstate(pthread_attr_t *attributes, int state)
{
	attributes->detached = state;
	return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *),
		   void *argument)
{
	pthread_attr_t usual = { 0 };
	if (!attributes)
		attributes = &usual;
	/* Linux's flags of a thread; its stack and the place of its number are the kernel's own */
	CALL_ENTER2(clone, 56, unsigned long, clone_flags, 0x3d0f00, unsigned long, newsp, 0);
	/* A new thread has its creator's name until it gets its own. */
	struct thread *new = thread_create(thread_this()->name, function, argument,
					   attributes->stack_bytes, attributes->detached);
	CALL_EXIT(clone, 56, new ? (long)new->number : -EAGAIN);
	if (!new)
		return EAGAIN;
	*thread = new;
	return 0;
}

int pthread_join(pthread_t thread, void **result)
{
	if (thread == thread_this())
		return EDEADLK;
	CALL_ENTER3(futex, 202, unsigned long, uaddr, &thread->over, int, op, 0, unsigned int, val,
		    0);
	void *value = thread_join(thread);
	CALL_EXIT(futex, 202, 0);
	if (result)
		*result = value;
	return 0;
}

int pthread_detach(pthread_t thread)
{
	thread_detach(thread);
	return 0;
}

pthread_t pthread_self(void)
{
	return thread_this();
}

void pthread_exit(void *result)
{
	thread_exit(result);
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	if (strlen(name) >= THREAD_NAME_BYTES)
		return ERANGE;
	strncpy(thread->name, name, THREAD_NAME_BYTES);
	return 0;
}

int sched_yield(void)
{
	CALL_ENTER0(sched_yield, 24);
	thread_yield();
	CALL_EXIT(sched_yield, 24, 0);
	return 0;
}

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	(void)attributes;
	*mutex = (pthread_mutex_t){ 0 };
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	return mutex->owner ? EBUSY : 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	mutex_lock(mutex);
	return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return mutex_try_lock(mutex) ? 0 : EBUSY;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	return mutex_unlock(mutex) ? 0 : EPERM;
}

int pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes)
{
	(void)attributes;
	*condition = (pthread_cond_t){ 0 };
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *condition)
{
	(void)condition;
	return 0;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	CALL_ENTER3(futex, 202, unsigned long, uaddr, condition, int, op, 0, unsigned int, val, 0);
	condition_wait(condition, mutex, TIMER_NEVER);
	CALL_EXIT(futex, 202, 0);
	return 0;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
			   const struct timespec *until)
{
	uint64_t time = (uint64_t)until->tv_sec * SECOND_NS + (uint64_t)until->tv_nsec;
	uint64_t boot = clock_boot_time();
	CALL_ENTER4(futex, 202, unsigned long, uaddr, condition, int, op, 0, unsigned int, val, 0,
		    unsigned long, utime, until);
	bool signalled = condition_wait(condition, mutex, time > boot ? time - boot : 0);
	CALL_EXIT(futex, 202, signalled ? 0 : -ETIMEDOUT);
	return signalled ? 0 : ETIMEDOUT;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
	condition_signal(condition);
	return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
	condition_broadcast(condition);
	return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	CALL_ENTER2(clock_gettime, 228, int, which_clock, clock, unsigned long, tp, now);
	uint64_t time = clock_ns() + (clock == CLOCK_REALTIME ? clock_boot_time() : 0);
	now->tv_sec = (time_t)(time / SECOND_NS);
	now->tv_nsec = (long)(time % SECOND_NS);
	CALL_EXIT(clock_gettime, 228, 0);
	return 0;
}

clock_t clock(void)
{
	return (clock_t)clock_busy_ns();
}

time_t time(time_t *now)
{
	struct timespec value;
	clock_gettime(CLOCK_REALTIME, &value);
	if (now)
		*now = value.tv_sec;
	return value.tv_sec;
}

static void sleep_for(const void *wanted, uint64_t nanoseconds)
{
	CALL_ENTER2(nanosleep, 35, unsigned long, rqtp, wanted, unsigned long, rmtp, 0);
	thread_sleep_until(clock_ns() + nanoseconds);
	CALL_EXIT(nanosleep, 35, 0);
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
	sleep_for(wanted, (uint64_t)wanted->tv_sec * SECOND_NS + (uint64_t)wanted->tv_nsec);
	if (left)
		*left = (struct timespec){ 0 };
	return 0;
}

unsigned sleep(unsigned seconds)
{
	sleep_for(&seconds, seconds * SECOND_NS);
	return 0;
}

int usleep(unsigned microseconds)
{
	sleep_for(&microseconds, microseconds * 1000ull);
	return 0;
}

long sysconf(int name)
{
	return name == _SC_NPROCESSORS_ONLN ? (long)cpu_count : -1;
}
