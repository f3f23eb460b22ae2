/* SPDX-License-Identifier: MIT */
/*
 * Seccomp filters: see seccomp.h. They are read with PTRACE_SECCOMP_GET_FILTER, which takes
 * CAP_SYS_ADMIN, and run here for each call as the kernel would (seccomp(2), classic BPF).
 */
#define _GNU_SOURCE
#include "attach/process/seccomp.h"
#include "attach/process/proc.h"
#include "attach/process/process.h"
#include "attach/process/threads.h"

#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTERS_MOST 64
#define LIMIT_MS     5000

/* What is called in the process's name (attach/agent/inject.c, detach.c) and by the agent
 * (port/program/syscall.h). */
static const struct {
	long number;
	const char *name;
	uint64_t arguments[6];
} calls[] = {
	{ SYS_mmap,
	  "mmap",
	  { 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull } },
	{ SYS_mmap, "mmap", { 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, 3 } },
	{ SYS_mmap,
	  "mmap of code",
	  { 4096, 4096, PROT_READ | PROT_EXEC,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, ~0ull } },
	{ SYS_mprotect, "mprotect", { 4096, 4096, PROT_READ | PROT_EXEC } },
	{ SYS_munmap, "munmap", { 4096, 4096 } },
	{ SYS_socketpair, "socketpair", { AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, 4096 } },
	{ SYS_recvmsg, "recvmsg", { 3, 4096, MSG_CMSG_CLOEXEC } },
	{ SYS_close, "close", { 3 } },
	{ SYS_rt_sigprocmask, "rt_sigprocmask", { 2, 4096, 4096, 8 } },
	{ SYS_rt_sigaction, "rt_sigaction", { 10, 0, 4096, 8 } },
	{ SYS_madvise, "madvise", { 4096, 4096, MADV_DONTDUMP } },
	{ SYS_madvise, "madvise", { 4096, 4096, 18 } },
	{ SYS_getpid, "getpid", { 0 } },
	{ SYS_gettid, "gettid", { 0 } },
	{ SYS_getcpu, "getcpu", { 4096 } },
	{ SYS_sigaltstack, "sigaltstack", { 0, 4096 } },
	{ SYS_arch_prctl, "arch_prctl", { 0x1001, 4096 } },
	{ SYS_arch_prctl, "arch_prctl", { 0x1004, 4096 } },
	{ SYS_futex, "futex", { 4096, 0, 0, 4096 } },
	{ SYS_futex, "futex", { 4096, 1, 1 } },
	{ SYS_tgkill, "tgkill", { 1, 1, 0 } },
	{ SYS_prctl, "prctl", { PR_GET_NAME, 4096 } },
	{ SYS_prctl, "prctl", { PR_GET_TSC, 4096 } },
	{ SYS_process_vm_readv, "process_vm_readv", { 1, 4096, 1, 4096, 1 } },
};

static bool jumps(uint32_t a, uint32_t operand, uint16_t code)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == operand;
	case BPF_JGT:
		return a > operand;
	case BPF_JGE:
		return a >= operand;
	default:
		return (a & operand) != 0; /* BPF_JSET */
	}
}

static uint32_t compute(uint32_t a, uint32_t operand, uint16_t code)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + operand;
	case BPF_SUB:
		return a - operand;
	case BPF_MUL:
		return a * operand;
	case BPF_DIV:
		return operand ? a / operand : 0;
	case BPF_AND:
		return a & operand;
	case BPF_OR:
		return a | operand;
	case BPF_XOR:
		return a ^ operand;
	case BPF_LSH:
		return operand < 32 ? a << operand : 0;
	case BPF_RSH:
		return operand < 32 ? a >> operand : 0;
	default:
		return -a; /* BPF_NEG */
	}
}

