/* SPDX-License-Identifier: MIT */
/*
 * All that this kernel supplies to be traced, in the order of the steps in doc/porting.md: what
 * core/record/port.h asks for, the sites, a ring, a context for each stack, and the trace sent over
 * serial lines. It is built with the installed headers and libgraftrace-core.a, and is not traced
 * itself.
 */
#include "kernel.h"

#include "core/record/kernel.h"
#include "core/record/port.h"
#include "core/record/sites.h"
#include "core/kernel/kernel_control.h"
#include "core/http/http_server.h"

/* So small a kernel ignores many parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define SITES		 256
#define FRAMES		 512
#define RING_BYTES	 (1u << 20)
#define SUB_BUFFER_BYTES 16384u
#define MSR_GS_BASE	 0xc0000101

/* Made from the kernel itself after its first link (Makefile); in ascending order. */
struct name {
	uint64_t address;
	const char *name;
};
extern const struct name names[];
extern const uint32_t name_count;

/* Of the linker script. */
extern uint64_t patchable_start[], patchable_end[];
extern char stubs_start[];

static struct gt_sites sites;
static uint8_t states[SITES];
static char ring_memory[2 * RING_BYTES] __attribute__((aligned(4096)));
static struct graftrace_arena *arena;
static struct gt_thread cpu; /* what %gs points to */
static struct gt_context contexts[THREADS];
static struct gt_frame frames[THREADS][FRAMES];
static char slow_stack[GT_KERNEL_SLOW_STACK_BYTES] __attribute__((aligned(16)));

/* ---- core/record/port.h ---- */

uint32_t gt_port_cpu(void)
{
	return 0;
}

bool gt_port_is_stub_return(uint64_t address)
{
	return gt_sites_is_stub_return(&sites, address);
}

uint32_t gt_port_state(void)
{
	return 0;
}

/* This kernel's text is writable at its own address. */
void gt_port_text_write(uint64_t address, const void *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		((volatile char *)address)[i] = ((const char *)bytes)[i];
}

void gt_port_cpus_stop(void)
{
}

void gt_port_cpus_start(void)
{
}

void gt_port_lock(void)
{
}

void gt_port_unlock(void)
{
}

bool gt_port_peek(uint64_t address, uint64_t *value)
{
	if (address - (uint64_t)stacks >= THREADS * STACK_BYTES)
		return false;
	*value = *(const uint64_t *)address;
	return true;
}

/* ---- what the viewer asks for ---- */

static int function_at(void *data, uint64_t address, struct gt_function *function)
{
	uint32_t i = name_count;
	while (i > 0 && names[i - 1].address > address)
		i--;
	if (i == 0)
		return GT_ENOENT;
	*function = (struct gt_function){ .name = names[i - 1].name,
					  .object = "kernel",
					  .address = names[i - 1].address };
	return 0;
}

static int function_by_number(void *data, uint32_t number, struct gt_function *function)
{
	uint64_t address = gt_sites_address(&sites, number);
	return address ? function_at(data, address, function) : GT_ENOENT;
}

/* Threads are numbered from 1 here: 0 is a processor without one. */
static int thread_name(void *data, uint32_t number, char comm[16])
{
	if (number - 1 >= THREADS || !threads[number - 1].name)
		return GT_ENOENT;
	uint32_t i = 0;
	for (; i < 15 && threads[number - 1].name[i]; i++)
		comm[i] = threads[number - 1].name[i];
	comm[i] = 0;
	return 0;
}

static uint32_t thread_number(void *data, uint32_t index)
{
	return index < THREADS && threads[index].name ? index + 1 : 0;
}

static void lock(void *data)
{
}

/* What the control files set is passed to the recorder unchanged. */
#define SETTER(name, type)                       \
	static void name(void *data, type value) \
	{                                        \
		gt_kernel_##name(value);         \
	}
SETTER(set_tracing_on, bool)
SETTER(set_tracer, enum graftrace_tracer)
SETTER(set_max_depth, uint32_t)
SETTER(set_threshold, uint64_t)
SETTER(set_graph_only, bool)
SETTER(set_func_stack, bool)

static void patch(void *data, const uint8_t *wanted)
{
	gt_sites_apply(&sites, wanted);
}

static struct gt_arena_ring ring;

static uint64_t now_ns(void *data)
{
	return gt_clock_ns(&ring.clock, ticks());
}

/* Memory is given out in a row. All of it is free again once only the pieces of the start are in
 * use. */
