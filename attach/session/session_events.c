/* SPDX-License-Identifier: MIT */
/*
 * Events with fields: which of them are recorded, and which there are. Any thread; a list that cannot
 * be had leaves the one before.
 */
#include "attach/agent/dynamic.h"
#include "attach/agent/probes.h"
#include "attach/agent/synthetics.h"
#include "attach/session/session.h"
#include "attach/session/session_private.h"
#include "attach/agent/syscall_events.h"
#include "port/host/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what all askers together want ---- */

static const char *const *words_of(const struct gt_session *session, uint32_t who)
{
	const struct gt_session_asker *asker = &session->wanted.askers[who];

	return asker->used ? gt_word_list_words(asker->settings.lists[GT_LIST_EVENTS]) : NULL;
}

struct joined {
	char **words;
	size_t count, room;
	const struct gt_session *session;
	bool no_memory;
};

static void add_word(struct joined *joined, const char *before, const char *word)
{
	const size_t bytes = strlen(before) + strlen(word) + 1;
	char *copy = malloc(bytes);

	if (joined->count + 2 > joined->room) {
		const size_t room = joined->room ? joined->room * 2 : 16;
		char **grown = realloc(joined->words, room * sizeof(*grown));

		joined->words = grown != NULL ? grown : joined->words;
		joined->room = grown != NULL ? room : joined->room;
	}
	if (copy == NULL || joined->count + 2 > joined->room) {
		free(copy);
		joined->no_memory = true;
		return;
	}
	snprintf(copy, bytes, "%s%s", before, word);
	joined->words[joined->count++] = copy;
	joined->words[joined->count] = NULL;
}

static void exclude_unwanted(struct joined *joined, const char *object, const char *system,
			     const char *name)
{
	char word[1024];

	for (uint32_t who = 0; who < GT_ASKED_MAX; who++)
		if (gt_event_words_match(words_of(joined->session, who), system, name, object,
					 who == 0 && gt_event_is_mark(system, name)))
			return;
	if (!gt_events_match(joined->words, system, name))
		return;
	snprintf(word, sizeof(word), "%s:%s", system, name);
	add_word(joined, "!", word);
}

/* A word as it stands in a list. Probes are chosen by system and name: of an object, the events are named that
 * it has by now. */
static void add_asked(struct joined *joined, const char *word)
{
	const struct gt_catalog *catalog = &joined->session->catalog;
	char name[1024];

	if (strstr(word, GT_EVENT_IN) == NULL) {
		add_word(joined, "", word);
		return;
	}
	for (size_t i = 0; i < catalog->file_count; i++)
		for (uint32_t k = 0; k < catalog->files[i]->probe_count; k++) {
			const struct gt_probe *probe = catalog->files[i]->probes[k].probe;

			if (!gt_event_word_in(word, catalog->files[i]->path, probe->system,
					      probe->name))
				continue;
			snprintf(name, sizeof(name), "%s:%s", probe->system, probe->name);
			add_word(joined, "", name);
		}
}

/* A '!' of one asker must not exclude what another one asks for: the words without it come first, then the
 * known events that nobody wants. Of objects that are loaded later the ring may get more than is
 * wanted, which is left out where buffers are filled (serve/store/route.c). */
