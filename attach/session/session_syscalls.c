/* SPDX-License-Identifier: MIT */
/*
 * Which system calls are recorded: the table in the arena that agents look into
 * (struct graftrace_syscall), and whether their places are patched at all. Under the session's lock.
 */
#include "attach/agent/probes.h"
#include "attach/agent/syscall_events.h"
#include "attach/agent/syscalls.h"
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <stdlib.h>
#include <string.h>

/* Whether a word of a list of events asks for system calls: by their systems, or by names that begin as
 * theirs do. Globs for all events do not: 700 events whose places are patched are nothing that somebody who
 * wants the program's own events expects. */
static bool names_syscalls(const char *word)
{
	word += *word == '!';
	return strncmp(word, "syscalls", 8) == 0 || strncmp(word, "raw_syscalls", 12) == 0 ||
	       strncmp(word, "*syscalls", 9) == 0 || strncmp(word, "sys_", 4) == 0;
}

bool gt_session_names_syscall(const char *word)
{
	const char *system;

	for (uint32_t i = 0; names_syscalls(word) && i < gt_syscall_event_count(); i++) {
		const char *name = gt_syscall_event_name(i, &system);

		if (gt_event_word_matches(word, system, name))
			return true;
	}
	return false;
}

static int by_number(const void *number, const void *call)
{
	const uint64_t a = *(const uint64_t *)number, b = ((const struct gt_syscall *)call)->number;

	return a < b ? -1 : a > b;
}

const char *gt_session_syscall_event(uint64_t number)
{
	const struct gt_syscall *call =
		bsearch(&number, gt_syscall_table, gt_syscall_count, sizeof(*call), by_number);

	return call != NULL ? call->enter : NULL;
}

static bool are_named(const struct gt_session *session)
{
	char *const *word = session->selection.events;

	while (word != NULL && *word != NULL && !names_syscalls(*word))
		word++;
	return word != NULL && *word != NULL;
}

bool gt_session_has_syscalls(const struct gt_session *session)
{
	return session->syscalls_told != NULL || are_named(session);
}

/* named: are_named(). A glob for all events names none of them. */
static bool is_wanted(const struct gt_session *session, uint32_t index, bool named, bool *recorded)
{
	const char *system, *name = gt_syscall_event_name(index, &system);

	*recorded = named && gt_events_match(session->selection.events, system, name);
	return *recorded || gt_event_rules_act(&session->event_rules, system, name);
}

/* What has the event's number in the table. */
static uint32_t *number_of(struct gt_session *session, uint32_t index)
{
	struct graftrace_syscall *table = graftrace_arena_syscalls(gt_session_settings(session));
	const struct gt_syscall *call = gt_syscall_of_event(index);
	struct graftrace_syscall *entry =
		&table[call != NULL ? call->number : GRAFTRACE_ARENA_SYSCALLS];

	return gt_syscall_event_is_exit(index) ? &entry->exit : &entry->enter;
}

static void fill(struct gt_session *session)
{
	struct graftrace_syscall *table = graftrace_arena_syscalls(gt_session_settings(session));

	table[GRAFTRACE_ARENA_SYSCALLS].argument_count = 6;
	for (uint32_t i = 0; i < gt_syscall_count; i++) {
		const struct gt_syscall *call = &gt_syscall_table[i];
		const struct gt_syscall_data *data = gt_syscall_data_of(call);
		struct graftrace_syscall *entry = &table[call->number];

		entry->argument_count = call->argument_count;
		memcpy(entry->text, call->text, sizeof(entry->text));
		if (data == NULL)
			continue;
		entry->data = data->in.argument;
		entry->data_bytes = data->in.bytes;
		entry->out = data->out.argument;
		entry->out_bytes = data->out.bytes;
	}
}

/* The sink knows the event, and its rules are in place, before it can happen. */
static int prepare(struct gt_session *session, uint32_t index, bool recorded,
		   struct gt_message *message)
{
	struct gt_event_format event;
	int error = 0;

	gt_syscall_event_describe(&session->catalog, index, &event);
	if (!session->syscalls_told[index] && session->sink != NULL &&
	    session->sink->event != NULL) {
		error = session->sink->event(session->sink->data, &event);
		session->syscalls_told[index] = !error;
	}
	if (!error && session->event_rules.count)
		error = gt_event_rules_arm(&session->event_rules, &event, recorded, message);
	return error;
}

