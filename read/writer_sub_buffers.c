/* SPDX-License-Identifier: MIT */
/*
 * Sub-buffers on their way into a recording: copied as they come, gathered to about a megabyte, sorted
 * by their writers, packed as groups and written as one block.
 */
#include "read/writer_private.h"

#include <stdlib.h>
#include <string.h>

#include "read/crc32c.h"

#define GATHER_BYTES (1u << 20) /* sub-buffers of a block */
/* Except for groups of few words, columns without zstd take no more time than writing the words
 * themselves: they are a quarter as long, and half of the cost of writing is the kernel's copy. */
#define PRESSURE_BARE  25
#define PRESSURE_PLAIN 90

static int by_writer(const void *left, const void *right)
{
	const struct gt_file_pending *a = left, *b = right;
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Writes a group without columns. Returns its length. */
static size_t put_plain(const struct gt_columns_input *inputs, uint32_t count, uint8_t *out)
{
	uint8_t *at = out;
	for (uint32_t i = 0; i < count; i++) {
		const struct graftrace_sub_buffer *header = inputs[i].header;
		size_t head = GRAFTRACE_HEADER_BYTES +
			      header->open_calls * sizeof(struct graftrace_open_call);
		memcpy(at, header, head);
		memcpy(at + head, inputs[i].words, inputs[i].word_count * sizeof(uint64_t));
		at += head + inputs[i].word_count * sizeof(uint64_t);
	}
	return (size_t)(at - out);
}

/* Writes one group to `out`. Returns its stored length, or an error. */
static int64_t put_group(struct gt_file_writer *writer, const struct gt_columns_input *inputs,
			 uint32_t count, struct graftrace_file_group *group, uint8_t *out)
{
	unsigned pressure = atomic_load_explicit(&writer->pressure, memory_order_relaxed);
	unsigned asked = writer->ask_pressure != NULL ? writer->ask_pressure(writer->ask_data) : 0;
	size_t plain = 0;

	for (uint32_t i = 0; i < count; i++)
		plain += GRAFTRACE_HEADER_BYTES +
			 inputs[i].header->open_calls * sizeof(struct graftrace_open_call) +
			 inputs[i].word_count * sizeof(uint64_t);
	if (asked > pressure)
		pressure = asked;
	group->encoding = GRAFTRACE_ENCODING_PLAIN;
	if (writer->encoder != NULL && pressure < PRESSURE_PLAIN) {
		int64_t packed = gt_columns_encode(
			writer->encoder, inputs, count,
			pressure < PRESSURE_BARE ? GT_COLUMNS_ZSTD : GT_COLUMNS_BARE, out);
		if (packed < 0)
			return gt_file_writer_no_memory(writer);
		if ((size_t)packed < plain) {
			group->encoding = GRAFTRACE_ENCODING_COLUMNS;
			return packed;
		}
	}
	return (int64_t)put_plain(inputs, count, out);
}

/* Returns how many sub-buffers from `from` on make one group: one writer's, with consecutive
 * sequences. */
static uint32_t group_length(const struct gt_file_writer *writer, uint32_t from)
{
	const struct gt_file_pending *pending = writer->pending;
	uint32_t to = from + 1;
	while (to < writer->pending_count && pending[to].generation == pending[from].generation &&
	       pending[to].sequence == pending[to - 1].sequence + 1)
		to++;
	return to - from;
}

int gt_file_writer_put_sub_buffers(struct gt_file_writer *writer)
{
	uint32_t count = writer->pending_count, groups = 0;

	if (!count)
		return 0;
	qsort(writer->pending, count, sizeof(*writer->pending), by_writer);
	for (uint32_t i = 0; i < count; i++) {
		const void *header = writer->gather + writer->pending[i].at;
		writer->inputs[i] = (struct gt_columns_input){
			header, (const uint64_t *)((const struct graftrace_sub_buffer *)header + 1),
			writer->pending[i].words
		};
	}
	size_t bound = 0;
	for (uint32_t i = 0; i < count; groups++) {
		uint32_t length = group_length(writer, i);
		bound += gt_columns_bound(writer->inputs + i, length);
		i += length;
	}
	struct graftrace_file_sub_buffers head = { groups, count, 0 };
	size_t head_bytes = sizeof(head) + groups * sizeof(struct graftrace_file_group) +
			    count * sizeof(struct graftrace_file_sub_buffer);
	uint8_t *payload = gt_file_writer_start_payload(writer, head_bytes + bound);
	if (payload == NULL)
		return writer->output.error;

	memcpy(payload, &head, sizeof(head));
	uint8_t *group_at = payload + sizeof(head);
	uint8_t *entry_at = group_at + groups * sizeof(struct graftrace_file_group);
	uint8_t *body = payload + head_bytes;
	for (uint32_t i = 0; i < count;) {
		uint32_t length = group_length(writer, i);
		struct graftrace_file_group group = {
			.generation = writer->pending[i].generation,
			.sub_buffer_count = length,
			.first_sequence = writer->pending[i].sequence,
		};
		int64_t stored = put_group(writer, writer->inputs + i, length, &group, body);
		if (stored < 0)
			return (int)stored;
		group.stored_bytes = (uint32_t)stored;
		group.crc = gt_crc32c(0, body, (size_t)stored);
		memcpy(group_at, &group, sizeof(group));
		group_at += sizeof(group);
		body += stored;
		for (uint32_t end = i + length; i < end; i++) {
			struct graftrace_file_sub_buffer entry = {
				writer->inputs[i].header->clock, writer->pending[i].words,
				writer->inputs[i].header->open_calls, 0
			};
			memcpy(entry_at, &entry, sizeof(entry));
			entry_at += sizeof(entry);
		}
	}
	size_t payload_bytes = (size_t)(body - payload);
	if (gt_block_output_put(&writer->output, writer->block, GRAFTRACE_BLOCK_SUB_BUFFERS, 0,
				payload_bytes, payload_bytes, head_bytes) < 0)
		return writer->output.error;
	writer->pending_count = 0;
	writer->gathered = 0;
	writer->sub_buffers += count;
	return 0;
}

static uint64_t calls_of(const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	const uint64_t *word = (const uint64_t *)(sub_buffer + 1);
	const bool is_pairs = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION;
	uint64_t calls = 0;

	for (uint32_t i = 0; i < words; i += graftrace_record_words(&word[i], words - i, is_pairs))
		calls += (uint64_t)graftrace_word_is_call(word[i]);
	return calls;
}

uint64_t gt_file_writer_missed(const struct gt_file_writer *writer)
{
	uint64_t calls = writer->missed;

	for (uint32_t i = 0; writer->output.error && i < writer->pending_count; i++)
		calls += calls_of((const void *)(writer->gather + writer->pending[i].at),
				  writer->pending[i].words);
	return calls;
}

/* Makes room for one more sub-buffer of `bytes`. */
static int make_gather_room(struct gt_file_writer *writer, size_t bytes)
{
	if (writer->gathered + bytes > writer->gather_size) {
		size_t size = writer->gathered + bytes;
		if (size < GATHER_BYTES)
			size = GATHER_BYTES;
		uint8_t *gather = realloc(writer->gather, size);
		if (gather == NULL)
			return gt_file_writer_no_memory(writer);
		writer->gather = gather;
		writer->gather_size = size;
	}
	if (writer->pending_count == writer->pending_size) {
		uint32_t size = writer->pending_size * 2 + 64;
		struct gt_file_pending *pending = realloc(writer->pending, size * sizeof(*pending));
		if (pending == NULL)
			return gt_file_writer_no_memory(writer);
		writer->pending = pending;
		struct gt_columns_input *inputs = realloc(writer->inputs, size * sizeof(*inputs));
		if (inputs == NULL)
			return gt_file_writer_no_memory(writer);
		writer->inputs = inputs;
		writer->pending_size = size;
	}
	return 0;
}

/* Returns 0 if it was added to the pending ones. */
static int gather(struct gt_file_writer *writer, const struct graftrace_sub_buffer *sub_buffer,
		  uint32_t words)
{
	size_t bytes = sizeof(*sub_buffer) + (size_t)words * sizeof(uint64_t);
	uint64_t now = gt_file_writer_now_ns();

	if (writer->output.error)
		return writer->output.error;
	if (words > GRAFTRACE_WORDS_MAX)
		return gt_block_output_fail(&writer->output, GT_EINVAL,
					    "a sub-buffer is larger than the format can hold");
	if (writer->pending_count &&
	    (writer->gathered + bytes > GATHER_BYTES ||
	     now - writer->oldest_ns > GT_FILE_GATHER_NS) &&
	    gt_file_writer_flush(writer) < 0)
		return writer->output.error;
	if (make_gather_room(writer, bytes) < 0)
		return writer->output.error;
	if (!writer->pending_count)
		writer->oldest_ns = now;
	struct graftrace_sub_buffer *copy = (void *)(writer->gather + writer->gathered);
	memcpy(copy, sub_buffer, bytes);
	copy->used = words;
	if (copy->open_calls > GRAFTRACE_OPEN_CALLS)
		copy->open_calls = GRAFTRACE_OPEN_CALLS;
	writer->pending[writer->pending_count++] =
		(struct gt_file_pending){ copy->sequence, writer->gathered, copy->generation,
					  words };
	writer->gathered += bytes;
	return 0;
}

int gt_file_writer_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer,
			      uint32_t words)
{
	struct gt_file_writer *writer = data;

	if (gather(writer, sub_buffer, words) < 0)
		writer->missed += calls_of(sub_buffer, words);
	return gt_file_writer_answer(writer);
}
