/* SPDX-License-Identifier: MIT */
/*
 * What a session is made of; shared by session.c (its interface), follow.c (the processes it
 * follows) and clock.c. Everything is under `lock` but for what says more.
 */
#ifndef GT_ATTACH_SESSION_PRIVATE_H
#define GT_ATTACH_SESSION_PRIVATE_H

#include <pthread.h>
#include "attach/ring/arena.h"
#include "attach/agent/catalog.h"
#include "attach/process/clock.h"
#include "attach/process/credentials.h"
#include "attach/ring/drain.h"
#include "attach/session/live_target.h"
#include "attach/ring/off_cpu.h"
#include "attach/session/profile.h"
#include "attach/session/session.h"
#include "attach/agent/tracee.h"
#include "attach/agent/triggers.h"

/* A letter, and the slot of the arena's mail that it came by. */
struct gt_letter {
	uint32_t slot;
	struct graftrace_letter text; /* ticket 0: nobody waits for an answer */
};

/* A letter of a trigger whose handler has not run yet: it is answered when that has. */
struct gt_pending_hit {
	struct gt_letter letter;
	struct gt_trigger_hit hit;
};

#define GT_REAPERS 64
/* Children that could not be attached to, and are not tried again. */
#define GT_CHILDREN_LEFT 256

/* One who asks: the top (number 0) or an instance. */
struct gt_session_asker {
	bool used;
	struct gt_trace_settings settings;
	struct gt_asked asked; /* of these settings: for the selection */
};

struct gt_session {
	pthread_mutex_t lock;
	struct gt_arena arena;
	struct gt_drain drain;
	struct gt_catalog catalog;
	struct gt_selection selection;
	struct gt_session_asker askers[GT_ASKED_MAX];
	bool started;
	bool transport;	    /* see gt_session_set_transport() */
	uint32_t others;    /* that trace, besides the top */
	bool profile_awake; /* what the profiler counts is recorded besides */
	struct gt_live_target live;
	struct gt_triggers triggers;
	struct gt_event_rules event_rules;
	struct gt_profile profile;
	struct gt_off_cpu_watch off_cpu;
	bool no_switches;
	uint32_t wants_switches;       /* so many ask for them, whatever the tracer */
	int off_cpu_error;	       /* 0: they are watched, or nobody asked … */
	struct gt_message off_cpu_why; /* … else why they are not */
	uint64_t switches_given;       /* to the sink */
	void (*handler)(void *data, const struct gt_trigger_hit *hit);
	void *handler_data;
	struct gt_pending_hit pending[GRAFTRACE_ARENA_MAIL];
	uint32_t pending_count;
	uint64_t actions_ns;   /* when this second of the host's actions began … */
	uint32_t actions;      /* how many there were in it … */
	uint32_t actions_left; /* … and how many too many there were in all */
	struct gt_session_death deaths[GT_SESSION_DEATHS];
	uint32_t death_count;
	struct gt_session_untraced untraced[GT_SESSION_UNTRACED];
	uint32_t untraced_count;
	pid_t left[GT_CHILDREN_LEFT];
	uint32_t left_count;
	const struct gt_sink *sink;
	bool no_fork;
	uint64_t threshold_ns; /* of what is recorded */
	bool func_stack;       /* options/func_stack_trace */

	struct gt_tracee *
		*tracees; /* that live; the program itself may come and go like the others */
	size_t tracee_count;
	size_t tracee_room;
	uint32_t processes; /* ever */

	pid_t pid; /* the program */
	/* Of the process that the recording began with, of several the one that may do most. */
	struct gt_credentials credentials;
	uint64_t program_start; /* of gt_process_start_time */
	bool attached;		/* to processes that ran: not ours to wait for */
	bool detached;		/* for good */
	uint64_t stopped_ns;
	uint64_t left_ns;	    /* the same of detaching */
	const char *entries_only;   /* the same */
	const char *no_breakpoints; /* of a process that is gone (struct gt_session_totals) */
	/* Ancestors of the processes: one of them becomes the parent of orphans. */
	pid_t reapers[GT_REAPERS];
	size_t reaper_count;
	bool reaped;
	int status; /* as waitpid gives it */

