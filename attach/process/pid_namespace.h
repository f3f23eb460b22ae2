/* SPDX-License-Identifier: MIT */
/*
 * PID namespaces (pid_namespaces(7)): in a container a process and its threads have other numbers than outside. The agent
 * knows those of its process's own namespace, the host those of the one that it runs in. Any thread.
 */
#ifndef GT_ATTACH_PID_NAMESPACE_H
#define GT_ATTACH_PID_NAMESPACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The number that thread `tid` of process `pid` has in its own namespace, as gettid(2) says it there; 0: it has ended. */
pid_t gt_pid_inside(pid_t pid, pid_t tid);

/* The same from the text of its /proc/PID/task/TID/status; 0: it does not say (a kernel without namespaces). */
pid_t gt_pid_inside_of_status(const char *status);

/* The numbers of a process's threads, outside and inside, as they were when it was filled last. All zero: none yet. */
struct gt_pid_map {
	struct gt_pid_pair {
		pid_t tid, inside; /* inside 0: to be read again */
	} * pairs;		   /* by tid */
	size_t count;
};

/* Reads which threads process `pid` has, and the inside numbers of those that are new. Without memory the map stays. */
void gt_pid_map_fill(struct gt_pid_map *map, pid_t pid);
/* The thread of process `pid` that has that number inside, and lives; 0: none that the map has. */
pid_t gt_pid_map_find(struct gt_pid_map *map, pid_t pid, pid_t inside);
void gt_pid_map_free(struct gt_pid_map *map);

#endif