static struct {
	char memory[4 << 20] __attribute__((aligned(16)));
	size_t used, used_at_start;
	uint32_t pieces, pieces_at_start;
} heap;

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	if (new_bytes == 0 && old_bytes != 0 && --heap.pieces == heap.pieces_at_start)
		heap.used = heap.used_at_start;
	if (new_bytes <= old_bytes)
		return new_bytes ? memory : NULL;
	if (new_bytes > sizeof(heap.memory) - heap.used)
		return NULL;
	char *given = heap.memory + heap.used;
	heap.used += (new_bytes + 15) & ~15ull;
	heap.pieces += old_bytes == 0;
	for (size_t i = 0; i < old_bytes; i++)
		given[i] = ((char *)memory)[i];
	return given;
}

static struct gt_arena_control control;

/* ---- what the kernel calls ---- */

void trace_thread(uint32_t index)
{
	gt_kernel_context_init(&contexts[index], index + 1, threads[index].stack_low,
			       threads[index].stack_top, frames[index], FRAMES);
}

void trace_switch(uint32_t index, int runnable)
{
	gt_kernel_switch(&contexts[index], runnable ? 0 : 64); /* R or X, as Linux numbers them */
}

void trace_init(void)
{
	static const struct gt_arena_names arena_names = { function_by_number, function_at,
							   thread_name, NULL, NULL };
	static const struct gt_arena_machine machine = { .lock = lock,
							 .unlock = lock,
							 .set_tracing_on = set_tracing_on,
							 .set_tracer = set_tracer,
							 .set_max_depth = set_max_depth,
							 .set_threshold = set_threshold,
							 .set_graph_only = set_graph_only,
							 .set_func_stack = set_func_stack,
							 .patch = patch,
							 .now_ns = now_ns,
							 .thread_number = thread_number };
	static const struct gt_memory memory = { resize, NULL };
	uint32_t count = (uint32_t)(patchable_end - patchable_start);
	uint64_t block = (uint64_t)&cpu;
	if (count > SITES ||
	    gt_kernel_arena_bytes(RING_BYTES, SUB_BUFFER_BYTES, 1) > sizeof(ring_memory)) {
		print("trace: the tables are too small\n");
		return;
	}
	gt_sites_init(&sites, patchable_start, states, count, (uint64_t)stubs_start);
	arena = (struct graftrace_arena *)ring_memory;
	gt_kernel_arena_init(arena, RING_BYTES, SUB_BUFFER_BYTES, 1);
	trace_thread(0);
	__asm__ volatile("wrmsr" : : "c"(MSR_GS_BASE), "a"((uint32_t)block), "d"(block >> 32));
	cpu.slow_stack = (uint64_t)slow_stack + sizeof(slow_stack);
	gt_kernel_cpu_start(&cpu, 0, &contexts[0], "cpu00");
	ring.arena = arena;
	ring.names = &arena_names;
	ring.clock = (struct gt_clock){ .tsc_base = ticks(),
					.mult = (1000000000ull << 24) / ticks_per_second(),
					.shift = 24 };
	if (gt_arena_control_init(&control, &ring, &machine, &memory, count, "serial") != 0) {
		print("trace: no memory\n");
		return;
	}
	gt_arena_control_patch(&control);
	heap.used_at_start = heap.used;
	heap.pieces_at_start = heap.pieces;
	gt_kernel_set_tracing_on(true);
}

/* Sends what `cat PATH` would print. */
static void send(int port, const char *path, size_t path_bytes)
{
	static struct gt_control_handle handle;
	static char block[4096];
	struct gt_control_node node;
	struct gt_message message;
	int64_t got;
	if (gt_control_find(&control.control, path, path_bytes, &node) != 0 ||
	    gt_control_open(&handle, &node, GT_CONTROL_READ, &message) != 0)
		return;
	while ((got = gt_control_read(&handle, block, sizeof(block), &message)) > 0)
		uart_write(port, block, (size_t)got);
	gt_control_close(&handle, &message);
}

void trace_send(void)
{
	gt_kernel_set_tracing_on(false);
	send(0, "trace", 5);
	send(1, "trace.data", 10);
}

/* Serves HTTP over the third port, by the interface that is fed and asked. The line does not
 * show where a connection ends, so each is followed by the next. */
void trace_serve(void)
{
	static struct gt_http_connection connection;
	const char *bytes;
	bool has_byte = false;
	char byte;
	gt_kernel_pause(); /* keeps this function's own calls out of the trace that it sends */
	gt_http_begin(&connection, &control.control);
	while (uart_is_there(2)) {
		while ((has_byte = has_byte || uart_read(2, &byte)) &&
		       gt_http_feed(&connection, &byte, 1) == 1)
			has_byte = false;
		int64_t count = gt_http_ask(&connection, &bytes);
		if (count > 0)
			uart_write(2, bytes, (size_t)count);
		if (count == GT_EGONE) {
			gt_http_end(&connection);
			gt_http_begin(&connection, &control.control);
		}
	}
}