	struct gt_instant first;
	struct gt_instant last;	      /* of the last calibration */
	uint64_t next_calibration_ns; /* when it is done again */
	uint64_t end_ns;	      /* of the end, 0 = it runs */
	uint64_t next_thread_check_ns;

	/* Ends of processes ring the arena's doorbell: a thread waits for them. */
	pthread_t watcher;
	bool watching;
	int epoll;
};

/* session_filters.c. */
char **gt_session_copy_list(const char *const *list);
void gt_session_free_list(char **list);
int gt_session_ask_first(struct gt_session *session, const struct gt_session_options *options,
			 struct gt_message *message);
void gt_session_ask_fini(struct gt_session *session);
/* A trigger has switched tracing, which is the top's to switch. Under the lock. */
void gt_session_note_trigger(struct gt_session *session, bool on);
/* What is recorded becomes what all ask for. Under the lock. */
void gt_session_publish(struct gt_session *session);
/* What the arena says of tracing_on is the top's, if it is nobody else's. Before a change of what
 * is asked. */
void gt_session_take_top(struct gt_session *session);
/* The arena's threshold becomes session->threshold_ns. */
void gt_session_publish_threshold(struct gt_session *session);

/* Under the lock: whether each word of a list names a function (GT_EINVAL); patching by the
 * selection, as it is. */
int gt_session_check_words(struct gt_session *session, const struct gt_word_list *list,
			   struct gt_message *message);
int gt_session_select(struct gt_session *session, struct gt_message *message);
/* session_notrace.c: the list of set_graph_notrace, which the top's settings hold. While others
 * trace it is left out where the top's buffer is filled. */
struct gt_word_list *gt_session_notrace(struct gt_session *session);

/* Under the lock, when the tracer or the profiler was switched on or off: with neither, functions
 * have their original bytes. */
int gt_session_patch_for_tracer(struct gt_session *session, struct gt_message *message);

/* The living tracee with that pid, NULL = none. */
struct gt_tracee *gt_follow_find(struct gt_session *session, pid_t pid);
/* Takes a tracee in (it is the session's then), or frees it on error. */
int gt_follow_add(struct gt_session *session, struct gt_tracee *tracee);
/* A process that has forked off from one that is known, if it has the arena mapped: it is one of
 * the session's then, or left clean. letter: the one that told of it, or NULL; *answered: it was.
 */
int gt_follow_fork(struct gt_session *session, pid_t pid, pid_t parent_pid,
		   const struct gt_letter *letter, bool *answered);
/* Looks for processes that have forked off and not told of it (attach/session/orphans.c). */
void gt_follow_adopt_orphans(struct gt_session *session, pid_t parent);
/* Notes who will be the parent of children that process pid leaves behind. */
void gt_follow_note_reapers(struct gt_session *session, pid_t pid);
/* The writers of process pid write no more; its letters are read. */
void gt_follow_end_writers(struct gt_session *session, pid_t pid);
void gt_follow_free_mail(struct gt_session *session, pid_t pid);
/* Forgets tracee number `at`. */
void gt_follow_drop(struct gt_session *session, size_t at);
/* Attaches to processes; after an error none of them is attached to. children: and to those that
 * they have, as far as it can be (gt_session_note_untraced). */
int gt_session_attach(struct gt_session *session, const pid_t *pids, size_t count, bool children,
		      struct gt_message *message);
/* Calls back for each descendant of the session's processes that is not one of them; 0: goes on. */
int gt_follow_each_stranger(struct gt_session *session,
			    int (*each)(struct gt_session *session, pid_t pid, pid_t parent));
/* Sets the session's clock, and the threshold by it. */
void gt_session_calibrate(struct gt_session *session);
/* Takes the agent out of all processes, also of those that have not told of themselves. The first
 * error, and *message if something stays. */
int gt_follow_detach_all(struct gt_session *session, struct gt_message *message);
/* Mail, ends of threads and processes, room for stopped writers. Returns how much was done, or an
 * error of the sink. */
