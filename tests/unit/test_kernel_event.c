/* SPDX-License-Identifier: MIT */
/* Static events of a kernel: sites that are patched, fields, contexts, a full ring. On port/fake, read
 * back through the viewer. The sites are this test's own text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#define GRAFTRACE_KERNEL
#include <graftrace/event.h>
#include "core/kernel/kernel_control.h"
#include "core/record/arch.h"
#include "core/record/latency.h"
#include "core/record/port.h"
#include "core/record/sites.h"
#include "port/fake/fake.h"
#include "port/host/memory.h"

extern const struct graftrace_event_site __start___graftrace_events[], __stop___graftrace_events[];

#define INTERRUPT_STACK (GT_KERNEL_INTERRUPT + 1)

static struct gt_sites sites;
static struct graftrace_kernel_event *events[16];
static uint8_t states[16];
static struct gt_arena_ring ring;
static struct gt_arena_control control;
static int wanted_functions;
static int evaluated; /* how often a field's value was asked for */

static int count(int value)
{
	evaluated++;
	return value;
}

static __attribute__((noinline)) void sell(int pieces, const char *what)
{
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, pieces, count(pieces)),
			GRAFTRACE_STRING(what, what));
}

static __attribute__((noinline)) void sell_elsewhere(int pieces)
{
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, pieces, pieces),
			GRAFTRACE_STRING(what, NULL));
}

static __attribute__((noinline)) void open_door(void)
{
	GRAFTRACE_EVENT0(shop, opened);
}

static __attribute__((noinline)) void lock_door(unsigned flags, unsigned char level)
{
	GRAFTRACE_EVENT_PRINTED(door, locked,
				"!100%% %(flags:|1=A,2=B,8=C?none) %(level:0=low,1=high) "
				"%(level:02x) %(level:03) %(dev:/MM),%(dev:/mm) %(nothing)",
				GRAFTRACE_INT(unsigned, flags, flags),
				GRAFTRACE_INT(unsigned char, level, level),
				GRAFTRACE_INT(unsigned, dev, 254u << 20 | 3));
}

/* ---- the machine ---- */

void gt_port_cpus_stop(void)
{
}

void gt_port_cpus_start(void)
{
}

/* This process's text is its own. */
void gt_port_text_write(uint64_t address, const void *bytes, size_t length)
{
	uint64_t page = address & ~4095ull;
	assert_int_equal(mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy((void *)address, bytes, length);
	assert_int_equal(mprotect((void *)page, 8192, PROT_READ | PROT_EXEC), 0);
}

void gt_arch_site_jump(uint8_t bytes[GT_SITE_BYTES], uint64_t site, uint64_t stub)
{
	uint32_t distance = (uint32_t)(stub + GT_STUB_START - (site + GT_SITE_BYTES));
	bytes[0] = 0xe9;
	memcpy(bytes + 1, &distance, 4);
}

void gt_arch_site_nop(uint8_t bytes[GT_SITE_BYTES])
{
	memcpy(bytes, "\x0f\x1f\x44\0\0", GT_SITE_BYTES);
}

bool gt_arch_site_is_room(const uint8_t bytes[GT_SITE_BYTES])
{
	(void)bytes;
	return false;
}

void gt_arch_stub_head_write(uint8_t bytes[GT_STUB_HEAD], uint64_t at)
{
	(void)bytes, (void)at;
}

void gt_arch_stub_write(uint8_t bytes[GT_STUB_BYTES], uint64_t at, uint32_t number,
			enum graftrace_entry kind, uint64_t body)
{
	(void)bytes, (void)at, (void)number, (void)kind, (void)body;
}

void gt_arch_stubs_at(uint64_t first, uint64_t bytes)
{
	(void)first, (void)bytes;
}

static int function(void *data, uint32_t number, struct gt_function *out)
{
	static const char *const names[] = { "outer", "inner" };
	(void)data;
	if (number - 1 >= 2)
		return GT_ENOENT;
	*out = (struct gt_function){ .name = names[number - 1], .object = "kernel" };
	return GT_OK;
}

static int function_at(void *data, uint64_t address, struct gt_function *out)
{
	(void)data, (void)address, (void)out;
	return GT_ENOENT;
}

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data;
	snprintf(comm, 16, "t%u", tid);
	return GT_OK;
}

