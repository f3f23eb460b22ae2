/* SPDX-License-Identifier: MIT */
/*
 * Merges the records of all writers of a target into one sequence in order of their clocks. Writers may
 * be added while it is read. Memory: one sub-buffer and one decoder for each writer that has begun and
 * not ended at the present point of the sequence; a few words for each other writer.
 *
 * Three ways to read:
 *	snapshot   the records that exist at the beginning; consumes nothing; ends. Of a target that is
 *		   being written it is one cut: if a record is there, so are all that were made before
 *		   it, by whatever writer, and are not overwritten
 *	follow     also those written later; consumes nothing; GT_EAGAIN when there are none now
 *	consume    as follow, and consumes each closed sub-buffer once its records were given
 *
 * If the target knows when threads changed CPUs, each record has the CPU that it was made on.
 *
 * A GAP record stands for sub-buffers that cannot be read because they were overwritten meanwhile or
 * are damaged.
 * One thread at a time, without locks. gt_merge_init(), _poll(), _next(), _ahead() and _count_switches() call the
 * target, from the caller's thread, which must hold no lock that the target takes; the others do not call it. Where
 * memory is short while reading, a writer is left out and counted (out_of_memory), or there are no context switches; it
 * is no error.
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
	GT_SOURCE_WAITING = 2,	/* it has no record now */
	GT_SOURCE_ENDED = 3,	/* it has none any more, and its memory is freed */
};

/* How far a reader has got in a writer: all sub-buffers before `sequence`, and the first `words` of that
 * one. (An open sub-buffer cannot be consumed, so this tells which part of it was given.) */
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
	bool in_interrupt; /* for the text: a kernel's CPU is in an interrupt */
	uint32_t around;   /* for the text: open calls of what was interrupted */
	bool growing;	   /* `buffer` was open when it was copied */
	bool ending;	   /* all its records were given; OPEN records of its open calls follow */
	uint32_t index;
	uint32_t generation;
	uint32_t pid;
	uint32_t tid;
	char comm[16];
	uint64_t next_sequence;	  /* the next sub-buffer to feed */
	uint64_t limit;		  /* snapshot: one past the last to feed */
	uint64_t closed;	  /* … one past the last that was begun before `cut` was read */
	uint64_t record_sequence; /* the sub-buffer of `record` */
	uint64_t fed_sequence;
	uint64_t consumed;		  /* all sub-buffers before this one are consumed */
	uint64_t held;			  /* 1 + sequence of the last one that was held */
	uint64_t overrun;		  /* of the writer, when it was last fed */
	uint64_t given_of_lost;		  /* given records that the writer counts as overrun */
	struct gt_merge_given before;	  /* the place before `record` was decoded */
	struct gt_off_cpu_follow off_cpu; /* of a program's thread */
	uint64_t switched;		  /* for the text: clock of the last CONTEXT record */
	/* For the text, func-no-repeats: the last call, how often it was repeated, and when. */
	uint64_t last_caller, repeated_at;
	uint32_t last_function, repeats;
	struct gt_decode decode;
	struct graftrace_sub_buffer *buffer;
};

/* Positions of a reader of one CPU's records, by the writers' index. */
struct gt_merge_cpu_given {
	struct gt_merge_given *given;
	uint32_t count;
};

/* A window of time: clocks from <= t < to. */
struct gt_merge_window {
	uint64_t from, to;
};
#define GT_MERGE_WINDOWS 8

struct gt_merge {
	struct gt_target *target;
	struct gt_memory memory;
	enum gt_merge_mode mode;
	uint64_t cut;		  /* records with later clocks are left out; UINT64_MAX: none is */
	struct gt_filter *filter; /* NULL: none */
	/* What other readers have consumed, which is left out; NULL: nothing. */
	const struct gt_merge_given *given; /* by the writers' index */
	uint32_t given_count;
	const struct gt_merge_cpu_given *cpus; /* by CPU */
	uint32_t cpu_count;
	bool finished; /* follow: writers write no more */
	/* The caller may set these two after init. */
	bool tell_open; /* a writer's records end with an OPEN record for each open call */
	bool no_sleep;	/* time off the CPU is added to `children` of a call, as a callee's is */
	struct gt_off_cpu_threads off_cpu; /* for no_sleep, of a kernel's threads */
	struct gt_source **sources; /* by the writers' index; NULL: filtered out, or no memory */
	uint32_t source_count, source_capacity;
	struct gt_source **heap;
	uint32_t heap_count;
	struct gt_source *current;  /* of the last record that was given; not in the heap */
	struct gt_source *straight; /* the same, if merge_fast.h may go on with it; else NULL */
	struct gt_source *switches; /* its records are context switches; NULL: not wanted */
	uint64_t switch_cursor;	    /* index of the target's next switch */
	struct gt_merge_window windows[GT_MERGE_WINDOWS]; /* only switches of these; */
	uint32_t window_count;				  /* 0: all switches */
	bool wants_switches;
	uint64_t switches_given; /* clock of the last switch given; earlier ones are left out */
	struct gt_switch next_switches[32];
	uint32_t switch_at, switch_count; /* position and number in next_switches */
	uint32_t waiting_count;
	/* Counts of what was left out or damaged, for the reader's footnotes. */
	uint64_t unreadable;		  /* sub-buffers that could not be read */
	uint64_t damaged, unknown, holes; /* sums over the decoders of ended writers */
	uint64_t out_of_memory;		  /* writers left out for lack of memory */
};

