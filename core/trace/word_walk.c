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

uint64_t gt_words_lost(const struct graftrace_sub_buffer *sub, uint32_t count)
{
	struct gt_word_walk walk = gt_word_walk(sub, count);
	uint64_t lost = 0;

	while (gt_word_walk_next(&walk))
		if (graftrace_word_function(walk.word) ==
		    GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_LOST)
			lost += graftrace_word_clock(walk.word);
	return lost;
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

/* The clock of the walk's record; `before`: that of the one before it, or of the last CLOCK word. False:
 * it has none. As the decoder reads it (rules 2 and 4 of graftrace/record.h). */
static bool clock_of(const struct gt_word_walk *walk, uint64_t before, uint64_t *clock)
{
	uint64_t word = walk->word;

	if (graftrace_word_is_event(word)) {
		if (walk->next - walk->at < 2 || walk->words[walk->at + 1] == 0)
			return false;
		switch (graftrace_word_clock(word) >> 16) {
		case GRAFTRACE_EVENT_LONG_RETURN:
		case GRAFTRACE_EVENT_LONG_CALL:
		case GRAFTRACE_EVENT_ENTRY_ONLY:
			word = walk->words[walk->at + 1];
			break;
		case GRAFTRACE_EVENT_MARKER:
		case GRAFTRACE_EVENT_MARKER_RAW:
		case GRAFTRACE_EVENT_TEXT:
		case GRAFTRACE_EVENT_STACK:
		case GRAFTRACE_EVENT_SWITCH:
		case GRAFTRACE_EVENT_PROBE:
			*clock = walk->words[walk->at + 1];
			return true;
		default:
			return false;
		}
	}
	if (graftrace_word_function(word) - 1 >= GRAFTRACE_SPECIAL - 1)
		return false;
	*clock = before >> 32 << 32 | graftrace_word_clock(word);
	if (*clock + (1ull << 31) < before)
		*clock += 1ull << 32;
	return true;
}

uint32_t gt_words_cut(struct graftrace_sub_buffer *sub, uint32_t count, uint64_t last)
{
	struct gt_word_walk walk = gt_word_walk(sub, count);
	uint64_t *words = graftrace_sub_buffer_words(sub);
	uint64_t before = sub->clock;
	uint32_t end = 0;

	while (gt_word_walk_next(&walk)) {
		uint64_t clock;

		if (graftrace_word_function(walk.word) ==
		    GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_CLOCK)
			before = (uint64_t)graftrace_word_clock(walk.word) << 32;
		if (!clock_of(&walk, before, &clock))
			continue;
		if (clock <= last) {
			end = walk.next;
			/* what has its own high half says nothing of that of others */
			if (clock >> 32 == before >> 32 ||
			    graftrace_word_function(walk.word) < GRAFTRACE_SPECIAL)
				before = clock;
			continue;
		}
		words[walk.at] =
			graftrace_special_word(GRAFTRACE_SPECIAL_PAD, walk.next - walk.at - 1);
	}
	return end;
}
