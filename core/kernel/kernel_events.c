/* SPDX-License-Identifier: MIT */
/*
 * A kernel's events: which are on, and their control files. The kernel knows the formats of the static ones
 * (gt_arena_names.event) and patches them (gt_arena_machine.patch_events); of all others: kernel_later.c. Any thread.
 */
#include "core/kernel/kernel_private.h"

#define PATH_BYTES 192u

/* Rows of an event, and that of a system. */
static const struct {
	enum gt_control_event_file which;
	const char *path;
} kinds[] = {
	{ GT_EVENT_ENABLE, "events/%s/%s/enable" },
	{ GT_EVENT_FORMAT, "events/%s/%s/format" },
	{ GT_EVENT_ID, "events/%s/%s/id" },
	{ GT_EVENT_FILTER, "events/%s/%s/filter" },
	{ GT_EVENT_TRIGGER, "events/%s/%s/trigger" },
	{ GT_EVENT_HIST, "events/%s/%s/hist" },
}, system_kinds[] = {
	{ GT_EVENT_SYSTEM_ENABLE, "events/%s/enable" },
	{ GT_EVENT_SYSTEM_FILTER, "events/%s/filter" },
};

/* Of those without memory for rules: the first ones. */
#define KINDS_WITHOUT_RULES	   3u
#define SYSTEM_KINDS_WITHOUT_RULES 1u

int gt_arena_event_format(const struct gt_arena_control *control, uint64_t index,
			  struct gt_event_format *format)
{
	const struct gt_arena_names *names = control->ring->names;
	return names->event != NULL && index < UINT32_MAX
		       ? names->event(names->data, (uint32_t)index + 1, format)
		       : GT_ENOENT;
}

uint8_t gt_arena_tracer_wants(const struct gt_arena_control *control, uint32_t index)
{
	struct gt_event_format format;
	if (control->tracer < GRAFTRACE_TRACER_BLK ||
	    gt_arena_event_format(control, index, &format) != 0)
		return 0;
	if (control->tracer == GRAFTRACE_TRACER_BLK)
		return gt_event_word_matches("block:", format.system, format.name)
			       ? GRAFTRACE_EVENT_RECORDED
			       : 0;
	return gt_event_word_matches("preemptirq:", format.system, format.name)
		       ? GRAFTRACE_EVENT_MEASURED
		       : 0;
}

static uint8_t is_wanted(const struct gt_arena_control *control, uint32_t index)
{
	struct gt_event_format format;
	uint8_t wanted = gt_arena_tracer_wants(control, index) |
			 (control->events[index] ? GRAFTRACE_EVENT_RECORDED : 0);
	if (control->has_rules && gt_arena_event_format(control, index, &format) == 0 &&
	    gt_arena_event_acts(control, &format))
		wanted |= GRAFTRACE_EVENT_RECORDED | GRAFTRACE_EVENT_ACTS;
	return wanted;
}

int gt_arena_events_patch(struct gt_arena_control *control, struct gt_message *message)
{
	const int error = gt_arena_rules_arm(control, message);
	gt_arena_probes_patch(control);
	if (control->event_count == 0)
		return error;
	for (uint32_t i = 0; i < control->event_count; i++)
		control->events_wanted[i] = is_wanted(control, i);
	control->machine->patch_events(control->machine->data, control->events_wanted);
	return error;
}

/* Of those that were defined since, one by its number, or the index'th behind the static ones. */
static bool find_later(const struct gt_arena_control *control, uint64_t index, uint32_t *later)
{
	struct gt_event_format format;
	if (index >= GT_CONTROL_BY_NUMBER) {
		const uint64_t number = index - GT_CONTROL_BY_NUMBER;
		*later = (uint32_t)(number - control->ring->later_first);
		return number >= control->ring->later_first && number <= UINT32_MAX;
	}
	index -= control->event_count;
	for (*later = 0; *later < gt_arena_later_count(control); ++*later)
		if (gt_arena_later_event(control, *later, &format) && index-- == 0)
			return true;
	return false;
}

/* *on: by set_event. */
static bool find_event(const struct gt_arena_control *control, uint64_t index,
		       struct gt_event_format *format, bool *on)
{
	uint32_t later;
	if (index < control->event_count) {
		*on = control->events[index] != 0;
		return gt_arena_event_format(control, index, format) == 0;
	}
	if (!find_later(control, index, &later) || !gt_arena_later_event(control, later, format))
		return false;
	*on = control->later[later].on != 0;
	return true;
}

int gt_arena_event(struct gt_control_target *target, uint64_t index, struct gt_control_event *event)
{
	struct gt_arena_control *control = gt_arena_self(target);
	bool on = false;
	gt_arena_lock(control);
	const bool found = find_event(control, index, &event->format, &on);
	if (found) {
		event->enabled = gt_arena_event_is_on(control, on, &event->format);
		event->soft = gt_arena_event_acts(control, &event->format);
	}
	gt_arena_unlock(control);
	return found ? 0 : GT_ENOENT;
}

/* Marks what the word (NULL: all) names; false: it names none. */
static bool mark_events(struct gt_arena_control *control, const char *word, bool on)
{
	struct gt_event_format format;
	bool any = false;
	for (uint32_t i = 0; i < control->event_count; i++) {
		if (word != NULL && (gt_arena_event_format(control, i, &format) != 0 ||
				     !gt_event_word_matches(word, format.system, format.name)))
			continue;
		control->events[i] = on;
		any = true;
	}
	for (uint32_t i = 0; i < gt_arena_later_count(control); i++) {
		if (!gt_arena_later_event(control, i, &format) ||
		    (word != NULL && !gt_event_word_matches(word, format.system, format.name)))
			continue;
		control->later[i].on = on;
		any = true;
	}
	return any;
}

