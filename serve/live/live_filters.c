/* SPDX-License-Identifier: MIT */
/*
 * Filters of a program's events, as their files show them; the session evaluates them in the
 * program. Any thread.
 */
#include "serve/live/live_filters.h"

#include "core/trace/event_trigger.h"
#include "serve/live/live_instance.h"

#include <stdlib.h>
#include <string.h>

int gt_live_event_filter_set(struct gt_control_target *target, const char *word, const char *filter,
			     size_t bytes, const struct gt_event_filter_error *failed,
			     struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	char *copy = bytes > 0 && failed == NULL ? strndup(filter, bytes) : NULL;
	int error;

	if (bytes > 0 && failed == NULL && copy == NULL)
		return no_memory(message);
	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0)
		error = gt_session_set_event_filter(live->session, word, copy, message);
	if (error == 0 &&
	    gt_filter_texts_set(&live->change.filters, word, filter, bytes, failed) != 0)
		error = no_memory(message);
	pthread_mutex_unlock(&live->change.lock);
	free(copy);
	return error;
}

int64_t gt_live_event_filter_read(struct gt_control_target *target, const char *word,
				  uint64_t offset, char *buffer, size_t bytes)
{
	struct gt_live *live = live_of(target);
	size_t given;

	pthread_mutex_lock(&live->change.lock);
	given = gt_filter_texts_read(&live->change.filters, word, offset, buffer, bytes);
	pthread_mutex_unlock(&live->change.lock);
	return (int64_t)given;
}

/* Under change.lock. A trigger that enables or disables an event changes which events the top has. */
static int set_trigger(struct gt_live *live, const char *word,
		       const struct gt_event_trigger *trigger, bool remove,
		       struct gt_message *message)
{
	const bool is_of_event = trigger->action == GRAFTRACE_RULE_ENABLE ||
				 trigger->action == GRAFTRACE_RULE_DISABLE;
	int error = is_of_event ? gt_live_top_begin_lock(live, false, message) : 0;

	if (error != 0)
		return error;
	error = gt_session_event_trigger(live->session, word, trigger, remove, message);
	if (is_of_event)
		gt_live_top_end_unlock(live);
	return error;
}

int gt_live_event_trigger_set(struct gt_control_target *target, const char *word,
			      const struct gt_event_trigger *trigger, bool remove,
			      struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int error;

	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0 && !remove && gt_event_trigger_takes_snapshots(trigger))
		error = gt_live_snapshot_can(live, message);
	if (error == 0)
		error = set_trigger(live, word, trigger, remove, message);
	pthread_mutex_unlock(&live->change.lock);
	return error;
}

int gt_live_event_trigger_get(struct gt_control_target *target, const char *word, uint32_t index,
			      struct gt_event_trigger *trigger, char *text, size_t room)
{
	return gt_session_event_trigger_get(live_of(target)->session, word, index, trigger, text,
					    room)
		       ? 0
		       : GT_ENOENT;
}

int gt_live_filters_note(struct gt_live *live, const char *word, const char *filter)
{
	return gt_filter_texts_set(&live->change.filters, word, filter, strlen(filter), NULL);
}

void gt_live_filters_fini(struct gt_live *live)
{
	gt_filter_texts_fini(&live->change.filters);
}
