/* SPDX-License-Identifier: MIT */
/*
 * A target that writes what it likes into its arena: the drain and the live target must bear it.
 * The input is laid over streams, states, headers and words; between passes some of it changes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "attach/ring/drain.h"
#include "attach/session/live_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t seen;

static int on_writer(void *data, const struct gt_writer *writer)
{
	(void)data;
	seen += writer->generation + (uint64_t)strlen(writer->comm);
	return 0;
}

static int on_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	const uint64_t *word = (const uint64_t *)(sub_buffer + 1);
	uint32_t i;

	(void)data;
	if (sub_buffer->open_calls > GRAFTRACE_OPEN_CALLS || words > (16384 - 384) / 8)
		abort();
	for (i = 0; i < words; i++)
		seen += word[i];
	return 0;
}

/* Takes bytes of the input, over and over. */
struct input {
	const uint8_t *data;
	size_t size;
	size_t at;
};

static void take(struct input *input, void *out, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++) {
		((uint8_t *)out)[i] = input->data[input->at];
		input->at = (input->at + 1) % input->size;
	}
}

static void scribble(struct gt_arena *arena, struct input *input)
{
	uint8_t edits, kind, where;
	uint64_t value;

	take(input, &edits, 1);
	while (edits--) {
		take(input, &kind, 1);
		take(input, &where, 1);
		take(input, &value, sizeof(value));
		switch (kind % 8) {
		case 0:
			memcpy((char *)gt_arena_stream(arena, where % 4) + value % 248, &value,
			       sizeof(value));
			break;
		case 1:
			gt_arena_state(arena, where % arena->sub_buffer_count)->word = value;
			break;
		case 2: /* a likely state word */
			gt_arena_state(arena, where % arena->sub_buffer_count)->word =
				graftrace_state_word(value & 3, value >> 2 & 3, value >> 4 & 7);
			break;
		case 3:
			((uint64_t *)gt_arena_sub_buffer(
				arena,
				where % arena->sub_buffer_count))[value % (arena->sub_buffer_bytes /
									   8)] = value;
			break;
		case 4: { /* a likely header */
			struct graftrace_sub_buffer *sub =
				gt_arena_sub_buffer(arena, where % arena->sub_buffer_count);

			sub->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
			sub->bytes = arena->sub_buffer_bytes;
			sub->stream = value & 3;
			sub->generation = value >> 2 & 7;
			sub->sequence = value >> 5 & 7;
			sub->used = value >> 8 & 0x3ff;
			sub->tracer = value >> 20 & 3;
			break;
		}
		case 5: /* a likely claim */
			gt_arena_stream(arena, where & 3)->generation = value & 7;
			gt_arena_stream(arena, where & 3)->state = value >> 3 & 3;
			arena->memory->stream_next = 4;
			arena->memory->generations += value >> 5 & 1;
			break;
		case 6:
			memcpy((char *)arena->memory + where % 64 * 8, &value, sizeof(value));
			break;
		default:
			((uint64_t *)gt_arena_sub_buffer(
				arena, where % arena->sub_buffer_count))[48 + value % 16] = value;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct gt_sink sink = { .writer = on_writer, .sub_buffer = on_sub_buffer };
	struct input input = { data, size, 0 };
	struct gt_arena arena;
	struct gt_drain drain;
	struct gt_writer writer;
	uint8_t choice;
	uint32_t i, k;
	void *copy;
	int round;

	if (size < 4)
		return 0;
	take(&input, &choice, 1);
	if (gt_arena_create(&arena, 16384, NULL))
		return 0;
	if (gt_drain_init(&drain, &arena, choice % 3, choice % 3 ? NULL : &sink, NULL)) {
		gt_arena_destroy(&arena);
		return 0;
	}
	copy = malloc(arena.sub_buffer_bytes);
	for (round = 0; copy && round < 4; round++) {
		scribble(&arena, &input);
		gt_drain_pass(&drain, (uint64_t)round * 150000000);
		for (i = 0; i < drain.writer_count && i < 8; i++) {
			bool active;

			gt_drain_writer(&drain, i, &writer);
			for (k = 0; k < 8; k++) {
				int64_t words =
					gt_drain_copy(&drain, i, writer.first + k, copy, &active);

				if (words > (int64_t)gt_arena_words(&arena, 0))
					abort();
				if (words > 0 && choice & 16)
					gt_drain_consume(&drain, i, writer.first + k);
			}
			if (choice & 4 && round >= 1)
				gt_drain_end_writer(&drain, i, choice & 8);
		}
		if (choice & 32)
			gt_drain_clear(&drain);
	}
	free(copy);
	gt_drain_fini(&drain);
	gt_arena_destroy(&arena);
	return 0;
}
