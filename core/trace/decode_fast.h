/* SPDX-License-Identifier: MIT */
/*
 * The straight line of decoding: an entry, or the return of the innermost known call. Everything
 * else leaves by gt_decode_next_slow. Meant to be inlined into the reader's loop, so that the
 * record's fields that it does not look at cost nothing.
 */
#ifndef GT_CORE_TRACE_DECODE_FAST_H
#define GT_CORE_TRACE_DECODE_FAST_H

#include "core/trace/decode.h"

int gt_decode_next_slow(struct gt_decode *decode, struct gt_record *record)
	__attribute__((noinline));

/*
 * Gives the next record: returns its kind (GT_RECORD_NONE: feed more). Fields that the kind does
 * not have are not set.
 */
static inline __attribute__((always_inline)) int gt_decode_next(struct gt_decode *decode,
								struct gt_record *record)
{
	const uint64_t *at = decode->word;
	if (__builtin_expect(at >= decode->fast_end, 0))
		return gt_decode_next_slow(decode, record);

	uint64_t word = *at;
	uint32_t function = graftrace_word_function(word);
	/* Function 0 (a hole) wraps round to the specials' side. */
	if (__builtin_expect(function - 1 >= GRAFTRACE_SPECIAL - 1, 0))
		return gt_decode_next_slow(decode, record);

	uint32_t depth = decode->depth;
	uint64_t clock = (decode->clock & ~(uint64_t)UINT32_MAX) | (uint32_t)word;
	/* It belongs behind a CLOCK word that is still to come (rule 2). */
	if (__builtin_expect(clock + (1ull << 31) < decode->clock, 0))
		return gt_decode_next_slow(decode, record);
	if (!graftrace_word_is_return(word)) {
		struct gt_decode_frame *frames = decode->frames;
		if (__builtin_expect(depth - decode->low >= decode->mask, 0))
			return gt_decode_next_slow(decode, record);
		struct gt_decode_frame *frame = &frames[depth & decode->mask];
		frame->clock = clock;
		frame->children = 0;
		frame->function = function;
		frame->flags = GT_RECORD_ENTRY_SEEN;
		frame->mark = 0;
		decode->depth = depth + 1;
		decode->word = at + 1;
		decode->clock = clock;
		record->clock = clock;
		record->function = function;
		record->depth = depth;
		record->context = decode->context;
		record->cpu = decode->cpu;
		record->tid = decode->tid;
		record->kind = GT_RECORD_ENTRY;
		record->flags = 0;
		return GT_RECORD_ENTRY;
	}

	if (__builtin_expect(depth == decode->low, 0))
		return gt_decode_next_slow(decode, record);
	depth--;
	const struct gt_decode_frame *frame = &decode->frames[depth & decode->mask];
	if (__builtin_expect(frame->function != function, 0))
		return gt_decode_next_slow(decode, record);
	uint64_t start = frame->clock;
	/* Nested writers' stamps can run backwards: no duration is negative. */
	if (__builtin_expect(start > clock, 0))
		start = clock;
	if (depth > decode->low)
		decode->frames[(depth - 1) & decode->mask].children += clock - start;
	else
		gt_decode_add_outer(decode, depth, clock - start);
	record->flags = (uint8_t)frame->flags;
	if (__builtin_expect(start < decode->lost_clock, 0))
		record->flags |= GT_RECORD_CHILDREN_UNKNOWN;
	record->start = start;
	record->children = frame->children;
	record->mark = frame->mark;
	decode->depth = depth;
	decode->word = at + 1;
	decode->clock = clock;
	record->clock = clock;
	record->function = function;
	record->depth = depth;
	record->context = decode->context;
	record->cpu = decode->cpu;
	record->tid = decode->tid;
	record->kind = GT_RECORD_RETURN;
	return GT_RECORD_RETURN;
}

#endif
