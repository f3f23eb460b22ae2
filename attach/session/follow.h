/* SPDX-License-Identifier: MIT */
/*
 * The processes of a session: who is in its list, and what is done when they fork, execute and end.
 *
 * All functions but gt_follow_is_thread_of() are called with the session's lock held, by the thread that polls the
 * session (or one of gt_tracer_run() for which it waits), or before another thread knows the session;
 * gt_follow_find(), gt_follow_make_room(), gt_follow_add() and gt_follow_exec() by any thread that holds the lock.
 * No function takes the session's lock, and none releases it meanwhile. A pointer to a tracee is valid until
 * gt_follow_drop() of it.
 */
#ifndef GT_ATTACH_SESSION_FOLLOW_H
#define GT_ATTACH_SESSION_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "attach/agent/detach.h"

struct gt_letter;
struct gt_message;
struct gt_session;
struct gt_tracee;

/*
 * follow.c: the list, and the round.
 */

/* The tracee of process pid; NULL: the list has none. */
struct gt_tracee *gt_follow_find(struct gt_session *session, pid_t pid);
/* Makes room for one more: gt_follow_add() cannot fail then. GT_ENOMEM, with the message. */
int gt_follow_make_room(struct gt_session *session, struct gt_message *message);
/* Adds a tracee (of calloc), which the list owns from then on. GT_ENOMEM: it has been freed. */
int gt_follow_add(struct gt_session *session, struct gt_tracee *tracee);
/* Takes tracee number `at` out of the list; the last one gets its number. It is freed, or kept among those that have
 * ended. Nothing is done to the process, nor to its writers and letters. */
void gt_follow_drop(struct gt_session *session, size_t at);
/* Frees all tracees and the list, at the session's end. No error. */
void gt_follow_free(struct gt_session *session);
/* Whether process pid lives and has that thread. From any thread, with or without the lock. */
bool gt_follow_is_thread_of(pid_t pid, pid_t tid);
/* One round of the thread that polls: obeys letters, ends processes and threads that have ended, looks at
 * credentials, lets stopped writers go on. Hits of triggers are only noted: their handler is called later, without
 * the lock (gt_mail_read). now_ns: CLOCK_MONOTONIC. Returns how many letters, ends and writers that were; GT_ENOMEM,
 * or an error of the sink: the session cannot go on. */
int gt_follow_work(struct gt_session *session, uint64_t now_ns);

/*
 * forks.c, orphans.c: processes that were forked off.
 */

/*
 * Takes in process pid, a fork of process parent_pid (0: not known), if it has an arena of the session mapped and is
 * not in the list. It is described as its parent is, or as another one of the list, or that has ended, whose notes it
 * has. A process that none of them describes is recorded as it is, and not taken in, until its letter tells that it
 * has loaded libraries: then it is left, and attached to anew; or that it cannot be traced from now on: then it is
 * left. With the session's no_fork each is left. letter: what it has sent, of any kind; NULL: nothing. *answered is
 * set to true if it was left: then its letters were answered; with a letter it must not be NULL. Returns 0, also if
 * it was not taken in, since it is not ours, shares the memory of a traced process, has ended, or there was no memory
 * for its tracee; GT_ENOMEM: the list cannot grow.
 */
int gt_follow_fork(struct gt_session *session, pid_t pid, pid_t parent_pid,
		   const struct gt_letter *letter, bool *answered);
/* Looks for forked processes of which no letter has told, and takes them in, or takes the agent out of those of which
 * nothing is known. parent: the process that they are taken for forks of, as above; it is not taken in itself. Where
 * /proc cannot be read, none is found. */
void gt_follow_adopt_orphans(struct gt_session *session, pid_t parent);
/* Notes the ancestors of process pid: the kernel makes one of them the parent of its orphans. */
void gt_follow_note_reapers(struct gt_session *session, pid_t pid);
/* Leaves a process that has an agent and that nothing here describes: by what stands in it, within a second. Its letters
 * are answered. False: something of ours stays in it, and it counts as refused. */
