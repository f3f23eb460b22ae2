/* SPDX-License-Identifier: MIT */
/*
 * The writer of recording files: its life, the making of a block, and the small blocks of writers and of
 * switches. Small blocks are written at once (changed writers and switches:
 * with the next sub-buffers), so that a function's name is in the file before the first sub-buffer
 * that uses it.
 */
#include "read/writer_private.h"
#include "core/trace/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define SWITCHES       8192 /* in a block */
#define PACK_BYTES     512  /* shorter payloads are not packed */
#define METADATA_LEVEL 3

int gt_file_writer_no_memory(struct gt_file_writer *writer)
{
	return gt_block_output_fail(&writer->output, GT_ENOMEM,
				    "no memory for the recording's blocks");
}

/* Makes *bytes hold `count` bytes; their contents are lost. */
static int make_room(struct gt_file_writer *writer, uint8_t **bytes, size_t *size, size_t count)
{
	if (count <= *size)
		return 0;
	free(*bytes);
	*bytes = malloc(count);
	*size = *bytes != NULL ? count : 0;
	return *bytes != NULL ? 0 : gt_file_writer_no_memory(writer);
}

uint8_t *gt_file_writer_start_payload(struct gt_file_writer *writer, size_t count)
{
	if (make_room(writer, &writer->block, &writer->block_size,
		      sizeof(struct graftrace_block) + count + 8) < 0)
		return NULL;
	return writer->block + sizeof(struct graftrace_block);
}

int gt_file_writer_put_payload(struct gt_file_writer *writer, enum graftrace_block_type type,
			       size_t count)
{
	const size_t header = sizeof(struct graftrace_block);
	const bool optional = type == GRAFTRACE_BLOCK_SWITCHES || type == GRAFTRACE_BLOCK_KERNEL ||
			      type == GRAFTRACE_BLOCK_EVENT;
	const uint32_t flags = optional ? GRAFTRACE_BLOCK_OPTIONAL : 0;

	if (writer->compress && count >= PACK_BYTES) {
		if (make_room(writer, &writer->packed, &writer->packed_size, header + count + 8) <
		    0)
			return writer->output.error;
		size_t packed = ZSTD_compress(writer->packed + header, count - 1,
					      writer->block + header, count, METADATA_LEVEL);
		if (!ZSTD_isError(packed) &&
		    count <= GRAFTRACE_EXPANSION_BASE + GRAFTRACE_EXPANSION_BLOCK * packed)
			return gt_block_output_put(&writer->output, writer->packed, type,
						   GRAFTRACE_BLOCK_ZSTD | flags, packed, count, 0);
	}
	return gt_block_output_put(&writer->output, writer->block, type, flags, count, count, 0);
}

static int put_writers(struct gt_file_writer *writer)
{
	struct graftrace_file_writers head = { writer->writer_count,
					       sizeof(struct graftrace_file_writer) };
	size_t count = sizeof(head) + writer->writer_count * sizeof(struct graftrace_file_writer);

	if (!writer->writer_count)
		return 0;
	uint8_t *at = gt_file_writer_start_payload(writer, count);
	if (at == NULL)
		return writer->output.error;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), writer->writers, count - sizeof(head));
	writer->writer_count = 0;
	return gt_file_writer_put_payload(writer, GRAFTRACE_BLOCK_WRITERS, count);
}

static int sink_writer(void *data, const struct gt_writer *seen)
{
	struct gt_file_writer *writer = data;
	struct gt_writer named = *seen;

	if (writer->output.error)
		return gt_file_writer_answer(writer);
	if (writer->see_writer != NULL)
		writer->see_writer(writer->see_data, &named);
	if (writer->writer_count == GT_FILE_WRITERS && put_writers(writer) < 0)
		return gt_file_writer_answer(writer);
	if (!writer->writer_count && !writer->pending_count)
		writer->oldest_ns = gt_file_writer_now_ns();
	struct graftrace_file_writer *record = &writer->writers[writer->writer_count++];
	*record = (struct graftrace_file_writer){
		.generation = seen->generation,
		.pid = seen->pid,
		.tid = seen->tid,
		.next = seen->next,
		.start = seen->start,
		.end = seen->end,
	};
	memcpy(record->comm, named.comm, sizeof(record->comm));
	memcpy(record->lost, seen->lost, sizeof(record->lost));
	return 0;
}

