/* SPDX-License-Identifier: MIT */
/* Times off the CPU out of context switches, and readers that follow them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/trace/off_cpu.h"
#include "core/trace/switches.h"
#include "port/host/memory.h"

static bool no_memory;
static size_t taken; /* bytes of memory */

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	if (no_memory && new_bytes)
		return NULL;
	taken += new_bytes - old_bytes;
	return gt_host_resize(data, memory, old_bytes, new_bytes);
}

static const struct gt_memory memory = { resize, NULL };
static struct gt_switches table;

static void begin(uint64_t start, uint32_t most)
{
	no_memory = false;
	gt_switches_init(&table, &memory, start, most);
}

static int end(void **state)
{
	(void)state;
	gt_switches_fini(&table);
	return 0;
}

static void add(uint64_t clock, uint32_t tid, uint16_t cpu, uint16_t flags)
{
	gt_switches_add(&table, &(struct gt_switch){ clock, tid, cpu, flags });
}

static int off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	(void)data;
	return gt_switches_off_cpu(&table, tid, after, time);
}

static struct gt_target *target(void)
{
	static const struct gt_switch_ops switches = { .off_cpu = off_cpu };
	static struct gt_target made = { .switches = &switches };
	return &made;
}

static void assert_off(uint32_t tid, uint64_t from, uint64_t to, uint64_t ticks)
{
	assert_int_equal(gt_target_off_cpu(target(), tid, from, to), ticks);
}

static void times_add_up_over_any_stretch(void **state)
{
	(void)state;
	begin(1000, 0);
	for (uint64_t i = 0; i < 100; i++) {
		add(2000 + i * 100, 7, 1, GT_SWITCH_OUT);
		add(2030 + i * 100, 7, 1, 0);
		add(2010 + i * 100, 8, 0, GT_SWITCH_OUT | GT_SWITCH_PREEMPTED);
		add(2090 + i * 100, 8, 0, 0);
	}
	assert_off(7, 1000, 20000, 100 * 30);
	assert_off(8, 1000, 20000, 100 * 80);
	assert_off(7, 2000, 2100, 30);
	assert_off(7, 2010, 2020, 10);
	assert_off(7, 2010, 2110, 30);
	assert_off(7, 2030, 2100, 0);
	assert_off(7, 2020, 2020, 0);
	assert_off(9, 1000, 20000, 0);
}

static void a_first_arrival_ends_a_time_since_the_start(void **state)
{
	struct gt_off_cpu time;
	(void)state;
	begin(1000, 0);
	add(1500, 7, 3, 0);
	assert_off(7, 0, 5000, 500);
	assert_int_equal(gt_switches_off_cpu(&table, 7, 0, &time), 0);
	assert_int_equal(time.from, 1000);
	assert_int_equal(time.cpu, 3);
}

static void who_has_not_come_back_is_off_the_cpu(void **state)
{
	struct gt_off_cpu time;
	(void)state;
	begin(1000, 0);
	add(1500, 7, 3, GT_SWITCH_OUT);
	assert_off(7, 1000, 1600, 100);
	assert_off(7, 1550, 1600, 50);
	assert_int_equal(gt_switches_off_cpu(&table, 7, 1500, &time), 0);
	assert_int_equal(time.from, 1500);
	assert_true(time.to == UINT64_MAX);
}

static void of_missing_switches_no_time_is_made_up(void **state)
{
	(void)state;
	begin(1000, 0);
	add(1100, 7, 0, GT_SWITCH_OUT); /* its arrival is missing */
	add(1200, 7, 0, GT_SWITCH_OUT);
	add(1300, 7, 0, 0);
	add(1400, 7, 0, 0);		/* its departure is */
	add(1350, 7, 0, GT_SWITCH_OUT); /* backwards */
	add(1390, 7, 0, 0);
	assert_off(7, 1000, 2000, 100);
}

