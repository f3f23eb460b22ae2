/* SPDX-License-Identifier: MIT */
/*
 * The agent's locks, among this process's threads: who finds one taken sleeps in the kernel, a real-time thread in the
 * call that lends the owner its priority, unless a filter may forbid that.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <setjmp.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>
#include "port/program/agent.h"

struct graftrace_agent_state gt_agent_state;

/* A test's threads have no blocks. */
struct gt_thread *gt_threads_at_hand(void)
{
	return NULL;
}

static struct gt_lock lock;
static uint64_t counter;

/* One more, by two accesses that are atomic each: two threads at once would lose one. ThreadSanitizer does
 * not know that the kernel hands a lock over. */
static void count_one(void)
{
	__atomic_store_n(&counter, __atomic_load_n(&counter, __ATOMIC_RELAXED) + 1,
			 __ATOMIC_RELAXED);
}

static pid_t waiter; /* atomic: read while its thread runs */

static void *waits(void *unused)
{
	(void)unused;
	__atomic_store_n(&waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	gt_lock(&lock);
	count_one();
	gt_unlock(&lock);
	return NULL;
}

/* Which futex operation a thread sleeps in, FUTEX_PRIVATE_FLAG aside; -1: in none. */
static int sleeps_in(pid_t tid)
{
	char path[64], text[256] = "";
	if (tid == 0)
		return -1;
	unsigned long number, address, operation;
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	int file = open(path, O_RDONLY);
	assert_true(file >= 0);
	if (read(file, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(file);
	if (sscanf(text, "%lu 0x%lx 0x%lx", &number, &address, &operation) != 3 ||
	    number != SYS_futex || address - (uintptr_t)&lock >= sizeof(lock))
		return -1;
	return (int)operation & ~FUTEX_PRIVATE_FLAG;
}

static void check_waiting(int policy, int operation)
{
	const struct sched_param priority = { .sched_priority = policy == SCHED_FIFO };
	pthread_attr_t attributes;
	pthread_t thread;
	__atomic_store_n(&counter, 0, __ATOMIC_RELAXED);
	waiter = 0;
	pthread_attr_init(&attributes);
	pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attributes, policy);
	pthread_attr_setschedparam(&attributes, &priority);
	gt_lock(&lock);
	assert_int_equal(pthread_create(&thread, &attributes, waits, NULL), 0);
	/* a thread that never sleeps there runs into the test's time limit */
	while (sleeps_in(__atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) != operation)
		usleep(1000);
	assert_int_equal(__atomic_load_n(&counter, __ATOMIC_RELAXED), 0);
	gt_unlock(&lock);
	pthread_join(thread, NULL);
	assert_int_equal(__atomic_load_n(&counter, __ATOMIC_RELAXED), 1);
	assert_int_equal(lock.word, 0);
}

static void a_real_time_thread_lends_its_priority(void **state)
{
	const struct sched_param priority = { .sched_priority = 1 }, ordinary = { 0 };

	(void)state;
	gt_agent_state.flags = 0;
	if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
		skip(); /* not permitted */
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	check_waiting(SCHED_FIFO, FUTEX_LOCK_PI);
}

static void an_ordinary_thread_has_none_to_lend(void **state)
{
	(void)state;
	gt_agent_state.flags = 0;
	check_waiting(SCHED_OTHER, FUTEX_WAIT);
}

static void who_waits_in_a_sandbox_only_sleeps(void **state)
{
	(void)state;
	gt_agent_state.flags = GRAFTRACE_AGENT_PLAIN_LOCKS;
	check_waiting(SCHED_OTHER, FUTEX_WAIT);
}

/* The calling thread; where that is not permitted it stays an ordinary one. */
static void become_real_time(void)
{
	const struct sched_param priority = { .sched_priority = 1 };

	pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
}

static void *adds(void *flips)
{
	for (int i = 0; i < 20000; i++) {
		if (flips != NULL && i % 64 == 0)
			__atomic_fetch_xor(&gt_agent_state.flags, GRAFTRACE_AGENT_PLAIN_LOCKS,
					   __ATOMIC_RELAXED);
		gt_lock(&lock);
		count_one();
		gt_unlock(&lock);
	}
	return NULL;
}

static void *adds_in_real_time(void *flips)
{
	become_real_time();
	return adds(flips);
}

static void check_adding(bool flips)
{
	pthread_t threads[4];
	__atomic_store_n(&counter, 0, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? adds_in_real_time : adds,
						flips && i == 0 ? &counter : NULL),
				 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(__atomic_load_n(&counter, __ATOMIC_RELAXED), 80000);
	assert_int_equal(lock.word, 0);
}

static void one_thread_at_a_time_holds_it(void **state)
{
	(void)state;
	gt_agent_state.flags = 0;
	check_adding(false);
	gt_agent_state.flags = GRAFTRACE_AGENT_PLAIN_LOCKS;
	check_adding(false);
}

static void a_sandbox_may_begin_while_others_wait(void **state)
{
	(void)state;
	gt_agent_state.flags = 0;
	check_adding(true);
}

static void *waits_in_real_time(void *unused)
{
	become_real_time();
	return waits(unused);
}

static void check_unknown_owner(void *(*waiting)(void *))
{
	pthread_t thread;
	gt_agent_state.flags = 0;
	__atomic_store_n(&counter, 0, __ATOMIC_RELAXED);
	waiter = 0;
	lock.word = (uint32_t)getppid(); /* as a vfork child writes its parent's */
	assert_int_equal(pthread_create(&thread, NULL, waiting, NULL), 0);
	while (sleeps_in(__atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) == -1)
		usleep(1000);
	gt_unlock(&lock);
	pthread_join(thread, NULL);
	assert_int_equal(__atomic_load_n(&counter, __ATOMIC_RELAXED), 1);
	assert_int_equal(lock.word, 0);
}

static void an_owner_that_the_kernel_does_not_know_frees_it_all_the_same(void **state)
{
	(void)state;
	check_unknown_owner(waits);
	check_unknown_owner(waits_in_real_time);
}

static uint32_t stage, inside; /* atomic: threads that hold the lock */

static void wait_for_stage(uint32_t wanted)
{
	while (__atomic_load_n(&stage, __ATOMIC_ACQUIRE) < wanted)
		usleep(1000);
}

/* Ends with the lock taken in its name, which its vfork child has released: the word is clear. */
static void *owns_and_ends(void *unused)
{
	gt_lock(&lock);
	__atomic_store_n(&stage, 1, __ATOMIC_RELEASE);
	wait_for_stage(2);
	__atomic_store_n(&lock.word, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&stage, 3, __ATOMIC_RELEASE);
	wait_for_stage(4);
	return unused;
}

static void *holds_it_next(void *unused)
{
	wait_for_stage(3);
	gt_lock(&lock);
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&stage, 4, __ATOMIC_RELEASE);
	for (int i = 0; i < 200; i++) {
		assert_int_equal(__atomic_load_n(&inside, __ATOMIC_SEQ_CST), 1);
		usleep(1000);
	}
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
	gt_unlock(&lock);
	return unused;
}

static void *waits_and_counts(void *unused)
{
	become_real_time();
	__atomic_store_n(&waiter, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	gt_lock(&lock);
	__atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
	usleep(1000);
	__atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
	gt_unlock(&lock);
	return unused;
}

static void who_ends_without_the_kernels_knowing_gives_nobody_the_lock(void **state)
{
	void *(*const bodies[])(void *) = { owns_and_ends, holds_it_next, waits_and_counts };
	pthread_t threads[3];

	(void)state;
	gt_agent_state.flags = 0;
	stage = inside = 0;
	waiter = 0;
	assert_int_equal(pthread_create(&threads[0], NULL, bodies[0], NULL), 0);
	wait_for_stage(1);
	for (int i = 1; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, bodies[i], NULL), 0);
	/* Each of the waiter's calls is a longer one: in the fourth the kernel finds the owner ended. */
	for (int i = 0; i < 200 || sleeps_in(__atomic_load_n(&waiter, __ATOMIC_ACQUIRE)) == -1; i++)
		usleep(1000);
	__atomic_store_n(&stage, 2, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(lock.word, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_real_time_thread_lends_its_priority),
		cmocka_unit_test(an_ordinary_thread_has_none_to_lend),
		cmocka_unit_test(who_waits_in_a_sandbox_only_sleeps),
		cmocka_unit_test(one_thread_at_a_time_holds_it),
		cmocka_unit_test(a_sandbox_may_begin_while_others_wait),
		cmocka_unit_test(an_owner_that_the_kernel_does_not_know_frees_it_all_the_same),
		cmocka_unit_test(who_ends_without_the_kernels_knowing_gives_nobody_the_lock),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
