/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints: see traps.h. The order when they come: hooks, then `active`, then the action of
 * SIGTRAP, then a look at every thread (nobody who has the signal blocked is left, and nobody can
 * block it any more), then the first breakpoint.
 */
#define _GNU_SOURCE
#include "attach/agent/traps.h"
#include "attach/agent/handlers.h"
#include "attach/process/proc.h"
#include "attach/process/sharers.h"
#include "attach/plan/rules.h"
#include "attach/agent/world.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRAP_BIT       (1ull << (GRAFTRACE_TRAP_SIGNAL - 1))
#define KERNEL_ONSTACK 0x08000000ull
#define KERNEL_RESTART 0x10000000ull
#define RESTORER       0x04000000ull
#define LIMIT_MS       2000
#define LOOKS	       50 /* threads that are being created have all blocked */
/* From the restart instruction's place in a signal frame to its mask. */
#define FRAME_MASK (304 - 176)

static const struct timespec between_looks = { 0, 10000000 };

static const char not_hooked[] =
	"the C library's functions for signals cannot be watched in this process";
static const char sandboxed[] = "the process runs in a sandbox (seccomp)";
static const char raw_calls[] =
	"a library of the process changes signals by system calls of its own";
static const char blocked[] = "a thread of the process has SIGTRAP blocked";
static const char shared[] = "another process shares its memory (vfork, clone)";
static const char failed[] = "the process's signals cannot be changed";

static uint64_t place_of(const struct gt_tracee *tracee, size_t offset)
{
	return tracee->agent.image + tracee->agent.header.state_offset +
	       offsetof(struct graftrace_agent_state, traps) + offset;
}

/* A line of /proc/PID/task/TID/status; name: "\nSigBlk:". */
static uint64_t status_of(pid_t pid, pid_t tid, const char *name, int base)
{
	char text[4096], *at;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/task/%d/status", (int)pid, (int)tid))
		return 0;
	at = strstr(text, name);
	return at != NULL ? strtoull(at + strlen(name), NULL, base) : 0;
}

/* mov $13 or $14 (rt_sigaction, rt_sigprocmask), %eax, and a syscall soon after. */
static bool has_raw_calls(const struct gt_object *object)
{
	static const uint8_t moves[2][5] = { { 0xb8, 13, 0, 0, 0 }, { 0xb8, 14, 0, 0, 0 } };

	for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);
		const uint8_t *bytes, *at;

		if (!segment->execute)
			continue;
		bytes = gt_object_bytes((struct gt_object *)object, segment->address,
					segment->file_bytes);
		for (uint32_t k = 0; bytes != NULL && k < 2; k++) {
			const uint8_t *end = bytes + segment->file_bytes;

			for (at = bytes; (at = memmem(at, (size_t)(end - at), moves[k], 5)) != NULL;
			     at++)
				if (memmem(at, (size_t)(end - at < 40 ? end - at : 40), "\x0f\x05",
					   2) != NULL)
					return true;
		}
	}
	return false;
}

static bool can_begin(const struct gt_tracee *tracee, const char **why)
{
	bool mask = false, action = false;

	*why = not_hooked;
	for (size_t i = 0; i < tracee->object_count; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];

		for (int hook = 0; hook < object->file->hook_count && !object->gone; hook++) {
			const uint32_t kind = object->file->hooks[hook].kind;

			if (kind < GRAFTRACE_HOOK_SIGMASK && kind != GRAFTRACE_HOOK_SIGACTION)
				continue;
			if (!object->hooked || object->hook_sites[hook] < 0)
				return false;
			mask = mask || kind == GRAFTRACE_HOOK_SIGMASK;
			action = action || kind == GRAFTRACE_HOOK_SIGACTION;
		}
	}
	if (!mask || !action)
		return false;
	*why = sandboxed;
	if (status_of(tracee->process.pid, tracee->process.pid, "\nSeccomp:", 10))
		return false;
	*why = raw_calls;
	for (size_t i = 0; i < tracee->object_count; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];

		if (!object->gone && !gt_object_is_loader(object->file->object) &&
		    !gt_rule_is_libc(object->file->object) && has_raw_calls(object->file->object))
			return false;
	}
	return true;
}

