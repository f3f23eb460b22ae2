/* SPDX-License-Identifier: MIT */
/*
 * The control files: everything of a target that can be set or read, in one table of rows with a
 * read and a write function, named and behaving as the files of Linux's tracefs
 * (Documentation/trace/ftrace.rst). HTTP servers, file systems and the command line are doors to
 * this table and know no file by name.
 *
 * For doors:
 *	find   path -> node (a file or a directory, of the target or of one of its instances)
 *	list   directory, index -> entry
 *	open   node -> handle; GT_CONTROL_TRUNCATE is the shell's `>` (O_TRUNC), without it a write
 *	       is `>>`. What Linux clears at such an open is cleared there, whatever follows.
 *	read   the next bytes, 0 at the end, GT_EAGAIN: nothing yet (ask again later)
 *	write  bytes as `echo` gives them; how many were taken: lists take one word a call, the
 *	       door's user loops. A word cut at the end of the bytes goes on in the next write.
 *	close  a list's changes take effect here, also after a refused write, as in Linux; a word
 *	       that still waits for its end is taken here, and its error returned
 *	make, remove   mkdir and rmdir below instances/
 * A refused call has a message, and an error that a file system maps to errno: GT_EINVAL EINVAL,
 * GT_ENOENT ENOENT, GT_EPERM EPERM, GT_EBUSY EBUSY, GT_EAGAIN EAGAIN, GT_ENOMEM ENOMEM, GT_EBADF
 * EBADF, GT_ENOTSUP EOPNOTSUPP, GT_ENOSPC ENOSPC, GT_EEXIST EEXIST, GT_EGONE ENODEV, others EIO.
 *
 * For rows: a group is an array of struct gt_control_file in a file of its own
 * (core/control/control_SUBJECT.c; core/control/control_row.h has what rows share), named in
 * control_table.c. A target can bring groups of its own besides (struct gt_control_target.groups):
 * for what only one kind of target has. A row says for which kinds of targets it exists, by `kinds`
 * and, where that is not enough, by `exists`; elsewhere there is no such file.
 *	A path is below the root, its directories need no row. `#` in a component stands for a
 *	number ("per_thread/#/stats", "per_cpu/cpu#/trace"): `numbers` says which there are, and
 *	handle->number has it. Instances need nothing: "instances/NAME/tracing_on" is found as
 *	tracing_on of another struct gt_control_target, which the target's operation `instance`
 *	gives; rows that Linux has at the top only say so by GT_CONTROL_TOP.
 *	Without a read (write) function the file is not readable (writable), and reading (writing)
 *	it is GT_EINVAL, as in Linux; `refusal` can say why.
 *	What a row needs of the target is an operation (struct gt_control_ops): added at the end,
 *	NULL in targets that cannot; the row refuses with GT_ENOTSUP then.
 *	Every refused write goes to error_log with its text, by the table itself; a row sets
 *	handle->bad_at to the offset of the byte under which the caret is to stand.
 *
 * Freestanding: no libc, no allocation, bounded memory (a struct gt_control_handle). A handle
 * belongs to one reader or writer; different handles on one target may be used by different threads
 * when the target's operations allow that.
 */
#ifndef GT_CORE_CONTROL_CONTROL_H
#define GT_CORE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>
#include "core/trace/durations.h"
#include "core/trace/event_filter.h"
#include "core/trace/probe.h"
#include "core/trace/settings.h"
#include "core/trace/target.h"
#include "core/text/options.h"

/* Kinds of targets, as bits. */
enum gt_control_kind {
	GT_CONTROL_PROGRAM = 1,	  /* a program that is being traced */
	GT_CONTROL_RECORDING = 2, /* a recording file: nothing can be changed */
	GT_CONTROL_KERNEL = 4,	  /* the kernel that this runs in */
	GT_CONTROL_LIVE = GT_CONTROL_PROGRAM | GT_CONTROL_KERNEL,
	GT_CONTROL_ALL = GT_CONTROL_LIVE | GT_CONTROL_RECORDING,
};