uint32_t gt_seccomp_run(const struct sock_filter *filter, size_t count, long number,
			const uint64_t arguments[6])
{
	struct seccomp_data data = { .nr = (int)number, .arch = AUDIT_ARCH_X86_64 };
	uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = { 0 };

	memcpy(data.args, arguments, sizeof(data.args));
	for (size_t at = 0; at < count; at++) {
		const struct sock_filter *step = &filter[at];
		uint32_t operand = BPF_SRC(step->code) == BPF_X ? x : step->k, loaded = 0;

		switch (BPF_CLASS(step->code)) {
		case BPF_LD:
		case BPF_LDX:
			switch (BPF_MODE(step->code)) {
			case BPF_ABS:
				if (step->k > sizeof(data) - 4 || step->k % 4)
					return SECCOMP_RET_KILL_PROCESS;
				memcpy(&loaded, (const char *)&data + step->k, 4);
				break;
			case BPF_MEM:
				loaded = memory[step->k % BPF_MEMWORDS];
				break;
			case BPF_LEN:
				loaded = sizeof(data);
				break;
			default:
				loaded = step->k;
				break;
			}
			if (BPF_CLASS(step->code) == BPF_LD)
				a = loaded;
			else
				x = loaded;
			break;
		case BPF_ST:
			memory[step->k % BPF_MEMWORDS] = a;
			break;
		case BPF_STX:
			memory[step->k % BPF_MEMWORDS] = x;
			break;
		case BPF_ALU:
			a = compute(a, operand, step->code);
			break;
		case BPF_JMP:
			if (BPF_OP(step->code) == BPF_JA)
				at += step->k;
			else
				at += jumps(a, operand, step->code) ? step->jt : step->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(step->code) == BPF_A ? a : step->k;
		default:
			if (BPF_MISCOP(step->code) == BPF_TAX)
				x = a;
			else
				a = x;
			break;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

/* Allowed, or only logged. */
static bool passes(uint32_t action)
{
	action &= SECCOMP_RET_ACTION_FULL;
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/* Only while the agent is put into a new image, and passed the arena. */
static bool is_passing(long number, uint64_t first)
{
	return (number == SYS_prctl && first == PR_GET_TSC) || number == SYS_socketpair ||
	       number == SYS_recvmsg || number == SYS_close;
}

const char *gt_seccomp_forbids(const struct sock_filter *filter, size_t count, bool passing)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if ((passing || !is_passing(calls[i].number, calls[i].arguments[0])) &&
		    !passes(gt_seccomp_run(filter, count, calls[i].number, calls[i].arguments)))
			return calls[i].name;
	return NULL;
}

/* Calls each(data, filter, count) for the filters that a stopped thread is in, until one returns other than 0, and returns
 * that. GT_ENOMEM; GT_EPERM: they cannot be read. */
static int each_filter(pid_t tid,
		       int (*each)(void *data, const struct sock_filter *filter, size_t count),
		       void *data)
{
	struct sock_filter *filter = malloc(BPF_MAXINSNS * sizeof(*filter));
	int error = filter != NULL ? 0 : GT_ENOMEM;

	for (long index = 0; !error && index < FILTERS_MOST; index++) {
		long count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)index, NULL);

		if (count < 0 && errno == ENOENT)
			break;
		if (count >= 0 && count <= BPF_MAXINSNS)
			count = ptrace(PTRACE_SECCOMP_GET_FILTER, tid, (void *)index, filter);
		error = count < 0 || count > BPF_MAXINSNS ? GT_EPERM
							  : each(data, filter, (size_t)count);
	}
	free(filter);
	return error;
}

static int note_forbidden(void *data, const struct sock_filter *filter, size_t count)
{
	const char **forbidden = data;

	*forbidden = gt_seccomp_forbids(filter, count, true);
	return *forbidden != NULL ? GT_ENOTSUP : 0;
}

static int fail_unread(int error, pid_t pid, struct gt_message *message)
{
	return error == GT_ENOMEM
		       ? gt_fail(message, error, "no memory for a filter")
		       : gt_fail(message, error,
				 "process %d runs in a sandbox (seccomp), and graftrace may not "
				 "read what that allows: run it as root, outside of the "
				 "sandbox's container",
				 (int)pid);
}

static int check_filters(pid_t pid, pid_t tid, struct gt_message *message)
{
	const char *forbidden = NULL;
	const int error = each_filter(tid, note_forbidden, &forbidden);

	if (error == GT_ENOTSUP)
		return gt_fail(message, error,
			       "a seccomp filter of process %d forbids %s, which tracing "
			       "needs: start it without that sandbox",
			       (int)pid, forbidden);
	return error ? fail_unread(error, pid, message) : 0;
}

long gt_seccomp_filters(pid_t pid, pid_t tid)
{
	char text[4096];

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid))
		return 0;
	return gt_proc_field(text, "Seccomp") == SECCOMP_MODE_STRICT
		       ? LONG_MAX
		       : gt_proc_field(text, "Seccomp_filters");
}

