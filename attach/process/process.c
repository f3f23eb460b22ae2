/* SPDX-License-Identifier: MIT */
/*
 * Processes: see process.h. Called from one thread at a time for one process; the ptrace calls have
 * to come from the thread that started it.
 *
 * The start is a handshake: the child waits on a pipe until it is seized, then calls execvp.
 * Seizing (instead of PTRACE_TRACEME) makes no signal; the exec shows as an event, and an exec that
 * fails as an errno on a second, close-on-exec pipe.
 */
#define _GNU_SOURCE
#include "attach/process/process.h"
#include "attach/process/proc.h"
#include "attach/process/threads.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LOCK_PAUSE_MS 10

static int error_of_errno(int number)
{
	switch (number) {
	case ENOENT:
	case ENOTDIR:
		return GT_ENOENT;
	case EACCES:
	case EPERM:
		return GT_EPERM;
	case ENOMEM:
		return GT_ENOMEM;
	case ESRCH:
		return GT_EGONE;
	default:
		return GT_EIO;
	}
}

/*
 * What this process ignored and blocked when it began: a program that it starts shall have the
 * same, whatever the command line or a library has set meanwhile (an HTTP server ignores SIGPIPE,
 * and ignoring is inherited through exec).
 */
static sigset_t first_ignored;
static sigset_t first_blocked;

__attribute__((constructor)) static void remember_signals(void)
{
	struct sigaction action;

	sigemptyset(&first_ignored);
	for (int signal = 1; signal < NSIG; signal++)
		if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			sigaddset(&first_ignored, signal);
	pthread_sigmask(SIG_SETMASK, NULL, &first_blocked);
}

/* In the child. Handlers go by themselves at the exec. */
static void restore_signals(void)
{
	struct sigaction action;

	for (int signal = 1; signal < NSIG; signal++) {
		if (sigaction(signal, NULL, &action) != 0 || signal == SIGKILL || signal == SIGSTOP)
			continue;
		if (sigismember(&first_ignored, signal)) {
			if (action.sa_handler == SIG_IGN)
				continue;
			action.sa_handler = SIG_IGN;
		} else {
			if (action.sa_handler != SIG_IGN)
				continue;
			action.sa_handler = SIG_DFL;
		}
		action.sa_flags = 0;
		sigaction(signal, &action, NULL);
	}
	sigprocmask(SIG_SETMASK, &first_blocked, NULL);
}

__attribute__((noreturn)) static void child(char *const argv[], int go, int failed)
{
	char byte;
	int error;
	ssize_t got;

	do
		got = read(go, &byte, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(127); /* the host could not seize */
	restore_signals();
	execvp(argv[0], argv);
	error = errno;
	while (write(failed, &error, sizeof(error)) < 0 && errno == EINTR)
		;
	_exit(error == ENOENT ? 127 : 126);
}

/* The exec of a 32-bit program shows in the code segment. */
static bool is_64_bit(pid_t pid)
{
	struct user_regs_struct registers;
	struct iovec io = { &registers, sizeof(registers) };

	return ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io) == 0 &&
	       io.iov_len == sizeof(registers) && registers.cs == 0x33;
}

static void reap(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
}

bool gt_process_loses_rights(pid_t pid, const char *path, const char *name, struct gt_message *why)
{
	const char *rights = NULL;
	struct statvfs mount;
	struct stat status;
	char text[4096];

	/* The kernel gives them to who is traced by root. */
	if (geteuid() == 0 || stat(path, &status) || statvfs(path, &mount))
		return false;
	if (mount.f_flag & ST_NOSUID ||
	    (gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid) &&
	     gt_proc_field(text, "NoNewPrivs") == 1))
		return false; /* it would get none in any case */
	if ((status.st_mode & S_ISUID && status.st_uid != geteuid()) ||
	    (status.st_mode & S_ISGID && status.st_gid != getegid()))
		rights = "the rights of another user or group (set-user-ID)";
	else if (getxattr(path, "security.capability", NULL, 0) > 0)
		rights = "capabilities (setcap)";
	if (rights == NULL)
		return false;
	gt_fail(why, 0,
		"'%.200s' has %s, which it would not get while it is traced: run graftrace as "
		"root, or attach to it as root (-P)",
		name, rights);
	return true;
}

