/* SPDX-License-Identifier: MIT */
/* A snapshot of a target that is being written while it is read: one cut over all writers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/trace/merge_fast.h"
#include "core/trace/word_walk.h"
#include "port/host/memory.h"
#include "tests/unit/fake_target.h"

/* Records that are made when the merge copies a sub-buffer for the first time. */
static struct gt_ring_ops ring;
static void (*meanwhile)(void);
static uint64_t clock_now;

static uint64_t now(struct gt_target *target)
{
	(void)target;
	return clock_now;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	int64_t words = fake_sub_buffer(target, index, sequence, buffer, bytes);
	void (*once)(void) = meanwhile;

	meanwhile = NULL;
	if (once)
		once();
	return words;
}

static int setup(void **state)
{
	(void)state;
	fake_init(&fake);
	ring = fake_ring;
	ring.now = now;
	ring.sub_buffer = sub_buffer;
	fake.target.ring = &ring;
	meanwhile = NULL;
	return 0;
}

/* "kind function@clock" of each record, with the depth of what is not a return; tell_open as said. */
static const char *text_of(bool tell_open)
{
	static const char *const kinds[] = {
		[GT_RECORD_ENTRY] = "(",      [GT_RECORD_RETURN] = ")",
		[GT_RECORD_OPEN] = "open ",   [GT_RECORD_UNWOUND] = "unwound ",
		[GT_RECORD_MARKER] = "mark ", [GT_RECORD_SWITCH] = "switch "
	};
	static char text[1024];
	struct gt_merge merge;
	struct gt_source *source;
	size_t used = 0;

	text[0] = 0;
	assert_int_equal(
		gt_merge_init(&merge, &fake.target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL), 0);
	assert_int_equal(gt_merge_add_switches(&merge, NULL, 0), 0);
	merge.tell_open = tell_open;
	while (gt_merge_next(&merge, &source) > 0) {
		const struct gt_record *record = &source->record;

		assert_true(record->kind < sizeof(kinds) / sizeof(*kinds) && kinds[record->kind]);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s%u:%u@%llu",
					 used ? " " : "", kinds[record->kind], record->function,
					 record->depth, (unsigned long long)record->clock);
	}
	assert_int_equal(merge.holes + merge.damaged + merge.unreadable, 0);
	gt_merge_fini(&merge);
	return text;
}

static struct builder *first, *second;

/* The second thread's call was caused by the first one's, which was copied before it was made. */
static void go_on(void)
{
	builder_return(first, 1, 10);  /* 1030 */
	builder_entry(first, 2, 10);   /* 1040 */
	builder_return(second, 3, 25); /* 1045 */
	builder_entry(second, 4, 10);  /* 1055 */
}

static void two_threads(void)
{
	first = fake_sub_buffer_of(&fake, fake_thread(&fake, 1, "a", 1000), 1000, 0, 64);
	second = fake_sub_buffer_of(&fake, fake_thread(&fake, 2, "b", 1001), 1001, 1, 64);
	builder_entry(first, 1, 20);  /* 1020 */
	builder_entry(second, 3, 19); /* 1020 */
	clock_now = 1025;
	meanwhile = go_on;
}

static void what_is_written_meanwhile_is_left_out_of_all_writers(void **state)
{
	(void)state;
	two_threads();
	assert_string_equal(text_of(false), "(1:0@1020 (3:0@1020");
}

static void calls_that_are_open_at_the_cut_are_told_as_open(void **state)
{
	(void)state;
	two_threads();
	assert_string_equal(text_of(true), "(1:0@1020 open 1:0@1020 (3:0@1020 open 3:0@1020");
}

static void a_sub_buffer_that_was_begun_meanwhile_is_left_out(void **state)
{
	(void)state;
	two_threads();
	builder_close(second);
	second = fake_sub_buffer_of(&fake, 1, 1026, 1, 64);
	second->sub_buffer->depth = 0;
	assert_string_equal(text_of(true), "(1:0@1020 open 1:0@1020 (3:0@1020 open 3:0@1020");
}

