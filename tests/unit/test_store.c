/* SPDX-License-Identifier: MIT */
/*
 * Copies of what writers have written (serve/store/store.h), of scripted sub-buffers: how far one
 * that is still being written is copied.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/trace/decode.h"
#include "core/trace/merge.h"
#include "port/host/memory.h"
#include "serve/store/store.h"
#include "tests/unit/fake_target.h"
#include "core/trace/word_walk.h"

#define HIGH_HALF (1ll << 32)
#define CALLER	  0x401234

/* A sub-buffer of the function tracer that is being written. */
static struct builder *growing_function_sub_buffer(void)
{
	struct builder *b;

	fake_init(&fake);
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	b = fake_sub_buffer_of(&fake, fake_thread(&fake, 100, "prog", 1000), 1000, 0, 64);
	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	return b;
}

static uint64_t records(struct gt_store *store)
{
	struct gt_target *target = gt_store_target(store);
	const struct graftrace_sub_buffer *bytes;
	struct gt_writer writer;
	uint64_t count = 0;
	void *buffer = malloc(target->sub_buffer_bytes);

	assert_non_null(buffer);
	assert_int_equal(target->ring->writer(target, 0, &writer), 0);
	for (uint64_t at = writer.first; at < writer.next; at++) {
		int64_t words = target->ring->sub_buffer(target, 0, at, buffer, &bytes);

		if (words == GT_ENOENT)
			continue; /* overwritten, behind one that a reader has */
		assert_true(words >= 0);
		count += gt_words_records(bytes, 0, (uint32_t)words);
	}
	free(buffer);
	return count;
}

static struct gt_store *whole_store(void)
{
	struct gt_store *store;

	assert_int_equal(gt_store_create(&fake.target, 0, true, &store), 0);
	return store;
}

static struct gt_store *routed_store(void)
{
	struct gt_route_want want = { .settings = { .tracer = GRAFTRACE_TRACER_FUNCTION,
						    .on = true } };
	struct gt_store *store;

	assert_int_equal(gt_store_create_routed(&fake.target, 0, true, &store), 0);
	gt_store_want(store, &want);
	return store;
}

/* The word that says so has a filler behind it, which may be zero. */
static void goes_on_behind_a_new_high_half(struct gt_store *(*make)(void))
{
	struct builder *b = growing_function_sub_buffer();
	struct gt_store *store = make();

	builder_function(b, 5, 10, CALLER);
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(records(store), 1);
	builder_function(b, 6, HIGH_HALF, CALLER);
	builder_function(b, 7, 10, CALLER);
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(records(store), 3);
	gt_store_put(store);
	fake_free(&fake);
}

static void a_copy_goes_on_behind_a_new_high_half_of_the_clock(void **state)
{
	(void)state;
	goes_on_behind_a_new_high_half(whole_store);
}

static void a_routed_copy_goes_on_behind_a_new_high_half_of_the_clock(void **state)
{
	(void)state;
	goes_on_behind_a_new_high_half(routed_store);
}

/* The record's function of that sub-buffer; 0: it is not there. */
static uint32_t function_in(struct gt_store *store, uint64_t sequence)
{
	struct gt_target *target = gt_store_target(store);
	const struct graftrace_sub_buffer *bytes;
	void *buffer = malloc(target->sub_buffer_bytes);
	uint32_t function = 0;

	assert_non_null(buffer);
	if (target->ring->sub_buffer(target, 0, sequence, buffer, &bytes) > 0)
		function = graftrace_word_function(*(const uint64_t *)(bytes + 1));
	free(buffer);
	return function;
}