/* The file that execvp(3) would run. False: none, or it is not found. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *at = getenv("PATH"), *end;
	struct stat status;

	if (strchr(name, '/') != NULL) {
		snprintf(path, size, "%s", name);
		return true;
	}
	for (at = at != NULL ? at : "/bin:/usr/bin"; at != NULL; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ':');
		snprintf(path, size, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "", name);
		if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Waits for the exec event, and on to the exit of the system call: only from there on registers
 * that are set stay set (the kernel stores the result of exec after the event). */
static int wait_for_exec(pid_t pid, int failed, char *const argv[], struct gt_message *message)
{
	int status, error = 0;
	pid_t got;

	for (;;) {
		got = waitpid(pid, &status, __WALL);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return gt_fail(message, GT_EIO, "cannot wait for '%s': %s", argv[0],
				       strerror(errno));
		if (WIFEXITED(status) || WIFSIGNALED(status)) {
			if (read(failed, &error, sizeof(error)) != sizeof(error))
				return gt_fail(message, GT_EIO, "'%s' ended before it was started",
					       argv[0]);
			return gt_fail(message,
				       error_of_errno(error) == GT_ENOENT ? GT_ENOENT : GT_ECANTRUN,
				       "cannot run '%s': %s", argv[0], strerror(error));
		}
		if (status >> 16 == PTRACE_EVENT_EXEC)
			break;
		/* A signal that came in between is the program's. */
		if (ptrace(PTRACE_CONT, pid, 0, status >> 16 ? 0 : WSTOPSIG(status)) != 0)
			return gt_fail(message, GT_EIO, "cannot go on with '%s': %s", argv[0],
				       strerror(errno));
	}
	return gt_thread_finish_exec(pid, message);
}

int gt_process_start(struct gt_process *process, char *const argv[], struct gt_message *message)
{
	int go[2], failed[2], error;
	char path[4096];
	pid_t pid;

	*process = (struct gt_process){ .memory = -1, .pidfd = -1 };
	if (find_program(argv[0], path, sizeof(path)) &&
	    gt_process_loses_rights(getpid(), path, argv[0], message))
		return GT_ENOTSUP;
	if (pipe2(go, O_CLOEXEC) != 0)
		return gt_fail(message, GT_EIO, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC) != 0) {
		error = gt_fail(message, GT_EIO, "cannot make a pipe: %s", strerror(errno));
		goto close_go;
	}
	pid = fork();
	if (pid < 0) {
		error = gt_fail(message, GT_EIO, "cannot fork: %s", strerror(errno));
		goto close_failed;
	}
	if (pid == 0) {
		close(go[1]);
		child(argv, go[0], failed[1]);
	}
	if (ptrace(PTRACE_SEIZE, pid, 0,
		   PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) != 0) {
		error = gt_fail(message, errno == EPERM ? GT_EPERM : GT_EIO,
				"this user or system does not allow tracing: %s", strerror(errno));
		goto reap_child;
	}
	if (write(go[1], "", 1) != 1) {
		error = gt_fail(message, GT_EIO, "cannot start '%s': %s", argv[0], strerror(errno));
		goto reap_child;
	}
	close(failed[1]);
	failed[1] = -1;
	error = wait_for_exec(pid, failed[0], argv, message);
	if (error)
		goto reap_child;
	if (!is_64_bit(pid)) {
		error = gt_fail(message, GT_ENOTSUP, "'%s' is a 32-bit program", argv[0]);
		goto reap_child;
	}
	error = gt_process_open(process, pid, message);
	if (error)
		goto reap_child;
	process->stopped = pid;
	goto close_failed;

reap_child:
	reap(pid);
close_failed:
	close(failed[0]);
	if (failed[1] >= 0)
		close(failed[1]);
