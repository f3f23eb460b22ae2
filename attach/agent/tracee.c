/* SPDX-License-Identifier: MIT */
/*
 * Traced processes: see tracee.h. Under the session's lock; the ptrace calls from the thread that
 * called.
 */
#define _GNU_SOURCE
#include "attach/agent/tracee.h"
#include "attach/agent/world.h"
#include "attach/agent/copying.h"
#include "attach/agent/patch.h"
#include "attach/agent/probes.h"
#include "attach/agent/syscalls.h"
#include "attach/plan/rules.h"
#include "attach/process/seccomp.h"
#include "attach/process/tracer.h"
#include "attach/agent/traps.h"
#include "attach/agent/values.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* Room in a region that objects to come can join: stubs, and bytes of moved code for their hooks.
 * */
#define JOIN_STUBS	 4096u
#define JOIN_STUBS_LARGE 131072u
#define JOIN_MOVED	 65536u
#define HANDS_LIMIT_MS	 5000
/* Moved code of a function is 40 bytes on the average; room is reserved, not used. */
#define MOVED_EACH 96u
/* Stub, arguments, moved code and its places of a probe. */
#define PROBE_EACH 512u
/* Room for dynamic probes that come later: a thousand and more. */
#define DYNAMIC_BYTES (1u << 20)

/* A thread that maps things for us, stopped at the first need. */
struct hands {
	struct gt_tracee *tracee;
	pid_t tid;    /* 0: whichever can be had */
	bool stopped; /* by us */
	bool begun;
	struct gt_remote remote;
};

static int take_hands(struct hands *hands, struct gt_message *message)
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

static int drop_hands(struct hands *hands, int error, struct gt_message *message)
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

/* Whether functions of it are patched, or may be; told to the object. */
static bool is_patched(struct gt_tracee_object *object, const struct gt_selection *selection)
{
	object->left_out = !is_traced(object, selection);
	return !object->left_out || object->entry_sites || object->return_sites;
}

bool gt_tracee_can_trace(struct gt_tracee *tracee, const struct gt_tracee_object *object,
			 uint32_t index, const struct gt_selection *selection)
{
	const struct gt_plan_entry *entry;

	(void)tracee;
	if (object->region < 0 || object->gone || !is_traced(object, selection) ||
	    object->states[index] == GT_FUNCTION_FOREIGN ||
	    !gt_selection_takes(selection, object->file, index) ||
	    gt_catalog_plan(object->file, index, &entry, NULL))
		return false;
	return gt_selection_takes_entry(selection, object->file, entry);
}

static void free_object(struct gt_tracee_object *object)
{
	free(object->states);
	free(object->roots);
	free(object->moved);
	free(object->noted);
	free(object->probes);
	free(object->calls);
	free(object->entry_sites);
	free(object->return_sites);
	free(object->values);
	free(object);
}

static struct gt_tracee_object *new_object(struct gt_tracee *tracee, struct gt_catalog_file *file,
					   uint64_t bias)
{
	struct gt_tracee_object *object;
	int i;

	if (tracee->object_count == tracee->object_room) {
		size_t room = tracee->object_room ? tracee->object_room * 2 : 16;
		void *objects = realloc(tracee->objects, room * sizeof(*tracee->objects));

		if (!objects)
			return NULL;
		tracee->objects = objects;
		tracee->object_room = room;
	}
	object = calloc(1, sizeof(*object));
	if (!object)
		return NULL;
	object->file = file;
	object->bias = bias;
	object->region = -1;
	object->states = calloc(file->function_count + 1, 1);
	object->roots = calloc(file->function_count + 1, sizeof(*object->roots));
	object->moved = calloc(file->function_count + 1, sizeof(*object->moved));
	object->noted = calloc(file->function_count + 1, sizeof(*object->noted));
	object->probes = calloc(file->probe_count + 1, sizeof(*object->probes));
	object->probe_count = file->probe_count;
	for (i = 0; i < GT_HOOKS_MAX; i++)
		object->hook_sites[i] = -1;
	if (!object->states || !object->roots || !object->moved || !object->noted ||
	    !object->probes) {
		free_object(object);
		return NULL;
	}
	tracee->objects[tracee->object_count++] = object;
	return object;
}

