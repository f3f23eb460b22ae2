/* SPDX-License-Identifier: MIT */
/*
 * Any words in columns come out the same; and any bytes as columns are decoded or refused, reading
 * and writing nothing beyond what is theirs.
 */
#include <stdlib.h>
#include <string.h>
#include "read/columns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void there_and_back(struct gt_columns_decoder *decoder, const uint8_t *data, size_t size,
			   enum gt_columns_effort effort)
{
	uint32_t words = (uint32_t)(size / 8);
	struct graftrace_sub_buffer header = { .clock = size, .tracer = (uint16_t)(size % 3) };
	uint64_t *in = malloc(words * 8 + 8);
	memcpy(in, data, words * 8ul);
	const struct gt_columns_input inputs[2] = {
		{ &header, in, words / 2 }, { &header, in + words / 2, words - words / 2 }
	};
	const struct graftrace_file_sub_buffer entries[2] = {
		{ header.clock, inputs[0].word_count, 0, 0 },
		{ header.clock, inputs[1].word_count, 0, 0 }
	};
	struct gt_columns_encoder *encoder = gt_columns_encoder_create(0);
	uint8_t *stored = malloc(gt_columns_bound(inputs, 2));
	struct graftrace_sub_buffer *out = malloc(sizeof(*out) + words * 8ul);
	struct gt_columns_group *group;
	struct gt_message message = { "" };

	int64_t bytes = gt_columns_encode(encoder, inputs, 2, effort, stored);
	if (bytes < 0 || (size_t)bytes > gt_columns_bound(inputs, 2) || bytes % 8)
		abort();
	if (gt_columns_open(decoder, stored, (size_t)bytes, entries, 2, &group, &message) < 0)
		abort();
	for (uint32_t i = 0; i < 2; i++)
		if (gt_columns_sub_buffer(group, i, out, &message) < 0 ||
		    memcmp(out + 1, inputs[i].words, inputs[i].word_count * 8ul) != 0)
			abort();
	gt_columns_close(group);
	gt_columns_encoder_destroy(encoder);
	free(out);
	free(stored);
	free(in);
}

static void decode(struct gt_columns_decoder *decoder, const uint8_t *data, size_t size)
{
	const struct graftrace_file_sub_buffer entries[2] = { { 1, data[1], data[2] % 17, 0 },
							      { 2, data[3], data[4] % 17, 0 } };
	uint8_t *stored = malloc(size); /* of exactly that length: reading on is noticed */
	struct graftrace_sub_buffer *out = malloc(sizeof(*out) + 255 * 8);
	struct gt_columns_group *group;
	struct gt_message message = { "" };

	memcpy(stored, data + 5, size - 5);
	if (gt_columns_open(decoder, stored, size - 5, entries, 2, &group, &message) == 0) {
		for (uint32_t i = 0; i < 2; i++)
			gt_columns_sub_buffer(group, i, out, &message);
		gt_columns_close(group);
	}
	free(out);
	free(stored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 5)
		return 0;
	struct gt_columns_decoder *decoder = gt_columns_decoder_create();
	if (data[0] % 4 == 0)
		decode(decoder, data, size);
	else
		there_and_back(decoder, data + 1, size - 1,
			       data[0] % 2 ? GT_COLUMNS_ZSTD : GT_COLUMNS_BARE);
	gt_columns_decoder_destroy(decoder);
	return 0;
}