static int event(void *data, uint32_t number, struct gt_event_format *format)
{
	const struct graftrace_kernel_event *found = gt_sites_event(&sites, number);
	(void)data;
	if (found == NULL)
		return GT_ENOENT;
	gt_event_of_kernel(found, format);
	return GT_OK;
}

static void lock(void *data)
{
	(void)data;
}

static void set_tracing_on(void *data, bool on)
{
	(void)data;
	gt_kernel_set_tracing_on(on);
}

static void set_tracer(void *data, enum graftrace_tracer tracer)
{
	(void)data;
	gt_kernel_set_tracer(tracer);
}

static void patch(void *data, const uint8_t *wanted)
{
	(void)data;
	wanted_functions = 0;
	for (int i = 0; i < 2; i++)
		wanted_functions += wanted[i] != GRAFTRACE_ENTRY_OFF;
}

static void patch_events(void *data, const uint8_t *wanted)
{
	(void)data;
	gt_sites_apply_events(&sites, wanted);
}

static void set_threshold(void *data, uint64_t ticks)
{
	(void)data;
	gt_kernel_set_threshold(ticks);
}

static void latency_measure(void *data, uint32_t kinds)
{
	(void)data;
	gt_latency_measure(kinds);
}

static void latency_set_threshold(void *data, uint64_t ticks)
{
	(void)data;
	gt_latency_set_threshold(ticks);
}

static void latency_set_max(void *data, uint64_t ticks)
{
	(void)data;
	gt_latency_set_max(ticks);
}

static void latency_keep(void *data, bool keep)
{
	(void)data;
	gt_latency_keep(keep);
}

static uint64_t latency_max(void *data)
{
	(void)data;
	return gt_latency_max();
}

static bool latency_worst(void *data, struct graftrace_latency *worst)
{
	(void)data;
	return gt_latency_worst(worst);
}

static uint64_t now_ns(void *data)
{
	(void)data;
	return 0;
}

static uint32_t thread_number(void *data, uint32_t index)
{
	(void)data;
	return index < 3 ? index + 1 : 0;
}

/* A kernel's control files live as long as the kernel: what they have allocated is freed between tests. */
static void *pieces[1024];

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	size_t i = 0;
	(void)data, (void)old_bytes;
	while (i < sizeof(pieces) / sizeof(*pieces) && pieces[i] != memory)
		i++;
	assert_true(i < sizeof(pieces) / sizeof(*pieces));
	if (new_bytes == 0) {
		free(memory);
		pieces[i] = NULL;
		return NULL;
	}
	void *const grown = realloc(memory, new_bytes);
	if (grown != NULL)
		pieces[i] = grown;
	return grown;
}

static const struct gt_memory kernels_memory = { .resize = resize };

static int finish(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		free(pieces[i]);
		pieces[i] = NULL;
	}
	return 0;
}

static bool has_rules = true; /* there is memory for filters and triggers */
static int watched;	      /* how often a thread was wanted that carries triggers out */

static void watch(void *data)
{
	(void)data;
	watched++;
}

static void note(uint32_t action)
{
	gt_arena_control_note(&control, action);
}

static int start(void **state)
{
	static const struct gt_arena_names names = { .function = function,
						     .function_at = function_at,
						     .thread = thread_name,
						     .event = event };
	static const struct gt_arena_machine machine = { .lock = lock,
							 .unlock = lock,
							 .set_tracing_on = set_tracing_on,
							 .set_tracer = set_tracer,
							 .patch = patch,
							 .patch_events = patch_events,
							 .set_threshold = set_threshold,
							 .latency_measure = latency_measure,
							 .latency_set_threshold =
								 latency_set_threshold,
							 .latency_set_max = latency_set_max,
							 .latency_keep = latency_keep,
							 .latency_max = latency_max,
							 .latency_worst = latency_worst,
							 .now_ns = now_ns,
							 .thread_number = thread_number,
							 .watch = watch };
	static const uint8_t none[16];
	finish(state); /* of a start before */
	gt_fake_start(1 << 18, 4096);
	if (sites.event_count != 0)
		gt_sites_apply_events(&sites, none);
	gt_sites_events_init(&sites, __start___graftrace_events,
			     (uint32_t)(__stop___graftrace_events - __start___graftrace_events),
			     events, states);
	memset(&ring, 0, sizeof(ring));
	ring.arena = gt_fake_arena();
	if (has_rules)
		gt_fake_rules(16, 800u << 10);
	ring.names = &names;
	ring.clock = (struct gt_clock){ .tsc_base = 1ull << 40, .mult = 1 };
	assert_int_equal(
		gt_arena_control_init(&control, &ring, &machine, &kernels_memory, 2, "fake"), 0);
	evaluated = 0;
	return 0;
}