/* Takes SIGTRAP out of the masks of the handlers that there are. */
static int clear_masks(struct gt_tracee *tracee, struct gt_remote *remote, uint64_t *in_masks)
{
	const uint64_t scratch = place_of(tracee, offsetof(struct graftrace_traps, scratch));
	const uint64_t caught = gt_signals_caught(tracee->process.pid) & ~TRAP_BIT;
	int error = 0;

	for (int signal = 1; !error && signal <= 64; signal++) {
		struct gt_signal_action action;

		if (!(caught >> (signal - 1) & 1))
			continue;
		error = gt_signal_action(remote, scratch, signal, NULL, &action);
		if (error || !(action.mask & TRAP_BIT))
			continue;
		action.mask &= ~TRAP_BIT;
		*in_masks |= 1ull << (signal - 1);
		error = gt_signal_action(remote, scratch, signal, &action, NULL);
	}
	return error;
}

static int arm(struct gt_tracee *tracee, struct gt_remote *remote)
{
	const uint64_t scratch = place_of(tracee, offsetof(struct graftrace_traps, scratch));
	struct graftrace_traps traps = { .active = 1 };
	struct gt_signal_action was, ours = { .mask = ~0ull };
	int error;

	error = gt_signal_action(remote, scratch, GRAFTRACE_TRAP_SIGNAL, NULL, &was);
	if (error)
		return error;
	traps.handler = was.handler;
	traps.flags = was.flags;
	traps.restorer = was.restorer;
	traps.mask = was.mask;
	error = clear_masks(tracee, remote, &traps.in_masks);
	if (!error)
		error = gt_process_write(&tracee->process, place_of(tracee, 0), &traps,
					 offsetof(struct graftrace_traps, scratch));
	ours.handler = tracee->agent.image + tracee->agent.header.trap_entry;
	ours.flags = SA_SIGINFO | RESTORER | (was.flags & (KERNEL_ONSTACK | KERNEL_RESTART));
	ours.restorer = was.handler > 1 && was.flags & RESTORER
				? was.restorer
				: tracee->agent.image + tracee->agent.header.trap_restorer;
	if (!error)
		error = gt_signal_action(remote, scratch, GRAFTRACE_TRAP_SIGNAL, &ours, NULL);
	return error;
}

struct look {
	const struct gt_process *process;
	const struct gt_maps *maps;
	bool found;
};

static bool is_code(const void *data, uint64_t rip)
{
	const struct look *look = data;
	const struct gt_map *map = gt_maps_find(look->maps, rip);

	return map != NULL && map->executable;
}

/* A handler that will go back to code with the signal blocked. */
static int look_at_frame(void *data, const struct gt_frame_place *frame)
{
	struct look *look = data;
	uint64_t mask;

	if (gt_process_read(look->process, frame->rip_at + FRAME_MASK, &mask, sizeof(mask)) == 0 &&
	    mask & TRAP_BIT)
		look->found = true;
	return look->found;
}

static bool is_blocked(struct gt_tracee *tracee, const struct gt_maps *maps, pid_t tid)
{
	struct look look = { &tracee->process, maps, false };
	struct user_regs_struct registers;
	uint64_t mask = 0;

	if (ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask) == 0 && mask & TRAP_BIT)
		return true;
	if (status_of(tracee->process.pid, tid, "\nSigBlk:", 16) & TRAP_BIT)
		return true;
	if (gt_thread_registers(tid, &registers))
		return false;
	gt_world_thread_frames(&tracee->process, maps, &registers, is_code, look_at_frame, &look);
	return look.found;
}

