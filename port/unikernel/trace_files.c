/* SPDX-License-Identifier: MIT */
/*
 * The control files of this kernel: names of functions, and the operations by which the viewer's
 * arena_control changes the recorder. All of it runs in the server's threads.
 */
#include "port/unikernel/trace_private.h"

#include "core/record/arch.h"
#include "core/record/kernel.h"
#include "core/record/kernel_place.h"
#include "core/record/latency.h"
#include "core/record/port.h"
#include "core/kernel/kernel_control.h"
#include "port/unikernel/boot.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/smp.h"
#include "port/unikernel/symbols.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/include/string.h"

#define WATCH_NS 20000000

static struct gt_arena_ring ring;
static struct gt_arena_control control;
static struct mutex mutex = { .name = "trace" };

/* ---- names ---- */

static int function_at(void *data, uint64_t address, struct gt_function *function)
{
	uint32_t symbol = symbol_find(address);
	(void)data;
	if (symbol == symbol_count)
		return GT_ENOENT;
	*function = (struct gt_function){ .name = symbol_name(symbol),
					  .object = "kernel",
					  .address = symbol_start(symbol),
					  .size = symbol_bytes(symbol) };
	return 0;
}

static int function_by_number(void *data, uint32_t number, struct gt_function *function)
{
	uint64_t address = gt_sites_address(&trace_sites, number);
	return address ? function_at(data, address, function) : GT_ENOENT;
}

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data;
	if (tid == 0)
		memcpy(comm, "<idle>", sizeof("<idle>"));
	else if (!trace_name_of(tid, comm))
		return GT_ENOENT;
	return 0;
}

static int event(void *data, uint32_t number, struct gt_event_format *format)
{
	const struct graftrace_kernel_event *event = gt_sites_event(&trace_sites, number);
	(void)data;
	if (!event)
		return GT_ENOENT;
	gt_event_of_kernel(event, format);
	return 0;
}

static uint32_t thread_number(void *data, uint32_t index)
{
	(void)data;
	return index < trace_last_thread() ? index + 1 : 0;
}

static uint32_t known_thread(void *data, uint32_t index)
{
	(void)data;
	return trace_named_thread(index);
}

/* ---- changes ---- */

static void lock(void *data)
{
	mutex_lock(data);
}

static void unlock(void *data)
{
	mutex_unlock(data);
	trace_changed();
}

static void set_tracing_on(void *data, bool on)
{
	(void)data;
	gt_kernel_set_tracing_on(on);
	trace_update();
}

static void set_tracer(void *data, enum graftrace_tracer tracer)
{
	(void)data;
	gt_kernel_set_tracer(tracer);
}

static void set_max_depth(void *data, uint32_t depth)
{
	(void)data;
	gt_kernel_set_max_depth(depth);
}

static void set_threshold(void *data, uint64_t ticks)
{
	(void)data;
	gt_kernel_set_threshold(ticks);
}

static void set_graph_only(void *data, bool graph_only)
{
	(void)data;
	gt_kernel_set_graph_only(graph_only);
}

static void set_func_stack(void *data, bool on)
{
	(void)data;
	gt_kernel_set_func_stack(on);
}

static void patch(void *data, const uint8_t *wanted)
{
	(void)data;
	trace_patch(wanted);
}

static void patch_events(void *data, const uint8_t *wanted)
{
	(void)data;
	trace_patch_events(wanted);
}

static void patch_probes(void *data, struct graftrace_kernel_probe *const *probes, uint32_t count)
{
	(void)data;
	trace_patch_probes(probes, count);
}

static enum graftrace_kernel_place find_place(void *data, uint64_t start, uint64_t end,
					      uint64_t address, uint32_t *place)
{
	(void)data;
	return gt_places_find(start, end, address, place);
}

static void measure(void *argument)
{
	gt_latency_measure(*(const uint32_t *)argument);
}

static void latency_measure(void *data, uint32_t kinds)
{
	(void)data;
	gt_kernel_pause();
	smp_stopped(measure, &kinds);
	gt_kernel_resume();
}

static void latency_set_threshold(void *data, uint64_t ticks)
{
	(void)data;
	gt_latency_set_threshold(ticks);
}

static void latency_keep(void *data, bool keep)
{
	(void)data;
	gt_latency_keep(keep);
}

static void latency_set_max(void *data, uint64_t ticks)
{
	(void)data;
	gt_latency_set_max(ticks);
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
	return clock_ns();
}

static void close_all(void *data)
{
	(void)data;
	trace_close();
}

static void set_profile(void *data, bool on)
{
	(void)data;
	gt_kernel_set_profile(on);
	trace_update();
}

static void profile_table(void *data, uint32_t cpu, struct graftrace_profile_entry **table,
			  uint32_t pages)
{
	(void)data;
	gt_kernel_profile_table(cpu, table, pages);
}

