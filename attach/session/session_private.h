/* SPDX-License-Identifier: MIT */
/*
 * The parts of a session, as the files of this room share them. All fields are guarded by the session's
 * lock, and all functions are called with it held, unless their comment says otherwise. The thread that
 * polls is the one that calls gt_session_poll(); before gt_session_start() returns, its caller.
 */
#ifndef GT_ATTACH_SESSION_PRIVATE_H
#define GT_ATTACH_SESSION_PRIVATE_H

#include <pthread.h>
#include "attach/ring/arena.h"
#include "attach/agent/catalog.h"
#include "attach/agent/detach.h"
#include "attach/agent/program_rules.h"
#include "attach/process/clock.h"
#include "attach/process/credentials.h"
#include "attach/ring/drain.h"
#include "attach/session/live_target.h"
#include "attach/ring/off_cpu.h"
#include "attach/session/profile.h"
#include "attach/session/session.h"
#include "attach/agent/tracee.h"
#include "attach/agent/triggers.h"
#include "attach/agent/values.h"
#include "attach/session/follow.h"
#include "attach/session/mail.h"
#include "attach/session/numbers.h"
#include "attach/session/stop_words.h"

/* An arena, and how the host reads it. Processes with the same credentials share one. */
struct gt_session_arena {
	struct gt_arena shared; /* the memory itself */
	struct gt_drain drain;
	struct gt_profile profile;
	struct gt_credentials credentials; /* of the processes that have it */
	uint32_t processes;		   /* that have or had it */
};

/* The top (number 0) or an instance, with its settings. */
struct gt_session_asker {
	bool used;
	struct gt_trace_settings settings;
	struct gt_asked asked; /* the same settings, as the selection takes them */
};

/* What is asked of the recording beside the selection of functions. */
struct gt_session_wanted {
	struct gt_session_asker askers[GT_ASKED_MAX];
	uint32_t others;       /* instances that have a tracer, or events */
	uint64_t threshold_ns; /* in force in the arena; 0: none */
	bool func_stack;       /* options/func_stack_trace */
	bool transport;	       /* see gt_session_set_transport() */
	bool profile_awake;    /* see gt_session_set_profile_awake() */
};

/* The program, or the first of the processes that were attached to. Set before another thread knows the
 * session, but for `reaped` and `status`, which the thread that polls sets. */
struct gt_session_program {
	pid_t pid;
	uint64_t start_time; /* of gt_process_start_time(); of several processes the earliest */
	bool attached;	     /* it ran before: waitpid does not work for it */
	bool reaped;	     /* there is nothing left to wait for */
	int status;	     /* as waitpid gives it, once it was reaped; else 0 */
};

/* Ancestors of the processes that are noted. */
#define GT_REAPERS 64
/* Children that are noted as refused. */
#define GT_CHILDREN_REFUSED 256

#define GT_TRACEES_ENDED 4

/* The living processes (follow.h), and what decides who joins them. The program itself may have left
 * them. Only the thread that polls changes this, but for adding to the list (gt_mail_obey_awaited()). */
struct gt_session_tracees {
	struct gt_tracee **list; /* [room]; `count` are in use, each of them allocated */
	size_t count;
	size_t room;
	/* The newest that have ended, of which no other process in the list has its agent where theirs was: what forks
	 * of theirs are that have not told of themselves yet. NULL: none. */
	struct gt_tracee *ended[GT_TRACEES_ENDED];
	uint32_t next_ended; /* which of them is the oldest */
	const struct gt_tracee
		*coming; /* is being attached to, and not in the list yet; NULL: none */
	uint32_t so_far; /* processes that were traced, ended ones included */
	bool no_fork;	 /* children are left; set at the start */
	/* Ancestors of the processes: one of them becomes the parent of orphans. */
	pid_t reapers[GT_REAPERS];
	size_t reaper_count;
	/* Children that could not be attached to and are not tried again. */
	pid_t refused[GT_CHILDREN_REFUSED];
	uint32_t next_refused; /* the oldest one makes room */
	uint64_t taken_ms;     /* in this round, for children that nothing describes */
};

/* Context switches. */
struct gt_session_switches {
	struct gt_off_cpu_watch
		watch;	       /* with a lock of its own, which is taken after the session's */
	bool never;	       /* options.no_switches; set at the start */
	uint32_t wanted;       /* calls of gt_session_watch_off_cpu() in force */
	int error;	       /* why they are not watched; 0: they are, or need not be */
	struct gt_message why; /* the same in words */
	uint64_t given;	       /* written to the sink so far; the thread that polls alone uses it */
};

