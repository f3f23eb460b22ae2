/* SPDX-License-Identifier: MIT */
/*
 * A session: one program (with what it forks and execs) being traced, seen from outside. It starts
 * the program, puts the agent in at the exec stop, patches what the filters name, drains the arena
 * into a sink, and offers the live target to readers. Not thread-safe but for what says so.
 */
#ifndef GT_ATTACH_SESSION_H
#define GT_ATTACH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "core/trace/probe.h"
#include "core/trace/settings.h"
#include "core/trace/target.h"
#include <graftrace/arena.h>

struct gt_session;

/* Globs as ftrace has them (* ? [..]); NULL-terminated arrays, NULL = none. */
struct gt_session_options {
	size_t size;	   /* sizeof(struct gt_session_options): room to grow */
	char *const *argv; /* the program, found as execvp finds it; or: */
	const pid_t *pids; /* processes that run, to attach to; argv NULL */
	size_t pid_count;
	bool children; /* with pids: also their children that run already, and theirs */
	enum graftrace_tracer tracer;
	const char *const *filter;  /* -l: only these; none = all of the program's own */
	const char *const *notrace; /* -n */
	const char *const *graph;   /* -g: only below these */
	uint32_t max_graph_depth;   /* 0 = no limit */
	uint64_t threshold_ns;	    /* 0 = none */
	uint64_t buffer_bytes;	    /* of the sub-buffers in all; 0 = 64 MB */
	enum graftrace_arena_mode mode;
	uint32_t wait_ms;    /* drain mode: how long a writer may wait for room */
	bool forget_writers; /* drain mode: those that have ended and are drained; nobody views */
	bool no_fork;	     /* children are left clean */
	bool no_switches;    /* context switches are not watched */
	bool libraries;	     /* also what is not the program's own (system libraries) */
	/* Also functions that no compiler has prepared where it has prepared others. Programs and
	 * libraries without any prepared function are traced in any case. */
	bool unprepared;
	bool start_off; /* tracing_on = 0 at the start */
	bool profile;	/* the function profiler is on from the start */
	bool libcalls;	/* also calls across the linkage table, as "puts@plt" */
	/* Functions that no jump fits in get a breakpoint (attach/agent/traps.h), where the process
	 * is one in which that does no harm. */
	bool breakpoints;
	/* Only functions whose first instruction stays as it is: the kernel's uprobes go there. */
	bool uprobe_safe;
	bool no_demangle;		   /* functions are named as the linker knows them */
	const char *const *library_globs;  /* --lib: these of the system's libraries too */
	const struct gt_trigger *triggers; /* from the first call on */
	size_t trigger_count;
	bool watch_ends; /* how children end matters: they are known before they call anything */
	/* Bit n - 1: the handlers of signal n get a trigger of action STOP, from when the program
	 * installs them. */
	uint64_t stop_signals;
	const char *const *graph_notrace; /* -N: not these, nor what they call */
	const char *const *events;	  /* -e: words of gt_session_set_events() */
	/* In turns a word and its filter: see gt_session_set_event_filter(). GT_EINVAL: an event that
	 * is there does not have its fields. */
	const char *const *event_filters;
	const char *const
		*probes; /* dynamic ones, as lines of dynamic_events with the path of a file */
	/* The file that the sink writes, with its clock's base, so that whoever comes after a host
	 * that was killed finds it (leftover.h). NULL: none. */
	const char *recording;
	struct gt_clock recording_clock;
	/* Where to; may be NULL. In the ring modes it is told of objects and functions only: what
	 * is in the ring stays there. */
	const struct gt_sink *sink;
};

/* Starts the program, or attaches to the processes, and puts the agent in; it runs when this
 * returns. GT_ENOENT: no such program, GT_ENOTSUP: cannot be traced (the message says why and what
 * to do), GT_EPERM, GT_EIO, GT_ENOMEM. Attaching also: GT_EGONE: there is no such process, or it
 * has ended; GT_EBUSY: it cannot be stopped, or another graftrace records it. After an error all
 * processes are as before. */
int gt_session_start(const struct gt_session_options *options, struct gt_session **session,
		     struct gt_message *message);

/* Waits at most timeout_ms for work (mail, full sub-buffers, stops, ends), does it, returns 1 while
 * anything of the target lives, 0 once all has ended and is drained, or an error (the sink's). */
int gt_session_poll(struct gt_session *session, int timeout_ms, struct gt_message *message);

/*
 * Takes the agent out of all processes of the session: their code, memory maps and threads are as
 * before it came. What could not be taken out is told in *message (empty: nothing), and the first
 * error is returned; neither harms the processes. The session has no processes afterwards:
 * gt_session_poll drains what they had written and returns 0.
 */
