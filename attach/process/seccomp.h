/* SPDX-License-Identifier: MIT */
/*
 * What a process's seccomp filters would say to the system calls that are made in its name: asked
 * before the first of them, since the answer may be its death.
 */
#ifndef GT_ATTACH_SECCOMP_H
#define GT_ATTACH_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/filter.h>
#include <graftrace/error.h>

struct gt_process;

/* mode: of /proc/PID/status. Stops a thread of it for a moment. GT_ENOTSUP: a filter forbids a call
 * that is needed; GT_EPERM: this user cannot read the filters. */
int gt_seccomp_check(pid_t pid, int mode, struct gt_message *message);

/* The same for a new image, with its thread tid stopped, if it is in more filters than we are: what
 * forbids us things as well would have come up by now. */
int gt_seccomp_check_image(pid_t pid, pid_t tid, struct gt_message *message);

/* In how many filters a thread is; LONG_MAX: in strict mode. 0: in none, or the kernel does not tell (before 5.9). */
long gt_seccomp_filters(pid_t pid, pid_t tid);

/* Whether a stopped thread, which is in so many filters, may make that call: they are asked if these are more than graftrace
 * itself is in. GT_ENOTSUP: one forbids it; GT_EPERM: this user cannot read them, and they are more than
 * process->filters_allowed; GT_ENOMEM. */
int gt_seccomp_check_call(const struct gt_process *process, pid_t tid, long filters, long number,
			  const uint64_t arguments[6], struct gt_message *message);

/* The name of a system call that tracing needs and one filter forbids, NULL: it forbids none.
 * passing: also those that bring the agent into an image. */
const char *gt_seccomp_forbids(const struct sock_filter *filter, size_t count, bool passing);

/* Whether the filter asks where a call is made from. */
bool gt_seccomp_asks_place(const struct sock_filter *filter, size_t count);

/* Why system calls of the process must be made where they are: a filter asks for that, or may; or calls
 * from elsewhere are dispatched to the process itself (PR_SET_SYSCALL_USER_DISPATCH). Static text;
 * NULL: they may be made anywhere. tid: a thread of it, stopped. */
const char *gt_seccomp_ties_places(pid_t pid, pid_t tid);

/* The action (SECCOMP_RET_…) of one filter for a call. SECCOMP_RET_KILL_PROCESS if it is not a
 * filter that the kernel would take. */
uint32_t gt_seccomp_run(const struct sock_filter *filter, size_t count, long number,
			const uint64_t arguments[6]);

#endif
