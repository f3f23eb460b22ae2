/* SPDX-License-Identifier: MIT */
/*
 * Patching: see patch.h. Order within a function: moved code, stub, then the jump. Code that was
 * once moved and stubs stay as long as the process: a thread may be in them.
 */
#include "attach/patch.h"
#include "attach/editor.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t nop5[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

struct patcher {
	struct gt_tracee *tracee;
	struct gt_tracee_object *object;
	struct gt_region *region;
	bool running;
	struct gt_editor code;
	struct gt_editor stubs;
	struct gt_editor moved;
};

static struct patcher *start(struct gt_tracee *tracee, struct gt_tracee_object *object,
			     bool running, struct gt_message *message)
{
	struct patcher *patcher = malloc(sizeof(*patcher));

	if (!patcher) {
		gt_fail(message, GT_ENOMEM, "no memory to patch %s", object->file->path);
		return NULL;
	}
	patcher->tracee = tracee;
	patcher->object = object;
	patcher->region = &tracee->agent.regions[object->region];
	patcher->running = running;
	gt_editor_init(&patcher->code, &tracee->process);
	gt_editor_init(&patcher->stubs, &tracee->process);
	gt_editor_init(&patcher->moved, &tracee->process);
	/* Also where a window of code is written before the end. */
	patcher->stubs.before = &patcher->moved;
	patcher->code.before = &patcher->stubs;
	return patcher;
}

/* Stubs and moved code are there before the first jump to them. */
static int finish(struct patcher *patcher, int error, struct gt_message *message)
{
	if (!error)
		error = gt_editor_flush(&patcher->moved);
	if (!error)
		error = gt_editor_flush(&patcher->stubs);
	if (!error)
		error = gt_editor_flush(&patcher->code);
	if (error)
		gt_fail(message, error, "cannot patch %s in process %d",
			patcher->object->file->path, (int)patcher->tracee->process.pid);
	free(patcher);
	return error;
}

static int displace(struct patcher *patcher, const struct gt_plan_entry *entry, uint64_t body,
		    const struct gt_plan_map *map)
{
	struct gt_tracee *tracee = patcher->tracee;
	struct gt_displaced *displaced;

	if (!patcher->running)
		return 0;
	if (tracee->displaced_count == tracee->displaced_room) {
		size_t room = tracee->displaced_room ? tracee->displaced_room * 2 : 64;
		void *bigger = realloc(tracee->displaced, room * sizeof(*tracee->displaced));

		if (!bigger)
			return GT_ENOMEM;
		tracee->displaced = bigger;
		tracee->displaced_room = room;
	}
	displaced = &tracee->displaced[tracee->displaced_count++];
	*displaced = (struct gt_displaced){
		.start = entry->patch_address + patcher->object->bias,
		.target = body,
		.covered = entry->covered_bytes,
		.to_body = !map,
	};
	if (map)
		memcpy(displaced->offset, map->offset, sizeof(displaced->offset));
	return 0;
}

static int by_start(const void *left, const void *right)
{
	const struct gt_displaced *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

void gt_patch_sort_displaced(struct gt_tracee *tracee)
{
	if (tracee->displaced_count)
		qsort(tracee->displaced, tracee->displaced_count, sizeof(*tracee->displaced),
		      by_start);
}

const struct gt_displaced *gt_patch_displaced(const struct gt_tracee *tracee, uint64_t address)
{
	size_t low = 0, high = tracee->displaced_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gt_displaced *displaced = &tracee->displaced[middle];

		if (address <= displaced->start)
			high = middle;
		else if (address >= displaced->start + displaced->covered)
			low = middle + 1;
		else
			return displaced;
	}
	return NULL;
}

uint64_t gt_patch_new_place(const struct gt_displaced *displaced, uint64_t address)
{
	uint64_t offset = address - displaced->start;

	if (displaced->to_body)
		return displaced->target;
	if (offset > GT_PLAN_ORIGINAL_MAX || displaced->offset[offset] < 0)
		return 0;
	return displaced->target + (uint64_t)displaced->offset[offset];
}

/* The code at `address` is `expected`. */
static bool is_there(struct patcher *patcher, uint64_t address, const uint8_t *expected,
		     size_t size)
{
	const uint8_t *bytes = gt_editor_look(&patcher->code, address, size);

	return bytes && memcmp(bytes, expected, size) == 0;
}

