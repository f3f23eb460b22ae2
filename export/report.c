/* SPDX-License-Identifier: MIT */
/*
 * Making the table. Each writer is decoded alone: no order between writers is needed. The loop
 * touches for each record the frame that the decoder just touched, one slot of a hash table from
 * function numbers to rows, and the row.
 *
 * Recursion: open[row] counts, for the running context, how many calls of a row are open; a call
 * that finds one open is marked in its frame and adds nothing to the row's total.
 */
#include "export/report_parts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/decode_fast.h"
#include "core/trace/glob.h"
#include "core/trace/merge.h"
#include "core/trace/message.h"
#include "port/host/memory.h"

#define MARK_COUNTED   1  /* it is counted in open[row] */
#define MARK_RECURSIVE 2  /* a call of the same row was open around it */
#define MARK_INSIDE    4  /* a wanted function, or called by one */
#define MARK_OUTSIDE   8  /* neither: it has no row */
#define MARK_BEGUN     16 /* open when the wanted time began, and counted */
#define MISSING_MAX    100000

/* Returns the row by thread, by caller or by callee. */
static __attribute__((noinline)) uint32_t row_at_slow(struct collector *c, uint32_t function,
						      uint32_t depth)
{
	if (c->by == GT_REPORT_THREAD || c->by == GT_REPORT_PROCESS)
		return c->thread_row;
	const struct gt_decode_frame *frame = depth ? gt_decode_frame(c->decode, depth - 1) : NULL;
	uint32_t called = gt_report_row_of(c, function);
	uint32_t caller = frame != NULL && frame->function ? gt_report_row_of(c, frame->function)
							   : ROW_OUTERMOST;

	if (c->out_of_memory)
		return ROW_OTHERS;
	if (c->by == GT_REPORT_CALLER)
		return c->rows[called].named ? caller : ROW_OTHERS;
	return c->rows[caller].named ? called : ROW_OTHERS;
}

/* Returns the row in which a call at that depth counts. */
static inline uint32_t row_at(struct collector *c, uint32_t function, uint32_t depth)
{
	return __builtin_expect(c->is_by_call, 0) ? row_at_slow(c, function, depth)
						  : gt_report_row_of(c, function);
}

/* ---- recursion ---- */

static __attribute__((noinline)) void grow_counts(struct collector *c)
{
	struct open_calls *open = &c->open[c->place];
	uint32_t *count = realloc(open->count, c->row_capacity * sizeof(*count));
	if (count == NULL) {
		c->out_of_memory = true;
		return;
	}
	memset(count + open->size, 0, (c->row_capacity - open->size) * sizeof(*count));
	open->count = c->counts = count;
	open->size = c->counts_size = c->row_capacity;
}

/* Another context runs, or another one with the same number. */
static void choose_place(struct collector *c, uint32_t place, uint32_t context)
{
	struct open_calls *open = &c->open[place];
	if (!open->used || open->context != context) {
		if (open->count != NULL)
			memset(open->count, 0, open->size * sizeof(*open->count));
		open->used = true;
		open->begun = false;
		open->context = context;
	}
	c->place = place;
	c->counts = open->count;
	c->counts_size = open->size;
}

static void choose_counts(struct collector *c)
{
	choose_place(c, c->decode->slot, c->decode->context);
}

static inline uint16_t count_open(struct collector *c, uint32_t row)
{
	if (__builtin_expect(row >= c->counts_size, 0)) {
		grow_counts(c);
		if (c->out_of_memory)
			return MARK_COUNTED;
	}
	return c->counts[row]++ ? MARK_COUNTED | MARK_RECURSIVE : MARK_COUNTED;
}

static inline void count_closed(struct collector *c, uint32_t row, unsigned mark)
{
	if ((mark & MARK_COUNTED) && row < c->counts_size && c->counts[row])
		c->counts[row]--;
}

/* ---- what is wanted ---- */

