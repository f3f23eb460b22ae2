/* SPDX-License-Identifier: MIT */
/*
 * PID namespaces (pid_namespaces(7)): in a container a process and its threads have other numbers than outside. The agent
 * knows those of its process's own namespace, the host those of the one that it runs in. Any thread.
 */
#ifndef GT_ATTACH_PID_NAMESPACE_H
#define GT_ATTACH_PID_NAMESPACE_H

#include <stdint.h>
#include <sys/types.h>

/* The PID namespace of a process: its inode; 0: this host may not see it, or the process has ended. */
uint64_t gt_pid_namespace(pid_t pid);

/* The number that thread `tid` of process `pid` has in its own namespace, as gettid(2) says it there; 0: it has ended. */
pid_t gt_pid_inside(pid_t pid, pid_t tid);

/* The same from the text of its /proc/PID/task/TID/status; 0: it does not say (a kernel without namespaces). */
pid_t gt_pid_inside_of_status(const char *status);

/* The thread of process `pid` that has that number in its own namespace; 0: none. */
pid_t gt_pid_of_thread_inside(pid_t pid, pid_t inside);

#endif
