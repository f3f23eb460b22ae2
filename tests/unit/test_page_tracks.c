/* SPDX-License-Identifier: MIT */
/* Boxes of the time line: what is looked at is what was put in, at every grain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "export/page/tracks.h"

struct seen {
	uint64_t calls, busy, last_end;
	size_t boxes;
	struct gt_box first;
};

static int see(void *user, const struct gt_box *box)
{
	struct seen *seen = user;

	assert_true(seen->boxes == 0 || box->start >= seen->last_end);
	if (seen->boxes++ == 0)
		seen->first = *box;
	seen->calls += box->count;
	seen->busy += box->busy;
	seen->last_end = box->start + box->took;
	return GT_OK;
}

static struct seen look(const struct gt_track *track, uint64_t from, uint64_t to, uint64_t grain)
{
	struct seen seen = { 0 };

	assert_int_equal(gt_track_look(track, from, to, grain, see, &seen), GT_OK);
	return seen;
}

static void add(struct gt_track *track, uint64_t start, uint64_t took, uint32_t function)
{
	const struct gt_box box = { .start = start,
				    .took = took,
				    .busy = took,
				    .weight = took,
				    .function = function,
				    .count = 1 };

	assert_int_equal(gt_track_add(track, &box, track->level_count ? track->levels[0].grain : 0),
			 GT_OK);
}

/* A call of 40 each 100, each thousandth of 90,000 with room for it. */
static void fill(struct gt_track *track, uint32_t count)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t took = i % 1000 == 999 ? 90000 : 40;

		add(track, at, took, took == 40 ? 1 : 2);
		at += took + 60;
	}
}

static void no_grain_loses_a_call(void **state)
{
	struct gt_track track = { 0 };

	(void)state;
	fill(&track, 50000);
	assert_int_equal(gt_track_finish(&track), GT_OK);
	assert_true(track.level_count > 1);
	for (uint64_t grain = 0; grain < 100000000; grain = grain * 3 + 1) {
		struct seen seen = look(&track, 0, UINT64_MAX, grain);

		assert_int_equal(seen.calls, 50000);
		/* Parts are kept in 65,535ths, rounded each time that a call is joined. */
		assert_in_range(seen.busy, 6498000 - 30000, 6498000 + 30000);
	}
	gt_track_fini(&track);
}

static void coarser_views_have_few_boxes(void **state)
{
	struct gt_track track = { 0 };
	uint64_t length = 50000ull * 100 + 50 * 89960;

	(void)state;
	fill(&track, 50000);
	assert_int_equal(gt_track_finish(&track), GT_OK);
	assert_in_range(look(&track, 0, length, length / 500).boxes, 100, 1100);
	/* What is as long as the grain stays by itself. */
	assert_true(look(&track, 0, length, 1000).boxes >= 100);
	gt_track_fini(&track);
}

static void a_single_call_is_found_as_it_was(void **state)
{
	struct gt_track track = { 0 };
	struct seen seen;

	(void)state;
	fill(&track, 50000);
	assert_int_equal(gt_track_finish(&track), GT_OK);
	seen = look(&track, 700, 745, 0);
	assert_int_equal(seen.boxes, 1);
	assert_int_equal(seen.first.start, 700);
	assert_int_equal(seen.first.took, 40);
	assert_int_equal(seen.first.function, 1);
	assert_int_equal(seen.first.count, 1);
	/* What began before and reaches in is seen; what ends at `from` is not. */
	assert_int_equal(look(&track, 720, 721, 0).boxes, 1);
	assert_int_equal(look(&track, 740, 800, 0).boxes, 0);
	gt_track_fini(&track);
}

static void of_many_calls_the_function_with_the_most_time_is_told(void **state)
{
	struct gt_track track = { 0 };
	struct seen seen;

	(void)state;
	for (uint32_t i = 0; i < 900; i++)
		add(&track, i * 100, i % 3 == 1 ? 30 : 50, i % 3 == 1 ? 7 : 9);
	assert_int_equal(gt_track_finish(&track), GT_OK);
	seen = look(&track, 0, 100000, 1000000);
	assert_int_equal(seen.boxes, 1);
	assert_int_equal(seen.first.function, 9);
	assert_int_equal(seen.first.count, 900);
	gt_track_fini(&track);
}

