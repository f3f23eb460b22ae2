/* SPDX-License-Identifier: MIT */
/* Counting records without decoding them. Looks at no word behind the count that it was given. */
#include "core/view/decode.h"

uint64_t gt_decode_count(const struct graftrace_sub_buffer *sub_buffer, const uint64_t *words,
			 uint64_t count)
{
	uint64_t step = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION ? 2 : 1;
	uint64_t records = 0;

	for (uint64_t i = 0; i < count; i += step) {
		uint32_t argument = graftrace_word_clock(words[i]);

		if (words[i] == 0)
			continue;
		if (graftrace_word_function(words[i]) < GRAFTRACE_SPECIAL) {
			records++;
		} else if (words[i] == graftrace_special_word(GRAFTRACE_SPECIAL_PAD, argument)) {
			i += argument;
		} else if (words[i] == graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, argument)) {
			records++;
			i += argument & 0xffff;
			if (step == 2)
				i -= i & 1; /* an event's total length is even there */
		}
	}
	return records;
}