int gt_session_detach(struct gt_session *session, struct gt_message *message);

/* The live target, for the views. Its functions may be called from other threads than poll's. */
struct gt_target *gt_session_target(struct gt_session *session);

/* Changes while it runs; each takes effect before it returns. From any thread. */
int gt_session_set_tracing_on(struct gt_session *session, bool on, struct gt_message *message);
bool gt_session_tracing_on(struct gt_session *session);
int gt_session_set_tracer(struct gt_session *session, enum graftrace_tracer tracer,
			  struct gt_message *message);
/* The lists filter, notrace and graph of `settings` at once, and nothing else of them; the session
 * holds the lists. GT_EINVAL: a glob matches nothing. */
int gt_session_set_filters(struct gt_session *session, const struct gt_trace_settings *settings,
			   struct gt_message *message);
/* set_graph_notrace: function_graph records neither these nor what they call. GT_EINVAL. */
int gt_session_set_graph_notrace(struct gt_session *session, struct gt_word_list *list,
				 struct gt_message *message);
/* Which events with fields are recorded, by whatever tracer: words as "system:name", globs, with
 * '!' not; the last one that names an event says. NULL or empty: none. */
int gt_session_set_events(struct gt_session *session, const char *const *words,
			  struct gt_message *message);
/* A filter of the events that the word names (gt_event_word_matches), evaluated where they happen; the
 * last word that names an event says. NULL: all are recorded. Events without its fields are not
 * filtered. GT_ENOMEM, GT_ENOSPC. */
int gt_session_set_event_filter(struct gt_session *session, const char *word, const char *filter,
				struct gt_message *message);
/* All that are known, object by object: calls back until it returns non-zero. enabled: in some
 * process. A place that cannot be patched has a reason (else NULL). */
int gt_session_each_event(struct gt_session *session,
			  int (*each)(void *data, const struct gt_event_format *event, bool enabled,
				      const char *reason),
			  void *data);
/*
 * Dynamic probes (core/trace/probe.h): a line of dynamic_events sets one; gt_session_set_events() says
 * whether its event is recorded. A place without a path is the program's own. GT_EINVAL, GT_ENOENT,
 * GT_EEXIST: *error says what is wrong, and where; the message too.
 */
int gt_session_set_probe(struct gt_session *session, const char *text, size_t bytes,
			 enum gt_probe_kinds kinds, struct gt_probe_error *error,
			 struct gt_message *message);
/* Those of the group and name; "": any. GT_ENOENT: there is none (of a name); GT_EBUSY: one of them is
 * recorded, and none was removed. */
int gt_session_remove_probes(struct gt_session *session, const char *group, const char *name,
			     struct gt_message *message);
struct gt_session_probe {
	const struct gt_probe_definition *definition;
	const char *path;
	uint64_t offset; /* in the file */
	bool enabled;	 /* it is recorded */
};
/* In the order in which they were set: calls back, under the session's lock, until it returns
 * non-zero. */
int gt_session_each_probe(struct gt_session *session,
			  int (*each)(void *data, const struct gt_session_probe *probe),
			  void *data);
/* options/func_stack_trace: the function tracer writes a stack trace behind each call. */
int gt_session_set_func_stack(struct gt_session *session, bool on, struct gt_message *message);
int gt_session_set_max_graph_depth(struct gt_session *session, uint32_t depth);
/* GT_EBUSY: see gt_session_set_profile. */
int gt_session_set_threshold(struct gt_session *session, uint64_t ns);
/* Whether a function that can be traced matches. */
bool gt_session_has_function(struct gt_session *session, const char *glob);

/*
 * Others who ask for records besides the top of the control files, whom the functions above serve:
 * instances. Everything is recorded that any of them asks for (with function_graph if one has that
 * tracer); who wants less leaves the rest out where it reads.
 */
/* A number for one more of them, which asks for nothing yet. GT_ENOSPC: there are too many. */
int gt_session_join(struct gt_session *session, uint32_t *who, struct gt_message *message);
/* Instance `who` asks for these settings, all at once; the session holds the lists. GT_EINVAL: a
 * glob matches nothing, and what it asked for before stays. */
int gt_session_ask(struct gt_session *session, uint32_t who,
		   const struct gt_trace_settings *settings, struct gt_message *message);
/* The number can be another one's. */
void gt_session_leave(struct gt_session *session, uint32_t who);
/* Whether the ring would have what the top asks for, and nothing more, if `who` asked for these
 * settings. */
