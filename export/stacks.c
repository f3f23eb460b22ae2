/* SPDX-License-Identifier: MIT */
/* Calls as nested stacks: see stacks.h. */
#include "export/stacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/merge_fast.h"
#include "port/host/memory.h"

#define FIRST_LANES 64u

/* A call whose entry was not recorded, found by the first pass. */
struct late_call {
	uint64_t start;
	uint32_t lane;
	uint32_t depth;
	uint32_t function;
	uint32_t cpu;
};

struct reading {
	struct gt_target *target;
	const struct gt_stack_sink *sink; /* NULL during a pass that looks for late calls */
	bool once;			  /* without such a pass: a late call ends the reading */
	struct gt_stack_report *report;
	struct gt_lane **lanes;
	uint32_t lane_count, lane_room;
	uint32_t *table; /* hash table by key: number of a lane + 1; 0 empty */
	uint32_t table_mask;
	struct late_call *late;
	size_t late_count, late_room, late_next;
	uint64_t ids;
	uint64_t newest;
	bool whole; /* no window: all that a writer counts as lost is told */
	/* By writer's index: calls of its counts that were told as lost. */
	uint64_t *told_lost;
	uint32_t told_room;
	/* The lane of the record before: nearly always the next one's, too. */
	struct gt_lane *last;
	const struct gt_source *last_source;
	uint32_t last_context;
};

/* In a kernel, a lane is a context, on whichever CPU; in a program it belongs to one writer. */
static uint64_t key_of(const struct gt_source *source, const struct gt_record *record)
{
	uint64_t writer = source->named ? 0 : (uint64_t)source->generation + 1;

	return writer << 32 | record->context;
}

static uint32_t hash(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 32);
}

struct keyed_lane {
	struct gt_lane lane;
	uint64_t key;
	uint32_t writer; /* index of the one that has its first record */
	bool told;	 /* the sink has been given it */
};

static int grow_table(struct reading *reading)
{
	uint32_t size = reading->table != NULL ? (reading->table_mask + 1) * 2 : FIRST_LANES * 4;
	uint32_t *table = calloc(size, sizeof(*table));

	if (table == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < reading->lane_count; i++) {
		uint32_t at = hash(((struct keyed_lane *)reading->lanes[i])->key) & (size - 1);

		while (table[at] != 0)
			at = (at + 1) & (size - 1);
		table[at] = i + 1;
	}
	free(reading->table);
	reading->table = table;
	reading->table_mask = size - 1;
	return 0;
}

static struct gt_lane *add_lane(struct reading *reading, uint64_t key)
{
	struct keyed_lane *made;

	if (reading->lane_count == reading->lane_room) {
		uint32_t room = reading->lane_room ? reading->lane_room * 2 : FIRST_LANES;
		struct gt_lane **lanes = realloc(reading->lanes, room * sizeof(*lanes));

		if (lanes == NULL)
			return NULL;
		reading->lanes = lanes;
		reading->lane_room = room;
	}
	if ((reading->lane_count + 1) * 2 > reading->table_mask + 1 && grow_table(reading) != 0)
		return NULL;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return NULL;
	made->key = key;
	made->lane.number = reading->lane_count;
	reading->lanes[reading->lane_count++] = &made->lane;
	uint32_t at = hash(key) & reading->table_mask;
	while (reading->table[at] != 0)
		at = (at + 1) & reading->table_mask;
	reading->table[at] = reading->lane_count;
	return &made->lane;
}

/* Returns the lane of a record, and makes it if there is none. NULL: no memory. */
static struct gt_lane *lane_of(struct reading *reading, struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	uint64_t key = key_of(source, record);
	struct gt_lane *lane = NULL;

	if (source == reading->last_source && record->context == reading->last_context &&
	    reading->last->tid == source->tid)
		return reading->last;
	for (uint32_t at = hash(key) & reading->table_mask; reading->table[at] != 0;
	     at = (at + 1) & reading->table_mask) {
		lane = reading->lanes[reading->table[at] - 1];
		if (((struct keyed_lane *)lane)->key == key)
			break;
		lane = NULL;
	}
	if (lane == NULL) {
		lane = add_lane(reading, key);
		if (lane == NULL)
			return NULL;
		/* The contexts of a kernel are its threads. */
		lane->stack = source->named ? 0 : source->repeats++;
		lane->pid = source->pid;
		lane->tid = source->tid;
		((struct keyed_lane *)lane)->writer = source->index;
	}
	if (source->comm[0] != '\0')
		memcpy(lane->name, source->comm, sizeof(lane->name));
	reading->last = lane;
	reading->last_source = source;
	reading->last_context = record->context;
	return lane;
}

