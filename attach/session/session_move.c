/* SPDX-License-Identifier: MIT */
/*
 * Processes that change their credentials while they run, as the workers of a server do that a parent with all rights
 * has forked. They have the arena of what they were, and get another one: at once if they have one thread, as if they
 * had forked (attach/agent/move.h); else they are left and attached to anew.
 *
 * The kernel tells nobody of such a change, so each process is looked at, a few at a time.
 */
#include "attach/agent/detach.h"
#include "attach/agent/move.h"
#include "attach/session/session_private.h"

#include <stdlib.h>

#define CHECK_NS 20000000ull
#define CHECKS	 16 /* processes each time */
/* Its thread may stand in the agent, or in the kernel where no stop reaches it, as often as that. */
#define TRIES 250

struct entering {
	struct gt_session *session;
	struct gt_tracee *tracee;
	struct gt_house *house;
};

/* While it stands still: nothing of it is written to the old arena any more. */
static void enter(void *data)
{
	const struct entering *entering = data;
	struct gt_session *session = entering->session;

	gt_follow_end_writers(session, entering->tracee->process.pid);
	gt_session_enter(session, entering->tracee, entering->house,
			 &session->houses[entering->tracee->house]);
}

static void drop(struct gt_session *session, const struct gt_tracee *tracee)
{
	size_t i;

	for (i = 0; i < session->tracee_count; i++)
		if (session->tracees[i] == tracee) {
			gt_follow_drop(session, i);
			session->processes--;
			return;
		}
}

/* All of it out of the process, and in again. */
static void attach_anew(struct gt_session *session, struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid;
	struct gt_message why = { "" };
	enum gt_detach_left left;
	int error;

	error = gt_follow_leave(session, tracee, NULL, &left);
	if (error == GT_EGONE || gt_process_is_ending(&tracee->process))
		return;
	if (error) {
		tracee->stays = true;
		gt_session_note_untraced(session, pid,
					 "it has changed its credentials and still shares memory "
					 "with others: it cannot be stopped");
		return;
	}
	if (left != GT_DETACH_ALL_GONE) {
		gt_session_note_untraced(
			session, pid,
			"it has changed its credentials, and the memory that it shares cannot be "
			"taken out of it: nothing of it is recorded from then on");
		return;
	}
	gt_follow_free_mail(session, pid);
	drop(session, tracee);
	error = gt_session_attach_one(session, pid, &why);
	if (!error)
		session->attached_anew++;
	else if (error != GT_EGONE)
		gt_session_note_untraced(session, pid, why.text);
}

static void move(struct gt_session *session, struct gt_tracee *tracee)
{
	struct entering entering = { session, tracee, NULL };
	struct gt_message why = { "" };
	int error = gt_session_house_of(session, tracee->process.pid, &entering.house, &why);

	if (error == GT_EGONE || (!error && entering.house->arena.number == tracee->house))
		return;
	if (error) {
		enum gt_detach_left left;

		gt_follow_leave(session, tracee, why.text, &left);
		return;
	}
	/* With --no-fork the agent would leave what it takes for a fork's child. */
	error = session->no_fork
			? GT_ENOTSUP
			: gt_tracee_move(tracee, &entering.house->arena, enter, &entering, &why);
	if (!error || error == GT_EGONE)
		return;
	if ((error == GT_EAGAIN || error == GT_EBUSY) && ++tracee->moves_tried < TRIES)
		return;
	if (gt_tracee_is_in_sandbox(tracee, &why)) {
		gt_session_note_untraced(session, tracee->process.pid, why.text);
		tracee->stays = true;
		return;
	}
	attach_anew(session, tracee);
}

static void look(struct gt_session *session, struct gt_tracee *tracee)
{
	struct gt_house *house = &session->houses[tracee->house];
	struct gt_credentials now;

	if (!tracee->has_agent || tracee->clean || tracee->stays ||
	    gt_credentials_read(tracee->process.pid, &now))
		return;
	if (gt_credentials_are_equal(&house->credentials, &now)) {
		gt_credentials_free(&now);
		return;
	}
	if (house->processes == 1) { /* nobody else has or had it */
		gt_credentials_free(&house->credentials);
		house->credentials = now;
		return;
	}
	gt_credentials_free(&now);
	move(session, tracee);
}

void gt_session_look_at_credentials(struct gt_session *session, uint64_t now_ns)
{
	size_t i;

	if (now_ns < session->next_look_ns)
		return;
	session->next_look_ns = now_ns + CHECK_NS;
	for (i = 0; i < CHECKS && i < session->tracee_count; i++) {
		if (session->look_at >= session->tracee_count)
			session->look_at = 0;
		if (session->tracee_count)
			look(session, session->tracees[session->look_at++]);
	}
}
