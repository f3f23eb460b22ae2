/* SPDX-License-Identifier: MIT */
/*
 * attach/ring/drain.c and drain_view.c on arenas that this test writes as an agent would.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "attach/ring/drain.h"
#include "attach/session/live_target.h"

#define MS 1000000ull

static struct gt_arena arena;
static struct gt_drain drain;
static struct {
	uint64_t sequences[4096];
	uint32_t words[4096];
	uint32_t count;
	uint32_t writers;
	int error;
} got;

static int on_writer(void *data, const struct gt_writer *writer)
{
	(void)data;
	(void)writer;
	got.writers++;
	return got.error;
}

static int on_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	(void)data;
	got.sequences[got.count] = sub_buffer->sequence;
	got.words[got.count++] = words;
	return got.error;
}

static const struct gt_sink sink = { .writer = on_writer, .sub_buffer = on_sub_buffer };

static void begin(enum graftrace_arena_mode mode)
{
	memset(&got, 0, sizeof(got));
	assert_int_equal(gt_arena_create(&arena, 64 << 10, NULL), 0);
	assert_int_equal(gt_drain_init(&drain, &arena, mode,
				       mode == GRAFTRACE_MODE_DRAIN ? &sink : NULL, NULL),
			 0);
}

static void end(void)
{
	gt_drain_fini(&drain);
	gt_arena_destroy(&arena);
}

static uint32_t pop(void)
{
	uint64_t head = arena.memory->free_head;
	uint32_t index = (uint32_t)head - 1;

	assert_true((uint32_t)head != 0);
	arena.memory->free_head = ((head >> 32) + 1) << 32 | gt_arena_state(&arena, index)->next;
	arena.memory->free_count--;
	return index;
}

static void claim(uint32_t stream_index, uint32_t tid)
{
	struct graftrace_stream *stream = gt_arena_stream(&arena, stream_index);

	stream->state = GRAFTRACE_STREAM_LIVE;
	if (arena.memory->stream_next <= stream_index)
		arena.memory->stream_next = stream_index + 1;
	stream->pid = 100;
	stream->tid = tid;
	stream->generation = ++arena.memory->generations;
	strcpy(stream->comm, "writer");
	stream->block = 4096;
}

/* Opens the next sub-buffer of a stream, with `words` words in it. */
static uint32_t open_with(uint32_t stream_index, uint32_t words)
{
	struct graftrace_stream *stream = gt_arena_stream(&arena, stream_index);
	uint32_t index = pop(), i;
	struct graftrace_sub_buffer *sub = gt_arena_sub_buffer(&arena, index);
	uint64_t *word = graftrace_sub_buffer_words(sub);

	assert_true(!word[0] && !sub->magic);
	sub->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	sub->bytes = arena.sub_buffer_bytes;
	sub->stream = stream_index;
	sub->generation = stream->generation;
	sub->sequence = stream->sequence;
	sub->clock = 1000 * (stream->sequence + 1);
	sub->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	for (i = 0; i < words; i++)
		word[i] = graftrace_word(i + 1, i & 1, i);
	gt_arena_state(&arena, index)->word =
		graftrace_state_word(GRAFTRACE_SUB_BUFFER_ACTIVE, stream_index, stream->sequence);
	stream->current = index + 1;
	stream->sequence++;
	return index;
}

static void close_at(uint32_t index, uint32_t used)
{
	struct graftrace_sub_buffer *sub = gt_arena_sub_buffer(&arena, index);

	sub->used = used;
	gt_arena_stream(&arena, sub->stream)->current = 0;
	gt_arena_state(&arena, index)->word =
		graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, sub->stream, sub->sequence);
}

static void full_ones_are_given_in_order_and_come_back_empty(void **state)
{
	uint32_t indexes[5], i, before;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	before = arena.memory->free_count;
	claim(3, 7);
	for (i = 0; i < 5; i++)
		indexes[i] = open_with(3, 10 + i);
	for (i = 5; i-- > 0;)
		close_at(indexes[i], 10 + i);
	assert_int_equal(gt_drain_pass(&drain, MS), 5);
	assert_int_equal(got.count, 5);
	for (i = 0; i < 5; i++) {
		assert_int_equal(got.sequences[i], i);
		assert_int_equal(got.words[i], 10 + i);
	}
	assert_int_equal(got.writers, 1);
	assert_int_equal(arena.memory->free_count, before);
	assert_int_equal(drain.words, 60);
	open_with(3, 1); /* asserts that it is zeroed */
	end();
}