/* Does one of the globs match the function's name? */
static bool is_named(struct collector *c, uint32_t number)
{
	struct gt_function function;
	uint32_t place = number % GLOB_CACHE;
	bool found = false;

	if (c->globbed[place] == number)
		return c->glob_matches[place];
	if (gt_target_function(c->target, number, &function) == 0 && function.name != NULL)
		for (const char *const *glob = c->options->graph; *glob != NULL && !found; glob++)
			found = gt_glob_match(*glob, function.name);
	c->globbed[place] = number;
	c->glob_matches[place] = found;
	return found;
}

/* Is a call at that depth one of the wanted functions, or called by one? */
static bool is_inside(struct collector *c, uint32_t function, uint32_t depth)
{
	const struct gt_decode_frame *caller;

	if (c->options->graph == NULL)
		return true;
	caller = depth ? gt_decode_frame(c->decode, depth - 1) : NULL;
	return (caller != NULL && caller->mark & MARK_INSIDE) ||
	       (function && is_named(c, function));
}

static uint16_t open_mark(struct collector *c, uint32_t function, uint32_t depth)
{
	if (!is_inside(c, function, depth))
		return MARK_OUTSIDE;
	return (uint16_t)(MARK_INSIDE | count_open(c, row_at(c, function, depth)));
}

/* Calls that are known only from a sub-buffer's header have no entry record: they are open as
 * well. */
static __attribute__((noinline)) void count_unseen(struct collector *c)
{
	struct gt_decode *decode = c->decode;
	uint32_t end = decode->depth - 1; /* the newest is counted at its entry */
	uint32_t from = end > GRAFTRACE_OPEN_CALLS ? end - GRAFTRACE_OPEN_CALLS : 0;
	for (uint32_t depth = from; depth < end; depth++) {
		struct gt_decode_frame *frame = gt_decode_frame(decode, depth);
		if (frame != NULL && !frame->mark)
			frame->mark = c->picks ? open_mark(c, frame->function, depth)
					       : count_open(c, row_at(c, frame->function, depth));
	}
}

/* Handles the calls that are open when the wanted time begins: their callees' time before that
 * is not counted. Their clocks are kept, since the decoder identifies frames by them. */
static void begin_frames(struct collector *c)
{
	struct gt_decode *decode = c->decode;

	for (uint32_t depth = decode->low; depth < decode->depth; depth++) {
		struct gt_decode_frame *frame = gt_decode_frame(decode, depth);
		if (!frame->function || frame->clock >= c->from)
			continue;
		if (!frame->mark)
			frame->mark = open_mark(c, frame->function, depth);
		frame->children = 0;
		if (!(frame->mark & MARK_COUNTED) || c->out_of_memory)
			continue;
		frame->mark |= MARK_BEGUN;
		c->rows[row_at(c, frame->function, depth)].entered++;
	}
}

/* ---- records ---- */

static inline void add_ticks(uint64_t *sum, uint64_t ticks)
{
	/* Damaged records can have any times: a sum saturates instead of wrapping. */
	if (__builtin_add_overflow(*sum, ticks, sum))
		*sum = UINT64_MAX;
}

static inline void take_entry(struct collector *c, const struct gt_record *record)
{
	struct gt_decode *decode = c->decode;
	struct gt_decode_frame *frame = gt_decode_frame(decode, record->depth);
	if (__builtin_expect(frame == NULL, 0))
		return;
	if (record->depth > decode->low &&
	    __builtin_expect(!decode->frames[(record->depth - 1) & decode->mask].mark, 0))
		count_unseen(c);
	if (__builtin_expect(c->picks, 0)) {
		frame->mark = open_mark(c, record->function, record->depth);
		if (frame->mark & MARK_OUTSIDE || record->clock < c->from)
			return;
		if (!c->out_of_memory)
			c->rows[row_at(c, record->function, record->depth)].entered++;
		return;
	}
	uint32_t at = row_at(c, record->function, record->depth);
	frame->mark = count_open(c, at);
	if (__builtin_expect(!c->out_of_memory, 1))
		c->rows[at].entered++;
}

