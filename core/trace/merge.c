/* SPDX-License-Identifier: MIT */
/*
 * Merging writers by clock: a binary heap of sources, ordered by the clock of each one's next
 * record. The source that was given out last is kept out of the heap until the next call moves it
 * on: a writer that runs alone for a while costs one comparison a record.
 *
 * A writer's start is a lower bound of its clocks: it waits in the heap by that, and is opened when
 * it comes to the root. So memory is that of the writers alive at one time.
 */
#include "core/trace/merge.h"
#include "core/trace/decode_fast.h"
#include "core/trace/merge_fast.h"
#include "core/trace/word_walk.h"

/* Missing sub-buffers in a row after which a writer is given up: a file may state any numbers. */
#define MISSING_MAX 100000

/* ---- the heap ---- */

static void sift_down(struct gt_merge *merge, uint32_t at)
{
	struct gt_source **heap = merge->heap;
	struct gt_source *moved = heap[at];
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= merge->heap_count)
			break;
		if (child + 1 < merge->heap_count && heap[child + 1]->key < heap[child]->key)
			child++;
		if (moved->key <= heap[child]->key)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void heap_push(struct gt_merge *merge, struct gt_source *source)
{
	struct gt_source **heap = merge->heap;
	uint32_t at = merge->heap_count++;
	while (at && heap[(at - 1) / 2]->key > source->key) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = source;
}

static void heap_pop(struct gt_merge *merge)
{
	merge->heap[0] = merge->heap[--merge->heap_count];
	if (merge->heap_count)
		sift_down(merge, 0);
}

/* ---- sources ---- */

static void give_back(struct gt_merge *merge, struct gt_source *source)
{
	if (source->buffer == NULL)
		return;
	merge->damaged += source->decode.damaged;
	merge->unknown += source->decode.unknown;
	merge->holes += source->decode.holes;
	gt_decode_fini(&source->decode);
	gt_memory_put(&merge->memory, source->buffer, merge->target->sub_buffer_bytes);
	source->buffer = NULL;
	source->fed = false;
}

static void consume_below(struct gt_merge *merge, struct gt_source *source, uint64_t sequence)
{
	struct gt_target *target = merge->target;
	if (merge->mode != GT_MERGE_CONSUME || target->ring->consume == NULL || sequence == 0 ||
	    source->consumed >= sequence)
		return;
	target->ring->consume(target, source->index, sequence - 1);
	source->consumed = sequence;
}

/* Copies sub-buffer `sequence` into the source's buffer. Words, or a negative enum gt_error. */
static int64_t copy(struct gt_merge *merge, struct gt_source *source, uint64_t sequence)
{
	struct gt_target *target = merge->target;
	const struct graftrace_sub_buffer *bytes = source->buffer;
	int64_t words =
		target->ring->sub_buffer(target, source->index, sequence, source->buffer, &bytes);
	if (words < 0)
		return words;
	uint64_t room = (target->sub_buffer_bytes - sizeof(*bytes)) / 8;
	if ((uint64_t)words > room)
		return GT_EFORMAT;
	if (bytes != source->buffer)
		__builtin_memcpy(source->buffer, bytes, sizeof(*bytes) + (size_t)words * 8);
	return words;
}

/* The sub-buffer in work was overwritten before it was held or read to its end. Its writer has
 * counted all of its records as lost, though so many of them were given. */
static void lose(struct gt_source *source, uint64_t given)
{
	source->given_of_lost += given;
	source->growing = false;
	gt_decode_lose(&source->decode);
}

/* Consuming: the sub-buffer of the record that was decoded last, which is about to be given, stays
 * until it is consumed. False: it is gone, the record is not given. What a GAP tells is true all the
 * same. */
