/* SPDX-License-Identifier: MIT */
/*
 * Draining: see drain.h. Races with the writers, by letter:
 *  A. A writer closes sub-buffer n (stores `used`, then FULL) before it opens n + 1. A pass over
 *     the states can miss n (still ACTIVE when looked at) and see n + 1 FULL: n + 1 waits for the
 *     next pass.
 *  B. A signal handler can fill and close the sub-buffer in which the code that it interrupted has
 *     reserved a word: the store comes when the handler returns. Such a hole is waited for HOLE_NS.
 *     Then the rest is delivered, and the sub-buffer stays out of use (quarantine) until the word
 *     is there or the writer has ended: else the late store would land in somebody else's records.
 *  C. A reader that copies finds the state word unchanged after the copy (acquire fence between),
 *     or throws the copy away: an overwriting writer changes the word before it writes.
 *  D. The host takes FULL -> READING by compare-and-swap: an overwriting writer may be at it too.
 *     In the ring modes a consuming reader takes a sub-buffer so before it gives the first record
 *     of it (held), and frees it behind the last: no writer counts as overrun what was given.
 */
#define _GNU_SOURCE
#include "attach/ring/drain_private.h"
#include "attach/process/clock.h"
#include "attach/process/process.h"
#include "core/trace/word_walk.h"

#include <stdlib.h>
#include <string.h>

#define HOLE_NS 20000000ull
/* A sequence that is nowhere is given up after this: only a broken arena has such gaps. */
#define MISSING_NS 200000000ull

#define NOBODY (~0u)

struct gt_drain_item {
	uint32_t index;
	uint32_t writer;
	uint64_t sequence;
	uint64_t word;
};

int gt_drain_init(struct gt_drain *drain, struct gt_arena *arena, enum graftrace_arena_mode mode,
		  const struct gt_sink *sink, struct gt_message *message)
{
	const uint32_t slots = arena->sub_buffer_count + arena->small_count;

	*drain = (struct gt_drain){ .arena = arena, .sink = sink, .mode = mode };
	drain->begun_ns = gt_monotonic_ns();
	drain->generations = gt_arena_writers_from(arena);
	drain->of_stream = calloc(arena->stream_count, sizeof(*drain->of_stream));
	drain->live = calloc(arena->stream_count, sizeof(*drain->live));
	drain->is_closed = calloc(arena->stream_count, sizeof(*drain->is_closed));
	drain->items = calloc(slots, sizeof(*drain->items));
	drain->found_next = calloc(slots, sizeof(*drain->found_next));
	drain->quarantine = calloc(slots, sizeof(*drain->quarantine));
	drain->copy = malloc(arena->sub_buffer_bytes);
	if (drain->of_stream == NULL || drain->live == NULL || drain->is_closed == NULL ||
	    drain->items == NULL || drain->found_next == NULL || drain->quarantine == NULL ||
	    drain->copy == NULL) {
		gt_drain_fini(drain);
		return gt_fail(message, GT_ENOMEM, "no memory for %u sub-buffers",
			       arena->sub_buffer_count);
	}
	return 0;
}

void gt_drain_fini(struct gt_drain *drain)
{
	free(drain->writers);
	free(drain->of_stream);
	free(drain->live);
	free(drain->is_closed);
	free(drain->items);
	free(drain->found_next);
	free(drain->quarantine);
	free(drain->copy);
	free(drain->forgotten.pids);
	*drain = (struct gt_drain){ 0 };
}

static int tell(struct gt_drain *drain, struct gt_live_writer *writer)
{
	writer->told = true;
	if (drain->sink == NULL || drain->sink->writer == NULL)
		return 0;
	return drain->sink->writer(drain->sink->data, &writer->writer);
}

