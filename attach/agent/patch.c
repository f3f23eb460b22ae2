/* SPDX-License-Identifier: MIT */
/*
 * Patching: see patch.h. Order within a function: moved code, stub, journal, then (when the edits
 * are applied) the jump. Code that was once moved and stubs stay for as long as the agent: a thread
 * may be in them.
 */
#include "attach/agent/askers.h"
#include "attach/agent/patch_private.h"
#include "attach/agent/places.h"
#include "attach/agent/probes.h"
#include "attach/agent/resolver.h"
#include "attach/agent/syscalls.h"
#include "attach/agent/traps.h"
#include "attach/agent/values.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t nop5[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

struct gt_patcher *gt_patcher_start(struct gt_tracee *tracee, struct gt_tracee_object *object,
				    bool running, struct gt_message *message)
{
	struct gt_patcher *patcher = malloc(sizeof(*patcher));

	if (!patcher) {
		gt_fail(message, GT_ENOMEM, "no memory to patch %s", object->file->path);
		return NULL;
	}
	patcher->tracee = tracee;
	patcher->object = object;
	patcher->region = &tracee->agent.regions[object->region];
	patcher->running = running;
	patcher->jumps = false;
	gt_editor_init(&patcher->code, &tracee->process);
	gt_editor_init(&patcher->stubs, &tracee->process);
	gt_editor_init(&patcher->moved, &tracee->process);
	gt_editor_init(&patcher->places, &tracee->process);
	gt_editor_init(&patcher->journal, &tracee->process);
	return patcher;
}

/* Unwinders are told of jumps in the midst of the object's code. Without room, they are not. */
static int tell_of_jumps(struct gt_patcher *patcher)
{
	const struct gt_process *process = &patcher->tracee->process;
	struct gt_tracee_object *object = patcher->object;
	struct gt_region *region = patcher->region;
	const uint64_t text[2] = { object->start, object->end };
	int error;

	if (!patcher->jumps || object->jumps_from == object->start ||
	    region->text_count == GRAFTRACE_REGION_TEXTS)
		return 0;
	error = gt_process_write(process,
				 region->start + offsetof(struct graftrace_region, texts) +
					 region->text_count * sizeof(text),
				 text, sizeof(text));
	if (error)
		return error;
	region->text_count++;
	object->jumps_from = object->start;
	return gt_process_write(process,
				region->start + offsetof(struct graftrace_region, text_count),
				&region->text_count, sizeof(region->text_count));
}

/* Stubs, moved code and the journal are there before the first jump to them. */
int gt_patcher_finish(struct gt_patcher *patcher, int error, struct gt_message *message)
{
	const struct gt_region *region = patcher->region;

	if (!error)
		error = gt_editor_flush(&patcher->moved);
	if (!error)
		error = gt_editor_flush(&patcher->places);
	if (!error)
		error = gt_editor_flush(&patcher->stubs);
	if (!error)
		error = gt_editor_flush(&patcher->journal);
	if (!error)
		error = gt_process_write(&patcher->tracee->process,
					 region->start +
						 offsetof(struct graftrace_region, journal_used),
					 &region->journal_used, sizeof(region->journal_used));
	if (!error)
		error = tell_of_jumps(patcher);
	if (error)
		gt_fail(message, error, "cannot patch %s in process %d",
			patcher->object->file->path, (int)patcher->tracee->process.pid);
	free(patcher);
	return error;
}

int gt_patcher_displace(struct gt_patcher *patcher, const struct gt_plan_entry *entry,
			uint64_t body, const struct gt_plan_map *map)
{
	struct gt_displaced *displaced;
	int i;

	if (!patcher->running)
		return 0;
	displaced = gt_edits_displace(&patcher->tracee->edits);
	if (!displaced)
		return GT_ENOMEM;
	*displaced = (struct gt_displaced){
		.start = entry->patch_address + patcher->object->bias,
		.target = body,
		.covered = entry->covered_bytes,
		.to_body = !map,
	};
	if (!map)
		return 0;
	memcpy(displaced->offset, map->offset, sizeof(displaced->offset));
	for (i = 0; i < map->block_count; i++) {
		displaced = gt_edits_displace(&patcher->tracee->edits);
		if (!displaced)
			return GT_ENOMEM;
		displaced->start = map->block[i].address + patcher->object->bias;
		displaced->target = body;
		displaced->covered = map->block[i].covered;
		memcpy(displaced->offset, map->block[i].offset, sizeof(displaced->offset));
	}
	return 0;
}