/* Where the loader put the file, by one of its executable mappings. Segments may share a page of
 * the file: only those that are executable are looked at. */
static bool bias_of_map(const struct gt_object *object, const struct gt_map *map, uint64_t *bias)
{
	uint32_t i;

	for (i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);
		uint64_t page = segment->file_offset & ~4095ull;

		if (!segment->execute || map->offset < page ||
		    map->offset >= segment->file_offset + segment->file_bytes)
			continue;
		*bias = map->start - (segment->address - segment->file_offset + map->offset);
		return true;
	}
	return false;
}

/* The object whose code this mapping is, made or revived if it is new. *fresh: it is. */
static int object_of_map(struct gt_tracee *tracee, struct gt_catalog *catalog,
			 const struct gt_map *map, struct gt_tracee_object **found, bool *fresh,
			 struct gt_message *message)
{
	struct gt_catalog_file *file;
	uint64_t bias;
	size_t i;
	int error;

	*found = NULL;
	*fresh = false;
	for (i = 0; i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		/* The common case: nothing has changed, and no file is opened. */
		if (!object->gone && map->start >= object->start && map->end <= object->end &&
		    object->file->inode == map->inode &&
		    strcmp(object->file->path, map->path) == 0) {
			*found = object;
			return 0;
		}
	}
	error = gt_catalog_open(catalog, tracee->process.pid, map, &file, message);
	if (error)
		return error == GT_ENOENT ? 0 : error;
	if (!file->object || !bias_of_map(file->object, map, &bias))
		return 0;
	for (i = 0; i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->file != file || object->gone || object->bias != bias)
			continue;
		object->start = map->start < object->start ? map->start : object->start;
		object->end = map->end > object->end ? map->end : object->end;
		*found = object;
		return 0;
	}
	for (i = 0; i < tracee->object_count && !*found; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->file != file || !object->gone)
			continue;
		/* Loaded again: its slots are its own, so its numbers are too. */
		object->gone = false;
		object->bias = bias;
		memset(object->states, 0, file->function_count);
		gt_probes_come_back(object);
		gt_syscalls_come_back(object);
		object->hooked = false;
		object->resolved = object->entry_only = object->guarded = false;
		*found = object;
	}
	if (!*found)
		*found = new_object(tracee, file, bias);
	if (!*found)
		return gt_fail(message, GT_ENOMEM, "no memory for %s", map->path);
	(*found)->start = map->start;
	(*found)->end = map->end;
	*fresh = true;
	return 0;
}

/* An existing region with room, within reach. -1 = none. */
static int fitting_region(const struct gt_agent *agent, const struct gt_tracee_object *object,
			  uint32_t stubs, uint64_t moved)
{
	uint32_t i;

	for (i = 0; i < agent->region_count; i++) {
		const struct gt_region *region = &agent->regions[i];

		if (region->stub_room - region->stub_used >= stubs &&
		    region->moved_end - region->moved >= moved &&
		    gt_region_reaches(region, object->start, object->end))
			return (int)i;
	}
	return -1;
}

/* Gives the object a region: an old one or, with the thread's help, a new one. */
static int find_region(struct hands *hands, struct gt_tracee_object *object, bool traced,
		       struct gt_catalog *catalog, const struct gt_selection *selection,
		       struct gt_message *message)
{
	struct gt_agent *agent = &hands->tracee->agent;
	uint32_t stubs = traced ? object->file->function_count : 0, room = stubs, first;
	const uint64_t each =
		(gt_selection_takes_unprepared(selection, object->file) || selection->libcalls
			 ? MOVED_EACH
			 : 8) +
		(selection->values ? GT_VALUES_EACH : 0);
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
			room += selection->libraries || selection->library_globs ? JOIN_STUBS_LARGE
										 : JOIN_STUBS;
		first = gt_catalog_take_numbers(catalog, room ? room : 1);
		if (!first)
			return gt_fail(message, GT_ENOSPC, "all function numbers are in use");
		error = take_hands(hands, message);
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
	uint32_t i;
	int error;

