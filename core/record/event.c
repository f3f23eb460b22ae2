/* SPDX-License-Identifier: MIT */
/*
 * Events with fields: see event.h. The straight line may be interrupted between any two instructions by
 * a signal whose handler records, forks or never returns:
 *  A. the place is taken by one compare and exchange of the cursor, which fails where a nested writer
 *     came first. It is taken only if its last word lies in the open sub-buffer, so there is never a
 *     place that is not used.
 *  B. the head is stored first: from then on readers know how long the record is. The clock (of a call's
 *     values the function) is stored last: where it is zero, the record is not complete, and who would take
 *     the sub-buffer for others waits, as for a hole. Between A and B the words are zero: holes.
 *  C. in a child that fork made in between, the cursor is 0, which is no place.
 *  D. a handler that leaves by a jump gives up the event that it has interrupted.
 */
#include "core/record/event.h"
#include "core/record/arch.h"
#include "core/record/hist.h"
#include "core/record/port.h"
#include <graftrace/filter.h>

#define RELAXED __ATOMIC_RELAXED

/* Head, clock and number. */
#define HEAD_WORDS 3u

static bool is_of_call(const struct gt_event *event)
{
	return event->number & GRAFTRACE_VALUES;
}

static uint32_t words_of(const struct gt_event *event)
{
	return HEAD_WORDS - is_of_call(event) + event->count;
}

/* Without a clock, which the call's own word has. */
static void store_values(uint64_t *place, const struct gt_event *event)
{
	const uint32_t type = event->number & GRAFTRACE_VALUES_RESULT ? GRAFTRACE_EVENT_RESULT
								      : GRAFTRACE_EVENT_ARGUMENTS;
	const uint64_t head =
		graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | (event->count + 1));
	__atomic_store_n(&place[0], head, RELAXED);
	for (uint32_t i = 0; i < event->count; i++)
		__atomic_store_n(&place[2 + i], event->values[i], RELAXED);
	__atomic_store_n(&place[1],
			 (uint64_t)event->faults << 32 |
				 (event->number & GRAFTRACE_VALUES_FUNCTION),
			 __ATOMIC_RELEASE);
}

