/* SPDX-License-Identifier: MIT */
/*
 * Synthetic events of a session: defined, listed and removed while it runs. They happen in the processes by
 * actions of histograms; whether they are recorded is said by the list of events, as of all others. Any
 * thread.
 */
#include "attach/agent/probes.h"
#include "attach/agent/synthetics.h"
#include "attach/session/session.h"
#include "attach/session/session_private.h"
#include "core/trace/message.h"

#include <string.h>

static bool is_wanted(const struct gt_session *session, const struct gt_event_format *event)
{
	return gt_events_match(session->selection.events, event->system, event->name);
}

/* The sink knows the event, and its rules are in place, before it can happen. Without rules it would be
 * recorded: it always has some. */
static int prepare(struct gt_session *session, struct gt_synthetic_event *synthetic,
		   struct gt_message *message)
{
	const struct gt_event_format *event = &synthetic->definition.format;
	int error = 0;

	if (!synthetic->told && session->sink != NULL && session->sink->event != NULL) {
		error = session->sink->event(session->sink->data, event);
		synthetic->told = !error;
	}
	return error ? error
		     : gt_event_rules_arm(&session->event_rules, event, is_wanted(session, event),
					  message);
}

int gt_session_select_synthetics(struct gt_session *session, struct gt_message *message)
{
	int error = 0;

	for (uint32_t i = 0; !error && i < session->catalog.synthetic_count; i++)
		if (!session->catalog.synthetics[i]->removed)
			error = prepare(session, session->catalog.synthetics[i], message);
	return error;
}

static bool is_on(const struct gt_session *session, const struct gt_event_format *event)
{
	bool on;

	return gt_event_rules_gate(&session->event_rules, event->system, event->name, &on)
		       ? on
		       : is_wanted(session, event);
}

int gt_session_each_synthetic_locked(struct gt_session *session,
				     int (*each)(void *data, const struct gt_event_format *event,
						 bool enabled, const char *reason),
				     void *data)
{
	int result = 0;

	for (uint32_t i = 0; !result && i < session->catalog.synthetic_count; i++) {
		const struct gt_synthetic_event *synthetic = session->catalog.synthetics[i];

		if (!synthetic->removed)
			result = each(data, &synthetic->definition.format,
				      is_on(session, &synthetic->definition.format), NULL);
	}
	return result;
}

bool gt_session_synthetic_is_on(const struct gt_session *session, const char *system,
				const char *name)
{
	const struct gt_synthetic_event *synthetic =
		strcmp(system, GT_EVENT_SYNTHETIC) == 0
			? gt_synthetics_find(&session->catalog, name)
			: NULL;

	return synthetic != NULL && is_on(session, &synthetic->definition.format);
}

int gt_session_set_synthetic(struct gt_session *session, const char *text, size_t bytes,
			     struct gt_event_format *event, struct gt_probe_error *error,
			     struct gt_message *message)
{
	struct gt_synthetic_event *made;
	int result;

	pthread_mutex_lock(&session->lock);
	result = gt_synthetics_add(&session->catalog, text, bytes, error, message);
	if (!result) {
		made = session->catalog.synthetics[session->catalog.synthetic_count - 1];
		*event = made->definition.format;
		result = prepare(session, made, message);
		made->removed = result != 0;
	}
	pthread_mutex_unlock(&session->lock);
	return result;
}

static bool is_named(const struct gt_synthetic_event *synthetic, const char *name)
{
	return !synthetic->removed &&
	       (!*name || strcmp(synthetic->definition.format.name, name) == 0);
}

static bool is_in_use(const struct gt_session *session, const struct gt_synthetic_event *synthetic)
{
	const struct gt_event_format *event = &synthetic->definition.format;

	return gt_event_rules_are_making(&session->event_rules, event->name) ||
	       gt_event_rules_act(&session->event_rules, event->system, event->name) ||
	       is_on(session, event);
}

int gt_session_remove_synthetics(struct gt_session *session, const char *name,
				 struct gt_message *message)
{
	bool found = false, busy = false;

	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 0; i < session->catalog.synthetic_count; i++)
		if (is_named(session->catalog.synthetics[i], name)) {
			found = true;
			busy |= is_in_use(session, session->catalog.synthetics[i]);
		}
	for (uint32_t i = 0; !busy && i < session->catalog.synthetic_count; i++)
		if (is_named(session->catalog.synthetics[i], name))
			session->catalog.synthetics[i]->removed = true;
	pthread_mutex_unlock(&session->lock);
	if (busy)
		return gt_fail(message, GT_EBUSY, "a synthetic event is in use");
	return found || !*name
		       ? 0
		       : gt_fail(message, GT_ENOENT, "there is no synthetic event '%s'", name);
}

int gt_session_each_synthetic(struct gt_session *session,
			      int (*each)(void *data, const struct gt_event_format *event,
					  bool enabled, const char *reason),
			      void *data)
{
	int result;

	pthread_mutex_lock(&session->lock);
	result = gt_session_each_synthetic_locked(session, each, data);
	pthread_mutex_unlock(&session->lock);
	return result;
}
