/* SPDX-License-Identifier: MIT */
/*
 * Filters, triggers and histograms of a kernel's static events, as operations of the control files. The rules stand in
 * memory that the kernel gave (gt_kernel_rules_init); how they are made is core/trace/event_rules.h. Any thread; all of
 * it holds the kernel's lock.
 */
#include "core/kernel/kernel_private.h"
#include "core/trace/event_trigger.h"
#include "core/trace/hist_text.h"
#include "core/trace/strings.h"

static bool find_arena(void *data, uint32_t index, struct gt_rules_arena *found)
{
	const struct gt_arena_control *control = data;
	struct graftrace_arena *arena = control->ring->arena;

	*found = (struct gt_rules_arena){ arena, (char *)arena + arena->hists_offset };
	return index == 0;
}

static const struct gt_event_format *find_event(void *data, const char *system, const char *name,
						struct gt_event_format *room)
{
	const struct gt_arena_control *control = data;

	uint32_t later;

	for (uint32_t i = 0; i < control->event_count; i++)
		if (gt_arena_event_format(control, i, room) == 0 &&
		    gt_string_is(room->system, system) && gt_string_is(room->name, name))
			return room;
	return gt_arena_later_find(control, system, name, &later) &&
			       gt_arena_later_event(control, later, room)
		       ? room
		       : NULL;
}

void gt_arena_rules_init(struct gt_arena_control *control)
{
	const struct graftrace_arena *arena = control->ring->arena;

	control->has_rules = arena->event_count > control->event_count;
	if (!control->has_rules)
		return;
	control->rules_host = (struct gt_rules_host){
		.memory = control->memory,
		.clock = &control->ring->clock,
		.hists_bytes = arena->hists_bytes,
		.arena = find_arena,
		.find_event = find_event,
		.data = control,
	};
	control->filter_texts.memory = control->memory;
	gt_event_rules_init(&control->rules, &control->rules_host);
}

static int refuse(struct gt_message *message)
{
	return REFUSE(message, GT_ENOTSUP, "this kernel gave no memory for filters and triggers");
}

/* Whether the event is recorded, by set_event or by a trigger that enables and disables it. */
bool gt_arena_event_is_on(const struct gt_arena_control *control, bool on,
			  const struct gt_event_format *format)
{
	if (control->has_rules)
		gt_event_rules_gate(&control->rules, format->system, format->name, &on);
	return on;
}

bool gt_arena_event_acts(const struct gt_arena_control *control,
			 const struct gt_event_format *format)
{
	return control->has_rules &&
	       gt_event_rules_act(&control->rules, format->system, format->name);
}

int gt_arena_rule_arm(struct gt_arena_control *control, const struct gt_event_format *format,
		      bool on, struct gt_message *message)
{
	return gt_event_rules_arm(&control->rules, format, on, message);
}

/* Whether it needs a rule that says it is off: a probe that does nothing does not happen. */
static bool is_needed_off(const struct gt_arena_control *control, uint32_t index,
			  const struct gt_event_format *format)
{
	return control->synthetics[index] != NULL || gt_arena_event_acts(control, format);
}

/* Later ones first: a histogram of another event may make them. */
int gt_arena_rules_arm(struct gt_arena_control *control, struct gt_message *message)
{
	struct gt_event_format format;
	int error = 0;

	if (!control->has_rules)
		return 0;
	for (uint32_t i = 0; error == 0 && i < gt_arena_later_count(control); i++)
		if (gt_arena_later_event(control, i, &format))
			error = gt_arena_rule_arm(control, &format,
						  control->later[i].on ||
							  !is_needed_off(control, i, &format),
						  message);
	for (uint32_t i = 0; error == 0 && i < control->event_count; i++)
		if (gt_arena_event_format(control, i, &format) == 0)
			error = gt_arena_rule_arm(control, &format,
						  control->events[i] ||
							  gt_arena_tracer_wants(control, i) &
								  GRAFTRACE_EVENT_RECORDED,
						  message);
	return error;
}

/* ---- filters ---- */

int gt_arena_filter_set(struct gt_control_target *target, const char *word, const char *filter,
			size_t bytes, const struct gt_event_filter_error *failed,
			struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	char *copy = NULL;
	int error;

	if (!control->has_rules)
		return refuse(message);
	if (bytes > 0 && failed == NULL) {
		copy = gt_string_keep(&control->memory, filter, bytes);
		if (copy == NULL)
			return gt_arena_no_memory(message);
	}
	gt_arena_lock(control);
	error = gt_event_rules_set_filter(&control->rules, word, copy, message);
	if (error == 0) {
		error = gt_arena_rules_arm(control, message);
		if (error != 0 && gt_event_rules_set_filter(&control->rules, word, NULL, NULL) == 0)
			gt_arena_rules_arm(control, NULL);
	}
	if (error == 0 &&
	    gt_filter_texts_set(&control->filter_texts, word, filter, bytes, failed) != 0)
		error = gt_arena_no_memory(message);
	gt_arena_unlock(control);
	if (copy != NULL)
		gt_memory_put(&control->memory, copy, bytes + 1);
	return error;
}

int64_t gt_arena_filter_read(struct gt_control_target *target, const char *word, uint64_t offset,
			     char *buffer, size_t bytes)
{
	struct gt_arena_control *control = gt_arena_self(target);
	size_t given;

	gt_arena_lock(control);
	given = gt_filter_texts_read(&control->filter_texts, word, offset, buffer, bytes);
	gt_arena_unlock(control);
	return (int64_t)given;
}

