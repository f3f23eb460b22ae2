/* SPDX-License-Identifier: MIT */
/*
 * The slow half of decoding: special words, and whatever the straight line leaves to it; files beside
 * it have the sub-buffers' borders, events, values of calls, frames and contexts. Callable from
 * anywhere; one decoder from one caller at a time.
 *
 * What holds at every moment:
 *	low <= depth <= GT_DECODE_DEPTH_MAX plus the words fed
 *	depth - low <= mask + 1 (0 if frames is NULL)
 *	base <= word <= end; fast_end is end while the straight line may run, else base
 *	The running context lives in the decoder's own fields; its slot in `contexts` keeps its
 *	number and is brought up to date when another context runs.
 */
#include "core/trace/decode_fast.h"
#include "core/trace/decode_private.h"
#include "core/trace/word_walk.h"

#define RESUMED_PLACE_MAX 8u /* CONTEXT of a thread and its interrupt, PAD, CLOCK before it */

/* A thread that came has been told: its calls may lie with another CPU's decoder. */
static void adopt(struct gt_decode *decode)
{
	decode->adopt_pending = false;
	if (decode->adopt != NULL)
		decode->adopt(decode->adopt_data, decode);
	gt_decode_set_fast(decode);
}

static void note_thread(struct gt_decode *decode)
{
	if (!decode->kernel || decode->context >= GRAFTRACE_CONTEXT_INTERRUPT)
		return;
	decode->tid = decode->context;
	/* 0: the CPU's own idle thread */
	decode->adopt_pending = decode->context != 0;
}

static int give_gap(struct gt_decode *decode, struct gt_record *record)
{
	decode->gap = false;
	gt_decode_set_fast(decode);
	gt_decode_fill_record(decode, record, GT_RECORD_GAP);
	record->value = decode->gap_sub_buffers;
	record->overrun = decode->gap_records;
	return GT_RECORD_GAP;
}

/* The innermost call of whichever context has one. */
static int give_open(struct gt_decode *decode, struct gt_record *record)
{
	for (;;) {
		if (decode->kernel && decode->context < GRAFTRACE_CONTEXT_INTERRUPT)
			decode->tid = decode->context;
		if (decode->depth) {
			decode->unwind_to = 0;
			decode->unwind_kind = GT_RECORD_OPEN;
			decode->unwind_flags = 0;
			int kind = gt_decode_unwind_one(decode, record);
			decode->unwind_to = GT_DECODE_NO_UNWINDING;
			return kind;
		}
		gt_decode_save_context(decode);
		if (decode->end_slot >= decode->context_count)
			return GT_RECORD_NONE;
		gt_decode_load_context(decode, decode->end_slot++);
	}
}

static int give_entry(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	decode->clock = gt_decode_full_clock(decode, word);
	gt_decode_fill_record(decode, record, GT_RECORD_ENTRY);
	record->function = graftrace_word_function(word);
	gt_decode_push(decode, decode->clock, record->function, GT_RECORD_ENTRY_SEEN);
	decode->word++;
	return GT_RECORD_ENTRY;
}

/*
 * A kernel's CONTEXT word has no clock, and what a thread did on another CPU has to be given out
 * before it goes on here: the CONTEXT record gets the clock of what comes next, an interrupt's too.
 * If that is another thread, this one was told behind what stands before it (a switch, the end of
 * an interrupt), and may run elsewhere by the time of what follows. False: that is not written yet.
 */
static bool clock_ahead(struct gt_decode *decode, uint32_t context)
{
	uint64_t clock = decode->clock;
	struct gt_word_walk walk =
		gt_word_walk(decode->header, (uint32_t)(decode->end - decode->base));
	walk.next = (uint32_t)(decode->word - decode->base);
	while (gt_word_walk_next(&walk)) {
		const uint64_t *at = walk.words + walk.at;
		uint64_t word = walk.word;
		uint32_t kind = graftrace_word_function(word) - GRAFTRACE_SPECIAL;
		if (word == 0 && decode->growing)
			return false;
		if (kind == GRAFTRACE_SPECIAL_CLOCK) {
			clock = word << 32;
		} else if (kind == GRAFTRACE_SPECIAL_CONTEXT && (uint32_t)word != context &&
			   (uint32_t)word < GRAFTRACE_CONTEXT_INTERRUPT) {
			return true;
		} else if (kind == GRAFTRACE_SPECIAL_EVENT) {
			uint32_t type = (uint32_t)word >> 16;
			if (at + 1 == decode->end || at[1] == 0)
				return !decode->growing;
			if (type == GRAFTRACE_EVENT_LONG_RETURN ||
			    type == GRAFTRACE_EVENT_LONG_CALL ||
			    type == GRAFTRACE_EVENT_ENTRY_ONLY) {
				word = at[1];
			} else {
				bool is_full = type == GRAFTRACE_EVENT_STACK ||
					       type == GRAFTRACE_EVENT_MARKER ||
					       type == GRAFTRACE_EVENT_TEXT ||
					       type == GRAFTRACE_EVENT_PROBE ||
					       type == GRAFTRACE_EVENT_MARKER_RAW;
				if (is_full && at[1] > decode->clock && at[1] >> 32 == clock >> 32)
					decode->clock = at[1];
				return true;
			}
		}
		if (graftrace_word_function(word) - 1 < GRAFTRACE_SPECIAL - 1) {
			uint64_t old = decode->clock;
			decode->clock = clock;
			clock = gt_decode_full_clock(decode, word);
			decode->clock = clock > old ? clock : old;
			return true;
		}
	}
	return !decode->growing;
}

