/* SPDX-License-Identifier: MIT */
/*
 * Making the table. Each writer is decoded alone: no order between writers is needed. The loop
 * touches for each record the frame that the decoder just touched, one slot of a hash table from
 * function numbers to rows, and the row.
 *
 * Recursion: open[row] counts, for the running context, how many calls of a row are open; a call
 * that finds one open is marked in its frame and adds nothing to the row's total.
 */
#include "export/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/decode_fast.h"
#include "core/trace/glob.h"
#include "core/trace/merge.h"
#include "core/trace/message.h"
#include "core/trace/off_cpu.h"
#include "port/host/memory.h"

#define MARK_COUNTED   1 /* open[row] knows of the frame */
#define MARK_RECURSIVE 2 /* a call of the same row was open around it */
#define MISSING_MAX    100000
#define PAGE	       4096

/* Times in ticks. */
struct row {
	uint64_t returned;
	uint64_t total;
	uint64_t self;
	uint64_t minimum, maximum;
	uint64_t first; /* duration that the two sums are relative to: keeps them small */
	double sum;
	double squares;
	uint64_t entered;
	uint64_t inherited; /* returns, in a forked child, of its parent's calls */
	uint64_t self_off, total_off;
	uint64_t other; /* entry-only, function tracer, returns without a known entry */
	uint64_t self_upper_bound;
	bool named;   /* the function that callers or callees are asked of */
	uint32_t key; /* function number, writer's index (a kernel's thread: its number), or a
			 function of the object */
};

/* A name that the target does not hold itself. */
struct name {
	struct name *next;
	char text[];
};

struct slot {
	uint32_t function; /* 0: empty */
	uint32_t row;
};

/* A function of a file: processes that have it each have a number of their own for it. */
struct known {
	struct gt_function function; /* its strings are the target's */
	uint32_t row;
};

/* Calls open in one context, by row. */
struct open_calls {
	uint32_t *count;
	uint32_t size;
	uint32_t context;
	bool used;
};

struct collector {
	struct gt_target *target;
	enum gt_report_by by;
	const char *of;		  /* a glob, by caller or callee */
	bool is_by_call;	  /* the row is no matter of the function alone */
	struct gt_decode *decode; /* of the record in work */
	struct gt_decode own;
	struct slot *slots;
	uint32_t slot_bits;
	uint32_t slot_used;
	struct known *known; /* by name, 2^known_bits places; name NULL: empty */
	uint32_t known_bits, known_used;
	struct row *rows;
	uint32_t row_count, row_capacity;
	uint32_t thread_row;
	struct open_calls open[GT_DECODE_CONTEXTS];
	uint32_t place;	  /* in `open`, of the running context */
	uint32_t *counts; /* its counts */
	uint32_t counts_size;
	uint64_t began; /* tsc at which the recording began */
	struct gt_off_cpu_follow off_cpu;
	struct gt_off_cpu_threads off_cpus; /* … of a kernel's threads */
	uint64_t slept;		/* clock of the last record that had a time off the CPU before it */
	uint32_t tid;		/* the writer's thread; a kernel's: the record's */
	uint32_t pid;		/* the writer's process … */
	uint64_t process_began; /* … and when that began; 0 = not asked yet */
	uint64_t unseen;  /* calls since `began` that are counted, though not by their entries */
	uint64_t first;	  /* clock of the writer's first record; 0 = none yet */
	uint64_t covered; /* self times of its calls */
	uint64_t span, outside; /* of all writers whose records are there from the start */
	bool incomplete;	/* records of this writer are missing */
	bool kernel;
	bool out_of_memory;
	uint64_t records;
	uint64_t unreadable, damaged;
	void *buffer;
};

/* ---- rows ---- */

static uint32_t hash(const struct collector *c, uint32_t function)
{
	return (uint32_t)((function * 0x9e3779b97f4a7c15ull) >> (64 - c->slot_bits));
}

static bool grow_slots(struct collector *c)
{
	uint32_t old_size = c->slots ? 1u << c->slot_bits : 0;
	struct slot *old = c->slots;
	c->slot_bits = old ? c->slot_bits + 1 : 12;
	c->slots = calloc(1ull << c->slot_bits, sizeof(*c->slots));
	if (!c->slots) {
		c->slots = old;
		c->slot_bits--;
		return false;
	}
	for (uint32_t i = 0; i < old_size; i++) {
		if (!old[i].function)
			continue;
		uint32_t at = hash(c, old[i].function);
		while (c->slots[at].function)
			at = (at + 1) & ((1u << c->slot_bits) - 1);
		c->slots[at] = old[i];
	}
	free(old);
	return true;
}

