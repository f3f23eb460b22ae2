/* SPDX-License-Identifier: MIT */
/*
 * A writer for each task of a Linux kernel. Each has the sub-buffer that is being filled and the
 * calls that are open; a full sub-buffer, or one that the task leaves for another CPU's, goes to
 * the sink.
 *
 * The kernel reads the clock of a call (calltime) a little before it reads that of the entry's
 * record, and tells calltime with the return only. As long as the entry's word is still here, the
 * return puts that clock into it, so that a call has the duration that the kernel measured.
 *
 * An interrupt can come between a call and its record. What it calls is recorded first then: one
 * deeper than the call whose entry is to come, or as deep as the one that has returned already. A
 * place is kept for the entry, and the return is put before the interrupt; the late record then says
 * what they are.
 */
#include "linux/tasks.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST   64u	 /* words of a task's first sub-buffer … */
#define ROOM_MAX     4096u	 /* … and at most */
#define RECORD_MAX   1040u	 /* the most words of one record */
#define WORDS_AROUND 8u		 /* of a record in a sub-buffer of its own */
#define TEXT_MAX     8192u	 /* bytes of an event */
#define DEPTH_MAX    1024u	 /* Linux's limit is 50 */
#define TASKS_MAX    (4u << 20)	 /* PID_MAX_LIMIT */
#define GATHERED_MAX (64u << 20) /* << 20) bytes in all tasks' sub-buffers */
#define NO_WORD	     UINT32_MAX
#define DRIFT	     1000u /* two clocks may drift apart by a thousandth of any time */

_Static_assert(TEXT_MAX / 8 + 4 < RECORD_MAX && RECORD_MAX < ROOM_MAX, "a record fits");

/* An open call. */
struct frame {
	uint64_t clock;	   /* of its entry's word */
	uint64_t floor;	   /* the clock of the word before its entry */
	uint64_t latest;   /* it began at this clock or before */
	uint32_t function; /* 0: unknown */
	uint32_t word;	   /* the entry's index in the sub-buffer, or NO_WORD: written out */
};

/* A call whose return was written before its record came. */
struct late {
	struct frame frame;
	uint32_t depth;
	uint32_t word;	 /* the return's index; NO_WORD: written out */
	uint64_t before; /* clock of the word after it */
};
#define LATE_MAX 4u /* nested interrupts */

struct task {
	struct gt_writer writer;
	uint64_t key;			  /* of the hash table */
	struct graftrace_sub_buffer *sub; /* the one being filled; NULL: none */
	uint32_t room, used;		  /* words */
	struct frame *frames;
	uint32_t depth, frames_room;
	uint32_t low;	     /* readers know the calls from this depth up */
	uint32_t low_before; /* … and if the place that is kept gets its word */
	struct late late[LATE_MAX];
	uint32_t late_count;
	bool has_entries, is_named;
	uint32_t base; /* open calls of the program, above which the kernel's depths begin */
	uint64_t last; /* clock of the last word */
	uint64_t high; /* high half of the clock of the next word */
	struct gt_tasks_rest rest;
};

struct gt_tasks {
	struct gt_tasks_options options;
	struct task **tasks; /* in the order of their numbers */
	uint32_t count, capacity;
	uint32_t *slots; /* hash table of their indexes + 1 */
	uint32_t slot_count;
	struct task *latest; /* found last; tasks stay where they are */
	size_t gathered;     /* bytes */
	int64_t offset;	     /* clock of the records minus that of calls' durations */
	uint64_t learnt;     /* … when that was measured */
	bool has_offset, is_one_clock;
	uint64_t lost_clock; /* of the last lost record */
	struct gt_tasks_totals totals;
};

int gt_tasks_create(const struct gt_tasks_options *options, struct gt_tasks **out)
{
	struct gt_tasks *tasks = calloc(1, sizeof(*tasks));

	*out = tasks;
	if (tasks == NULL)
		return GT_ENOMEM;
	tasks->options = *options;
	if (!tasks->options.first_generation)
		tasks->options.first_generation = 1;
	return 0;
}