static void join(struct gt_session *session, struct joined *joined)
{
	const char *const *word;
	bool excludes = false, calls = false;

	/* System calls that were named once stay known. */
	for (uint32_t who = 0; who < GT_ASKED_MAX; who++)
		for (word = words_of(session, who); word != NULL && *word != NULL; word++)
			if (**word == '!' && gt_session_names_syscall(*word + 1))
				add_word(joined, "", *word);
	for (uint32_t who = 0; who < GT_ASKED_MAX; who++)
		for (word = words_of(session, who); word != NULL && *word != NULL; word++) {
			if (**word != '!')
				add_asked(joined, *word);
			excludes |= **word == '!';
			calls |= **word != '!' && gt_session_names_syscall(*word);
		}
	for (size_t i = 0; excludes && !joined->no_memory && i < session->catalog.file_count; i++) {
		const struct gt_catalog_file *file = session->catalog.files[i];

		for (uint32_t k = 0; k < file->probe_count; k++)
			exclude_unwanted(joined, file->path, file->probes[k].probe->system,
					 file->probes[k].probe->name);
	}
	for (uint32_t k = 0; excludes && !joined->no_memory && k < session->catalog.synthetic_count;
	     k++)
		exclude_unwanted(joined, "", GT_EVENT_SYNTHETIC,
				 session->catalog.synthetics[k]->definition.format.name);
	/* The others of them are known by no word (gt_session_names_syscall). */
	for (uint32_t k = 0;
	     excludes && calls && !joined->no_memory && k < gt_syscall_event_count(); k++) {
		const char *system, *name = gt_syscall_event_name(k, &system);

		exclude_unwanted(joined, "", system, name);
	}
}

/* Who alone asks for events; -1: several do, or nobody. */
static int only_asker(const struct gt_session *session)
{
	int only = -1;

	for (uint32_t who = 0; who < GT_ASKED_MAX; who++)
		if (words_of(session, who) != NULL) {
			if (only >= 0)
				return -1;
			only = (int)who;
		}
	return only;
}

int gt_session_join_events(struct gt_session *session, struct gt_message *message)
{
	struct joined joined = { .session = session };
	const int only = only_asker(session);
	const char *const *word = only >= 0 ? words_of(session, (uint32_t)only) : NULL;

	for (; word != NULL && *word != NULL; word++) /* as they are */
		add_asked(&joined, *word);
	if (only < 0)
		join(session, &joined);
	if (joined.no_memory) {
		gt_session_free_list(joined.words);
		return gt_fail(message, GT_ENOMEM, "no memory for the list of events");
	}
	gt_session_free_list(session->selection.events);
	session->selection.events = joined.words;
	return 0;
}

static bool are_the_same(char *const *a, char *const *b)
{
	while (a != NULL && b != NULL && *a != NULL && *b != NULL && strcmp(*a, *b) == 0)
		a++, b++;
	return !(a != NULL && *a != NULL) && !(b != NULL && *b != NULL);
}

int gt_session_events_came(struct gt_session *session, struct gt_message *message)
{
	const char *const *word;
	bool waits = false;
	char **before;
	int error;

	for (uint32_t who = 0; who < GT_ASKED_MAX; who++)
		for (word = words_of(session, who); word != NULL && *word != NULL; word++)
			waits |= strstr(*word, GT_EVENT_IN) != NULL;
	if (!waits)
		return 0;
	before = session->selection.events;
	session->selection.events = NULL;
	error = gt_session_join_events(session, message);
	if (error) {
		session->selection.events = before;
		return error;
	}
	if (!are_the_same(before, session->selection.events))
		error = gt_session_select(session, message);
	gt_session_free_list(before);
	return error;
}

int gt_session_set_asker_events(struct gt_session *session, struct gt_session_asker *asker,
				struct gt_word_list *words, bool *changed,
				struct gt_message *message)
{
	struct gt_word_list *before = gt_word_list_hold(asker->settings.lists[GT_LIST_EVENTS]);
	int error = 0;

	*changed = !gt_word_list_is_same(before, words);
	if (*changed) {
		gt_trace_settings_set_list(&asker->settings, GT_LIST_EVENTS, words);
		error = gt_session_join_events(session, message);
	}
	if (error)
		gt_trace_settings_set_list(&asker->settings, GT_LIST_EVENTS, before);
	gt_word_list_release(before);
	return error;
}