static int add_writer(struct gt_drain *drain, uint32_t stream_index, uint32_t generation,
		      uint32_t pid, uint32_t tid)
{
	struct graftrace_stream *stream = gt_arena_stream(drain->arena, stream_index);
	struct gt_live_writer *writer;
	uint32_t index = drain->writer_count;

	if (drain->free_writer) {
		index = drain->free_writer - 1;
		drain->free_writer = drain->writers[index].stream;
	} else if (drain->writer_count == drain->writer_room) {
		uint32_t room = drain->writer_room ? drain->writer_room * 2 : 64;
		struct gt_live_writer *writers =
			realloc(drain->writers, room * sizeof(*drain->writers));

		if (writers == NULL)
			return GT_ENOMEM;
		drain->writers = writers;
		drain->writer_room = room;
	}
	writer = &drain->writers[index];
	*writer = (struct gt_live_writer){ .stream = stream_index, .live = true };
	writer->writer.generation = generation;
	writer->writer.pid = pid;
	writer->writer.tid = tid;
	writer->writer.start = __atomic_load_n(&stream->start, __ATOMIC_RELAXED);
	writer->block = __atomic_load_n(&stream->block, __ATOMIC_RELAXED);
	drain->live[drain->live_count++] = index;
	drain->of_stream[stream_index] = index + 1;
	if (index == drain->writer_count)
		drain->writer_count++;
	return 0;
}

/*
 * E. Whoever changes a stream from LIVE to ENDED closes it. Not we: then it is closed once nothing
 * of it is ACTIVE, which is looked for behind the ENDED (a closer that was killed half-way: the end
 * of its process tells). One look at all sub-buffers is for all such streams: hundreds of short
 * threads can have ended since the last one.
 */
static void find_ended(struct gt_drain *drain)
{
	const struct gt_arena *arena = drain->arena;
	const uint32_t limit = gt_arena_index_limit(arena);
	bool any = false;

	for (uint32_t i = 0; i < drain->live_count; i++) {
		const struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		const struct graftrace_stream *stream = gt_arena_stream(arena, writer->stream);

		drain->is_closed[writer->stream] =
			!writer->ended &&
			__atomic_load_n(&stream->state, __ATOMIC_ACQUIRE) == GRAFTRACE_STREAM_ENDED;
		any = any || drain->is_closed[writer->stream];
	}
	for (uint32_t i = 0; any && i < limit; i++) {
		uint64_t word = __atomic_load_n(&gt_arena_state(arena, i)->word, __ATOMIC_ACQUIRE);
		uint32_t stream = graftrace_word_stream(word);

		if (graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_ACTIVE &&
		    stream < arena->stream_count)
			drain->is_closed[stream] = false;
	}
	for (uint32_t i = 0; any && i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];

		writer->ended = writer->ended || drain->is_closed[writer->stream];
	}
}

/*
 * F. What a stream counts is its process's to say, and of any other that writes over it. A number
 * that cannot have been reached since it was read last is not taken. Opening a sub-buffer takes a
 * writer more than 64 ns, and in one it loses no more than 4 records.
 */
#define OPENING_NS   64
#define RECORDS_A_NS 4
#define BURST	     (1u << 16) /* what was under way while the clock was read */

static bool is_possible(uint64_t before, uint64_t now, uint64_t most)
{
	return now >= before && now - before <= most + BURST;
}

/* Numbers of calls and the like. */
static void update_counters(struct gt_live_writer *writer, const struct graftrace_stream *stream,
			    uint64_t sequence, uint64_t passed_ns)
{
	uint64_t lost;

	if (sequence < writer->writer.next ||
	    is_possible(writer->writer.next, sequence, passed_ns / OPENING_NS))
		writer->writer.next =
			sequence > writer->writer.next ? sequence : writer->writer.next;
	else
		writer->damaged = true;
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++) {
		lost = __atomic_load_n(&stream->lost[cause], __ATOMIC_RELAXED);
		if (is_possible(writer->writer.lost[cause], lost, passed_ns * RECORDS_A_NS))
			writer->writer.lost[cause] = lost;
		else
			writer->damaged = true;
	}
	lost = __atomic_load_n(&stream->lost_events, __ATOMIC_RELAXED);
	if (is_possible(writer->lost_events, lost, passed_ns * RECORDS_A_NS))
		writer->lost_events = lost;
	else
		writer->damaged = true;
}

