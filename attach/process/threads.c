/* SPDX-License-Identifier: MIT */
/*
 * Threads under ptrace: see threads.h.
 *
 * Stops are PTRACE_SEIZE + PTRACE_INTERRUPT. Facts of the kernel that the code leans on (ptrace(2)
 * and kernel/signal.c):
 *  A. Any trap clears the pending interrupt, so one that meets a signal first is asked for again
 *     before the signal is delivered.
 *  B. A pending interrupt is taken before a signal is dequeued and before an interrupted system
 *     call is restarted: at an interrupt stop the registers are those of the interrupted call, and
 *     the kernel restarts it (or not) after the stop.
 *  C. Stops of PTRACE_SYSCALL are no signals: single-stepping would force a SIGTRAP, which
 *     changes the program's disposition of it if it is blocked or ignored.
 *  D. A call made remotely ends at its exit stop, where the kernel restarts nothing. Therefore the
 *     thread is taken to an interrupt stop (B) with its own registers at the end.
 */
#define _GNU_SOURCE
#include "attach/process/threads.h"
#include "attach/process/clock.h"
#include "attach/process/proc.h"
#include "attach/process/process.h"
#include "attach/process/sharers.h"
#include "attach/process/tracer.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SYSCALL_STOP (SIGTRAP | 0x80)
/* How long a thread in the kernel (vfork, a dead disk) is waited for. */
#define LATE_MS 200
/* … while others are stopped. */
#define PATIENCE_MS 20
/* One that runs in the kernel, and does not come back while others are stopped: so much CPU time. It may copy much. Or it
 * needs a page that another one has to provide (userfaultfd), and asks for it again and again. */
#define BUSY_NS	      500000000ull
#define BUSY_LEAST_NS 20000000ull
/* Many of them share the processors: so much time for all together, and then as much as BUSY_LEAST_NS for each. */
#define BUSY_MOST_MS 1000
#define EXITING	     4ul /* PF_EXITING of the kernel, in the flags of proc(5) */
#define ONLY_LOOK    (~(uint64_t)0)
#define FOR_EVER     (ONLY_LOOK - 1)
/* How often all are looked at in vain before one is waited for. */
#define IDLE_SWEEPS 8

static void nap_us(long us)
{
	struct timespec time = { 0, us * 1000 };

	nanosleep(&time, NULL);
}

/* As ps shows it: R, S, D, T, t, Z, X; 0: it has ended. */
static char state_of(pid_t pid, pid_t tid)
{
	char text[1024];
	const char *fields = gt_proc_stat(text, sizeof(text), pid, tid);

	return fields != NULL ? fields[0] : 0;
}

/* The first thread of a child of ours: its exit status belongs to whoever waits for the program. */
static bool is_own_child(pid_t tid)
{
	char text[1024];

	return gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)tid) &&
	       gt_proc_field(text, "Tgid") == tid && gt_proc_field(text, "PPid") == getpid();
}

pid_t gt_thread_wait(pid_t tid, int *status, int flags)
{
	siginfo_t info;
	pid_t got;
	int result;

	*status = 0;
	do {
		info.si_pid = 0;
		result = waitid(P_PID, (id_t)tid, &info,
				WEXITED | WSTOPPED | WNOWAIT | __WALL | flags);
	} while (result < 0 && errno == EINTR);
	if (result < 0)
		return -1;
	if (info.si_pid == 0)
		return 0;
	if ((info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
	     info.si_code == CLD_DUMPED) &&
	    is_own_child(tid))
		return tid; /* *status 0 reads as an exit; it is left to be waited for */
	do
		got = waitpid(tid, status, __WALL | WNOHANG);
	while (got < 0 && errno == EINTR);
	return got;
}

/* CPU time of a thread; 0: the kernel does not tell. */
static uint64_t run_time_ns(pid_t tid)
{
	char text[128];

	return gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/schedstat", (int)tid, (int)tid)
		       ? strtoull(text, NULL, 10)
		       : 0;
}

/* Since when a thread is waited for, with others that are stopped. */
struct waited {
	uint64_t since_ms; /* 0: it is the only one */
	uint64_t ran_ns;   /* its CPU time then */
};

/* Whether it has run in the kernel for too long. busy_ns: of CPU time. Where the kernel does not tell that, by the
 * clock. */
