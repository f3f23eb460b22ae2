/* SPDX-License-Identifier: MIT */
/*
 * See live_view.h. Guarantees: a writer's index never changes; what was cleared or consumed of an
 * unfinished sub-buffer is remembered as a position in it, since it cannot be freed; every record
 * is counted once, either as an entry of the ring or as read.
 */
#include "serve/live/live_view.h"

#include <stdlib.h>
#include <string.h>

#include "serve/live/live_marks.h"
#include "serve/store/route.h"
#include "core/trace/word_walk.h"

/* How often a writer is counted again because it lost records meanwhile; after that the count is
 * approximate. */
#define STEADY_TURNS 16

struct gt_live_view_writer {
	struct gt_live_marks *marks; /* NULL: it is a writer of … */
	struct gt_target *of;
	uint32_t index; /* there */
	struct gt_merge_given cleared;
	struct gt_merge_given given;	      /* never less than `cleared` */
	uint64_t read;			      /* records in sub-buffers that were consumed whole */
	uint64_t lost[GRAFTRACE_LOST_CAUSES]; /* the counts when it was cleared */
};

static struct gt_live_view *view_of(struct gt_target *target)
{
	return target->data;
}

static bool is_before(struct gt_merge_given a, struct gt_merge_given b)
{
	return a.sequence < b.sequence || (a.sequence == b.sequence && a.words < b.words);
}

/* Under the lock. NULL: no memory. */
static struct gt_live_view_writer *add_writer(struct gt_live_view *view)
{
	if (view->count == view->room) {
		uint32_t room = view->room != 0 ? view->room * 2 : 64;
		struct gt_live_view_writer *grown =
			realloc(view->writers, room * sizeof(*view->writers));

		if (grown == NULL)
			return NULL;
		view->writers = grown;
		view->room = room;
	}
	view->writers[view->count] = (struct gt_live_view_writer){ .index = 0 };
	return &view->writers[view->count++];
}

/* The session's target, or the store that replaces it after a detour. */
static struct gt_target *inner_of(struct gt_live_view *view)
{
	return __atomic_load_n(&view->inner, __ATOMIC_ACQUIRE);
}

/* Under the lock. False: no memory. */
static bool add_writers(struct gt_live_view *view, struct gt_target *of, uint32_t count)
{
	while (view->inner_count < count) {
		struct gt_live_view_writer *writer = add_writer(view);

		if (writer == NULL)
			return false;
		writer->of = of;
		writer->index = view->inner_count++;
	}
	return true;
}

static uint32_t writer_count(struct gt_target *target)
{
	struct gt_live_view *view = view_of(target);
	struct gt_target *of = inner_of(view);
	uint32_t inner = of->ring->writer_count(of);
	uint32_t count;

	pthread_mutex_lock(&view->lock);
	if (of == inner_of(view))
		add_writers(view, of, inner);
	count = view->count;
	pthread_mutex_unlock(&view->lock);
	return count;
}

/* Copies what is known of a writer; false: there is no writer with that index. */
static bool look_up(struct gt_live_view *view, uint32_t index, struct gt_live_view_writer *writer)
{
	bool found;

	pthread_mutex_lock(&view->lock);
	found = index < view->count;
	if (found)
		*writer = view->writers[index];
	pthread_mutex_unlock(&view->lock);
	return found;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_live_view *view = view_of(target);
	struct gt_live_view_writer known;
	int error;

	if (!look_up(view, index, &known))
		return GT_ENOENT;
	error = known.marks != NULL ? gt_live_marks_writer(known.marks, out)
				    : known.of->ring->writer(known.of, known.index, out);
	for (int cause = 0; error == 0 && cause < GRAFTRACE_LOST_CAUSES; cause++)
		out->lost[cause] -=
			known.lost[cause] < out->lost[cause] ? known.lost[cause] : out->lost[cause];
	return error;
}

