/* SPDX-License-Identifier: MIT */
/*
 * Probes: see probes.h. In the region: a stub for each site, behind it what it leads to (struct
 * graftrace_probe_site), the probes themselves (struct graftrace_probe), and the moved instructions. They
 * stay for as long as the agent: a thread may be in them. The order is that of patch.c.
 *
 * A site at a function's entry, in an object whose functions may be traced, has no patch of its own: the
 * function's stub goes on in the site's. So an entry may be traced and probed in any order; a function that
 * is only probed has a stub that records nothing.
 *
 * A site of returns has no patch either: the function's stub goes there when its body has returned, and the
 * site's goes on as the function's would have done. So the functions' stubs take the return, and a call that
 * only such a probe waits for is kept as a frame that no record tells of (GT_FRAME_HIDDEN).
 */
#include "attach/agent/probes.h"
#include "attach/agent/event_line.h"
#include "attach/agent/patch.h"
#include "attach/agent/patcher.h"
#include "attach/agent/places.h"
#include "attach/agent/traps.h"

#include <stdlib.h>
#include <string.h>

bool gt_events_match(char *const *words, const char *system, const char *name)
{
	bool matches = gt_event_is_mark(system, name);

	for (; words != NULL && *words != NULL; words++) {
		const bool not = **words == '!';

		if (gt_event_word_matches(*words + not, system, name))
			matches = !not ;
	}
	return matches;
}

static bool is_recorded(const struct gt_tracee_object *object, uint32_t index,
			const struct gt_selection *selection)
{
	const struct gt_probe *probe = object->file->probes[index].probe;

	return gt_events_match(selection->events, probe->system, probe->name);
}

static bool is_wanted(const struct gt_tracee_object *object, uint32_t index,
		      const struct gt_selection *selection)
{
	const struct gt_catalog_probe *probe = &object->file->probes[index];

	return !probe->removed && (is_recorded(object, index, selection) ||
				   (selection->event_rules != NULL &&
				    gt_event_rules_act(selection->event_rules, probe->probe->system,
						       probe->probe->name)));
}

bool gt_probes_wanted(const struct gt_catalog_file *file, const struct gt_selection *selection)
{
	const struct gt_tracee_object object = {
		.file = (struct gt_catalog_file *)(uintptr_t)file
	};

	for (uint32_t i = 0; i < file->probe_count; i++)
		if (is_wanted(&object, i, selection))
			return true;
	return false;
}

bool gt_probes_want_returns(const struct gt_catalog_file *file,
			    const struct gt_selection *selection)
{
	const struct gt_tracee_object object = {
		.file = (struct gt_catalog_file *)(uintptr_t)file
	};

	for (uint32_t i = 0; i < file->probe_count; i++)
		if (file->probes[i].probe->flags & GRAFTRACE_PROBE_RETURN &&
		    is_wanted(&object, i, selection))
			return true;
	return false;
}

int gt_probes_plan(struct gt_tracee_object *object, const struct gt_selection *selection,
		   struct gt_message *message)
{
	return gt_probes_wanted(object->file, selection)
		       ? gt_catalog_plan_probes(object->file, message)
		       : 0;
}

int gt_probes_tell(const struct gt_tracee_object *object, const struct gt_sink *sink)
{
	struct gt_catalog_file *file = object->file;
	struct gt_event_format event;
	uint32_t i;
	int error = 0;

	if (sink == NULL || sink->event == NULL)
		return 0;
	for (i = file->probe_count; i > 0 && !file->probes[i - 1].told; i--)
		;
	for (; !error && i < file->probe_count; i++) {
		gt_catalog_describe_event(file, i, &event);
		event.address += object->bias;
		error = sink->event(sink->data, &event);
		file->probes[i].told = !error;
	}
	return error;
}

/* Those of the file that have come since. */
static int know_all(struct gt_tracee_object *object)
{
	const struct gt_catalog_file *file = object->file;
	void *grown;

	if (object->probe_count == file->probe_count)
		return 0;
	grown = realloc(object->probes, (file->probe_count + 1ul) * sizeof(*object->probes));
	if (grown == NULL)
		return GT_ENOMEM;
	object->probes = grown;
	memset(&object->probes[object->probe_count], 0,
	       (file->probe_count - object->probe_count) * sizeof(*object->probes));
	object->probe_count = file->probe_count;
	return 0;
}