static bool is_too_busy(pid_t tid, const struct waited *waited, uint64_t busy_ns)
{
	const uint64_t now_ns = run_time_ns(tid);
	const uint64_t ran_ns = now_ns > waited->ran_ns ? now_ns - waited->ran_ns : 0;
	const bool is_long =
		waited->since_ms && gt_monotonic_ms() - waited->since_ms >= BUSY_MOST_MS;

	return ran_ns >= busy_ns || (is_long && (ran_ns >= BUSY_LEAST_NS || now_ns == 0));
}

/* Waits for a status; gives up with GT_EBUSY on a thread that has slept uninterruptibly for
 * patience_ms, or runs all the time. ONLY_LOOK: waits for nothing, GT_EAGAIN. */
static int wait_patiently(pid_t tid, int *status, uint64_t patience_ms, struct waited waited)
{
	const uint64_t busy_ns = patience_ms > 0 ? BUSY_NS : BUSY_LEAST_NS;
	uint64_t start = 0;
	char state;

	for (unsigned round = 0;; round++) {
		pid_t got = gt_thread_wait(tid, status, WNOHANG);

		if (got < 0)
			return GT_EGONE;
		if (got > 0)
			return 0;
		if (patience_ms == ONLY_LOOK)
			return GT_EAGAIN;
		if (round < 20) {
			sched_yield();
			continue;
		}
		nap_us(50);
		if (round % 16)
			continue;
		state = state_of(tid, tid);
		/* A first thread is told of as ended only behind all others, whose ends are told to
		 * whoever waits for them. */
		if (state == 'Z' && gt_thread_wait(tid, status, WNOHANG) == 0)
			return GT_EGONE;
		if (state == 'R' && waited.ran_ns == 0)
			waited.ran_ns = run_time_ns(tid);
		else if (state == 'R' && patience_ms != FOR_EVER &&
			 is_too_busy(tid, &waited, busy_ns))
			return GT_EBUSY;
		if (state != 'D')
			start = 0;
		else if (!start)
			start = gt_monotonic_ms();
		else if (gt_monotonic_ms() - start >= patience_ms)
			return GT_EBUSY;
	}
}

int gt_thread_wait_long(pid_t tid, int *status)
{
	return wait_patiently(tid, status, FOR_EVER, (struct waited){ 0 });
}

bool gt_thread_restarts(const struct user_regs_struct *registers)
{
	long result = (long)registers->rax;

	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK */
	return (long)registers->orig_rax >= 0 &&
	       ((result <= -512 && result >= -514) || result == -516);
}

/* Not behind `int $0x80`, whose calls have other numbers. */
static bool is_behind_syscall(pid_t tid, const struct user_regs_struct *registers)
{
	const unsigned char syscall_instruction[] = { 0x0f, 0x05 };
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, tid, registers->rip - sizeof(syscall_instruction), 0);
	return errno == 0 && memcmp(&word, syscall_instruction, sizeof(syscall_instruction)) == 0;
}

/*
 * Some system calls answer a stop with EINTR where they go on after others (signal(7),
 * "Interruption of system calls and library functions by stop signals"). At an interrupt stop none
 * of them has done anything yet, so they are made to be restarted unless a handler runs, as the
 * kernel does it for the rest. A timeout begins anew.
 */
static void keep_call(pid_t tid)
{
	struct user_regs_struct registers;

	if (gt_thread_registers(tid, &registers) || registers.cs != 0x33 ||
	    (long)registers.rax != -EINTR || !is_behind_syscall(tid, &registers))
		return;
	switch ((long)registers.orig_rax) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_msgrcv:
	case SYS_msgsnd:
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_accept:
	case SYS_accept4:
	/* Of a file server (FUSE) that answers so. */
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
	case SYS_creat:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_preadv2:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_mkdir:
	case SYS_mkdirat:
	case SYS_rmdir:
	case SYS_unlink:
	case SYS_unlinkat:
	case SYS_stat:
	case SYS_lstat:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_access:
	case SYS_faccessat:
	case SYS_faccessat2:
	case SYS_readlink:
	case SYS_readlinkat:
	case SYS_chdir:
	case SYS_getdents:
	case SYS_getdents64:
	case SYS_truncate:
	case SYS_chmod:
	case SYS_fchmodat:
	case SYS_chown:
	case SYS_lchown:
	case SYS_fchownat:
	case SYS_utimensat:
		break;
	case SYS_io_uring_enter:
		if (registers.rsi == 0)
			break;
		return;
	default:
		return;
	}
	registers.rax = (unsigned long)-514; /* ERESTARTNOHAND */
	gt_thread_set_registers(tid, &registers);
}