/* ---- finding tasks ---- */

static uint32_t *slot_of(const struct gt_tasks *tasks, uint64_t key)
{
	uint32_t mask = tasks->slot_count - 1;
	uint32_t at = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;

	while (tasks->slots[at] && tasks->tasks[tasks->slots[at] - 1]->key != key)
		at = (at + 1) & mask;
	return &tasks->slots[at];
}

static int grow_slots(struct gt_tasks *tasks)
{
	uint32_t count = tasks->slot_count ? tasks->slot_count * 2 : 256;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (slots == NULL)
		return GT_ENOMEM;
	free(tasks->slots);
	tasks->slots = slots;
	tasks->slot_count = count;
	for (uint32_t i = 0; i < tasks->count; i++)
		*slot_of(tasks, tasks->tasks[i]->key) = i + 1;
	return 0;
}

static void set_name(const struct gt_tasks *tasks, struct task *task)
{
	const char *name = task->writer.tid == 0 ? "<idle>" : NULL;

	if (task->is_named)
		return;

	if (name == NULL && tasks->options.name != NULL)
		name = tasks->options.name(tasks->options.data, task->writer.tid);
	if (name != NULL && *name) {
		memset(task->writer.comm, 0, sizeof(task->writer.comm));
		memcpy(task->writer.comm, name, strnlen(name, sizeof(task->writer.comm) - 1));
	}
}

static struct task *add_task(struct gt_tasks *tasks, uint64_t key,
			     const struct gt_tasks_moment *moment)
{
	if (tasks->count >= TASKS_MAX)
		return NULL;
	if (tasks->count == tasks->capacity) {
		uint32_t capacity = tasks->capacity * 2 + 64;
		struct task **bigger = realloc(tasks->tasks, capacity * sizeof(struct task *));
		if (bigger == NULL)
			return NULL;
		tasks->tasks = bigger;
		tasks->capacity = capacity;
	}
	struct task *task = calloc(1, sizeof(*task));
	if (task == NULL)
		return NULL;
	task->key = key;
	task->writer.generation = tasks->options.first_generation + tasks->count;
	task->writer.tid = moment->tid;
	task->writer.pid = moment->tid ? moment->tid : GT_TASKS_IDLE_PROCESS;
	memcpy(task->writer.comm, "<...>", sizeof("<...>"));
	set_name(tasks, task);
	tasks->tasks[tasks->count++] = task;
	return task;
}

static struct task *find_task(struct gt_tasks *tasks, const struct gt_tasks_moment *moment)
{
	uint64_t key = moment->tid ? moment->tid : 1ull << 32 | moment->cpu;

	if (tasks->latest != NULL && tasks->latest->key == key)
		return tasks->latest;
	if (tasks->count * 2 >= tasks->slot_count && grow_slots(tasks) < 0)
		return NULL;
	uint32_t *slot = slot_of(tasks, key);
	struct task *task = *slot ? tasks->tasks[*slot - 1] : add_task(tasks, key, moment);
	if (task == NULL)
		return NULL;
	if (!*slot)
		*slot = tasks->count;
	tasks->latest = task;
	return task;
}

int gt_tasks_introduce(struct gt_tasks *tasks, const struct gt_writer *writer)
{
	struct gt_tasks_moment moment = { .tid = writer->tid };
	struct task *task = find_task(tasks, &moment);

	if (task == NULL)
		return GT_ENOMEM;
	task->writer.pid = writer->pid ? writer->pid : writer->tid;
	memcpy(task->writer.comm, writer->comm, sizeof(task->writer.comm));
	task->is_named = true;
	task->rest.is_introduced = true;
	return 0;
}

struct gt_tasks_rest *gt_tasks_rest(struct gt_tasks *tasks, uint32_t tid)
{
	struct gt_tasks_moment moment = { .tid = tid };
	struct task *task = find_task(tasks, &moment);

