/* SPDX-License-Identifier: MIT */
/* A kernel's ring as a target: see kernel_target.h. Freestanding; any thread, with traced writers
 * beside it. Orders: the partners of A, B and C in core/record/stream.c. */
#include "core/kernel/kernel_target.h"

#include <graftrace/agent.h>
#include "core/trace/word_walk.h"

#define RELAXED __ATOMIC_RELAXED
#define ACQUIRE __ATOMIC_ACQUIRE
#define RELEASE __ATOMIC_RELEASE

static struct gt_arena_target *self(struct gt_target *target)
{
	return target->data;
}

static uint64_t state_of(struct graftrace_arena *arena, uint32_t index)
{
	return __atomic_load_n(&graftrace_arena_states(arena)[index].word, ACQUIRE);
}

static uint32_t writers(struct graftrace_arena *arena)
{
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	uint32_t count = 0;
	while (count < arena->stream_count && count < GT_ARENA_WRITERS &&
	       __atomic_load_n(&streams[count].generation, ACQUIRE) != 0)
		count++;
	return count;
}

static uint32_t writer_count(struct gt_target *target)
{
	return writers(self(target)->ring->arena);
}

/* The lowest sequence of a writer's closed sub-buffers at or above `from`, or its next. */
static uint64_t lowest(struct graftrace_arena *arena, uint32_t writer, uint64_t from)
{
	uint64_t low = __atomic_load_n(&graftrace_arena_streams(arena)[writer].sequence, ACQUIRE);
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++) {
		uint64_t word = state_of(arena, i);
		uint32_t state = graftrace_word_state(word);
		if (state != GRAFTRACE_SUB_BUFFER_FREE && graftrace_word_stream(word) == writer &&
		    graftrace_word_sequence(word) >= from && graftrace_word_sequence(word) < low)
			low = graftrace_word_sequence(word);
	}
	return low;
}

/* The CPU's own counter too, which the straight line adds to. */
uint64_t gt_arena_lost_full(const struct graftrace_stream *stream)
{
	uint64_t lost = __atomic_load_n(&stream->lost[GRAFTRACE_LOST_FULL], RELAXED);
	uint64_t block = __atomic_load_n(&stream->block, ACQUIRE);
	if (block != 0)
		lost += __atomic_load_n((const uint64_t *)(block + GRAFTRACE_BLOCK_LOST), RELAXED);
	return lost;
}

/* What a CPU has lost so far, into lost[GRAFTRACE_LOST_CAUSES]. */
static void get_lost(const struct graftrace_stream *stream, uint64_t *lost)
{
	for (int i = 0; i < GRAFTRACE_LOST_CAUSES; i++)
		lost[i] = __atomic_load_n(&stream->lost[i], RELAXED);
	lost[GRAFTRACE_LOST_FULL] = gt_arena_lost_full(stream);
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_arena_ring *ring = self(target)->ring;
	if (index >= writers(ring->arena))
		return GT_ENOENT;
	struct graftrace_stream *stream = &graftrace_arena_streams(ring->arena)[index];
	__builtin_memset(out, 0, sizeof(*out));
	out->generation = stream->generation;
	out->tid = stream->tid;
	__builtin_memcpy(out->comm, stream->comm, sizeof(out->comm));
	out->next = __atomic_load_n(&stream->sequence, ACQUIRE);
	out->first = __atomic_load_n(&ring->first[index], RELAXED);
	if (__atomic_load_n(&ring->arena->mode, RELAXED) == GRAFTRACE_MODE_OVERWRITE)
		out->first = lowest(ring->arena, index, out->first);
	out->start = stream->start;
	get_lost(stream, out->lost);
	return 0;
}

/* Index of a writer's sub-buffer, with its state's word; -1: it is not there. */
static int64_t find(struct gt_arena_target *at, uint32_t writer_index, uint64_t sequence,
		    uint64_t *word)
{
	struct graftrace_arena *arena = at->ring->arena;
	uint64_t full = graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, writer_index, sequence);
	uint64_t active = graftrace_state_word(GRAFTRACE_SUB_BUFFER_ACTIVE, writer_index, sequence);
	uint64_t held = graftrace_state_word(GRAFTRACE_SUB_BUFFER_READING, writer_index, sequence);
	uint32_t count = arena->sub_buffer_count;
	uint32_t i = at->found[writer_index];
	for (uint32_t step = 0; step < count; step++, i++) {
		if (i >= count)
			i = 0;
		*word = state_of(arena, i);
		if (*word == full || *word == active || *word == held) {
			at->found[writer_index] = i;
			return i;
		}
	}
	return -1;
}

