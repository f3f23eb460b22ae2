/* SPDX-License-Identifier: MIT */
/*
 * Events with fields: which of them are recorded, and which there are. Any thread; a list that cannot
 * be had leaves the one before.
 */
#include "attach/agent/probes.h"
#include "attach/session/session.h"
#include "attach/session/session_private.h"

int gt_session_set_events(struct gt_session *session, const char *const *words,
			  struct gt_message *message)
{
	char **copy = words && *words ? gt_session_copy_list(words) : NULL;
	char **before;
	int error;

	if (words && *words && !copy)
		return gt_fail(message, GT_ENOMEM, "no memory for the list of events");
	pthread_mutex_lock(&session->lock);
	before = session->selection.events;
	session->selection.events = copy;
	error = gt_session_select(session, message);
	pthread_mutex_unlock(&session->lock);
	gt_session_free_list(before);
	return error;
}

/* All that the word names. */
static int arm(struct gt_session *session, const char *word, struct gt_message *message)
{
	struct gt_event_format event;
	int error = 0;
	size_t i;
	uint32_t k;

	for (i = 0; !error && i < session->catalog.file_count; i++) {
		const struct gt_catalog_file *file = session->catalog.files[i];

		for (k = 0; !error && k < file->probe_count; k++) {
			gt_catalog_describe_event(file, k, &event);
			if (gt_event_word_matches(word, event.system, event.name))
				error = gt_event_rules_arm(&session->event_rules, &event, message);
		}
	}
	return error;
}

int gt_session_set_event_filter(struct gt_session *session, const char *word, const char *filter,
				struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_event_rules_set_filter(&session->event_rules, word, filter, message);
	if (!error)
		error = arm(session, word, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

/* Whether the probe is patched in a process, and why it is not although it is asked for. */
static bool is_enabled(const struct gt_session *session, const struct gt_catalog_file *file,
		       uint32_t index, enum gt_plan_reason *reason)
{
	size_t i, k;
	bool foreign;

	*reason = GT_REASON_NONE;
	for (i = 0; i < session->tracee_count; i++) {
		const struct gt_tracee *tracee = session->tracees[i];

		for (k = 0; k < tracee->object_count; k++) {
			const struct gt_tracee_object *object = tracee->objects[k];

			if (object->file != file || object->gone)
				continue;
			if (gt_probes_is_on(object, index, &foreign))
				return true;
			if (foreign)
				*reason = GT_REASON_NOT_AS_IN_FILE;
		}
	}
	if (!*reason && file->probes[index].planned &&
	    file->probes[file->probes[index].site].plan.way == GT_PLAN_NONE)
		*reason = file->probes[file->probes[index].site].plan.reason;
	return false;
}

int gt_session_each_event(struct gt_session *session,
			  int (*each)(void *data, const struct gt_event_format *event, bool enabled,
				      const char *reason),
			  void *data)
{
	struct gt_event_format event;
	int result = 0;
	size_t i;
	uint32_t k;

	pthread_mutex_lock(&session->lock);
	for (i = 0; !result && i < session->catalog.file_count; i++) {
		const struct gt_catalog_file *file = session->catalog.files[i];

		for (k = 0; !result && k < file->probe_count; k++) {
			enum gt_plan_reason reason;
			const bool enabled = is_enabled(session, file, k, &reason);

			if (file->probes[k].removed)
				continue;
			gt_catalog_describe_event(file, k, &event);
			result = each(data, &event, enabled,
				      reason ? gt_plan_reason_text(reason) : NULL);
		}
	}
	pthread_mutex_unlock(&session->lock);
	return result;
}
