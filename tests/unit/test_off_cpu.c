/* SPDX-License-Identifier: MIT */
/* The kernel's records of context switches and of new threads, of this process's own threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>
#include "attach/ring/off_cpu.h"

static void *keep_tid(void *tid)
{
	*(uint32_t *)tid = (uint32_t)gettid();
	return NULL;
}

/* Before any stamp can be put on the counter's time line, too. */
static void the_creator_of_a_thread_is_known_at_once(void **state)
{
	const pid_t self = getpid();
	struct gt_off_cpu_watch watch;
	struct gt_off_cpu_fork fork;
	struct gt_message message;
	pthread_t thread;
	uint32_t tid;
	uint64_t before;

	(void)state;
	gt_off_cpu_init(&watch);
	if (gt_off_cpu_start(&watch, &self, 1, &message))
		skip();					 /* not allowed here */
	watch.from = gt_clock_read(CLOCK_MONOTONIC_RAW); /* as if opening had taken no time */
	before = gt_clock_counter();
	assert_int_equal(pthread_create(&thread, NULL, keep_tid, &tid), 0);
	pthread_join(thread, NULL);
	assert_int_equal(gt_off_cpu_creator(&watch, tid, &fork), 0);
	assert_int_equal(fork.creator, gettid());
	assert_in_range(fork.clock, before - 1000000, gt_clock_counter());
	gt_off_cpu_stop(&watch);
	gt_off_cpu_fini(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_creator_of_a_thread_is_known_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
