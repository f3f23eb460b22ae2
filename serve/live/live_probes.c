/* SPDX-License-Identifier: MIT */
/* See live_probes.h. Any thread. The session's list of words only grows by what is written, but for
 * words that a later one undoes: so an event of a library that comes later is on or off as was said. */
#include "serve/live/live_probes.h"
#include "serve/live/live_filters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of an event, and those of a system. */
static const struct {
	enum gt_control_event_file which;
	const char *path;
} kinds[] = {
	{ GT_EVENT_ENABLE, "events/%s/%s/enable" },
	{ GT_EVENT_FORMAT, "events/%s/%s/format" },
	{ GT_EVENT_ID, "events/%s/%s/id" },
	{ GT_EVENT_FILTER, "events/%s/%s/filter" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct gt_live_probes {
	struct gt_control_group group;
	struct gt_control_file *files;
	uint32_t count;
};

/* ---- the list ---- */

/* Each event once: its first place, and whether one of its places is watched. */
struct search {
	struct gt_event_format *formats;
	bool *enabled;
	size_t count;
	size_t room;
	bool no_memory;
};

static size_t find(const struct search *search, const struct gt_event_format *event)
{
	size_t i;

	for (i = 0; i < search->count; i++)
		if (strcmp(search->formats[i].name, event->name) == 0 &&
		    strcmp(search->formats[i].system, event->system) == 0)
			break;
	return i;
}

static int take(void *data, const struct gt_event_format *event, bool enabled, const char *reason)
{
	struct search *search = data;
	const size_t at = find(search, event);

	(void)reason;
	if (at == search->count && search->count == search->room) {
		const size_t room = search->room ? search->room * 2 : 32;
		void *formats = realloc(search->formats, room * sizeof(*search->formats));
		void *flags = realloc(search->enabled, room * sizeof(*search->enabled));

		search->formats = formats ? formats : search->formats;
		search->enabled = flags ? flags : search->enabled;
		search->no_memory = !formats || !flags;
		if (search->no_memory)
			return 1;
		search->room = room;
	}
	if (at == search->count) {
		search->formats[at] = *event;
		search->enabled[at] = false;
		search->count++;
	}
	search->enabled[at] |= enabled;
	return 0;
}

/* All events as they are now. */
static void look(struct gt_live *live, struct search *search)
{
	*search = (struct search){ 0 };
	gt_session_each_event(live->session, take, search);
}

static void forget(struct search *search)
{
	free(search->formats);
	free(search->enabled);
}

int gt_live_event(struct gt_control_target *target, uint64_t index, struct gt_control_event *event)
{
	struct search search;
	int error = GT_ENOENT;

	look(live_of(target), &search);
	if (index < search.count) {
		event->format = search.formats[index];
		event->enabled = search.enabled[index];
		error = 0;
	}
	forget(&search);
	return error;
}

static bool names_one(struct gt_live *live, const char *word)
{
	struct search search;
	bool found = false;

	look(live, &search);
	for (size_t i = 0; i < search.count && !found; i++)
		found = gt_event_word_matches(word, search.formats[i].system,
					      search.formats[i].name);
	forget(&search);
	return found;
}

/* Under change.lock. The word, or its opposite, was said before: what is said now holds. */
static int say_word(struct gt_live *live, const char *word, bool on, struct gt_message *message)
{
	char text[GT_CONTROL_WORD_BYTES + 2];

	snprintf(text, sizeof(text), "!%s", word);
	gt_globs_remove(&live->events, text);
	gt_globs_remove(&live->events, word);
	if (!gt_globs_add(&live->events, on ? word : text, strlen(on ? word : text), false))
		return no_memory(message);
	return gt_session_set_events(live->session, gt_globs_words(&live->events), message);
}

int gt_live_event_set(struct gt_control_target *target, const char *word, size_t word_bytes,
		      bool on, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	char text[GT_CONTROL_WORD_BYTES];
	int error;

	if (word_bytes >= sizeof(text))
		return GT_EINVAL;
	memcpy(text, word_bytes ? word : "", word_bytes);
	text[word_bytes] = '\0';
	if (word_bytes > 0 && !names_one(live, text))
		return GT_EINVAL;
	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0 && word_bytes == 0) {
		gt_globs_clear(&live->events);
		error = on ? say_word(live, "*:*", true, message)
			   : gt_session_set_events(live->session, NULL, message);
	} else if (error == 0) {
		error = say_word(live, text, on, message);
	}
	pthread_mutex_unlock(&live->change.lock);
	return error;
}

/* ---- rows ---- */

static bool add_row(struct gt_live_probes *probes, enum gt_control_event_file which, char *path,
		    uint64_t index)
{
	struct gt_control_file *grown =
		realloc(probes->files, (probes->count + 1) * sizeof(*grown));

	if (grown)
		probes->files = grown;
	if (!grown || !path) {
		free(path);
		return false;
	}
	grown[probes->count++] = gt_control_event_file(which, path, index);
	return true;
}

static char *path_of(const char *format, const char *system, const char *name)
{
	char path[512];
	const int bytes = snprintf(path, sizeof(path), format, system, name);

	return bytes > 0 && bytes < (int)sizeof(path) ? strdup(path) : NULL;
}

static bool is_first_of_system(const struct search *search, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(search->formats[i].system, search->formats[index].system) == 0)
			return false;
	return true;
}