/* A trigger's letter whose handler is to run. */
struct gt_pending_hit {
	bool waits; /* the letter is answered once the handler has run; else it has been */
	struct gt_letter letter;
	struct gt_trigger_hit hit;
};

/* What triggers have done. The handler is called without the lock. */
struct gt_session_hits {
	void (*handler)(void *data, const struct gt_trigger_hit *hit); /* NULL: none */
	void *handler_data;
	/* Only the thread that polls adds to them, and takes them off. `waits` becomes false when the letter is
	 * answered. */
	struct gt_pending_hit pending[GRAFTRACE_ARENA_MAIL];
	uint32_t pending_count;
	/* The limit of dumps and snapshots in a second: */
	uint64_t second_ns;    /* when the present second began */
	uint32_t actions;      /* done in it */
	uint32_t actions_left; /* left out so far, in all seconds */
};

/* What is noted for those who ask how the recording went. */
struct gt_session_notes {
	struct gt_session_death deaths[GT_SESSION_DEATHS];
	uint32_t death_count;
	struct gt_session_untraced untraced[GT_SESSION_UNTRACED];
	uint32_t untraced_count;
	/* As in struct gt_session_totals; the texts: of processes that have ended. */
	const char *entries_only;
	const char *no_breakpoints;
	uint64_t stopped_ns;
	uint64_t left_ns;
	uint32_t attached_anew;
};

/* The lists of threads as they were last set, but for threads that have ended. By enum gt_session_list. */
struct gt_session_listed {
	uint32_t tids[2][GT_SESSION_THREADS];
	uint32_t counts[2];
};

/* The session's time line. `first` is set at the start, the others by the thread that polls. */
struct gt_session_times {
	struct gt_instant first;
	struct gt_instant last;	      /* of the last calibration */
	uint64_t next_calibration_ns; /* when the clock is measured again */
	uint64_t end_ns;	      /* when the session ended; 0: it runs */
};

/* When the thread that polls does next what it does now and then; it alone uses this. */
struct gt_session_due {
	uint64_t thread_check_ns; /* looks for threads that have ended */
	uint64_t look_ns;	  /* looks at processes' credentials … */
	size_t look_at;		  /* … at this number of the list first */
	uint64_t move_ns;	  /* before, no process is given another arena */
};

/* A thread that waits for the ends of processes and rings the arena's doorbell. It takes no lock; `epoll`
 * stays while it runs. */
struct gt_session_watcher {
	pthread_t thread;
	bool runs;
	int epoll; /* has the pidfds of the tracees; -1: none */
};

struct gt_session {
	pthread_mutex_t lock;
	/* Set at the start, and constant: */
	const struct gt_sink *sink;
	struct gt_process_helper helper; /* of all processes: mail.h */
	struct gt_values *values;	 /* what it asks for of arguments and results */
	bool started;			 /* gt_session_start() has succeeded */
	/* By the arenas' numbers. Only the thread that polls adds one, and counts it (release) once it
	 * is whole: the count may be read without the lock (acquire). */
	struct gt_session_arena arenas[GT_ARENAS];
	uint32_t arena_count;
	bool is_polling; /* the thread that polls has the lock, or has not begun */
	struct gt_catalog catalog;
	struct gt_selection selection;
	struct gt_triggers triggers;
	struct gt_event_rules event_rules;
	struct gt_rules_of_program rules_of_program;
	/* [gt_syscall_event_count()] the sink knows the event; NULL: none. */
	uint8_t *syscalls_told;
	struct gt_live_target live; /* its operations take the lock themselves */
	struct gt_session_wanted wanted;
	struct gt_session_program program;
	struct gt_session_tracees tracees;
	struct gt_session_switches switches;
	struct gt_session_hits hits;
	struct gt_session_notes notes;
	struct gt_session_listed listed;
	struct gt_session_times times;
	struct gt_session_due due;
	struct gt_session_strangers strangers;
	struct gt_session_watcher watcher;
};

/* What the host alone writes: all arenas have it in common. */
static inline struct graftrace_arena *gt_session_settings(const struct gt_session *session)
{
	return session->arenas[0].shared.memory;
}

/* session_arenas.c. Makes the first arena, by the options. Errors as of gt_arena_create(). */
int gt_session_first_arena(struct gt_session *session, const struct gt_session_options *options,
			   struct gt_message *message);