/* Nobody is left who has it blocked: NULL. Threads that are being created, or create one, have all
 * signals blocked for a moment, and run the C library's code only. */
static const char *check_threads(struct gt_tracee *tracee)
{
	for (int looks = 0; looks < LOOKS; looks++) {
		struct gt_stopped_threads threads;
		struct gt_maps maps = { 0 };
		bool found = false;

		if (gt_world_stop(&tracee->process, &threads, LIMIT_MS, NULL))
			return failed;
		if (gt_process_maps(tracee->process.pid, &maps, NULL) == 0)
			for (size_t i = 0; i < threads.count && !found; i++)
				found = is_blocked(tracee, &maps, threads.tids[i]);
		gt_maps_free(&maps);
		gt_threads_resume(&tracee->process, &threads);
		if (!found)
			return NULL;
		nanosleep(&between_looks, NULL);
	}
	return blocked;
}

/* Of the process's own: who only shares its memory has signal actions of its own. 0: none is left. */
static pid_t caller_among(const struct gt_tracee *tracee, const struct gt_stopped_threads *threads)
{
	pid_t tid = 0;

	for (size_t i = 0; i < threads->count; i++) {
		struct user_regs_struct registers;

		if (!gt_sharers_is_own(&tracee->process, threads->tids[i]))
			continue;
		/* Rather one that sleeps: see gt_thread_at_rest(). */
		if (!tid || (gt_thread_registers(threads->tids[i], &registers) == 0 &&
			     (long)registers.orig_rax >= 0))
			tid = threads->tids[i];
	}
	return tid;
}

/* Arms, or takes that back, with the world stopped. GT_EAGAIN: not now, a process that shares the memory is there. */
static int change(struct gt_tracee *tracee, bool begin)
{
	struct gt_stopped_threads threads;
	struct gt_remote remote;
	struct graftrace_agent_state *state = calloc(1, sizeof(*state));
	const struct gt_agent *agent = &tracee->agent;
	const uint32_t none = 0;
	pid_t tid;
	int error, ended;

	if (state == NULL)
		return GT_ENOMEM;
	error = gt_world_stop(&tracee->process, &threads, LIMIT_MS, NULL);
	if (error) {
		free(state);
		return error;
	}
	/* A breakpoint would end it. Those that come later inherit the action. */
	error = begin && tracee->process.sharer_count ? GT_EAGAIN : 0;
	tid = caller_among(tracee, &threads);
	if (!error)
		error = tid ? gt_remote_begin(&remote, &tracee->process, tid, NULL) : GT_EGONE;
	if (!error) {
		if (begin)
			error = arm(tracee, &remote);
		else
			error = gt_process_read(&tracee->process,
						agent->image + agent->header.state_offset, state,
						sizeof(*state));
		if (!error && !begin)
			error = gt_traps_leave(&remote, &agent->header, agent->image, state);
		if (!error && !begin)
			error = gt_process_write(&tracee->process, place_of(tracee, 0), &none,
						 sizeof(none));
		ended = gt_remote_end(&remote, NULL);
		error = error ? error : ended;
	}
	gt_threads_resume(&tracee->process, &threads);
	free(state);
	return error;
}

void gt_traps_begin(struct gt_tracee *tracee)
{
	int error;

	if (tracee->traps || tracee->no_traps == blocked || tracee->no_traps == failed)
		return;
	if (!can_begin(tracee, &tracee->no_traps))
		return;
	error = change(tracee, true);
	for (int looks = 0; error == GT_EAGAIN && looks < LOOKS; looks++) {
		nanosleep(&between_looks, NULL);
		error = change(tracee, true);
	}
	tracee->no_traps = error == GT_EAGAIN ? shared : error ? failed : check_threads(tracee);
	if (tracee->no_traps != NULL && error != GT_EAGAIN)
		change(tracee, false);
	tracee->traps = tracee->no_traps == NULL;
}

