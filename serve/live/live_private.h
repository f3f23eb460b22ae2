/* SPDX-License-Identifier: MIT */
/* What the files live*.c share: each has one kind of a session's control files. */
#ifndef GT_SERVE_LIVE_PRIVATE_H
#define GT_SERVE_LIVE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "core/trace/message.h"
#include "core/trace/settings.h"
#include "serve/store/globs.h"
#include "serve/live/live.h"
#include "serve/store/store.h"
#include "serve/live/live_view.h"
#include "serve/text_reader.h"

/* A program that writes faster than a reader throws away must not hold that for ever: so many
 * blocks of so many bytes at most. */
#define DISCARD_BYTES  65536
#define DISCARD_BLOCKS 4096

struct gt_live;
struct gt_awake;
struct gt_live_cpus;
struct gt_live_instance;

/* The instances of a session. They stay, also removed ones, as long as it. */
struct gt_live_instances {
	pthread_mutex_t turn; /* one copies, and carries out what commands it meets, at a time */
	pthread_mutex_t lock;
	pthread_cond_t wake; /* of the thread that copies, at its end */
	pthread_t pump;
	bool pumping, stop;
	/* Of the top, from when the ring is not its buffer: another size was asked for, or what is
	 * recorded is more than it asks for. own: what comes; archive: what was there before it is
	 * routed. Else NULL. */
	struct gt_store *archive, *own;
	bool routed;		/* own is not all that is recorded */
	struct gt_awake *awake; /* of the profiler with sleep-time off; NULL: it never was */
	struct gt_live **all;
	uint32_t count;
};

/* The last snapshot. */
struct gt_live_snapshot {
	struct gt_store *store;	      /* NULL: none, or an empty one */
	struct gt_merge_given *given; /* what trace_pipe had given before it, … */
	uint32_t count;
	uint64_t switches_given;  /* … and of context switches */
	struct gt_text_look look; /* which were shown then, and of which CPUs */
	bool allocated;
};

/* What consuming readers have taken out. */
struct gt_live_reading {
	pthread_mutex_t lock;	     /* held while a block of text is made; never with live->lock */
	struct gt_text_reader *pipe; /* trace_pipe's; NULL until there was a client */
	struct gt_text_look pipe_look;
	struct gt_live_cpus *cpu_pipes; /* CPU by CPU; NULL until there was a client */
	struct gt_live_raw *raw; /* the places of trace_pipe_raw; then `pipe` is out of date */
	struct gt_live_snapshot snapshot;
};

/* Changes of what is asked: one after the other. */
struct gt_live_change {
	pthread_mutex_t lock;	     /* held while a list or the tracer is changed */
	bool watches;		     /* context switches */
	uint32_t pauses;	     /* readers of `trace` for whom tracing is off … */
	bool was_on;		     /* … and whether it goes on afterwards */
	uint64_t versions[GT_LISTS]; /* how often each list was changed */
};

/*
 * Locks, the first to be taken first: change.lock, reading.lock, instances.lock; then live->lock, or
 * a store's or the session's own, which are held for moments.
 */
struct gt_live {
	struct gt_control_target control;
	struct gt_control_log log;
	/* The session's target, with a clock of its own: a session measures its clock better and
	 * better, and a trace that is read twice shall be the same twice. */
	struct gt_target view;
	struct gt_live_view over; /* what `view` is made of: marks, counts */
	struct gt_session *session;
	char *program;
	enum graftrace_arena_mode mode;
	bool no_fork;
	void (*dump)(void *data, const char *text, size_t bytes); /* of the command; or NULL */
	void *dump_data;
	uint64_t buffer_bytes;
	atomic_bool ended;
	struct gt_live *top;		    /* of an instance; else NULL */
	struct gt_live_instance *instance;  /* what an instance has besides; else NULL */
	struct gt_live_instances instances; /* of the top */

