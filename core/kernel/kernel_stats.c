/* SPDX-License-Identifier: MIT */
/*
 * Counts of a kernel's ring (stats, per_cpu/cpuN/stats): entries + overrun + dropped + read is what
 * was written since the trace was last emptied. Sub-buffers are counted where they lie, and again
 * where they were reused meanwhile. Any thread, with traced writers beside it.
 */
#include "core/kernel/kernel_private.h"
#include "core/trace/word_walk.h"

/* How often a writer is counted anew that overwrites meanwhile. */
#define STEADY_TURNS 16

/* One sub-buffer of a writer. */
static void count_one(struct gt_arena_ring *ring, uint32_t writer,
		      const struct graftrace_sub_buffer *sub, bool is_open,
		      struct gt_control_stats *stats)
{
	const struct gt_merge_given *given = &ring->given[writer],
				    *cleared = &ring->cleared[writer];
	uint64_t sequence = sub->sequence;
	uint64_t words = (ring->arena->sub_buffer_bytes - sizeof(*sub)) / 8;
	words = is_open ? gt_words_before_hole(sub, (uint32_t)words)
			: (sub->used < words ? sub->used : words);
	uint64_t from = sequence < cleared->sequence	? words
			: sequence == cleared->sequence ? cleared->words
							: 0;
	uint64_t read = sequence < given->sequence    ? words
			: sequence == given->sequence ? given->words
						      : 0;
	from = from < words ? from : words;
	read = read < from ? from : read < words ? read : words;
	uint64_t entries = gt_words_records(sub, (uint32_t)read, (uint32_t)words);
	stats->read += gt_words_records(sub, (uint32_t)from, (uint32_t)read);
	stats->entries += entries;
	stats->bytes += (words - read) * 8;
	uint64_t ns = gt_clock_ns(&ring->clock, sub->clock);
	if (entries != 0 && (stats->oldest_ns == 0 || ns < stats->oldest_ns))
		stats->oldest_ns = ns;
}

static void count_sub_buffers(struct gt_arena_ring *ring, uint32_t writer,
			      struct gt_control_stats *stats)
{
	struct graftrace_arena *arena = ring->arena;
	for (uint32_t i = 0; i < arena->sub_buffer_count; i++) {
		const uint64_t *state = &graftrace_arena_states(arena)[i].word;
		struct gt_control_stats before = *stats;
		uint64_t word, after = __atomic_load_n(state, __ATOMIC_ACQUIRE);
		do {
			word = after;
			*stats = before;
			uint32_t kind = graftrace_word_state(word);
			if (graftrace_word_stream(word) != writer ||
			    kind == GRAFTRACE_SUB_BUFFER_FREE)
				break;
			count_one(ring, writer, graftrace_arena_sub_buffer(arena, i),
				  kind == GRAFTRACE_SUB_BUFFER_ACTIVE, stats);
			__atomic_thread_fence(__ATOMIC_ACQUIRE);
			after = __atomic_load_n(state, __ATOMIC_ACQUIRE);
		} while (after != word);
	}
}

/* What is overwritten meanwhile is among the entries or not: then they are counted again. */
static void count_writer(struct gt_arena_ring *ring, uint32_t writer,
			 struct gt_control_stats *stats)
{
	const struct graftrace_stream *stream = &graftrace_arena_streams(ring->arena)[writer];
	const uint64_t *overrun = &stream->lost[GRAFTRACE_LOST_OVERRUN];
	const struct gt_control_stats before = *stats;
	uint64_t seen = __atomic_load_n(overrun, __ATOMIC_ACQUIRE), last;
	int turn = 0;
	do {
		last = seen;
		*stats = before;
		count_sub_buffers(ring, writer, stats);
		seen = __atomic_load_n(overrun, __ATOMIC_ACQUIRE);
	} while (seen != last && ++turn < STEADY_TURNS);
	stats->read += ring->read[writer];
	stats->dropped += gt_arena_lost_full(stream) - ring->lost_full[writer];
	stats->overrun += seen - ring->lost_overrun[writer];
}

int gt_arena_stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		   struct gt_control_stats *stats, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	struct gt_target *view = &control->view.target;
	uint32_t count = view->ring->writer_count(view);
	if (scope->kind == GT_SCOPE_THREAD)
		return REFUSE(message, GT_ENOTSUP, "a kernel's records are counted by CPU");
	for (uint32_t i = 0; i < count; i++)
		if (scope->kind == GT_SCOPE_ALL || i == scope->number)
			count_writer(control->ring, i, stats);
	stats->now_ns = control->machine->now_ns(control->machine->data);
	return 0;
}
