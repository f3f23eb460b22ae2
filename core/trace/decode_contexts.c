/* SPDX-License-Identifier: MIT */
/*
 * A decoder's contexts, from the first to the last. The running context lives in the decoder's own
 * fields (see decode.c). No memory is taken that the input has not paid for, and without memory less
 * is known.
 */
#include "core/trace/decode_private.h"

void gt_decode_init(struct gt_decode *decode, const struct gt_memory *memory)
{
	__builtin_memset(decode, 0, sizeof(*decode));
	decode->memory = *memory;
	decode->unwind_to = GT_DECODE_NO_UNWINDING;
	decode->cpu = UINT32_MAX;
}

void gt_decode_reset(struct gt_decode *decode)
{
	struct gt_memory memory = decode->memory;
	void (*adopt)(void *data, struct gt_decode *decode) = decode->adopt;
	void *adopt_data = decode->adopt_data;
	struct gt_decode_context *contexts = decode->contexts;
	uint32_t capacity = decode->context_capacity, count = decode->context_count;
	if (count)
		contexts[decode->slot] = (struct gt_decode_context){ .frames = decode->frames,
								     .mask = decode->mask };
	gt_decode_init(decode, &memory);
	decode->adopt = adopt;
	decode->adopt_data = adopt_data;
	/* One context's frames are kept for the next writer, the others' go. */
	for (uint32_t i = 1; i < count; i++)
		gt_memory_put(&memory, contexts[i].frames,
			      contexts[i].frames != NULL
				      ? (contexts[i].mask + 1ull) * sizeof(*contexts[i].frames)
				      : 0);
	decode->contexts = contexts;
	decode->context_capacity = capacity;
	if (count) {
		decode->context_count = 1;
		contexts[0].number = 0;
		contexts[0].depth = contexts[0].low = 0;
		decode->frames = contexts[0].frames;
		decode->mask = contexts[0].mask;
	}
}

void gt_decode_fini(struct gt_decode *decode)
{
	gt_decode_reset(decode);
	if (decode->frames != NULL)
		gt_memory_put(&decode->memory, decode->frames,
			      (decode->mask + 1ull) * sizeof(*decode->frames));
	gt_memory_put(&decode->memory, decode->contexts,
		      decode->context_capacity * sizeof(*decode->contexts));
	decode->contexts = NULL;
	decode->frames = NULL;
	decode->context_count = decode->context_capacity = 0;
}

/* ---- contexts ---- */

void gt_decode_save_context(struct gt_decode *decode)
{
	if (!decode->context_count)
		return;
	struct gt_decode_context *context = &decode->contexts[decode->slot];
	context->number = decode->context;
	context->depth = decode->depth;
	context->low = decode->low;
	context->outer = decode->outer;
	context->gaps = decode->context_gaps;
	context->mask = decode->mask;
	context->frames = decode->frames;
	context->used = ++decode->switches;
}

void gt_decode_load_context(struct gt_decode *decode, uint32_t slot)
{
	const struct gt_decode_context *context = &decode->contexts[slot];
	decode->slot = slot;
	decode->context = context->number;
	decode->depth = context->depth;
	decode->low = context->low;
	decode->outer = context->outer;
	decode->context_gaps = context->gaps;
	decode->mask = context->mask;
	decode->frames = context->frames;
}

/* A slot for a context that is not known: a new one, or that of the context which has not run for
 * the longest time; its frames' memory stays, what was in them is forgotten. */
static uint32_t take_slot(struct gt_decode *decode)
{
	if (decode->context_count < decode->context_capacity) {
		decode->contexts[decode->context_count] = (struct gt_decode_context){ 0 };
		return decode->context_count++;
	}
	if (decode->context_capacity < GT_DECODE_CONTEXTS) {
		uint32_t wanted = decode->context_capacity ? decode->context_capacity * 4 : 1;
		struct gt_decode_context *contexts = decode->memory.resize(
			decode->memory.data, decode->contexts,
			decode->context_capacity * sizeof(*contexts), wanted * sizeof(*contexts));
		if (contexts != NULL) {
			decode->contexts = contexts;
			decode->context_capacity = wanted;
			contexts[decode->context_count] = (struct gt_decode_context){ 0 };
			return decode->context_count++;
		}
	}
	uint32_t oldest = 0;
	for (uint32_t i = 1; i < decode->context_count; i++)
		if (decode->contexts[i].used < decode->contexts[oldest].used)
			oldest = i;
	return oldest;
}

int gt_decode_switch_context(struct gt_decode *decode, uint32_t number)
{
	if (decode->context_count && decode->context == number)
		return 0;
	gt_decode_save_context(decode);
	for (uint32_t slot = 0; slot < decode->context_count; slot++)
		if (decode->contexts[slot].number == number) {
			gt_decode_load_context(decode, slot);
			return 0;
		}
	uint32_t slot = take_slot(decode);
	if (slot >= decode->context_count)
		return GT_ENOMEM;
	decode->contexts[slot].number = number;
	decode->contexts[slot].depth = decode->contexts[slot].low = 0;
	decode->contexts[slot].gaps = decode->gaps;
	gt_decode_load_context(decode, slot);
	return 0;
}

bool gt_decode_knows_context(const struct gt_decode *decode, uint32_t number)
{
	if (decode->context_count && decode->context == number)
		return decode->context_gaps == decode->gaps;
	for (uint32_t slot = 0; slot < decode->context_count; slot++)
		if (slot != decode->slot && decode->contexts[slot].number == number)
			return decode->contexts[slot].gaps == decode->gaps;
	return false;
}

/* The running context's calls, wherever this decoder has them. */
struct calls {
	struct gt_decode_frame **frames;
	uint32_t *mask, *depth, *low;
	struct gt_decode_outer *outer;
};

static bool find_calls(struct gt_decode *decode, uint32_t number, struct calls *calls)
{
	if (!decode->context_count)
		return false;
	if (decode->context == number) {
		*calls = (struct calls){ &decode->frames, &decode->mask, &decode->depth,
					 &decode->low, &decode->outer };
		return true;
	}
	for (uint32_t slot = 0; slot < decode->context_count; slot++) {
		struct gt_decode_context *context = &decode->contexts[slot];
		if (slot == decode->slot || context->number != number)
			continue;
		*calls = (struct calls){ &context->frames, &context->mask, &context->depth,
					 &context->low, &context->outer };
		return true;
	}
	return false;
}

bool gt_decode_move_context(struct gt_decode *to, struct gt_decode *from)
{
	struct calls there;
	if (to == from || !find_calls(from, to->context, &there) || *there.depth == 0)
		return false;
	struct gt_decode_frame *frames = to->frames;
	uint32_t mask = to->mask;
	to->frames = *there.frames;
	to->mask = *there.mask;
	to->depth = *there.depth;
	to->low = *there.low;
	to->outer = *there.outer;
	*there.outer = (struct gt_decode_outer){ 0 };
	*there.frames = frames;
	*there.mask = mask;
	*there.depth = *there.low = 0;
	return true;
}