static bool hold(struct gt_merge *merge, struct gt_source *source, const struct gt_record *record)
{
	struct gt_target *target = merge->target;
	int error;

	if (merge->mode != GT_MERGE_CONSUME || target->ring->hold == NULL ||
	    source == merge->switches || !source->fed || source->growing || source->ending ||
	    record->kind == GT_RECORD_GAP || source->held == source->fed_sequence + 1)
		return true;
	error = target->ring->hold(target, source->index, source->fed_sequence);
	if (error == 0)
		source->held = source->fed_sequence + 1;
	if (error != GT_ENOENT)
		return true;
	lose(source, gt_words_records(source->decode.header, 0, (uint32_t)source->before.words));
	return false;
}

/* Nobody was given anything of that writer. */
static bool is_fresh(const struct gt_merge *merge, const struct gt_source *source)
{
	const struct gt_merge_given *given =
		source->index < merge->given_count ? &merge->given[source->index] : NULL;
	return !source->fed && merge->cpus == NULL &&
	       (given == NULL || (!given->sequence && !given->words));
}

/* As Linux's trace_pipe: what was overwritten is told also where it was older than all that is
 * read. The writer has counted it; a sub-buffer's header has the count of when it was opened. A
 * kernel's reader is new at each opening, and cannot know what others were told. */
static void tell_overrun(struct gt_merge *merge, struct gt_source *source, uint64_t overrun)
{
	uint64_t since = overrun - (source->overrun < overrun ? source->overrun : overrun);
	uint64_t given = source->given_of_lost < since ? source->given_of_lost : since;
	if (merge->mode == GT_MERGE_SNAPSHOT)
		return;
	if (source->decode.kernel) {
		given = source->given_of_lost < source->decode.gap_records
				? source->given_of_lost
				: source->decode.gap_records;
		source->decode.gap_records -= given;
		source->given_of_lost -= given;
		return;
	}
	bool fresh = is_fresh(merge, source);
	/* Nothing is missing here: what has been counted all the same is told where it is missing. */
	if (fresh ? !source->decode.sequence : source->fed && !source->decode.gap)
		return;
	since -= given;
	source->given_of_lost -= given;
	if (fresh ? since : source->decode.gap && merge->mode == GT_MERGE_CONSUME)
		gt_decode_miss(&source->decode, since);
	source->overrun = overrun;
}

/* Feeds the next sub-buffer that can be read. 1: fed; 0: there is none now. */
static int load(struct gt_merge *merge, struct gt_source *source)
{
	struct gt_target *target = merge->target;
	struct gt_writer writer = { 0 };
	uint64_t end = source->limit;
	unsigned missing = 0;

	if (merge->mode != GT_MERGE_SNAPSHOT) {
		if (target->ring->writer(target, source->index, &writer) != 0)
			return 0;
		if (!source->named)
			__builtin_memcpy(source->comm, writer.comm, sizeof(source->comm));
		end = writer.next;
	}
	while (source->next_sequence < end && missing < MISSING_MAX) {
		uint64_t sequence = source->next_sequence;
		int64_t words = copy(merge, source, sequence);
		if (words == GT_ENOENT) {
			/* Gone meanwhile; the oldest may be much newer now. */
			if (target->ring->writer(target, source->index, &writer) != 0)
				return 0;
			missing++;
			source->next_sequence =
				gt_target_next_sequence(target, source->index, sequence + 1);
			if (writer.first > source->next_sequence)
				source->next_sequence = writer.first;
			continue;
		}
		source->next_sequence =
			words < 0 ? gt_target_next_sequence(target, source->index, sequence + 1)
				  : sequence + 1;
		/* Of another writer that took over the place, or no sub-buffer: not this one's. */
		if (words < 0 || source->buffer->sequence != sequence) {
			merge->unreadable++;
			missing++;
			continue;
		}
		if (sequence + 1 >= source->closed && merge->cut != UINT64_MAX) {
			if (source->buffer->clock > merge->cut)
				break;
			words = gt_words_cut(source->buffer, (uint32_t)words, merge->cut);
		}
		source->growing = merge->mode != GT_MERGE_SNAPSHOT && !merge->finished &&
				  source->buffer->used == 0;
		if (gt_decode_feed(&source->decode, source->buffer, (uint32_t)words,
				   source->growing, NULL) != 0) {
			merge->unreadable++;
			missing++;
			continue;
		}
		/* A fast writer has overwritten, and counted, more since it was asked: what was
		 * passed over is all counted now. */
		if (merge->mode != GT_MERGE_SNAPSHOT && (source->decode.gap || !source->fed))
			target->ring->writer(target, source->index, &writer);
		tell_overrun(merge, source, writer.lost[GRAFTRACE_LOST_OVERRUN]);
		source->fed = true;
		source->fed_sequence = sequence;
		return 1;
	}
	if (missing >= MISSING_MAX || merge->cut != UINT64_MAX)
		source->next_sequence = end;
	return 0;
}