/* What of a target is one number. */
enum gt_control_value {
	GT_CONTROL_TRACING_ON,	 /* 0, 1 */
	GT_CONTROL_TRACER,	 /* enum graftrace_tracer */
	GT_CONTROL_MAX_DEPTH,	 /* 0 = no limit */
	GT_CONTROL_THRESHOLD_NS, /* 0 = none */
	GT_CONTROL_OPTIONS,	 /* bits of enum gt_control_option; read-only */
	GT_CONTROL_BUFFER_BYTES, /* what one writer may fill */
	GT_CONTROL_TOTAL_BYTES,	 /* all writers together */
	GT_CONTROL_CLOCK_ID,	 /* enum gt_control_clock */
	GT_CONTROL_NOW_NS,	 /* CLOCK_MONOTONIC, or the kernel's time since boot; read-only */
	GT_CONTROL_CMDLINES,	 /* how many names saved_cmdlines keeps */
	GT_CONTROL_PROFILE,	 /* function_profile_enabled: 0, 1 */
	GT_CONTROL_CPUMASK,	 /* CPUs 0 … 63 of tracing_cpumask; … */
	GT_CONTROL_CPUMASK_END = GT_CONTROL_CPUMASK + 4,  /* … + 1: 64 … 127, and so on */
	GT_CONTROL_SCHED_SWITCH = GT_CONTROL_CPUMASK_END, /* 0, 1: the event is on */
	GT_CONTROL_OPTIONS_ON,	/* these bits are set in the options, the others stay; write-only */
	GT_CONTROL_OPTIONS_OFF, /* … are cleared */
	GT_CONTROL_TRACERS, /* a bit for each tracer beyond function_graph that there is; read-only */
	GT_CONTROL_VALUES,
};

/* trace_clock. All are made of the time stamp counter when the trace is shown. */
enum gt_control_clock {
	GT_CLOCK_LOCAL,	  /* CLOCK_MONOTONIC; in a kernel the time since boot */
	GT_CLOCK_GLOBAL,  /* the same: the time stamp counters of all CPUs agree */
	GT_CLOCK_COUNTER, /* records in order, from 1 on */
	GT_CLOCK_UPTIME,  /* hundredths of a second since boot */
	GT_CLOCK_PERF,
	GT_CLOCK_MONO,
	GT_CLOCK_MONO_RAW,
	GT_CLOCK_BOOT,
	GT_CLOCK_TAI,
	GT_CLOCK_TSC, /* the counter itself */
	GT_CLOCKS,
};

/* Lists of functions. */
enum gt_control_list {
	GT_CONTROL_AVAILABLE, /* every function that can be traced; read-only */
	GT_CONTROL_FILTER,
	GT_CONTROL_NOTRACE,
	GT_CONTROL_GRAPH,
	GT_CONTROL_GRAPH_NOTRACE,
	GT_CONTROL_ENABLED, /* traced now; read-only */
	GT_CONTROL_TOUCHED, /* traced at any time; read-only */
	GT_CONTROL_LISTS,
};

_Static_assert(GT_CONTROL_GRAPH_NOTRACE - GT_CONTROL_FILTER == GT_LIST_GRAPH_NOTRACE,
	       "the lists that can be written are in the order of the settings'");

/* The list of the settings that a list from GT_CONTROL_FILTER to GT_CONTROL_GRAPH_NOTRACE is. */
static inline enum gt_list gt_control_setting(enum gt_control_list which)
{
	return (enum gt_list)(which - GT_CONTROL_FILTER);
}

/* Lists of threads. */
enum gt_control_threads {
	GT_CONTROL_PIDS,	 /* set_ftrace_pid */
	GT_CONTROL_NOTRACE_PIDS, /* set_ftrace_notrace_pid */
	GT_CONTROL_EVENT_PIDS,	 /* set_event_pid; of targets that have events */
	GT_CONTROL_EVENT_NOTRACE_PIDS,
};

static inline bool gt_control_is_of_events(enum gt_control_threads which)
{
	return which == GT_CONTROL_EVENT_PIDS || which == GT_CONTROL_EVENT_NOTRACE_PIDS;
}

/* What the options become by GT_CONTROL_OPTIONS_ON or _OFF with these bits. */
static inline uint64_t gt_control_options_with(uint64_t options, enum gt_control_value which,
					       uint64_t bits)
{
	return which == GT_CONTROL_OPTIONS_ON ? options | bits : options & ~bits;
}