static void one_that_is_missing_is_waited_for(void **state)
{
	uint32_t first, second;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	claim(0, 7);
	first = open_with(0, 3);
	second = open_with(0, 3);
	close_at(second, 3);
	assert_int_equal(gt_drain_pass(&drain, MS), 0);
	close_at(first, 3);
	assert_int_equal(gt_drain_pass(&drain, 2 * MS), 2);
	assert_int_equal(got.sequences[0], 0);
	assert_int_equal(got.sequences[1], 1);
	end();
}

static void hole_is_waited_for_then_kept_out_of_use(void **state)
{
	uint32_t index, before;
	uint64_t *words;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	before = arena.memory->free_count;
	claim(0, 7);
	index = open_with(0, 10);
	words = graftrace_sub_buffer_words(gt_arena_sub_buffer(&arena, index));
	words[4] = 0;
	close_at(index, 10);
	assert_int_equal(gt_drain_pass(&drain, MS), 0);
	assert_int_equal(gt_drain_pass(&drain, 100 * MS), 1); /* given up */
	assert_int_equal(got.words[0], 10);
	assert_int_equal(arena.memory->free_count, before - 1);
	gt_drain_pass(&drain, 200 * MS);
	assert_int_equal(arena.memory->free_count, before - 1);
	words[4] = graftrace_word(5, 0, 4); /* the handler returned */
	gt_drain_pass(&drain, 201 * MS);
	assert_int_equal(arena.memory->free_count, before);
	assert_int_equal(arena.memory->lost[GRAFTRACE_LOST_LATE], 1);
	end();
}

static void event_that_is_begun_is_waited_for_as_a_hole(void **state)
{
	const uint64_t head = graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						     GRAFTRACE_EVENT_ARGUMENTS << 16 | 3);
	uint32_t index, before;
	uint64_t *words;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	before = arena.memory->free_count;
	claim(0, 7);
	index = open_with(0, 10);
	words = graftrace_sub_buffer_words(gt_arena_sub_buffer(&arena, index));
	words[4] = head;
	words[5] = 0;
	close_at(index, 10);
	assert_int_equal(gt_drain_pass(&drain, MS), 0);
	assert_int_equal(gt_drain_pass(&drain, 100 * MS), 1); /* given up */
	assert_int_equal(arena.memory->free_count, before - 1);
	words[5] = 3; /* the handler returned */
	gt_drain_pass(&drain, 101 * MS);
	assert_int_equal(arena.memory->free_count, before);
	assert_int_equal(arena.memory->lost[GRAFTRACE_LOST_LATE], 0); /* no call */
	end();
}

static void hole_that_is_filled_in_time_is_whole(void **state)
{
	uint32_t index;
	uint64_t *words;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	claim(0, 7);
	index = open_with(0, 10);
	words = graftrace_sub_buffer_words(gt_arena_sub_buffer(&arena, index));
	words[4] = 0;
	close_at(index, 10);
	assert_int_equal(gt_drain_pass(&drain, MS), 0);
	words[4] = graftrace_word(5, 0, 4);
	assert_int_equal(gt_drain_pass(&drain, 2 * MS), 1);
	assert_int_equal(drain.words, 10);
	end();
}

static void killed_writer_keeps_what_it_wrote(void **state)
{
	uint32_t before;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	before = arena.memory->free_count;
	claim(5, 7);
	close_at(open_with(5, 4), 4);
	open_with(5, 6);
	gt_drain_scan(&drain);
	gt_drain_end_writer(&drain, 0, true);
	assert_int_equal(gt_drain_pass(&drain, MS), 2);
	assert_int_equal(got.words[1], 6);
	assert_int_equal(arena.memory->free_count, before);
	assert_int_equal(gt_arena_stream(&arena, 5)->state, GRAFTRACE_STREAM_FREE);
	/* The stream can be claimed again, by another writer. */
	claim(5, 8);
	close_at(open_with(5, 2), 2);
	assert_int_equal(gt_drain_pass(&drain, 2 * MS), 1);
	assert_int_equal(drain.writer_count, 2);
	assert_int_equal(got.words[2], 2);
	end();
}

