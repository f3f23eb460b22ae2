/* SPDX-License-Identifier: MIT */
/*
 * Functions with commands (function:command:count in set_ftrace_filter) are the session's triggers.
 * A thread that hits traceon, traceoff or stacktrace carries it out itself; snapshot, dump and
 * cpudump are carried out here, by the thread that polls the session, while the thread that hit
 * them waits. An instance's commands are its route's: they act when its records are copied, and
 * snapshot, dump and cpudump are carried out by the copying thread.
 */
#include "serve/live/live_events.h"
#include "serve/live/live_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DUMP_BYTES 65536

static const enum gt_trigger_action trigger_actions[GT_ACTIONS] = {
	[GT_ACTION_TRACEON] = GT_TRIGGER_TRACEON,   [GT_ACTION_TRACEOFF] = GT_TRIGGER_TRACEOFF,
	[GT_ACTION_SNAPSHOT] = GT_TRIGGER_SNAPSHOT, [GT_ACTION_STACKTRACE] = GT_TRIGGER_STACKTRACE,
	[GT_ACTION_DUMP] = GT_TRIGGER_DUMP,	    [GT_ACTION_CPUDUMP] = GT_TRIGGER_CPUDUMP,
};

static int change_command(struct gt_control_target *target,
			  const struct gt_control_command *command, bool remove,
			  struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct gt_trigger trigger = { .action = trigger_actions[command->action] };
	char *glob = strndup(command->function, command->function_bytes);
	int error = has_ended(live, message);

	if (glob == NULL)
		return no_memory(message);
	trigger.glob = glob;
	trigger.count = command->count == GT_ACTION_UNLIMITED ? 0 : command->count;
	if (error == 0 && command->count == 0 && !remove) {
		gt_message_set(message, "a count above zero is wanted");
		error = GT_EINVAL;
	}
	if (error == 0 && !remove && command->action == GT_ACTION_SNAPSHOT)
		error = gt_live_snapshot_can(live, message);
	if (error == 0 && live->instance != NULL && !remove &&
	    !gt_session_has_function(live->session, glob)) {
		gt_message_set(message, "no function matches '%s'", glob);
		error = GT_EINVAL;
	}
	pthread_mutex_lock(&live->change.lock);
	if (error == 0 && live->instance != NULL)
		error = gt_live_instance_command(live, command, remove, message);
	else if (error == 0)
		error = remove ? gt_session_trigger_remove(live->session, &trigger, message)
			       : gt_session_trigger_add(live->session, &trigger, message);
	pthread_mutex_unlock(&live->change.lock);
	free(glob);
	return error == GT_ENOENT || error == GT_EEXIST ? GT_EINVAL : error;
}

int gt_live_command_set(struct gt_control_target *target, const struct gt_control_command *command,
			struct gt_message *message)
{
	return change_command(target, command, false, message);
}

int gt_live_command_remove(struct gt_control_target *target,
			   const struct gt_control_command *command, struct gt_message *message)
{
	return change_command(target, command, true, message);
}

/* Triggers of `record --stop-when` and of slow calls are not commands: they are skipped. */
int gt_live_command_read(struct gt_control_target *target, uint64_t index,
			 struct gt_control_command *command, char *text, size_t room)
{
	struct gt_live *live = live_of(target);
	struct gt_trigger trigger;
	bool spent;

	if (live->instance != NULL)
		return gt_live_instance_command_read(live, index, command, text, room);
	for (uint32_t i = 0;
	     gt_session_trigger_get(live->session, i, &trigger, &spent, text, room) == 0; i++) {
		uint32_t action = 0;

		while (action < GT_ACTIONS && trigger_actions[action] != trigger.action)
			action++;
		if (action == GT_ACTIONS || trigger.longer_than_ns != 0 || index-- > 0)
			continue;
		*command = (struct gt_control_command){
			.function = trigger.glob,
			.function_bytes = strlen(trigger.glob),
			.action = (enum gt_control_action)action,
			.count = spent		      ? 0
				 : trigger.count == 0 ? GT_ACTION_UNLIMITED
						      : trigger.count,
		};
		return 0;
	}
	return GT_ENOENT;
}

