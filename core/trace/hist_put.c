/* SPDX-License-Identifier: MIT */
/* Histograms compared, shown and described for the recorder: see hist.h. */
#include "core/trace/hist.h"
#include "core/trace/hist_private.h"
#include "core/trace/message.h"

static const char *moved(const struct gt_hist *from, const struct gt_hist *to, const char *text)
{
	return text >= from->text && text < from->text + sizeof(from->text)
		       ? to->text + (text - from->text)
		       : text;
}

void gt_hist_duplicate(const struct gt_hist *hist, struct gt_hist *copy)
{
	*copy = *hist;
	for (uint32_t i = 0; i < copy->field_count; i++)
		copy->fields[i].name = moved(hist, copy, hist->fields[i].name);
	for (uint32_t i = 0; i < copy->variable_count; i++)
		copy->variables[i].name = moved(hist, copy, hist->variables[i].name);
	for (uint32_t i = 0; i < copy->foreign_count; i++) {
		copy->foreign[i].system = moved(hist, copy, hist->foreign[i].system);
		copy->foreign[i].event = moved(hist, copy, hist->foreign[i].event);
		copy->foreign[i].field = moved(hist, copy, hist->foreign[i].field);
	}
	for (uint32_t i = 0; i < copy->action_count; i++) {
		struct gt_hist_action *action = &copy->actions[i];

		action->on = moved(hist, copy, action->on);
		action->system = moved(hist, copy, action->system);
		action->match = moved(hist, copy, action->match);
		action->name = moved(hist, copy, action->name);
		action->parameters = moved(hist, copy, action->parameters);
		action->made = moved(hist, copy, action->made);
	}
	copy->clock = moved(hist, copy, hist->clock);
	copy->name = moved(hist, copy, hist->name);
}

/* ---- comparing and printing ---- */

static bool is_same_field(const struct gt_hist *a, uint32_t in_a, const struct gt_hist *b,
			  uint32_t in_b)
{
	const struct gt_hist_field *one = &a->fields[in_a], *other = &b->fields[in_b];

	/* Linux compares neither the sizes of buckets nor what expressions are made of. */
	return one->kind == other->kind && one->modifier == other->modifier &&
	       (one->kind == GT_HIST_EXPRESSION || gt_hist_is_equal(one->name, other->name));
}

bool gt_hist_has_same_keys(const struct gt_hist *a, const struct gt_hist *b)
{
	bool same = a->key_count == b->key_count;

	for (uint32_t i = 0; same && i < a->key_count; i++)
		same = gt_hist_words_of(&a->fields[a->keys[i]]) ==
		       gt_hist_words_of(&b->fields[b->keys[i]]);
	return same;
}

static bool is_same_variable(const struct gt_hist_variable *a, const struct gt_hist_variable *b)
{
	return a->is_saved == b->is_saved && a->is_tracked == b->is_tracked &&
	       gt_hist_is_equal(a->name, b->name);
}

static bool is_same_action(const struct gt_hist_action *a, const struct gt_hist_action *b)
{
	return a->handler == b->handler && a->act == b->act && gt_hist_is_equal(a->on, b->on) &&
	       gt_hist_is_equal(a->name, b->name) && gt_hist_is_equal(a->parameters, b->parameters);
}

static bool has_same_actions(const struct gt_hist *a, const struct gt_hist *b)
{
	if (a->variable_count != b->variable_count || a->action_count != b->action_count)
		return false;
	for (uint32_t i = 0; i < a->variable_count; i++)
		if (!is_same_variable(&a->variables[i], &b->variables[i]))
			return false;
	for (uint32_t i = 0; i < a->action_count; i++)
		if (!is_same_action(&a->actions[i], &b->actions[i]))
			return false;
	return true;
}

bool gt_hist_is_same(const struct gt_hist *a, const struct gt_hist *b)
{
	if (a->key_count != b->key_count || a->sum_count != b->sum_count ||
	    a->sort_count != b->sort_count || !has_same_actions(a, b))
		return false;
	for (uint32_t i = 0; i < a->key_count; i++)
		if (!is_same_field(a, a->keys[i], b, b->keys[i]))
			return false;
	for (uint32_t i = 0; i < a->sum_count; i++)
		if (!is_same_field(a, a->sums[i], b, b->sums[i]))
			return false;
	for (uint32_t i = 0; i < a->sort_count; i++)
		if (a->sorts[i].what != b->sorts[i].what ||
		    a->sorts[i].descending != b->sorts[i].descending)
			return false;
	return true;
}

static void put_field(struct gt_hist_output *output, const struct gt_hist_field *field)
{
	if (field->kind == GT_HIST_CONSTANT && *field->name == '\0')
		gt_hist_append(output, "%llu", (unsigned long long)field->number);
	else
		gt_hist_append(output, "%s", field->name);
	if (field->modifier != GT_HIST_PLAIN)
		gt_hist_append(output, ".%s", gt_hist_modifier_name(field->modifier));
	if (field->modifier == GT_HIST_BUCKETS)
		gt_hist_append(output, "=%llu", (unsigned long long)field->number);
}

