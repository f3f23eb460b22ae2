/* SPDX-License-Identifier: MIT */
/*
 * The open calls of a decoder's running context: a frame for each, the returns that take them off, and
 * unwinding. Where there is no memory for frames the innermost are kept.
 */
#include "core/trace/decode_private.h"

#define FIRST_FRAMES 64u
#define SEARCH_DEPTH 64u /* how far a return looks for its entry when the top is another call */

/* Room for one frame more. Where there is no memory the outermost known frame is forgotten; without
 * any frame at all nothing can be known: false. */
static bool make_room(struct gt_decode *decode)
{
	uint64_t known = decode->depth - decode->low;
	uint64_t size = decode->frames != NULL ? decode->mask + 1ull : 0;
	if (known < size)
		return true;
	uint64_t wanted = size ? size * 2 : FIRST_FRAMES;
	struct gt_decode_frame *frames = NULL;
	/* A frame costs the writer a word: no memory is taken that the input has not paid for. */
	if (wanted <= GT_DECODE_DEPTH_MAX)
		frames = gt_memory_get(&decode->memory, wanted * sizeof(*frames));
	if (frames == NULL) {
		if (!size)
			return false;
		decode->low++;
		return true;
	}
	for (uint32_t depth = decode->low; depth != decode->depth; depth++)
		frames[depth & (wanted - 1)] = decode->frames[depth & decode->mask];
	if (size)
		gt_memory_put(&decode->memory, decode->frames, size * sizeof(*frames));
	decode->frames = frames;
	decode->mask = (uint32_t)(wanted - 1);
	return true;
}

void gt_decode_push(struct gt_decode *decode, uint64_t clock, uint32_t function, uint16_t flags)
{
	if (decode->depth >= GT_DECODE_DEPTH_MAX) {
		decode->damaged++;
		return;
	}
	if (make_room(decode)) {
		decode->frames[decode->depth & decode->mask] = (struct gt_decode_frame){
			.clock = clock, .function = function, .flags = flags
		};
		decode->depth++;
	} else {
		decode->low = ++decode->depth;
	}
}

void gt_decode_go_to_depth(struct gt_decode *decode, uint32_t depth)
{
	decode->depth = decode->low = depth;
	decode->outer.depth = UINT32_MAX;
}

/* Takes the innermost call off without a return. */
int gt_decode_unwind_one(struct gt_decode *decode, struct gt_record *record)
{
	gt_decode_fill_record(decode, record, decode->unwind_kind);
	record->flags = decode->unwind_flags;
	record->value = decode->depth - decode->unwind_to;
	decode->unwind_flags &= (uint8_t)~GT_RECORD_FIRST;
	if (decode->depth == decode->low) {
		gt_decode_go_to_depth(decode, decode->unwind_to);
		record->depth = decode->depth;
		return record->kind;
	}
	const struct gt_decode_frame *frame = &decode->frames[--decode->depth & decode->mask];
	record->depth = decode->depth;
	record->function = frame->function;
	record->start = frame->clock;
	record->children = frame->children;
	record->mark = frame->mark;
	record->flags |= frame->flags & GT_RECORD_ENTRY_SEEN;
	/* It ran up to now as far as is known, and its parent did not. */
	if (decode->depth > decode->low) {
		struct gt_decode_frame *parent =
			&decode->frames[(decode->depth - 1) & decode->mask];
		if (record->flags & GT_RECORD_UNSEEN)
			parent->flags |= GT_RECORD_CHILDREN_UNKNOWN;
		else if (decode->clock > frame->clock)
			parent->children += decode->clock - frame->clock;
	}
	return record->kind;
}

void gt_decode_start_unwinding(struct gt_decode *decode, uint32_t to, unsigned flags)
{
	decode->unwind_to = to;
	decode->unwind_kind = GT_RECORD_UNWOUND;
	decode->unwind_flags = (uint8_t)(flags | GT_RECORD_FIRST);
	gt_decode_set_fast(decode);
}

