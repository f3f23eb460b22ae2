/* SPDX-License-Identifier: MIT */
/*
 * Detaching, before A: threads that stand at a jump of ours in the midst of the program's code: at an island,
 * which is padding or the middle of an instruction once the code has its bytes back. They go where the
 * jump leads. So do contexts that a signal interrupted there.
 */
#define _GNU_SOURCE
#include "attach/agent/detach_private.h"
#include "attach/agent/editor.h"
#include "attach/agent/suspended.h"

#include <stdlib.h>
#include <string.h>

#define JUMP	   0xe9
#define JUMP_BYTES 5

struct jump {
	uint64_t at;
	uint64_t to;
};

struct jumps {
	struct gt_process *process;
	struct gt_editor *code;
	struct jump *all; /* by address */
	size_t count;
	size_t room;
};

static int by_place(const void *left, const void *right)
{
	const struct jump *a = left, *b = right;

	return a->at < b->at ? -1 : a->at > b->at;
}

static const struct jump *find(const struct jumps *jumps, uint64_t address)
{
	const struct jump wanted = { address, 0 };

	return jumps->count ? bsearch(&wanted, jumps->all, jumps->count, sizeof(wanted), by_place)
			    : NULL;
}

/* If that is such a jump, and stands there now. */
static int note(void *data, const struct graftrace_patch *patch)
{
	struct jumps *jumps = data;
	const uint8_t *now;
	int32_t distance;

	if (!patch->elsewhere || patch->bytes != JUMP_BYTES || patch->patched[0] != JUMP)
		return 0;
	now = gt_editor_look(jumps->code, patch->address, JUMP_BYTES);
	if (now == NULL || memcmp(now, patch->patched, JUMP_BYTES) != 0)
		return 0;
	if (jumps->count == jumps->room) {
		size_t room = jumps->room ? jumps->room * 2 : 256;
		struct jump *bigger = realloc(jumps->all, room * sizeof(*bigger));

		if (bigger == NULL)
			return GT_ENOMEM;
		jumps->all = bigger;
		jumps->room = room;
	}
	memcpy(&distance, patch->patched + 1, sizeof(distance));
	jumps->all[jumps->count++] =
		(struct jump){ patch->address,
			       patch->address + JUMP_BYTES + (uint64_t)(int64_t)distance };
	return 0;
}

static bool is_jump(const void *data, uint64_t address)
{
	return find(data, address) != NULL;
}

static int lead_frame(void *data, const struct gt_frame_place *frame)
{
	struct jumps *jumps = data;
	const struct jump *jump = find(jumps, frame->rip);

	return gt_process_write(jumps->process, frame->rip_at, &jump->to, sizeof(jump->to));
}

static int lead_thread(struct gt_detach *out, struct jumps *jumps, pid_t tid)
{
	struct user_regs_struct registers;
	const struct jump *jump;
	int error = gt_thread_registers(tid, &registers);

	if (!error) {
		out->elsewhere =
			out->elsewhere || !gt_world_is_own_stack(out->process, &out->maps, tid,
								 &registers, registers.rsp);
		jump = find(jumps, registers.rip);
		error = gt_world_thread_frames(out->process, &out->maps, &registers, is_jump,
					       lead_frame, jumps);
		/* A call that is restarted stands before it, and the jump is where an instruction was. */
		if (!error && jump != NULL && !gt_thread_restarts(&registers)) {
			registers.rip = jump->to;
			error = gt_thread_set_registers(tid, &registers);
		}
	}
	return error == GT_EGONE ? 0 : error;
}

static int find_jumps(const struct gt_detach *out, struct jumps *jumps)
{
	struct graftrace_region page;
	int error = 0;

	*jumps = (struct jumps){ .process = out->process, .code = malloc(sizeof(*jumps->code)) };
	if (jumps->code == NULL)
		return GT_ENOMEM;
	gt_editor_init(jumps->code, out->process);
	for (uint32_t i = 0; !error && i < out->state.region_count; i++)
		if (gt_detach_region(out, i, &page))
			error = gt_detach_each_patch(out, page.journal, page.journal_mains,
						     page.journal_used, note, jumps);
	if (jumps->count)
		qsort(jumps->all, jumps->count, sizeof(*jumps->all), by_place);
	return error;
}

static void free_jumps(struct jumps *jumps)
{
	free(jumps->all);
	free(jumps->code);
}

bool gt_detach_has_jumps(const struct gt_detach *out)
{
	struct jumps jumps;
	const int error = find_jumps(out, &jumps);
	const bool has = error || jumps.count;

	free_jumps(&jumps);
	return has;
}

int gt_detach_leave_jumps(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	struct jumps jumps;
	int error = find_jumps(out, &jumps);

	if (!error && jumps.count) {
		error = gt_process_maps(out->process->pid, &out->maps, NULL);
		for (size_t i = 0; !error && i < threads->count; i++)
			error = lead_thread(out, &jumps, threads->tids[i]);
		if (!error)
			error = gt_suspended_each(out->process, &out->maps, &out->places, threads,
						  out->state.suspends || out->elsewhere, is_jump,
						  lead_frame, &jumps);
		gt_maps_free(&out->maps);
	}
	free_jumps(&jumps);
	return error;
}
