/* SPDX-License-Identifier: MIT */
/*
 * The agent's locks: a word that has its owner's thread number, 0 while free. One instruction takes
 * or releases it. Signals are masked while a lock is held, so no handler finds its own thread's lock taken.
 *
 * A thread that finds it taken sleeps in the kernel. A real-time thread gives the owner its priority meanwhile
 * (FUTEX_LOCK_PI): one that spins would keep an ordinary owner off the CPU for ever. The kernel then hands the lock from
 * one such thread to the next. Ordinary threads have nothing to lend, and sleep on another word: handed to each of
 * thousands, the lock would wait for a CPU each time while those that run could take it.
 *
 * Every wait is bounded, whatever the word has: a vfork child locks in its parent's name (it uses the parent's block), and
 * the kernel rejects its unlock. Then the word is simply cleared, and sleepers look again after a moment. Where a filter
 * may forbid what that takes (GRAFTRACE_AGENT_PLAIN_LOCKS) nobody lends a priority.
 */
#include "port/program/agent.h"
#include "port/program/syscall.h"

#define FUTEX_WAIT	(0 | 128 /* FUTEX_PRIVATE_FLAG */)
#define FUTEX_WAKE	(1 | 128)
#define FUTEX_LOCK_PI	(6 | 128)
#define FUTEX_UNLOCK_PI (7 | 128)

/* The kernel's bit in the word: it has given the lock from a thread that has ended to the next. */
#define OWNER_DIED 0x40000000u

/* Of sched_getscheduler(2). */
#define SCHED_FIFO	    1
#define SCHED_RR	    2
#define SCHED_DEADLINE	    6
#define SCHED_RESET_ON_FORK 0x40000000

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

static bool is_plain(void)
{
	return __atomic_load_n(&gt_agent_state.flags, __ATOMIC_RELAXED) &
	       GRAFTRACE_AGENT_PLAIN_LOCKS;
}

/* Does the running thread lend its priority to those that it waits for? */
static bool lends_priority(void)
{
	long policy;

	if (is_plain())
		return false;
	policy = gt_syscall3(SYS_SCHED_GETSCHEDULER, 0, 0, 0) & ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
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

/* Who releases the lock looks at `sleepers` after it, so one of the two sees what the other has written. */
static void wait_plainly(struct gt_lock *lock, uint32_t wait_ms)
{
	const struct timespec timeout = { wait_ms / 1000, wait_ms % 1000 * 1000000 };
	const uint32_t seen = __atomic_load_n(&lock->wakes, __ATOMIC_SEQ_CST);

	__atomic_store_n(&lock->sleepers, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lock->word, __ATOMIC_SEQ_CST) != 0)
		gt_syscall4(SYS_FUTEX, (long)&lock->wakes, FUTEX_WAIT, (long)seen, (long)&timeout);
}

/*
 * Whether the lock is the caller's, which the kernel has just given it. No thread ends with a lock: if that is what the
 * kernel says, the lock was released without it, and it has written the caller's number over that of the thread that
 * may have taken the lock since. Then that one's release clears the word.
 */
static bool is_own(struct gt_lock *lock)
{
	if (!(__atomic_load_n(&lock->word, __ATOMIC_SEQ_CST) & OWNER_DIED))
		return true;
	wait_plainly(lock, WAIT_MOST_MS);
	return __atomic_load_n(&lock->word, __ATOMIC_SEQ_CST) & OWNER_DIED;
}

static uint32_t next_wait(uint32_t wait_ms)
{
	return wait_ms < WAIT_MOST_MS ? 2 * wait_ms : wait_ms;
}

static bool try_lock(struct gt_lock *lock, uint32_t number)
{
	uint32_t unused = 0;

	return __atomic_compare_exchange_n(&lock->word, &unused, number, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void wait_and_lock(struct gt_lock *lock, uint32_t number)
{
	const bool lends = lends_priority();

	for (uint32_t wait_ms = WAIT_MS; !try_lock(lock, number); wait_ms = next_wait(wait_ms)) {
		const long result = lends && !is_plain() ? lock_lending(&lock->word, wait_ms) : -1;

		if (result == 0 && is_own(lock))
			break;
		/* EAGAIN, EINTR, ETIMEDOUT; else the owner is not what the kernel wants */
		if (result != 0 && result != -11 && result != -4 && result != -110)
			wait_plainly(lock, wait_ms);
	}
	/* Others may sleep yet: only one of them was woken. */
	__atomic_store_n(&lock->sleepers, 1, __ATOMIC_RELAXED);
}

void gt_lock(struct gt_lock *lock)
{
	const uint32_t number = own_number();

	if (!try_lock(lock, number))
		wait_and_lock(lock, number);
}

void gt_unlock(struct gt_lock *lock)
{
	uint32_t number = own_number();

	if (!__atomic_compare_exchange_n(&lock->word, &number, 0, false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED) &&
	    (is_plain() || gt_syscall3(SYS_FUTEX, (long)&lock->word, FUTEX_UNLOCK_PI, 0) != 0))
		__atomic_store_n(&lock->word, 0, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lock->sleepers, __ATOMIC_SEQ_CST) == 0)
		return;
	__atomic_store_n(&lock->sleepers, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&lock->wakes, 1, __ATOMIC_SEQ_CST);
	gt_syscall3(SYS_FUTEX, (long)&lock->wakes, FUTEX_WAKE, 1);
}

void gt_lock_reset(struct gt_lock *lock)
{
	__atomic_store_n(&lock->word, 0, __ATOMIC_RELEASE);
}
