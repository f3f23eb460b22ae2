/* SPDX-License-Identifier: MIT */
/*
 * Triggers: what happens at a call of a function, or at its late return, in the thread that called
 * it. Runs with signals masked, from the slow half, and only for functions whose stub says so; the
 * straight line knows nothing of it but a flag in the frame, which takes a return off it anyway.
 *
 * The table lies in the arena, so that the processes of a recording count together. It is read
 * while the host changes it: a slot is whole before its function's number is stored, and what a
 * removed one still does for a moment is what it was there for.
 */
#include "core/record/recorder.h"
#include "core/record/arch.h"
#include "core/record/port.h"
#include <graftrace/selected.h>

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE

/* Calls that a stack trace shows. */
#define STACK_CALLS 32

/* A walk over the function's slots. */
struct search {
	struct graftrace_trigger *slots;
	uint32_t mask;
	uint32_t at;
	uint32_t left;
	uint32_t function;
};

static struct search search_begin(uint32_t function)
{
	struct graftrace_arena *arena = gt_port_arena();
	uint32_t count = arena->trigger_count;
	return (struct search){ .slots = graftrace_arena_triggers(arena),
				.mask = count - 1,
				.at = graftrace_trigger_slot(function),
				.left = count,
				.function = function };
}

static struct graftrace_trigger *search_next(struct search *search)
{
	while (search->left > 0) {
		struct graftrace_trigger *slot = &search->slots[search->at++ & search->mask];
		uint32_t function = __atomic_load_n(&slot->function, ACQUIRE);
		search->left--;
		if (function == 0)
			return NULL;
		if (function == search->function)
			return slot;
	}
	return NULL;
}

static uint64_t *hits_of(const struct graftrace_trigger *trigger)
{
	struct graftrace_arena *arena = gt_port_arena();
	return &graftrace_arena_trigger_hits(arena)[trigger - graftrace_arena_triggers(arena)];
}

/* Whether it acts at this hit, which is counted. */
static bool hit(struct graftrace_trigger *trigger)
{
	uint64_t hits = __atomic_fetch_add(hits_of(trigger), 1, RELAXED);
	return hits >= trigger->skip &&
	       (trigger->count == 0 || hits - trigger->skip < trigger->count);
}

/* The word, then the blocks: a new thread publishes its block, then reads the word. */
static void set_thread(struct gt_thread *thread, bool on, bool profile)
{
	if (profile) /* it goes on: the thread reads in the arena that tracing is off */
		__atomic_store_n(&thread->mode, 0, RELAXED);
	else if (on)
		__atomic_fetch_and(&thread->host, ~GRAFTRACE_STOP_OFF, RELAXED);
	else
		__atomic_fetch_or(&thread->host, GRAFTRACE_STOP_OFF, __ATOMIC_SEQ_CST);
	gt_thread_close_gate(thread);
}

static void set_threads(struct gt_thread *self, bool on)
{
	struct gt_thread *thread;
	bool profile = __atomic_load_n(&gt_port_arena()->profile, __ATOMIC_SEQ_CST) != 0;
	for (uint32_t i = 0; (thread = gt_port_thread(i)) != NULL; i++)
		if (thread->stream != NULL)
			set_thread(thread, on, profile);
	set_thread(self, on, profile);
}

bool gt_record_switch(struct gt_thread *thread, bool on)
{
	if ((__atomic_exchange_n(&gt_port_arena()->tracing_on, on, __ATOMIC_SEQ_CST) != 0) == on)
		return false;
	set_threads(thread, on);
	return true;
}

/* True: it was not so before. As in Linux, a hit that changes nothing is none. */
static bool switch_tracing(struct gt_thread *thread, struct graftrace_trigger *trigger, bool on)
{
	struct graftrace_arena *arena = gt_port_arena();
	uint64_t hits = __atomic_load_n(hits_of(trigger), RELAXED);
	if ((__atomic_load_n(&arena->tracing_on, RELAXED) != 0) == on)
		return false;
	if (hits < trigger->skip ||
	    (trigger->count != 0 && hits - trigger->skip >= trigger->count)) {
		hit(trigger);
		return false;
	}
	if (!gt_record_switch(thread, on))
		return false;
	hit(trigger);
	return true;
}