static void the_cpu_between_two_switches_is_known(void **state)
{
	struct gt_off_cpu_follow follow = { 0 };
	(void)state;
	begin(1000, 0);
	add(2000, 7, 1, GT_SWITCH_OUT);
	add(2500, 7, 2, 0);
	add(3000, 7, 2, GT_SWITCH_OUT);
	add(3100, 7, 5, 0);
	assert_int_equal(gt_off_cpu_move(&follow, target(), 7, 1500), 0);
	assert_true(follow.known);
	assert_int_equal(follow.time.cpu, 1);
	assert_int_equal(follow.until, 2500);
	assert_int_equal(gt_off_cpu_move(&follow, target(), 7, 2600), 500);
	assert_int_equal(follow.time.cpu, 2);
	assert_int_equal(gt_off_cpu_move(&follow, target(), 7, 9000), 100);
	assert_int_equal(follow.time.cpu, 5);
	assert_true(follow.until == UINT64_MAX);
}

static void old_ones_go_where_there_is_a_limit(void **state)
{
	struct gt_switch out[64];
	uint64_t cursor = 0;
	uint32_t count, all = 0, again = 0;
	(void)state;
	begin(1000, 64);
	for (uint64_t i = 0; i < 1000; i++) {
		add(2000 + i * 100, 7, 1, GT_SWITCH_OUT);
		add(2030 + i * 100, 7, 1, 0);
	}
	/* what is left is right, and the sums are those of the whole */
	assert_off(7, 2000 + 990 * 100, 2000 + 1000 * 100, 300);
	while ((count = gt_switches_read(&table, &cursor, out, 10)) > 0)
		all += count;
	assert_int_equal(cursor, 2000);
	assert_in_range(all, 32, 64);
	gt_switches_restart(&table, 5000000);
	assert_int_equal(gt_switches_read(&table, &cursor, out, 10), 0);
	assert_off(7, 0, UINT64_MAX, 0);
	/* what there was is read again, as an event of its time */
	cursor = 0;
	while ((count = gt_switches_read(&table, &cursor, out, 10)) > 0)
		again += count;
	assert_int_equal(again, all);
	add(5000100, 7, 1, GT_SWITCH_OUT);
	assert_int_equal(gt_switches_read(&table, &cursor, out, 10), 1);
	assert_int_equal(cursor, 2001);
}

static void without_memory_switches_are_lost_and_counted(void **state)
{
	(void)state;
	begin(1000, 0);
	no_memory = true;
	add(2000, 7, 1, GT_SWITCH_OUT);
	assert_int_equal(table.lost, 1);
	assert_off(7, 0, 9000, 0);
	no_memory = false;
}

static void thousands_of_threads_are_told_apart(void **state)
{
	(void)state;
	begin(0, 0);
	for (uint32_t tid = 1; tid <= 5000; tid++)
		add(1000, tid * 64, 0, GT_SWITCH_OUT);
	for (uint32_t tid = 1; tid <= 5000; tid++)
		add(1000 + tid, tid * 64, 0, 0);
	for (uint32_t tid = 1; tid <= 5000; tid++)
		assert_off(tid * 64, 0, 100000, tid);
}

/* While nobody asks for times only the switches are kept; what they tell is found later. */
static void times_are_found_when_somebody_asks(void **state)
{
	(void)state;
	begin(1000, 0);
	table.in_order_only = true;
	add(1500, 9, 3, 0);
	add(2000, 7, 1, GT_SWITCH_OUT);
	add(2600, 7, 2, 0);
	assert_int_equal(table.thread_room, 0);
	gt_switches_find_times(&table);
	assert_off(9, 0, 3000, 500); /* as in the first test of arrivals: since the start */
	assert_off(7, 0, 3000, 600);
	add(4000, 7, 2, GT_SWITCH_OUT);
	add(4100, 7, 2, 0);
	gt_switches_find_times(&table); /* once is enough */
	assert_off(7, 0, 5000, 700);
	assert_int_equal(table.lost, 0);
}

