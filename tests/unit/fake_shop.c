/* SPDX-License-Identifier: MIT */
/* See fake_shop.h. */
#include "tests/unit/fake_shop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define GRAFTRACE_KERNEL
#include <graftrace/event.h>
#include "core/record/arch.h"
#include "core/record/latency.h"
#include "core/record/port.h"
#include "core/record/sites.h"
#include "port/fake/fake.h"
#include "port/host/memory.h"

extern const struct graftrace_event_site __start___graftrace_events[], __stop___graftrace_events[];

static struct gt_sites sites;
static struct graftrace_kernel_event *events[16];
static uint8_t states[16];
static struct gt_arena_ring ring;
struct gt_arena_control control;
int wanted_functions;
int evaluated;

static int count(int value)
{
	evaluated++;
	return value;
}

__attribute__((noinline)) void sell(int pieces, const char *what)
{
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, pieces, count(pieces)),
			GRAFTRACE_STRING(what, what));
}

__attribute__((noinline)) void sell_elsewhere(int pieces)
{
	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, pieces, pieces),
			GRAFTRACE_STRING(what, NULL));
}

__attribute__((noinline)) void open_door(void)
{
	GRAFTRACE_EVENT0(shop, opened);
}

__attribute__((noinline)) void lock_door(unsigned flags, unsigned char level)
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

void gt_arch_probe_stub_write(uint8_t bytes[GT_PROBE_STUB_BYTES], uint64_t at, uint64_t next)
{
	(void)bytes, (void)at, (void)next;
}

uint32_t gt_arch_instruction_bytes(const uint8_t code[GT_ARCH_CODE_BYTES], uint64_t address)
{
	(void)code, (void)address;
	return 0;
}

bool gt_arch_place_write(uint8_t bytes[GT_PLACE_BYTES], uint64_t at,
			 const uint8_t code[GT_ARCH_CODE_BYTES], uint64_t address)
{
	(void)bytes, (void)at, (void)code, (void)address;
	return false;
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
static void *pieces[1 << 15];

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

int finish_shop(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		free(pieces[i]);
		pieces[i] = NULL;
	}
	return 0;
}

bool has_rules = true;
int watched;

static void watch(void *data)
{
	(void)data;
	watched++;
}

void note(uint32_t action)
{
	gt_arena_control_note(&control, action);
}

int start_shop(void **state)
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
	finish_shop(state); /* of a start before */
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

struct gt_control_node node(const char *path)
{
	struct gt_control_node found;
	assert_int_equal(gt_control_find(&control.control, path, strlen(path), &found), 0);
	return found;
}

static int put_in(const char *path, bool truncate, const char *text)
{
	struct gt_message message = { 0 };
	struct gt_control_node found = node(path);
	return gt_control_put(&found, truncate, text, strlen(text), &message);
}

int put(const char *path, const char *text)
{
	return put_in(path, true, text);
}

int append(const char *path, const char *text)
{
	return put_in(path, false, text);
}

char *get(const char *path)
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

uint64_t records(void)
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

void begin_selling(void)
{
	gt_fake_cpu_start(0, gt_fake_stack(7));
	put("current_tracer", "nop");
	put("set_event", "shop:sold");
}

bool is_in(const char *path, const char *text)
{
	return strstr(get(path), text) != NULL;
}