static int put_switches(struct gt_file_writer *writer)
{
	struct graftrace_file_switches head = { writer->switch_count,
						sizeof(struct graftrace_file_switch),
						writer->switches_start, writer->switches_lost };
	size_t count = sizeof(head) + head.count * sizeof(struct graftrace_file_switch);
	uint64_t clock = 0;

	if (writer->switches == NULL || (!head.count && writer->switches_said))
		return 0;
	uint8_t *at = gt_file_writer_start_payload(writer, count);
	if (at == NULL)
		return writer->output.error;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = 0; i < head.count; i++) {
		const struct gt_switch *from = &writer->switches[i];
		struct graftrace_file_switch record = { from->clock - clock, from->tid, from->cpu,
							from->flags };
		clock = from->clock;
		memcpy(at, &record, sizeof(record));
		at += sizeof(record);
	}
	writer->switch_count = 0;
	writer->switches_said = true;
	return gt_file_writer_put_payload(writer, GRAFTRACE_BLOCK_SWITCHES, count);
}

static int sink_switches(void *data, uint64_t start, uint64_t lost,
			 const struct gt_switch *switches, uint32_t count)
{
	struct gt_file_writer *writer = data;

	if (writer->output.error)
		return gt_file_writer_answer(writer);
	if (writer->switches == NULL) {
		writer->switches = malloc(SWITCHES * sizeof(*writer->switches));
		if (writer->switches == NULL) {
			gt_file_writer_no_memory(writer);
			return gt_file_writer_answer(writer);
		}
	}
	writer->switches_start = start;
	writer->switches_lost = lost;
	for (uint32_t i = 0; i < count; i++) {
		if (writer->switch_count == SWITCHES && put_switches(writer) < 0)
			return gt_file_writer_answer(writer);
		if (!writer->switch_count && !writer->pending_count && !writer->writer_count)
			writer->oldest_ns = gt_file_writer_now_ns();
		writer->switches[writer->switch_count++] = switches[i];
	}
	return 0;
}

int gt_file_writer_flush(struct gt_file_writer *writer)
{
	if (writer->output.error)
		return writer->output.error;
	if (put_writers(writer) < 0 || put_switches(writer) < 0 ||
	    gt_file_writer_put_sub_buffers(writer) < 0)
		return writer->output.error;
	return 0;
}

int gt_file_writer_flush_old(struct gt_file_writer *writer)
{
	if ((writer->pending_count || writer->writer_count || writer->switch_count) &&
	    gt_file_writer_now_ns() - writer->oldest_ns > GT_FILE_GATHER_NS)
		return gt_file_writer_flush(writer);
	return writer->output.error;
}

int gt_file_writer_create(const struct gt_file_writer_options *options, struct gt_file_writer **out,
			  struct gt_message *message)
{
	struct gt_file_writer *writer;
	int error;

