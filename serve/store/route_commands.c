/* SPDX-License-Identifier: MIT */
/*
 * Of a route: functions with commands, and lists of threads. They are set apart from gt_route_set,
 * since commands count down while records are routed.
 */
#include <stdlib.h>
#include <string.h>

#include "core/trace/glob.h"
#include "serve/store/route_private.h"

#define STACK_CALLS 32 /* the most in a stack trace */

static struct gt_route_command *find(struct gt_route *route,
				     const struct gt_control_command *command)
{
	for (uint32_t i = 0; i < route->command_count; i++) {
		struct gt_route_command *at = &route->commands[i];

		if (at->used && at->action == command->action &&
		    (at->left == GT_ACTION_UNLIMITED) == (command->count == GT_ACTION_UNLIMITED) &&
		    strlen(at->glob) == command->function_bytes &&
		    memcmp(at->glob, command->function, command->function_bytes) == 0)
			return at;
	}
	return NULL;
}

static void forget_functions(struct gt_route *route)
{
	for (uint32_t i = 0; i < route->function_count; i++)
		route->functions[i].known = false;
}

static struct gt_route_command *unused(struct gt_route *route)
{
	for (uint32_t i = 0; i < route->command_count; i++) {
		if (!route->commands[i].used)
			return &route->commands[i];
	}
	return NULL;
}

int gt_route_command_set(struct gt_route *route, const struct gt_control_command *command)
{
	struct gt_route_command *at;

	if (find(route, command) != NULL)
		return GT_EEXIST;
	if (command->function_bytes >= sizeof(at->glob))
		return GT_EINVAL;
	if (route->commands == NULL) {
		route->commands = calloc(GT_ROUTE_COMMANDS, sizeof(*route->commands));
		if (route->commands == NULL)
			return GT_ENOMEM;
		route->command_count = GT_ROUTE_COMMANDS;
	}
	at = unused(route);
	if (at == NULL)
		return GT_ENOSPC;
	memcpy(at->glob, command->function, command->function_bytes);
	at->glob[command->function_bytes] = '\0';
	at->action = command->action;
	at->left = command->count;
	at->used = true;
	forget_functions(route);
	return 0;
}

int gt_route_command_remove(struct gt_route *route, const struct gt_control_command *command)
{
	struct gt_route_command *at = find(route, command);

	if (at == NULL)
		return GT_ENOENT;
	at->used = false;
	forget_functions(route);
	return 0;
}

int gt_route_command_read(const struct gt_route *route, uint64_t index,
			  struct gt_control_command *command)
{
	for (uint32_t i = 0; i < route->command_count; i++) {
		const struct gt_route_command *at = &route->commands[i];

		if (!at->used || index-- > 0)
			continue;
		*command = (struct gt_control_command){
			.function = at->glob,
			.function_bytes = strlen(at->glob),
			.action = at->action,
			.count = at->left,
		};
		return 0;
	}
	return GT_ENOENT;
}

uint32_t gt_route_commands_of(const struct gt_route *route, const char *name)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < route->command_count; i++) {
		if (route->commands[i].used && gt_glob_match(route->commands[i].glob, name))
			bits |= 1u << i;
	}
	return bits;
}

int gt_route_set_threads(struct gt_route *route, int which, const uint32_t *tids, uint32_t count)
{
	uint32_t *copy = NULL;

	if (count > 0) {
		copy = malloc(count * sizeof(*copy));
		if (copy == NULL)
			return GT_ENOMEM;
		memcpy(copy, tids, count * sizeof(*copy));
	}
	free(route->threads[which]);
	route->threads[which] = copy;
	route->thread_count[which] = count;
	return 0;
}

static bool has(const struct gt_route *route, int which, uint32_t tid)
{
	for (uint32_t i = 0; i < route->thread_count[which]; i++) {
		if (route->threads[which][i] == tid)
			return true;
	}
	return false;
}

bool gt_route_leaves_out(const struct gt_route *route, uint32_t tid)
{
	return (route->thread_count[0] > 0 && !has(route, 0, tid)) || has(route, 1, tid);
}

/* Writes the open calls, as a trigger does. */
static void put_stack(struct gt_route *route, struct gt_route_writer *writer,
		      const struct gt_record *record)
{
	uint64_t data[1 + STACK_CALLS] = { record->clock };
	struct gt_decode *decode = &writer->decode;
	uint32_t count = 1;

	for (uint32_t at = decode->depth; at > decode->low && count <= STACK_CALLS;) {
		const struct gt_decode_frame *frame = gt_decode_frame(decode, --at);

		if (frame != NULL && frame->function != 0)
			data[count++] = graftrace_word(frame->function, 0, (uint32_t)frame->clock);
	}
	if (gt_route_is_recording(route, writer) &&
	    gt_route_room(route, writer, record, count + 2, NULL))
		gt_route_put_event(writer, GRAFTRACE_EVENT_STACK, data, count);
}

void gt_route_act(struct gt_route *route, struct gt_route_writer *writer,
		  const struct gt_record *record, uint32_t commands, bool before)
{
	for (; commands != 0; commands &= commands - 1) {
		struct gt_route_command *command = &route->commands[__builtin_ctz(commands)];
		bool turns_on = command->action == GT_ACTION_TRACEON;

		/* As on Linux, a hit that changes nothing does not count. */
		if (turns_on != before || command->left == 0 || route->want.settings.on == turns_on)
			continue;
		if (command->left != GT_ACTION_UNLIMITED)
			command->left--;
		if (command->action == GT_ACTION_TRACEON || command->action == GT_ACTION_TRACEOFF) {
			route->want.settings.on = turns_on;
			route->switched = record->clock;
		} else if (command->action == GT_ACTION_STACKTRACE) {
			put_stack(route, writer, record);
		} else {
			route->due |= 1u << command->action;
			route->due_cpu = record->cpu;
		}
	}
}

uint32_t gt_route_commands_at(struct gt_route *route, const struct gt_route_writer *writer,
			      const struct gt_record *record)
{
	return route->command_count > 0 && !writer->silent
		       ? gt_route_function_of(route, record->function).commands
		       : 0;
}
