/* SPDX-License-Identifier: MIT */
/*
 * Where the instructions of moved code belong: see gt_patch_old_place(). Code is moved again, into a
 * buffer, to find out what came of which instruction.
 */
#include "attach/agent/patch.h"
#include "attach/agent/probes.h"
#include "attach/agent/syscalls.h"

/* Which offset of the original instructions stands at `at` in the moved code; -1: none. */
static int offset_of(const int16_t *offsets, uint32_t covered, uint64_t at)
{
	for (uint32_t offset = 0; offset <= covered && offset <= GT_PLAN_ORIGINAL_MAX; offset++)
		if (offsets[offset] >= 0 && (uint64_t)offsets[offset] == at)
			return (int)offset;
	return -1;
}

/* address: in [moved, moved + moved_bytes_max). */
static uint64_t place_in(const struct gt_plan *plan, const struct gt_plan_entry *entry,
			 uint64_t bias, uint64_t moved, uint64_t address)
{
	uint8_t code[GT_PLAN_MOVED_MAX];
	struct gt_plan_map map;
	int offset;

	if (gt_plan_move(plan, entry, bias, moved, code, sizeof(code), &map) < 0)
		return 0;
	offset = offset_of(map.offset, entry->covered_bytes, address - moved);
	if (offset >= 0)
		return entry->patch_address + bias + (uint64_t)offset;
	for (int i = 0; i < map.block_count; i++) {
		offset = offset_of(map.block[i].offset, map.block[i].covered, address - moved);
		if (offset >= 0)
			return map.block[i].address + bias + (uint64_t)offset;
	}
	return 0;
}

uint64_t gt_patch_old_place(const struct gt_tracee *tracee, uint64_t address)
{
	for (size_t i = 0; i < tracee->object_count; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];

		if (object->region < 0 || address - tracee->agent.regions[object->region].start >=
						  tracee->agent.regions[object->region].bytes)
			continue;
		for (uint32_t index = 0; index < object->file->function_count; index++)
			if (object->moved[index] && address >= object->moved[index] &&
			    address - object->moved[index] <
				    object->file->entries[index].moved_bytes_max)
				return place_in(object->file->plan, &object->file->entries[index],
						object->bias, object->moved[index], address);
		if (gt_probes_old_place(object, address))
			return gt_probes_old_place(object, address);
		if (gt_syscalls_old_place(object, address))
			return gt_syscalls_old_place(object, address);
		for (int hook = 0; hook < object->file->hook_count; hook++)
			if (object->hook_moved[hook] && address >= object->hook_moved[hook] &&
			    address - object->hook_moved[hook] <
				    object->file->hooks[hook].entry.moved_bytes_max)
				return place_in(object->file->plan,
						&object->file->hooks[hook].entry, object->bias,
						object->hook_moved[hook], address);
	}
	return 0;
}
