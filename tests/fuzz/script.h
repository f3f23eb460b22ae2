/* SPDX-License-Identifier: MIT */
/*
 * Sub-buffers out of a fuzzer's bytes, as a target: the input is a little program, so that
 * mutations make words that mean something: an opcode byte, then its operands. For one fuzzer each.
 */
#ifndef GT_TESTS_FUZZ_SCRIPT_H
#define GT_TESTS_FUZZ_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/target.h"

#define WRITERS	    4
#define SUB_BUFFERS 8
#define WORDS	    256

struct sub_buffer {
	struct graftrace_sub_buffer header;
	uint64_t words[WORDS];
};

struct writer {
	struct sub_buffer *sub_buffers[SUB_BUFFERS];
	uint64_t first, next;
};

static struct writer writers[WRITERS];
static uint32_t writer_count;
static bool following; /* the last sub-buffer of each writer is still being written */

static uint32_t count_writers(struct gt_target *target)
{
	(void)target;
	return writer_count;
}

static int get_writer(struct gt_target *target, uint32_t index, struct gt_writer *writer)
{
	(void)target;
	if (index >= writer_count)
		return GT_ENOENT;
	memset(writer, 0, sizeof(*writer));
	writer->generation = index + 1;
	writer->tid = index < 3 ? index + 10 : 0xffffffff;
	memset(writer->comm, 'c', sizeof(writer->comm));
	writer->first = writers[index].first;
	writer->next = writers[index].next;
	return 0;
}

static int64_t get_sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence,
			      void *buffer, const struct graftrace_sub_buffer **bytes)
{
	(void)target;
	if (sequence >= writers[index].next || !writers[index].sub_buffers[sequence])
		return GT_ENOENT;
	memcpy(buffer, writers[index].sub_buffers[sequence], sizeof(struct sub_buffer));
	*bytes = buffer;
	return WORDS;
}

static int get_function(void *data, uint32_t number, struct gt_function *function)
{
	static const char *const names[] = { "main", "a\nb", "", "\x1b[31m", "operator[](int)" };
	(void)data;
	if (number % 7 > 4 || number > 1u << 20)
		return GT_ENOENT;
	*function = (struct gt_function){ .name = names[number % 7], .object = "o" };
	return 0;
}

static int get_function_at(void *data, uint32_t pid, uint64_t address, struct gt_function *function)
{
	(void)pid;
	return get_function(data, (uint32_t)address, function);
}

static int get_event(void *data, uint32_t number, struct gt_event_format *format)
{
	static const char *const names[] = { "a", "b" };
	(void)data;
	if (number % 3 > 1 || number > 64)
		return GT_ENOENT;
	*format = (struct gt_event_format){ .number = number,
					    .field_count = 1,
					    .system = "system",
					    .name = names[number % 3],
					    .object = "",
					    .fields[0] = {
						    .name = "text",
						    .type = "char *",
						    .bytes = 8,
						    .is_string = true,
					    } };
	return 0;
}

static const struct gt_ring_ops ring = {
	.writer_count = count_writers,
	.writer = get_writer,
	.sub_buffer = get_sub_buffer,
};
static const struct gt_name_ops names = {
	.function = get_function,
	.function_at = get_function_at,
	.event = get_event,
};

struct input {
	const uint8_t *at, *end;
};

static uint64_t take(struct input *input, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes && input->at < input->end; i++)
		value |= (uint64_t)*input->at++ << (8 * i);
	return value;
}

