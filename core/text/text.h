/* SPDX-License-Identifier: MIT */
/*
 * A trace as ftrace's text: function_graph and function exactly in Linux's layout, as a cursor that
 * fills the caller's buffers and remembers where it stands. The same cursor serves `trace` (a
 * snapshot, not consuming), `trace_pipe` (consuming) and `graftrace show`.
 *
 * Layout: kernel/trace/trace_functions_graph.c and trace_output.c of Linux 6.1. Ours are the line
 * "CPU:1 [LOST 12 EVENTS]" in snapshots too, and these comments, in the place of a function:
 *	unwound 2 calls: c ...               ended by longjmp or an exception, c the innermost
 *	3 calls ended unseen: c ...          while nothing was recorded
 *	f() entered, return not recorded
 *	stack 2                              from here on the thread's calls are on another stack
 * In sched_switch's lines what is not known has a stand-in: the other thread is `<...>` with number
 * 0, priorities are 120, and prev_state is R+ (preempted) or S (waiting, for whatever).
 * A call that is still open at the end is an entry without a return. Indentation stops growing at
 * GT_TEXT_DEPTH_MAX calls, names at GT_TEXT_NAME_MAX bytes; control characters become '?'.
 */
#ifndef GT_CORE_TEXT_TEXT_H
#define GT_CORE_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/text/options.h"
#include <graftrace/latency.h>
#include "core/trace/merge.h"

#define GT_TEXT_DEPTH_MAX 500
#define GT_TEXT_NAME_MAX  2000
#define GT_TEXT_STACK_MAX 32   /* calls of a stack trace, with names of … */
#define GT_TEXT_SHORT_MAX 120  /* bytes at most */
#define GT_TEXT_STEP_MAX  8192 /* what one step can write */
#define GT_TEXT_NOTE_MAX  200
#define GT_TEXT_CPUS	  256
#define GT_TEXT_NAMES	  1024

/* A worst case; worst.number 0: there was none yet. */
struct gt_text_latency {
	struct graftrace_latency worst;
	uint64_t records; /* in it, without its first and last line */
	bool graph;	  /* display-graph: as function_graph's text */
	char comm[16];
};

struct gt_text_options {
	uint64_t options; /* bits of enum gt_control_option: GT_OPTIONS_DEFAULT to begin with */
	enum gt_merge_mode mode;
	bool header; /* `trace` has one, `trace_pipe` does not */
	/* The clock of the time stamps, if not the target's (durations are always of that one).
	 * units: nanoseconds a unit where function's time stamps are whole numbers; 0: seconds
	 * with a point. */
	bool other_clock;
	bool nanoseconds;    /* time stamps in seconds have nine decimals, not six */
	bool counts;	     /* … of records in the order in which they are shown; units is 1 */
	uint32_t names_kept; /* threads of which the names are known, the newest; 0: all */
	uint64_t units;
	struct gt_clock clock;
	/* latency-format: the counter when the trace was emptied last, 0: times are since the first
	 * record shown; the release of the kernel, NULL: not known. */
	uint64_t time_start;
	const char *release;
	/* Lines of the event sched_switch, of switches in these windows (none: all). */
	bool switches;
	uint32_t switch_window_count;
	struct gt_merge_window switch_windows[GT_MERGE_WINDOWS];
	/* What a function is called instead; NULL: by its name. The result must stay. */
	const char *(*rename)(void *data, uint32_t number, const char *name);
	void *rename_data;
	/* Of function_graph's entries, what stands behind them as a comment: at most
	 * GT_TEXT_NOTE_MAX bytes that can be printed. NULL: nothing; so may be the result. */
	const char *(*note)(void *data, uint32_t number);
	void *note_data;
	/* An event's text in place of Linux's, its name included: at most `room` bytes at `at`,
	 * returns where it ends; NULL: as Linux writes it. NULL: so are all. */
	char *(*event)(const struct gt_event_format *format, const struct gt_record *record,
		       char *at, size_t room);
	/* Of a latency tracer: the case that is shown, which the filter cuts out; NULL: none is. The
	 * caller's. */
	const struct gt_text_latency *latency;
	bool color;		  /* escape sequences for a terminal */
	struct gt_filter *filter; /* the caller's; NULL: none */
};

/* private: a name that was looked up */
struct gt_text_name {
	uint64_t key; /* function number, or address the function tracer's caller has; 0: empty */
	const char *name;
	uint64_t address;
	uint32_t size;
	uint32_t pid;
	uint32_t length;
	bool clean; /* no control character in it */
};

/* private: what was printed last of a CPU */
struct gt_text_cpu {
	uint32_t cpu;
	uint32_t tid;
	char comm[16];
	uint8_t prefix_length;
	bool known;
	bool started;
	char prefix[14]; /* " 0) " */
};

struct gt_text {
	struct gt_target *target;
	struct gt_text_options options;
	struct gt_merge merge;
	uint8_t cpu_digits;
	bool annotate;		 /* say where a CPU's buffer begins: some were overrun */
	bool begun;		 /* the header has been given */
	bool any;		 /* a line has been given */
	uint8_t edges;		 /* of a latency: lines that no record tells of, given */
	struct gt_source *again; /* its record is yet to be shown; NULL: the next one is */
	uint32_t late_at;     /* latency-format: where the time belongs in the line; 0: nowhere */
	uint64_t late_clock;  /* … of this record */
	uint64_t shown;	      /* records of it so far */
	uint64_t counter;     /* records given so far, whether they are shown or not */
	uint32_t held, given; /* carry: bytes in it, and those given out */
	struct gt_text_cpu cpus[GT_TEXT_CPUS];
	struct gt_text_name functions[GT_TEXT_NAMES];
	struct gt_text_name callers[GT_TEXT_NAMES];
	char carry[GT_TEXT_STEP_MAX];
};

/* Begins at the oldest record kept. The target, and the pointers in the options, must stay valid until gt_text_fini; the
 * options are copied. GT_ENOMEM: there is nothing to be freed. */
int gt_text_init(struct gt_text *text, struct gt_target *target, const struct gt_memory *memory,
		 const struct gt_text_options *options);

/*
 * Writes the next bytes: whole lines, unless the buffer is too small for one. Returns how many, 0 at
 * the end, GT_EAGAIN: there are none yet (follow modes before gt_text_finish); nothing else fails. It takes time only for
 * what it writes, except for the function tracer's header, which counts all records.
 */
int64_t gt_text_read(struct gt_text *text, char *buffer, size_t bytes);

/* Shows the lines of sched_switch from now on, or not, and only those of these windows (count 0: all), which are copied.
 * Without memory for them nothing changes. */
void gt_text_set_switches(struct gt_text *text, bool on, const struct gt_merge_window *windows,
			  uint32_t count);

/* Tells that the target has ended: reading ends after the records that are there. */
void gt_text_finish(struct gt_text *text);

void gt_text_fini(struct gt_text *text);

#endif