static void lost(struct gt_target *target, uint64_t lost[GRAFTRACE_LOST_CAUSES])
{
	struct gt_live_view *view = view_of(target);
	struct gt_target *of = inner_of(view);
	uint64_t all[GRAFTRACE_LOST_CAUSES] = { 0 };

	if (of->ring->lost == NULL)
		return;
	of->ring->lost(of, all);
	pthread_mutex_lock(&view->lock);
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		if (all[cause] > view->lost_before[cause])
			lost[cause] += all[cause] - view->lost_before[cause];
	pthread_mutex_unlock(&view->lock);
}

static int64_t copy(const struct gt_live_view_writer *known, uint64_t sequence, void *buffer,
		    const struct graftrace_sub_buffer **bytes)
{
	return known->marks != NULL ? gt_live_marks_copy(known->marks, sequence, buffer, bytes)
				    : known->of->ring->sub_buffer(known->of, known->index, sequence,
								  buffer, bytes);
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct gt_live_view *view = view_of(target);
	struct gt_live_view_writer known;

	return look_up(view, index, &known) ? copy(&known, sequence, buffer, bytes) : GT_ENOENT;
}

/* Counts the records of a sub-buffer between two positions. */
static uint64_t count_between(const struct graftrace_sub_buffer *bytes, int64_t words,
			      struct gt_merge_given from, struct gt_merge_given to,
			      uint64_t sequence)
{
	uint64_t all = (uint64_t)words;
	uint64_t begin = from.sequence > sequence ? all : from.sequence < sequence ? 0 : from.words;
	uint64_t end = to.sequence > sequence ? all : to.sequence < sequence ? 0 : to.words;

	begin = begin < all ? begin : all;
	end = end < all ? end : all;
	return end > begin ? gt_words_records(bytes, (uint32_t)begin, (uint32_t)end) : 0;
}

/* Returns the writer's next sequence. For marks all sub-buffers are complete. */
static uint64_t next_of(const struct gt_live_view_writer *known, uint64_t sequence)
{
	return known->marks != NULL ? sequence
				    : gt_target_next_sequence(known->of, known->index, sequence);
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_view_writer known;

	return look_up(view_of(target), index, &known) ? next_of(&known, sequence) : sequence;
}

static const struct gt_merge_given everything = { UINT64_MAX, 0 };

/* Takes one sub-buffer out, and counts what is in it as read. */
static int take(struct gt_live_view *view, uint32_t index, const struct gt_live_view_writer *known,
		uint64_t sequence, void *buffer)
{
	const struct graftrace_sub_buffer *bytes;
	int64_t words = copy(known, sequence, buffer, &bytes);
	uint64_t records = 0;
	uint32_t cpu = 0;
	int error;

	if (words >= 0) {
		records = count_between(bytes, words, known->cleared, everything, sequence);
		cpu = bytes->cpu < GT_FILTER_CPU_WORDS * 64 ? bytes->cpu : 0;
	}
	pthread_mutex_lock(&view->taking);
	error = known->marks != NULL ? gt_live_marks_consume(known->marks, sequence)
		: known->of->ring->consume != NULL
			? known->of->ring->consume(known->of, known->index, sequence)
			: GT_ENOTSUP;
	if (error == 0) {
		pthread_mutex_lock(&view->lock);
		view->writers[index].read += records;
		view->read_of_cpu[cpu] += records;
		pthread_mutex_unlock(&view->lock);
	}
	pthread_mutex_unlock(&view->taking);
	return error;
}

/* Those before it were read, too: what was still being written when its reader left it is taken out
 * now. */
static int consume(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_view *view = view_of(target);
	struct gt_live_view_writer known;
	struct gt_writer now;
	void *buffer;
	int error;

	if (!look_up(view, index, &known))
		return GT_ENOENT;
	buffer = malloc(target->sub_buffer_bytes);
	if (buffer == NULL)
		return GT_ENOMEM;
	if (known.marks == NULL && known.of->ring->writer(known.of, known.index, &now) == 0)
		for (uint64_t at = now.first; at < sequence; at = next_of(&known, at + 1))
			take(view, index, &known, at, buffer);
	error = take(view, index, &known, sequence, buffer);
	free(buffer);
	return error;
}

/* Marks need no hold: they stay until they are consumed. */
static int hold(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_live_view_writer known;

	if (!look_up(view_of(target), index, &known))
		return GT_ENOENT;
	return known.marks == NULL && known.of->ring->hold != NULL
		       ? known.of->ring->hold(known.of, known.index, sequence)
		       : 0;
}

