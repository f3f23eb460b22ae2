/* SPDX-License-Identifier: MIT */
/* Counting records without decoding them. Looks at no word behind the count that it was given. */
#include "core/trace/decode.h"

uint64_t gt_decode_count(const struct graftrace_sub_buffer *sub_buffer, const uint64_t *words,
			 uint64_t count)
{
	const bool pairs = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION;
	uint64_t records = 0;

	for (uint64_t i = 0; i < count;) {
		uint64_t left = count - i;
		uint32_t function = graftrace_word_function(words[i]);

		records +=
			words[i] != 0 && (function < GRAFTRACE_SPECIAL ||
					  function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT);
		i += graftrace_record_words(&words[i],
					    left < UINT32_MAX ? (uint32_t)left : UINT32_MAX, pairs);
	}
	return records;
}