/* The sub-buffer in work was being written: looks for more of it. */
static void grow(struct gt_merge *merge, struct gt_source *source)
{
	uint64_t done = (uint64_t)(source->decode.word - source->decode.base);
	uint64_t given = merge->mode == GT_MERGE_CONSUME
				 ? gt_words_records(source->decode.header, 0, (uint32_t)done)
				 : 0;
	int64_t words = copy(merge, source, source->fed_sequence);
	if (words < 0 || source->buffer->sequence != source->fed_sequence) {
		lose(source, given);
		return;
	}
	source->growing = source->buffer->used == 0 && !merge->finished;
	gt_decode_extend(&source->decode, source->buffer, (uint32_t)words, source->growing);
}

static bool is_behind(const struct gt_source *source, const struct gt_merge_given *given)
{
	uint64_t words = (uint64_t)(source->decode.word - source->decode.base);
	return source->fed_sequence < given->sequence ||
	       (source->fed_sequence == given->sequence && words <= given->words);
}

/* Whether a record, just decoded, was consumed by another reader. Its decoder goes on knowing it.
 */
static bool is_given(struct gt_merge *merge, struct gt_source *source,
		     const struct gt_record *record)
{
	const struct gt_merge_cpu_given *cpu =
		record->cpu < merge->cpu_count ? &merge->cpus[record->cpu] : NULL;

	if (!(source->index < merge->given_count &&
	      is_behind(source, &merge->given[source->index])) &&
	    !(cpu != NULL && source->index < cpu->count &&
	      is_behind(source, &cpu->given[source->index])))
		return false;
	if (record->kind == GT_RECORD_ENTRY) {
		/* Its return is shown with its name: this reader has not shown the entry. */
		struct gt_decode_frame *frame = gt_decode_frame(&source->decode, record->depth);

		if (frame != NULL)
			frame->flags &= (uint16_t)~GT_RECORD_ENTRY_SEEN;
	}
	return true;
}

static bool has_ended(struct gt_merge *merge, struct gt_source *source)
{
	struct gt_writer writer;
	if (merge->mode == GT_MERGE_SNAPSHOT || merge->finished)
		return true;
	return merge->target->ring->writer(merge->target, source->index, &writer) == 0 &&
	       writer.end != 0 && source->next_sequence >= writer.next && !source->growing;
}

void gt_merge_move_off_cpu(struct gt_merge *merge, struct gt_source *source,
			   struct gt_record *record)
{
	uint64_t ticks =
		gt_off_cpu_move(&source->off_cpu, merge->target, source->tid, record->clock);
	if (ticks && merge->no_sleep)
		gt_off_cpu_take_out(&source->decode, record, ticks);
}