static void put_variables(struct gt_hist_output *output, const struct gt_hist *hist)
{
	bool any = false;

	for (uint32_t i = 0; i < hist->variable_count; i++) {
		const struct gt_hist_variable *variable = &hist->variables[i];

		if (variable->is_saved || variable->is_tracked)
			continue;
		gt_hist_append(output, "%s%s=", any ? "," : ":", variable->name);
		put_field(output, &hist->fields[variable->field]);
		any = true;
	}
}

static void put_actions(struct gt_hist_output *output, const struct gt_hist *hist)
{
	for (uint32_t i = 0; i < hist->action_count; i++) {
		const struct gt_hist_action *action = &hist->actions[i];

		gt_hist_append(output, ":%s(%s).%s(%s)",
			       action->handler == GRAFTRACE_HIST_ON_MATCH ? "onmatch"
			       : action->handler == GRAFTRACE_HIST_ON_MAX ? "onmax"
									  : "onchange",
			       action->on, action->name, action->parameters);
	}
}

static void put_keys(struct gt_hist_output *output, const struct gt_hist *hist)
{
	for (uint32_t i = 0; i < hist->key_count; i++) {
		gt_hist_append(output, "%s", i != 0 ? "," : "");
		put_field(output, &hist->fields[hist->keys[i]]);
	}
}

void gt_hist_put_key_text(const struct gt_hist *hist, char *at, size_t room)
{
	struct gt_hist_output output = { at, room };

	put_keys(&output, hist);
}

void gt_hist_put(const struct gt_hist *hist, char *at, size_t room)
{
	struct gt_hist_output output = { at, room };

	if (hist->name != NULL)
		gt_hist_append(&output, "%s:", hist->name);
	gt_hist_append(&output, "keys=");
	put_keys(&output, hist);
	gt_hist_append(&output, ":vals=hitcount");
	for (uint32_t i = 0; i < hist->sum_count; i++) {
		gt_hist_append(&output, ",");
		put_field(&output, &hist->fields[hist->sums[i]]);
	}
	put_variables(&output, hist);
	gt_hist_append(&output, ":sort=");
	for (uint32_t i = 0; i < hist->sort_count; i++) {
		const struct gt_hist_field *field = gt_hist_sorted_by(hist, hist->sorts[i].what);

		gt_hist_append(&output, "%s", i != 0 ? "," : "");
		if (field != NULL)
			put_field(&output, field);
		else
			gt_hist_append(&output, "hitcount");
		gt_hist_append(&output, "%s", hist->sorts[i].descending ? ".descending" : "");
	}
	gt_hist_append(&output, ":size=%u", 1u << hist->bits);
	if (hist->has_clock)
		gt_hist_append(&output, ":clock=%s", hist->clock);
	put_actions(&output, hist);
}

/* ---- the description ---- */

static struct graftrace_hist_value value_of(const struct gt_hist *hist,
					    const struct gt_hist_field *field)
{
	struct graftrace_hist_value value = { .field = field->field, .number = field->number };

	switch (field->kind) {
	case GT_HIST_FIELD:
		value.source = field->is_string ? GRAFTRACE_HIST_STRING : GRAFTRACE_HIST_FIELD;
		break;
	case GT_HIST_THREAD:
		value.source = GRAFTRACE_HIST_THREAD;
		break;
	case GT_HIST_CPU:
		value.source = GRAFTRACE_HIST_CPU;
		break;
	case GT_HIST_CLOCK:
		value.source = GRAFTRACE_HIST_CLOCK;
		break;
	case GT_HIST_CONSTANT:
		value.source = GRAFTRACE_HIST_CONSTANT;
		break;
	case GT_HIST_REFERENCE:
		value.source = GRAFTRACE_HIST_REFERENCE;
		break;
	case GT_HIST_STACK:
		value.source = GRAFTRACE_HIST_STACK;
		break;
	default:
		value.source = field->operator== '+'   ? GRAFTRACE_HIST_PLUS
			       : field->operator== '-' ? GRAFTRACE_HIST_MINUS
			       : field->operator== '*' ? GRAFTRACE_HIST_TIMES
			       : field->operator== '/' ? GRAFTRACE_HIST_DIVIDED
						       : GRAFTRACE_HIST_NEGATIVE;
		value.field = field->left;
		value.right = field->right;
	}
	if (field->modifier == GT_HIST_LOG2)
		value.change = GRAFTRACE_HIST_LOG2;
	else if (field->modifier == GT_HIST_BUCKETS)
		value.change = GRAFTRACE_HIST_BUCKETS;
	/* One .usecs makes them of all. */
	if (field->kind == GT_HIST_CLOCK && hist->is_in_usecs &&
	    !gt_hist_is_equal(hist->clock, "x86-tsc"))
		value.change = GRAFTRACE_HIST_USECS;
	return value;
}

