/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are copied: see copying.h. Putting back is the second step of detaching, with the
 * agent staying where it is.
 */
#include "attach/agent/copying.h"
#include "attach/agent/detach_private.h"
#include "attach/plan/rules.h"
#include "attach/agent/world.h"

#include <stdlib.h>
#include <time.h>

#define ROUNDS	 200 /* of a millisecond each */
#define LIMIT_MS 5000

/* Whether functions of any library are traced: these run before the libraries have started. */
static bool takes_libraries(const struct gt_tracee *tracee, const struct gt_selection *selection)
{
	for (size_t i = 0; i < tracee->object_count; i++)
		if (!tracee->objects[i]->program &&
		    gt_selection_takes_file(selection, tracee->objects[i]->file))
			return true;
	return false;
}

bool gt_copying_find(struct gt_tracee *tracee, const struct gt_selection *selection)
{
	for (size_t i = 0; i < tracee->object_count && !tracee->copies; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];

		if (object->fresh)
			tracee->copies = gt_rule_entries_only(object->file->object);
		if (object->fresh && !tracee->copies &&
		    (object->program || takes_libraries(tracee, selection)))
			tracee->copies = gt_rule_checks_mappings(object->file->object);
		if (tracee->copies)
			return true;
	}
	return false;
}

static bool is_ours(const void *data, uint64_t rip)
{
	const struct gt_detach *out = data;

	return rip - out->image < out->header.text_bytes || gt_detach_in_region(out, rip);
}

static int note_frame(void *data, const struct gt_frame_place *frame)
{
	struct gt_detach *out = data;

	(void)frame;
	out->inside = true;
	return 1;
}

/* Whether a thread stands where it may take a slot yet. */
static void look(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	out->inside = false;
	for (size_t i = 0; i < threads->count; i++) {
		struct user_regs_struct registers;

		if (threads->tids[i] == out->waits ||
		    gt_thread_registers(threads->tids[i], &registers))
			continue;
		if (is_ours(out, registers.rip))
			out->inside = true;
		gt_world_thread_frames(out->process, &out->maps, &registers, is_ours, note_frame,
				       out);
	}
}

static int put_back_and_look(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	int error = gt_process_maps(out->process->pid, &out->maps, NULL);

	if (error)
		return error;
	error = gt_detach_put_back(out, threads);
	look(out, threads);
	gt_maps_free(&out->maps);
	return error;
}

/* Frames of slots that are not taken any more go at each thread's next call. */
static void let_look(struct gt_detach *out, const struct gt_stopped_threads *threads)
{
	const uint32_t yes = 1;

	for (size_t i = 0; i < threads->count; i++) {
		struct user_regs_struct registers;
		uint64_t owner;

		if (gt_thread_registers(threads->tids[i], &registers) == 0 && registers.gs_base &&
		    gt_process_read(out->process, registers.gs_base, &owner, sizeof(owner)) == 0 &&
		    owner == registers.fs_base)
			gt_process_write(out->process, registers.gs_base + GRAFTRACE_BLOCK_VERIFY,
					 &yes, sizeof(yes));
	}
}

int gt_copying_put_back(struct gt_tracee *tracee, pid_t waits)
{
	struct gt_detach *out = calloc(1, sizeof(*out));
	int error = out != NULL ? 0 : GT_ENOMEM;

	if (error)
		return error;
	out->process = &tracee->process;
	out->tracee = tracee;
	out->image = tracee->agent.image;
	out->waits = waits;
	for (int round = 0; !error && round < ROUNDS; round++) {
		const struct timespec pause = { 0, 1000000 };
		struct gt_stopped_threads threads;

		error = gt_world_stop(out->process, &threads, LIMIT_MS, NULL);
		if (error)
			break;
		error = gt_detach_read_agent(out, NULL);
		if (error && gt_process_is_ending(out->process))
			error = GT_EGONE;
		if (!error)
			error = gt_detach_read_granules(out);
		out->rounds++;
		if (!error)
			error = put_back_and_look(out, &threads);
		let_look(out, &threads);
		gt_threads_resume(out->process, &threads);
		if (!error && !out->inside && !out->left.count)
			break;
		gt_detach_walk(out);
		nanosleep(&pause, NULL);
	}
	gt_detach_free(out);
	return error;
}
