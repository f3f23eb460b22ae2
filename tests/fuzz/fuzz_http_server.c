/* SPDX-License-Identifier: MIT */
/*
 * Any bytes on a kernel's port: requests, bodies and control files, as the unikernel serves them
 * (gt_http_serve on a kernel's control files and a ring of this memory). Whatever comes, the
 * connection ends, every answer begins as one, nothing stays open and no memory is lost.
 *
 * Input: bytes of which 0xff ends a piece that arrives at a time (the next byte says how the client
 * is then: 0 it goes, 1 it takes nothing any more, else it goes on).
 */
#include <stdlib.h>
#include <string.h>

#include "core/kernel/kernel_control.h"
#include "core/http/http_server.h"
#include "port/fake/fake.h"
#include "port/host/memory.h"

#define FUNCTIONS     40
#define PROFILE_PAGES (FUNCTIONS / GRAFTRACE_PROFILE_FUNCTIONS + 1)
#define ANSWER_MOST   (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct client {
	const uint8_t *data;
	size_t left;
	bool gone, stalled;
	uint32_t waits;
	uint64_t sent;
	char start[9]; /* of an answer */
};

static struct gt_arena_ring ring;
static struct gt_arena_control control;
static int64_t allocated;

/* ---- the client ---- */

static int64_t receive(void *data, char *buffer, size_t bytes)
{
	struct client *client = data;
	size_t given = 0;
	while (given < bytes && client->left > 0 && !client->gone) {
		uint8_t byte = *client->data++;
		client->left--;
		if (byte != 0xff) {
			buffer[given++] = (char)byte;
			continue;
		}
		uint8_t how = client->left > 0 ? *client->data : 0;
		client->data += client->left > 0;
		client->left -= client->left > 0;
		client->gone = how == 0;
		client->stalled = how == 1;
		if (given > 0)
			break;
	}
	return (int64_t)given;
}

static int64_t take(void *data, const char *bytes, size_t count)
{
	struct client *client = data;
	if (count == 0 || client->sent + count > ANSWER_MOST)
		abort(); /* the ring is small: no answer is that long */
	for (size_t i = 0; i < count && client->sent + i < 8; i++)
		client->start[client->sent + i] = bytes[i];
	client->sent += count;
	if (client->sent >= 8 && memcmp(client->start, "HTTP/1.1", 8) != 0)
		abort();
	return client->gone || client->stalled ? -1 : 0;
}

/* A pipe's reader: it looks twice, and is gone. Meanwhile somebody else ends a recording. */
static bool wait(void *data)
{
	static const char path[] = "trace_pipe.data";
	struct client *client = data;
	struct gt_control_node node;
	struct gt_message message;
	if (gt_control_find(&control.control, path, sizeof(path) - 1, &node) != 0)
		abort();
	gt_control_put(&node, true, "0", 1, &message); /* refused where there is none */
	return ++client->waits % 3 != 0;
}

/* ---- the kernel ---- */

static void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	if (new_bytes > 2u << 20)
		abort(); /* no kernel has larger pieces */
	allocated += (int64_t)new_bytes - (int64_t)old_bytes;
	return gt_host_resize(data, memory, old_bytes, new_bytes);
}

static int function(void *data, uint32_t number, struct gt_function *out)
{
	static char names[FUNCTIONS][16];
	(void)data;
	if (number - 1 >= FUNCTIONS)
		return GT_ENOENT;
	char *name = names[number - 1];
	memcpy(name, "function_", 9);
	name[9] = (char)('0' + number / 10);
	name[10] = (char)('0' + number % 10);
	*out = (struct gt_function){ .name = name, .object = "kernel", .address = number * 16 };
	return GT_OK;
}

static int function_at(void *data, uint64_t address, struct gt_function *out)
{
	return function(data, (uint32_t)(address / 16), out);
}

static int thread_name(void *data, uint32_t tid, char comm[16])
{
	(void)data;
	memcpy(comm, "thread", 7);
	return tid < 3 ? GT_OK : GT_ENOENT;
}

static void nothing(void *data)
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

static void set_bool(void *data, bool on)
{
	(void)data;
	(void)on;
}

