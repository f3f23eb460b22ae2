/* SPDX-License-Identifier: MIT */
/* What the files live*.c share. Each of them implements one kind of control files of a session. */
#ifndef GT_SERVE_LIVE_PRIVATE_H
#define GT_SERVE_LIVE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/trace/filter_texts.h"
#include "core/trace/message.h"
#include "core/trace/settings.h"
#include "serve/store/globs.h"
#include "serve/live/live.h"
#include "serve/store/store.h"
#include "serve/live/live_view.h"
#include "serve/text_reader.h"

/* Limits of one discarding read: a program may write faster than the reader throws away. */
#define DISCARD_BYTES 65536

struct gt_live;
struct gt_awake;
struct gt_live_cpus;
struct gt_live_event_list;
struct gt_live_instance;

/* The instances of a session. Removed ones stay in the list until the session ends. */
struct gt_live_instances {
	/* Held by the thread that copies records (gt_live_pull) and runs the commands it meets. */
	pthread_mutex_t turn;
	pthread_mutex_t
		lock; /* held while records are copied, and while a buffer or the list changes */
	pthread_cond_t wake; /* wakes the copying thread so that it ends */
	pthread_t pump;
	bool pumping, stop;
	/* The top's own buffers, NULL while the ring is its buffer. It gets them when another size
	 * is asked for, or when the ring holds more than the top asks for. own: new records;
	 * archive: those from before that moment. */
	struct gt_store *archive, *own;
	bool routed; /* `own` gets a part of the ring's records only */
	struct gt_awake
		*awake; /* sleep-time off of the profiler; NULL: it was never switched off */
	struct gt_live **all;
	uint32_t count;
};

/* The last snapshot. Guarded by the lock of struct gt_live_reading. */
struct gt_live_snapshot {
	struct gt_store *store;	      /* NULL: none, or an empty one */
	struct gt_merge_given *given; /* how far trace_pipe had read then, by writer; */
	uint32_t count;
	uint64_t switches_given;  /* the same of context switches: a clock */
	struct gt_text_look look; /* events and CPUs that were shown then */
	bool allocated;
};

/* How far consuming readers have read. The lock guards all of it. */
struct gt_live_reading {
	pthread_mutex_t lock;	     /* held while a block of a pipe's text is made */
	struct gt_text_reader *pipe; /* of trace_pipe; NULL until it was first opened */
	struct gt_text_look pipe_look;
	struct gt_live_cpus *cpu_pipes; /* of per_cpu/; NULL until one was first opened */
	struct gt_live_raw *raw; /* positions of trace_pipe_raw; if set, `pipe` is out of date */
	struct gt_live_snapshot snapshot;
};

/* Changes of settings, which happen one after the other. The lock guards all of it. */
struct gt_live_change {
	pthread_mutex_t lock; /* held while a list or the tracer is changed */
	bool watches;	      /* it has asked the session for context switches */
	uint32_t pauses;      /* readers of `trace` for which pause-on-trace stopped tracing */
	bool was_on;	      /* tracing goes on after the last of them */
	uint64_t versions[GT_LISTS];	/* how often each list was changed */
	struct gt_globs events;		/* words of set_event */
	struct gt_live_probes *probes;	/* rows of events, with a lock of their own; the top only */
	struct gt_filter_texts filters; /* of events */
};

/* How readers see the trace. Guarded by the lock of struct gt_live; `options` and `sched_switch` change under
 * change.lock, too. */
struct gt_live_shown {
	bool has_clock; /* view.clock is set; it is when the trace is first read */
	uint64_t options;
	uint64_t recorded_values; /* options that can show something; the top's, set at the start */
	/* Values of tracing_cpumask since the ring was emptied: the last one is in force; none: all
	 * CPUs. */
	struct gt_filter_masks masks;
	uint64_t cmdlines;
	bool sched_switch;					 /* the event is on */
	struct gt_merge_window switch_windows[GT_MERGE_WINDOWS]; /* when it was on */
	uint32_t switch_window_count;
	enum gt_control_clock clock;
	uint64_t time_start; /* clock at which the ring was last emptied */
};

