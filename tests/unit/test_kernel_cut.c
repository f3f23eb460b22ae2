/* SPDX-License-Identifier: MIT */
/* The trace of a kernel that goes on while it is read: one cut over its CPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/kernel/kernel_target.h"
#include "core/record/kernel.h"
#include "core/trace/merge.h"
#include "port/fake/fake.h"
#include "port/host/memory.h"

#define BASE (1ull << 40)

enum { OUTER = 1, INNER, LEAF };

static uint64_t clock_now;
static void (*meanwhile)(void); /* once, when a sub-buffer has been copied */
static struct gt_arena_ring ring;
static struct gt_arena_target target;
static struct gt_ring_ops operations;
static const struct gt_ring_ops *real;

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data;
	(void)tid;
	(void)comm;
	return GT_ENOENT;
}

static uint64_t now(void)
{
	return clock_now;
}

static void set_clock(uint64_t ticks)
{
	clock_now = ticks;
	gt_fake_clock(ticks);
}

static int64_t sub_buffer(struct gt_target *from, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	int64_t words = real->sub_buffer(from, index, sequence, buffer, bytes);
	void (*once)(void) = meanwhile;

	meanwhile = NULL;
	if (once) {
		/* What was read is the reader's from now on. */
		memcpy(buffer, *bytes, sizeof(**bytes) + (size_t)words * 8);
		*bytes = buffer;
		once();
	}
	return words;
}

static void begin(void)
{
	static const struct gt_arena_names names = { .thread = thread_name };

	gt_fake_start(1 << 20, 4096);
	memset(&ring, 0, sizeof(ring));
	ring.arena = gt_fake_arena();
	ring.names = &names;
	ring.clock = (struct gt_clock){ .tsc_base = BASE, .mult = 1 };
	ring.now = now;
	gt_arena_target_init(&target, &ring);
	real = target.target.ring;
	operations = *real;
	operations.sub_buffer = sub_buffer;
	target.target.ring = &operations;
	set_clock(BASE + 1000);
	gt_fake_cpu_start(1, gt_fake_stack(11));
	gt_fake_cpu_start(0, gt_fake_stack(10));
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		gt_fake_run(cpu);
		set_clock(clock_now + 100);
		assert_true(gt_fake_call(OUTER));
	}
	set_clock(clock_now + 100);
}

/* How often each function's entry is in the trace. */
static void count_entries(uint32_t of_function[4])
{
	struct gt_merge merge;
	struct gt_source *source;

	memset(of_function, 0, 4 * sizeof(*of_function));
	assert_int_equal(
		gt_merge_init(&merge, &target.target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL), 0);
	while (gt_merge_next(&merge, &source) > 0)
		if (source->record.kind == GT_RECORD_ENTRY)
			of_function[source->record.function]++;
	gt_merge_fini(&merge);
}

/* One CPU makes a call and has the other one make one. */
static void call_on_both(void)
{
	gt_fake_run(0);
	set_clock(clock_now + 1000);
	assert_true(gt_fake_call(INNER));
	gt_fake_run(1);
	set_clock(clock_now + 1000);
	assert_true(gt_fake_call(LEAF));
}

static void what_the_other_cpus_do_meanwhile_is_left_out_with_what_led_to_it(void **state)
{
	uint32_t found[4];

	(void)state;
	begin();
	meanwhile = call_on_both;
	count_entries(found);
	assert_null(meanwhile);
	assert_int_equal(found[OUTER], 2);
	assert_int_equal(found[INNER], 0);
	assert_int_equal(found[LEAF], 0);
	set_clock(clock_now + 100);
	count_entries(found);
	assert_int_equal(found[INNER], 1);
	assert_int_equal(found[LEAF], 1);
}

/* The second CPU begins to record when the first one has been read. */
static void start_another_cpu(void)
{
	gt_fake_run(0);
	set_clock(clock_now + 1000);
	assert_true(gt_fake_call(INNER));
	set_clock(clock_now + 1000);
	gt_fake_cpu_start(2, gt_fake_stack(12));
	gt_fake_run(2);
	assert_true(gt_fake_call(LEAF));
}

static void so_is_a_cpu_that_comes_meanwhile(void **state)
{
	uint32_t found[4];

	(void)state;
	begin();
	meanwhile = start_another_cpu;
	count_entries(found);
	assert_int_equal(found[OUTER], 2);
	assert_int_equal(found[INNER] + found[LEAF], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_other_cpus_do_meanwhile_is_left_out_with_what_led_to_it),
		cmocka_unit_test(so_is_a_cpu_that_comes_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
