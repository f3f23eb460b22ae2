/* SPDX-License-Identifier: MIT */
/* Static events of a kernel: sites that are patched, fields, contexts, a full ring; latencies. On port/fake, read
 * back through the viewer. */
#include "tests/unit/fake_shop.h"

#include <stdio.h>
#include <string.h>
#include "core/record/arch.h"
#include "core/record/latency.h"
#include "port/fake/fake.h"

#define INTERRUPT_STACK (GT_KERNEL_INTERRUPT + 1)

static void an_event_that_is_off_evaluates_nothing(void **state)
{
	(void)state;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	sell(3, "bread");
	assert_int_equal(evaluated, 0);
	assert_null(strstr(get("trace"), "sold"));
	put("current_tracer", "nop");
	assert_int_equal(put("set_event", "shop:sold"), 0);
	sell(3, "bread");
	assert_int_equal(evaluated, 1);
	assert_non_null(strstr(get("trace"), ": sold: pieces=3 what=\"bread\"\n"));
	assert_int_equal(put("set_event", "!shop:sold"), 0);
	sell(4, "bread");
	assert_int_equal(evaluated, 1);
}

static void places_of_one_name_are_one_event(void **state)
{
	(void)state;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	put("current_tracer", "nop");
	assert_string_equal(get("available_events"),
			    "door:locked\npreemptirq:irq_disable\npreemptirq:irq_enable\n"
			    "preemptirq:preempt_disable\npreemptirq:preempt_enable\n"
			    "shop:opened\nshop:sold\n");
	assert_string_equal(get("events/enable"), "0\n");
	assert_int_equal(put("events/shop/enable", "1"), 0);
	assert_string_equal(get("events/shop/enable"), "1\n");
	assert_string_equal(get("events/enable"), "X\n");
	assert_string_equal(get("set_event"), "shop:opened\nshop:sold\n");
	sell(-3, "a longer name");
	sell_elsewhere(5);
	open_door();
	lock_door(0, 0);
	const char *text = get("trace");
	assert_non_null(strstr(text, ": sold: pieces=-3 what=\"a longer name\"\n"));
	assert_non_null(strstr(text, ": sold: pieces=5 what=(fault)\n"));
	assert_non_null(strstr(text, ": opened:\n"));
	assert_null(strstr(text, "none"));
	assert_int_equal(put("set_event", "nobody:*"), GT_EINVAL);
}

static void an_event_says_how_it_is_printed(void **state)
{
	(void)state;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	put("current_tracer", "nop");
	assert_int_equal(put("events/door/locked/enable", "1"), 0);
	lock_door(11, 1);
	lock_door(0, 7);
	lock_door(64, 0);
	const char *text = get("trace");
	assert_non_null(strstr(text, ": 100% A|B|C high 01 001 254,3 %(nothing)\n"));
	assert_non_null(strstr(text, ": 100% none 7 07 007 254,3 %(nothing)\n"));
	assert_non_null(strstr(text, ": 100% 0x40 low 00 000 254,3 %(nothing)\n"));
	text = get("events/door/locked/format");
	assert_non_null(strstr(text, "field:unsigned char level;\toffset:16;\tsize:1;\tsigned:0;"));
	assert_non_null(strstr(
		text,
		"print fmt: \"100%% %s %s %02x %03u %d,%d %(nothing)\", REC->flags ? "
		"__print_flags(REC->flags, \"|\", { 1, \"A\" }, { 2, \"B\" }, { 8, \"C\" }) : "
		"\"none\", __print_symbolic(REC->level, { 0, \"low\" }, { 1, \"high\" }), "
		"REC->level, REC->level, ((unsigned int) ((REC->dev) >> 20)), "
		"((unsigned int) ((REC->dev) & ((1U << 20) - 1)))"));
}

static void the_cpus_state_stands_in_the_line(void **state)
{
	struct gt_fake_stack *thread = gt_fake_stack(1),
			     *interrupt = gt_fake_stack(INTERRUPT_STACK);
	(void)state;
	gt_fake_cpu_start(0, thread);
	put("current_tracer", "nop");
	put("set_event", "shop:sold");
	sell(1, "x");
	gt_fake_cpu(0)->interrupts_off = true;
	gt_fake_cpu(0)->state = GRAFTRACE_STATE_NEED_RESCHED | 2u << GRAFTRACE_STATE_PREEMPT;
	sell(2, "x");
	gt_fake_interrupt(interrupt);
	sell(3, "x");
	gt_fake_interrupt_end();
	const char *text = get("trace");
	assert_non_null(strstr(text, "t1-1       [000] .....     0.000"));
	assert_non_null(strstr(text, "t1-1       [000] dN.2.     0.000"));
	assert_non_null(strstr(text, "t1-1       [000] dNh2.     0.000"));
	assert_null(strstr(text, "====")); /* an interrupt is no line without a call graph */
}