int gt_follow_work(struct gt_session *session, uint64_t now_ns);
/* All processes have ended, also those that told of nothing (a fork that was over before its mail
 * was read): their writers write no more. */
void gt_follow_end_all(struct gt_session *session);
/* Whether process pid has our arena mapped. */
bool gt_follow_is_ours(const struct gt_session *session, pid_t pid);
bool gt_follow_is_thread_of(pid_t pid, pid_t tid);
/* A thread is about to execute a program. *answered: the letter is. */
int gt_follow_exec(struct gt_session *session, const struct gt_letter *letter, bool *answered);

/* mail.c. Does what is asked for. Returns how many letters there were, or an error of the sink. */
int gt_follow_read_mail(struct gt_session *session);
/* The letter in slot `slot` as process pid's own memory has it. False: it has none. */
bool gt_follow_read_letter(struct gt_session *session, uint32_t slot, pid_t pid,
			   struct graftrace_letter *text);
/* Answers a letter, if somebody waits; its slot can be used again. */
void gt_follow_answer(struct gt_session *session, const struct gt_letter *letter, uint64_t value);

/* session_threads.c. Whether the thread is left out by set_ftrace_pid and its opposite. */
bool gt_session_leaves_out(struct gt_session *session, uint32_t tid);
/* As others trace besides the top or not: whether the recorder goes by the lists. */
void gt_session_publish_threads(struct gt_session *session);
/* A thread has ended. */
void gt_session_forget_thread(struct gt_session *session, uint32_t tid);

/* session_profile.c. Whether the function profiler can run beside that: GT_EBUSY. */
int gt_session_check_profile(struct gt_session *session, bool profile, enum graftrace_tracer tracer,
			     uint64_t threshold_ns, struct gt_message *message);
/* session_switches.c. Watches the switches of processes that are about to be traced, if there is a
 * tracer and the kernel lets us. */
void gt_session_watch(struct gt_session *session, const pid_t *pids, size_t count);
/* Under the lock. The same of all processes when the tracer has changed; with none they are not
 * watched, so that what is off costs nothing. */
void gt_session_watch_as_traced(struct gt_session *session);
/* session_credentials.c. Those of the processes that the recording begins with. GT_ENOTSUP: none of
 * them may do what all may; GT_EGONE, GT_ENOMEM. */
int gt_session_note_credentials(struct gt_session *session, const pid_t *pids, size_t count,
				struct gt_message *message);
/* Whether a process may do more, or other things, than those may. *why: what. */
bool gt_session_is_beyond(struct gt_session *session, pid_t pid, struct gt_message *why);

/* session_untraced.c. */
void gt_session_note_untraced(struct gt_session *session, pid_t pid, const char *why);
/* session_end.c. The process has ended: if a signal killed it, that is noted. */
void gt_session_note_end(struct gt_session *session, const struct gt_process *process);

/* session_trigger.c. A letter of a trigger, as it was copied. True: it is answered later, when its
 * handler has run. */
bool gt_session_on_trigger(struct gt_session *session, const struct gt_letter *letter,
			   const struct graftrace_mail *mail);
/* A letter about a signal's handler. */
void gt_session_on_handler(struct gt_session *session, const struct graftrace_letter *letter);
/* The same for the handlers that a process has already when it is attached to. Errors of
 * gt_signals_handlers(). */
int gt_session_stop_at_handlers(struct gt_session *session, struct gt_tracee *tracee,
				struct gt_message *message);
bool gt_session_is_pending(const struct gt_session *session, uint32_t index);
/* Runs the handlers of what is pending. Without the lock, from the thread that polls. */
void gt_session_run_handlers(struct gt_session *session);

/* Lets writers that stopped for lack of room go on, if there is some now. */
int gt_follow_clear_full(struct gt_session *session);
/* Writes the host's byte of each live writer's stop word: whether tracing is off, or the thread is
 * left out. */
void gt_follow_write_host(struct gt_session *session);
/* Writes a byte of the stop word of each live writer's block. */
void gt_follow_write_stop(struct gt_session *session, enum graftrace_stop_byte byte, uint8_t value);

#endif