/* A call is counted at its entry. A call whose entry is not among this writer's records is
 * counted at its end, if no other writer can have the entry: it began before the recording, or
 * its entry was lost. (Otherwise another thread entered it on a coroutine's stack, or a forked
 * child's parent did.) */
static bool is_counted_here(const struct collector *c, const struct gt_record *record)
{
	return c->incomplete || record->start < c->began;
}

static uint64_t process_began(struct collector *c)
{
	if (!c->process_began)
		c->process_began = gt_target_first_start(c->target, c->pid);
	return c->process_began;
}

static __attribute__((noinline)) void count_unseen_return(struct collector *c, struct row *row,
							  const struct gt_record *record)
{
	bool alone = record->flags & GT_RECORD_ALONE;
	if (alone || is_counted_here(c, record)) {
		row->entered++;
		c->unseen += !alone && record->start >= c->began;
	} else if (record->start < process_began(c)) {
		row->inherited++;
	}
}

/* The thread was off the CPU before this record: that time belongs to the call that was
 * innermost then. */
static __attribute__((noinline)) void take_off_cpu(struct collector *c,
						   const struct gt_record *record, uint64_t ticks)
{
	uint32_t function = 0, depth = record->depth;
	if (!ticks)
		return;
	c->slept = record->clock;
	if (record->kind == GT_RECORD_RETURN || record->kind == GT_RECORD_UNWOUND) {
		function = record->function;
	} else if (record->kind != GT_RECORD_CONTEXT && record->depth) {
		const struct gt_decode_frame *frame = gt_decode_frame(c->decode, --depth);
		function = frame != NULL ? frame->function : 0;
	}
	if (!function || (c->picks && !is_inside(c, function, depth)))
		return;
	uint32_t at = row_at(c, function, depth);
	if (!c->out_of_memory)
		add_ticks(&c->rows[at].self_off, ticks);
}

static inline void take_return(struct collector *c, const struct gt_record *record)
{
	uint32_t at = row_at(c, record->function, record->depth);
	struct row *row = &c->rows[at];
	if (__builtin_expect(c->out_of_memory, 0))
		return;
	count_closed(c, at, record->mark);
	if (__builtin_expect(record->flags & GT_RECORD_START_UNKNOWN, 0)) {
		row->other++;
		return;
	}
	uint64_t ticks = record->clock - record->start;
	if (__builtin_expect(!(record->flags & GT_RECORD_ENTRY_SEEN), 0))
		count_unseen_return(c, row, record);
	if (__builtin_expect(ticks < c->least, 0)) {
		row->too_short++;
		return;
	}
	if (__builtin_expect(!row->returned, 0))
		row->first = ticks;
	row->returned++;
	if (c->has_spread &&
	    !gt_histogram_add(&row->durations, gt_clock_duration_ns(&c->target->clock, ticks)))
		c->out_of_memory = true;
	if (!(record->mark & MARK_RECURSIVE)) {
		uint64_t counted = 0;
		/* Its entry was not seen: its callees were counted as the thread's outermost
		 * calls. */
		if (__builtin_expect(!record->mark, 0) &&
		    (c->by == GT_REPORT_THREAD || c->by == GT_REPORT_PROCESS))
			counted = record->children < ticks ? record->children : ticks;
		add_ticks(&row->total, ticks - counted);
		if (__builtin_expect(record->start < c->slept, 0))
			add_ticks(&row->total_off, gt_target_off_cpu(c->target, c->tid,
								     record->start, record->clock));
	}
	uint64_t self = ticks > record->children ? ticks - record->children : 0;
	bool is_known = !(record->flags & GT_RECORD_CHILDREN_UNKNOWN);
	/* A kernel's records are in order of CPUs, not of threads. */
	if (__builtin_expect(record->flags & GT_RECORD_ALONE, 0) && !c->decode->kernel) {
		self = gt_levels_end(&c->ended, c->decode->context, record->depth, ticks);
		is_known = true;
	}
	add_ticks(&row->self, self);
	c->covered += self;
	if (ticks < row->minimum)
		row->minimum = ticks;
	if (ticks > row->maximum)
		row->maximum = ticks;
	double off =
		ticks >= row->first ? (double)(ticks - row->first) : -(double)(row->first - ticks);
	row->sum += off;
	row->squares += off * off;
	if (__builtin_expect(!is_known, 0))
		row->self_upper_bound++;
}