/* A signal came when the place for an entry had been taken and its clock was not read yet. */
static void earlier_records_behind_a_later_one_stay(void **state)
{
	(void)state;
	two_threads();
	meanwhile = NULL;
	builder_entry(first, 2, 30); /* 1050 */
	builder_entry(first, 5, -30);
	builder_return(first, 5, 1); /* 1021 */
	builder_special(first, GRAFTRACE_SPECIAL_UNWOUND, 1);
	builder_return(first, 1, 100);
	assert_string_equal(text_of(true),
			    "(1:0@1020 (5:1@1020 (3:0@1020 open 3:0@1020 )5:1@1021 open 1:0@1021");
}

static void a_clock_whose_high_half_changes_is_read_as_the_decoder_reads_it(void **state)
{
	const uint64_t start = (7ull << 32) - 10;
	uint32_t index;

	(void)state;
	index = fake_thread(&fake, 1, "a", start);
	first = fake_sub_buffer_of(&fake, index, start, 0, 64);
	builder_entry(first, 1, 5);
	builder_entry(first, 2, 10); /* a CLOCK word is before it */
	builder_return(first, 2, 10);
	builder_close(first);
	clock_now = start + 15;
	assert_string_equal(text_of(false), "(1:0@30064771067 (2:1@30064771077");
	clock_now = start + 14;
	assert_string_equal(text_of(false), "(1:0@30064771067");
	clock_now = start + 25;
	assert_string_equal(text_of(false), "(1:0@30064771067 (2:1@30064771077 )2:1@30064771087");
}

static void events_are_cut_by_their_own_clocks(void **state)
{
	(void)state;
	two_threads();
	meanwhile = NULL;
	builder_marker(first, 5, "then"); /* 1025 */
	builder_marker(first, 1, "late"); /* 1026 */
	builder_long_return(first, 1, 4, 1020, 0);
	builder_entry_only(second, 3, 90);
	assert_string_equal(text_of(false), "(1:0@1020 (3:0@1020 mark 0:1@1025");
}

static uint32_t read_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	(void)data;
	(void)room;
	if (*cursor == 2)
		return 0;
	out[0] = (struct gt_switch){ .clock = *cursor ? 1026 : 1024,
				     .tid = 1,
				     .flags = GT_SWITCH_OUT };
	++*cursor;
	return 1;
}

static int off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	(void)data;
	(void)tid;
	(void)after;
	(void)time;
	return GT_ENOTSUP;
}

static void so_are_context_switches(void **state)
{
	static const struct gt_switch_ops switches = { .off_cpu = off_cpu, .read = read_switches };

	(void)state;
	two_threads();
	fake.target.switches = &switches;
	assert_string_equal(text_of(false), "(1:0@1020 (3:0@1020 switch 0:0@1024");
}

static void a_target_that_nobody_writes_to_is_read_to_its_end(void **state)
{
	(void)state;
	two_threads();
	ring.now = NULL;
	meanwhile = NULL;
	go_on();
	assert_string_equal(text_of(false),
			    "(1:0@1020 (3:0@1020 )1:0@1030 (2:0@1040 )3:0@1045 (4:0@1055");
}

/* An entry's place was taken before the cut, and its clock read behind it, when its sub-buffer was closed. */
static void a_late_record_of_a_closed_sub_buffer_is_left_out(void **state)
{
	(void)state;
	two_threads();
	meanwhile = NULL;
	builder_entry(first, 5, 80);
	builder_close(first);
	first = fake_sub_buffer_of(&fake, 0, 1022, 0, 64);
	builder_open(first, 1, 1020);
	builder_open(first, 0, 0);
	builder_entry(first, 2, 1);
	assert_string_equal(text_of(false), "(1:0@1020 (3:0@1020 (2:2@1023");
}

/* Pairs: the padding keeps their places. */
static void records_of_the_function_tracer_are_cut_too(void **state)
{
	struct builder b = builder_make(1000);

	(void)state;
	b.sub_buffer->tracer = GRAFTRACE_TRACER_FUNCTION;
	builder_function(&b, 1, 10, 0x401000);
	builder_function(&b, 2, 90, 0x401000);
	builder_special(&b, GRAFTRACE_SPECIAL_CONTEXT, 5);
	builder_function(&b, 3, -80, 0x401000); /* 1020 */
	builder_function(&b, 4, 90, 0x401000);
	assert_int_equal(gt_words_cut(b.sub_buffer, b.count, 1050), 8);
	assert_int_equal(b.words[2], graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 1));
	assert_int_equal(gt_words_records(b.sub_buffer, 0, 8), 2);
	assert_int_equal(gt_words_cut(b.sub_buffer, b.count, 1005), 0);
	builder_free(&b);
}

