/* SPDX-License-Identifier: MIT */
/*
 * Lists of functions of the top and the instances. A change of one list costs what it changes, not what
 * there is.
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"
#include "core/trace/glob.h"

#include <stdlib.h>
#include <string.h>

/* So many words of a list may change and be looked up one by one. */
#define FEW_WORDS 64

void gt_session_free_list(char **list)
{
	char **at;

	for (at = list; at != NULL && *at != NULL; at++)
		free(*at);
	free(list);
}

char **gt_session_copy_list(const char *const *list)
{
	size_t count = 0;
	char **copy;

	while (list != NULL && list[count] != NULL)
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy != NULL && i < count; i++) {
		copy[i] = strdup(list[i]);
		if (copy[i] == NULL) {
			gt_session_free_list(copy);
			return NULL;
		}
	}
	return copy;
}

/* Calls back for every function that can be traced and that the glob names, by its index where the
 * glob is a name; until that returns other than 0, which is returned. */
static int each_named(struct gt_session *session, const char *glob,
		      int (*each)(void *data, struct gt_session *session, size_t tracee,
				  size_t object, uint32_t index),
		      void *data)
{
	bool plain = gt_names_is_plain(glob);
	int result = 0;

	for (size_t i = 0; i < session->tracees.count; i++) {
		struct gt_tracee *tracee = session->tracees.list[i];

		for (size_t k = 0; k < tracee->object_count; k++) {
			struct gt_tracee_object *object = tracee->objects[k];
			struct gt_catalog_file *file = object->file;
			uint32_t at = 0, index = 0;

			while (!result && (plain ? gt_names_next(file, glob, &at, &index) == 0
						 : at < file->function_count)) {
				const char *name;

				if (!plain) {
					index = at++;
					name = gt_object_function(file->object, index)->name;
					if (!gt_glob_match(glob, name) &&
					    !gt_glob_match(glob, gt_object_function_name(
									 file->object, index)))
						continue;
				}
				if (gt_tracee_can_trace(object, index, &session->selection))
					result = each(data, session, i, k, index);
			}
		}
	}
	return result;
}

static int found_one(void *data, struct gt_session *session, size_t tracee, size_t object,
		     uint32_t index)
{
	(void)data;
	(void)session;
	(void)tracee;
	(void)object;
	(void)index;
	return 1;
}

bool gt_session_has_function(struct gt_session *session, const char *glob)
{
	bool found;

	pthread_mutex_lock(&session->lock);
	found = each_named(session, glob, found_one, NULL) != 0;
	pthread_mutex_unlock(&session->lock);
	return found;
}

/* What of a list is another word than before: [from, from + old_count) of the old one became
 * [from, from + new_count) of the new one. */
struct difference {
	const struct gt_word_list *old_list, *new_list;
	size_t from, old_count, new_count;
};

/* Lists share their words (gt_word_list_append): mostly the addresses are equal. */
static bool is_same(const char *a, const char *b)
{
	return a == b || strcmp(a, b) == 0;
}

static struct difference compare(const struct gt_word_list *old_list,
				 const struct gt_word_list *new_list)
{
	struct difference difference = { old_list, new_list, 0,
					 old_list != NULL ? old_list->count : 0,
					 new_list != NULL ? new_list->count : 0 };
	size_t *from = &difference.from;

	if (old_list == new_list)
		return (struct difference){ old_list, new_list, 0, 0, 0 };
	while (*from < difference.old_count && *from < difference.new_count &&
	       is_same(old_list->words[*from], new_list->words[*from]))
		++*from;
	while (difference.old_count > *from && difference.new_count > *from &&
	       is_same(old_list->words[difference.old_count - 1],
		       new_list->words[difference.new_count - 1])) {
		difference.old_count--;
		difference.new_count--;
	}
	difference.old_count -= *from;
	difference.new_count -= *from;
	return difference;
}

/* A word that was in the list before was checked then. */
static int check_words(struct gt_session *session, const struct difference *difference,
		       struct gt_message *message)
{
	for (size_t i = 0; i < difference->new_count; i++) {
		const char *word = difference->new_list->words[difference->from + i];

		/* of an object that may come yet */
		if (strstr(word, ":mod:") == NULL && !each_named(session, word, found_one, NULL))
			return gt_fail(message, GT_EINVAL, "no function matches '%s'", word);
	}
	return 0;
}

int gt_session_check_words(struct gt_session *session, const struct gt_word_list *list,
			   struct gt_message *message)
{
	struct difference all = compare(NULL, list);

	return check_words(session, &all, message);
}

/* The words that differ, if they are few and all are names. */
static bool collect_words(const struct difference *difference, const char **words, size_t *count)
{
	if (*count + difference->old_count + difference->new_count > FEW_WORDS)
		return false;
	for (size_t i = 0; i < difference->old_count; i++)
		words[(*count)++] = difference->old_list->words[difference->from + i];
	for (size_t i = 0; i < difference->new_count; i++)
		words[(*count)++] = difference->new_list->words[difference->from + i];
	for (size_t i = 0; i < *count; i++)
		if (!gt_names_is_plain(words[i]) || strstr(words[i], ":mod:") != NULL)
			return false;
	return true;
}

/* A list of what is traced means all where it is empty: its first and last word change all. */
static bool begins_or_ends(const struct difference *difference)
{
	return !difference->old_list != !difference->new_list;
}

/* Patches by what differs: word by word where that is little. */
static int select_differences(struct gt_session *session, const struct difference differences[3],
			      struct gt_message *message)
{
	const char *words[FEW_WORDS];
	size_t count = 0;
	bool few = !begins_or_ends(&differences[GT_LIST_FILTER]);
	int error = 0;

	for (size_t i = 0; few && i < 3; i++)
		few = collect_words(&differences[i], words, &count);
	if (!few)
		return gt_session_select(session, message);
	for (size_t i = 0; count && i < session->tracees.count; i++) {
		int result = gt_tracee_select_words(session->tracees.list[i], &session->selection,
						    words, count, message);

		error = error ? error : result;
	}
	return error;
}

int gt_session_set_asker_filters(struct gt_session *session, struct gt_session_asker *asker,
				 const struct gt_trace_settings *settings, bool *taken,
				 struct gt_message *message)
{
	struct gt_trace_settings old = gt_trace_settings_copy(&asker->settings);
	struct difference differences[3];
	int error = 0;

	for (int i = GT_LIST_FILTER; i <= GT_LIST_GRAPH; i++)
		differences[i] = compare(old.lists[i], settings->lists[i]);
	for (int i = GT_LIST_FILTER; !error && i <= GT_LIST_GRAPH; i++)
		error = check_words(session, &differences[i], message);
	*taken = !error;
	if (*taken) {
		for (int i = GT_LIST_FILTER; i <= GT_LIST_GRAPH; i++)
			gt_trace_settings_set_list(&asker->settings, (enum gt_list)i,
						   settings->lists[i]);
		if (asker->used && !asker->asked.off)
			error = select_differences(session, differences, message);
	}
	gt_trace_settings_fini(&old);
	return error;
}

int gt_session_set_filters(struct gt_session *session, const struct gt_trace_settings *settings,
			   struct gt_message *message)
{
	bool taken;
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	error = gt_session_set_asker_filters(session, gt_session_asker_of(session, 0), settings,
					     &taken, message);
	if (gt_session_joint_of(session).graph_only !=
	    (gt_session_settings(session)->graph_only != 0))
		gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
	return error;
}