static void ring_is_read_consumed_and_cleared(void **state)
{
	struct graftrace_sub_buffer *copy;
	struct gt_writer writer;
	uint32_t i, before;
	bool active;

	(void)state;
	begin(GRAFTRACE_MODE_RING);
	copy = malloc(arena.sub_buffer_bytes);
	before = arena.memory->free_count;
	claim(0, 7);
	for (i = 0; i < 3; i++)
		close_at(open_with(0, 5 + i), 5 + i);
	open_with(0, 2);
	gt_drain_pass(&drain, MS);
	assert_int_equal(gt_drain_writer(&drain, 0, &writer), 0);
	assert_int_equal(writer.first, 0);
	assert_int_equal(writer.next, 4);
	assert_string_equal(writer.comm, "writer");
	assert_int_equal(gt_drain_copy(&drain, 0, 1, copy, &active), 6);
	assert_false(active);
	assert_int_equal(gt_drain_copy(&drain, 0, 3, copy, &active), gt_arena_words(&arena, 0));
	assert_true(active);
	assert_int_equal(gt_drain_consume(&drain, 0, 0), 0);
	assert_int_equal(gt_drain_consume(&drain, 0, 0), GT_ENOENT);
	assert_int_equal(gt_drain_consume(&drain, 0, 3), GT_ENOENT); /* not closed */
	assert_int_equal(gt_drain_copy(&drain, 0, 0, copy, &active), GT_ENOENT);
	gt_drain_writer(&drain, 0, &writer);
	assert_int_equal(writer.first, 1);
	gt_drain_clear(&drain);
	assert_int_equal(arena.memory->free_count, before - 1);
	/* The end of its thread closes the last one. */
	gt_drain_end_writer(&drain, 0, true);
	gt_drain_pass(&drain, MS);
	assert_int_equal(gt_drain_copy(&drain, 0, 3, copy, &active), 2);
	assert_int_equal(gt_drain_consume(&drain, 0, 3), 0);
	assert_int_equal(arena.memory->free_count, before);
	free(copy);
	end();
}

/* A writer in overwrite mode, at full speed: two sub-buffers that it uses in turn. Each has one
 * value in all of its words. */
static uint32_t turn[2];
static int stop;

static void *overwrite(void *data)
{
	uint64_t sequence = 2;

	(void)data;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		uint32_t index = turn[sequence & 1], i;
		struct graftrace_sub_buffer *sub = gt_arena_sub_buffer(&arena, index);
		uint64_t *words = graftrace_sub_buffer_words(sub);
		uint64_t *state = &gt_arena_state(&arena, index)->word;

		__atomic_store_n(state,
				 graftrace_state_word(GRAFTRACE_SUB_BUFFER_ACTIVE, 0, sequence),
				 __ATOMIC_SEQ_CST);
		__atomic_store_n(&sub->sequence, sequence, __ATOMIC_RELAXED);
		for (i = 0; i < gt_arena_words(&arena, 0); i++)
			__atomic_store_n(&words[i], sequence + 1, __ATOMIC_RELAXED);
		__atomic_store_n(&sub->used, gt_arena_words(&arena, 0), __ATOMIC_RELAXED);
		__atomic_store_n(state,
				 graftrace_state_word(GRAFTRACE_SUB_BUFFER_FULL, 0, sequence),
				 __ATOMIC_RELEASE);
		__atomic_store_n(&gt_arena_stream(&arena, 0)->sequence, ++sequence,
				 __ATOMIC_RELEASE);
	}
	return NULL;
}