/* Takes a call that is open at a thread's end. It has no time itself, but its callees have: the thread's total is the sum
 * of calls without a returned call around them. The decoder counts an open callee's time up to now, too. */
static void take_open(struct collector *c, uint32_t at, const struct gt_record *record)
{
	bool is_caller = c->open_callee.depth == record->depth + 1 &&
			 c->open_callee.context == record->context;
	uint64_t callee = is_caller ? c->open_callee.ticks : 0;

	c->open_callee.depth = record->depth;
	c->open_callee.context = record->context;
	c->open_callee.ticks = record->clock > record->start ? record->clock - record->start : 0;
	if ((c->by == GT_REPORT_THREAD || c->by == GT_REPORT_PROCESS) && !c->picks &&
	    !c->decode->kernel && record->mark & MARK_COUNTED && record->children > callee)
		add_ticks(&c->rows[at].total, record->children - callee);
}

static void take_other(struct collector *c, const struct gt_record *record)
{
	uint32_t at;
	switch (record->kind) {
	case GT_RECORD_UNWOUND:
	case GT_RECORD_OPEN:
		if (!record->function)
			break; /* a number of unknown calls, which began before the recording */
		at = row_at(c, record->function, record->depth);
		if (c->out_of_memory)
			break;
		count_closed(c, at, record->mark);
		if (record->kind == GT_RECORD_OPEN)
			take_open(c, at, record);
		if (!(record->flags & GT_RECORD_ENTRY_SEEN) && is_counted_here(c, record)) {
			c->rows[at].entered++;
			c->unseen += record->start >= c->began;
		}
		break;
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
		/* the tracer function does not record callers */
		at = c->of != NULL && record->kind == GT_RECORD_FUNCTION
			     ? ROW_OTHERS
			     : row_at(c, record->function, record->depth);
		if (!c->out_of_memory)
			c->rows[at].other++;
		break;
	case GT_RECORD_CONTEXT:
		if (!c->decode->kernel)
			choose_counts(c);
		break;
	case GT_RECORD_GAP:
		c->incomplete = true;
		break;
	default:
		break;
	}
}

/* Handles a record before the wanted time: it changes which calls are open when that begins. */
static void take_before(struct collector *c, const struct gt_record *record)
{
	switch (record->kind) {
	case GT_RECORD_ENTRY:
		take_entry(c, record);
		break;
	case GT_RECORD_RETURN:
	case GT_RECORD_UNWOUND:
		if (record->function && record->mark & MARK_COUNTED)
			count_closed(c, row_at(c, record->function, record->depth), record->mark);
		break;
	case GT_RECORD_GAP:
		c->incomplete = true;
		break;
	default:
		break;
	}
}

/* A call began before the wanted time. If it was the innermost one, its return is the first
 * record within that time, and begin_frames did not see it. */
static void begin_call(struct collector *c, struct gt_record *record, uint64_t children_before)
{
	struct gt_decode_frame *caller =
		record->depth ? gt_decode_frame(c->decode, record->depth - 1) : NULL;
	uint64_t before = c->from - record->start;

	if (caller != NULL && record->mark & MARK_BEGUN)
		caller->children -= caller->children < before ? caller->children : before;
	else if (caller != NULL)
		caller->children = record->clock - c->from;
	record->start = c->from;
	record->flags |= GT_RECORD_ENTRY_SEEN;
	if (record->mark & MARK_BEGUN)
		return;
	record->children -= record->children < children_before ? record->children : children_before;
	if (record->function && !c->out_of_memory)
		c->rows[row_at(c, record->function, record->depth)].entered++;
}

/* Is the record in the wanted time? Calls that are open when that begins are treated as
 * beginning then; children_before: the time that the innermost one had spent in callees at the
 * record before. */