	return task != NULL ? &task->rest : NULL;
}

/* ---- sub-buffers ---- */

static uint64_t *words_of(struct task *task)
{
	return graftrace_sub_buffer_words(task->sub);
}

static bool is_pairs(const struct gt_tasks *tasks)
{
	return tasks->options.tracer == GRAFTRACE_TRACER_FUNCTION;
}

static void forget_words(struct task *task)
{
	for (uint32_t i = 0; i < task->depth; i++)
		task->frames[i].word = NO_WORD;
	for (uint32_t i = 0; i < task->late_count; i++)
		task->late[i].word = NO_WORD;
}

/* Gives the sub-buffer to the sink; keeps its memory for the next one. */
static int close_sub_buffer(struct gt_tasks *tasks, struct task *task)
{
	const struct gt_tasks_options *options = &tasks->options;
	int error = 0;

	if (!task->used)
		return 0;
	task->sub->used = task->used;
	task->sub->bytes = (uint32_t)sizeof(*task->sub) + task->used * 8;
	if (task->writer.next == 0)
		error = options->sink->writer(options->sink->data, &task->writer);
	if (error == 0 && options->before != NULL)
		error = options->before(options->data);
	if (error == 0)
		error = options->sink->sub_buffer(options->sink->data, task->sub, task->used);
	tasks->totals.words += task->used;
	task->writer.next++;
	task->used = 0;
	forget_words(task);
	return error;
}

/* Closes all sub-buffers: unfinished ones take too much memory. */
static int close_all(struct gt_tasks *tasks)
{
	int error = 0;

	for (uint32_t i = 0; i < tasks->count && error == 0; i++) {
		struct task *task = tasks->tasks[i];
		error = close_sub_buffer(tasks, task);
		free(task->sub);
		task->sub = NULL;
		task->room = 0;
	}
	tasks->gathered = 0;
	return error;
}

static void list_open_calls(struct task *task)
{
	struct graftrace_sub_buffer *sub = task->sub;
	uint32_t first =
		task->depth > GRAFTRACE_OPEN_CALLS ? task->depth - GRAFTRACE_OPEN_CALLS : 0;

	sub->depth = task->depth;
	sub->open_calls = (uint16_t)(task->depth - first);
	for (uint32_t i = first; i < task->depth; i++)
		sub->open[i - first] = (struct graftrace_open_call){ task->frames[i].function
									     ? task->frames[i].clock
									     : 0,
								     task->frames[i].function, i };
}

static void open_sub_buffer(const struct gt_tasks *tasks, struct task *task,
			    const struct gt_tasks_moment *moment)
{
	struct graftrace_sub_buffer *sub = task->sub;

	memset(sub, 0, sizeof(*sub));
	sub->magic = GRAFTRACE_SUB_BUFFER_MAGIC;
	sub->stream = task->writer.generation - 1;
	sub->generation = task->writer.generation;
	sub->pid = task->writer.pid;
	sub->tid = task->writer.tid;
	sub->cpu = moment->cpu;
	sub->sequence = task->writer.next;
	sub->clock = task->last;
	sub->tracer = (uint16_t)tasks->options.tracer;
	task->high = task->last >> 32;
	list_open_calls(task);
}

/* Enlarges the room for a task's words, which is small for a task that does little. */
static int grow(struct gt_tasks *tasks, struct task *task)
{
	uint32_t room = task->room ? task->room * 2 : ROOM_FIRST;

	struct graftrace_sub_buffer *sub =
		realloc(task->sub, sizeof(*sub) + (size_t)room * sizeof(uint64_t));
	if (sub == NULL)
		return GT_ENOMEM;
	tasks->gathered += (room - task->room) * sizeof(uint64_t);
	task->sub = sub;
	task->room = room;
	return 0;
}

