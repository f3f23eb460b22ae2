/* SPDX-License-Identifier: MIT */
/*
 * What a process needs before its code is changed: plans of its objects, regions for stubs and moved
 * code, the patches themselves as edits (patch.h, probes.h, syscalls.h), and the thread that maps memory
 * for it.
 */
#include "attach/agent/patch.h"
#include "attach/agent/probes.h"
#include "attach/agent/suspended.h"
#include "attach/agent/syscalls.h"
#include "attach/agent/tracee_private.h"
#include "attach/agent/unwinders.h"
#include "attach/agent/values.h"
#include "attach/process/seccomp.h"

#include <stdlib.h>

/* Room in a region that objects to come can join: stubs, and bytes of moved code for their hooks.
 * */
#define JOIN_STUBS	 4096u
#define JOIN_STUBS_LARGE 131072u
#define JOIN_MOVED	 65536u
#define HANDS_LIMIT_MS	 5000
/* Moved code of a function is 40 bytes on the average; room is reserved, not used. */
#define MOVED_EACH 96u
/* Stub, arguments, straight line, moved code and its places of a probe. */
#define PROBE_EACH 1536u
/* Room for dynamic probes that come later: a thousand and more. */
#define DYNAMIC_BYTES (1u << 20)

int gt_hands_take(struct gt_hands *hands, struct gt_message *message)
{
	int error;

	if (hands->begun)
		return 0;
	if (!hands->stopped && (!hands->tid || hands->tracee->process.stopped != hands->tid)) {
		error = hands->tid ? gt_thread_stop(hands->tid, 0, message)
				   : gt_thread_stop_any(&hands->tracee->process, &hands->tid,
							HANDS_LIMIT_MS, message);
		if (error)
			return error;
		hands->stopped = true;
		hands->tracee->process.stopped = hands->tid;
	}
	error = gt_remote_begin(&hands->remote, &hands->tracee->process, hands->tid, message);
	if (!error)
		hands->begun = true;
	return error;
}

int gt_hands_drop(struct gt_hands *hands, int error, struct gt_message *message)
{
	if (hands->begun) {
		int ended = gt_remote_end(&hands->remote, error ? NULL : message);

		error = error ? error : ended;
	}
	if (hands->stopped) {
		hands->tracee->process.stopped = 0;
		gt_thread_detach(hands->tid);
	}
	return error;
}

/* Whether this host traces functions of the file at all. */
static bool is_traced(const struct gt_tracee_object *object, const struct gt_selection *selection)
{
	return object->program || gt_selection_takes_file(selection, object->file);
}

/* Whether its functions get stubs: they may be traced, or their returns are probed. */
static bool needs_stubs(const struct gt_tracee_object *object, const struct gt_selection *selection)
{
	return is_traced(object, selection) || gt_probes_want_returns(object->file, selection);
}

bool gt_tracee_is_patched(struct gt_tracee_object *object, const struct gt_selection *selection)
{
	object->left_out = !is_traced(object, selection);
	return !object->left_out || object->entry_sites != NULL || object->return_sites != NULL;
}

bool gt_tracee_can_trace(const struct gt_tracee_object *object, uint32_t index,
			 const struct gt_selection *selection)
{
	const struct gt_plan_entry *entry;

	if (object->region < 0 || object->gone || !is_traced(object, selection) ||
	    object->states[index] == GT_FUNCTION_FOREIGN ||
	    !gt_selection_takes(selection, object->file, index) ||
	    gt_catalog_plan(object->file, index, &entry, NULL))
		return false;
	return gt_selection_takes_entry(selection, object->file, entry);
}

void gt_tracee_check_ties(struct gt_tracee *tracee, pid_t tid)
{
	tracee->no_syscalls = gt_seccomp_ties_places(tracee->process.pid, tid);
	tracee->syscalls = true;
}