static __attribute__((noinline)) bool is_picked(struct collector *c, struct gt_record *record,
						uint64_t children_before)
{
	struct open_calls *open;

	if (record->kind == GT_RECORD_CONTEXT && !c->kernel)
		choose_counts(c);
	if (record->clock < c->from) {
		take_before(c, record);
		return false;
	}
	open = &c->open[c->place];
	if (!open->begun) {
		open->begun = true;
		begin_frames(c);
	}
	if (record->clock > c->to)
		return false;
	switch (record->kind) {
	case GT_RECORD_RETURN:
	case GT_RECORD_UNWOUND:
	case GT_RECORD_OPEN:
		if (record->mark & MARK_OUTSIDE ||
		    (!record->mark && !is_inside(c, record->function, record->depth)))
			return false;
		if (record->start < c->from)
			begin_call(c, record, children_before);
		return true;
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
		return is_inside(c, record->function, record->depth);
	default:
		return true;
	}
}

/* Returns the time that the innermost call has spent in callees. */
static uint64_t children_now(const struct collector *c)
{
	const struct gt_decode_frame *frame =
		c->decode->depth ? gt_decode_frame(c->decode, c->decode->depth - 1) : NULL;

	return frame != NULL ? frame->children : 0;
}

static void take_all(struct collector *c)
{
	uint64_t children = c->picks ? children_now(c) : 0;
	struct gt_record record;
	int kind;
	while ((kind = gt_decode_next(c->decode, &record)) != GT_RECORD_NONE) {
		uint64_t slept = 0;
		if (__builtin_expect(record.clock >= c->off_cpu.until, 0))
			slept = gt_off_cpu_move(&c->off_cpu, c->target, c->tid, record.clock);
		if (__builtin_expect(c->picks, 0)) {
			bool picked = is_picked(c, &record, children);
			children = children_now(c);
			if (!picked)
				continue;
			if (slept > record.clock - c->from)
				slept = record.clock - c->from;
		}
		if (__builtin_expect(!c->first, 0))
			c->first = record.clock;
		c->last = record.clock;
		if (__builtin_expect(slept != 0, 0))
			take_off_cpu(c, &record, slept);
		if (kind == GT_RECORD_ENTRY)
			take_entry(c, &record);
		else if (kind == GT_RECORD_RETURN)
			take_return(c, &record);
		else
			take_other(c, &record);
		c->records++;
	}
}

/* Adds the writer's time, from its first record to its last, that is outside of all calls with
 * entry and return. (Calls of coroutines can overlap, so there may be less than nothing.) */
static void add_outside(struct collector *c)
{
	uint64_t span = c->last - c->first;

	if (c->incomplete || !c->first || c->last < c->first)
		return;
	add_ticks(&c->span, span);
	add_ticks(&c->outside, span > c->covered ? span - c->covered : 0);
}

static void take_writer(struct collector *c, uint32_t index, const struct gt_writer *writer)
{
	struct gt_target *target = c->target;
	unsigned missing = 0;

	c->incomplete = writer->first != 0;
	c->pid = writer->pid;
	c->tid = writer->tid;
	c->slept = 0;
	c->first = c->last = c->covered = 0;
	c->open_callee = (struct open_callee){ 0 };
	c->off_cpu = (struct gt_off_cpu_follow){ 0 };
	c->process_began = 0;
	gt_levels_fini(&c->ended);
	gt_decode_reset(c->decode);
	for (unsigned i = 0; i < GT_DECODE_CONTEXTS; i++)
		c->open[i].used = false;
	for (uint64_t sequence = writer->first;
	     sequence < writer->next && missing < MISSING_MAX && !c->out_of_memory;) {
		const struct graftrace_sub_buffer *bytes = c->buffer;
		int64_t words =
			target->ring->sub_buffer(target, index, sequence, c->buffer, &bytes);
		if (words < 0 || bytes->sequence != sequence) {
			c->unreadable += words != GT_ENOENT;
			missing++;
			sequence = gt_target_next_sequence(target, index, sequence + 1);
			continue;
		}
		sequence++;
		if (gt_decode_feed(c->decode, bytes, (uint32_t)words, false, NULL) != 0) {
			c->unreadable++;
			continue;
		}
		missing = 0;
		choose_counts(c);
		take_all(c);
	}
	add_outside(c);
	gt_decode_end(c->decode);
	take_all(c);
	c->damaged += c->decode->damaged;
}

