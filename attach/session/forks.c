/* SPDX-License-Identifier: MIT */
/*
 * Processes that were forked off from a session's: they are taken in, or left clean.
 */
#define _GNU_SOURCE
#include "attach/agent/detach.h"
#include "attach/process/proc.h"
#include "attach/process/sharers.h"
#include "attach/session/session_private.h"

#include <stdlib.h>

#define CLEAN_LIMIT_MS 1000
/* Of one round, for children that nothing describes. */
#define TAKEN_MOST_MS 100

/* A child that is left clean: the agent is taken out of it. */
static int leave_clean(struct gt_session *session, struct gt_tracee *child, bool *answered)
{
	enum gt_detach_left left = GT_DETACH_LEFT_THREAD;

	if (answered != NULL)
		*answered = true;
	child->clean = true;
	if (gt_follow_take_out(session, &child->process, child, CLEAN_LIMIT_MS, &left) == 0 &&
	    left != GT_DETACH_ALL_GONE)
		return gt_follow_add(session, child); /* it may tell of itself again */
	gt_tracee_fini(child);
	free(child);
	return 0;
}

static struct gt_tracee *first_that_describes(struct gt_tracee *const *tracees, size_t count,
					      const struct gt_process *process)
{
	for (size_t i = 0; i < count; i++)
		if (tracees[i] != NULL && gt_tracee_describes(tracees[i], process))
			return tracees[i];
	return NULL;
}

/*
 * The tracee that describes a forked process: its parent, or another one of the same origin, if the parent has ended,
 * has executed another program or was changed since. A wrong one would kill: its stubs and its patches are not those
 * that the process has. NULL: none. What is in the process is told by its own journal when it is left.
 */
static struct gt_tracee *find_parent(struct gt_session *session, pid_t pid, pid_t parent_pid)
{
	const struct gt_session_tracees *tracees = &session->tracees;
	struct gt_tracee *likely = gt_follow_find(session, parent_pid), *parent;
	struct gt_process process;

	if (gt_process_open(&process, pid, NULL))
		return NULL;
	parent = first_that_describes(&likely, 1, &process);
	if (parent == NULL)
		parent = first_that_describes(tracees->list, tracees->count, &process);
	if (parent == NULL)
		parent = first_that_describes(tracees->ended, GT_TRACEES_ENDED, &process);
	gt_process_close(&process);
	return parent;
}

bool gt_follow_shares_memory(struct gt_session *session, pid_t pid)
{
	const struct gt_session_tracees *tracees = &session->tracees;
	const struct gt_process parent = { .pid = gt_proc_parent(pid) };

	for (size_t i = 0; i < tracees->count; i++)
		if (tracees->list[i]->has_agent && gt_sharers_has(&tracees->list[i]->process, pid))
			return true;
	if (tracees->coming != NULL && tracees->coming->has_agent &&
	    gt_sharers_has(&tracees->coming->process, pid))
		return true;
	/* Its parent may be one that nothing was heard of yet. */
	return gt_sharers_has(&parent, pid);
}

bool gt_follow_leave_stranger(struct gt_session *session, pid_t pid)
{
	enum gt_detach_left left = GT_DETACH_LEFT_THREAD;
	struct gt_process process;
	int error = gt_process_open(&process, pid, NULL);

	if (error)
		return false;
	error = gt_follow_take_out(session, &process, NULL, CLEAN_LIMIT_MS, &left);
	gt_process_close(&process);
	gt_follow_end_writers(session, pid);
	if (error || left != GT_DETACH_ALL_GONE) {
		gt_follow_refuse(session, pid);
		return false;
	}
	gt_mail_free_answered(session, pid);
	return true;
}

/* Whether a child that nothing describes has to be left: it waits with what would not be noted of it, or with what it
 * cannot be traced with from now on. */
static bool has_to_go(const struct gt_session *session, const struct gt_letter *letter)
{
	return session->tracees.no_fork ||
	       (letter != NULL && graftrace_mail_needs_answer(letter->text.kind));
}

/* The agent is taken out of it; it is attached to like any other process if it has loaded libraries. */
static int leave_and_attach(struct gt_session *session, pid_t pid, const struct gt_letter *letter)
{
	const bool loads = letter != NULL && letter->text.kind == GRAFTRACE_MAIL_OBJECTS;

	if (letter != NULL && letter->text.kind == GRAFTRACE_MAIL_SANDBOX)
		gt_mail_silence(pid);
	if (!gt_follow_leave_stranger(session, pid) || session->tracees.no_fork || !loads)
		return 0;
	return gt_session_attach_child(session, pid);
}

/* Not more of them in one round than its time allows: then the letter stays, and is read again in the next one. */
static int take_stranger(struct gt_session *session, pid_t pid, const struct gt_letter *letter,
			 bool *answered)
{
	const bool waits = letter != NULL && letter->text.state == GRAFTRACE_MAIL_POSTED &&
			   letter->text.kind != GRAFTRACE_MAIL_OBJECTS;
	uint64_t *taken_ms = &session->tracees.taken_ms;
	const uint64_t begun = gt_monotonic_ms();
	int error;

	if ((!waits && gt_follow_is_refused(session, pid)) || gt_follow_shares_memory(session, pid))
		return 0;
	if (answered != NULL)
		*answered = true;
	/* Others want the lock, and what is recorded has to be read. */
	if (*taken_ms >= TAKEN_MOST_MS)
		return 0;
	error = leave_and_attach(session, pid, letter);
	*taken_ms += gt_monotonic_ms() - begun;
	return error;
}

int gt_follow_fork(struct gt_session *session, pid_t pid, pid_t parent_pid,
		   const struct gt_letter *letter, bool *answered)
{
	struct gt_tracee *parent, *child;
	struct gt_session_arena *arena =
		gt_follow_find(session, pid) != NULL ? NULL : gt_session_arena_mapped(session, pid);

	if (arena == NULL)
		return 0;
	parent = find_parent(session, pid, parent_pid);
	if (parent == NULL)
		return has_to_go(session, letter) ? take_stranger(session, pid, letter, answered)
						  : 0;
	child = calloc(1, sizeof(*child));
	if (child == NULL)
		return 0;
	if (gt_tracee_fork(parent, pid, child, NULL)) {
		free(child);
		return 0;
	}
	child->has_agent = true; /* it has the arena */
	gt_session_enter(session, child, arena, NULL);
	if (session->tracees.no_fork)
		return leave_clean(session, child, answered);
	/* It may have changed its credentials before it told of itself. */
	session->due.look_at = session->tracees.count;
	session->due.look_ns = 0;
	return gt_follow_add(session, child);
}
