/* SPDX-License-Identifier: MIT */
/*
 * Walks over the words of a sub-buffer, record by record, without decoding them: finds records, holes
 * and the end of what was written. Used by code that copies, counts or cuts sub-buffers; the decoder has
 * a walk of its own. The writer may be writing meanwhile: each word is loaded once. No word after
 * `count` is read.
 */
#ifndef GT_CORE_TRACE_WORD_WALK_H
#define GT_CORE_TRACE_WORD_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/record.h>

struct gt_word_walk {
	const uint64_t *words;
	uint32_t count;
	uint32_t at;   /* index of the present record */
	uint32_t next; /* index of the next one */
	uint64_t word; /* its first word; 0: a hole, reserved and not stored (yet), or never used */
	bool is_pairs; /* of the function tracer: records have an even length */
};

/* A walk that stands before the first record of the sub-buffer's first `count` words. */
static inline struct gt_word_walk gt_word_walk(const struct graftrace_sub_buffer *sub,
					       uint32_t count)
{
	return (struct gt_word_walk){ .words = (const uint64_t *)(sub + 1),
				      .count = count,
				      .is_pairs = sub->tracer == GRAFTRACE_TRACER_FUNCTION };
}

/* Goes to the next record. False: there is none. */
static inline bool gt_word_walk_next(struct gt_word_walk *walk)
{
	walk->at = walk->next;
	if (walk->at >= walk->count)
		return false;
	walk->word = __atomic_load_n(&walk->words[walk->at], __ATOMIC_RELAXED);
	walk->next += graftrace_record_words(&walk->word, walk->count - walk->at, walk->is_pairs);
	return true;
}

struct gt_word_sum {
	uint64_t records; /* calls, returns and events: the unit of `stats` */
	uint64_t calls;	  /* those of them that stand for a call */
	/* Index of the first hole, or event whose first data word is zero; `count`: there is none. Its
	 * writer may have been interrupted, and have words to store there. */
	uint32_t hole;
	/* Index after the last record of which a word was stored. Zero words at the end of an event
	 * belong to it. */
	uint32_t end;
};

/* Fills in all four for the sub-buffer's first `count` words. */
void gt_words_sum(const struct graftrace_sub_buffer *sub, uint32_t count, struct gt_word_sum *sum);

/* The number of records from index `from` to before `to`; both are where records begin or end. */
uint64_t gt_words_records(const struct graftrace_sub_buffer *sub, uint32_t from, uint32_t to);

/* The sum of what LOST words among the first `count` words tell. */
uint64_t gt_words_lost(const struct graftrace_sub_buffer *sub, uint32_t count);

/* The number of words before the first hole, as gt_word_sum.hole. */
uint32_t gt_words_before_hole(const struct graftrace_sub_buffer *sub, uint32_t count);

/* The number of words before the first record that is not whole: its writer may have been interrupted, or
 * may have written while the words were copied, in any order. An event's first data word is stored last;
 * its other words may be zero. The word that fills up a special word to two (function tracer) may be
 * anything. One that `count` cuts off counts as whole: `count` is where a record ends. */
uint32_t gt_words_whole(const struct graftrace_sub_buffer *sub, uint32_t count);

/* Leaves out the records with a clock later than `last`, as if they had not been made: they become
 * padding where earlier ones follow (of a signal's handler or an interrupt that came while a record
 * was made). Returns the number of words up to the last record that stays; specials behind it go. last: in
 * ticks. The sub-buffer is the caller's own copy. */
uint32_t gt_words_cut(struct graftrace_sub_buffer *sub, uint32_t count, uint64_t last);

#endif