/* Gives the return of the innermost call, whose frame is the one known for it (or is not known). */
static int give_return(struct gt_decode *decode, struct gt_record *record, uint32_t function,
		       uint64_t start, bool start_known, bool pop)
{
	gt_decode_fill_record(decode, record, GT_RECORD_RETURN);
	record->function = function;
	record->start = start <= decode->clock ? start : decode->clock;
	record->flags = GT_RECORD_CHILDREN_UNKNOWN;
	if (pop) {
		if (decode->depth > decode->low) {
			const struct gt_decode_frame *frame =
				&decode->frames[(decode->depth - 1) & decode->mask];
			if (start_known ? gt_decode_is_call(frame, function, start)
					: frame->function == function) {
				record->flags = (uint8_t)frame->flags;
				record->children = frame->children;
				record->mark = frame->mark;
				record->start = frame->clock <= decode->clock ? frame->clock
									      : decode->clock;
				start_known = true;
			}
			decode->depth--;
		} else {
			decode->low = --decode->depth;
			if (decode->outer.depth == decode->depth + 1)
				record->children = decode->outer.ticks;
		}
		record->depth = decode->depth;
	}
	if (!start_known)
		record->flags |= GT_RECORD_START_UNKNOWN | GT_RECORD_CHILDREN_UNKNOWN;
	if (record->start < decode->lost_clock)
		record->flags |= GT_RECORD_CHILDREN_UNKNOWN;
	if (decode->depth > decode->low) {
		struct gt_decode_frame *parent =
			&decode->frames[(decode->depth - 1) & decode->mask];
		parent->children += decode->clock - record->start;
		if (!start_known)
			parent->flags |= GT_RECORD_CHILDREN_UNKNOWN;
	} else if (pop) {
		uint64_t ticks = decode->clock - record->start;
		/* when it began is not known: at least what it called */
		gt_decode_add_outer(decode, decode->depth, start_known ? ticks : record->children);
	}
	return GT_RECORD_RETURN;
}

/* A plain return that is not the top's: 0 if what lies above its entry is to be unwound before. */
int gt_decode_unmatched_return(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	uint32_t function = graftrace_word_function(word);
	uint32_t known = decode->depth - decode->low;
	for (uint32_t i = 0; i < known && i < SEARCH_DEPTH; i++) {
		uint32_t depth = decode->depth - 1 - i;
		if (decode->frames[depth & decode->mask].function != function)
			continue;
		if (i == 0)
			break;
		decode->damaged++;
		gt_decode_start_unwinding(decode, depth + 1, GT_RECORD_UNSEEN);
		return 0;
	}
	bool top = known && decode->frames[(decode->depth - 1) & decode->mask].function == function;
	decode->clock = gt_decode_full_clock(decode, word);
	decode->word++;
	if (!top)
		decode->damaged++;
	/* Not the top's and not known further out: its entry was never written. */
	bool pop = top || (known == 0 && decode->depth > 0);
	return give_return(decode, record, function, decode->clock, false, pop);
}

/* `words`: of the event in the sub-buffer. alone: its entry was not recorded. 0: other records have
 * to be given before. */
int gt_decode_long_return(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
			  uint32_t words, bool alone)
{
	int kind;
	uint64_t word = data[0];
	uint32_t function = graftrace_word_function(word);
	if (!graftrace_word_is_return(word) || function - 1 >= GRAFTRACE_SPECIAL - 1 ||
	    data[2] >= GT_DECODE_DEPTH_MAX) {
		decode->damaged++;
		decode->word += words;
		return 0;
	}
	uint32_t depth = (uint32_t)data[2] + 1;
	const struct gt_decode_frame *top = gt_decode_frame(decode, decode->depth - 1);
	if (top != NULL && gt_decode_is_call(top, function, data[1])) {
		/* The entry's clock tells the call from every other. The writer's depth is for
		 * those who did not follow: a signal handler's can be off by the call that it
		 * interrupted. */
	} else if (decode->depth > depth) {
		if (decode->depth > decode->low) {
			gt_decode_start_unwinding(decode, depth, GT_RECORD_UNSEEN);
			return 0;
		}
		gt_decode_go_to_depth(decode, depth);
	} else if (decode->depth < depth) {
		gt_decode_go_to_depth(decode, depth);
	}
	decode->clock = gt_decode_full_clock(decode, word);
	decode->word += words;
	kind = give_return(decode, record, function, data[1], true, true);
	if (alone && kind == GT_RECORD_RETURN)
		record->flags |= GT_RECORD_ALONE;
	return kind;
}