static uint32_t new_row(struct collector *c, uint32_t key)
{
	if (c->row_count == c->row_capacity) {
		uint32_t wanted = c->row_capacity ? c->row_capacity * 2 : 1024;
		struct row *rows = realloc(c->rows, wanted * sizeof(*rows));
		if (!rows) {
			c->out_of_memory = true;
			return 0;
		}
		c->rows = rows;
		c->row_capacity = wanted;
	}
	c->rows[c->row_count] = (struct row){ .key = key, .minimum = UINT64_MAX };
	return c->row_count++;
}

static const char *object_of(struct collector *c, uint32_t number)
{
	struct gt_function function = { .object = NULL };
	if (c->target->ops->function(c->target, number, &function) != GT_OK || !function.object)
		return "";
	return function.object;
}

/* Objects are few: they are compared one by one, once for each function. */
static uint32_t object_row(struct collector *c, uint32_t function)
{
	const char *object = object_of(c, function);
	for (uint32_t row = 0; row < c->row_count; row++)
		if (strcmp(object_of(c, c->rows[row].key), object) == 0)
			return row;
	return new_row(c, function);
}

/* Where a function of that name stands, or would. The same one lies at the same place of a page in
 * each process; another of its name in the same file, a static one, mostly does not. */
static struct known *known_at(const struct collector *c, const struct gt_function *function)
{
	uint32_t mask = (1u << c->known_bits) - 1, at = 2166136261u;
	for (const char *byte = function->name; *byte; byte++)
		at = (at ^ (unsigned char)*byte) * 16777619u;
	for (;; at++) {
		struct known *known = &c->known[at & mask];
		const struct gt_function *other = &known->function;
		if (!other->name ||
		    (strcmp(other->name, function->name) == 0 && other->size == function->size &&
		     (other->address - function->address) % PAGE == 0 &&
		     strcmp(other->object, function->object) == 0))
			return known;
	}
}

static bool grow_known(struct collector *c)
{
	uint32_t old_size = c->known ? 1u << c->known_bits : 0;
	struct known *old = c->known;
	uint32_t bits = old ? c->known_bits + 1 : 12;
	struct known *grown = calloc(1ull << bits, sizeof(*grown));
	if (!grown)
		return false;
	c->known = grown;
	c->known_bits = bits;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i].function.name)
			*known_at(c, &old[i].function) = old[i];
	free(old);
	return true;
}

static uint32_t function_row(struct collector *c, uint32_t number)
{
	struct gt_function function = { .name = NULL };
	if (c->target->ops->function(c->target, number, &function) != GT_OK || !function.name)
		return new_row(c, number);
	if (!function.object)
		function.object = "";
	if (2 * (c->known_used + 1) > (c->known ? 1u << c->known_bits : 0) && !grow_known(c)) {
		c->out_of_memory = true;
		return 0;
	}
	struct known *known = known_at(c, &function);
	if (!known->function.name) {
		known->function = function;
		known->row = new_row(c, number);
		c->known_used++;
		if (c->of && !c->out_of_memory)
			c->rows[known->row].named = gt_glob_match(c->of, function.name);
	}
	return known->row;
}

static __attribute__((noinline)) uint32_t add_function(struct collector *c, uint32_t function)
{
	if (2 * (c->slot_used + 1) > 1u << c->slot_bits && !grow_slots(c)) {
		c->out_of_memory = true;
		return 0;
	}
	uint32_t row =
		c->by == GT_REPORT_OBJECT ? object_row(c, function) : function_row(c, function);
	uint32_t at = hash(c, function);
	while (c->slots[at].function)
		at = (at + 1) & ((1u << c->slot_bits) - 1);
	c->slots[at] = (struct slot){ .function = function, .row = row };
	c->slot_used++;
	return row;
}

/* The row of a function, or of its object. */
static inline uint32_t row_of(struct collector *c, uint32_t function)
{
	uint32_t at = hash(c, function);
	while (c->slots[at].function != function) {
		if (!c->slots[at].function)
			return add_function(c, function);
		at = (at + 1) & ((1u << c->slot_bits) - 1);
	}
	return c->slots[at].row;
}