void gt_drain_update(struct gt_drain *drain, struct gt_live_writer *writer)
{
	struct graftrace_stream *stream = gt_arena_stream(drain->arena, writer->stream);
	uint64_t sequence = __atomic_load_n(&stream->sequence, __ATOMIC_ACQUIRE);
	uint64_t now_ns = gt_monotonic_ns();

	/* Name, then block: see the agent's start of a stream. */
	writer->block = __atomic_load_n(&stream->block, __ATOMIC_ACQUIRE);
	if (writer->block) {
		memcpy(writer->writer.comm, stream->comm, sizeof(writer->writer.comm));
		writer->writer.comm[sizeof(writer->writer.comm) - 1] = 0;
	}
	update_counters(writer, stream, sequence,
			now_ns - (writer->looked_ns ? writer->looked_ns : drain->begun_ns));
	writer->looked_ns = now_ns;
}

/* Another arena's writers have other numbers: it must not be taken for one of those. */
static bool is_own_number(const struct gt_drain *drain, uint32_t generation)
{
	return generation - gt_arena_writers_from(drain->arena) - 1 <
	       gt_arena_writers_most(drain->arena);
}

static bool is_foreign(const struct gt_drain *drain, uint32_t pid)
{
	return drain->is_foreign != NULL &&
	       drain->is_foreign(drain->data, drain->arena->number, pid);
}

int gt_drain_find_writers(struct gt_drain *drain)
{
	struct gt_arena *arena = drain->arena;
	uint32_t generations = __atomic_load_n(&arena->memory->generations, __ATOMIC_ACQUIRE);
	uint32_t used = __atomic_load_n(&arena->memory->stream_next, __ATOMIC_ACQUIRE), i;

	if (generations == drain->generations)
		return 0;
	if (used > arena->stream_count)
		used = arena->stream_count;
	/* A claim takes the stream, raises the counter and stores its number, in this order: what
	 * is not complete yet is looked for again. */
	for (i = 0; i < used; i++) {
		struct graftrace_stream *stream = gt_arena_stream(arena, i);
		uint32_t generation, pid, tid;
		int error;

		if (drain->of_stream[i] ||
		    __atomic_load_n(&stream->state, __ATOMIC_ACQUIRE) == GRAFTRACE_STREAM_FREE)
			continue;
		generation = __atomic_load_n(&stream->generation, __ATOMIC_ACQUIRE);
		if (!generation) {
			generations = drain->generations;
			continue;
		}
		if (!is_own_number(drain, generation)) {
			drain->refused = true;
			continue;
		}
		pid = __atomic_load_n(&stream->pid, __ATOMIC_RELAXED);
		tid = __atomic_load_n(&stream->tid, __ATOMIC_RELAXED);
		if (drain->number != NULL &&
		    !drain->number(drain->data, arena->number, stream, &pid, &tid)) {
			generations = drain->generations;
			continue;
		}
		if (is_foreign(drain, pid)) {
			drain->refused = true;
			generations = drain->generations; /* it may be the number's next process */
			continue;
		}
		error = add_writer(drain, i, generation, pid, tid);
		if (error)
			return error;
		gt_drain_update(drain, &drain->writers[drain->of_stream[i] - 1]);
	}
	drain->generations = generations;
	return 0;
}

int gt_drain_scan(struct gt_drain *drain)
{
	int error = gt_drain_find_writers(drain);

	find_ended(drain);
	for (uint32_t i = 0; !error && i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];

		gt_drain_update(drain, writer);
		if (writer->block && !writer->told)
			error = tell(drain, writer);
	}
	return error;
}

void gt_drain_end_writer(struct gt_drain *drain, uint32_t index, bool whole)
{
	struct gt_live_writer *writer;
	uint64_t live, ended, *word;

	if (index >= drain->writer_count || !drain->writers[index].live)
		return;
	writer = &drain->writers[index];
	/* With the generation: the agent's side does the same. */
	live = (uint64_t)writer->writer.generation << 32 | GRAFTRACE_STREAM_LIVE;
	ended = (uint64_t)writer->writer.generation << 32 | GRAFTRACE_STREAM_ENDED;
	word = (uint64_t *)&gt_arena_stream(drain->arena, writer->stream)->state;
	if (__atomic_compare_exchange_n(word, &live, ended, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED) ||
	    whole)
		writer->ended = true; /* E */
}

