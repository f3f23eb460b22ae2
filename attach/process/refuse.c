/* SPDX-License-Identifier: MIT */
/*
 * Refusals: see refuse.h. Everything is read from /proc; the last question, what a seccomp filter
 * would say to our system calls, is asked with one thread stopped (attach/process/seccomp.c).
 */
#define _GNU_SOURCE
#include "attach/process/refuse.h"
#include "attach/process/proc.h"
#include "attach/process/process.h"
#include "attach/process/seccomp.h"
#include "attach/process/shadow_stack.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PF_KTHREAD 0x00200000u /* linux/sched.h */

/* The fields of /proc/PID/status that matter. */
struct status {
	char name[32];
	char state;
	long tgid;
	long parent;
	long tracer;
	long uids[3]; /* real, effective, saved */
	long gids[3];
	bool has_memory;
	bool has_shadow_stack;
	int seccomp;
};

static long field(const char *text, const char *name, int nth)
{
	const char *at = strstr(text, name);
	long value = 0;
	char *end;

	if (at == NULL)
		return -1;
	for (at += strlen(name); nth >= 0; nth--) {
		value = strtol(at, &end, 10);
		if (end == at)
			return -1;
		at = end;
	}
	return value;
}

static bool read_status(pid_t pid, pid_t tid, struct status *status)
{
	char text[16384]; /* up to the last field, behind a long list of groups */
	const char *at;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid))
		return false;
	*status = (struct status){ .seccomp = 0 };
	sscanf(text, "Name:\t%31[^\n]", status->name);
	at = strstr(text, "\nState:");
	status->state = at != NULL && strlen(at) > 8 ? at[8] : '?';
	status->tgid = field(text, "\nTgid:", 0);
	status->parent = field(text, "\nPPid:", 0);
	status->tracer = field(text, "\nTracerPid:", 0);
	for (int i = 0; i < 3; i++) {
		status->uids[i] = field(text, "\nUid:", i);
		status->gids[i] = field(text, "\nGid:", i);
	}
	status->has_memory = strstr(text, "\nVmSize:") != NULL;
	status->has_shadow_stack = gt_shadow_stack_is_on(text);
	status->seccomp = (int)field(text, "\nSeccomp:", 0);
	return true;
}

static const char *name_of(pid_t pid, char name[64])
{
	if (!gt_proc_read(name, 64, "/proc/%d/comm", (int)pid))
		return "?";
	name[strcspn(name, "\n")] = 0;
	return name;
}

/* proc(5), stat: the sixth field behind the name. */
static bool is_kernel_thread(pid_t pid)
{
	char text[1024];
	const char *fields = gt_proc_stat(text, sizeof(text), pid, 0);
	unsigned flags = 0;

	return fields != NULL && sscanf(fields, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & PF_KTHREAD;
}

static int check_state(pid_t pid, const struct status *status, struct gt_message *message)
{
	if (status->tgid != pid)
		return gt_fail(message, GT_ENOTSUP,
			       "%d is a thread of process %ld, and all threads of a process are "
			       "traced: use -P %ld",
			       (int)pid, status->tgid, status->tgid);
	if (pid == getpid())
		return gt_fail(message, GT_ENOTSUP, "process %d is graftrace itself", (int)pid);
	if ((status->state == 'Z' || status->state == 'X') && gt_proc_with_memory(pid) != pid)
		return gt_fail(
			message, GT_ENOTSUP,
			"the first thread of process %d (%s) has ended, and others go on: such a "
			"process can be recorded from its start on, but not be attached to",
			(int)pid, status->name);
	if (status->state == 'Z' || status->state == 'X')
		return gt_fail(
			message, GT_EGONE,
			"process %d (%s) has ended; its parent %ld has not waited for it yet",
			(int)pid, status->name, status->parent);
	if (!status->has_memory && !is_kernel_thread(pid))
		return gt_fail(message, GT_EGONE, "process %d (%s) has ended", (int)pid,
			       status->name);
	if (!status->has_memory)
		return gt_fail(message, GT_ENOTSUP,
			       "process %d (%s) is a thread of the kernel: it has no program to "
			       "trace",
			       (int)pid, status->name);
	return 0;
}

static int check_threads(pid_t pid, struct gt_message *message)
{
	DIR *threads = gt_proc_numbers(pid);
	struct status status;
	char name[64];
	int error = 0;
	pid_t tid;

	if (threads == NULL)
		return gt_fail(message, GT_EGONE, "there is no process %d", (int)pid);
	while (!error && (tid = gt_proc_next(threads))) {
		if (!read_status(pid, tid, &status))
			continue;
		if (status.has_shadow_stack)
			error = gt_fail(message, GT_ENOTSUP,
					"process %d (%s) uses a CPU shadow stack, on which traced "
					"calls would fault: start it without (GLIBC_TUNABLES="
					"glibc.cpu.x86_shstk=off), or by graftrace record",
					(int)pid, status.name);
		else if (status.tracer > 0)
			error = gt_fail(message, GT_EPERM,
					"process %d is traced already, by process %ld (%s): end "
					"that (a debugger, strace) first",
					(int)pid, status.tracer,
					name_of((pid_t)status.tracer, name));
	}
	closedir(threads);
	return error;
}

/* Why the kernel says no, as far as it can be told from outside. */
static int explain_permission(pid_t pid, const struct status *status, struct gt_message *message)
{
	char text[64];
	long scope = 0;

	if (geteuid() != 0) {
		for (int i = 0; i < 3; i++) {
			if (status->uids[i] == (long)geteuid() &&
			    status->gids[i] == (long)getegid())
				continue;
			return gt_fail(message, GT_EPERM,
				       "process %d (%s) belongs to another user, or has the rights "
				       "of one (set-user-ID): run graftrace as root, or as that "
				       "user",
				       (int)pid, status->name);
		}
	}
	if (gt_proc_read(text, sizeof(text), "/proc/sys/kernel/yama/ptrace_scope"))
		scope = atol(text);
	if (scope == 3)
		return gt_fail(message, GT_EPERM,
			       "this system allows no tracing of running processes until it is "
			       "restarted (/proc/sys/kernel/yama/ptrace_scope is 3): start the "
			       "program with graftrace record PROGRAM");
	if (scope && geteuid() != 0)
		return gt_fail(
			message, GT_EPERM,
			"this system allows only root to trace running processes "
			"(/proc/sys/kernel/yama/ptrace_scope is %ld): run graftrace as root, "
			"start the program with graftrace record PROGRAM%s",
			scope, scope == 1 ? ", or sysctl kernel.yama.ptrace_scope=0" : "");
	if (geteuid() != 0)
		return gt_fail(
			message, GT_EPERM,
			"process %d (%s) does not let itself be traced (it has capabilities "
			"of its file, has set PR_SET_DUMPABLE, or its file is not readable): "
			"run graftrace as root",
			(int)pid, status->name);
	return gt_fail(message, GT_EPERM,
		       "process %d (%s) may not be traced: graftrace lacks CAP_SYS_PTRACE (in a "
		       "container: --cap-add SYS_PTRACE), or a security module (SELinux, AppArmor) "
		       "forbids it",
		       (int)pid, status->name);
}

/* What ptrace would ask is also asked when the memory is opened; the process notices nothing. */
static int check_permission(pid_t pid, const struct status *status, struct gt_message *message)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == ENOENT || errno == ESRCH)
		return gt_fail(message, GT_EGONE, "process %d has ended", (int)pid);
	return explain_permission(pid, status, message);
}

