/* SPDX-License-Identifier: MIT */
/* Recording in a kernel: CPUs, threads that move between them, interrupts that nest. On port/fake,
 * read back through the viewer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "core/record/arch.h"
#include "core/record/offset.h"
#include "core/kernel/kernel_target.h"
#include "core/text/text.h"
#include "port/fake/fake.h"
#include "port/host/memory.h"

enum { OUTER = 1, INNER, LEAF, IRQ, NMI };
static const char *const names[] = { "outer", "inner", "leaf", "irq", "nmi" };
#define INTERRUPT_STACK (GT_KERNEL_INTERRUPT + 1)
#define NMI_STACK	(GT_KERNEL_INTERRUPT + 2)

static int function(void *data, uint32_t number, struct gt_function *out)
{
	(void)data;
	if (number - 1 >= sizeof(names) / sizeof(names[0]))
		return GT_ENOENT;
	*out = (struct gt_function){ .name = names[number - 1], .object = "kernel" };
	return GT_OK;
}

static int function_at(void *data, uint64_t address, struct gt_function *out)
{
	(void)data;
	(void)address;
	(void)out;
	return GT_ENOENT;
}

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data;
	snprintf(comm, 16, "t%u", tid);
	return GT_OK;
}

static const struct gt_arena_names kernel_names = { function, function_at, thread_name, NULL,
						    NULL };
static struct gt_arena_ring ring;

static void start(uint64_t bytes, uint32_t sub_buffer_bytes)
{
	gt_fake_start(bytes, sub_buffer_bytes);
	memset(&ring, 0, sizeof(ring));
	ring.arena = gt_fake_arena();
	ring.names = &kernel_names;
	ring.clock = (struct gt_clock){ .tsc_base = 1ull << 40, .mult = 1 };
}

/* The ring as text; the caller's to free. */
static char *text_of(enum gt_merge_mode mode)
{
	static struct gt_arena_target target;
	static struct gt_text text;
	struct gt_text_options options = { .options = GT_OPTIONS_DEFAULT, .mode = mode };
	char *all = calloc(1, 1 << 20);
	size_t length = 0;
	gt_arena_target_init(&target, &ring);
	assert_int_equal(gt_text_init(&text, &target.target, &gt_host_memory, &options), 0);
	for (;;) {
		int64_t got = gt_text_read(&text, all + length, (1 << 20) - 1 - length);
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	gt_text_fini(&text);
	return all;
}

struct counted {
	uint64_t entries[8], returns[8], unknown, unwound, gaps;
	uint64_t self[8], total[8];
	uint64_t first, last; /* clocks */
	uint32_t last_tid;
	struct {
		int64_t entries, returns;
	} by_thread[64];
};

static struct counted count(void)
{
	static struct gt_arena_target target;
	struct counted counted;
	struct gt_merge merge;
	struct gt_source *source;
	memset(&counted, 0, sizeof(counted));
	gt_arena_target_init(&target, &ring);
	assert_int_equal(
		gt_merge_init(&merge, &target.target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL), 0);
	while (gt_merge_next(&merge, &source) > 0) {
		const struct gt_record *record = &source->record;
		if (counted.first == 0)
			counted.first = record->clock;
		if (record->clock > counted.last)
			counted.last = record->clock;
		if (record->kind == GT_RECORD_ENTRY) {
			counted.entries[record->function]++;
			if (source->tid < 64)
				counted.by_thread[source->tid].entries++;
		} else if (record->kind == GT_RECORD_RETURN) {
			counted.returns[record->function]++;
			if (source->tid < 64)
				counted.by_thread[source->tid].returns++;
			counted.unknown += (record->flags & (GT_RECORD_START_UNKNOWN |
							     GT_RECORD_CHILDREN_UNKNOWN)) != 0;
			counted.total[record->function] += record->clock - record->start;
			counted.self[record->function] +=
				record->clock - record->start - record->children;
		} else if (record->kind == GT_RECORD_UNWOUND) {
			counted.unwound += record->function ? 1 : record->value;
		} else if (record->kind == GT_RECORD_GAP) {
			counted.gaps++;
		}
	}
	assert_int_equal(merge.damaged, 0);
	assert_int_equal(merge.unknown, 0);
	assert_int_equal(merge.unreadable, 0);
	gt_merge_fini(&merge);
	return counted;
}

static void a_call_is_recorded(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	gt_fake_cpu_start(0, gt_fake_stack(1));
	assert_true(gt_fake_call(OUTER));
	gt_fake_clock((1ull << 40) + 2000);
	assert_true(gt_fake_call(LEAF));
	gt_fake_clock((1ull << 40) + 3000);
	gt_fake_return();
	gt_fake_clock((1ull << 40) + 5000);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.entries[OUTER], 1);
	assert_int_equal(counted.returns[OUTER], 1);
	assert_int_equal(counted.returns[LEAF], 1);
	assert_int_equal(counted.unknown, 0);
}