static int give_moment(struct reading *reading, struct gt_lane *lane, enum gt_moment_kind kind,
		       const struct gt_record *record, const struct gt_event_format *event,
		       const struct gt_record *of_event)
{
	struct gt_moment made = {
		.kind = kind,
		.clock = record->clock,
		.value = record->value,
		.function = record->function,
		.cpu = record->cpu,
		.text = record->text,
		.text_bytes = record->text_bytes,
		.event = event,
		.record = of_event,
	};

	reading->report->marks += kind == GT_MOMENT_MARK;
	return reading->sink->moment(reading->sink->user, lane, &made);
}

static int moment(struct reading *reading, struct gt_lane *lane, enum gt_moment_kind kind,
		  const struct gt_record *record)
{
	if (reading->sink == NULL || reading->sink->moment == NULL)
		return 0;
	return give_moment(reading, lane, kind, record, NULL, NULL);
}

/* Counts calls of a writer as told. GT_ENOMEM. */
static int add_told(struct reading *reading, uint32_t writer, uint64_t calls)
{
	if (writer >= reading->told_room) {
		uint32_t room = (writer + 1) * 2;
		uint64_t *told = realloc(reading->told_lost, room * sizeof(*told));

		if (told == NULL)
			return GT_ENOMEM;
		memset(told + reading->told_room, 0, (room - reading->told_room) * sizeof(*told));
		reading->told_lost = told;
		reading->told_room = room;
	}
	reading->told_lost[writer] += calls;
	reading->report->lost += calls;
	return 0;
}

static uint64_t told_of(const struct reading *reading, uint32_t writer)
{
	return writer < reading->told_room ? reading->told_lost[writer] : 0;
}

/* Tells of calls that a writer counts as lost and that no record tells of. lane: NULL if the writer has none.
 */
static int tell_lost(struct reading *reading, struct gt_lane *lane, uint32_t writer, uint64_t clock,
		     uint64_t calls)
{
	const struct gt_record lost = {
		.kind = GT_RECORD_LOST, .clock = clock, .value = calls, .cpu = UINT32_MAX
	};
	int error = add_told(reading, writer, calls);

	return error == 0 && lane != NULL ? moment(reading, lane, GT_MOMENT_LOST, &lost) : error;
}

/* Gives the sink a lane whose first record has this clock. What was overwritten before it is told first. */
static int tell_lane_slow(struct reading *reading, struct keyed_lane *keyed, uint64_t clock)
{
	const struct gt_stack_sink *sink = reading->sink;
	struct gt_writer writer;
	uint64_t overwritten = 0;
	int error = sink->lane != NULL ? sink->lane(sink->user, &keyed->lane) : 0;

	keyed->told = true;
	if (reading->whole &&
	    reading->target->ring->writer(reading->target, keyed->writer, &writer) == 0 &&
	    writer.first > 0)
		overwritten = writer.lost[GRAFTRACE_LOST_OVERRUN_CALLS];
	if (error == 0 && overwritten > told_of(reading, keyed->writer))
		error = tell_lost(reading, &keyed->lane, keyed->writer, clock,
				  overwritten - told_of(reading, keyed->writer));
	return error;
}

static inline int tell_lane(struct reading *reading, struct gt_lane *lane, uint64_t clock)
{
	struct keyed_lane *keyed = (struct keyed_lane *)lane;

	return reading->sink == NULL || keyed->told ? 0 : tell_lane_slow(reading, keyed, clock);
}

/* Time in a lane never runs back. */
static uint64_t forward(struct gt_lane *lane, uint64_t clock)
{
	if ((int64_t)(clock - lane->last) > 0 || lane->last == 0)
		lane->last = clock;
	return lane->last;
}