/* Decodes the next wanted record. 1: it is in *record; 0: there is none now. */
static int decode(struct gt_merge *merge, struct gt_source *source, struct gt_record *record)
{
	bool grown = false;
	for (;;) {
		if (source->fed) {
			for (;;) {
				struct gt_merge_given before = { source->fed_sequence,
								 (uint64_t)(source->decode.word -
									    source->decode.base) };
				if (gt_decode_next(&source->decode, record) == GT_RECORD_NONE)
					break;
				/* In a sub-buffer that was closed before: a handler has come
				 * between the place and the clock, and goes on for that long. */
				if (record->clock > merge->cut)
					continue;
				if (!source->decode.kernel)
					gt_merge_place(merge, source, record);
				else if (merge->no_sleep)
					gt_off_cpu_take_out(&source->decode, record,
							    gt_off_cpu_take(&merge->off_cpu,
									    merge->target, record));
				if ((merge->given != NULL || merge->cpus != NULL) &&
				    is_given(merge, source, record))
					continue;
				if (merge->filter != NULL &&
				    !gt_filter_record(merge->filter, merge->target, &source->decode,
						      record))
					continue;
				if (merge->filter != NULL && merge->filter->tid &&
				    source->decode.kernel && merge->filter->tid != record->tid)
					continue;
				source->before = before;
				return 1;
			}
			if (source->growing) {
				if (grown)
					return 0;
				grown = true;
				grow(merge, source);
				continue;
			}
		}
		if (!load(merge, source)) {
			if (!merge->tell_open || source->ending || source->decode.kernel ||
			    !has_ended(merge, source))
				return 0;
			source->ending = true;
			gt_decode_end(&source->decode);
		}
	}
}

/* A kernel's: who ran, at the record that is given out next. */
static void name_thread(struct gt_merge *merge, struct gt_source *source)
{
	struct gt_target *target = merge->target;
	if (source->tid == source->record.tid && source->named)
		return;
	source->named = true;
	source->tid = source->record.tid;
	__builtin_memset(source->comm, 0, sizeof(source->comm));
	if (gt_target_thread(target, source->tid, source->comm) != 0)
		__builtin_memcpy(source->comm, "<...>", 6);
}

/* A thread came to a CPU: its open calls are wherever it ran before. */
static void adopt(void *data, struct gt_decode *decode)
{
	struct gt_merge *merge = data;
	for (uint32_t i = 0; i < merge->source_count; i++) {
		struct gt_source *source = merge->sources[i];
		if (source != NULL && source->buffer != NULL &&
		    gt_decode_move_context(decode, &source->decode))
			return;
	}
}

/* ---- context switches ---- */

static bool is_wanted(const struct gt_merge *merge, const struct gt_switch *one)
{
	const struct gt_filter *filter = merge->filter;
	bool inside = merge->window_count == 0;
	if (one->clock <= merge->switches_given || one->clock > merge->cut)
		return false;
	for (uint32_t i = 0; i < merge->window_count; i++)
		inside |= one->clock >= merge->windows[i].from && one->clock < merge->windows[i].to;
	return inside && (filter == NULL ||
			  gt_filter_passes(filter, merge->target, one->clock, one->tid, one->cpu));
}

/* The newest thread of that number that has recorded something. */
static void name_switched(const struct gt_merge *merge, struct gt_source *source, uint32_t tid)
{
	source->tid = tid;
	source->pid = 0;
	__builtin_memset(source->comm, 0, sizeof(source->comm));
	__builtin_memcpy(source->comm, "<...>", 6);
	for (uint32_t i = merge->source_count; i-- > 0;) {
		const struct gt_source *writer = merge->sources[i];
		if (writer != NULL && writer->tid == tid) {
			source->pid = writer->pid;
			if (writer->comm[0])
				__builtin_memcpy(source->comm, writer->comm, sizeof(source->comm));
			return;
		}
	}
}