close_go:
	close(go[0]);
	close(go[1]);
	return error;
}

int gt_process_reopen(struct gt_process *process, struct gt_message *message)
{
	char path[64];

	if (process->memory >= 0)
		close(process->memory);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process->pid);
	process->memory = open(path, O_RDWR | O_CLOEXEC);
	if (process->memory < 0 && (errno == ENOENT || errno == ESRCH))
		return gt_fail(message, GT_EGONE, "process %d has ended", (int)process->pid);
	if (process->memory < 0)
		return gt_fail(message, error_of_errno(errno),
			       "cannot open the memory of process %d: %s", (int)process->pid,
			       strerror(errno));
	return 0;
}

bool gt_process_has_executed(const struct gt_process *process)
{
	char byte;

	/* Of memory that is not there any more nothing is read; a page that is not mapped fails. */
	return process->memory >= 0 && pread(process->memory, &byte, 1, 0) == 0 &&
	       !gt_process_is_ending(process);
}

int gt_process_lock(pid_t pid, int limit_ms)
{
	const struct timespec pause = { 0, LOCK_PAUSE_MS * 1000000l };
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; limit_ms -= LOCK_PAUSE_MS) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || limit_ms <= 0) {
			close(fd);
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return fd;
}

void gt_process_unlock(int lock)
{
	if (lock >= 0)
		close(lock);
}

int gt_process_open(struct gt_process *process, pid_t pid, struct gt_message *message)
{
	int error;

	*process = (struct gt_process){ .pid = pid, .memory = -1, .pidfd = -1 };
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
	if (process->pidfd < 0)
		return gt_fail(message, error_of_errno(errno), "cannot open process %d: %s",
			       (int)pid, strerror(errno));
	error = gt_process_reopen(process, message);
	if (error)
		gt_process_close(process);
	return error;
}

void gt_process_close(struct gt_process *process)
{
	if (process->memory >= 0)
		close(process->memory);
	if (process->pidfd >= 0)
		close(process->pidfd);
	process->memory = process->pidfd = -1;
	process->stopped = 0;
}

int gt_process_read(const struct gt_process *process, uint64_t address, void *bytes, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t got = pread(process->memory, (char *)bytes + done, size - done,
				    (off_t)(address + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got == 0)
			return GT_EGONE;
		if (got < 0)
			return GT_EIO;
		done += (size_t)got;
	}
	return 0;
}

/* Word by word through ptrace, for kernels that forbid /proc/PID/mem to overrule protections. */
static int poke(const struct gt_process *process, uint64_t address, const char *bytes, size_t size)
{
	while (size > 0) {
		uint64_t base = address & ~7ull, word;
		size_t skip = address - base;
		size_t part = 8 - skip < size ? 8 - skip : size;

		errno = 0;
		word = (uint64_t)ptrace(PTRACE_PEEKDATA, process->stopped, base, 0);
		if (errno)
			return errno == ESRCH ? GT_EGONE : GT_EIO;
		memcpy((char *)&word + skip, bytes, part);
		if (ptrace(PTRACE_POKEDATA, process->stopped, base, word) != 0)
			return errno == ESRCH ? GT_EGONE : GT_EIO;
		address += part;
		bytes += part;
		size -= part;
	}
	return 0;
}

int gt_process_write(const struct gt_process *process, uint64_t address, const void *bytes,
		     size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t put = pwrite(process->memory, (const char *)bytes + done, size - done,
				     (off_t)(address + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0 && process->stopped)
			return poke(process, address + done, (const char *)bytes + done,
				    size - done);
		if (put == 0)
			return GT_EGONE;
		if (put < 0)
			return GT_EIO;
		done += (size_t)put;
	}
	return 0;
}

int gt_process_read_string(const struct gt_process *process, uint64_t address, char *text,
			   size_t size)
{
	size_t done = 0;

	while (done < size) {
		size_t page_rest = 4096 - ((address + done) & 4095);
		size_t part = page_rest < size - done ? page_rest : size - done;
		int error = gt_process_read(process, address + done, text + done, part);

		if (error)
			return error;
		if (memchr(text + done, 0, part) != NULL)
			return 0;
		done += part;
	}
	return GT_EIO;
}