static bool extras_are_original(struct patcher *patcher, const struct gt_plan_entry *entry)
{
	uint32_t i;

	for (i = 0; i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra =
			gt_plan_extra(patcher->object->file->plan, entry, i);

		if (!is_there(patcher, extra->address + patcher->object->bias, extra->original,
			      extra->bytes))
			return false;
	}
	return true;
}

/* What the first bytes are now, if nobody else was at them. */
static void expected_bytes(const struct gt_plan_entry *entry, uint8_t state,
			   uint8_t out[GT_PLAN_ORIGINAL_MAX])
{
	memcpy(out, entry->original, GT_PLAN_ORIGINAL_MAX);
	if (state == GT_FUNCTION_NOP)
		memcpy(out, nop5, sizeof(nop5));
}

/* Moved code: made once, at *at (0 = not yet). Returns the address it goes on at; GT_ENOSPC,
 * GT_ENOTSUP. */
static int move(struct patcher *patcher, const struct gt_plan_entry *entry, uint64_t *at,
		struct gt_plan_map *map)
{
	uint8_t code[GT_PLAN_MOVED_MAX];
	int bytes;

	if (!*at)
		*at = gt_region_alloc(patcher->region, entry->moved_bytes_max, 16);
	if (!*at)
		return GT_ENOSPC;
	bytes = gt_plan_move(entry, entry->patch_address + patcher->object->bias, *at, code,
			     sizeof(code), map);
	if (bytes < 0)
		return bytes;
	return gt_editor_put(&patcher->moved, *at, code, (size_t)bytes);
}

/* The jump and the extra patches, all computed before the first is written. */
static int write_jump(struct patcher *patcher, const struct gt_plan_entry *entry, uint64_t stub,
		      uint64_t moved)
{
	struct gt_plan *plan = patcher->object->file->plan;
	uint64_t bias = patcher->object->bias;
	uint8_t jump[8], bytes[8];
	int error, pass;
	uint32_t i;

	error = gt_plan_jump(plan, entry, bias, stub, jump);
	if (error)
		return error;
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < entry->extra_count; i++) {
			const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, i);

			error = gt_plan_extra_bytes(extra, bias, stub, moved, bytes);
			if (!error && pass)
				error = gt_editor_put(&patcher->code, extra->address + bias, bytes,
						      extra->bytes);
			if (error)
				return error;
		}
	}
	return gt_editor_put(&patcher->code, entry->patch_address + bias, jump, entry->patch_bytes);
}

/* Errors that concern this one function only. */
static bool is_private(int error)
{
	return error == GT_ENOTSUP || error == GT_ENOSPC || error == GT_EINVAL;
}

static int enable(struct patcher *patcher, uint32_t index, const struct gt_plan_entry *entry,
		  uint8_t role)
{
	struct gt_tracee_object *object = patcher->object;
	const struct graftrace_agent_image *header = &patcher->tracee->agent.header;
	uint64_t body = entry->body + object->bias, bias = object->bias;
	uint64_t stub = gt_region_stub_address(patcher->region, object->slot + index);
	uint8_t expected[GT_PLAN_ORIGINAL_MAX], bytes[GRAFTRACE_STUB_BYTES];
	uint32_t kind = role & GT_ROLE_TRIGGER ? header->entry_trigger
			: entry->entry_only    ? header->entry_only
			: role & GT_ROLE_ROOT  ? header->entry_root
					       : header->entry;
	struct gt_plan_map map;
	int error = 0;

	if (object->states[index] != GT_FUNCTION_TRACED) {
		expected_bytes(entry, object->states[index], expected);
		if (!is_there(patcher, entry->patch_address + bias, expected,
			      entry->covered_bytes) ||
		    !extras_are_original(patcher, entry)) {
			object->states[index] = GT_FUNCTION_FOREIGN;
			return 0;
		}
	}
	if (entry->moved_bytes_max)
		error = move(patcher, entry, &object->moved[index], &map);
	if (!error && !entry->body)
		body = object->moved[index];
	if (!error)
		error = gt_region_stub(patcher->region, header, kind, object->slot + index, body,
				       bytes);
	if (!error)
		error = gt_editor_put(&patcher->stubs, stub, bytes, sizeof(bytes));
	if (!error && object->states[index] != GT_FUNCTION_TRACED) {
		error = write_jump(patcher, entry, stub, object->moved[index]);
		if (!error)
			error = displace(patcher, entry, body, entry->body ? NULL : &map);
	}
	if (error)
		return is_private(error) ? 0 : error;
	object->states[index] = GT_FUNCTION_TRACED;
	object->roots[index] = role;
	return 0;
}