int gt_arena_event_set(struct gt_control_target *target, const char *word, size_t word_bytes,
		       bool on, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	char text[GT_ARENA_GLOB_BYTES];
	bool any = true;
	if (word_bytes >= sizeof(text))
		return GT_EINVAL;
	__builtin_memcpy(text, word, word_bytes);
	text[word_bytes] = 0;
	gt_arena_lock(control);
	if (word_bytes != 0)
		any = mark_events(control, text, on);
	else
		mark_events(control, NULL, on);
	const int error = any ? gt_arena_events_patch(control, message) : GT_EINVAL;
	gt_arena_unlock(control);
	return error; /* where no event has the word, the caller names it */
}

/* ---- rows ---- */

static bool is_same(const char *a, const char *b)
{
	size_t length = gt_row_length(a);
	return length == gt_row_length(b) && __builtin_memcmp(a, b, length) == 0;
}

static bool is_first_of_system(const struct gt_arena_control *control, uint32_t index,
			       const char *system)
{
	struct gt_event_format before;
	for (uint32_t i = 0; i < index; i++)
		if (gt_arena_event_format(control, i, &before) == 0 &&
		    is_same(before.system, system))
			return false;
	return true;
}

static bool add_row(struct gt_arena_control *control, struct gt_control_file *rows, uint32_t *count,
		    enum gt_control_event_file which, const char *form, const char *system,
		    const char *name, uint32_t index)
{
	char path[PATH_BYTES];
	size_t bytes = gt_format(path, sizeof(path), form, system, name);
	char *kept = bytes < sizeof(path) ? gt_memory_get(&control->memory, bytes + 1) : NULL;
	if (kept == NULL)
		return false;
	__builtin_memcpy(kept, path, bytes + 1);
	rows[(*count)++] = gt_control_event_file(which, kept, index);
	return true;
}

static uint32_t kind_count(const struct gt_arena_control *control)
{
	return control->has_rules ? COUNT(kinds) : KINDS_WITHOUT_RULES;
}

static uint32_t system_kind_count(const struct gt_arena_control *control)
{
	return control->has_rules ? COUNT(system_kinds) : SYSTEM_KINDS_WITHOUT_RULES;
}

/* The rows of one event, or (name NULL) of its system, behind those that there are. */
static bool put_rows(struct gt_arena_control *control, const char *system, const char *name,
		     uint32_t index, struct gt_control_file *rows, uint32_t *count)
{
	for (uint32_t k = 0; name == NULL && k < system_kind_count(control); k++)
		if (!add_row(control, rows, count, system_kinds[k].which, system_kinds[k].path,
			     system, "", index))
			return false;
	for (uint32_t k = 0; name != NULL && k < kind_count(control); k++)
		if (!add_row(control, rows, count, kinds[k].which, kinds[k].path, system, name,
			     index))
			return false;
	return true;
}

bool gt_arena_event_rows(struct gt_arena_control *control, const char *system, const char *name,
			 struct gt_control_file **rows, uint32_t *count)
{
	const uint32_t most = name != NULL ? COUNT(kinds) : COUNT(system_kinds);
	*count = 0;
	*rows = gt_memory_get(&control->memory, most * sizeof(**rows));
	return *rows != NULL && put_rows(control, system, name, 0, *rows, count);
}

/* Each event's rows, and those of each system. */
static bool add_rows(struct gt_arena_control *control, struct gt_control_file *rows)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < control->event_count; i++) {
		struct gt_event_format format;
		if (gt_arena_event_format(control, i, &format) != 0)
			continue;
		if (is_first_of_system(control, i, format.system) &&
		    !put_rows(control, format.system, NULL, i, rows, &count))
			return false;
		if (!put_rows(control, format.system, format.name, i, rows, &count))
			return false;
	}
	control->groups[2] = (struct gt_control_group){ rows, count };
	return true;
}

static bool has_event(const struct gt_arena_control *control, const char *word)
{
	struct gt_event_format format;
	for (uint32_t i = 0; i < control->event_count; i++)
		if (gt_arena_event_format(control, i, &format) == 0 &&
		    gt_event_word_matches(word, format.system, format.name))
			return true;
	return false;
}

int gt_arena_events_init(struct gt_arena_control *control)
{
	struct gt_event_format format;
	uint32_t count = 0;
	control->event_count = 0;
	control->ring->later_first = 1;
	if (control->machine->patch_events == NULL)
		return 0;
	while (gt_arena_event_format(control, count, &format) == 0)
		count++;
	if (count == 0)
		return 0;
	control->events = gt_memory_get(&control->memory, count);
	control->events_wanted = gt_memory_get(&control->memory, count);
	struct gt_control_file *rows = gt_memory_get(
		&control->memory, count * (COUNT(kinds) + COUNT(system_kinds)) * sizeof(*rows));
	if (control->events == NULL || control->events_wanted == NULL || rows == NULL)
		return GT_ENOMEM;
	__builtin_memset(control->events, 0, count);
	control->event_count = count;
	control->ring->later_first = count + 1;
	gt_arena_rules_init(control);
	control->has_blocks = has_event(control, "block:block_rq_issue");
	control->has_latencies = control->machine->latency_measure != NULL &&
				 has_event(control, "preemptirq:irq_disable");
	return add_rows(control, rows) ? 0 : GT_ENOMEM;
}
