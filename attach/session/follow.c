/* SPDX-License-Identifier: MIT */
/*
 * The processes of a session: what they do when they fork and execute (mail.c reads that they will),
 * their ends and their threads' ends. Under the session's lock, from the thread that polls, and those that it
 * waits for (tracer.h).
 *
 * What mail says is not believed: a process counts as ours only if it has an arena of ours mapped.
 */
#define _GNU_SOURCE
#include "attach/session/session_private.h"
#include "attach/agent/detach.h"
#include "attach/plan/rules.h"
#include "attach/process/tracer.h"

#include <elf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREAD_CHECK_NS 20000000ull
/* An exec that has not begun or ended by then is let go. */
#define EXEC_NS	       3000000000ull
#define CLEAN_LIMIT_MS 1000

struct gt_tracee *gt_follow_find(struct gt_session *session, pid_t pid)
{
	size_t i;

	for (i = 0; i < session->tracee_count; i++)
		if (session->tracees[i]->process.pid == pid)
			return session->tracees[i];
	return NULL;
}

int gt_follow_add(struct gt_session *session, struct gt_tracee *tracee)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };

	if (session->tracee_count == session->tracee_room) {
		size_t room = session->tracee_room ? session->tracee_room * 2 : 16;
		void *tracees = realloc(session->tracees, room * sizeof(*session->tracees));

		if (!tracees) {
			gt_tracee_fini(tracee);
			free(tracee);
			return GT_ENOMEM;
		}
		session->tracees = tracees;
		session->tracee_room = room;
	}
	session->tracees[session->tracee_count++] = tracee;
	session->processes++;
	if (session->epoll >= 0)
		epoll_ctl(session->epoll, EPOLL_CTL_ADD, tracee->process.pidfd, &event);
	return 0;
}

/* The writers of process pid write no more. */
void gt_follow_end_writers(struct gt_session *session, pid_t pid)
{
	uint32_t i, k;

	gt_session_find_writers(session);
	for (k = 0; k < session->arena_count; k++) {
		struct gt_drain *drain = &session->arenas[k].drain;

		for (i = 0; i < drain->live_count; i++)
			if (drain->writers[drain->live[i]].writer.pid == (uint32_t)pid)
				gt_drain_end_writer(drain, drain->live[i], true);
	}
}

/* They are in no list any more. */
static void forget_threads(struct gt_session *session, const struct gt_tracee *tracee)
{
	const pid_t pid = tracee->process.pid;
	struct gt_drain *drain = &session->arenas[tracee->arena].drain;
	uint32_t i;

	for (i = 0; i < drain->live_count; i++) {
		const struct gt_writer *writer = &drain->writers[drain->live[i]].writer;

		if (writer->pid == (uint32_t)pid)
			gt_session_forget_thread(session, pid, writer->tid);
	}
}

void gt_follow_free_mail(struct gt_session *session, pid_t pid)
{
	uint32_t i, k;

	for (k = 0; k < session->arena_count; k++)
		for (i = 0; i < session->arenas[k].shared.mail_count; i++) {
			struct graftrace_mail *mail = gt_arena_mail(&session->arenas[k].shared, i);

			if (mail->pid == (uint32_t)pid &&
			    __atomic_load_n(&mail->state, __ATOMIC_ACQUIRE) ==
				    GRAFTRACE_MAIL_ANSWERED)
				__atomic_store_n(&mail->state, GRAFTRACE_MAIL_FREE,
						 __ATOMIC_RELEASE);
		}
}

void gt_follow_drop(struct gt_session *session, size_t at)
{
	struct gt_tracee *tracee = session->tracees[at];

	if (tracee->copies)
		session->entries_only = gt_plan_reason_text(tracee->copies);
	if (tracee->no_traps)
		session->no_breakpoints = tracee->no_traps;
	gt_tracee_fini(tracee);
	free(tracee);
	session->tracees[at] = session->tracees[--session->tracee_count];
}

static int ends_of_processes(struct gt_session *session)
{
	int done = 0, status;
	size_t i = 0;

	while (i < session->tracee_count) {
		struct gt_tracee *tracee = session->tracees[i];
		pid_t pid = tracee->process.pid;

		if (!gt_process_ended(&tracee->process)) {
			i++;
			continue;
		}
		gt_session_note_end(session, &tracee->process);
		if (session->tracee_count == 1)
			gt_follow_adopt_orphans(session, pid);
		forget_threads(session, tracee);
		gt_follow_end_writers(session, pid);
		gt_follow_free_mail(session, pid);
		gt_follow_drop(session, i);
		done++;
	}
	if (!session->reaped && !session->attached &&
	    waitpid(session->pid, &status, WNOHANG | __WALL) == session->pid &&
	    (WIFEXITED(status) || WIFSIGNALED(status))) {
		session->status = status;
		session->reaped = true;
		done++;
	}
	return done;
}

