/* SPDX-License-Identifier: MIT */
/*
 * Variables of histograms, references to those of others, and actions: parse_var_defs, action_parse and
 * their kin of kernel/trace/trace_events_hist.c, Linux 6.1.
 */
#include "core/trace/hist.h"
#include "core/trace/hist_private.h"
#include "core/trace/message.h"

/* ---- variables ---- */

/* The index of the new variable, or an error. */
static int add_variable(struct gt_hist_parser *parser, const struct gt_hist_variable *variable,
			uint32_t words)
{
	struct gt_hist *hist = parser->hist;
	struct gt_hist_variable *added = &hist->variables[hist->variable_count];

	if (hist->variable_count == GRAFTRACE_HIST_VARIABLES)
		return gt_hist_fail(parser, "Too many variables defined", variable->name);
	*added = *variable;
	added->at = hist->variable_words;
	added->words = (uint8_t)words;
	hist->variable_words = (uint8_t)(hist->variable_words + words);
	return hist->variable_count++;
}

static const struct gt_hist_variable *find_own(const struct gt_hist *hist, const char *name)
{
	for (uint32_t i = 0; i < hist->variable_count; i++)
		if (!hist->variables[i].is_saved && !hist->variables[i].is_tracked &&
		    gt_hist_is_equal(hist->variables[i].name, name))
			return &hist->variables[i];
	return NULL;
}

static bool is_taken(const struct gt_hist_parser *parser, const char *name)
{
	const struct gt_hist_world *world = parser->world;
	struct gt_hist_found found;

	return find_own(parser->hist, name) != NULL ||
	       (world != NULL && world->is_new && parser->format != NULL &&
		world->variable(world->data, parser->format->system, parser->format->name, name,
				&found) != 0);
}

/* NAME=EXPRESSION */
static int take_definition(struct gt_hist_parser *parser, char *part)
{
	struct gt_hist_variable variable = { .name = gt_hist_next_part(&part, '=') };
	int made;

	if (part == NULL)
		return gt_hist_fail(parser, "Malformed assignment", variable.name);
	if (is_taken(parser, variable.name))
		return gt_hist_fail(parser, "Variable already defined", variable.name);
	parser->subexpressions = 0;
	made = gt_hist_take_expression(parser, part);
	if (made < 0)
		return made;
	variable.field = (uint8_t)made;
	made = add_variable(parser, &variable,
			    gt_hist_words_of(&parser->hist->fields[variable.field]));
	return made < 0 ? made : 0;
}

int gt_hist_take_variables(struct gt_hist_parser *parser)
{
	int error = 0;

	for (uint32_t i = 0; error == 0 && i < parser->assignment_count; i++) {
		char *rest = parser->assignments[i], *part;

		while (error == 0 && (part = gt_hist_next_part(&rest, ',')) != NULL)
			error = take_definition(parser, part);
	}
	return error;
}

/* ---- references ---- */

/* What onmatch() names goes before all others. Returns how many there are. */
static uint32_t find_other(const struct gt_hist_parser *parser, const char *system,
			   const char *event, const char *name, struct gt_hist_found *found)
{
	const struct gt_hist_world *world = parser->world;
	uint32_t count = 0;

	for (uint32_t i = 0; i < parser->hist->action_count; i++) {
		const struct gt_hist_action *action = &parser->hist->actions[i];

		if (action->handler == GRAFTRACE_HIST_ON_MATCH)
			count += world->variable(world->data, action->system, action->match, name,
						 found);
	}
	return count != 0 ? count : world->variable(world->data, system, event, name, found);
}

static bool is_same_place(const struct graftrace_hist_reference *a,
			  const struct graftrace_hist_reference *b)
{
	return a->table == b->table && a->variable == b->variable && a->bits == b->bits &&
	       a->at == b->at;
}

/* The index of the reference; -1: there are too many. */
static int add_place(struct gt_hist *hist, const struct graftrace_hist_reference *place)
{
	uint32_t i = 0;

	while (i < hist->reference_count && !is_same_place(&hist->references[i], place))
		i++;
	if (i == GRAFTRACE_HIST_REFERENCES)
		return -1;
	if (i == hist->reference_count)
		hist->references[hist->reference_count++] = *place;
	return (int)i;
}

