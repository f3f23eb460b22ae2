/* SPDX-License-Identifier: MIT */
/*
 * Traced processes: see tracee.h. The agent goes into a new image or into a process that runs; objects
 * that are loaded, and other selections, change what is patched.
 */
#define _GNU_SOURCE
#include "attach/agent/copying.h"
#include "attach/agent/patch.h"
#include "attach/agent/probes.h"
#include "attach/agent/syscalls.h"
#include "attach/agent/tracee_private.h"
#include "attach/agent/traps.h"
#include "attach/agent/world.h"
#include "attach/plan/rules.h"
#include "attach/process/seccomp.h"
#include "attach/process/tracer.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/ptrace.h>

static uint64_t notes_at(const struct gt_agent *agent)
{
	return agent->image + agent->header.state_offset +
	       offsetof(struct graftrace_agent_state, notes);
}

/* If the process has ended, it cannot be forked any more. */
static void write_notes(struct gt_tracee *tracee, uint64_t number)
{
	tracee->notes = number;
	if (tracee->has_agent && tracee->agent.image)
		gt_process_write(&tracee->process, notes_at(&tracee->agent), &number,
				 sizeof(number));
}

void gt_tracee_change(struct gt_tracee *tracee)
{
	write_notes(tracee, 0);
}

void gt_tracee_settle(struct gt_tracee *tracee)
{
	static atomic_uint_fast64_t last;

	if (tracee->notes == 0)
		write_notes(tracee, atomic_fetch_add(&last, 1) + 1);
}

bool gt_tracee_describes(const struct gt_tracee *tracee, const struct gt_process *process)
{
	const struct gt_agent *agent = &tracee->agent;
	struct graftrace_agent_image header;
	uint64_t notes;

	return tracee->has_agent && tracee->notes != 0 &&
	       gt_process_read(process, agent->image, &header, sizeof(header)) == 0 &&
	       memcmp(&header, &agent->header, sizeof(header)) == 0 &&
	       gt_process_read(process, notes_at(agent), &notes, sizeof(notes)) == 0 &&
	       notes == tracee->notes;
}

static int apply(struct gt_tracee *tracee, struct gt_message *message)
{
	int error = gt_edits_apply(&tracee->edits, &tracee->process);

	if (error)
		gt_fail(message, error, "cannot patch process %d", (int)tracee->process.pid);
	else
		gt_probes_settle(tracee);
	gt_edits_clear(&tracee->edits);
	return error;
}

/* Before anything is put into it. */
static int refuse(const struct gt_tracee *tracee, struct gt_message *message)
{
	for (size_t i = 0; i < tracee->object_count; i++) {
		const struct gt_catalog_file *file = tracee->objects[i]->file;
		const char *reason =
			tracee->objects[i]->program ? gt_rule_refused(file->object) : NULL;

		if (reason != NULL)
			return gt_fail(message, GT_ENOTSUP, "'%s' %s", file->path, reason);
	}
	return 0;
}

int gt_tracee_begin(struct gt_tracee *tracee, pid_t tid, const struct gt_arena *arena,
		    struct gt_catalog *catalog, const struct gt_selection *selection,
		    uint64_t tsc_per_ms, const struct gt_sink *sink, struct gt_message *message)
{
	struct gt_hands hands = { .tracee = tracee, .tid = tid };
	bool any;
	int error;

	tracee->process.stopped = tid;
	tracee->notes = 0;
	gt_edits_clear(&tracee->edits);
	error = gt_tracee_find_objects(tracee, catalog, &any, message);
	gt_copying_find(tracee, selection);
	if (!error)
		error = refuse(tracee, message);
	if (!error)
		error = gt_seccomp_check_image(tracee->process.pid, tid, message);
	if (!error)
		error = gt_hands_take(&hands, message);
	if (!error && selection->syscalls)
		gt_tracee_check_ties(tracee, tid);
	if (!error)
		error = gt_inject_agent(&hands.remote, arena, tsc_per_ms, &tracee->agent, message);
	if (!error) {
		tracee->has_agent = true;
		error = gt_tracee_place_objects(&hands, catalog, selection, message);
	}
	if (!error)
		error = gt_tracee_prepare_objects(tracee, catalog, selection, sink, false, message);
	if (!error)
		error = apply(tracee, message);
	gt_tracee_settle(tracee);
	return gt_hands_drop(&hands, error, message);
}

/* The new objects' code may run by now. */
static int take_running(struct gt_tracee *tracee, struct gt_catalog *catalog,
			const struct gt_selection *selection, const struct gt_sink *sink,
			struct gt_message *message)
{
	struct gt_hands hands = { .tracee = tracee };
	int error = gt_tracee_plan_objects(tracee, selection);