void gt_follow_end_all(struct gt_session *session)
{
	uint32_t i, k;

	gt_session_find_writers(session);
	for (k = 0; k < session->arena_count; k++) {
		struct gt_drain *drain = &session->arenas[k].drain;

		for (i = 0; i < drain->live_count; i++)
			gt_drain_end_writer(drain, drain->live[i], true);
	}
}

/* The address of a writer's thread block, in the memory of the process that has opened the stream;
 * 0: there is none. What the stream says any process may have written: its block counts if the
 * agent's own memory in that process has it, and it is that stream's. */
static uint64_t find_block(const struct gt_session_arena *arena,
			   const struct gt_live_writer *writer, const struct gt_tracee *tracee)
{
	uint64_t state = tracee->agent.image + tracee->agent.header.state_offset;
	uint64_t index = writer->block - 1, chunk, stream, address;
	uint32_t generation;

	if (index >= GRAFTRACE_BLOCKS * GRAFTRACE_BLOCK_CHUNKS ||
	    gt_process_read(&tracee->process,
			    state + offsetof(struct graftrace_agent_state, blocks) +
				    index / GRAFTRACE_BLOCKS * sizeof(chunk),
			    &chunk, sizeof(chunk)) ||
	    !chunk)
		return 0;
	address = chunk + index % GRAFTRACE_BLOCKS * GRAFTRACE_BLOCK_BYTES;
	if (gt_process_read(&tracee->process, address + GRAFTRACE_BLOCK_STREAM, &stream,
			    sizeof(stream)) ||
	    gt_process_read(&tracee->process, address + GRAFTRACE_BLOCK_GENERATION, &generation,
			    sizeof(generation)) ||
	    stream != tracee->agent.arena + arena->shared.streams_offset +
			      writer->stream * sizeof(struct graftrace_stream) ||
	    generation != writer->writer.generation)
		return 0;
	return address;
}

/* Writes a byte of the writer's stop word. False: it cannot be. */
static bool write_byte(struct gt_session *session, const struct gt_session_arena *arena,
		       struct gt_live_writer *writer, enum graftrace_stop_byte byte, uint8_t value)
{
	struct gt_tracee *tracee = gt_follow_find(session, (pid_t)writer->writer.pid);

	if (writer->ended || !tracee || !tracee->has_agent || tracee->arena != arena->shared.number)
		return false;
	if (!writer->block)
		writer->block = __atomic_load_n(
			&gt_arena_stream(&arena->shared, writer->stream)->block, __ATOMIC_ACQUIRE);
	if (!writer->noted)
		writer->noted = find_block(arena, writer, tracee);
	return writer->noted &&
	       gt_process_write(&tracee->process, writer->noted + GRAFTRACE_BLOCK_STOP + byte,
				&value, 1) == 0;
}

static int clear_full(struct gt_session *session, struct gt_session_arena *arena)
{
	struct gt_drain *drain = &arena->drain;
	int done = 0;
	uint32_t i;

	if (!__atomic_load_n(&arena->shared.memory->free_count, __ATOMIC_ACQUIRE))
		return 0;
	for (i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		struct graftrace_stream *stream = gt_arena_stream(&arena->shared, writer->stream);

		if (!__atomic_load_n(&stream->stopped_full, __ATOMIC_ACQUIRE))
			continue;
		/* The flag, then the byte: one that stops between the two is seen the next time. */
		__atomic_store_n(&stream->stopped_full, 0, __ATOMIC_SEQ_CST);
		done += write_byte(session, arena, writer, GRAFTRACE_STOP_BYTE_FULL, 0);
	}
	return done;
}

/* Writers that stopped for lack of room go on. */
int gt_follow_clear_full(struct gt_session *session)
{
	int done = 0;
	uint32_t i;

	for (i = 0; i < session->arena_count; i++)
		done += clear_full(session, &session->arenas[i]);
	return done;
}