/*
 * Locks, as comments name them:
 *	change.lock, reading.lock, live->lock: of the struct gt_live that the function is called for. The top and
 *		each instance have their own; no thread holds the same lock of two of them.
 *	turn, instances.lock: the top's instances.turn and instances.lock, also in functions called for an instance.
 * Order: change.lock, turn, reading.lock, instances.lock; after them live->lock, or the lock of a store, of the list of
 * events or of the session, which are held for moments. live->over.lock comes after live->lock and after a store's.
 * turn is taken by gt_live_pull() alone, which may be called with change.lock held and with none of the others. It
 * takes the reading.lock of the instance whose command it runs.
 */
struct gt_live {
	struct gt_control_target control;
	struct gt_control_log log;
	/* What readers read: the session's target with a clock that stays. (The session measures
	 * its clock again and again; a trace that is read twice must be the same twice.) */
	struct gt_target view;
	struct gt_live_view over; /* makes `view` of the session's target: marks, counts */
	struct gt_session *session;
	char *program;
	enum graftrace_arena_mode mode;
	bool no_fork;
	void (*dump)(void *data, const char *text,
		     size_t bytes); /* takes the command's text; or NULL */
	void *dump_data;
	uint64_t buffer_bytes;
	atomic_bool ended;
	struct gt_live *top;		    /* an instance's top; NULL in the top itself */
	struct gt_live_instance *instance;  /* what only an instance has; NULL in the top */
	struct gt_live_instances instances; /* used in the top only */

	pthread_mutex_t lock; /* guards what follows, up to `shown` */
	/* The settings. Their `on` is unused: tracing_on is kept by the session, or the instance's
	 * store. The lists change under change.lock, too. */
	struct gt_trace_settings settings;
	/* The functions that were listed last, for readers after the end. */
	struct gt_control_name *known;
	size_t known_count;
	bool pipe_busy;
	uint32_t cpus_busy; /* CPUs whose trace_pipe is open */
	struct gt_live_shown shown;

	struct gt_live_reading reading;
	struct gt_live_change change;
	struct gt_live_event_list *event_list; /* with a lock of its own; used in the top only */
};

static inline struct gt_live *live_of(struct gt_control_target *target)
{
	return target->data;
}

static inline int no_memory(struct gt_message *message)
{
	gt_message_set(message, "no memory");
	return GT_ENOMEM;
}

static inline int has_ended(struct gt_live *live, struct gt_message *message)
{
	if (!atomic_load(&live->ended))
		return 0;
	gt_message_set(message, "the program has ended");
	return GT_EGONE;
}

/*
 * The functions below may be called from any thread, with none of the locks held that come after those
 * which their comment names. `message` is set with each error.
 */

/* Fills in how the whole trace is shown at present. Takes live->lock. */
void gt_live_get_look(struct gt_live *live, struct gt_text_look *look);
/* Makes reading.pipe, the reader of trace_pipe, if there is none, if it shows another look, or if trace_pipe_raw has
 * been read since; the new one goes on where the last one stopped. Call with reading.lock held, while no trace_pipe_raw
 * is open. GT_ENOMEM: the last one stays. */
int gt_live_need_pipe(struct gt_live *live, const struct gt_text_look *look,
		      struct gt_message *message);
/* Makes the handle that text_read and text_close take. It owns the reader and one reference to the store (not NULL) from
 * which that reads; gt_live_text_close() closes and releases them. GT_ENOMEM, without a message: the caller owns them
 * still. Takes no lock. */
int gt_live_text_of(struct gt_text_reader *reader, struct gt_store *store, void **text);
/* Opens a reader of `trace`, which leaves out the records that trace_pipe has given. The caller closes it
 * (gt_text_reader_close). Takes reading.lock. GT_ENOMEM. */
int gt_live_open_trace(struct gt_live *live, const struct gt_text_look *look,
		       struct gt_text_reader **reader, struct gt_message *message);
