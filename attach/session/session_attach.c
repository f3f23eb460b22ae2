/* SPDX-License-Identifier: MIT */
/*
 * Sessions of processes that run: attaching to them, and taking the agent out again. Under the
 * session's lock, or before anyone else knows the session.
 */
#define _GNU_SOURCE
#include "attach/agent/detach.h"
#include "attach/process/refuse.h"
#include "attach/process/threads.h"
#include "attach/session/session_private.h"
#include "attach/process/tracer.h"

#include <stdlib.h>

#define DETACH_LIMIT_MS 5000
/* For another graftrace that attaches or leaves. */
#define LOCK_LIMIT_MS 10000
/* The process may execute another program each time. */
#define ATTEMPTS 12
/* How often children of a process are looked for while it is left: it may fork meanwhile. */
#define PASSES 5
/* Looks for children that were there before us. */
#define CHILDREN_PASSES 20

static void say_left(struct gt_message *message, pid_t pid, enum gt_detach_left left)
{
	if (message == NULL || message->text[0] || left == GT_DETACH_ALL_GONE)
		return;
	if (left == GT_DETACH_LEFT_BREAKPOINT)
		gt_fail(message, 0,
			"process %d keeps the recorder's memory: somebody has set a breakpoint "
			"over "
			"its patches, a debugger or a uprobe of the kernel (perf, bpftrace, an "
			"eBPF "
			"agent). With a uprobe there it may die: record with --uprobe-safe where "
			"such "
			"may come. It is not recorded any more",
			(int)pid);
	else
		gt_fail(message, 0,
			left == GT_DETACH_LEFT_PATCH
				? "process %d keeps the recorder's memory: somebody has written "
				  "over "
				  "its patches. It is not recorded any more"
				: "process %d keeps the recorder's memory: a thread stands in it. "
				  "It "
				  "is not recorded any more; attaching once more cleans up",
			(int)pid);
}

static int detach_from(struct gt_tracee *tracee, struct gt_message *message)
{
	enum gt_detach_left left = GT_DETACH_ALL_GONE;
	struct gt_message why = { "" };
	int lock = -1, error = 0;

	if (!gt_process_ended(&tracee->process)) {
		gt_tracee_change(tracee);
		lock = gt_process_lock(tracee->process.pid, LOCK_LIMIT_MS);
		error = gt_detach_process(&tracee->process, tracee, DETACH_LIMIT_MS, &left, &why);
		gt_process_unlock(lock);
	}
	if (error == GT_EGONE || gt_process_is_ending(&tracee->process))
		return 0;
	say_left(message, tracee->process.pid, left);
	if (error && message != NULL && !message->text[0])
		*message = why;
	return error;
}

int gt_follow_detach_all(struct gt_session *session, struct gt_message *message)
{
	struct graftrace_arena *memory = gt_session_settings(session);
	bool more = true;
	int error = 0;

	/* Nobody waits for us from now on, and nothing new is recorded. */
	__atomic_store_n(&memory->host_alive, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->wait_ms, 0, __ATOMIC_SEQ_CST);
	gt_session_write_tracing(session, false);
	gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_HOST, GRAFTRACE_STOP_OFF);
	for (uint32_t k = 0; k < session->arena_count; k++) {
		uint32_t *word = &session->arenas[k].shared.memory->free_futex;

		__atomic_fetch_add(word, 1, __ATOMIC_SEQ_CST);
		gt_arena_wake(word);
	}
	for (int pass = 0; pass < PASSES && session->tracees.count && more; pass++) {

		/* Those that have not told of themselves yet. The program itself is older. */
		gt_follow_adopt_orphans(session, session->tracees.list[0]->process.pid);
		more = false;
		for (size_t i = 0; i < session->tracees.count; i++) {
			struct gt_tracee *tracee = session->tracees.list[i];
			int result;

			if (!tracee->has_agent)
				continue;
			more = true;
			result = detach_from(tracee, message);
			if (tracee->left_ns > session->notes.left_ns)
				session->notes.left_ns = tracee->left_ns;
			error = error ? error : result;
			tracee->has_agent = false;
		}
	}
	for (int pass = 0; (size_t)pass < session->tracees.count; pass++) {
		pid_t pid = session->tracees.list[pass]->process.pid;

		gt_follow_end_writers(session, pid);
		gt_mail_free_answered(session, pid);
	}
	while (session->tracees.count)
		gt_follow_drop(session, session->tracees.count - 1);
	return error;
}