static void events_stand_in_the_call_graph(void **state)
{
	(void)state;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	put("set_event", "shop:sold");
	gt_fake_call(1);
	sell(7, "x");
	gt_fake_call(2);
	gt_fake_return();
	gt_fake_return();
	const char *text = get("trace");
	const char *line = strstr(text, "|  /* sold: pieces=7 what=\"x\" */\n");
	assert_non_null(line);
	assert_true(strstr(text, "outer() {") < line && line < strstr(text, "inner();"));
}

static void a_paused_context_records_none(void **state)
{
	(void)state;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	put("current_tracer", "nop");
	put("set_event", "shop:sold");
	gt_kernel_pause();
	sell(1, "x");
	gt_kernel_resume();
	put("tracing_on", "0");
	sell(2, "x");
	put("tracing_on", "1");
	sell(3, "x");
	const char *text = get("trace");
	assert_null(strstr(text, "pieces=1"));
	assert_null(strstr(text, "pieces=2"));
	assert_non_null(strstr(text, "pieces=3"));
}

static void a_full_ring_counts_what_it_loses(void **state)
{
	static const char *const tracers[] = { "nop", "function", "function_graph" };
	(void)state;
	for (int i = 0; i < 3; i++) {
		start_shop(NULL);
		gt_fake_cpu_start(0, gt_fake_stack(1));
		put("current_tracer", tracers[i]);
		put("set_event", "shop:sold");
		for (int n = 0; n < 20000; n++)
			sell(n, "bread and butter");
		const struct graftrace_stream *stream = graftrace_arena_streams(gt_fake_arena());
		uint64_t kept = records();
		assert_true(kept > 1000);
		assert_int_equal(kept + stream->lost_events, 20000);
	}
}

static void an_overwriting_ring_keeps_the_newest(void **state)
{
	(void)state;
	gt_fake_cpu_start(0, gt_fake_stack(1));
	put("current_tracer", "nop");
	put("options/overwrite", "1");
	put("set_event", "shop:sold");
	for (int n = 0; n < 20000; n++)
		sell(n, "x");
	assert_non_null(strstr(get("trace"), "pieces=19999"));
	const struct graftrace_stream *stream = graftrace_arena_streams(gt_fake_arena());
	assert_int_equal(records() + stream->lost[GRAFTRACE_LOST_OVERRUN], 20000);
}

/* ---- latencies ---- */

static void irqs_off(uint64_t us)
{
	const uint64_t start = gt_arch_clock();
	GT_LATENCY_IRQS_OFF(true);
	gt_fake_call(1);
	gt_fake_return();
	gt_fake_clock(start + 1 + us * 1000);
	GT_LATENCY_IRQS_ON(true);
}

static void preempt_off(uint64_t us)
{
	const uint64_t start = gt_arch_clock();
	GT_LATENCY_PREEMPT_OFF(true);
	gt_fake_call(2);
	gt_fake_return();
	gt_fake_clock(start + 1 + us * 1000);
	GT_LATENCY_PREEMPT_ON(true);
}

static void measure(const char *tracer)
{
	gt_fake_cpu_start(0, gt_fake_stack(1));
	gt_fake_clock(1ull << 41);
	assert_int_equal(put("current_tracer", tracer), 0);
}

static void the_longest_time_without_interrupts_is_the_trace(void **state)
{
	(void)state;
	measure("irqsoff");
	assert_string_equal(get("current_tracer"), "irqsoff\n");
	assert_string_equal(get("options/latency-format"), "1\n");
	assert_string_equal(get("tracing_max_latency"), "0\n");
	assert_string_equal(get("trace"), "# tracer: irqsoff\n#\n");
	irqs_off(50);
	irqs_off(70);
	irqs_off(60);
	preempt_off(900);
	assert_string_equal(get("tracing_max_latency"), "70\n");
	const char *text = get("trace");
	assert_ptr_equal(strstr(text, "# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on "),
			 text);
	assert_non_null(strstr(text, "\n# latency: 70 us, #3/3, CPU#0 | (M:preempt "));
	assert_non_null(strstr(text, "\n#    | task: t1-1 (uid:0 "));
	assert_non_null(strstr(text, "\n#  => started at: "));
	assert_non_null(strstr(text, "\n#  => ended at:   "));
	assert_non_null(strstr(text, " 0d....    0us+: "));
	assert_non_null(strstr(text, " 0d....   70us : "));
	assert_non_null(strstr(text, ": outer <-"));
	assert_null(strstr(text, "inner"));
	assert_int_equal(put("current_tracer", "nop"), 0);
	assert_string_equal(get("options/latency-format"), "0\n");
}

static void preemption_and_both_are_measured_together(void **state)
{
	(void)state;
	measure("preemptoff");
	irqs_off(900);
	preempt_off(40);
	assert_string_equal(get("tracing_max_latency"), "40\n");
	assert_non_null(strstr(get("trace"), ": inner <-"));
	assert_int_equal(put("current_tracer", "preemptirqsoff"), 0);
	assert_string_equal(get("tracing_max_latency"), "0\n");
	GT_LATENCY_PREEMPT_OFF(true);
	irqs_off(30);
	preempt_off(20); /* an edge of what is off already */
	irqs_off(10);
	assert_string_equal(get("tracing_max_latency"), "50\n");
	assert_non_null(strstr(get("trace"), ": outer <-"));
	assert_non_null(strstr(get("trace"), ": inner <-"));
}

