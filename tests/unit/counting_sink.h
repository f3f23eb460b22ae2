/* SPDX-License-Identifier: MIT */
/*
 * A sink that counts each function's entries and returns. For one test's source.
 */
#ifndef GT_TESTS_UNIT_COUNTING_SINK_H
#define GT_TESTS_UNIT_COUNTING_SINK_H

#include <stdint.h>
#include <string.h>

#include "attach/session/session.h"

#define NUMBERS 65536

static struct {
	char names[NUMBERS][32];
	uint64_t entries[NUMBERS];
	uint64_t returns[NUMBERS];
	uint64_t ended;
} got;

static int on_functions(void *data, uint32_t pid, uint32_t first,
			const struct gt_function *functions, uint32_t count)
{
	uint32_t i;

	(void)data;
	(void)pid;
	for (i = 0; i < count && first + i < NUMBERS; i++)
		strncpy(got.names[first + i], functions[i].name, 31);
	return 0;
}

static int on_writer(void *data, const struct gt_writer *writer)
{
	(void)data;
	got.ended += writer->end != 0;
	return 0;
}

static void count(uint64_t word)
{
	uint32_t function = graftrace_word_function(word);

	if (function >= NUMBERS)
		return;
	if (graftrace_word_is_return(word))
		got.returns[function]++;
	else
		got.entries[function]++;
}

static int on_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	const uint64_t *word = (const uint64_t *)(sub_buffer + 1);
	uint32_t step = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION ? 2 : 1, i;

	(void)data;
	for (i = 0; i < words; i += step) {
		uint32_t function = graftrace_word_function(word[i]);

		if (function == GRAFTRACE_SPECIAL + GRAFTRACE_SPECIAL_EVENT) {
			count(word[i + 1]);
			i += (word[i] & 0xffff) + 1 - step;
		} else {
			count(word[i]);
		}
	}
	return 0;
}

static const struct gt_sink sink = {
	.functions = on_functions,
	.writer = on_writer,
	.sub_buffer = on_sub_buffer,
};

static uint64_t sum_of(const char *name, const uint64_t *numbers)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < NUMBERS; i++)
		if (strcmp(got.names[i], name) == 0)
			sum += numbers[i];
	return sum;
}

static uint64_t entries_of(const char *name)
{
	return sum_of(name, got.entries);
}

static uint64_t returns_of(const char *name)
{
	return sum_of(name, got.returns);
}

#endif
