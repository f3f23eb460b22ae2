/* SPDX-License-Identifier: MIT */
/*
 * The objects that a process has mapped: found in its maps, forgotten, copied for a child.
 */
#include "attach/agent/probes.h"
#include "attach/agent/syscalls.h"
#include "attach/agent/tracee_private.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

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

	if (tracee->object_count == tracee->object_room) {
		size_t room = tracee->object_room ? tracee->object_room * 2 : 16;
		void *objects = realloc(tracee->objects, room * sizeof(*tracee->objects));

		if (objects == NULL)
			return NULL;
		tracee->objects = objects;
		tracee->object_room = room;
	}
	object = calloc(1, sizeof(*object));
	if (object == NULL)
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
	for (int i = 0; i < GT_HOOKS_MAX; i++)
		object->hook_sites[i] = -1;
	if (object->states == NULL || object->roots == NULL || object->moved == NULL ||
	    object->noted == NULL || object->probes == NULL) {
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
	for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
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
	int error;

	*found = NULL;
	*fresh = false;
	for (size_t i = 0; i < tracee->object_count; i++) {
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
	if (file->object == NULL || !bias_of_map(file->object, map, &bias))
		return 0;
	for (size_t i = 0; i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->file != file || object->gone || object->bias != bias)
			continue;
		object->start = map->start < object->start ? map->start : object->start;
		object->end = map->end > object->end ? map->end : object->end;
		*found = object;
		return 0;
	}
	for (size_t i = 0; i < tracee->object_count && *found == NULL; i++) {
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
	if (*found == NULL)
		*found = new_object(tracee, file, bias);
	if (*found == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for %s", map->path);
	(*found)->start = map->start;
	(*found)->end = map->end;
	(*found)->inode = map->inode;
	(*found)->device_major = map->device_major;
	(*found)->device_minor = map->device_minor;
	*fresh = true;
	return 0;
}

/* Also while the program has made its code writable instead of executable, to change it itself. */
static bool is_still_there(const struct gt_tracee_object *object, const struct gt_maps *maps)
{
	const struct gt_map *map = gt_maps_find(maps, object->start);
	struct gt_map code;
	uint64_t bias;

	if (map == NULL)
		return false;
	/* Not executable, it may be one mapping with what lies below it. */
	code = *map;
	code.offset += object->start - code.start;
	code.start = object->start;
	return code.inode == object->inode && code.device_major == object->device_major &&
	       code.device_minor == object->device_minor &&
	       bias_of_map(object->file->object, &code, &bias) && bias == object->bias;
}

/* Entries of the journal whose patches lie in the object are none from now on. Where that cannot be, they stay. */
static void cross_out(const struct gt_tracee *tracee, const struct gt_tracee_object *object,
		      uint64_t journal, uint32_t count)
{
	const size_t size = count * sizeof(struct graftrace_patch);
	struct graftrace_patch *patches = malloc(size + 1);
	bool any = false;

	if (patches == NULL || gt_process_read(&tracee->process, journal, patches, size))
		count = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!patches[i].bytes || patches[i].address < object->start ||
		    patches[i].address >= object->end)
			continue;
		patches[i].bytes = 0;
		any = true;
	}
	if (any)
		gt_process_write(&tracee->process, journal, patches, size);
	free(patches);
}

/* Its patches have gone with it. Who leaves the process must not take those of a library that is loaded where it was
 * for them: they may be the same bytes. In anonymous memory there may be a copy of it, patches and all; and of a
 * process that ends no maps are told. */
static void forget_patches(const struct gt_tracee *tracee, const struct gt_tracee_object *object,
			   const struct gt_maps *maps)
{
	const struct gt_map *map = gt_maps_find(maps, object->start);
	const struct gt_region *region;

	if (object->region < 0 || !maps->count || (map != NULL && !map->inode) ||
	    is_still_there(object, maps))
		return;
	region = &tracee->agent.regions[object->region];
	if (object->stubbed)
		cross_out(tracee, object,
			  region->journal + object->slot * sizeof(struct graftrace_patch),
			  object->file->function_count);
	cross_out(tracee, object,
		  region->journal + region->stub_room * sizeof(struct graftrace_patch),
		  region->journal_used - region->stub_room);
}

int gt_tracee_find_objects(struct gt_tracee *tracee, struct gt_catalog *catalog, bool *any,
			   struct gt_message *message)
{
	uint64_t entry = gt_process_auxv(tracee->process.pid, AT_ENTRY);
	struct gt_maps maps;
	int error = gt_process_maps(tracee->process.pid, &maps, message);