static void switches_are_shown_as_linux_shows_them(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2);
	gt_fake_cpu_start(0, one);
	gt_fake_call(OUTER);
	gt_fake_switch(two, 1);
	gt_fake_call(INNER);
	gt_fake_switch(one, 0);
	gt_fake_return();
	char *text = text_of(GT_MERGE_SNAPSHOT);
	assert_non_null(strstr(text, " 0)               |  outer() {\n"
				     " ------------------------------------------\n"
				     " 0)      t1-1      =>      t2-2     \n"
				     " ------------------------------------------\n\n"
				     " 0)               |  inner() {\n"));
	assert_non_null(strstr(text, " 0)      t2-2      =>      t1-1     \n"));
	assert_non_null(strstr(text, "us    |  } /* outer */\n"));
	assert_null(strstr(text, "stack"));
	free(text);
}

static void a_thread_that_moves_in_mid_call_keeps_its_calls(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *worker = gt_fake_stack(3);
	struct gt_fake_stack *idle0 = gt_fake_stack(10), *idle1 = gt_fake_stack(11);
	uint64_t base = 1ull << 40;
	gt_fake_cpu_start(1, idle1);
	gt_fake_cpu_start(0, idle0);
	gt_fake_switch(worker, 0);
	gt_fake_call(OUTER);
	gt_fake_clock(base + 1000);
	gt_fake_call(INNER);
	gt_fake_clock(base + 2000);
	gt_fake_switch(idle0, 1);
	gt_fake_run(1);
	gt_fake_switch(worker, 0);
	gt_fake_clock(base + 5000);
	gt_fake_return(); /* inner, on the other CPU */
	gt_fake_call(LEAF);
	gt_fake_clock(base + 6000);
	gt_fake_return();
	gt_fake_switch(idle1, 1);
	gt_fake_run(0);
	gt_fake_switch(worker, 0); /* and back: nothing else was recorded here meanwhile */
	gt_fake_clock(base + 10000);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.by_thread[3].entries, 3);
	assert_int_equal(counted.by_thread[3].returns, 3);
	assert_int_equal(counted.unwound, 0);
	/* times are exact, too: children are known wherever they returned */
	assert_int_equal(counted.unknown, 0);
	assert_in_range(counted.total[OUTER], 9900, 10100);
	assert_in_range(counted.total[INNER], 3900, 4100);
	assert_in_range(counted.self[OUTER], 4900, 5100);
}

/* As a kernel measures at boot: CPU 0 asks at `at`, CPU 1 reads its clock `there` later, and the
 * answer is back after `back` more. */
static void trip(struct gt_offset *offset, uint64_t at, uint64_t there, uint64_t back)
{
	gt_fake_run(0);
	gt_fake_clock(at);
	uint64_t before = gt_arch_clock();
	gt_fake_run(1);
	gt_fake_clock(at + there);
	uint64_t remote = gt_arch_clock();
	gt_fake_run(0);
	gt_fake_clock(at + there + back);
	gt_offset_sample(offset, before, remote, gt_arch_clock());
}

static void a_clock_that_is_ahead_is_found_and_a_call_across_it_takes_its_time(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *worker = gt_fake_stack(3);
	struct gt_fake_stack *idle0 = gt_fake_stack(10), *idle1 = gt_fake_stack(11);
	const uint64_t ahead = 5000000, base = (1ull << 40) + 1000000;
	gt_fake_cpu_start(1, idle1);
	gt_fake_cpu_start(0, idle0);
	gt_fake_cpu(1)->clock_offset = ahead;
	struct gt_offset offset;
	gt_offset_init(&offset);
	trip(&offset, base, 40000, 300);
	assert_in_range(offset.ticks, ahead - offset.error, ahead + offset.error);
	assert_int_equal(offset.error, 20150);
	trip(&offset, base + 100000, 120, 80);
	trip(&offset, base + 200000, 5000, 5000);
	assert_in_range(offset.ticks, ahead - 100, ahead + 100);
	assert_int_equal(offset.error, 100);
	assert_true(gt_offset_applies(&offset));
	gt_fake_cpu(1)->clock_offset -= (uint64_t)offset.ticks;
	gt_fake_clock(base + 300000);
	gt_fake_switch(worker, 0);
	gt_fake_call(OUTER);
	gt_fake_switch(idle0, 1);
	gt_fake_run(1);
	gt_fake_switch(worker, 0);
	gt_fake_clock(base + 310000);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.returns[OUTER], 1);
	assert_int_equal(counted.unknown, 0);
	assert_in_range(counted.total[OUTER], 10000 - 200, 10000 + 200);
}