void gt_follow_write_stop(struct gt_session *session, enum graftrace_stop_byte byte, uint8_t value)
{
	uint32_t i, k;

	gt_session_find_writers(session);
	for (k = 0; k < session->arena_count; k++) {
		struct gt_drain *drain = &session->arenas[k].drain;

		for (i = 0; i < drain->live_count; i++)
			write_byte(session, &session->arenas[k], &drain->writers[drain->live[i]],
				   byte, value);
	}
}

static void write_host(struct gt_session *session, struct gt_session_arena *arena)
{
	const struct graftrace_arena *memory = arena->shared.memory;
	bool off = !__atomic_load_n(&memory->tracing_on, __ATOMIC_RELAXED) &&
		   !__atomic_load_n(&memory->profile, __ATOMIC_RELAXED);
	struct gt_drain *drain = &arena->drain;
	uint32_t i;

	for (i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		uint8_t value = off ? GRAFTRACE_STOP_OFF : 0;

		if (gt_session_leaves_out(arena, writer->writer.tid))
			value |= GRAFTRACE_STOP_LEFT_OUT;
		write_byte(session, arena, writer, GRAFTRACE_STOP_BYTE_HOST, value);
	}
}

void gt_follow_write_host(struct gt_session *session)
{
	uint32_t i;

	gt_session_find_writers(session);
	for (i = 0; i < session->arena_count; i++)
		write_host(session, &session->arenas[i]);
}

bool gt_follow_is_thread_of(pid_t pid, pid_t tid)
{
	return pid > 0 && tid > 0 && syscall(SYS_tgkill, pid, tid, 0) == 0;
}

/* A child that is left clean: the agent is taken out of it. It waits for the answer within the
 * agent, so it is answered first. */
static int leave_clean(struct gt_session *session, struct gt_tracee *child,
		       const struct gt_letter *letter, bool *answered)
{
	enum gt_detach_left left = GT_DETACH_LEFT_THREAD;

	if (letter) {
		gt_follow_answer(letter, 0);
		*answered = true;
	}
	child->clean = true;
	if (gt_detach_process(&child->process, child, CLEAN_LIMIT_MS, &left, NULL) == 0 &&
	    left != GT_DETACH_ALL_GONE)
		return gt_follow_add(session, child); /* it may tell of itself again */
	gt_tracee_fini(child);
	free(child);
	return 0;
}