/* ---- a kernel's CPUs ---- */

/* Threads move between CPUs during a call: the records of all CPUs are merged in order of time,
 * and counts are kept by the context's number. The idle threads of all CPUs have one number. */
static void choose_context(struct collector *c, const struct gt_record *record)
{
	uint32_t context = record->context ? record->context : ~record->cpu;
	uint32_t place = context % GT_DECODE_CONTEXTS;
	if (c->place == place && c->open[place].used && c->open[place].context == context)
		return;
	for (uint32_t i = 0; i < GT_DECODE_CONTEXTS; i++) {
		uint32_t other = (place + i) % GT_DECODE_CONTEXTS;
		if (!c->open[other].used || c->open[other].context == context) {
			place = other;
			break;
		}
	}
	choose_place(c, place, context);
}

static void choose_thread(struct collector *c, uint32_t tid)
{
	if (c->thread_row < c->row_count && c->rows[c->thread_row].key == tid)
		return;
	for (c->thread_row = 0; c->thread_row < c->row_count; c->thread_row++)
		if (c->rows[c->thread_row].key == tid)
			return;
	c->thread_row = gt_report_new_row(c, tid);
}

static int take_kernel(struct collector *c, bool has_off_cpu)
{
	struct gt_source *source;
	struct gt_merge merge;
	int error = gt_merge_init(&merge, c->target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL);
	if (error != 0)
		return error;
	c->incomplete = true; /* the beginning of a ring is overwritten */
	while (gt_merge_next(&merge, &source) > 0 && !c->out_of_memory) {
		const struct gt_record *record = &source->record;
		c->decode = &source->decode;
		choose_context(c, record);
		c->tid = record->tid;
		uint64_t slept = has_off_cpu ? gt_off_cpu_take(&c->off_cpus, c->target, record) : 0;
		if (c->options->tid && c->options->tid != record->tid)
			continue;
		if (c->by == GT_REPORT_THREAD || c->by == GT_REPORT_PROCESS)
			choose_thread(c, record->tid);
		if (c->picks && !is_picked(c, &source->record, 0))
			continue;
		if (slept)
			take_off_cpu(c, record, slept);
		if (record->kind == GT_RECORD_ENTRY)
			take_entry(c, record);
		else if (record->kind == GT_RECORD_RETURN)
			take_return(c, record);
		else
			take_other(c, record);
		c->records++;
	}
	c->decode = &c->own;
	c->unreadable += merge.unreadable;
	c->damaged += merge.damaged;
	gt_merge_fini(&merge);
	gt_off_cpu_threads_fini(&c->off_cpus);
	return 0;
}

static void take_options(struct collector *c, const struct gt_report_options *options)
{
	const struct gt_clock *clock = &c->target->clock;
	struct gt_clock durations = { .mult = clock->mult, .shift = clock->shift };

	c->options = options;
	c->by = options->by;
	c->is_by_call = c->by != GT_REPORT_FUNCTION && c->by != GT_REPORT_OBJECT;
	c->of = c->by == GT_REPORT_CALLER || c->by == GT_REPORT_CALLEE ? options->of : NULL;
	c->from = options->from_ns ? gt_clock_tsc(clock, options->from_ns) : 0;
	c->to = options->to_ns ? gt_clock_tsc(clock, options->to_ns) : UINT64_MAX;
	c->least = gt_clock_tsc(&durations, options->least_ns);
	c->has_spread = !options->without_spread;
	c->picks = options->from_ns || options->to_ns || options->graph != NULL;
}