/* arguments: owned by the lane from here on. Inlined, so that `call` is no structure in memory: it would be
 * read by wider loads than it was stored by, which wait. */
static inline __attribute__((always_inline)) int enter(struct reading *reading,
						       struct gt_lane *lane,
						       const struct late_call *call, uint8_t flags,
						       char *arguments)
{
	if (lane->open == lane->room) {
		uint32_t room = lane->room ? lane->room * 2 : 32;
		struct gt_stack_call *calls = realloc(lane->calls, room * sizeof(*calls));

		if (calls == NULL) {
			free(arguments);
			return GT_ENOMEM;
		}
		lane->calls = calls;
		lane->room = room;
	}
	struct gt_stack_call *made = &lane->calls[lane->open++];
	*made = (struct gt_stack_call){
		.start = forward(lane, call->start),
		.function = call->function,
		.depth = call->depth,
		.cpu = call->cpu,
		.id = ++reading->ids,
		.flags = flags,
		.arguments = arguments,
	};
	if (reading->sink == NULL || reading->sink->enter == NULL)
		return 0;
	return reading->sink->enter(reading->sink->user, lane, made);
}

/* Returns a call's arguments or result as text; NULL: not recorded. */
static char *values_of(struct reading *reading, const struct gt_lane *lane,
		       const struct gt_record *record)
{
	char text[GT_VALUES_TEXT_MAX], *end;

	if (reading->sink == NULL || !(record->flags & GT_RECORD_VALUES))
		return NULL;
	end = gt_target_put_values(reading->target, lane->pid, record, false, text, sizeof(text));
	return end != NULL ? strndup(text, (size_t)(end - text)) : NULL;
}

/* Ends the innermost call. */
static int leave_with(struct reading *reading, struct gt_lane *lane, uint64_t clock, uint8_t flags,
		      const char *result)
{
	/* The call stays readable in its place: no other call is entered before this function returns. */
	struct gt_stack_call *call = &lane->calls[--lane->open];
	uint64_t end = forward(lane, clock);
	int error = 0;

	call->result = result;
	call->flags |= flags;
	if (lane->open > 0)
		call[-1].children += end - call->start;
	if (reading->sink != NULL) {
		*(call->flags & (GT_STACK_NO_RETURN | GT_STACK_OPEN)
			  ? &reading->report->without_return
			  : &reading->report->calls) += 1;
		if (reading->sink->leave != NULL)
			error = reading->sink->leave(reading->sink->user, lane, call, end);
	}
	if (call->arguments != NULL)
		free(call->arguments);
	return error;
}

static int leave(struct reading *reading, struct gt_lane *lane, uint64_t clock, uint8_t flags)
{
	return leave_with(reading, lane, clock, flags, NULL);
}

/* Is it the open call that the record ends? Not if the open call began before the record's call
 * did: then the open one's return was lost, and so was the entry of the record's call.
 * (forward() may have moved an entry to a later time, never to an earlier one.) */
static bool is_same(const struct gt_stack_call *call, const struct gt_record *record)
{
	return call->function == record->function && call->depth == record->depth &&
	       (record->flags & GT_RECORD_START_UNKNOWN ||
		(int64_t)(record->start - call->start) <= 0);
}

/* Returns the index of a call among the open ones + 1; 0: it is not there. */
static uint32_t find(const struct gt_lane *lane, const struct gt_record *record)
{
	for (uint32_t i = lane->open; i > 0; i--) {
		const struct gt_stack_call *call = &lane->calls[i - 1];

		if (is_same(call, record))
			return i;
		if (call->depth < record->depth)
			break;
	}
	return 0;
}

static int note_late(struct reading *reading, const struct gt_lane *lane,
		     const struct gt_record *record, uint64_t start)
{
	if (reading->late_count == reading->late_room) {
		size_t room = reading->late_room ? reading->late_room * 2 : 1024;
		struct late_call *late = realloc(reading->late, room * sizeof(*late));

		if (late == NULL)
			return GT_ENOMEM;
		reading->late = late;
		reading->late_room = room;
	}
	reading->late[reading->late_count++] = (struct late_call){
		.start = start,
		.lane = lane->number,
		.depth = record->depth,
		.function = record->function,
		.cpu = record->cpu,
	};
	return 0;
}

