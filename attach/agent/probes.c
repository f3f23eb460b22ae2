/* SPDX-License-Identifier: MIT */
/*
 * Probes: see probes.h. In the region: the stub, behind it what the agent records (struct
 * graftrace_probe), and the moved instructions. They stay for as long as the agent: a thread may be in
 * them. The order is that of patch.c.
 */
#include "attach/agent/probes.h"
#include "attach/agent/patch_private.h"
#include "attach/agent/places.h"
#include "attach/agent/traps.h"

#include <stdlib.h>
#include <string.h>

bool gt_events_match(char *const *words, const char *system, const char *name)
{
	bool matches = gt_event_is_mark(system, name);

	for (; words && *words; words++) {
		const bool not = **words == '!';

		if (gt_event_word_matches(*words + not, system, name))
			matches = !not ;
	}
	return matches;
}

static bool is_wanted(const struct gt_tracee_object *object, uint32_t index,
		      const struct gt_selection *selection)
{
	const struct gt_probe *probe = &object->file->probes[index];

	return gt_events_match(selection->events, probe->system, probe->name);
}

int gt_probes_plan(struct gt_tracee_object *object, const struct gt_selection *selection,
		   struct gt_message *message)
{
	uint32_t i;

	for (i = 0; i < object->file->probe_count; i++)
		if (is_wanted(object, i, selection))
			return gt_catalog_plan_probes(object->file, message);
	return 0;
}

int gt_probes_tell(const struct gt_tracee_object *object, const struct gt_sink *sink)
{
	struct gt_catalog_file *file = object->file;
	struct gt_event_format event;
	uint32_t i;
	int error = 0;

	if (!sink || !sink->event || file->events_told)
		return 0;
	for (i = 0; !error && i < file->probe_count; i++) {
		gt_catalog_describe_event(file, i, &event);
		event.address += object->bias;
		error = sink->event(sink->data, &event);
	}
	file->events_told = !error;
	return error;
}

/* What the agent is told. */
static struct graftrace_probe told_of(const struct gt_tracee_object *object, uint32_t index)
{
	const struct gt_probe *from = &object->file->probes[index];
	struct graftrace_probe probe = {
		.event = object->file->first_event + index,
		.argument_count = from->argument_count,
	};
	uint32_t i;

	for (i = 0; i < from->argument_count; i++) {
		probe.arguments[i] = from->arguments[i];
		if (from->is_relative[i])
			probe.arguments[i].value += (int64_t)object->bias;
	}
	return probe;
}

/* The stub and what stands behind it, made once; written again where the object has come back. */
static int put_stub(struct gt_patcher *patcher, uint32_t index, uint64_t body)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_probe *probe = &object->probes[index];
	const struct graftrace_probe told = told_of(object, index);
	uint8_t bytes[GRAFTRACE_STUB_BYTES], places[GRAFTRACE_PLACES_BYTES];
	uint32_t from;
	int error;

	if (!probe->stub)
		probe->stub = gt_region_alloc(patcher->region, sizeof(bytes) + sizeof(told),
					      GRAFTRACE_STUB_BYTES);
	if (!probe->stub)
		return GT_ENOSPC;
	error = gt_region_probe_stub(patcher->region, &patcher->tracee->agent.header, probe->stub,
				     body, bytes);
	if (!error)
		error = gt_editor_put(&patcher->moved, probe->stub, bytes, sizeof(bytes));
	if (!error)
		error = gt_editor_put(&patcher->moved, probe->stub + sizeof(bytes), &told,
				      sizeof(told));
	for (from = 0; !error && from < sizeof(bytes); from += GRAFTRACE_PLACES_BYTES) {
		gt_places_of_probe(from, places);
		error = gt_patcher_put_places(patcher, probe->stub + from,
					      object->file->probes[index].address + object->bias,
					      places);
	}
	return error;
}

static struct gt_change change_of(struct gt_tracee_object *object, uint32_t index, bool on)
{
	struct gt_tracee_probe *probe = &object->probes[index];
	const struct gt_plan_entry *entry = &object->file->probe_plans[index];

	return (struct gt_change){
		.entry = entry,
		.stub = probe->stub,
		.moved = probe->moved,
		.main = probe->noted,
		.extras = &probe->extras,
		.on = on,
		.state = &probe->state,
		.new_state = on ? GT_FUNCTION_TRACED : GT_FUNCTION_UNTOUCHED,
		.foreign_state = GT_FUNCTION_FOREIGN,
		.before_bytes = on ? entry->covered_bytes : entry->patch_bytes,
	};
}

static int enable(struct gt_patcher *patcher, uint32_t index)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_probe *probe = &object->probes[index];
	const struct gt_plan_entry *entry = &object->file->probe_plans[index];
	const uint64_t address = entry->patch_address + object->bias;
	uint64_t body = entry->body + object->bias;
	uint8_t jump[8] = { 0 };
	struct gt_change change;
	struct gt_plan_map map;
	int error = 0;

	if (entry->way == GT_PLAN_NONE ||
	    (entry->way == GT_PLAN_BREAKPOINT && !patcher->tracee->traps))
		return 0;
	if (!gt_patcher_finds(patcher, address, entry->original, entry->covered_bytes)) {
		probe->state = GT_FUNCTION_FOREIGN;
		return 0;
	}
	if (entry->moved_bytes_max)
		error = gt_patcher_move(patcher, entry, &probe->moved, &map);
	if (!error && !entry->body)
		body = probe->moved;
	if (!error)
		error = put_stub(patcher, index, body);
	if (!error && entry->way == GT_PLAN_BREAKPOINT)
		error = gt_traps_note(patcher->tracee, address, probe->stub);
	if (!error)
		error = gt_patcher_reserve(patcher, &probe->noted, 1);
	if (!error)
		error = gt_plan_jump(object->file->plan, entry, object->bias, probe->stub, jump);
	if (!error) {
		change = change_of(object, index, true);
		memcpy(change.before, entry->original, sizeof(change.before));
		memcpy(change.after, jump, sizeof(change.after));
		error = gt_patcher_change(patcher, &change, jump);
	}
	if (!error)
		error = gt_patcher_displace(patcher, entry, body, entry->body ? NULL : &map);
	return gt_patcher_may_go_on(error) ? 0 : error;
}

