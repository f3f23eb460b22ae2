/* SPDX-License-Identifier: MIT */
/*
 * What an instance's settings say: see route.h. A function or an event is looked up when it is first
 * met, and again when the settings have changed.
 */
#include "serve/store/route_private.h"

#include <stdlib.h>
#include <string.h>

/* What is known of an event. */
#define EVENT_UNKNOWN 0
#define EVENT_WANTED  1
#define EVENT_LEFT    2
#define EVENT_MARK    3 /* wanted, too */

void gt_route_init(struct gt_route *route)
{
	route->want = (struct gt_route_want){ .settings = { .tracer = GRAFTRACE_TRACER_NOP } };
	route->filtered = route->rooted = false;
	route->functions = NULL;
	route->function_count = 0;
	route->events = NULL;
	route->event_count = 0;
	route->commands = NULL;
	route->command_count = 0;
	route->threads[0] = route->threads[1] = NULL;
	route->thread_count[0] = route->thread_count[1] = 0;
	route->due = 0;
}

void gt_route_set(struct gt_route *route, const struct gt_route_want *want)
{
	struct gt_trace_settings old = route->want.settings;

	route->want = *want;
	route->want.settings = gt_trace_settings_copy(&want->settings);
	gt_trace_settings_fini(&old);
	route->filtered = want->settings.lists[GT_LIST_FILTER] != NULL;
	route->rooted = gt_trace_settings_has_roots(&want->settings);
	for (uint32_t i = 0; i < route->function_count; i++)
		route->functions[i].known = false;
	if (route->event_count > 0)
		memset(route->events, EVENT_UNKNOWN, route->event_count);
}

void gt_route_switch(struct gt_route *route, bool on)
{
	route->want.settings.on = on;
}

void gt_route_fini(struct gt_route *route)
{
	gt_trace_settings_fini(&route->want.settings);
	free(route->functions);
	free(route->events);
	free(route->commands);
	free(route->threads[0]);
	free(route->threads[1]);
}

static bool is_in(const struct gt_word_list *list, const struct gt_function *named)
{
	return gt_word_list_match(list, named->name) ||
	       gt_word_list_match_module(list, named->object, named->name);
}

/* Looks a function up. False: it does not exist. */
static bool look_up(struct gt_route *route, uint32_t number, struct gt_route_function *function)
{
	struct gt_word_list *const *lists = route->want.settings.lists;
	struct gt_function named;

	*function = (struct gt_route_function){ .known = true, .wanted = !route->filtered };
	if (gt_target_function(route->source, number, &named) != 0)
		return false;
	function->address = named.address;
	function->root = route->rooted && gt_word_list_match(lists[GT_LIST_GRAPH], named.name);
	function->commands = gt_route_commands_of(route, named.name);
	function->out = gt_route_wants_calls(route) &&
			gt_word_list_match(lists[GT_LIST_GRAPH_NOTRACE], named.name);
	function->wanted =
		!is_in(lists[GT_LIST_NOTRACE], &named) &&
		(!route->filtered || function->root || is_in(lists[GT_LIST_FILTER], &named));
	return true;
}

struct gt_route_function gt_route_function_of_slow(struct gt_route *route, uint32_t number)
{
	struct gt_route_function function;

	if (!look_up(route, number, &function))
		return function;
	if (number >= route->function_count) {
		uint32_t count = (number | 1023) + 1;
		struct gt_route_function *grown = realloc(route->functions, count * sizeof(*grown));

		if (grown == NULL)
			return function;
		memset(grown + route->function_count, 0,
		       (count - route->function_count) * sizeof(*grown));
		route->functions = grown;
		route->function_count = count;
	}
	route->functions[number] = function;
	return function;
}

bool gt_route_wants_event(struct gt_route *route, uint32_t number, bool *mark)
{
	const struct gt_route_want *want = &route->want;
	struct gt_event_format format;
	bool wanted;

	*mark = number < route->event_count && route->events[number] == EVENT_MARK;
	if (number < route->event_count && route->events[number] != EVENT_UNKNOWN)
		return route->events[number] != EVENT_LEFT;
	if (gt_target_event(route->source, number, &format) != 0)
		return false;
	*mark = gt_event_is_mark(format.system, format.name);
	wanted = gt_event_words_match(gt_word_list_words(want->settings.lists[GT_LIST_EVENTS]),
				      format.system, format.name, format.object,
				      want->marks && *mark);
	if (!wanted && want->also != NULL)
		wanted = want->also(want->also_data, format.system, format.name);
	if (number >= route->event_count) {
		uint32_t count = (number | 63) + 1;
		uint8_t *grown = realloc(route->events, count);

		if (grown == NULL)
			return wanted;
		memset(grown + route->event_count, EVENT_UNKNOWN, count - route->event_count);
		route->events = grown;
		route->event_count = count;
	}
	route->events[number] = !wanted ? EVENT_LEFT : *mark ? EVENT_MARK : EVENT_WANTED;
	return wanted;
}