/* Enters a call whose entry was not recorded when it ends, at the time when it began. The returns of calls that are open
 * at its depth or deeper were not recorded. */
static int enter_at_end(struct reading *reading, struct gt_lane *lane,
			const struct gt_record *record, uint64_t start)
{
	const struct late_call late = { start, lane->number, record->depth, record->function,
					record->cpu };
	uint64_t children = record->kind == GT_RECORD_RETURN ? record->children : 0;
	int error = 0;

	while (error == 0 && lane->open > 0 && lane->calls[lane->open - 1].depth >= record->depth) {
		bool is_before = (int64_t)(lane->calls[lane->open - 1].start - start) < 0;

		error = leave(reading, lane, is_before ? start : record->clock, GT_STACK_NO_RETURN);
	}
	if (error == 0)
		error = enter(reading, lane, &late, GT_STACK_NO_ENTRY, NULL);
	if (error != 0)
		return error;
	lane->calls[lane->open - 1].start = start;
	lane->calls[lane->open - 1].children = children;
	/* Its callees were left as its caller's. */
	if (lane->open > 1) {
		struct gt_stack_call *caller = &lane->calls[lane->open - 2];

		caller->children -= children < caller->children ? children : caller->children;
	}
	return 0;
}

/* Ends a call, with or without a return record. */
static int end_call(struct reading *reading, struct gt_lane *lane, const struct gt_record *record,
		    uint64_t from, uint8_t flags)
{
	uint32_t place = find(lane, record);
	int error = 0;

	if (place == 0) {
		uint64_t start = (int64_t)(record->start - from) > 0 ? record->start : from;

		if (record->flags & GT_RECORD_START_UNKNOWN) {
			if (reading->sink != NULL)
				reading->report->without_start++;
			return 0;
		}
		if (reading->sink == NULL)
			return note_late(reading, lane, record, start);
		if (reading->once && reading->sink->in_any_order) {
			error = enter_at_end(reading, lane, record, start);
			place = lane->open;
		} else if (reading->once) {
			return GT_ENOENT;
		}
	}
	if (place == 0) {
		/* The first pass noted the call, but another one has its place. */
		reading->report->without_start++;
		return 0;
	}
	while (error == 0 && lane->open > place)
		error = leave(reading, lane, record->clock, GT_STACK_NO_RETURN);
	if (error != 0)
		return error;
	/* After a gap it is unknown whether the open call is this one. */
	if (record->flags & GT_RECORD_START_UNKNOWN && !(flags & GT_STACK_OPEN))
		flags |= GT_STACK_NO_RETURN;
	if (record->flags & GT_RECORD_CHILDREN_UNKNOWN)
		flags |= GT_STACK_SELF_UPPER;
	if (record->kind == GT_RECORD_RETURN && record->flags & GT_RECORD_VALUES) {
		char *result = values_of(reading, lane, record);

		error = leave_with(reading, lane, record->clock, flags, result);
		free(result);
		return error;
	}
	return leave(reading, lane, record->clock, flags);
}

/* An event with fields becomes a mark with its text. */
static int event(struct reading *reading, struct gt_lane *lane, const struct gt_record *record)
{
	struct gt_target *target = reading->target;
	char text[GT_EVENT_TEXT_MAX + 512];
	struct gt_event_format format;
	struct gt_record mark = *record;

	if (reading->sink == NULL || reading->sink->moment == NULL ||
	    gt_target_event(target, (uint32_t)record->value, &format) != 0)
		return 0;
	mark.text = text;
	mark.text_bytes =
		(uint32_t)(gt_event_put(&format, record, true, text, sizeof(text)) - text);
	return give_moment(reading, lane, GT_MOMENT_MARK, &mark, &format, record);
}

