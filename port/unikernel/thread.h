/* SPDX-License-Identifier: MIT */
/*
 * Threads: made and ended by thread.c, given their turns by schedule.c, put to wait by wait.c.
 */
#ifndef PORT_UNIKERNEL_THREAD_H
#define PORT_UNIKERNEL_THREAD_H

#include <stdbool.h>
#include <stdint.h>
#include "port/unikernel/cpu.h"
#include "port/unikernel/spinlock.h"
#include "port/unikernel/timer.h"

#define THREAD_STACK_BYTES    65536
#define THREAD_RECORDER_WORDS 32
#define THREAD_NAME_BYTES     16

enum thread_state {
	THREAD_READY = 0,   /* in a run queue */
	THREAD_RUNNING = 1, /* has a processor */
	THREAD_WAITING = 2, /* in a wait queue, or about to leave its processor for one */
	THREAD_OVER = 3,
};

/* Who waits for one thing, first come first served. All zeros is an empty one. */
struct wait_queue {
	struct spinlock lock;
	struct list waiters;
};

struct mutex {
	struct wait_queue queue;
	struct thread *owner;
	const char *name; /* for the watchdog; may be NULL */
};

struct thread {
	uint64_t sp;	  /* while it does not run */
	struct list link; /* in a run queue or a wait queue */
	uint32_t state;	  /* enum thread_state; written under the lock of what it is queued in */
	uint32_t on_cpu;  /* 1: its registers are in a processor, nobody else may run it */
	uint32_t cpu;	  /* that ran it last */
	uint32_t queued;  /* in a wait queue; under that queue's lock */
	struct wait_queue *queue; /* that it waits in, for the timer */
	struct timer timer;
	bool timed_out;
	struct mutex *waits_for; /* for the watchdog; NULL: for no mutex */
	uint32_t number;	 /* 1 is the first one; 0: an idle one */
	char name[THREAD_NAME_BYTES];
	uint64_t stack_low, stack_top;
	void *(*function)(void *);
	void *argument, *result;
	uint32_t over;	   /* under `ended`'s lock: joiners need not wait */
	uint32_t detached; /* under `ended`'s lock */
	bool unattended;   /* over and detached: who runs next on its processor buries it */
	struct wait_queue ended;
	bool has_run;	  /* it has had a processor */
	bool program;	  /* main() or made by it: may not take the last memory */
	struct list all;  /* in the ring of all threads */
	int error_number; /* errno */
	uint64_t recorder[THREAD_RECORDER_WORDS]; /* the tracer's; zero at first */
};

/* ---- thread.c ---- */

/* Makes the calling processor's idle thread of the stack it runs on, before any other thread. */
void thread_init_idle(struct cpu *cpu, uint64_t stack_low, uint64_t stack_top);
/* A thread that calls function(argument); NULL: no memory. stack_bytes 0: the usual size. It ends
 * when the function returns. A detached one takes its memory along, the others wait for
 * thread_join. */
struct thread *thread_create(const char *name, void *(*function)(void *), void *argument,
			     uint64_t stack_bytes, bool detached);
void *thread_join(struct thread *thread);
void thread_detach(struct thread *thread);
/* Gives back the memory of one that is over, once it has left its processor. For one hand only,
 * that of who joined or detached it, or (`unattended`) of who runs behind it. */
void thread_bury(struct thread *thread);
void thread_exit(void *result) __attribute__((noreturn));
/* Calls visit for every thread but idle ones, with the ring locked, until it returns false. */
void threads_visit(bool (*visit)(struct thread *thread, void *argument), void *argument);
/* Is it still a thread? Only from such a visit: it stays one so long. */
bool thread_is_there(const struct thread *thread);

/* ---- schedule.c ---- */

/* Lets another thread of this processor go on, if there is one. Called by a thread whose state says
 * why, or at the end of an interrupt. */
void schedule(void);
void thread_yield(void);
/* The thread's wait is over: it goes to a run queue. Once for each wait, from anywhere. */
void thread_make_ready(struct thread *thread);
/* What an idle thread does, for ever. Interrupts off. */
void schedule_idle(void) __attribute__((noreturn));
void schedule_init(void);
/* What a new thread does first, on its own stack; from switch.S. */
void schedule_arrive(struct thread *previous);

/* ---- wait.c ---- */

/* Puts this thread to sleep in the queue, whose lock it holds (flags of that lock; it is given
 * back). False: the deadline (clock_ns, or TIMER_NEVER) came first. */
bool wait_locked(struct wait_queue *queue, uint64_t flags, uint64_t deadline);
static inline __attribute__((always_inline)) bool
wait_queue_is_empty(const struct wait_queue *queue)
{
	return !queue->waiters.next || list_is_empty(&queue->waiters);
}
/* Wakes the first, or all, of those who wait. The caller holds the lock. */
bool wake_one_locked(struct wait_queue *queue);
void wake_all_locked(struct wait_queue *queue);
void thread_sleep_until(uint64_t deadline);

/* Taking a free mutex and giving one back that nobody waits for are no calls. */
static inline __attribute__((always_inline)) bool mutex_try_lock(struct mutex *mutex)
{
	uint64_t flags = spin_lock(&mutex->queue.lock);
	bool taken = !mutex->owner;
	if (taken)
		mutex->owner = thread_this();
	spin_unlock(&mutex->queue.lock, flags);
	return taken;
}
void mutex_wait(struct mutex *mutex);
static inline __attribute__((always_inline)) void mutex_lock(struct mutex *mutex)
{
	if (!mutex_try_lock(mutex))
		mutex_wait(mutex);
}
/* False: it is not the caller's. */
static inline __attribute__((always_inline)) bool mutex_unlock(struct mutex *mutex)
{
	uint64_t flags = spin_lock(&mutex->queue.lock);
	bool mine = mutex->owner == thread_this() || crash_is_alone;
	if (mine) {
		mutex->owner = NULL;
		if (!wait_queue_is_empty(&mutex->queue))
			wake_one_locked(&mutex->queue);
	}
	spin_unlock(&mutex->queue.lock, flags);
	return mine;
}
/* Gives the mutex back, waits, and takes it again. False: the deadline came first. */
bool condition_wait(struct wait_queue *condition, struct mutex *mutex, uint64_t deadline);
void condition_signal(struct wait_queue *condition);
void condition_broadcast(struct wait_queue *condition);

/* Between +1 and -1 this thread keeps its processor (they nest). */
static inline __attribute__((always_inline)) void preempt_keep(int change)
{
	if (change < 0)
		GT_LATENCY_PREEMPT_ON(cpu_this()->preempt_off == 1);
	__asm__ volatile("addl %0, %%gs:%c1" ::"ri"(change), "i"(CPU_PREEMPT_OFF) : "memory");
	if (change > 0)
		GT_LATENCY_PREEMPT_OFF(cpu_this()->preempt_off == 1);
}

#endif