/* ---- what the agent finds ---- */

#define VALUES_STUB_TARGET 6 /* the displacement of its jump: gt_region_values_stub() */

#define TOLD_MAX                                                            \
	(sizeof(struct graftrace_probe) +                                   \
	 GRAFTRACE_PROBE_FIELDS * sizeof(struct graftrace_probe_argument) + \
	 GRAFTRACE_PROBE_STEPS * sizeof(int64_t))

static void put(uint8_t *out, size_t *used, const void *bytes, size_t size)
{
	if (size)
		memcpy(out + *used, bytes, size);
	*used += size;
}

/* The bytes of the probe, its texts aside, which stand behind; returns how many. */
static size_t told_of(const struct gt_tracee_object *object, uint32_t index, uint64_t texts,
		      uint8_t out[TOLD_MAX])
{
	const struct gt_probe *from = object->file->probes[index].probe;
	const struct graftrace_probe probe = {
		.next = object->probes[index].next,
		.event = object->file->probes[index].event,
		.argument_count = (uint16_t)from->argument_count,
		.flags = from->flags,
	};
	size_t used = 0;

	put(out, &used, &probe, sizeof(probe));
	for (uint32_t i = 0; i < from->argument_count; i++) {
		struct graftrace_probe_argument argument = from->arguments[i];

		if (from->is_relative[i])
			argument.value += (int64_t)object->bias;
		if (from->is_literal[i])
			argument.value += (int64_t)texts;
		put(out, &used, &argument, sizeof(argument));
	}
	put(out, &used, from->steps, from->step_count * sizeof(*from->steps));
	return used;
}

/* Made once; written again where the object has come back. */
static int put_probe(struct gt_patcher *patcher, uint32_t index)
{
	struct gt_tracee_object *object = patcher->object;
	const struct gt_probe *from = object->file->probes[index].probe;
	struct gt_tracee_probe *probe = &object->probes[index];
	uint8_t told[TOLD_MAX];
	size_t bytes = told_of(object, index, 0, told);
	int error;

	if (!probe->told)
		probe->told = gt_region_alloc(patcher->region, bytes + from->literal_bytes,
					      sizeof(uint64_t));
	if (!probe->told)
		return GT_ENOSPC;
	bytes = told_of(object, index, probe->told + bytes, told);
	error = gt_editor_put(&patcher->moved, probe->told, told, bytes);
	if (!error && from->literal_bytes)
		error = gt_editor_put(&patcher->moved, probe->told + bytes, from->literals,
				      from->literal_bytes);
	return error;
}

/* The stub of a site, which leads nowhere yet. */
static int put_stub(struct gt_patcher *patcher, uint32_t site, uint64_t body)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_probe *probe = &object->probes[site];
	const bool fresh = !probe->stub;
	const struct graftrace_probe_site nowhere = { 0 };
	uint8_t bytes[GRAFTRACE_STUB_BYTES], places[GRAFTRACE_PLACES_BYTES];
	int error;

	if (fresh)
		probe->stub = gt_region_alloc(patcher->region, sizeof(bytes) + sizeof(nowhere),
					      GRAFTRACE_STUB_BYTES);
	if (!probe->stub)
		return GT_ENOSPC;
	error = gt_region_probe_stub(patcher->region, &patcher->tracee->agent.header, probe->stub,
				     body, bytes);
	if (!error)
		error = gt_editor_put(&patcher->moved, probe->stub, bytes, sizeof(bytes));
	if (!error && fresh)
		error = gt_editor_put(&patcher->moved, probe->stub + sizeof(bytes), &nowhere,
				      sizeof(nowhere));
	for (uint32_t from = 0; !error && from < sizeof(bytes); from += GRAFTRACE_PLACES_BYTES) {
		gt_places_of_probe(from, places);
		error = gt_patcher_put_places(
			patcher, probe->stub + from,
			object->file->probes[site].plan.patch_address + object->bias, places);
	}
	return error;
}