/* A function in a list; strings live until the list is closed. */
struct gt_control_name {
	const char *name;
	const char *module; /* shown in brackets; NULL or "": the target's own */
	uint64_t address;   /* 0 unknown */
	const char *note;   /* enabled_functions: what stands behind the name; NULL: nothing */
};

/* What of the trace is read. */
struct gt_control_scope {
	enum { GT_SCOPE_ALL, GT_SCOPE_CPU, GT_SCOPE_THREAD } kind;
	uint32_t number; /* of the CPU, of the thread */
};

/* Who writes: doors that know it say so (gt_control_handle.writer), for trace_marker's line. */
struct gt_control_writer {
	uint32_t pid; /* 0: unknown, the line says the host side itself */
	uint32_t tid;
	char comm[16];
};

/* `function:command[:argument][:count]` in set_ftrace_filter. */
enum gt_control_action {
	GT_ACTION_TRACEON,
	GT_ACTION_TRACEOFF,
	GT_ACTION_SNAPSHOT,
	GT_ACTION_STACKTRACE,
	GT_ACTION_DUMP,
	GT_ACTION_CPUDUMP,
	GT_ACTIONS,
};

#define GT_ACTION_UNLIMITED UINT64_MAX

struct gt_control_command {
	const char *function; /* a glob when it is set, a name when it is listed; not NUL-terminated
			       */
	size_t function_bytes;
	enum gt_control_action action;
	uint64_t count; /* how often it still acts, GT_ACTION_UNLIMITED */
};

/* Moves the command's name into `text`, cut to `room`, with a NUL behind it. */
static inline void gt_control_command_copy(struct gt_control_command *command, char *text,
					   size_t room)
{
	if (command->function_bytes >= room)
		command->function_bytes = room - 1;
	__builtin_memcpy(text, command->function, command->function_bytes);
	text[command->function_bytes] = '\0';
	command->function = text;
}

/* Records of a scope, for `stats`: entries + overrun + dropped + read is what was written. */
struct gt_control_stats {
	uint64_t entries; /* in the ring */
	uint64_t overrun; /* overwritten before they were read */
	uint64_t commit_overrun;
	uint64_t bytes;	  /* of the entries */
	uint64_t dropped; /* not recorded, for lack of room */
	uint64_t read;	  /* consumed */
	uint64_t oldest_ns;
	uint64_t now_ns;
	uint64_t
		damaged; /* threads whose numbers cannot be right, sub-buffers thrown away: somebody
			   * has written over them */
};

/* What is done with the snapshot, and what there is of it. */
enum gt_control_snapshot {
	GT_SNAPSHOT_FREE,
	GT_SNAPSHOT_TAKE,
	GT_SNAPSHOT_CLEAR,
};
enum gt_control_snapshot_state {
	GT_SNAPSHOT_TAKEN = 0,
	GT_SNAPSHOT_FREED = 1, /* there is none */
	GT_SNAPSHOT_EMPTY = 2,
};

/* A function in the profiler's table. */
struct gt_control_profile_row {
	const char *name; /* lives until the table is closed */
	uint64_t hits;
	uint64_t time_ns;  /* graph-time: with what was called; else alone */
	uint64_t variance; /* of a call's time, in ns² / 1000 */
	/* How many calls took how long, with what was called; valid until the next one is read. */
	struct gt_durations durations;
};

/* An event with fields. Its strings live as long as the target. */
struct gt_control_event {
	struct gt_event_format format; /* of the first of its places */
	bool enabled;
	bool soft; /* it has triggers, or those of others enable and disable it */
};

struct gt_control_target;
struct gt_hist_error;

/*
 * The operations of a target. They are called by as many threads at once as there are handles in use, with no
 * lock held. If an operation is NULL, the rows that need it refuse with GT_ENOTSUP, or do not exist. An int is 0
 * or a negative enum gt_error, with the message if there is a parameter for it. Every operation that allocates
 * may fail with GT_ENOMEM, every change of a program that has ended with GT_EGONE. What …_open gives belongs to the
 * caller until …_close, which frees it in any case; after an error of …_open there is nothing to close.
 */