static struct gt_control_node node(const char *path)
{
	struct gt_control_node found;
	assert_int_equal(gt_control_find(&control.control, path, strlen(path), &found), 0);
	return found;
}

static int put(const char *path, const char *text)
{
	struct gt_message message = { 0 };
	struct gt_control_node found = node(path);
	return gt_control_put(&found, true, text, strlen(text), &message);
}

/* A control file as it reads now; one buffer for all. */
static char *get(const char *path)
{
	static char text[4 << 20];
	static struct gt_control_handle handle;
	struct gt_message message;
	struct gt_control_node found = node(path);
	size_t length = 0;
	assert_int_equal(gt_control_open(&handle, &found, GT_CONTROL_READ, &message), 0);
	for (;;) {
		int64_t got = gt_control_read(&handle, text + length, sizeof(text) - 1 - length,
					      &message);
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	gt_control_close(&handle, &message);
	text[length] = 0;
	return text;
}

/* ---- tests ---- */

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

static uint64_t records(void)
{
	static struct gt_arena_target target;
	struct gt_merge merge;
	struct gt_source *source;
	uint64_t found = 0;
	gt_arena_target_init(&target, &ring);
	assert_int_equal(
		gt_merge_init(&merge, &target.target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL), 0);
	while (gt_merge_next(&merge, &source) > 0)
		found += source->record.kind == GT_RECORD_EVENT;
	assert_int_equal(merge.damaged, 0);
	assert_int_equal(merge.unknown, 0);
	gt_merge_fini(&merge);
	return found;
}

/* With each tracer's kind of sub-buffer. */
static void a_full_ring_counts_what_it_loses(void **state)
{
	static const char *const tracers[] = { "nop", "function", "function_graph" };
	(void)state;
	for (int i = 0; i < 3; i++) {
		start(NULL);
		gt_fake_cpu_start(0, gt_fake_stack(1));
		put("current_tracer", tracers[i]);
		put("set_event", "shop:sold");
		for (int n = 0; n < 20000; n++)
			sell(n, "bread and butter");
		const struct graftrace_stream *stream = graftrace_arena_streams(ring.arena);
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
	const struct graftrace_stream *stream = graftrace_arena_streams(ring.arena);
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

/* ---- filters, triggers, histograms ---- */

static void begin_selling(void)
{
	gt_fake_cpu_start(0, gt_fake_stack(7));
	put("current_tracer", "nop");
	put("set_event", "shop:sold");
}

static bool is_in(const char *path, const char *text)
{
	return strstr(get(path), text) != NULL;
}

static void a_filter_leaves_events_out(void **state)
{
	(void)state;
	begin_selling();
	assert_string_equal(get("events/shop/sold/filter"), "none\n");
	assert_int_equal(put("events/shop/sold/filter", "pieces > 3 && what ~ \"b*\""), 0);
	assert_string_equal(get("events/shop/sold/filter"), "pieces > 3 && what ~ \"b*\"\n");
	sell(3, "bread");
	sell(4, "bread");
	sell(5, "salt");
	assert_string_equal(get("set_event"), "shop:sold\n");
	assert_int_equal(records(), 1);
	assert_true(is_in("trace", ": sold: pieces=4 what=\"bread\"\n"));
	assert_int_equal(put("events/shop/sold/filter", "0"), 0);
	sell(1, "salt");
	assert_int_equal(records(), 2);
}

static void a_filter_asks_which_thread_it_is(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/filter", "common_pid == 8 && COMM == \"t8\" && CPU == 0"),
			 0);
	sell(1, "x");
	gt_fake_switch(gt_fake_stack(8), 1);
	sell(2, "x");
	gt_fake_switch(gt_fake_stack(9), 1);
	sell(3, "x");
	assert_int_equal(records(), 1);
	assert_true(is_in("trace", "pieces=2"));
}

static void a_filter_that_is_refused_says_where(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/filter", "price > 3"), GT_EINVAL);
	assert_string_equal(get("events/shop/sold/filter"),
			    "price > 3\n      ^\nparse_error: Field not found\n\n");
	assert_true(is_in("error_log", "event filter parse error: error: Field not found"));
	sell(1, "x");
	assert_int_equal(records(), 1);
}

static void triggers_switch_tracing_as_often_as_they_say(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/trigger", "traceoff:1 if pieces == 4"), 0);
	assert_int_equal(put("events/door/locked/trigger", "traceon"), 0);
	assert_string_equal(get("events/shop/sold/trigger"), "traceoff:count=1 if pieces == 4\n");
	assert_string_equal(get("events/shop/sold/enable"), "1*\n");
	assert_string_equal(get("events/door/locked/enable"), "0*\n");
	for (int n = 3; n < 6; n++)
		sell(n, "x");
	assert_string_equal(get("tracing_on"), "0\n");
	lock_door(0, 0); /* is not recorded, but acts */
	assert_string_equal(get("tracing_on"), "1\n");
	for (int n = 3; n < 6; n++)
		sell(n, "x");
	assert_string_equal(get("events/shop/sold/trigger"), "traceoff:count=0 if pieces == 4\n");
	assert_int_equal(records(), 5);
	assert_false(is_in("trace", "locked"));
	assert_int_equal(put("events/shop/sold/trigger", "!traceoff"), 0);
	assert_int_equal(put("events/door/locked/trigger", "!traceon"), 0);
	assert_string_equal(get("events/door/locked/enable"), "0\n");
	assert_string_equal(get("events/door/locked/trigger"),
			    "# Available triggers:\n# traceon traceoff snapshot stacktrace "
			    "enable_event disable_event enable_hist disable_hist hist\n");
	lock_door(0, 0);
	assert_int_equal(records(), 5);
}

static void a_trigger_enables_another_event(void **state)
{
	(void)state;
	begin_selling();
	assert_int_equal(put("events/shop/sold/trigger", "enable_event:shop:opened if pieces > 1"),
			 0);
	assert_int_equal(put("events/door/locked/trigger", "disable_event:shop:opened:1"), 0);
	assert_int_equal(put("events/door/locked/trigger", "enable_event:shop:nothing"), GT_EINVAL);
	open_door();
	sell(1, "x");
	open_door();
	assert_string_equal(get("events/shop/opened/enable"), "0*\n");
	sell(2, "x");
	assert_string_equal(get("events/shop/opened/enable"), "1*\n");
	open_door();
	lock_door(0, 0);
	open_door();
	assert_int_equal(records(), 3);
}

static void a_stack_trace_and_a_snapshot_are_taken_where_the_event_is(void **state)
{
	(void)state;
	gt_fake_trigger = note;
	begin_selling();
	put("current_tracer", "function_graph");
	watched = 0;
	assert_int_equal(put("events/shop/sold/trigger", "stacktrace:1"), 0);
	assert_int_equal(watched, 0);
	assert_int_equal(put("events/shop/sold/trigger", "snapshot if pieces == 2"), 0);
	assert_int_equal(watched, 1);
	gt_fake_call(1);
	gt_fake_call(2);
	sell(1, "x");
	assert_true(is_in("trace", "<stack trace>\n => inner\n => outer\n"));
	gt_arena_control_act(&control);
	assert_true(is_in("snapshot", "Snapshot is freed"));
	sell(2, "x");
	gt_arena_control_act(&control);
	assert_true(is_in("snapshot", "sold: pieces=2"));
	assert_true(gt_arena_control_must_act(&control));
	assert_int_equal(put("events/shop/sold/trigger", "!snapshot"), 0);
	assert_false(gt_arena_control_must_act(&control));
	gt_fake_trigger = NULL;
}

static void a_histogram_counts_what_happens(void **state)
{
	(void)state;
	begin_selling();
	put("set_event", "");
	assert_int_equal(
		put("events/shop/sold/trigger",
		    "hist:keys=what:vals=pieces:sort=pieces.descending:size=128 if pieces > 0"),
		0);
	sell(2, "bread");
	sell(3, "salt");
	sell(4, "bread");
	sell(-1, "bread");
	assert_string_equal(
		get("events/shop/sold/hist"),
		"# event histogram\n#\n# trigger info: hist:keys=what:vals=hitcount,pieces:"
		"sort=pieces.descending:size=128 if pieces > 0 [active]\n#\n\n"
		"{ what: bread                                              } hitcount:"
		"          2  pieces:          6\n"
		"{ what: salt                                               } hitcount:"
		"          1  pieces:          3\n"
		"\nTotals:\n    Hits: 3\n    Entries: 2\n    Dropped: 0\n");
	assert_int_equal(records(), 0);
	struct gt_control_node found = node("events/shop/sold/trigger");
	struct gt_message message;
	static const char pause[] =
		"hist:keys=what:vals=pieces:sort=pieces.descending:size=128:pause "
		"if pieces > 0";
	assert_int_equal(gt_control_put(&found, false, pause, sizeof(pause) - 1, &message), 0);
	sell(9, "salt");
	assert_true(is_in("events/shop/sold/hist", "[paused]"));
	assert_true(is_in("events/shop/sold/hist", "Hits: 3\n"));
	static const char clear[] =
		"hist:keys=what:vals=pieces:sort=pieces.descending:size=128:clear "
		"if pieces > 0";
	assert_int_equal(gt_control_put(&found, false, clear, sizeof(clear) - 1, &message), 0);
	assert_true(is_in("events/shop/sold/hist", "Hits: 0\n"));
	assert_int_equal(put("events/shop/sold/trigger", ""), 0);
	assert_string_equal(get("events/shop/sold/hist"), "");
}

static void a_histogram_counts_by_thread_and_by_function(void **state)
{
	(void)state;
	begin_selling();
	put("current_tracer", "function_graph");
	assert_int_equal(put("events/shop/sold/trigger",
			     "hist:keys=common_pid.execname,stacktrace:size=128"),
			 0);
	gt_fake_call(1);
	sell(1, "x");
	gt_fake_call(2);
	sell(2, "x");
	gt_fake_return();
	gt_fake_return();
	assert_true(is_in("events/shop/sold/hist", "common_pid: t7              [         7]"));
	assert_true(is_in("events/shop/sold/hist", "outer"));
	assert_true(is_in("events/shop/sold/hist", "inner"));
	assert_true(is_in("events/shop/sold/hist", "Entries: 2\n"));
}

static void variables_go_from_one_event_to_another(void **state)
{
	struct gt_context *context;
	(void)state;
	begin_selling();
	context = gt_arch_block()->context;
	/* actions need some of the stack that runs, which under a sanitizer has no variables */
	const uint64_t low = context->low, high = context->high,
		       here = (uint64_t)__builtin_frame_address(0);
	context->low = here - 65536;
	context->high = here + 65536;
	assert_int_equal(put("events/shop/sold/trigger", "hist:keys=common_pid:p0=pieces"), 0);
	assert_int_equal(put("events/door/locked/trigger", "hist:keys=common_pid:sum=$p0+level:"
							   "onmatch(shop.sold).nothing($sum)"),
			 GT_EINVAL);
	assert_int_equal(put("events/door/locked/trigger",
			     "hist:keys=common_pid:sum=$p0+level:onmax($sum).save(flags)"),
			 0);
	sell(5, "x");
	lock_door(1, 2);
	sell(50, "x");
	lock_door(3, 4);
	sell(7, "x");
	lock_door(5, 6);
	context->low = low;
	context->high = high;
	assert_true(is_in("events/door/locked/hist", "max:         54  flags:          3"));
}

static void a_kernel_without_the_memory_has_no_rules(void **state)
{
	struct gt_control_node found;
	has_rules = false;
	start(state);
	has_rules = true;
	assert_int_equal(gt_control_find(&control.control, "events/shop/sold/filter", 23, &found),
			 GT_ENOENT);
	begin_selling();
	sell(1, "x");
	assert_int_equal(records(), 1);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, finish)
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
		TEST(a_filter_leaves_events_out),
		TEST(a_filter_asks_which_thread_it_is),
		TEST(a_filter_that_is_refused_says_where),
		TEST(triggers_switch_tracing_as_often_as_they_say),
		TEST(a_trigger_enables_another_event),
		TEST(a_stack_trace_and_a_snapshot_are_taken_where_the_event_is),
		TEST(a_histogram_counts_what_happens),
		TEST(a_histogram_counts_by_thread_and_by_function),
		TEST(variables_go_from_one_event_to_another),
		TEST(a_kernel_without_the_memory_has_no_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
