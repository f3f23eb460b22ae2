/* SPDX-License-Identifier: MIT */
/*
 * One way over the words of a sub-buffer, record by record, without decoding them: what is a record,
 * what is a hole, and where what was written ends. For whoever copies, counts or cuts sub-buffers;
 * the decoder has its own. Words may be those of a writer that goes on: each is loaded once. No word
 * behind `count` is looked at.
 */
#ifndef GT_CORE_TRACE_WORD_WALK_H
#define GT_CORE_TRACE_WORD_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include <graftrace/record.h>

struct gt_word_walk {
	const uint64_t *words;
	uint32_t count;
	uint32_t at;   /* of the record in hand … */
	uint32_t next; /* … and of the one behind it */
	uint64_t word; /* its first word; 0: a hole, reserved and not stored (yet), or never used */
	bool is_pairs; /* of the function tracer: records have an even length */
};

/* Before the first record of the sub-buffer's first `count` words. */
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
	uint64_t calls;	  /* … that tell of a call */
	uint32_t hole;	  /* index of the first hole; `count`: there is none */
	/* Behind the last record of which something was stored. An event's last words may be zero:
	 * they are its own. */
	uint32_t end;
};

/* All four of the sub-buffer's first `count` words. */
void gt_words_sum(const struct graftrace_sub_buffer *sub, uint32_t count, struct gt_word_sum *sum);

/* Records between two of its records' places, or the place behind the last. */
uint64_t gt_words_records(const struct graftrace_sub_buffer *sub, uint32_t from, uint32_t to);

/* Words up to the first hole. */
uint32_t gt_words_before_hole(const struct graftrace_sub_buffer *sub, uint32_t count);

/* Words up to the first record that is not whole: a writer may have been interrupted in it, or have
 * gone on while the words were copied, in any order. Of an event the first data word is stored
 * last, and others may be zero; of a special word's filler nobody knows what it is. */
uint32_t gt_words_whole(const struct graftrace_sub_buffer *sub, uint32_t count);

#endif
