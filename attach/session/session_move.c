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
#include "attach/process/proc.h"
#include "attach/session/session_private.h"

#include <stdlib.h>

#define CHECK_NS 20000000ull
#define CHECKS	 16 /* processes each time */
/* Its thread may stand in the agent, or sleep in the kernel, as often as that; or the fifth of it be stopped in vain. */
#define TRIES	   250
#define LATE_TRIES 50
/* Nothing is read from the ring while a process is waited for: no more than a tenth of the time goes into those that are
 * waited for in vain, and of each a twentieth. */
#define PAUSES	       9
#define PAUSES_OF_ONE  20
#define LEAVE_LIMIT_MS 1000

struct entering {
	struct gt_session *session;
	struct gt_tracee *tracee;
	struct gt_session_arena *arena;
};

/* While it stands still: nothing of it is written to the old arena any more. */
static void enter(void *data)
{
	const struct entering *entering = data;
	struct gt_session *session = entering->session;

	gt_follow_end_writers(session, entering->tracee->process.pid);
	gt_session_enter(session, entering->tracee, entering->arena,
			 &session->arenas[entering->tracee->arena]);
}

static void drop(struct gt_session *session, const struct gt_tracee *tracee)
{
	for (size_t i = 0; i < session->tracees.count; i++)
		if (session->tracees.list[i] == tracee) {
			gt_follow_drop(session, i);
			session->tracees.so_far--;
			return;
		}
}

static void stay(struct gt_session *session, struct gt_tracee *tracee)
{
	tracee->stays = true;
	gt_session_note_shared(session, tracee->process.pid,
			       "it has changed its credentials and still shares memory with "
			       "others: it cannot be stopped");
}

/* All of it out of the process. GT_EGONE: it has ended; else it was noted what stays. */
static int leave(struct gt_session *session, struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid;
	enum gt_detach_left left;
	int error = gt_follow_leave(session, tracee, NULL, LEAVE_LIMIT_MS, &left);

	if (error == GT_EGONE || (error && gt_process_is_ending(&tracee->process)))
		return GT_EGONE;
	if (error) {
		stay(session, tracee);
		return error;
	}
	if (left != GT_DETACH_ALL_GONE) {
		gt_session_note_untraced(
			session, pid,
			"it has changed its credentials, and the memory that it shares cannot be "
			"taken out of it: nothing of it is recorded from then on");
		return GT_EBUSY;
	}
	gt_mail_free_answered(session, pid);
	return 0;
}

/* Threads that listed ones have started stand in the list of their arena alone. */
static void take_threads(struct gt_session *session, pid_t pid, const struct gt_session_arena *from)
{
	const struct gt_tracee *tracee = gt_follow_find(session, pid);
	struct gt_session_arena *arena = tracee != NULL ? &session->arenas[tracee->arena] : NULL;
	DIR *threads = arena != NULL && arena != from ? gt_proc_numbers(pid) : NULL;
	pid_t tid;

	while (threads != NULL && (tid = gt_proc_next(threads)))
		gt_session_take_threads(session, tid, from, arena);
	if (threads != NULL)
		closedir(threads);
	gt_stop_words_write_host(session);
}

/* … and in again. False: it could not be taken out. */
static bool attach_anew(struct gt_session *session, struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid;
	const struct gt_session_arena *from = &session->arenas[tracee->arena];
	struct gt_message why = { "" };
	int error = leave(session, tracee);

	if (error)
		return error == GT_EGONE;
	if (gt_process_is_ending(&tracee->process))
		return true;
	drop(session, tracee);
	error = gt_session_attach_one(session, pid, &why);
	if (!error) {
		session->notes.attached_anew++;
		take_threads(session, pid, from);
	} else if (error != GT_EGONE) {
		gt_session_note_untraced(session, pid, why.text);
	}
	return true;
}