static int disable(struct gt_patcher *patcher, uint32_t index)
{
	struct gt_tracee_object *object = patcher->object;
	const struct gt_plan_entry *entry = &object->file->probe_plans[index];
	struct gt_change change = change_of(object, index, false);
	uint8_t jump[8] = { 0 };
	int error = gt_plan_jump(object->file->plan, entry, object->bias, change.stub, jump);

	if (!error) {
		memcpy(change.before, jump, sizeof(jump));
		memcpy(change.after, entry->original, sizeof(change.after));
		error = gt_patcher_change(patcher, &change, jump);
	}
	return gt_patcher_may_go_on(error) ? 0 : error;
}

int gt_probes_patch(struct gt_tracee *tracee, struct gt_tracee_object *object,
		    const struct gt_selection *selection, bool running, struct gt_message *message)
{
	struct gt_patcher *patcher = NULL;
	uint32_t i;
	int error;

	if (object->region < 0 || object->gone || !object->file->probe_count)
		return 0;
	error = gt_probes_plan(object, selection, message);
	for (i = 0; !error && object->file->probe_plans && i < object->file->probe_count; i++) {
		struct gt_tracee_probe *probe = &object->probes[i];
		struct gt_event_format event;
		const bool wanted = is_wanted(object, i, selection);

		if (probe->state == GT_FUNCTION_FOREIGN ||
		    wanted == (probe->state == GT_FUNCTION_TRACED))
			continue;
		if (!patcher)
			patcher = gt_patcher_start(tracee, object, running, message);
		error = !patcher ? GT_ENOMEM : 0;
		if (!error && wanted && selection->event_rules) {
			gt_catalog_describe_event(object->file, i, &event);
			error = gt_event_rules_arm(selection->event_rules, &event, message);
		}
		if (!error)
			error = wanted ? enable(patcher, i) : disable(patcher, i);
	}
	return patcher ? gt_patcher_finish(patcher, error, message) : error;
}

bool gt_probes_need_traps(const struct gt_tracee_object *object,
			  const struct gt_selection *selection)
{
	uint32_t i;

	for (i = 0; object->file->probe_plans && i < object->file->probe_count; i++)
		if (object->file->probe_plans[i].way == GT_PLAN_BREAKPOINT &&
		    is_wanted(object, i, selection))
			return true;
	return false;
}

/* The semaphore is the program's; who else listens counts there, too. */
static void count_semaphore(const struct gt_tracee *tracee, const struct gt_tracee_object *object,
			    uint32_t index, bool up)
{
	const uint64_t at = object->file->probes[index].semaphore + object->bias;
	uint16_t value;

	if (gt_process_read(&tracee->process, at, &value, sizeof(value)) ||
	    value == (up ? UINT16_MAX : 0))
		return;
	value = (uint16_t)(up ? value + 1 : value - 1);
	gt_process_write(&tracee->process, at, &value, sizeof(value));
}

static void settle(struct gt_tracee *tracee, bool leaves)
{
	size_t i;
	uint32_t k;

	for (i = 0; i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->gone || object->region < 0)
			continue;
		for (k = 0; k < object->file->probe_count; k++) {
			struct gt_tracee_probe *probe = &object->probes[k];
			const bool listens = !leaves && probe->state == GT_FUNCTION_TRACED;

			if (!object->file->probes[k].semaphore || listens == probe->counted)
				continue;
			count_semaphore(tracee, object, k, listens);
			probe->counted = listens;
		}
	}
}

void gt_probes_settle(struct gt_tracee *tracee)
{
	settle(tracee, false);
}

void gt_probes_leave(struct gt_tracee *tracee)
{
	settle(tracee, true);
}

uint64_t gt_probes_old_place(const struct gt_tracee_object *object, uint64_t address)
{
	uint32_t i;

	for (i = 0; object->file->probe_plans && i < object->file->probe_count; i++) {
		const struct gt_plan_entry *entry = &object->file->probe_plans[i];
		const uint64_t moved = object->probes[i].moved;
		uint8_t code[GT_PLAN_MOVED_MAX];
		struct gt_plan_map map;
		uint32_t offset;

		if (!moved || address - moved >= entry->moved_bytes_max ||
		    gt_plan_move(object->file->plan, entry, object->bias, moved, code, sizeof(code),
				 &map) < 0)
			continue;
		for (offset = 0; offset <= entry->covered_bytes; offset++)
			if (map.offset[offset] >= 0 &&
			    (uint64_t)map.offset[offset] == address - moved)
				return entry->patch_address + object->bias + offset;
	}
	return 0;
}
