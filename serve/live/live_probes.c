/* SPDX-License-Identifier: MIT */
/* See live_probes.h. Any thread. */
#include "serve/live/live_probes.h"
#include "serve/live/live_event_list.h"
#include "serve/live/live_event_words.h"
#include "serve/live/live_filters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files of an event, and those of a system. */
static const struct {
	enum gt_control_event_file which;
	const char *path;
} kinds[] = {
	{ GT_EVENT_ENABLE, "events/%s/%s/enable" },   { GT_EVENT_FORMAT, "events/%s/%s/format" },
	{ GT_EVENT_ID, "events/%s/%s/id" },	      { GT_EVENT_FILTER, "events/%s/%s/filter" },
	{ GT_EVENT_TRIGGER, "events/%s/%s/trigger" }, { GT_EVENT_HIST, "events/%s/%s/hist" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Rows of events that were added later: one group for each event. Groups never move, since other
 * threads may be reading them. */
#define LATER_GROUPS 4096

struct later {
	struct gt_control_file *files;
	uint32_t count;
	char *system;
	char *name; /* NULL: the rows are the system's */
	bool stay;  /* the rows are those of several events, none of which is ever removed */
};

struct gt_live_probes {
	/* Held while rows are added, and while an event is made that can be removed, so that its rows are its own.
	 * After change.lock, before the list's. */
	pthread_mutex_t lock;
	uint32_t shown_until;		 /* events up to this number have their rows */
	struct gt_control_group *groups; /* [1 + LATER_GROUPS] */
	struct gt_control_file *files;
	uint32_t count;
	struct later *later; /* [LATER_GROUPS] */
	uint32_t later_count;
	bool has_calls; /* system calls have rows */
};

/* ---- the list ---- */

/* Finds the index'th, or the one with a number. */
static bool find(struct gt_live *live, uint64_t index, struct gt_event_format *format)
{
	const struct gt_live_event_list *list = gt_live_event_list_lock(live);
	bool found;

	for (uint64_t i = 0; index >= GT_CONTROL_BY_NUMBER && i < list->count; i++)
		if (list->formats[i].number == index - GT_CONTROL_BY_NUMBER)
			index = i;
	found = index < list->count;
	if (found)
		*format = list->formats[index];
	gt_live_event_list_unlock(live);
	return found;
}

/* Whether the top or the instance itself wants it: the session has what all of them want. */
static bool is_asked_for(struct gt_live *live, const struct gt_event_format *event)
{
	const bool is_top = live->top == NULL;
	bool asked;

	pthread_mutex_lock(&live->lock);
	asked = gt_event_words_match(gt_word_list_words(live->settings.lists[GT_LIST_EVENTS]),
				     event->system, event->name, event->object,
				     is_top && gt_event_is_mark(event->system, event->name));
	pthread_mutex_unlock(&live->lock);
	return asked ||
	       (is_top && gt_session_event_is_gated(live->session, event->system, event->name));
}

int gt_live_event(struct gt_control_target *target, uint64_t index, struct gt_control_event *event)
{
	struct gt_live *live = live_of(target);

	if (!find(live, index, &event->format))
		return GT_ENOENT;
	event->enabled =
		is_asked_for(live, &event->format) &&
		gt_session_event_is_on(live->session, event->format.system, event->format.name);
	event->soft =
		live->top == NULL &&
		gt_session_event_is_soft(live->session, event->format.system, event->format.name);
	return 0;
}

/* ---- rows ---- */

static char *path_of(const char *format, const char *system, const char *name)
{
	char path[512];
	const int bytes = snprintf(path, sizeof(path), format, system, name);

	return bytes > 0 && bytes < (int)sizeof(path) ? strdup(path) : NULL;
}

static bool is_first_of_system(const struct gt_live_event_list *list, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(list->formats[i].system, list->formats[index].system) == 0)
			return false;
	return true;
}

/* Rows of one event of the list. */
static void put_rows(const struct gt_live_event_list *list, size_t index, bool first,
		     struct gt_control_file *rows, uint32_t *count)
{
	const struct gt_event_format *event = &list->formats[index];
	const uint64_t number = GT_CONTROL_BY_NUMBER + event->number;

	if (first) {
		rows[(*count)++] = gt_control_event_file(
			GT_EVENT_SYSTEM_ENABLE, path_of("events/%s/enable%.0s", event->system, ""),
			number);
		rows[(*count)++] = gt_control_event_file(
			GT_EVENT_SYSTEM_FILTER, path_of("events/%s/filter%.0s", event->system, ""),
			number);
	}
	for (size_t k = 0; k < KINDS; k++)
		rows[(*count)++] = gt_control_event_file(
			kinds[k].which, path_of(kinds[k].path, event->system, event->name), number);
}

static bool add_rows(struct gt_live_probes *probes, const struct gt_live_event_list *list)
{
	bool whole = true;

	probes->files = calloc(list->count * (KINDS + 2) + 1, sizeof(*probes->files));
	for (size_t i = 0; probes->files != NULL && i < list->count; i++) {
		put_rows(list, i, is_first_of_system(list, i), probes->files, &probes->count);
		if (list->formats[i].number > probes->shown_until)
			probes->shown_until = list->formats[i].number;
	}
	for (uint32_t i = 0; i < probes->count; i++)
		whole &= probes->files[i].path != NULL;
	return probes->files != NULL && whole;
}

/* Takes over the filters that the session was started with: words and their filters in turns. */
static int note_filters(struct gt_live *live, const struct gt_live_event_list *list,
			const char *const *filters)
{
	struct gt_event_filter_error unfit;
	char word[GT_CONTROL_WORD_BYTES];
	int error = 0;

	for (; error == 0 && filters != NULL && *filters != NULL; filters += 2) {
		for (size_t i = 0; error == 0 && i < list->count; i++) {
			const struct gt_event_format *event = &list->formats[i];

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

/* ---- rows of dynamic probes ---- */

static struct later *later_of(struct gt_live_probes *probes, const char *system, const char *name)
{
	for (uint32_t i = 0; i < probes->later_count; i++) {
		struct later *later = &probes->later[i];

		if (strcmp(later->system, system) == 0 &&
		    (name != NULL ? later->name != NULL && strcmp(later->name, name) == 0
				  : later->name == NULL))
			return later;
	}
	return NULL;
}

static void free_later(struct later *later)
{
	for (uint32_t i = 0; later->files != NULL && i < later->count; i++)
		free((char *)(uintptr_t)later->files[i].path);
	free(later->files);
	free(later->system);
	free(later->name);
}

/* Under the lock. Readers see the rows once the count has grown. */
static int publish(struct gt_live *live, struct later *later)
{
	struct gt_live_probes *probes = live->change.probes;

	for (uint32_t i = 0; i < later->count; i++)
		if (later->files[i].path == NULL)
			later->count = 0;
	if (later->system == NULL || later->count == 0 || probes->later_count == LATER_GROUPS) {
		free_later(later);
		return GT_ENOMEM;
	}
	probes->later[probes->later_count++] = *later;
	probes->groups[live->control.group_count] =
		(struct gt_control_group){ later->files, later->count };
	__atomic_store_n(&live->control.group_count, live->control.group_count + 1,
			 __ATOMIC_RELEASE);
	return 0;
}

static void show_rows(struct later *later, bool on, uint64_t index)
{
	for (uint32_t i = 0; i < later->count; i++) {
		later->files[i].argument = index;
		__atomic_store_n(&later->files[i].kinds, on ? GT_CONTROL_PROGRAM : 0,
				 __ATOMIC_RELEASE);
	}
}

static bool has_row(const struct gt_live *live, const char *format, const char *system,
		    const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), format, system, name);
	for (uint32_t i = 0; i < live->control.group_count; i++)
		for (uint32_t k = 0; k < live->control.groups[i].count; k++)
			if (strcmp(live->control.groups[i].files[k].path, path) == 0)
				return true;
	return false;
}

static int show_event(struct gt_live *live, const char *system, const char *name, uint32_t number)
{
	const uint64_t index = GT_CONTROL_BY_NUMBER + number;
	struct later *known = later_of(live->change.probes, system, name);
	struct later later = { .system = strdup(system), .name = strdup(name) };
	int error = 0;

	if (known != NULL) {
		free_later(&later);
		show_rows(known, true, index);
		return 0;
	}
	later.files = calloc(KINDS, sizeof(*later.files));
	later.count = later.files != NULL && later.name != NULL ? KINDS : 0;
	for (uint32_t i = 0; i < later.count; i++)
		later.files[i] = gt_control_event_file(kinds[i].which,
						       path_of(kinds[i].path, system, name), index);
	error = publish(live, &later);
	if (error || has_row(live, "events/%s/enable%.0s", system, ""))
		return error;
	later = (struct later){ .system = strdup(system),
				.files = calloc(2, sizeof(*later.files)) };
	later.count = later.files != NULL ? 2 : 0;
	if (later.files != NULL) {
		later.files[0] = gt_control_event_file(
			GT_EVENT_SYSTEM_ENABLE, path_of("events/%s/enable%.0s", system, ""), index);
		later.files[1] = gt_control_event_file(
			GT_EVENT_SYSTEM_FILTER, path_of("events/%s/filter%.0s", system, ""), index);
	}
	return publish(live, &later);
}

/* Hides the rows of events that were removed; a system's rows are moved to an event that exists. */
static void hide_events(struct gt_live *live)
{
	const struct gt_live_event_list *list = gt_live_event_list_lock(live);

	for (uint32_t i = 0; i < live->change.probes->later_count; i++) {
		struct later *later = &live->change.probes->later[i];
		size_t k = 0;

		if (later->stay)
			continue;
		while (k < list->count &&
		       (strcmp(list->formats[k].system, later->system) != 0 ||
			(later->name != NULL && strcmp(list->formats[k].name, later->name) != 0)))
			k++;
		show_rows(later, k < list->count,
			  GT_CONTROL_BY_NUMBER + (k < list->count ? list->formats[k].number : 0));
	}
	gt_live_event_list_unlock(live);
}

/* ---- rows of system calls ---- */

static bool is_call(const struct gt_event_format *event)
{
	return strcmp(event->system, "syscalls") == 0 || strcmp(event->system, "raw_syscalls") == 0;
}

static bool has_call(const struct gt_live_event_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (is_call(&list->formats[i]))
			return true;
	return false;
}

/* Under the lock. System calls are events once they are named: all of them get their rows then. */
static int show_calls(struct gt_live *live)
{
	struct later later = { .stay = true };
	const struct gt_live_event_list *list;
	int error = 0;

	if (live->change.probes->has_calls)
		return 0;
	list = gt_live_event_list_lock(live);
	if (has_call(list)) {
		later.system = strdup("syscalls");
		later.files = calloc(list->count * (KINDS + 2), sizeof(*later.files));
		for (size_t i = 0; later.files != NULL && i < list->count; i++)
			if (is_call(&list->formats[i]))
				put_rows(list, i, is_first_of_system(list, i), later.files,
					 &later.count);
		error = publish(live, &later);
		live->change.probes->has_calls = error == 0;
	}
	gt_live_event_list_unlock(live);
	return error;
}

/* ---- rows of what was loaded later ---- */

/* Whether the event has no rows yet. Events of system calls get theirs when they are named (show_calls). */
static bool is_rowless(const struct gt_live *live, const struct gt_event_format *event)
{
	return event->number > live->change.probes->shown_until && !is_call(event) &&
	       !has_row(live, kinds[0].path, event->system, event->name);
}

static bool is_first_new(const struct gt_live *live, const struct gt_live_event_list *list,
			 size_t index)
{
	const char *system = list->formats[index].system;

	for (size_t i = 0; i < index; i++)
		if (strcmp(list->formats[i].system, system) == 0 &&
		    is_rowless(live, &list->formats[i]))
			return false;
	return !has_row(live, "events/%s/enable%.0s", system, "");
}

/* Under both locks. Without memory the next call tries again. */
static void show_new(struct gt_live *live, const struct gt_live_event_list *list)
{
	struct later later = { .stay = true };
	uint32_t until = live->change.probes->shown_until;

	for (size_t i = 0; i < list->count; i++)
		if (list->formats[i].number > until)
			until = list->formats[i].number;
	if (until == live->change.probes->shown_until)
		return;
	later.system = strdup("");
	later.files = calloc(list->count * (KINDS + 2), sizeof(*later.files));
	for (size_t i = 0; later.files != NULL && i < list->count; i++)
		if (is_rowless(live, &list->formats[i]))
			put_rows(list, i, is_first_new(live, list, i), later.files, &later.count);
	if (later.files != NULL && later.count == 0)
		free_later(&later);
	else if (publish(live, &later) != 0)
		return;
	live->change.probes->shown_until = until;
}

void gt_live_events_came(struct gt_control_target *target)
{
	struct gt_live *live = live_of(target);

	live = live->top != NULL ? live->top : live; /* instances have its rows */
	pthread_mutex_lock(&live->change.probes->lock);
	show_new(live, gt_live_event_list_lock(live));
	gt_live_event_list_unlock(live);
	pthread_mutex_unlock(&live->change.probes->lock);
}

/* ---- what is switched on ---- */

struct refusal {
	const char *word;   /* "system:name" */
	bool on;	    /* somewhere */
	const char *reason; /* why it is not; NULL: there is none */
};

static int look_for_refusal(void *data, const struct gt_event_format *event, bool enabled,
			    const char *reason)
{
	struct refusal *refusal = data;
	char word[GT_CONTROL_WORD_BYTES];

	snprintf(word, sizeof(word), "%s:%s", event->system, event->name);
	if (strcmp(word, refusal->word) == 0) {
		refusal->on |= enabled;
		refusal->reason = reason != NULL ? reason : refusal->reason;
	}
	return 0;
}

/* Under change.lock. If the word names one event, and none of its places could be patched, removes the word and returns
 * an error with the reason. */
static int check_refusal(struct gt_live *live, const char *word, struct gt_message *message)
{
	struct refusal refusal = { .word = word };

	gt_session_each_event(live->session, look_for_refusal, &refusal);
	if (refusal.on || refusal.reason == NULL)
		return 0;
	gt_live_event_words_change(live, word, false, NULL);
	return gt_fail(message, GT_ENOTSUP, "no record can be made there: %s", refusal.reason);
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
	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0 && word_bytes == 0) {
		gt_globs_clear(&live->change.events);
		error = gt_live_event_words_change(live, on ? "*:*" : NULL, true, message);
	} else if (error == 0) {
		error = gt_live_event_words_change(live, text, on, message);
		if (error == 0 && on)
			error = check_refusal(live, text, message);
	}
	pthread_mutex_unlock(&live->change.lock);
	if (error != 0)
		return error;
	/* Instances have the rows of the top. */
	live = live->top != NULL ? live->top : live;
	pthread_mutex_lock(&live->change.probes->lock);
	error = show_calls(live) != 0 ? no_memory(message) : 0;
	pthread_mutex_unlock(&live->change.probes->lock);
	return error;
}

/* ---- dynamic probes ---- */

int gt_live_probe_set(struct gt_control_target *target, const char *line, size_t bytes,
		      enum gt_probe_kinds kinds, struct gt_probe_error *error,
		      struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct gt_probe_definition probe;
	struct gt_probe_error unfit;
	uint32_t number;
	int result;

	*error = (struct gt_probe_error){ "", 0 };
	pthread_mutex_lock(&live->change.lock);
	result = has_ended(live, message);
	pthread_mutex_lock(&live->change.probes->lock);
	if (result == 0)
		result = gt_session_set_probe(live->session, line, bytes, kinds, error, message);
	if (result == 0)
		result = gt_probe_parse(line, bytes, kinds, &probe, &unfit);
	if (result == 0 && gt_session_probe_event(live->session, probe.group, probe.name, &number))
		result = show_event(live, probe.group, probe.name, number);
	pthread_mutex_unlock(&live->change.probes->lock);
	pthread_mutex_unlock(&live->change.lock);
	return result;
}

int gt_live_probes_remove(struct gt_control_target *target, const char *group, const char *name,
			  struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int result;

	pthread_mutex_lock(&live->change.lock);
	result = gt_session_remove_probes(live->session, group, name, message);
	pthread_mutex_lock(&live->change.probes->lock);
	if (result == 0)
		hide_events(live);
	pthread_mutex_unlock(&live->change.probes->lock);
	pthread_mutex_unlock(&live->change.lock);
	return result;
}

/* ---- synthetic events ---- */

int gt_live_synthetic_set(struct gt_control_target *target, const char *line, size_t bytes,
			  struct gt_probe_error *error, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct gt_event_format event;
	int result;

	*error = (struct gt_probe_error){ "", 0 };
	pthread_mutex_lock(&live->change.lock);
	result = has_ended(live, message);
	pthread_mutex_lock(&live->change.probes->lock);
	if (result == 0)
		result = gt_session_set_synthetic(live->session, line, bytes, &event, error,
						  message);
	if (result == 0)
		result = show_event(live, event.system, event.name, event.number);
	pthread_mutex_unlock(&live->change.probes->lock);
	pthread_mutex_unlock(&live->change.lock);
	return result;
}

int gt_live_synthetics_remove(struct gt_control_target *target, const char *name,
			      struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int result;

	pthread_mutex_lock(&live->change.lock);
	result = gt_session_remove_synthetics(live->session, name, message);
	pthread_mutex_lock(&live->change.probes->lock);
	if (result == 0)
		hide_events(live);
	pthread_mutex_unlock(&live->change.probes->lock);
	pthread_mutex_unlock(&live->change.lock);
	return result;
}

struct event_work {
	uint64_t index;
	struct gt_event_format *event;
};

static int take_event(void *data, const struct gt_event_format *event, bool enabled,
		      const char *reason)
{
	struct event_work *work = data;

	(void)enabled;
	(void)reason;
	if (work->index-- > 0)
		return 0;
	*work->event = *event;
	return 1;
}

int gt_live_synthetic(struct gt_control_target *target, uint64_t index,
		      struct gt_event_format *event)
{
	struct event_work work = { index, event };

	return gt_session_each_synthetic(live_of(target)->session, take_event, &work) ? 0
										      : GT_ENOENT;
}

struct line_work {
	uint64_t index;
	char *line;
	size_t bytes;
};

static int print_line(void *data, const struct gt_session_probe *probe)
{
	struct line_work *work = data;

	if (work->index-- > 0)
		return 0;
	gt_probe_print(probe->definition, probe->path, probe->offset, work->line, work->bytes);
	return 1;
}

int gt_live_probe(struct gt_control_target *target, uint64_t index, char *line, size_t bytes)
{
	struct line_work work = { index, line, bytes };

	return gt_session_each_probe(live_of(target)->session, print_line, &work) ? 0 : GT_ENOENT;
}

/* As kernel/trace/trace_uprobe.c has it. */
static int print_hits(void *data, const struct gt_session_probe *probe)
{
	struct line_work *work = data;

	if (work->index-- > 0)
		return 0;
	snprintf(work->line, work->bytes, "  %s %-44s %15llu", probe->path, probe->definition->name,
		 (unsigned long long)probe->hits);
	return 1;
}

int gt_live_probe_hits(struct gt_control_target *target, uint64_t index, char *line, size_t bytes)
{
	struct line_work work = { index, line, bytes };

	return gt_session_each_probe(live_of(target)->session, print_hits, &work) ? 0 : GT_ENOENT;
}

int gt_live_probes_init(struct gt_live *live, const char *const *filters)
{
	struct gt_live_probes *probes = calloc(1, sizeof(*probes));
	const struct gt_live_event_list *list;
	bool done;

	live->change.probes = probes;
	if (probes != NULL) {
		pthread_mutex_init(&probes->lock, NULL);
		probes->groups = calloc(1 + LATER_GROUPS, sizeof(*probes->groups));
		probes->later = calloc(LATER_GROUPS, sizeof(*probes->later));
	}
	if (probes == NULL || probes->groups == NULL || probes->later == NULL ||
	    gt_live_event_list_init(live) != 0 ||
	    !gt_globs_add_all(&live->change.events,
			      gt_word_list_words(live->settings.lists[GT_LIST_EVENTS])))
		return GT_ENOMEM;
	list = gt_live_event_list_lock(live);
	probes->has_calls = has_call(list);
	done = !list->no_memory && add_rows(probes, list) && note_filters(live, list, filters) == 0;
	gt_live_event_list_unlock(live);
	probes->groups[0] = (struct gt_control_group){ probes->files, probes->count };
	live->control.groups = probes->groups;
	live->control.group_count = 1;
	return done ? 0 : GT_ENOMEM;
}

void gt_live_probes_fini(struct gt_live *live)
{
	struct gt_live_probes *probes = live->change.probes;

	gt_globs_clear(&live->change.events);
	gt_live_filters_fini(live);
	gt_live_event_list_fini(live);
	for (uint32_t i = 0; probes != NULL && i < probes->count; i++)
		free((char *)(uintptr_t)probes->files[i].path);
	for (uint32_t i = 0; probes != NULL && i < probes->later_count; i++)
		free_later(&probes->later[i]);
	if (probes != NULL) {
		pthread_mutex_destroy(&probes->lock);
		free(probes->files);
		free(probes->groups);
		free(probes->later);
	}
	free(probes);
	live->change.probes = NULL;
}
