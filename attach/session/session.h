/* SPDX-License-Identifier: MIT */
/*
 * A session traces one program, with the processes that it forks and execs, from outside. It starts
 * the program, injects the agent at the exec stop, patches the functions that the filters name, drains
 * the arena into a sink, and offers the records to readers as a live target. Functions are called by
 * one thread, unless their comment, or that of the group that they stand in, says "from any thread". One
 * lock, the session's, guards all; a function takes it unless its comment says otherwise, and calls the sink
 * and what it was given to call back with the lock held: no function of the session that takes it may be called there.
 * `message` is set with each error, except that an error of the sink, and GT_ENOMEM of planning patches,
 * leave it as it was (gt_session_poll sets it with every error).
 */
#ifndef GT_ATTACH_SESSION_H
#define GT_ATTACH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "core/trace/probe.h"
#include "core/trace/durations.h"
#include "core/trace/event_filter.h"
#include "core/trace/settings.h"
#include "core/trace/target.h"
#include <graftrace/arena.h>

struct gt_session;

/* Globs as ftrace has them (* ? [..]); NULL-terminated arrays, NULL = none. */
struct gt_session_options {
	size_t size;	   /* sizeof(struct gt_session_options): room to grow */
	char *const *argv; /* the program to start, found as execvp finds it; NULL with pids */
	const pid_t *pids; /* running processes to attach to */
	size_t pid_count;
	bool children; /* with pids: also their running children, and the children of those */
	/* What the top asks for at first. Takes references to its lists; no filter: all functions of the
	 * program's own. */
	struct gt_trace_settings settings;
	uint64_t buffer_bytes; /* of the sub-buffers in all; 0 = 64 MB */
	enum graftrace_arena_mode mode;
	uint32_t wait_ms;    /* drain mode: how long a writer may wait for room */
	bool forget_writers; /* forget writers that have ended and of which nothing is left; without
			      * a reader of the live target, or in the ring modes until
			      * gt_session_keep_writers */
	bool no_fork;	     /* children are not traced: the agent leaves them */
	bool no_switches;    /* context switches are not watched */
	bool libraries;	     /* also functions of system libraries */
	/* Also the unprepared functions of objects in which a compiler has prepared some. Objects
	 * without any prepared function are traced in any case. */
	bool unprepared;
	bool profile;  /* the function profiler is on from the start */
	bool libcalls; /* also calls across the linkage table, as "puts@plt" */
	/* Functions too short for a jump get a breakpoint (attach/agent/traps.h), in processes in
	 * which that does no harm. */
	bool breakpoints;
	/* Only functions whose first instruction stays unchanged: the kernel's uprobes go there. */
	bool uprobe_safe;
	bool no_demangle;		   /* functions are named as the linker knows them */
	const char *const *library_globs;  /* --lib: these of the system's libraries too */
	const struct gt_trigger *triggers; /* act from the first call on */
	size_t trigger_count;
	bool watch_ends; /* report how children end: each is followed before its first call */
	/* Bit n - 1: each handler of signal n gets a trigger of action STOP when the program
	 * installs it. */
	uint64_t stop_signals;
	/* In turns a word and its filter: see gt_session_set_event_filter(). GT_EINVAL: an event that
	 * is there does not have its fields. */
	const char *const *event_filters;
	const char *const
		*probes; /* dynamic ones, as lines of dynamic_events with the path of a file */
	const char *const *synthetics; /* synthetic events, as lines of synthetic_events */
	/* The file that the sink writes, with its clock's base, for a later graftrace to find if this
	 * one is killed (leftover.h). NULL: none. */
	const char *recording;
	struct gt_clock recording_clock;
	const char *const *values; /* arguments and results: words of gt_values_new() */
	/* gt_session_event_trigger(), from the first event on. GT_EINVAL as above. */
	const struct gt_session_event_trigger {
		const char *word;
		struct gt_event_trigger trigger;
	} * event_triggers;
	size_t event_trigger_count;
	/* Gets the records; may be NULL. In the ring modes it gets objects and functions only:
	 * records stay in the ring. */
	const struct gt_sink *sink;
};