static void interrupts_nest_in_calls_and_in_each_other(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *thread = gt_fake_stack(1),
			     *interrupt = gt_fake_stack(INTERRUPT_STACK),
			     *nmi = gt_fake_stack(NMI_STACK);
	gt_fake_cpu_start(0, thread);
	gt_fake_call(OUTER);
	gt_fake_interrupt(interrupt);
	gt_fake_call(IRQ);
	gt_fake_interrupt(nmi);
	gt_fake_call(NMI);
	gt_fake_return();
	gt_fake_interrupt_end();
	gt_fake_return();
	gt_fake_interrupt_end();
	gt_fake_call(LEAF);
	gt_fake_return();
	gt_fake_return();
	char *text = text_of(GT_MERGE_SNAPSHOT);
	assert_non_null(strstr(text, " 0)               |  outer() {\n"
				     " 0)   ==========> |\n"
				     " 0)               |    irq() {\n"));
	assert_non_null(strstr(text, " 0)   <========== |\n"));
	free(text);
	struct counted counted = count();
	for (uint32_t i = OUTER; i <= NMI; i++)
		assert_int_equal(counted.entries[i], counted.returns[i]);
	assert_int_equal(counted.unknown, 0);
	assert_int_equal(counted.unwound, 0);
	/* the interrupt's calls are none of the thread's children, but in its time */
	assert_true(counted.total[OUTER] > counted.total[IRQ]);
}

static void an_interrupt_that_records_nothing_leaves_no_trace(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *interrupt = gt_fake_stack(INTERRUPT_STACK);
	gt_fake_cpu_start(0, gt_fake_stack(1));
	gt_fake_call(OUTER);
	uint64_t cur = gt_fake_cpu(0)->block.cur;
	for (int i = 0; i < 100; i++) {
		gt_fake_interrupt(interrupt);
		gt_fake_interrupt_end();
	}
	assert_int_equal(gt_fake_cpu(0)->block.cur, cur);
	assert_int_equal(gt_fake_cpu(0)->block.resume, 0);
	gt_fake_return();
	assert_int_equal(gt_fake_cpu(0)->block.cur, cur + 8);
}

/* What the CPU's stream got from an interrupt, in words. */
static uint64_t words_of_interrupt(struct gt_fake_stack *interrupt, bool calls_something)
{
	struct gt_thread *block = &gt_fake_cpu(0)->block;
	uint64_t before = block->cur;
	gt_fake_interrupt(interrupt);
	if (calls_something) {
		assert_true(gt_fake_call(IRQ));
		gt_fake_return();
	}
	gt_fake_interrupt_end();
	return (block->cur - before) / 8;
}

static void an_interrupt_that_recorded_is_told_of_when_it_comes_again(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *interrupt = gt_fake_stack(INTERRUPT_STACK);
	struct gt_thread *block = &gt_fake_cpu(0)->block;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	gt_fake_call(OUTER);
	gt_fake_interrupt(interrupt);
	assert_int_equal(block->gate, GT_GATE_CLOSED);
	assert_true(gt_fake_call(IRQ));
	gt_fake_return();
	gt_fake_interrupt_end();
	/* its calls go straight now */
	gt_fake_interrupt(interrupt);
	assert_int_not_equal(block->gate, GT_GATE_CLOSED);
	assert_true(gt_fake_call(IRQ));
	gt_fake_return();
	gt_fake_interrupt_end();
	/* an entry and a return between two words that say who runs */
	assert_int_equal(words_of_interrupt(interrupt, true), 4);
	/* told of once more than it had to say something */
	assert_int_equal(words_of_interrupt(interrupt, false), 2);
	assert_int_equal(words_of_interrupt(interrupt, false), 0);
	assert_int_equal(words_of_interrupt(interrupt, true), 4);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.entries[IRQ], 4);
	assert_int_equal(counted.returns[IRQ], 4);
	assert_int_equal(counted.returns[OUTER], 1);
	assert_int_equal(counted.unknown, 0);
	/* the one that was told of and called nothing is shown too */
	char *text = text_of(GT_MERGE_SNAPSHOT);
	int arrows = 0;
	for (const char *at = text; (at = strstr(at, "==========> |")) != NULL; at++)
		arrows++;
	assert_int_equal(arrows, 5);
	free(text);
}

static void an_nmi_in_the_slow_half_is_not_let_in(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *thread = gt_fake_stack(1), *nmi = gt_fake_stack(NMI_STACK);
	gt_fake_cpu_start(0, thread);
	struct gt_fake_cpu *cpu = gt_fake_cpu(0);
	cpu->block.busy = 1;
	struct gt_thread before = cpu->block;
	assert_false(gt_kernel_enter_nmi(&nmi->context, 0));
	assert_memory_equal(&before, &cpu->block, sizeof(before));
	cpu->block.busy = 0;
	assert_true(gt_kernel_enter_nmi(&nmi->context, 0));
	gt_kernel_leave();
	assert_int_equal(cpu->block.cur, before.cur);
	assert_true(gt_fake_call(LEAF));
	gt_fake_return();
}