/* Unmaps and frees all arenas, without the lock: nobody else knows the session any more. */
void gt_session_end_arenas(struct gt_session *session);
/* *arena: the arena for the process's credentials, which is made if there is none. GT_EGONE; GT_ENOSPC: there are too
 * many; GT_EBUSY: it would have to be made, and this is not the thread that polls; GT_ENOMEM, GT_EIO. */
int gt_session_arena_of(struct gt_session *session, pid_t pid, struct gt_session_arena **arena,
			struct gt_message *message);
/* session_move.c. Gives processes that have changed their credentials another arena. Looks at a few at
 * each call, and only now and then. What cannot be moved is noted (gt_session_note_untraced, _shared).
 * By the thread that polls. */
void gt_session_look_at_credentials(struct gt_session *session, uint64_t now_ns);
/* session_attach.c. Attaches to one more process, which must not be in the list. By the thread that polls.
 * Errors as of gt_session_start(); after one the process is as before. */
int gt_session_attach_one(struct gt_session *session, pid_t pid, struct gt_message *message);
/* The same for a child, which runs on untraced if it cannot be attached to: that is noted, and it is not tried again.
 * GT_ENOMEM. */
int gt_session_attach_child(struct gt_session *session, pid_t pid);
/* The arena of the session that the process has mapped; NULL: it has none. */
struct gt_session_arena *gt_session_arena_mapped(struct gt_session *session, pid_t pid);
/* Call when a process has got an arena. from: the arena that it had before; NULL: none. Counts the process in the
 * arena, sets tracee->arena and the process's helper, and lists its first thread in the arena as it was in `from`.
 * Cannot fail. */
void gt_session_enter(struct gt_session *session, struct gt_tracee *tracee,
		      struct gt_session_arena *arena, const struct gt_session_arena *from);
/* Adds the thread to the lists of `arena` (set_ftrace_pid, set_ftrace_notrace_pid) that have it in arena `from`. */
void gt_session_take_threads(struct gt_session *session, pid_t tid,
			     const struct gt_session_arena *from, struct gt_session_arena *arena);
/* Writes the list into the arena, as it was last set. */
void gt_session_list_threads(struct gt_session *session, const struct gt_session_arena *arena,
			     enum gt_session_list which);
/* Writes tracing_on into all arenas. Call gt_stop_words_write_host() afterwards for the threads' stop words. */
void gt_session_write_tracing(struct gt_session *session, bool on);
/* Finds the writers that are new in the arenas. 0; GT_ENOMEM: some are missing. */
int gt_session_find_writers(struct gt_session *session);
/* One pass of all drains (gt_drain_pass). Returns how many sub-buffers were worked on, or the sink's
 * error. By the thread that polls, or by any other within gt_follow_exec(). */
int gt_session_drain(struct gt_session *session, uint64_t now_ns);

/* session_joint.c: what the askers (the top, instances) want together. */

/* Asker `who` (0: the top), in use or not; it stays at its address. */
static inline struct gt_session_asker *gt_session_asker_of(struct gt_session *session, uint32_t who)
{
	return &session->wanted.askers[who];
}

/* The arena's settings by which each asker gets at least what it wants. */
struct gt_session_joint {
	enum graftrace_tracer tracer;
	bool on;
	bool graph_only;
	uint32_t max_depth;
	uint64_t threshold_ns;
};
/* Computed anew from all askers and the profiler; changes nothing. */
struct gt_session_joint gt_session_joint_of(const struct gt_session *session);

/* Whether the asker is in use and has a tracer. */
bool gt_session_asker_traces(const struct gt_session_asker *asker);
/* The number of instances that want records. */
uint32_t gt_session_count_others(const struct gt_session *session);
/* Takes asker number `who` into use: its lists are a part of the selection from now on. */
void gt_session_join_selection(struct gt_session *session, uint32_t who);
/* Updates the part of the selection that depends on the askers' tracers. True: it has changed, so call
 * gt_session_select() next. */
bool gt_session_update_off(struct gt_session *session);

/* At the start: makes the options the top's settings; words are not looked at, since no function is known
 * yet. GT_ENOMEM. */
int gt_session_ask_first(struct gt_session *session, const struct gt_session_options *options,
			 struct gt_message *message);