static void sub_buffers_are_found_in_any_order_also_when_others_have_gone(void **state)
{
	struct gt_store *store;
	struct gt_target *target;
	uint32_t thread;

	(void)state;
	fake_init(&fake);
	thread = fake_thread(&fake, 100, "prog", 1000);
	for (uint32_t i = 0; i < 10; i++) {
		struct builder *b = fake_sub_buffer_of(&fake, thread, 1000 * (i + 1), 0, 16);

		builder_entry(b, 10 + i, 1);
		if (i < 9)
			builder_close(b);
	}
	store = whole_store();
	target = gt_store_target(store);
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(function_in(store, 7), 17);
	assert_int_equal(function_in(store, 2), 12);
	assert_int_equal(function_in(store, 9), 19);
	/* the newest is copied anew while it grows */
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(function_in(store, 9), 19);
	assert_int_equal(function_in(store, 4), 14);
	assert_int_equal(target->ring->consume(target, 0, 4), 0);
	assert_int_equal(function_in(store, 4), 0);
	assert_int_equal(target->ring->next_sequence(target, 0, 3), 5);
	assert_int_equal(function_in(store, 5), 15);
	assert_int_equal(target->ring->consume(target, 0, 8), 0);
	assert_int_equal(function_in(store, 9), 19);
	assert_int_equal(function_in(store, 10), 0);
	gt_store_put(store);
	fake_free(&fake);
}

/* Copying may have met the record's second word before that was stored. */
static void half_a_record_of_the_function_tracer_is_copied_when_it_is_whole(void **state)
{
	struct builder *b = growing_function_sub_buffer();
	struct gt_store *store = whole_store();

	(void)state;
	builder_function(b, 5, 10, CALLER);
	builder_function(b, 6, 10, 0);
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(records(store), 1);
	b->words[b->count - 1] = CALLER;
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(records(store), 2);
	gt_store_put(store);
	fake_free(&fake);
}

/* A store of calls with room for `pieces` sub-buffers of its own. */
static struct gt_store *small_store(uint32_t pieces, bool overwrite)
{
	struct gt_route_want want = { .settings = { .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
						    .on = true } };
	struct gt_store *store;

	assert_int_equal(gt_store_create_routed(&fake.target,
						pieces * (GT_ROUTE_PIECE_BYTES + 256ull), overwrite,
						&store),
			 0);
	gt_store_want(store, &want);
	return store;
}

/* Calls that fill a sub-buffer of a store, and more. */
static void pull_calls(struct gt_store *store, uint32_t thread, uint64_t *clock, uint32_t calls)
{
	struct builder *b = fake_sub_buffer_of(&fake, thread, *clock, 0, 2 * calls + 8);

	for (uint32_t i = 0; i < calls; i++) {
		builder_entry(b, 7, 1);
		builder_return(b, 7, 1);
	}
	builder_close(b);
	*clock += 2ull * calls + 8;
	assert_int_equal(gt_store_pull(store), 0);
}

/* Of a source with one thread. */
static struct gt_store *small_store_of_a_thread(uint32_t count, bool overwrite, uint32_t *thread)
{
	fake_init(&fake);
	*thread = fake_thread(&fake, 100, "prog", 1000);
	return small_store(count, overwrite);
}

static struct gt_writer writer_of(struct gt_store *store)
{
	struct gt_target *target = gt_store_target(store);
	struct gt_writer writer;

	assert_int_equal(target->ring->writer(target, 0, &writer), 0);
	return writer;
}

static void newer_records_find_room_while_a_reader_has_sub_buffers(void **state)
{
	uint32_t thread;
	struct gt_store *store = small_store_of_a_thread(3, true, &thread);
	struct gt_target *target = gt_store_target(store);
	uint64_t clock = 1000;

	(void)state;
	for (int i = 0; i < 4; i++)
		pull_calls(store, thread, &clock, 1000);
	/* the one that it reads, and the next */
	for (uint64_t i = 0, first = writer_of(store).first; i < 2; i++)
		assert_int_equal(target->ring->hold(target, 0, first + i), 0);
	for (int i = 0; i < 20; i++)
		pull_calls(store, thread, &clock, 1000);
	assert_false(gt_store_is_full(store));
	assert_int_equal(writer_of(store).lost[GRAFTRACE_LOST_FULL], 0);
	assert_int_equal(records(store) + writer_of(store).lost[GRAFTRACE_LOST_OVERRUN], 24 * 2000);
	gt_store_put(store);
	fake_free(&fake);
}

static void what_finds_no_room_is_counted_calls_and_their_returns(void **state)
{
	uint32_t thread;
	struct gt_store *store = small_store_of_a_thread(2, false, &thread);
	uint64_t clock = 1000;

	(void)state;
	assert_false(gt_store_is_full(store));
	for (int i = 0; i < 6; i++)
		pull_calls(store, thread, &clock, 1000);
	assert_true(gt_store_is_full(store));
	assert_in_range(writer_of(store).lost[GRAFTRACE_LOST_FULL], 1, 6 * 2000);
	assert_int_equal(records(store) + writer_of(store).lost[GRAFTRACE_LOST_FULL], 6 * 2000);
	gt_store_put(store);
	fake_free(&fake);
}

