/* SPDX-License-Identifier: MIT */
/* PID namespaces: see pid_namespace.h. */
#include "attach/process/pid_namespace.h"
#include "attach/process/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STATUS_BYTES 8192

uint64_t gt_pid_namespace(pid_t pid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* NSpid: one number for each namespace, from that of /proc to the thread's own. */
pid_t gt_pid_inside_of_status(const char *status)
{
	const char *at = strstr(status, "\nNSpid:");
	pid_t number = 0;
	char *end;

	if (at == NULL)
		return 0;
	at += sizeof("\nNSpid:") - 1;
	while (*at == '\t' || *at == ' ') {
		number = (pid_t)strtol(at, &end, 10);
		if (end == at)
			break;
		at = end;
	}
	return number;
}

pid_t gt_pid_inside(pid_t pid, pid_t tid)
{
	char text[STATUS_BYTES];
	pid_t inside;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid))
		return 0;
	inside = gt_pid_inside_of_status(text);
	return inside != 0 ? inside : tid;
}

static int newest_first(const void *left, const void *right)
{
	pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;

	return a < b ? 1 : -(a > b);
}

/* All threads of the process, those with high numbers first: mostly a new one is looked for. NULL: no memory, none. */
static pid_t *threads_of(pid_t pid, size_t *count)
{
	DIR *numbers = gt_proc_numbers(pid);
	pid_t *tids = NULL, tid;
	size_t room = 0;

	*count = 0;
	while (numbers != NULL && (tid = gt_proc_next(numbers))) {
		if (*count == room) {
			pid_t *grown = realloc(tids, (room = room * 2 + 64) * sizeof(*tids));

			if (grown == NULL)
				break;
			tids = grown;
		}
		tids[(*count)++] = tid;
	}
	if (numbers != NULL)
		closedir(numbers);
	if (tids != NULL)
		qsort(tids, *count, sizeof(*tids), newest_first);
	return tids;
}

pid_t gt_pid_of_thread_inside(pid_t pid, pid_t inside)
{
	size_t count;
	pid_t *tids = threads_of(pid, &count), found = 0;

	for (size_t i = 0; i < count && found == 0; i++)
		if (gt_pid_inside(pid, tids[i]) == inside)
			found = tids[i];
	free(tids);
	return found;
}
