/* SPDX-License-Identifier: MIT */
/*
 * An agent that makes no system calls: see silence.h.
 *
 * A thread that has looked at the flag before it was set may be about to make a call, and is in the agent's image until
 * it has made it; or a handler has interrupted it there. Straight lines and stubs, in regions, make none.
 */
#include "attach/agent/silence.h"
#include "attach/agent/world.h"
#include "attach/process/tracer.h"

#include <stdlib.h>
#include <time.h>

#define ROUNDS	 20 /* of a millisecond each */
#define LIMIT_MS 100

struct silence {
	struct gt_tracee *tracee;
	pid_t waits;
	struct gt_maps maps; /* of this round */
	pid_t *outside;	     /* threads that were seen there */
	size_t count;
	size_t room;
};

static bool was_outside(const struct silence *silence, pid_t tid)
{
	for (size_t i = 0; i < silence->count; i++)
		if (silence->outside[i] == tid)
			return true;
	return false;
}

/* Whether that code may make system calls. */
static bool is_agent(const void *data, uint64_t rip)
{
	const struct gt_agent *agent = data;
	const uint64_t at = rip - agent->image;

	return at < agent->header.text_bytes &&
	       !(at >= agent->header.turn && at < agent->header.turn_end);
}

static int stop_at_first(void *data, const struct gt_frame_place *frame)
{
	(void)data, (void)frame;
	return 1;
}

/* In its own code, or in handlers that have interrupted no code of the agent. */
static bool is_outside(const struct silence *silence, pid_t tid)
{
	struct gt_agent *agent = &silence->tracee->agent;
	struct user_regs_struct registers;

	if (gt_thread_registers(tid, &registers))
		return gt_process_is_ending(&silence->tracee->process);
	return !is_agent(agent, registers.rip) &&
	       gt_world_thread_frames(&silence->tracee->process, &silence->maps, &registers,
				      is_agent, stop_at_first, agent) == 0;
}

/* 0: all are outside; GT_EBUSY: not yet. A thread that has begun since the flag was set knows nothing else. */
static int look(struct silence *silence, const struct gt_stopped_threads *threads)
{
	int error = 0;

	if (silence->room < silence->count + threads->count) {
		const size_t room = 2 * (silence->count + threads->count);
		pid_t *more = realloc(silence->outside, room * sizeof(*more));

		if (more == NULL)
			return GT_ENOMEM;
		silence->outside = more;
		silence->room = room;
	}
	for (size_t i = 0; i < threads->count; i++) {
		const pid_t tid = threads->tids[i];

		if (tid == silence->waits || was_outside(silence, tid))
			continue;
		if (is_outside(silence, tid))
			silence->outside[silence->count++] = tid;
		else
			error = GT_EBUSY;
	}
	return error;
}

static int stop_and_look(struct silence *silence)
{
	struct gt_process *process = &silence->tracee->process;
	struct gt_stopped_threads threads;
	int error = gt_world_stop(process, &threads, LIMIT_MS, NULL);

	if (error)
		return error;
	error = gt_process_maps(process->pid, &silence->maps, NULL);
	if (!error)
		error = look(silence, &threads);
	gt_maps_free(&silence->maps);
	gt_threads_resume(process, &threads);
	return error;
}

static int work(void *data)
{
	const struct timespec pause = { 0, 1000000 };
	struct silence *silence = data;
	int error = stop_and_look(silence);

	for (int round = 1; error == GT_EBUSY && round < ROUNDS; round++) {
		nanosleep(&pause, NULL);
		error = stop_and_look(silence);
	}
	return error;
}

int gt_silence(struct gt_tracee *tracee, pid_t waits)
{
	struct silence silence = { .tracee = tracee, .waits = waits };
	int error = gt_agent_set_flag(&tracee->process, tracee->agent.image, &tracee->agent.header,
				      offsetof(struct graftrace_agent_state, sandboxed));

	if (!error)
		error = gt_tracer_run(work, &silence);
	free(silence.outside);
	return error;
}