/* Ours are read only where there are any: this is asked while threads stand still. */
static bool is_in_more_than_we(long filters)
{
	return filters > 0 && filters > gt_seccomp_filters(getpid(), getpid());
}

bool gt_seccomp_asks_place(const struct sock_filter *filter, size_t count)
{
	const uint32_t first = offsetof(struct seccomp_data, instruction_pointer);

	for (size_t i = 0; i < count; i++)
		if (BPF_CLASS(filter[i].code) == BPF_LD && BPF_MODE(filter[i].code) == BPF_ABS &&
		    filter[i].k - first < sizeof(uint64_t))
			return true;
	return false;
}

static int note_place(void *data, const struct sock_filter *filter, size_t count)
{
	(void)data;
	return gt_seccomp_asks_place(filter, count) ? GT_ENOTSUP : 0;
}

static const char *filters_tie(pid_t tid)
{
	switch (each_filter(tid, note_place, NULL)) {
	case 0:
		return NULL;
	case GT_ENOTSUP:
		return "a seccomp filter of it asks where a call is made from";
	case GT_ENOMEM:
		return "there is no memory to read its seccomp filters";
	default:
		return "it runs in a sandbox (seccomp) whose filters cannot be read";
	}
}

const char *gt_seccomp_ties_places(pid_t pid, pid_t tid)
{
	struct {
		uint64_t mode, selector, start, bytes;
	} dispatch = { 0 };

	/* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG; before Linux 6.4 nobody can tell */
	if (ptrace((enum __ptrace_request)0x4211, tid, (void *)sizeof(dispatch), &dispatch) == 0 &&
	    dispatch.mode)
		return "its system calls are dispatched to itself by where they are made";
	return is_in_more_than_we(gt_seccomp_filters(pid, pid)) ? filters_tie(tid) : NULL;
}

int gt_seccomp_check_image(pid_t pid, pid_t tid, struct gt_message *message)
{
	return is_in_more_than_we(gt_seccomp_filters(pid, pid)) ? check_filters(pid, tid, message)
								: 0;
}

struct call {
	long number;
	const uint64_t *arguments;
};

static int ask(void *data, const struct sock_filter *filter, size_t count)
{
	const struct call *call = data;

	return passes(gt_seccomp_run(filter, count, call->number, call->arguments)) ? 0
										    : GT_ENOTSUP;
}

int gt_seccomp_check_call(const struct gt_process *process, pid_t tid, long filters, long number,
			  const uint64_t arguments[6], struct gt_message *message)
{
	struct call call = { number, arguments };
	int error = 0;

	if (is_in_more_than_we(filters))
		error = each_filter(tid, ask, &call);
	if (error == GT_EPERM && filters <= process->filters_allowed)
		return 0;
	if (error == GT_ENOTSUP)
		return gt_fail(message, error,
			       "process %d has entered a sandbox (seccomp) that forbids system "
			       "call %ld",
			       (int)process->pid, number);
	return error ? fail_unread(error, process->pid, message) : 0;
}

int gt_seccomp_check(pid_t pid, int mode, struct gt_message *message)
{
	struct gt_process process = { .pid = pid, .memory = -1, .pidfd = -1 };
	pid_t tid;
	int error;

	if (mode == 1)
		return gt_fail(
			message, GT_ENOTSUP,
			"process %d is in seccomp's strict mode, which allows no system call "
			"that tracing needs",
			(int)pid);
	error = gt_thread_stop_any(&process, &tid, LIMIT_MS, message);
	if (error)
		return error;
	error = check_filters(pid, tid, message);
	gt_thread_detach(tid);
	return error;
}
