/* SPDX-License-Identifier: MIT */
/*
 * The straight line of merging a snapshot: the next record of the writer that gave the last one, if it
 * is in the sub-buffer in work and before all other writers' next ones. Everything else leaves by
 * merge.c. Meant to be inlined into the reader's loop, as decode_fast.h is into this.
 */
#ifndef GT_CORE_TRACE_MERGE_FAST_H
#define GT_CORE_TRACE_MERGE_FAST_H

#include "core/trace/decode_fast.h"
#include "core/trace/merge.h"

/* The record is of a later piece of the thread's time than the one that is known. */
void gt_merge_move_off_cpu(struct gt_merge *merge, struct gt_source *source,
			   struct gt_record *record) __attribute__((noinline));

/* The current source has moved on, and another one may be before it. words: where in the sub-buffer its
 * record begins. As gt_merge_next. */
int gt_merge_give_way(struct gt_merge *merge, uint64_t words, struct gt_source **found)
	__attribute__((noinline));

/* A thread's record: where it was made, as far as switches tell. */
static inline void gt_merge_place(struct gt_merge *merge, struct gt_source *source,
				  struct gt_record *record)
{
	if (__builtin_expect(record->clock >= source->off_cpu.until, 0))
		gt_merge_move_off_cpu(merge, source, record);
	if (source->off_cpu.known)
		record->cpu = source->off_cpu.time.cpu;
}

/* As gt_merge_next. */
static inline __attribute__((always_inline)) int gt_merge_next_fast(struct gt_merge *merge,
								    struct gt_source **found)
{
	struct gt_source *source = merge->straight;
	struct gt_record *record;
	const uint64_t *word;
	if (__builtin_expect(source == NULL, 0))
		return gt_merge_next(merge, found);
	record = &source->record;
	word = source->decode.word;
	/* At the end of the sub-buffer this changes nothing, and merge.c feeds the next one. */
	if (__builtin_expect(gt_decode_next(&source->decode, record) == GT_RECORD_NONE ||
				     record->clock > merge->cut,
			     0))
		return gt_merge_next(merge, found);
	gt_merge_place(merge, source, record);
	source->key = record->clock;
	if (merge->heap_count && __builtin_expect(merge->heap[0]->key < source->key, 0))
		return gt_merge_give_way(merge, (uint64_t)(word - source->decode.base), found);
	*found = source;
	return 1;
}

#endif
