/* SPDX-License-Identifier: MIT */
/*
 * The records of all writers of a target as one sequence in order of their clocks, whatever the
 * number of writers; new ones may come while it is read. One sub-buffer and one decoder are held for
 * each writer that is in the middle of its life at that point of time: writers that have not begun
 * yet, or have come to their end, cost a few words.
 *
 * Three ways to read:
 *	snapshot   what is there at the beginning, not consumed; ends
 *	follow     not consumed, goes on as long as writers write: GT_EAGAIN when there is nothing
 *	consume    follow, and each closed sub-buffer is consumed once its records were given
 *
 * Where the target knows when threads changed CPUs, each record has the CPU that it was made on.
 *
 * What cannot be read (overwritten meanwhile, damaged) is left out: a GAP record stands for it.
 * Not thread-safe; the target's calls come from the caller's thread.
 */
#ifndef GT_CORE_TRACE_MERGE_H
#define GT_CORE_TRACE_MERGE_H

#include "core/trace/decode.h"
#include "core/trace/filter.h"
#include "core/trace/memory.h"
#include "core/trace/off_cpu.h"
#include "core/trace/target.h"

enum gt_merge_mode {
	GT_MERGE_SNAPSHOT = 0,
	GT_MERGE_FOLLOW = 1,
	GT_MERGE_CONSUME = 2,
};

enum gt_source_state {
	GT_SOURCE_UNOPENED = 0, /* in the heap by its writer's start */
	GT_SOURCE_READY = 1,	/* in the heap by `record` */
	GT_SOURCE_WAITING = 2,	/* nothing there now */
	GT_SOURCE_ENDED = 3,	/* and its memory is given back */
};

/* How far a writer was given to a consuming reader: all sub-buffers before `sequence`, and of that
 * one the first `words`. A sub-buffer that is being written cannot be consumed: this says what of
 * it was. */
struct gt_merge_given {
	uint64_t sequence;
	uint64_t words;
};

/* One writer in the merge. Readers look at record, generation, pid, tid, comm. */
struct gt_source {
	uint64_t key;		 /* what the heap orders by */
	struct gt_record record; /* the next one in order */
	struct gt_record ahead;	 /* the one behind it, if has_ahead */
	bool has_ahead;
	uint8_t state;	   /* enum gt_source_state */
	bool fed;	   /* `buffer` holds sub-buffer fed_sequence */
	bool named;	   /* a kernel's: tid and comm are the running thread's */
	bool in_interrupt; /* the reader's own: of a kernel's CPU */
	uint32_t around;   /* … and calls that are open in what was interrupted */
	bool growing;	   /* … which was being written when it was copied */
	bool ending;	   /* its last records are out; what comes now are its open calls */
	uint32_t index;
	uint32_t generation;
	uint32_t pid;
	uint32_t tid;
	char comm[16];
	uint64_t next_sequence;	  /* to be fed */
	uint64_t limit;		  /* snapshot: one past the last to be fed */
	uint64_t record_sequence; /* that `record` came from */
	uint64_t fed_sequence;
	uint64_t consumed;		  /* below this all is consumed */
	uint64_t held;			  /* 1 + sequence of the last one that was held */
	uint64_t overrun;		  /* the writer's, when it was fed last */
	uint64_t given_of_lost;		  /* records that were given and count as overrun */
	struct gt_merge_given before;	  /* the place before `record` was decoded */
	struct gt_off_cpu_follow off_cpu; /* of a program's thread */
	uint64_t switched; /* the reader's own: clock of the last CONTEXT record it was given */
	/* The reader's own, func-no-repeats: the last call, how often it came again, and when. */
	uint64_t last_caller, repeated_at;
	uint32_t last_function, repeats;
	struct gt_decode decode;
	struct graftrace_sub_buffer *buffer;
};

/* The same of one CPU's records alone, by the writers' index. */
struct gt_merge_cpu_given {
	struct gt_merge_given *given;
	uint32_t count;
};

/* Times in ticks: from … to - 1. */
struct gt_merge_window {
	uint64_t from, to;
};
#define GT_MERGE_WINDOWS 8

