/* SPDX-License-Identifier: MIT */
/*
 * Events with fields: see event.h. The straight line may be interrupted between any two instructions by
 * a signal whose handler records, forks or never returns:
 *  A. the place is taken by one compare and exchange of the cursor, which fails where a nested writer
 *     came first. It is taken only if its last word lies in the open sub-buffer, so there is never a
 *     place that is not used.
 *  B. the head is stored first: from then on readers know how long the record is. The clock is stored
 *     last: where it is zero, the record is not complete. Between A and B the words are zero: holes.
 *  C. in a child that fork made in between, the cursor is 0, which is no place.
 */
#include "core/record/event.h"
#include "core/record/arch.h"
#include "core/record/port.h"
#include <graftrace/filter.h>

#define RELAXED __ATOMIC_RELAXED

/* Head, clock and number. */
#define HEAD_WORDS 3u

static uint32_t words_of(const struct gt_event *event)
{
	return HEAD_WORDS + event->count;
}

static void store(uint64_t *place, const struct gt_event *event)
{
	const uint32_t words = words_of(event);
	const uint64_t head = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						     GRAFTRACE_EVENT_PROBE << 16 | (words - 1));
	__atomic_store_n(&place[0], head, RELAXED);
	const uint64_t clock = gt_arch_clock();
	__atomic_store_n(&place[2], (uint64_t)event->faults << 32 | event->number, RELAXED);
	for (uint32_t i = 0; i < event->count; i++)
		__atomic_store_n(&place[HEAD_WORDS + i], event->values[i], RELAXED);
	__atomic_store_n(&place[1], clock, __ATOMIC_RELEASE);
}

/* Where the next word goes, if the straight line may write there as things stand. With the tracer
 * nop no mode says that something has to be told first, or that room is short. */
static uint64_t *cursor_of(struct gt_thread *thread)
{
	switch (__atomic_load_n(&thread->stop, RELAXED)) {
	case GT_MODE_GRAPH << GT_STOP_MODE_SHIFT:
		return &thread->cur;
	case GT_MODE_FUNCTION << GT_STOP_MODE_SHIFT:
		return &thread->cur_pair;
	case GT_MODE_NOP << GT_STOP_MODE_SHIFT:
		return thread->tight || thread->resume != 0 ? NULL : &thread->cur;
	default:
		return NULL;
	}
}

static void lose(struct graftrace_stream *stream)
{
	if (stream != NULL) /* C */
		__atomic_fetch_add(&stream->lost_events, 1, RELAXED);
}

/* The event's rules; NULL: it has none. *room: bytes that there are at most. */
static const struct graftrace_event_rules *rules_of(uint32_t number, uint64_t *room)
{
	struct graftrace_arena *const arena = gt_port_arena();

	if (__atomic_load_n(&arena->has_rules, RELAXED) == 0 || number >= arena->event_count)
		return NULL;
	const uint64_t at = 8ull * __atomic_load_n(&graftrace_arena_event_table(arena)[number],
						   __ATOMIC_ACQUIRE);
	if (at == 0 || at > arena->rules_bytes - sizeof(struct graftrace_event_rules))
		return NULL;
	*room = arena->rules_bytes - at;
	return (const void *)((const char *)arena + arena->rules_offset + at);
}

static bool passes(const struct graftrace_event_rules *rules, uint64_t room, uint32_t filter,
		   const struct graftrace_filter_event *event)
{
	return filter == 0 || (filter < room && filter % 8 == 0 &&
			       graftrace_filter_passes((const void *)((const char *)rules + filter),
						       room - filter, event));
}

bool gt_event_is_wanted(const struct gt_thread *thread, const struct gt_event *event)
{
	uint64_t room;
	const struct graftrace_event_rules *const rules = rules_of(event->number, &room);

	if (rules == NULL || thread->stream == NULL)
		return rules == NULL;
	const struct graftrace_filter_event looked_at = {
		.values = event->values,
		.count = event->count,
		.faults = event->faults,
		.thread = thread->stream->tid,
		.cpu = gt_port_cpu(),
		.comm = thread->stream->comm,
	};
	const struct graftrace_rule *const first = (const struct graftrace_rule *)(rules + 1);
	for (uint32_t i = 0; i < rules->count && i < GRAFTRACE_RULES_MAX &&
			     (i + 1) * sizeof(*first) <= room - sizeof(*rules);
	     i++)
		if (first[i].action == GRAFTRACE_RULE_RECORD &&
		    passes(rules, room, first[i].filter, &looked_at))
			return true;
	return false;
}

bool gt_event_is_stopped(struct gt_thread *thread)
{
	if (!thread->host && thread->full)
		lose(thread->stream);
	return thread->host || thread->full;
}

bool gt_event_try_record(struct gt_thread *thread, const struct gt_event *event)
{
	uint64_t *const cursor = cursor_of(thread);
	if (cursor == NULL)
		return false;
	const uint32_t words = words_of(event);
	const uint64_t bytes = 8ull * (cursor == &thread->cur_pair ? (words + 1) & ~1u : words);
	uint64_t place = __atomic_load_n(cursor, RELAXED);
	do {
		const uint64_t inside = __atomic_load_n(&thread->inside, RELAXED);
		if (!(place & inside) || !((place + bytes - 8) & inside))
			return false;
	} while (!__atomic_compare_exchange_n(cursor, &place, place + bytes, false, RELAXED,
					      RELAXED)); /* A */
	store((uint64_t *)place, event);
	return true;
}

/* A sub-buffer of the kind that the tracer writes; with one that writes nothing, whichever is
 * open. */
static bool is_ready(struct gt_thread *thread)
{
	if (thread->mode == 0)
		gt_stream_choose(thread);
	if (thread->chosen == GT_MODE_NOP || thread->chosen == GT_MODE_PROFILE)
		return thread->sub_buffer != NULL || gt_stream_open(thread);
	return gt_stream_fits(thread) || gt_stream_open(thread);
}

void gt_event_record(struct gt_thread *thread, const struct gt_event *event)
{
	if (gt_event_is_stopped(thread) ||
	    thread->outside & (GT_OUTSIDE_PAUSED | GT_OUTSIDE_UNLISTED))
		return;
	uint64_t *place = NULL;
	if (is_ready(thread) && gt_record_announce(thread))
		place = gt_stream_reserve(thread, words_of(event), false);
	if (place != NULL)
		store(place, event);
	else {
		lose(thread->stream);
		/* as for calls: who waits for room in vain does not wait again until there is some */
		thread->full = 1;
		__atomic_store_n(&thread->stream->stopped_full, 1, __ATOMIC_RELEASE);
		gt_port_ring_doorbell(gt_port_arena());
	}
	gt_stream_settle(thread);
}