/* Makes room for `words` words and a clock word, in a sub-buffer of the moment's CPU. */
static int reserve(struct gt_tasks *tasks, struct task *task, const struct gt_tasks_moment *moment,
		   uint32_t words)
{
	int error = 0;

	words += 2;
	if (task->used && (task->sub->cpu != moment->cpu || task->used + words > ROOM_MAX))
		error = close_sub_buffer(tasks, task);
	if (error == 0 && tasks->gathered > GATHERED_MAX)
		error = close_all(tasks);
	while (error == 0 && task->room < task->used + words)
		error = grow(tasks, task);
	if (error == 0 && !task->used)
		open_sub_buffer(tasks, task, moment);
	return error;
}

static void put(struct task *task, uint64_t word)
{
	words_of(task)[task->used++] = word;
}

static void put_special(const struct gt_tasks *tasks, struct task *task,
			enum graftrace_special kind, uint32_t argument)
{
	put(task, graftrace_special_word(kind, argument));
	if (is_pairs(tasks))
		put(task, 0);
}

/* Returns the clock for a word: not before the last one's. Writes a clock word if the high half
 * changed. */
static uint64_t advance(const struct gt_tasks *tasks, struct task *task, uint64_t clock)
{
	if (clock < task->last)
		clock = task->last;
	if (clock >> 32 != task->high) {
		task->high = clock >> 32;
		put_special(tasks, task, GRAFTRACE_SPECIAL_CLOCK, (uint32_t)task->high);
	}
	task->last = clock;
	return clock;
}

/* Returns the task of a moment, with room for `words`; NULL: *error. */
static struct task *begin(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
			  uint32_t words, int *error)
{
	struct task *task = find_task(tasks, moment);

	if (task != NULL && !task->writer.start) {
		task->writer.start = moment->clock;
		/* a call that returns now ended a little before its record */
		task->last = moment->clock < tasks->options.slack
				     ? 0
				     : moment->clock - tasks->options.slack;
	}
	*error = task != NULL ? reserve(tasks, task, moment, words) : GT_ENOMEM;
	if (!tasks->totals.first_clock)
		tasks->totals.first_clock = moment->clock;
	if (moment->clock > tasks->totals.last_clock)
		tasks->totals.last_clock = moment->clock;
	return *error == 0 ? task : NULL;
}

/* ---- calls ---- */

/* Sets the number of open calls: for those above no return was seen, for those below no entry. */
static int set_depth(struct task *task, uint32_t depth)
{
	if (depth >= task->frames_room) {
		uint32_t room = depth + 16;
		struct frame *frames = realloc(task->frames, room * sizeof(*frames));
		if (frames == NULL)
			return GT_ENOMEM;
		task->frames = frames;
		task->frames_room = room;
	}
	for (; task->depth < depth; task->depth++)
		task->frames[task->depth] = (struct frame){ .word = NO_WORD };
	task->depth = depth;
	if (task->low > depth)
		task->low = depth;
	return 0;
}

/* The innermost call has returned, but its record comes later: an interrupt has been entered at
 * its depth. */
static void return_early(struct task *task)
{
	const struct frame *frame = &task->frames[--task->depth];

	if (task->late_count == LATE_MAX)
		memmove(task->late, task->late + 1, --task->late_count * sizeof(*task->late));
	task->late[task->late_count++] =
		(struct late){ *frame, task->depth, task->used, task->last };
	put(task, graftrace_word(frame->function, 1, (uint32_t)task->last));
}

/* An interrupt has been entered in a call whose record comes later: reserves a word for its
 * entry. */
static int keep_place(struct task *task, uint64_t clock)
{
	uint32_t word = task->used, depth = task->depth;
	int error = set_depth(task, depth + 1);

	if (error != 0)
		return error;
	task->frames[depth] = (struct frame){ clock, task->last, clock, 0, word };
	task->low_before = task->low;
	task->low = depth + 1;
	put(task, graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0));
	put(task, graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, depth + 1));
	return 0;
}

