/* SPDX-License-Identifier: MIT */
/*
 * Filters of a program's events, as their files show them; the session evaluates them in the
 * program. Any thread.
 */
#define _GNU_SOURCE /* asprintf */
#include "serve/live/live_filters.h"

#include "attach/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	char *word;
	char *text;
};

struct gt_live_filters {
	struct entry *entries;
	size_t count;
};

static struct entry *find(const struct gt_live_filters *filters, const char *word)
{
	for (size_t i = 0; filters != NULL && i < filters->count; i++)
		if (strcmp(filters->entries[i].word, word) == 0)
			return &filters->entries[i];
	return NULL;
}

static bool add(struct gt_live *live, const char *word)
{
	struct gt_live_filters *filters = live->change.filters;
	struct entry *grown;

	if (filters == NULL)
		filters = live->change.filters = calloc(1, sizeof(*filters));
	if (filters == NULL)
		return false;
	grown = realloc(filters->entries, (filters->count + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	filters->entries = grown;
	grown[filters->count] = (struct entry){ strdup(word), NULL };
	if (grown[filters->count].word == NULL)
		return false;
	filters->count++;
	return true;
}

/* As append_filter_err of trace_events_filter.c: its caret is one column further right than
 * error_log's. */
static char *text_of(const char *filter, size_t bytes, const struct gt_event_filter_error *error)
{
	size_t place = error != NULL ? error->at < bytes ? error->at : bytes : 0;
	char *text = NULL;
	int length;

	place += place > 0;
	if (error == NULL)
		length = asprintf(&text, "%.*s\n", (int)bytes, filter);
	else if (error->text != NULL)
		length = asprintf(&text, "%.*s\n%*s\nparse_error: %s\n\n", (int)bytes, filter,
				  (int)place, "^", error->text);
	else
		length = asprintf(&text, "%.*s\nError: (0)\n\n", (int)bytes, filter);
	return length < 0 ? NULL : text;
}

/* Under change.lock. */
static int note(struct gt_live *live, const char *word, char *text, struct gt_message *message)
{
	struct entry *entry = find(live->change.filters, word);

	if (entry == NULL && text != NULL) {
		if (!add(live, word)) {
			free(text);
			return no_memory(message);
		}
		entry = find(live->change.filters, word);
	}
	if (entry != NULL) {
		free(entry->text);
		entry->text = text;
	}
	return 0;
}

int gt_live_event_filter_set(struct gt_control_target *target, const char *word, const char *filter,
			     size_t bytes, const struct gt_event_filter_error *failed,
			     struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	char *text = bytes > 0 || failed != NULL ? text_of(filter, bytes, failed) : NULL;
	char *copy = bytes > 0 && failed == NULL ? strndup(filter, bytes) : NULL;
	int error;

	if (((bytes > 0 || failed != NULL) && text == NULL) ||
	    (bytes > 0 && failed == NULL && copy == NULL)) {
		free(text);
		free(copy);
		return no_memory(message);
	}
	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0)
		error = gt_session_set_event_filter(live->session, word, copy, message);
	if (error == 0)
		error = note(live, word, text, message);
	else
		free(text);
	pthread_mutex_unlock(&live->change.lock);
	free(copy);
	return error;
}

int64_t gt_live_event_filter_read(struct gt_control_target *target, const char *word,
				  uint64_t offset, char *buffer, size_t bytes)
{
	struct gt_live *live = live_of(target);
	const struct entry *entry;
	size_t given = 0;

	pthread_mutex_lock(&live->change.lock);
	entry = find(live->change.filters, word);
	if (entry != NULL && entry->text != NULL && offset < strlen(entry->text)) {
		given = strlen(entry->text + offset);
		given = given < bytes ? given : bytes;
		memcpy(buffer, entry->text + offset, given);
	}
	pthread_mutex_unlock(&live->change.lock);
	return (int64_t)given;
}

static bool takes_snapshots(const struct gt_event_trigger *trigger)
{
	return trigger->action == GRAFTRACE_RULE_SNAPSHOT ||
	       (trigger->hist != NULL && strstr(trigger->hist, ").snapshot(") != NULL);
}

int gt_live_event_trigger_set(struct gt_control_target *target, const char *word,
			      const struct gt_event_trigger *trigger, bool remove,
			      struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int error;

	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0 && !remove && takes_snapshots(trigger))
		error = gt_live_snapshot_can(live, message);
	if (error == 0)
		error = gt_session_event_trigger(live->session, word, trigger, remove, message);
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
	char *text = text_of(filter, strlen(filter), NULL);

	return text == NULL ? GT_ENOMEM : note(live, word, text, NULL);
}

void gt_live_filters_fini(struct gt_live *live)
{
	struct gt_live_filters *filters = live->change.filters;

	for (size_t i = 0; filters != NULL && i < filters->count; i++) {
		free(filters->entries[i].word);
		free(filters->entries[i].text);
	}
	if (filters != NULL)
		free(filters->entries);
	free(filters);
	live->change.filters = NULL;
}
