/* SPDX-License-Identifier: MIT */
/*
 * Processes and threads that write no more: they have ended, or the agent leaves them. Neither tells of
 * its end: pidfds tell of processes, and threads are asked for. What they have written before is
 * drained all the same.
 */
#define _GNU_SOURCE
#include "attach/agent/detach.h"
#include "attach/session/session_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void gt_follow_end_writers(struct gt_session *session, pid_t pid)
{
	gt_session_find_writers(session);
	for (uint32_t k = 0; k < session->arena_count; k++) {
		struct gt_drain *drain = &session->arenas[k].drain;

		for (uint32_t i = 0; i < drain->live_count; i++)
			if (drain->writers[drain->live[i]].writer.pid == (uint32_t)pid)
				gt_drain_end_writer(drain, drain->live[i], true);
	}
}

void gt_follow_end_all(struct gt_session *session)
{
	gt_session_find_writers(session);
	for (uint32_t k = 0; k < session->arena_count; k++) {
		struct gt_drain *drain = &session->arenas[k].drain;

		for (uint32_t i = 0; i < drain->live_count; i++)
			gt_drain_end_writer(drain, drain->live[i], true);
	}
}

/* They are in no list any more. */
static void forget_threads(struct gt_session *session, const struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid;
	struct gt_drain *drain = &session->arenas[tracee->arena].drain;

	for (uint32_t i = 0; i < drain->live_count; i++) {
		const struct gt_writer *writer = &drain->writers[drain->live[i]].writer;

		if (writer->pid == (uint32_t)pid)
			gt_session_forget_thread(session, pid, writer->tid);
	}
}

int gt_follow_end_processes(struct gt_session *session)
{
	int done = 0, status;
	size_t i = 0;

	while (i < session->tracees.count) {
		struct gt_tracee *tracee = session->tracees.list[i];
		pid_t pid = tracee->process.pid;

		if (!gt_process_ended(&tracee->process)) {
			i++;
			continue;
		}
		gt_session_note_end(session, &tracee->process);
		if (session->tracees.count == 1)
			gt_follow_adopt_orphans(session, pid);
		forget_threads(session, tracee);
		gt_follow_end_writers(session, pid);
		gt_mail_free_answered(session, pid);
		gt_follow_drop(session, i);
		done++;
	}
	if (!session->program.reaped && !session->program.attached &&
	    waitpid(session->program.pid, &status, WNOHANG | __WALL) == session->program.pid &&
	    (WIFEXITED(status) || WIFSIGNALED(status))) {
		session->program.status = status;
		session->program.reaped = true;
		done++;
	}
	return done;
}

/* Ended, with or without its parent having waited for it: then how is noted. */
static bool is_over(struct gt_session *session, pid_t pid)
{
	struct gt_process process = { .pid = pid, .memory = -1 };
	bool over;

	process.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	over = process.pidfd < 0 ? errno == ESRCH : gt_process_ended(&process);
	if (over && process.pidfd >= 0)
		gt_session_note_end(session, &process);
	gt_process_close(&process);
	return over;
}

/* A writer of a process that we do not know: a child that has not told of itself yet, or has ended before its letter
 * was read; one that found no room for a letter; or nonsense. True: it is a tracee now, or lives and has our arena. */
static bool adopt(struct gt_session *session, pid_t pid)
{
	if (pid <= 0 || is_over(session, pid) || session->tracees.count == 0)
		return false;
	return gt_follow_fork(session, pid, 0, NULL, NULL) == 0 &&
	       (gt_follow_find(session, pid) != NULL ||
		gt_session_arena_mapped(session, pid) != NULL);
}

/* It lives, and this host may not look into it (it is not root, and the process has forbidden itself dumps): what it
 * writes is recorded, and nothing can be done to it. */
static bool is_hidden(pid_t pid)
{
	char path[64];
	int fd;

	if (geteuid() == 0 || pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd < 0 && (errno == EACCES || errno == EPERM);
}

static bool has_room(const struct gt_session_arena *arena)
{
	const struct gt_arena *shared = &arena->shared;

	return __atomic_load_n(&shared->memory->free_count, __ATOMIC_RELAXED) >
		       shared->sub_buffer_count / 4 &&
	       __atomic_load_n(&shared->memory->small_used, __ATOMIC_RELAXED) <=
		       shared->small_count / 4 * 3;
}

/* Threads that have ended are not told of: they are looked for, oftener when room gets short. */
static void end_threads(struct gt_session *session, struct gt_session_arena *arena, bool is_time)
{
	struct gt_drain *drain = &arena->drain;

	if (!is_time && session->tracees.count && has_room(arena))
		return;
	for (uint32_t i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		pid_t pid = (pid_t)writer->writer.pid, tid = (pid_t)writer->writer.tid;

		if (writer->ended)
			continue;
		if (gt_follow_find(session, pid) == NULL && !adopt(session, pid) && !is_hidden(pid))
			gt_drain_end_writer(drain, drain->live[i], true);
		else if (syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH) {
			gt_drain_end_writer(drain, drain->live[i], false);
			gt_session_forget_thread(session, pid, (uint32_t)tid);
		}
	}
}

void gt_follow_end_threads(struct gt_session *session, bool is_time)
{
	for (uint32_t i = 0; i < session->arena_count; i++)
		end_threads(session, &session->arenas[i], is_time);
}

struct leaving {
	struct gt_session *session;
	pid_t pid;
};

static void answer_waiting(void *data)
{
	const struct leaving *leaving = data;

	gt_mail_answer_waiting(leaving->session, leaving->pid);
}

int gt_follow_take_out(struct gt_session *session, struct gt_process *process,
		       struct gt_tracee *tracee, int limit_ms, enum gt_detach_left *left)
{
	struct leaving leaving = { session, process->pid };
	int error;

	if (tracee != NULL)
		gt_tracee_change(tracee);
	error = gt_detach_waiting(process, tracee, limit_ms, answer_waiting, &leaving, left, NULL);
	answer_waiting(&leaving);
	return error;
}

int gt_follow_leave(struct gt_session *session, struct gt_tracee *tracee, const char *why,
		    int limit_ms, enum gt_detach_left *left)
{
	const pid_t pid = tracee->process.pid;
	const int error = gt_follow_take_out(session, &tracee->process, tracee, limit_ms, left);

	if (error && why == NULL)
		return error;
	gt_follow_end_writers(session, pid);
	gt_tracee_forget(tracee);
	if (why != NULL)
		gt_session_note_untraced(session, pid, why);
	return error;
}