int gt_session_set_events(struct gt_session *session, struct gt_word_list *words,
			  struct gt_message *message)
{
	bool changed;
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_session_set_asker_events(session, gt_session_asker_of(session, 0), words,
					    &changed, message);
	if (!error)
		error = gt_session_select(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_set_event_filter(struct gt_session *session, const char *word, const char *filter,
				struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_event_rules_set_filter(&session->event_rules, word, filter, message);
	if (!error)
		error = gt_session_select(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_event_trigger(struct gt_session *session, const char *word,
			     const struct gt_event_trigger *trigger, bool remove,
			     struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_event_rules_trigger(&session->event_rules, word, trigger, remove, message);
	if (!error)
		error = gt_session_select(session, message);
	if (!error && !remove)
		error = gt_event_rules_fits(&session->event_rules, word, trigger, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_event_hist(struct gt_session *session, const char *word, uint32_t index,
			  struct gt_hist_copy *copy)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_event_rules_hist(&session->event_rules, word, index, copy);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_check_hist(struct gt_session *session, const char *word, const char *text,
			  bool is_new, struct gt_hist_error *error)
{
	struct gt_hist *hist = malloc(sizeof(*hist));
	int result;

	*error = (struct gt_hist_error){ 0 };
	if (hist == NULL)
		return GT_ENOMEM;
	pthread_mutex_lock(&session->lock);
	result = gt_event_rules_parse_hist(&session->event_rules, word, text, is_new, hist, error);
	pthread_mutex_unlock(&session->lock);
	free(hist);
	return result;
}

void gt_session_event_hist_free(struct gt_hist_copy *copy)
{
	gt_hist_copy_free(copy);
}

bool gt_session_event_trigger_get(struct gt_session *session, const char *word, uint32_t index,
				  struct gt_event_trigger *trigger, char *text, size_t room)
{
	bool found;

	pthread_mutex_lock(&session->lock);
	found = gt_event_rules_copy_trigger(&session->event_rules, word, index, trigger, text,
					    room);
	pthread_mutex_unlock(&session->lock);
	return found;
}

bool gt_session_event_is_soft(struct gt_session *session, const char *system, const char *name)
{
	bool soft;

	pthread_mutex_lock(&session->lock);
	soft = gt_event_rules_act(&session->event_rules, system, name);
	pthread_mutex_unlock(&session->lock);
	return soft;
}

bool gt_session_event_is_gated(struct gt_session *session, const char *system, const char *name)
{
	bool gated, on;

	pthread_mutex_lock(&session->lock);
	gated = gt_event_rules_gate(&session->event_rules, system, name, &on);
	pthread_mutex_unlock(&session->lock);
	return gated;
}

bool gt_session_event_acts(struct gt_session *session, uint32_t number, uint64_t action,
			   struct gt_event_format *event)
{
	static const enum graftrace_rule_action actions[] = {
		[GRAFTRACE_TRIGGER_TRACEOFF] = GRAFTRACE_RULE_TRACEOFF,
		[GRAFTRACE_TRIGGER_TRACEON] = GRAFTRACE_RULE_TRACEON,
		[GRAFTRACE_TRIGGER_STACKTRACE] = GRAFTRACE_RULE_STACKTRACE,
		[GRAFTRACE_TRIGGER_SNAPSHOT] = GRAFTRACE_RULE_SNAPSHOT,
	};
	char word[1024];

	if (action >= sizeof(actions) / sizeof(actions[0]) ||
	    gt_catalog_event(&session->catalog, number, event))
		return false;
	snprintf(word, sizeof(word), "%s:%s", event->system, event->name);
	return gt_event_rules_have_action(&session->event_rules, word, actions[action]);
}

/* It may be patched for its triggers alone. */
static bool is_recorded(const struct gt_session *session, const struct gt_probe *probe)
{
	bool on;

	return gt_event_rules_gate(&session->event_rules, probe->system, probe->name, &on)
		       ? on
		       : gt_events_match(session->selection.events, probe->system, probe->name);
}

/* Whether the probe is patched in a process, and why it is not although it is asked for. */
static bool is_enabled(const struct gt_session *session, const struct gt_catalog_file *file,
		       uint32_t index, enum gt_plan_reason *reason)
{
	bool foreign;

	*reason = GT_REASON_NONE;
	for (size_t i = 0; i < session->tracees.count; i++) {
		const struct gt_tracee *tracee = session->tracees.list[i];

		for (size_t k = 0; k < tracee->object_count; k++) {
			const struct gt_tracee_object *object = tracee->objects[k];

			if (object->file != file || object->gone)
				continue;
			if (gt_probes_is_on(object, index, &foreign))
				return is_recorded(session, file->probes[index].probe);
			if (foreign)
				*reason = GT_REASON_NOT_AS_IN_FILE;
		}
	}
	if (!*reason && file->probes[index].planned &&
	    file->probes[file->probes[index].site].plan.way == GT_PLAN_NONE)
		*reason = file->probes[file->probes[index].site].plan.reason;
	return false;
}

static int each_event_locked(struct gt_session *session,
			     int (*each)(void *data, const struct gt_event_format *event,
					 bool enabled, const char *reason),
			     void *data)
{
	struct gt_event_format event;
	int result = 0;

	for (size_t i = 0; !result && i < session->catalog.file_count; i++) {
		const struct gt_catalog_file *file = session->catalog.files[i];

		for (uint32_t k = 0; !result && k < file->probe_count; k++) {
			enum gt_plan_reason reason;
			const bool enabled = is_enabled(session, file, k, &reason);

			if (file->probes[k].removed)
				continue;
			gt_catalog_describe_event(file, k, &event);
			result = each(data, &event, enabled,
				      reason ? gt_plan_reason_text(reason) : NULL);
		}
	}
	if (!result)
		result = gt_session_each_synthetic_locked(session, each, data);
	return result ? result : gt_session_each_syscall(session, each, data);
}

int gt_session_each_event(struct gt_session *session,
			  int (*each)(void *data, const struct gt_event_format *event, bool enabled,
				      const char *reason),
			  void *data)
{
	int result;

	pthread_mutex_lock(&session->lock);
	result = each_event_locked(session, each, data);
	pthread_mutex_unlock(&session->lock);
	return result;
}

/* Never 0. Files stay in the catalog, their probes are only added, and what was removed stays so. So the
 * sum of probes and of removals grows with each change, and two equal versions mean the same events.
 * Those of system calls are there or not. */
static uint64_t events_version(const struct gt_session *session)
{
	uint64_t changes = session->catalog.next_event;

	for (uint32_t i = 0; i < session->catalog.dynamic_count; i++)
		changes += session->catalog.dynamics[i]->removed;
	for (uint32_t i = 0; i < session->catalog.synthetic_count; i++)
		changes += session->catalog.synthetics[i]->removed;
	return changes << 1 | gt_session_has_syscalls(session);
}

void gt_session_events_since(struct gt_session *session, uint64_t *version,
			     void (*forget)(void *data),
			     int (*each)(void *data, const struct gt_event_format *event,
					 bool enabled, const char *reason),
			     void *data)
{
	pthread_mutex_lock(&session->lock);
	if (*version != events_version(session)) {
		forget(data);
		each_event_locked(session, each, data);
		/* System calls may have got their numbers just now. */
		*version = events_version(session);
	}
	pthread_mutex_unlock(&session->lock);
}

static bool is_on_somewhere(const struct gt_session *session, const char *system, const char *name)
{
	enum gt_plan_reason reason;

	for (size_t i = 0; i < session->catalog.file_count; i++) {
		const struct gt_catalog_file *file = session->catalog.files[i];

		for (uint32_t k = 0; k < file->probe_count; k++)
			if (!file->probes[k].removed &&
			    strcmp(file->probes[k].probe->name, name) == 0 &&
			    strcmp(file->probes[k].probe->system, system) == 0 &&
			    is_enabled(session, file, k, &reason))
				return true;
	}
	return false;
}

bool gt_session_event_is_on(struct gt_session *session, const char *system, const char *name)
{
	bool on;

	pthread_mutex_lock(&session->lock);
	on = is_on_somewhere(session, system, name) ||
	     gt_session_synthetic_is_on(session, system, name) ||
	     gt_session_syscall_is_on(session, system, name);
	pthread_mutex_unlock(&session->lock);
	return on;
}