/* What a reader is given, and is told as lost. */
static uint64_t given_and_lost(struct gt_store *store, uint64_t *lost)
{
	struct gt_merge merge;
	struct gt_source *source;
	uint64_t given = 0;

	*lost = 0;
	assert_int_equal(gt_merge_init(&merge, gt_store_target(store), &gt_host_memory,
				       GT_MERGE_CONSUME, NULL),
			 0);
	while (gt_merge_next(&merge, &source) > 0) {
		const struct gt_record *record = &source->record;

		given += record->kind == GT_RECORD_FUNCTION;
		*lost += record->kind == GT_RECORD_LOST	 ? record->value
			 : record->kind == GT_RECORD_GAP ? record->overrun
							 : 0;
	}
	gt_merge_fini(&merge);
	return given;
}

/* A sub-buffer of so many records, which begins when its writer has overwritten that many. */
static void write_functions(uint32_t thread, uint32_t count, uint64_t overwritten)
{
	uint64_t clock = 1000 + 10000 * fake.writers[thread]->info.next;
	struct builder *b = fake_sub_buffer_of(&fake, thread, clock, 0, 1024);

	b->sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	b->sub_buffer->lost[GRAFTRACE_LOST_OVERRUN] = overwritten;
	for (uint32_t i = 0; i < count; i++)
		builder_function(b, 5, 10, CALLER);
	builder_close(b);
}

/* The source's ring has room for six: it has gone round before the store comes again. */
static void all_that_the_source_overwrites_is_told(void **state)
{
	struct gt_store *store;
	uint64_t given, lost;
	uint32_t thread;

	(void)state;
	fake_init(&fake);
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	thread = fake_thread(&fake, 100, "prog", 1000);
	store = routed_store();
	write_functions(thread, 3, 0);
	assert_int_equal(gt_store_pull(store), 0);
	fake.writers[thread]->consumed = 1;
	for (uint32_t i = 1; i < 20; i++)
		write_functions(thread, 3, i > 6 ? 3 * (i - 6) : 0);
	fake.writers[thread]->info.first = 14;
	fake.writers[thread]->info.lost[GRAFTRACE_LOST_OVERRUN] = 3 * 13;
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(writer_of(store).lost[GRAFTRACE_LOST_FULL] +
				 writer_of(store).lost[GRAFTRACE_LOST_OVERRUN],
			 3 * 13);
	given = given_and_lost(store, &lost);
	assert_int_equal(given, 3 * 7);
	assert_int_equal(lost, 3 * 13);
	gt_store_put(store);
	fake_free(&fake);
}

/* … also where the record that tells of it is overwritten in the store. */
static void what_is_overwritten_twice_is_told_once(void **state)
{
	enum { SUB_BUFFERS = 40, RECORDS = 400 };
	struct gt_route_want want = { .settings = { .tracer = GRAFTRACE_TRACER_FUNCTION,
						    .on = true } };
	struct gt_store *store;
	uint64_t given, lost;
	uint32_t thread;

	(void)state;
	thread = 0;
	store = small_store_of_a_thread(3, true, &thread);
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	gt_store_want(store, &want);
	for (uint32_t i = 0; i < SUB_BUFFERS; i++) {
		struct builder *b;

		write_functions(thread, RECORDS, 0);
		if (i % 2 == 0) {
			assert_int_equal(gt_store_pull(store), 0);
			continue;
		}
		/* overwritten before the store comes */
		b = &fake.writers[thread]->sub_buffers[i];
		builder_free(b);
		*b = (struct builder){ 0 };
		fake.writers[thread]->info.lost[GRAFTRACE_LOST_OVERRUN] += RECORDS;
	}
	assert_true(writer_of(store).first > 0);
	given = given_and_lost(store, &lost);
	assert_in_range(given, RECORDS, SUB_BUFFERS / 2 * RECORDS - 1);
	/* the last is overwritten, which is told before the next one */
	assert_int_equal(given + lost, (SUB_BUFFERS - 1) * RECORDS);
	gt_store_put(store);
	fake_free(&fake);
}