	if (error)
		return gt_fail(message, error, "no memory to plan process %d",
			       (int)tracee->process.pid);
	error = gt_hands_drop(&hands, gt_tracee_place_objects(&hands, catalog, selection, message),
			      message);
	if (!error)
		error = gt_tracee_prepare_objects(tracee, catalog, selection, sink, true, message);
	if (!error)
		error = gt_tracee_apply(tracee, message);
	return error;
}

static int inject_running(struct gt_tracee *tracee, const struct gt_arena *arena,
			  struct gt_catalog *catalog, const struct gt_selection *selection,
			  uint64_t tsc_per_ms, struct gt_message *message)
{
	struct gt_hands hands = { .tracee = tracee };
	int error;

	/* What was asked before, while it ran: it may have entered a sandbox since. */
	error = gt_hands_take(&hands, message);
	if (!error)
		error = gt_seccomp_check_image(tracee->process.pid, hands.tid, message);
	if (!error)
		error = gt_world_check_gs(&tracee->process, hands.remote.saved.gs_base, message);
	if (!error) {
		tracee->has_agent = true; /* or a part of it: it is taken out in any case */
		if (selection->syscalls)
			gt_tracee_check_ties(tracee, hands.tid);
		error = gt_inject_agent(&hands.remote, arena, tsc_per_ms, &tracee->agent, message);
	}
	if (!error)
		error = gt_tracee_place_objects(&hands, catalog, selection, message);
	return gt_hands_drop(&hands, error, message);
}

/* Of all traced objects, as the selection wants them now. words: only what these name, NULL: all.
 */
static int patch_all(struct gt_tracee *tracee, const struct gt_selection *selection,
		     const char *const *words, size_t count, struct gt_message *message)
{
	int error = 0;

	gt_tracee_change(tracee);
	gt_edits_clear(&tracee->edits);
	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (words == NULL)
			error = gt_probes_patch(tracee, object, selection, true, message);
		if (words == NULL && !error)
			error = gt_syscalls_patch(tracee, object, selection, true, message);
		if (error || !gt_tracee_is_patched(object, selection))
			continue;
		error = words != NULL
				? gt_patch_named(tracee, object, selection, words, count, message)
				: gt_patch_functions(tracee, object, selection, true, message);
	}
	return error ? error : gt_tracee_apply(tracee, message);
}

/* --breakpoints: those that were left out until everything that they need is there. */
static int take_breakpoints(struct gt_tracee *tracee, const struct gt_selection *selection,
			    struct gt_message *message)
{
	bool needed = false;

	if (!selection->breakpoints || tracee->traps)
		return 0;
	for (size_t i = 0; i < tracee->object_count && !needed; i++) {
		const struct gt_catalog_file *file = tracee->objects[i]->file;

		needed = gt_probes_need_traps(tracee->objects[i], selection);
		for (uint32_t index = 0; index < file->function_count && !needed; index++)
			needed = file->planned[index] &&
				 file->entries[index].way == GT_PLAN_BREAKPOINT;
	}
	if (needed) {
		gt_tracee_change(tracee);
		gt_traps_begin(tracee);
	}
	return tracee->traps ? patch_all(tracee, selection, NULL, 0, message) : 0;
}

/* A library that copies stacks has been loaded: what is traced already changes, before it runs. */
static int stop_taking_slots(struct gt_tracee *tracee, const struct gt_selection *selection,
			     pid_t waits, struct gt_message *message)
{
	int error = patch_all(tracee, selection, NULL, 0, message);

	return error ? error : gt_copying_put_back(tracee, waits);
}

int gt_tracee_attach(struct gt_tracee *tracee, const struct gt_arena *arena,
		     struct gt_catalog *catalog, const struct gt_selection *selection,
		     uint64_t tsc_per_ms, const struct gt_sink *sink, struct gt_message *message)
{
	bool any = false, copies;
	int error = gt_tracee_find_objects(tracee, catalog, &any, message), again;

	tracee->notes = 0;
	gt_copying_find(tracee, selection);
	if (!error)
		error = gt_tracee_plan_objects(tracee, selection);
	if (!error)
		error = inject_running(tracee, arena, catalog, selection, tsc_per_ms, message);
	if (!error)
		error = gt_tracee_prepare_objects(tracee, catalog, selection, sink, true, message);
	if (!error) {
		tracee->entering = true;
		error = gt_tracee_apply(tracee, message);
		tracee->entering = false;
	}
	/* What was loaded while we planned; from now on the agent tells. */
	for (again = 0; !error && again < 8; again++) {
		gt_tracee_change(tracee);
		error = gt_tracee_find_objects(tracee, catalog, &any, message);
		if (error || !any)
			break;
		copies = gt_copying_find(tracee, selection);
		error = take_running(tracee, catalog, selection, sink, message);
		if (!error && copies)
			error = stop_taking_slots(tracee, selection, 0, message);
	}
	if (!error)
		error = take_breakpoints(tracee, selection, message);
	gt_tracee_settle(tracee);
	return error;
}

