/* SPDX-License-Identifier: MIT */
/*
 * The calls of a target as nested stacks: what every viewer wants. A *lane* is one call stack: a
 * thread's own, a coroutine's, a kernel thread's. In each lane calls are entered and left strictly
 * nested, whatever the recording lacks:
 *	- a call whose entry was not recorded (open when the recording began, or left out by
 *	  tracing_thresh) is entered at its right time, if its return says when it began;
 *	- a call that ended without a return (longjmp, an exception, the end of its thread or of the
 *	  recording, lost records) is left when that is first known, and flagged.
 * Entries and leaves come in order of time over all lanes, but for nested signal handlers' clocks,
 * which can run back by a little; within a lane they never do.
 *
 * The target is read once where all entries were recorded and the sink can begin anew, or where order
 * does not matter to it; else twice: the first time finds the calls whose entries were not recorded. A target
 * that is written meanwhile can be read, too; the second reading may then have more records than the first, unless a
 * filter ends at some time before. Memory grows with the lanes and their depths and with the number of calls
 * without a recorded entry, not with the others. One thread at a time.
 */
#ifndef GT_EXPORT_STACKS_H
#define GT_EXPORT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/filter.h"
#include "core/trace/target.h"

enum gt_stack_flags {
	GT_STACK_NO_ENTRY = 1,	 /* its entry was not recorded; the time is right */
	GT_STACK_NO_RETURN = 2,	 /* it ended without a return: the end is when that was seen */
	GT_STACK_OPEN = 4,	 /* still open at the end of the recording (or window) */
	GT_STACK_SELF_UPPER = 8, /* records within it are missing: its own time is an upper bound */
};

/* A call that is open, or just left. Times in ticks of the target's clock. */
struct gt_stack_call {
	uint64_t start;
	uint64_t children;  /* ticks in callees that were left */
	uint64_t id;	    /* from 1, in the order of the entries */
	uint32_t function;  /* the target's number; never 0 */
	uint32_t depth;	    /* as recorded: calls that were open around it */
	uint32_t cpu;	    /* that it was entered on; UINT32_MAX unknown */
	uint8_t flags;	    /* enum gt_stack_flags */
	char *arguments;    /* "a=1, b=0x2"; NULL: not recorded */
	const char *result; /* when it is left: what it returned; NULL: not recorded */
	void *user;	    /* the sink's */
};

struct gt_lane {
	uint32_t number; /* from 0, in the order of their first records */
	uint32_t pid;
	uint32_t tid;
	uint32_t stack; /* of the thread's: 0 its first one, then its coroutines' and others */
	char name[16];	/* of the thread, as it is known last */
	uint64_t last;	/* ticks of the latest entry or leave */
	uint32_t open;	/* calls[0 … open - 1], outermost first */
	uint32_t room;
	struct gt_stack_call *calls;
	void *user; /* the sink's */
};

enum gt_moment_kind {
	GT_MOMENT_MARK, /* trace_marker: text; an event with fields: as text, and itself */
	GT_MOMENT_CALL, /* a call of which only the entry is ever recorded: function */
	GT_MOMENT_LOST, /* value = records lost here, 0: nobody knows how many. Of a whole recording (no
			 * window) also at a lane's beginning, what newer records were written over, and
			 * behind its last record, what the full ring did not take */
};

struct gt_moment {
	enum gt_moment_kind kind;
	uint64_t clock;
	uint64_t value;
	uint32_t function;
	uint32_t cpu;
	const char *text; /* not NUL-terminated */
	uint32_t text_bytes;
	/* Of an event with fields, for gt_event_value(); else NULL. */
	const struct gt_event_format *event;
	const struct gt_record *record;
};

/* Takes the calls. Each function may be NULL; a negative result of one ends the reading, and is
 * returned by gt_stacks_read. */
struct gt_stack_sink {
	void *user;
	/* Throws away all that the sink was given: the reading begins anew, since it has met a call whose
	 * entry was not recorded. NULL: the sink cannot, so the target is read twice from the first. */
	int (*again)(void *user);
	/* True: the sink takes calls in any order, and uses neither `open`, `id` nor `children` of calls. Then a
	 * call whose entry was not recorded is entered only when it ends, and the target is read once. Calls are
	 * nested even so, if no records in the middle are missing. */
	bool in_any_order;
	/* A lane's first event follows. */
	int (*lane)(void *user, struct gt_lane *lane);
	/* `call` is the lane's innermost from now on. */
	int (*enter)(void *user, struct gt_lane *lane, struct gt_stack_call *call);
	/* `call` is no longer among the lane's calls; its caller is the innermost, if any. */
	int (*leave)(void *user, struct gt_lane *lane, struct gt_stack_call *call, uint64_t end);
	int (*moment)(void *user, struct gt_lane *lane, const struct gt_moment *moment);
};

struct gt_stack_report {
	uint64_t calls;		   /* left with a return */
	uint64_t without_return;   /* flagged NO_RETURN or OPEN */
	uint64_t without_start;	   /* returns of calls whose start nobody knows: left out */
	uint64_t entries_only;	   /* GT_MOMENT_CALL */
	uint64_t marks;		   /* GT_MOMENT_MARK, that the sink was given */
	uint64_t lost;		   /* records, those of threads without any record included */
	uint64_t gaps;		   /* places where sub-buffers are missing */
	uint64_t left_out_threads; /* for lack of memory */
	uint32_t lanes;
};

/* Reads the target and calls the sink. filter: NULL: none; it stays the caller's. *report is filled in any case.
 * GT_ENOMEM, or the sink's error. */
int gt_stacks_read(struct gt_target *target, struct gt_filter *filter,
		   const struct gt_stack_sink *sink, struct gt_stack_report *report);

#endif