static void a_paused_context_records_nothing_but_its_returns(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2);
	gt_fake_cpu_start(0, one);
	gt_fake_call(OUTER);
	gt_kernel_pause();
	gt_kernel_pause();
	assert_false(gt_fake_call(INNER));
	gt_fake_return();
	gt_fake_switch(two, 0);
	assert_true(gt_fake_call(LEAF)); /* another context */
	gt_fake_return();
	gt_fake_switch(one, 0);
	gt_kernel_resume();
	assert_false(gt_fake_call(INNER));
	gt_fake_return();
	gt_fake_return(); /* outer's, in the pause */
	gt_kernel_resume();
	assert_true(gt_fake_call(LEAF));
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.returns[OUTER], 1);
	assert_int_equal(counted.entries[INNER], 0);
	assert_int_equal(counted.entries[LEAF], 2);
	assert_int_equal(counted.unwound, 0);
}

/* Threads wander over CPUs in tiny sub-buffers, with interrupts in between: everything balances.
 * suspends: and the CPUs are suspended now and then; calls that return meanwhile are told as over.
 * closes: and sub-buffers end early, in interrupts and between them.
 */
static void wander(uint64_t seed, bool suspends, bool closes)
{
	enum { CPUS = 4, THREADS = 9 };
	start(closes ? 64 << 20 : 8 << 20, 4096);
	struct gt_fake_stack *threads[THREADS], *interrupts[CPUS];
	uint32_t on[CPUS], depth[THREADS] = { 0 };
	uint64_t calls[64] = { 0 }, irqs = 0;
	bool suspended = false, on_now = true;
	for (uint32_t i = 0; i < THREADS; i++)
		threads[i] = gt_fake_stack(i + 1);
	for (uint32_t i = 0; i < CPUS; i++) {
		interrupts[i] = gt_fake_stack(INTERRUPT_STACK);
		gt_fake_cpu_start(i, threads[i]);
		on[i] = i;
	}
	for (uint32_t step = 0; step < 60000; step++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		uint32_t chance = (uint32_t)(seed >> 33) % 100, cpu = (uint32_t)(seed >> 45) % CPUS;
		uint32_t thread = on[cpu];
		gt_fake_run(cpu);
		if (chance < 45 && depth[thread] < 20) {
			assert_int_equal(gt_fake_call(OUTER + (uint32_t)(seed >> 50) % 3),
					 on_now && !suspended);
			depth[thread]++;
			calls[thread + 1] += on_now && !suspended;
		} else if (chance < 85) {
			if (depth[thread] != 0) {
				gt_fake_return();
				depth[thread]--;
			}
		} else if (chance < 93) {
			bool calls_something = (seed >> 50) % 4 != 0;
			uint32_t close = closes ? (uint32_t)(seed >> 53) % 8 : 0;
			struct gt_thread *block = &gt_fake_cpu(cpu)->block;
			gt_fake_interrupt(interrupts[cpu]);
			if (close & 1)
				gt_kernel_close(block);
			if (calls_something) {
				gt_fake_call(IRQ);
				if (close & 2)
					gt_kernel_close(block);
				gt_fake_return();
			}
			if (close & 4)
				gt_kernel_close(block);
			gt_fake_interrupt_end();
			irqs += calls_something && on_now && !suspended;
		} else if (chance == 93 && suspends) {
			suspended = !suspended;
			if (suspended)
				gt_fake_suspend();
			else
				gt_fake_wake();
		} else if (chance == 94 && suspends) {
			on_now = !on_now;
			gt_kernel_set_tracing_on(on_now);
		} else if (chance == 95 && closes) {
			gt_kernel_close(&gt_fake_cpu(cpu)->block);
		} else {
			uint32_t next = (uint32_t)(seed >> 50) % THREADS;
			bool runs = false;
			for (uint32_t i = 0; i < CPUS; i++)
				runs = runs || on[i] == next;
			if (!runs) {
				gt_fake_switch(threads[next], 0);
				on[cpu] = next;
			}
		}
	}
	if (suspended)
		gt_fake_wake();
	gt_kernel_set_tracing_on(true);
	for (uint32_t i = 0; i < THREADS; i++) {
		uint32_t cpu = 0;
		while (cpu < CPUS && on[cpu] != i)
			cpu++;
		if (cpu == CPUS) {
			cpu = i % CPUS;
			gt_fake_run(cpu);
			gt_fake_switch(threads[i], 0);
			on[cpu] = i;
		}
		gt_fake_run(cpu);
		while (depth[i]-- != 0)
			gt_fake_return();
		/* what ended unrecorded is told by the next record */
		assert_true(gt_fake_call(LEAF));
		gt_fake_return();
		calls[i + 1]++;
	}
	struct counted counted = count();
	uint64_t entries = 0;
	for (uint32_t i = 1; i <= THREADS; i++)
		entries += calls[i];
	assert_int_equal(counted.entries[OUTER] + counted.entries[INNER] + counted.entries[LEAF],
			 entries);
	assert_int_equal(counted.entries[IRQ], irqs);
	assert_int_equal(counted.returns[IRQ], irqs);
	if (suspends) {
		uint64_t returns =
			counted.returns[OUTER] + counted.returns[INNER] + counted.returns[LEAF];
		assert_true(counted.unwound > 100);
		assert_int_equal(returns + counted.unwound, entries);
		return;
	}
	assert_int_equal(counted.unwound, 0);
	assert_int_equal(counted.unknown, 0);
	int64_t all = 0;
	for (uint32_t i = 1; i <= THREADS; i++) {
		assert_int_equal(counted.by_thread[i].entries, counted.by_thread[i].returns);
		assert_true(counted.by_thread[i].entries >= (int64_t)calls[i]);
		all += counted.by_thread[i].entries;
	}
	assert_int_equal(all, entries + irqs);
}