static int disable(struct patcher *patcher, uint32_t index, const struct gt_plan_entry *entry)
{
	struct gt_tracee_object *object = patcher->object;
	uint64_t bias = object->bias;
	uint64_t stub = gt_region_stub_address(patcher->region, object->slot + index);
	bool nops = entry->way == GT_PLAN_NOPS && entry->patch_bytes == sizeof(nop5);
	uint8_t jump[8];
	uint32_t i;
	int error;

	if (gt_plan_jump(object->file->plan, entry, bias, stub, jump) ||
	    !is_there(patcher, entry->patch_address + bias, jump, entry->patch_bytes)) {
		object->states[index] = GT_FUNCTION_FOREIGN;
		return 0;
	}
	error = gt_editor_put(&patcher->code, entry->patch_address + bias,
			      nops ? nop5 : entry->original, entry->patch_bytes);
	for (i = 0; !error && i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra = gt_plan_extra(object->file->plan, entry, i);

		error = gt_editor_put(&patcher->code, extra->address + bias, extra->original,
				      extra->bytes);
	}
	object->states[index] = nops ? GT_FUNCTION_NOP : GT_FUNCTION_UNTOUCHED;
	return error;
}

/* Several nops become one, so that no thread can ever stand between them when the jump comes. Only
 * while nothing runs there. */
static int join_nops(struct patcher *patcher, uint32_t index, const struct gt_plan_entry *entry)
{
	uint64_t at = entry->patch_address + patcher->object->bias;

	if (entry->way != GT_PLAN_NOPS || entry->patch_bytes != sizeof(nop5) ||
	    entry->original[0] != 0x90 || patcher->running ||
	    !is_there(patcher, at, entry->original, entry->covered_bytes))
		return 0;
	patcher->object->states[index] = GT_FUNCTION_NOP;
	return gt_editor_put(&patcher->code, at, nop5, sizeof(nop5));
}

static const struct gt_plan_entry *plan_of(struct gt_tracee_object *object, uint32_t index,
					   const struct gt_selection *selection)
{
	const bool unprepared = gt_selection_takes_unprepared(selection, object->file);
	const struct gt_plan_entry *entry;

	if (!unprepared && !gt_plan_may_be_prepared(object->file->plan, index))
		return NULL;
	if (gt_catalog_plan(object->file, index, &entry, NULL) || entry->way == GT_PLAN_NONE)
		return NULL;
	if (entry->prepared == GT_PREPARED_NONE && !unprepared)
		return NULL;
	return entry;
}

/* Its triggers, if any, are in the table when this returns: they are there before its stub is. */
static uint8_t role_of(struct patcher *patcher, uint32_t index, const struct gt_plan_entry *entry,
		       const struct gt_selection *selection, const char *plain, const char *shown,
		       bool named)
{
	struct gt_trigger_role role = {
		.named = named,
		.root = gt_selection_is_root(selection, plain, shown),
		.entry_only = entry->entry_only,
	};
	uint32_t number = patcher->region->first_number + patcher->object->slot + index;
	uint8_t bits = role.root ? GT_ROLE_ROOT : 0;

	if (gt_triggers_match(selection->triggers, plain, shown) &&
	    gt_triggers_arm(selection->triggers, number, plain, shown, &role) == 0)
		bits |= GT_ROLE_TRIGGER;
	return bits;
}

int gt_patch_functions(struct gt_tracee *tracee, struct gt_tracee_object *object,
		       const struct gt_selection *selection, bool running,
		       struct gt_message *message)
{
	struct gt_catalog_file *file = object->file;
	struct patcher *patcher;
	uint32_t index;
	int error = 0;