struct gt_control_ops {
	/* Numbers. GT_ENOTSUP: the target has no such value. set: GT_EINVAL, GT_EBUSY: it is refused, and the old value
	 * stays. */
	int (*get)(struct gt_control_target *target, enum gt_control_value which, uint64_t *value);
	int (*set)(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
		   struct gt_message *message);

	/* Opens a list for reading as it is now. 1: the list is not set (no filter), nothing was
	 * opened. */
	int (*list_open)(struct gt_control_target *target, enum gt_control_list which, void **list,
			 struct gt_message *message);
	/* The index'th name, valid until the list is closed; GT_ENOENT behind the last. */
	int (*list_read)(struct gt_control_target *target, void *list, uint64_t index,
			 struct gt_control_name *name);
	void (*list_close)(struct gt_control_target *target, void *list);

	/* Changes of a list. open: begins with a copy of the list, or (empty) with nothing. add, remove: change the
	 * copy; plain: `glob` is a name, not a glob; module: only functions of that object, NULL: of all; a word for an
	 * object that is not loaded yet waits for it. GT_EINVAL: of add, no function matches; of remove, none of the
	 * list does. close: makes the copy the list, and frees it, also after an error. */
	int (*edit_open)(struct gt_control_target *target, enum gt_control_list which, bool empty,
			 void **edit, struct gt_message *message);
	int (*edit_add)(struct gt_control_target *target, void *edit, const char *glob,
			size_t bytes, const char *module, size_t module_bytes, bool plain,
			struct gt_message *message);
	int (*edit_remove)(struct gt_control_target *target, void *edit, const char *glob,
			   size_t bytes, const char *module, size_t module_bytes,
			   struct gt_message *message);
	int (*edit_close)(struct gt_control_target *target, void *edit, struct gt_message *message);

	/* The trace as text. consume: what is given is taken out of the ring; GT_EBUSY while
	 * another reader does. text_read: bytes, 0 at the end, GT_EAGAIN nothing yet. */
	int (*text_open)(struct gt_control_target *target, const struct gt_control_scope *scope,
			 bool consume, void **text, struct gt_message *message);
	int64_t (*text_read)(struct gt_control_target *target, void *text, char *buffer,
			     size_t bytes, struct gt_message *message);
	void (*text_close)(struct gt_control_target *target, void *text);

	/* One CPU's part of the trace as pages of Linux's ring buffer (raw_page.h); consumes what
	 * can be consumed. As text_open and its kin; GT_EBUSY while another one reads it. */
	int (*raw_open)(struct gt_control_target *target, uint32_t cpu, void **raw,
			struct gt_message *message);
	int64_t (*raw_read)(struct gt_control_target *target, void *raw, char *buffer, size_t bytes,
			    struct gt_message *message);
	void (*raw_close)(struct gt_control_target *target, void *raw);

	/* Empties the ring, or takes out the records of a thread or CPU. */
	int (*clear)(struct gt_control_target *target, const struct gt_control_scope *scope,
		     struct gt_message *message);

	/* Counts of the records of a scope. The caller has set *stats to zero. GT_ENOENT: no such thread. */
	int (*stats)(struct gt_control_target *target, const struct gt_control_scope *scope,
		     struct gt_control_stats *stats, struct gt_message *message);

	/* Writes a line (raw: bytes) into the trace, with the present time. GT_EBADF: tracing is off, or there is no
	 * room. */
	int (*mark)(struct gt_control_target *target, const struct gt_control_writer *writer,
		    const char *bytes, size_t count, bool raw, struct gt_message *message);

	/* Functions with commands. A command with a count and the same one without are two; remove ignores the number
	 * of the count. GT_EINVAL: of set, no function matches; of remove, there is no such command. read: the
	 * index'th, GT_ENOENT behind the last; the name is copied into `text`, cut to `room`. */
	int (*command_set)(struct gt_control_target *target,
			   const struct gt_control_command *command, struct gt_message *message);
	int (*command_remove)(struct gt_control_target *target,
			      const struct gt_control_command *command, struct gt_message *message);
	int (*command_read)(struct gt_control_target *target, uint64_t index,
			    struct gt_control_command *command, char *text, size_t room);

