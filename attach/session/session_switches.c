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
	return session->switches.wanted != 0 ||
	       (!session->switches.never && session->live.target.tracer != GRAFTRACE_TRACER_NOP);
}

void gt_session_watch(struct gt_session *session, const pid_t *pids, size_t count)
{
	if (is_wanted(session))
		session->switches.error = gt_off_cpu_start(&session->switches.watch, pids,
							   (uint32_t)count, &session->switches.why);
}

/* Under the lock. */
static void watch_all(struct gt_session *session)
{
	pid_t *pids = calloc(session->tracees.count + 1, sizeof(*pids));
	uint32_t count = 0;

	if (pids == NULL) {
		session->switches.error =
			gt_fail(&session->switches.why, GT_ENOMEM,
				"no memory for what is watched of times off the CPU");
		return;
	}
	for (size_t i = 0; i < session->tracees.count; i++)
		pids[count++] = session->tracees.list[i]->process.pid;
	if (count)
		session->switches.error = gt_off_cpu_start(&session->switches.watch, pids, count,
							   &session->switches.why);
	free(pids);
}

void gt_session_watch_as_traced(struct gt_session *session)
{
	bool wanted = is_wanted(session), on = gt_off_cpu_is_on(&session->switches.watch);

	if (wanted && !on)
		watch_all(session);
	else if (!wanted && on && session->arenas[0].drain.mode != GRAFTRACE_MODE_DRAIN)
		gt_off_cpu_stop(&session->switches.watch);
}

int gt_session_watch_off_cpu(struct gt_session *session, struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	session->switches.wanted++;
	if (!gt_off_cpu_is_on(&session->switches.watch))
		watch_all(session);
	error = session->switches.error;
	if (error && message != NULL)
		*message = session->switches.why;
	session->switches.wanted -= error != 0;
	pthread_mutex_unlock(&session->lock);
	return error;
}

void gt_session_unwatch_off_cpu(struct gt_session *session)
{
	pthread_mutex_lock(&session->lock);
	session->switches.wanted--;
	gt_session_watch_as_traced(session);
	pthread_mutex_unlock(&session->lock);
}

int gt_session_switches(struct gt_session *session, struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = session->switches.error;
	if (error && message != NULL)
		*message = session->switches.why;
	pthread_mutex_unlock(&session->lock);
	return error;
}

uint32_t gt_session_creator(struct gt_session *session, uint32_t tid, uint64_t *clock)
{
	struct gt_off_cpu_fork fork;

	if (gt_off_cpu_creator(&session->switches.watch, tid, &fork))
		return 0;
	*clock = fork.clock;
	return fork.creator;
}

int gt_session_give_switches(struct gt_session *session, const struct gt_sink *sink)
{
	uint64_t cursor = 0;

	gt_off_cpu_collect(&session->switches.watch, true);
	return gt_off_cpu_give(&session->switches.watch, sink, &cursor);
}