/* Takes a seized, interrupted thread to its interrupt stop. */
static int reach_interrupt(pid_t tid, uint64_t patience_ms, struct waited waited,
			   struct gt_message *message)
{
	for (;;) {
		int status, signal;
		int error = wait_patiently(tid, &status, patience_ms, waited);

		if (error == GT_EBUSY)
			return gt_fail(message, error, "thread %d sleeps in the kernel", (int)tid);
		if (error == GT_EAGAIN)
			return error;
		if (error || WIFEXITED(status) || WIFSIGNALED(status))
			return gt_fail(message, GT_EGONE, "thread %d has ended", (int)tid);
		if (status >> 16 == PTRACE_EVENT_STOP) { /* ours, or a group stop: as good */
			keep_call(tid);
			return 0;
		}
		/* Another event, or a signal: it is delivered, with the interrupt asked for anew
		 * (A). */
		signal = status >> 16 || WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0 ||
		    ptrace(PTRACE_CONT, tid, 0, signal) != 0)
			if (errno != ESRCH) /* killed meanwhile: the wait tells */
				return gt_fail(message, GT_EIO, "cannot stop thread %d: %s",
					       (int)tid, strerror(errno));
	}
}

/* A zombie (the first thread has ended before the others), or on its way there: it runs no code of
 * the program any more. The kernel refuses to trace it, or we still do, if it was stopped when it
 * was killed. */
static bool is_dead(pid_t tid)
{
	char text[1024], state;
	const char *fields = gt_proc_stat(text, sizeof(text), tid, tid);
	unsigned long flags = 0;

	if (fields == NULL) /* it is gone, or we have no descriptor left */
		return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
	if (sscanf(fields, "%c %*d %*d %*d %*d %*d %lu", &state, &flags) != 2)
		return true;
	return state == 'Z' || state == 'X' || (flags & EXITING);
}

/* One that would not come to a stop (a parent in vfork) for so long that it was let be is still
 * traced by us: it can be asked again. */
static bool is_ours(long tracer)
{
	return tracer == syscall(SYS_gettid);
}

/* Who traces the thread, 0: nobody. */
static long tracer_of(pid_t tid)
{
	char text[4096];

	return gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)tid, (int)tid)
		       ? gt_proc_field(text, "TracerPid")
		       : 0;
}

/* GT_EAGAIN: somebody else traces it. */
static int seize(pid_t tid, int options, struct gt_message *message)
{
	long tracer;
	int reason;

	if (ptrace(PTRACE_SEIZE, tid, 0, options | PTRACE_O_TRACESYSGOOD) == 0)
		return 0;
	reason = errno;
	if (reason == ESRCH || is_dead(tid))
		return gt_fail(message, GT_EGONE, "thread %d has ended", (int)tid);
	tracer = reason == EPERM ? tracer_of(tid) : 0;
	if (tracer && is_ours(tracer))
		return 0;
	if (tracer)
		return gt_fail(message, GT_EAGAIN,
			       "thread %d is traced by process %ld (a debugger, strace)", (int)tid,
			       tracer);
	return gt_fail(message, GT_EPERM, "cannot trace thread %d: %s", (int)tid, strerror(reason));
}

int gt_thread_stop(pid_t tid, int options, struct gt_message *message)
{
	int error = seize(tid, options, message);

	if (error)
		return error == GT_EAGAIN ? GT_EPERM : error;
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
		return gt_fail(message, GT_EGONE, "thread %d has ended", (int)tid);
	return reach_interrupt(tid, LATE_MS, (struct waited){ 0 }, message);
}

int gt_thread_detach(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_DETACH, tid, 0, 0) == 0)
		return 0;
	/* Running, or ended. If a late one has come meanwhile: */
	if (gt_thread_wait(tid, &status, WNOHANG) <= 0)
		return kill(tid, 0) == 0 ? GT_EAGAIN : GT_EGONE;
	if (!WIFSTOPPED(status))
		return GT_EGONE;
	if (ptrace(PTRACE_DETACH, tid, 0,
		   status >> 16 || WSTOPSIG(status) == SYSCALL_STOP ? 0 : WSTOPSIG(status)) == 0)
		return 0;
	return GT_EGONE;
}