static void wandering_threads_balance(void **state)
{
	(void)state;
	wander(1, false, false);
}

static void wandering_threads_balance_where_sub_buffers_end_early(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 5; seed++)
		wander(seed, false, true);
}

static void wandering_threads_that_are_stopped_now_and_then_balance(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 17; seed++)
		wander(seed, true, seed & 1);
}

static void a_full_ring_counts_and_goes_on_when_it_is_read(void **state)
{
	(void)state;
	start(8 * 4096, 4096);
	gt_fake_cpu_start(0, gt_fake_stack(1));
	uint32_t traced = 0;
	for (int i = 0; i < 10000; i++) {
		traced += gt_fake_call(LEAF);
		gt_fake_return();
	}
	assert_true(traced > 1000 && traced < 10000);
	struct counted counted = count();
	assert_int_equal(counted.entries[LEAF], traced);
	assert_int_equal(counted.returns[LEAF], traced);
	struct graftrace_stream *stream = graftrace_arena_streams(ring.arena);
	assert_int_equal(stream->lost[GRAFTRACE_LOST_FULL], 10000 - traced);
	char *text = text_of(GT_MERGE_CONSUME);
	free(text);
	assert_true(gt_fake_call(LEAF));
	gt_fake_return();
	gt_arena_ring_clear(&ring);
	assert_true(ring.arena->sub_buffer_count - ring.arena->free_count <= 2);
}

static void the_function_tracer_says_who_runs(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2);
	gt_kernel_set_tracer(GRAFTRACE_TRACER_FUNCTION);
	gt_fake_cpu_start(0, one);
	assert_false(gt_fake_call(OUTER));
	gt_fake_return();
	gt_fake_switch(two, 0);
	gt_fake_call(INNER);
	gt_fake_return();
	gt_fake_switch(one, 0);
	gt_fake_call(LEAF);
	gt_fake_return();
	char *text = text_of(GT_MERGE_SNAPSHOT);
	assert_non_null(strstr(text, "t1-1"));
	const char *second = strstr(text, "t2-2");
	assert_non_null(second);
	assert_non_null(strstr(second, "inner"));
	assert_non_null(strstr(second, "t1-1"));
	free(text);
}

static void tracing_switched_off_and_on_again(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2);
	gt_fake_cpu_start(0, one);
	gt_fake_call(OUTER);
	gt_kernel_set_tracing_on(false);
	assert_false(gt_fake_call(INNER));
	gt_fake_return();
	gt_fake_switch(two, 0);
	gt_kernel_set_tracing_on(true);
	assert_true(gt_fake_call(LEAF));
	gt_fake_return();
	gt_fake_switch(one, 0);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.by_thread[2].entries, 1);
	assert_int_equal(counted.by_thread[1].returns, 1);
	assert_int_equal(counted.unwound, 0);
}

static void calls_past_the_limit_are_counted(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	gt_fake_cpu_start(0, gt_fake_stack(1));
	uint32_t traced = 0;
	for (int i = 0; i < GT_FAKE_FRAMES + 100; i++)
		traced += gt_fake_call(OUTER);
	assert_int_equal(traced, GT_FAKE_FRAMES - 1);
	for (int i = 0; i < GT_FAKE_FRAMES + 100; i++)
		gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.returns[OUTER], traced);
	assert_int_equal(graftrace_arena_streams(ring.arena)->lost[GRAFTRACE_LOST_DEPTH], 101);
}