	if (!file->function_count)
		return 0;
	error = gt_catalog_add_block(catalog, &block);
	if (error)
		return gt_fail(message, error, "no memory for the functions of %s", file->path);
	if (!sink || !sink->functions)
		return 0;
	functions = calloc(file->function_count, sizeof(*functions));
	if (!functions)
		return gt_fail(message, GT_ENOMEM, "no memory for the functions of %s", file->path);
	for (i = 0; i < file->function_count; i++)
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

	if (!sink || !sink->object)
		return 0;
	bytes = gt_object_build_id(object->file->object, &build_id);
	return sink->object(sink->data, (uint32_t)tracee->process.pid, object->file->path,
			    object->start, object->end, object->bias, build_id, bytes);
}

/* Compares the maps with what is known. *any: there are new objects (object->fresh). */
static int find_objects(struct gt_tracee *tracee, struct gt_catalog *catalog, bool *any,
			struct gt_message *message)
{
	uint64_t entry = gt_process_auxv(tracee->process.pid, AT_ENTRY);
	struct gt_maps maps;
	size_t i;
	int error = gt_process_maps(tracee->process.pid, &maps, message);

	*any = false;
	if (error)
		return error;
	for (i = 0; i < tracee->object_count; i++)
		tracee->objects[i]->seen = tracee->objects[i]->fresh = false;
	for (i = 0; !error && i < maps.count; i++) {
		const struct gt_map *map = &maps.entries[i];
		struct gt_tracee_object *object;
		bool is_fresh;

		if (!map->executable || map->path[0] != '/')
			continue;
		error = object_of_map(tracee, catalog, map, &object, &is_fresh, message);
		if (error || !object)
			continue;
		if (object->file->sets_gs)
			error = gt_fail(message, GT_ENOTSUP,
					"'%s' sets the %%gs register itself (wrgsbase), which "
					"graftrace needs",
					map->path);
		object->seen = true;
		object->fresh = object->fresh || is_fresh;
		*any = *any || is_fresh;
		if (entry >= map->start && entry < map->end)
			object->program = true;
	}
	for (i = 0; !error && i < tracee->object_count; i++)
		if (!tracee->objects[i]->seen)
			tracee->objects[i]->gone = true;
	gt_maps_free(&maps);
	return error;
}