/* Lets a late one go, at its interrupt stop as all others. GT_EAGAIN: it has not come yet. */
static int let_late(pid_t tid)
{
	int error = reach_interrupt(tid, ONLY_LOOK, (struct waited){ 0 }, NULL);

	return error == GT_EAGAIN ? error : gt_thread_detach(tid);
}

int gt_thread_registers(pid_t tid, struct user_regs_struct *registers)
{
	struct iovec io = { registers, sizeof(*registers) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &io) != 0)
		return errno == ESRCH ? GT_EGONE : GT_EIO;
	return io.iov_len == sizeof(*registers) ? 0 : GT_ENOTSUP;
}

int gt_thread_set_registers(pid_t tid, const struct user_regs_struct *registers)
{
	struct iovec io = { (void *)registers, sizeof(*registers) };

	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &io) != 0)
		return errno == ESRCH ? GT_EGONE : GT_EIO;
	return 0;
}

int gt_thread_reach_stop(pid_t tid, struct gt_message *message)
{
	return reach_interrupt(tid, LATE_MS, (struct waited){ 0 }, message);
}

/* It is in a call that the kernel restarts for the second time. If this host is killed while the
 * thread makes calls for us, such a call ends with EINTR. */
static bool is_restarted(pid_t pid, pid_t tid)
{
	char text[128];

	return gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/syscall", (int)pid, (int)tid) &&
	       atol(text) == SYS_restart_syscall;
}

bool gt_threads_are_dead(pid_t pid)
{
	DIR *numbers = gt_proc_numbers(pid);
	bool dead = true;
	pid_t tid;

	if (numbers == NULL)
		return errno == ENOENT;
	while (dead && (tid = gt_proc_next(numbers)))
		dead = is_dead(tid);
	closedir(numbers);
	return dead;
}

pid_t gt_thread_at_rest(pid_t pid)
{
	pid_t any = 0, resting = 0, restarted = 0, tid;
	DIR *numbers = gt_proc_numbers(pid);

	while (numbers != NULL && !resting && (tid = gt_proc_next(numbers))) {
		char state = state_of(pid, tid);

		if (state == 'S')
			*(is_restarted(pid, tid) ? &restarted : &resting) = tid;
		else if (state && strchr("ZXD", state) == NULL)
			any = tid;
	}
	if (numbers != NULL)
		closedir(numbers);
	return resting ? resting : restarted ? restarted : any ? any : pid;
}

/* While others stand still because of us, nobody else comes first, where the system lets us
 * (CAP_SYS_NICE, RLIMIT_NICE): on a loaded machine most of a stop is waiting for a turn. */
static void hurry(struct gt_stopped_threads *threads)
{
	threads->nice = getpriority(PRIO_PROCESS, 0);
	threads->hurries = setpriority(PRIO_PROCESS, 0, -20) == 0;
}

static void calm_down(const struct gt_stopped_threads *threads)
{
	if (threads->hurries)
		setpriority(PRIO_PROCESS, 0, threads->nice);
}

/* The process's helper at work in a thread of its own, so that late ones are let go the moment they
 * come, however long it works. */
struct help {
	const struct gt_process *process;
	const struct gt_stopped_threads *threads; /* NULL: nobody hurries */
	struct gt_tracer tracer;
	bool runs;
};

static int help_work(void *data)
{
	const struct help *help = data;
	const struct gt_process_helper *helper = help->process->helper;

	if (help->threads != NULL)
		calm_down(help->threads); /* it began as hurried as who waits for it */
	helper->help(helper->data, help->process);
	return 0;
}

static void end_help(struct help *help)
{
	if (help->runs)
		gt_tracer_join(&help->tracer);
	help->runs = false;
}

/* While a late one is waited for. False: its time is over, and nothing is being done for it. */
static bool look_for_help(struct help *help, uint64_t until_ms)
{
	const bool is_over = gt_monotonic_ms() > until_ms;
	const struct gt_process_helper *helper = help->process->helper;

	if (help->runs && gt_tracer_is_done(&help->tracer))
		end_help(help);
	if (!help->runs && !is_over && helper != NULL &&
	    helper->is_wanted(helper->data, help->process))
		help->runs = gt_tracer_start(&help->tracer, help_work, help);
	return help->runs || !is_over;
}