/* Takes a snapshot, which replaces the last one: copies the records of control.view that trace_pipe has not given,
 * and trace_pipe goes on after them. While the ring is the top's buffer these are all records written so far. Of an
 * instance, and of a top with a buffer of its own, they are those that the last gt_live_pull() has copied there: pull
 * before, if newer ones are to be in it. It does not pull itself. Takes live->lock, and when that is released
 * reading.lock. GT_EBUSY: in drain mode, or while a trace_pipe_raw is open; GT_ENOMEM. After an error the last
 * snapshot stays. */
int gt_live_snapshot_take(struct gt_live *live, struct gt_message *message);
/* Whether snapshots can be taken: 0, or in drain mode GT_EBUSY. Takes no lock. */
int gt_live_snapshot_can(const struct gt_live *live, struct gt_message *message);
/* Frees the snapshot, if there is one. Call with reading.lock held, or when no other thread knows `live`. */
void gt_live_snapshot_forget(struct gt_live *live);
/* Whether a trace_pipe_raw is open. Call with reading.lock held. */
bool gt_live_raw_is_open(const struct gt_live *live);

/* Sets view.clock if this is the first look at the trace. Takes the session's lock, then live->lock. */
void gt_live_settle_clock(struct gt_live *live);

/* live_raw.c; call with reading.lock held.
 * given: by writer, the one position that the readers of all CPUs have passed: the earliest of theirs. As long as
 * some CPU's file was never open, it is that of trace_pipe when the first of these files was opened, or where discard
 * has moved it since. The caller frees the array. GT_ENOMEM.
 * switches_given: the same of context switches: the earliest of their clocks. Both only if reading.raw is set.
 * discard: counts as given what all CPUs still have up to the clock `begun`, whether their files are open or not.
 * False: none is open.
 * destroy: forgets the positions; no trace_pipe_raw may be open. Also when no other thread knows `live`. */
int gt_live_raw_given(struct gt_live *live, struct gt_merge_given **given, uint32_t *count);
uint64_t gt_live_raw_switches_given(const struct gt_live *live);
bool gt_live_raw_discard(struct gt_live *live, uint64_t begun);
void gt_live_raw_destroy(struct gt_live *live);

/* Takes back the request for context switches, if one was made (change.watches). Takes change.lock. */
void gt_live_unwatch(struct gt_live *live);

/* How far trace_pipe has read, by writer; or, if a trace_pipe_raw was opened since, the positions that the readers of
 * all CPUs have passed (gt_live_raw_given). The caller frees the array. What the trace_pipe of a single CPU has given is
 * not in it. Call with reading.lock held. GT_ENOMEM. */
int gt_live_given(struct gt_live *live, struct gt_merge_given **given, uint32_t *count);
/* The trace_pipe of one thread (look->scope); of a thread that is not there nothing is read. close frees the reader; the
 * reader of the whole trace then goes on after what this one has given. Call with reading.lock held, open while no
 * trace_pipe_raw is open. GT_ENOMEM. */
int gt_live_thread_pipe_open(struct gt_live *live, const struct gt_text_look *look,
			     struct gt_text_reader **reader, struct gt_message *message);
void gt_live_thread_pipe_close(struct gt_live *live, struct gt_text_reader *reader);

/* live_cpu.c: the trace_pipe of one CPU; call with reading.lock held.
 * open: the CPU is look->scope.number; the reader belongs to `live`. GT_EBUSY: it has one; GT_ENOENT: there is no such
 * CPU; GT_ENOMEM.
 * note: stores what the CPU's reader has given, and frees the sub-buffers that the readers of all CPUs have passed; call
 * it after each read. cpu must have a reader.
 * close: notes, and frees the reader.
 * skip: makes another reader leave out what those of CPUs have given. GT_ENOMEM, without a message: the reader may only
 * be closed. */
int gt_live_cpu_open(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_text_reader **reader, struct gt_message *message);
void gt_live_cpu_note(struct gt_live *live, uint32_t cpu);
void gt_live_cpu_close(struct gt_live *live, uint32_t cpu);
int gt_live_cpus_skip(struct gt_live *live, struct gt_text_reader *reader);
/* Call when the ring was emptied, with reading.lock held: makes the CPUs' readers throw away what they still have up to
 * the clock `begun`. text: memory of `bytes` bytes for that. */