/* Drops all askers' references to lists; without the lock, when no other thread knows the session. */
void gt_session_ask_fini(struct gt_session *session);
/* Call when a trigger has switched tracing on or off in the arena: makes that the top's tracing_on. */
void gt_session_note_trigger(struct gt_session *session, const struct gt_session_arena *arena,
			     bool on);
/* Makes the arena's settings what the top and all instances ask for together. */
void gt_session_publish(struct gt_session *session);
/* Copies the arena's tracing_on, which a trigger may have changed, into the top's settings, unless records are made
 * for others, too (an instance, the profiler). Call it before settings are changed. */
void gt_session_take_top(struct gt_session *session);
/* Writes session->wanted.threshold_ns into the arena. */
void gt_session_publish_threshold(struct gt_session *session);

/* session_filters.c, without the lock. A copy of a NULL-terminated list (NULL: empty), for
 * gt_session_free_list(), which takes NULL too; NULL: no memory. */
char **gt_session_copy_list(const char *const *list);
void gt_session_free_list(char **list);
/* Makes the first three lists of `settings` the asker's, takes references to them, and patches all
 * processes if the asker traces. *taken: the new lists are the asker's now. False only with GT_EINVAL:
 * a word matches no function, and the old lists stay. Other errors as of gt_session_select(). */
int gt_session_set_asker_filters(struct gt_session *session, struct gt_session_asker *asker,
				 const struct gt_trace_settings *settings, bool *taken,
				 struct gt_message *message);
/* GT_EINVAL if a word of the list matches no function. */
int gt_session_check_words(struct gt_session *session, const struct gt_word_list *list,
			   struct gt_message *message);

/* session_joint.c: patches all processes by the present selection, each with its world stopped. Goes on
 * after an error, and returns the first: of gt_tracee_select(), gt_session_select_syscalls(). */
int gt_session_select(struct gt_session *session, struct gt_message *message);
/* session_events.c: sets the selection's words of events to those of all askers; call gt_session_select() next.
 * GT_ENOMEM: the old words stay. */
int gt_session_join_events(struct gt_session *session, struct gt_message *message);
/* Makes `words` the asker's list of events, takes a reference, and joins the events. *changed: there are
 * other words than before, so call gt_session_select() next. GT_ENOMEM: the old list stays. */
int gt_session_set_asker_events(struct gt_session *session, struct gt_session_asker *asker,
				struct gt_word_list *words, bool *changed,
				struct gt_message *message);
/* Call when objects were loaded: records their events from now on if a word of a list names them by the object.
 * Errors as of gt_session_select(). */
int gt_session_events_came(struct gt_session *session, struct gt_message *message);
/* session_notrace.c: the list of set_graph_notrace in the top's settings, without a reference of its own; NULL:
 * empty. While instances trace, selection.graph_notrace must be NULL: these functions are recorded then, and the top
 * leaves them out when it copies records. */
struct gt_word_list *gt_session_notrace(struct gt_session *session);

/* Call it when the tracer or the profiler was switched on or off: with neither, all functions get
 * their original bytes back. Errors as of gt_session_select(). */
int gt_session_patch_for_tracer(struct gt_session *session, struct gt_message *message);

/* session_attach.c. Attaches to processes, to all or (on error) to none. children: also to their children;
 * those that cannot be attached to are noted (gt_session_note_untraced). Errors as of gt_session_start(),
 * GT_EINVAL of the rules of events included. */
int gt_session_attach(struct gt_session *session, const pid_t *pids, size_t count, bool children,
		      struct gt_message *message);
/* session.c. Measures the session's clock, and sets the arena's threshold in ticks by it. */
void gt_session_calibrate(struct gt_session *session);

/* session_threads.c. Whether set_ftrace_pid or set_ftrace_notrace_pid leaves the thread out. */
bool gt_session_leaves_out(const struct gt_session_arena *arena, uint32_t tid);
/* Tells the recorder how to use the lists. Call it when this changes: while instances trace, the lists
 * are kept up to date, and do not keep a thread from being recorded. */
void gt_session_publish_threads(struct gt_session *session);
/* Removes a thread from the lists that has ended, or whose process has: only while options/function-fork
 * is on, as on Linux, and not if a thread of another process has that number now. */
void gt_session_forget_thread(struct gt_session *session, pid_t pid, uint32_t tid);

/* session_profile.c. GT_EBUSY if the function profiler cannot run beside that tracer. */
int gt_session_check_profile(struct gt_session *session, bool profile, enum graftrace_tracer tracer,
			     uint64_t threshold_ns, struct gt_message *message);
