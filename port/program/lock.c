/* SPDX-License-Identifier: MIT */
/*
 * The agent's locks: a word that has its owner's thread number, 0 while free. One instruction takes
 * or releases it; a thread that finds it taken sleeps in the kernel, which gives the owner the
 * waiter's priority (FUTEX_LOCK_PI): a real-time thread that spins would keep an ordinary owner off
 * the CPU for ever. Signals are masked while a lock is held, so no handler finds its own thread's
 * lock taken. Every wait is bounded, whatever the word has: a vfork child locks in its parent's
 * name (it uses the parent's block), and the kernel rejects its unlock. Then the word is simply
 * cleared, and sleepers look again after a moment. Where a filter may forbid such futexes
 * (GRAFTRACE_AGENT_PLAIN_LOCKS), waiters sleep without lending their priority.
 */
#include "port/program/agent.h"
#include "port/program/syscall.h"

#define FUTEX_WAIT	0
#define FUTEX_WAKE	1
#define FUTEX_LOCK_PI	(6 | 128 /* FUTEX_PRIVATE_FLAG */)
#define FUTEX_UNLOCK_PI (7 | 128)
#define WAITERS		0x80000000u /* FUTEX_WAITERS */

/* The first wait, and the longest: each wait is twice the one before. A thousand threads that
 * look again every 20 ms would leave the owner no CPU time to finish. */
#define WAIT_MS	     20
#define WAIT_MOST_MS 1280

struct timespec {
	long seconds, nanoseconds;
};

/* A block that says it is left out has no number. Where %gs is of no help the kernel is asked for
 * the number at once: its owner would be searched for with the same question. */
static uint32_t own_number(void)
{
	const struct gt_thread *thread = gt_threads_at_hand();
	return thread != NULL && thread->tid != 0 ? thread->tid
						  : (uint32_t)gt_syscall3(SYS_GETTID, 0, 0, 0);
}

static bool lends_priority(void)
{
	return !(__atomic_load_n(&gt_agent_state.flags, __ATOMIC_RELAXED) &
		 GRAFTRACE_AGENT_PLAIN_LOCKS);
}

/* 0: the caller has the lock. */
static long lock_lending(uint32_t *word, uint32_t wait_ms)
{
	struct timespec until;
	gt_syscall3(SYS_CLOCK_GETTIME, 0 /* CLOCK_REALTIME, as FUTEX_LOCK_PI wants it */,
		    (long)&until, 0);
	until.seconds += wait_ms / 1000;
	until.nanoseconds += wait_ms % 1000 * 1000000;
	if (until.nanoseconds >= 1000000000) {
		until.nanoseconds -= 1000000000;
		until.seconds++;
	}
	return gt_syscall4(SYS_FUTEX, (long)word, FUTEX_LOCK_PI, 0, (long)&until);
}

static void wait_plainly(uint32_t *word, uint32_t wait_ms)
{
	const struct timespec timeout = { wait_ms / 1000, wait_ms % 1000 * 1000000 };
	uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (seen == 0)
		return;
	if (!(seen & WAITERS) && !__atomic_compare_exchange_n(word, &seen, seen | WAITERS, false,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	gt_syscall4(SYS_FUTEX, (long)word, FUTEX_WAIT, (long)(seen | WAITERS), (long)&timeout);
}

static uint32_t next_wait(uint32_t wait_ms)
{
	return wait_ms < WAIT_MOST_MS ? 2 * wait_ms : wait_ms;
}

void gt_lock(uint32_t *word)
{
	uint32_t number = own_number(), waited = 0;
	for (uint32_t wait_ms = WAIT_MS;; wait_ms = next_wait(wait_ms)) {
		uint32_t unused = 0;
		/* a thread that slept does not know whether others sleep */
		if (__atomic_compare_exchange_n(word, &unused, number | waited, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return;
		if (lends_priority()) {
			long result = lock_lending(word, wait_ms);
			if (result == 0)
				return;
			/* EAGAIN, EINTR, ETIMEDOUT; else the owner is not what the kernel wants */
			if (result == -11 || result == -4 || result == -110)
				continue;
		}
		wait_plainly(word, wait_ms);
		waited = WAITERS;
	}
}

void gt_unlock(uint32_t *word)
{
	uint32_t number = own_number();
	if (__atomic_compare_exchange_n(word, &number, 0, false, __ATOMIC_RELEASE,
					__ATOMIC_RELAXED))
		return;
	if (lends_priority() && gt_syscall3(SYS_FUTEX, (long)word, FUTEX_UNLOCK_PI, 0) == 0)
		return;
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	gt_syscall3(SYS_FUTEX, (long)word, FUTEX_WAKE, 1);
}

void gt_lock_reset(uint32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
}