static void too_many_calls_are_kept_together(void **state)
{
	struct gt_track track = { 0 };
	struct seen seen;
	size_t before;

	(void)state;
	fill(&track, 20000);
	before = gt_track_count(&track);
	assert_int_equal(gt_track_coarsen(&track, 1024), GT_OK);
	assert_true(gt_track_count(&track) < before / 5);
	/* More of them come to the same grain. */
	add(&track, 100000000, 10, 3);
	add(&track, 100000020, 10, 3);
	assert_int_equal(gt_track_finish(&track), GT_OK);
	seen = look(&track, 0, UINT64_MAX, 0);
	assert_int_equal(seen.calls, 20002);
	seen = look(&track, 100000000, UINT64_MAX, 0);
	assert_int_equal(seen.boxes, 1);
	assert_int_equal(seen.first.count, 2);
	gt_track_fini(&track);
}

static void big_times_are_kept_whole(void **state)
{
	struct gt_track track = { 0 };
	struct seen seen;
	uint64_t day = 86400ull * 1000000000;

	(void)state;
	add(&track, day, day + 12345, 3);
	assert_int_equal(gt_track_finish(&track), GT_OK);
	seen = look(&track, 0, UINT64_MAX, 0);
	assert_int_equal(seen.first.start, day);
	assert_int_equal(seen.first.took, day + 12345);
	gt_track_fini(&track);
}

/* What gt_track_find should find, by a look at each box. */
struct nearest {
	uint32_t function;
	uint64_t from, limit;
	bool forward, any;
	struct gt_box box;
};

static int compare(void *user, const struct gt_box *box)
{
	struct nearest *nearest = user;

	if (box->function != nearest->function)
		return GT_OK;
	if (nearest->forward ? box->start <= nearest->from || box->start >= nearest->limit
			     : box->start >= nearest->from || box->start < nearest->limit)
		return GT_OK;
	if (nearest->any && (nearest->forward || box->start == nearest->box.start))
		return GT_OK;
	nearest->any = true;
	nearest->box = *box;
	return GT_OK;
}

static void assert_same_box(const struct gt_box *one, const struct gt_box *other)
{
	assert_int_equal(one->start, other->start);
	assert_int_equal(one->took, other->took);
	assert_int_equal(one->function, other->function);
	assert_int_equal(one->count, other->count);
}

static void the_nearest_call_of_a_function_is_found_either_way(void **state)
{
	struct gt_track track = { 0 };
	uint64_t at = 0;

	(void)state;
	srand(1);
	for (unsigned i = 0; i < 300; i++) {
		/* Calls that take no time begin at once, several of them. */
		const uint64_t took = rand() % 3 ? (uint64_t)rand() % 2000 : 0;

		add(&track, at, took, (uint32_t)rand() % 4);
		at += took + (rand() % 3 ? (uint64_t)rand() % 100 : 0);
	}
	for (unsigned i = 0; i < 20000; i++) {
		struct nearest nearest = {
			.function = (uint32_t)rand() % 5,
			.from = (uint64_t)rand() % (at + 2),
			.limit = (uint64_t)rand() % (at + 2),
			.forward = i % 2,
		};
		struct gt_box found;

		if (i == 10000)
			assert_int_equal(gt_track_coarsen(&track, 1024), GT_OK);
		if (i % 3 == 0)
			nearest.limit = nearest.forward ? UINT64_MAX : 0;
		assert_int_equal(gt_track_look(&track, 0, UINT64_MAX, 0, compare, &nearest), GT_OK);
		assert_int_equal(gt_track_find(&track, nearest.function, nearest.from,
					       nearest.limit, nearest.forward, &found),
				 nearest.any);
		if (nearest.any)
			assert_same_box(&found, &nearest.box);
	}
	gt_track_fini(&track);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_grain_loses_a_call),
		cmocka_unit_test(coarser_views_have_few_boxes),
		cmocka_unit_test(a_single_call_is_found_as_it_was),
		cmocka_unit_test(of_many_calls_the_function_with_the_most_time_is_told),
		cmocka_unit_test(too_many_calls_are_kept_together),
		cmocka_unit_test(big_times_are_kept_whole),
		cmocka_unit_test(the_nearest_call_of_a_function_is_found_either_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