bool gt_follow_leave_stranger(struct gt_session *session, pid_t pid);
/* Whether process pid runs in the memory of a traced one, or of its parent, without being its thread (vfork,
 * clone(CLONE_VM)). */
bool gt_follow_shares_memory(struct gt_session *session, pid_t pid);
/* Processes that could not be attached to, or left, are not tried again: the last 256 are noted. */
bool gt_follow_is_refused(const struct gt_session *session, pid_t pid);
void gt_follow_refuse(struct gt_session *session, pid_t pid);

/* Calls back for each descendant of the list's processes that is not in the list itself, until `each`
 * returns other than 0, and returns that. `each` may add to the list. */
int gt_follow_each_stranger(struct gt_session *session,
			    int (*each)(struct gt_session *session, pid_t pid, pid_t parent));

/*
 * exec.c.
 */

/* Follows the thread that has sent the letter through its exec, for three seconds at most; the agent
 * goes into the new image. Other processes' records are drained meanwhile. *answered is set if the
 * letter was answered here; it is not if the thread has ended, is not of the session, or is of a child
 * that is left clean (no_fork). What the new image cannot be traced for is noted
 * (gt_session_note_untraced). Returns 0; GT_ENOMEM; an error of the sink. */
int gt_follow_exec(struct gt_session *session, const struct gt_letter *letter, bool *answered);

/*
 * ends.c.
 */

/* Forgets processes that have ended: their writers are ended, their letters freed. Reaps the program.
 * Returns how many ended; that the program was reaped counts as one more. */
int gt_follow_end_processes(struct gt_session *session);
/* Ends the writers of threads that have ended, and takes in processes that have written and are not in the list.
 * is_time, or the list is empty: looks at all arenas; else only at those of which three quarters of the sub-buffers,
 * small or others, are in use. */
void gt_follow_end_threads(struct gt_session *session, bool is_time);
/* Ends the writers of process pid, which writes no more. Its letters must have been read before. */
void gt_follow_end_writers(struct gt_session *session, pid_t pid);
/* The same for all processes, also for a fork that ended before its letter was read. */
void gt_follow_end_all(struct gt_session *session);
/* Takes the agent out of a process as gt_detach_waiting() does, with its errors; who waits in it for an answer gets 0,
 * as soon as no call leads to the agent. tracee: what describes it, NULL: what stands in it. */
int gt_follow_take_out(struct gt_session *session, struct gt_process *process,
		       struct gt_tracee *tracee, int limit_ms, enum gt_detach_left *left);
/* Takes the agent out of a process that lives; it stays in the list without the agent. Threads of it that wait for
 * answers get them as soon as no call and no return leads to the agent. why: the reason to note
 * (gt_session_note_untraced); then it counts as without the agent also after an error. NULL: none, and after an error
 * the process keeps the agent. limit_ms: how long threads that stand inside the agent are waited for; *left: what
 * could not be taken out; it means nothing after an error (gt_detach_waiting). GT_EGONE: it has ended; GT_EBUSY: a
 * thread cannot be stopped; GT_EFORMAT: the agent's state was overwritten; GT_EAGAIN: it has entered a sandbox at that
 * moment; GT_ENOTSUP: too many processes share its memory, or a thread runs 32-bit code; GT_EPERM, GT_EIO, GT_ENOMEM.
 * */
int gt_follow_leave(struct gt_session *session, struct gt_tracee *tracee, const char *why,
		    int limit_ms, enum gt_detach_left *left);

/*
 * session_attach.c.
 */

/* Takes the agent out of all processes, also of forks of which no letter has told; the list is empty
 * then, also after an error. Returns the first error: those of gt_follow_leave() but for GT_EGONE. *message (or NULL),
 * which must be empty before, is of the first process with an error, or in which something stays; that alone is no
 * error. */
int gt_follow_detach_all(struct gt_session *session, struct gt_message *message);

#endif