/* Starts the program, or attaches to the processes, and puts the agent in; it runs when this
 * returns. The options are copied, but for the sink, which must outlive the session. GT_EINVAL: an option
 * is wrong, or a filter or trigger of an event does not fit (that is checked last); GT_ENOENT: no such
 * program, or no histogram that is to be continued or cleared; GT_ECANTRUN: it cannot be executed; GT_EEXIST:
 * a probe, a synthetic event or a trigger is set twice; GT_ENOTSUP: it cannot be traced (the message says why
 * and what to do); GT_EBUSY: as of gt_session_set_profile(); GT_EGONE: it has ended meanwhile; GT_EPERM, GT_EIO,
 * GT_EFORMAT, GT_ENOSPC, GT_ENOMEM; an error of the sink. *session is not set then. Attaching also:
 * GT_EGONE: there is no such process; GT_EBUSY: it cannot be stopped, another graftrace records it, or it has
 * something of an earlier one that cannot be taken out now; GT_EFORMAT: it has overwritten what an earlier one
 * has left there. After an error processes that ran are as before (but for what gt_session_detach() would have to
 * leave), and a program that was to be started is killed. No other thread knows the session
 * yet: it is made, and the sink is called, without the lock. */
int gt_session_start(const struct gt_session_options *options, struct gt_session **session,
		     struct gt_message *message);

/* Does what there is to do (mail, full sub-buffers, stops, ends), then waits for more and does that. It waits
 * timeout_ms at most, and never longer than 20 ms; negative: 20 ms; 0: not at all. Holds the lock while it works, but
 * neither while it waits nor while it calls the handler of triggers. Returns 1 while a process of the session lives,
 * 0 once all have ended and are drained, GT_ENOMEM, or an error of the sink. Always by the same thread. */
int gt_session_poll(struct gt_session *session, int timeout_ms, struct gt_message *message);

/* Take and release the session's lock. Any function of a session may call the sink, from its caller's thread
 * or one that it waits for. Who uses what the sink writes to while others may call them does it between
 * these two, and calls no function of the session there that takes the lock. From any thread. */
void gt_session_lock_sink(struct gt_session *session);
void gt_session_unlock_sink(struct gt_session *session);

/*
 * Takes the agent out of all processes of the session: their code, memory maps and threads are then as
 * they were before. *message names the first thing that could not be taken out (empty: all is out); NULL is
 * allowed. Returns the first error: GT_EBUSY: a thread cannot be stopped; GT_EFORMAT: the agent's state was
 * overwritten; GT_EAGAIN: the process has entered a sandbox at that moment; GT_ENOTSUP: too many processes share its
 * memory, or a thread runs 32-bit code; GT_EPERM, GT_EIO, GT_ENOMEM. 0 also if a process has ended, or if something
 * stays without an error. The processes run on in any case. Afterwards the session has no processes:
 * gt_session_poll drains the records that they had written and returns 0.
 */
int gt_session_detach(struct gt_session *session, struct gt_message *message);

/* The live target, for readers: never NULL, valid until gt_session_destroy(). From any thread; takes no lock. Its
 * functions may be called from any thread, too; each takes the lock, but for ring->now, which takes none, and those of
 * context switches, which take a lock of their own. Of its fields `clock` is rewritten by
 * gt_session_poll(), and `tracer` by changes of settings: while others may do that they are read between
 * gt_session_lock_sink() and gt_session_unlock_sink(). */
struct gt_target *gt_session_target(struct gt_session *session);

/* Ring modes: the live target is read from now on, so its writers keep their numbers, and no more of them are forgotten
 * (gt_session_options.forget_writers). The losses of those that were forgotten until now stay in the target, as losses of
 * the one that was forgotten first in its arena. Times off the CPU are kept from now on. From any thread; a second call
 * has no effect. No effect in drain mode. */
void gt_session_keep_writers(struct gt_session *session);

