/* SPDX-License-Identifier: MIT */
/*
 * Patching: the functions of an object; see patch.h. Order within a function: moved code, stub,
 * journal, then (when the edits are applied) the jump. Code that was once moved and stubs stay for as
 * long as the agent: a thread may be in them.
 */
#include "attach/agent/askers.h"
#include "attach/agent/patch.h"
#include "attach/agent/patcher.h"
#include "attach/agent/probes.h"
#include "attach/agent/resolver.h"
#include "attach/agent/traps.h"
#include "attach/agent/values.h"

#include <string.h>

static const uint8_t nop5[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

/* What the first bytes are now, if nobody else was at them. */
static void expected_bytes(const struct gt_plan_entry *entry, uint8_t state,
			   uint8_t out[GT_PLAN_ORIGINAL_MAX])
{
	memcpy(out, entry->original, GT_PLAN_ORIGINAL_MAX);
	if (state == GT_FUNCTION_NOP)
		memcpy(out, nop5, sizeof(nop5));
}

/* Where a stub's instructions lead: what may change while it is in use. */
static const uint8_t stub_targets[] = { 1, 7, 17, 27 };

static bool is_same_code(const uint8_t *left, const uint8_t *right)
{
	uint8_t a[GRAFTRACE_STUB_BYTES], b[GRAFTRACE_STUB_BYTES];

	memcpy(a, left, sizeof(a));
	memcpy(b, right, sizeof(b));
	for (size_t i = 0; i < sizeof(stub_targets); i++) {
		memset(a + stub_targets[i], 0, 4);
		memset(b + stub_targets[i], 0, 4);
	}
	return memcmp(a, b, sizeof(a)) == 0;
}

/* The stub of a function that is on calls another entry, or goes on elsewhere, from now on. */
static int change_stub(struct gt_patcher *patcher, uint64_t stub, const uint8_t *now,
		       const uint8_t *bytes)
{
	for (size_t i = 0; i < sizeof(stub_targets); i++) {
		const uint8_t at = stub_targets[i];
		struct gt_edit *edit;

		if (memcmp(now + at, bytes + at, 4) == 0)
			continue;
		edit = gt_edits_add(&patcher->tracee->edits);
		if (edit == NULL)
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

	if (now != NULL && memcmp(now, bytes, GRAFTRACE_STUB_BYTES) == 0)
		return 0;
	if (now != NULL && is_same_code(now, bytes))
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
		    !gt_patcher_finds_extras(patcher, entry)) {
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
	for (uint32_t i = 0; i < selection->asked_count; i++) {
		struct gt_word_list *const *lists;

		if (selection->asked[i] == NULL)
			continue;
		lists = selection->asked[i]->settings->lists;
		if (lists[GT_LIST_FILTER] != NULL || lists[GT_LIST_NOTRACE] != NULL ||
		    lists[GT_LIST_GRAPH] != NULL)
			return true;
	}
	return selection->triggers != NULL || selection->graph_notrace != NULL ||
	       selection->values != NULL;
}

/* For guard_askers(). */
static int plan_askers(struct gt_tracee_object *object, const struct gt_selection *selection)
{
	const int error = gt_askers_find(object->file);

	for (uint32_t i = 0; !error && i < object->file->function_count; i++)
		if (gt_askers_has(object->file, i))
			plan_of(object, i, selection);
	return error;
}

int gt_patch_plan(struct gt_tracee_object *object, const struct gt_selection *selection)
{
	struct gt_catalog_file *file = object->file;
	bool named = needs_shown(selection);
	int error = 0;

	for (uint32_t index = 0; !error && index < file->function_count; index++) {
		const char *plain = gt_object_function(file->object, index)->name;
		const char *shown = named ? gt_object_function_name(file->object, index) : plain;

		if (!gt_selection_wants(selection, file, plain, shown) &&
		    !gt_triggers_match(selection->triggers, plain, shown))
			continue;
		plan_of(object, index, selection);
		if (named && file->askers == NULL && gt_plan_jumps_on(file->plan, index))
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

	object->guarded = !error;
	for (uint32_t i = 0; !error && i < object->file->function_count; i++)
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
	if (entry == NULL &&
	    (gt_probes_entry_stub(object, index) || gt_probes_has_return(object, index))) {
		wanted = false;
		entry = &file->entries[index];
	}
	if (entry == NULL || (entry->way == GT_PLAN_BREAKPOINT && !patcher->tracee->traps))
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
	int error = 0;

	if (object->region < 0 || object->gone)
		return 0;
	patcher = gt_patcher_start(tracee, object, running, message);
	if (patcher == NULL)
		return GT_ENOMEM;
	for (uint32_t index = 0; !error && index < object->file->function_count; index++)
		error = patch_one(patcher, index, selection, by_name);
	return gt_patcher_finish(patcher, error, message);
}

int gt_patch_named(struct gt_tracee *tracee, struct gt_tracee_object *object,
		   const struct gt_selection *selection, const char *const *words, size_t count,
		   struct gt_message *message)
{
	struct gt_patcher *patcher = NULL;
	int error = 0;

	if (object->region < 0 || object->gone)
		return 0;
	for (size_t i = 0; !error && i < count; i++) {
		uint32_t at = 0, index;

		while (!error &&
		       (error = gt_names_next(object->file, words[i], &at, &index)) == 0) {
			if (patcher == NULL)
				patcher = gt_patcher_start(tracee, object, true, message);
			error = patcher != NULL ? patch_one(patcher, index, selection, true)
						: GT_ENOMEM;
		}
		error = error == GT_ENOENT ? 0 : error;
	}
	return patcher != NULL ? gt_patcher_finish(patcher, error, message) : error;
}
