/* SPDX-License-Identifier: MIT */
/*
 * Who may be in a recording. Its processes share memory that each of them writes, and the agent in
 * each reads there: a process that may do more than the one that the recording began with is left
 * untraced. One that may do less (a worker of a server that has dropped its rights, a program that
 * setpriv starts) is traced: it has nothing to win from itself (doc/design/security.md).
 */
#define _GNU_SOURCE
#include "attach/session/session_private.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int gt_session_note_credentials(struct gt_session *session, const pid_t *pids, size_t count,
				struct gt_message *message)
{
	struct gt_credentials *most = &session->credentials;
	const char *why;
	size_t i;
	int error = 0;

	for (i = 0; !error && i < count; i++) {
		struct gt_credentials other;

		error = gt_credentials_read(pids[i], &other);
		if (error == GT_EGONE) { /* attaching to it says so */
			error = 0;
			continue;
		}
		if (error)
			return gt_fail(message, error, "no memory for process %d", (int)pids[i]);
		why = i ? gt_credentials_beyond(most, &other) : "it is the first";
		if (why && i && gt_credentials_beyond(&other, most))
			error = gt_fail(message, GT_ENOTSUP,
					"process %d may do other things than process %d (%s): "
					"record them apart",
					(int)pids[i], (int)pids[0], why);
		if (why && !error) {
			struct gt_credentials less = *most;

			*most = other;
			other = less;
		}
		gt_credentials_free(&other);
	}
	return error;
}

bool gt_session_is_beyond(struct gt_session *session, pid_t pid, struct gt_message *why)
{
	char path[64], program[PATH_MAX];
	struct gt_credentials other;
	const char *reason;
	ssize_t bytes;

	if (gt_credentials_read(pid, &other))
		return false; /* it has ended */
	reason = gt_credentials_beyond(&session->credentials, &other);
	gt_credentials_free(&other);
	if (!reason)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	bytes = readlink(path, program, sizeof(program) - 1);
	program[bytes > 0 ? bytes : 0] = 0;
	gt_fail(why, 0,
		"'%.150s' may do more than the program that the recording began with: %s. Recorded "
		"together, each could write into the other's trace; attach to it by itself (-P)",
		program, reason);
	return true;
}
