/* SPDX-License-Identifier: MIT */
/*
 * A thread of a session that executes a program. It waits for the answer to its letter; it is
 * stopped, answered, and then followed from one system call to the next until its exec succeeds (an
 * event: the agent goes into the new image) or fails (an exit).
 */
#define _GNU_SOURCE
#include "attach/plan/rules.h"
#include "attach/process/tracer.h"
#include "attach/session/session_private.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An exec that has not begun or ended by then is let go. */
#define EXEC_NS 3000000000ull

struct exec {
	struct gt_session *session;
	const struct gt_letter *letter;
	pid_t pid;
	pid_t tid;
	bool answered; /* `letter` is */
	bool entered;
	unsigned calls;
};

/* An image that has rights of its own would not get them under ptrace: it is left alone, unless we
 * may trace anything. */
static bool gains_rights(const struct exec *exec, const struct __ptrace_syscall_info *info)
{
	char name[4096], path[4200];
	struct gt_process process = { .pid = exec->pid, .memory = -1, .pidfd = -1 };
	struct gt_message why = { "" };
	int error;

	if (geteuid() == 0)
		return false;
	if (gt_process_reopen(&process, NULL))
		return true;
	error = gt_process_read_string(&process,
				       info->entry.args[info->entry.nr == SYS_execveat ? 1 : 0],
				       name, sizeof(name));
	gt_process_close(&process);
	if (error)
		return false; /* the exec will fail too */
	if (info->entry.nr == SYS_execveat && name[0] == 0)
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)exec->pid,
			 (int)info->entry.args[0]);
	else if (info->entry.nr == SYS_execveat && name[0] != '/' &&
		 (int)info->entry.args[0] != AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/fd/%d/%s", (int)exec->pid,
			 (int)info->entry.args[0], name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s/%s", (int)exec->pid,
			 name[0] == '/' ? "root" : "cwd", name);
	if (!gt_process_loses_rights(exec->pid, path, name, &why))
		return false;
	gt_session_note_untraced(exec->session, exec->pid, why.text);
	return true;
}

static void note_32_bit(struct gt_session *session, pid_t pid)
{
	struct gt_message why = { "" };
	char path[64], target[200];
	ssize_t bytes;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	bytes = readlink(path, target, sizeof(target) - 1);
	target[bytes > 0 ? bytes : 0] = 0;
	gt_fail(&why, 0, "'%s' is a 32-bit program", target);
	gt_session_note_untraced(session, pid, why.text);
}

static void note_nothing(struct gt_session *session, const struct gt_tracee *tracee)
{
	for (size_t i = 0; i < tracee->object_count; i++) {
		const struct gt_catalog_file *file = tracee->objects[i]->file;
		const char *reason =
			tracee->objects[i]->program ? gt_rule_nothing(file->object) : NULL;
		struct gt_message why = { "" };

		if (reason == NULL)
			continue;
		gt_fail(&why, 0, "'%.150s' %s", file->path, reason);
		gt_session_note_untraced(session, tracee->process.pid, why.text);
	}
}

/* The tracee of the process that has executed, without what its old image had. It is made, and in no
 * list yet, for a vfork child and at the first exec of a fork that called nothing. *tracee is NULL:
 * the process has ended. GT_ENOMEM. */
static int take_process(struct exec *exec, pid_t pid, struct gt_tracee **tracee)
{
	*tracee = gt_follow_find(exec->session, pid);
	if (*tracee != NULL) {
		gt_follow_end_writers(exec->session, pid);
		gt_tracee_forget(*tracee);
		if (gt_process_reopen(&(*tracee)->process, NULL))
			*tracee = NULL;
		return 0;
	}
	*tracee = calloc(1, sizeof(**tracee));
	if (*tracee == NULL)
		return GT_ENOMEM;
	(*tracee)->parent = exec->pid;
	if (gt_process_open(&(*tracee)->process, pid, NULL)) {
		free(*tracee);
		*tracee = NULL;
	}
	return 0;
}

/* Puts the agent into the image, whose process had the arena `from` before (NULL: none). What cannot be
 * traced (32-bit, no room, a sandbox) runs on untraced, and the reason is noted. */
static void begin_image(struct gt_session *session, struct gt_tracee *tracee, pid_t tid,
			const struct gt_session_arena *from)
{
	const uint64_t ticks = gt_clock_ticks(&session->live.target.clock, 1000000);
	struct gt_session_arena *arena = NULL;
	struct gt_message message = { "" };
	struct user_regs_struct registers;
	int error = gt_thread_registers(tid, &registers);

	if (!error && registers.cs == 0x33) {
		error = gt_session_arena_of(session, tid, &arena, &message);
		if (!error)
			gt_session_enter(session, tracee, arena, from);
		if (!error)
			error = gt_tracee_begin(tracee, tid, &arena->shared, &session->catalog,
						&session->selection, ticks, session->sink,
						&message);
	} else if (!error || error == GT_ENOTSUP) { /* its registers are others */
		note_32_bit(session, tid);
	}
	tracee->process.stopped = 0;
	if (error)
		gt_tracee_forget(tracee);
	if (error && message.text[0])
		gt_session_note_untraced(session, tid, message.text);
	else if (!error)
		note_nothing(session, tracee);
}