/*
 * Changes while the program runs, and what is in force: all functions up to gt_session_syscall_places(). From any
 * thread; each takes the session's lock, unless its comment says that it takes none. A change is in force when the
 * function returns. Functions that patch processes stop them meanwhile; if one could not be patched, they
 * fail with its error, after the others were: GT_EBUSY: it could not be stopped; GT_EAGAIN: it has executed
 * another program, or entered a sandbox at that moment; GT_ENOTSUP: too many processes share its memory; GT_EIO,
 * GT_ENOMEM, GT_EPERM, GT_ENOSPC, an error of the sink. After such an error of patching the new settings are in
 * force, and are taken over by that process, too, when it is patched next.
 */
/* Sets the top's tracing_on: while it is off nothing is recorded for the top. Instances and the function profiler go
 * on. No errors. */
void gt_session_set_tracing_on(struct gt_session *session, bool on);
/* Whether the top's tracing_on is set; triggers switch it, too. Takes no lock. */
bool gt_session_tracing_on(struct gt_session *session);
/* Patches. GT_EINVAL: there is no such tracer. GT_EBUSY also as of gt_session_set_profile(): the old one
 * stays then, after GT_EBUSY of patching the new one is in force (gt_session_asked() tells). */
int gt_session_set_tracer(struct gt_session *session, enum graftrace_tracer tracer,
			  struct gt_message *message);
/* Sets the lists filter, notrace and graph of `settings` together, and ignores its other fields. Takes
 * references to the lists. Patches. GT_EINVAL: a glob matches no function; the old lists stay. */
int gt_session_set_filters(struct gt_session *session, const struct gt_trace_settings *settings,
			   struct gt_message *message);
/* set_graph_notrace: function_graph leaves out these functions and the calls below them. NULL: none. Takes a
 * reference. Patches. GT_EINVAL: a glob matches no function; the old list stays. */
int gt_session_set_graph_notrace(struct gt_session *session, struct gt_word_list *list,
				 struct gt_message *message);
/* Which events with fields the top wants, whatever the tracer: words of gt_event_words_match(). Takes a
 * reference. NULL: none. A word that names nothing is no error. Patches. GT_ENOMEM also if the words were
 * not taken over (gt_session_asked() tells). */
int gt_session_set_events(struct gt_session *session, struct gt_word_list *words,
			  struct gt_message *message);
/* Sets a filter for the events that the word matches (gt_event_word_matches), which is evaluated where
 * they happen; the last word that matches an event decides. NULL: all are recorded. Events without the
 * filter's fields are not filtered. Both texts are copied; the caller has checked the syntax. Patches.
 * GT_ENOMEM of the copy ("no memory for a filter"): the old filter stays; after other errors the new one
 * is kept. */
int gt_session_set_event_filter(struct gt_session *session, const char *word, const char *filter,
				struct gt_message *message);
/* Adds a trigger to the event ("system:name"), or takes it away: one of a kind, and a target. Strings are copied.
 * Patches. GT_EEXIST: it has one; GT_ENOENT: it has none, or not the histogram that is to be continued or cleared;
 * GT_ENOSPC, GT_ENOMEM; GT_EINVAL: a histogram does not fit the event, or another one has its name; GT_EBUSY: another
 * histogram reads this one's variables. GT_EBUSY, GT_ENOSPC and GT_ENOMEM may be of patching, too: then it was changed
 * (gt_session_event_trigger_get() tells). */
int gt_session_event_trigger(struct gt_session *session, const char *word,
			     const struct gt_event_trigger *trigger, bool remove,
			     struct gt_message *message);
/* The index'th trigger of the event, with what is left of its limit; its strings are in `text`. The newest comes
 * first; histograms come behind all others, the oldest of them first. False: there is none, or its strings have no
 * room. */
bool gt_session_event_trigger_get(struct gt_session *session, const char *word, uint32_t index,
				  struct gt_event_trigger *trigger, char *text, size_t room);
/* The index'th histogram of the event, the oldest first, as it is now: a copy, to be freed by
 * gt_session_event_hist_free(), which takes no lock. GT_ENOENT; GT_ENOMEM. */
struct gt_hist_copy;
struct gt_hist_error;
int gt_session_event_hist(struct gt_session *session, const char *word, uint32_t index,
			  struct gt_hist_copy *copy);