bool gt_session_top_has_all(struct gt_session *session, uint32_t who,
			    const struct gt_trace_settings *settings);
/* Ring modes: whether a full ring keeps the newest records. GT_EINVAL: recorded into a file as it
 * comes. */
int gt_session_set_overwrite(struct gt_session *session, bool overwrite,
			     struct gt_message *message);
/* From now on, for good: the ring is read by somebody who takes out what comes, all the time. A
 * writer that finds no room waits for that, a fifth of a second at most, before it drops. Ring
 * modes. */
void gt_session_set_transport(struct gt_session *session);
/* Something was taken out: writers that have stopped for want of room go on. */
void gt_session_has_room(struct gt_session *session);
/*
 * Triggers (core/trace/target.h says what they are). From any thread; each takes the session's lock.
 * add: GT_EINVAL no function matches, GT_ENOSPC no room for so many functions. The glob is copied.
 * The same glob, action and longer_than_ns again replace skip and count.
 * remove: those with the same glob, action and longer_than_ns; GT_ENOENT: there is none.
 * get: the index-th; `count` is as it was set, or, counted down, the most that is left for any of
 * its functions (*spent: nothing is left for all of them, count = 0). GT_ENOENT behind the last.
 * handler: called for SNAPSHOT, DUMP and STOP by the thread that polls the session, which holds no
 * lock then. The thread that hit it waits meanwhile, half a second at most, with SNAPSHOT and DUMP.
 */
int gt_session_trigger_add(struct gt_session *session, const struct gt_trigger *trigger,
			   struct gt_message *message);
int gt_session_trigger_remove(struct gt_session *session, const struct gt_trigger *trigger,
			      struct gt_message *message);
int gt_session_trigger_get(struct gt_session *session, uint32_t index, struct gt_trigger *trigger,
			   bool *spent);
int gt_session_trigger_handler(struct gt_session *session,
			       void (*handler)(void *data, const struct gt_trigger_hit *hit),
			       void *data);

/* Threads that are traced alone (set_ftrace_pid), or not (set_ftrace_notrace_pid). */
enum gt_session_list {
	GT_SESSION_ONLY = 0,
	GT_SESSION_NOT = 1,
};
/* All of a list at once; count 0: there is no such list. GT_ENOSPC: more than 2048. */
int gt_session_set_threads(struct gt_session *session, enum gt_session_list which,
			   const uint32_t *tids, uint32_t count, struct gt_message *message);
/* The index'th of a list by number; GT_ENOENT behind the last. */
int gt_session_thread(struct gt_session *session, enum gt_session_list which, uint32_t index,
		      uint32_t *tid);
/* All of a list, by number; how many. */
#define GT_SESSION_THREADS 2048
uint32_t gt_session_threads(struct gt_session *session, enum gt_session_list which,
			    uint32_t tids[GT_SESSION_THREADS]);
/* Whether there is such a list. */
bool gt_session_lists_threads(const struct gt_session *session);
/* Whether new threads and children come into the lists that their creators are in. */
void gt_session_set_follow(struct gt_session *session, bool follow);

/*
 * Context switches of the processes' threads (struct gt_switch_ops), from the
 * kernel. Where it tells them they are watched while there is a tracer, but with
 * options.no_switches. In drain mode they go to the sink as they come.
 */
/* 0; or they were to be watched and cannot be: the message says why (GT_EPERM, GT_ENOTSUP, GT_EIO).
 */
int gt_session_switches(struct gt_session *session, struct gt_message *message);
/* Watches them from now on, with or without a tracer, until as many times the second was called as
 * the first gave 0. As above. */
int gt_session_watch_off_cpu(struct gt_session *session, struct gt_message *message);
void gt_session_unwatch_off_cpu(struct gt_session *session);
/* Who started that thread, and the clock of that, if it happened while they were watched: the
 * number, 0 unknown. */
uint32_t gt_session_creator(struct gt_session *session, uint32_t tid, uint64_t *clock);
/* Ring modes: those that are kept, the newest, to a sink. Its error. */
int gt_session_give_switches(struct gt_session *session, const struct gt_sink *sink);

/*
 * The function profiler: every thread counts its calls and their times in tables of its own;
 * nothing goes to the ring for it. What the filters let through is counted. Switching it on begins
 * anew; switched off it can still be read. GT_EBUSY, where records go to a file as they come (or at
 * the start): not beside the tracer function, nor beside
 * function_graph with tracing_thresh.
 */
int gt_session_set_profile(struct gt_session *session, bool on, struct gt_message *message);
bool gt_session_profiles(const struct gt_session *session);