static void the_longest_is_looked_for_anew(void **state)
{
	(void)state;
	measure("irqsoff");
	irqs_off(70);
	assert_int_equal(put("tracing_max_latency", "0"), 0);
	irqs_off(20);
	assert_string_equal(get("tracing_max_latency"), "20\n");
	assert_non_null(strstr(get("trace"), "\n# latency: 20 us, "));
	assert_int_equal(put("tracing_max_latency", "30"), 0);
	irqs_off(25);
	assert_non_null(strstr(get("trace"), "\n# latency: 20 us, "));
	assert_int_equal(put("trace", ""), 0); /* the case goes, its time stays */
	assert_string_equal(get("trace"), "# tracer: irqsoff\n#\n");
	assert_string_equal(get("tracing_max_latency"), "30\n");
	assert_int_equal(put("tracing_thresh", "15"), 0);
	irqs_off(14);
	assert_string_equal(get("trace"), "# tracer: irqsoff\n#\n");
	irqs_off(17);
	irqs_off(16);
	assert_non_null(strstr(get("trace"), "\n# latency: 16 us, "));
	assert_string_equal(get("tracing_max_latency"), "16\n");
	assert_int_equal(put("tracing_on", "0"), 0);
	irqs_off(90);
	assert_string_equal(get("tracing_max_latency"), "16\n");
	assert_int_equal(put("tracing_max_latency", "often"), GT_EINVAL);
	assert_int_equal(put("tracing_thresh", "0"), 0);
	assert_int_equal(put("tracing_on", "1"), 0);
}

/* … while the ring is written over many times. */
static void the_worst_case_is_kept_whole(void **state)
{
	(void)state;
	measure("irqsoff");
	GT_LATENCY_IRQS_OFF(true);
	for (int i = 0; i < 2000; i++) { /* some sub-buffers */
		gt_fake_call(1);
		gt_fake_return();
	}
	gt_fake_clock((1ull << 41) + 99000);
	GT_LATENCY_IRQS_ON(true);
	for (int i = 0; i < 200000; i++) {
		gt_fake_call(2);
		gt_fake_return();
	}
	const char *text = get("trace");
	assert_non_null(strstr(text, "\n# latency: 99 us, #2002/2002, CPU#0"));
	int found = 0;
	for (const char *at = text; (at = strstr(at, ": outer <-")) != NULL; at++)
		found++;
	assert_int_equal(found, 2000);
	assert_null(strstr(text, "inner"));
	assert_int_equal(put("snapshot", "1"), GT_EBUSY);
	struct gt_control_node pipe = node("trace_pipe");
	static struct gt_control_handle handle;
	struct gt_message message;
	assert_int_equal(gt_control_open(&handle, &pipe, GT_CONTROL_READ, &message), GT_EBUSY);
	assert_int_equal(put("current_tracer", "nop"), 0);
}

static void a_latency_is_shown_as_a_graph_or_without_functions(void **state)
{
	(void)state;
	measure("irqsoff");
	assert_int_equal(put("options/display-graph", "1"), 0);
	irqs_off(70);
	const char *text = get("trace");
	assert_non_null(strstr(text, "\n#   REL TIME      CPU  TASK/PID       ||||     DURATION "));
	assert_non_null(
		strstr(text, "        0 us |   0)      t1-1      |  d.... |   0.000 us    |  "));
	assert_non_null(strstr(text, "|  outer();\n"));
	assert_non_null(strstr(text, "       70 us |   0) "));
	assert_non_null(strstr(text, "\n# latency: 70 us, #4/4, CPU#0"));
	assert_int_equal(put("options/display-graph", "0"), 0);
	assert_string_equal(get("tracing_max_latency"), "0\n");
	assert_int_equal(put("options/function-trace", "0"), 0);
	assert_int_equal(wanted_functions, 0);
	assert_int_equal(put("options/function-trace", "1"), 0);
	assert_int_equal(wanted_functions, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start_shop, finish_shop)
	const struct CMUnitTest tests[] = {
		TEST(an_event_that_is_off_evaluates_nothing),
		TEST(places_of_one_name_are_one_event),
		TEST(an_event_says_how_it_is_printed),
		TEST(the_cpus_state_stands_in_the_line),
		TEST(events_stand_in_the_call_graph),
		TEST(a_paused_context_records_none),
		TEST(a_full_ring_counts_what_it_loses),
		TEST(an_overwriting_ring_keeps_the_newest),
		TEST(the_longest_time_without_interrupts_is_the_trace),
		TEST(preemption_and_both_are_measured_together),
		TEST(the_longest_is_looked_for_anew),
		TEST(the_worst_case_is_kept_whole),
		TEST(a_latency_is_shown_as_a_graph_or_without_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