void gt_session_event_hist_free(struct gt_hist_copy *copy);
/* Whether the event has triggers, or triggers of others enable and disable it. */
bool gt_session_event_is_soft(struct gt_session *session, const char *system, const char *name);
/* Whether triggers of others enable and disable the event: then it may be recorded without being asked for. */
bool gt_session_event_is_gated(struct gt_session *session, const char *system, const char *name);
/* Calls back for each known event, object by object, then for synthetic ones and those of system calls, until
 * `each` returns non-zero, and returns that. *event is valid during the call, its strings until the session ends.
 * enabled: it is recorded in some process. reason: why its place cannot be patched (static text), or NULL. Events of
 * system calls are known once a word of the list of events has named them: `syscalls`, `raw_syscalls` or
 * `sys_…`, not a glob for all events. */
int gt_session_each_event(struct gt_session *session,
			  int (*each)(void *data, const struct gt_event_format *event, bool enabled,
				      const char *reason),
			  void *data);
/* The same for a caller that keeps what it was told: *version is 0, or as the last call set it. If there
 * are other events than then, calls `forget` and then `each` for all of them, until it returns non-zero;
 * *version is set then, too. Else it calls nothing.
 * Which of them are enabled may change without that (gt_session_event_is_on). */
void gt_session_events_since(struct gt_session *session, uint64_t *version,
			     void (*forget)(void *data),
			     int (*each)(void *data, const struct gt_event_format *event,
					 bool enabled, const char *reason),
			     void *data);
/* Whether the event is recorded in some process, by any of its places. */
bool gt_session_event_is_on(struct gt_session *session, const char *system, const char *name);
/* Whether `word`, of a list of events, names an event of a system call: it matches one (gt_event_word_matches) and
 * begins with `syscalls`, `*syscalls`, `raw_syscalls` or `sys_`. False of a glob for all events, and of a word with a
 * '!' before it. Takes no lock. */
bool gt_session_names_syscall(const char *word);
/* The name of the event before a system call, "sys_enter_…". NULL: there is no call with that number.
 * Static text; takes no lock. */
const char *gt_session_syscall_event(uint64_t number);
/* Places of system calls in the files that the session knows: taken, and left alone by reason (enum
 * gt_plan_reason). All zero until events of system calls were asked for once. */
struct gt_syscall_places {
	uint32_t taken;
	uint32_t left[256];
	const char *refused; /* why a process has none of them taken: static text; NULL: all have */
	int pid;
};
/* Fills *places in, with the counts of this moment. */
void gt_session_syscall_places(struct gt_session *session, struct gt_syscall_places *places);

/*
 * Dynamic probes (core/trace/probe.h): a line of dynamic_events sets one; gt_session_set_events() says
 * whether its event is recorded. From any thread; each takes the lock.
 * set: a place without a path is the program's own. GT_EINVAL, GT_ENOENT, GT_EEXIST: *error says what is wrong, and
 * where; the message too; with other errors the text of *error is empty.
 * GT_EFORMAT: the code of its file cannot be read; GT_ENOMEM, an error of the sink.
 * After any error it is not set. Neither setting nor removing patches: the places follow with the next
 * change that does.
 */
int gt_session_set_probe(struct gt_session *session, const char *text, size_t bytes,
			 enum gt_probe_kinds kinds, struct gt_probe_error *error,
			 struct gt_message *message);
/* Removes the probes of the group and name; "": of any. GT_ENOENT: there is none (not if both are "": then it is no
 * error); GT_EBUSY: one of them is recorded, and none was removed. */
int gt_session_remove_probes(struct gt_session *session, const char *group, const char *name,
			     struct gt_message *message);
/* *number: the number of the event that a dynamic probe makes. False: there is no such probe, or no file that
 * the session knows has its place yet. */
bool gt_session_probe_event(struct gt_session *session, const char *group, const char *name,
			    uint32_t *number);