static void a_thread_that_never_returns_takes_nobody_with_it(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2);
	gt_fake_cpu_start(0, one);
	gt_fake_call(OUTER);
	gt_fake_call(INNER);
	gt_fake_switch(two, 64); /* it has ended in the middle of its calls */
	gt_fake_call(OUTER);
	gt_fake_call(INNER);
	gt_fake_jump_out(2);
	gt_fake_call(LEAF);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.entries[OUTER], 2);
	assert_int_equal(counted.returns[LEAF], 1);
	assert_int_equal(counted.unwound, 2);
}

/* Calls one function until `words` words at most are left in the open sub-buffer. */
static void fill_up_to(struct gt_thread *block, const uint64_t *cursor, uint32_t words)
{
	while (block->hard_end - *cursor > words * 8ull) {
		gt_fake_call(LEAF);
		if (block->hard_end - *cursor <= words * 8ull)
			break;
		gt_fake_return();
	}
}

/* Wherever between a record's clock and its place a sub-buffer is opened, and whichever read of the
 * clock is the first with another high half. */
static void a_clock_that_turns_over_as_a_sub_buffer_opens_is_told(void **state)
{
	const enum graftrace_tracer tracers[] = { GRAFTRACE_TRACER_FUNCTION_GRAPH,
						  GRAFTRACE_TRACER_FUNCTION };
	const uint64_t turn = (1ull << 40) + (1ull << 32);
	(void)state;
	for (uint32_t round = 0; round < 2 * 8 * 12; round++) {
		uint32_t left = round / 12 % 8, reads = round % 12;
		bool graph = round < 8 * 12;
		start(1 << 20, 4096);
		gt_kernel_set_tracer(tracers[!graph]);
		gt_fake_cpu_start(0, gt_fake_stack(1));
		struct gt_thread *block = &gt_fake_cpu(0)->block;
		gt_fake_clock(turn - 5000);
		gt_fake_call(OUTER);
		gt_fake_call(INNER);
		/* their returns come from an earlier sub-buffer, and open the third one */
		fill_up_to(block, graph ? &block->cur : &block->cur_pair, 0);
		gt_fake_call(LEAF);
		fill_up_to(block, graph ? &block->cur : &block->cur_pair, left);
		gt_fake_clock(turn - reads);
		while (gt_frames_depth(block) != 0)
			gt_fake_return();
		for (int i = 0; i < 8; i++)
			gt_fake_call(LEAF);
		struct counted counted = count();
		assert_int_equal(counted.unwound, 0);
		assert_int_equal(counted.returns[OUTER], graph);
		assert_int_equal(counted.returns[INNER], graph);
		assert_in_range(counted.first, turn - 5000, turn);
		assert_in_range(counted.last, turn - reads, turn + 1000);
	}
}

static void a_clock_that_turns_over_at_a_switch_moves_no_word(void **state)
{
	const uint64_t turn = (1ull << 40) + (1ull << 32);
	(void)state;
	for (uint32_t reads = 0; reads < 6; reads++) {
		start(1 << 20, 4096);
		gt_kernel_set_tracer(GRAFTRACE_TRACER_FUNCTION);
		gt_fake_cpu_start(0, gt_fake_stack(1));
		gt_fake_clock(turn - 5000);
		gt_fake_call(OUTER);
		gt_fake_clock(turn - reads);
		gt_fake_switch(gt_fake_stack(2), 0);
		gt_fake_call(INNER);
		gt_fake_return();
		gt_fake_switch(gt_fake_stack(1), 0);
		gt_fake_call(LEAF);
		char *text = text_of(GT_MERGE_SNAPSHOT);
		const char *inner = strstr(text, " inner <-");
		assert_non_null(inner);
		assert_non_null(strstr(text, "t2-2"));
		assert_non_null(strstr(inner, " leaf <-"));
		assert_null(strstr(text, "function#"));
		free(text);
	}
}

/* ---- suspended: nobody is told what runs ---- */

static void calls_that_are_open_when_suspended_return_recorded_or_not(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *thread = gt_fake_stack(1);
	uint64_t base = 1ull << 40;
	gt_fake_cpu_start(0, thread);
	gt_fake_call(OUTER);
	gt_fake_clock(base + 1000);
	gt_fake_call(INNER);
	gt_fake_call(INNER);
	gt_fake_suspend();
	assert_false(gt_fake_call(LEAF));
	gt_fake_return();
	gt_fake_return(); /* an inner's */
	gt_fake_wake();
	assert_int_equal(gt_frames_depth(&gt_fake_cpu(0)->block), 2);
	gt_fake_clock(base + 4000);
	assert_true(gt_fake_call(LEAF));
	gt_fake_clock(base + 5000);
	gt_fake_return();
	gt_fake_return();
	gt_fake_clock(base + 9000);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.entries[INNER], 2);
	assert_int_equal(counted.returns[INNER], 1);
	assert_int_equal(counted.unwound, 1);
	assert_int_equal(counted.entries[LEAF], 1);
	assert_int_equal(counted.returns[LEAF], 1);
	assert_int_equal(counted.returns[OUTER], 1);
	assert_in_range(counted.total[OUTER], 8900, 9100);
	assert_in_range(counted.total[INNER], 3900, 4100);
}

