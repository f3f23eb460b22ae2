/* SPDX-License-Identifier: MIT */
/*
 * System calls: see syscalls.h. In the region: the two stubs of a place, and its moved code behind them
 * (graftrace/agent.h has the picture). They stay for as long as the agent: a thread may be in them,
 * and in a call for long.
 */
#include "attach/agent/syscalls.h"
#include "attach/agent/patcher.h"
#include "attach/agent/places.h"

#include <stdlib.h>
#include <string.h>

/* A block, and its share of the table of places, the journal aside. */
#define EACH (GRAFTRACE_CALL_BYTES + 96u + 64u)

int gt_syscalls_plan(struct gt_catalog_file *file, const struct gt_selection *selection,
		     struct gt_message *message)
{
	int error;

	if (!selection->syscalls || file->calls_known || file->plan == NULL)
		return 0;
	gt_catalog_hooks(file); /* these go first */
	error = gt_plan_syscalls(file->plan, &file->calls, &file->call_count, message);
	file->calls_known = error != GT_ENOMEM;
	return file->calls_known ? 0 : error; /* code that cannot be read has none */
}

bool gt_syscalls_wanted(const struct gt_catalog_file *file, const struct gt_selection *selection)
{
	for (uint32_t i = 0; selection->syscalls && i < file->call_count; i++)
		if (file->calls[i].way != GT_PLAN_NONE)
			return true;
	return false;
}

uint64_t gt_syscalls_bytes(const struct gt_catalog_file *file)
{
	return (uint64_t)file->call_count * EACH;
}

/* ---- what stands in the region ---- */

static int put_places(struct gt_patcher *patcher, uint64_t at, uint64_t base, const uint8_t *places,
		      uint32_t bytes)
{
	int error = 0;

	for (uint32_t from = 0; !error && from < bytes; from += GRAFTRACE_PLACES_BYTES)
		error = gt_patcher_put_places(patcher, at + from, base, places + from);
	return error;
}

/* One of the two, with what tells which it is. */
static int put_stub(struct gt_patcher *patcher, uint64_t at, uint64_t body, uint64_t site,
		    uint64_t place)
{
	const struct graftrace_probe_site is = { site };
	uint8_t bytes[GRAFTRACE_STUB_BYTES], places[GRAFTRACE_STUB_BYTES];
	int error = gt_region_probe_stub(patcher->region, &patcher->tracee->agent.header, at, body,
					 bytes);

	gt_places_of_probe(0, places);
	gt_places_of_probe(GRAFTRACE_PLACES_BYTES, places + GRAFTRACE_PLACES_BYTES);
	if (!error)
		error = gt_editor_put(&patcher->moved, at, bytes, sizeof(bytes));
	if (!error)
		error = gt_editor_put(&patcher->moved, at + sizeof(bytes), &is, sizeof(is));
	return error ? error : put_places(patcher, at, place, places, sizeof(places));
}

/* Where the stub before a call goes on for one that returns twice. */
static int put_twice(struct gt_patcher *patcher, uint64_t block, uint64_t body, uint64_t place)
{
	uint8_t bytes[13] = { 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, 0xe9 };
	const uint64_t at = block + GRAFTRACE_CALL_TWICE;
	const int32_t distance = (int32_t)(body - (at + sizeof(bytes)));
	uint8_t places[2 * GRAFTRACE_PLACES_BYTES] = { 0 };

	memcpy(bytes + 9, &distance, sizeof(distance));
	/* Until the stack pointer is as it was. */
	memset(places + (GRAFTRACE_CALL_TWICE - GRAFTRACE_STUB_BYTES), GRAFTRACE_PLACES_BELOW, 8);
	if (gt_editor_put(&patcher->moved, at, bytes, sizeof(bytes)))
		return GT_EIO;
	return put_places(patcher, block + GRAFTRACE_STUB_BYTES, place, places, sizeof(places));
}