static uint64_t now(struct gt_target *target)
{
	return gt_target_now(inner_of(view_of(target)));
}

/* The inner target's times off the CPU; context switches of threads that are not traced are left
 * out. */
static int off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	return gt_target_find_off_cpu(inner_of(data), tid, after, time);
}

static uint32_t read_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	struct gt_live_view *view = data;
	struct gt_target *inner = inner_of(view);
	uint32_t count = 0;

	while (count == 0) {
		uint32_t got = gt_target_read_switches(inner, cursor, out, room);

		if (got == 0)
			break;
		count = gt_live_events_of_threads(view, out, got);
	}
	return count;
}

static const struct gt_switch_ops switches = { .off_cpu = off_cpu, .read = read_switches };

static const struct gt_ring_ops ring = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.consume = consume,
	.hold = hold,
	.next_sequence = next_sequence,
	.now = now,
	.lost = lost,
};

/* The marks alone */

static uint32_t marks_count(struct gt_target *target)
{
	struct gt_live_view *view = view_of(target);
	uint32_t count;

	pthread_mutex_lock(&view->lock);
	count = view->mark_count;
	pthread_mutex_unlock(&view->lock);
	return count;
}

static int marks_writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	return gt_live_marks_writer(view_of(target)->mark_writers[index], out);
}

static int64_t marks_sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence,
				void *buffer, const struct graftrace_sub_buffer **bytes)
{
	return gt_live_marks_copy(view_of(target)->mark_writers[index], sequence, buffer, bytes);
}

static const struct gt_ring_ops marks_ring = {
	.writer_count = marks_count,
	.writer = marks_writer,
	.sub_buffer = marks_sub_buffer,
};

void gt_live_view_init(struct gt_live_view *view, struct gt_target *inner, struct gt_target *shown)
{
	memset(view, 0, sizeof(*view));
	view->target = *inner;
	view->target.ring = &ring;
	view->target.data = view;
	view->target.switches = &switches;
	view->target.switch_data = view;
	if (view->target.sub_buffer_bytes < GT_LIVE_MARKS_BYTES)
		view->target.sub_buffer_bytes = GT_LIVE_MARKS_BYTES;
	if (view->target.sub_buffer_bytes < GT_ROUTE_PIECE_BYTES)
		view->target.sub_buffer_bytes = GT_ROUTE_PIECE_BYTES;
	view->marks = view->target;
	view->marks.ring = &marks_ring;
	view->marks.switches = NULL;
	view->inner = inner;
	view->shown = shown;
	*shown = view->target;
	pthread_mutex_init(&view->taking, NULL);
	pthread_mutex_init(&view->lock, NULL);
}

void gt_live_view_fini(struct gt_live_view *view)
{
	for (uint32_t i = 0; i < view->mark_count; i++)
		gt_live_marks_destroy(view->mark_writers[i]);
	free(view->writers);
	gt_live_events_forget_threads(view, 0);
	pthread_mutex_destroy(&view->taking);
	pthread_mutex_destroy(&view->lock);
}

/* Under the lock: returns the writer of that thread's marks, and makes it if there is none. */
static struct gt_live_marks *marks_of(struct gt_live_view *view,
				      const struct gt_control_writer *writer)
{
	const uint32_t most = sizeof(view->mark_writers) / sizeof(view->mark_writers[0]);
	struct gt_live_view_writer *known;
	struct gt_live_marks *marks;

	for (uint32_t i = 0; i < view->mark_count; i++) {
		if (gt_live_marks_are_of(view->mark_writers[i], writer))
			return view->mark_writers[i];
	}
	if (view->mark_count == most) /* too many: the last one takes the others' marks */
		return view->mark_writers[most - 1];
	marks = gt_live_marks_create(writer, view->mark_count);
	known = marks != NULL ? add_writer(view) : NULL;
	if (known == NULL) {
		if (marks != NULL)
			gt_live_marks_destroy(marks);
		return NULL;
	}
	known->marks = marks;
	view->mark_writers[view->mark_count++] = marks;
	return marks;
}

