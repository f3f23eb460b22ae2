/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads the trace of a recording again, from and to memory, in each way in which the
 * writer packs, in turns:
 *
 *	recording_speed RECORDING SCRATCH ROUNDS
 *
 * prints a line `way words bytes write_ns read_ns` for each way and round.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "read/recording.h"
#include "read/writer.h"

static const struct way {
	const char *name;
	bool compress;
	unsigned pressure;
} ways[] = { { "plain", false, 0 }, { "bare", true, 60 }, { "packed", true, 0 } };

struct trace {
	uint8_t *bytes; /* sub-buffers, one behind the other */
	size_t count;
	uint64_t words;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* All sub-buffers in turns of the writers, as they come while a program runs. Returns the words;
 * keeps them in `trace` if that is not NULL. */
static uint64_t read_all(const char *path, struct trace *trace, struct gt_target *about)
{
	struct gt_message message = { "" };
	struct gt_recording *recording;
	uint64_t words = 0;

	if (gt_recording_open(path, &recording, &message) < 0) {
		fprintf(stderr, "recording_speed: %s\n", message.text);
		exit(1);
	}
	struct gt_target *target = gt_recording_target(recording);
	struct graftrace_sub_buffer *buffer = malloc(target->sub_buffer_bytes);
	if (trace)
		trace->bytes = malloc(gt_recording_info(recording)->words * 8 +
				      gt_recording_info(recording)->sub_buffers * sizeof(*buffer));
	bool more = true;
	for (uint64_t sequence = 0; more; sequence++) {
		more = false;
		for (uint32_t i = 0; i < target->ring->writer_count(target); i++) {
			const struct graftrace_sub_buffer *bytes;
			struct gt_writer writer;
			target->ring->writer(target, i, &writer);
			if (writer.first + sequence >= writer.next)
				continue;
			more = true;
			int64_t got = target->ring->sub_buffer(target, i, writer.first + sequence,
							       buffer, &bytes);
			if (got < 0) {
				fprintf(stderr, "recording_speed: %s\n",
					gt_recording_problem(recording, 0));
				exit(1);
			}
			words += (uint64_t)got;
			if (!trace)
				continue;
			memcpy(trace->bytes + trace->count, bytes, sizeof(*bytes) + got * 8ul);
			trace->count += sizeof(*bytes) + got * 8ul;
		}
	}
	if (about)
		*about = *target;
	free(buffer);
	gt_recording_close(recording);
	return words;
}

static uint64_t write_all(const char *path, const struct trace *trace,
			  const struct gt_target *about, const struct way *way)
{
	const struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = path,
		.compress = way->compress,
		.clock = about->clock,
		.tracer = about->tracer,
		.sub_buffer_bytes = about->sub_buffer_bytes,
	};
	const struct gt_file_writer_totals totals = { .words = trace->words };
	struct gt_message message = { "" };
	struct gt_file_writer *writer;

	if (gt_file_writer_create(&options, &writer, &message) == 0) {
		const struct gt_sink *sink = gt_file_writer_sink(writer);
		gt_file_writer_set_pressure(writer, way->pressure);
		for (size_t at = 0; at < trace->count;) {
			const struct graftrace_sub_buffer *sub_buffer =
				(const void *)(trace->bytes + at);
			if (sink->sub_buffer(sink->data, sub_buffer, sub_buffer->used) < 0)
				break;
			at += sizeof(*sub_buffer) + sub_buffer->used * 8ul;
		}
		gt_file_writer_finish(writer, &totals, &message);
	}
	if (message.text[0]) {
		fprintf(stderr, "recording_speed: %s\n", message.text);
		exit(1);
	}
	uint64_t bytes = gt_file_writer_bytes(writer);
	gt_file_writer_destroy(writer);
	return bytes;
}

int main(int argc, char **argv)
{
	struct trace trace = { 0 };
	struct gt_target about;

	if (argc != 4) {
		fprintf(stderr, "usage: recording_speed RECORDING SCRATCH ROUNDS\n");
		return 2;
	}
	trace.words = read_all(argv[1], &trace, &about);
	for (int round = 0; round < atoi(argv[3]); round++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			uint64_t start = now_ns();
			uint64_t bytes = write_all(argv[2], &trace, &about, &ways[i]);
			uint64_t middle = now_ns();
			uint64_t words = read_all(argv[2], NULL, NULL);
			uint64_t end = now_ns();
			if (words != trace.words)
				return 1;
			printf("%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", ways[i].name,
			       words, bytes, middle - start, end - middle);
		}
	free(trace.bytes);
	return 0;
}