/* The code at `address` is `expected`. */
bool gt_patcher_finds(struct gt_patcher *patcher, uint64_t address, const uint8_t *expected,
		      size_t size)
{
	const uint8_t *bytes = gt_editor_look(&patcher->code, address, size);

	return bytes && memcmp(bytes, expected, size) == 0;
}

static bool extras_are_original(struct gt_patcher *patcher, const struct gt_plan_entry *entry)
{
	uint32_t i;

	for (i = 0; i < entry->extra_count; i++) {
		const struct gt_plan_extra *extra =
			gt_plan_extra(patcher->object->file->plan, entry, i);

		if (!gt_patcher_finds(patcher, extra->address + patcher->object->bias,
				      extra->original, extra->bytes))
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

/* What unwinders are told of 16 bytes of moved code. */
int gt_patcher_put_places(struct gt_patcher *patcher, uint64_t moved, uint64_t base,
			  const uint8_t at[GRAFTRACE_PLACES_BYTES])
{
	struct graftrace_places record;
	uint64_t record_at;
	const uint32_t word = gt_region_place_word(patcher->region, base, at, &record_at, &record);
	int error = 0;

	if (record_at)
		error = gt_editor_put(&patcher->moved, record_at, &record, sizeof(record));
	if (!error)
		error = gt_editor_put(&patcher->places, gt_region_places(patcher->region, moved),
				      &word, sizeof(word));
	return error;
}

/* Moved code: made once, at *at (0 = not yet). Returns the address it goes on at; GT_ENOSPC,
 * GT_ENOTSUP. */
int gt_patcher_move(struct gt_patcher *patcher, const struct gt_plan_entry *entry, uint64_t *at,
		    struct gt_plan_map *map)
{
	const struct gt_plan *plan = patcher->object->file->plan;
	uint8_t code[GT_PLAN_MOVED_MAX];
	bool fresh = !*at;
	int bytes, from, error;

	if (fresh)
		*at = gt_region_alloc(patcher->region, entry->moved_bytes_max, 16);
	if (!*at)
		return GT_ENOSPC;
	bytes = gt_plan_move(plan, entry, patcher->object->bias, *at, code, sizeof(code), map);
	if (bytes < 0)
		return bytes;
	error = gt_editor_put(&patcher->moved, *at, code, (size_t)bytes);
	for (from = 0; !error && fresh && from < bytes; from += GRAFTRACE_PLACES_BYTES) {
		uint8_t places[GRAFTRACE_PLACES_BYTES];
		uint64_t base = gt_places_of_moved(plan, entry, map, (uint32_t)from, places);

		error = gt_patcher_put_places(patcher, *at + (uint64_t)from,
					      base + patcher->object->bias, places);
	}
	return error;
}

/* The stub of a hook, and what it stands for. */
static int put_hook_stub(struct gt_patcher *patcher, uint64_t stub, const uint8_t *bytes,
			 uint64_t function)
{
	uint8_t places[GRAFTRACE_PLACES_BYTES];
	uint32_t from;
	int error = gt_editor_put(&patcher->moved, stub, bytes, GRAFTRACE_STUB_BYTES);

	for (from = 0; !error && from < GRAFTRACE_STUB_BYTES; from += GRAFTRACE_PLACES_BYTES) {
		gt_places_of_hook(from, places);
		error = gt_patcher_put_places(patcher, stub + from, function, places);
	}
	return error;
}

/* An entry of the journal. */
static int note(struct gt_patcher *patcher, uint32_t index, uint64_t address,
		const uint8_t *original, const uint8_t *patched, uint32_t bytes, bool neutral,
		bool elsewhere)
{
	struct graftrace_patch patch = {
		.address = address,
		.bytes = (uint8_t)bytes,
		.neutral = neutral,
		.elsewhere = elsewhere,
	};

	if (bytes > sizeof(patch.original))
		return GT_EINVAL;
	memcpy(patch.original, original, bytes);
	memcpy(patch.patched, patched, bytes);
	return gt_editor_put(&patcher->journal,
			     patcher->region->journal + (uint64_t)index * sizeof(patch), &patch,
			     sizeof(patch));
}

/* Room for `count` appended entries: *first is the index of the first, plus one; it stays. */
int gt_patcher_reserve(struct gt_patcher *patcher, uint32_t *first, uint32_t count)
{
	struct gt_region *region = patcher->region;

	if (*first || !count)
		return 0;
	if (region->journal_room - region->journal_used < count)
		return GT_ENOSPC;
	*first = region->journal_used + 1;
	region->journal_used += count;
	return 0;
}

static int change_extra(struct gt_patcher *patcher, const struct gt_change *change, uint32_t i)
{
	const struct gt_plan_extra *extra =
		gt_plan_extra(patcher->object->file->plan, change->entry, i);
	uint64_t address = extra->address + patcher->object->bias;
	struct gt_edit *edit;
	uint8_t bytes[8];
	int error = gt_plan_extra_bytes(extra, patcher->object->bias, change->stub, change->moved,
					bytes);

	if (!error)
		error = note(patcher, *change->extras - 1 + i, address, extra->original, bytes,
			     extra->bytes, false, true);
	if (error)
		return error;
	patcher->jumps |= bytes[0] == 0xe9;
	edit = gt_edits_add(&patcher->tracee->edits);
	if (!edit)
		return GT_ENOMEM;
	edit->address = address;
	edit->bytes = edit->compared = extra->bytes;
	memcpy(edit->expected, change->on ? extra->original : bytes, extra->bytes);
	memcpy(edit->value, change->on ? bytes : extra->original, extra->bytes);
	return 0;
}

/* All or none of the function's edits. */
int gt_patcher_change(struct gt_patcher *patcher, struct gt_change *change, const uint8_t *jump)
{
	const struct gt_plan_entry *entry = change->entry;
	struct gt_edits *edits = &patcher->tracee->edits;
	size_t count = edits->count;
	struct gt_edit *edit;
	uint32_t i;
	int error;

	error = gt_patcher_reserve(patcher, change->extras, entry->extra_count);
	if (!error)
		error = note(patcher, change->main - 1,
			     entry->patch_address + patcher->object->bias, entry->original, jump,
			     entry->patch_bytes, entry->way == GT_PLAN_NOPS, false);
	if (error)
		return error;
	edit = gt_edits_add(edits);
	if (!edit)
		return GT_ENOMEM;
	*edit = (struct gt_edit){
		.address = entry->patch_address + patcher->object->bias,
		.state = change->state,
		.new_state = change->new_state,
		.foreign_state = change->foreign_state,
		.main = true,
		.on = change->on,
		.extras = entry->extra_count,
		.bytes = entry->patch_bytes,
		.compared = change->before_bytes,
	};
	memcpy(edit->expected, change->before, sizeof(edit->expected));
	memcpy(edit->value, change->after, sizeof(edit->value));
	for (i = 0; !error && i < entry->extra_count; i++)
		error = change_extra(patcher, change, i);
	if (error)
		edits->count = count;
	return error;
}

/* Errors that concern this one function only. */
bool gt_patcher_may_go_on(int error)
{
	return error == GT_ENOTSUP || error == GT_ENOSPC || error == GT_EINVAL;
}

/* Where a stub's instructions lead: what may change while it is in use. */
static const uint8_t stub_targets[] = { 1, 7, 17, 27 };

static bool is_same_code(const uint8_t *left, const uint8_t *right)
{
	uint8_t a[GRAFTRACE_STUB_BYTES], b[GRAFTRACE_STUB_BYTES];
	size_t i;

	memcpy(a, left, sizeof(a));
	memcpy(b, right, sizeof(b));
	for (i = 0; i < sizeof(stub_targets); i++) {
		memset(a + stub_targets[i], 0, 4);
		memset(b + stub_targets[i], 0, 4);
	}
	return memcmp(a, b, sizeof(a)) == 0;
}

/* The stub of a function that is on calls another entry, or goes on elsewhere, from now on. */
static int change_stub(struct gt_patcher *patcher, uint64_t stub, const uint8_t *now,
		       const uint8_t *bytes)
{
	size_t i;

	for (i = 0; i < sizeof(stub_targets); i++) {
		const uint8_t at = stub_targets[i];
		struct gt_edit *edit;

		if (memcmp(now + at, bytes + at, 4) == 0)
			continue;
		edit = gt_edits_add(&patcher->tracee->edits);
		if (!edit)
			return GT_ENOMEM;
		edit->address = stub + at;
		edit->main = edit->on = true;
		edit->bytes = 4;
		memcpy(edit->value, bytes + at, 4);
	}
	return 0;
}

/* A stub that was in use may have a thread in it. */
static int put_stub(struct gt_patcher *patcher, uint64_t stub, const uint8_t *bytes)
{
	const uint8_t *now = gt_editor_look(&patcher->stubs, stub, GRAFTRACE_STUB_BYTES);

	if (now && memcmp(now, bytes, GRAFTRACE_STUB_BYTES) == 0)
		return 0;
	if (now && is_same_code(now, bytes))
		return change_stub(patcher, stub, now, bytes);
	return gt_editor_put(&patcher->stubs, stub, bytes, GRAFTRACE_STUB_BYTES);
}

bool gt_patch_is_entry_only(const struct gt_tracee *tracee, const struct gt_tracee_object *object,
			    const struct gt_plan_entry *entry)
{
	return entry->entry_only || object->entry_only || tracee->copies;
}

/* What the stub calls first, in the hot text. */
static uint32_t entry_of(const struct graftrace_agent_image *header, uint16_t role, bool only)
{
	static const struct {
		uint16_t role;
		uint8_t kind;
		uint16_t offset;
	} kinds[] = {
		{ GT_ROLE_TRIGGER, GRAFTRACE_ENTRY_TRIGGER,
		  offsetof(struct graftrace_agent_image, entry_trigger) },
		{ GT_ROLE_SILENT, GRAFTRACE_ENTRY_SILENT,
		  offsetof(struct graftrace_agent_image, entry_silent) },
		{ GT_ROLE_NOTRACE, GRAFTRACE_ENTRY_NOTRACE,
		  offsetof(struct graftrace_agent_image, entry_notrace) },
		{ GT_ROLE_ROOT, GRAFTRACE_ENTRY_ROOT,
		  offsetof(struct graftrace_agent_image, entry_root) },
		{ 0, GRAFTRACE_ENTRY_ON, offsetof(struct graftrace_agent_image, entry) },
	};
	uint32_t i = 0, offset;

	if (only && !(role & GT_ROLE_TRIGGER))
		return role & GT_ROLE_SILENT ? header->entry_nothing : header->entry_only;
	while (kinds[i].role && !(role & kinds[i].role))
		i++;
	if (role & GT_ROLE_RETURNS)
		return header->entry_probed + kinds[i].kind * GRAFTRACE_PROBED_BYTES;
	memcpy(&offset, (const char *)header + kinds[i].offset, sizeof(offset));
	return offset;
}

static int enable(struct gt_patcher *patcher, uint32_t index, const struct gt_plan_entry *entry,
		  uint16_t role)
{
	struct gt_tracee_object *object = patcher->object;
	const struct graftrace_agent_image *header = &patcher->tracee->agent.header;
	uint64_t body = entry->body + object->bias;
	uint64_t stub = gt_region_stub_address(patcher->region, object->slot + index);
	uint8_t bytes[GRAFTRACE_STUB_BYTES], jump[8];
	const bool only =
		role & GT_ROLE_ENTRY_ONLY || gt_patch_is_entry_only(patcher->tracee, object, entry);
	const uint32_t kind = entry_of(header, role, only);
	struct gt_change change = {
		.entry = entry,
		.stub = stub,
		.main = object->slot + index + 1,
		.extras = &object->noted[index],
		.on = true,
		.state = &object->states[index],
		.new_state = GT_FUNCTION_TRACED,
		.foreign_state = GT_FUNCTION_FOREIGN,
		.before_bytes = entry->covered_bytes,
	};
	bool fresh = object->states[index] != GT_FUNCTION_TRACED;
	uint64_t call, leave;
	struct gt_plan_map map;
	uint64_t behind;
	int error = 0;

	object->file->touched[index] |= !(role & GT_ROLE_SILENT);
	if (fresh) {
		expected_bytes(entry, object->states[index], change.before);
		if (!gt_patcher_finds(patcher, entry->patch_address + object->bias, change.before,
				      entry->covered_bytes) ||
		    !extras_are_original(patcher, entry)) {
			object->states[index] = GT_FUNCTION_FOREIGN;
			return 0;
		}
	}
	if (entry->moved_bytes_max)
		error = gt_patcher_move(patcher, entry, &object->moved[index], &map);
	if (!error && !entry->body)
		body = object->moved[index];
	behind = gt_probes_entry_stub(object, index);
	if (!error)
		error = gt_region_stub(patcher->region, header, kind, object->slot + index,
				       behind ? behind : body, bytes);
	if (!error)
		error = gt_values_put(patcher, index, entry, role, kind, &call, &leave);
	if (!error && role & GT_ROLE_RETURNS)
		error = gt_probes_lead_return(patcher, index, &leave);
	if (!error)
		error = gt_region_lead_stub(stub, call, leave, bytes);
	if (!error)
		error = put_stub(patcher, stub, bytes);
	if (!error && entry->way == GT_PLAN_BREAKPOINT)
		error = gt_traps_note(patcher->tracee, entry->patch_address + object->bias, stub);
	if (!error && fresh) {
		change.moved = object->moved[index];
		error = gt_plan_jump(object->file->plan, entry, object->bias, stub, jump);
		memcpy(change.after, jump, sizeof(change.after));
		if (!error)
			error = gt_patcher_change(patcher, &change, jump);
		if (!error)
			error = gt_patcher_displace(patcher, entry, body,
						    entry->body ? NULL : &map);
	}
	if (error)
		return gt_patcher_may_go_on(error) ? 0 : error;
	object->roots[index] = role;
	return 0;
}

static int disable(struct gt_patcher *patcher, uint32_t index, const struct gt_plan_entry *entry)
{
	struct gt_tracee_object *object = patcher->object;
	bool nops = entry->way == GT_PLAN_NOPS && entry->patch_bytes == sizeof(nop5);
	struct gt_change change = {
		.entry = entry,
		.stub = gt_region_stub_address(patcher->region, object->slot + index),
		.moved = object->moved[index],
		.main = object->slot + index + 1,
		.extras = &object->noted[index],
		.state = &object->states[index],
		.new_state = nops ? GT_FUNCTION_NOP : GT_FUNCTION_UNTOUCHED,
		.foreign_state = GT_FUNCTION_FOREIGN,
		.before_bytes = entry->patch_bytes,
	};
	uint8_t jump[8] = { 0 };
	int error;

	error = gt_plan_jump(object->file->plan, entry, object->bias, change.stub, jump);
	if (error)
		return gt_patcher_may_go_on(error) ? 0 : error;
	memcpy(change.before, jump, sizeof(jump));
	memcpy(change.after, nops ? nop5 : entry->original, entry->patch_bytes);
	error = gt_patcher_change(patcher, &change, jump);
	return gt_patcher_may_go_on(error) ? 0 : error;
}

/* Several nops become one, so that no thread can ever stand between them when the jump comes. Only
 * while nothing runs there. */
static int join_nops(struct gt_patcher *patcher, uint32_t index, const struct gt_plan_entry *entry)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_change change = {
		.entry = entry,
		.stub = gt_region_stub_address(patcher->region, object->slot + index),
		.main = object->slot + index + 1,
		.extras = &object->noted[index],
		.on = true,
		.state = &object->states[index],
		.new_state = GT_FUNCTION_NOP,
		.foreign_state = GT_FUNCTION_FOREIGN,
		.before_bytes = entry->covered_bytes,
	};
	uint8_t jump[8] = { 0 };

	if (entry->way != GT_PLAN_NOPS || entry->patch_bytes != sizeof(nop5) ||
	    entry->extra_count || entry->original[0] != 0x90 || patcher->running ||
	    !gt_patcher_finds(patcher, entry->patch_address + object->bias, entry->original,
			      entry->covered_bytes) ||
	    gt_plan_jump(object->file->plan, entry, object->bias, change.stub, jump))
		return 0;
	memcpy(change.before, entry->original, sizeof(change.before));
	memcpy(change.after, nop5, sizeof(nop5));
	return gt_patcher_change(patcher, &change, jump);
}

static const struct gt_plan_entry *plan_of(struct gt_tracee_object *object, uint32_t index,
					   const struct gt_selection *selection)
{
	const struct gt_plan_entry *entry;

	if (!gt_selection_takes(selection, object->file, index) ||
	    gt_catalog_plan(object->file, index, &entry, NULL) ||
	    !gt_selection_takes_entry(selection, object->file, entry))
		return NULL;
	return entry;
}

/* Its triggers, if any, are in the table when this returns: they are there before its stub is. */
static uint16_t role_of(struct gt_patcher *patcher, uint32_t index,
			const struct gt_plan_entry *entry, const struct gt_selection *selection,
			const char *plain, const char *shown, bool named)
{
	struct gt_trigger_role role = {
		.named = named,
		.root = gt_selection_is_root(selection, plain, shown),
		.notrace = gt_selection_is_notrace(selection, plain, shown),
		.entry_only = gt_patch_is_entry_only(patcher->tracee, patcher->object, entry),
	};
	uint32_t number = patcher->region->first_number + patcher->object->slot + index;
	uint16_t bits = (patcher->tracee->copies ? GT_ROLE_ENTRY_ONLY : 0) |
			(role.root ? GT_ROLE_ROOT : 0) | (role.notrace ? GT_ROLE_NOTRACE : 0) |
			(named ? 0 : GT_ROLE_SILENT);

	if (gt_triggers_match(selection->triggers, plain, shown) &&
	    gt_triggers_arm(selection->triggers, number, plain, shown, &role) == 0)
		bits |= GT_ROLE_TRIGGER;
	if (named)
		bits |= gt_values_role(selection->values, patcher->object->file, index, plain,
				       shown);
	if (bits & GT_ROLE_ENTRY_ONLY || role.entry_only)
		bits &= (uint16_t)~GT_ROLE_RESULT;
	return bits;
}

/* Whether names as they are shown have to be looked up: which may mean to demangle them. */
static bool needs_shown(const struct gt_selection *selection)
{
	uint32_t i;

	for (i = 0; i < selection->asked_count; i++) {
		struct gt_word_list *const *lists;

		if (!selection->asked[i])
			continue;
		lists = selection->asked[i]->settings->lists;
		if (lists[GT_LIST_FILTER] || lists[GT_LIST_NOTRACE] || lists[GT_LIST_GRAPH])
			return true;
	}
	return selection->triggers != NULL || selection->graph_notrace != NULL ||
	       selection->values != NULL;
}

/* For guard_askers(). */
static int plan_askers(struct gt_tracee_object *object, const struct gt_selection *selection)
{
	const int error = gt_askers_find(object->file);
	uint32_t i;

	for (i = 0; !error && i < object->file->function_count; i++)
		if (gt_askers_has(object->file, i))
			plan_of(object, i, selection);
	return error;
}

int gt_patch_plan(struct gt_tracee_object *object, const struct gt_selection *selection)
{
	struct gt_catalog_file *file = object->file;
	bool named = needs_shown(selection);
	uint32_t index;
	int error = 0;

	for (index = 0; !error && index < file->function_count; index++) {
		const char *plain = gt_object_function(file->object, index)->name;
		const char *shown = named ? gt_object_function_name(file->object, index) : plain;

		if (!gt_selection_wants(selection, file, plain, shown) &&
		    !gt_triggers_match(selection->triggers, plain, shown))
			continue;
		plan_of(object, index, selection);
		if (named && !file->askers && gt_plan_jumps_on(file->plan, index))
			error = plan_askers(object, selection);
	}
	return error;
}

static int patch_one(struct gt_patcher *patcher, uint32_t index,
		     const struct gt_selection *selection, bool by_name);

/* Before the first return slot is taken that a jump through a pointer may hand on: attach/agent/askers.h. */
static int guard_askers(struct gt_patcher *patcher, const struct gt_selection *selection)
{
	struct gt_tracee_object *object = patcher->object;
	int error = gt_askers_find(object->file);
	uint32_t i;

	object->guarded = !error;
	for (i = 0; !error && i < object->file->function_count; i++)
		if (gt_askers_has(object->file, i))
			error = patch_one(patcher, i, selection, true);
	return error;
}

/* One function. by_name: shown names count; else all that are traced are named. */
static int patch_one(struct gt_patcher *patcher, uint32_t index,
		     const struct gt_selection *selection, bool by_name)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_catalog_file *file = object->file;
	const char *plain = gt_object_function(file->object, index)->name;
	uint8_t state = object->states[index];
	const struct gt_plan_entry *entry;
	const char *shown = plain;
	bool wanted, named, probed, returns, asks;
	uint16_t role;
	int error;

	if (state == GT_FUNCTION_FOREIGN)
		return 0;
	if (by_name)
		shown = gt_object_function_name(file->object, index);
	probed = gt_probes_have_entry(object, index);
	returns = gt_probes_have_return(object, index);
	named = !object->left_out && gt_selection_wants(selection, file, plain, shown);
	asks = object->guarded && !object->left_out && gt_askers_has(file, index);
	wanted = named || asks ||
		 (!object->left_out &&
		  (selection->stacks || gt_triggers_match(selection->triggers, plain, shown)));
	/* A plan takes bytes, which an event may need: without a need none is made. */
	if (!wanted && !probed && !returns && state != GT_FUNCTION_TRACED &&
	    (!file->prepared || state != GT_FUNCTION_UNTOUCHED || patcher->running ||
	     !gt_plan_may_be_prepared(file->plan, index)))
		return 0;
	entry = plan_of(object, index, selection);
	if (!entry &&
	    (gt_probes_entry_stub(object, index) || gt_probes_has_return(object, index))) {
		wanted = false;
		entry = &file->entries[index];
	}
	if (!entry || (entry->way == GT_PLAN_BREAKPOINT && !patcher->tracee->traps))
		return 0;
	/* Before the first return slot is taken. */
	if ((wanted || returns) && !object->resolved) {
		error = gt_resolver_set(patcher->tracee, object);
		if (error)
			return error;
		object->resolved = true;
	}
	role = wanted ? role_of(patcher, index, entry, selection, plain, shown, named) : 0;
	if (!named && !asks && !(selection->stacks && !object->left_out) &&
	    !(role & GT_ROLE_TRIGGER))
		wanted = false; /* no room for its triggers */
	returns = returns && !(role & GT_ROLE_ENTRY_ONLY) &&
		  !gt_patch_is_entry_only(patcher->tracee, object, entry);
	if (!wanted && (probed || returns)) {
		wanted = true;
		role = GT_ROLE_SILENT | (returns ? 0 : GT_ROLE_ENTRY_ONLY);
	}
	if (returns)
		role |= GT_ROLE_RETURNS;
	if (wanted && gt_probes_entry_stub(object, index))
		role |= GT_ROLE_PROBED;
	if (wanted && state == GT_FUNCTION_TRACED && role == object->roots[index])
		return 0;
	if (wanted && (by_name || !named) && !object->guarded && !object->left_out &&
	    !(role & GT_ROLE_ENTRY_ONLY) &&
	    !gt_patch_is_entry_only(patcher->tracee, object, entry) &&
	    gt_plan_jumps_on(file->plan, index)) {
		error = guard_askers(patcher, selection);
		if (error)
			return error;
	}
	if (wanted)
		return enable(patcher, index, entry, role);
	if (state == GT_FUNCTION_TRACED)
		return disable(patcher, index, entry);
	if (state == GT_FUNCTION_UNTOUCHED)
		return join_nops(patcher, index, entry);
	return 0;
}