/* Its first thread is in the kernel where no stop reaches it: it waits for a vfork child, a disk. */
static bool sleeps(pid_t pid)
{
	char text[1024];
	const char *fields = gt_proc_stat(text, sizeof(text), pid, 0);

	return fields != NULL && fields[0] == 'D';
}

/* GT_EBUSY as of gt_tracee_move(). */
static int move_to(struct gt_tracee *tracee, struct entering *entering, struct gt_message *why)
{
	const bool is_late = sleeps(tracee->process.pid);
	const int error =
		is_late ? GT_EBUSY
			: gt_tracee_move(tracee, &entering->arena->shared, enter, entering, why);

	if (error == GT_EAGAIN || error == GT_EBUSY)
		tracee->moves_tried += error == GT_EBUSY && !is_late ? LATE_TRIES : 1;
	return error;
}

/* False: it was in vain. */
static bool move(struct gt_session *session, struct gt_tracee *tracee)
{
	struct entering entering = { session, tracee, NULL };
	struct gt_message why = { "" };
	int error = gt_session_arena_of(session, tracee->process.pid, &entering.arena, &why);

	if (error == GT_EGONE || (!error && entering.arena->shared.number == tracee->arena))
		return true;
	if (error) {
		error = leave(session, tracee);
		if (error && error != GT_EGONE)
			return false;
		gt_session_note_untraced(session, tracee->process.pid, why.text);
		return true;
	}
	/* With --no-fork the agent would leave what it takes for a fork's child. */
	error = session->tracees.no_fork ? GT_ENOTSUP : move_to(tracee, &entering, &why);
	if (!error)
		tracee->moves_tried = 0;
	if (!error || error == GT_EGONE)
		return true;
	if ((error == GT_EAGAIN || error == GT_EBUSY) && tracee->moves_tried < TRIES)
		return false;
	if (gt_tracee_is_in_sandbox(tracee, &why)) {
		gt_session_note_shared(session, tracee->process.pid, why.text);
		tracee->stays = true;
	} else if (error == GT_EBUSY) {
		stay(session, tracee);
	} else {
		return attach_anew(session, tracee);
	}
	return true;
}

/* Unless too much time has gone into it already. The tracee may be another one after it. */
static void try_to_move(struct gt_session *session, struct gt_tracee *tracee)
{
	const uint64_t start = gt_monotonic_ns();
	const pid_t pid = tracee->process.pid;
	uint64_t end, took;

	if (start < session->due.move_ns || start < tracee->next_move_ns || move(session, tracee))
		return;
	end = gt_monotonic_ns();
	took = end - start;
	session->due.move_ns = end + PAUSES * took;
	tracee = gt_follow_find(session, pid);
	if (tracee != NULL)
		tracee->next_move_ns = end + PAUSES_OF_ONE * took;
}

static void look(struct gt_session *session, struct gt_tracee *tracee)
{
	struct gt_session_arena *arena = &session->arenas[tracee->arena];
	struct gt_credentials now;

	if (!tracee->has_agent || tracee->clean || tracee->stays ||
	    gt_credentials_read(tracee->process.pid, &now))
		return;
	if (gt_credentials_are_equal(&arena->credentials, &now)) {
		gt_credentials_free(&now);
		return;
	}
	if (arena->processes == 1) { /* nobody else has or had it */
		gt_credentials_free(&arena->credentials);
		arena->credentials = now;
		return;
	}
	gt_credentials_free(&now);
	try_to_move(session, tracee);
}

void gt_session_look_at_credentials(struct gt_session *session, uint64_t now_ns)
{
	if (now_ns < session->due.look_ns)
		return;
	session->due.look_ns = now_ns + CHECK_NS;
	for (size_t i = 0; i < CHECKS && i < session->tracees.count; i++) {
		if (session->due.look_at >= session->tracees.count)
			session->due.look_at = 0;
		if (session->tracees.count)
			look(session, session->tracees.list[session->due.look_at++]);
	}
}