static bool advance_switches(struct gt_merge *merge, struct gt_source *source)
{
	for (;;) {
		if (merge->switch_at == merge->switch_count) {
			merge->switch_at = 0;
			merge->switch_count = gt_target_read_switches(
				merge->target, &merge->switch_cursor, merge->next_switches,
				sizeof(merge->next_switches) / sizeof(merge->next_switches[0]));
			if (!merge->switch_count)
				return false;
		}
		const struct gt_switch *next = &merge->next_switches[merge->switch_at++];
		if (!is_wanted(merge, next))
			continue;
		bool out = next->flags & GT_SWITCH_OUT;
		bool preempted = next->flags & GT_SWITCH_PREEMPTED;
		source->record = (struct gt_record){
			.clock = next->clock,
			.kind = GT_RECORD_SWITCH,
			.cpu = next->cpu,
			.previous_tid = out ? next->tid : 0,
			.next_tid = out ? 0 : next->tid,
			.state = !out	     ? GT_STATE_RUNNING
				 : preempted ? GT_STATE_PREEMPTED
					     : GT_STATE_WAITING,
		};
		name_switched(merge, source, next->tid);
		return true;
	}
}

/* Sets source->record to the next one, or puts the source to rest. */
static bool advance(struct gt_merge *merge, struct gt_source *source)
{
	bool there = true;
	if (source == merge->switches) {
		if (source->state == GT_SOURCE_READY)
			merge->switches_given = source->record.clock;
		there = advance_switches(merge, source);
		source->key = source->record.clock;
		source->state = there ? GT_SOURCE_READY
				: merge->mode == GT_MERGE_SNAPSHOT || merge->finished
					? GT_SOURCE_ENDED
					: GT_SOURCE_WAITING;
		return there;
	}
	if (source->has_ahead) {
		source->record = source->ahead;
		source->has_ahead = false;
	} else {
		there = decode(merge, source, &source->record);
	}
	if (there) {
		if (source->decode.kernel)
			name_thread(merge, source);
		source->record_sequence = source->fed_sequence;
		consume_below(merge, source, source->fed_sequence);
		source->key = source->record.clock;
		source->state = GT_SOURCE_READY;
		return true;
	}
	/* One that its writer never closed is not consumed: it is the target's to clear away. */
	if (source->fed)
		consume_below(merge, source,
			      source->fed_sequence + (!source->growing && source->buffer->used));
	source->state = GT_SOURCE_WAITING;
	if (has_ended(merge, source)) {
		source->state = GT_SOURCE_ENDED;
		/* threads that ran on a kernel's CPU may return on another one */
		if (!source->decode.kernel)
			give_back(merge, source);
	}
	return false;
}

static bool open_source(struct gt_merge *merge, struct gt_source *source)
{
	source->buffer = gt_memory_get(&merge->memory, merge->target->sub_buffer_bytes);
	if (source->buffer == NULL) {
		merge->out_of_memory++;
		source->state = GT_SOURCE_ENDED;
		return false;
	}
	gt_decode_init(&source->decode, &merge->memory);
	source->decode.adopt = adopt;
	source->decode.adopt_data = merge;
	return true;
}

static int add_source(struct gt_merge *merge, uint32_t index)
{
	struct gt_writer writer;
	struct gt_source *source;

	merge->sources[index] = NULL;
	if (merge->target->ring->writer(merge->target, index, &writer) != 0)
		return 0;
	/* a kernel's CPU has many threads, and no process */
	if (merge->filter != NULL && merge->filter->tid && writer.pid != 0 &&
	    merge->filter->tid != writer.tid)
		return 0;
	/* Nothing of it is there, and nothing will come: programs end threads by the million. */
	if (writer.end && writer.pid != 0 && writer.first >= writer.next)
		return 0;
	source = gt_memory_get(&merge->memory, sizeof(*source));
	if (source == NULL)
		return GT_ENOMEM;
	__builtin_memset(source, 0, sizeof(*source));
	source->index = index;
	source->generation = writer.generation;
	source->pid = writer.pid;
	source->tid = writer.tid;
	__builtin_memcpy(source->comm, writer.comm, sizeof(source->comm));
	source->next_sequence = writer.first;
	source->limit = writer.next;
	source->key = writer.start;
	merge->sources[index] = source;
	heap_push(merge, source);
	return 0;
}