/* ---- triggers ---- */

int gt_arena_trigger_set(struct gt_control_target *target, const char *word,
			 const struct gt_event_trigger *trigger, bool remove,
			 struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	const struct gt_arena_machine *machine = control->machine;
	const bool later = gt_event_trigger_takes_snapshots(trigger);
	int error;

	if (!control->has_rules)
		return refuse(message);
	if (later && !remove && machine->watch == NULL)
		return REFUSE(message, GT_ENOTSUP, "this kernel has no thread for that");
	gt_arena_lock(control);
	error = gt_event_rules_trigger(&control->rules, word, trigger, remove, message);
	if (error == 0) {
		error = gt_arena_events_patch(control, message);
		/* One that has no room would leave none to all that come later. */
		if (error != 0 && !remove &&
		    gt_event_rules_trigger(&control->rules, word, trigger, true, NULL) == 0)
			gt_arena_events_patch(control, NULL);
	}
	if (error == 0 && !remove) {
		error = gt_event_rules_fits(&control->rules, word, trigger, message);
		if (error != 0)
			gt_arena_events_patch(control, NULL);
	}
	if (error == 0 && later && !remove)
		machine->watch(machine->data);
	gt_arena_unlock(control);
	return error;
}

int gt_arena_trigger_get(struct gt_control_target *target, const char *word, uint32_t index,
			 struct gt_event_trigger *trigger, char *text, size_t room)
{
	struct gt_arena_control *control = gt_arena_self(target);
	bool found = false;

	gt_arena_lock(control);
	if (control->has_rules)
		found = gt_event_rules_copy_trigger(&control->rules, word, index, trigger, text,
						    room);
	gt_arena_unlock(control);
	return found ? 0 : GT_ENOENT;
}

bool gt_arena_rules_take_snapshots(const struct gt_arena_control *control)
{
	for (size_t i = 0; control->has_rules && i < control->rules.count; i++)
		if (gt_event_rules_have_action(&control->rules, control->rules.rules[i].word,
					       GRAFTRACE_RULE_SNAPSHOT))
			return true;
	return false;
}

/* ---- histograms ---- */

int gt_arena_hist_check(struct gt_control_target *target, const char *word, const char *text,
			bool is_new, struct gt_hist_error *error)
{
	struct gt_arena_control *control = gt_arena_self(target);
	struct gt_hist *hist;
	int result = GT_ENOTSUP;

	*error = (struct gt_hist_error){ 0 };
	hist = gt_memory_get(&control->memory, sizeof(*hist));
	if (hist == NULL)
		return GT_ENOMEM;
	gt_arena_lock(control);
	if (control->has_rules)
		result =
			gt_event_rules_parse_hist(&control->rules, word, text, is_new, hist, error);
	gt_arena_unlock(control);
	gt_memory_put(&control->memory, hist, sizeof(*hist));
	return result;
}

struct naming {
	const struct gt_arena_names *names;
	struct gt_function function;
};

static const char *function_at(void *data, uint64_t address, uint64_t *start, uint64_t *bytes)
{
	struct naming *naming = data;
	const struct gt_arena_names *names = naming->names;

	if (names->function_at == NULL ||
	    names->function_at(names->data, address, &naming->function) != 0)
		return NULL;
	*start = naming->function.address;
	*bytes = naming->function.size;
	return naming->function.name;
}

static const char *numbered(void *data, uint32_t number)
{
	struct naming *naming = data;

	return naming->names->function(naming->names->data, number, &naming->function) == 0
		       ? naming->function.name
		       : NULL;
}

static int add_all(struct gt_arena_control *control, const char *word, struct gt_hist_text *text)
{
	struct naming naming = { .names = control->ring->names };
	const struct gt_hist_names names = { .function = function_at,
					     .numbered = numbered,
					     .data = &naming };
	struct gt_hist_copy copy;
	int error = 0;

	for (uint32_t i = 0; error == 0; i++) {
		error = gt_event_rules_hist(&control->rules, word, i, &copy);
		if (error != 0)
			break;
		error = gt_hist_text_add(text, &copy, &names);
		gt_hist_copy_free(&copy);
	}
	return error;
}

int gt_arena_hists_open(struct gt_control_target *target, const char *word, void **hists,
			struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	struct gt_hist_text *text = gt_memory_get(&control->memory, sizeof(*text));
	int error = GT_ENOENT;

	if (text == NULL)
		return gt_arena_no_memory(message);
	*text = (struct gt_hist_text){ .memory = control->memory };
	gt_arena_lock(control);
	if (control->has_rules)
		error = add_all(control, word, text);
	gt_arena_unlock(control);
	*hists = text;
	if (error == GT_ENOENT) /* behind the last one */
		return 0;
	gt_arena_hists_close(target, text);
	return gt_arena_no_memory(message);
}

size_t gt_arena_hists_read(struct gt_control_target *target, void *hists, uint64_t offset,
			   char *buffer, size_t bytes)
{
	(void)target;
	return gt_hist_text_read(hists, offset, buffer, bytes);
}

void gt_arena_hists_close(struct gt_control_target *target, void *hists)
{
	struct gt_hist_text *text = hists;

	gt_hist_text_fini(text);
	gt_memory_put(&gt_arena_self(target)->memory, text, sizeof(*text));
}
