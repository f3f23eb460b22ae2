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

static void record(struct gt_thread *thread, const struct graftrace_kernel_event *from,
		   const uint64_t *values, uint64_t saved)
{
	struct gt_event event;
	event.faults = state_of(thread, saved);
	gather(from, values, &event);
	if (gt_event_try_record(thread, &event))
		return;
	thread->busy++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	gt_event_record(thread, &event);
	gt_kernel_set_gate(thread);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	thread->busy--;
}

void graftrace_event_record(const struct graftrace_kernel_event *event, const uint64_t *values)
{
	uint64_t saved = gt_arch_interrupts_off();
	struct gt_thread *thread = gt_arch_block();
	if (thread != NULL && thread->busy == 0 && !gt_event_is_stopped(thread) &&
	    !(thread->outside & (GT_OUTSIDE_PAUSED | GT_OUTSIDE_UNLISTED)))
		record(thread, event, values, saved);
	gt_arch_interrupts_restore(saved);
}