/* Room for so many sources by writers, and for the switches' among those in the heap. */
static int make_room(struct gt_merge *merge, uint32_t count)
{
	if (count <= merge->source_capacity)
		return 0;
	/* Both tables are pointers by writer; the second grows first, so that a failure leaves
	 * sizes that are true. */
	uint32_t wanted = merge->source_capacity * 2;
	if (wanted < count)
		wanted = count;
	if (wanted < 16)
		wanted = 16;
	size_t old = merge->source_capacity ? (merge->source_capacity + 1) * sizeof(void *) : 0;
	size_t new = (wanted + 1) * sizeof(void *);
	void *sources = gt_memory_get(&merge->memory, new);
	void *heap = gt_memory_get(&merge->memory, new);
	if (sources == NULL || heap == NULL) {
		gt_memory_put(&merge->memory, sources, new);
		gt_memory_put(&merge->memory, heap, new);
		return GT_ENOMEM;
	}
	if (old) {
		__builtin_memcpy(sources, merge->sources, old);
		__builtin_memcpy(heap, merge->heap, old);
	}
	gt_memory_put(&merge->memory, merge->sources, old);
	gt_memory_put(&merge->memory, merge->heap, old);
	merge->sources = sources;
	merge->heap = heap;
	merge->source_capacity = wanted;
	return 0;
}

static int add_new_sources(struct gt_merge *merge)
{
	uint32_t count = merge->target->ring->writer_count(merge->target);
	if (make_room(merge, count) != 0)
		return GT_ENOMEM;
	while (merge->source_count < count) {
		int error = add_source(merge, merge->source_count);
		if (error != 0)
			return error;
		merge->source_count++;
	}
	return 0;
}

/* What is written from now on is left out, wherever a writer's turn to be copied comes. Sub-buffers that
 * had been closed before have nothing of it. */
static int make_cut(struct gt_merge *merge)
{
	struct gt_target *target = merge->target;
	uint32_t count = merge->source_count;
	struct gt_writer writer;

	merge->cut = gt_target_now(target);
	if (merge->cut == UINT64_MAX)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		struct gt_source *source = merge->sources[i];

		if (source == NULL || target->ring->writer(target, i, &writer) != 0)
			continue;
		source->closed = source->limit;
		source->limit = writer.next;
	}
	return add_new_sources(merge);
}

void gt_merge_set_filter(struct gt_merge *merge, struct gt_filter *filter)
{
	merge->filter =
		filter != NULL && (gt_filter_is_needed(filter) || filter->tid) ? filter : NULL;
	merge->straight = NULL;
}

int gt_merge_init(struct gt_merge *merge, struct gt_target *target, const struct gt_memory *memory,
		  enum gt_merge_mode mode, struct gt_filter *filter)
{
	__builtin_memset(merge, 0, sizeof(*merge));
	merge->target = target;
	merge->memory = merge->off_cpu.memory = *memory;
	merge->mode = mode;
	merge->cut = UINT64_MAX;
	gt_merge_set_filter(merge, filter);
	int error = add_new_sources(merge);
	if (error == 0 && mode == GT_MERGE_SNAPSHOT)
		error = make_cut(merge);
	if (error != 0)
		gt_merge_fini(merge);
	return error;
}

int gt_merge_add_switches(struct gt_merge *merge, const struct gt_merge_window *windows,
			  uint32_t count)
{
	if (merge->target->switches == NULL)
		return 0;
	if (make_room(merge, 1) != 0)
		return GT_ENOMEM;
	merge->wants_switches = merge->switches == NULL;
	merge->straight = NULL;
	merge->window_count = count < GT_MERGE_WINDOWS ? count : GT_MERGE_WINDOWS;
	for (uint32_t i = 0; i < merge->window_count; i++)
		merge->windows[i] = windows[i];
	return 0;
}