/* Whether the site may have a straight line: the event of a note, with a nop of its own. */
static bool may_have_line(const struct gt_tracee_object *object, uint32_t site)
{
	const struct gt_catalog_probe *probe = &object->file->probes[site];

	return probe->dynamic == NULL && probe->kind == GT_PROBE_PLACE &&
	       probe->plan.way == GT_PLAN_NOPS && !probe->probe->literal_bytes;
}

/* The line as it has to be at `at`. False: the fields are not all at hand. */
static bool make_line(const struct gt_patcher *patcher, uint32_t site, uint64_t at, uint64_t body,
		      struct gt_event_line *line)
{
	const struct gt_tracee_object *object = patcher->object;
	const struct gt_catalog_probe *known = &object->file->probes[site];
	uint8_t told[TOLD_MAX];

	told_of(object, site, 0, told);
	return gt_event_line(patcher->region, &patcher->tracee->agent.header, at,
			     object->probes[site].stub, body, known->event,
			     (const void *)(told + sizeof(struct graftrace_probe)),
			     known->probe->argument_count, line);
}

/* Room for the line, and for what unwinders are told of it. 0: there is none. */
static uint64_t line_room(struct gt_region *region, uint32_t bytes)
{
	const uint64_t places =
		(bytes / GRAFTRACE_PLACES_BYTES + 2) * sizeof(struct graftrace_places);

	if (region->moved_end - region->moved < bytes + places + GRAFTRACE_STUB_BYTES)
		return 0;
	return gt_region_alloc(region, bytes, GRAFTRACE_STUB_BYTES);
}

static int put_line_places(struct gt_patcher *patcher, const struct gt_event_line *line,
			   uint64_t at, uint64_t nop)
{
	uint8_t places[GRAFTRACE_PLACES_BYTES];
	int error = 0;

	for (uint32_t from = 0; !error && from < line->used; from += GRAFTRACE_PLACES_BYTES) {
		gt_places_of_line(line, from, places);
		error = gt_patcher_put_places(patcher, at + from, nop, places);
	}
	return error;
}

/* Made once, taken by nobody yet; written again where the object has come back. Where it cannot be made the stub
 * does without. */
static int put_line(struct gt_patcher *patcher, uint32_t site, uint64_t body)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_probe *probe = &object->probes[site];
	const uint64_t nop = object->file->probes[site].plan.patch_address + object->bias;
	struct gt_event_line line;
	uint64_t at = probe->line;
	int error;

	probe->line = 0;
	/* How long it is does not depend on where it stands. */
	if (!may_have_line(object, site) ||
	    !make_line(patcher, site, at ? at : probe->stub, body, &line))
		return 0;
	if (!at) {
		probe->line_of = 0;
		at = line_room(patcher->region, line.used);
		if (!at || !make_line(patcher, site, at, body, &line))
			return 0;
	}
	error = gt_editor_put(&patcher->moved, at, line.bytes, line.used);
	if (!error && probe->line_of != nop)
		error = put_line_places(patcher, &line, at, nop);
	if (error)
		return error;
	probe->line = at;
	probe->line_of = nop;
	return 0;
}

/* Where the site's jump leads. */
static uint64_t led_to(const struct gt_tracee_probe *probe)
{
	return probe->line ? probe->line + sizeof(struct graftrace_event_line) : probe->stub;
}

/* A word of the region that threads may read now. */
static int change_word(struct gt_patcher *patcher, uint64_t address, uint64_t value)
{
	struct gt_edit *edit = gt_edits_add(&patcher->tracee->edits);

	if (edit == NULL)
		return GT_ENOMEM;
	edit->address = address;
	edit->main = edit->on = true;
	edit->bytes = sizeof(value);
	memcpy(edit->value, &value, sizeof(value));
	return 0;
}

