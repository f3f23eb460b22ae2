/* SPDX-License-Identifier: MIT */
/*
 * What a process's seccomp filters would say to the system calls that are made in its name: asked
 * before the first of them, since the answer may be its death.
 */
#ifndef GT_ATTACH_SECCOMP_H
#define GT_ATTACH_SECCOMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <linux/filter.h>
#include <graftrace/error.h>

/* mode: of /proc/PID/status. Stops a thread of it for a moment. GT_ENOTSUP: a filter forbids a call
 * that is needed; GT_EPERM: this user cannot read the filters. */
int gt_seccomp_check(pid_t pid, int mode, struct gt_message *message);

/* The action (SECCOMP_RET_…) of one filter for a call. SECCOMP_RET_KILL_PROCESS if it is not a
 * filter that the kernel would take. */
uint32_t gt_seccomp_run(const struct sock_filter *filter, size_t count, long number,
			const uint64_t arguments[6]);

#endif
