/* SPDX-License-Identifier: MIT */
/*
 * Processes that a signal killed.
 *
 * How a process that is not our child ended is known from its pidfd (Linux 6.15 and later) once its
 * parent has waited for it, and before that from /proc as a zombie. Older kernels tell only of
 * zombies; a parent that is faster than we are then leaves it unknown, and it counts as no crash.
 */
#define _GNU_SOURCE
#include "attach/process/proc.h"
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* linux/pidfd.h of 6.15: not in every distribution yet. */
struct pidfd_info_64 {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t numbers[11];
	int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_64) == 64, "the first version of struct pidfd_info");
#define PIDFD_GET_INFO_64 _IOWR(0xff, 11, struct pidfd_info_64)
#define PIDFD_INFO_EXITED 8ull

static bool status_of_pidfd(int pidfd, int *status)
{
	struct pidfd_info_64 info = { .mask = PIDFD_INFO_EXITED };

	if (pidfd < 0 || ioctl(pidfd, PIDFD_GET_INFO_64, &info) != 0 ||
	    !(info.mask & PIDFD_INFO_EXITED))
		return false;
	*status = info.exit_code;
	return true;
}

/* The last field but none: proc(5), exit_code. */
static bool status_of_zombie(pid_t pid, int *status)
{
	char text[1024];
	const char *fields = gt_proc_stat(text, sizeof(text), pid, 0);

	if (fields == NULL || fields[0] != 'Z')
		return false;
	fields = strrchr(fields, ' ');
	return fields != NULL && sscanf(fields, "%d", status) == 1;
}

void gt_session_note_end(struct gt_session *session, const struct gt_process *process)
{
	struct gt_session_death death = { .pid = process->pid };
	int status = 0;

	for (uint32_t i = 0; i < session->notes.death_count; i++)
		if (session->notes.deaths[i].pid == process->pid)
			return;
	if (!status_of_pidfd(process->pidfd, &status) && !status_of_zombie(process->pid, &status) &&
	    !status_of_pidfd(process->pidfd, &status))
		return;
	if (!WIFSIGNALED(status) || session->notes.death_count == GT_SESSION_DEATHS)
		return;
	death.signal = WTERMSIG(status);
	session->notes.deaths[session->notes.death_count++] = death;
}

uint32_t gt_session_deaths(struct gt_session *session, struct gt_session_death *deaths,
			   uint32_t room)
{
	uint32_t count;

	pthread_mutex_lock(&session->lock);
	count = session->notes.death_count < room ? session->notes.death_count : room;
	memcpy(deaths, session->notes.deaths, count * sizeof(*deaths));
	pthread_mutex_unlock(&session->lock);
	return count;
}

bool gt_signal_is_crash(int signal)
{
	switch (signal) {
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
	case SIGSEGV:
	case SIGSYS:
	case SIGTRAP:
		return true;
	default:
		return false;
	}
}