/* Word by word: the writer may be storing to them. */
static void copy_words(uint64_t *to, const uint64_t *from, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		to[i] = __atomic_load_n(&from[i], RELAXED);
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct gt_arena_target *at = self(target);
	struct graftrace_arena *arena = at->ring->arena;
	struct graftrace_sub_buffer *header = buffer;
	*bytes = buffer;
	if (index >= GT_ARENA_WRITERS)
		return GT_ENOENT;
	/* Once more where it was closed in the middle of the copy. */
	for (int attempt = 0; attempt < 2; attempt++) {
		uint64_t before;
		int64_t place = find(at, index, sequence, &before);
		if (place < 0)
			return GT_ENOENT;
		struct graftrace_sub_buffer *sub =
			graftrace_arena_sub_buffer(arena, (uint32_t)place);
		uint64_t words = (arena->sub_buffer_bytes - sizeof(*sub)) / 8;
		copy_words(buffer, (const uint64_t *)sub, sizeof(*sub) / 8);
		if (graftrace_word_state(before) != GRAFTRACE_SUB_BUFFER_ACTIVE &&
		    header->used < words)
			words = header->used;
		copy_words((uint64_t *)buffer + sizeof(*sub) / 8,
			   (const uint64_t *)sub + sizeof(*sub) / 8, words);
		__atomic_thread_fence(ACQUIRE);
		if (state_of(arena, (uint32_t)place) == before && header->sequence == sequence) {
			if (graftrace_word_state(before) == GRAFTRACE_SUB_BUFFER_ACTIVE)
				header->used = 0;
			return (int64_t)words;
		}
	}
	return GT_ENOENT;
}

/* ---- consuming ---- */

static void push_free(struct graftrace_arena *arena, uint32_t index)
{
	struct graftrace_sub_buffer_entry *entry = &graftrace_arena_states(arena)[index];
	uint64_t head = __atomic_load_n(&arena->free_head, RELAXED);
	__atomic_store_n(&entry->word, 0, RELAXED);
	do
		__atomic_store_n(&entry->next, (uint32_t)head, RELAXED);
	while (!__atomic_compare_exchange_n(&arena->free_head, &head,
					    ((head >> 32) + 1) << 32 | (index + 1), true, RELEASE,
					    RELAXED));
	__atomic_fetch_add(&arena->free_count, 1, RELEASE);
}

/* Closed sub-buffers of a writer up to `sequence` go back. One in which an interrupted writer may
 * still store a word is left for the next time. Returns how many records they had that no `clear`
 * had taken. */
static uint64_t give_back(struct gt_arena_ring *ring, uint32_t writer_index, uint64_t sequence)
{
	struct graftrace_arena *arena = ring->arena;
	const struct gt_merge_given *cleared = &ring->cleared[writer_index];
	uint64_t records = 0;
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++) {
		uint64_t word = state_of(arena, i);
		if ((graftrace_word_state(word) != GRAFTRACE_SUB_BUFFER_FULL &&
		     graftrace_word_state(word) != GRAFTRACE_SUB_BUFFER_READING) ||
		    graftrace_word_stream(word) != writer_index ||
		    graftrace_word_sequence(word) > sequence)
			continue;
		struct graftrace_sub_buffer *sub = graftrace_arena_sub_buffer(arena, i);
		if (gt_words_before_hole(sub, sub->used) < sub->used)
			continue;
		/* FREE, and on no free stack yet: nobody's */
		if (!__atomic_compare_exchange_n(&graftrace_arena_states(arena)[i].word, &word, 0,
						 false, __ATOMIC_ACQ_REL, RELAXED))
			continue;
		uint64_t *words = graftrace_sub_buffer_words(sub);
		if (sub->sequence >= cleared->sequence)
			records += gt_words_records(
				sub,
				sub->sequence == cleared->sequence ? (uint32_t)cleared->words : 0,
				sub->used);
		for (uint32_t at = 0; at < sub->used; at++)
			__atomic_store_n(&words[at], 0, RELAXED);
		__atomic_fetch_sub(&graftrace_arena_streams(arena)[writer_index].owned, 1, RELAXED);
		push_free(arena, i);
	}
	return records;
}

static int hold(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_arena_target *at = self(target);
	uint64_t word;
	int64_t place = index < GT_ARENA_WRITERS ? find(at, index, sequence, &word) : -1;
	if (place < 0)
		return GT_ENOENT;
	if (graftrace_word_state(word) == GRAFTRACE_SUB_BUFFER_ACTIVE)
		return GT_EAGAIN;
	uint64_t held = graftrace_state_word(GRAFTRACE_SUB_BUFFER_READING, index, sequence);
	struct graftrace_sub_buffer_entry *states = graftrace_arena_states(at->ring->arena);
	return word == held || __atomic_compare_exchange_n(&states[place].word, &word, held, false,
							   __ATOMIC_ACQ_REL, RELAXED)
		       ? 0
		       : GT_ENOENT;
}

/* Writers that stopped for lack of room go on. */
static void let_go_on(struct graftrace_arena *arena)
{
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	uint32_t count = writers(arena);
	for (uint32_t i = 0; i < count; i++) {
		if (!__atomic_exchange_n(&streams[i].stopped_full, 0, __ATOMIC_ACQ_REL))
			continue;
		uint8_t *full = (uint8_t *)__atomic_load_n(&streams[i].block, ACQUIRE) +
				GRAFTRACE_BLOCK_STOP + GRAFTRACE_STOP_BYTE_FULL;
		__atomic_store_n(full, 0, __ATOMIC_SEQ_CST);
	}
}