/* Chooses the row of the thread or process that is read next. */
static void choose_writer_row(struct collector *c, uint32_t index, uint32_t pid)
{
	if (c->by == GT_REPORT_PROCESS)
		choose_thread(c, pid);
	else if (c->by == GT_REPORT_THREAD)
		c->thread_row = gt_report_new_row(c, index);
}

int gt_report_make(struct gt_target *target, const struct gt_report_options *options,
		   struct gt_report **made, struct gt_message *message)
{
	struct collector *c = calloc(1, sizeof(*c));
	struct gt_report *report = calloc(1, sizeof(*report));
	int error = GT_ENOMEM;

	if (c == NULL || report == NULL)
		goto out;
	c->target = target;
	take_options(c, options);
	report->by = options->by;
	report->has_off_cpu = gt_target_has_off_cpu(target);
	c->off_cpus.memory = gt_host_memory;
	c->decode = &c->own;
	gt_decode_init(c->decode, &gt_host_memory);
	c->buffer = malloc(target->sub_buffer_bytes);
	if (c->buffer == NULL || !gt_report_grow_slots(c))
		goto out;
	for (unsigned i = 0; c->of != NULL && i < ROWS_OF_OURS; i++)
		gt_report_new_row(c, 0);
	uint32_t count = target->ring->writer_count(target);
	c->began = gt_target_first_start(target, 0);
	for (uint32_t i = 0; i < count && !c->out_of_memory; i++) {
		struct gt_writer writer;
		if (target->ring->writer(target, i, &writer) != 0)
			continue;
		for (unsigned cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			report->lost[cause] += writer.lost[cause];
		report->threads++;
		if (writer.pid == 0 || c->kernel) {
			c->kernel = true;
			continue;
		}
		if ((options->pid && options->pid != writer.pid) ||
		    (options->tid && options->tid != writer.tid))
			continue;
		choose_writer_row(c, i, writer.pid);
		take_writer(c, i, &writer);
	}
	if (c->kernel && take_kernel(c, report->has_off_cpu) != 0)
		goto out;
	if (c->out_of_memory)
		goto out;
	report->records = c->records;
	report->damaged = c->damaged;
	uint64_t overwritten = report->lost[GRAFTRACE_LOST_OVERRUN_CALLS];
	report->known_by_return = c->unseen < overwritten ? c->unseen : overwritten;
	if (options->graph != NULL || options->least_ns)
		c->span = c->outside =
			0; /* records left out would count as time outside of calls */
	report->span = gt_clock_duration_ns(&target->clock, c->span);
	report->outside = gt_clock_duration_ns(&target->clock, c->outside);
	report->unreadable = c->unreadable;
	error = gt_report_make_rows(c, report);
out:
	if (error == GT_ENOMEM)
		gt_message_set(message, "not enough memory for the table");
	if (c != NULL) {
		gt_decode_fini(&c->own);
		gt_levels_fini(&c->ended);
		for (unsigned i = 0; i < GT_DECODE_CONTEXTS; i++)
			free(c->open[i].count);
		for (uint32_t i = 0; i < c->row_count; i++)
			gt_histogram_fini(&c->rows[i].durations);
		free(c->slots);
		free(c->known);
		free(c->rows);
		free(c->buffer);
		free(c);
	}
	if (error != 0) {
		gt_report_destroy(report);
		return error;
	}
	*made = report;
	return 0;
}

void gt_report_keep(struct gt_report *report, const char *glob)
{
	size_t kept = 0;

	for (size_t i = 0; i < report->row_count; i++)
		if (gt_glob_match(glob, report->rows[i].name))
			report->rows[kept++] = report->rows[i];
		else
			gt_histogram_fini(&report->rows[i].durations);
	report->row_count = kept;
}

void gt_report_destroy(struct gt_report *report)
{
	struct name *name, *next;
	if (report == NULL)
		return;
	for (name = report->names; name != NULL; name = next) {
		next = name->next;
		free(name);
	}
	for (size_t i = 0; report->rows != NULL && i < report->row_count; i++)
		gt_histogram_fini(&report->rows[i].durations);
	free(report->rows);
	free(report);
}