uint64_t gt_merge_count_switches(const struct gt_merge *merge)
{
	struct gt_switch some[32];
	uint64_t cursor = 0, found = 0;
	uint32_t count;
	if (merge->switches == NULL && !merge->wants_switches)
		return 0;
	while ((count = gt_target_read_switches(merge->target, &cursor, some,
						sizeof(some) / sizeof(some[0]))) != 0)
		for (uint32_t i = 0; i < count; i++)
			found += is_wanted(merge, &some[i]);
	return found;
}

/* At the first look at the records. Without memory there are no switches. */
static void begin_switches(struct gt_merge *merge)
{
	struct gt_source *source = gt_memory_get(&merge->memory, sizeof(*source));
	merge->wants_switches = false;
	if (source == NULL)
		return;
	__builtin_memset(source, 0, sizeof(*source));
	merge->switches = source;
	if (advance(merge, source))
		heap_push(merge, source);
	else
		merge->waiting_count += source->state == GT_SOURCE_WAITING;
}

int gt_merge_poll(struct gt_merge *merge)
{
	if (merge->mode == GT_MERGE_SNAPSHOT)
		return 0;
	int error = add_new_sources(merge);
	if (merge->wants_switches)
		begin_switches(merge);
	if (!merge->waiting_count)
		return error;
	for (uint32_t i = 0; i <= merge->source_count; i++) {
		struct gt_source *source =
			i < merge->source_count ? merge->sources[i] : merge->switches;
		if (source == NULL || source->state != GT_SOURCE_WAITING)
			continue;
		if (advance(merge, source)) {
			merge->waiting_count--;
			heap_push(merge, source);
		} else if (source->state == GT_SOURCE_ENDED) {
			merge->waiting_count--;
		}
	}
	return error;
}

/* A kernel's calls that are still open are told when all its CPUs are at their ends: before that
 * another one may have their returns. */
static void tell_open_calls(struct gt_merge *merge)
{
	if (!merge->tell_open || (merge->mode != GT_MERGE_SNAPSHOT && !merge->finished))
		return;
	for (uint32_t i = 0; i < merge->source_count; i++) {
		struct gt_source *source = merge->sources[i];
		if (source == NULL || !source->fed || !source->decode.kernel || source->ending)
			continue;
		source->ending = true;
		source->growing = false;
		gt_decode_end(&source->decode);
		if (advance(merge, source))
			heap_push(merge, source);
	}
}

/* Puts a source that has moved on into the heap if others are before it, and returns the first. */
static struct gt_source *give_way(struct gt_merge *merge, struct gt_source *source)
{
	struct gt_source *root;
	if (!merge->heap_count || merge->heap[0]->key >= source->key)
		return source;
	root = merge->heap[0];
	merge->heap[0] = source;
	sift_down(merge, 0);
	return root;
}

/* May merge_fast.h go on with the source? A snapshot consumes nothing, and holds nothing. */
static bool is_straight(const struct gt_merge *merge, const struct gt_source *source)
{
	return merge->mode == GT_MERGE_SNAPSHOT && merge->filter == NULL && merge->given == NULL &&
	       merge->cpus == NULL && source != merge->switches && source->fed &&
	       !source->has_ahead && !source->decode.kernel;
}

/* Gives the source's record, or the first of the heap; source: not in the heap; or NULL. */
static int give(struct gt_merge *merge, struct gt_source *source, struct gt_source **found)
{
	for (;;) {
		if (source != NULL && source->state == GT_SOURCE_READY &&
		    hold(merge, source, &source->record))
			break;
		if (source != NULL &&
		    (source->state == GT_SOURCE_READY || open_source(merge, source))) {
			/* It begins about now, or went on behind what is gone: its first record
			 * may be later than others' next. */
			if (advance(merge, source))
				heap_push(merge, source);
			else
				merge->waiting_count += source->state == GT_SOURCE_WAITING;
		}
		if (!merge->heap_count)
			tell_open_calls(merge);
		if (!merge->heap_count)
			return merge->mode == GT_MERGE_SNAPSHOT || merge->finished ? 0 : GT_EAGAIN;
		source = merge->heap[0];
		heap_pop(merge);
	}
	merge->current = source;
	merge->straight = is_straight(merge, source) ? source : NULL;
	*found = source;
	return 1;
}