int gt_hist_take_reference(struct gt_hist_parser *parser, const char *system, const char *event,
			   const char *name)
{
	struct gt_hist_field field = { .kind = GT_HIST_REFERENCE, .bytes = 8 };
	struct gt_hist_found found = { .place = { .variable = parser->hist->reference_count } };
	char shown[GT_HIST_BYTES];
	uint32_t count;
	int index;

	if (parser->world != NULL) {
		count = find_other(parser, system, event, name, &found);
		if (count > 1)
			return gt_hist_fail(parser,
					    "Variable name not unique, need to use fully qualified "
					    "name (subsys.event.var) for variable",
					    name);
		if (count == 0)
			return gt_hist_fail(parser, "Couldn't find variable", name);
		field.bytes = found.bytes;
		field.is_signed = found.is_signed;
		field.is_string = found.is_string;
		field.is_in_usecs = found.is_in_usecs;
	}
	index = add_place(parser->hist, &found.place);
	if (index < 0)
		return gt_hist_fail(parser, "Too many variables defined", name);
	field.field = (uint8_t)index;
	if (system != NULL)
		gt_format(shown, sizeof(shown), "$%s.%s.%s", system, event, name);
	else
		gt_format(shown, sizeof(shown), "$%s", name);
	field.name = gt_hist_keep(parser->hist, shown);
	return gt_hist_add_field(parser, &field);
}

/* ---- the texts of actions ---- */

/* Each without blanks around it; what follows `trace` is the synthetic event. */
static int take_parameters(struct gt_hist_parser *parser, struct gt_hist_action *action, char *text)
{
	char shown[GT_HIST_BYTES] = "", *part;
	size_t bytes = 0;

	while ((part = gt_hist_next_part(&text, ',')) != NULL) {
		part = gt_hist_strip(part);
		if (part[0] == '\0' || part[1] == '\0')
			return gt_hist_fail(parser, "Invalid action param", part);
		bytes += gt_format(shown + bytes, sizeof(shown) - bytes, "%s%s",
				   bytes != 0 ? "," : "", part);
	}
	action->parameters = gt_hist_keep(parser->hist, shown);
	return 0;
}

static int take_act(struct gt_hist_parser *parser, struct gt_hist_action *action, char *text)
{
	static const char none[] = "No action found";
	bool closed;
	char *parameters;

	gt_hist_next_part(&text, '.');
	action->name = gt_hist_next_part(&text, '(');
	if (action->name == NULL || text == NULL)
		return gt_hist_fail(parser, none, "");
	parameters = gt_hist_next_part(&text, ')');
	closed = text != NULL;
	action->act = gt_hist_behind((char *)action->name, "save") != NULL ? GRAFTRACE_HIST_SAVE
		      : gt_hist_behind((char *)action->name, "snapshot") != NULL
			      ? GRAFTRACE_HIST_SNAPSHOT
			      : GRAFTRACE_HIST_TRACE;
	action->parameters = "";
	if (action->act == GRAFTRACE_HIST_SNAPSHOT && !closed)
		return gt_hist_fail(parser, "No closing paren found", parameters);
	if (action->act != GRAFTRACE_HIST_SNAPSHOT) {
		const int error = take_parameters(parser, action, parameters);

		if (error != 0)
			return error;
	}
	if (action->act != GRAFTRACE_HIST_TRACE && action->handler == GRAFTRACE_HIST_ON_MATCH)
		return gt_hist_fail(parser, "Handler doesn't support action", action->name);
	return 0;
}

static int take_match(struct gt_hist_parser *parser, struct gt_hist_action *action)
{
	const struct gt_hist_world *world = parser->world;
	char *event = (char *)gt_hist_keep(parser->hist, action->on);

	action->system = gt_hist_next_part(&event, '.');
	action->match = event;
	if (event == NULL)
		return gt_hist_fail(parser, "Missing subsystem", action->system);
	if (world != NULL && world->is_new &&
	    world->event(world->data, action->system, event) == NULL)
		return gt_hist_fail(parser, "Invalid subsystem or event name", event);
	return 0;
}

int gt_hist_take_action(struct gt_hist_parser *parser, char *text)
{
	static const char *const handlers[] = {
		[GRAFTRACE_HIST_ON_MATCH] = "onmatch(",
		[GRAFTRACE_HIST_ON_MAX] = "onmax(",
		[GRAFTRACE_HIST_ON_CHANGE] = "onchange(",
	};
	struct gt_hist *hist = parser->hist;
	struct gt_hist_action *action = &hist->actions[hist->action_count];
	uint32_t handler = GRAFTRACE_HIST_ON_MATCH;
	int error = 0;

	while (handler <= GRAFTRACE_HIST_ON_CHANGE &&
	       gt_hist_behind(text, handlers[handler]) == NULL)
		handler++;
	if (handler > GRAFTRACE_HIST_ON_CHANGE || hist->action_count == GRAFTRACE_HIST_ACTIONS)
		return gt_hist_fail(parser, NULL, "");
	*action = (struct gt_hist_action){ .handler = (enum graftrace_hist_handler)handler };
	text = gt_hist_behind(text, handlers[handler]);
	action->on = gt_hist_next_part(&text, ')');
	if (text == NULL)
		return gt_hist_fail(parser,
				    handler == GRAFTRACE_HIST_ON_MATCH ? "No closing paren found"
								       : NULL,
				    action->on);
	if (handler == GRAFTRACE_HIST_ON_MATCH)
		error = take_match(parser, action);
	if (error == 0)
		error = take_act(parser, action, text);
	hist->action_count++;
	return error;
}