static bool any_is_wanted(const struct gt_session *session)
{
	const bool named = are_named(session);
	bool recorded;

	for (uint32_t i = 0; gt_session_has_syscalls(session) && i < gt_syscall_event_count(); i++)
		if (is_wanted(session, i, named, &recorded))
			return true;
	return false;
}

int gt_session_select_syscalls(struct gt_session *session, struct gt_message *message)
{
	const uint32_t count = gt_syscall_event_count();
	uint32_t first;
	bool any = any_is_wanted(session), named = are_named(session);
	int error = 0;

	if (!any && !session->selection.syscalls)
		return 0;
	first = gt_syscall_events_first(&session->catalog);
	if (session->syscalls_told == NULL) {
		session->syscalls_told = calloc(count, 1);
		if (session->syscalls_told == NULL)
			return gt_fail(message, GT_ENOMEM, "no memory for system calls");
		fill(session);
	}
	for (uint32_t i = 0; !error && i < count; i++) {
		bool recorded, wanted = any && is_wanted(session, i, named, &recorded);

		if (wanted)
			error = prepare(session, i, recorded, message);
		if (!error)
			__atomic_store_n(number_of(session, i), wanted ? first + i : 0,
					 __ATOMIC_RELEASE);
	}
	session->selection.syscalls = any;
	__atomic_store_n(&gt_session_settings(session)->syscalls_on, any, __ATOMIC_RELEASE);
	return error;
}

static bool is_on(const struct gt_session *session, uint32_t index)
{
	const char *system, *name = gt_syscall_event_name(index, &system);
	bool recorded, on;

	is_wanted(session, index, are_named(session), &recorded);
	return gt_event_rules_gate(&session->event_rules, system, name, &on) ? on : recorded;
}

int gt_session_each_syscall(struct gt_session *session,
			    int (*each)(void *data, const struct gt_event_format *event,
					bool enabled, const char *reason),
			    void *data)
{
	struct gt_event_format event;
	int result = 0;

	if (!gt_session_has_syscalls(session))
		return 0;
	gt_syscall_events_first(&session->catalog);
	for (uint32_t i = 0; !result && i < gt_syscall_event_count(); i++) {
		gt_syscall_event_describe(&session->catalog, i, &event);
		result = each(data, &event, is_on(session, i), NULL);
	}
	return result;
}

bool gt_session_syscall_is_on(const struct gt_session *session, const char *system,
			      const char *name)
{
	const char *its_system, *its_name;

	for (uint32_t i = 0; gt_session_has_syscalls(session) && i < gt_syscall_event_count();
	     i++) {
		its_name = gt_syscall_event_name(i, &its_system);
		if (strcmp(its_name, name) == 0 && strcmp(its_system, system) == 0)
			return is_on(session, i);
	}
	return false;
}

void gt_session_syscall_places(struct gt_session *session, struct gt_syscall_places *places)
{
	*places = (struct gt_syscall_places){ 0 };
	pthread_mutex_lock(&session->lock);
	for (size_t i = 0; i < session->catalog.file_count; i++) {
		const struct gt_catalog_file *file = session->catalog.files[i];

		for (uint32_t n = 0; n < file->call_count; n++)
			if (file->calls[n].way == GT_PLAN_NONE)
				places->left[file->calls[n].reason]++;
			else
				places->taken++;
	}
	for (size_t i = 0; i < session->tracees.count; i++) {
		if (session->tracees.list[i]->no_syscalls != NULL) {
			places->refused = session->tracees.list[i]->no_syscalls;
			places->pid = (int)session->tracees.list[i]->process.pid;
		}
		for (size_t k = 0; k < session->tracees.list[i]->object_count; k++) {
			const struct gt_tracee_object *object =
				session->tracees.list[i]->objects[k];

			for (uint32_t n = 0; object->calls != NULL && n < object->file->call_count;
			     n++)
				if (object->calls[n].state == GT_FUNCTION_FOREIGN)
					places->left[GT_REASON_NOT_AS_IN_FILE]++;
		}
	}
	pthread_mutex_unlock(&session->lock);
}