static void a_thread_that_moves_while_suspended_is_found(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2);
	gt_fake_cpu_start(1, two);
	gt_fake_call(INNER);
	gt_fake_cpu_start(0, one);
	gt_fake_call(OUTER);
	gt_fake_suspend();
	struct gt_fake_stack *three = gt_fake_stack(3);
	gt_fake_switch(three, 0);
	gt_fake_run(1);
	gt_fake_switch(one, 0);
	gt_fake_run(0);
	gt_fake_switch(two, 0);
	gt_fake_wake();
	gt_fake_call(LEAF);
	gt_fake_return();
	gt_fake_return(); /* inner, there */
	gt_fake_run(1);
	gt_fake_return(); /* outer, here */
	gt_fake_switch(three, 0);
	gt_fake_call(LEAF);
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.by_thread[1].returns, 1);
	assert_int_equal(counted.by_thread[2].returns, 2);
	assert_int_equal(counted.by_thread[3].returns, 1);
	assert_int_equal(counted.unwound, 0);
	assert_int_equal(counted.returns[OUTER], 1);
	assert_int_equal(counted.returns[INNER], 1);
}

/* Stopped in one interrupt and woken in the next, as by whoever patches from another CPU. */
/* Both stopped in their straight lines: a thread, and an interrupt. What they popped when they went
 * on was the block's; where they are taken up again it has to be known as popped. */
static void a_return_that_its_cpus_suspension_interrupted_is_over(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2),
			     *interrupt = gt_fake_stack(INTERRUPT_STACK);
	struct gt_thread *block = &gt_fake_cpu(0)->block;
	for (int in_interrupt = 0; in_interrupt < 2; in_interrupt++) {
		if (!in_interrupt)
			gt_fake_cpu_start(0, one);
		gt_fake_call(OUTER);
		if (in_interrupt)
			gt_fake_interrupt(interrupt);
		struct gt_fake_stack *running = gt_fake_cpu(0)->running;
		uint32_t depth = gt_frames_depth(block);
		gt_fake_call(INNER);
		gt_fake_suspend();
		running->context.top->slot = GT_SLOT_NONE;
		running->sp += 64;
		if (in_interrupt)
			gt_fake_interrupt_end();
		else
			gt_fake_switch(two, 0);
		gt_fake_wake();
		if (in_interrupt)
			gt_fake_interrupt(interrupt);
		else
			gt_fake_switch(one, 0);
		assert_int_equal(gt_frames_depth(block), depth);
		assert_true(gt_fake_call(LEAF));
		assert_int_equal(gt_frames_depth(block), depth + 1);
		gt_fake_return();
		if (in_interrupt)
			gt_fake_interrupt_end();
		gt_fake_return();
		assert_int_equal(gt_frames_depth(block), 0);
	}
}

static void an_interrupt_can_be_suspended_and_woken_in(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *thread = gt_fake_stack(1),
			     *interrupt = gt_fake_stack(INTERRUPT_STACK);
	gt_fake_cpu_start(0, thread);
	gt_fake_call(OUTER);
	gt_fake_interrupt(interrupt);
	gt_fake_call(IRQ);
	gt_fake_suspend();
	gt_fake_return();
	gt_fake_interrupt_end();
	assert_ptr_equal(interrupt->context.top, interrupt->context.frames);
	gt_fake_call(INNER);
	gt_fake_interrupt(interrupt);
	gt_fake_wake();
	assert_true(gt_fake_call(IRQ));
	gt_fake_return();
	gt_fake_interrupt_end();
	assert_true(gt_fake_call(LEAF));
	gt_fake_return();
	gt_fake_return();
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.entries[IRQ], 2);
	assert_int_equal(counted.returns[IRQ], 1);
	assert_int_equal(counted.entries[INNER], 0);
	assert_int_equal(counted.returns[LEAF], 1);
	assert_int_equal(counted.returns[OUTER], 1);
	assert_int_equal(counted.unwound, 1);
}

/* The word that the stopped interrupt had said is old by the time it ends: a thread that has come
 * since would be taken from where it still recorded. */
