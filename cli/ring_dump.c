/* SPDX-License-Identifier: MIT */
/*
 * From ring to file. Readers may go on consuming meanwhile: what they take first is not in the
 * file, and nothing is in it twice.
 */
#include "cli/ring_dump.h"

#include <stdlib.h>

/*
 * Records and calls among the words; an event's data may look like anything and is stepped over.
 * Returns the number of words up to the last that belongs to a record: of a sub-buffer that was cut
 * off in the middle the rest was never written.
 */
static int64_t count_records(const struct graftrace_sub_buffer *sub_buffer, const uint64_t *words,
			     int64_t count, uint64_t *records, uint64_t *calls)
{
	const bool is_pairs = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION;
	int64_t end = 0, i = 0;

	while (i < count) {
		uint64_t word = words[i];

		i += graftrace_record_words(&words[i], (uint32_t)(count - i), is_pairs);
		*records += (uint64_t)graftrace_word_is_record(word);
		*calls += (uint64_t)graftrace_word_is_call(word);
		if (word != 0)
			end = i;
	}
	return end;
}

static int dump_writer(struct gt_target *target, const struct gt_sink *sink, uint32_t index,
		       void *buffer, uint64_t *records, uint64_t *calls)
{
	struct gt_writer writer;
	int error;

	if (target->ops->writer(target, index, &writer) != 0)
		return 0;
	error = sink->writer(sink->data, &writer);
	for (uint64_t sequence = writer.first; error == 0 && sequence < writer.next;
	     sequence = gt_target_next_sequence(target, index, sequence + 1)) {
		const struct graftrace_sub_buffer *sub_buffer;
		const uint64_t *words;
		int64_t count =
			target->ops->sub_buffer(target, index, sequence, buffer, &sub_buffer);

		if (count < 0)
			continue; /* consumed meanwhile, or damaged by the program */
		words = (const uint64_t *)(sub_buffer + 1);
		count = count_records(sub_buffer, words, count, records, calls);
		if (count == 0)
			continue;
		error = sink->sub_buffer(sink->data, sub_buffer, (uint32_t)count);
	}
	return error;
}

int gt_ring_dump(struct gt_target *target, const struct gt_sink *sink, uint64_t *words,
		 uint64_t *calls)
{
	void *buffer = malloc(target->sub_buffer_bytes);
	uint32_t count = target->ops->writer_count(target);
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
