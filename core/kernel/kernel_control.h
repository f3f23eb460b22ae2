/* SPDX-License-Identifier: MIT */
/*
 * The control files of the kernel that this code runs in: the operations of the table, on a ring in the
 * same memory (kernel_target.h) and on the settings of its recorder. Beside the table's rows there are
 *
 *	trace.data          the ring as a recording file (doc/format.md); consumes nothing
 *	trace_pipe.data     the same, consuming, until its reader leaves; writing 0 to it ends the
 *	                    recording, which then has all records from before the write
 *	options/trace-self  whether serving these files is traced, too
 *
 * Calls may come from any thread; those that change something take the kernel's lock.
 */
#ifndef GT_CORE_KERNEL_KERNEL_CONTROL_H
#define GT_CORE_KERNEL_KERNEL_CONTROL_H

#include <graftrace/arena.h>
#include <graftrace/latency.h>
#include <graftrace/probe_kernel.h>
#include <graftrace/profile.h>
#include "core/kernel/kernel_target.h"
#include "core/control/control.h"
#include "core/trace/event_rules.h"
#include "core/trace/filter_texts.h"
#include "core/trace/memory.h"
#include "core/trace/synthetic.h"

/*
 * What the kernel supplies. Called with its lock held, but for lock itself, now_ns and what says
 * so. The first six must be there; what of the rest is NULL, the files that would need it refuse in
 * words (GT_ENOTSUP).
 */
struct gt_arena_machine {
	void (*lock)(void *data); /* a mutex: patching may wait */
	void (*unlock)(void *data);
	void (*set_tracing_on)(void *data, bool on);
	/* Makes each function's entry what a byte of `wanted` (enum graftrace_entry, by number - 1)
	 * says. A kernel that cannot stop its CPUs here may copy `wanted` and do it later; of two
	 * changes that wait, the last one holds. */
	void (*patch)(void *data, const uint8_t *wanted);
	uint64_t (*now_ns)(void *data);
	/* Numbers of threads, 0: behind the last; names by gt_arena_names.thread. Without the lock.
	 */
	uint32_t (*thread_number)(void *data, uint32_t index);
	/* The same of those whose names are known: saved_cmdlines and per_thread/ have these, saved_cmdlines the
	 * last ones. NULL: they have the last 1,024 of thread_number. */
	uint32_t (*known_thread)(void *data, uint32_t index);
	void (*set_tracer)(void *data, enum graftrace_tracer tracer);
	void (*set_max_depth)(void *data, uint32_t depth);
	void (*set_threshold)(void *data, uint64_t ticks);
	void (*set_graph_only)(void *data, bool graph_only); /* set_graph_function */
	void (*set_func_stack)(void *data, bool on);	     /* options/func_stack_trace */
	/* Every CPU's open sub-buffer ends (gt_kernel_close), all of them at one moment; also
	 * without the lock. NULL: what is being written can be looked at only, and not be taken
	 * out. */
	void (*close_all)(void *data);
	/* The function profiler (core/record/kernel.h): both or none. */
	void (*set_profile)(void *data, bool on);
	void (*profile_table)(void *data, uint32_t cpu, struct graftrace_profile_entry **table,
			      uint32_t pages);
	/* trace_marker; without the lock. */
	bool (*mark)(void *data, const char *bytes, size_t count, bool raw);
	/* The commands snapshot and dump are done by a thread: from now on until nothing must be
	 * done it calls gt_arena_control_act, without the lock, a few times a second. Said again at
	 * each such command. gt_port_trigger tells of their moment (gt_arena_control_note). */
	void (*watch)(void *data);
	/* Makes each static event's places what a byte of `wanted` (0: off; by number - 1) says, as
	 * patch does for functions; `wanted` stays. NULL: there are none. */
	void (*patch_events)(void *data, const uint8_t *wanted);
	/* Dynamic probes (core/record/kernel_probe.h): makes each place what `wanted` of its probe says, and returns when no
	 * CPU uses one that is not among them; the list stays until the next call. NULL: there are none. */
	void (*patch_probes)(void *data, struct graftrace_kernel_probe *const *probes,
			     uint32_t count);
	/* The same for probes inside functions: gt_places_find (core/record/kernel_place.h). NULL: entries and returns are all
	 * that probes can have. */
	enum graftrace_kernel_place (*find_place)(void *data, uint64_t start, uint64_t end,
						  uint64_t address, uint32_t *place);
	/* The address of what has that name, code or data: @SYM of a probe. GT_ENOENT. NULL: functions that can be traced
	 * are all that is known. */
	int (*symbol)(void *data, const char *name, size_t bytes, uint64_t *address);
	/* Latencies (core/record/latency.h): all of these or none. measure: with all CPUs standing
	 * still; keep, max and worst: also without the lock. */
	void (*latency_measure)(void *data, uint32_t kinds);
	void (*latency_set_threshold)(void *data, uint64_t ticks);
	void (*latency_set_max)(void *data, uint64_t ticks);
	void (*latency_keep)(void *data, bool keep);
	uint64_t (*latency_max)(void *data);
	bool (*latency_worst)(void *data, struct graftrace_latency *worst);
	/* To the console, for dump; without the lock. */
	void (*print)(void *data, const char *text, size_t bytes);
	void *data;
};

/* No larger piece is ever asked for: what needs more at once refuses, or knows less. */
#define GT_ARENA_PIECE_BYTES	   (2u << 20)
#define GT_ARENA_MARKS		   4 /* lists of functions that can be set */
#define GT_ARENA_COMMANDS	   32
#define GT_ARENA_COMMAND_FUNCTIONS 256 /* a command is of */
#define GT_ARENA_GLOB_BYTES	   96

