/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes of a session: set, listed and removed while it runs. Any thread. Whether their events are
 * recorded is said by the list of events (session_events.c), as of all others.
 */
#include "attach/agent/dynamic.h"
#include "attach/agent/probes.h"
#include "attach/session/session.h"
#include "attach/session/session_private.h"

#include <string.h>

/* The program's own file, NULL unknown. */
static const char *program_path(const struct gt_session *session)
{
	for (size_t i = 0; i < session->tracees.count; i++)
		for (size_t k = 0; k < session->tracees.list[i]->object_count; k++)
			if (session->tracees.list[i]->objects[k]->program)
				return session->tracees.list[i]->objects[k]->file->path;
	return NULL;
}

/* Whether it can be patched, where its file is known; else why not. */
static int plan(struct gt_session *session, const struct gt_dynamic *dynamic,
		struct gt_probe_error *error, struct gt_message *message)
{
	int result = 0;

	for (size_t i = 0; !result && i < session->catalog.file_count; i++) {
		struct gt_catalog_file *file = session->catalog.files[i];

		for (uint32_t k = file->probe_count; !result && k-- > 0;) {
			const struct gt_plan_entry *entry;

			if (file->probes[k].dynamic != dynamic)
				continue;
			result = gt_catalog_plan_probes(file, message);
			entry = &file->probes[file->probes[k].site].plan;
			if (result || entry->way != GT_PLAN_NONE)
				break;
			*error = (struct gt_probe_error){ gt_probe_error_register,
							  dynamic->definition.place_at };
			return gt_fail(message, GT_EINVAL, "%s: %s", gt_probe_error_register,
				       gt_plan_reason_text(entry->reason));
		}
	}
	return result;
}

/* Whether the processes that run let returns of it be taken; else why not. */
static int check_returns(struct gt_session *session, const struct gt_dynamic *dynamic,
			 struct gt_probe_error *error, struct gt_message *message)
{
	const char *why = NULL;
	uint32_t n;

	for (size_t i = 0; i < session->tracees.count; i++)
		for (size_t k = 0; k < session->tracees.list[i]->object_count; k++) {
			const struct gt_tracee *tracee = session->tracees.list[i];
			const struct gt_tracee_object *object = tracee->objects[k];

			for (n = 0; n < object->file->probe_count; n++)
				if (object->file->probes[n].dynamic == dynamic && !object->gone)
					break;
			if (n == object->file->probe_count || object->gone)
				continue;
			if (tracee->copies)
				why = gt_plan_reason_text(tracee->copies);
			else if (object->entry_only)
				why = "no return address of its file may be replaced";
			else if (object->region >= 0 && !object->stubbed)
				why = "its file was not traced when its first probe was set";
		}
	if (why == NULL)
		return 0;
	*error = (struct gt_probe_error){ gt_probe_error_register, dynamic->definition.place_at };
	return gt_fail(message, GT_EINVAL, "%s: %s", error->text, why);
}

static int tell(struct gt_session *session)
{
	int error = 0;

	for (size_t i = 0; !error && i < session->tracees.count; i++)
		for (size_t k = 0; !error && k < session->tracees.list[i]->object_count; k++)
			error = gt_probes_tell(session->tracees.list[i]->objects[k], session->sink);
	return error;
}

int gt_session_set_probe(struct gt_session *session, const char *text, size_t bytes,
			 enum gt_probe_kinds kinds, struct gt_probe_error *error,
			 struct gt_message *message)
{
	struct gt_dynamic *dynamic = NULL;
	int result;

	*error = (struct gt_probe_error){ "", 0 };
	pthread_mutex_lock(&session->lock);
	result = gt_dynamics_add(&session->catalog, text, bytes, kinds, program_path(session),
				 &dynamic, error, message);
	if (result && *error->text && message != NULL && !*message->text)
		gt_fail(message, result, "%s", error->text);
	if (!result)
		result = plan(session, dynamic, error, message);
	if (!result && dynamic->definition.returns)
		result = check_returns(session, dynamic, error, message);
	if (!result)
		result = tell(session);
	if (result && dynamic != NULL)
		gt_dynamics_remove(&session->catalog, dynamic);
	pthread_mutex_unlock(&session->lock);
	return result;
}

static bool is_recorded(const struct gt_session *session, const struct gt_dynamic *dynamic)
{
	return gt_events_match(session->selection.events, dynamic->definition.group,
			       dynamic->definition.name);
}

static bool is_named(const struct gt_dynamic *dynamic, const char *group, const char *name)
{
	return !dynamic->removed && (!*group || strcmp(dynamic->definition.group, group) == 0) &&
	       (!*name || strcmp(dynamic->definition.name, name) == 0);
}

bool gt_session_probe_event(struct gt_session *session, const char *group, const char *name,
			    uint32_t *number)
{
	const struct gt_catalog *catalog = &session->catalog;
	bool found = false;

	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 0; !found && i < catalog->dynamic_count; i++) {
		const struct gt_dynamic *dynamic = catalog->dynamics[i];

		found = !dynamic->removed && dynamic->probe_count &&
			strcmp(dynamic->definition.name, name) == 0 &&
			strcmp(dynamic->definition.group, group) == 0;
		if (found)
			*number = dynamic->events[0];
	}
	pthread_mutex_unlock(&session->lock);
	return found;
}

int gt_session_remove_probes(struct gt_session *session, const char *group, const char *name,
			     struct gt_message *message)
{
	struct gt_catalog *catalog = &session->catalog;
	bool busy = false;
	uint32_t found = 0;
	int result = 0;

	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 0; i < catalog->dynamic_count; i++)
		if (is_named(catalog->dynamics[i], group, name)) {
			found++;
			busy |= is_recorded(session, catalog->dynamics[i]);
		}
	if (busy)
		result = gt_fail(message, GT_EBUSY, "the event is recorded: switch it off first");
	else if (!found && (*group || *name))
		result = gt_fail(message, GT_ENOENT, "there is no such probe");
	for (uint32_t i = 0; !result && i < catalog->dynamic_count; i++)
		if (is_named(catalog->dynamics[i], group, name))
			gt_dynamics_remove(catalog, catalog->dynamics[i]);
	pthread_mutex_unlock(&session->lock);
	return result;
}

/* What stands there any process of the session may have written: it is a number that is shown. */
static uint64_t hits_of(const struct gt_session *session, const struct gt_dynamic *dynamic)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < session->arena_count; k++) {
		const uint64_t *hits = graftrace_arena_event_hits(session->arenas[k].shared.memory);

		for (uint32_t i = 0; i < dynamic->probe_count; i++)
			if (dynamic->events[i] < GRAFTRACE_ARENA_EVENTS)
				sum += __atomic_load_n(&hits[dynamic->events[i]], __ATOMIC_RELAXED);
	}
	return sum;
}

int gt_session_each_probe(struct gt_session *session,
			  int (*each)(void *data, const struct gt_session_probe *probe), void *data)
{
	const struct gt_catalog *catalog = &session->catalog;
	int result = 0;

	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 0; !result && i < catalog->dynamic_count; i++) {
		const struct gt_dynamic *dynamic = catalog->dynamics[i];
		const struct gt_session_probe probe = {
			.definition = &dynamic->definition,
			.path = dynamic->path,
			.offset = dynamic->offset,
			.enabled = is_recorded(session, dynamic),
			.hits = hits_of(session, dynamic),
		};

		if (!dynamic->removed)
			result = each(data, &probe);
	}
	pthread_mutex_unlock(&session->lock);
	return result;
}