static int put_moved(struct gt_patcher *patcher, const struct gt_plan_entry *entry, uint64_t moved,
		     struct gt_plan_map *map)
{
	const struct gt_plan *plan = patcher->object->file->plan;
	const uint64_t bias = patcher->object->bias;
	uint8_t code[GT_PLAN_MOVED_MAX];
	int bytes = gt_plan_move(plan, entry, bias, moved, code, sizeof(code), map), from, error;

	if (bytes < 0)
		return bytes;
	error = gt_editor_put(&patcher->moved, moved, code, (size_t)bytes);
	for (from = 0; !error && from < bytes; from += GRAFTRACE_PLACES_BYTES) {
		uint8_t places[GRAFTRACE_PLACES_BYTES];
		uint64_t base = gt_places_of_moved(plan, entry, map, (uint32_t)from, places);

		error = gt_patcher_put_places(patcher, moved + (uint64_t)from, base + bias, places);
	}
	return error;
}

static int put_block(struct gt_patcher *patcher, const struct gt_plan_entry *entry, uint64_t block,
		     struct gt_plan_map *map)
{
	const uint64_t moved = block + GRAFTRACE_CALL_BYTES;
	const uint64_t place = entry->patch_address + patcher->object->bias + entry->syscall - 1;
	uint64_t call;
	int error = put_moved(patcher, entry, moved, map);

	if (error)
		return error;
	call = moved + (uint64_t)map->offset[entry->syscall - 1];
	error = put_stub(patcher, block, call, GRAFTRACE_SITE_ENTERS, place);
	if (!error)
		error = put_twice(patcher, block, call + GRAFTRACE_CALL_B, place);
	/* The instruction stands for the one behind it from there on. */
	if (!error)
		error = put_stub(patcher, block + GRAFTRACE_CALL_LEAVES, call + GRAFTRACE_CALL_R,
				 GRAFTRACE_SITE_LEAVES, place + 2);
	return error;
}

/* ---- patches ---- */

static struct gt_change change_of(struct gt_tracee_object *object, uint32_t index, bool on)
{
	struct gt_tracee_call *call = &object->calls[index];
	const struct gt_plan_entry *entry = &object->file->calls[index];

	return (struct gt_change){
		.entry = entry,
		.main = call->noted,
		.extras = &call->extras,
		.on = on,
		.state = &call->state,
		.new_state = on ? GT_FUNCTION_TRACED : GT_FUNCTION_UNTOUCHED,
		.foreign_state = GT_FUNCTION_FOREIGN,
		.before_bytes = on ? entry->covered_bytes : entry->patch_bytes,
	};
}

/* To the stub, or to what stands before the call in the moved code. */
static int jump_of(const struct gt_tracee_object *object, uint32_t index, uint8_t jump[8])
{
	const struct gt_plan_entry *entry = &object->file->calls[index];
	const uint64_t block = object->calls[index].block;

	memset(jump, 0, 8);
	return gt_plan_jump(object->file->plan, entry, object->bias,
			    entry->syscall > 1 ? block + GRAFTRACE_CALL_BYTES : block, jump);
}

static int enable(struct gt_patcher *patcher, uint32_t index)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_call *call = &object->calls[index];
	const struct gt_plan_entry *entry = &object->file->calls[index];
	struct gt_change change;
	struct gt_plan_map map;
	uint8_t jump[8];
	int error;

	if (!gt_patcher_finds(patcher, entry->patch_address + object->bias, entry->original,
			      entry->covered_bytes)) {
		call->state = GT_FUNCTION_FOREIGN;
		return 0;
	}
	if (!call->block)
		call->block = gt_region_alloc(patcher->region,
					      GRAFTRACE_CALL_BYTES + entry->moved_bytes_max,
					      GRAFTRACE_CALL_ALIGNMENT);
	if (!call->block)
		return GT_ENOSPC;
	error = put_block(patcher, entry, call->block, &map);
	if (!error)
		error = gt_patcher_reserve(patcher, &call->noted, 1);
	if (!error)
		error = jump_of(object, index, jump);
	if (!error) {
		change = change_of(object, index, true);
		memcpy(change.before, entry->original, sizeof(change.before));
		memcpy(change.after, jump, sizeof(change.after));
		error = gt_patcher_change(patcher, &change, jump);
	}
	if (!error)
		error = gt_patcher_displace(patcher, entry, call->block + GRAFTRACE_CALL_BYTES,
					    &map);
	return error;
}