/* Is a word reserved for this entry? Then it is used. */
static bool take_place(struct task *task, uint32_t function, uint32_t depth, uint64_t clock)
{
	struct frame *frame = depth + 1 == task->depth ? &task->frames[depth] : NULL;

	if (frame == NULL || frame->function != 0 || frame->word == NO_WORD)
		return false;
	frame->function = function;
	frame->latest = clock;
	task->low = task->low_before;
	words_of(task)[frame->word] = graftrace_word(function, 0, (uint32_t)frame->clock);
	words_of(task)[frame->word + 1] = graftrace_special_word(GRAFTRACE_SPECIAL_PAD, 0);
	return true;
}

/* Sets the task's depth to that of a call that is entered. */
static int go_to_depth(struct gt_tasks *tasks, struct task *task, uint32_t depth, uint64_t clock)
{
	bool whole = tasks->lost_clock == 0 || task->depth == 0 ||
		     task->frames[task->depth - 1].clock > tasks->lost_clock;

	if (task->depth == depth)
		return 0;
	if (whole && depth + 1 == task->depth && task->frames[depth].function)
		return_early(task);
	else if (whole && task->depth + 1 == depth && task->has_entries &&
		 clock >> 32 == task->high)
		return keep_place(task, clock);
	else
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, depth));
	bool is_deeper = depth > task->depth;
	int error = set_depth(task, depth);
	if (is_deeper)
		task->low = depth;
	return error;
}

/* For the program's own records: they are in order and have correct depths. */
static int enter_user(struct gt_tasks *tasks, struct task *task,
		      const struct gt_tasks_moment *moment, uint32_t function, uint32_t depth)
{
	uint64_t floor = task->last;
	int error;

	if (task->depth != depth)
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, depth));
	if (task->depth < depth)
		task->low = depth;
	error = set_depth(task, depth + 1);
	if (error != 0)
		return error;
	uint64_t clock = advance(tasks, task, moment->clock);
	task->frames[depth] = (struct frame){ clock, floor, clock, function, task->used };
	task->base = depth + 1;
	put(task, graftrace_word(function, 0, (uint32_t)clock));
	return 0;
}

int gt_tasks_enter(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, uint32_t function,
		   uint32_t depth)
{
	int error;

	if (is_pairs(tasks))
		return gt_tasks_function(tasks, moment, function, 0);
	if (depth >= DEPTH_MAX) {
		tasks->totals.damaged++;
		return 0;
	}
	struct task *task = begin(tasks, moment, 4, &error);
	if (task == NULL)
		return error;
	tasks->totals.calls++;
	if (moment->is_user)
		return enter_user(tasks, task, moment, function, depth);
	depth += task->base;
	task->has_entries = true;
	if (take_place(task, function, depth, moment->clock))
		return 0;
	error = go_to_depth(tasks, task, depth, moment->clock);
	if (error == 0)
		error = set_depth(task, depth + 1);
	if (error != 0)
		return error;
	uint64_t floor = task->last;
	uint64_t clock = advance(tasks, task, moment->clock);
	task->frames[depth] = (struct frame){ clock, floor, clock, function, task->used };
	put(task, graftrace_word(function, 0, (uint32_t)clock));
	for (uint32_t i = 0; i < task->late_count; i++)
		if (task->late[i].word != NO_WORD && task->late[i].word + 1 == task->used - 1)
			task->late[i].before = clock;
	return 0;
}

/* Returns the call's start as the kernel measured it, by the clock of the records. The kernel
 * measures durations by its local clock, whichever clock the records have: the smallest recent
 * difference is the offset. 0: unknown. */
static uint64_t start_of(const struct gt_tasks *tasks, const struct gt_tasks_return *call)
{
	return call->start && tasks->has_offset ? call->start + (uint64_t)tasks->offset : 0;
}

/* Measures the offset at a call without callees: its return is the record after its entry, and
 * none is lost. The machine may have stood still for milliseconds between call and record: a
 * difference beyond the clocks' drift is due to that. */