/*
 * Synthetic events (core/trace/synthetic.h): a line of synthetic_events defines one; actions of
 * histograms make them happen. From any thread; each takes the lock.
 * set: *event gets the new one; its strings live until the session ends.
 * GT_EINVAL, GT_EEXIST: *error says what is wrong, and where; the message too; with other errors *error
 * is not set. GT_ENOSPC, GT_ENOMEM, an error of the sink. After any error it is not defined.
 */
int gt_session_set_synthetic(struct gt_session *session, const char *text, size_t bytes,
			     struct gt_event_format *event, struct gt_probe_error *error,
			     struct gt_message *message);
/* Removes the synthetic event of the name; "": all, also if there is none. GT_ENOENT: there is none of that name;
 * GT_EBUSY: one of them is recorded, has triggers, is enabled and disabled by those of others, or is made by a
 * histogram, and none was removed. */
int gt_session_remove_synthetics(struct gt_session *session, const char *name,
				 struct gt_message *message);
/* As gt_session_each_event(), of synthetic ones. */
int gt_session_each_synthetic(struct gt_session *session,
			      int (*each)(void *data, const struct gt_event_format *event,
					  bool enabled, const char *reason),
			      void *data);
/* Checks the text of a histogram of the event `word` ("system:name"); changes nothing. is_new: it is to be added.
 * GT_EINVAL, GT_EDOM, GT_EEXIST: *error says what is wrong; GT_ENOENT: there is no such event yet, or no memory to look
 * for it; GT_ENOMEM. From any thread; takes the lock. */
int gt_session_check_hist(struct gt_session *session, const char *word, const char *text,
			  bool is_new, struct gt_hist_error *error);

struct gt_session_probe {
	const struct gt_probe_definition *definition;
	const char *path;
	uint64_t offset; /* in the file */
	bool enabled;	 /* it is recorded */
	uint64_t hits;	 /* so far, recorded or not */
};
/* In the order in which they were set: calls back, under the session's lock, until it returns
 * non-zero, and returns that. *probe is valid during the call, what it points to until the session ends. From any
 * thread. */
int gt_session_each_probe(struct gt_session *session,
			  int (*each)(void *data, const struct gt_session_probe *probe),
			  void *data);

/* The four below: from any thread; each takes the lock. */
/* options/func_stack_trace: the function tracer writes a stack trace behind each call. Patches. */
int gt_session_set_func_stack(struct gt_session *session, bool on, struct gt_message *message);
/* Sets the top's max_graph_depth: function_graph leaves out calls that are nested deeper than `depth`; 0: no limit.
 * Always 0. */
int gt_session_set_max_graph_depth(struct gt_session *session, uint32_t depth);
/* tracing_thresh; 0: none. GT_EBUSY: see gt_session_set_profile; the old one stays. */
int gt_session_set_threshold(struct gt_session *session, uint64_t ns);
/* Whether a function that can be traced matches. */
bool gt_session_has_function(struct gt_session *session, const char *glob);

/*
 * Instances. The functions above set what the top asks for; an instance has settings of its own. The
 * ring gets the records that any of them asks for (by function_graph if one of them has that tracer);
 * an instance that wants fewer leaves the others out when it reads. From any thread; each takes the lock.
 */
/* A number for one more instance, which asks for nothing yet. GT_ENOSPC: there are too many. */
int gt_session_join(struct gt_session *session, uint32_t *who, struct gt_message *message);
/* Sets all settings of instance `who`, but for the list graph_notrace, which is not looked at. Takes references to the
 * lists. Patches. GT_EINVAL: a glob matches no function; GT_ENOMEM. Then the old settings stay, after an error of
 * patching the new ones (gt_session_asked() tells). */
int gt_session_ask(struct gt_session *session, uint32_t who,
		   const struct gt_trace_settings *settings, struct gt_message *message);
/* What instance `who` asks for now, or the top (0); the caller ends it with gt_trace_settings_fini().
 * After an error of patching these are the new settings. */
struct gt_trace_settings gt_session_asked(struct gt_session *session, uint32_t who);
/* Ends an instance: it asks for nothing, and its number can be given again. Patches; errors of that are not
 * reported. */