	/* Lists of threads (and processes) that are traced alone, or not. thread: the index'th, GT_ENOENT
	 * behind the last. threads_set: sets a whole list, which is copied; count 0: no thread is listed. */
	int (*thread)(struct gt_control_target *target, enum gt_control_threads which,
		      uint32_t index, uint32_t *tid);
	int (*threads_set)(struct gt_control_target *target, enum gt_control_threads which,
			   const uint32_t *tids, uint32_t count, struct gt_message *message);

	/* The function profiler's table as it is now, longest time first; of a program GT_SCOPE_CPU
	 * is all of it. read: 0, or GT_ENOENT behind the last. */
	int (*profile_open)(struct gt_control_target *target, const struct gt_control_scope *scope,
			    void **table, struct gt_message *message);
	int (*profile_read)(struct gt_control_target *target, void *table, uint64_t index,
			    struct gt_control_profile_row *row);
	void (*profile_close)(struct gt_control_target *target, void *table);

	/* The snapshot. snapshot: takes, clears or frees it; GT_EBUSY: not now. open: returns an enum
	 * gt_control_snapshot_state, or an error; with GT_SNAPSHOT_TAKEN *text is read and closed by text_read and
	 * text_close, else nothing was opened. */
	int (*snapshot)(struct gt_control_target *target, enum gt_control_snapshot action,
			const struct gt_control_scope *scope, struct gt_message *message);
	int (*snapshot_open)(struct gt_control_target *target, const struct gt_control_scope *scope,
			     void **text, struct gt_message *message);

	/* Instances: targets of their own that live as long as this one. What would change one that was removed is
	 * refused with GT_ENOENT, or has no effect. instance: the index'th with its name, which lives as long; GT_ENOENT
	 * behind the last. make: GT_EINVAL: no such name can be; GT_EEXIST, GT_ENOTSUP, GT_ENOSPC. remove: GT_ENOENT;
	 * GT_EBUSY while its trace, a pipe, a list of functions or an edit of one is open. */
	int (*instance)(struct gt_control_target *target, uint32_t index,
			struct gt_control_target **instance, const char **name);
	int (*instance_make)(struct gt_control_target *target, const char *name, size_t bytes,
			     struct gt_message *message);
	int (*instance_remove)(struct gt_control_target *target, const char *name, size_t bytes,
			       struct gt_message *message);

	/* Where threads are no writers (a kernel): the index'th thread and its name, GT_ENOENT
	 * behind the last. NULL: the writers are the threads. */
	int (*known_thread)(struct gt_control_target *target, uint32_t index, uint32_t *tid,
			    char comm[16]);

	/* Events with fields, each once however many places it has: the index'th, GT_ENOENT behind
	 * the last. */
	int (*event)(struct gt_control_target *target, uint64_t index,
		     struct gt_control_event *event);
	/* Switches on or off what the word names (gt_event_word_matches(), or gt_event_word_in(), of
	 * which an object that is not there is waited for). GT_EINVAL: it names none. word_bytes 0: all
	 * of them. */
	int (*event_set)(struct gt_control_target *target, const char *word, size_t word_bytes,
			 bool on, struct gt_message *message);

	/* Words of event_set that wait for an object: the index'th, GT_ENOENT behind the last. May be
	 * NULL. */
	int (*event_waiting)(struct gt_control_target *target, uint64_t index, char *word,
			     size_t room);

	/* Sets the filter of the event ("system:name"); it has `bytes` bytes, 0: none. error: not NULL if the text is
	 * no filter: then the event has none, and its file shows the text with this error. */
	int (*event_filter_set)(struct gt_control_target *target, const char *word,
				const char *filter, size_t bytes,
				const struct gt_event_filter_error *error,
				struct gt_message *message);
	/* Copies what that file shows, from `offset` on, into the buffer. Returns the bytes; 0: there are no more. */
	int64_t (*event_filter_read)(struct gt_control_target *target, const char *word,
				     uint64_t offset, char *buffer, size_t bytes);

