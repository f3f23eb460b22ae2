/* SPDX-License-Identifier: MIT */
/*
 * A target made of scripted sub-buffers (record_builder.h), for tests of what reads targets. One
 * tick of its clock is a nanosecond. Include behind cmocka.h. Function n is called "f<n>" or what
 * fake_name set; fake_free frees all.
 */
#ifndef GT_TESTS_UNIT_FAKE_TARGET_H
#define GT_TESTS_UNIT_FAKE_TARGET_H

#include <stdio.h>
#include "core/trace/target.h"
#include "tests/unit/record_builder.h"

#define FAKE_WRITERS	 4100
#define FAKE_SUB_BUFFERS 64
#define FAKE_FUNCTIONS	 128

struct fake_writer {
	struct gt_writer info;
	struct builder sub_buffers[FAKE_SUB_BUFFERS]; /* by sequence */
	uint64_t consumed;			      /* sequences below this are gone */
};

struct fake_target {
	struct gt_target target;
	struct fake_writer *writers[FAKE_WRITERS];
	uint32_t writer_count;
	char names[FAKE_FUNCTIONS][64];
	uint64_t copies; /* sub-buffers asked for */
};

static inline uint32_t fake_writer_count(struct gt_target *target)
{
	return ((struct fake_target *)target->data)->writer_count;
}

static inline int fake_writer(struct gt_target *target, uint32_t index, struct gt_writer *writer)
{
	struct fake_target *fake = target->data;
	if (index >= fake->writer_count)
		return GT_ENOENT;
	*writer = fake->writers[index]->info;
	return 0;
}

static inline int64_t fake_sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence,
				      void *buffer, const struct graftrace_sub_buffer **bytes)
{
	struct fake_target *fake = target->data;
	struct fake_writer *writer = fake->writers[index];
	fake->copies++;
	if (sequence >= writer->info.next || sequence < writer->consumed ||
	    sequence < writer->info.first || sequence >= FAKE_SUB_BUFFERS ||
	    !writer->sub_buffers[sequence].sub_buffer)
		return GT_ENOENT;
	const struct builder *b = &writer->sub_buffers[sequence];
	uint32_t words = b->sub_buffer->used ? b->sub_buffer->used : b->capacity;
	memcpy(buffer, b->sub_buffer, sizeof(*b->sub_buffer) + words * 8);
	*bytes = buffer;
	return words;
}

static inline int fake_consume(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct fake_writer *writer = ((struct fake_target *)target->data)->writers[index];
	assert_true(sequence < writer->info.next);
	assert_true(writer->sub_buffers[sequence].sub_buffer->used != 0);
	writer->consumed = sequence + 1;
	writer->info.first = sequence + 1;
	return 0;
}

static inline int fake_function(void *data, uint32_t number, struct gt_function *function)
{
	struct fake_target *fake = data;
	if (number == 0 || number >= FAKE_FUNCTIONS)
		return GT_ENOENT;
	function->name = fake->names[number];
	function->object = number < 64 ? "/usr/bin/prog" : "/usr/lib/libx.so";
	function->address = 0x401000 + number * 0x100;
	function->size = 0x80;
	return 0;
}

static inline int fake_function_at(void *data, uint32_t pid, uint64_t address,
				   struct gt_function *function)
{
	(void)pid;
	if (address < 0x401100 || address >= 0x401000 + FAKE_FUNCTIONS * 0x100)
		return GT_ENOENT;
	return fake_function(data, (uint32_t)((address - 0x401000) / 0x100), function);
}

static inline uint64_t fake_next_sequence(struct gt_target *target, uint32_t index,
					  uint64_t sequence)
{
	const struct fake_writer *writer = ((struct fake_target *)target->data)->writers[index];
	while (sequence < FAKE_SUB_BUFFERS && !writer->sub_buffers[sequence].sub_buffer)
		sequence++;
	return sequence < FAKE_SUB_BUFFERS ? sequence : writer->info.next;
}

static const struct gt_ring_ops fake_ring = {
	.writer_count = fake_writer_count,
	.writer = fake_writer,
	.sub_buffer = fake_sub_buffer,
	.consume = fake_consume,
	.next_sequence = fake_next_sequence,
};

static const struct gt_name_ops fake_names = {
	.function = fake_function,
	.function_at = fake_function_at,
};

static inline void fake_init(struct fake_target *fake)
{
	memset(fake, 0, sizeof(*fake));
	fake->target.ring = &fake_ring;
	fake->target.names = &fake_names;
	fake->target.data = fake->target.name_data = fake;
	fake->target.clock.mult = 1;
	fake->target.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	fake->target.cpu_count = 2;
	fake->target.sub_buffer_bytes = sizeof(struct graftrace_sub_buffer) + 4096 * 8;
	for (unsigned i = 1; i < FAKE_FUNCTIONS; i++)
		snprintf(fake->names[i], sizeof(fake->names[i]), "f%u", i);
}

static inline void fake_name(struct fake_target *fake, uint32_t number, const char *name)
{
	snprintf(fake->names[number], sizeof(fake->names[number]), "%s", name);
}

/* A new thread; returns its index. */
static inline uint32_t fake_thread(struct fake_target *fake, uint32_t tid, const char *comm,
				   uint64_t start)
{
	uint32_t index = fake->writer_count++;
	struct fake_writer *writer = calloc(1, sizeof(*writer));
	assert_non_null(writer);
	writer->info.generation = index + 1;
	writer->info.pid = 100;
	writer->info.tid = tid;
	writer->info.start = start;
	snprintf(writer->info.comm, sizeof(writer->info.comm), "%s", comm);
	fake->writers[index] = writer;
	return index;
}

/* Its next sub-buffer: a builder that belongs to the target. */
static inline struct builder *fake_sub_buffer_of(struct fake_target *fake, uint32_t index,
						 uint64_t clock, uint32_t cpu, uint32_t capacity)
{
	struct fake_writer *writer = fake->writers[index];
	assert_true(writer->info.next < FAKE_SUB_BUFFERS);
	struct builder *b = &writer->sub_buffers[writer->info.next];
	*b = builder_make_of(clock, capacity);
	b->sub_buffer->sequence = writer->info.next++;
	b->sub_buffer->generation = writer->info.generation;
	b->sub_buffer->tid = writer->info.tid;
	b->sub_buffer->cpu = cpu;
	return b;
}

static inline void fake_free(struct fake_target *fake)
{
	for (uint32_t i = 0; i < fake->writer_count; i++) {
		for (unsigned s = 0; s < FAKE_SUB_BUFFERS; s++)
			builder_free(&fake->writers[i]->sub_buffers[s]);
		free(fake->writers[i]);
	}
	fake->writer_count = 0;
}

/* A test's own target, for who needs nothing else before each test and behind it. */
static struct fake_target fake;

static inline int fake_setup(void **state)
{
	(void)state;
	fake_init(&fake);
	return 0;
}

static inline int fake_teardown(void **state)
{
	(void)state;
	fake_free(&fake);
	return 0;
}

#endif