/* Waits for a late one. GT_EBUSY: for too long. */
static int wait_for_late(const struct gt_process *process, pid_t tid, uint64_t until_ms)
{
	struct help help = { .process = process };
	bool comes = true;

	while (comes && let_late(tid) == GT_EAGAIN) {
		comes = look_for_help(&help, until_ms);
		nap_us(200);
	}
	end_help(&help);
	return comes ? 0 : GT_EBUSY;
}

void gt_threads_pause(const struct gt_process *process, uint32_t ms)
{
	struct help help = { .process = process };
	const uint64_t until = gt_monotonic_ms() + ms;

	while (look_for_help(&help, until))
		nap_us(200);
	end_help(&help);
}

int gt_thread_stop_any(const struct gt_process *process, pid_t *tid, int limit_ms,
		       struct gt_message *message)
{
	const pid_t pid = process->pid;
	uint64_t start = gt_monotonic_ms();
	bool alone = false;

	for (;;) {
		int error;

		*tid = gt_thread_at_rest(pid);
		error = gt_thread_stop(*tid, 0, message);
		if (!error && message != NULL)
			message->text[0] = 0; /* of those that have ended */
		/* Threads come and go; where there is no other, the first is named again. */
		if (error == GT_EGONE && !(alone && *tid == pid) &&
		    gt_monotonic_ms() - start <= (uint64_t)limit_ms) {
			alone = *tid == pid;
			continue;
		}
		if (error == GT_EGONE)
			return gt_fail(message, error, "process %d has ended", (int)pid);
		if (error != GT_EBUSY)
			return error;
		if (wait_for_late(process, *tid, start + (uint64_t)limit_ms))
			return gt_fail(message, GT_EBUSY,
				       "thread %d of process %d sleeps in the kernel where "
				       "it cannot be stopped (it waits for a vfork child, a "
				       "disk or a file server): try again later",
				       (int)*tid, (int)pid);
	}
}

static int add(struct gt_stopped_threads *threads, pid_t tid, bool late)
{
	if (threads->count == threads->room) {
		size_t room = threads->room ? threads->room * 2 : 64;
		pid_t *tids = realloc(threads->tids, room * sizeof(*tids));
		bool *lates;

		if (tids == NULL)
			return GT_ENOMEM;
		threads->tids = tids;
		lates = realloc(threads->late, room * sizeof(*lates));
		if (lates == NULL)
			return GT_ENOMEM;
		threads->late = lates;
		threads->room = room;
	}
	threads->tids[threads->count] = tid;
	threads->late[threads->count++] = late;
	return 0;
}

static bool known(const struct gt_stopped_threads *threads, pid_t tid)
{
	for (size_t i = threads->count; i-- > 0;)
		if (threads->tids[i] == tid)
			return true;
	return false;
}

/* A thread that was asked to stop: 0, GT_EGONE, GT_EIO; GT_EAGAIN: it is to be waited for. */
struct reached {
	int how;
	struct waited waited;
};

/* Those that stop at once (all that sleep) are looked after at once: until keep_call() has been
 * there, a host that is killed leaves them with EINTR. reached[i]: of threads[first + i]. */
static void sweep(const struct gt_stopped_threads *threads, size_t first, struct reached *reached)
{
	size_t left = threads->count - first, idle = 0;

	for (size_t i = first; i < threads->count; i++)
		reached[i - first].how = GT_EAGAIN;
	while (left && idle < IDLE_SWEEPS) {
		size_t before = left;

		for (size_t i = first; i < threads->count; i++) {
			struct reached *one = &reached[i - first];

			if (one->how != GT_EAGAIN)
				continue;
			one->how = reach_interrupt(threads->tids[i], ONLY_LOOK, one->waited, NULL);
			left -= one->how != GT_EAGAIN;
		}
		idle = left < before ? 0 : idle + 1;
		if (left)
			sched_yield();
	}
	for (size_t i = first; i < threads->count; i++)
		if (reached[i - first].how == GT_EAGAIN)
			reached[i - first].waited =
				(struct waited){ gt_monotonic_ms(), run_time_ns(threads->tids[i]) };
}

/* One pass over the threads: *found = how many new ones were stopped. Those are seized and
 * interrupted at once and waited for afterwards, so that the pass takes one scheduling round, not
 * one a thread. */
