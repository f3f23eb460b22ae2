/* SPDX-License-Identifier: MIT */
/*
 * Reading what is in the ring: for views, which ask for each writer's sub-buffers one by one.
 *
 * A look at all states (gt_drain_look) notes which sub-buffers each writer has; who asks for one
 * then looks at those few. What is noted can be old: a state is read again before it is believed,
 * and
 *  1. what is gone does not come back: a writer's sequences only rise;
 *  2. a writer opens a sub-buffer before it counts it. So the look has found all there is of those
 *     that were counted when it began. Of later ones it may have missed some: a writer that is fast
 *     opens one in a place that the look has passed, and the next in a place before it.
 * All states are read again only for what was opened since the look began. Without this each of some
 * thousand threads that hold one sub-buffer each would cost a walk over all of them.
 */
#define _GNU_SOURCE
#include "attach/ring/drain_private.h"

#include <string.h>

static uint64_t state_of(const struct gt_drain *drain, uint32_t index)
{
	return __atomic_load_n(&gt_arena_state(drain->arena, index)->word, __ATOMIC_ACQUIRE);
}

/* Whether that state is one of the writer's sub-buffers to read. */
static bool is_own(const struct gt_drain *drain, const struct gt_live_writer *writer, uint64_t word)
{
	return graftrace_word_stream(word) == writer->stream &&
	       gt_drain_is_readable(drain, graftrace_word_state(word));
}

/* The word has 40 bits of the sequence: the rest is as in `next`. */
static uint64_t whole_sequence(const struct gt_live_writer *writer, uint64_t word)
{
	uint64_t next = writer->writer.next;

	return next - ((next - graftrace_word_sequence(word)) & GRAFTRACE_SEQUENCE_MASK);
}

void gt_drain_look(struct gt_drain *drain)
{
	const struct gt_arena *arena = drain->arena;
	const uint32_t limit = gt_arena_index_limit(arena);

	if (++drain->looks == 0) /* 0: of a writer that no look has seen */
		drain->looks = 1;
	for (uint32_t i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		struct graftrace_stream *stream = gt_arena_stream(arena, writer->stream);

		writer->look = drain->looks;
		writer->found = 0;
		writer->found_below = __atomic_load_n(&stream->sequence, __ATOMIC_ACQUIRE); /* 2 */
	}
	for (uint32_t i = 0; i < limit; i++) {
		uint64_t word = state_of(drain, i);
		uint32_t stream = graftrace_word_stream(word);
		struct gt_live_writer *writer;

		if (!gt_drain_is_readable(drain, graftrace_word_state(word)) ||
		    stream >= arena->stream_count || !drain->of_stream[stream])
			continue;
		writer = &drain->writers[drain->of_stream[stream] - 1];
		drain->found_next[i] = writer->found;
		writer->found = i + 1;
	}
}

/* The places that can have the writer's sub-buffers: those that the last look found of it, or all. */
struct places {
	const struct gt_drain *drain;
	uint32_t limit; /* 0: those of the look */
	uint32_t next;	/* of all: the index; of the look: the index + 1, 0 = no more */
};

static struct places found_places(const struct gt_drain *drain, const struct gt_live_writer *writer)
{
	return (struct places){ drain, 0, writer->found };
}

static struct places all_places(const struct gt_drain *drain)
{
	return (struct places){ drain, gt_arena_index_limit(drain->arena), 0 };
}

static bool next_place(struct places *places, uint32_t *index)
{
	if (places->limit) {
		*index = places->next++;
		return *index < places->limit;
	}
	if (!places->next)
		return false;
	*index = places->next - 1;
	places->next = places->drain->found_next[*index];
	return true;
}

/* The writer's oldest sequence at these places, from `from` on and below `below`; UINT64_MAX: none. */
static uint64_t oldest_at(struct places places, const struct gt_live_writer *writer, uint64_t from,
			  uint64_t below)
{
	uint64_t oldest = UINT64_MAX;
	uint32_t index;

	while (next_place(&places, &index)) {
		uint64_t word = state_of(places.drain, index), sequence;

		if (!is_own(places.drain, writer, word))
			continue;
		sequence = whole_sequence(writer, word);
		if (sequence >= from && sequence < below && sequence < oldest)
			oldest = sequence;
	}
	return oldest;
}

/* Whether the last look has found the writer's sub-buffers with sequences below `sequence`. */
static bool has_looked(const struct gt_drain *drain, const struct gt_live_writer *writer,
		       uint64_t sequence)
{
	return writer->look && writer->look == drain->looks && sequence <= writer->found_below;
}

/* The same wherever it is; the writer's `next` if there is none. */
static uint64_t oldest_from(const struct gt_drain *drain, const struct gt_live_writer *writer,
			    uint64_t from)
{
	uint64_t next = writer->writer.next, oldest = UINT64_MAX;

	if (from >= next)
		return from;
	/* Those that were opened since are newer: they do not count here, wherever they are. */
	if (has_looked(drain, writer, from))
		oldest = oldest_at(found_places(drain, writer), writer, from,
				   next < writer->found_below ? next : writer->found_below);
	if (oldest == UINT64_MAX && !has_looked(drain, writer, next))
		oldest = oldest_at(all_places(drain), writer, from, next);
	return oldest < next ? oldest : next;
}

int gt_drain_writer(struct gt_drain *drain, uint32_t index, struct gt_writer *out)
{
	struct gt_live_writer *writer;

	if (index >= drain->writer_count || !drain->writers[index].writer.generation)
		return GT_ENOENT;
	writer = &drain->writers[index];
	if (!writer->live) {
		writer->writer.first = writer->writer.next;
		*out = writer->writer;
		return 0;
	}
	gt_drain_update(drain, writer);
	writer->gone_below = oldest_from(drain, writer, writer->gone_below); /* 1 */
	*out = writer->writer;
	out->first = writer->gone_below;
	return 0;
}

