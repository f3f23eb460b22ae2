/* SPDX-License-Identifier: MIT */
/*
 * One decoder, and what its tests say of it. Include behind cmocka.h, in one file of a program.
 *
 *	feed(&b);                          it gets the sub-buffer that was built
 *	expect(GT_RECORD_ENTRY, 1, 0);     its next record, which is `record` then
 *	expect_none();
 */
#ifndef GT_TESTS_UNIT_DECODING_H
#define GT_TESTS_UNIT_DECODING_H

#include "core/trace/decode_fast.h"
#include "port/host/memory.h"
#include "tests/unit/record_builder.h"

static size_t memory_now, memory_most, memory_limit = SIZE_MAX;

static inline void *resize(void *data, void *memory, size_t old_bytes, size_t new_bytes)
{
	if (new_bytes && memory_now - old_bytes + new_bytes > memory_limit)
		return NULL;
	memory_now += new_bytes - old_bytes;
	if (memory_now > memory_most)
		memory_most = memory_now;
	return gt_host_resize(data, memory, old_bytes, new_bytes);
}

static struct gt_decode decode;
static struct gt_record record;

static inline int decoding_begin(void **state)
{
	struct gt_memory memory = { resize, NULL };
	(void)state;
	memory_now = memory_most = 0;
	memory_limit = SIZE_MAX;
	gt_decode_init(&decode, &memory);
	return 0;
}

static inline int decoding_end(void **state)
{
	(void)state;
	gt_decode_fini(&decode);
	return memory_now ? -1 : 0;
}

static inline void feed(struct builder *b)
{
	builder_close(b);
	assert_int_equal(gt_decode_feed(&decode, b->sub_buffer, b->count, false, NULL), 0);
}

/* The next record is of this kind, function and depth. */
static inline void expect(enum gt_record_kind kind, uint32_t function, uint32_t depth)
{
	assert_int_equal(gt_decode_next(&decode, &record), kind);
	assert_int_equal(record.kind, kind);
	assert_int_equal(record.function, function);
	assert_int_equal(record.depth, depth);
}

static inline void expect_return(uint32_t function, uint32_t depth, uint64_t duration,
				 uint64_t children)
{
	expect(GT_RECORD_RETURN, function, depth);
	assert_int_equal(record.clock - record.start, duration);
	assert_int_equal(record.children, children);
}

static inline void expect_none(void)
{
	assert_int_equal(gt_decode_next(&decode, &record), GT_RECORD_NONE);
}

#define DECODING_TEST(name) cmocka_unit_test_setup_teardown(name, decoding_begin, decoding_end)

#endif