/* Enters the calls of the first pass that began before `clock`. */
static int enter_late(struct reading *reading, uint64_t clock)
{
	int error = 0;

	while (reading->sink != NULL && error == 0 && reading->late_next < reading->late_count &&
	       (int64_t)(reading->late[reading->late_next].start - clock) <= 0) {
		const struct late_call *late = &reading->late[reading->late_next++];
		struct gt_lane *lane = reading->lanes[late->lane];

		error = tell_lane(reading, lane, late->start);
		/* Deeper calls have ended: their ends were lost. */
		while (error == 0 && lane->open > 0 &&
		       lane->calls[lane->open - 1].depth >= late->depth)
			error = leave(reading, lane, late->start, GT_STACK_NO_RETURN);
		if (error == 0)
			error = enter(reading, lane, late, GT_STACK_NO_ENTRY, NULL);
	}
	return error;
}

static int take(struct reading *reading, struct gt_source *source, uint64_t from)
{
	const struct gt_record *record = &source->record;
	struct gt_lane *lane;
	int error;

	switch (record->kind) {
	case GT_RECORD_ENTRY:
	case GT_RECORD_RETURN:
	case GT_RECORD_UNWOUND:
	case GT_RECORD_OPEN:
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
	case GT_RECORD_MARKER:
	case GT_RECORD_EVENT:
	case GT_RECORD_LOST:
	case GT_RECORD_GAP:
		break;
	default:
		return 0;
	}
	if ((int64_t)(record->clock - reading->newest) > 0 || reading->newest == 0)
		reading->newest = record->clock;
	if (reading->late_next < reading->late_count) {
		error = enter_late(reading, record->clock);
		if (error != 0)
			return error;
	}
	lane = lane_of(reading, source);
	error = lane != NULL ? tell_lane(reading, lane, record->clock) : GT_ENOMEM;
	if (error != 0)
		return error;
	switch (record->kind) {
	case GT_RECORD_ENTRY: {
		struct late_call call = { record->clock, lane->number, record->depth,
					  record->function, record->cpu };

		/* Ends the calls at this depth and deeper that have no end record. */
		while (error == 0 && lane->open > 0 &&
		       lane->calls[lane->open - 1].depth >= record->depth)
			error = leave(reading, lane, record->clock, GT_STACK_NO_RETURN);
		return error == 0 ? enter(reading, lane, &call, 0, values_of(reading, lane, record))
				  : error;
	}
	case GT_RECORD_RETURN:
		return end_call(reading, lane, record, from, 0);
	case GT_RECORD_UNWOUND:
		return record->function ? end_call(reading, lane, record, from, GT_STACK_NO_RETURN)
					: 0;
	case GT_RECORD_OPEN:
		return record->function ? end_call(reading, lane, record, from, GT_STACK_OPEN) : 0;
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
		if (reading->sink != NULL)
			reading->report->entries_only++;
		return moment(reading, lane, GT_MOMENT_CALL, record);
	case GT_RECORD_MARKER:
		return record->flags & GT_RECORD_RAW
			       ? 0
			       : moment(reading, lane, GT_MOMENT_MARK, record);
	case GT_RECORD_EVENT:
		return event(reading, lane, record);
	case GT_RECORD_GAP:
		if (reading->sink != NULL)
			reading->report->gaps++;
		return moment(reading, lane, GT_MOMENT_LOST, record);
	default:
		if (reading->sink != NULL)
			error = add_told(reading, source->index, record->value ? record->value : 1);
		return error == 0 ? moment(reading, lane, GT_MOMENT_LOST, record) : error;
	}
}

/* Tells of the calls that writers lost behind their last records, and of what was lost of writers without any. */
static int tell_rest(struct reading *reading, const struct gt_filter *filter)
{
	struct gt_target *target = reading->target;
	uint32_t count = target->ring->writer_count(target);
	struct gt_lane **first = calloc(count + 1u, sizeof(struct gt_lane *)); /* of each writer */
	int error = first != NULL ? 0 : GT_ENOMEM;

	for (uint32_t i = reading->lane_count; i-- > 0 && error == 0;) {
		uint32_t writer = ((struct keyed_lane *)reading->lanes[i])->writer;

		if (writer < count)
			first[writer] = reading->lanes[i];
	}
	for (uint32_t i = 0; i < count && error == 0; i++) {
		struct gt_writer writer;
		uint64_t lost;

		if (target->ring->writer(target, i, &writer) != 0 ||
		    (filter != NULL && filter->tid && writer.tid != filter->tid))
			continue;
		lost = graftrace_lost_calls(writer.lost);
		if (lost > told_of(reading, i))
			error = tell_lost(reading, first[i], i,
					  first[i] != NULL ? first[i]->last : 0,
					  lost - told_of(reading, i));
	}
	free(first);
	return error;
}