int gt_patch_functions(struct gt_tracee *tracee, struct gt_tracee_object *object,
		       const struct gt_selection *selection, bool running,
		       struct gt_message *message)
{
	bool by_name = needs_shown(selection);
	struct gt_patcher *patcher;
	uint32_t index;
	int error = 0;

	if (object->region < 0 || object->gone)
		return 0;
	patcher = gt_patcher_start(tracee, object, running, message);
	if (!patcher)
		return GT_ENOMEM;
	for (index = 0; !error && index < object->file->function_count; index++)
		error = patch_one(patcher, index, selection, by_name);
	return gt_patcher_finish(patcher, error, message);
}

int gt_patch_named(struct gt_tracee *tracee, struct gt_tracee_object *object,
		   const struct gt_selection *selection, const char *const *words, size_t count,
		   struct gt_message *message)
{
	struct gt_patcher *patcher = NULL;
	size_t i;
	int error = 0;

	if (object->region < 0 || object->gone)
		return 0;
	for (i = 0; !error && i < count; i++) {
		uint32_t at = 0, index;

		while (!error &&
		       (error = gt_names_next(object->file, words[i], &at, &index)) == 0) {
			if (!patcher)
				patcher = gt_patcher_start(tracee, object, true, message);
			error = patcher ? patch_one(patcher, index, selection, true) : GT_ENOMEM;
		}
		error = error == GT_ENOENT ? 0 : error;
	}
	return patcher ? gt_patcher_finish(patcher, error, message) : error;
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
	    !extras_are_original(patcher, entry))
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
	if (!patcher)
		return GT_ENOMEM;
	for (index = 0; !error && index < count; index++)
		error = enable_hook(patcher, index);
	object->hooked = true;
	return gt_patcher_finish(patcher, error, message);
}