int gt_live_view_mark(struct gt_live_view *view, const struct gt_control_writer *writer,
		      const char *bytes, size_t count, bool raw)
{
	struct gt_live_marks *marks;
	bool overwrite;

	pthread_mutex_lock(&view->lock);
	marks = marks_of(view, writer);
	overwrite = view->overwrite;
	pthread_mutex_unlock(&view->lock);
	if (marks == NULL)
		return GT_ENOMEM;
	return gt_live_marks_put(marks, view->shown->tracer, bytes, count, raw, overwrite);
}

/* Returns the position after the last word of the newest sub-buffer. */
static struct gt_merge_given end_of(const struct gt_live_view_writer *known, uint64_t next,
				    void *buffer)
{
	struct gt_merge_given end = { next, 0 };
	const struct graftrace_sub_buffer *bytes;
	struct gt_word_sum sum;
	int64_t words;

	if (next == 0)
		return end;
	words = copy(known, next - 1, buffer, &bytes);
	if (words <= 0 || bytes->used != 0)
		return end;
	gt_words_sum(bytes, (uint32_t)words, &sum);
	end.sequence = next - 1;
	end.words = sum.end;
	return end;
}

void gt_live_view_clear(struct gt_live_view *view)
{
	struct gt_target *of = inner_of(view);
	uint64_t of_none[GRAFTRACE_LOST_CAUSES] = { 0 };
	uint32_t count = writer_count(&view->target);
	void *buffer = malloc(view->target.sub_buffer_bytes);

	for (uint32_t i = 0; i < count && buffer != NULL; i++) {
		struct gt_live_view_writer known;
		struct gt_writer now;
		struct gt_merge_given end;
		int error;

		if (!look_up(view, i, &known))
			break;
		error = known.marks != NULL ? gt_live_marks_writer(known.marks, &now)
					    : known.of->ring->writer(known.of, known.index, &now);
		if (error != 0)
			continue;
		end = end_of(&known, now.next, buffer);
		pthread_mutex_lock(&view->lock);
		view->writers[i].cleared = end;
		view->writers[i].given = end;
		view->writers[i].read = 0;
		memcpy(view->writers[i].lost, now.lost, sizeof(now.lost));
		pthread_mutex_unlock(&view->lock);
		/* Complete sub-buffers can be freed. */
		for (uint64_t sequence = now.first; sequence < end.sequence;
		     sequence = next_of(&known, sequence + 1)) {
			if (known.marks != NULL)
				gt_live_marks_consume(known.marks, sequence);
			else if (known.of->ring->consume != NULL)
				known.of->ring->consume(known.of, known.index, sequence);
		}
	}
	free(buffer);
	if (of->ring->lost != NULL)
		of->ring->lost(of, of_none);
	pthread_mutex_lock(&view->lock);
	memcpy(view->lost_before, of_none, sizeof(of_none));
	memset(view->read_of_cpu, 0, sizeof(view->read_of_cpu));
	pthread_mutex_unlock(&view->lock);
}

int gt_live_view_detour(struct gt_live_view *view, struct gt_target *archive,
			struct gt_target *inner)
{
	uint32_t count = archive->ring->writer_count(archive);
	int error = 0;

	pthread_mutex_lock(&view->lock);
	if (!add_writers(view, archive, count)) {
		error = GT_ENOMEM;
	} else {
		for (uint32_t i = 0; i < view->count; i++) {
			if (view->writers[i].marks == NULL)
				view->writers[i].of = archive;
		}
		__atomic_store_n(&view->inner, inner, __ATOMIC_RELEASE);
		if (inner != archive)
			view->inner_count = 0;
	}
	pthread_mutex_unlock(&view->lock);
	return error;
}

void gt_live_view_note_given(struct gt_live_view *view, const struct gt_merge_given *given,
			     uint32_t count)
{
	pthread_mutex_lock(&view->lock);
	for (uint32_t i = 0; i < count && i < view->count; i++) {
		if (is_before(view->writers[i].given, given[i]))
			view->writers[i].given = given[i];
	}
	pthread_mutex_unlock(&view->lock);
}