	/* Dynamic probes (core/trace/probe.h), all three or none. set: one line; GT_EINVAL, GT_ENOENT, GT_EEXIST:
	 * *error says what is wrong with it, and where. remove: those of the group and name, "": any; GT_ENOENT;
	 * GT_EBUSY: one of them is recorded. probe: the index'th as its line, GT_ENOENT behind the last. */
	int (*probe_set)(struct gt_control_target *target, const char *line, size_t bytes,
			 enum gt_probe_kinds kinds, struct gt_probe_error *error,
			 struct gt_message *message);
	int (*probes_remove)(struct gt_control_target *target, const char *group, const char *name,
			     struct gt_message *message);
	int (*probe)(struct gt_control_target *target, uint64_t index, char *line, size_t bytes);
	/* The index'th as its line of uprobe_profile, GT_ENOENT behind the last. */
	int (*probe_hits)(struct gt_control_target *target, uint64_t index, char *line,
			  size_t bytes);

	/* Synthetic events (core/trace/synthetic.h), all three or none. set: one line; GT_EINVAL, GT_EEXIST: *error
	 * says what is wrong with it, and where. remove: that of the name, "": all; GT_ENOENT; GT_EBUSY: one is in use.
	 * synthetic: the index'th, GT_ENOENT behind the last. */
	int (*synthetic_set)(struct gt_control_target *target, const char *line, size_t bytes,
			     struct gt_probe_error *error, struct gt_message *message);
	int (*synthetics_remove)(struct gt_control_target *target, const char *name,
				 struct gt_message *message);
	int (*synthetic)(struct gt_control_target *target, uint64_t index,
			 struct gt_event_format *event);

	/* set: adds a trigger to the event `word` ("system:name"), or takes it away. GT_EEXIST; GT_ENOENT: it has no such
	 * trigger; GT_EINVAL; GT_ENOSPC; GT_EBUSY. get: the index'th, the newest first, with its strings in `text`;
	 * GT_ENOENT behind the last. */
	int (*event_trigger_set)(struct gt_control_target *target, const char *word,
				 const struct gt_event_trigger *trigger, bool remove,
				 struct gt_message *message);
	int (*event_trigger_get)(struct gt_control_target *target, const char *word, uint32_t index,
				 struct gt_event_trigger *trigger, char *text, size_t room);
	/* Checks the text of a histogram of the event: 0, or an error, and *error says what is wrong. is_new: it is to be
	 * added. May be NULL: then nothing is known of other events and of variables. */
	int (*event_hist_check)(struct gt_control_target *target, const char *word,
				const char *text, bool is_new, struct gt_hist_error *error);
	/* The text of all histograms of the event as it is now. read: from `offset` on; 0: its end. */
	int (*event_hists_open)(struct gt_control_target *target, const char *word, void **hists,
				struct gt_message *message);
	size_t (*event_hists_read)(struct gt_control_target *target, void *hists, uint64_t offset,
				   char *buffer, size_t bytes);
	void (*event_hists_close)(struct gt_control_target *target, void *hists);

	/* Called before a path below events/ is looked up: the target may add rows of new events to its groups.
	 * NULL: none ever come. */
	void (*events_came)(struct gt_control_target *target);
};

struct gt_control_file;

struct gt_control_group {
	const struct gt_control_file *files;
	uint32_t count;
};

/* Indices of `event` from here on are events' numbers in records, which do not change. */
#define GT_CONTROL_BY_NUMBER (UINT64_C(1) << 32)

#define GT_CONTROL_LOG_LINES 8

struct gt_control_log_line {
	uint64_t ns;
	uint32_t bad_at; /* offset of the byte under which the caret stands */
	char place[48];	 /* the file */
	char error[160];
	char command[256];
};

/* error_log's memory. All zero: empty. Any thread. */
struct gt_control_log {
	uint32_t lock;
	uint32_t next;	/* errors ever logged */
	uint32_t first; /* number of the oldest kept */
	struct gt_control_log_line line[GT_CONTROL_LOG_LINES];
};

struct gt_control_target {
	const struct gt_control_ops *ops;
	void *data; /* the implementation's own */
	enum gt_control_kind kind;
	struct gt_target *view;	       /* its writers; may be called by every handle's thread */
	struct gt_control_target *top; /* of an instance: what it is an instance of; else NULL */
	const struct gt_control_group *groups; /* rows of this target alone, besides the table's */
	uint32_t group_count;
	struct gt_control_log *log; /* NULL: errors are not kept, there is no error_log */
};

