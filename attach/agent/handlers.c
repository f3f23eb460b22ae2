/* SPDX-License-Identifier: MIT */
/*
 * Signals' handlers: see handlers.h.
 */
#include "attach/agent/handlers.h"
#include "attach/process/proc.h"
#include "attach/process/threads.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define LIMIT_MS 5000

int gt_signal_action(struct gt_remote *remote, uint64_t scratch, int signal,
		     const struct gt_signal_action *set, struct gt_signal_action *get)
{
	const uint64_t arguments[6] = { (uint64_t)signal, set != NULL ? scratch : 0,
					get != NULL ? scratch + sizeof(*set) : 0, 8 };
	int64_t result = -1;
	int error = set != NULL ? gt_process_write(remote->process, scratch, set, sizeof(*set)) : 0;

	if (!error)
		error = gt_remote_call(remote, SYS_rt_sigaction, arguments, &result, NULL);
	if (!error && result)
		error = GT_ENOTSUP;
	if (!error && get != NULL)
		error = gt_process_read(remote->process, scratch + sizeof(*set), get, sizeof(*get));
	return error;
}

uint64_t gt_signals_caught(pid_t pid)
{
	static const char name[] = "\nSigCgt:";
	char text[4096], *at;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid))
		return 0;
	at = strstr(text, name);
	return at != NULL ? strtoull(at + strlen(name), NULL, 16) : 0;
}

int gt_signals_handlers(struct gt_tracee *tracee, uint64_t signals, uint64_t handlers[64],
			struct gt_message *message)
{
	const uint64_t scratch = tracee->agent.image + tracee->agent.header.state_offset +
				 offsetof(struct graftrace_agent_state, traps.scratch);
	struct gt_remote remote;
	int error, ended;
	pid_t tid;

	memset(handlers, 0, 64 * sizeof(*handlers));
	signals &= gt_signals_caught(tracee->process.pid);
	if (!signals)
		return 0;
	error = gt_thread_stop_any(&tracee->process, &tid, LIMIT_MS, message);
	if (error)
		return error;
	tracee->process.stopped = tid;
	error = gt_remote_begin(&remote, &tracee->process, tid, message);
	if (!error) {
		for (int signal = 1; !error && signal <= 64; signal++) {
			struct gt_signal_action action;

			if (!(signals >> (signal - 1) & 1))
				continue;
			error = gt_signal_action(&remote, scratch, signal, NULL, &action);
			if (!error && action.handler > 1 /* SIG_DFL, SIG_IGN */)
				handlers[signal - 1] = action.handler;
		}
		ended = gt_remote_end(&remote, NULL);
		error = error ? error : ended;
	}
	tracee->process.stopped = 0;
	gt_thread_detach(tid);
	return error;
}