/* By caller or callee: calls of others are counted in a row that is not shown; those that no
 * recorded call has made, in another one. */
enum { ROW_OTHERS, ROW_OUTERMOST, ROWS_OF_OURS };

/* By thread, by caller or by callee. */
static __attribute__((noinline)) uint32_t row_at_slow(struct collector *c, uint32_t function,
						      uint32_t depth)
{
	if (c->by == GT_REPORT_THREAD)
		return c->thread_row;
	const struct gt_decode_frame *frame = depth ? gt_decode_frame(c->decode, depth - 1) : NULL;
	uint32_t called = row_of(c, function);
	uint32_t caller = frame && frame->function ? row_of(c, frame->function) : ROW_OUTERMOST;

	if (c->out_of_memory)
		return ROW_OTHERS;
	if (c->by == GT_REPORT_CALLER)
		return c->rows[called].named ? caller : ROW_OTHERS;
	return c->rows[caller].named ? called : ROW_OTHERS;
}

/* The row in which a call at that depth counts. */
static inline uint32_t row_at(struct collector *c, uint32_t function, uint32_t depth)
{
	return __builtin_expect(c->is_by_call, 0) ? row_at_slow(c, function, depth)
						  : row_of(c, function);
}

/* ---- recursion ---- */

static __attribute__((noinline)) void grow_counts(struct collector *c)
{
	struct open_calls *open = &c->open[c->place];
	uint32_t *count = realloc(open->count, c->row_capacity * sizeof(*count));
	if (!count) {
		c->out_of_memory = true;
		return;
	}
	memset(count + open->size, 0, (c->row_capacity - open->size) * sizeof(*count));
	open->count = c->counts = count;
	open->size = c->counts_size = c->row_capacity;
}