void gt_live_cpus_empty(struct gt_live *live, uint64_t begun, char *text, size_t bytes);
/* Frees all; no reader of a CPU may be open. With reading.lock held, or when no other thread knows `live`. */
void gt_live_cpus_destroy(struct gt_live *live);

/* Empties the trace: no reader gets the present records any more. It pulls (gt_live_pull), so change.lock may be held,
 * and no other lock; takes live->lock and reading.lock. GT_ENOMEM. */
int gt_live_empty(struct gt_live *live, struct gt_message *message);

/*
 * Operations of struct gt_control_ops: core/control/control.h says what they take and give, and has the errors that are
 * not named here. They are called with no lock held, but for gt_live_get(), which may be called with change.lock held.
 * Each may hold live->lock, or the view's, the session's or a store's lock, for moments; its comment says which of
 * change.lock, reading.lock and instances.lock it takes. "No lock": none of these. "Pulls": it calls gt_live_pull(),
 * so it takes turn and instances.lock, and reading.lock if a command is met. A change of what is traced may fail with
 * an error of patching (attach/session/session.h), and is in force then.
 */

/* Gives a number: the tracer, tracing_on, a size, the options. Of an instance tracing_on pulls; otherwise no lock.
 * GT_ENOENT: the instance was removed. */
int gt_live_get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value);
/* Sets such a number. GT_ENOENT: the instance was removed. Locks, by GT_CONTROL_… :
 *	CMDLINES, CPUMASK and those up to CPUMASK_END	none
 *	CLOCK_ID					those of gt_live_empty()
 *	OPTIONS_ON, OPTIONS_OFF				change.lock, instances.lock; event-fork pulls
 *	TRACER						change.lock, instances.lock; of an instance pulls;
 *							then, with change.lock still held, those of gt_live_empty()
 *	TRACING_ON, MAX_DEPTH, THRESHOLD_NS, PROFILE	change.lock, instances.lock; of an instance pulls
 *	BUFFER_BYTES (the file buffer_size_kb)		change.lock, instances.lock
 *	SCHED_SWITCH					change.lock; of an instance pulls
 *	others (GT_ENOTSUP)				change.lock
 */
int gt_live_set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
		struct gt_message *message);

/* Opens `trace`, or (consume) the trace_pipe of all, of a thread or of a CPU. Pulls; then takes reading.lock, and
 * releases it; then, for the top's `trace`, takes change.lock, and with that held instances.lock if it stops tracing
 * (options/pause-on-trace). GT_ENOENT: there is no such CPU. */
int gt_live_text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		      bool consume, void **text, struct gt_message *message);
/* Reads on in one of these, or in the snapshot. A trace_pipe pulls and takes reading.lock, the others no lock. */
int64_t gt_live_text_read(struct gt_control_target *target, void *text, char *buffer, size_t bytes,
			  struct gt_message *message);
/* Closes it. A trace_pipe takes reading.lock; a `trace` that counts as a pause takes change.lock, and instances.lock if
 * tracing goes on with it; the others no lock. */
void gt_live_text_close(struct gt_control_target *target, void *text);
/* Empties the trace (gt_live_empty), or takes out what the trace_pipe of a thread or CPU would give now, with the errors
 * of its opening. Pulls; takes reading.lock. */
int gt_live_clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		  struct gt_message *message);
/* Counts the records of a scope. Pulls; then takes reading.lock, and releases it; then takes the lock `taking` of
 * live->over, while it counts (gt_live_view_stats). */
int gt_live_stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		  struct gt_control_stats *stats, struct gt_message *message);
/* Writes a line of trace_marker, or (raw) bytes of trace_marker_raw, into the trace. Of an instance pulls, of the top no
 * lock. */
int gt_live_mark(struct gt_control_target *target, const struct gt_control_writer *writer,
		 const char *bytes, size_t count, bool raw, struct gt_message *message);