static void learn_offset(struct gt_tasks *tasks, uint64_t entry, uint64_t start)
{
	int64_t apart = (int64_t)(entry - start);

	if (start == 0 || tasks->is_one_clock)
		return;
	/* modulo 2^64: the clocks of a damaged file are any numbers */
	int64_t more = (int64_t)((uint64_t)apart - (uint64_t)tasks->offset);
	int64_t drift = entry > tasks->learnt ? (int64_t)((entry - tasks->learnt) / DRIFT) : 0;
	if (!tasks->has_offset && apart >= 0 && (uint64_t)apart < tasks->options.slack)
		tasks->is_one_clock = true;
	else if (!tasks->has_offset || more < 0)
		tasks->offset = apart;
	else
		tasks->offset = (int64_t)((uint64_t)tasks->offset +
					  (uint64_t)(more < drift ? more : drift));
	tasks->has_offset = true;
	tasks->learnt = entry;
}

/* Writes that start into the entry's word, if that is still here. */
static uint64_t correct_entry(struct task *task, const struct frame *frame, uint64_t start)
{
	if (start == 0 || start > frame->clock || frame->word == NO_WORD)
		return frame->clock;
	if (start < frame->floor)
		start = frame->floor;
	if (start >> 32 != frame->clock >> 32)
		return frame->clock;
	words_of(task)[frame->word] = graftrace_word(frame->function, 0, (uint32_t)start);
	for (uint32_t i = 0; i < task->late_count; i++)
		if (task->late[i].word != NO_WORD && task->late[i].word + 1 == frame->word)
			task->late[i].before = start;
	return start;
}

/* Returns the call's end, from its start and the kernel's duration: not after its record. */
static uint64_t end_of(const struct gt_tasks *tasks, uint64_t begin, uint64_t duration,
		       uint64_t clock)
{
	uint64_t end = begin + duration;

	return end < begin || end > clock + tasks->options.slack ? clock : end;
}

/* Writes a return whose entry is not that of the innermost open call, or is unknown. */
static int put_long_return(struct gt_tasks *tasks, struct task *task,
			   const struct gt_tasks_moment *moment, const struct gt_tasks_return *call,
			   const struct frame *frame)
{
	uint32_t type = GRAFTRACE_EVENT_LONG_RETURN;
	uint64_t start = frame != NULL ? frame->clock : start_of(tasks, call);

	if (start == 0 || start > moment->clock)
		start = call->duration < moment->clock ? moment->clock - call->duration : 1;
	/* the open call there is an earlier one whose return was lost */
	if (frame == NULL && task->depth > call->depth)
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, call->depth));
	uint64_t clock = advance(tasks, task, end_of(tasks, start, call->duration, moment->clock));
	/* it began after the recording: with tracing_thresh there are no entries */
	if (frame == NULL && start > task->writer.start && !task->has_entries) {
		type = GRAFTRACE_EVENT_LONG_CALL;
		tasks->totals.calls++;
	}
	put(task, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | 3));
	put(task, graftrace_word(call->function, 1, (uint32_t)clock));
	put(task, start);
	put(task, call->depth);
	return set_depth(task, call->depth);
}

/* Only after a loss are clocks compared to match entry and return: two clocks never agree
 * exactly. */
static bool has_lost_since(const struct gt_tasks *tasks, const struct frame *frame)
{
	return frame->clock < tasks->lost_clock;
}

/* Returns the open call that returns, or NULL: its entry was not recorded. */
static const struct frame *frame_of(const struct gt_tasks *tasks, const struct task *task,
				    const struct gt_tasks_return *call)
{
	const struct frame *frame = call->depth < task->depth && call->depth >= task->low
					    ? &task->frames[call->depth]
					    : NULL;

	if (frame == NULL || frame->function != call->function)
		return NULL;
	/* the open one is a later call of the same function: its entry and the other's return
	 * were lost */
	if (has_lost_since(tasks, frame) &&
	    start_of(tasks, call) >
		    frame->latest + (tasks->is_one_clock ? 0 : tasks->options.slack))
		return NULL;
	return frame;
}