	pthread_mutex_t lock; /* guards what follows */
	bool has_clock;	      /* view.clock is settled: when the trace was read first */
	/* What is asked; its `on` is the session's, or the instance's store's. The lists change
	 * under change.lock, too. */
	struct gt_trace_settings settings;
	struct gt_control_name
		*known; /* functions as they were listed last: for when it has ended */
	size_t known_count;
	uint64_t options;
	struct gt_filter_masks masks; /* tracing_cpumask since the ring was emptied; the last one
				       * holds, and with none all CPUs' */
	uint64_t cmdlines;
	bool sched_switch; /* the event is on; it was shown … */
	struct gt_merge_window switch_windows[GT_MERGE_WINDOWS]; /* … in these times */
	uint32_t switch_window_count;
	enum gt_control_clock clock;
	uint64_t time_start; /* the counter when the ring was emptied last */
	bool pipe_busy;
	uint32_t cpus_busy; /* CPUs whose trace_pipe is open */

	struct gt_live_reading reading;
	struct gt_live_change change;
	struct gt_globs events;		 /* under change.lock: words of set_event */
	struct gt_live_probes *probes;	 /* the same: rows of events; of the top */
	struct gt_live_filters *filters; /* the same: what they show; NULL: none was set */
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

/* How the whole trace is shown now. */
void gt_live_get_look(struct gt_live *live, struct gt_text_look *look);
/* Under reading.lock: the pipe's reader, made if there is none. */
int gt_live_need_pipe(struct gt_live *live, const struct gt_text_look *look,
		      struct gt_message *message);
/* A text for text_read and text_close; both arguments are its own then. GT_ENOMEM. */
int gt_live_text_of(struct gt_text_reader *reader, struct gt_store *store, void **text);
/* A reader of `trace`, with what trace_pipe has given left out. */
int gt_live_open_trace(struct gt_live *live, const struct gt_text_look *look,
		       struct gt_text_reader **reader, struct gt_message *message);
/* Of all that was copied so far. GT_EBUSY, GT_ENOMEM. */
int gt_live_snapshot_take(struct gt_live *live, struct gt_message *message);
/* Whether snapshots can be taken. GT_EBUSY. */
int gt_live_snapshot_can(const struct gt_live *live, struct gt_message *message);
/* Under reading.lock: there is no snapshot any more. */
void gt_live_snapshot_forget(struct gt_live *live);
/* Under reading.lock: somebody reads a trace_pipe_raw. */
bool gt_live_raw_is_open(const struct gt_live *live);

/* view.clock is settled at the first look at the trace. */
void gt_live_settle_clock(struct gt_live *live);

/* live_raw.c, under reading.lock: how far the readers of all CPUs have given (malloc'ed; GT_ENOMEM),
 * and up to which clock of context switches, only if live->reading.raw is there; what there is now counts
 * as given (false: nobody has a CPU open); forgetting the places, when nobody has one open. */
int gt_live_raw_given(struct gt_live *live, struct gt_merge_given **given, uint32_t *count);
uint64_t gt_live_raw_switches_given(const struct gt_live *live);
bool gt_live_raw_discard(struct gt_live *live);
void gt_live_raw_destroy(struct gt_live *live);

/* Context switches are watched no more on its account. */
void gt_live_unwatch(struct gt_live *live);

/* options/pause-on-trace: tracing is off from the first of these to the last of those. */
bool gt_live_pause(struct gt_live *live);
void gt_live_unpause(struct gt_live *live);

/* Under reading.lock: how far any reader has taken records out; malloc'ed. GT_ENOMEM. */
int gt_live_given(struct gt_live *live, struct gt_merge_given **given, uint32_t *count);
/* A thread's trace_pipe: the whole trace's reader goes on behind it when it is closed. */
int gt_live_thread_pipe_open(struct gt_live *live, const struct gt_text_look *look,
			     struct gt_text_reader **reader, struct gt_message *message);
void gt_live_thread_pipe_close(struct gt_live *live, struct gt_text_reader *reader);

/* live_cpu.c, under reading.lock: one CPU's trace_pipe; what it has given is noted after each read,
 * and left out by other readers (skip; GT_ENOMEM) until the ring is emptied (forget). */
int gt_live_cpu_open(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_text_reader **reader, struct gt_message *message);
void gt_live_cpu_note(struct gt_live *live, uint32_t cpu);
void gt_live_cpu_close(struct gt_live *live, uint32_t cpu);
int gt_live_cpus_skip(struct gt_live *live, struct gt_text_reader *reader);
/* The ring was emptied: what there was is read by nobody. text: room to throw it away. */
void gt_live_cpus_empty(struct gt_live *live, char *text, size_t bytes);
void gt_live_cpus_destroy(struct gt_live *live);

/* What there is of the trace is read by nobody any more. GT_ENOMEM. */
int gt_live_empty(struct gt_live *live, struct gt_message *message);

/* Operations of struct gt_control_ops. */
int gt_live_get(struct gt_control_target *target, enum gt_control_value which, uint64_t *value);
int gt_live_set(struct gt_control_target *target, enum gt_control_value which, uint64_t value,
		struct gt_message *message);
int gt_live_text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		      bool consume, void **text, struct gt_message *message);
int64_t gt_live_text_read(struct gt_control_target *target, void *text, char *buffer, size_t bytes,
			  struct gt_message *message);