/* One function. Times in ns. */
struct gt_profile_row {
	struct gt_function named; /* the strings are the session's */
	uint32_t function;
	uint64_t hits;	   /* calls that have begun */
	uint64_t time_ns;  /* of those that have ended */
	uint64_t self_ns;  /* … without their callees' */
	uint64_t variance; /* of the time of a call, in ns² / 1000: s^2 as Linux has it */
};

/* The longest time first, for qsort. */
static inline int gt_profile_row_order(const void *left, const void *right)
{
	const struct gt_profile_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? 1 : -1;
	if (a->hits != b->hits)
		return a->hits < b->hits ? 1 : -1;
	return a->function < b->function ? -1 : 1;
}

/* While this is set and the profiler is on, all calls that it counts are recorded, whatever the
 * tracer, tracing_on and the limits: for somebody who looks when they were off the CPU. Ring modes
 * only; who reads the ring leaves out what nobody asked for. */
void gt_session_set_profile_awake(struct gt_session *session, bool awake);

/* All functions that were called, longest time first; of all threads (tid 0) or one that lives.
 * self: time and variance are those of the functions alone (graph-time = 0). The array is the
 * caller's to free. GT_ENOMEM. From any thread, also after the end. */
int gt_session_profile(struct gt_session *session, uint32_t tid, bool self,
		       struct gt_profile_row **rows, uint32_t *count);

/* Empties the ring (echo > trace). */
int gt_session_clear(struct gt_session *session);

/* All functions that can be traced, in address order, object by object: calls back until it returns
 * non-zero. enabled: traced now. */
int gt_session_each_function(struct gt_session *session,
			     int (*each)(void *data, uint32_t number,
					 const struct gt_function *function, bool enabled),
			     void *data);

/* A process of the session that a signal killed. */
struct gt_session_death {
	pid_t pid;
	int signal;
};
#define GT_SESSION_DEATHS 64 /* that are noted: the first ones */
/* Those so far, as many as there is room for; how many that are. */
uint32_t gt_session_deaths(struct gt_session *session, struct gt_session_death *deaths,
			   uint32_t room);
/* SIGSEGV, SIGABRT and their kind: the program did it to itself. */
bool gt_signal_is_crash(int signal);

/* A process that runs untraced, and why: the image that it has executed, or a child (`children`)
 * that cannot be attached to. One of each reason. */
struct gt_session_untraced {
	pid_t pid;
	char why[300];
};
#define GT_SESSION_UNTRACED 16 /* that are noted: the first ones */
/* Number `index` of those so far. From any thread. */
bool gt_session_untraced(struct gt_session *session, uint32_t index,
			 struct gt_session_untraced *untraced);

/* Of the program itself, once ended: as waitpid gives it. Of a process that was attached to only
 * the signal that killed it is known, if one did: else 0. */
int gt_session_exit_status(const struct gt_session *session);
pid_t gt_session_pid(const struct gt_session *session);

struct gt_session_totals {
	/* Of what somebody has written over, which any traced process can do: */
	uint64_t corrupt; /* sub-buffers that were thrown away */
	uint32_t damaged; /* threads whose numbers cannot be right: they are not in here */
	struct gt_writer damaged_first; /* the first of these */
	uint32_t actions_left;		/* dumps and snapshots left out: too many in a second */
	uint64_t words;			/* records drained */
	uint64_t lost_events;		/* that are no calls, for lack of room */
	uint64_t calls;			/* entries among them */
	uint32_t threads;
	uint32_t processes;
	uint64_t ns;	     /* from start to end */
	uint64_t stopped_ns; /* the longest time that all threads of a process were stopped */
	uint64_t left_ns;    /* the same while they were detached from */
	uint64_t lost[GRAFTRACE_LOST_CAUSES];
	bool pool_is_held; /* the buffer was full of what threads had open, each a part of its own */
	/* Why functions that need a breakpoint went untraced: static text; NULL: none was asked
	 * for, or needed, or all got theirs. */
	const char *no_breakpoints;
	const char *entries_only; /* why a process was recorded at its entries only, or NULL */
};
void gt_session_totals(struct gt_session *session, struct gt_session_totals *totals);

/* What `damaged` and `corrupt` of the totals are together, now. */
uint64_t gt_session_damaged(struct gt_session *session);

/* How much of the pool of sub-buffers is in use, 0 ... 100. From anywhere, from the sink too. */
unsigned gt_session_buffer_use(const struct gt_session *session);

/* Forwards a signal to the program (Ctrl-C is the program's own business: the terminal sends it).
 */
int gt_session_signal(struct gt_session *session, int signal);

void gt_session_destroy(struct gt_session *session);

#endif