/* Is it the record of a call that returned before an interrupt? Then its end is known. */
static bool take_late(const struct gt_tasks *tasks, struct task *task,
		      const struct gt_tasks_return *call)
{
	for (uint32_t i = task->late_count; i-- > 0;) {
		struct late *late = &task->late[i];
		uint64_t start = start_of(tasks, call);

		if (late->depth != call->depth || late->frame.function != call->function ||
		    (start > late->frame.clock && has_lost_since(tasks, &late->frame)))
			continue;
		if (late->word != NO_WORD) {
			uint64_t end = correct_entry(task, &late->frame, start) + call->duration;
			if (end > late->before)
				end = late->before;
			if (end >= late->frame.clock && end >> 32 == late->before >> 32)
				words_of(task)[late->word] =
					graftrace_word(call->function, 1, (uint32_t)end);
		}
		memmove(late, late + 1, (task->late_count - i - 1) * sizeof(*late));
		task->late_count--;
		return true;
	}
	return false;
}

static int leave_user(struct gt_tasks *tasks, struct task *task,
		      const struct gt_tasks_moment *moment, const struct gt_tasks_return *call)
{
	bool is_top = task->depth == call->depth + 1 && call->depth >= task->low &&
		      task->frames[call->depth].function == call->function;
	uint64_t clock;

	task->base = call->depth;
	if (!is_top && task->depth > call->depth + 1)
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, call->depth + 1));
	clock = advance(tasks, task, moment->clock);
	if (!is_top) {
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						 GRAFTRACE_EVENT_LONG_RETURN << 16 | 3));
		put(task, graftrace_word(call->function, 1, (uint32_t)clock));
		put(task, call->start ? call->start : 1);
		put(task, call->depth);
	} else {
		put(task, graftrace_word(call->function, 1, (uint32_t)clock));
	}
	return set_depth(task, call->depth);
}

int gt_tasks_unwind(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, uint32_t depth,
		    bool is_unseen)
{
	int error;
	struct task *task = begin(tasks, moment, 2, &error);

	if (task == NULL)
		return error;
	task->base = depth;
	if (task->depth <= depth || is_pairs(tasks))
		return 0;
	/* they ended at the next word's clock, or at this one */
	advance(tasks, task, moment->clock);
	if (is_unseen)
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_RESUMED, depth));
	else
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_UNWOUND, task->depth - depth));
	return set_depth(task, depth);
}

int gt_tasks_leave(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
		   const struct gt_tasks_return *call)
{
	int error;

	if (is_pairs(tasks))
		return 0;
	if (call->depth >= DEPTH_MAX) {
		tasks->totals.damaged++;
		return 0;
	}
	struct task *task = begin(tasks, moment, 5, &error);
	if (task == NULL)
		return error;
	if (moment->is_user)
		return leave_user(tasks, task, moment, call);
	struct gt_tasks_return below = *call;
	below.depth += task->base;
	call = &below;
	const struct frame *frame = frame_of(tasks, task, call);
	if (frame == NULL && take_late(tasks, task, call))
		return 0;
	if (frame == NULL || task->depth > call->depth + 1)
		return put_long_return(tasks, task, moment, call, frame);
	if (frame->word + 1 == task->used)
		learn_offset(tasks, frame->clock, call->start);
	uint64_t begin_clock = correct_entry(task, frame, start_of(tasks, call));
	uint64_t clock =
		advance(tasks, task, end_of(tasks, begin_clock, call->duration, moment->clock));
	put(task, graftrace_word(call->function, 1, (uint32_t)clock));
	return set_depth(task, call->depth);
}