static int stop_pass(struct gt_process *process, pid_t pid, struct gt_stopped_threads *threads,
		     size_t *found, struct gt_message *message)
{
	size_t first = threads->count;
	uint64_t patience = PATIENCE_MS;
	DIR *numbers = gt_proc_numbers(pid);
	struct reached *reached;
	int error = 0;
	pid_t tid;

	*found = 0;
	if (numbers == NULL && errno != ENOENT && errno != ESRCH)
		return gt_fail(message, GT_EIO, "cannot list the threads of process %d: %s",
			       (int)pid, strerror(errno));
	if (numbers == NULL && pid != process->pid)
		return 0;
	if (numbers == NULL)
		return gt_fail(message, GT_EGONE, "process %d has ended", (int)pid);
	while (!error && (tid = gt_proc_next(numbers))) {
		if (known(threads, tid))
			continue;
		error = seize(tid, 0, message);
		if (error == GT_EGONE) {
			error = 0;
			continue;
		}
		if (error)
			break;
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		error = add(threads, tid, false);
		if (error)
			gt_fail(message, error, "no memory for threads");
	}
	closedir(numbers);
	*found = threads->count - first;
	reached = calloc(*found + 1, sizeof(*reached));
	if (reached != NULL)
		sweep(threads, first, reached);
	for (size_t i = first; i < threads->count;) {
		const struct reached one =
			reached != NULL ? reached[i - first] : (struct reached){ GT_EAGAIN, { 0 } };
		const int how = one.how == GT_EAGAIN ? reach_interrupt(threads->tids[i], patience,
								       one.waited, message)
						     : one.how;

		if (how == GT_EBUSY) {
			patience = 0; /* for all of them together */
			threads->late[i++] = true;
		} else if (how == 0) {
			process->stopped = threads->tids[i++];
		} else {
			threads->count--;
			threads->tids[i] = threads->tids[threads->count];
			threads->late[i] = threads->late[threads->count];
			if (reached != NULL)
				reached[i - first] = reached[threads->count - first];
			if (how != GT_EGONE && !error)
				error = how;
		}
	}
	free(reached);
	if (!error && message != NULL)
		message->text[0] = 0;
	return error;
}

int gt_threads_stop(struct gt_process *process, struct gt_stopped_threads *threads,
		    struct gt_message *message)
{
	size_t found, more;
	int error;

	*threads = (struct gt_stopped_threads){ 0 };
	gt_sharers_look(process);
	hurry(threads);
	do {

		/* A thread that clones makes the child before it stops: the next pass sees it. */
		error = stop_pass(process, process->pid, threads, &found, message);
		for (uint32_t i = 0; !error && i < process->sharer_count; i++) {
			error = stop_pass(process, process->sharers[i], threads, &more, message);
			found += more;
		}
		if (!error && process->sharers_left_out)
			error = gt_fail(message, GT_ENOTSUP,
					"more than %d processes share the memory of process %d",
					GT_PROCESS_SHARERS, (int)process->pid);
		if (error) {
			gt_threads_resume(process, threads);
			return error;
		}
		if (!found)
			found = gt_sharers_look(process);
	} while (found > 0);
	if (threads->count == 0) {
		gt_threads_resume(process, threads);
		return gt_fail(message, GT_EGONE, "process %d has ended", (int)process->pid);
	}
	return 0;
}

/* Lets the late ones go that have come. False: there are no others. */
static bool let_those_come(struct gt_stopped_threads *threads)
{
	bool waits = false;

	for (size_t i = 0; i < threads->count; i++) {
		threads->late[i] = threads->late[i] && let_late(threads->tids[i]) == GT_EAGAIN;
		waits |= threads->late[i];
	}
	return waits;
}

void gt_threads_resume(struct gt_process *process, struct gt_stopped_threads *threads)
{
	struct help help = { .process = process, .threads = threads };
	const uint64_t until = gt_monotonic_ms() + 10 * LATE_MS;

	process->stopped = 0;
	for (size_t i = 0; i < threads->count; i++)
		if (!threads->late[i])
			threads->late[i] = gt_thread_detach(threads->tids[i]) == GT_EAGAIN;
	/* A late one stops as soon as it is back, and is let go then. One may wait for another: a parent in
	 * vfork for its child, and that for the helper. */
	while (let_those_come(threads) && look_for_help(&help, until))
		nap_us(200);
	end_help(&help);
	calm_down(threads);
	free(threads->tids);
	free(threads->late);
	*threads = (struct gt_stopped_threads){ 0 };
}