/* Plans what of the new objects will be patched: the long part, with nobody stopped. */
static int plan_objects(struct gt_tracee *tracee, const struct gt_selection *selection)
{
	size_t i;
	int error = 0;

	for (i = 0; !error && i < tracee->object_count; i++) {
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

/* Gives the new objects their regions. */
static int place_objects(struct hands *hands, struct gt_catalog *catalog,
			 const struct gt_selection *selection, struct gt_message *message)
{
	struct gt_tracee *tracee = hands->tracee;
	size_t i;
	int error = 0;

	for (i = 0; !error && i < tracee->object_count; i++) {
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

/* Tells of the new objects and prepares their hooks. */
static int prepare_hooks(struct gt_tracee *tracee, struct gt_catalog *catalog,
			 const struct gt_selection *selection, const struct gt_sink *sink,
			 bool running, struct gt_message *message)
{
	size_t i;
	int error = 0;

	for (i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (!object->fresh)
			continue;
		error = tell_object(tracee, object, sink);
		if (!error && is_traced(object, selection) && object->region >= 0 && !object->told)
			error = tell_functions(tracee, object, catalog, sink, message);
		if (!error && object->region >= 0)
			error = gt_patch_hooks(tracee, object, running, message);
	}
	return error;
}

/* Prepares the patches of new objects, hooks first: those are written before any function, of
 * whichever object, for a host that is killed in between must not leave return slots that no unwinder
 * knows. running: see gt_patch_functions(). */
static int prepare_objects(struct gt_tracee *tracee, struct gt_catalog *catalog,
			   const struct gt_selection *selection, const struct gt_sink *sink,
			   bool running, struct gt_message *message)
{
	size_t i;
	int error = prepare_hooks(tracee, catalog, selection, sink, running, message);

	for (i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (!object->fresh)
			continue;
		error = gt_probes_tell(object, sink);
		if (!error)
			error = gt_probes_patch(tracee, object, selection, running, message);
		if (!error)
			error = gt_syscalls_patch(tracee, object, selection, running, message);
		/* What is hooked is not traced: its bytes are not its own any more. */
		if (!error && is_patched(object, selection) && object->region >= 0)
			error = gt_patch_functions(tracee, object, selection, running, message);
		if (!error)
			error = gt_values_tell(tracee, object, sink);
		if (!error && selection->values)
			error = gt_values_tell_constants(tracee, object);
		object->fresh = false;
	}
	return error;
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
	size_t i;

	for (i = 0; i < tracee->object_count; i++) {
		const struct gt_catalog_file *file = tracee->objects[i]->file;
		const char *reason =
			tracee->objects[i]->program ? gt_rule_refused(file->object) : NULL;

		if (reason)
			return gt_fail(message, GT_ENOTSUP, "'%s' %s", file->path, reason);
	}
	return 0;
}

/* System calls are about to be taken. tid: stopped. */
static void check_ties(struct gt_tracee *tracee, pid_t tid)
{
	tracee->no_syscalls = gt_seccomp_ties_places(tracee->process.pid, tid);
	tracee->syscalls = true;
}

int gt_tracee_begin(struct gt_tracee *tracee, pid_t tid, const struct gt_arena *arena,
		    struct gt_catalog *catalog, const struct gt_selection *selection,
		    uint64_t tsc_per_ms, const struct gt_sink *sink, struct gt_message *message)
{
	struct hands hands = { .tracee = tracee, .tid = tid };
	bool any;
	int error;

	tracee->process.stopped = tid;
	gt_edits_clear(&tracee->edits);
	error = find_objects(tracee, catalog, &any, message);
	gt_copying_find(tracee, selection);
	if (!error)
		error = refuse(tracee, message);
	if (!error)
		error = gt_seccomp_check_image(tracee->process.pid, tid, message);
	if (!error)
		error = take_hands(&hands, message);
	if (!error && selection->syscalls)
		check_ties(tracee, tid);
	if (!error)
		error = gt_inject_agent(&hands.remote, arena, tsc_per_ms, &tracee->agent, message);
	if (!error) {
		tracee->has_agent = true;
		error = place_objects(&hands, catalog, selection, message);
	}
	if (!error)
		error = prepare_objects(tracee, catalog, selection, sink, false, message);
	if (!error)
		error = apply(tracee, message);
	return drop_hands(&hands, error, message);
}

/* The new objects' code may run by now. */
static int take_running(struct gt_tracee *tracee, struct gt_catalog *catalog,
			const struct gt_selection *selection, const struct gt_sink *sink,
			struct gt_message *message)
{
	struct hands hands = { .tracee = tracee };
	int error = plan_objects(tracee, selection);

	if (error)
		return gt_fail(message, error, "no memory to plan process %d",
			       (int)tracee->process.pid);
	error = drop_hands(&hands, place_objects(&hands, catalog, selection, message), message);
	if (!error)
		error = prepare_objects(tracee, catalog, selection, sink, true, message);
	if (!error)
		error = gt_tracee_apply(tracee, message);
	return error;
}

static int inject_running(struct gt_tracee *tracee, const struct gt_arena *arena,
			  struct gt_catalog *catalog, const struct gt_selection *selection,
			  uint64_t tsc_per_ms, struct gt_message *message)
{
	struct hands hands = { .tracee = tracee };
	int error;

	error = take_hands(&hands, message);
	if (!error)
		error = gt_world_check_gs(&tracee->process, hands.remote.saved.gs_base, message);
	if (!error) {
		tracee->has_agent = true; /* or a part of it: it is taken out in any case */
		if (selection->syscalls)
			check_ties(tracee, hands.tid);
		error = gt_inject_agent(&hands.remote, arena, tsc_per_ms, &tracee->agent, message);
	}
	if (!error)
		error = place_objects(&hands, catalog, selection, message);
	return drop_hands(&hands, error, message);
}

/* Of all traced objects, as the selection wants them now. words: only what these name, NULL: all.
 */
static int patch_all(struct gt_tracee *tracee, const struct gt_selection *selection,
		     const char *const *words, size_t count, struct gt_message *message)
{
	size_t i;
	int error = 0;

	gt_edits_clear(&tracee->edits);
	for (i = 0; !error && i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (!words)
			error = gt_probes_patch(tracee, object, selection, true, message);
		if (!words && !error)
			error = gt_syscalls_patch(tracee, object, selection, true, message);
		if (error || !is_patched(object, selection))
			continue;
		error = words ? gt_patch_named(tracee, object, selection, words, count, message)
			      : gt_patch_functions(tracee, object, selection, true, message);
	}
	return error ? error : gt_tracee_apply(tracee, message);
}

/* --breakpoints: those that were left out until everything that they need is there. */
static int take_breakpoints(struct gt_tracee *tracee, const struct gt_selection *selection,
			    struct gt_message *message)
{
	bool needed = false;
	size_t i;
	uint32_t index;

	if (!selection->breakpoints || tracee->traps)
		return 0;
	for (i = 0; i < tracee->object_count && !needed; i++) {
		const struct gt_catalog_file *file = tracee->objects[i]->file;

		needed = gt_probes_need_traps(tracee->objects[i], selection);
		for (index = 0; index < file->function_count && !needed; index++)
			needed = file->planned[index] &&
				 file->entries[index].way == GT_PLAN_BREAKPOINT;
	}
	if (needed)
		gt_traps_begin(tracee);
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
	int error = find_objects(tracee, catalog, &any, message), again;

	gt_copying_find(tracee, selection);
	if (!error)
		error = plan_objects(tracee, selection);
	if (!error)
		error = inject_running(tracee, arena, catalog, selection, tsc_per_ms, message);
	if (!error)
		error = prepare_objects(tracee, catalog, selection, sink, true, message);
	if (!error) {
		tracee->entering = true;
		error = gt_tracee_apply(tracee, message);
		tracee->entering = false;
	}
	/* What was loaded while we planned; from now on the agent tells. */
	for (again = 0; !error && again < 8; again++) {
		error = find_objects(tracee, catalog, &any, message);
		if (error || !any)
			break;
		copies = gt_copying_find(tracee, selection);
		error = take_running(tracee, catalog, selection, sink, message);
		if (!error && copies)
			error = stop_taking_slots(tracee, selection, 0, message);
	}
	return error ? error : take_breakpoints(tracee, selection, message);
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
	struct hands hands = { .tracee = tracee, .tid = work->tid };
	bool copies = gt_copying_find(tracee, selection);
	int error;

	/* Stopped, it cannot give up waiting and run into code that is being written. */
	error = take_hands(&hands, message);
	if (!error && !waits_for(work)) {
		error = drop_hands(&hands, 0, message);
		if (!error)
			error = take_running(tracee, catalog, selection, sink, message);
		if (!error && copies)
			error = stop_taking_slots(tracee, selection, 0, message);
		return error ? error : take_breakpoints(tracee, selection, message);
	}
	if (!error)
		error = place_objects(&hands, catalog, selection, message);
	if (!error)
		error = prepare_objects(tracee, catalog, selection, sink, false, message);
	if (!error)
		error = apply(tracee, message);
	error = drop_hands(&hands, error, message);
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
	gt_edits_clear(&tracee->edits);
	error = find_objects(tracee, catalog, &any, message);
	if (error || !any)
		return error;
	return gt_tracer_run(objects_work, &work);
}

struct select_work {
	struct gt_tracee *tracee;
	struct gt_catalog *catalog;
	const struct gt_selection *selection;
	const char *const *words;
	size_t count;
	struct gt_message *message;
};

/* Objects that nothing was to be done with so far, and that a probe was set in. */
static int place_probed(struct gt_tracee *tracee, struct gt_catalog *catalog,
			const struct gt_selection *selection, struct gt_message *message)
{
	struct hands hands = { .tracee = tracee };
	size_t i;
	int error = 0;

	if (selection->syscalls && !tracee->syscalls) {
		error = take_hands(&hands, message);
		if (!error)
			check_ties(tracee, hands.tid);
	}
	tracee->syscalls = selection->syscalls;
	for (i = 0; !error && i < tracee->object_count; i++) {
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
	return drop_hands(&hands, error, message);
}

static int select_work(void *data)
{
	const struct select_work *work = data;
	int error = work->words ? 0
				: place_probed(work->tracee, work->catalog, work->selection,
					       work->message);

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
	error = gt_tracer_run(select_work, work);
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

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = malloc(size);

	if (copy)
		memcpy(copy, bytes, size);
	return copy;
}

int gt_tracee_fork(const struct gt_tracee *parent, pid_t pid, struct gt_tracee *child,
		   struct gt_message *message)
{
	size_t i;
	int error;

	*child = (struct gt_tracee){ .agent = parent->agent, .parent = parent->process.pid };
	error = gt_process_open(&child->process, pid, message);
	if (error)
		return error;
	child->has_agent = parent->has_agent;
	child->traps = parent->traps;
	child->copies = parent->copies;
	child->syscalls = parent->syscalls;
	child->no_syscalls = parent->no_syscalls;
	child->objects = calloc(parent->object_count + 1, sizeof(*child->objects));
	if (!child->objects)
		goto no_memory;
	child->object_room = parent->object_count + 1;
	for (i = 0; i < parent->object_count; i++) {
		const struct gt_tracee_object *from = parent->objects[i];
		size_t count = from->file->function_count + 1;
		struct gt_tracee_object *object = copy_of(from, sizeof(*from));

		if (!object)
			goto no_memory;
		object->states = copy_of(from->states, count);
		object->roots = copy_of(from->roots, count * sizeof(*from->roots));
		object->moved = copy_of(from->moved, count * sizeof(*from->moved));
		object->noted = copy_of(from->noted, count * sizeof(*from->noted));
		object->probes =
			copy_of(from->probes, (from->probe_count + 1) * sizeof(*from->probes));
		object->entry_sites =
			from->entry_sites
				? copy_of(from->entry_sites, count * sizeof(*from->entry_sites))
				: NULL;
		object->return_sites =
			from->return_sites
				? copy_of(from->return_sites, count * sizeof(*from->return_sites))
				: NULL;
		if (from->calls)
			object->calls =
				copy_of(from->calls, from->file->call_count * sizeof(*from->calls));
		if (from->values)
			object->values = copy_of(from->values, count * sizeof(*from->values));
		child->objects[child->object_count++] = object;
		if (!object->states || !object->roots || !object->moved || !object->noted ||
		    !object->probes || !object->entry_sites != !from->entry_sites ||
		    !object->return_sites != !from->return_sites ||
		    !object->calls != !from->calls || !object->values != !from->values)
			goto no_memory;
	}
	return 0;
no_memory:
	gt_tracee_fini(child);
	return gt_fail(message, GT_ENOMEM, "no memory for process %d", (int)pid);
}

void gt_tracee_forget(struct gt_tracee *tracee)
{
	size_t i;

	for (i = 0; i < tracee->object_count; i++)
		free_object(tracee->objects[i]);
	free(tracee->objects);
	gt_edits_fini(&tracee->edits);
	tracee->objects = NULL;
	tracee->object_count = tracee->object_room = 0;
	tracee->agent = (struct gt_agent){ 0 };
	tracee->has_agent = false;
	tracee->clean = false;
	tracee->traps = false;
	tracee->no_traps = NULL;
	tracee->syscalls = false;
	tracee->no_syscalls = NULL;
	tracee->copies = GT_REASON_NONE;
}

void gt_tracee_fini(struct gt_tracee *tracee)
{
	gt_tracee_forget(tracee);
	gt_process_close(&tracee->process);
}
