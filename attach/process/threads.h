/* SPDX-License-Identifier: MIT */
/*
 * Threads of a process under ptrace: stopping one or all, their registers, and system calls made in
 * their name. All calls on one thread come from the host thread that stopped it.
 *
 * No signal is lost, doubled or changed: a signal that is met on the way to a stop is delivered
 * first (its handler's frame is there then, none of its instructions has run), and what comes
 * during a remote system call stays pending. System calls that a stop interrupts go on as they do
 * after SIGSTOP and SIGCONT, see signal(7).
 */
#ifndef GT_ATTACH_THREADS_H
#define GT_ATTACH_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include <graftrace/error.h>

struct gt_process;

/* Seizes and stops thread tid. options: PTRACE_O_…. GT_EGONE: it has ended; GT_EPERM: someone else
 * traces it, or may not; GT_EBUSY: it sleeps in the kernel where no stop reaches it (a parent in
 * vfork): it stays seized and stops before its next instruction; gt_thread_detach later, or the end
 * of this thread of ours (tracer.h), lets it go. */
int gt_thread_stop(pid_t tid, int options, struct gt_message *message);

/* No thread of the process runs its code any more: each is gone, a zombie, or on its way there. */
bool gt_threads_are_dead(pid_t pid);

/* waitpid(tid, status, __WALL | flags), except for the end of a child of this process: that is returned (as an exit), and
 * can still be waited for. */
pid_t gt_thread_wait(pid_t tid, int *status, int flags);

/* The same for as long as the thread runs: 0, or GT_EGONE. (waitpid(2) never comes back from a
 * process's first thread that was killed: its end is told behind those of all others, which wait to
 * be told to us.) */
int gt_thread_wait_long(pid_t tid, int *status);

/* Lets it go. GT_EAGAIN: it is not stopped yet (see GT_EBUSY); GT_EGONE. */
int gt_thread_detach(pid_t tid);

/* Takes a thread that stands at the exec event to the exit of its exec call. GT_EGONE, GT_EIO. */
int gt_thread_finish_exec(pid_t tid, struct gt_message *message);

/* Waits for the stop that PTRACE_INTERRUPT has asked for. */
int gt_thread_reach_stop(pid_t tid, struct gt_message *message);

int gt_thread_registers(pid_t tid, struct user_regs_struct *registers);
int gt_thread_set_registers(pid_t tid, const struct user_regs_struct *registers);

/* Whether these registers, of a thread at an interrupt stop, are those within a system call that will be restarted. */
bool gt_thread_restarts(const struct user_regs_struct *registers);

/* A thread of the process that sleeps in a system call, if there is one: best for gt_remote_begin,
 * since it stands in nothing that could be interrupted (a restartable sequence, our own code). */
pid_t gt_thread_at_rest(pid_t pid);

/* Stops one, gt_thread_at_rest() if it can. While it sleeps where no stop reaches it, waits, with
 * process->helper at work: GT_EBUSY after limit_ms. Another one if it has ended before it stopped;
 * GT_EGONE: there is none. Else as gt_thread_stop(). */
int gt_thread_stop_any(const struct gt_process *process, pid_t *tid, int limit_ms,
		       struct gt_message *message);

/* A stopped thread that makes system calls for us (attach/process/remote.c). If this host is killed
 * meanwhile, it goes on where it was. */
struct gt_remote {
	struct gt_process *process;
	pid_t tid;
	struct user_regs_struct saved;
	uint64_t mask;	      /* its signal mask */
	uint64_t instruction; /* address of a `syscall` (and `ret`, with a frame) */
	uint64_t back;	      /* address of code that makes an rt_sigreturn */
	uint64_t frame;	      /* the signal frame that it takes, 0 = none */
	bool written;	      /* we wrote it there; `original` is what was */
	uint8_t original[2];
	long filters; /* of seccomp, that it was in at the beginning; 0: also where the kernel does not tell */
};

int gt_remote_begin(struct gt_remote *remote, struct gt_process *process, pid_t tid,
		    struct gt_message *message);
/* *result: as the kernel returns it (negative errno). The error is about the call's being made at
 * all: GT_EGONE; GT_EAGAIN: another thread has brought this one into a sandbox since (SECCOMP_FILTER_FLAG_TSYNC), of
 * which nobody knows what it allows; GT_ENOTSUP, GT_EPERM: it is in one that forbids this call, or may
 * (gt_seccomp_check_call()). */
int gt_remote_call(struct gt_remote *remote, long number, const uint64_t arguments[6],
		   int64_t *result, struct gt_message *message);
/* Puts registers and mask back; the thread is stopped as before. */
int gt_remote_end(struct gt_remote *remote, struct gt_message *message);

/* All threads of a process, stopped. */
struct gt_stopped_threads {
	pid_t *tids;
	bool *late; /* [i]: not stopped yet, in the kernel (GT_EBUSY) */
	size_t count;
	size_t room;
	int nice;     /* this thread's own priority, … */
	bool hurries; /* … if it has another one meanwhile */
};

/* Stops the world: repeats until a pass over the threads finds no new one. On error none is left
 * stopped; GT_EAGAIN: somebody else traces one; GT_EIO: they cannot be listed (no descriptor is left). process->stopped
 * is set, to 0 if all are late. Within gt_tracer_run(). */
int gt_threads_stop(struct gt_process *process, struct gt_stopped_threads *threads,
		    struct gt_message *message);
/* Lets all go; waits for the late ones, with process->helper at work (a bounded time; then they stay
 * seized: gt_thread_stop). */
void gt_threads_resume(struct gt_process *process, struct gt_stopped_threads *threads);
/* Waits between two stops, with process->helper at work: who waits for this host meanwhile goes on. Returns after ms
 * milliseconds, or when what the helper has begun until then is done. Any thread. */
void gt_threads_pause(const struct gt_process *process, uint32_t ms);

#endif