	*any = false;
	if (error)
		return error;
	for (size_t i = 0; i < tracee->object_count; i++)
		tracee->objects[i]->seen = tracee->objects[i]->fresh = false;
	for (size_t i = 0; !error && i < maps.count; i++) {
		const struct gt_map *map = &maps.entries[i];
		struct gt_tracee_object *object;
		bool is_fresh;

		if (!map->executable || map->path[0] != '/')
			continue;
		error = object_of_map(tracee, catalog, map, &object, &is_fresh, message);
		if (error || object == NULL)
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
	for (size_t i = 0; !error && i < tracee->object_count; i++) {
		if (tracee->objects[i]->seen || tracee->objects[i]->gone)
			continue;
		tracee->objects[i]->gone = true;
		forget_patches(tracee, tracee->objects[i], &maps);
	}
	gt_maps_free(&maps);
	return error;
}

void gt_tracee_drop_unloaded(struct gt_tracee *tracee, const struct gt_maps *maps)
{
	for (size_t i = 0; i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->gone || is_still_there(object, maps))
			continue;
		object->gone = true;
		gt_edits_drop(&tracee->edits, object->start, object->end);
		forget_patches(tracee, object, maps);
	}
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = malloc(size);

	if (copy != NULL)
		memcpy(copy, bytes, size);
	return copy;
}

/* NULL: no memory. */
static struct gt_tracee_object *copy_object(const struct gt_tracee_object *from)
{
	const size_t count = from->file->function_count + 1;
	struct gt_tracee_object *object = copy_of(from, sizeof(*from));

	if (object == NULL)
		return NULL;
	object->states = copy_of(from->states, count);
	object->roots = copy_of(from->roots, count * sizeof(*from->roots));
	object->moved = copy_of(from->moved, count * sizeof(*from->moved));
	object->noted = copy_of(from->noted, count * sizeof(*from->noted));
	object->probes = copy_of(from->probes, (from->probe_count + 1) * sizeof(*from->probes));
	if (from->entry_sites != NULL)
		object->entry_sites =
			copy_of(from->entry_sites, count * sizeof(*from->entry_sites));
	if (from->return_sites != NULL)
		object->return_sites =
			copy_of(from->return_sites, count * sizeof(*from->return_sites));
	if (from->calls != NULL)
		object->calls = copy_of(from->calls, from->file->call_count * sizeof(*from->calls));
	if (from->values != NULL)
		object->values = copy_of(from->values, count * sizeof(*from->values));
	if (object->states != NULL && object->roots != NULL && object->moved != NULL &&
	    object->noted != NULL && object->probes != NULL &&
	    !object->entry_sites == !from->entry_sites &&
	    !object->return_sites == !from->return_sites && !object->calls == !from->calls &&
	    !object->values == !from->values)
		return object;
	free_object(object);
	return NULL;
}

int gt_tracee_fork(const struct gt_tracee *parent, pid_t pid, struct gt_tracee *child,
		   struct gt_message *message)
{
	int error;

	*child = (struct gt_tracee){ .agent = parent->agent, .parent = parent->process.pid };
	error = gt_process_open(&child->process, pid, message);
	if (error)
		return error;
	child->has_agent = parent->has_agent;
	child->notes = parent->notes;
	child->traps = parent->traps;
	child->copies = parent->copies;
	child->syscalls = parent->syscalls;
	child->no_syscalls = parent->no_syscalls;
	child->objects = calloc(parent->object_count + 1, sizeof(*child->objects));
	if (child->objects == NULL)
		goto no_memory;
	child->object_room = parent->object_count + 1;
	for (size_t i = 0; i < parent->object_count; i++) {
		struct gt_tracee_object *object = copy_object(parent->objects[i]);

		if (object == NULL)
			goto no_memory;
		child->objects[child->object_count++] = object;
	}
	return 0;
no_memory:
	gt_tracee_fini(child);
	return gt_fail(message, GT_ENOMEM, "no memory for process %d", (int)pid);
}

void gt_tracee_forget(struct gt_tracee *tracee)
{
	for (size_t i = 0; i < tracee->object_count; i++)
		free_object(tracee->objects[i]);
	free(tracee->objects);
	gt_edits_fini(&tracee->edits);
	tracee->objects = NULL;
	tracee->object_count = tracee->object_room = 0;
	tracee->agent = (struct gt_agent){ 0 };
	tracee->notes = 0;
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
	gt_pid_map_free(&tracee->threads);
	gt_process_close(&tracee->process);
}
