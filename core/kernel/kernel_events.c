/* SPDX-License-Identifier: MIT */
/*
 * A kernel's static events: which are on, and their control files. The kernel knows their formats
 * (gt_arena_names.event) and patches them (gt_arena_machine.patch_events). Any thread.
 */
#include "core/kernel/kernel_private.h"

#define PATH_BYTES 128u

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
	if (control->event_count == 0)
		return 0;
	const int error = gt_arena_rules_arm(control, message);
	for (uint32_t i = 0; i < control->event_count; i++)
		control->events_wanted[i] = is_wanted(control, i);
	control->machine->patch_events(control->machine->data, control->events_wanted);
	return error;
}

int gt_arena_event(struct gt_control_target *target, uint64_t index, struct gt_control_event *event)
{
	struct gt_arena_control *control = gt_arena_self(target);
	if (index >= control->event_count ||
	    gt_arena_event_format(control, index, &event->format) != 0)
		return GT_ENOENT;
	gt_arena_lock(control);
	event->enabled = gt_arena_event_is_on(control, (uint32_t)index, &event->format);
	event->soft = gt_arena_event_acts(control, &event->format);
	gt_arena_unlock(control);
	return 0;
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

/* Each event's rows, and those of each system. */
static bool add_rows(struct gt_arena_control *control, struct gt_control_file *rows)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < control->event_count; i++) {
		struct gt_event_format format;
		if (gt_arena_event_format(control, i, &format) != 0)
			continue;
		const bool is_first = is_first_of_system(control, i, format.system);
		for (uint32_t k = 0; is_first && k < system_kind_count(control); k++)
			if (!add_row(control, rows, &count, system_kinds[k].which,
				     system_kinds[k].path, format.system, "", i))
				return false;
		for (uint32_t k = 0; k < kind_count(control); k++)
			if (!add_row(control, rows, &count, kinds[k].which, kinds[k].path,
				     format.system, format.name, i))
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
	gt_arena_rules_init(control);
	control->has_blocks = has_event(control, "block:block_rq_issue");
	control->has_latencies = control->machine->latency_measure != NULL &&
				 has_event(control, "preemptirq:irq_disable");
	return add_rows(control, rows) ? 0 : GT_ENOMEM;
}