void gt_session_leave(struct gt_session *session, uint32_t who);
/* Whether the ring would hold exactly the records that the top asks for if instance `who` had these
 * settings. False also where that is not looked at: if these settings ask for events, the top has a list
 * graph_notrace, or lists of threads are set. */
bool gt_session_top_has_all(struct gt_session *session, uint32_t who,
			    const struct gt_trace_settings *settings);

/* The ring. The three below: from any thread; each takes the lock. */
/* Ring modes: whether a full ring keeps the newest records. No effect after gt_session_set_transport().
 * GT_EINVAL: in drain mode. */
int gt_session_set_overwrite(struct gt_session *session, bool overwrite,
			     struct gt_message *message);
/* Ring modes. Tells the agents, once and for good, that a reader consumes records all the time: from then on the ring
 * overwrites nothing, and a writer that finds no room waits, a fifth of a second at most, before it drops a record. */
void gt_session_set_transport(struct gt_session *session);
/* Call after records were consumed, once gt_session_set_transport() was: lets writers go on that have stopped for lack of
 * room. waits: whether a writer that finds none again waits; else it drops its record at once. */
void gt_session_has_room(struct gt_session *session, bool waits);

/*
 * Triggers (struct gt_trigger in core/trace/target.h). From any thread; each takes the session's lock.
 * add: copies the glob. If a trigger with the same glob, action and longer_than_ns exists, its skip
 * and count are replaced. GT_EINVAL: no function matches, longer_than_ns is set and the returns of none are seen, or
 * the action or glob is none; GT_ENOSPC: too many functions, or triggers; GT_ENOMEM: then it is not added.
 * remove: the trigger with the same glob, action and longer_than_ns; GT_ENOENT: there is none; GT_EINVAL: the action
 * or glob is none.
 * get: the index-th; its glob is copied into `glob`, cut to `room`. `count` is the number of hits left,
 * for the function of its glob that has most; *spent (not NULL): none has any left, and count is 0. GT_ENOENT
 * after the last.
 * add and remove patch. After an error of patching, which may be GT_ENOSPC or GT_ENOMEM, too, the change is made (get
 * tells).
 * handler: called by the thread that polls the session, without the lock, for all actions but STACKTRACE (with
 * that, too, if a process forges its letter), also of triggers of events: then the hit's function names the event.
 * With SNAPSHOT, DUMP and CPUDUMP the traced thread waits meanwhile, half a second at most; more than a
 * hundred such hits in a second are left out. It replaces the one before, which may still be running, or
 * be called once more, when this returns to another thread than the one that polls; NULL: none. Always 0.
 */
int gt_session_trigger_add(struct gt_session *session, const struct gt_trigger *trigger,
			   struct gt_message *message);
int gt_session_trigger_remove(struct gt_session *session, const struct gt_trigger *trigger,
			      struct gt_message *message);
int gt_session_trigger_get(struct gt_session *session, uint32_t index, struct gt_trigger *trigger,
			   bool *spent, char *glob, size_t room);
int gt_session_trigger_handler(struct gt_session *session,
			       void (*handler)(void *data, const struct gt_trigger_hit *hit),
			       void *data);

/* Threads that are traced alone (set_ftrace_pid), or not (set_ftrace_notrace_pid). From any thread. */
enum gt_session_list {
	GT_SESSION_ONLY = 0,
	GT_SESSION_NOT = 1,
};
/* Sets a whole list; count 0 removes it. GT_ENOSPC: more than 2048 threads. */
int gt_session_set_threads(struct gt_session *session, enum gt_session_list which,
			   const uint32_t *tids, uint32_t count, struct gt_message *message);
/* The index-th thread of a list, in order of numbers; GT_ENOENT after the last. */
int gt_session_thread(struct gt_session *session, enum gt_session_list which, uint32_t index,
		      uint32_t *tid);
/* Copies a whole list, in order of numbers, and returns its length. */
#define GT_SESSION_THREADS 2048
uint32_t gt_session_threads(struct gt_session *session, enum gt_session_list which,
			    uint32_t tids[GT_SESSION_THREADS]);