/* A section by its name in the program's file: how Go and instrumented programs are known. The file
 * may be anything; every offset is checked by pread. */
static bool has_section(int fd, const Elf64_Ehdr *header, const char *const *names)
{
	Elf64_Shdr section, strings;
	bool found = false;

	if (header->e_shentsize != sizeof(section) || header->e_shstrndx >= header->e_shnum ||
	    pread(fd, &strings, sizeof(strings),
		  (off_t)(header->e_shoff + header->e_shstrndx * sizeof(section))) !=
		    (ssize_t)sizeof(strings))
		return false;
	for (uint16_t i = 0; i < header->e_shnum && !found; i++) {
		char name[32] = "";

		if (pread(fd, &section, sizeof(section),
			  (off_t)(header->e_shoff + i * sizeof(section))) !=
			    (ssize_t)sizeof(section) ||
		    pread(fd, name, sizeof(name) - 1,
			  (off_t)(strings.sh_offset + section.sh_name)) <= 0)
			return false;
		for (int k = 0; names[k] != NULL && !found; k++)
			found = strcmp(name, names[k]) == 0;
	}
	return found;
}

/* A dynamic symbol by its bytes: instrumented programs export their runtime. */
static bool holds_text(int fd, const char *text)
{
	static const size_t step = 1 << 20;
	size_t size = strlen(text) + 1;
	char *window = malloc(step + 64);
	bool found = false;
	off_t at = 0;
	ssize_t got;

	while (window != NULL && !found &&
	       (got = pread(fd, window, step + 64, at)) > (ssize_t)size) {
		found = memmem(window, (size_t)got, text, size) != NULL;
		at += (off_t)step;
	}
	free(window);
	return found;
}

static int check_program(pid_t pid, const struct status *status, struct gt_message *message)
{
	static const char *const go[] = { ".go.buildinfo", ".gosymtab", ".gopclntab", NULL };
	Elf64_Ehdr header = { 0 };
	char path[64], target[256];
	ssize_t bytes;
	int fd, error = 0;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	bytes = readlink(path, target, sizeof(target) - 1);
	target[bytes > 0 ? bytes : 0] = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* deleted, or in another container: what is mapped will tell */
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		error = 0;
	else if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
		error = gt_fail(message, GT_ENOTSUP,
				"process %d (%s) is no 64-bit x86 program: this graftrace traces "
				"only those",
				(int)pid, status->name);
	else if (has_section(fd, &header, go))
		error = gt_fail(message, GT_ENOTSUP,
				"process %d (%s) is a Go program: its runtime moves stacks, so "
				"returns cannot be traced; use Go's own runtime/trace or pprof",
				(int)pid, status->name);
	else if (strstr(target, "valgrind") != NULL || strstr(target, "-amd64-linux") != NULL)
		error = gt_fail(message, GT_ENOTSUP,
				"process %d (%s) runs under Valgrind, which executes a translation "
				"of its code: trace it without",
				(int)pid, status->name);
	else if (holds_text(fd, "__msan_init"))
		error = gt_fail(message, GT_ENOTSUP,
				"process %d (%s) is built with MemorySanitizer, which keeps the "
				"memory that graftrace needs: use a build without",
				(int)pid, status->name);
	close(fd);
	return error;
}

int gt_refuse_process(pid_t pid, struct gt_message *message)
{
	struct status status;
	int error;

	if (pid <= 0 || !read_status(pid, pid, &status))
		return gt_fail(message, GT_EGONE, "there is no process %d", (int)pid);
	error = check_state(pid, &status, message);
	if (!error)
		error = check_threads(pid, message);
	if (!error)
		error = check_permission(pid, &status, message);
	if (!error)
		error = check_program(pid, &status, message);
	if (!error && status.seccomp)
		error = gt_seccomp_check(pid, status.seccomp, message);
	return error;
}
