/* SPDX-License-Identifier: MIT */
/*
 * Waiting: queues of threads, and mutexes and condition variables made of them. A thread is taken
 * off a queue by the waker or by the timer, whichever clears `queued` under the queue's lock.
 */
#include "port/unikernel/thread.h"

#include "port/unikernel/clock.h"
#include "port/unikernel/events.h"
#include "port/unikernel/net.h"

static void expired(struct timer *timer)
{
	struct thread *thread = list_entry(timer, struct thread, timer);
	struct wait_queue *queue = thread->queue;
	uint64_t flags = spin_lock(&queue->lock);
	bool mine = thread->queued;
	if (mine) {
		list_remove(&thread->link);
		thread->queued = 0;
		thread->timed_out = true;
	}
	spin_unlock(&queue->lock, flags);
	if (mine)
		thread_make_ready(thread);
}

bool wait_locked(struct wait_queue *queue, uint64_t flags, uint64_t deadline)
{
	struct thread *thread = thread_this();
	if (crash_is_alone) { /* only the network can end the wait */
		spin_unlock(&queue->lock, flags);
		net_poll();
		return clock_ns() < deadline;
	}
	thread->state = THREAD_WAITING;
	thread->queue = queue;
	thread->queued = 1;
	thread->timed_out = false;
	if (!queue->waiters.next)
		list_init(&queue->waiters);
	list_insert_before(&queue->waiters, &thread->link);
	/* Releases the lock; interrupts stay off until another thread runs. */
	spin_unlock(&queue->lock, 0);
	if (deadline != TIMER_NEVER) {
		thread->timer.deadline = deadline;
		thread->timer.expired = expired;
		timer_start(&thread->timer);
	}
	schedule();
	if (deadline != TIMER_NEVER)
		timer_stop(&thread->timer);
	interrupts_restore(flags);
	return !thread->timed_out;
}

void spin_wait(struct spinlock *lock, uint32_t ticket)
{
	event_contention_begin(lock, CONTENTION_SPIN);
	/* acquire: pairs with the release in spin_unlock */
	while (__atomic_load_n(&lock->serving, __ATOMIC_ACQUIRE) != ticket && !crash_is_alone)
		cpu_pause();
	event_contention_end(lock, 0);
}

bool wake_one_locked(struct wait_queue *queue)
{
	if (wait_queue_is_empty(queue))
		return false;
	struct thread *thread = list_entry(queue->waiters.next, struct thread, link);
	list_remove(&thread->link);
	thread->queued = 0;
	thread_make_ready(thread);
	return true;
}

void wake_all_locked(struct wait_queue *queue)
{
	while (wake_one_locked(queue))
		;
}

void thread_sleep_until(uint64_t deadline)
{
	struct wait_queue queue = { 0 };
	while (wait_locked(&queue, spin_lock(&queue.lock), deadline) && crash_is_alone)
		;
}

void mutex_wait(struct mutex *mutex)
{
	struct thread *thread = thread_this();
	event_contention_begin(mutex, CONTENTION_MUTEX);
	uint64_t flags = spin_lock(&mutex->queue.lock);
	while (mutex->owner && !crash_is_alone) {
		thread->waits_for = mutex;
		wait_locked(&mutex->queue, flags, TIMER_NEVER);
		flags = spin_lock(&mutex->queue.lock);
		thread->waits_for = NULL;
	}
	mutex->owner = thread;
	spin_unlock(&mutex->queue.lock, flags);
	event_contention_end(mutex, 0);
}

bool condition_wait(struct wait_queue *condition, struct mutex *mutex, uint64_t deadline)
{
	/* Locked before the mutex is released: a later signal finds this thread waiting. */
	uint64_t flags = spin_lock(&condition->lock);
	mutex_unlock(mutex);
	bool signalled = wait_locked(condition, flags, deadline);
	mutex_lock(mutex);
	return signalled;
}

void condition_signal(struct wait_queue *condition)
{
	uint64_t flags = spin_lock(&condition->lock);
	wake_one_locked(condition);
	spin_unlock(&condition->lock, flags);
}

void condition_broadcast(struct wait_queue *condition)
{
	uint64_t flags = spin_lock(&condition->lock);
	wake_all_locked(condition);
	spin_unlock(&condition->lock, flags);
}
