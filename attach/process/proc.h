/* SPDX-License-Identifier: MIT */
/* Small files of /proc, see proc(5). Any thread. */
#ifndef GT_ATTACH_PROC_H
#define GT_ATTACH_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Up to size - 1 bytes of the file that the format names (its path: up to 95 bytes), with a NUL
 * behind. False: it is not there (any more), or empty. */
__attribute__((format(printf, 3, 4))) bool gt_proc_read(char *text, size_t size, const char *format,
							...);

/* What stands behind the name in `stat` of a process, or of its thread `tid` if that is not 0, from
 * the state on (proc(5), field 3). In `text`, which is best 1024 bytes. NULL: it is gone. */
const char *gt_proc_stat(char *text, size_t size, pid_t pid, pid_t tid);

/* The number in the field `name` of a text of /proc/PID/status; 0: there is no such field. */
long gt_proc_field(const char *text, const char *name);
/* The number of a process's parent; 0: it has none that is seen here, or has ended. */
pid_t gt_proc_parent(pid_t pid);

/* The numbers of a process's threads, or of all processes (pid 0), to be closed by closedir(3).
 * NULL and errno: ENOENT if the process has ended. */
DIR *gt_proc_numbers(pid_t pid);
/* The next of them; 0: no more. Those that come or go meanwhile may be among them or not. */
pid_t gt_proc_next(DIR *numbers);

/* Whether the thread has memory. Threads of the kernel have none, nor has a thread that has ended (which stays listed if
 * it was the first one of its process). */
bool gt_proc_has_memory(pid_t tid);
/* A thread of the process for whose number /proc shows the memory: the first one, unless that has ended. */
pid_t gt_proc_with_memory(pid_t pid);

/* The process number that was given out last; 0: unknown. */
long gt_proc_last_number(void);

/* A namespace of a process ("user", "pid"): its inode; 0: this host may not see it, or the process has ended. */
uint64_t gt_proc_namespace(pid_t pid, const char *name);

/* The inode of a process's socket; 0: the descriptor is none. */
uint64_t gt_proc_socket(pid_t pid, int descriptor);

#endif