/* The reader that consumes the ring as a recording. */
enum gt_arena_drain {
	GT_ARENA_DRAIN_NOBODY,
	GT_ARENA_DRAIN_RUNS,
	GT_ARENA_DRAIN_ENDS, /* it takes the present records, and ends */
};

struct gt_arena_snapshot;
struct gt_arena_probe;

#define GT_ARENA_PROBES 1536 /* at most, at once */

/* An event that was defined while the kernel runs, by its number less that of the first one. */
struct gt_arena_later {
	bool is_there; /* it was not removed */
	uint8_t on;    /* by set_event */
};

/* The rows of such an event, or of a system of them. */
struct gt_arena_later_rows {
	const char *system;
	const char *name; /* NULL: the rows are the system's */
	struct gt_control_file *files;
	uint32_t count;
};

#define GT_ARENA_GROUPS 3 /* gt_arena_files, latencies' and the events' */
/* … and of each later event, and its system: so many at most. */
#define GT_ARENA_LATER_GROUPS (2 * GT_ARENA_LATER)

/* `function:command:count`; glob "": none. */
struct gt_arena_command {
	char glob[GT_ARENA_GLOB_BYTES];
	enum gt_control_action action;
	uint64_t count;
};

struct gt_arena_control {
	struct gt_control_target control;
	struct gt_arena_ring *ring;
	const struct gt_arena_machine *machine;
	struct gt_memory given;	 /* the kernel's */
	struct gt_memory memory; /* allocates from it, pieces of at most GT_ARENA_PIECE_BYTES */
	const char *title;	 /* of recordings */
	uint32_t function_count;
	uint8_t *marks;	 /* of each function: a bit for each list it is in */
	uint8_t *wanted; /* for patching */
	bool set[GT_ARENA_MARKS];
	bool trace_self;
	uint64_t options;
	uint64_t threshold_ns;
	uint64_t cmdlines;
	uint32_t clock_id;
	uint64_t cpumask[4];
	uint32_t paused; /* readers with options/pause-on-trace */
	uint32_t drain;	 /* enum gt_arena_drain */
	struct gt_arena_command commands[GT_ARENA_COMMANDS];
	uint32_t noted; /* actions of commands that wait to be carried out, a bit each */
	struct graftrace_profile_entry **profile[GT_ARENA_WRITERS]; /* a table a CPU; NULL: none */
	struct gt_arena_snapshot *snapshot;
	enum gt_control_snapshot_state snapshot_state;
	uint32_t
		tracer; /* one that the recorder does not know (enum graftrace_tracer), or any other */
	uint32_t event_count;
	uint8_t *events;	/* of each: is it on? */
	uint8_t *events_wanted; /* … or wanted by the tracer */
	bool has_rules;		/* of events (gt_kernel_rules_init) */
	struct gt_rules_host rules_host;
	struct gt_event_rules rules;
	struct gt_filter_texts filter_texts;
	bool has_latencies;	 /* … and of preemptirq, and the kernel measures */
	bool function_trace;	 /* options/function-trace */
	bool display_graph;	 /* options/display-graph */
	uint64_t options_before; /* a latency tracer changed them */
	bool has_blocks;	 /* there are events of the system block */
	struct gt_arena_target view;
	struct gt_control_log log;
	struct gt_control_group groups[GT_ARENA_GROUPS + GT_ARENA_LATER_GROUPS];
	struct gt_arena_later later[GT_ARENA_LATER]; /* as many as the ring has formats of */
	struct gt_arena_later_rows *later_rows;	     /* [GT_ARENA_LATER_GROUPS]; NULL: none yet */
	uint32_t later_rows_count;
	struct gt_synthetic *synthetics[GT_ARENA_LATER]; /* by number; NULL: another event */
	/* Dynamic probes in the order of their lines, and what the recorder knows of each: lists of GT_ARENA_PROBES; NULL:
	 * there was none yet. */
	struct gt_arena_probe **probes;
	struct graftrace_kernel_probe **recorded;
	uint32_t probe_count;
};

/* Starts with all functions in the filter; patches nothing before the first change or
 * gt_arena_control_patch. Allocates two bytes a function. GT_ENOMEM; GT_EINVAL: `machine` lacks a
 * function that it must have. */
int gt_arena_control_init(struct gt_arena_control *control, struct gt_arena_ring *ring,
			  const struct gt_arena_machine *machine, const struct gt_memory *memory,
			  uint32_t function_count, const char *title);

/* Is it one of the latency tracers (enum graftrace_tracer)? */
bool gt_arena_is_latency(uint32_t tracer);
/* Patches by the present lists and tracer. */
void gt_arena_control_patch(struct gt_arena_control *control);

/* Notes a command (enum graftrace_trigger_action) to be carried out. From any context, the recorder's
 * gt_port_trigger included. */
void gt_arena_control_note(struct gt_arena_control *control, uint32_t action);
/* Carries out what was noted. From a thread. */
void gt_arena_control_act(struct gt_arena_control *control);
/* Whether a command waits, or may come to wait, to be carried out. Call with the lock held. */
bool gt_arena_control_must_act(const struct gt_arena_control *control);

/* Rows beside the table's, in kernel_file.c. */
extern const struct gt_control_group gt_arena_files __attribute__((visibility("hidden")));

#endif