/* Adds the counts of one writer in the ring, of one CPU if `cpu` is one. Returns the CPU of its
 * newest sub-buffer. */
static uint32_t count_writer(struct gt_live_view *view, const struct gt_live_view_writer *known,
			     const struct gt_writer *now, int64_t cpu, void *buffer,
			     struct gt_control_stats *stats)
{
	uint32_t newest = 0;

	for (uint64_t sequence = now->first; sequence < now->next;
	     sequence = next_of(known, sequence + 1)) {
		const struct graftrace_sub_buffer *bytes;
		int64_t words = copy(known, sequence, buffer, &bytes);
		uint64_t entries;
		uint64_t ns;

		if (words < 0)
			continue;
		newest = bytes->cpu < GT_FILTER_CPU_WORDS * 64 ? bytes->cpu : 0;
		if (cpu >= 0 && newest != (uint64_t)cpu)
			continue;
		entries = count_between(bytes, words, known->given, everything, sequence);
		stats->entries += entries;
		stats->read += count_between(bytes, words, known->cleared, known->given, sequence);
		ns = gt_clock_ns(&view->shown->clock, bytes->clock);
		if (entries > 0 && (stats->oldest_ns == 0 || ns < stats->oldest_ns))
			stats->oldest_ns = ns;
	}
	return newest;
}

/* The same for a writer whose oldest sub-buffers may be overwritten meanwhile: those are then
 * counted neither as entries nor as read. */
static uint32_t count_steady(struct gt_live_view *view, uint32_t index, struct gt_writer *now,
			     int64_t cpu, void *buffer, struct gt_control_stats *stats)
{
	const struct gt_control_stats before = *stats;
	struct gt_live_view_writer known = { 0 };
	uint32_t newest = 0;

	for (int turn = 0; turn < STEADY_TURNS; turn++) {
		uint64_t overrun = now->lost[GRAFTRACE_LOST_OVERRUN];

		*stats = before;
		if (look_up(view, index, &known))
			newest = count_writer(view, &known, now, cpu, buffer, stats);
		if (writer(&view->target, index, now) != 0 ||
		    now->lost[GRAFTRACE_LOST_OVERRUN] == overrun)
			break;
	}
	if (cpu < 0)
		stats->read += known.read;
	return newest;
}

int gt_live_view_stats(struct gt_live_view *view, const struct gt_control_scope *scope,
		       struct gt_control_stats *stats)
{
	uint32_t count = writer_count(&view->target);
	int64_t cpu = scope->kind == GT_SCOPE_CPU ? (int64_t)scope->number : -1;
	bool found = scope->kind != GT_SCOPE_THREAD;
	void *buffer = malloc(view->target.sub_buffer_bytes);

	if (buffer == NULL)
		return GT_ENOMEM;
	pthread_mutex_lock(&view->taking);
	for (uint32_t i = 0; i < count; i++) {
		struct gt_writer now;
		uint32_t newest;

		if (writer(&view->target, i, &now) != 0 ||
		    (scope->kind == GT_SCOPE_THREAD && now.tid != scope->number))
			continue;
		found = true;
		newest = count_steady(view, i, &now, cpu, buffer, stats);
		/* A thread's losses are counted for its newest CPU. */
		if (cpu >= 0 && newest != (uint64_t)cpu)
			continue;
		stats->overrun += now.lost[GRAFTRACE_LOST_OVERRUN];
		stats->dropped += now.lost[GRAFTRACE_LOST_FULL];
	}
	free(buffer);
	if (scope->kind == GT_SCOPE_ALL) {
		uint64_t of_none[GRAFTRACE_LOST_CAUSES] = { 0 };

		lost(&view->target, of_none);
		stats->overrun += of_none[GRAFTRACE_LOST_OVERRUN];
	}
	if (cpu >= 0 && cpu < GT_FILTER_CPU_WORDS * 64) {
		pthread_mutex_lock(&view->lock);
		stats->read += view->read_of_cpu[cpu];
		pthread_mutex_unlock(&view->lock);
	}
	pthread_mutex_unlock(&view->taking);
	stats->bytes = stats->entries * 8;
	return found ? 0 : GT_ENOENT;
}
