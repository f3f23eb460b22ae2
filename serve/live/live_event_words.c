/* SPDX-License-Identifier: MIT */
/*
 * See live_event_words.h. Any thread. Written words are added to the list; only a word that a later one
 * reverses is removed. So an event of a library that is loaded later is on or off as the words say.
 */
#include "serve/live/live_event_words.h"
#include "serve/live/live_event_list.h"
#include "serve/live/live_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/host/memory.h"

/* Makes the words the list of events in the settings. */
static int ask(struct gt_live *live, struct gt_message *message)
{
	struct gt_word_list *list;
	int error =
		gt_word_list_create(&gt_host_memory, gt_globs_words(&live->change.events), &list);

	if (error != 0)
		return no_memory(message);
	error = gt_live_ask_for_list(live, GT_LIST_EVENTS, list, message);
	gt_word_list_release(list);
	return error;
}

/* Adds a word; the same word or its opposite, written before, is replaced. False: no memory. */
static bool add(struct gt_live *live, const char *word, bool on)
{
	char text[GT_CONTROL_WORD_BYTES + 2];

	snprintf(text, sizeof(text), "!%s", word);
	gt_globs_remove(&live->change.events, text);
	gt_globs_remove(&live->change.events, word);
	return gt_globs_add(&live->change.events, on ? word : text, strlen(on ? word : text),
			    false);
}

static bool names_one(struct gt_live *live, const char *word)
{
	const struct gt_live_event_list *list;
	bool found = gt_session_names_syscall(word);

	if (found)
		return true;
	list = gt_live_event_list_lock(live);
	for (size_t i = 0; i < list->count && !found; i++)
		found = gt_event_word_matches(word, list->formats[i].system, list->formats[i].name);
	gt_live_event_list_unlock(live);
	return found;
}

/* ---- of an object ---- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static int is_of_object(void *data, uint32_t number, const struct gt_function *function,
			bool enabled)
{
	(void)number;
	(void)enabled;
	return strcmp(base_of(function->object), data) == 0;
}

static bool is_loaded(struct gt_live *live, const char *object)
{
	const struct gt_live_event_list *list = gt_live_event_list_lock(live);
	bool found = false;

	for (size_t i = 0; !found && i < list->count; i++)
		found = strcmp(base_of(list->formats[i].object), object) == 0;
	gt_live_event_list_unlock(live);
	return found || gt_session_each_function(live->session, is_of_object,
						 (void *)(uintptr_t)object) != 0;
}

/* The word as it waits: as s_show of kernel/trace/trace_events.c prints it, Linux 6.14. */
static void print_waiting(const char *word, char text[GT_CONTROL_WORD_BYTES])
{
	const char *object = strstr(word, GT_EVENT_IN);
	const int bytes = (int)(object - word);
	const char *colon = memchr(word, ':', (size_t)bytes);
	const int system = (int)(colon != NULL ? colon - word : 0);

	if (bytes == 0 || (bytes == 1 && *word == '*'))
		snprintf(text, GT_CONTROL_WORD_BYTES, "*:*%s", object);
	else if (colon == NULL)
		snprintf(text, GT_CONTROL_WORD_BYTES, "%s", word);
	else
		snprintf(text, GT_CONTROL_WORD_BYTES, "%.*s:%.*s%s", system > 0 ? system : 1,
			 system > 0 ? word : "*", bytes > system + 1 ? bytes - system - 1 : 1,
			 bytes > system + 1 ? colon + 1 : "*", object);
}

/* Adds a word for each event of the object that is known; *found: there is one. False: no memory. */
static bool add_known(struct gt_live *live, const char *word, bool on, bool *found)
{
	const struct gt_live_event_list *list = gt_live_event_list_lock(live);
	char name[GT_CONTROL_WORD_BYTES];
	bool added = true;

	*found = false;
	for (size_t i = 0; added && i < list->count; i++) {
		const struct gt_event_format *event = &list->formats[i];

		if (!gt_event_word_in(word, event->object, event->system, event->name))
			continue;
		*found = true;
		snprintf(name, sizeof(name), "%s:%s", event->system, event->name);
		added = add(live, name, on);
	}
	gt_live_event_list_unlock(live);
	return added;
}

static int change_of_object(struct gt_live *live, const char *word, bool on,
			    struct gt_message *message)
{
	const char *object = strstr(word, GT_EVENT_IN) + sizeof(GT_EVENT_IN) - 1;
	char waiting[GT_CONTROL_WORD_BYTES];
	bool found, waited;

	if (*object == '\0' || strchr(object, ':') != NULL)
		return GT_EINVAL;
	print_waiting(word, waiting);
	waited = gt_globs_remove(&live->change.events, waiting);
	if (!add_known(live, word, on, &found))
		return no_memory(message);
	if (found || (waited && !on))
		return 0;
	if (!on || is_loaded(live, object))
		return GT_EINVAL;
	return gt_globs_add(&live->change.events, waiting, strlen(waiting), false)
		       ? 0
		       : no_memory(message);
}

int gt_live_event_words_change(struct gt_live *live, const char *word, bool on,
			       struct gt_message *message)
{
	int error = 0;

	if (word != NULL && strstr(word, GT_EVENT_IN) != NULL)
		error = change_of_object(live, word, on, message);
	else if (word != NULL && !names_one(live, word))
		error = GT_EINVAL;
	else if (word != NULL && !add(live, word, on))
		error = no_memory(message);
	return error != 0 ? error : ask(live, message);
}

/* Whether the word waits for its object. As on Linux, once the object is loaded its events are listed instead. */
static bool waits(struct gt_live *live, const char *word)
{
	const char *object = strstr(word, GT_EVENT_IN);

	return *word != '!' && object != NULL && !is_loaded(live, object + sizeof(GT_EVENT_IN) - 1);
}

int gt_live_event_waiting(struct gt_control_target *target, uint64_t index, char *word, size_t room)
{
	struct gt_live *live = live_of(target);
	const char *const *words;
	int error = GT_ENOENT;

	pthread_mutex_lock(&live->change.lock);
	words = gt_globs_words(&live->change.events);
	for (; error != 0 && words != NULL && *words != NULL; words++)
		if (waits(live, *words) && index-- == 0) {
			snprintf(word, room, "%s", *words);
			error = 0;
		}
	pthread_mutex_unlock(&live->change.lock);
	return error;
}