/* Which offset of the original instructions stands at `at` in the moved code; -1: none. */
static int offset_of(const int16_t *offsets, uint32_t covered, uint64_t at)
{
	uint32_t offset;

	for (offset = 0; offset <= covered && offset <= GT_PLAN_ORIGINAL_MAX; offset++)
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
	int offset, i;

	if (gt_plan_move(plan, entry, bias, moved, code, sizeof(code), &map) < 0)
		return 0;
	offset = offset_of(map.offset, entry->covered_bytes, address - moved);
	if (offset >= 0)
		return entry->patch_address + bias + (uint64_t)offset;
	for (i = 0; i < map.block_count; i++) {
		offset = offset_of(map.block[i].offset, map.block[i].covered, address - moved);
		if (offset >= 0)
			return map.block[i].address + bias + (uint64_t)offset;
	}
	return 0;
}

uint64_t gt_patch_old_place(const struct gt_tracee *tracee, uint64_t address)
{
	size_t i;

	for (i = 0; i < tracee->object_count; i++) {
		const struct gt_tracee_object *object = tracee->objects[i];
		uint32_t index;
		int hook;

		if (object->region < 0 || address - tracee->agent.regions[object->region].start >=
						  tracee->agent.regions[object->region].bytes)
			continue;
		for (index = 0; index < object->file->function_count; index++)
			if (object->moved[index] && address >= object->moved[index] &&
			    address - object->moved[index] <
				    object->file->entries[index].moved_bytes_max)
				return place_in(object->file->plan, &object->file->entries[index],
						object->bias, object->moved[index], address);
		if (gt_probes_old_place(object, address))
			return gt_probes_old_place(object, address);
		if (gt_syscalls_old_place(object, address))
			return gt_syscalls_old_place(object, address);
		for (hook = 0; hook < object->file->hook_count; hook++)
			if (object->hook_moved[hook] && address >= object->hook_moved[hook] &&
			    address - object->hook_moved[hook] <
				    object->file->hooks[hook].entry.moved_bytes_max)
				return place_in(object->file->plan,
						&object->file->hooks[hook].entry, object->bias,
						object->hook_moved[hook], address);
	}
	return 0;
}
