/* SPDX-License-Identifier: MIT */
/*
 * What the files of the decoder share. All functions take the decoder that their caller alone uses, without locks, and
 * none fails but where it says so.
 */
#ifndef GT_CORE_TRACE_DECODE_PRIVATE_H
#define GT_CORE_TRACE_DECODE_PRIVATE_H

#include "core/trace/decode.h"

#define GT_DECODE_NO_UNWINDING UINT32_MAX /* of unwind_to */

/* Decides anew whether the straight line (decode_fast.h) may go on. Call it after whatever is to be done
 * before the next word has changed: gap, reconcile, fill, the ..._pending, unwind_to, tracer, end. */
static inline void gt_decode_set_fast(struct gt_decode *decode)
{
	bool slow = decode->tracer == GRAFTRACE_TRACER_FUNCTION || decode->gap ||
		    decode->reconcile || decode->fill || decode->open_pending ||
		    decode->enter_pending || decode->adopt_pending || decode->values_pending ||
		    decode->unwind_to != GT_DECODE_NO_UNWINDING;
	decode->fast_end = slow ? decode->base : decode->end;
}

/* Sets all fields of a record of the kind that comes now; depth is that of the calls open around it. */
static inline void gt_decode_fill_record(const struct gt_decode *decode, struct gt_record *record,
					 enum gt_record_kind kind)
{
	record->clock = decode->clock;
	record->start = decode->clock;
	record->children = 0;
	record->value = 0;
	record->function = 0;
	record->depth = decode->depth;
	record->context = decode->context;
	record->cpu = decode->cpu;
	record->kind = (uint8_t)kind;
	record->flags = 0;
	record->mark = 0;
	record->text_bytes = 0;
	record->tid = decode->tid;
	record->text = NULL;
}

/* The full clock of a word that comes now, which has the low 32 bits of it. */
static inline uint64_t gt_decode_full_clock(const struct gt_decode *decode, uint64_t word)
{
	uint64_t clock = decode->clock >> 32 << 32 | (uint32_t)word;
	/* interrupted just before the CLOCK word that it belongs behind */
	return clock + (1ull << 31) < decode->clock ? clock + (1ull << 32) : clock;
}

/*
 * Is a call whose entry is known the one that its writer tells of by function and entry's clock? An
 * interrupt may have brought the writer a new high half while the entry was recorded (rule 4).
 */
static inline bool gt_decode_is_call(const struct gt_decode_frame *frame, uint32_t function,
				     uint64_t clock)
{
	return frame->function == function &&
	       (frame->clock == clock || frame->clock + (1ull << 32) == clock);
}

/*
 * decode_contexts.c.
 */

/* Copies what the decoder has of the running context into its slot; without a context, nothing. */
void gt_decode_save_context(struct gt_decode *decode);
/* Makes the context in `slot`, below context_count, the running one. Save the one that runs before. */
void gt_decode_load_context(struct gt_decode *decode, uint32_t slot);
/* Were the open calls of context `number` followed up to where it ran last? Not if it never ran, or
 * if sub-buffers are missing since. */
bool gt_decode_knows_context(const struct gt_decode *decode, uint32_t number);
/* Makes context `number` the running one, and saves the one that ran; a new one has no calls, and may take the slot of the
 * one that has not run for the longest time. 0; GT_ENOMEM: there is no context at all, and all is as before. */
int gt_decode_switch_context(struct gt_decode *decode, uint32_t number);

/*
 * decode_frames.c. Without memory for a frame the outermost known call is forgotten; without any
 * frame all are.
 */

/* Opens a call. flags: as of struct gt_decode_frame. At GT_DECODE_DEPTH_MAX calls it only counts it as damaged. */
void gt_decode_push(struct gt_decode *decode, uint64_t clock, uint32_t function, uint16_t flags);
/* `depth` calls are open, and nothing is known of them. */
void gt_decode_go_to_depth(struct gt_decode *decode, uint32_t depth);
/* Calls deeper than `to` have ended without returns: UNWOUND records are given for them, with these
 * flags, before the next word. */
void gt_decode_start_unwinding(struct gt_decode *decode, uint32_t to, unsigned flags);
/* Takes the innermost call off, or all of them where they are not known, and gives its record: of
 * unwind_kind, with unwind_flags. The depth is more than unwind_to. Returns the kind. */
int gt_decode_unwind_one(struct gt_decode *decode, struct gt_record *record);
/* Takes a RETURN word that the straight line could not take. Returns the record's kind; 0: the word
 * is still to be taken, once the calls above its entry are unwound. */
int gt_decode_unmatched_return(struct gt_decode *decode, struct gt_record *record, uint64_t word);
/* The same of an event LONG_RETURN, or LONG_CALL (alone: its entry was not recorded), of `words` words
 * in the sub-buffer with its head; data: its three data words, zeros where they are not written. 0 also
 * where it makes no sense: it is passed over. */
int gt_decode_long_return(struct gt_decode *decode, struct gt_record *record, const uint64_t *data,
			  uint32_t words, bool alone);

/*
 * decode_values.c.
 */

/* Notes values of a call that is still to come, of an event of this type with `there` data words, at least one. They are
 * copied, up to GT_DECODE_VALUE_WORDS words, in place of the oldest if GT_DECODE_VALUES are noted. */
void gt_decode_note_values(struct gt_decode *decode, uint32_t type, const uint64_t *data,
			   uint32_t there);
/* Gives a record the values that were noted for it; those that have waited for too many records are
 * forgotten. Call it with each record while values_pending is not 0. */
void gt_decode_attach_values(struct gt_decode *decode, struct gt_record *record);
/* Records are missing: whose the noted values are is not known. */
void gt_decode_forget_values(struct gt_decode *decode);

/*
 * decode_sub_buffers.c. Both compare with the header of the sub-buffer in work, which was checked.
 */

/* The depth up to which what is known here and what the header lists do not contradict each other. */
uint32_t gt_decode_agreed_depth(const struct gt_decode *decode);
/* Opens the calls that the header lists and that are not known yet. */
void gt_decode_fill_from_header(struct gt_decode *decode);

/*
 * decode_events.c.
 */

/* Takes the event whose head word comes now; argument: of that word. Returns the record's kind; 0: none,
 * go on; < 0: the rest of the event is not written yet, and nothing was taken. */
int gt_decode_event(struct gt_decode *decode, struct gt_record *record, uint32_t argument);

#endif