void gt_live_text_close(struct gt_control_target *target, void *text);
int gt_live_clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		  struct gt_message *message);
int gt_live_stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		  struct gt_control_stats *stats, struct gt_message *message);
int gt_live_mark(struct gt_control_target *target, const struct gt_control_writer *writer,
		 const char *bytes, size_t count, bool raw, struct gt_message *message);
int gt_live_command_set(struct gt_control_target *target, const struct gt_control_command *command,
			struct gt_message *message);
int gt_live_command_remove(struct gt_control_target *target,
			   const struct gt_control_command *command, struct gt_message *message);
int gt_live_command_read(struct gt_control_target *target, uint64_t index,
			 struct gt_control_command *command);
int gt_live_raw_open(struct gt_control_target *target, uint32_t cpu, void **raw,
		     struct gt_message *message);
int64_t gt_live_raw_read(struct gt_control_target *target, void *raw, char *buffer, size_t bytes,
			 struct gt_message *message);
void gt_live_raw_close(struct gt_control_target *target, void *raw);
int gt_live_list_open(struct gt_control_target *target, enum gt_control_list which, void **list,
		      struct gt_message *message);
int gt_live_list_read(struct gt_control_target *target, void *list, uint64_t index,
		      struct gt_control_name *name);
void gt_live_list_close(struct gt_control_target *target, void *list);
int gt_live_edit_open(struct gt_control_target *target, enum gt_control_list which, bool empty,
		      void **edit, struct gt_message *message);
int gt_live_edit_add(struct gt_control_target *target, void *edit, const char *glob, size_t bytes,
		     const char *module, size_t module_bytes, bool plain,
		     struct gt_message *message);
int gt_live_edit_remove(struct gt_control_target *target, void *edit, const char *glob,
			size_t bytes, const char *module, size_t module_bytes,
			struct gt_message *message);
int gt_live_edit_close(struct gt_control_target *target, void *edit, struct gt_message *message);
int gt_live_profile_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			 void **table, struct gt_message *message);
int gt_live_profile_read(struct gt_control_target *target, void *table, uint64_t index,
			 struct gt_control_profile_row *row);
int gt_live_snapshot(struct gt_control_target *target, enum gt_control_snapshot action,
		     const struct gt_control_scope *scope, struct gt_message *message);
int gt_live_snapshot_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			  void **text, struct gt_message *message);
int gt_live_thread(struct gt_control_target *target, enum gt_control_threads which, uint32_t index,
		   uint32_t *tid);
int gt_live_threads_set(struct gt_control_target *target, enum gt_control_threads which,
			const uint32_t *tids, uint32_t count, struct gt_message *message);
void gt_live_profile_close(struct gt_control_target *target, void *table);

#endif