static struct fake_writer *overwriting;

static void overwrite_below(uint64_t sequence)
{
	overwriting->info.first = sequence;
	overwriting->info.lost[GRAFTRACE_LOST_OVERRUN] = 2 * (sequence - 1);
}

static void overwrite_two(void)
{
	overwrite_below(2);
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	(void)target, (void)index, (void)sequence;
	overwrite_below(4);
	return 4;
}

/* A writer goes on between the reader's questions: all that the reader passes over is told as lost. */
static void what_is_overwritten_between_two_questions_is_told(void **state)
{
	struct gt_merge merge;
	struct gt_source *source;
	uint64_t given = 0, lost = 0;

	(void)state;
	fake_thread(&fake, 1, "a", 1000);
	overwriting = fake.writers[0];
	for (uint32_t i = 0; i < 5; i++) {
		struct builder *builder = fake_sub_buffer_of(&fake, 0, 1000 + 10 * i, 0, 64);

		builder_entry(builder, 1, 1);
		builder_return(builder, 1, 1);
		builder_close(builder);
	}
	ring.consume = NULL;
	ring.next_sequence = next_sequence;
	meanwhile = overwrite_two;
	assert_int_equal(
		gt_merge_init(&merge, &fake.target, &gt_host_memory, GT_MERGE_CONSUME, NULL), 0);
	while (gt_merge_next(&merge, &source) > 0) {
		given += source->record.kind != GT_RECORD_GAP;
		lost += source->record.kind == GT_RECORD_GAP ? source->record.overrun : 0;
	}
	gt_merge_fini(&merge);
	assert_int_equal(given + lost, 10);
}

/* Three threads that call and return by chance, each in several sub-buffers; the same for a seed. */
static void call_by_chance(unsigned seed)
{
	struct builder *builders[3] = { 0 };
	uint32_t open[3] = { 0 }, words[3] = { 0 };
	uint64_t clock = 1000;

	srand(seed);
	for (unsigned i = 0; i < 3; i++)
		fake_thread(&fake, i + 1, "t", clock);
	for (unsigned step = 0; step < 600; step++) {
		/* Runs of one thread, and quick changes. */
		const unsigned i = step / 100 % 2 ? (unsigned)rand() % 3 : step / 30 % 3;
		int64_t ticks;

		if (!builders[i] || words[i]++ == 20) {
			if (builders[i])
				builder_close(builders[i]);
			builders[i] = fake_sub_buffer_of(&fake, i, clock, i, 64);
			builders[i]->sub_buffer->depth = open[i];
			words[i] = 0;
		}
		clock += (uint64_t)rand() % 20;
		ticks = (int64_t)(clock - builders[i]->clock);
		if (open[i] > 0 && rand() % 2) {
			builder_return(builders[i], open[i]--, ticks);
		} else {
			builder_entry(builders[i], ++open[i], ticks);
		}
	}
}

static void assert_same_record(const struct gt_source *one, const struct gt_source *other)
{
	const struct gt_record *a = &one->record, *b = &other->record;

	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->clock, b->clock);
	assert_int_equal(one->index, other->index);
	assert_int_equal(one->record_sequence, other->record_sequence);
	assert_int_equal(a->function, b->function);
	assert_int_equal(a->depth, b->depth);
	assert_int_equal(a->context, b->context);
	assert_int_equal(a->cpu, b->cpu);
	if (a->kind == GT_RECORD_RETURN) {
		assert_int_equal(a->start, b->start);
		assert_int_equal(a->children, b->children);
		assert_int_equal(a->flags, b->flags);
	}
}

static void assert_same_places(const struct gt_merge *one, const struct gt_merge *other)
{
	for (uint32_t i = 0; i < one->source_count; i++) {
		const struct gt_merge_given a = gt_merge_shown(one, i);
		const struct gt_merge_given b = gt_merge_shown(other, i);

		assert_int_equal(a.sequence, b.sequence);
		assert_int_equal(a.words, b.words);
	}
}