/* A damaged sub-buffer: the records that it may have had are told as lost. */
static void what_cannot_be_decoded_is_told(void **state)
{
	struct gt_store *store;
	uint64_t given, lost;
	uint32_t thread;

	(void)state;
	fake_init(&fake);
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	thread = fake_thread(&fake, 100, "prog", 1000);
	store = routed_store();
	write_functions(thread, 3, 0);
	write_functions(thread, 5, 0);
	fake.writers[thread]->sub_buffers[1].sub_buffer->magic = 0;
	write_functions(thread, 3, 0);
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(writer_of(store).lost[GRAFTRACE_LOST_FULL], 5);
	given = given_and_lost(store, &lost);
	assert_int_equal(given, 6);
	assert_int_equal(lost, 5);
	gt_store_put(store);
	fake_free(&fake);
}

/* The linker puts these before the library's (meson.build). */
static bool no_memory;
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return no_memory ? NULL : __real_malloc(bytes);
}

static void comes_again_when_there_is_memory(struct gt_store *(*make)(void))
{
	struct gt_store *store;
	uint32_t thread;

	fake_init(&fake);
	fake.target.tracer = GRAFTRACE_TRACER_FUNCTION;
	thread = fake_thread(&fake, 100, "prog", 1000);
	store = make();
	write_functions(thread, 3, 0);
	assert_int_equal(gt_store_pull(store), 0);
	write_functions(thread, 5, 0);
	no_memory = true;
	assert_int_equal(gt_store_pull(store), GT_ENOMEM);
	gt_store_consume_source(store);
	no_memory = false;
	assert_int_equal(gt_store_pull(store), 0);
	assert_int_equal(records(store), 8);
	gt_store_put(store);
	fake_free(&fake);
}

static void a_copy_without_memory_is_made_at_the_next_pull(void **state)
{
	(void)state;
	comes_again_when_there_is_memory(whole_store);
}

static void a_routed_copy_without_memory_is_made_at_the_next_pull(void **state)
{
	(void)state;
	comes_again_when_there_is_memory(routed_store);
}

/* Another client may remove a command while one looks at it. */
static void a_command_that_was_read_keeps_its_name(void **state)
{
	const struct gt_control_command alpha = { "alpha", 5, GT_ACTION_TRACEOFF, 3 };
	const struct gt_control_command beta = { "be", 2, GT_ACTION_TRACEOFF, 3 };
	struct gt_control_command read;
	struct gt_store *store;
	char name[16];

	(void)state;
	fake_init(&fake);
	store = routed_store();
	assert_int_equal(gt_store_command_set(store, &alpha), 0);
	assert_int_equal(gt_store_command_read(store, 0, &read, name, sizeof(name)), 0);
	assert_int_equal(gt_store_command_remove(store, &alpha), 0);
	assert_int_equal(gt_store_command_set(store, &beta), 0);
	assert_int_equal(read.function_bytes, 5);
	assert_string_equal(read.function, "alpha");
	assert_int_equal(gt_store_command_read(store, 0, &read, name, 2), 0);
	assert_string_equal(read.function, "b");
	gt_store_put(store);
	fake_free(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_goes_on_behind_a_new_high_half_of_the_clock),
		cmocka_unit_test(a_routed_copy_goes_on_behind_a_new_high_half_of_the_clock),
		cmocka_unit_test(sub_buffers_are_found_in_any_order_also_when_others_have_gone),
		cmocka_unit_test(half_a_record_of_the_function_tracer_is_copied_when_it_is_whole),
		cmocka_unit_test(newer_records_find_room_while_a_reader_has_sub_buffers),
		cmocka_unit_test(what_finds_no_room_is_counted_calls_and_their_returns),
		cmocka_unit_test(all_that_the_source_overwrites_is_told),
		cmocka_unit_test(what_is_overwritten_twice_is_told_once),
		cmocka_unit_test(what_cannot_be_decoded_is_told),
		cmocka_unit_test(a_copy_without_memory_is_made_at_the_next_pull),
		cmocka_unit_test(a_routed_copy_without_memory_is_made_at_the_next_pull),
		cmocka_unit_test(a_command_that_was_read_keeps_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
