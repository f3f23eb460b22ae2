/* SPDX-License-Identifier: MIT */
/*
 * attach/session/profile.c on arenas that this test writes as agents would: what dead threads leave
 * is added up and their pages are given back, beginning anew takes off what was there, and what a
 * broken target writes adds nothing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "attach/session/profile.h"

#define PAGES 4100 /* more than are left lying about */

static struct gt_arena arena;
static struct gt_drain drain;
static struct gt_catalog catalog;
static struct gt_profile profile;

static int begin(void **state)
{
	(void)state;
	if (gt_arena_create(&arena, 64 << 20, NULL) ||
	    gt_drain_init(&drain, &arena, GRAFTRACE_MODE_RING, NULL, NULL))
		return -1;
	gt_catalog_init(&catalog);
	catalog.next_number = 1000;
	gt_profile_init(&profile, &arena, &drain, &catalog);
	return 0;
}

static int end(void **state)
{
	(void)state;
	gt_profile_fini(&profile);
	gt_catalog_fini(&catalog);
	gt_drain_fini(&drain);
	gt_arena_destroy(&arena);
	return 0;
}

static uint32_t claim(uint32_t index, uint32_t tid)
{
	struct graftrace_stream *stream = gt_arena_stream(&arena, index);

	stream->state = GRAFTRACE_STREAM_LIVE;
	if (arena.memory->stream_next <= (uint32_t)(stream - gt_arena_stream(&arena, 0)))
		arena.memory->stream_next = (uint32_t)(stream - gt_arena_stream(&arena, 0)) + 1;
	stream->pid = 100;
	stream->tid = tid;
	stream->generation = ++arena.memory->generations;
	stream->block = 4096;
	return stream->generation;
}

/* A page of functions first … first + 15, as a writer takes it: from the free stack, else a new
 * one. */
static struct graftrace_profile_entry *take(uint32_t stream, uint32_t generation, uint32_t first)
{
	uint64_t head = arena.memory->profile_free;
	uint32_t index = (uint32_t)head ? (uint32_t)head - 1 : arena.memory->profile_next++;
	struct graftrace_profile_state *state = gt_arena_profile_state(&arena, index);

	if ((uint32_t)head)
		arena.memory->profile_free = ((head >> 32) + 1) << 32 | state->next;
	assert_int_equal(state->generation, 0);
	assert_int_equal(gt_arena_profile_page(&arena, index)->hits, 0);
	state->stream = stream;
	state->first = first / GRAFTRACE_PROFILE_FUNCTIONS;
	state->generation = generation;
	return gt_arena_profile_page(&arena, index);
}

static void call(struct graftrace_profile_entry *page, uint32_t function, uint64_t ticks)
{
	struct graftrace_profile_entry *entry = &page[function % GRAFTRACE_PROFILE_FUNCTIONS];
	uint64_t square = ticks * ticks, before = entry->squares[0];

	entry->hits++;
	entry->ticks += ticks;
	entry->self_ticks += ticks / 2;
	entry->squares[0] += square;
	entry->squares[1] += entry->squares[0] < before;

	const uint32_t bucket = graftrace_profile_bucket(entry->last);

	if (bucket < GRAFTRACE_PROFILE_SHORT_BUCKETS)
		entry->buckets[bucket]++;
	else
		entry->long_buckets[bucket - GRAFTRACE_PROFILE_SHORT_BUCKETS]++;
	entry->last = ticks | 1ull << GRAFTRACE_PROFILE_LEAST;
}

static struct gt_profile_counts sum_of(uint32_t function, uint32_t tid)
{
	struct gt_profile_counts found = { 0 };
	struct gt_profile_sum *sums;
	uint32_t count, i;

	assert_int_equal(gt_profile_read(&profile, tid, &sums, &count), 0);
	for (i = 0; i < count; i++)
		if (sums[i].function == function)
			found = sums[i].entry;
	free(sums);
	return found;
}

static void threads_are_added_up(void **state)
{
	uint32_t one = claim(0, 11), two = claim(1, 12);
	struct graftrace_profile_entry *first = take(0, one, 64), *second = take(1, two, 64);

	(void)state;
	call(first, 70, 10);
	call(first, 70, 30);
	call(second, 70, 100);
	call(second, 71, UINT32_MAX);
	call(second, 71, UINT32_MAX);
	assert_int_equal(sum_of(70, 0).hits, 3);
	assert_int_equal(sum_of(70, 0).ticks, 140);
	assert_int_equal(sum_of(70, 0).self_ticks, 70);
	assert_int_equal(sum_of(70, 0).squares[0], 100 + 900 + 10000);
	assert_int_equal(sum_of(70, 11).hits, 2);
	assert_int_equal(sum_of(70, 12).hits, 1);
	assert_int_equal(sum_of(70, 13).hits, 0);
	assert_int_equal(sum_of(71, 0).squares[1], 1);
	assert_int_equal(sum_of(70, 0).buckets[0], 2);
	assert_int_equal(sum_of(70, 0).buckets[1], 1);
	assert_int_equal(sum_of(71, 0).buckets[26], 2);
	assert_int_equal(sum_of(71, 12).buckets[26], 2);
	assert_int_equal(sum_of(71, 0).buckets[0], 0);
	assert_int_equal(sum_of(72, 0).hits, 0);
}