/* Set, remove and list functions with commands. set and remove take change.lock; of an instance they also pull and take
 * instances.lock (gt_live_instance_command). read pulls of an instance, for index 0; otherwise no lock. set:
 * GT_EINVAL: no function matches, the count is 0, or an instance has the same command already; of remove too: the
 * instance was removed. GT_EBUSY: a snapshot in drain mode; GT_ENOSPC: too many. */
int gt_live_command_set(struct gt_control_target *target, const struct gt_control_command *command,
			struct gt_message *message);
int gt_live_command_remove(struct gt_control_target *target,
			   const struct gt_control_command *command, struct gt_message *message);
int gt_live_command_read(struct gt_control_target *target, uint64_t index,
			 struct gt_control_command *command, char *text, size_t room);

/* Open, read and close the trace_pipe_raw of a CPU. All take reading.lock; read pulls before. open: GT_EBUSY also if
 * there is no such CPU. */
int gt_live_raw_open(struct gt_control_target *target, uint32_t cpu, void **raw,
		     struct gt_message *message);
int64_t gt_live_raw_read(struct gt_control_target *target, void *raw, char *buffer, size_t bytes,
			 struct gt_message *message);
void gt_live_raw_close(struct gt_control_target *target, void *raw);

/* Open a list of functions as it is now, give its index-th name, and close it. No lock. */
int gt_live_list_open(struct gt_control_target *target, enum gt_control_list which, void **list,
		      struct gt_message *message);
int gt_live_list_read(struct gt_control_target *target, void *list, uint64_t index,
		      struct gt_control_name *name);
void gt_live_list_close(struct gt_control_target *target, void *list);

/* Change a list: open makes a copy (empty: an empty one), add and remove change it, close puts it in force. The list
 * may have been changed by others meanwhile: then close repeats all of it with the list of then, unless `empty`. open
 * takes change.lock for a moment; add and remove no lock; close change.lock and instances.lock, and of an instance it
 * pulls. close: GT_ENOENT: the instance was removed. */
int gt_live_edit_open(struct gt_control_target *target, enum gt_control_list which, bool empty,
		      void **edit, struct gt_message *message);
int gt_live_edit_add(struct gt_control_target *target, void *edit, const char *glob, size_t bytes,
		     const char *module, size_t module_bytes, bool plain,
		     struct gt_message *message);
int gt_live_edit_remove(struct gt_control_target *target, void *edit, const char *glob,
			size_t bytes, const char *module, size_t module_bytes,
			struct gt_message *message);
int gt_live_edit_close(struct gt_control_target *target, void *edit, struct gt_message *message);

/* Opens the function profiler's table, of all threads or of one. Pulls; takes instances.lock once more. */
int gt_live_profile_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			 void **table, struct gt_message *message);
/* Gives the table's index-th row. No lock. */
int gt_live_profile_read(struct gt_control_target *target, void *table, uint64_t index,
			 struct gt_control_profile_row *row);
/* Closes the profiler's table. No lock. */
void gt_live_profile_close(struct gt_control_target *target, void *table);

/* Takes, clears or frees the snapshot. Pulls; takes reading.lock. GT_EINVAL: of a single CPU or thread. */
int gt_live_snapshot(struct gt_control_target *target, enum gt_control_snapshot action,
		     const struct gt_control_scope *scope, struct gt_message *message);
/* Opens the snapshot as text, or says that there is none. Pulls; takes reading.lock. */
int gt_live_snapshot_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			  void **text, struct gt_message *message);

/* Gives the index-th thread of a list of threads. No lock. */
int gt_live_thread(struct gt_control_target *target, enum gt_control_threads which, uint32_t index,
		   uint32_t *tid);
/* Sets a list of threads. Takes change.lock; of the top instances.lock; of an instance pulls, and takes instances.lock
 * for the lists of events. GT_ENOSPC: the top's set_ftrace_pid and set_ftrace_notrace_pid have GT_SESSION_THREADS at
 * most; GT_EBUSY: a list of events in drain mode; GT_ENOENT: a list of events of an instance that was removed. */
int gt_live_threads_set(struct gt_control_target *target, enum gt_control_threads which,
			const uint32_t *tids, uint32_t count, struct gt_message *message);

#endif