/* What says how large an element is, and where in it things are. */
static void describe_shape(const struct gt_hist *hist, uint32_t table,
			   struct graftrace_hist *description)
{
	*description = (struct graftrace_hist){
		.table = table,
		.bits = hist->bits,
		.value_count = (uint8_t)hist->field_count,
		.key_count = hist->key_count,
		.sum_count = hist->sum_count,
		.reference_count = hist->reference_count,
		.variable_count = hist->variable_count,
		.variable_words = hist->variable_words,
		.action_count = hist->action_count,
		.mult = 1,
	};
	for (uint32_t i = 0; i < hist->field_count; i++)
		if (hist->fields[i].modifier == GT_HIST_EXECNAME)
			description->flags |= GRAFTRACE_HIST_COMM;
	for (uint32_t i = 0; i < hist->key_count; i++) {
		description->keys[i] = hist->keys[i];
		description->key_words += gt_hist_words_of(&hist->fields[hist->keys[i]]);
	}
	for (uint32_t i = 0; i < hist->sum_count; i++)
		description->sums[i] = hist->sums[i];
}

bool gt_hist_find_variable(const struct gt_hist *hist, const char *name, uint32_t table,
			   struct gt_hist_found *found)
{
	struct graftrace_hist shape;
	uint32_t i = 0;

	while (i < hist->variable_count &&
	       (hist->variables[i].is_saved || hist->variables[i].is_tracked ||
		!gt_hist_is_equal(hist->variables[i].name, name)))
		i++;
	if (i == hist->variable_count)
		return false;
	const struct gt_hist_field *field = &hist->fields[hist->variables[i].field];

	describe_shape(hist, table, &shape);
	*found = (struct gt_hist_found){
		.place = { .table = table,
			   .flags = shape.flags,
			   .bits = shape.bits,
			   .key_words = (uint8_t)shape.key_words,
			   .sum_count = shape.sum_count,
			   .variable_count = shape.variable_count,
			   .variable_words = (uint8_t)shape.variable_words,
			   .variable = (uint8_t)i,
			   .at = hist->variables[i].at,
			   .words = hist->variables[i].words },
		.is_string = field->is_string,
		.is_signed = field->is_signed,
		.is_in_usecs = field->is_in_usecs,
		.bytes = field->bytes,
	};
	return true;
}

static uint8_t *describe_actions(const struct gt_hist *hist, struct graftrace_hist_action *actions)
{
	uint8_t *const items = (uint8_t *)(actions + hist->action_count);
	uint8_t used = 0;

	for (uint32_t i = 0; i < hist->action_count; i++) {
		const struct gt_hist_action *action = &hist->actions[i];

		actions[i] = (struct graftrace_hist_action){
			.handler = (uint8_t)action->handler,
			.act = (uint8_t)action->act,
			.value = action->value,
			.track = action->track,
			.first = used,
			.count = action->item_count,
			.event = action->event,
		};
		for (uint32_t k = 0; k < action->item_count; k++)
			items[used++] = action->items[k];
	}
	return items + used;
}

uint32_t gt_hist_describe(const struct gt_hist *hist, const struct gt_clock *clock, uint32_t table,
			  struct graftrace_hist *description)
{
	struct graftrace_hist_value *values = (struct graftrace_hist_value *)(description + 1);
	struct graftrace_hist_reference *references =
		(struct graftrace_hist_reference *)(values + hist->field_count);
	struct graftrace_hist_variable *variables =
		(struct graftrace_hist_variable *)(references + hist->reference_count);
	struct graftrace_hist_action *actions =
		(struct graftrace_hist_action *)(variables + hist->variable_count);
	uint8_t *end;

	describe_shape(hist, table, description);
	if (!gt_hist_is_equal(hist->clock, "x86-tsc")) {
		description->tsc_base = clock->tsc_base;
		description->ns_base = clock->ns_base;
		description->mult = clock->mult;
		description->shift = clock->shift;
	}
	for (uint32_t i = 0; i < hist->field_count; i++)
		values[i] = value_of(hist, &hist->fields[i]);
	for (uint32_t i = 0; i < hist->reference_count; i++)
		references[i] = hist->references[i];
	for (uint32_t i = 0; i < hist->variable_count; i++)
		variables[i] = (struct graftrace_hist_variable){
			.value = hist->variables[i].field,
			.at = hist->variables[i].at,
			.words = hist->variables[i].words,
			.saved = hist->variables[i].is_saved || hist->variables[i].is_tracked,
		};
	end = describe_actions(hist, actions);
	description->item_count = (uint8_t)(end - (uint8_t *)(actions + hist->action_count));
	while ((end - (uint8_t *)description) % 8 != 0)
		*end++ = 0;
	return (uint32_t)(end - (uint8_t *)description);
}