/* As after a clear of Linux's: all counts begin with what is not given yet. */
static void begin_counts(struct gt_arena_ring *ring, uint32_t index)
{
	const struct graftrace_stream *stream = &graftrace_arena_streams(ring->arena)[index];
	ring->cleared[index] = ring->given[index];
	ring->read[index] = 0;
	ring->lost_full[index] = gt_arena_lost_full(stream);
	ring->lost_overrun[index] = __atomic_load_n(&stream->lost[GRAFTRACE_LOST_OVERRUN], RELAXED);
	get_lost(stream, ring->lost_before[index]);
}

static int consume(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_arena_ring *ring = self(target)->ring;
	if (index >= writers(ring->arena))
		return GT_ENOENT;
	if (sequence + 1 > ring->first[index])
		__atomic_store_n(&ring->first[index], sequence + 1, RELAXED);
	ring->read[index] += give_back(ring, index, sequence);
	let_go_on(ring->arena);
	return 0;
}

void gt_arena_ring_take(struct gt_arena_ring *ring, uint32_t index, uint64_t sequence,
			uint64_t words)
{
	ring->given[index] = (struct gt_merge_given){ sequence, words };
	if (sequence != 0) {
		__atomic_store_n(&ring->first[index], sequence, RELAXED);
		give_back(ring, index, sequence - 1);
		let_go_on(ring->arena);
	}
	begin_counts(ring, index);
}

void gt_arena_ring_clear(struct gt_arena_ring *ring)
{
	struct graftrace_arena *arena = ring->arena;
	struct graftrace_stream *streams = graftrace_arena_streams(arena);
	uint32_t count = writers(arena);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t current = __atomic_load_n(&streams[i].current, ACQUIRE);
		uint64_t next = __atomic_load_n(&streams[i].sequence, ACQUIRE);
		ring->given[i] = (struct gt_merge_given){ next, 0 };
		if (current != 0 && current <= arena->sub_buffer_count && next != 0) {
			struct gt_word_sum sum;
			gt_words_sum(graftrace_arena_sub_buffer(arena, current - 1),
				     (arena->sub_buffer_bytes -
				      (uint32_t)sizeof(struct graftrace_sub_buffer)) /
					     8,
				     &sum);
			ring->given[i] = (struct gt_merge_given){ next - 1, sum.end };
		}
		gt_arena_ring_take(ring, i, ring->given[i].sequence, ring->given[i].words);
	}
}

/* ---- names ---- */

static int function(void *data, uint32_t number, struct gt_function *out)
{
	const struct gt_arena_target *target = data;
	const struct gt_arena_names *names = target->ring->names;
	return names->function(names->data, number, out);
}

static int function_at(void *data, uint32_t pid, uint64_t address, struct gt_function *out)
{
	const struct gt_arena_target *target = data;
	const struct gt_arena_names *names = target->ring->names;
	(void)pid;
	return names->function_at(names->data, address, out);
}

static int thread(void *data, uint32_t tid, char comm[16])
{
	const struct gt_arena_target *target = data;
	const struct gt_arena_names *names = target->ring->names;
	return names->thread(names->data, tid, comm);
}

int gt_arena_ring_event(const struct gt_arena_ring *ring, uint32_t number,
			struct gt_event_format *format)
{
	const struct gt_arena_names *names = ring->names;
	const uint32_t later = number - ring->later_first;
	if (ring->later_first == 0 || number < ring->later_first)
		return names->event != NULL ? names->event(names->data, number, format) : GT_ENOENT;
	if (later >= __atomic_load_n(&ring->later_count, ACQUIRE))
		return GT_ENOENT;
	*format = *ring->later[later];
	return 0;
}

static int event(void *data, uint32_t number, struct gt_event_format *format)
{
	const struct gt_arena_target *target = data;
	return gt_arena_ring_event(target->ring, number, format);
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	if (index >= GT_ARENA_WRITERS)
		return sequence;
	return lowest(self(target)->ring->arena, index, sequence);
}

static uint64_t now(struct gt_target *target)
{
	const struct gt_arena_ring *ring = self(target)->ring;
	uint64_t clock = ring->now != NULL ? ring->now() : UINT64_MAX;
	/* nothing is copied before the clock is read */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return clock;
}

static const struct gt_ring_ops ring_operations = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.consume = consume,
	.hold = hold,
	.next_sequence = next_sequence,
	.now = now,
};

static const struct gt_name_ops name_operations = {
	.function = function,
	.function_at = function_at,
	.thread = thread,
	.event = event,
};

void gt_arena_target_init(struct gt_arena_target *target, struct gt_arena_ring *ring)
{
	__builtin_memset(target, 0, sizeof(*target));
	target->ring = ring;
	target->target.ring = &ring_operations;
	target->target.data = target;
	target->target.names = &name_operations;
	target->target.name_data = target;
	target->target.clock = ring->clock;
	target->target.sub_buffer_bytes = ring->arena->sub_buffer_bytes;
	target->target.tracer = (enum graftrace_tracer)ring->arena->tracer;
	target->target.cpu_count = writers(ring->arena);
}
