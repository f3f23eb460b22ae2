/* SPDX-License-Identifier: MIT */
/*
 * Processes that were forked off from a session's: they are taken in, or left clean.
 */
#include "attach/agent/detach.h"
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

int gt_follow_fork(struct gt_session *session, pid_t pid, pid_t parent_pid,
		   const struct gt_letter *letter, bool *answered)
{
	struct gt_tracee *parent = gt_follow_find(session, parent_pid), *child;
	struct gt_session_arena *arena =
		gt_follow_find(session, pid) != NULL ? NULL : gt_session_arena_mapped(session, pid);

	if (arena == NULL)
		return 0;
	if (parent == NULL && session->tracees.count)
		parent = session->tracees.list[0]; /* it has ended already */
	child = calloc(1, sizeof(*child));
	if (child == NULL || parent == NULL) {
		free(child);
		return 0;
	}
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