struct gt_control_handle;

#define GT_CONTROL_READ	    1u
#define GT_CONTROL_WRITE    2u
#define GT_CONTROL_TRUNCATE 4u /* with WRITE: as the shell's `>` opens it */

/* Which numbers stand for the `#` of a path. */
struct gt_control_numbers {
	uint32_t (*count)(struct gt_control_target *target);
	/* The index'th (GT_ENOENT: none). */
	int (*number)(struct gt_control_target *target, uint32_t index, uint64_t *number);
	bool waits; /* both may wait for a lock that a change of the tracing holds */
};

/* Flags of a row. */
enum {
	GT_CONTROL_ACTS = 1,   /* reading it changes something (Nanos's tracing_enable/) */
	GT_CONTROL_WAITS = 2,  /* its reader may have to wait for more (GT_EAGAIN) */
	GT_CONTROL_TOP = 4,    /* not in instances */
	GT_CONTROL_BINARY = 8, /* no text */
};

/* A row of the table. */
struct gt_control_file {
	const char *path;  /* below the root; `#` stands for a number */
	const char *help;  /* one line, for README and the man page */
	uint8_t kinds;	   /* where it exists */
	uint8_t readable;  /* where it can be read, if it has a read; 0: wherever it exists */
	uint8_t writable;  /* where it can be written, if it has a write; 0: of what lives */
	uint8_t flags;	   /* GT_CONTROL_ACTS … */
	uint64_t argument; /* for functions that several rows share */
	const struct gt_control_numbers *numbers; /* of the `#` */
	const char *refusal; /* why it cannot be written where it cannot, or NULL */
	bool (*exists)(const struct gt_control_target *target); /* NULL: it does */
	int (*open)(struct gt_control_handle *handle, unsigned access, struct gt_message *message);
	int64_t (*read)(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message);
	int64_t (*write)(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message);
	int (*close)(struct gt_control_handle *handle, struct gt_message *message);
};

/* The rows that each event with fields has, for the target's own groups: its path is the caller's,
 * who sets it, and `argument` the event's index (of a system's: that of its first event). */
enum gt_control_event_file {
	GT_EVENT_ENABLE,
	GT_EVENT_FORMAT,
	GT_EVENT_ID,
	GT_EVENT_FILTER,
	GT_EVENT_TRIGGER,
	GT_EVENT_HIST,
	GT_EVENT_SYSTEM_ENABLE,
	GT_EVENT_SYSTEM_FILTER,
};
struct gt_control_file gt_control_event_file(enum gt_control_event_file which, const char *path,
					     uint64_t index);

/* What a path names. */
struct gt_control_node {
	struct gt_control_target *target;   /* the one asked, or its instance */
	const struct gt_control_file *file; /* NULL: a directory */
	const char *directory;		    /* a row's path of which the first … */
	size_t directory_bytes;		    /* … bytes name the node; 0: the root */
	uint64_t number;		    /* that stands for the path's `#` */
	bool instances;			    /* the directory of instances */
};

/* An entry of a directory. */
struct gt_control_entry {
	char name[64];
	struct gt_control_node node;
};

#define GT_CONTROL_WORD_BYTES 1024 /* a word of a list may have */

/* An open control file. The caller's memory; the fields are the table's, but `writer` and
 * `nonblocking`. */
struct gt_control_handle {
	struct gt_control_target *target;
	const struct gt_control_file *file;
	uint64_t number;
	unsigned access;
	struct gt_control_writer writer; /* the door's, after gt_control_open, if it knows */
	void *opened;			 /* list, edit or text of the target's operations */
	bool unset;			 /* the list is not set */
	bool given;			 /* something of it was given already */
	bool nonblocking;		 /* the door's: the reader would not wait (O_NONBLOCK) */
	uint64_t line;			 /* next to be given */
	size_t line_given;		 /* bytes of it that were given already */
	size_t bad_at;			 /* of the write in work: where it went wrong … */
	const char *bad_in;		 /* … and in what, as error_log has it; NULL: the file */
	size_t bad_from;		 /* bytes of the write before the command that went wrong */
	size_t text_bytes; /* value files: `text` holds the whole, made when opened; lists being
			      written: a word that was cut */
	char text[2048];
};

