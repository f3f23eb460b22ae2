/* SPDX-License-Identifier: MIT */
/*
 * Synthetic events of a kernel, as operations of the control files: defined by a line, made by actions of histograms
 * (core/trace/synthetic.h). A definition stays for ever, with its number; whoever defines the same event once more gets
 * that one. Any thread; all of it takes the kernel's lock.
 */
#include "core/kernel/kernel_private.h"
#include "core/trace/strings.h"

static bool has_same_fields(const struct gt_event_format *a, const struct gt_event_format *b)
{
	if (a->field_count != b->field_count)
		return false;
	for (uint32_t i = 0; i < a->field_count; i++)
		if (!gt_string_is(a->fields[i].name, b->fields[i].name) ||
		    !gt_string_is(a->fields[i].type, b->fields[i].type))
			return false;
	return true;
}

/* The definition of an event that was removed and is the same; false: there is none. */
static bool find_removed(const struct gt_arena_control *control, const struct gt_event_format *made,
			 uint32_t *index)
{
	for (uint32_t i = 0; i < gt_arena_later_count(control); i++) {
		const struct gt_synthetic *known = control->synthetics[i];
		if (known != NULL && !control->later[i].is_there &&
		    gt_string_is(known->format.name, made->name) &&
		    has_same_fields(&known->format, made)) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* Its rules are in place before it can happen: without any it would be recorded. */
static int arm(struct gt_arena_control *control, uint32_t index, struct gt_message *message)
{
	return gt_arena_rule_arm(control, control->ring->later[index], false, message);
}

/* *kept: the definition belongs to the kernel from now on. */
static int define(struct gt_arena_control *control, struct gt_synthetic *made, bool *kept,
		  struct gt_message *message)
{
	uint32_t index;
	int error;
	*kept = false;
	if (find_removed(control, &made->format, &index)) {
		error = gt_arena_later_show(control, index);
	} else {
		error = gt_arena_later_add(control, &made->format, &index);
		*kept = error == 0;
		if (*kept)
			control->synthetics[index] = made;
	}
	if (error != 0)
		return gt_fail(message, error,
			       error == GT_ENOSPC ? "there were too many synthetic events"
						  : "no memory for a synthetic event");
	error = arm(control, index, message);
	if (error != 0)
		gt_arena_later_remove(control, index);
	return error;
}

static int define_new(struct gt_arena_control *control, struct gt_synthetic *made, bool *kept,
		      struct gt_probe_error *error, struct gt_message *message)
{
	uint32_t there;
	*kept = false;
	if (!control->has_rules)
		return REFUSE(message, GT_ENOTSUP, "this kernel gave no memory for histograms");
	if (gt_arena_later_find(control, GT_EVENT_SYNTHETIC, made->format.name, &there)) {
		*error = (struct gt_probe_error){ "Event already exists", 0 };
		return gt_fail(message, GT_EEXIST, "%s", error->text);
	}
	return define(control, made, kept, message);
}

int gt_arena_synthetic_set(struct gt_control_target *target, const char *line, size_t bytes,
			   struct gt_probe_error *error, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	struct gt_synthetic *made = gt_memory_get(&control->memory, sizeof(*made));
	bool kept = false;
	if (made == NULL)
		return gt_arena_no_memory(message);
	int result = gt_synthetic_parse(line, bytes, made, error);
	if (result != 0) {
		gt_fail(message, result, "%s", error->text);
	} else {
		gt_arena_lock(control);
		result = define_new(control, made, &kept, error, message);
		gt_arena_unlock(control);
	}
	if (!kept)
		gt_memory_put(&control->memory, made, sizeof(*made));
	return result;
}

/* ---- removal ---- */

static bool is_named(const struct gt_arena_control *control, uint32_t index, const char *name)
{
	return control->synthetics[index] != NULL && control->later[index].is_there &&
	       (*name == 0 || gt_string_is(control->synthetics[index]->format.name, name));
}

static bool is_in_use(const struct gt_arena_control *control, uint32_t index)
{
	const struct gt_event_format *format = &control->synthetics[index]->format;
	return gt_event_rules_are_making(&control->rules, format->name) ||
	       gt_arena_event_acts(control, format) ||
	       gt_arena_event_is_on(control, control->later[index].on, format);
}

/* A histogram that is being taken away may make it for another moment: its rules stay, by which it is not recorded. */
static int forget(struct gt_arena_control *control, uint32_t index, struct gt_message *message)
{
	const struct gt_event_format *format = &control->synthetics[index]->format;
	char word[sizeof(GT_EVENT_SYNTHETIC) + GT_SYNTHETIC_BYTES];
	gt_format(word, sizeof(word), GT_EVENT_SYNTHETIC ":%s", format->name);
	int error = gt_event_rules_set_filter(&control->rules, word, NULL, message);
	if (error == 0)
		error = arm(control, index, message);
	if (error == 0 && gt_filter_texts_set(&control->filter_texts, word, "", 0, NULL) != 0)
		error = gt_arena_no_memory(message);
	if (error == 0)
		gt_arena_later_remove(control, index);
	return error;
}

static int remove_named(struct gt_arena_control *control, const char *name,
			struct gt_message *message)
{
	bool found = *name == 0;
	int error = 0;
	for (uint32_t i = 0; i < gt_arena_later_count(control); i++) {
		if (!is_named(control, i, name))
			continue;
		found = true;
		if (is_in_use(control, i))
			return gt_fail(message, GT_EBUSY, "a synthetic event is in use");
	}
	for (uint32_t i = 0; error == 0 && i < gt_arena_later_count(control); i++)
		if (is_named(control, i, name))
			error = forget(control, i, message);
	return found ? error
		     : gt_fail(message, GT_ENOENT, "there is no synthetic event '%.80s'", name);
}

int gt_arena_synthetics_remove(struct gt_control_target *target, const char *name,
			       struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	gt_arena_lock(control);
	const int error = remove_named(control, name, message);
	gt_arena_unlock(control);
	return error;
}

int gt_arena_synthetic(struct gt_control_target *target, uint64_t index,
		       struct gt_event_format *format)
{
	struct gt_arena_control *control = gt_arena_self(target);
	bool found = false;
	gt_arena_lock(control);
	for (uint32_t i = 0; !found && i < gt_arena_later_count(control); i++)
		found = is_named(control, i, "") && index-- == 0 &&
			gt_arena_later_event(control, i, format);
	gt_arena_unlock(control);
	return found ? 0 : GT_ENOENT;
}
