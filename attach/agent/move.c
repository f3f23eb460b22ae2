/* SPDX-License-Identifier: MIT */
/*
 * Moving to another arena: see move.h. For the agent it is as if the process had forked and this were the child: the
 * memory that fork wipes (MADV_WIPEONFORK) is wiped, so the thread has no block and no stream any more, and the next
 * traced call makes them anew and tells of it. What survives a fork survives this too: open calls and their return
 * addresses. A fork's child begins where the program called fork, which is outside of the agent; so the thread must
 * stand outside, too, and be the only one: a child has no other.
 *
 * A fork in a signal's handler may come in the midst of a straight line, which then fills the place that it has
 * reserved (hot.S, A and W): the child fills its parent's place with the very word of its parent. In another arena
 * that place is another process's. So no handler may be on its way back to the agent.
 *
 * Arenas are laid out alike, and the new one stands at the same addresses. What the host alone writes is the same
 * memory and stays, but for the answers.
 */
#define _GNU_SOURCE
#include "attach/agent/move.h"
#include "attach/agent/world.h"
#include "attach/process/proc.h"
#include "attach/process/seccomp.h"
#include "attach/process/tracer.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

struct move {
	struct gt_tracee *tracee;
	const struct gt_arena *arena;
	void (*before_it_goes_on)(void *data);
	void *data;
	struct gt_message *message;
};

static uint64_t state_at(const struct gt_agent *agent)
{
	return agent->image + agent->header.state_offset;
}

/* Within code that keeps addresses of the arena in registers. Stubs and moved code do not. */
static bool is_inside(const struct gt_agent *agent, uint64_t rip)
{
	if (rip - agent->image < agent->header.image_bytes)
		return true;
	for (uint32_t i = 0; i < agent->region_count; i++)
		if (rip - agent->regions[i].start < GRAFTRACE_REGION_STUBS_OFFSET)
			return true;
	return false;
}

static bool is_inside_of(const void *data, uint64_t rip)
{
	return is_inside(data, rip);
}

static int return_busy(void *data, const struct gt_frame_place *frame)
{
	(void)data;
	(void)frame;
	return GT_EAGAIN;
}

/* GT_EAGAIN: a signal has interrupted the agent, and its handler still runs. */
static int check_handlers(const struct gt_tracee *tracee, const struct user_regs_struct *registers)
{
	struct gt_maps maps;
	int error = gt_process_maps(tracee->process.pid, &maps, NULL);

	if (error)
		return error;
	error = gt_world_thread_frames(&tracee->process, &maps, registers, is_inside_of,
				       return_busy, (void *)&tracee->agent);
	gt_maps_free(&maps);
	return error;
}

/* 0: its only thread stands outside. */
static int check_thread(const struct move *move, const struct gt_stopped_threads *threads)
{
	const struct gt_tracee *tracee = move->tracee;
	struct user_regs_struct registers;
	uint32_t called_out = 0, looking = 0;
	int error;

	if (threads->count != 1)
		return gt_fail(move->message, GT_ENOTSUP, "it has several threads");
	if (threads->late[0])
		return GT_EBUSY;
	error = gt_thread_registers(threads->tids[0], &registers);
	if (error)
		return error;
	error = gt_process_read(&tracee->process,
				state_at(&tracee->agent) +
					offsetof(struct graftrace_agent_state, called_out),
				&called_out, sizeof(called_out));
	if (!error)
		error = gt_process_read(&tracee->process,
					state_at(&tracee->agent) +
						offsetof(struct graftrace_agent_state, looking),
					&looking, sizeof(looking));
	if (error)
		return error;
	if (called_out || looking || is_inside(&tracee->agent, registers.rip) ||
	    (gt_thread_restarts(&registers) && is_inside(&tracee->agent, registers.rip - 2)))
		return GT_EAGAIN;
	return check_handlers(tracee, &registers);
}

/* As fork does. The blocks, then the mark: in between the thread is one that has none yet. */
static int wipe(struct gt_tracee *tracee)
{
	const struct gt_agent *agent = &tracee->agent;
	uint64_t chunks[GRAFTRACE_BLOCK_CHUNKS];
	const size_t bytes = GRAFTRACE_BLOCKS * GRAFTRACE_BLOCK_BYTES;
	void *zeroes = calloc(1, bytes);
	int error =
		zeroes != NULL
			? gt_process_read(&tracee->process,
					  state_at(agent) +
						  offsetof(struct graftrace_agent_state, blocks),
					  chunks, sizeof(chunks))
			: GT_ENOMEM;

	for (size_t i = 0; !error && i < GRAFTRACE_BLOCK_CHUNKS && chunks[i]; i++)
		error = gt_process_write(&tracee->process, chunks[i], zeroes, bytes);
	if (!error)
		error = gt_process_write(&tracee->process, agent->image + agent->header.fork_offset,
					 zeroes, PAGE);
	free(zeroes);
	return error;
}

static int move_stopped(struct move *move, pid_t tid)
{
	struct gt_remote remote;
	int error = gt_remote_begin(&remote, &move->tracee->process, tid, move->message), ended;

	if (error)
		return error;
	error = wipe(move->tracee);
	if (!error)
		error = gt_inject_other(&remote, move->arena, &move->tracee->agent, move->message);
	if (!error)
		move->before_it_goes_on(move->data);
	ended = gt_remote_end(&remote, NULL);
	return error ? error : ended;
}

static int move_work(void *data)
{
	struct move *move = data;
	struct gt_process *process = &move->tracee->process;
	struct gt_stopped_threads threads = { 0 };
	int error = gt_threads_stop(process, &threads, move->message);

	if (error)
		return error;
	error = check_thread(move, &threads);
	if (!error)
		error = move_stopped(move, threads.tids[0]);
	gt_threads_resume(process, &threads);
	return error;
}

/* GT_EGONE; what gt_seccomp_check() says. */
static int check_sandbox(pid_t pid, struct gt_message *message)
{
	char text[4096];
	int mode;

	if (!gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid))
		return GT_EGONE;
	mode = (int)gt_proc_field(text, "Seccomp");
	return mode ? gt_seccomp_check(pid, mode, message) : 0;
}

bool gt_tracee_is_in_sandbox(const struct gt_tracee *tracee, struct gt_message *why)
{
	struct gt_message reason = { "" };
	const int error = check_sandbox(tracee->process.pid, &reason);

	if (!error || error == GT_EGONE)
		return false;
	gt_fail(why, error,
		"it has changed its credentials and still shares memory with others: %.300s",
		reason.text);
	return true;
}

int gt_tracee_move(struct gt_tracee *tracee, const struct gt_arena *arena,
		   void (*before_it_goes_on)(void *data), void *data, struct gt_message *message)
{
	struct move move = { tracee, arena, before_it_goes_on, data, message };
	const int error = check_sandbox(tracee->process.pid, message);

	return error ? error : gt_tracer_run(move_work, &move);
}