uint64_t gt_drain_next(struct gt_drain *drain, uint32_t index, uint64_t sequence)
{
	const struct gt_live_writer *writer;

	if (index >= drain->writer_count)
		return sequence;
	writer = &drain->writers[index];
	if (!writer->live)
		return sequence > writer->writer.next ? sequence : writer->writer.next;
	return oldest_from(drain, writer, sequence);
}

/* The sub-buffer among these places, -1 = nowhere; *word: its state. */
static int64_t find_at(struct places places, const struct gt_live_writer *writer, uint64_t sequence,
		       uint64_t *word)
{
	uint32_t index;

	while (next_place(&places, &index)) {
		*word = state_of(places.drain, index);
		if (is_own(places.drain, writer, *word) &&
		    graftrace_word_sequence(*word) == (sequence & GRAFTRACE_SEQUENCE_MASK))
			return index;
	}
	return -1;
}

/* Index of the sub-buffer, -1 = nowhere; *word: its state. */
static int64_t find(const struct gt_drain *drain, const struct gt_live_writer *writer,
		    uint64_t sequence, uint64_t *word)
{
	bool looked = has_looked(drain, writer, sequence + 1);

	if (!writer->live || sequence < writer->gone_below)
		return -1;
	return find_at(looked ? found_places(drain, writer) : all_places(drain), writer, sequence,
		       word);
}

/* Word by word: the writer may store into it meanwhile. */
static void copy_sub_buffer(void *to, const void *from, uint32_t bytes)
{
	uint64_t *words = to;
	const uint64_t *source = from;

	for (uint32_t i = 0; i < bytes / 8; i++)
		words[i] = __atomic_load_n(&source[i], __ATOMIC_RELAXED);
}

int64_t gt_drain_copy(struct gt_drain *drain, uint32_t index, uint64_t sequence, void *buffer,
		      bool *active)
{
	struct gt_live_writer *writer;
	struct graftrace_sub_buffer *copy = buffer;
	uint64_t word;
	int64_t at;

	if (index >= drain->writer_count)
		return GT_ENOENT;
	writer = &drain->writers[index];
	for (int tries = 0; tries < 4; tries++) {
		at = find(drain, writer, sequence, &word);
		if (at < 0)
			return GT_ENOENT;
		*active = graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_ACTIVE;
		copy_sub_buffer(copy, gt_arena_sub_buffer(drain->arena, (uint32_t)at),
				gt_arena_bytes_of(drain->arena, (uint32_t)at));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&gt_arena_state(drain->arena, (uint32_t)at)->word,
				    __ATOMIC_RELAXED) != word)
			continue; /* C: closed or reused under the copy */
		if (*active && !copy->magic)
			return GT_ENOENT; /* opened this moment: no header yet */
		if (!gt_drain_header_fits(drain, copy, (uint32_t)at, writer,
					  sequence & GRAFTRACE_SEQUENCE_MASK))
			return GT_EFORMAT;
		gt_drain_put_numbers(copy, writer);
		return *active || !copy->used ? gt_arena_words(drain->arena, (uint32_t)at)
					      : copy->used;
	}
	return GT_ENOENT;
}

int gt_drain_hold(struct gt_drain *drain, uint32_t index, uint64_t sequence)
{
	uint64_t word;
	int64_t at = index < drain->writer_count
			     ? find(drain, &drain->writers[index], sequence, &word)
			     : -1;

	if (at < 0)
		return GT_ENOENT;
	if (graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_ACTIVE)
		return GT_EAGAIN;
	/* Readers that stand still must not keep newer records out. */
	if (graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_READING ||
	    drain->held >= drain->arena->sub_buffer_count / 4)
		return 0;
	if (!gt_drain_take(drain, (uint32_t)at, &word))
		return GT_ENOENT;
	drain->held++;
	return 0;
}

/* Of the ring modes: FULL or held. */
static int free_closed(struct gt_drain *drain, uint32_t at, uint64_t *word)
{
	if (graftrace_word_state(*word) == GRAFTRACE_SUB_BUFFER_READING)
		drain->held -= drain->held > 0;
	else if (graftrace_word_state(*word) != GRAFTRACE_SUB_BUFFER_FULL ||
		 !gt_drain_take(drain, at, word))
		return GT_ENOENT;
	gt_arena_free(drain->arena, at);
	return 0;
}

int gt_drain_consume(struct gt_drain *drain, uint32_t index, uint64_t sequence)
{
	struct gt_live_writer *writer;
	uint64_t word;
	int64_t at;

	if (index >= drain->writer_count)
		return GT_ENOENT;
	writer = &drain->writers[index];
	at = find(drain, writer, sequence, &word);
	if (at < 0 || free_closed(drain, (uint32_t)at, &word) != 0)
		return GT_ENOENT;
	if (sequence >= writer->writer.first)
		writer->writer.first = sequence + 1;
	return 0;
}

void gt_drain_clear(struct gt_drain *drain)
{
	struct gt_arena *arena = drain->arena;
	const uint32_t limit = gt_arena_index_limit(arena);

	for (uint32_t i = 0; i < limit; i++) {
		uint64_t word = __atomic_load_n(&gt_arena_state(arena, i)->word, __ATOMIC_ACQUIRE);

		free_closed(drain, i, &word);
	}
}