bool gt_drain_header_fits(const struct gt_drain *drain, const struct graftrace_sub_buffer *header,
			  uint32_t index, const struct gt_live_writer *writer, uint64_t sequence)
{
	return header->magic == GRAFTRACE_SUB_BUFFER_MAGIC &&
	       header->bytes == gt_arena_bytes_of(drain->arena, index) &&
	       header->stream == writer->stream &&
	       header->generation == writer->writer.generation &&
	       (header->sequence & GRAFTRACE_SEQUENCE_MASK) == sequence &&
	       header->open_calls <= GRAFTRACE_OPEN_CALLS &&
	       header->used <= gt_arena_words(drain->arena, index);
}

static int by_writer_and_sequence(const void *left, const void *right)
{
	const struct gt_drain_item *a = left, *b = right;

	if (a->writer != b->writer)
		return a->writer < b->writer ? -1 : 1;
	if (a->sequence != b->sequence)
		return a->sequence < b->sequence ? -1 : 1;
	return a->index < b->index ? -1 : 1;
}

/* All sub-buffers that can be taken: FULL ones, and ACTIVE ones of ended writers. In the ring modes
 * also those that are held. */
static uint32_t collect(struct gt_drain *drain)
{
	struct gt_arena *arena = drain->arena;
	const uint32_t limit = gt_arena_index_limit(arena);
	uint32_t count = 0;

	for (uint32_t i = 0; i < limit; i++) {
		uint64_t word = __atomic_load_n(&gt_arena_state(arena, i)->word, __ATOMIC_ACQUIRE);
		uint32_t state = graftrace_word_state(word), stream = graftrace_word_stream(word),
			 writer;

		if (!gt_drain_is_readable(drain, state))
			continue;
		if (stream >= arena->stream_count || !drain->of_stream[stream])
			continue; /* its writer is found by the next scan */
		writer = drain->of_stream[stream] - 1;
		if (state == GRAFTRACE_SUB_BUFFER_ACTIVE && !drain->writers[writer].ended)
			continue;
		drain->items[count++] =
			(struct gt_drain_item){ i, writer, graftrace_word_sequence(word), word };
	}
	qsort(drain->items, count, sizeof(*drain->items), by_writer_and_sequence);
	return count;
}