static int disable(struct gt_patcher *patcher, uint32_t index)
{
	struct gt_change change = change_of(patcher->object, index, false);
	uint8_t jump[8];
	int error = jump_of(patcher->object, index, jump);

	if (error)
		return error;
	memcpy(change.before, jump, sizeof(jump));
	memcpy(change.after, change.entry->original, sizeof(change.after));
	return gt_patcher_change(patcher, &change, jump);
}

static int settle(struct gt_patcher *patcher, uint32_t index, bool wanted)
{
	int error = wanted ? enable(patcher, index) : disable(patcher, index);

	return gt_patcher_may_go_on(error) ? 0 : error;
}

int gt_syscalls_patch(struct gt_tracee *tracee, struct gt_tracee_object *object,
		      const struct gt_selection *selection, bool running,
		      struct gt_message *message)
{
	const bool wanted = selection->syscalls && tracee->no_syscalls == NULL;
	struct gt_catalog_file *file = object->file;
	struct gt_patcher *patcher = NULL;
	int error;

	if (object->region < 0 || object->gone)
		return 0;
	error = gt_syscalls_plan(file, selection, message);
	if (error || !file->call_count)
		return error;
	if (object->calls == NULL)
		object->calls = calloc(file->call_count, sizeof(*object->calls));
	if (object->calls == NULL)
		return gt_fail(message, GT_ENOMEM, "no memory for the system calls of %s",
			       file->path);
	for (uint32_t i = 0; !error && i < file->call_count; i++) {
		const uint8_t state = object->calls[i].state;

		if (file->calls[i].way == GT_PLAN_NONE || state == GT_FUNCTION_FOREIGN ||
		    wanted == (state == GT_FUNCTION_TRACED))
			continue;
		if (patcher == NULL)
			patcher = gt_patcher_start(tracee, object, running, message);
		error = patcher != NULL ? settle(patcher, i, wanted) : GT_ENOMEM;
	}
	return patcher != NULL ? gt_patcher_finish(patcher, error, message) : error;
}

void gt_syscalls_count(const struct gt_tracee_object *object, uint32_t *patched, uint32_t *left)
{
	*patched = *left = 0;
	for (uint32_t i = 0; i < object->file->call_count; i++)
		if (object->calls != NULL && object->calls[i].state == GT_FUNCTION_TRACED)
			++*patched;
		else
			++*left;
}

void gt_syscalls_come_back(struct gt_tracee_object *object)
{
	for (uint32_t i = 0; object->calls != NULL && i < object->file->call_count; i++)
		object->calls[i].state = GT_FUNCTION_UNTOUCHED;
}

uint64_t gt_syscalls_old_place(const struct gt_tracee_object *object, uint64_t address)
{
	for (uint32_t i = 0; object->calls != NULL && i < object->file->call_count; i++) {
		const struct gt_plan_entry *entry = &object->file->calls[i];
		const uint64_t moved = object->calls[i].block + GRAFTRACE_CALL_BYTES;
		uint8_t code[GT_PLAN_MOVED_MAX];
		struct gt_plan_map map;

		if (!object->calls[i].block || address - moved >= entry->moved_bytes_max ||
		    gt_plan_move(object->file->plan, entry, object->bias, moved, code, sizeof(code),
				 &map) < 0)
			continue;
		for (uint32_t offset = 0; offset <= entry->covered_bytes; offset++)
			if (map.offset[offset] >= 0 &&
			    (uint64_t)map.offset[offset] == address - moved)
				return entry->patch_address + object->bias + offset;
	}
	return 0;
}