/* ---- what actions take ---- */

static int add_item(struct gt_hist_parser *parser, struct gt_hist_action *action, int item)
{
	if (item < 0)
		return item;
	if (action->item_count == GRAFTRACE_PROBE_FIELDS)
		return gt_hist_fail(parser, "Too many action params", "");
	action->items[action->item_count++] = (uint8_t)item;
	return 0;
}

/* onmax($NAME), onchange($NAME) */
static int finish_tracking(struct gt_hist_parser *parser, struct gt_hist_action *action)
{
	const struct gt_hist_variable track = { .name = action->handler == GRAFTRACE_HIST_ON_MAX
								? "__max"
								: "__change",
						.is_tracked = true };
	const struct gt_hist_variable *variable;
	int made;

	if (action->on[0] != '$')
		return gt_hist_fail(parser, "For onmax(x) or onchange(x), x must be a variable",
				    action->on);
	variable = find_own(parser->hist, action->on + 1);
	if (variable == NULL)
		return gt_hist_fail(parser, "Couldn't find onmax or onchange variable",
				    action->on + 1);
	action->value = variable->field;
	made = add_variable(parser, &track, 1);
	action->track = (uint8_t)made;
	return made < 0 ? made : 0;
}

static int finish_save(struct gt_hist_parser *parser, struct gt_hist_action *action)
{
	char *rest = gt_hist_keep(parser->hist, action->parameters), *part;
	int error = 0;

	for (uint32_t i = 0; i < parser->hist->variable_count; i++)
		if (parser->hist->variables[i].is_saved) {
			gt_hist_fail(parser, "Can't have more than one save() action per hist", "");
			return GT_EEXIST;
		}
	while (error == 0 && (part = gt_hist_next_part(&rest, ',')) != NULL) {
		struct gt_hist_variable variable = { .name = gt_hist_keep(parser->hist, part),
						     .is_saved = true };
		const int made = gt_hist_take_atom(parser, part);

		if (made < 0)
			return gt_hist_fail(parser, "Couldn't create field variable",
					    variable.name);
		variable.field = (uint8_t)made;
		error = add_item(parser, action,
				 add_variable(parser, &variable,
					      gt_hist_words_of(&parser->hist->fields[made])));
	}
	return error;
}

static int take_variable(struct gt_hist_parser *parser, const struct gt_hist_action *action,
			 const char *system, const char *event, const char *name)
{
	const struct gt_hist_variable *own = system == NULL ? find_own(parser->hist, name) : NULL;
	int made;

	if (own != NULL)
		return own->field;
	if (system == NULL && action->handler == GRAFTRACE_HIST_ON_MATCH) {
		system = action->system;
		event = action->match;
	}
	made = gt_hist_take_reference(parser, system, event, name);
	return made == GT_EINVAL && parser->error->text != NULL
		       ? gt_hist_fail(parser, "Couldn't find synthetic variable", name)
		       : made;
}

static bool is_own_event(const struct gt_hist_parser *parser, const char *system, const char *event)
{
	return system == NULL || parser->format == NULL ||
	       (gt_hist_is_equal(system, parser->format->system) &&
		gt_hist_is_equal(event, parser->format->name));
}

/* A field of an event that has no variable for it yet. */
static int ask_for_variable(struct gt_hist_parser *parser, const char *system, const char *event,
			    const char *name)
{
	const struct gt_hist_world *world = parser->world;
	struct gt_hist *hist = parser->hist;
	struct gt_hist_field field = { .name = name };
	const struct gt_event_format *format = world->event(world->data, system, event);
	const struct graftrace_hist_reference nowhere = { .table = ~0u,
							  .variable = hist->foreign_count };
	int place;

	if (format == NULL)
		return gt_hist_fail(parser, "Event file not found", name);
	if (!gt_hist_find_field(format, &field))
		return gt_hist_fail(parser, "Couldn't find field", name);
	if (!world->is_alike(world->data, system, event, hist))
		return gt_hist_fail(parser, "Matching event histogram not found", name);
	place = hist->foreign_count < GT_HIST_FOREIGN ? add_place(hist, &nowhere) : -1;
	if (place < 0)
		return gt_hist_fail(parser, "Too many field variables defined", name);
	hist->foreign[hist->foreign_count].system = gt_hist_keep(hist, system);
	hist->foreign[hist->foreign_count].event = gt_hist_keep(hist, event);
	hist->foreign[hist->foreign_count++].field = gt_hist_keep(hist, name);
	field.kind = GT_HIST_REFERENCE;
	field.field = (uint8_t)place;
	return gt_hist_add_field(parser, &field);
}