/* An existing region with room, within reach. -1 = none. */
static int fitting_region(const struct gt_agent *agent, const struct gt_tracee_object *object,
			  uint32_t stubs, uint64_t moved)
{
	for (uint32_t i = 0; i < agent->region_count; i++) {
		const struct gt_region *region = &agent->regions[i];

		if (region->stub_room - region->stub_used >= stubs &&
		    region->moved_end - region->moved >= moved &&
		    gt_region_reaches(region, object->start, object->end))
			return (int)i;
	}
	return -1;
}

/* Gives the object a region: an old one or, with the thread's help, a new one. */
static int find_region(struct gt_hands *hands, struct gt_tracee_object *object, bool traced,
		       struct gt_catalog *catalog, const struct gt_selection *selection,
		       struct gt_message *message)
{
	struct gt_agent *agent = &hands->tracee->agent;
	uint32_t stubs = traced ? object->file->function_count : 0, room = stubs, first;
	const uint64_t each =
		(gt_selection_takes_unprepared(selection, object->file) || selection->libcalls
			 ? MOVED_EACH
			 : 8) +
		(selection->values != NULL ? GT_VALUES_EACH : 0);
	uint64_t moved = 8192 + stubs * each + object->file->probe_count * PROBE_EACH +
			 gt_syscalls_bytes(object->file);
	struct gt_region *region;
	int error;

	if (object->region >= 0 &&
	    gt_region_reaches(&agent->regions[object->region], object->start, object->end))
		return 0; /* revived */
	object->region = fitting_region(agent, object, stubs, moved);
	if (object->region < 0) {
		if (!object->program)
			room += selection->libraries || selection->library_globs != NULL
					? JOIN_STUBS_LARGE
					: JOIN_STUBS;
		first = gt_catalog_take_numbers(catalog, room ? room : 1);
		if (!first)
			return gt_fail(message, GT_ENOSPC, "all function numbers are in use");
		error = gt_hands_take(hands, message);
		if (error)
			return error;
		error = gt_inject_region(&hands->remote, agent, object->start, object->end,
					 room ? room : 1,
					 moved + DYNAMIC_BYTES + JOIN_MOVED + (room - stubs) * each,
					 first, &region, message);
		if (error)
			return error;
		object->region = (int)(region - agent->regions);
	}
	region = &agent->regions[object->region];
	object->slot = region->stub_used;
	object->stubbed = traced;
	region->stub_used += stubs;
	return 0;
}

int gt_tracee_plan_objects(struct gt_tracee *tracee, const struct gt_selection *selection)
{
	int error = 0;

	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (!object->fresh)
			continue;
		gt_catalog_hooks(object->file);
		error = gt_probes_plan(object, selection, NULL);
		if (!error)
			error = gt_syscalls_plan(object->file, selection, NULL);
		if (!error && is_traced(object, selection))
			error = gt_patch_plan(object, selection);
	}
	return error;
}

int gt_tracee_place_objects(struct gt_hands *hands, struct gt_catalog *catalog,
			    const struct gt_selection *selection, struct gt_message *message)
{
	struct gt_tracee *tracee = hands->tracee;
	int error = 0;

	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];
		bool traced;

		if (!object->fresh)
			continue;
		traced = needs_stubs(object, selection);
		object->told = object->region >= 0;
		error = gt_syscalls_plan(object->file, selection, message);
		if (error ||
		    (!traced && gt_catalog_hooks(object->file) == 0 && !object->file->probe_count &&
		     !gt_syscalls_wanted(object->file, selection)))
			continue;
		error = find_region(hands, object, traced, catalog, selection, message);
		if (error == GT_ENOSPC)
			error = 0; /* it stays untraced */
	}
	return error;
}

int gt_tracee_place_probed(struct gt_tracee *tracee, struct gt_catalog *catalog,
			   const struct gt_selection *selection, struct gt_message *message)
{
	struct gt_hands hands = { .tracee = tracee };
	int error = 0;

	if (selection->syscalls && !tracee->syscalls) {
		error = gt_hands_take(&hands, message);
		if (!error)
			gt_tracee_check_ties(tracee, hands.tid);
	}
	tracee->syscalls = selection->syscalls;
	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->region >= 0 || object->gone)
			continue;
		error = gt_syscalls_plan(object->file, selection, message);
		if (error || (!gt_probes_wanted(object->file, selection) &&
			      !gt_syscalls_wanted(object->file, selection)))
			continue;
		error = find_region(&hands, object, needs_stubs(object, selection), catalog,
				    selection, message);
		error = error == GT_ENOSPC ? 0 : error;
	}
	return gt_hands_drop(&hands, error, message);
}