int gt_merge_next(struct gt_merge *merge, struct gt_source **found)
{
	struct gt_source *source = merge->current;
	merge->current = merge->straight = NULL;
	if (merge->wants_switches)
		begin_switches(merge);
	if (source != NULL) {
		if (advance(merge, source)) {
			source = give_way(merge, source);
		} else {
			merge->waiting_count += source->state == GT_SOURCE_WAITING;
			source = NULL;
		}
	}
	return give(merge, source, found);
}

int gt_merge_give_way(struct gt_merge *merge, uint64_t words, struct gt_source **found)
{
	struct gt_source *source = merge->current;
	source->before = (struct gt_merge_given){ source->fed_sequence, words };
	merge->current = merge->straight = NULL;
	return give(merge, give_way(merge, source), found);
}

const struct gt_record *gt_merge_ahead(struct gt_merge *merge, struct gt_source *source)
{
	merge->straight = NULL;
	while (!source->has_ahead && decode(merge, source, &source->ahead))
		source->has_ahead = hold(merge, source, &source->ahead);
	return source->has_ahead ? &source->ahead : NULL;
}

void gt_merge_skip_ahead(struct gt_source *source)
{
	source->has_ahead = false;
}

/* What it was told to leave out counts as given before it has come there. */
static struct gt_merge_given later(const struct gt_merge *merge, uint32_t index,
				   struct gt_merge_given own)
{
	struct gt_merge_given told = { 0, 0 };
	if (index < merge->given_count)
		told = merge->given[index];
	return told.sequence > own.sequence ||
			       (told.sequence == own.sequence && told.words > own.words)
		       ? told
		       : own;
}

struct gt_merge_given gt_merge_given(const struct gt_merge *merge, uint32_t index)
{
	const struct gt_source *source = index < merge->source_count ? merge->sources[index] : NULL;
	struct gt_merge_given given = { 0, 0 };

	if (source == NULL)
		return later(merge, index, given);
	given.sequence = source->next_sequence;
	if (source->fed) {
		given.sequence = source->fed_sequence;
		given.words = (uint64_t)(source->decode.word - source->decode.base);
	}
	return later(merge, index, given);
}

struct gt_merge_given gt_merge_shown(const struct gt_merge *merge, uint32_t index)
{
	const struct gt_source *source = index < merge->source_count ? merge->sources[index] : NULL;

	if (source != NULL &&
	    (source->has_ahead || (source->state == GT_SOURCE_READY && source != merge->current)))
		return later(merge, index, source->before);
	return gt_merge_given(merge, index);
}

void gt_merge_fini(struct gt_merge *merge)
{
	for (uint32_t i = 0; i < merge->source_count; i++) {
		struct gt_source *source = merge->sources[i];
		if (source == NULL)
			continue;
		give_back(merge, source);
		gt_memory_put(&merge->memory, source, sizeof(*source));
	}
	size_t bytes = merge->source_capacity ? (merge->source_capacity + 1) * sizeof(void *) : 0;
	gt_memory_put(&merge->memory, merge->switches, sizeof(*merge->switches));
	gt_memory_put(&merge->memory, merge->sources, bytes);
	gt_memory_put(&merge->memory, merge->heap, bytes);
	gt_off_cpu_threads_fini(&merge->off_cpu);
	merge->switches = NULL;
	merge->sources = merge->heap = NULL;
	merge->source_count = merge->source_capacity = merge->heap_count = 0;
}