int gt_traps_note(struct gt_tracee *tracee, uint64_t address, uint64_t stub)
{
	uint32_t i = GRAFTRACE_TRAP_HASH(address), tries;

	for (tries = 0; tries < GRAFTRACE_TRAPS * 3 / 4; tries++) {
		const uint64_t at = place_of(tracee, offsetof(struct graftrace_traps, table)) +
				    (uint64_t)i * 16;
		uint64_t there;
		int error = gt_process_read(&tracee->process, at, &there, sizeof(there));

		if (!error && (there == 0 || there == address)) {
			error = gt_process_write(&tracee->process, at + 8, &stub, sizeof(stub));
			if (!error)
				error = gt_process_write(&tracee->process, at, &address,
							 sizeof(address));
			return error;
		}
		if (error)
			return error;
		i = (i + 1) % GRAFTRACE_TRAPS;
	}
	return GT_ENOSPC;
}

bool gt_traps_is_on_its_way(const struct gt_process *process,
			    const struct graftrace_agent_state *state, pid_t tid)
{
	return state->traps.active && status_of(process->pid, tid, "\nSigPnd:", 16) & TRAP_BIT &&
	       !(status_of(process->pid, tid, "\nSigBlk:", 16) & TRAP_BIT);
}

void gt_traps_leave_threads(const struct gt_process *process,
			    const struct graftrace_agent_state *state,
			    const struct gt_stopped_threads *threads)
{
	for (size_t i = 0; state->traps.active && i < threads->count; i++) {
		const pid_t tid = threads->tids[i];
		struct user_regs_struct registers;
		uint64_t owner, mask;
		uint32_t trap;

		if (gt_thread_registers(tid, &registers) || !registers.gs_base ||
		    gt_process_read(process, registers.gs_base, &owner, sizeof(owner)) ||
		    owner != registers.fs_base ||
		    gt_process_read(process, registers.gs_base + GRAFTRACE_BLOCK_TRAP, &trap,
				    sizeof(trap)) ||
		    !(trap & GRAFTRACE_TRAP_BLOCKED) ||
		    ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(mask), &mask))
			continue;
		mask |= TRAP_BIT;
		ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask);
		if (trap & GRAFTRACE_TRAP_PENDING)
			syscall(SYS_tgkill, process->pid, tid, GRAFTRACE_TRAP_SIGNAL);
	}
}

int gt_traps_leave(struct gt_remote *remote, const struct graftrace_agent_image *header,
		   uint64_t image, const struct graftrace_agent_state *state)
{
	const uint64_t scratch = image + header->state_offset +
				 offsetof(struct graftrace_agent_state, traps) +
				 offsetof(struct graftrace_traps, scratch);
	const struct graftrace_traps *traps = &state->traps;
	struct gt_signal_action action;
	int error;

	if (!traps->active)
		return 0;
	error = gt_signal_action(remote, scratch, GRAFTRACE_TRAP_SIGNAL, NULL, &action);
	if (error)
		return error;
	if (action.handler == image + header->trap_entry) {
		/* The C library's restorer stands in ours, or (never changed) in the program's. */
		if (traps->flags & RESTORER)
			action.restorer = traps->restorer;
		action.handler = traps->handler;
		action.mask = traps->mask;
		action.flags = traps->handler > 1 ? traps->flags | RESTORER : traps->flags;
		if (traps->handler <= 1 && !(traps->flags & RESTORER))
			action.restorer = 0;
		error = gt_signal_action(remote, scratch, GRAFTRACE_TRAP_SIGNAL, &action, NULL);
	}
	for (int signal = 1; !error && signal <= 64; signal++) {
		if (!(traps->in_masks >> (signal - 1) & 1))
			continue;
		error = gt_signal_action(remote, scratch, signal, NULL, &action);
		action.mask |= TRAP_BIT;
		if (!error && action.handler > 1)
			error = gt_signal_action(remote, scratch, signal, &action, NULL);
	}
	return error;
}
