/* SPDX-License-Identifier: MIT */
#include "core/trace/word_walk.h"

/* An event whose first data word is zero is one, too: the writer was interrupted, and goes on to store it. */
static bool is_hole(const struct gt_word_walk *walk)
{
	return walk->word == 0 ||
	       (graftrace_word_is_event(walk->word) && walk->next - walk->at > 1 &&
		__atomic_load_n(&walk->words[walk->at + 1], __ATOMIC_RELAXED) == 0);
}

/* Of a hole of the function tracer the second word may be stored. */
static bool is_stored(const struct gt_word_walk *walk)
{
	return walk->word != 0 ||
	       (walk->is_pairs && walk->next - walk->at == 2 && walk->words[walk->at + 1] != 0);
}

void gt_words_sum(const struct graftrace_sub_buffer *sub, uint32_t count, struct gt_word_sum *sum)
{
	struct gt_word_walk walk = gt_word_walk(sub, count);

	*sum = (struct gt_word_sum){ .hole = count };
	while (gt_word_walk_next(&walk)) {
		sum->records += (uint64_t)graftrace_word_is_record(walk.word);
		sum->calls += (uint64_t)graftrace_word_is_call(walk.word);
		if (sum->hole == count && is_hole(&walk))
			sum->hole = walk.at;
		if (is_stored(&walk))
			sum->end = walk.next;
	}
}

uint64_t gt_words_records(const struct graftrace_sub_buffer *sub, uint32_t from, uint32_t to)
{
	struct gt_word_walk walk = gt_word_walk(sub, to);
	uint64_t records = 0;

	walk.next = walk.is_pairs ? from + (from & 1) : from;
	while (gt_word_walk_next(&walk))
		records += (uint64_t)graftrace_word_is_record(walk.word);
	return records;
}

uint32_t gt_words_before_hole(const struct graftrace_sub_buffer *sub, uint32_t count)
{
	struct gt_word_walk walk = gt_word_walk(sub, count);

	while (gt_word_walk_next(&walk)) {
		if (is_hole(&walk))
			return walk.at;
	}
	return count;
}

uint32_t gt_words_whole(const struct graftrace_sub_buffer *sub, uint32_t count)
{
	struct gt_word_walk walk = gt_word_walk(sub, count);

	while (gt_word_walk_next(&walk)) {
		bool is_pair =
			walk.is_pairs && graftrace_word_function(walk.word) < GRAFTRACE_SPECIAL;

		if (is_hole(&walk) ||
		    (is_pair && walk.next - walk.at > 1 && walk.words[walk.at + 1] == 0))
			return walk.at;
	}
	return walk.at;
}