struct gt_merge {
	struct gt_target *target;
	struct gt_memory memory;
	enum gt_merge_mode mode;
	struct gt_filter *filter;	    /* NULL: none */
	const struct gt_merge_given *given; /* by the writers' index; NULL: nothing was */
	uint32_t given_count;
	const struct gt_merge_cpu_given *cpus; /* by CPU; NULL: nothing was */
	uint32_t cpu_count;
	bool finished;	/* follow: nothing more will come */
	bool tell_open; /* the caller may set it after init: OPEN records end a writer's */
	bool no_sleep;	/* the same: times off the CPU count as a callee's (`children`) */
	struct gt_off_cpu_threads off_cpu; /* … a kernel's */
	struct gt_source **sources; /* by the writers' index; NULL: not wanted, or no memory */
	uint32_t source_count, source_capacity;
	struct gt_source **heap;
	uint32_t heap_count;
	struct gt_source *current;  /* given out last; not in the heap */
	struct gt_source *switches; /* whose records are context switches; NULL: not wanted */
	uint64_t switch_cursor;	    /* of the target's: the next to be read */
	struct gt_merge_window windows[GT_MERGE_WINDOWS]; /* only switches of these … */
	uint32_t window_count;				  /* … unless there are none */
	bool wants_switches;
	uint64_t switches_given; /* clock of the last one that was given; those before it are
				  * left out */
	struct gt_switch next_switches[32];
	uint32_t switch_at, switch_count; /* of those */
	uint32_t waiting_count;
	/* What was left out or damaged, for the reader's footnotes. */
	uint64_t unreadable;		  /* sub-buffers that were there and could not be read */
	uint64_t damaged, unknown, holes; /* sums of ended writers' decoders */
	uint64_t out_of_memory;		  /* writers left out for lack of memory */
};

/* filter: the caller's, or NULL; its memory stays the caller's. GT_ENOMEM. */
int gt_merge_init(struct gt_merge *merge, struct gt_target *target, const struct gt_memory *memory,
		  enum gt_merge_mode mode, struct gt_filter *filter);

/* Another filter from the next record on, of the same thread and CPUs: the caller's, or NULL. */
void gt_merge_set_filter(struct gt_merge *merge, struct gt_filter *filter);

/*
 * Context switches come among the records, those of the windows (0 of them: all), as SWITCH records
 * of a source of their own: its tid and comm are those of the thread that leaves the CPU, or comes
 * back to it. previous_tid is its number if it leaves, next_tid if it comes back; the other one is
 * 0, not known. state is what it leaves in (GT_STATE_…). Later calls change the windows. GT_ENOMEM.
 */
int gt_merge_add_switches(struct gt_merge *merge, const struct gt_merge_window *windows,
			  uint32_t count);

/* How many switches this merge gives from its beginning on, of those that there are now. */
uint64_t gt_merge_count_switches(const struct gt_merge *merge);

/* Leaves out the switches up to that clock. Before the first gt_merge_next. */
static inline void gt_merge_skip_switches(struct gt_merge *merge, uint64_t clock)
{
	merge->switches_given = clock;
}

/* What a leaving thread does, of Linux's numbers. */
#define GT_STATE_RUNNING   0   /* R: it is on the CPU, or ready */
#define GT_STATE_WAITING   1   /* S: for whatever */
#define GT_STATE_PREEMPTED 256 /* R+ */

/* Follow modes: looks for new writers and for more of those that had nothing. Cheap enough to be
 * called before each batch of records. */
int gt_merge_poll(struct gt_merge *merge);

/* Moves on to the next record in order, and says whose it is: source->record. 0: no record is left
 * (snapshot; or follow after gt_merge_finish), GT_EAGAIN: none is there now, 1: *source is set. */
int gt_merge_next(struct gt_merge *merge, struct gt_source **source);

/* The record behind source->record of the same writer, or NULL: none is there yet. Only while
 * source->record is an ENTRY. */
const struct gt_record *gt_merge_ahead(struct gt_merge *merge, struct gt_source *source);

/* Leaves out the record that gt_merge_ahead told of: it was shown together with this one. */
void gt_merge_skip_ahead(struct gt_merge *merge, struct gt_source *source);

/* The target has ended: what is there is all. */
static inline void gt_merge_finish(struct gt_merge *merge)
{
	merge->finished = true;
}

/* Leaves out what another reader has consumed. Before the first gt_merge_next; `given`, an element
 * a writer, stays the caller's and must stay. */
static inline void gt_merge_skip_given(struct gt_merge *merge, const struct gt_merge_given *given,
				       uint32_t count)
{
	merge->given = given;
	merge->given_count = count;
}

/* The same for what was consumed CPU by CPU. */
static inline void gt_merge_skip_cpus(struct gt_merge *merge, const struct gt_merge_cpu_given *cpus,
				      uint32_t count)
{
	merge->cpus = cpus;
	merge->cpu_count = count;
}

/* How far writer `index` was read by this merge, looked-ahead records included. */
struct gt_merge_given gt_merge_given(const struct gt_merge *merge, uint32_t index);
/* The same without those that were decoded and not given out yet: of a merge that is given up. */
struct gt_merge_given gt_merge_shown(const struct gt_merge *merge, uint32_t index);

void gt_merge_fini(struct gt_merge *merge);

#endif