static void times_begin_with_the_oldest_switch_that_is_left(void **state)
{
	(void)state;
	begin(1000, 64);
	table.in_order_only = true;
	for (uint32_t tid = 1; tid <= 1000; tid++) {
		add(tid * 1000, tid, 0, 0);
		add(tid * 1000 + 500, tid, 0, GT_SWITCH_OUT);
	}
	assert_int_equal(table.thread_room, 0);
	assert_true(table.room <= 64);
	gt_switches_find_times(&table);
	assert_true(table.thread_count >= 16 && table.thread_count <= 33);
	assert_int_equal(table.start, table.all[0].clock);
	assert_true(table.start > 960000);
	assert_off(1000, 0, 1000000, 1000000 - table.start);
}

/* A recording writes them to its file as they come. */
static void what_was_read_is_forgotten_where_nobody_asks_for_times(void **state)
{
	struct gt_switch out[64];
	uint64_t cursor = 0;
	size_t after_few = 0;
	uint32_t count;
	(void)state;
	begin(1000, 0);
	table.in_order_only = true;
	for (uint32_t tid = 1; tid <= 10000; tid++) {
		add(tid * 1000, tid, 0, 0);
		add(tid * 1000 + 500, tid, 0, GT_SWITCH_OUT);
		if (tid % 10)
			continue;
		count = gt_switches_read(&table, &cursor, out, 64);
		assert_int_equal(count, 20);
		assert_int_equal(out[0].tid, tid - 9);
		gt_switches_forget(&table, cursor);
		after_few = after_few ? after_few : taken;
	}
	assert_int_equal(taken, after_few);
	assert_int_equal(table.first, 20000);
	/* who asks now is told what comes from now on */
	gt_switches_find_times(&table);
	assert_off(10000, 0, 10001000, 0);
	add(10002000, 10000, 0, 0);
	assert_off(10000, 0, 10003000, 10002000 - 10000500);
	gt_switches_forget(&table, 20001);
	assert_int_equal(table.count, 1);
}

static void switches_that_are_not_read_stay(void **state)
{
	struct gt_switch out[8];
	uint64_t cursor = 10;
	(void)state;
	begin(1000, 0);
	table.in_order_only = true;
	for (uint32_t tid = 0; tid < 16; tid++)
		add(2000 + tid, tid, 0, 0);
	gt_switches_forget(&table, 4); /* so few are not worth it */
	assert_int_equal(table.count, 16);
	gt_switches_forget(&table, 10);
	assert_int_equal(table.count, 6);
	assert_int_equal(gt_switches_read(&table, &cursor, out, 8), 6);
	assert_int_equal(out[0].tid, 10);
}

static void a_short_thread_takes_little(void **state)
{
	const size_t before = taken;
	(void)state;
	begin(1000, 0);
	for (uint32_t tid = 1; tid <= 10000; tid++) {
		add(tid * 1000, tid, 0, 0);
		add(tid * 1000 + 500, tid, 0, GT_SWITCH_OUT);
	}
	assert_off(10000, 0, 10001000, 10000000 - 1000 + 500);
	assert_in_range(taken - before, 1, 10000 * 400);
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(times_add_up_over_any_stretch),
		TEST(a_first_arrival_ends_a_time_since_the_start),
		TEST(who_has_not_come_back_is_off_the_cpu),
		TEST(of_missing_switches_no_time_is_made_up),
		TEST(the_cpu_between_two_switches_is_known),
		TEST(old_ones_go_where_there_is_a_limit),
		TEST(without_memory_switches_are_lost_and_counted),
		TEST(thousands_of_threads_are_told_apart),
		TEST(times_are_found_when_somebody_asks),
		TEST(times_begin_with_the_oldest_switch_that_is_left),
		TEST(what_was_read_is_forgotten_where_nobody_asks_for_times),
		TEST(switches_that_are_not_read_stay),
		TEST(a_short_thread_takes_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