static void store(uint64_t *place, const struct gt_event *event)
{
	const uint32_t words = words_of(event);
	if (is_of_call(event)) {
		store_values(place, event);
		return;
	}
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

void gt_event_hit(uint32_t number)
{
	const struct graftrace_arena *const arena = gt_port_arena();

	if (arena->event_hits_offset != 0 && number < arena->event_count)
		__atomic_fetch_add(&graftrace_arena_event_hits(arena)[number], 1, RELAXED);
}

bool gt_event_has_rules(uint32_t number)
{
	uint64_t room;

	return rules_of(number, &room) != NULL;
}

/* A walk over the rules that hold for the event. */
struct walk {
	const struct graftrace_event_rules *rules;
	uint64_t room;
	uint32_t at;
	struct graftrace_filter_event looked_at;
	struct graftrace_rule rule; /* a copy: others may write there */
};

/* A program's stream is a thread's; a kernel's is a CPU's. */
#ifdef GT_PROGRAM
#define NUMBER_OF(thread, stream) (stream)->tid
#define NAME_OF(stream)		  (stream)->comm
#else
#define NUMBER_OF(thread, stream) (thread)->tid
#define NAME_OF(stream)		  gt_port_comm()
#endif

/* False: the event has no rules, or the thread no stream: a handler may fork here, too, whose child has a
 * wiped block. */
static bool walk_begin(struct walk *walk, const struct gt_thread *thread,
		       const struct gt_event *event)
{
	const struct graftrace_stream *const stream = __atomic_load_n(&thread->stream, RELAXED);

	walk->rules = rules_of(event->number, &walk->room);
	walk->at = 0;
	if (walk->rules == NULL || stream == NULL)
		return false;
	walk->looked_at = (struct graftrace_filter_event){
		.values = event->values,
		.count = event->count,
		.faults = event->faults,
		.thread = NUMBER_OF(thread, stream),
		.cpu = gt_port_cpu(),
		.comm = NAME_OF(stream),
	};
	return true;
}

static uint64_t *word_of(uint32_t index)
{
	struct graftrace_arena *const arena = gt_port_arena();

	return index < arena->rule_word_count ? &graftrace_arena_rule_words(arena)[index]
					      : graftrace_arena_rule_words(arena);
}

/* Whether it may act once more, which is not counted here. */
static bool has_rest(const struct graftrace_rule *rule)
{
	return rule->limit == GRAFTRACE_RULE_UNLIMITED ||
	       __atomic_load_n(word_of(rule->word), RELAXED) < rule->limit;
}

static bool is_on(const struct graftrace_rule *rule)
{
	switch (rule->action) {
	case GRAFTRACE_RULE_RECORD:
		return rule->word == 0 || __atomic_load_n(word_of(rule->word), RELAXED) != 0;
	case GRAFTRACE_RULE_HIST:
		return __atomic_load_n(word_of(rule->word), RELAXED) == 0;
	default:
		return has_rest(rule);
	}
}

static bool walk_next(struct walk *walk)
{
	const struct graftrace_rule *const first = (const struct graftrace_rule *)(walk->rules + 1);

	while (walk->at < walk->rules->count && walk->at < GRAFTRACE_RULES_MAX &&
	       (walk->at + 1) * sizeof(*first) <= walk->room - sizeof(*walk->rules)) {
		walk->rule = first[walk->at++];
		if (is_on(&walk->rule))
			if (passes(walk->rules, walk->room, walk->rule.filter, &walk->looked_at))
				return true;
	}
	return false;
}

/* Where the description of the rule's histogram lies; NULL: it has none. */
static const struct graftrace_hist *hist_of(const struct walk *walk, uint64_t *room)
{
	const uint64_t at = walk->rule.argument;

	*room = walk->room - at;
	return at < walk->room && at % 8 == 0 ? (const void *)((const char *)walk->rules + at)
					      : NULL;
}

static void count_in(const struct walk *walk, const struct gt_thread *thread,
		     const struct gt_event *event)
{
	const struct gt_hist_event counted = { &walk->looked_at, thread, gt_arch_clock(),
					       event->depth };
	uint64_t room;
	const struct graftrace_hist *hist = hist_of(walk, &room);

	if (hist != NULL)
		gt_hist_count(gt_port_arena(), hist, room, &counted);
}

static bool follow_in(const struct walk *walk, const struct gt_thread *thread,
		      const struct gt_event *event)
{
	const struct gt_hist_event counted = { &walk->looked_at, thread, gt_arch_clock(),
					       event->depth };
	uint64_t room;
	const struct graftrace_hist *hist = hist_of(walk, &room);

	return hist != NULL && gt_hist_follow(gt_port_arena(), hist, room, &counted);
}

unsigned gt_event_look(const struct gt_thread *thread, const struct gt_event *event)
{
	struct walk walk;
	unsigned what = 0;

	if (thread->stream == NULL) /* C */
		return GT_EVENT_ASK;
	if (!walk_begin(&walk, thread, event))
		return GT_EVENT_RECORD;
	while (walk_next(&walk))
		if (walk.rule.action == GRAFTRACE_RULE_RECORD)
			what |= GT_EVENT_RECORD;
		else if (walk.rule.action != GRAFTRACE_RULE_HIST)
			what |= GT_EVENT_ACT;
		else if (walk.rule.more)
			what |= GT_EVENT_FOLLOW;
		else
			count_in(&walk, thread, event);
	return what;
}

unsigned gt_event_follow(const struct gt_thread *thread, const struct gt_event *event)
{
	struct walk walk;
	unsigned what = 0;

	if (!walk_begin(&walk, thread, event))
		return 0;
	while (walk_next(&walk))
		if (walk.rule.action == GRAFTRACE_RULE_HIST && walk.rule.more &&
		    follow_in(&walk, thread, event))
			what = GT_EVENT_SNAPSHOT;
	return what;
}

void gt_event_snapshot(const struct gt_thread *thread, const struct gt_event *event)
{
	if (!thread->host)
		gt_port_trigger(GRAFTRACE_TRIGGER_SNAPSHOT,
				GRAFTRACE_TRIGGER_OF_EVENT | event->number, gt_arch_clock(), 0);
}

bool gt_event_is_stopped(struct gt_thread *thread)
{
	if (!thread->host && thread->full)
		lose(thread->stream);
	return thread->host || thread->full;
}

bool gt_event_leaves_call_out(const struct gt_thread *thread, bool root)
{
	const uint8_t mode = thread->mode != 0 ? thread->mode : thread->chosen;
	const uint8_t outside = thread->outside & (root ? ~GT_OUTSIDE_GRAPH : ~0);

	return outside != 0 || (mode != GT_MODE_GRAPH && mode != GT_MODE_FUNCTION &&
				mode != GT_MODE_PROFILE_GRAPH && mode != GT_MODE_STACK);
}

/* D. The handler may be of a fork's child, whose block is not this thread's any more. */
static void store_noted(struct gt_thread *thread, uint64_t place, const struct gt_event *event)
{
#ifdef GT_PROGRAM
	const uint64_t outer = thread->storing;

	__atomic_store_n(&thread->storing, place, RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	store((uint64_t *)place, event);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&thread->storing, outer, RELAXED);
#else
	(void)thread;
	store((uint64_t *)place, event);
#endif
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
	store_noted(thread, place, event);
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
	if (gt_event_is_stopped(thread) || thread->outside & GT_OUTSIDE_PAUSED || thread->unlisted)
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

/* Is this hit, which is counted, one at which it acts? */
static bool hit(const struct graftrace_rule *rule)
{
	uint64_t *const word = word_of(rule->word);

	if (rule->limit == GRAFTRACE_RULE_UNLIMITED)
		return true;
	for (uint64_t hits = __atomic_load_n(word, RELAXED); hits < rule->limit;)
		if (__atomic_compare_exchange_n(word, &hits, hits + 1, false, RELAXED, RELAXED))
			return true;
	return false;
}

static void act(struct gt_thread *thread, const struct gt_event *event,
		const struct graftrace_rule *rule)
{
	const bool on = rule->action == GRAFTRACE_RULE_TRACEON;
	struct graftrace_arena *const arena = gt_port_arena();
	uint32_t action = on ? GRAFTRACE_TRIGGER_TRACEON : GRAFTRACE_TRIGGER_TRACEOFF;

	switch (rule->action) {
	case GRAFTRACE_RULE_TRACEON:
	case GRAFTRACE_RULE_TRACEOFF:
		/* As in Linux, a hit that changes nothing is none. */
		if ((__atomic_load_n(&arena->tracing_on, RELAXED) != 0) == on || !hit(rule) ||
		    !gt_record_switch(thread, on))
			return;
		break;
	case GRAFTRACE_RULE_ENABLE:
	case GRAFTRACE_RULE_DISABLE:
		if ((__atomic_load_n(word_of((uint32_t)rule->argument), RELAXED) != 0) !=
			    (rule->action == GRAFTRACE_RULE_ENABLE) &&
		    hit(rule))
			__atomic_store_n(word_of((uint32_t)rule->argument),
					 rule->action == GRAFTRACE_RULE_ENABLE, RELAXED);
		return;
	case GRAFTRACE_RULE_HIST_ON:
	case GRAFTRACE_RULE_HIST_OFF:
		if (rule->more || hit(rule))
			__atomic_store_n(word_of((uint32_t)rule->argument),
					 rule->action == GRAFTRACE_RULE_HIST_OFF, RELAXED);
		return;
	case GRAFTRACE_RULE_STACKTRACE:
		if (!thread->host && hit(rule))
			gt_record_stack(thread, gt_arch_clock());
		return;
	case GRAFTRACE_RULE_SNAPSHOT:
		if (thread->host || !hit(rule))
			return;
		action = GRAFTRACE_TRIGGER_SNAPSHOT;
		break;
	default:
		return;
	}
	gt_port_trigger(action, GRAFTRACE_TRIGGER_OF_EVENT | event->number, gt_arch_clock(), 0);
}

/* Linux acts without a filter before the record is made, with one behind it, and a stack trace stands
 * behind it in any case. */
static bool is_before(const struct graftrace_rule *rule)
{
	return rule->filter == 0 && rule->action != GRAFTRACE_RULE_STACKTRACE;
}

void gt_event_act(struct gt_thread *thread, const struct gt_event *event)
{
	struct walk walk;
	bool recorded = false;

	if (!walk_begin(&walk, thread, event)) {
		gt_event_record(thread, event);
		return;
	}
	while (walk_next(&walk))
		if (walk.rule.action == GRAFTRACE_RULE_RECORD)
			recorded = true;
		else if (is_before(&walk.rule))
			act(thread, event, &walk.rule);
	if (recorded)
		gt_event_record(thread, event);
	walk.at = 0;
	while (walk_next(&walk))
		if (walk.rule.action != GRAFTRACE_RULE_RECORD && !is_before(&walk.rule))
			act(thread, event, &walk.rule);
}