/* What a hit does */

/* The CPU that a thread has run on last; false: it has ended. */
static bool cpu_of(uint32_t tid, uint32_t *cpu)
{
	char path[64], line[1024];
	const char *at = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	if (fgets(line, sizeof(line), file) != NULL)
		at = strrchr(line, ')'); /* the end of field 2; field 39 is the CPU */
	fclose(file);
	for (int field = 2; at != NULL && field < 39; field++)
		at = strchr(at + 1, ' ');
	return at != NULL && sscanf(at, "%u", cpu) == 1;
}

/* As on Linux, tracing is off after a dump. Dumped records stay in the ring. */
static void dump(struct gt_live *live, const struct gt_control_scope *scope)
{
	static const char line[] = "---------------------------------\n";
	struct gt_live *top = live->top != NULL ? live->top : live;
	struct gt_message message = { "" };
	char *text = malloc(DUMP_BYTES);
	struct gt_text_reader *reader;
	struct gt_text_look look;
	int64_t got;

	gt_live_get_look(live, &look);
	look.scope = *scope;
	gt_live_settle_clock(live);
	if (top->dump == NULL || text == NULL ||
	    gt_live_open_trace(live, &look, &reader, &message) != 0) {
		free(text);
		return;
	}
	top->dump(top->dump_data, "Dumping ftrace buffer:\n", 23);
	top->dump(top->dump_data, line, sizeof(line) - 1);
	while ((got = gt_text_reader_read(reader, text, DUMP_BYTES, &message)) > 0)
		top->dump(top->dump_data, text, (size_t)got);
	top->dump(top->dump_data, line, sizeof(line) - 1);
	gt_text_reader_close(reader);
	free(text);
}

void gt_live_command_act(struct gt_live *live, enum gt_control_action action, uint32_t cpu)
{
	struct gt_control_scope scope = { GT_SCOPE_ALL, 0 };
	struct gt_message message;

	if (action == GT_ACTION_SNAPSHOT)
		gt_live_snapshot_take(live, &message);
	if (action == GT_ACTION_CPUDUMP)
		scope = (struct gt_control_scope){ GT_SCOPE_CPU, cpu };
	if (action == GT_ACTION_DUMP || action == GT_ACTION_CPUDUMP)
		dump(live, &scope);
}

/* The thread that hit has switched tracing; the kernel's switches of threads follow. */
static void follow_switch(struct gt_live *live, const struct gt_trigger_hit *hit)
{
	bool on = gt_session_tracing_on(live->session);

	pthread_mutex_lock(&live->lock);
	gt_live_events_switched(live, hit->action == GT_TRIGGER_TRACEON, hit->tsc);
	gt_live_events_show(
		live, on && live->shown.sched_switch); /* somebody may have changed it since */
	pthread_mutex_unlock(&live->lock);
}

void gt_live_hit(struct gt_live *live, const struct gt_trigger_hit *hit)
{
	uint32_t cpu = 0, action = 0;

	if (hit->action == GT_TRIGGER_TRACEON || hit->action == GT_TRIGGER_TRACEOFF) {
		follow_switch(live, hit);
		return;
	}

	while (action < GT_ACTIONS && trigger_actions[action] != hit->action)
		action++;
	if (hit->action == GT_TRIGGER_CPUDUMP && !cpu_of(hit->tid, &cpu))
		action = GT_ACTION_DUMP;
	if (hit->action == GT_TRIGGER_DUMP || hit->action == GT_TRIGGER_CPUDUMP)
		gt_session_set_tracing_on(live->session, false);
	gt_live_pull(live);
	if (action < GT_ACTIONS)
		gt_live_command_act(live, (enum gt_control_action)action, cpu);
}
