/* SPDX-License-Identifier: MIT */
/*
 * Copies a ring to a sink. Other readers may consume meanwhile: what they take first is not copied,
 * and nothing is copied twice.
 */
#include "read/ring_dump.h"

#include <stdlib.h>

#include "core/trace/word_walk.h"

static int dump_writer(struct gt_target *target, const struct gt_sink *sink, uint32_t index,
		       void *buffer, uint64_t *records, uint64_t *calls)
{
	struct gt_writer writer;
	int error;

	if (target->ring->writer(target, index, &writer) != 0)
		return 0;
	error = sink->writer(sink->data, &writer);
	for (uint64_t sequence = writer.first; error == 0 && sequence < writer.next;
	     sequence = gt_target_next_sequence(target, index, sequence + 1)) {
		const struct graftrace_sub_buffer *sub_buffer;
		struct gt_word_sum sum;
		int64_t count =
			target->ring->sub_buffer(target, index, sequence, buffer, &sub_buffer);

		if (count < 0)
			continue; /* consumed meanwhile, or damaged by the program */
		/* The words after the cut of an unfinished sub-buffer were never written. */
		gt_words_sum(sub_buffer, (uint32_t)count, &sum);
		*records += sum.records;
		*calls += sum.calls;
		if (sum.end != 0)
			error = sink->sub_buffer(sink->data, sub_buffer, sum.end);
	}
	return error;
}

int gt_ring_dump(struct gt_target *target, const struct gt_sink *sink, uint64_t *words,
		 uint64_t *calls)
{
	void *buffer = malloc(target->sub_buffer_bytes);
	uint32_t count = target->ring->writer_count(target);
	int error = 0;

	*words = 0;
	*calls = 0;
	if (buffer == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count && error == 0; i++)
		error = dump_writer(target, sink, i, buffer, words, calls);
	free(buffer);
	return error;
}
