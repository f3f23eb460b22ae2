/* SPDX-License-Identifier: MIT */
/*
 * Processes that were forked off from a session's: they are taken in, or left clean.
 */
#define _GNU_SOURCE
#include "attach/agent/detach.h"
#include "attach/process/proc.h"
#include "attach/session/session_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* True also if one of them has ended, and cannot be asked any more. */
static bool have_one_program(pid_t a, pid_t b)
{
	struct stat program, other;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)a);
	if (stat(path, &program) != 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)b);
	return stat(path, &other) != 0 ||
	       (program.st_dev == other.st_dev && program.st_ino == other.st_ino);
}

/* Whether the process can be a fork of the tracee: where that has its agent, it has one, too. */
static bool is_alike(const struct gt_tracee *tracee, const struct gt_process *process)
{
	struct graftrace_agent_image header;

	return tracee != NULL && tracee->has_agent &&
	       gt_process_read(process, tracee->agent.image, &header, sizeof(header)) == 0 &&
	       memcmp(&header, &tracee->agent.header, sizeof(header)) == 0 &&
	       have_one_program(tracee->process.pid, process->pid);
}

static struct gt_tracee *first_alike(struct gt_tracee *const *tracees, size_t count,
				     const struct gt_process *process)
{
	for (size_t i = 0; i < count; i++)
		if (is_alike(tracees[i], process))
			return tracees[i];
	return NULL;
}

/*
 * Of which tracee a process is a fork. Its parent may have ended or executed another program since; then others of the
 * same origin have what it had. A wrong one would do harm: its agent and its objects are elsewhere. NULL: of none.
 */
static struct gt_tracee *find_parent(struct gt_session *session, pid_t pid, pid_t parent_pid)
{
	const struct gt_session_tracees *tracees = &session->tracees;
	struct gt_tracee *likely = gt_follow_find(session, parent_pid), *parent;
	struct gt_process process;

	if (gt_process_open(&process, pid, NULL))
		return NULL;
	parent = first_alike(&likely, 1, &process);
	if (parent == NULL) {
		likely = gt_follow_find(session, gt_proc_parent(pid));
		parent = first_alike(&likely, 1, &process);
	}
	if (parent == NULL)
		parent = first_alike(tracees->list, tracees->count, &process);
	if (parent == NULL)
		parent = first_alike(tracees->ended, GT_TRACEES_ENDED, &process);
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
