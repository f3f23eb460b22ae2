/* SPDX-License-Identifier: MIT */
/*
 * Static events of a kernel (graftrace/event_kernel.h): what a site that is switched on calls. With
 * interrupts off; an NMI may come between any two instructions: the straight line of event.c takes
 * its place by compare and exchange, and the slow half marks itself busy, so that
 * gt_kernel_enter_nmi refuses.
 */
#include <graftrace/event_kernel.h>
#include "core/record/arch.h"
#include "core/record/event.h"
#include "core/record/kernel.h"
#include "core/record/kernel_event.h"
#include "core/record/port.h"

#define STRING_BYTES 128u /* of a string, at most, its zero byte included */

/* Bytes of the string that go into `room`, its zero byte included; it is cut where it is longer. */
static uint32_t string_bytes(const char *text, uint32_t room)
{
	uint32_t bytes = 0;
	while (bytes + 1 < room && text[bytes] != 0)
		bytes++;
	return bytes + 1;
}

static void take_string(struct gt_event *event, uint32_t field, const char *text)
{
	uint32_t room = (GT_EVENT_VALUES - event->count) * 8;
	if (text == NULL || room == 0) {
		event->faults |= 1u << field;
		return;
	}
	uint32_t bytes = string_bytes(text, room < STRING_BYTES ? room : STRING_BYTES);
	uint64_t *words = &event->values[event->count];
	event->values[field] = event->count * 8 | bytes << 16;
	for (uint32_t at = 0; at < bytes; at += 8) {
		uint64_t word = 0;
		for (uint32_t i = 0; i < 8 && at + i + 1 < bytes; i++)
			word |= (uint64_t)(uint8_t)text[at + i] << 8 * i;
		*words++ = word;
	}
	event->count = (uint32_t)(words - event->values);
}

/* In the upper half of the number's word, above the fields that could not be read. */
static uint32_t state_of(const struct gt_thread *thread, uint64_t saved)
{
	uint32_t state = gt_port_state();
	if (!gt_arch_interrupts_were_on(saved))
		state |= GRAFTRACE_STATE_IRQS_OFF;
	if (thread->context->number >= GT_KERNEL_INTERRUPT)
		state |= GRAFTRACE_STATE_HARDIRQ;
	return state << (GRAFTRACE_PROBE_STATE - 32);
}

static void gather(const struct graftrace_kernel_event *from, const uint64_t *values,
		   struct gt_event *event)
{
	event->number = from->number;
	event->count = from->field_count;
	for (uint32_t i = 0; i < from->field_count; i++)
		event->values[i] = values[i];
	for (uint32_t i = 0; i < from->field_count; i++)
		if (from->fields[i].flags & GRAFTRACE_FIELD_STRING)
			take_string(event, i, (const char *)values[i]);
}

/* What a histogram with actions, or one that reads variables of others, needs of the stack; with the event that it
 * makes, whose own such histograms are asked for once more. */
#define FOLLOW_BYTES 3072

static bool has_room_to_follow(const struct gt_thread *thread)
{
	const struct gt_context *context = thread->context;
	const uint64_t sp = (uint64_t)__builtin_frame_address(0);
	return sp >= context->low && sp < context->high && sp - context->low >= FOLLOW_BYTES;
}

/* what: of gt_event_look(). */
static __attribute__((noinline)) void record_slow(struct gt_thread *thread,
						  const struct gt_event *event, unsigned what)
{
	thread->busy++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (thread->mode == 0)
		gt_stream_choose(thread);
	if (what & GT_EVENT_ACT)
		gt_event_act(thread, event);
	else if (what & GT_EVENT_RECORD)
		gt_event_record(thread, event);
	if (what & GT_EVENT_SNAPSHOT)
		gt_event_snapshot(thread, event);
	gt_kernel_set_gate(thread);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->busy--;
}

static void conclude(struct gt_thread *thread, const struct gt_event *event, bool has_rules)
{
	unsigned what = has_rules ? gt_event_look(thread, event) : GT_EVENT_RECORD;
	const bool follows = what & GT_EVENT_FOLLOW;
	what &= ~(unsigned)GT_EVENT_FOLLOW;
	if (what == GT_EVENT_RECORD ? !(has_rules && gt_event_is_stopped(thread)) &&
					      !gt_event_try_record(thread, event)
				    : what != 0)
		record_slow(thread, event, what);
	if (follows && has_room_to_follow(thread) && gt_event_follow(thread, event) != 0)
		record_slow(thread, event, GT_EVENT_SNAPSHOT);
}

/* A histogram's action has made it, of an event that is being concluded here. */
void gt_port_event(const struct gt_event *event)
{
	struct gt_thread *thread = gt_arch_block();
	if (thread != NULL && thread->busy == 0)
		conclude(thread, event, gt_event_has_rules(event->number));
}

void gt_kernel_event_conclude(struct gt_thread *thread, struct gt_event *event, uint64_t saved)
{
	event->faults |= state_of(thread, saved);
	conclude(thread, event, gt_event_has_rules(event->number));
}

static void record(struct gt_thread *thread, const struct graftrace_kernel_event *from,
		   const uint64_t *values, uint64_t saved)
{
	const bool has_rules = gt_event_has_rules(from->number);
	struct gt_event event;
	if (!has_rules && gt_event_is_stopped(thread))
		return;
	event.depth = 0;
	event.faults = state_of(thread, saved);
	gather(from, values, &event);
	conclude(thread, &event, has_rules);
}

void graftrace_event_record(const struct graftrace_kernel_event *event, const uint64_t *values)
{
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	if (thread != NULL && thread->busy == 0 && !(thread->outside & GT_OUTSIDE_PAUSED) &&
	    !thread->unlisted)
		record(thread, event, values, saved);
	gt_arch_interrupts_restore(saved);
}
