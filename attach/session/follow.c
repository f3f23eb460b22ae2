/* SPDX-License-Identifier: MIT */
/*
 * The list of a session's processes, and the round of what is done about them. Who joins the list:
 * forks.c, exec.c, session_attach.c; who leaves it: ends.c.
 *
 * What mail says is not believed: a process counts as ours only if it has an arena of ours mapped.
 */
#define _GNU_SOURCE
#include "attach/session/session_private.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Interval of the scan for threads that have ended. */
#define THREAD_CHECK_NS 20000000ull

struct gt_tracee *gt_follow_find(struct gt_session *session, pid_t pid)
{
	for (size_t i = 0; i < session->tracees.count; i++)
		if (session->tracees.list[i]->process.pid == pid)
			return session->tracees.list[i];
	return NULL;
}

int gt_follow_make_room(struct gt_session *session, struct gt_message *message)
{
	size_t room = session->tracees.room ? session->tracees.room * 2 : 16;
	void *tracees;

	if (session->tracees.count < session->tracees.room)
		return 0;
	tracees = realloc(session->tracees.list, room * sizeof(*session->tracees.list));
	if (tracees == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for a process");
	session->tracees.list = tracees;
	session->tracees.room = room;
	return 0;
}

static void free_tracee(struct gt_tracee *tracee)
{
	if (tracee == NULL)
		return;
	gt_tracee_fini(tracee);
	free(tracee);
}

int gt_follow_add(struct gt_session *session, struct gt_tracee *tracee)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	if (gt_follow_make_room(session, NULL) != 0) {
		free_tracee(tracee);
		return GT_ENOMEM;
	}
	session->tracees.list[session->tracees.count++] = tracee;
	session->tracees.so_far++;
	if (session->watcher.epoll >= 0)
		epoll_ctl(session->watcher.epoll, EPOLL_CTL_ADD, tracee->process.pidfd, &event);
	return 0;
}

/* Keeps or frees one that has been taken out of the list. */
static void put_away(struct gt_session_tracees *tracees, struct gt_tracee *tracee)
{
	struct gt_tracee **oldest = &tracees->ended[tracees->next_ended];
	bool is_known = !tracee->has_agent || tracee->notes == 0;

	for (size_t i = 0; !is_known && i < tracees->count; i++)
		is_known = tracees->list[i]->has_agent && tracees->list[i]->notes == tracee->notes;
	if (is_known) {
		free_tracee(tracee);
		return;
	}
	gt_process_close(&tracee->process);
	free_tracee(*oldest);
	*oldest = tracee;
	tracees->next_ended = (tracees->next_ended + 1) % GT_TRACEES_ENDED;
}

void gt_follow_free(struct gt_session *session)
{
	struct gt_session_tracees *tracees = &session->tracees;

	while (tracees->count)
		free_tracee(tracees->list[--tracees->count]);
	for (size_t i = 0; i < GT_TRACEES_ENDED; i++)
		free_tracee(tracees->ended[i]);
	free(tracees->list);
}

void gt_follow_drop(struct gt_session *session, size_t at)
{
	struct gt_tracee *tracee = session->tracees.list[at];

	if (tracee->copies)
		session->notes.entries_only = gt_plan_reason_text(tracee->copies);
	if (tracee->no_traps != NULL)
		session->notes.no_breakpoints = tracee->no_traps;
	session->tracees.list[at] = session->tracees.list[--session->tracees.count];
	put_away(&session->tracees, tracee);
}

bool gt_follow_is_refused(const struct gt_session *session, pid_t pid)
{
	const struct gt_session_tracees *tracees = &session->tracees;

	for (uint32_t i = 0; i < GT_CHILDREN_REFUSED; i++)
		if (tracees->refused[i] == pid)
			return true;
	return false;
}

void gt_follow_refuse(struct gt_session *session, pid_t pid)
{
	struct gt_session_tracees *tracees = &session->tracees;

	if (!gt_follow_is_refused(session, pid))
		tracees->refused[tracees->next_refused++ % GT_CHILDREN_REFUSED] = pid;
}

bool gt_follow_is_thread_of(pid_t pid, pid_t tid)
{
	return pid > 0 && tid > 0 && syscall(SYS_tgkill, pid, tid, 0) == 0;
}

int gt_follow_work(struct gt_session *session, uint64_t now)
{
	const bool is_time = now >= session->due.thread_check_ns;
	int done, error, ended, late;

	session->tracees.taken_ms = 0;
	done = gt_mail_read(session);
	if (done < 0)
		return done;
	error = gt_session_find_writers(session);
	if (error)
		return error;
	ended = gt_follow_end_processes(session);
	/* What they have posted since we looked: nobody may come here again. */
	late = ended ? gt_mail_read(session) : 0;
	if (late < 0)
		return late;
	done += ended + late;
	gt_session_look_at_credentials(session, now);
	if (is_time)
		session->due.thread_check_ns = now + THREAD_CHECK_NS;
	gt_follow_end_threads(session, is_time);
	done += gt_stop_words_clear_full(session);
	return done;
}