	if (object->region < 0 || object->gone)
		return 0;
	patcher = start(tracee, object, running, message);
	if (!patcher)
		return GT_ENOMEM;
	for (index = 0; !error && index < file->function_count; index++) {
		const char *plain = gt_object_function(file->object, index)->name;
		uint8_t state = object->states[index];
		const struct gt_plan_entry *entry;
		const char *shown = plain;
		bool wanted, named;
		uint8_t role;

		if (state == GT_FUNCTION_FOREIGN)
			continue;
		if (selection->filter || selection->notrace || selection->graph ||
		    selection->triggers)
			shown = gt_object_function_name(file->object, index);
		named = gt_selection_wants(selection, plain, shown);
		wanted = named || gt_triggers_match(selection->triggers, plain, shown);
		if (!wanted && state != GT_FUNCTION_TRACED &&
		    (!file->prepared || state != GT_FUNCTION_UNTOUCHED || running))
			continue;
		entry = plan_of(object, index, selection);
		if (!entry)
			continue;
		role = wanted ? role_of(patcher, index, entry, selection, plain, shown, named) : 0;
		if (!named && !(role & GT_ROLE_TRIGGER))
			wanted = false; /* no room for its triggers */
		if (wanted && (state != GT_FUNCTION_TRACED || role != object->roots[index]))
			error = enable(patcher, index, entry, role);
		else if (!wanted && state == GT_FUNCTION_TRACED)
			error = disable(patcher, index, entry);
		else if (!wanted && state == GT_FUNCTION_UNTOUCHED)
			error = join_nops(patcher, index, entry);
	}
	return finish(patcher, error, message);
}

int gt_patch_undo(struct gt_tracee *tracee, struct gt_tracee_object *object,
		  struct gt_message *message)
{
	struct patcher *patcher;
	uint32_t index;
	int error = 0, hook;

	if (object->region < 0 || object->gone)
		return 0;
	patcher = start(tracee, object, true, message);
	if (!patcher)
		return GT_ENOMEM;
	for (index = 0; !error && index < object->file->function_count; index++)
		if (object->states[index] == GT_FUNCTION_TRACED)
			error = disable(patcher, index, &object->file->entries[index]);
	for (hook = 0; !error && object->hooked && hook < object->file->hook_count; hook++) {
		const struct gt_hook *known = &object->file->hooks[hook];

		if (object->hook_sites[hook] >= 0)
			error = gt_editor_put(&patcher->code,
					      known->entry.patch_address + object->bias,
					      known->entry.original, known->entry.patch_bytes);
	}
	object->hooked = false;
	return finish(patcher, error, message);
}

static int enable_hook(struct patcher *patcher, int index)
{
	struct gt_tracee_object *object = patcher->object;
	const struct gt_hook *hook = &object->file->hooks[index];
	const struct gt_plan_entry *entry = &hook->entry;
	struct gt_tracee *tracee = patcher->tracee;
	struct graftrace_hook_site site = {
		.kind = hook->kind,
		.body = entry->body + object->bias,
		.argument = hook->argument ? hook->argument + object->bias : 0,
	};
	uint8_t bytes[GRAFTRACE_STUB_BYTES];
	bool calls = hook->kind == GRAFTRACE_HOOK_BACKTRACE;
	struct gt_plan_map map;
	int error = 0;

	if (entry->way == GT_PLAN_NONE ||
	    !is_there(patcher, entry->patch_address + object->bias, entry->original,
		      entry->covered_bytes) ||
	    !extras_are_original(patcher, entry))
		return 0;
	if (entry->moved_bytes_max)
		error = move(patcher, entry, &object->hook_moved[index], &map);
	if (error)
		return is_private(error) ? 0 : error;
	if (!entry->body)
		site.body = object->hook_moved[index];
	if (!object->hook_stubs[index] && calls) {
		object->hook_stubs[index] = patcher->region->call_stub;
		patcher->region->call_stub = 0;
	}
	if (!object->hook_stubs[index] && !calls)
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
	error = (calls ? gt_region_call_stub : gt_region_hook_stub)(
		patcher->region, &tracee->agent.header, object->hook_stubs[index],
		(uint32_t)object->hook_sites[index], site.body, bytes);
	if (!error)
		error = gt_editor_put(&patcher->moved, object->hook_stubs[index], bytes,
				      sizeof(bytes));
	if (!error)
		error = write_jump(patcher, entry, object->hook_stubs[index],
				   object->hook_moved[index]);
	if (!error)
		error = displace(patcher, entry, site.body, entry->body ? NULL : &map);
	return is_private(error) ? 0 : error;
}

int gt_patch_hooks(struct gt_tracee *tracee, struct gt_tracee_object *object, bool running,
		   struct gt_message *message)
{
	int count = gt_catalog_hooks(object->file), index, error = 0;
	struct patcher *patcher;

	if (count == 0 || object->region < 0 || object->hooked)
		return 0;
	patcher = start(tracee, object, running, message);
	if (!patcher)
		return GT_ENOMEM;
	for (index = 0; !error && index < count; index++)
		error = enable_hook(patcher, index);
	object->hooked = true;
	return finish(patcher, error, message);
}