/* Another context runs, or another one in the same place. */
static void choose_place(struct collector *c, uint32_t place, uint32_t context)
{
	struct open_calls *open = &c->open[place];
	if (!open->used || open->context != context) {
		if (open->count)
			memset(open->count, 0, open->size * sizeof(*open->count));
		open->used = true;
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

/* Frames that a sub-buffer's header told of were entered unseen: they are open all the same. */
static __attribute__((noinline)) void count_unseen(struct collector *c)
{
	struct gt_decode *decode = c->decode;
	uint32_t end = decode->depth - 1; /* the newest is its entry's business */
	uint32_t from = end > GRAFTRACE_OPEN_CALLS ? end - GRAFTRACE_OPEN_CALLS : 0;
	for (uint32_t depth = from; depth < end; depth++) {
		struct gt_decode_frame *frame = gt_decode_frame(decode, depth);
		if (frame && !frame->mark)
			frame->mark = count_open(c, row_at(c, frame->function, depth));
	}
}

/* ---- records ---- */

static inline void add_ticks(uint64_t *sum, uint64_t ticks)
{
	/* Damage can state any times: a sum stays at its end rather than begin again. */
	if (__builtin_add_overflow(*sum, ticks, sum))
		*sum = UINT64_MAX;
}

static inline void take_entry(struct collector *c, const struct gt_record *record)
{
	struct gt_decode *decode = c->decode;
	struct gt_decode_frame *frame = gt_decode_frame(decode, record->depth);
	if (__builtin_expect(!frame, 0))
		return;
	if (record->depth > decode->low &&
	    __builtin_expect(!decode->frames[(record->depth - 1) & decode->mask].mark, 0))
		count_unseen(c);
	uint32_t at = row_at(c, record->function, record->depth);
	frame->mark = count_open(c, at);
	if (__builtin_expect(!c->out_of_memory, 1))
		c->rows[at].entered++;
}

/*
 * A call is counted at its entry. One whose entry this writer's records lack is counted where it
 * ends, if no other writer's records can have the entry: it began before the recording, or records
 * are missing. (Else: a call that another thread made on a coroutine's stack, or a forked child's
 * parent.)
 */
static bool is_counted_here(const struct collector *c, const struct gt_record *record)
{
	return c->incomplete || record->start < c->began;
}

/* When the first writer of a process began; of any process for pid 0. */
static uint64_t first_start(struct gt_target *target, uint32_t pid)
{
	uint64_t first = UINT64_MAX;
	struct gt_writer writer;
	uint32_t count = target->ops->writer_count(target);
	for (uint32_t i = 0; i < count; i++)
		if (target->ops->writer(target, i, &writer) == GT_OK &&
		    (pid == 0 || writer.pid == pid) && writer.start < first)
			first = writer.start;
	return first;
}

static uint64_t process_began(struct collector *c)
{
	if (!c->process_began)
		c->process_began = first_start(c->target, c->pid);
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

/* The thread was off the CPU before this record, in what was its innermost call then. */
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
		function = frame ? frame->function : 0;
	}
	if (!function)
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
	if (__builtin_expect(!row->returned, 0))
		row->first = ticks;
	row->returned++;
	if (__builtin_expect(!(record->flags & GT_RECORD_ENTRY_SEEN), 0))
		count_unseen_return(c, row, record);
	if (!(record->mark & MARK_RECURSIVE)) {
		uint64_t counted = 0;
		/* Entered unseen: its callees have counted as the thread's outermost calls. */
		if (__builtin_expect(!record->mark, 0) && c->by == GT_REPORT_THREAD)
			counted = record->children < ticks ? record->children : ticks;
		add_ticks(&row->total, ticks - counted);
		if (__builtin_expect(record->start < c->slept, 0))
			add_ticks(&row->total_off, gt_target_off_cpu(c->target, c->tid,
								     record->start, record->clock));
	}
	if (ticks > record->children) {
		add_ticks(&row->self, ticks - record->children);
		c->covered += ticks - record->children;
	}
	if (ticks < row->minimum)
		row->minimum = ticks;
	if (ticks > row->maximum)
		row->maximum = ticks;
	double off =
		ticks >= row->first ? (double)(ticks - row->first) : -(double)(row->first - ticks);
	row->sum += off;
	row->squares += off * off;
	if (__builtin_expect(record->flags & GT_RECORD_CHILDREN_UNKNOWN, 0))
		row->self_upper_bound++;
}

static void take_other(struct collector *c, const struct gt_record *record)
{
	uint32_t at;
	switch (record->kind) {
	case GT_RECORD_UNWOUND:
	case GT_RECORD_OPEN:
		if (!record->function)
			break; /* calls of which nothing is known: they began before the recording
				*/
		at = row_at(c, record->function, record->depth);
		if (c->out_of_memory)
			break;
		count_closed(c, at, record->mark);
		if (!(record->flags & GT_RECORD_ENTRY_SEEN) && is_counted_here(c, record)) {
			c->rows[at].entered++;
			c->unseen += record->start >= c->began;
		}
		break;
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
		/* the tracer function does not tell who has called */
		at = c->of && record->kind == GT_RECORD_FUNCTION
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

static void take_all(struct collector *c)
{
	struct gt_record record;
	int kind;
	while ((kind = gt_decode_next(c->decode, &record)) != GT_RECORD_NONE) {
		if (__builtin_expect(!c->first, 0))
			c->first = record.clock;
		if (__builtin_expect(record.clock >= c->off_cpu.until, 0))
			take_off_cpu(c, &record,
				     gt_off_cpu_move(&c->off_cpu, c->target, c->tid, record.clock));
		if (kind == GT_RECORD_ENTRY)
			take_entry(c, &record);
		else if (kind == GT_RECORD_RETURN)
			take_return(c, &record);
		else
			take_other(c, &record);
		c->records++;
	}
}

/* What of the writer's time, from its first record to its last, no call has that was seen to begin
 * and to return. (Calls of coroutines can have more than there was.) */
static void add_outside(struct collector *c)
{
	uint64_t span = c->decode->clock - c->first;

	if (c->incomplete || !c->first || c->decode->clock < c->first)
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
	c->first = c->covered = 0;
	c->off_cpu = (struct gt_off_cpu_follow){ 0 };
	c->process_began = 0;
	gt_decode_reset(c->decode);
	for (unsigned i = 0; i < GT_DECODE_CONTEXTS; i++)
		c->open[i].used = false;
	for (uint64_t sequence = writer->first;
	     sequence < writer->next && missing < MISSING_MAX && !c->out_of_memory;) {
		const struct graftrace_sub_buffer *bytes = c->buffer;
		int64_t words = target->ops->sub_buffer(target, index, sequence, c->buffer, &bytes);
		if (words < 0 || bytes->sequence != sequence) {
			c->unreadable += words != GT_ENOENT;
			missing++;
			sequence = gt_target_next_sequence(target, index, sequence + 1);
			continue;
		}
		sequence++;
		if (gt_decode_feed(c->decode, bytes, (uint32_t)words, false, NULL) != GT_OK) {
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

/* Threads go from CPU to CPU in mid-call: the records of all are taken in order, and what is
 * counted for a context stays with its number. The idle threads of all CPUs have one number. */
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
	c->thread_row = new_row(c, tid);
}

static int take_kernel(struct collector *c, bool has_off_cpu)
{
	struct gt_source *source;
	struct gt_merge merge;
	int error = gt_merge_init(&merge, c->target, &gt_host_memory, GT_MERGE_SNAPSHOT, NULL);
	if (error != GT_OK)
		return error;
	c->incomplete = true; /* a ring that is read has no beginning */
	while (gt_merge_next(&merge, &source) > 0 && !c->out_of_memory) {
		const struct gt_record *record = &source->record;
		c->decode = &source->decode;
		choose_context(c, record);
		c->tid = record->tid;
		if (c->by == GT_REPORT_THREAD)
			choose_thread(c, record->tid);
		if (has_off_cpu)
			take_off_cpu(c, record, gt_off_cpu_take(&c->off_cpus, c->target, record));
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
	return GT_OK;
}

/* ---- the table ---- */

static const char *keep(struct gt_report *report, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct name *name = malloc(sizeof(*name) + bytes);
	if (!name)
		return NULL;
	memcpy(name->text, text, bytes);
	name->next = report->names;
	report->names = name;
	return name->text;
}

static bool name_row(struct collector *c, struct gt_report *report, struct gt_report_row *row,
		     uint32_t key)
{
	struct gt_function function = { .name = NULL };
	struct gt_writer writer;
	char text[64];

	row->object = "";
	if (c->of && !key) {
		row->name = "(outermost)";
		return true;
	}
	if (c->by == GT_REPORT_THREAD && c->kernel) {
		char comm[16] = "<...>";
		if (c->target->ops->thread)
			c->target->ops->thread(c->target, key, comm);
		gt_format(text, sizeof(text), "%.16s-%u", comm, key);
		row->name = keep(report, text);
		return row->name != NULL;
	}
	if (c->by == GT_REPORT_THREAD) {
		if (c->target->ops->writer(c->target, key, &writer) != GT_OK)
			memset(&writer, 0, sizeof(writer));
		gt_format(text, sizeof(text), "%.16s-%u", writer.comm, writer.tid);
		row->name = keep(report, text);
		return row->name != NULL;
	}
	if (c->target->ops->function(c->target, key, &function) != GT_OK) {
		gt_format(text, sizeof(text), "function#%u", key);
		row->name = c->by == GT_REPORT_OBJECT ? "" : keep(report, text);
	} else if (c->by == GT_REPORT_OBJECT) {
		row->name = function.object ? function.object : "";
	} else {
		row->name = function.name;
		row->object = function.object ? function.object : "";
	}
	if (row->name && c->by == GT_REPORT_OBJECT && !*row->name)
		row->name = "(unknown)";
	return row->name != NULL;
}

/* Damage can state times that no number of nanoseconds has. */
static uint64_t whole(double ns)
{
	if (!(ns > 0))
		return 0;
	return ns < 18e18 ? (uint64_t)(ns + 0.5) : UINT64_MAX;
}

static void fill_row(const struct gt_clock *clock, const struct row *from, struct gt_report_row *to)
{
	to->calls = from->entered + from->other;
	to->returned = from->returned;
	uint64_t ended = from->returned - from->inherited;
	to->not_returned = from->entered > ended ? from->entered - ended : 0;
	to->self_upper_bound = from->self_upper_bound;
	to->self_off = gt_clock_duration_ns(clock, from->self_off);
	to->total_off = gt_clock_duration_ns(clock, from->total_off);
	if (!from->returned)
		return;
	double count = (double)from->returned;
	double mean_off = from->sum / count;
	double variance = from->squares / count - mean_off * mean_off;
	double ns_per_tick = ldexp((double)clock->mult, -(int)clock->shift);
	to->total = gt_clock_duration_ns(clock, from->total);
	to->self = gt_clock_duration_ns(clock, from->self);
	to->minimum = gt_clock_duration_ns(clock, from->minimum);
	to->maximum = gt_clock_duration_ns(clock, from->maximum);
	to->average = whole(((double)from->first + mean_off) * ns_per_tick);
	to->deviation = variance > 0 ? whole(sqrt(variance) * ns_per_tick) : 0;
}

static int make_rows(struct collector *c, struct gt_report *report)
{
	report->rows = calloc(c->row_count ? c->row_count : 1, sizeof(*report->rows));
	if (!report->rows)
		return GT_ENOMEM;
	for (uint32_t i = c->of ? ROW_OUTERMOST : 0; i < c->row_count; i++) {
		struct gt_report_row *row = &report->rows[report->row_count];
		fill_row(&c->target->clock, &c->rows[i], row);
		if (!row->calls)
			continue; /* a thread that called nothing */
		if (!name_row(c, report, row, c->rows[i].key))
			return GT_ENOMEM;
		report->row_count++;
		report->calls += row->calls;
		report->not_returned += row->not_returned;
		report->untimed += c->rows[i].other;
		report->self_upper_bound += row->self_upper_bound;
	}
	return GT_OK;
}

int gt_report_make(struct gt_target *target, enum gt_report_by by, const char *of,
		   struct gt_report **made, struct gt_message *message)
{
	struct collector *c = calloc(1, sizeof(*c));
	struct gt_report *report = calloc(1, sizeof(*report));
	int error = GT_ENOMEM;

	if (!c || !report)
		goto out;
	c->target = target;
	c->by = report->by = by;
	c->is_by_call = by != GT_REPORT_FUNCTION && by != GT_REPORT_OBJECT;
	c->of = by == GT_REPORT_CALLER || by == GT_REPORT_CALLEE ? of : NULL;
	report->has_off_cpu = gt_target_has_off_cpu(target);
	c->off_cpus.memory = gt_host_memory;
	c->decode = &c->own;
	gt_decode_init(c->decode, &gt_host_memory);
	c->buffer = malloc(target->sub_buffer_bytes);
	if (!c->buffer || !grow_slots(c))
		goto out;
	for (unsigned i = 0; c->of && i < ROWS_OF_OURS; i++)
		new_row(c, 0);
	uint32_t count = target->ops->writer_count(target);
	c->began = first_start(target, 0);
	for (uint32_t i = 0; i < count && !c->out_of_memory; i++) {
		struct gt_writer writer;
		if (target->ops->writer(target, i, &writer) != GT_OK)
			continue;
		for (unsigned cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
			report->lost[cause] += writer.lost[cause];
		report->threads++;
		if (writer.pid == 0 || c->kernel) {
			c->kernel = true;
			continue;
		}
		if (by == GT_REPORT_THREAD)
			c->thread_row = new_row(c, i);
		take_writer(c, i, &writer);
	}
	if (c->kernel && take_kernel(c, report->has_off_cpu) != GT_OK)
		goto out;
	if (c->out_of_memory)
		goto out;
	report->records = c->records;
	report->damaged = c->damaged;
	uint64_t overwritten = report->lost[GRAFTRACE_LOST_OVERRUN_CALLS];
	report->known_by_return = c->unseen < overwritten ? c->unseen : overwritten;
	report->span = gt_clock_duration_ns(&target->clock, c->span);
	report->outside = gt_clock_duration_ns(&target->clock, c->outside);
	report->unreadable = c->unreadable;
	error = make_rows(c, report);
out:
	if (error == GT_ENOMEM)
		gt_message_set(message, "not enough memory for the table");
	if (c) {
		gt_decode_fini(&c->own);
		for (unsigned i = 0; i < GT_DECODE_CONTEXTS; i++)
			free(c->open[i].count);
		free(c->slots);
		free(c->known);
		free(c->rows);
		free(c->buffer);
		free(c);
	}
	if (error != GT_OK) {
		gt_report_destroy(report);
		return error;
	}
	*made = report;
	return GT_OK;
}

void gt_report_destroy(struct gt_report *report)
{
	struct name *name, *next;
	if (!report)
		return;
	for (name = report->names; name; name = next) {
		next = name->next;
		free(name);
	}
	free(report->rows);
	free(report);
}