/* Cleans up after a host that was killed; refuses while one lives. */
static int clean_leftover(pid_t pid, struct gt_message *message)
{
	struct gt_process process;
	enum gt_detach_left left;
	struct gt_maps maps;
	uint64_t image;
	pid_t host;
	int error = gt_process_open(&process, pid, message);

	if (error)
		return error;
	error = gt_process_maps(pid, &maps, message);
	if (error)
		goto close;
	image = gt_detach_find(&process, &maps);
	gt_maps_free(&maps);
	if (!image)
		goto close;
	host = gt_detach_host(&process, image);
	if (host) {
		error = gt_fail(message, GT_EBUSY,
				"process %d is being recorded already, by graftrace (process %d): "
				"end that first",
				(int)pid, (int)host);
		goto close;
	}
	error = gt_detach_process(&process, NULL, DETACH_LIMIT_MS, &left, message);
	if (!error && left != GT_DETACH_ALL_GONE)
		error = gt_fail(
			message, GT_EBUSY,
			"process %d has still parts of an earlier recording: a thread of it "
			"stands in them, or somebody has written over them. Try again later",
			(int)pid);
close:
	gt_process_close(&process);
	return error;
}

struct attach_work {
	struct gt_session *session;
	pid_t pid;
	struct gt_message *message;
};

/* Tracees are in the order of their coming, the program first: what its children have executed meanwhile
 * comes behind it. */
static void put_before(struct gt_session *session, size_t at)
{
	struct gt_session_tracees *tracees = &session->tracees;
	struct gt_tracee *tracee = tracees->list[tracees->count - 1];

	tracees->list[tracees->count - 1] = tracees->list[at];
	tracees->list[at] = tracee;
}

static int attach_locked(const struct attach_work *work)
{
	struct gt_session *session = work->session;
	struct gt_message *message = work->message;
	pid_t pid = work->pid;
	struct gt_session_arena *arena = NULL;
	struct gt_tracee *tracee;
	enum gt_detach_left left;
	uint64_t handlers[64];
	const size_t before = session->tracees.count;
	int error;

	if (gt_follow_find(session, pid) != NULL)
		return 0; /* named twice */
	for (int again = 0; again < ATTEMPTS; again++) {
		error = gt_refuse_process(pid, message);
		if (error)
			return error;
		error = clean_leftover(pid, message);
		if (error == GT_EGONE && !gt_threads_are_dead(pid))
			continue; /* what was to be cleaned went with its image */
		if (error == GT_EGONE)
			return gt_fail(message, error, "process %d has ended", (int)pid);
		if (!error)
			error = gt_session_arena_of(session, pid, &arena, message);
		if (error)
			return error;
		tracee = calloc(1, sizeof(*tracee));
		if (tracee == NULL)
			return gt_fail(message, GT_ENOMEM, "no memory for a process");
		error = gt_process_open(&tracee->process, pid, message);
		/* Its children may ask for something as soon as they run into the agent. */
		tracee->process.helper = &session->helper;
		session->tracees.coming = tracee;
		if (!error)
			error = gt_tracee_attach(
				tracee, &arena->shared, &session->catalog, &session->selection,
				gt_clock_ticks(&session->live.target.clock, 1000000), session->sink,
				message);
		if (!error)
			error = gt_session_handlers(session, tracee, handlers, message);
		if (!error)
			error = gt_follow_make_room(session, message);
		if (!error) {
			if (tracee->stopped_ns > session->notes.stopped_ns)
				session->notes.stopped_ns = tracee->stopped_ns;
			gt_session_enter(session, tracee, arena, NULL);
			session->tracees.coming = NULL;
			gt_follow_add(session, tracee);
			put_before(session, before);
			gt_session_stop_at_handlers(session, tracee, handlers);
			return 0;
		}
		/* Whatever it was that could not be read, written or asked. */
		if (tracee->process.pidfd >= 0 && gt_process_is_ending(&tracee->process))
			error = GT_EGONE;
		else if (gt_process_has_executed(&tracee->process))
			error = GT_EAGAIN;
		if (tracee->has_agent && error != GT_EAGAIN && error != GT_EGONE)
			gt_detach_process(&tracee->process, tracee, DETACH_LIMIT_MS, &left, NULL);
		session->tracees.coming = NULL;
		gt_tracee_fini(tracee);
		free(tracee);
		if (error == GT_EGONE)
			gt_fail(message, error, "process %d has ended", (int)pid);
		/* It has executed another program meanwhile: that one, then. */
		if (error != GT_EAGAIN)
			return error;
	}
	return gt_fail(
		message, GT_EBUSY,
		"process %d executes one program after the other: try again later, or start it "
		"with graftrace record",
		(int)pid);
}