static bool mark(void *data, const char *bytes, size_t count, bool raw)
{
	mutex_lock(data);
	trace_hold(true); /* a mark is written even if nothing else is traced */
	bool marked = gt_kernel_mark(bytes, (uint32_t)count, raw);
	trace_hold(false);
	mutex_unlock(data);
	return marked;
}

/* ---- commands that a thread carries out: snapshot, dump ---- */

static bool is_watched; /* under the mutex */

static void *watch_thread(void *argument)
{
	(void)argument;
	gt_kernel_pause();
	for (bool goes_on = true; goes_on;) {
		thread_sleep_until(clock_ns() + WATCH_NS);
		gt_arena_control_act(&control);
		mutex_lock(&mutex);
		goes_on = is_watched = gt_arena_control_must_act(&control);
		mutex_unlock(&mutex);
	}
	return NULL;
}

static void watch(void *data)
{
	(void)data;
	if (!is_watched)
		is_watched = thread_create("trace-watch", watch_thread, NULL, 0, true);
}

static void print(void *data, const char *text, size_t bytes)
{
	(void)data;
	console_write(text, bytes);
}

void trace_note_trigger(uint32_t action)
{
	gt_arena_control_note(&control, action);
}

static const struct gt_arena_names arena_names = { .function = function_by_number,
						   .function_at = function_at,
						   .thread = thread_name,
						   .event = event };

static const struct gt_arena_machine machine = {
	.lock = lock,
	.unlock = unlock,
	.set_tracing_on = set_tracing_on,
	.set_tracer = set_tracer,
	.set_max_depth = set_max_depth,
	.set_threshold = set_threshold,
	.set_graph_only = set_graph_only,
	.set_func_stack = set_func_stack,
	.patch = patch,
	.patch_events = patch_events,
	.patch_probes = patch_probes,
	.find_place = find_place,
	.latency_measure = latency_measure,
	.latency_set_threshold = latency_set_threshold,
	.latency_set_max = latency_set_max,
	.latency_keep = latency_keep,
	.latency_max = latency_max,
	.latency_worst = latency_worst,
	.now_ns = now_ns,
	.close_all = close_all,
	.thread_number = thread_number,
	.known_thread = known_thread,
	.set_profile = set_profile,
	.profile_table = profile_table,
	.mark = mark,
	.watch = watch,
	.print = print,
	.data = &mutex,
};

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	(void)data;
	(void)old_bytes;
	if (new_bytes)
		return realloc(memory, new_bytes);
	free(memory);
	return NULL;
}

/* ---- Linux's options of the boot: ftrace=TRACER, trace_event=EVENT,EVENT, kprobe_event=PROBE,ARGUMENT;PROBE ---- */

#define OPTION_BYTES 256

/* text: the option's value, NULL if it was not given. */
static void put_option(const char *text, uint32_t length, const char *path)
{
	char value[OPTION_BYTES];
	struct gt_control_node node;
	struct gt_message message;
	if (!text || length >= sizeof(value) ||
	    gt_control_find(&control.control, path, strlen(path), &node) != 0)
		return;
	for (uint32_t i = 0; i < length; i++)
		value[i] = text[i] == ',' ? ' ' : text[i] == ';' ? '\n' : text[i];
	if (gt_control_put(&node, true, value, length, &message) != 0)
		console_print("trace: %s cannot be %.*s: %s\n", path, (int)length, text,
			      message.text);
}

/* ---- functions for trace.c and the server ---- */

static uint64_t now(void)
{
	return gt_arch_clock();
}

bool trace_files_init(void)
{
	static const struct gt_memory memory = { resize, NULL };
	ring.arena = gt_port_arena();
	ring.names = &arena_names;
	ring.now = now;
	ring.clock = (struct gt_clock){ .tsc_base = gt_arch_clock(),
					.ns_base = clock_ns(),
					.mult = (1000000000ull << 24) / clock_ticks_per_second(),
					.shift = 24 };
	if (gt_arena_control_init(&control, &ring, &machine, &memory, trace_sites.count,
				  "unikernel") != 0)
		return false;
	mutex_lock(&mutex);
	gt_kernel_set_tracing_on(true);
	gt_arena_control_patch(&control);
	mutex_unlock(&mutex);
	uint32_t length = 0;
	const char *tracer = option_text("ftrace", &length);
	put_option(tracer, length, "current_tracer");
	const char *probes = option_text("kprobe_event", &length);
	put_option(probes, length, "kprobe_events");
	if (probes)
		put_option("1", 1, "events/kprobes/enable");
	const char *events = option_text("trace_event", &length);
	put_option(events, length, "set_event");
	return true;
}

void trace_files_lock(void)
{
	mutex_lock(&mutex);
}

void trace_files_unlock(void)
{
	mutex_unlock(&mutex);
}

struct gt_control_target *trace_files(void)
{
	return &control.control;
}

bool trace_self(void)
{
	return __atomic_load_n(&control.trace_self, __ATOMIC_RELAXED);
}