/* Whether any list is set. Takes no lock. */
bool gt_session_lists_threads(const struct gt_session *session);
/* Sets whether new threads and children are added to the lists of their creators. Takes no lock. */
void gt_session_set_follow(struct gt_session *session, bool follow);

/*
 * Context switches of the processes' threads (struct gt_switch_ops), from the kernel. They are watched
 * while there is a tracer, unless options.no_switches is set or the kernel does not allow it. In drain
 * mode they go to the sink as they come, and once they are watched they are to the end. All functions: from any thread.
 * The first three take the session's lock.
 */
/* Tells why context switches are not watched. 0: they are watched, or nobody asked for them. GT_EPERM, GT_ENOTSUP,
 * GT_EIO, GT_ENOMEM: they cannot be watched; the message says why. */
int gt_session_switches(struct gt_session *session, struct gt_message *message);
/* Watches them from now on, with or without a tracer, until unwatch was called once for each watch
 * that returned 0. Errors as above. */
int gt_session_watch_off_cpu(struct gt_session *session, struct gt_message *message);
void gt_session_unwatch_off_cpu(struct gt_session *session);
/* The number of the thread that started thread `tid`, and *clock, when it did. 0: unknown, because switches were
 * not watched then; *clock is not set. Takes only the lock of the switches, so it may be called with the session's lock
 * held. */
uint32_t gt_session_creator(struct gt_session *session, uint32_t tid, uint64_t *clock);
/* Ring modes: writes the switches that are kept, the newest ones, to a sink. Returns its error. Takes only the lock of
 * the switches, and calls the sink without a lock. */
int gt_session_give_switches(struct gt_session *session, const struct gt_sink *sink);

/*
 * The function profiler: every thread counts its calls and their times in tables of its own, and
 * writes no records for it. Functions that the filters let through are counted. Switching it on sets
 * the tables to 0; switched off they can still be read. All functions: from any thread; each takes the lock unless
 * its comment says otherwise.
 */
/* Switches it. Patches. GT_EBUSY in drain mode (and at the start): beside the tracer function, or function_graph with
 * tracing_thresh, there can be no profiler; GT_ENOMEM: no memory for the tables. It is not switched then; after an error
 * of patching, which may be one of these, too, it is (gt_session_profiles() tells). */
int gt_session_set_profile(struct gt_session *session, bool on, struct gt_message *message);
/* Takes no lock. */
bool gt_session_profiles(const struct gt_session *session);

/* One function. Times in ns. */
struct gt_profile_row {
	struct gt_function named; /* the strings are the session's */
	uint32_t function;
	uint64_t hits;	   /* calls that have begun */
	uint64_t time_ns;  /* of those that have ended */
	uint64_t self_ns;  /* … without their callees' */
	uint64_t variance; /* of the time of a call, in ns² / 1000: s^2 as Linux has it */
	uint64_t buckets[GT_DURATIONS]; /* how many of those that have ended took how long */
};

/* For qsort() of struct gt_profile_row: the longest time first; of the same time the one with most hits, then the one
 * with the lowest number. Takes no lock. */
static inline int gt_profile_row_order(const void *left, const void *right)
{
	const struct gt_profile_row *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? 1 : -1;
	if (a->hits != b->hits)
		return a->hits < b->hits ? 1 : -1;
	return a->function < b->function ? -1 : 1;
}

/* Ring modes. While this is set and the profiler is on, the calls that it counts are recorded as well,
 * whatever the tracer, tracing_on and the limits, so that their time off the CPU can be found
 * (serve/live/live_awake.h). Readers of the ring leave out the records that nobody asked for. Does not patch. */
void gt_session_set_profile_awake(struct gt_session *session, bool awake);

/* The functions that were called, the longest time first; of all threads (tid 0) or of a living one (of another
 * number: none). self: time and variance without those of callees (graph-time = 0). The caller frees the array, which
 * is there also if *count is 0. GT_ENOMEM: *rows is NULL. Also after the end. */
int gt_session_profile(struct gt_session *session, uint32_t tid, bool self,
		       struct gt_profile_row **rows, uint32_t *count);