/* Leads the site to the probes that are wanted, in the order in which they were set. */
static int link_probes(struct gt_patcher *patcher, uint32_t site,
		       const struct gt_selection *selection, bool *any)
{
	struct gt_tracee_object *object = patcher->object;
	const uint64_t line = object->probes[site].line;
	uint64_t first = 0;
	uint32_t wanted = 0;
	int error = 0;

	*any = false;
	for (uint32_t i = object->probe_count; !error && i-- > site;) {
		struct gt_tracee_probe *probe = &object->probes[i];

		if (object->file->probes[i].site != site)
			continue;
		probe->on = is_wanted(object, i, selection);
		if (!probe->on)
			continue;
		*any = true;
		wanted++;
		if (!probe->told || probe->stale) {
			probe->next = first;
			error = put_probe(patcher, i);
			probe->on = !error;
			probe->stale = error;
		} else if (probe->next != first) {
			probe->next = first;
			error = change_word(patcher, probe->told, first);
		}
		first = probe->told;
	}
	if (!error)
		error = change_word(patcher, object->probes[site].stub + GRAFTRACE_STUB_BYTES,
				    first);
	if (!error && line)
		error = change_word(
			patcher, line + offsetof(struct graftrace_event_line, bytes),
			wanted == 1 && object->probes[site].on
				? 8ull * gt_event_line_words(
						 object->file->probes[site].probe->argument_count)
				: 0);
	return error;
}

/* ---- patches ---- */

static struct gt_change change_of(struct gt_tracee_object *object, uint32_t site, bool on)
{
	struct gt_tracee_probe *probe = &object->probes[site];
	const struct gt_plan_entry *entry = &object->file->probes[site].plan;

