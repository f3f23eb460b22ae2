/* SPDX-License-Identifier: MIT */
/*
 * The borders of a decoder's sub-buffers: what a header says is checked, and compared with what was
 * followed up to there (rule 4 of <graftrace/record.h>).
 */
#include "core/trace/decode_private.h"
#include "core/trace/message.h"
#include "core/trace/word_walk.h"

/*
 * The depth up to which what is known here and what the header lists do not contradict each other.
 * A call's entry clock tells it from every other, and where one is the same so are all around it.
 */
uint32_t gt_decode_agreed_depth(const struct gt_decode *decode)
{
	const struct graftrace_sub_buffer *header = decode->header;
	uint32_t first = header->depth - header->open_calls;
	uint32_t end = decode->depth < header->depth ? decode->depth : header->depth;
	uint32_t depth = end;
	for (; depth > first && depth > decode->low; depth--) {
		const struct gt_decode_frame *frame = &decode->frames[(depth - 1) & decode->mask];
		const struct graftrace_open_call *call = &header->open[depth - 1 - first];
		if (gt_decode_is_call(frame, call->function, call->clock))
			return depth;
		end = depth - 1;
	}
	return end;
}

void gt_decode_fill_from_header(struct gt_decode *decode)
{
	const struct graftrace_sub_buffer *header = decode->header;
	uint32_t first = header->depth - header->open_calls;
	if (decode->depth < first)
		gt_decode_go_to_depth(decode, first);
	while (decode->depth < header->depth) {
		const struct graftrace_open_call *call = &header->open[decode->depth - first];
		gt_decode_push(decode, call->clock, call->function, GT_RECORD_CHILDREN_UNKNOWN);
		if (call->function - 1 >= GRAFTRACE_SPECIAL - 1) {
			/* no function: what is known begins behind it */
			decode->damaged += call->function != 0;
			decode->low = decode->depth;
		}
	}
}

/* A writer that was cut off left no count: what it wrote ends with its last record. */
static uint32_t words_in_use(const struct graftrace_sub_buffer *header, uint32_t words,
			     bool growing)
{
	struct gt_word_sum sum;
	if (header->used)
		return header->used < words ? header->used : words;
	if (growing)
		return words;
	gt_words_sum(header, words, &sum);
	return sum.end;
}