/* Where the buckets of its rows begin. */
void gt_session_profile_starts(struct gt_session *session, uint64_t starts_ns[GT_DURATIONS]);

/* Empties the ring (echo > trace); in drain mode there is nothing to empty. From any thread. Always 0. */
int gt_session_clear(struct gt_session *session);

/* Calls back for each function that can be traced, object by object in order of addresses, until `each`
 * returns non-zero, and returns that. *function is valid during the call, its strings until the session ends.
 * enabled: it is traced now. From any thread; `each` is called with the session's lock held. */
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
/* Copies the deaths so far, at most `room` of them, and returns how many it copied. From any thread. */
uint32_t gt_session_deaths(struct gt_session *session, struct gt_session_death *deaths,
			   uint32_t room);
/* Whether the signal tells of an error of the program itself: SIGSEGV, SIGABRT and their kind. Any thread; no lock. */
bool gt_signal_is_crash(int signal);

/* A process that runs untraced, and why: the image that it has executed, or a child (`children`)
 * that cannot be attached to; or one that is traced, but still shares memory with processes that have
 * other credentials. One of each reason. */
struct gt_session_untraced {
	pid_t pid;
	bool is_traced;
	char why[300];
};
#define GT_SESSION_UNTRACED 16 /* that are noted: the first ones */
/* The index-th so far; false: there are fewer. From any thread. */
bool gt_session_untraced(struct gt_session *session, uint32_t index,
			 struct gt_session_untraced *untraced);

/* Of the program itself, once ended: as waitpid gives it; 0 before. By the thread that polls; takes no lock. Of a
 * process that was attached to only the signal that killed it is known, if one did: else 0. */
int gt_session_exit_status(const struct gt_session *session);
/* The program, or the first process that was attached to. From any thread; takes no lock. */
pid_t gt_session_pid(const struct gt_session *session);

struct gt_session_totals {
	/* Damage in the shared memory, which any traced process can write over: */
	uint64_t corrupt; /* sub-buffers that were thrown away */
	uint32_t damaged; /* threads with impossible counts, which are not in the sums below */
	struct gt_writer damaged_first; /* the first of these */
	uint32_t actions_left; /* dumps and snapshots that were left out: too many in a second */
	uint64_t words;	       /* records drained */
	uint64_t lost_events;  /* events with fields lost for lack of room */
	uint64_t calls;	       /* entries among them */
	uint32_t threads;
	uint32_t processes;
	uint64_t ns;	     /* from start to end */
	uint64_t stopped_ns; /* the longest time that all threads of a process were stopped */
	uint64_t left_ns;    /* the same while they were detached from */
	uint64_t lost[GRAFTRACE_LOST_CAUSES];
	bool pool_is_held; /* the buffer was full because each thread holds an open sub-buffer */
	/* Why functions that need a breakpoint went untraced: static text; NULL: none was asked
	 * for, or needed, or all got theirs. */
	const char *no_breakpoints;
	const char *entries_only; /* why a process was recorded at its entries only, or NULL */
	/* Processes with several threads that have changed their credentials: what they called while they were
	 * left and attached to anew is not recorded. */
	uint32_t attached_anew;
};
/* From any thread. */
void gt_session_totals(struct gt_session *session, struct gt_session_totals *totals);

/* The present sum of `damaged` and `corrupt` of the totals. From any thread. Takes the lock. */
uint64_t gt_session_damaged(struct gt_session *session);

/* How much of the pool of sub-buffers is in use, 0 ... 100; where processes with several credentials have a pool
 * each, of the fullest. From any thread, from the sink too; takes no lock. */
unsigned gt_session_buffer_use(const struct gt_session *session);

/* Sends a signal to the program. (Ctrl-C needs none: the terminal sends it to the program, too.) GT_EGONE: it
 * has ended, was attached to, or the kernel refuses. From any thread. */
int gt_session_signal(struct gt_session *session, int signal);

/* Frees the session. Processes that it still has go on with their agents, and record nothing: detach first
 * (gt_session_detach). No other thread may use it any more, nor its target. Takes no lock. NULL is allowed. */
void gt_session_destroy(struct gt_session *session);

#endif