static void torn_copy_is_never_shown(void **state)
{
	struct graftrace_sub_buffer *copy;
	struct gt_writer writer;
	pthread_t thread;
	uint32_t good = 0, i, tries;
	bool active;

	(void)state;
	begin(GRAFTRACE_MODE_OVERWRITE);
	copy = malloc(arena.sub_buffer_bytes);
	claim(0, 7);
	for (i = 0; i < 2; i++) {
		turn[i] = open_with(0, 0);
		close_at(turn[i], 0);
	}
	stop = 0;
	pthread_create(&thread, NULL, overwrite, NULL);
	for (tries = 0; tries < 2000000 && good < 2000; tries++) {
		int64_t words;

		gt_drain_find_writers(&drain);
		gt_drain_writer(&drain, 0, &writer);
		if (writer.first < 2)
			continue;
		words = gt_drain_copy(&drain, 0, writer.first, copy, &active);
		if (words <= 0 || active)
			continue;
		good++;
		for (i = 0; i < (uint32_t)words; i++)
			assert_int_equal(graftrace_sub_buffer_words(copy)[i], writer.first + 1);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(good > 0);
	free(copy);
	end();
}

static void newest_survive_when_threads_come_and_go(void **state)
{
	uint32_t i;

	(void)state;
	begin(GRAFTRACE_MODE_OVERWRITE);
	/* Each thread leaves one sub-buffer; there are more threads than sub-buffers. */
	for (i = 0; i < 50; i++) {
		uint32_t index, writer = drain.writer_count;

		claim(i, i + 1);
		index = open_with(i, 4);
		gt_arena_sub_buffer(&arena, index)->clock = i + 1;
		close_at(index, 4);
		gt_drain_scan(&drain);
		gt_drain_end_writer(&drain, writer, true);
		gt_drain_pass(&drain, MS);
		assert_true(arena.memory->free_count > 0);
	}
	/* The last of them is still there, the first is not. */
	assert_true(drain.writers[49].live);
	assert_false(drain.writers[0].live);
	assert_int_equal(drain.writers[0].writer.lost[GRAFTRACE_LOST_OVERRUN], 4);
	end();
}

static void error_of_the_sink_is_passed_on(void **state)
{
	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	claim(0, 7);
	close_at(open_with(0, 3), 3);
	got.error = GT_ENOSPC;
	assert_int_equal(gt_drain_pass(&drain, MS), GT_ENOSPC);
	end();
}

static void damaged_header_is_counted_and_dropped(void **state)
{
	uint32_t index, before;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	before = arena.memory->free_count;
	claim(0, 7);
	index = open_with(0, 3);
	close_at(index, 3);
	gt_arena_sub_buffer(&arena, index)->used = 1 << 30;
	gt_drain_pass(&drain, MS);
	assert_int_equal(got.count, 0);
	assert_int_equal(drain.corrupt, 1);
	assert_int_equal(arena.memory->free_count, before);
	end();
}

static void geometry_follows_the_size(void **state)
{
	struct gt_arena small;

	(void)state;
	assert_int_equal(gt_arena_create(&small, 100, NULL), GT_EINVAL);
	assert_int_equal(gt_arena_create(&small, 0, NULL), 0);
	assert_int_equal(small.sub_buffer_bytes, 32768);
	assert_int_equal(small.sub_buffer_count, 2048);
	gt_arena_destroy(&small);
	assert_int_equal(gt_arena_create(&small, 1 << 20, NULL), 0);
	assert_int_equal(small.sub_buffer_bytes, 4096);
	gt_arena_destroy(&small);
	assert_int_equal(gt_arena_create(&small, 1ull << 30, NULL), 0);
	assert_int_equal(small.sub_buffer_bytes, 65536);
	gt_arena_destroy(&small);
}

static void impossible_counters_are_damage_and_not_believed(void **state)
{
	struct graftrace_stream *stream;
	struct gt_writer writer;
	uint64_t sequence;

	(void)state;
	begin(GRAFTRACE_MODE_OVERWRITE);
	claim(0, 7);
	close_at(open_with(0, 4), 4);
	stream = gt_arena_stream(&arena, 0);
	stream->lost[GRAFTRACE_LOST_FULL] = 5;
	assert_int_equal(gt_drain_pass(&drain, MS), 0);
	assert_int_equal(gt_drain_writer(&drain, 0, &writer), 0);
	assert_int_equal(writer.lost[GRAFTRACE_LOST_FULL], 5);
	assert_false(drain.writers[0].damaged);
	stream->sequence = ~0ull - 1;
	stream->lost[GRAFTRACE_LOST_FULL] = 1ull << 62;
	assert_int_equal(gt_drain_writer(&drain, 0, &writer), 0);
	assert_true(drain.writers[0].damaged);
	assert_int_equal(writer.next, 1);
	assert_int_equal(writer.lost[GRAFTRACE_LOST_FULL], 5);
	/* Few steps lead over all that is there, whatever the counter says. */
	sequence = gt_drain_next(&drain, 0, 0);
	assert_int_equal(sequence, 0);
	assert_int_equal(gt_drain_next(&drain, 0, sequence + 1), 1);
	end();
}

static void writers_that_have_ended_need_no_memory(void **state)
{
	uint64_t lost = 0;
	uint32_t i;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	drain.forgets = true;
	for (i = 0; i < 60000; i++) {
		struct graftrace_stream *stream = gt_arena_stream(&arena, i % 3);

		claim(i % 3, i + 1);
		stream->pid = 100 + i % 50;
		stream->lost[GRAFTRACE_LOST_FULL] = 2;
		lost += 2;
		stream->state = GRAFTRACE_STREAM_ENDED;
		assert_int_equal(gt_drain_pass(&drain, MS), 0);
	}
	assert_true(drain.writer_count <= 3);
	assert_int_equal(drain.live_count, 0);
	assert_int_equal(drain.forgotten.count, 60000);
	assert_int_equal(drain.forgotten.processes, 50);
	assert_int_equal(drain.forgotten.lost[GRAFTRACE_LOST_FULL], lost);
	assert_int_equal(got.writers, 120000); /* when each was found, and when it had ended */
	end();
}

/* Its owner has said that it ends, and is at closing what is open. */
static void stream_that_is_being_closed_is_waited_for_and_holds_no_other_up(void **state)
{
	uint32_t open;

	(void)state;
	begin(GRAFTRACE_MODE_DRAIN);
	drain.forgets = true;
	claim(0, 1);
	claim(1, 2);
	claim(2, 3);
	close_at(open_with(0, 4), 4);
	open = open_with(1, 4);
	open_with(2, 4);
	for (uint32_t i = 0; i < 2; i++)
		gt_arena_stream(&arena, i)->state = GRAFTRACE_STREAM_ENDED;
	assert_int_equal(gt_drain_pass(&drain, MS), 1); /* of the first */
	assert_int_equal(drain.live_count, 2);
	assert_int_equal(gt_drain_pass(&drain, 2 * MS), 0);
	assert_int_equal(gt_arena_stream(&arena, 1)->state, GRAFTRACE_STREAM_ENDED);
	close_at(open, 4);
	assert_int_equal(gt_drain_pass(&drain, 3 * MS), 1);
	assert_int_equal(drain.live_count, 1);
	assert_int_equal(gt_arena_stream(&arena, 1)->state, GRAFTRACE_STREAM_FREE);
	end();
}

/* A thread comes in stream 0, loses 2 records, leaves one sub-buffer of 4 and ends. */
static void come_and_go(uint32_t generation, uint32_t pid)
{
	struct graftrace_stream *stream;
	uint32_t i;

	for (i = 0; gt_arena_stream(&arena, i)->state != GRAFTRACE_STREAM_FREE; i++)
		;
	stream = gt_arena_stream(&arena, i);
	claim(i, generation);
	stream->pid = pid;
	stream->lost[GRAFTRACE_LOST_FULL] = 2;
	stream->lost_events = 1;
	close_at(open_with(i, 4), 4);
	stream->state = GRAFTRACE_STREAM_ENDED;
	assert_int_equal(gt_drain_pass(&drain, MS), 0);
}

/* What views and the file add up, and how many writers they find. */
static uint32_t writers_now(uint64_t *full, uint64_t *overrun)
{
	uint32_t i, count = 0;

	*full = *overrun = 0;
	for (i = 0; i < drain.writer_count; i++) {
		struct gt_writer writer;

		if (gt_drain_writer(&drain, i, &writer))
			continue;
		count++;
		*full += writer.lost[GRAFTRACE_LOST_FULL];
		*overrun += writer.lost[GRAFTRACE_LOST_OVERRUN];
	}
	return count;
}

static void ended_writers_of_a_ring_need_no_memory_and_their_losses_stay(void **state)
{
	uint64_t full, overrun, there = 0;
	uint32_t count, places, i;
	struct gt_writer sum;

	(void)state;
	begin(GRAFTRACE_MODE_OVERWRITE);
	drain.forgets = true;
	for (i = 0; i < 20000; i++)
		come_and_go(i + 1, 100 + i % 50);
	/* Those whose records are in the ring, and one for all others. */
	count = writers_now(&full, &overrun);
	assert_true(drain.writer_count <= arena.sub_buffer_count + arena.small_count + 1);
	assert_int_equal(count + drain.forgotten.count, 20000);
	assert_int_equal(count, drain.live_count + 1);
	assert_int_equal(drain.forgotten.processes, 50);
	assert_int_equal(full, 2 * 20000);
	for (i = 0; i < gt_arena_index_limit(&arena); i++)
		there += graftrace_word_state(gt_arena_state(&arena, i)->word) ==
			 GRAFTRACE_SUB_BUFFER_FULL;
	assert_int_equal(overrun + 4 * there, 4 * 20000);
	assert_int_equal(gt_drain_writer(&drain, drain.sum_writer - 1, &sum), 0);
	assert_int_equal(sum.tid, 0);
	assert_int_equal(sum.lost[GRAFTRACE_LOST_FULL], 2 * (20000 - drain.live_count));
	assert_int_equal(drain.writers[drain.sum_writer - 1].lost_events, 20000 - drain.live_count);
	/* Once somebody views them each keeps its number, and no new one takes another's. */
	gt_drain_keep_writers(&drain);
	places = drain.writer_count;
	for (i = 20000; i < 20100; i++)
		come_and_go(i + 1, 100);
	assert_int_equal(drain.writer_count, places + 100);
	assert_int_equal(writers_now(&full, &overrun), count + 100);
	assert_int_equal(full, 2 * 20100);
	end();
}

static void damaged_writer_that_is_forgotten_adds_no_losses(void **state)
{
	uint64_t full, overrun;
	uint32_t i;

	(void)state;
	begin(GRAFTRACE_MODE_OVERWRITE);
	drain.forgets = true;
	come_and_go(1, 100);
	gt_arena_stream(&arena, drain.writers[0].stream)->lost[GRAFTRACE_LOST_FULL] = 1ull << 62;
	for (i = 1; i < 200; i++)
		come_and_go(i + 1, 100);
	assert_int_equal(drain.forgotten.damaged, 1);
	assert_int_equal(drain.forgotten.damaged_first.generation, 1);
	assert_int_equal(writers_now(&full, &overrun) + drain.forgotten.count, 200);
	assert_int_equal(full, 2 * 199);
	end();
}

/* What two drains of one arena say of a writer: its header, a sequence by chance and what is there. */
static void same_of_writer(struct gt_drain *one, struct gt_drain *other, uint32_t index,
			   uint64_t sequence, void *copy)
{
	struct gt_writer a, b;
	bool active_a = false, active_b = false;
	int64_t words;

	assert_int_equal(gt_drain_writer(one, index, &a), 0);
	assert_int_equal(gt_drain_writer(other, index, &b), 0);
	assert_int_equal(a.first, b.first);
	assert_int_equal(a.next, b.next);
	assert_int_equal(gt_drain_next(one, index, sequence),
			 gt_drain_next(other, index, sequence));
	words = gt_drain_copy(one, index, sequence, copy, &active_a);
	assert_int_equal(gt_drain_copy(other, index, sequence, copy, &active_b), words);
	assert_int_equal(active_a, active_b);
}

/* Writers open, close and take back sub-buffers; one drain looks at all of them now and then, the other
 * never does and reads all states for each question. */
static void looks_change_no_answer(void **state)
{
	enum { WRITERS = 5, OPEN_MOST = 12 };
	struct gt_drain other;
	uint32_t used[WRITERS * OPEN_MOST], count = 0, seed = 1, i;
	void *copy;

	(void)state;
	begin(GRAFTRACE_MODE_RING);
	copy = malloc(arena.sub_buffer_bytes);
	assert_int_equal(gt_drain_init(&other, &arena, GRAFTRACE_MODE_RING, NULL, NULL), 0);
	for (i = 0; i < WRITERS; i++)
		claim(i, 7 + i);
	for (uint32_t step = 0; step < 20000; step++) {
		uint32_t chance = (seed = seed * 1103515245u + 12345u) >> 8;
		uint32_t stream = chance % WRITERS, at = count ? chance / 64 % count : 0;

		gt_drain_find_writers(&drain);
		gt_drain_find_writers(&other);
		if (chance / 8 % 8 == 0)
			gt_drain_look(&drain);
		if (chance % 3 != 0 && arena.memory->free_count > 0 &&
		    count < sizeof(used) / sizeof(used[0])) {
			used[count++] = open_with(stream, 3);
		} else if (count && chance / 3 % 2 == 0) {
			close_at(used[at], 3);
		} else if (count) {
			gt_arena_free(&arena, used[at]);
			used[at] = used[--count];
		}
		stream = chance / 128 % WRITERS;
		same_of_writer(&drain, &other, stream,
			       gt_arena_stream(&arena, stream)->sequence - chance / 1024 % 8, copy);
	}
	free(copy);
	gt_drain_fini(&other);
	end();
}

/* While the look goes over the places, a writer opens one that it has passed, and then one that it
 * comes to. */
static void what_is_opened_behind_a_look_is_there(void **state)
{
	struct graftrace_stream *stream;
	uint32_t oldest, behind, before;
	struct gt_writer writer;
	uint64_t opened;
	bool active;
	void *copy;

	(void)state;
	begin(GRAFTRACE_MODE_RING);
	copy = malloc(arena.sub_buffer_bytes);
	claim(0, 7);
	stream = gt_arena_stream(&arena, 0);
	assert_int_equal(gt_drain_find_writers(&drain), 0);
	oldest = open_with(0, 3);
	close_at(oldest, 3);
	behind = open_with(0, 3);
	close_at(behind, 3);
	before = open_with(0, 3);
	close_at(before, 3);

	/* as the look sees it, and as it is */
	opened = gt_arena_state(&arena, behind)->word;
	gt_arena_state(&arena, behind)->word = 0;
	stream->sequence = 1;
	gt_drain_look(&drain);
	gt_arena_state(&arena, behind)->word = opened;
	stream->sequence = 3;

	assert_int_equal(gt_drain_writer(&drain, 0, &writer), 0);
	assert_int_equal(writer.first, 0);
	assert_int_equal(writer.next, 3);
	assert_int_equal(gt_drain_next(&drain, 0, 1), 1);
	for (uint64_t sequence = 0; sequence < 3; sequence++)
		assert_int_equal(gt_drain_copy(&drain, 0, sequence, copy, &active), 3);
	assert_int_equal(gt_drain_hold(&drain, 0, 1), 0);
	gt_arena_free(&arena, oldest);
	assert_int_equal(gt_drain_writer(&drain, 0, &writer), 0);
	assert_int_equal(writer.first, 1);
	free(copy);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_ones_are_given_in_order_and_come_back_empty),
		cmocka_unit_test(one_that_is_missing_is_waited_for),
		cmocka_unit_test(hole_is_waited_for_then_kept_out_of_use),
		cmocka_unit_test(event_that_is_begun_is_waited_for_as_a_hole),
		cmocka_unit_test(hole_that_is_filled_in_time_is_whole),
		cmocka_unit_test(killed_writer_keeps_what_it_wrote),
		cmocka_unit_test(ring_is_read_consumed_and_cleared),
		cmocka_unit_test(looks_change_no_answer),
		cmocka_unit_test(what_is_opened_behind_a_look_is_there),
		cmocka_unit_test(torn_copy_is_never_shown),
		cmocka_unit_test(newest_survive_when_threads_come_and_go),
		cmocka_unit_test(error_of_the_sink_is_passed_on),
		cmocka_unit_test(damaged_header_is_counted_and_dropped),
		cmocka_unit_test(geometry_follows_the_size),
		cmocka_unit_test(impossible_counters_are_damage_and_not_believed),
		cmocka_unit_test(writers_that_have_ended_need_no_memory),
		cmocka_unit_test(stream_that_is_being_closed_is_waited_for_and_holds_no_other_up),
		cmocka_unit_test(ended_writers_of_a_ring_need_no_memory_and_their_losses_stay),
		cmocka_unit_test(damaged_writer_that_is_forgotten_adds_no_losses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