static int tell_functions(struct gt_tracee *tracee, struct gt_tracee_object *object,
			  struct gt_catalog *catalog, const struct gt_sink *sink,
			  struct gt_message *message)
{
	struct gt_catalog_file *file = object->file;
	struct gt_catalog_block block = {
		.file = file,
		.first = tracee->agent.regions[object->region].first_number + object->slot,
		.count = file->function_count,
		.pid = tracee->process.pid,
		.bias = object->bias,
		.start = object->start,
		.end = object->end,
	};
	struct gt_function *functions;
	int error;

	if (!file->function_count)
		return 0;
	error = gt_catalog_add_block(catalog, &block);
	if (error)
		return gt_fail(message, error, "no memory for the functions of %s", file->path);
	if (sink == NULL || sink->functions == NULL)
		return 0;
	functions = calloc(file->function_count, sizeof(*functions));
	if (functions == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for the functions of %s", file->path);
	for (uint32_t i = 0; i < file->function_count; i++)
		gt_catalog_describe(file, i, object->bias, &functions[i]);
	error = sink->functions(sink->data, (uint32_t)tracee->process.pid, block.first, functions,
				file->function_count);
	free(functions);
	return error;
}

static int tell_object(struct gt_tracee *tracee, const struct gt_tracee_object *object,
		       const struct gt_sink *sink)
{
	const uint8_t *build_id = NULL;
	uint32_t bytes;

	if (sink == NULL || sink->object == NULL)
		return 0;
	bytes = gt_object_build_id(object->file->object, &build_id);
	return sink->object(sink->data, (uint32_t)tracee->process.pid, object->file->path,
			    object->start, object->end, object->bias, build_id, bytes);
}

/* Tells of the new objects and prepares their hooks. */
static int prepare_hooks(struct gt_tracee *tracee, struct gt_catalog *catalog,
			 const struct gt_selection *selection, const struct gt_sink *sink,
			 bool running, struct gt_message *message)
{
	int error = 0;

	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (!object->fresh)
			continue;
		error = tell_object(tracee, object, sink);
		if (!error && is_traced(object, selection) && object->region >= 0 && !object->told)
			error = tell_functions(tracee, object, catalog, sink, message);
		if (!error && object->region >= 0)
			error = gt_patch_hooks(tracee, object, running, message);
	}
	/* What a later host has to know before it takes out what is put in now. */
	if (!error)
		error = gt_unwinders_tell(tracee);
	if (!error && gt_suspended_known(tracee))
		error = gt_inject_suspends(&tracee->process, &tracee->agent);
	return error;
}

/* Prepares the patches of new objects, hooks first: those are written before any function, of
 * whichever object, for a host that is killed in between must not leave return slots that no unwinder
 * knows. running: see gt_patch_functions(). */
int gt_tracee_prepare_objects(struct gt_tracee *tracee, struct gt_catalog *catalog,
			      const struct gt_selection *selection, const struct gt_sink *sink,
			      bool running, struct gt_message *message)
{
	int error = prepare_hooks(tracee, catalog, selection, sink, running, message);

	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (!object->fresh)
			continue;
		error = gt_probes_tell(object, sink);
		if (!error)
			error = gt_probes_patch(tracee, object, selection, running, message);
		if (!error)
			error = gt_syscalls_patch(tracee, object, selection, running, message);
		/* What is hooked is not traced: its bytes are not its own any more. */
		if (!error && gt_tracee_is_patched(object, selection) && object->region >= 0)
			error = gt_patch_functions(tracee, object, selection, running, message);
		if (!error)
			error = gt_values_tell(tracee, object, sink);
		if (!error && selection->values != NULL)
			error = gt_values_tell_constants(tracee, object);
		object->fresh = false;
	}
	return error;
}