/*
 * Does the RESUMED word at `place` stand first in its sub-buffer, but for words that lead to it? Then
 * the header tells the calls, of which that word tells the depth alone.
 */
static bool header_tells_resumed(const struct gt_decode *decode, size_t place, uint32_t depth)
{
	const struct graftrace_sub_buffer *header = decode->header;

	if (place > RESUMED_PLACE_MAX)
		return false;
	for (size_t i = 0; i < place; i++) {
		uint32_t kind = graftrace_word_function(decode->base[i]) - GRAFTRACE_SPECIAL;

		if (kind != GRAFTRACE_SPECIAL_CONTEXT && kind != GRAFTRACE_SPECIAL_CLOCK &&
		    decode->base[i] != graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0))
			return false;
	}
	return header->context == decode->context && header->depth == depth &&
	       header->open_calls <= GRAFTRACE_OPEN_CALLS && header->open_calls <= depth &&
	       decode->tracer == GRAFTRACE_TRACER_FUNCTION_GRAPH;
}

/* A special word. > 0: a record; 0: go on; < 0: the rest of it is not written yet. */
static int special(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	uint32_t argument = (uint32_t)word;
	uint32_t kind = graftrace_word_function(word) - GRAFTRACE_SPECIAL;
	size_t place = (size_t)(decode->word - decode->base);
	uint32_t to; /* a depth */

	if (graftrace_word_is_return(word)) {
		decode->damaged++;
		decode->word++;
		return 0;
	}
	if (kind == GRAFTRACE_SPECIAL_EVENT)
		return gt_decode_event(decode, record, argument);
	decode->word++;
	if (kind == GRAFTRACE_SPECIAL_PAD) {
		uint64_t left = (uint64_t)(decode->end - decode->word);
		if (argument > left)
			decode->damaged++;
		decode->word += argument < left ? argument : left;
		/* an even length in all, in the function tracer's sub-buffers */
		if (decode->tracer == GRAFTRACE_TRACER_FUNCTION && !(argument & 1) &&
		    decode->word < decode->end)
			decode->word++;
		return 0;
	}
	if (decode->tracer == GRAFTRACE_TRACER_FUNCTION && decode->word < decode->end)
		decode->word++; /* the filler */

	switch (kind) {
	case GRAFTRACE_SPECIAL_CLOCK:
		decode->clock = (uint64_t)argument << 32;
		return 0;
	case GRAFTRACE_SPECIAL_UNWOUND:
		to = argument < decode->depth ? decode->depth - argument : 0;
		if (to != decode->depth)
			gt_decode_start_unwinding(decode, to, 0);
		return 0;
	case GRAFTRACE_SPECIAL_RESUMED:
		/* Behind a CONTEXT word it tells the depth there; elsewhere calls may be missing.
		 */
		if (place != decode->switched_at)
			decode->lost_clock = decode->clock + 1;
		if (argument > GT_DECODE_DEPTH_MAX) {
			decode->damaged++;
		} else if (header_tells_resumed(decode, place, argument)) {
			decode->reconcile = true;
			gt_decode_set_fast(decode);
		} else if (argument > decode->depth) {
			gt_decode_go_to_depth(decode, argument);
		} else if (argument < decode->depth) {
			gt_decode_start_unwinding(decode, argument, GT_RECORD_UNSEEN);
		}
		return 0;
	case GRAFTRACE_SPECIAL_CONTEXT:
		if (decode->kernel && !clock_ahead(decode, argument)) {
			decode->word = decode->base + place;
			return -1;
		}
		to = decode->depth;
		gt_decode_switch_context(decode, argument);
		note_thread(decode);
		gt_decode_set_fast(decode);
		decode->switched_at = (size_t)(decode->word - decode->base);
		gt_decode_fill_record(decode, record, GT_RECORD_CONTEXT);
		record->value = argument;
		record->open_before = to;
		return GT_RECORD_CONTEXT;
	case GRAFTRACE_SPECIAL_CPU:
		decode->cpu = argument;
		gt_decode_fill_record(decode, record, GT_RECORD_CPU);
		return GT_RECORD_CPU;
	case GRAFTRACE_SPECIAL_LOST:
		decode->lost_clock = decode->clock + 1;
		gt_decode_fill_record(decode, record, GT_RECORD_LOST);
		record->value = argument;
		return GT_RECORD_LOST;
	default:
		decode->unknown++;
		return 0;
	}
}

