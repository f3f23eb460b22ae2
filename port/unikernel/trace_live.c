/* SPDX-License-Identifier: MIT */
/*
 * Which entries lead to the recorder, and when none does. While nothing can be recorded (tracing_on
 * is 0, the tracer is nop, no function is left by the filter, or the ring has been full for a
 * moment) every entry is its nop again, and the kernel's hooks (trace.h) are one test of
 * trace_live.
 *
 * A full ring is seen by the recorder, which may call nobody: it leaves a note, the next interrupt
 * wakes the keeper's thread, and that patches. The keeper then looks ten times a second whether a
 * reader has made room. Calls that were open when the ring was full have half a second to return:
 * there is room for their records. A ring that is half full is noted for its reader.
 */
#include "port/unikernel/trace_private.h"

#include "core/record/kernel.h"
#include "core/record/kernel_probe.h"
#include "core/record/port.h"
#include "port/unikernel/clock.h"
#include "port/unikernel/console.h"
#include "port/unikernel/memory.h"
#include "port/unikernel/smp.h"
#include "port/unikernel/thread.h"
#include "port/unikernel/trace.h"

#define LOOK_NS	       100000000
#define LOOKS_FOR_OPEN 5 /* with room for open calls, before the hooks are switched off */
#define ROOM_PART      8 /* of the ring must be free before recording resumes */

bool trace_live;
static const uint8_t *wanted_sites;		     /* from the control files; NULL: none yet */
static const uint8_t *wanted_events;		     /* the same of static events */
static struct graftrace_kernel_probe *const *probes; /* dynamic ones */
static uint32_t probe_count;
static bool is_parked; /* the ring is full */
static bool is_held;   /* trace_hold */
static uint32_t looks; /* of the keeper since the ring was full */
static uint32_t full_noted, half_noted;
static struct wait_queue keeper, readers;
static bool is_called; /* the keeper has work; under its lock */

/* ---- functions that the recorder calls ---- */

void gt_port_text_write(uint64_t address, const void *bytes, size_t count)
{
	paging_write_text((void *)address, bytes, count);
}

/* All of it is within smp_stopped. */
void gt_port_cpus_stop(void)
{
}

void gt_port_cpus_start(void)
{
}

/* Called with interrupts off, at any place, when at least half of the ring is full. */
void gt_port_ring_doorbell(struct graftrace_arena *arena)
{
	__atomic_store_n(&half_noted, 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&arena->free_count, __ATOMIC_RELAXED) && !is_parked)
		__atomic_store_n(&full_noted, 1, __ATOMIC_RELAXED);
}

/* ---- changes, while all processors stand still ---- */

struct change {
	const uint8_t *sites;
	const uint8_t *events;
	bool probes;
	bool live;
};

static void apply(void *data)
{
	const struct change *change = data;
	if (change->live && !trace_live)
		trace_wake();
	gt_sites_apply(&trace_sites, change->sites);
	if (change->events)
		gt_sites_apply_events(&trace_sites, change->events);
	gt_probes_apply(&trace_sites, probes, probe_count, change->probes);
	if (!change->live && trace_live)
		trace_suspend();
	trace_live = change->live;
}

enum sites {
	NONE,
	SOME,
	TRIGGERS
}; /* TRIGGERS: some have triggers, which act whatever else is off */

static enum sites look_at(const uint8_t *sites)
{
	enum sites found = NONE;
	for (uint32_t i = 0; sites && i < trace_sites.count; i++) {
		if (sites[i] == GRAFTRACE_ENTRY_OFF ||
		    trace_sites.states[i] == GRAFTRACE_ENTRY_NEVER)
			continue;
		found = SOME;
		if (sites[i] == GRAFTRACE_ENTRY_TRIGGER)
			return TRIGGERS;
	}
	return found;
}

/* Returns a zero for each function, or event. */
static const uint8_t *no_sites(void)
{
	static uint8_t *none;
	if (!none)
		none = calloc(1, trace_sites.count + trace_sites.event_count);
	return none;
}

/* Is any event wanted in one of these ways (GRAFTRACE_EVENT_…)? */
static bool has_events(uint8_t ways)
{
	for (uint32_t i = 0; i < probe_count; i++)
		if (probes[i]->wanted & ways)
			return true;
	for (uint32_t i = 0; wanted_events && i < trace_sites.event_count; i++)
		if (wanted_events[i] & ways)
			return true;
	return false;
}

