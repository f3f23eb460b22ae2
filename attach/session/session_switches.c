/* SPDX-License-Identifier: MIT */
/*
 * Context switches of a session: watched while there is a tracer, or when somebody wants them
 * without one; from the first moment of a process on, so that no time off the CPU is missing.
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <stdlib.h>

static bool is_wanted(const struct gt_session *session)
{
	return session->wants_switches != 0 ||
	       (!session->no_switches && session->live.target.tracer != GRAFTRACE_TRACER_NOP);
}

void gt_session_watch(struct gt_session *session, const pid_t *pids, size_t count)
{
	if (is_wanted(session))
		session->off_cpu_error = gt_off_cpu_start(&session->off_cpu, pids, (uint32_t)count,
							  &session->off_cpu_why);
}

/* Under the lock. */
static void watch_all(struct gt_session *session)
{
	pid_t *pids = calloc(session->tracee_count + 1, sizeof(*pids));
	uint32_t count = 0;

	for (size_t i = 0; pids && i < session->tracee_count; i++)
		pids[count++] = session->tracees[i]->process.pid;
	if (count)
		session->off_cpu_error =
			gt_off_cpu_start(&session->off_cpu, pids, count, &session->off_cpu_why);
	free(pids);
}

void gt_session_watch_as_traced(struct gt_session *session)
{
	bool wanted = is_wanted(session), on = gt_off_cpu_is_on(&session->off_cpu);

	if (wanted && !on)
		watch_all(session);
	else if (!wanted && on && session->arenas[0].drain.mode != GRAFTRACE_MODE_DRAIN)
		gt_off_cpu_stop(&session->off_cpu);
}

int gt_session_watch_off_cpu(struct gt_session *session, struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	session->wants_switches++;
	if (!gt_off_cpu_is_on(&session->off_cpu))
		watch_all(session);
	error = session->off_cpu_error;
	if (error && message)
		*message = session->off_cpu_why;
	session->wants_switches -= error != 0;
	pthread_mutex_unlock(&session->lock);
	return error;
}

void gt_session_unwatch_off_cpu(struct gt_session *session)
{
	pthread_mutex_lock(&session->lock);
	session->wants_switches--;
	gt_session_watch_as_traced(session);
	pthread_mutex_unlock(&session->lock);
}

int gt_session_switches(struct gt_session *session, struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = session->off_cpu_error;
	if (error && message)
		*message = session->off_cpu_why;
	pthread_mutex_unlock(&session->lock);
	return error;
}

uint32_t gt_session_creator(struct gt_session *session, uint32_t tid, uint64_t *clock)
{
	struct gt_off_cpu_fork fork;

	if (gt_off_cpu_creator(&session->off_cpu, tid, &fork))
		return 0;
	*clock = fork.clock;
	return fork.creator;
}

int gt_session_give_switches(struct gt_session *session, const struct gt_sink *sink)
{
	uint64_t cursor = 0;

	gt_off_cpu_collect(&session->off_cpu, true);
	return gt_off_cpu_give(&session->off_cpu, sink, &cursor);
}