/* Starts a merge. target: must stay valid until gt_merge_fini. memory: copied. filter: NULL, or it must stay valid
 * until gt_merge_fini. GT_ENOMEM: there is nothing to be ended by gt_merge_fini. */
int gt_merge_init(struct gt_merge *merge, struct gt_target *target, const struct gt_memory *memory,
		  enum gt_merge_mode mode, struct gt_filter *filter);

/* Replaces the filter. The new one has the same thread and CPUs; it may be NULL, else it must stay valid. Of each
 * writer one record, or two, may have been decoded before: the old filter has chosen them, and they are given. */
void gt_merge_set_filter(struct gt_merge *merge, struct gt_filter *filter);

/*
 * Adds the context switches in these windows (count 0: all) to the sequence, as SWITCH records of a
 * source of their own, whose tid and comm are those of the thread that leaves the CPU or comes back to
 * it. Of a thread that leaves, previous_tid is its number and state its state (GT_STATE_…); of one that
 * comes back, next_tid is. The other number is 0: unknown. Later calls replace the windows; those beyond
 * GT_MERGE_WINDOWS are left out. The windows are copied. Of a target that knows no switches there are none.
 * GT_ENOMEM: nothing has changed.
 */
int gt_merge_add_switches(struct gt_merge *merge, const struct gt_merge_window *windows,
			  uint32_t count);

/* How many of the present switches this merge has yet to give: those that were given or skipped do not
 * count, but for the one that the last gt_merge_next gave, which still does. 0 if no switches were added. */
uint64_t gt_merge_count_switches(const struct gt_merge *merge);

/* Leaves out the switches up to that clock (in the records' unit), itself included. Call it before the first
 * gt_merge_next. */
static inline void gt_merge_skip_switches(struct gt_merge *merge, uint64_t clock)
{
	merge->switches_given = clock;
}

/* States of a thread that leaves the CPU, with Linux's numbers. */
#define GT_STATE_RUNNING   0   /* R: it is on the CPU, or ready */
#define GT_STATE_WAITING   1   /* S: for whatever */
#define GT_STATE_PREEMPTED 256 /* R+ */

/* Follow and consume: looks for new writers, and for new records of writers that had none. Cheap enough
 * to be called before each batch of records. Of a snapshot it does nothing. 0, or GT_ENOMEM: the new writers that
 * were not added come with the next call. */
int gt_merge_poll(struct gt_merge *merge);

/* Moves on to the next record in order. 1: it is (*source)->record, valid until the next call; 0: there
 * is no more (snapshot, or after gt_merge_finish); GT_EAGAIN: there is none now. Otherwise *source is not set. */
int gt_merge_next(struct gt_merge *merge, struct gt_source **source);

/* The record after source->record of the same writer, valid until the next gt_merge_next, or NULL: there is none
 * yet. Only while source->record is an ENTRY. */
const struct gt_record *gt_merge_ahead(struct gt_merge *merge, struct gt_source *source);

/* Leaves out the record that gt_merge_ahead returned: it was shown together with this one. */
void gt_merge_skip_ahead(struct gt_source *source);

/* Follow and consume: tells that writers write no more. Call gt_merge_poll() afterwards: gt_merge_next() alone
 * does not look again at writers that had no record. */
static inline void gt_merge_finish(struct gt_merge *merge)
{
	merge->finished = true;
}

/* Leaves out the records that another reader has consumed. `given` has `count` elements, by the writers' index, and
 * must stay valid until gt_merge_fini; of other writers nothing is left out. Call it before the first
 * gt_merge_next. */
static inline void gt_merge_skip_given(struct gt_merge *merge, const struct gt_merge_given *given,
				       uint32_t count)
{
	merge->given = given;
	merge->given_count = count;
}

/* The same for records that were consumed CPU by CPU: an element for each CPU. */
static inline void gt_merge_skip_cpus(struct gt_merge *merge, const struct gt_merge_cpu_given *cpus,
				      uint32_t count)
{
	merge->cpus = cpus;
	merge->cpu_count = count;
}

/* How far this merge has read writer `index`, the record of gt_merge_ahead included. What gt_merge_skip_given()
 * leaves out of the writer counts as read from the beginning; of a writer that the merge does not have it is that
 * alone, or zero. */
struct gt_merge_given gt_merge_given(const struct gt_merge *merge, uint32_t index);
/* The same without records that were decoded and not given yet: for a merge that is ended early. */
struct gt_merge_given gt_merge_shown(const struct gt_merge *merge, uint32_t index);

/* Frees all of the merge's memory; the struct itself stays the caller's. A second call does nothing. */
void gt_merge_fini(struct gt_merge *merge);

#endif
