/* SPDX-License-Identifier: MIT */
/*
 * Processes that have forked off from traced ones and were never heard of: a fork tells of itself
 * with its first traced call, which may be never, or too late to be read.
 *
 * They are known by the arena, but looking at a process's maps takes a lock that it holds while it
 * executes a program, for as long as a loaded machine lets it wait. So it is not asked of all, only
 * of those that can be meant: descendants of the traced ones, and children of whoever gets orphans
 * (init, and the traced ones' ancestors). Parents are in /proc/PID/status, which takes no lock.
 */
#define _GNU_SOURCE
#include "attach/process/proc.h"
#include "attach/session/session_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct family {
	pid_t *pids;
	pid_t *parents;
	bool *ours; /* descends from a traced process */
	size_t count;
	size_t room;
};

/* The number that was given out last: of processes that a short session can have made, all lie
 * between the program's and this. 0 = numbers have begun anew, or may have. */
static long last_number(const struct gt_session *session)
{
	long last;

	if (gt_monotonic_ns() - session->times.first.ns > 1000000000)
		return 0;
	last = gt_proc_last_number();
	return last < session->program.pid ? 0 : last;
}

void gt_follow_note_reapers(struct gt_session *session, pid_t pid)
{
	size_t i;

	for (pid = gt_proc_parent(pid); pid > 0; pid = gt_proc_parent(pid)) {
		for (i = 0; i < session->tracees.reaper_count && session->tracees.reapers[i] != pid;
		     i++)
			;
		if (i < session->tracees.reaper_count || i == GT_REAPERS)
			return;
		session->tracees.reapers[session->tracees.reaper_count++] = pid;
	}
}

static bool add(struct family *family, pid_t pid, pid_t parent)
{
	if (family->count == family->room) {
		size_t room = family->room ? family->room * 2 : 512;
		pid_t *pids = realloc(family->pids, room * sizeof(*pids));
		pid_t *parents =
			pids != NULL ? realloc(family->parents, room * sizeof(*parents)) : NULL;
		bool *ours = parents != NULL ? realloc(family->ours, room * sizeof(*ours)) : NULL;

		family->pids = pids != NULL ? pids : family->pids;
		family->parents = parents != NULL ? parents : family->parents;
		family->ours = ours != NULL ? ours : family->ours;
		if (ours == NULL)
			return false;
		family->room = room;
	}
	family->pids[family->count] = pid;
	family->parents[family->count] = parent;
	family->ours[family->count++] = false;
	return true;
}

/* all: also processes that are older than the session. */
static void read_family(struct gt_session *session, struct family *family, bool all)
{
	long last = all ? 0 : last_number(session);
	DIR *processes = gt_proc_numbers(0);
	pid_t pid;

	while (processes != NULL && (pid = gt_proc_next(processes))) {
		if (pid == getpid() || (last && (pid < session->program.pid || pid > last)))
			continue;
		if (!add(family, pid, gt_proc_parent(pid)))
			break;
	}
	if (processes != NULL)
		closedir(processes);
}

/* Children of a traced one, their children, and so on. */
static void mark_descendants(struct gt_session *session, struct family *family)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < family->count; i++) {
			bool found = gt_follow_find(session, family->parents[i]) != NULL;

			if (family->ours[i])
				continue;
			for (size_t k = 0; k < family->count && !found; k++)
				found = family->ours[k] && family->pids[k] == family->parents[i];
			family->ours[i] = found;
			more = more || found;
		}
	}
}

static bool is_orphan(const struct gt_session *session, pid_t parent)
{
	bool found = parent == 1;

	for (size_t i = 0; i < session->tracees.reaper_count && !found; i++)
		found = session->tracees.reapers[i] == parent;
	return found;
}

/* Those that have an arena of ours, and so their descendants: nothing tells of a child whose parent is none of the
 * list's. */
static void mark_orphans(struct gt_session *session, struct family *family)
{
	for (size_t i = 0; i < family->count; i++)
		if (!family->ours[i] && is_orphan(session, family->parents[i]) &&
		    gt_process_start_time(family->pids[i]) >= session->program.start_time)
			family->ours[i] = gt_session_arena_mapped(session, family->pids[i]) != NULL;
}

void gt_follow_adopt_orphans(struct gt_session *session, pid_t parent)
{
	struct family family = { 0 };

	read_family(session, &family, false);
	mark_orphans(session, &family);
	mark_descendants(session, &family);
	for (size_t i = 0; i < family.count; i++) {
		pid_t pid = family.pids[i];

		if (pid == parent || gt_follow_find(session, pid) != NULL || !family.ours[i])
			continue;
		if (gt_process_start_time(pid) < session->program.start_time)
			continue;
		if (gt_follow_fork(session, pid, parent, NULL, NULL) == 0 &&
		    gt_follow_find(session, pid) == NULL &&
		    gt_session_arena_mapped(session, pid) != NULL)
			gt_follow_leave_stranger(session, pid);
	}
	free(family.pids);
	free(family.parents);
	free(family.ours);
}

int gt_follow_each_stranger(struct gt_session *session,
			    int (*each)(struct gt_session *session, pid_t pid, pid_t parent))
{
	struct family family = { 0 };
	int result = 0;

	read_family(session, &family, true);
	mark_descendants(session, &family);
	for (size_t i = 0; !result && i < family.count; i++)
		if (family.ours[i] && gt_follow_find(session, family.pids[i]) == NULL)
			result = each(session, family.pids[i], family.parents[i]);
	free(family.pids);
	free(family.parents);
	free(family.ours);
	return result;
}
