/* SPDX-License-Identifier: MIT */
/*
 * A process seen from outside: starting it up to its exec stop, reading and writing its memory, its
 * mappings, its auxiliary vector. What its threads do (stopping them, system calls in their name)
 * is in threads.h.
 *
 * A started program is as without us: no session, group, terminal, mask, limit or descriptor of it
 * is changed. Everything opened here is close-on-exec.
 */
#ifndef GT_ATTACH_PROCESS_H
#define GT_ATTACH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <graftrace/error.h>
#include "core/trace/message.h"

#define GT_PROCESS_SHARERS 512

struct gt_process;

/*
 * What may have to be done before a thread of a process comes to its stop: the thread sleeps in the
 * kernel until another process has gone on (in vfork: until its child has), and that one waits for
 * this host. Called while such a thread is waited for, and between two tries; all threads that had stopped have been
 * let go.
 */
struct gt_process_helper {
	/* Whether there is something to do. Called often, by the thread that waits. */
	bool (*is_wanted)(void *data, const struct gt_process *process);
	/* Does it, as a tracer of its own (tracer.h); the thread that waits goes on when this has
	 * returned, and touches nothing but the threads that it waits for until then. */
	void (*help)(void *data, const struct gt_process *process);
	void *data;
};

struct gt_process {
	pid_t pid;
	int memory;    /* /proc/PID/mem, -1 = not open */
	int pidfd;     /* readable once the process has ended; -1 = not open */
	pid_t stopped; /* a thread of it that the calling thread has ptrace-stopped; 0 = none */
	/* Other processes with the same memory (attach/process/sharers.c), and up to which number
	 * was looked for them; 0 = not at all. */
	pid_t sharers[GT_PROCESS_SHARERS];
	uint32_t sharer_count;
	bool sharers_left_out; /* there are more */
	long last_number;
	long filters_allowed; /* so many filters (seccomp) of a thread that cannot be read allow what calls we need */
	const struct gt_process_helper *helper; /* NULL: nobody waits for this host */
};

/* One line of /proc/PID/maps. */
struct gt_map {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	bool readable;
	bool writable;
	bool executable;
	bool shared;
	const char *path; /* "" = anonymous; in the memory of gt_maps */
};

struct gt_maps {
	struct gt_map *entries; /* by address */
	size_t count;
	char *text;
};

/*
 * Starts argv as execvp would, and leaves it at the exit of its exec call, stopped and traced by
 * the calling thread (PTRACE_O_EXITKILL until gt_thread_detach): not one instruction of it has run.
 * GT_ENOENT: no such program (a shell's 127); GT_EPERM: not to be executed, or not to be traced by
 * this user (126); GT_ENOTSUP: 32-bit; GT_EIO.
 */
int gt_process_start(struct gt_process *process, char *const argv[], struct gt_message *message);

/* Whether process pid would get rights of its own by executing this file (set-user-ID, file
 * capabilities), but not while we trace it: then *why says so, by this name of the file. */
bool gt_process_loses_rights(pid_t pid, const char *path, const char *name, struct gt_message *why);

/* Opens a process that runs already; gt_process_close() closes it. GT_EGONE: there is none; GT_EPERM. */
int gt_process_open(struct gt_process *process, pid_t pid, struct gt_message *message);
/* Whether the process lives, but as another program than when its memory was opened. */
bool gt_process_has_executed(const struct gt_process *process);

/* Takes the lock by which one graftrace at a time puts something into a process, or takes it out; waits limit_ms for
 * others. Only processes that may trace it can hold the lock, and the end of the holder frees it. Returns the lock for
 * gt_process_unlock(), or -1: it was not got, or there is no such process; the caller may go on without it. */
int gt_process_lock(pid_t pid, int limit_ms);
void gt_process_unlock(int lock);

/* Opens the memory anew: after an exec the old descriptor looks at the old memory. */
int gt_process_reopen(struct gt_process *process, struct gt_message *message);

void gt_process_close(struct gt_process *process);

/* All bytes or an error: GT_EGONE (the process has ended), GT_EIO (not mapped). */
int gt_process_read(const struct gt_process *process, uint64_t address, void *bytes, size_t size);

/* Writes whatever the pages' protection is, also code: each page becomes the process's own. If the
 * kernel forbids that through /proc, works while a thread of it is stopped (process->stopped). */
int gt_process_write(const struct gt_process *process, uint64_t address, const void *bytes,
		     size_t size);

/* A NUL-terminated string; GT_EIO if it is not mapped or does not end within size. */
int gt_process_read_string(const struct gt_process *process, uint64_t address, char *text,
			   size_t size);

/* Reads the mappings of the process as they are now; gt_maps_free frees them. GT_EGONE, GT_EPERM, GT_EIO, GT_ENOMEM. */
int gt_process_maps(pid_t pid, struct gt_maps *maps, struct gt_message *message);
void gt_maps_free(struct gt_maps *maps);
/* The mapping that address lies in, NULL = none. */
const struct gt_map *gt_maps_find(const struct gt_maps *maps, uint64_t address);

/* An entry of the auxiliary vector (getauxval(3)), 0 = not there. */
uint64_t gt_process_auxv(pid_t pid, uint64_t type);

/* When it was started: clock ticks since the system's start (proc(5)); 0 = it has ended. */
uint64_t gt_process_start_time(pid_t pid);

/* Whether the process has ended (or is a zombie with no thread left). */
bool gt_process_ended(const struct gt_process *process);
/* Whether it has ended, or is about to: its memory is gone already, although its end cannot be waited for yet. Ask it
 * after something failed. */
bool gt_process_is_ending(const struct gt_process *process);

#endif