static void beginning_anew_takes_off_what_was_there(void **state)
{
	struct graftrace_profile_entry *page = take(0, claim(0, 11), 0);

	(void)state;
	call(page, 5, 1000);
	assert_int_equal(gt_profile_reset(&profile), 0);
	assert_int_equal(sum_of(5, 0).hits, 0);
	call(page, 5, 7);
	assert_int_equal(sum_of(5, 0).hits, 1);
	assert_int_equal(sum_of(5, 0).ticks, 7);
	assert_int_equal(sum_of(5, 0).squares[0], 49);
	for (uint32_t i = 0; i < GRAFTRACE_PROFILE_BUCKETS; i++)
		assert_int_equal(sum_of(5, 0).buckets[i], i == 0);
	/* one of 32 bits goes over its end */
	page[5].long_buckets[7] = UINT32_MAX;
	call(page, 5, 1ull << 33);
	assert_int_equal(gt_profile_reset(&profile), 0);
	call(page, 5, 1ull << 33);
	call(page, 5, 100);
	assert_int_equal(sum_of(5, 0).buckets[27], 1);
	assert_int_equal(sum_of(5, 0).buckets[1], 1);
	assert_int_equal(gt_profile_reset(&profile), 0);
	assert_int_equal(sum_of(5, 0).hits, 0);
}

static void what_the_dead_leave_counts_and_their_pages_come_back(void **state)
{
	uint32_t living = claim(0, 11), i;
	struct graftrace_profile_entry *page = take(0, living, 0);

	(void)state;
	call(page, 1, 5);
	/* one thread after the other on the same stream: each leaves a page */
	for (i = 1; i < PAGES; i++) {
		uint32_t generation = claim(1, 20 + i);

		call(take(1, generation, 64), 75, 3);
	}
	gt_drain_find_writers(&drain);
	for (i = 0; i < drain.writer_count; i++)
		if (drain.writers[i].writer.tid != 11)
			gt_drain_end_writer(&drain, i, true);
	assert_int_equal(sum_of(75, 0).hits, PAGES - 1);
	gt_profile_collect(&profile);
	assert_int_equal(sum_of(75, 0).hits, PAGES - 1);
	assert_int_equal(sum_of(75, 0).ticks, 3 * (PAGES - 1));
	assert_int_equal(sum_of(75, 0).squares[0], 9 * (PAGES - 1));
	assert_int_equal(sum_of(75, 0).buckets[0], PAGES - 1);
	assert_int_equal(sum_of(1, 11).hits, 1);
	/* they are taken again before any new one, and are empty */
	page = take(0, living, 64);
	call(page, 75, 1);
	assert_int_equal(arena.memory->profile_next, PAGES);
	assert_int_equal(sum_of(75, 0).hits, PAGES);
	assert_int_equal(sum_of(75, 11).hits, 1);
	assert_int_equal(gt_profile_reset(&profile), 0);
	assert_int_equal(sum_of(75, 0).hits, 0);
}

static void a_thread_that_is_not_known_yet_keeps_its_pages(void **state)
{
	struct graftrace_profile_entry *page;
	uint32_t i;

	(void)state;
	for (i = 0; i < PAGES; i++)
		call(take(1, claim(1, 20 + i), 64), 75, 3);
	gt_drain_find_writers(&drain);
	for (i = 0; i < drain.writer_count; i++)
		gt_drain_end_writer(&drain, i, true);
	page = take(2, claim(2, 11), 64);
	call(page, 75, 3);
	gt_profile_collect(&profile);
	call(page, 75, 3);
	assert_int_equal(sum_of(75, 0).hits, PAGES + 2);
	assert_int_equal(sum_of(75, 11).hits, 2);
	gt_profile_collect(&profile);
	call(page, 75, 3);
	assert_int_equal(sum_of(75, 0).hits, PAGES + 3);
}

static void what_a_broken_target_writes_adds_nothing(void **state)
{
	uint32_t generation = claim(0, 11);
	struct graftrace_profile_entry *page = take(0, generation, 64);

	(void)state;
	call(page, 64, 9);
	/* functions that nobody has, a stream that is none, a count beyond the end */
	call(take(0, generation, 64 * 1000), 64, 9);
	call(take(0, generation, UINT32_MAX), 64, 9);
	call(take(UINT32_MAX, generation, 64), 64, 9);
	arena.memory->profile_next = UINT32_MAX;
	assert_int_equal(sum_of(64, 0).hits, 2);
	gt_profile_collect(&profile);
	assert_int_equal(sum_of(64, 0).hits, 2);
	assert_int_equal(sum_of(64, 11).hits, 1);
	memset(page, 0xff, GRAFTRACE_PROFILE_PAGE_BYTES);
	assert_int_equal(sum_of(65, 11).hits, UINT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(threads_are_added_up),
		TEST(beginning_anew_takes_off_what_was_there),
		TEST(what_the_dead_leave_counts_and_their_pages_come_back),
		TEST(a_thread_that_is_not_known_yet_keeps_its_pages),
		TEST(what_a_broken_target_writes_adds_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