/* One record of the function tracer: two words. */
static int function_record(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	if (decode->end - decode->word < 2) {
		decode->damaged++;
		decode->word = decode->end;
		return 0;
	}
	if (decode->growing && decode->word[1] == 0)
		return -1;
	decode->clock = gt_decode_full_clock(decode, word);
	gt_decode_fill_record(decode, record, GT_RECORD_FUNCTION);
	record->function = graftrace_word_function(word);
	record->caller = decode->word[1];
	decode->word += 2;
	return GT_RECORD_FUNCTION;
}

/* A word of an ordinary function, where the straight line could not take it. */
static int call_word(struct gt_decode *decode, struct gt_record *record, uint64_t word)
{
	if (decode->tracer == GRAFTRACE_TRACER_FUNCTION)
		return function_record(decode, record, word);
	if (!graftrace_word_is_return(word))
		return give_entry(decode, record, word);
	return gt_decode_unmatched_return(decode, record, word);
}

int gt_decode_next_slow(struct gt_decode *decode, struct gt_record *record)
{
	for (;;) {
		int kind;
		if (decode->gap)
			return give_gap(decode, record);
		if (decode->enter_pending) {
			decode->enter_pending = false;
			uint32_t open = decode->depth;
			gt_decode_switch_context(decode, decode->header->context);
			decode->tid = decode->header->tid;
			note_thread(decode);
			/* else a RESUMED word follows where it is needed (rule 4) */
			decode->reconcile = decode->unfollowed;
			gt_decode_set_fast(decode);
			gt_decode_fill_record(decode, record, GT_RECORD_CONTEXT);
			record->value = decode->context;
			record->open_before = open;
			return GT_RECORD_CONTEXT;
		}
		if (decode->adopt_pending) {
			/* told as the last of a sub-buffer: when it came stands in the next one */
			if (decode->word >= decode->end)
				return GT_RECORD_NONE;
			adopt(decode);
		}
		if (decode->reconcile) {
			uint32_t agreed = gt_decode_agreed_depth(decode);
			decode->reconcile = false;
			decode->fill = true;
			gt_decode_set_fast(decode);
			if (decode->depth > agreed)
				gt_decode_start_unwinding(decode, agreed, GT_RECORD_UNSEEN);
		}
		if (decode->unwind_to != GT_DECODE_NO_UNWINDING) {
			if (decode->depth > decode->unwind_to)
				return gt_decode_unwind_one(decode, record);
			decode->unwind_to = GT_DECODE_NO_UNWINDING;
			gt_decode_set_fast(decode);
		}
		if (decode->fill) {
			decode->fill = false;
			gt_decode_fill_from_header(decode);
			gt_decode_set_fast(decode);
		}
		if (decode->open_pending)
			return give_open(decode, record);
		if (decode->word >= decode->end)
			return GT_RECORD_NONE;

		uint64_t word = *decode->word;
		if (word == 0) {
			if (decode->growing)
				return GT_RECORD_NONE;
			decode->holes++;
			decode->word++;
			if (decode->tracer == GRAFTRACE_TRACER_FUNCTION &&
			    decode->word < decode->end)
				decode->word++;
			continue;
		}
		uint32_t function = graftrace_word_function(word);
		if (function == 0) {
			decode->damaged++;
			decode->word++;
			continue;
		}
		uint64_t before = decode->clock;
		kind = function < GRAFTRACE_SPECIAL ? call_word(decode, record, word)
						    : special(decode, record, word);
		/* One that belongs behind its CLOCK word (rule 2) changes no other's half. */
		if (decode->clock >> 32 != before >> 32 &&
		    (function < GRAFTRACE_SPECIAL ||
		     function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT))
			decode->clock = before;
		if (kind > 0 && decode->values_pending)
			gt_decode_attach_values(decode, record);
		if (kind > 0)
			return kind;
		if (kind < 0)
			return GT_RECORD_NONE;
	}
}
