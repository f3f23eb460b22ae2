/* SPDX-License-Identifier: MIT */
/*
 * What a session does not trace although it was meant: images that a traced process has executed
 * and children that were there already. Each reason is noted once, for the first process that had
 * it. Under the session's lock, but for gt_session_untraced().
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <string.h>

static void note(struct gt_session *session, pid_t pid, bool is_traced, const char *why)
{
	struct gt_session_untraced *noted;

	for (uint32_t i = 0; i < session->notes.untraced_count; i++)
		if (strncmp(session->notes.untraced[i].why, why, sizeof(noted->why) - 1) == 0)
			return;
	if (session->notes.untraced_count == GT_SESSION_UNTRACED)
		return;
	noted = &session->notes.untraced[session->notes.untraced_count++];
	noted->pid = pid;
	noted->is_traced = is_traced;
	strncpy(noted->why, why, sizeof(noted->why) - 1);
	noted->why[sizeof(noted->why) - 1] = 0;
}

void gt_session_note_untraced(struct gt_session *session, pid_t pid, const char *why)
{
	note(session, pid, false, why);
}

void gt_session_note_shared(struct gt_session *session, pid_t pid, const char *why)
{
	note(session, pid, true, why);
}

bool gt_session_untraced(struct gt_session *session, uint32_t index,
			 struct gt_session_untraced *untraced)
{
	bool found;

	pthread_mutex_lock(&session->lock);
	found = index < session->notes.untraced_count;
	if (found)
		*untraced = session->notes.untraced[index];
	pthread_mutex_unlock(&session->lock);
	return found;
}