/* Reads a whole file of /proc; NUL-terminated, the caller frees. */
static char *read_all(const char *path, size_t *size)
{
	size_t room = 16384, used = 0;
	char *text = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	for (;;) {
		char *bigger = realloc(text, room + 1);
		ssize_t got;

		if (bigger == NULL)
			goto fail;
		text = bigger;
		got = read(fd, text + used, room - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			goto fail;
		if (got == 0)
			break;
		used += (size_t)got;
		if (used == room)
			room *= 2;
	}
	close(fd);
	text[used] = 0;
	*size = used;
	return text;
fail:
	close(fd);
	free(text);
	return NULL;
}

/* "start-end rwxp offset major:minor inode   path" */
static bool parse_map(char *line, struct gt_map *map)
{
	char protection[5];
	unsigned long long start, end, offset, inode;
	unsigned major, minor;
	int path_at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, protection, &offset,
		   &major, &minor, &inode, &path_at) != 7)
		return false;
	*map = (struct gt_map){
		.start = start,
		.end = end,
		.offset = offset,
		.inode = inode,
		.device_major = major,
		.device_minor = minor,
		.readable = protection[0] == 'r',
		.writable = protection[1] == 'w',
		.executable = protection[2] == 'x',
		.shared = protection[3] == 's',
		.path = path_at ? line + path_at : "",
	};
	return true;
}

int gt_process_maps(pid_t pid, struct gt_maps *maps, struct gt_message *message)
{
	char path[64], *line, *end;
	size_t size, lines = 0;

	*maps = (struct gt_maps){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)gt_proc_with_memory(pid));
	maps->text = read_all(path, &size);
	if (maps->text == NULL)
		return gt_fail(message, errno == ENOENT ? GT_EGONE : error_of_errno(errno),
			       "cannot read %s: %s", path, strerror(errno));
	for (line = maps->text; (line = strchr(line, '\n')) != NULL; line++)
		lines++;
	maps->entries = calloc(lines + 1, sizeof(*maps->entries));
	if (maps->entries == NULL) {
		gt_maps_free(maps);
		return gt_fail(message, GT_ENOMEM, "no memory for %s", path);
	}
	for (line = maps->text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = 0;
		if (parse_map(line, &maps->entries[maps->count]))
			maps->count++;
	}
	return 0;
}

void gt_maps_free(struct gt_maps *maps)
{
	free(maps->entries);
	free(maps->text);
	*maps = (struct gt_maps){ 0 };
}

const struct gt_map *gt_maps_find(const struct gt_maps *maps, uint64_t address)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (address >= maps->entries[middle].end)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < maps->count && address >= maps->entries[low].start)
		return &maps->entries[low];
	return NULL;
}

uint64_t gt_process_auxv(pid_t pid, uint64_t type)
{
	char path[64];
	size_t size;
	char *bytes;
	uint64_t value = 0;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	bytes = read_all(path, &size);
	if (bytes == NULL)
		return 0;
	for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= size; at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.a_type == type) {
			value = entry.a_un.a_val;
			break;
		}
	}
	free(bytes);
	return value;
}

uint64_t gt_process_start_time(pid_t pid)
{
	unsigned long long start = 0;
	char text[1024];
	const char *fields = gt_proc_stat(text, sizeof(text), pid, 0);

	if (fields != NULL &&
	    sscanf(fields,
		   "%*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%*s %*s %llu",
		   &start) != 1)
		start = 0;
	return start;
}

bool gt_process_ended(const struct gt_process *process)
{
	struct pollfd poll_fd = { .fd = process->pidfd, .events = POLLIN };

	return process->pidfd < 0 || poll(&poll_fd, 1, 0) > 0;
}

bool gt_process_is_ending(const struct gt_process *process)
{
	return gt_process_ended(process) || gt_threads_are_dead(process->pid);
}