/* session_switches.c. Watches the switches of processes that are about to be traced, if there is a
 * tracer and the kernel allows it. */
void gt_session_watch(struct gt_session *session, const pid_t *pids, size_t count);
/* The same for all processes when the tracer has changed. Without a tracer they are not watched, so that tracing
 * that is off costs nothing. Exceptions: in drain mode watching goes on once it has begun, and while
 * gt_session_watch_off_cpu() asks for it. */
void gt_session_watch_as_traced(struct gt_session *session);
/* session_untraced.c. Notes that the process is not traced, and why; copies the text. A reason that was noted
 * before is not noted again; nor is what finds no room. */
void gt_session_note_untraced(struct gt_session *session, pid_t pid, const char *why);
/* The same for a process that stays traced, in memory that it shares with processes of other credentials. */
void gt_session_note_shared(struct gt_session *session, pid_t pid, const char *why);
/* session_deaths.c. Notes the death of a process that has ended, if a signal killed it. */
void gt_session_note_end(struct gt_session *session, const struct gt_process *process);

/* session_syscalls.c: writes into the agents' table of system calls which of them are asked for. Errors of the
 * sink, GT_ENOMEM, GT_ENOSPC. */
int gt_session_select_syscalls(struct gt_session *session, struct gt_message *message);
/* Whether a word of the list of events names events of system calls, or did so before. */
bool gt_session_has_syscalls(const struct gt_session *session);
/* Whether that event of a system call is recorded now. */
bool gt_session_syscall_is_on(const struct gt_session *session, const char *system,
			      const char *name);
/* As gt_session_each_event(), of system calls' events, with the lock held. */
int gt_session_each_syscall(struct gt_session *session,
			    int (*each)(void *data, const struct gt_event_format *event,
					bool enabled, const char *reason),
			    void *data);

/* session_synthetics.c: gives the sink the synthetic events that it does not know, and arms all of them
 * (gt_event_rules_arm). Errors as above. */
int gt_session_select_synthetics(struct gt_session *session, struct gt_message *message);
/* Whether that synthetic event is recorded now. */
bool gt_session_synthetic_is_on(const struct gt_session *session, const char *system,
				const char *name);
/* gt_session_each_synthetic() with the lock held. */
int gt_session_each_synthetic_locked(struct gt_session *session,
				     int (*each)(void *data, const struct gt_event_format *event,
						 bool enabled, const char *reason),
				     void *data);

/* session_events.c: whether event `number` has a trigger with that action (enum gt_trigger_action); *event: its
 * description, if there is such an event. */
bool gt_session_event_acts(struct gt_session *session, uint32_t number, uint64_t action,
			   struct gt_event_format *event);
/* session_trigger.c; by the thread that polls. Acts on the letter of a trigger. Any process may have written it: an
 * action that no trigger has is ignored. True: the letter is answered later, after its handler has run. */
bool gt_session_on_trigger(struct gt_session *session, const struct gt_letter *letter,
			   const struct graftrace_mail *mail);
/* Acts on a letter that tells of a new handler of a signal: gives the handler a trigger that stops tracing. Errors
 * are ignored: then it has none. */
void gt_session_on_handler(struct gt_session *session, const struct graftrace_letter *letter);
/* Fills in the addresses of the process's handlers for gt_session_options.stop_signals, by number - 1; 0: there is
 * none, or the process has ended. Within gt_tracer_run(). Errors as of gt_signals_handlers(), except GT_EGONE. */
int gt_session_handlers(struct gt_session *session, struct gt_tracee *tracee, uint64_t handlers[64],
			struct gt_message *message);
/* gt_session_on_handler() for those of a process that was attached to and is in the list. */
void gt_session_stop_at_handlers(struct gt_session *session, struct gt_tracee *tracee,
				 const uint64_t handlers[64]);
/* Whether the letter in slot `index` waits for its handler. */
bool gt_session_is_pending(const struct gt_session *session, const struct gt_session_arena *arena,
			   uint32_t index);
/* Call when the letter in slot `index` has been answered: its handler still runs, and does not answer it. */
void gt_session_answered_pending(struct gt_session *session, const struct gt_session_arena *arena,
				 uint32_t index);
/* Runs the handlers that are pending. Called without the lock, by the thread that polls. */
void gt_session_run_handlers(struct gt_session *session);

#endif
