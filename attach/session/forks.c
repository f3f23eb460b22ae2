/* SPDX-License-Identifier: MIT */
/*
 * Processes that were forked off from a session's: they are taken in, or left clean.
 */
#define _GNU_SOURCE
#include "attach/agent/detach.h"
#include "attach/process/proc.h"
#include "attach/session/session_private.h"

#include <stdlib.h>

#define CLEAN_LIMIT_MS 1000

/* A child that is left clean: the agent is taken out of it. It waits for the answer within the
 * agent, so it is answered first. */
static int leave_clean(struct gt_session *session, struct gt_tracee *child,
		       const struct gt_letter *letter, bool *answered)
{
	enum gt_detach_left left = GT_DETACH_LEFT_THREAD;

	if (letter != NULL) {
		gt_mail_answer(letter, 0);
		*answered = true;
	}
	child->clean = true;
	if (gt_detach_process(&child->process, child, CLEAN_LIMIT_MS, &left, NULL) == 0 &&
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

int gt_follow_fork(struct gt_session *session, pid_t pid, pid_t parent_pid,
		   const struct gt_letter *letter, bool *answered)
{
	struct gt_tracee *parent, *child;
	struct gt_session_arena *arena =
		gt_follow_find(session, pid) != NULL ? NULL : gt_session_arena_mapped(session, pid);

	if (arena == NULL)
		return 0;
	parent = find_parent(session, pid, parent_pid);
	if (parent == NULL) {
		if (session->tracees.no_fork && letter != NULL) {
			gt_mail_answer(letter, 0);
			*answered = true;
			gt_follow_leave_stranger(session, pid);
		}
		return 0;
	}
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
		return leave_clean(session, child, letter, answered);
	/* It may have changed its credentials before it told of itself. */
	session->due.look_at = session->tracees.count;
	session->due.look_ns = 0;
	return gt_follow_add(session, child);
}
