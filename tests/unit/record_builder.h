/* SPDX-License-Identifier: MIT */
/*
 * Scripted sub-buffers for unit tests: words as a writer would leave them, without a writer.
 * Include behind cmocka.h. Everything is freed by builder_free.
 *
 *	struct builder b = builder_make(1000);          clock 1000, sequence 0, thread 100
 *	builder_entry(&b, 5, 10);                       10 ticks later function 5 is entered
 *	builder_return(&b, 5, 3);                       … and returns after 3 more
 *	… builder_close(&b) …                           used is set: b.sub_buffer, b.count are whole
 */
#ifndef GT_TESTS_UNIT_RECORD_BUILDER_H
#define GT_TESTS_UNIT_RECORD_BUILDER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <graftrace/record.h>

struct builder {
	struct graftrace_sub_buffer *sub_buffer;
	uint64_t *words;
	uint32_t count;
	uint32_t capacity;
	uint64_t clock;
};

static inline struct builder builder_make_of(uint64_t clock, uint32_t capacity)
{
	struct builder b = { .capacity = capacity, .clock = clock };
	size_t bytes = sizeof(*b.sub_buffer) + capacity * sizeof(uint64_t);
	b.sub_buffer = calloc(1, bytes);
	assert_non_null(b.sub_buffer);
	b.words = (uint64_t *)(b.sub_buffer + 1);
	b.sub_buffer->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	b.sub_buffer->bytes = (uint32_t)bytes;
	b.sub_buffer->generation = 1;
	b.sub_buffer->pid = 100;
	b.sub_buffer->tid = 100;
	b.sub_buffer->clock = clock;
	b.sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	return b;
}

static inline struct builder builder_make(uint64_t clock)
{
	return builder_make_of(clock, 64);
}

static inline void builder_free(struct builder *b)
{
	free(b->sub_buffer);
	b->sub_buffer = NULL;
}

static inline void builder_word(struct builder *b, uint64_t word)
{
	assert_true(b->count < b->capacity);
	b->words[b->count++] = word;
}

static inline void builder_special(struct builder *b, enum graftrace_special kind,
				   uint32_t argument)
{
	builder_word(b, graftrace_special_word(kind, argument));
	if (b->sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION)
		builder_word(b, 0);
}

static inline void builder_clock(struct builder *b, uint64_t clock)
{
	if (clock >> 32 != b->clock >> 32)
		builder_special(b, GRAFTRACE_SPECIAL_CLOCK, (uint32_t)(clock >> 32));
	b->clock = clock;
}

static inline void builder_entry(struct builder *b, uint32_t function, int64_t ticks)
{
	builder_clock(b, b->clock + (uint64_t)ticks);
	builder_word(b, graftrace_word(function, 0, (uint32_t)b->clock));
}

static inline void builder_return(struct builder *b, uint32_t function, int64_t ticks)
{
	builder_clock(b, b->clock + (uint64_t)ticks);
	builder_word(b, graftrace_word(function, 1, (uint32_t)b->clock));
}

static inline void builder_long_return(struct builder *b, uint32_t function, int64_t ticks,
				       uint64_t start, uint64_t depth)
{
	builder_clock(b, b->clock + (uint64_t)ticks);
	builder_word(b, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					       GRAFTRACE_EVENT_LONG_RETURN << 16 | 3));
	builder_word(b, graftrace_word(function, 1, (uint32_t)b->clock));
	builder_word(b, start);
	builder_word(b, depth);
}

static inline void builder_entry_only(struct builder *b, uint32_t function, int64_t ticks)
{
	builder_clock(b, b->clock + (uint64_t)ticks);
	builder_word(b, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					       GRAFTRACE_EVENT_ENTRY_ONLY << 16 | 1));
	builder_word(b, graftrace_word(function, 0, (uint32_t)b->clock));
}

/* The function tracer's record. */
static inline void builder_function(struct builder *b, uint32_t function, int64_t ticks,
				    uint64_t parent)
{
	builder_entry(b, function, ticks);
	builder_word(b, parent);
}

static inline void builder_marker(struct builder *b, int64_t ticks, const char *text)
{
	uint32_t words = (uint32_t)((strlen(text) + 7) / 8);
	builder_clock(b, b->clock + (uint64_t)ticks);
	builder_word(b,
		     graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					    (uint32_t)GRAFTRACE_EVENT_MARKER << 16 | (words + 1)));
	builder_word(b, b->clock);
	assert_true(b->count + words <= b->capacity);
	strncpy((char *)&b->words[b->count], text, words * 8);
	b->count += words;
}

/* A stack trace of `count` functions, innermost first. */
static inline void builder_stack(struct builder *b, int64_t ticks, const uint32_t *functions,
				 uint32_t count)
{
	builder_clock(b, b->clock + (uint64_t)ticks);
	builder_word(b,
		     graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					    (uint32_t)GRAFTRACE_EVENT_STACK << 16 | (count + 1)));
	builder_word(b, b->clock);
	for (uint32_t i = 0; i < count; i++)
		builder_word(b, graftrace_word(functions[i], 0, (uint32_t)b->clock));
}

/* A call that is open at the header's moment; called outermost first, after which depth is one
 * more. */
static inline void builder_open(struct builder *b, uint32_t function, uint64_t clock)
{
	struct graftrace_sub_buffer *header = b->sub_buffer;
	if (header->open_calls == GRAFTRACE_OPEN_CALLS) {
		memmove(&header->open[0], &header->open[1],
			sizeof(header->open) - sizeof(header->open[0]));
		header->open_calls--;
	}
	header->open[header->open_calls++] = (struct graftrace_open_call){ .clock = clock,
									   .function = function,
									   .depth = header->depth };
	header->depth++;
}

static inline void builder_close(struct builder *b)
{
	b->sub_buffer->used = b->count;
}

#endif