/* The rows of a target (NULL: those of the table only), in the order of listing; NULL behind the
 * last. Those that do not exist for the target are given too: see gt_control_exists. */
const struct gt_control_file *gt_control_row(const struct gt_control_target *target,
					     uint32_t index);
bool gt_control_exists(const struct gt_control_target *target, const struct gt_control_file *file);

/* Finds what a path names: without the leading slash, slashes at the end are allowed. 0 or GT_ENOENT. */
int gt_control_find(struct gt_control_target *target, const char *path, size_t bytes,
		    struct gt_control_node *node);

/* Whether gt_control_find() of the path, or listing it, may wait for a lock that a change of the tracing holds until
 * threads have stopped. False: both take locks for moments only. Takes none itself; any thread. */
bool gt_control_find_waits(const struct gt_control_target *target, const char *path, size_t bytes);

/* Gives the index'th entry of a directory, in the table's order; GT_ENOENT behind the last. */
int gt_control_list(const struct gt_control_node *directory, uint32_t index,
		    struct gt_control_entry *entry);

/* Where a walk over a directory's entries stands: { 0 } before the first. */
struct gt_control_walk {
	uint32_t row;	 /* of the table: the last entry's */
	uint32_t before; /* entries of the rows before it */
};

/* As gt_control_list, for one entry after the other: it goes on where the last call of this walk found
 * its entry. A smaller index than then is found all the same. */
int gt_control_list_next(const struct gt_control_node *directory, struct gt_control_walk *walk,
			 uint32_t index, struct gt_control_entry *entry);

/* Whether a file can be read, written here: GT_CONTROL_READ | GT_CONTROL_WRITE. */
unsigned gt_control_access(const struct gt_control_target *target,
			   const struct gt_control_file *file);

/* Opens a file. GT_EINVAL: a directory; GT_EPERM: nothing of a recording can be changed; and what
 * the row's operation says. On failure there is nothing to close. Where the file has no read or
 * write, opening works and reading or writing is refused, as in Linux. */
int gt_control_open(struct gt_control_handle *handle, const struct gt_control_node *node,
		    unsigned access, struct gt_message *message);
/* The most lines, as gt_control_lines counts them, that the records in the trace can have now; UINT64_MAX: it is not
 * known. For doors where a reader of trace_pipe ends instead of waiting: a program, or the sending itself, may fill
 * the ring as fast as it is emptied. */
uint64_t gt_control_lines_there(const struct gt_control_node *node);
/* Lines of a piece of the trace's text, without those of stack traces. */
uint64_t gt_control_lines(const char *text, size_t bytes);

int64_t gt_control_read(struct gt_control_handle *handle, char *buffer, size_t bytes,
			struct gt_message *message);
int64_t gt_control_write(struct gt_control_handle *handle, const char *bytes, size_t count,
			 struct gt_message *message);
int gt_control_close(struct gt_control_handle *handle, struct gt_message *message);

/* Opens, writes all of `bytes` (one word after the other) and closes, as the shell's echo does: the
 * first error ends it, what was taken before stays. */
int gt_control_put(const struct gt_control_node *node, bool truncate, const char *bytes,
		   size_t count, struct gt_message *message);

/* The HTTP status that answers an error of these calls, for every door that speaks HTTP. */
unsigned gt_control_http_status(int64_t error);

/* mkdir and rmdir of a path. GT_EPERM: not below instances/; GT_EEXIST, GT_ENOENT, GT_EBUSY. */
int gt_control_make(struct gt_control_target *target, const char *path, size_t bytes,
		    struct gt_message *message);
int gt_control_remove(struct gt_control_target *target, const char *path, size_t bytes,
		      struct gt_message *message);

/* An option by its name ("funcgraph-proc") or 0. */
uint64_t gt_control_option(const char *name, size_t bytes);

/* A tracer by its name, or -1; and the name of one. */
int gt_control_tracer(const char *name, size_t bytes);
const char *gt_control_tracer_name(uint32_t tracer);

#endif