/* Reads the target by both ways at once; returns how many records went by the straight line. */
static unsigned read_both_ways(struct gt_filter *filter, bool tell_open)
{
	struct gt_merge plain, fast;
	struct gt_source *one, *other;
	unsigned straight = 0;
	int found;

	assert_int_equal(
		gt_merge_init(&plain, &fake.target, &gt_host_memory, GT_MERGE_SNAPSHOT, filter), 0);
	assert_int_equal(
		gt_merge_init(&fast, &fake.target, &gt_host_memory, GT_MERGE_SNAPSHOT, filter), 0);
	plain.tell_open = fast.tell_open = tell_open;
	do {
		const struct gt_source *before = fast.straight;

		found = gt_merge_next(&plain, &one);
		assert_int_equal(gt_merge_next_fast(&fast, &other), found);
		straight += found > 0 && before == other;
		if (found > 0)
			assert_same_record(one, other);
		assert_same_places(&plain, &fast);
	} while (found > 0);
	gt_merge_fini(&plain);
	gt_merge_fini(&fast);
	return straight;
}

static void the_straight_line_gives_the_same_records(void **state)
{
	for (unsigned seed = 1; seed <= 40; seed++) {
		setup(state);
		call_by_chance(seed);
		/* With and without a cut before the end, calls that are open there too. */
		clock_now = seed % 2 ? UINT64_MAX : 3000 + seed * 80;
		assert_true(read_both_ways(NULL, seed % 3 == 0) > 10);
		fake_teardown(state);
	}
	setup(state);
}

static void a_filter_takes_every_record_off_the_straight_line(void **state)
{
	struct gt_filter filter = { .to_ns = 3000 };

	(void)state;
	call_by_chance(1);
	clock_now = UINT64_MAX;
	assert_int_equal(read_both_ways(&filter, true), 0);
}

/* The text of an ENTRY looks whether its return follows: a reader that ends then has not shown what does. */
static void a_record_that_was_looked_ahead_at_is_not_shown(void **state)
{
	struct gt_merge_given before, seen, shown;
	struct gt_source *source;
	struct gt_merge merge;

	(void)state;
	clock_now = UINT64_MAX;
	first = fake_sub_buffer_of(&fake, fake_thread(&fake, 1, "a", 1000), 1000, 0, 64);
	builder_entry(first, 1, 10);
	builder_entry(first, 2, 10);
	builder_return(first, 2, 10);
	assert_int_equal(
		gt_merge_init(&merge, &fake.target, &gt_host_memory, GT_MERGE_CONSUME, NULL), 0);
	assert_int_equal(gt_merge_next(&merge, &source), 1);
	before = gt_merge_shown(&merge, 0);
	assert_non_null(gt_merge_ahead(&merge, source));
	shown = gt_merge_shown(&merge, 0);
	seen = gt_merge_given(&merge, 0);
	assert_int_equal(shown.sequence, before.sequence);
	assert_int_equal(shown.words, before.words);
	assert_true(seen.words > before.words);
	gt_merge_skip_ahead(source);
	shown = gt_merge_shown(&merge, 0);
	assert_int_equal(shown.words, seen.words);
	gt_merge_fini(&merge);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fake_teardown)
		TEST(what_is_written_meanwhile_is_left_out_of_all_writers),
		TEST(calls_that_are_open_at_the_cut_are_told_as_open),
		TEST(a_sub_buffer_that_was_begun_meanwhile_is_left_out),
		TEST(earlier_records_behind_a_later_one_stay),
		TEST(a_clock_whose_high_half_changes_is_read_as_the_decoder_reads_it),
		TEST(events_are_cut_by_their_own_clocks),
		TEST(so_are_context_switches),
		TEST(a_target_that_nobody_writes_to_is_read_to_its_end),
		TEST(a_late_record_of_a_closed_sub_buffer_is_left_out),
		TEST(records_of_the_function_tracer_are_cut_too),
		TEST(what_is_overwritten_between_two_questions_is_told),
		TEST(the_straight_line_gives_the_same_records),
		TEST(a_filter_takes_every_record_off_the_straight_line),
		TEST(a_record_that_was_looked_ahead_at_is_not_shown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