static int pass(struct reading *reading, struct gt_filter *filter)
{
	struct gt_merge *merge = malloc(sizeof(*merge));
	struct gt_source *source;
	uint64_t from = filter != NULL && filter->from_ns
				? gt_clock_tsc(&reading->target->clock, filter->from_ns)
				: 1;
	int result;

	if (merge == NULL)
		return GT_ENOMEM;
	result = gt_merge_init(merge, reading->target, &gt_host_memory, GT_MERGE_SNAPSHOT, filter);
	if (result < 0) {
		free(merge);
		return result;
	}
	merge->tell_open = true;
	reading->newest = 0;
	reading->last_source = NULL;
	reading->whole = filter == NULL || (filter->from_ns == 0 && filter->to_ns == 0);
	while ((result = gt_merge_next_fast(merge, &source)) > 0) {
		result = take(reading, source, from);
		if (result < 0)
			break;
	}
	if (reading->sink != NULL)
		reading->report->left_out_threads = merge->out_of_memory;
	gt_merge_fini(merge);
	free(merge);
	if (result == 0)
		result = enter_late(reading, reading->newest);
	if (result == 0 && reading->whole && reading->sink != NULL)
		result = tell_rest(reading, filter);
	for (uint32_t i = 0; i < reading->lane_count; i++)
		while (result == 0 && reading->lanes[i]->open > 0)
			result = leave(reading, reading->lanes[i], reading->newest, GT_STACK_OPEN);
	return result;
}

static int by_start(const void *left, const void *right)
{
	const struct late_call *a = left, *b = right;

	if (a->start != b->start)
		return (int64_t)(a->start - b->start) < 0 ? -1 : 1;
	if (a->lane != b->lane)
		return a->lane < b->lane ? -1 : 1;
	return (a->depth > b->depth) - (a->depth < b->depth);
}

static void forget(struct reading *reading)
{
	for (uint32_t i = 0; i < reading->lane_count; i++) {
		for (uint32_t k = 0; k < reading->lanes[i]->open; k++)
			free(reading->lanes[i]->calls[k].arguments);
		free(reading->lanes[i]->calls);
		free(reading->lanes[i]);
	}
	free(reading->lanes);
	free(reading->table);
	free(reading->late);
	free(reading->told_lost);
}

/* Begins with nothing read. GT_ENOMEM. */
static int begin(struct reading *reading, struct gt_target *target, struct gt_stack_report *report)
{
	memset(report, 0, sizeof(*report));
	*reading = (struct reading){ .target = target, .report = report };
	return grow_table(reading);
}

static int read_twice(struct reading *reading, struct gt_filter *filter,
		      const struct gt_stack_sink *sink)
{
	int error = pass(reading, filter);

	if (error != 0)
		return error;
	if (reading->late_count > 0)
		qsort(reading->late, reading->late_count, sizeof(*reading->late), by_start);
	for (uint32_t i = 0; i < reading->lane_count; i++) {
		reading->lanes[i]->last = 0;
		reading->lanes[i]->open = 0;
	}
	reading->sink = sink;
	reading->ids = 0;
	return pass(reading, filter);
}

int gt_stacks_read(struct gt_target *target, struct gt_filter *filter,
		   const struct gt_stack_sink *sink, struct gt_stack_report *report)
{
	struct reading reading;
	int error = begin(&reading, target, report);

	if (error == 0 && (sink->again != NULL || sink->in_any_order)) {
		reading.sink = sink;
		reading.once = true;
		error = pass(&reading, filter);
		if (error == GT_ENOENT && sink->again != NULL) {
			forget(&reading);
			error = begin(&reading, target, report);
			if (error == 0)
				error = sink->again(sink->user);
			if (error == 0)
				error = read_twice(&reading, filter, sink);
		}
	} else if (error == 0) {
		error = read_twice(&reading, filter, sink);
	}
	report->lanes = reading.lane_count;
	forget(&reading);
	return error;
}