static bool add_rows(struct gt_live_probes *probes, const struct search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		const struct gt_event_format *event = &search->formats[i];

		if (is_first_of_system(search, i) &&
		    (!add_row(probes, GT_EVENT_SYSTEM_ENABLE,
			      path_of("events/%s/enable%.0s", event->system, ""), i) ||
		     !add_row(probes, GT_EVENT_SYSTEM_FILTER,
			      path_of("events/%s/filter%.0s", event->system, ""), i)))
			return false;
		for (size_t k = 0; k < KINDS; k++)
			if (!add_row(probes, kinds[k].which,
				     path_of(kinds[k].path, event->system, event->name), i))
				return false;
	}
	return true;
}

/* Filters that the session was started with: in turns a word and what it is filtered by. */
static int note_filters(struct gt_live *live, const struct search *search,
			const char *const *filters)
{
	struct gt_event_filter_error unfit;
	char word[GT_CONTROL_WORD_BYTES];
	int error = 0;

	for (; error == 0 && filters != NULL && *filters != NULL; filters += 2) {
		for (size_t i = 0; error == 0 && i < search->count; i++) {
			const struct gt_event_format *event = &search->formats[i];

			if (!gt_event_word_matches(filters[0], event->system, event->name) ||
			    gt_event_filter_make(event, filters[1], strlen(filters[1]), NULL, 0,
						 &unfit) < 0)
				continue;
			snprintf(word, sizeof(word), "%s:%s", event->system, event->name);
			error = gt_live_filters_note(live, word, filters[1]);
		}
	}
	return error;
}

int gt_live_probes_init(struct gt_live *live, const char *const *words, const char *const *filters)
{
	struct gt_live_probes *probes = calloc(1, sizeof(*probes));
	struct search search;
	bool done;

	live->probes = probes;
	if (!probes || !gt_globs_add_all(&live->events, words))
		return GT_ENOMEM;
	look(live, &search);
	done = !search.no_memory && add_rows(probes, &search) &&
	       note_filters(live, &search, filters) == 0;
	forget(&search);
	probes->group = (struct gt_control_group){ probes->files, probes->count };
	live->control.groups = &probes->group;
	live->control.group_count = probes->count > 0;
	return done ? 0 : GT_ENOMEM;
}

void gt_live_probes_fini(struct gt_live *live)
{
	struct gt_live_probes *probes = live->probes;

	gt_globs_clear(&live->events);
	gt_live_filters_fini(live);
	for (uint32_t i = 0; probes && i < probes->count; i++)
		free((char *)(uintptr_t)probes->files[i].path);
	free(probes ? probes->files : NULL);
	free(probes);
	live->probes = NULL;
}
