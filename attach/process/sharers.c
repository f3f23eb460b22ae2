/* SPDX-License-Identifier: MIT */
/*
 * Sharers: see sharers.h. All processes are asked once (kcmp(2)); later only those whose numbers
 * have been given out since, so that a change of what is traced costs next to nothing for it.
 */
#define _GNU_SOURCE
#include "attach/process/sharers.h"
#include "attach/process/proc.h"
#include "attach/process/process.h"

#include <linux/kcmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More new numbers than that: all are asked again. */
#define NEW_MOST 4096

static bool shares(const struct gt_process *process, pid_t holder, pid_t pid)
{
	return pid > 0 && pid != process->pid &&
	       syscall(SYS_kcmp, holder, pid, KCMP_VM, 0, 0) == 0 && gt_proc_has_memory(pid);
}

bool gt_sharers_has(const struct gt_process *process, pid_t pid)
{
	return shares(process, gt_proc_with_memory(process->pid), pid);
}

static bool is_thread(const struct gt_process *process, pid_t pid)
{
	return syscall(SYS_tgkill, process->pid, pid, 0) == 0;
}

bool gt_sharers_is_own(const struct gt_process *process, pid_t tid)
{
	return !process->sharer_count || is_thread(process, tid);
}

static bool note(struct gt_process *process, pid_t pid)
{
	for (uint32_t i = 0; i < process->sharer_count; i++)
		if (process->sharers[i] == pid)
			return false;
	if (process->sharer_count == GT_PROCESS_SHARERS) {
		process->sharers_left_out = true;
		return false;
	}
	process->sharers[process->sharer_count++] = pid;
	return true;
}

static bool look_at_all(struct gt_process *process, pid_t holder)
{
	DIR *processes = gt_proc_numbers(0);
	bool found = false;
	pid_t pid;

	while (processes != NULL && (pid = gt_proc_next(processes))) {
		if (shares(process, holder, pid))
			found = note(process, pid) || found;
	}
	if (processes != NULL)
		closedir(processes);
	return found;
}

bool gt_sharers_look(struct gt_process *process)
{
	long last = gt_proc_last_number(), before = process->last_number, pid;
	const pid_t by = gt_proc_with_memory(process->pid);
	bool found = false;

	/* Who has ended, or executed something else, is none any more. */
	for (uint32_t i = 0; i < process->sharer_count;)
		if (shares(process, by, process->sharers[i]))
			i++;
		else
			process->sharers[i] = process->sharers[--process->sharer_count];
	if (process->sharers_left_out || !before || !last || last < before ||
	    last - before > NEW_MOST) {
		process->sharers_left_out = false;
		found = look_at_all(process, by);
	} else {
		for (pid = before + 1; pid <= last; pid++)
			if (shares(process, by, (pid_t)pid) && !is_thread(process, (pid_t)pid))
				found = note(process, (pid_t)pid) || found;
	}
	process->last_number = last;
	return found;
}
