/* SPDX-License-Identifier: MIT */
/*
 * Patching: the functions that the agent hooks in an object.
 */
#include "attach/agent/patch.h"
#include "attach/agent/patcher.h"
#include "attach/agent/places.h"

#include <string.h>

/* The stub of a hook, and what it stands for. */
static int put_hook_stub(struct gt_patcher *patcher, uint64_t stub, const uint8_t *bytes,
			 uint64_t function)
{
	uint8_t places[GRAFTRACE_PLACES_BYTES];
	int error = gt_editor_put(&patcher->moved, stub, bytes, GRAFTRACE_STUB_BYTES);

	for (uint32_t from = 0; !error && from < GRAFTRACE_STUB_BYTES;
	     from += GRAFTRACE_PLACES_BYTES) {
		gt_places_of_hook(from, places);
		error = gt_patcher_put_places(patcher, stub + from, function, places);
	}
	return error;
}

static int enable_hook(struct gt_patcher *patcher, int index)
{
	struct gt_tracee_object *object = patcher->object;
	const struct gt_hook *hook = &object->file->hooks[index];
	const struct gt_plan_entry *entry = &hook->entry;
	struct gt_tracee *tracee = patcher->tracee;
	struct graftrace_hook_site site = {
		.kind = hook->kind,
		.body = entry->body + object->bias,
		.argument = hook->argument ? hook->argument + object->bias : hook->number,
	};
	uint8_t bytes[GRAFTRACE_STUB_BYTES];
	uint32_t need = object->hook_noted[index] ? 0 : 1u;
	struct gt_change change = {
		.entry = entry,
		.extras = &object->hook_extras[index],
		.on = true,
		.before_bytes = entry->covered_bytes,
	};
	struct gt_plan_map map;
	uint8_t jump[8] = { 0 };
	int error = 0;

	if (entry->way == GT_PLAN_NONE ||
	    !gt_patcher_finds(patcher, entry->patch_address + object->bias, entry->original,
			      entry->covered_bytes) ||
	    !gt_patcher_finds_extras(patcher, entry))
		return 0;
	if (entry->moved_bytes_max)
		error = gt_patcher_move(patcher, entry, &object->hook_moved[index], &map);
	if (error)
		return gt_patcher_may_go_on(error) ? 0 : error;
	if (!entry->body)
		site.body = object->hook_moved[index];
	if (!object->hook_stubs[index])
		object->hook_stubs[index] = gt_region_alloc(patcher->region, GRAFTRACE_STUB_BYTES,
							    GRAFTRACE_STUB_BYTES);
	if (!object->hook_stubs[index])
		return 0;
	/* A file that came back has its site still; only its place may have changed. */
	if (object->hook_sites[index] < 0) {
		object->hook_sites[index] = gt_inject_hook(&tracee->process, &tracee->agent, &site);
		if (object->hook_sites[index] < 0)
			return 0;
	} else {
		error = gt_inject_set_hook(&tracee->process, &tracee->agent,
					   (uint32_t)object->hook_sites[index], &site);
		if (error)
			return error;
	}
	error = gt_region_hook_stub(patcher->region, &tracee->agent.header,
				    object->hook_stubs[index], (uint32_t)object->hook_sites[index],
				    site.body, bytes);
	if (!error)
		error = put_hook_stub(patcher, object->hook_stubs[index], bytes,
				      entry->patch_address + object->bias);
	if (!error)
		error = gt_patcher_reserve(patcher, &object->hook_noted[index], need);
	if (!error)
		error = gt_plan_jump(object->file->plan, entry, object->bias,
				     object->hook_stubs[index], jump);
	if (!error) {
		change.main = object->hook_noted[index];
		change.stub = object->hook_stubs[index];
		change.moved = object->hook_moved[index];
		memcpy(change.before, entry->original, sizeof(change.before));
		memcpy(change.after, jump, sizeof(jump));
		error = gt_patcher_change(patcher, &change, jump);
	}
	if (!error)
		error = gt_patcher_displace(patcher, entry, site.body, entry->body ? NULL : &map);
	return gt_patcher_may_go_on(error) ? 0 : error;
}

int gt_patch_hooks(struct gt_tracee *tracee, struct gt_tracee_object *object, bool running,
		   struct gt_message *message)
{
	int count = gt_catalog_hooks(object->file), index, error = 0;
	struct gt_patcher *patcher;

	if (count == 0 || object->region < 0 || object->hooked)
		return 0;
	patcher = gt_patcher_start(tracee, object, running, message);
	if (patcher == NULL)
		return GT_ENOMEM;
	for (index = 0; !error && index < count; index++)
		error = enable_hook(patcher, index);
	object->hooked = true;
	return gt_patcher_finish(patcher, error, message);
}