bool gt_drain_take(struct gt_drain *drain, uint32_t index, uint64_t *word)
{
	uint64_t reading = graftrace_word_with_state(*word, GRAFTRACE_SUB_BUFFER_READING);

	if (!__atomic_compare_exchange_n(&gt_arena_state(drain->arena, index)->word, word, reading,
					 false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) /* D */
		return false;
	*word = reading;
	return true;
}

/* 1: delivered; 0: not yet; negative: the sink's error. */
static int deliver(struct gt_drain *drain, struct gt_drain_item *item, uint64_t now_ns)
{
	struct gt_live_writer *writer = &drain->writers[item->writer];
	struct graftrace_sub_buffer *copy = drain->copy;
	struct gt_word_sum sum;
	uint32_t words;
	bool hole;
	int error;

	memcpy(copy, gt_arena_sub_buffer(drain->arena, item->index),
	       gt_arena_bytes_of(drain->arena, item->index));
	if (!gt_drain_header_fits(drain, copy, item->index, writer, item->sequence)) {
		/* Ended before it wrote the header, or damaged. */
		if (gt_drain_take(drain, item->index, &item->word)) {
			drain->corrupt += copy->magic != 0;
			gt_arena_free(drain->arena, item->index);
		}
		return 1;
	}
	words = copy->used ? copy->used : gt_arena_words(drain->arena, item->index);
	gt_words_sum(copy, words, &sum);
	if (!copy->used || writer->ended)
		words = sum.end;
	hole = sum.hole < words;
	if (hole && !writer->ended) {
		if (!writer->waiting_since)
			writer->waiting_since = now_ns;
		if (now_ns - writer->waiting_since < HOLE_NS)
			return 0; /* B */
	}
	writer->waiting_since = 0;
	if (!writer->told) {
		error = tell(drain, writer);
		if (error)
			return error;
	}
	if (!gt_drain_take(drain, item->index, &item->word))
		return 0;
	gt_drain_put_numbers(copy, writer);
	if (copy->clock > drain->last_clock)
		drain->last_clock = copy->clock;
	drain->words += sum.records;
	drain->calls += sum.calls;
	copy->used = words;
	error = words && drain->sink != NULL && drain->sink->sub_buffer != NULL
			? drain->sink->sub_buffer(drain->sink->data, copy, words)
			: 0;
	if (hole && !writer->ended &&
	    drain->quarantined < drain->arena->sub_buffer_count + drain->arena->small_count)
		drain->quarantine[drain->quarantined++] =
			(struct gt_drain_quarantined){ item->index, item->writer, sum.calls };
	else
		gt_arena_free(drain->arena, item->index);
	return error < 0 ? error : 1;
}

/* Sub-buffers whose hole has been filled, or can no longer be, go back. What came late is counted.
 */
static void release_quarantine(struct gt_drain *drain)
{
	uint32_t i = 0;

	while (i < drain->quarantined) {
		struct gt_drain_quarantined *item = &drain->quarantine[i];
		struct graftrace_sub_buffer *copy = drain->copy;
		struct gt_word_sum sum = { 0 };

		memcpy(copy, gt_arena_sub_buffer(drain->arena, item->index),
		       gt_arena_bytes_of(drain->arena, item->index));
		if (copy->used <= gt_arena_words(drain->arena, item->index))
			gt_words_sum(copy, copy->used, &sum);
		if (sum.hole < copy->used && !drain->writers[item->writer].ended) {
			i++;
			continue;
		}
		if (sum.calls > item->calls)
			__atomic_fetch_add(&drain->arena->memory->lost[GRAFTRACE_LOST_LATE],
					   sum.calls - item->calls, __ATOMIC_RELAXED);
		gt_arena_free(drain->arena, item->index);
		*item = drain->quarantine[--drain->quarantined];
	}
}

/* An ended writer with nothing left: the stream may be claimed anew. */
static int release_stream(struct gt_drain *drain, uint32_t at)
{
	uint32_t index = drain->live[at];
	struct gt_live_writer *writer = &drain->writers[index];
	struct graftrace_stream *stream = gt_arena_stream(drain->arena, writer->stream);

	gt_drain_update(drain, writer);
	if (!writer->writer.end)
		writer->writer.end = drain->last_clock ? drain->last_clock : writer->writer.start;
	writer->live = false;
	drain->of_stream[writer->stream] = 0;
	drain->live[at] = drain->live[--drain->live_count];
	/* Everything but the state first; the claim's compare-and-swap acquires it. */
	memset((char *)stream + sizeof(stream->state), 0, sizeof(*stream) - sizeof(stream->state));
	__atomic_store_n(&stream->state, GRAFTRACE_STREAM_FREE, __ATOMIC_RELEASE);
	gt_arena_free_stream(drain->arena, writer->stream);
	return tell(drain, writer);
}

/* Why writers find nothing free: the sink is too slow, or there are more threads than sub-buffers,
 * and each keeps the one that it has open. count: of those that can be taken. */
static void note_pool(struct gt_drain *drain, uint32_t count)
{
	if (!__atomic_load_n(&drain->arena->memory->free_count, __ATOMIC_RELAXED) &&
	    count < drain->arena->sub_buffer_count / 2)
		drain->pool_is_held = true;
}

static int drain_to_sink(struct gt_drain *drain, uint64_t now_ns)
{
	uint32_t count = collect(drain), i = 0, done = 0, at, index;
	int result;

	note_pool(drain, count);
	while (i < count) {
		struct gt_live_writer *writer;

		index = drain->items[i].writer;
		writer = &drain->writers[index];
		for (; i < count && drain->items[i].writer == index; i++) {
			struct gt_drain_item *item = &drain->items[i];

			if (item->sequence < (writer->expected & GRAFTRACE_SEQUENCE_MASK)) {
				/* Twice the same: the target has written over its arena. */
				if (gt_drain_take(drain, item->index, &item->word))
					gt_arena_free(drain->arena, item->index);
				drain->corrupt++;
				continue;
			}
			if (item->sequence > (writer->expected & GRAFTRACE_SEQUENCE_MASK) &&
			    !writer->ended) {
				if (!writer->waiting_since)
					writer->waiting_since = now_ns;
				if (now_ns - writer->waiting_since < MISSING_NS)
					break; /* A */
			}
			result = deliver(drain, item, now_ns);
			if (result < 0)
				return result;
			if (!result)
				break;
			done++;
			writer->expected = item->sequence + 1;
			writer->writer.first = writer->expected;
		}
		while (i < count && drain->items[i].writer == index)
			i++;
	}
	/* Before writers are forgotten. */
	release_quarantine(drain);
	/* Everything of an ended writer was taken in the pass that began after its end. */
	for (at = 0; at < drain->live_count;) {
		if (!drain->writers[drain->live[at]].ended) {
			at++;
			continue;
		}
		index = drain->live[at];
		result = release_stream(drain, at);
		if (result)
			return result;
		gt_drain_forget(drain, index);
	}
	return (int)done;
}

static bool is_whole(const struct gt_drain *drain, const struct gt_drain_item *item,
		     uint64_t *calls, uint64_t *records)
{
	struct graftrace_sub_buffer *memory = gt_arena_sub_buffer(drain->arena, item->index);
	uint32_t room = gt_arena_words(drain->arena, item->index), used = memory->used;
	uint32_t words = used < room ? used : room;
	struct gt_word_sum sum;

	gt_words_sum(memory, words, &sum);
	*calls = sum.calls;
	*records = sum.records;
	return drain->writers[item->writer].ended || sum.hole == words;
}

/* Takes the item's sub-buffer out of the ring, counted as overrun. */
static void give_up(struct gt_drain *drain, struct gt_drain_item *item)
{
	struct gt_arena *arena = drain->arena;
	struct graftrace_stream *stream =
		gt_arena_stream(arena, drain->writers[item->writer].stream);
	uint64_t calls = 0, records = 0;

	if (is_whole(drain, item, &calls, &records) &&
	    gt_drain_take(drain, item->index, &item->word)) {
		__atomic_fetch_add(&stream->lost[GRAFTRACE_LOST_OVERRUN], records,
				   __ATOMIC_RELAXED);
		__atomic_fetch_add(&stream->lost[GRAFTRACE_LOST_OVERRUN_CALLS], calls,
				   __ATOMIC_RELAXED);
		gt_arena_free(arena, item->index);
		item->writer = NOBODY;
	}
}

/* Sub-buffers that a writer finds, in the pool or never used. */
static bool is_short(const struct gt_arena *arena, bool small, uint32_t least)
{
	const struct graftrace_arena *memory = arena->memory;

	if (!small)
		return __atomic_load_n(&memory->free_count, __ATOMIC_RELAXED) <= least;
	/* any process can write it */
	return __atomic_load_n(&memory->small_used, __ATOMIC_RELAXED) + (uint64_t)least >=
	       arena->small_count;
}

/* What can be given up, by age. */
struct aged {
	struct gt_drain_item *item;
	uint64_t clock; /* of its sub-buffer's opening */
};

static int by_clock(const void *left, const void *right)
{
	const struct aged *a = left, *b = right;

	if (a->clock != b->clock)
		return a->clock < b->clock ? -1 : 1;
	return a->item < b->item ? -1 : 1;
}

/*
 * Overwrite mode: the oldest sub-buffers go, whosesoever they are, so that writers find zeroed ones
 * in the pool. A live writer can take back the oldest of its own, when the host is too slow or is
 * gone, but then has to clear it in the midst of a call; and what ended writers left nobody else
 * takes. Small ones and others are two pools.
 */
static int make_room(struct gt_drain *drain, uint32_t count, bool small)
{
	struct gt_arena *arena = drain->arena;
	uint32_t low = GRAFTRACE_LOW_POOL(small ? arena->small_count : arena->sub_buffer_count);
	uint32_t aged_count = 0;
	struct aged *aged;

	if (!count || !is_short(arena, small, low))
		return 0;
	aged = calloc(count, sizeof(*aged));
	if (aged == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		struct gt_drain_item *item = &drain->items[i];

		if (graftrace_word_state(item->word) == GRAFTRACE_SUB_BUFFER_FULL &&
		    (item->index >= arena->sub_buffer_count) == small)
			aged[aged_count++] =
				(struct aged){ item,
					       gt_arena_sub_buffer(arena, item->index)->clock };
	}
	qsort(aged, aged_count, sizeof(*aged), by_clock);
	for (uint32_t i = 0; i < aged_count && is_short(arena, small, low * 3 / 2); i++)
		give_up(drain, aged[i].item);
	free(aged);
	return 0;
}

/* Ring modes: what an ended writer left open is closed, so that it can be consumed. */
static int close_ended(struct gt_drain *drain)
{
	struct gt_arena *arena = drain->arena;
	uint32_t count = collect(drain), i, done = 0;

	note_pool(drain, count);
	for (i = 0; i < count; i++) {
		struct gt_drain_item *item = &drain->items[i];
		struct graftrace_sub_buffer *memory = gt_arena_sub_buffer(arena, item->index);
		uint64_t full = graftrace_word_with_state(item->word, GRAFTRACE_SUB_BUFFER_FULL);
		struct gt_word_sum sum;
		uint32_t words;

		if (graftrace_word_state(item->word) != GRAFTRACE_SUB_BUFFER_ACTIVE)
			continue;
		gt_words_sum(memory, gt_arena_words(arena, item->index), &sum);
		words = sum.end;
		if (!words ||
		    !gt_drain_header_fits(drain, memory, item->index, &drain->writers[item->writer],
					  item->sequence)) {
			if (gt_drain_take(drain, item->index, &item->word))
				gt_arena_free(arena, item->index);
			continue;
		}
		memory->used = words;
		if (__atomic_compare_exchange_n(&gt_arena_state(arena, item->index)->word,
						&item->word, full, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			item->word = full;
		done++;
	}
	if (drain->mode == GRAFTRACE_MODE_OVERWRITE) {
		int error = make_room(drain, count, false);

		if (!error)
			error = make_room(drain, count, true);
		if (error)
			return error;
	}
	/* Streams stay with the writer while anything of it is in the ring. */
	for (i = 0; i < drain->live_count; i++)
		drain->writers[drain->live[i]].in_ring = false;
	for (i = 0; i < count; i++)
		if (drain->items[i].writer != NOBODY)
			drain->writers[drain->items[i].writer].in_ring = true;
	for (i = 0; i < drain->live_count;) {
		const uint32_t index = drain->live[i];
		const struct gt_live_writer *writer = &drain->writers[index];
		int error;

		if (!writer->ended || writer->in_ring) {
			i++;
			continue;
		}
		error = release_stream(drain, i);
		if (error)
			return error;
		gt_drain_forget(drain, index);
	}
	return (int)done;
}

int gt_drain_pass(struct gt_drain *drain, uint64_t now_ns)
{
	int error = gt_drain_scan(drain);

	if (error)
		return error;
	return drain->mode == GRAFTRACE_MODE_DRAIN ? drain_to_sink(drain, now_ns)
						   : close_ended(drain);
}

uint32_t gt_drain_add_lost(const struct gt_drain *drain, uint64_t ns,
			   uint64_t lost[GRAFTRACE_LOST_CAUSES])
{
	uint32_t impossible = 0;

	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++) {
		const uint64_t count =
			__atomic_load_n(&drain->arena->memory->lost[cause], __ATOMIC_RELAXED);

		lost[cause] += count <= ns ? count : 0;
		impossible += count > ns;
	}
	return impossible;
}