int gt_decode_feed(struct gt_decode *decode, const struct graftrace_sub_buffer *sub_buffer,
		   uint32_t words, bool growing, struct gt_message *message)
{
	const struct graftrace_sub_buffer *header = sub_buffer;
	if (header->magic != GRAFTRACE_SUB_BUFFER_MAGIC)
		return gt_fail(message, GT_EFORMAT, "sub-buffer at byte 0: magic is 0x%x, not 0x%x",
			       header->magic, GRAFTRACE_SUB_BUFFER_MAGIC);
	if (header->open_calls > GRAFTRACE_OPEN_CALLS || header->open_calls > header->depth ||
	    header->depth > GT_DECODE_DEPTH_MAX) {
		return gt_fail(message, GT_EFORMAT,
			       "sub-buffer at byte %zu: depth %u with %u open calls cannot be",
			       offsetof(struct graftrace_sub_buffer, depth), header->depth,
			       header->open_calls);
	}
	if (header->tracer != GRAFTRACE_TRACER_FUNCTION_GRAPH &&
	    header->tracer != GRAFTRACE_TRACER_FUNCTION) {
		return gt_fail(message, GT_EFORMAT,
			       "sub-buffer at byte %zu: tracer %u is not known",
			       offsetof(struct graftrace_sub_buffer, tracer), header->tracer);
	}
	words = words_in_use(header, words, growing);

	bool first = !decode->fed;
	uint64_t expected = first ? 0 : decode->sequence + 1;
	uint64_t overrun = header->lost[GRAFTRACE_LOST_OVERRUN];
	if (header->sequence != expected)
		decode->lost_clock = header->clock;
	decode->gap = !first && header->sequence != expected;
	if (decode->gap && decode->values_pending)
		gt_decode_forget_values(decode);
	if (decode->gap) {
		decode->gaps++;
		decode->gap_sub_buffers =
			header->sequence > expected ? header->sequence - expected : 0;
		decode->gap_records = overrun > decode->overrun ? overrun - decode->overrun : 0;
	}
	decode->kernel = header->pid == 0;
	/* Rule 4 of the format: what was followed is right, the header is for those who did not. A
	 * context that was left is as it was then, unless RESUMED follows. */
	bool followed = !first && !decode->gap &&
			(decode->kernel ? decode->context == header->context
					: gt_decode_knows_context(decode, header->context));
	/* A kernel's thread that came with this sub-buffer is told first, and its calls come from
	 * where they were. */
	decode->enter_pending = decode->kernel && (first || decode->context != header->context ||
						   decode->adopt_pending);
	decode->adopt_pending = false;
	decode->unfollowed = first || decode->gap;
	if (!decode->enter_pending && gt_decode_switch_context(decode, header->context) != 0)
		return gt_fail(message, GT_ENOMEM, "no memory for the calls of thread %u",
			       header->tid);
	decode->tid = decode->kernel && !decode->enter_pending ? header->tid : decode->tid;
	decode->fed = true;
	decode->sequence = header->sequence;
	decode->overrun = overrun;
	decode->header = header;
	decode->base = decode->word = (const uint64_t *)(header + 1);
	decode->end = decode->word + words;
	decode->growing = growing;
	decode->tracer = header->tracer;
	decode->clock = header->clock;
	decode->cpu = header->cpu;
	decode->open_pending = false;
	decode->unwind_to = GT_DECODE_NO_UNWINDING;
	decode->switched_at = 0;
	if (decode->depth > GT_DECODE_DEPTH_MAX)
		gt_decode_go_to_depth(decode, GT_DECODE_DEPTH_MAX);

	if (!followed && !decode->enter_pending)
		decode->context_gaps = decode->gaps;
	/* Nearly always the header tells what is known already. */
	decode->reconcile =
		!followed && !decode->enter_pending &&
		(decode->depth != header->depth || gt_decode_agreed_depth(decode) != header->depth);
	decode->fill = false;
	gt_decode_set_fast(decode);
	return 0;
}

void gt_decode_extend(struct gt_decode *decode, const struct graftrace_sub_buffer *sub_buffer,
		      uint32_t words, bool growing)
{
	size_t done = (size_t)(decode->word - decode->base);
	words = words_in_use(sub_buffer, words, growing);
	if (words < done)
		words = (uint32_t)done;
	decode->header = sub_buffer;
	decode->base = (const uint64_t *)(sub_buffer + 1);
	decode->word = decode->base + done;
	decode->end = decode->base + words;
	decode->growing = growing;
	/* The copy may be of any bytes: what was checked is checked again before it is used again.
	 */
	if (decode->reconcile || decode->fill || decode->enter_pending) {
		if (sub_buffer->open_calls > GRAFTRACE_OPEN_CALLS ||
		    sub_buffer->open_calls > sub_buffer->depth ||
		    sub_buffer->depth > GT_DECODE_DEPTH_MAX)
			decode->reconcile = decode->fill = decode->enter_pending = false;
	}
	gt_decode_set_fast(decode);
}

void gt_decode_lose(struct gt_decode *decode)
{
	decode->end = decode->word;
	decode->growing = false;
	/* as if the one before had been the last */
	decode->sequence--;
	gt_decode_set_fast(decode);
}

void gt_decode_miss(struct gt_decode *decode, uint64_t records)
{
	if (!decode->gap)
		decode->gap_sub_buffers = decode->sequence;
	decode->gap = true;
	decode->gap_records = records;
	gt_decode_set_fast(decode);
}

void gt_decode_end(struct gt_decode *decode)
{
	decode->base = decode->word = decode->end = NULL;
	decode->gap = decode->reconcile = decode->fill = false;
	decode->enter_pending = decode->adopt_pending = false;
	decode->unwind_to = GT_DECODE_NO_UNWINDING;
	decode->open_pending = true;
	decode->end_slot = 0;
	gt_decode_set_fast(decode);
}
