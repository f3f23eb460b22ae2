/* SPDX-License-Identifier: MIT */
/*
 * A made-up recording for tests: what goes into a sink can be made again from the same numbers, so
 * what comes out of a file is compared with it word by word. Streams look like those of programs:
 * nested calls, loops over few functions, now and then an event, an unwound call, a hole.
 */
#ifndef TESTS_UNIT_RECORDING_SAMPLE_H
#define TESTS_UNIT_RECORDING_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/target.h"

#define SAMPLE_CLOCK 0x123456789abull

struct sample {
	uint32_t seed;
	uint32_t writers;
	uint32_t sub_buffers; /* of each writer */
	uint32_t words;	      /* of each sub-buffer, at most */
	uint32_t functions;   /* numbers 1 ... functions, in objects of 100 */
	bool fine_clock;      /* differences of any length */
};

struct sample_random {
	uint64_t state;
};

static inline uint32_t sample_next(struct sample_random *random)
{
	random->state = random->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random->state >> 33);
}

static inline size_t sample_bytes(const struct sample *sample)
{
	return sizeof(struct graftrace_sub_buffer) + sample->words * sizeof(uint64_t);
}

/* Sub-buffer `sequence` of writer `index` (generation index + 1). Returns its number of words. */
static inline uint32_t sample_sub_buffer(const struct sample *sample, uint32_t index,
					 uint32_t sequence, struct graftrace_sub_buffer *out)
{
	struct sample_random random = { sample->seed * 1000003ull + index * 7919ull + sequence };
	uint64_t *words = graftrace_sub_buffer_words(out);
	uint64_t clock = SAMPLE_CLOCK + sequence * 1000000ull + index * 10ull;
	uint32_t stack[64], depth = 0, count = 0;

	memset(out, 0, sample_bytes(sample));
	for (int i = 0; i < 8; i++)
		sample_next(&random);
	out->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	out->stream = index;
	out->generation = index + 1;
	out->pid = 1000;
	out->tid = 1000 + index;
	out->cpu = index % 4;
	out->sequence = sequence;
	out->clock = clock;
	out->tracer = index % 5 == 4 ? GRAFTRACE_TRACER_FUNCTION : GRAFTRACE_TRACER_FUNCTION_GRAPH;
	out->depth = sequence % 7;
	out->open_calls = (uint16_t)(sequence % 7);
	for (uint32_t i = 0; i < out->open_calls; i++) {
		out->open[i] =
			(struct graftrace_open_call){ clock - 100 + i,
						      1 + (sequence + i) % sample->functions, i };
		stack[depth++] = out->open[i].function;
	}
	out->lost[GRAFTRACE_LOST_FULL] = sequence;
	uint32_t target = sample->words - sample_next(&random) % 5;
	while (count + 5 < target) {
		uint32_t chance = sample_next(&random) % 1000;
		clock += sample->fine_clock && chance % 50 == 0 ? sample_next(&random)
								: 20 + sample_next(&random) % 60;
		if (out->tracer == GRAFTRACE_TRACER_FUNCTION) {
			words[count++] = graftrace_word(
				1 + sample_next(&random) % sample->functions, 0, (uint32_t)clock);
			words[count++] = 0x7f0000001000ull + sample_next(&random) % 16 * 32;
		} else if (chance == 0) {
			words[count++] = graftrace_special_word(GRAFTRACE_SPECIAL_CLOCK,
								(uint32_t)(clock >> 31));
		} else if (chance == 1 && depth > 1) {
			words[count++] = graftrace_special_word(GRAFTRACE_SPECIAL_UNWOUND, 1);
			depth--;
		} else if (chance == 2) {
			words[count++] = graftrace_special_word(
				GRAFTRACE_SPECIAL_EVENT, GRAFTRACE_EVENT_LONG_RETURN << 16 | 3);
			words[count++] = graftrace_word(3, 1, (uint32_t)clock);
			words[count++] = clock - 5000;
			words[count++] = 2;
		} else if (chance == 3) {
			count++; /* a hole */
		} else if (chance == 4) {
			words[count++] = graftrace_word(1, 1, (uint32_t)clock - 500);
		} else if (depth && (depth == 60 || chance % 2)) {
			words[count++] = graftrace_word(stack[--depth], 1, (uint32_t)clock);
		} else {
			uint32_t function = 1 + sample_next(&random) % sample->functions;
			words[count++] = graftrace_word(function, 0, (uint32_t)clock);
			stack[depth++] = function;
		}
	}
	out->bytes = (uint32_t)sample_bytes(sample);
	out->used = count;
	return count;
}

static inline void sample_writer(const struct sample *sample, uint32_t index, bool ended,
				 struct gt_writer *writer)
{
	memset(writer, 0, sizeof(*writer));
	writer->generation = index + 1;
	writer->pid = 1000;
	writer->tid = 1000 + index;
	snprintf(writer->comm, sizeof(writer->comm), "thread %u", index % 10000);
	writer->next = ended ? sample->sub_buffers : 0;
	writer->start = SAMPLE_CLOCK + index;
	writer->end = ended ? SAMPLE_CLOCK + 1000000000u + index : 0;
	writer->lost[GRAFTRACE_LOST_WINDOW] = ended ? index : 0;
}

static inline void sample_function(uint32_t number, char *name, size_t size,
				   struct gt_function *function)
{
	snprintf(name, size, "function_%u%s", number, number % 10 ? "" : "(int, std::string)");
	*function = (struct gt_function){
		.name = name,
		.object = number % 200 < 100 ? "/bin/prog" : "/lib/liba.so",
		.address = 0x400000 + number * 64ull,
		.size = 40 + number % 20,
	};
}

/* The whole sample into a sink: functions, objects, writers, sub-buffers one by one of all writers.
 * 0 or the sink's first error. */
static inline int sample_write(const struct sample *sample, const struct gt_sink *sink)
{
	struct graftrace_sub_buffer *buffer = malloc(sample_bytes(sample));
	static const uint8_t build_id[20] = { 1, 2, 3, 4, 5 };
	struct gt_writer writer;
	int error = sink->object(sink->data, 1000, "/bin/prog", 0x400000, 0x500000, 0, build_id,
				 sizeof(build_id));

	for (uint32_t first = 1; first <= sample->functions && !error; first += 100) {
		struct gt_function functions[100];
		char names[100][64];
		uint32_t count =
			sample->functions + 1 - first < 100 ? sample->functions + 1 - first : 100;
		for (uint32_t i = 0; i < count; i++)
			sample_function(first + i, names[i], sizeof(names[i]), &functions[i]);
		for (uint32_t i = 1; i < count; i++)
			functions[i].object = functions[0].object;
		error = sink->functions(sink->data, 1000, first, functions, count);
	}
	for (uint32_t i = 0; i < sample->writers && !error; i++) {
		sample_writer(sample, i, false, &writer);
		error = sink->writer(sink->data, &writer);
	}
	for (uint32_t k = 0; k < sample->sub_buffers && !error; k++)
		for (uint32_t i = 0; i < sample->writers && !error; i++) {
			uint32_t words = sample_sub_buffer(sample, i, k, buffer);
			error = sink->sub_buffer(sink->data, buffer, words);
		}
	for (uint32_t i = 0; i < sample->writers && !error; i++) {
		sample_writer(sample, i, true, &writer);
		error = sink->writer(sink->data, &writer);
	}
	free(buffer);
	return error;
}

#endif