	*out = NULL;
	if (options->size < sizeof(*options))
		return gt_fail(message, GT_EINVAL, "the options of the recording are too short");
	writer = calloc(1, sizeof(*writer));
	if (writer == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a recording");
	writer->compress = options->compress;
	writer->goes_on = options->goes_on;
	writer->ask_pressure = options->pressure;
	writer->ask_data = options->pressure_data;
	writer->see_writer = options->see_writer;
	writer->see_data = options->see_data;
	writer->clock =
		(struct graftrace_file_clock){ options->clock.tsc_base, options->clock.ns_base,
					       options->clock.mult, options->clock.shift, 0 };
	writer->sink = (struct gt_sink){ .data = writer,
					 .functions = gt_file_writer_functions,
					 .object = gt_file_writer_object,
					 .writer = sink_writer,
					 .sub_buffer = gt_file_writer_sub_buffer,
					 .event = gt_file_writer_event,
					 .switches = sink_switches };
	error = options->append_at
			? gt_block_output_append(&writer->output, options->path, options->append_at,
						 options->append_number)
			: gt_block_output_create(&writer->output, options->path);
	if (!error && options->compress) {
		writer->encoder = gt_columns_encoder_create(options->level);
		if (writer->encoder == NULL)
			error = gt_file_writer_no_memory(writer);
	}
	if (!error && !options->append_at)
		error = gt_file_writer_put_start(writer, options);
	if (error) {
		*message = writer->output.message;
		gt_file_writer_destroy(writer);
		return error;
	}
	*out = writer;
	return 0;
}

const struct gt_sink *gt_file_writer_sink(struct gt_file_writer *writer)
{
	return &writer->sink;
}

void gt_file_writer_set_pressure(struct gt_file_writer *writer, unsigned percent)
{
	atomic_store_explicit(&writer->pressure, percent, memory_order_relaxed);
}

int gt_file_writer_block(struct gt_file_writer *writer, const struct graftrace_block *block,
			 const void *payload)
{
	uint8_t *at = writer->output.error
			      ? NULL
			      : gt_file_writer_start_payload(writer, block->payload_bytes);

	if (at == NULL)
		return writer->output.error;
	memcpy(at, payload, block->payload_bytes);
	return gt_block_output_put(&writer->output, writer->block,
				   (enum graftrace_block_type)block->type, block->flags,
				   block->payload_bytes, block->raw_bytes, block->head_bytes);
}

int gt_file_writer_finish(struct gt_file_writer *writer, const struct gt_file_writer_totals *totals,
			  struct gt_message *message)
{
	struct graftrace_file_end end = {
		.words = totals->words,
		.calls = totals->calls,
		.ns = totals->ns,
		.threads = totals->threads,
		.processes = totals->processes,
		.exit_status = totals->exit_status,
		.functions = writer->functions,
		.clock = writer->clock,
	};

	memcpy(end.lost, totals->lost, sizeof(end.lost));
	if (totals->clock.mult != 0)
		end.clock =
			(struct graftrace_file_clock){ totals->clock.tsc_base,
						       totals->clock.ns_base, totals->clock.mult,
						       totals->clock.shift, 0 };
	if (gt_file_writer_flush(writer) == 0) {
		end.sub_buffers = writer->sub_buffers;
		uint8_t *payload = gt_file_writer_start_payload(writer, sizeof(end));
		if (payload != NULL) {
			memcpy(payload, &end, sizeof(end));
			gt_block_output_put(&writer->output, writer->block, GRAFTRACE_BLOCK_END, 0,
					    sizeof(end), sizeof(end), 0);
		}
	}
	writer->finished = true;
	gt_block_output_close(&writer->output);
	*message = writer->output.message;
	return writer->output.error;
}

const char *gt_file_writer_error(struct gt_file_writer *writer)
{
	return writer->output.message.text;
}

uint64_t gt_file_writer_bytes(struct gt_file_writer *writer)
{
	return writer->output.offset;
}

void gt_file_writer_destroy(struct gt_file_writer *writer)
{
	if (writer == NULL)
		return;
	if (!writer->finished) {
		gt_file_writer_flush(writer);
		gt_block_output_close(&writer->output);
	}
	gt_columns_encoder_destroy(writer->encoder);
	gt_pages_encoder_destroy(writer->pages_encoder);
	free(writer->kernel_files);
	free(writer->switches);
	free(writer->gather);
	free(writer->pending);
	free(writer->inputs);
	free(writer->block);
	free(writer->packed);
	free(writer);
}