int gt_follow_fork(struct gt_session *session, pid_t pid, pid_t parent_pid,
		   const struct gt_letter *letter, bool *answered)
{
	struct gt_tracee *parent = gt_follow_find(session, parent_pid), *child;
	struct gt_session_arena *arena =
		gt_follow_find(session, pid) ? NULL : gt_session_arena_mapped(session, pid);

	if (!arena)
		return 0;
	if (!parent && session->tracee_count)
		parent = session->tracees[0]; /* it has ended already */
	child = calloc(1, sizeof(*child));
	if (!child || !parent) {
		free(child);
		return 0;
	}
	if (gt_tracee_fork(parent, pid, child, NULL)) {
		free(child);
		return 0;
	}
	child->has_agent = true; /* it has the arena */
	gt_session_enter(session, child, arena, NULL);
	if (session->no_fork)
		return leave_clean(session, child, letter, answered);
	/* It may have changed its credentials before it told of itself. */
	session->look_at = session->tracee_count;
	session->next_look_ns = 0;
	return gt_follow_add(session, child);
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

/* A writer of a process that we do not know: a child that has ended before its letter was read, one
 * that found no room for a letter, or nonsense. True: it is a tracee now. */
static bool adopt(struct gt_session *session, pid_t pid)
{
	struct gt_tracee *first = session->tracee_count ? session->tracees[0] : NULL;

	if (pid <= 0 || is_over(session, pid) || !first)
		return false;
	return gt_follow_fork(session, pid, first->process.pid, NULL, NULL) == 0 &&
	       gt_follow_find(session, pid);
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
static void ends_of_threads(struct gt_session *session, struct gt_session_arena *arena,
			    bool is_time)
{
	struct gt_drain *drain = &arena->drain;
	uint32_t i;

	if (!is_time && session->tracee_count && has_room(arena))
		return;
	for (i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		pid_t pid = (pid_t)writer->writer.pid, tid = (pid_t)writer->writer.tid;

		if (writer->ended)
			continue;
		if (!gt_follow_find(session, pid) && !adopt(session, pid) && !is_hidden(pid))
			gt_drain_end_writer(drain, drain->live[i], true);
		else if (syscall(SYS_tgkill, pid, tid, 0) != 0 && errno == ESRCH) {
			gt_drain_end_writer(drain, drain->live[i], false);
			gt_session_forget_thread(session, pid, (uint32_t)tid);
		}
	}
}

/*
 * Exec. The thread waits for the answer; it is stopped, answered, and then followed from one system
 * call to the next until its exec succeeds (an event) or fails (an exit).
 */
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
	size_t i;

	for (i = 0; i < tracee->object_count; i++) {
		const struct gt_catalog_file *file = tracee->objects[i]->file;
		const char *reason =
			tracee->objects[i]->program ? gt_rule_nothing(file->object) : NULL;
		struct gt_message why = { "" };

		if (!reason)
			continue;
		gt_fail(&why, 0, "'%.150s' %s", file->path, reason);
		gt_session_note_untraced(session, tracee->process.pid, why.text);
	}
}

/* The agent goes into the new image; tid is at the exec event. */
static int new_image(struct exec *exec, pid_t tid)
{
	struct gt_session *session = exec->session;
	struct gt_tracee *tracee = gt_follow_find(session, tid);
	struct user_regs_struct registers;
	uint64_t ticks = gt_clock_ticks(&session->live.target.clock, 1000000);
	struct gt_message message = { "" };
	bool fresh = !tracee;
	struct gt_session_arena *arena = NULL,
				*from = fresh ? NULL : &session->arenas[tracee->arena];
	int error;

	if (gt_thread_finish_exec(tid, NULL))
		return 0;
	if (fresh) { /* a vfork child, or the first exec of a fork that called nothing */
		tracee = calloc(1, sizeof(*tracee));
		if (!tracee)
			return GT_ENOMEM;
		tracee->parent = exec->pid;
		if (gt_process_open(&tracee->process, tid, NULL)) {
			free(tracee);
			return 0;
		}
	} else {
		gt_follow_end_writers(session, tid);
		gt_tracee_forget(tracee);
		if (gt_process_reopen(&tracee->process, NULL))
			return 0;
	}
	/* What cannot be traced (32-bit, no room, a sandbox) runs on untraced. */
	error = gt_thread_registers(tid, &registers);
	if (!error && registers.cs == 0x33) {
		error = gt_session_arena_of(session, tid, &arena, &message);
		if (!error)
			gt_session_enter(session, tracee, arena, from);
		if (!error)
			error = gt_tracee_begin(tracee, tid, &arena->shared, &session->catalog,
						&session->selection, ticks, session->sink,
						&message);
	} else if (!error || error == GT_ENOTSUP) /* its registers are others */
		note_32_bit(session, tid);
	tracee->process.stopped = 0;
	if (error)
		gt_tracee_forget(tracee);
	if (error && message.text[0])
		gt_session_note_untraced(session, tid, message.text);
	else if (!error)
		note_nothing(session, tracee);
	if (!fresh)
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
	struct graftrace_letter now;

	return gt_follow_is_thread_of(exec->pid, exec->tid) &&
	       gt_follow_read_letter(exec->session, exec->letter->arena, exec->letter->slot,
				     exec->pid, &now) &&
	       now.ticket == exec->letter->text.ticket && now.tid == (uint32_t)exec->tid;
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
	gt_follow_answer(exec->letter, 0);
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
	if (session->no_fork && (!tracee || tracee->clean))
		return 0;
	/* vfork children are no tracees of ours yet, but share the arena. */
	if (!gt_follow_is_thread_of(pid, tid) ||
	    (!tracee && !gt_session_arena_mapped(session, pid)))
		return 0;
	error = gt_tracer_run(exec_work, &exec);
	*answered = exec.answered;
	return error;
}

int gt_follow_work(struct gt_session *session, uint64_t now)
{
	int done = gt_follow_read_mail(session), error, ended, late;
	bool is_time = now >= session->next_thread_check_ns;
	uint32_t i;

	if (done < 0)
		return done;
	error = gt_session_find_writers(session);
	if (error)
		return error;
	ended = ends_of_processes(session);
	/* What they have posted since we looked: nobody may come here again. */
	late = ended ? gt_follow_read_mail(session) : 0;
	if (late < 0)
		return late;
	done += ended + late;
	gt_session_look_at_credentials(session, now);
	if (is_time)
		session->next_thread_check_ns = now + THREAD_CHECK_NS;
	for (i = 0; i < session->arena_count; i++)
		ends_of_threads(session, &session->arenas[i], is_time);
	done += gt_follow_clear_full(session);
	return done;
}