struct objects_work {
	struct gt_tracee *tracee;
	pid_t tid;
	uint32_t slot;
	uint32_t ticket;
	struct gt_catalog *catalog;
	const struct gt_selection *selection;
	const struct gt_sink *sink;
	struct gt_message *message;
};

/* The thread, stopped, has not given up: as its own memory says. */
static bool waits_for(const struct objects_work *work)
{
	const struct gt_agent *agent = &work->tracee->agent;
	struct graftrace_letter letter;

	return gt_process_read(&work->tracee->process,
			       agent->image + agent->header.state_offset +
				       offsetof(struct graftrace_agent_state, letters) +
				       work->slot * sizeof(letter),
			       &letter, sizeof(letter)) == 0 &&
	       letter.state == GRAFTRACE_MAIL_POSTED && letter.ticket == work->ticket &&
	       letter.tid == (uint32_t)work->tid;
}

/* There are new ones. */
static int objects_work(void *data)
{
	const struct objects_work *work = data;
	const struct gt_selection *selection = work->selection;
	struct gt_catalog *catalog = work->catalog;
	const struct gt_sink *sink = work->sink;
	struct gt_message *message = work->message;
	struct gt_tracee *tracee = work->tracee;
	struct gt_hands hands = { .tracee = tracee, .tid = work->tid };
	bool copies = gt_copying_find(tracee, selection);
	int error;

	/* Stopped, it cannot give up waiting and run into code that is being written. */
	error = gt_hands_take(&hands, message);
	if (!error && !waits_for(work)) {
		error = gt_hands_drop(&hands, 0, message);
		if (!error)
			error = take_running(tracee, catalog, selection, sink, message);
		if (!error && copies)
			error = stop_taking_slots(tracee, selection, 0, message);
		return error ? error : take_breakpoints(tracee, selection, message);
	}
	if (!error)
		error = gt_tracee_place_objects(&hands, catalog, selection, message);
	if (!error)
		error = gt_tracee_prepare_objects(tracee, catalog, selection, sink, false, message);
	if (!error)
		error = apply(tracee, message);
	error = gt_hands_drop(&hands, error, message);
	if (!error && copies)
		error = stop_taking_slots(tracee, selection, work->tid, message);
	return error ? error : take_breakpoints(tracee, selection, message);
}

int gt_tracee_objects(struct gt_tracee *tracee, pid_t tid, uint32_t slot, uint32_t ticket,
		      struct gt_catalog *catalog, const struct gt_selection *selection,
		      const struct gt_sink *sink, struct gt_message *message)
{
	struct objects_work work = { tracee, tid, slot, ticket, catalog, selection, sink, message };
	bool any;
	int error;

	if (!tracee->has_agent || tracee->clean)
		return 0;
	gt_tracee_change(tracee);
	gt_edits_clear(&tracee->edits);
	error = gt_tracee_find_objects(tracee, catalog, &any, message);
	if (!error && any)
		error = gt_tracer_run(objects_work, &work);
	gt_tracee_settle(tracee);
	return error;
}

struct select_work {
	struct gt_tracee *tracee;
	struct gt_catalog *catalog;
	const struct gt_selection *selection;
	const char *const *words;
	size_t count;
	struct gt_message *message;
};

static int select_work(void *data)
{
	const struct select_work *work = data;
	int error = work->words != NULL ? 0
					: gt_tracee_place_probed(work->tracee, work->catalog,
								 work->selection, work->message);

	if (!error)
		error = patch_all(work->tracee, work->selection, work->words, work->count,
				  work->message);

	return error ? error : take_breakpoints(work->tracee, work->selection, work->message);
}

static int run_select(struct select_work *work)
{
	int error;

	if (!work->tracee->has_agent || work->tracee->clean)
		return 0;
	gt_tracee_change(work->tracee);
	error = gt_tracer_run(select_work, work);
	gt_tracee_settle(work->tracee);
	/* A process that has ended needs no change. */
	return error && gt_process_is_ending(&work->tracee->process) ? 0 : error;
}

int gt_tracee_select(struct gt_tracee *tracee, struct gt_catalog *catalog,
		     const struct gt_selection *selection, struct gt_message *message)
{
	return run_select(&(struct select_work){ tracee, catalog, selection, NULL, 0, message });
}

int gt_tracee_select_words(struct gt_tracee *tracee, const struct gt_selection *selection,
			   const char *const *words, size_t count, struct gt_message *message)
{
	return run_select(&(struct select_work){ tracee, NULL, selection, words, count, message });
}