/* The agent goes into the new image; tid, which is now the process's number, is at the exec event. */
static int new_image(struct exec *exec, pid_t tid)
{
	struct gt_session *session = exec->session;
	const struct gt_tracee *known = gt_follow_find(session, tid);
	const struct gt_session_arena *from = known != NULL ? &session->arenas[known->arena] : NULL;
	struct gt_tracee *tracee;
	int error;

	if (gt_thread_finish_exec(tid, NULL))
		return 0;
	error = take_process(exec, tid, &tracee);
	if (error || tracee == NULL)
		return error;
	begin_image(session, tracee, tid, from);
	if (known != NULL)
		return 0;
	if (tracee->has_agent)
		return gt_follow_add(session, tracee);
	gt_tracee_fini(tracee);
	free(tracee);
	return 0;
}

/* One stop of the thread. Returns 1: it goes on; 0: it has been let go, or has ended; or an error.
 * */
static int on_exec_stop(struct exec *exec, pid_t tid, int status)
{
	struct __ptrace_syscall_info info;
	int signal = 0, error = 0;

	if (!WIFSTOPPED(status))
		return 0;
	if (status >> 16 == PTRACE_EVENT_EXEC) {
		error = new_image(exec, tid);
		ptrace(PTRACE_DETACH, tid, 0, 0);
		return error;
	}
	if (status >> 16 == 0 && WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		memset(&info, 0, sizeof(info));
		if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) <= 0)
			info.op = PTRACE_SYSCALL_INFO_NONE;
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
			exec->entered =
				info.entry.nr == SYS_execve || info.entry.nr == SYS_execveat;
		if ((info.op == PTRACE_SYSCALL_INFO_EXIT && exec->entered) ||
		    ++exec->calls > 10000 ||
		    (info.op == PTRACE_SYSCALL_INFO_ENTRY && exec->entered &&
		     gains_rights(exec, &info))) {
			ptrace(PTRACE_DETACH, tid, 0, 0);
			return 0;
		}
	} else if (status >> 16 == 0) {
		signal = WSTOPSIG(status);
	}
	return ptrace(PTRACE_SYSCALL, tid, 0, signal) == 0;
}

static int follow_exec(struct exec *exec)
{
	uint64_t start = gt_monotonic_ns(), last_pass = start;

	if (ptrace(PTRACE_SYSCALL, exec->tid, 0, 0) != 0)
		return 0;
	for (;;) {
		struct timespec nap = { 0, 30000 };
		pid_t tid = exec->tid;
		uint64_t now;
		int status, result;
		pid_t got = gt_thread_wait(tid, &status, WNOHANG);

		/* A thread that execs takes the number of the process's first one. */
		if (got <= 0 && exec->pid != tid) {
			pid_t other = gt_thread_wait(exec->pid, &status, WNOHANG);

			if (other > 0) {
				got = other;
				tid = exec->tid = exec->pid;
			}
		}
		if (got < 0 && exec->pid == tid)
			return 0;
		if (got > 0) {
			result = on_exec_stop(exec, tid, status);
			if (result <= 0)
				return result;
			continue;
		}
		now = gt_monotonic_ns();
		if (now - start > EXEC_NS) {
			/* Its exec hangs (a dead file server), or it is doing something else: the
			 * end of this thread lets it go. */
			return 0;
		}
		if (now - last_pass > 1000000) {
			/* The other threads and processes go on writing. */
			result = gt_session_drain(exec->session, now);
			if (result < 0)
				return result;
			last_pass = now;
		}
		nanosleep(&nap, NULL);
	}
}

/* The thread is stopped: it still waits for the answer, and is who has asked. */
static bool still_waits(const struct exec *exec)
{
	struct gt_letter now = { .arena = exec->letter->arena, .slot = exec->letter->slot };

	return gt_follow_is_thread_of(exec->pid, exec->tid) &&
	       gt_mail_read_letter(exec->session, &now, exec->pid) &&
	       now.text.ticket == exec->letter->text.ticket && now.text.tid == (uint32_t)exec->tid;
}

static int exec_work(void *data)
{
	struct exec *exec = data;

	if (gt_thread_stop(exec->tid, PTRACE_O_TRACEEXEC, NULL))
		return 0;
	if (!still_waits(exec)) {
		ptrace(PTRACE_DETACH, exec->tid, 0, 0);
		return 0;
	}
	gt_mail_answer(exec->letter, 0);
	exec->answered = true;
	return follow_exec(exec);
}

int gt_follow_exec(struct gt_session *session, const struct gt_letter *letter, bool *answered)
{
	pid_t pid = (pid_t)letter->text.pid, tid = (pid_t)letter->text.tid;
	struct exec exec = { .session = session, .letter = letter, .pid = pid, .tid = tid };
	struct gt_tracee *tracee = gt_follow_find(session, pid);
	int error;

	/* Children that are left clean stay so. */
	if (session->tracees.no_fork && (tracee == NULL || tracee->clean))
		return 0;
	/* vfork children are no tracees of ours yet, but share the arena. */
	if (!gt_follow_is_thread_of(pid, tid) ||
	    (tracee == NULL && gt_session_arena_mapped(session, pid) == NULL))
		return 0;
	error = gt_tracer_run(exec_work, &exec);
	*answered = exec.answered;
	return error;
}