void trace_update(void)
{
	const struct graftrace_arena *arena = gt_port_arena();
	const uint8_t *none = no_sites();
	enum sites sites = look_at(wanted_sites);
	bool acts = has_events(GRAFTRACE_EVENT_ACTS);
	bool events = acts || (has_events(0xff) && arena->tracing_on && !is_parked);
	bool on = sites == SOME && arena->tracing_on;
	struct change change = { none, none, false, is_held };
	if (sites == TRIGGERS || (sites == SOME && (arena->profile || acts)) || (on && !is_parked))
		change = (struct change){ wanted_sites, none, false, true };
	else if (on)
		change.live |= looks < LOOKS_FOR_OPEN;
	if (events) {
		change.events = wanted_events;
		change.probes = true;
		change.live = true;
	}
	if (!none) /* no memory for a byte for each function: nothing is switched off */
		change = (struct change){ wanted_sites, wanted_events, true, true };
	if (!change.sites)
		return;
	gt_kernel_pause(); /* patching itself is not traced */
	smp_stopped(apply, &change);
	gt_kernel_resume();
}

void trace_hold(bool on)
{
	is_held = on;
	if (on != trace_live)
		trace_update();
}

void trace_patch_events(const uint8_t *wanted)
{
	wanted_events = wanted;
	trace_update();
}

void trace_patch_probes(struct graftrace_kernel_probe *const *list, uint32_t count)
{
	probes = list;
	probe_count = count;
	trace_update();
}

void trace_patch(const uint8_t *wanted)
{
	wanted_sites = wanted;
	trace_update();
}

/* ---- the ring is full, or has room again ---- */

static void call_keeper(void)
{
	uint64_t flags = spin_lock(&keeper.lock);
	is_called = true;
	wake_one_locked(&keeper);
	spin_unlock(&keeper.lock, flags);
}

static void call_readers(void)
{
	uint64_t flags = spin_lock(&readers.lock);
	wake_all_locked(&readers);
	spin_unlock(&readers.lock, flags);
}

void trace_interrupt_noted(void)
{
	if (half_noted && __atomic_exchange_n(&half_noted, 0, __ATOMIC_RELAXED))
		call_readers();
	if (full_noted && __atomic_exchange_n(&full_noted, 0, __ATOMIC_RELAXED))
		call_keeper();
}

void trace_wait(uint64_t deadline)
{
	uint64_t flags = spin_lock(&readers.lock);
	wait_locked(&readers, flags, deadline);
}

void trace_changed(void)
{
	if (is_parked)
		call_keeper();
}

/* Was any call not recorded, and counted as lost? */
static bool is_lost(struct graftrace_arena *arena)
{
	const struct graftrace_stream *streams = graftrace_arena_streams(arena);
	for (uint32_t i = 0; i < arena->stream_count; i++)
		if (__atomic_load_n(&streams[i].stopped_full, __ATOMIC_RELAXED))
			return true;
	return false;
}

static bool is_full(struct graftrace_arena *arena)
{
	uint32_t mode = __atomic_load_n(&arena->mode, __ATOMIC_RELAXED);
	uint32_t room = __atomic_load_n(&arena->free_count, __ATOMIC_RELAXED);
	if (mode != GRAFTRACE_MODE_RING)
		return false;
	if (is_parked)
		return room <= arena->sub_buffer_count / ROOM_PART;
	return room == 0 && is_lost(arena);
}

static void look(void)
{
	trace_files_lock();
	bool full = is_full(gt_port_arena()), changes = full != is_parked;
	looks = changes ? 0 : looks + 1;
	is_parked = full;
	if (changes || (full && looks == LOOKS_FOR_OPEN))
		trace_update();
	trace_files_unlock();
}

static void *keep(void *argument)
{
	(void)argument;
	gt_kernel_pause();
	for (;;) {
		uint64_t flags = spin_lock(&keeper.lock);
		bool called = is_called;
		is_called = false;
		if (called)
			spin_unlock(&keeper.lock, flags);
		else
			wait_locked(&keeper, flags, is_parked ? clock_ns() + LOOK_NS : TIMER_NEVER);
		look();
	}
	return NULL;
}

void trace_keep(void)
{
	if (!thread_create("trace-keeper", keep, NULL, 0, true))
		console_print("trace: no memory for the keeper's thread\n");
}