int gt_tasks_function(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
		      uint32_t function, uint64_t caller)
{
	int error;
	struct task *task = begin(tasks, moment, 2, &error);

	if (task == NULL)
		return error;
	uint64_t clock = advance(tasks, task, moment->clock);
	if (!is_pairs(tasks))
		put(task, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
						 GRAFTRACE_EVENT_ENTRY_ONLY << 16 | 1));
	put(task, graftrace_word(function, 0, (uint32_t)clock));
	if (is_pairs(tasks))
		put(task, caller ? caller : 1);
	tasks->totals.calls++;
	return 0;
}

/* ---- records that are no calls ---- */

int gt_tasks_text(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, const char *text,
		  size_t bytes, bool is_marker)
{
	uint32_t type = is_marker ? GRAFTRACE_EVENT_MARKER : GRAFTRACE_EVENT_TEXT;
	int error;

	if (bytes > TEXT_MAX)
		bytes = TEXT_MAX;
	uint32_t words = 1 + (uint32_t)(bytes + 7) / 8;
	struct task *task = begin(tasks, moment, words + 2, &error);
	if (task == NULL)
		return error;
	put(task, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT, type << 16 | words));
	put(task, moment->clock ? moment->clock : 1);
	uint64_t *to = words_of(task) + task->used;
	memset(to, 0, (words - 1) * sizeof(*to));
	memcpy(to, text, bytes);
	task->used += words - 1;
	if (is_pairs(tasks) && !(words & 1))
		put(task, 0);
	return 0;
}

int gt_tasks_words(struct gt_tasks *tasks, const struct gt_tasks_moment *moment,
		   const struct gt_tasks_words *words)
{
	const size_t count = words->head_count + (words->byte_count + 7) / 8;
	int error;

	if (count > ROOM_MAX - WORDS_AROUND) {
		tasks->totals.damaged++;
		return 0;
	}
	struct task *task = begin(tasks, moment, (uint32_t)count + 2, &error);
	if (task == NULL)
		return error;
	put(task, graftrace_special_word(GRAFTRACE_SPECIAL_EVENT,
					 (uint32_t)words->type << 16 | (uint32_t)count));
	for (uint32_t i = 0; i < words->head_count; i++)
		put(task, words->head[i]);
	uint64_t *to = words_of(task) + task->used;
	const size_t rest = count - words->head_count;
	memset(to, 0, rest * sizeof(*to));
	if (words->byte_count)
		memcpy(to, words->bytes, words->byte_count);
	task->used += (uint32_t)rest;
	if (is_pairs(tasks) && !(count & 1))
		put(task, 0);
	return 0;
}

int gt_tasks_lost(struct gt_tasks *tasks, const struct gt_tasks_moment *moment, uint64_t records)
{
	int error;
	struct task *task = begin(tasks, moment, 2, &error);

	if (task == NULL)
		return error;
	tasks->lost_clock = moment->clock;
	put_special(tasks, task, GRAFTRACE_SPECIAL_LOST,
		    records < UINT32_MAX ? (uint32_t)records : UINT32_MAX);
	tasks->totals.lost += records;
	return 0;
}

int gt_tasks_finish(struct gt_tasks *tasks, struct gt_tasks_totals *totals)
{
	const struct gt_sink *sink = tasks->options.sink;
	int error = close_all(tasks);

	for (uint32_t i = 0; i < tasks->count && error == 0; i++) {
		struct task *task = tasks->tasks[i];
		if (!task->writer.start) /* no record of it */
			continue;
		/* in a text, `last` is not the last clock */
		task->writer.end =
			(task->last > task->writer.start ? task->last : task->writer.start) + 1;
		set_name(tasks, task);
		error = sink->writer(sink->data, &task->writer);
	}
	tasks->totals.tasks = tasks->count;
	*totals = tasks->totals;
	return error;
}

void gt_tasks_destroy(struct gt_tasks *tasks)
{
	if (tasks == NULL)
		return;
	for (uint32_t i = 0; i < tasks->count; i++) {
		free(tasks->tasks[i]->sub);
		free(tasks->tasks[i]->frames);
		free(tasks->tasks[i]);
	}
	free(tasks->tasks);
	free(tasks->slots);
	free(tasks);
}