/* A field: of this event, else of the one that onmatch() names; or of the one that it says. */
static int take_field(struct gt_hist_parser *parser, const struct gt_hist_action *action,
		      const char *system, const char *event, char *name)
{
	const bool is_own = is_own_event(parser, system, event);
	const bool is_matched = system == NULL && action->handler == GRAFTRACE_HIST_ON_MATCH;
	struct gt_hist_error own;
	struct gt_hist_found found;
	char variable[GT_HIST_BYTES];
	int made = is_own ? gt_hist_take_atom(parser, gt_hist_keep(parser->hist, name)) : GT_EINVAL;

	if (made >= 0 || parser->world == NULL || (is_own && !is_matched))
		return made;
	own = *parser->error;
	*parser->error = (struct gt_hist_error){ 0 };
	system = is_matched ? action->system : system;
	event = is_matched ? action->match : event;
	gt_format(variable, sizeof(variable), GT_HIST_FOREIGN_VARIABLE "%s", name);
	if (parser->world->variable(parser->world->data, system, event, variable, &found) == 1)
		return gt_hist_take_reference(parser, system, event, variable);
	made = ask_for_variable(parser, system, event, name);
	if (made < 0 && is_matched && gt_hist_is_equal(action->system, parser->format->system) &&
	    gt_hist_is_equal(action->match, parser->format->name))
		*parser->error = own;
	return made;
}

/* [SYSTEM.EVENT.]NAME, NAME with a '$' a variable: the index of its field, or an error. */
static int take_parameter(struct gt_hist_parser *parser, const struct gt_hist_action *action,
			  char *part)
{
	char *rest = part, *system = gt_hist_next_part(&rest, '.'), *event = NULL, *name = system;

	if (rest != NULL) {
		event = gt_hist_next_part(&rest, '.');
		if (rest == NULL)
			return gt_hist_fail(parser, NULL, "");
		name = rest;
	} else {
		system = NULL;
	}
	return name[0] == '$' ? take_variable(parser, action, system, event, name + 1)
			      : take_field(parser, action, system, event, name);
}

/* check_synth_field() of Linux, for fields that it calls by their types. */
static bool fits(const struct gt_hist_field *field, const struct gt_event_format *made,
		 uint32_t index)
{
	const struct gt_event_field *wanted = &made->fields[index];

	if (index >= made->field_count)
		return false;
	if (field->is_string || wanted->is_string)
		return field->is_string && wanted->is_string;
	return field->bytes == wanted->bytes && field->is_signed == wanted->is_signed;
}

static int finish_trace(struct gt_hist_parser *parser, struct gt_hist_action *action)
{
	char *rest = gt_hist_keep(parser->hist, action->parameters), *part;
	const struct gt_event_format *made = NULL;
	char shown[GT_HIST_BYTES];
	int error = 0;

	action->made = action->name;
	if (gt_hist_behind((char *)action->name, "trace") != NULL)
		action->made = gt_hist_next_part(&rest, ',');
	if (parser->world != NULL) {
		made = parser->world->event(parser->world->data, GT_EVENT_SYNTHETIC, action->made);
		if (made == NULL)
			return gt_hist_fail(parser, "Couldn't find synthetic event", action->made);
		action->event = made->number;
	}
	while (error == 0 && rest != NULL && *rest != '\0' &&
	       (part = gt_hist_next_part(&rest, ',')) != NULL) {
		int taken;

		gt_format(shown, sizeof(shown), "%s", part);
		taken = take_parameter(parser, action, part);
		if (taken >= 0 && made != NULL &&
		    !fits(&parser->hist->fields[taken], made, action->item_count))
			return gt_hist_fail(parser,
					    "Param type doesn't match synthetic event field type",
					    shown);
		error = add_item(parser, action, taken);
	}
	if (error == 0 && made != NULL && action->item_count != made->field_count)
		return gt_hist_fail(parser, "Param count doesn't match synthetic event field count",
				    action->made);
	return error;
}

int gt_hist_finish_actions(struct gt_hist_parser *parser)
{
	uint32_t items = 0;
	int error = 0;

	for (uint32_t i = 0; error == 0 && i < parser->hist->action_count; i++) {
		struct gt_hist_action *action = &parser->hist->actions[i];

		if (action->handler != GRAFTRACE_HIST_ON_MATCH)
			error = finish_tracking(parser, action);
		if (error == 0 && action->act == GRAFTRACE_HIST_SAVE)
			error = finish_save(parser, action);
		if (error == 0 && action->act == GRAFTRACE_HIST_TRACE)
			error = finish_trace(parser, action);
		items += action->item_count;
	}
	return error == 0 && items > GRAFTRACE_HIST_ITEMS
		       ? gt_hist_fail(parser, "Too many action params", "")
		       : error;
}