static void patch(void *data, const uint8_t *wanted)
{
	(void)data;
	for (int i = 0; i < FUNCTIONS; i++)
		if (wanted[i] > GRAFTRACE_ENTRY_TRIGGER)
			abort();
}

static uint64_t now_ns(void *data)
{
	(void)data;
	return 1000000;
}

static uint32_t thread_number(void *data, uint32_t index)
{
	(void)data;
	return index < 3 ? index + 1 : 0;
}

static void profile_table(void *data, uint32_t cpu, struct graftrace_profile_entry **table,
			  uint32_t pages)
{
	(void)data;
	gt_kernel_profile_table(cpu, table, pages);
}

static void set_profile(void *data, bool on)
{
	(void)data;
	gt_kernel_set_profile(on);
}

static bool mark(void *data, const char *bytes, size_t count, bool raw)
{
	(void)data;
	return gt_kernel_mark(bytes, (uint32_t)count, raw);
}

static void print(void *data, const char *text, size_t bytes)
{
	(void)data;
	(void)text;
	(void)bytes;
}

static void close_all(void *data)
{
	(void)data;
	gt_kernel_close(&gt_fake_cpu(0)->block);
}

static void boot(void)
{
	static const struct gt_arena_names names = { function, function_at, thread_name, NULL,
						     NULL };
	static const struct gt_arena_machine machine = { .lock = nothing,
							 .unlock = nothing,
							 .set_tracing_on = set_tracing_on,
							 .set_tracer = set_tracer,
							 .set_max_depth = set_max_depth,
							 .set_threshold = set_threshold,
							 .set_graph_only = set_bool,
							 .set_func_stack = set_bool,
							 .patch = patch,
							 .now_ns = now_ns,
							 .close_all = close_all,
							 .set_profile = set_profile,
							 .profile_table = profile_table,
							 .mark = mark,
							 .watch = nothing,
							 .print = print,
							 .thread_number = thread_number };
	static const struct gt_memory memory = { resize, NULL };
	gt_fake_start(64 * 4096, 4096);
	memset(&ring, 0, sizeof(ring));
	ring.arena = gt_fake_arena();
	ring.names = &names;
	ring.clock = (struct gt_clock){ .tsc_base = 1ull << 40, .mult = 1 };
	gt_fake_cpu_start(0, gt_fake_stack(1));
	if (gt_arena_control_init(&control, &ring, &machine, &memory, FUNCTIONS, "fuzz") != GT_OK)
		abort();
	gt_kernel_set_tracing_on(true);
	for (int i = 0; i < 100; i++) {
		gt_fake_call(1 + (uint32_t)i % FUNCTIONS);
		gt_fake_return();
	}
}

/* What stays for as long as the kernel lives. */
static void shut_down(void)
{
	struct gt_control_node node;
	struct gt_message message;
	if (gt_control_find(&control.control, "snapshot", 8, &node) != 0 ||
	    gt_control_put(&node, true, "0", 1, &message) != 0)
		abort();
	for (uint32_t cpu = 0; cpu < GT_ARENA_WRITERS; cpu++) {
		if (control.profile[cpu] == NULL)
			continue;
		for (uint32_t i = 0; i < PROFILE_PAGES; i++)
			resize(NULL, control.profile[cpu][i], GRAFTRACE_PROFILE_PAGE_BYTES, 0);
		resize(NULL, control.profile[cpu], PROFILE_PAGES * sizeof(void *), 0);
	}
	resize(NULL, control.marks, FUNCTIONS, 0);
	resize(NULL, control.wanted, FUNCTIONS, 0);
	if (allocated != 0 || ring.consuming)
		abort(); /* something is still open */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gt_http_connection connection;
	struct client client = { .data = data, .left = size };
	static const char page[] = "<!DOCTYPE html>";
	struct gt_http_stream stream = { receive, take, wait, &client, page, sizeof(page) - 1 };
	boot();
	memset(&connection, 0x5a, sizeof(connection)); /* of any contents */
	/* a client that comes again, until its bytes are used up */
	for (int visits = 0; visits < 8 && client.left > 0; visits++) {
		client.gone = client.stalled = false;
		client.sent = 0;
		gt_http_serve(&connection, &stream, &control.control);
	}
	gt_arena_control_act(&control);
	shut_down();
	return 0;
}