static void a_thread_that_moves_under_a_stopped_interrupt_keeps_its_calls(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *one = gt_fake_stack(1), *two = gt_fake_stack(2),
			     *three = gt_fake_stack(3), *interrupt = gt_fake_stack(INTERRUPT_STACK);
	gt_fake_cpu_start(1, two);
	gt_fake_call(OUTER);
	gt_fake_cpu_start(0, one);
	words_of_interrupt(interrupt, true);
	gt_fake_run(1);
	gt_fake_call(INNER);
	gt_fake_return();
	gt_fake_run(0);
	gt_fake_interrupt(interrupt);
	gt_fake_suspend();
	gt_fake_interrupt_end();
	gt_fake_run(1);
	gt_fake_switch(three, 0);
	gt_fake_run(0);
	gt_fake_switch(two, 0);
	gt_fake_interrupt(interrupt);
	gt_fake_wake();
	gt_fake_interrupt_end();
	gt_fake_call(LEAF);
	gt_fake_return();
	gt_fake_return();
	struct counted counted = count();
	assert_int_equal(counted.by_thread[2].entries, 3);
	assert_int_equal(counted.by_thread[2].returns, 3);
	assert_int_equal(counted.unwound, 0);
	assert_int_equal(counted.unknown, 0);
	assert_in_range(counted.self[OUTER] + counted.total[INNER] + counted.total[LEAF],
			counted.total[OUTER], counted.total[OUTER]);
}

/* What an interrupt had open when its CPU was suspended is over before it comes the next time. */
static void a_call_of_a_suspended_interrupt_is_closed_when_it_comes_again(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	struct gt_fake_stack *interrupt = gt_fake_stack(INTERRUPT_STACK);
	gt_fake_cpu_start(0, gt_fake_stack(1));
	gt_fake_interrupt(interrupt);
	gt_fake_call(IRQ);
	gt_fake_suspend();
	gt_fake_return();
	gt_fake_interrupt_end();
	gt_fake_interrupt(interrupt);
	gt_fake_wake();
	gt_fake_interrupt_end();
	for (int i = 0; i < 2; i++)
		words_of_interrupt(interrupt, true);
	struct counted counted = count();
	assert_int_equal(counted.entries[IRQ], 3);
	assert_int_equal(counted.returns[IRQ], 2);
	assert_int_equal(counted.unwound, 1);
}

static void a_pause_counts_while_suspended(void **state)
{
	(void)state;
	start(1 << 20, 4096);
	gt_fake_cpu_start(0, gt_fake_stack(1));
	gt_kernel_pause();
	gt_fake_suspend();
	gt_kernel_pause();
	gt_kernel_resume();
	gt_fake_wake();
	assert_false(gt_fake_call(OUTER));
	gt_fake_return();
	gt_fake_suspend();
	gt_kernel_resume();
	gt_fake_wake();
	assert_true(gt_fake_call(OUTER));
	gt_fake_return();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_recorded),
		cmocka_unit_test(switches_are_shown_as_linux_shows_them),
		cmocka_unit_test(a_thread_that_moves_in_mid_call_keeps_its_calls),
		cmocka_unit_test(
			a_clock_that_is_ahead_is_found_and_a_call_across_it_takes_its_time),
		cmocka_unit_test(interrupts_nest_in_calls_and_in_each_other),
		cmocka_unit_test(an_interrupt_that_records_nothing_leaves_no_trace),
		cmocka_unit_test(an_interrupt_that_recorded_is_told_of_when_it_comes_again),
		cmocka_unit_test(an_nmi_in_the_slow_half_is_not_let_in),
		cmocka_unit_test(a_paused_context_records_nothing_but_its_returns),
		cmocka_unit_test(wandering_threads_balance),
		cmocka_unit_test(wandering_threads_balance_where_sub_buffers_end_early),
		cmocka_unit_test(a_full_ring_counts_and_goes_on_when_it_is_read),
		cmocka_unit_test(the_function_tracer_says_who_runs),
		cmocka_unit_test(tracing_switched_off_and_on_again),
		cmocka_unit_test(calls_past_the_limit_are_counted),
		cmocka_unit_test(a_thread_that_never_returns_takes_nobody_with_it),
		cmocka_unit_test(a_clock_that_turns_over_as_a_sub_buffer_opens_is_told),
		cmocka_unit_test(a_clock_that_turns_over_at_a_switch_moves_no_word),
		cmocka_unit_test(calls_that_are_open_when_suspended_return_recorded_or_not),
		cmocka_unit_test(a_thread_that_moves_while_suspended_is_found),
		cmocka_unit_test(a_return_that_its_cpus_suspension_interrupted_is_over),
		cmocka_unit_test(an_interrupt_can_be_suspended_and_woken_in),
		cmocka_unit_test(a_thread_that_moves_under_a_stopped_interrupt_keeps_its_calls),
		cmocka_unit_test(a_call_of_a_suspended_interrupt_is_closed_when_it_comes_again),
		cmocka_unit_test(a_pause_counts_while_suspended),
		cmocka_unit_test(wandering_threads_that_are_stopped_now_and_then_balance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