void gt_record_stack(struct gt_thread *thread, uint64_t clock)
{
	if (thread->host || thread->sub_buffer == NULL)
		return;
	uint32_t count = 0;
	const struct gt_frame *frame = gt_thread_top(thread);
	for (; frame != thread->context->frames && count < STACK_CALLS; frame--)
		count += gt_frame_is_in_stack(frame);
	if (count == 0) /* a tracer that keeps no frames, or none is on */
		return;
	uint64_t *place = gt_stream_reserve(thread, 2 + count, false);
	if (place == NULL)
		return;
	/* The function tracer's records have even lengths: a zero word ends the list. */
	uint32_t even = thread->chosen == GT_MODE_STACK || thread->chosen == GT_MODE_FUNCTION
				? count & 1
				: 0;
	frame = gt_thread_top(thread);
	for (uint32_t i = 0; i < count; frame--)
		if (gt_frame_is_in_stack(frame))
			__atomic_store_n(&place[2 + i++], frame->word, RELAXED);
	__atomic_store_n(&place[0],
			 graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						GRAFTRACE_EVENT_STACK << 16 | (1 + count + even)),
			 RELAXED);
	__atomic_store_n(&place[1], clock, RELAXED);
}

static void act(struct gt_thread *thread, struct graftrace_trigger *trigger, uint32_t function,
		uint64_t clock, uint64_t took)
{
	uint32_t action = trigger->action;
	struct graftrace_arena *arena = gt_port_arena();
	switch (action) {
	case GRAFTRACE_TRIGGER_TRACEOFF:
	case GRAFTRACE_TRIGGER_TRACEON:
		if (!switch_tracing(thread, trigger, action == GRAFTRACE_TRIGGER_TRACEON))
			return;
		break;
	case GRAFTRACE_TRIGGER_STACKTRACE:
		if (!thread->host && hit(trigger))
			gt_record_stack(thread, clock);
		return;
	case GRAFTRACE_TRIGGER_STOP:
		/* Once: the first of several that meet is told. */
		if (thread->host || !hit(trigger) ||
		    __atomic_exchange_n(&arena->tracing_on, 0, __ATOMIC_SEQ_CST) == 0)
			return;
		set_threads(thread, false);
		break;
	default:
		if (thread->host || !hit(trigger))
			return;
	}
	gt_port_trigger(action, function, clock, took);
}

/* A slot says how its function is recorded besides; what it may say of text is no such way. */
static bool is_recorded_as(uint8_t kind)
{
	return kind != GRAFTRACE_ENTRY_OFF && kind != GRAFTRACE_ENTRY_NEVER &&
	       kind != GRAFTRACE_ENTRY_TRIGGER && kind <= GRAFTRACE_ENTRY_NOTHING;
}

struct gt_trigger_call gt_trigger_begin(struct gt_thread *thread, uint32_t function)
{
	struct gt_trigger_call call = { .kind = GT_ENTRY_ON };
	struct search search = search_begin(function);
	struct graftrace_trigger *trigger;
	if (thread->stream == NULL)
		return call;
	while ((trigger = search_next(&search)) != NULL) {
		if (is_recorded_as(trigger->kind))
			call.kind = trigger->kind;
		if (trigger->longer_than != 0)
			call.flags = GT_FRAME_TRIGGER;
		else if (trigger->action == GRAFTRACE_TRIGGER_TRACEON)
			act(thread, trigger, function, gt_arch_clock(), 0);
	}
	return call;
}

void gt_trigger_entered(struct gt_thread *thread, uint32_t function)
{
	struct search search = search_begin(function);
	struct graftrace_trigger *trigger;
	if (thread->stream == NULL)
		return;
	while ((trigger = search_next(&search)) != NULL)
		if (trigger->longer_than == 0 && trigger->action != GRAFTRACE_TRIGGER_TRACEON)
			act(thread, trigger, function, gt_arch_clock(), 0);
}

void gt_trigger_returned(struct gt_thread *thread, const struct gt_frame *frame)
{
	uint32_t function = gt_frame_function(frame);
	uint64_t clock = gt_arch_clock();
	uint64_t took = clock - gt_frame_start(frame, clock);
	struct search search = search_begin(function);
	struct graftrace_trigger *trigger;
	if (thread->stream == NULL)
		return;
	while ((trigger = search_next(&search)) != NULL)
		if (trigger->longer_than != 0 && took > trigger->longer_than)
			act(thread, trigger, function, clock, took);
}