static struct sub_buffer *begin(struct input *input, struct writer *writer, uint32_t index)
{
	uint64_t skip = take(input, 1) & 3;
	if (writer->next + 2 >= SUB_BUFFERS)
		return NULL;
	if (skip == 3) /* a gap */
		writer->next++;
	struct sub_buffer *made = calloc(1, sizeof(*made));
	if (!made)
		abort();
	uint64_t how = take(input, 1);
	made->header.magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	made->header.bytes = sizeof(*made);
	made->header.generation = index + 1;
	made->header.sequence = writer->next;
	made->header.cpu = how & 1 ? (uint32_t)take(input, 4) : (uint32_t)(how >> 6);
	made->header.context = how & 2 ? (uint32_t)take(input, 1) : 0;
	made->header.clock = take(input, how & 4 ? 8 : 2);
	made->header.tracer = how & 8 ? GRAFTRACE_TRACER_FUNCTION : GRAFTRACE_TRACER_FUNCTION_GRAPH;
	made->header.depth = (uint32_t)take(input, how & 16 ? 4 : 1);
	made->header.open_calls = (uint16_t)(take(input, 1) % 20);
	made->header.lost[GRAFTRACE_LOST_OVERRUN] = how >> 5;
	for (unsigned i = 0; i < made->header.open_calls && i < GRAFTRACE_OPEN_CALLS; i++) {
		made->header.open[i].clock = take(input, 2);
		made->header.open[i].function = (uint32_t)take(input, 1);
	}
	writer->sub_buffers[writer->next++] = made;
	return made;
}

/* One opcode: a word or a few. Returns how many. */
static unsigned emit(struct input *input, uint64_t *words, unsigned room, uint32_t *clock)
{
	uint64_t op = take(input, 1);
	uint32_t operand = op & 0x80 ? (uint32_t)take(input, 4) : (uint32_t)take(input, 1);
	unsigned count = 1;
	switch (op & 15) {
	case 0:
	case 1:
	case 2:
	case 3:
		words[0] = graftrace_word(operand & 0x7fffffff, 0, *clock += operand);
		break;
	case 4:
	case 5:
	case 6:
		words[0] = graftrace_word(operand & 0x7fffffff, 1, *clock += 3);
		break;
	case 7:
		words[0] = graftrace_special_word(op >> 4, operand);
		break;
	case 8:
		words[0] = take(input, 8);
		break;
	case 9:
		words[0] = 0;
		break;
	case 10:
		if (room < 4)
			return 0;
		words[0] = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						  GRAFTRACE_EVENT_LONG_RETURN << 16 | 3);
		words[1] = graftrace_word(operand & 0x7fffffff, 1, *clock += 9);
		words[2] = take(input, 2);
		words[3] = take(input, op & 0x40 ? 8 : 1);
		count = 4;
		break;
	case 11:
		words[0] = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, operand);
		break;
	case 12:
		if (room < 3)
			return 0;
		words[0] = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						  (uint32_t)GRAFTRACE_EVENT_MARKER << 16 | 2);
		words[1] = take(input, 2);
		words[2] = take(input, 8);
		count = 3;
		break;
	case 13:
		words[0] = graftrace_special_word(GRAFTRACE_SPECIAL_CONTEXT, operand & 7);
		break;
	case 14:
		words[0] = graftrace_special_word(GRAFTRACE_SPECIAL_UNWOUND, operand);
		break;
	default:
		words[0] = graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, operand);
		break;
	}
	return count;
}

static void script(struct input *input)
{
	writer_count = 1 + (uint32_t)(take(input, 1) % WRITERS);
	while (input->at < input->end) {
		uint32_t index = (uint32_t)(take(input, 1) % writer_count);
		struct sub_buffer *sub_buffer = begin(input, &writers[index], index);
		unsigned words = (unsigned)take(input, 1), used = 0;
		uint32_t clock = 0;
		if (!sub_buffer)
			break;
		clock = (uint32_t)sub_buffer->header.clock;
		while (used < words && input->at < input->end) {
			unsigned made = emit(input, sub_buffer->words + used, WORDS - used, &clock);
			if (!made)
				break;
			used += made;
		}
		sub_buffer->header.used = used && !(following && used % 3 == 0) ? used : 0;
	}
}

static void forget_script(void)
{
	for (unsigned i = 0; i < WRITERS; i++) {
		for (unsigned k = 0; k < SUB_BUFFERS; k++)
			free(writers[i].sub_buffers[k]);
		memset(&writers[i], 0, sizeof(writers[i]));
	}
}

#endif