static int attach_work(void *data)
{
	const struct attach_work *work = data;
	const int lock = gt_process_lock(work->pid, LOCK_LIMIT_MS);
	const int error = attach_locked(work);

	gt_process_unlock(lock);
	return error;
}

static int attach_process(struct gt_session *session, pid_t pid, struct gt_message *message)
{
	struct attach_work work = { session, pid, message };

	return gt_tracer_run(attach_work, &work);
}

int gt_session_attach_one(struct gt_session *session, pid_t pid, struct gt_message *message)
{
	return attach_process(session, pid, message);
}

int gt_session_attach_child(struct gt_session *session, pid_t pid)
{
	struct gt_message message = { "" };
	int error = attach_process(session, pid, &message);

	if (error == GT_ENOMEM)
		return error;
	if (error)
		gt_follow_refuse(session, pid);
	if (error && error != GT_EGONE)
		gt_session_note_untraced(session, pid, message.text);
	return 0;
}

/* A child that was there before we came. What cannot be traced runs on, and so do the others. */
static int attach_child(struct gt_session *session, pid_t pid, pid_t parent)
{
	size_t before = session->tracees.count;
	int error;

	if (gt_follow_is_refused(session, pid))
		return 0;
	/* Forked since its parent was attached to: it has the agent. */
	error = gt_follow_fork(session, pid, parent, NULL, NULL);
	if (error || session->tracees.count > before || gt_follow_shares_memory(session, pid))
		return error;
	/* While that was changed: nothing describes what it has. */
	if (gt_session_arena_mapped(session, pid) != NULL &&
	    !gt_follow_leave_stranger(session, pid))
		return 0;
	gt_session_watch(session, &pid, 1);
	return gt_session_attach_child(session, pid);
}

/* Until a look finds no new one: they may fork meanwhile, and who forked before it was attached to
 * has a child without the agent. */
static int attach_children(struct gt_session *session)
{
	size_t before;
	int error = 0, pass = 0;

	do {
		before = session->tracees.count;
		error = gt_follow_each_stranger(session, attach_child);
	} while (!error && session->tracees.count > before && ++pass < CHILDREN_PASSES);
	return error;
}

int gt_session_attach(struct gt_session *session, const pid_t *pids, size_t count, bool children,
		      struct gt_message *message)
{
	int error = 0;

	session->program.attached = session->program.reaped = true;
	session->program.pid = pids[0];
	session->program.start_time = ~0ull;
	for (size_t i = 0; i < count; i++) {
		uint64_t start = gt_process_start_time(pids[i]);

		if (start && start < session->program.start_time)
			session->program.start_time = start;
	}
	gt_session_calibrate(session);
	gt_session_watch(session, pids, count);
	for (size_t i = 0; !error && i < count; i++) {
		gt_follow_note_reapers(session, pids[i]);
		error = attach_process(session, pids[i], message);
	}
	if (!error && children && attach_children(session))
		error = gt_fail(message, GT_ENOMEM, "no memory for the children");
	if (!error)
		error = gt_event_rules_check(&session->event_rules, message);
	if (error && session->tracees.count)
		gt_follow_detach_all(session, NULL);
	return error;
}

int gt_session_detach(struct gt_session *session, struct gt_message *message)
{
	int error;

	if (message != NULL)
		message->text[0] = 0;
	pthread_mutex_lock(&session->lock);
	error = gt_follow_detach_all(session, message);
	session->program.reaped = true; /* whoever waits for the program: it is not we */
	pthread_mutex_unlock(&session->lock);
	return error;
}