	return (struct gt_change){
		.entry = entry,
		.stub = led_to(probe),
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

/* Everything that the jump will lead to. GT_EAGAIN: nothing is to be done here. */
static int prepare(struct gt_patcher *patcher, uint32_t site, uint64_t *moved, uint64_t *body,
		   struct gt_plan_map *map)
{
	struct gt_tracee_object *object = patcher->object;
	const struct gt_plan_entry *entry = &object->file->probes[site].plan;
	int error = 0;

	if (entry->way == GT_PLAN_NONE ||
	    (entry->way == GT_PLAN_BREAKPOINT && !patcher->tracee->traps))
		return GT_EAGAIN;
	*body = entry->body + object->bias;
	if (entry->moved_bytes_max)
		error = gt_patcher_move(patcher, entry, moved, map);
	if (!error && !entry->body)
		*body = *moved;
	return error ? error : put_stub(patcher, site, *body);
}

static int enable(struct gt_patcher *patcher, uint32_t site)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_probe *probe = &object->probes[site];
	const struct gt_plan_entry *entry = &object->file->probes[site].plan;
	const uint64_t address = entry->patch_address + object->bias;
	uint8_t jump[8] = { 0 };
	struct gt_change change;
	struct gt_plan_map map;
	uint64_t body;
	int error;

	if (entry->way != GT_PLAN_NONE &&
	    !gt_patcher_finds(patcher, address, entry->original, entry->covered_bytes)) {
		probe->state = GT_FUNCTION_FOREIGN;
		return GT_EAGAIN;
	}
	error = prepare(patcher, site, &probe->moved, &body, &map);
	if (!error && entry->way == GT_PLAN_BREAKPOINT)
		error = gt_traps_note(patcher->tracee, address, probe->stub);
	if (!error)
		error = put_line(patcher, site, body);
	if (!error)
		error = gt_patcher_reserve(patcher, &probe->noted, 1);
	if (!error)
		error = gt_plan_jump(object->file->plan, entry, object->bias, led_to(probe), jump);
	if (!error) {
		change = change_of(object, site, true);
		memcpy(change.before, entry->original, sizeof(change.before));
		memcpy(change.after, jump, sizeof(change.after));
		error = gt_patcher_change(patcher, &change, jump);
	}
	if (!error)
		error = gt_patcher_displace(patcher, entry, body, entry->body ? NULL : &map);
	return error;
}

static int disable(struct gt_patcher *patcher, uint32_t site)
{
	struct gt_tracee_object *object = patcher->object;
	const struct gt_plan_entry *entry = &object->file->probes[site].plan;
	struct gt_change change = change_of(object, site, false);
	uint8_t jump[8] = { 0 };
	int error = gt_plan_jump(object->file->plan, entry, object->bias, change.stub, jump);

	if (!error) {
		memcpy(change.before, jump, sizeof(jump));
		memcpy(change.after, entry->original, sizeof(change.after));
		error = gt_patcher_change(patcher, &change, jump);
	}
	return error;
}

/* The function's stub will lead to the site's. */
static int enable_entry(struct gt_patcher *patcher, uint32_t site)
{
	struct gt_tracee_object *object = patcher->object;
	const uint32_t function = object->file->probes[site].function;
	struct gt_plan_map map;
	uint64_t body;
	int error;

	if (object->entry_sites == NULL)
		object->entry_sites =
			calloc(object->file->function_count + 1ul, sizeof(*object->entry_sites));
	if (object->entry_sites == NULL)
		return GT_ENOMEM;
	if (object->states[function] == GT_FUNCTION_FOREIGN) {
		object->probes[site].state = GT_FUNCTION_FOREIGN;
		return GT_EAGAIN;
	}
	error = prepare(patcher, site, &object->moved[function], &body, &map);
	if (!error) {
		object->entry_sites[function] = site + 1;
		object->probes[site].state = GT_FUNCTION_TRACED;
	}
	return error;
}

/* … or goes there after its body. */
static int put_return_stub(struct gt_patcher *patcher, uint32_t site)
{
	struct gt_tracee_object *object = patcher->object;
	struct gt_tracee_probe *probe = &object->probes[site];
	const struct graftrace_agent_image *header = &patcher->tracee->agent.header;
	const uint64_t stands =
		gt_region_stub_address(patcher->region,
				       object->slot + object->file->probes[site].function) +
		GRAFTRACE_STUB_LEAVES;
	const struct graftrace_probe_site nowhere = { 0 };
	uint8_t bytes[GRAFTRACE_STUB_BYTES], places[GRAFTRACE_PLACES_BYTES];
	const bool fresh = !probe->stub;
	int error;

	if (fresh)
		probe->stub = gt_region_alloc(patcher->region, sizeof(bytes) + sizeof(nowhere),
					      GRAFTRACE_STUB_BYTES);
	if (!probe->stub)
		return GT_ENOSPC;
	probe->target = header->exit;
	error = gt_region_values_stub(patcher->region, probe->stub, header->event, probe->target,
				      bytes);
	if (!error)
		error = gt_editor_put(&patcher->moved, probe->stub, bytes, sizeof(bytes));
	if (!error && fresh)
		error = gt_editor_put(&patcher->moved, probe->stub + sizeof(bytes), &nowhere,
				      sizeof(nowhere));
	memset(places, GRAFTRACE_PLACES_PUSHED, sizeof(places));
	for (uint32_t from = 0; !error && fresh && from < sizeof(bytes);
	     from += GRAFTRACE_PLACES_BYTES)
		error = gt_patcher_put_places(patcher, probe->stub + from, stands, places);
	return error;
}

static int enable_return(struct gt_patcher *patcher, uint32_t site)
{
	struct gt_tracee_object *object = patcher->object;
	const uint32_t function = object->file->probes[site].function;
	const struct gt_plan_entry *entry = &object->file->probes[site].plan;
	int error;

	if (object->return_sites == NULL)
		object->return_sites =
			calloc(object->file->function_count + 1ul, sizeof(*object->return_sites));
	if (object->return_sites == NULL)
		return GT_ENOMEM;
	if (object->states[function] == GT_FUNCTION_FOREIGN)
		object->probes[site].state = GT_FUNCTION_FOREIGN;
	if (!object->stubbed || object->states[function] == GT_FUNCTION_FOREIGN ||
	    entry->way == GT_PLAN_NONE ||
	    (entry->way == GT_PLAN_BREAKPOINT && !patcher->tracee->traps) ||
	    gt_patch_is_entry_only(patcher->tracee, object, entry))
		return GT_EAGAIN;
	error = put_return_stub(patcher, site);
	if (!error) {
		object->return_sites[function] = site + 1;
		object->probes[site].state = GT_FUNCTION_TRACED;
	}
	return error;
}

int gt_probes_lead_return(struct gt_patcher *patcher, uint32_t function, uint64_t *leave)
{
	const struct gt_tracee_object *object = patcher->object;
	const uint32_t site = object->return_sites[function] - 1;
	struct gt_tracee_probe *probe = &object->probes[site];
	const struct graftrace_agent_image *header = &patcher->tracee->agent.header;
	const uint64_t hot = patcher->region->start + GRAFTRACE_REGION_HOT_OFFSET;
	const uint32_t target = *leave ? (uint32_t)(*leave - hot) : header->exit;
	uint8_t bytes[GRAFTRACE_STUB_BYTES];
	struct gt_edit *edit;
	int error;

	*leave = probe->stub;
	if (probe->target == target)
		return 0;
	error = gt_region_values_stub(patcher->region, probe->stub, header->event, target, bytes);
	edit = error ? NULL : gt_edits_add(&patcher->tracee->edits);
	if (edit == NULL)
		return error ? error : GT_ENOMEM;
	edit->address = probe->stub + VALUES_STUB_TARGET;
	edit->main = edit->on = true;
	edit->bytes = 4;
	memcpy(edit->value, bytes + VALUES_STUB_TARGET, 4);
	probe->target = target;
	return 0;
}

static bool is_chained(const struct gt_patcher *patcher, uint32_t site)
{
	return patcher->object->stubbed &&
	       patcher->object->file->probes[site].kind == GT_PROBE_ENTRY;
}

/* One site, where a probe was switched on or off. */
static int settle_site(struct gt_patcher *patcher, uint32_t site,
		       const struct gt_selection *selection)
{
	struct gt_tracee_probe *probe = &patcher->object->probes[site];
	const bool was = probe->state == GT_FUNCTION_TRACED;
	const bool is_return = patcher->object->file->probes[site].kind == GT_PROBE_RETURN;
	bool any = false;
	int error = 0;

	if (!was)
		error = is_return		    ? enable_return(patcher, site)
			: is_chained(patcher, site) ? enable_entry(patcher, site)
						    : enable(patcher, site);
	if (!error)
		error = link_probes(patcher, site, selection, &any);
	if (!error && !any && was && !is_return && !is_chained(patcher, site))
		error = disable(patcher, site);
	return error == GT_EAGAIN || gt_patcher_may_go_on(error) ? 0 : error;
}

/* Sites where a probe is not as it should be: on where it can be, off elsewhere. */
static bool is_dirty(const struct gt_tracee_object *object, uint32_t index,
		     const struct gt_selection *selection)
{
	const struct gt_tracee_probe *site = &object->probes[object->file->probes[index].site];

	return site->state != GT_FUNCTION_FOREIGN &&
	       is_wanted(object, index, selection) != object->probes[index].on;
}

/* What is to happen at the event is in memory before its probe is on. */
static int arm(const struct gt_tracee_object *object, uint32_t index,
	       const struct gt_selection *selection, struct gt_message *message)
{
	struct gt_event_format event;

	if (selection->event_rules == NULL || !selection->event_rules->count ||
	    !is_wanted(object, index, selection))
		return 0;
	gt_catalog_describe_event(object->file, index, &event);
	return gt_event_rules_arm(selection->event_rules, &event,
				  is_recorded(object, index, selection), message);
}

int gt_probes_patch(struct gt_tracee *tracee, struct gt_tracee_object *object,
		    const struct gt_selection *selection, bool running, struct gt_message *message)
{
	struct gt_patcher *patcher = NULL;
	int error;

	if (object->region < 0 || object->gone || !object->file->probe_count)
		return 0;
	error = gt_probes_plan(object, selection, message);
	if (!error)
		error = know_all(object);
	for (uint32_t i = 0; !error && i < object->probe_count; i++) {
		const uint32_t site = object->file->probes[i].site;

		error = arm(object, i, selection, message);
		if (error || !object->file->probes[i].planned || !is_dirty(object, i, selection))
			continue;
		if (patcher == NULL)
			patcher = gt_patcher_start(tracee, object, running, message);
		error = patcher != NULL ? 0 : GT_ENOMEM;
		if (!error)
			error = settle_site(patcher, site, selection);
	}
	return patcher != NULL ? gt_patcher_finish(patcher, error, message) : error;
}

bool gt_probes_need_traps(const struct gt_tracee_object *object,
			  const struct gt_selection *selection)
{
	for (uint32_t i = 0; i < object->file->probe_count; i++)
		if (object->file->probes[i].planned &&
		    object->file->probes[object->file->probes[i].site].plan.way ==
			    GT_PLAN_BREAKPOINT &&
		    is_wanted(object, i, selection))
			return true;
	return false;
}

bool gt_probes_is_on(const struct gt_tracee_object *object, uint32_t index, bool *foreign)
{
	const struct gt_tracee_probe *site;

	*foreign = false;
	if (index >= object->probe_count)
		return false;
	site = &object->probes[object->file->probes[index].site];
	*foreign = site->state == GT_FUNCTION_FOREIGN;
	return object->probes[index].on && site->state == GT_FUNCTION_TRACED;
}

/* The semaphore is the program's; who else listens counts there, too. */
static void count_semaphore(const struct gt_tracee *tracee, const struct gt_tracee_object *object,
			    uint32_t index, bool up)
{
	const uint64_t at = object->file->probes[index].probe->semaphore + object->bias;
	uint16_t value;

	if (gt_process_read(&tracee->process, at, &value, sizeof(value)) ||
	    value == (up ? UINT16_MAX : 0))
		return;
	value = (uint16_t)(up ? value + 1 : value - 1);
	gt_process_write(&tracee->process, at, &value, sizeof(value));
}

static void settle(struct gt_tracee *tracee, bool leaves)
{
	for (size_t i = 0; i < tracee->object_count; i++) {
		struct gt_tracee_object *object = tracee->objects[i];

		if (object->gone || object->region < 0)
			continue;
		for (uint32_t k = 0; k < object->probe_count; k++) {
			struct gt_tracee_probe *probe = &object->probes[k];
			bool foreign;
			const bool listens = !leaves && gt_probes_is_on(object, k, &foreign);

			if (!object->file->probes[k].probe->semaphore || listens == probe->counted)
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

void gt_probes_come_back(struct gt_tracee_object *object)
{
	for (uint32_t i = 0; i < object->probe_count; i++) {
		object->probes[i].state = GT_FUNCTION_UNTOUCHED;
		object->probes[i].on = object->probes[i].counted = false;
		object->probes[i].stale = true;
	}
}

uint64_t gt_probes_entry_stub(const struct gt_tracee_object *object, uint32_t function)
{
	const uint32_t site = object->entry_sites != NULL ? object->entry_sites[function] : 0;

	return site ? object->probes[site - 1].stub : 0;
}

bool gt_probes_have_entry(const struct gt_tracee_object *object, uint32_t function)
{
	const uint32_t site = object->entry_sites != NULL ? object->entry_sites[function] : 0;

	for (uint32_t i = site ? site - 1 : object->probe_count; i < object->probe_count; i++)
		if (object->file->probes[i].site == site - 1 && object->probes[i].on)
			return true;
	return false;
}

bool gt_probes_has_return(const struct gt_tracee_object *object, uint32_t function)
{
	return object->return_sites != NULL && object->return_sites[function];
}

bool gt_probes_have_return(const struct gt_tracee_object *object, uint32_t function)
{
	const uint32_t site = object->return_sites != NULL ? object->return_sites[function] : 0;

	for (uint32_t i = site ? site - 1 : object->probe_count; i < object->probe_count; i++)
		if (object->file->probes[i].site == site - 1 && object->probes[i].on)
			return true;
	return false;
}

uint64_t gt_probes_old_place(const struct gt_tracee_object *object, uint64_t address)
{
	for (uint32_t i = 0; i < object->probe_count; i++) {
		const struct gt_plan_entry *entry = &object->file->probes[i].plan;
		const uint64_t moved = object->probes[i].moved;
		uint8_t code[GT_PLAN_MOVED_MAX];
		struct gt_plan_map map;

		if (!moved || address - moved >= entry->moved_bytes_max ||
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
