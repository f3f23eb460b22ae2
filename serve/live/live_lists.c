/* SPDX-License-Identifier: MIT */
/*
 * A session's lists of functions: which ones can be traced, and the filters. Guarantees: a list
 * that the session refuses is unchanged; if two writers append at the same time, no word is lost.
 */
#define _GNU_SOURCE /* asprintf */
#include "serve/live/live_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/glob.h"
#include "core/trace/words.h"
#include "port/host/memory.h"
#include "serve/store/globs.h"

/* Lists, read */

struct names {
	struct gt_live *live;
	struct gt_word_list *list; /* only functions in it; NULL: all */
	bool enabled;		   /* only those that are traced now */
	bool touched;		   /* only those that were traced at some time */
	struct gt_control_name *names;
	size_t count;
	size_t room;
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static int add_name(struct names *names, const struct gt_control_name *name)
{
	if (names->count == names->room) {
		size_t room = names->room != 0 ? names->room * 2 : 1024;
		struct gt_control_name *grown = realloc(names->names, room * sizeof(*names->names));

		if (grown == NULL)
			return GT_ENOMEM;
		names->names = grown;
		names->room = room;
	}
	names->names[names->count++] = *name;
	return 0;
}

/* Callback, called under the session's lock: only stores the name. */
static int note_name(void *data, uint32_t number, const struct gt_function *function, bool enabled)
{
	struct names *names = data;
	struct gt_control_name name;
	bool own = strcmp(function->object, names->live->program) == 0;

	(void)number;
	if ((names->enabled && !enabled && !(names->touched && function->touched)) ||
	    (names->list != NULL && !gt_word_list_match(names->list, function->name) &&
	     !gt_word_list_match_module(names->list, function->object, function->name)))
		return 0;
	name = (struct gt_control_name){
		function->name,
		own ? "" : base_of(function->object),
		function->address,
		!names->enabled ? NULL
		: enabled	? " (1)"
				: " (0)",
	};
	return add_name(names, &name);
}

/* As on Linux, words that wait for their object to be loaded follow the functions. */
static int add_waiting(struct names *names)
{
	int error = 0;

	const char *const *words = gt_word_list_words(names->list);

	for (; error == 0 && words != NULL && *words != NULL; words++) {
		const char *module = gt_globs_module(*words);
		struct gt_control_name name = { *words, "", 0, NULL };
		bool loaded = module == NULL;

		for (size_t at = 0; !loaded && at < names->count; at++)
			loaded = strcmp(names->names[at].module, module) == 0;
		if (!loaded)
			error = add_name(names, &name);
	}
	return error;
}

/* Can the list be written? */
static bool is_filter(enum gt_control_list which)
{
	return which != GT_CONTROL_AVAILABLE && which != GT_CONTROL_ENABLED &&
	       which != GT_CONTROL_TOUCHED;
}

/* Is it a list of function_graph? Their words must name existing functions. */
static bool is_graph(enum gt_list which)
{
	return which == GT_LIST_GRAPH || which == GT_LIST_GRAPH_NOTRACE;
}

void gt_live_list_close(struct gt_control_target *target, void *list)
{
	struct names *names = list;

	gt_live_release(live_of(target));
	gt_word_list_release(names->list);
	free(names->names);
	free(names);
}

/* Returns the current list with a reference, or NULL if it is empty or cannot be set. */
static struct gt_word_list *hold_list(struct gt_live *live, enum gt_control_list which)
{
	struct gt_word_list *list = NULL;

	pthread_mutex_lock(&live->lock);
	if (is_filter(which))
		list = gt_word_list_hold(live->settings.lists[gt_control_setting(which)]);
	pthread_mutex_unlock(&live->lock);
	return list;
}

/* After the program's end the session lists no functions any more; the names are kept here. */
static void keep_known(struct gt_live *live, struct names *names)
{
	bool keep = names->count > 0;
	struct gt_control_name *copy;
	size_t count;

	pthread_mutex_lock(&live->lock);
	count = keep ? names->count : live->known_count;
	copy = count > 0 ? malloc(count * sizeof(*copy)) : NULL;
	if (copy != NULL && keep) {
		memcpy(copy, names->names, count * sizeof(*copy));
		free(live->known);
		live->known = copy;
		live->known_count = count;
	} else if (copy != NULL) {
		memcpy(copy, live->known, count * sizeof(*copy));
		free(names->names);
		names->names = copy;
		names->count = names->room = count;
	}
	pthread_mutex_unlock(&live->lock);
}

int gt_live_list_open(struct gt_control_target *target, enum gt_control_list which, void **out,
		      struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct gt_word_list *list = hold_list(live, which);
	struct names *names;
	int error;

	if (is_filter(which) && list == NULL)
		return 1;
	names = calloc(1, sizeof(*names));
	if (names == NULL) {
		gt_word_list_release(list);
		return no_memory(message);
	}
	gt_live_hold(live);
	names->live = live;
	names->list = list;
	names->enabled = which == GT_CONTROL_ENABLED || which == GT_CONTROL_TOUCHED;
	names->touched = which == GT_CONTROL_TOUCHED;
	error = gt_session_each_function(live->session, note_name, names);
	if (error == 0)
		error = add_waiting(names);
	if (error != 0) {
		gt_live_list_close(target, names);
		return no_memory(message);
	}
	if (which == GT_CONTROL_AVAILABLE)
		keep_known(live, names);
	*out = names;
	return 0;
}

int gt_live_list_read(struct gt_control_target *target, void *list, uint64_t index,
		      struct gt_control_name *name)
{
	struct names *names = list;

	(void)target;
	if (index >= names->count)
		return GT_ENOENT;
	*name = names->names[index];
	return 0;
}

/* Changing lists. A writer may keep a list open for any time, so no lock is held meanwhile: its
 * words are applied to a copy, and kept. If another writer has changed the list before the file
 * is closed, the words are applied again, to the list as it is then. */

/* One word that was written. */
struct step {
	bool removes, plain, has_module;
	size_t bytes, module_bytes;
	char text[]; /* the glob, then the module */
};

struct edit {
	enum gt_list which;
	bool empty; /* the list was truncated at open */
	uint64_t version;
	struct gt_word_list
		*before; /* the words at open, which are kept; NULL: they are copied into `globs` */
	struct gt_globs globs; /* the words after those */
	struct step **steps;   /* the words written, to be applied again */
	size_t step_count;
	size_t step_room;
};

static bool note(struct edit *edit, bool removes, bool plain, const char *glob, size_t bytes,
		 const char *module, size_t module_bytes)
{
	struct step *step;

	if (edit->step_count == edit->step_room) {
		size_t room = edit->step_room != 0 ? edit->step_room * 2 : 16;
		struct step **grown = realloc(edit->steps, room * sizeof(*edit->steps));

		if (grown == NULL)
			return false;
		edit->steps = grown;
		edit->step_room = room;
	}
	if (module == NULL)
		module_bytes = 0;
	step = malloc(sizeof(*step) + bytes + module_bytes);
	if (step == NULL)
		return false;
	*step = (struct step){ .removes = removes,
			       .plain = plain,
			       .has_module = module != NULL,
			       .bytes = bytes,
			       .module_bytes = module_bytes };
	memcpy(step->text, glob, bytes);
	if (module != NULL)
		memcpy(step->text + bytes, module, module_bytes);
	edit->steps[edit->step_count++] = step;
	return true;
}

static void free_edit(struct edit *edit)
{
	gt_word_list_release(edit->before);
	gt_globs_clear(&edit->globs);
	for (size_t i = 0; i < edit->step_count; i++)
		free(edit->steps[i]);
	free(edit->steps);
	free(edit);
}

/* Begins with the current list. Under change.lock. */
static void begin_with_list(struct gt_live *live, struct edit *edit)
{
	gt_globs_clear(&edit->globs);
	gt_word_list_release(edit->before);
	edit->before = gt_word_list_hold(live->settings.lists[edit->which]);
}

/* Copies all words into the edit, so that any of them can be removed. */
static bool copy_words(struct edit *edit)
{
	struct gt_globs all = { NULL, 0, 0 };

	if (edit->before == NULL)
		return true;
	if (!gt_globs_add_all(&all, gt_word_list_words(edit->before)) ||
	    !gt_globs_add_all(&all, gt_globs_words(&edit->globs))) {
		gt_globs_clear(&all);
		return false;
	}
	gt_globs_clear(&edit->globs);
	edit->globs = all;
	gt_word_list_release(edit->before);
	edit->before = NULL;
	return true;
}

int gt_live_edit_open(struct gt_control_target *target, enum gt_control_list which, bool empty,
		      void **edit_out, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct edit *edit;
	int error = has_ended(live, message);

	if (error != 0)
		return error;
	edit = calloc(1, sizeof(*edit));
	if (edit == NULL)
		return no_memory(message);
	edit->which = gt_control_setting(which);
	edit->empty = empty;
	pthread_mutex_lock(&live->change.lock);
	edit->version = live->change.versions[edit->which];
	if (!empty)
		begin_with_list(live, edit);
	pthread_mutex_unlock(&live->change.lock);
	gt_live_hold(live);
	*edit_out = edit;
	return 0;
}

/* Finds a function that a glob matches (1), or collects the functions of a list that it does not
 * match. */
struct search {
	const char *glob;
	const struct gt_words *list; /* NULL: every function */
	struct gt_globs
		*kept; /* names in the list that the glob does not match; NULL: not wanted */
	bool found;
};

static int search_name(void *data, uint32_t number, const struct gt_function *function,
		       bool enabled)
{
	struct search *search = data;

	(void)number;
	(void)enabled;
	if (search->list != NULL && !gt_words_match(search->list, function->name))
		return 0;
	if (gt_glob_match(search->glob, function->name)) {
		search->found = true;
		return search->kept == NULL; /* stop at the first one */
	}
	if (search->kept != NULL &&
	    !gt_globs_add(search->kept, function->name, strlen(function->name), true))
		return GT_ENOMEM;
	return 0;
}

/* The functions of one object that a glob matches; each is added by its name. */
struct module_search {
	struct gt_globs *to;
	const char *glob;
	const char *module;
	size_t module_bytes;
	bool loaded; /* the object exists */
	bool found;
};

static int add_of_module(void *data, uint32_t number, const struct gt_function *function,
			 bool enabled)
{
	struct module_search *search = data;
	const char *object = base_of(function->object);

	(void)number;
	(void)enabled;
	if (strlen(object) != search->module_bytes ||
	    memcmp(object, search->module, search->module_bytes) != 0)
		return 0;
	search->loaded = true;
	if (!gt_glob_match(search->glob, function->name))
		return 0;
	search->found = true;
	return gt_globs_add(search->to, function->name, strlen(function->name), true) ? 0
										      : GT_ENOMEM;
}

static int add_waiting_word(struct gt_globs *to, const char *glob, size_t bytes, const char *module,
			    size_t module_bytes, struct gt_message *message)
{
	char *word;
	int length = asprintf(&word, "%.*s:mod:%.*s", (int)bytes, glob, (int)module_bytes, module);
	bool added = length >= 0 && gt_globs_add(to, word, (size_t)length, false);

	if (length >= 0)
		free(word);
	return added ? 0 : no_memory(message);
}

/* waits: the word may name an object that is not loaded. */
static int each_of_module(struct gt_control_target *target, struct gt_globs *to, bool waits,
			  const char *glob, size_t bytes, const char *module, size_t module_bytes,
			  struct gt_message *message)
{
	struct gt_globs word = { NULL, 0, 0 };
	struct module_search search = { to, NULL, module, module_bytes, false, false };
	int error;

	if (!gt_globs_add(&word, glob, bytes, false))
		return no_memory(message);
	search.glob = word.words[0];
	error = gt_session_each_function(live_of(target)->session, add_of_module, &search);
	gt_globs_clear(&word);
	if (error < 0)
		return no_memory(message);
	if (search.found)
		return 0;
	if (!search.loaded && waits) /* it may be loaded later */
		return add_waiting_word(to, glob, bytes, module, module_bytes, message);
	return gt_fail(message, GT_EINVAL, "no function of '%.*s' matches '%.*s'",
		       (int)(module_bytes < 80 ? module_bytes : 80), module,
		       (int)(bytes < 80 ? bytes : 80), glob);
}

static int add_word(struct gt_control_target *target, struct edit *edit, const char *glob,
		    size_t bytes, const char *module, size_t module_bytes, bool plain,
		    struct gt_message *message)
{
	const char *added;

	if (module != NULL)
		return each_of_module(target, &edit->globs, !is_graph(edit->which), glob, bytes,
				      module, module_bytes, message);
	if (!gt_globs_add(&edit->globs, glob, bytes, plain))
		return no_memory(message);
	added = edit->globs.words[edit->globs.count - 1];
	if (gt_session_has_function(live_of(target)->session, added))
		return 0;
	gt_message_set(message,
		       "no function matches '%.80s'; available_filter_functions lists them", added);
	free(edit->globs.words[--edit->globs.count]);
	edit->globs.words[edit->globs.count] = NULL;
	return GT_EINVAL;
}

static int remove_word(struct gt_control_target *target, struct edit *edit, const char *glob,
		       size_t bytes, const char *module, size_t module_bytes,
		       struct gt_message *message)
{
	struct gt_globs word = { NULL, 0, 0 };
	struct gt_globs kept = { NULL, 0, 0 };
	struct gt_words words = { .slot_count = 0 };
	struct search search = { NULL, &words, &kept, false };
	int error = 0;

	if (!copy_words(edit))
		return no_memory(message);
	if (module != NULL) {
		struct gt_globs waiting = { NULL, 0, 0 };
		bool removed = add_waiting_word(&waiting, glob, bytes, module, module_bytes,
						message) == 0 &&
			       gt_globs_remove(&edit->globs, waiting.words[0]);

		gt_globs_clear(&waiting);
		if (removed)
			return 0;
		error = each_of_module(target, &word, true, glob, bytes, module, module_bytes,
				       message);
		for (size_t i = 0; error == 0 && i < word.count; i++)
			error = remove_word(target, edit, word.words[i], strlen(word.words[i]),
					    NULL, 0, message);
		gt_globs_clear(&word);
		return error;
	}
	if (!gt_globs_add(&word, glob, bytes, false)) {
		error = no_memory(message);
	} else if (!gt_globs_remove(&edit->globs, word.words[0])) {
		/* The glob removes a part of what a word of the list matches: the list becomes
		 * the names that are left. */
		search.glob = word.words[0];
		if (gt_words_init(&words, &gt_host_memory, gt_globs_words(&edit->globs)) != 0 ||
		    gt_session_each_function(live_of(target)->session, search_name, &search) < 0) {
			error = no_memory(message);
		} else if (!search.found) {
			/* as on Linux, removing a function that is not in the filter is no error */
			if (is_graph(edit->which) ||
			    !gt_session_has_function(live_of(target)->session, search.glob)) {
				gt_message_set(message, "no function matches '%.80s'", search.glob);
				error = GT_EINVAL;
			}
		} else if (!gt_globs_add_modules(&kept, gt_globs_words(&edit->globs))) {
			error = no_memory(message);
		} else {
			gt_globs_clear(&edit->globs);
			edit->globs = kept;
			kept = (struct gt_globs){ NULL, 0, 0 };
		}
	}
	gt_words_fini(&words);
	gt_globs_clear(&kept);
	gt_globs_clear(&word);
	return error;
}

int gt_live_edit_add(struct gt_control_target *target, void *data, const char *glob, size_t bytes,
		     const char *module, size_t module_bytes, bool plain,
		     struct gt_message *message)
{
	int error = add_word(target, data, glob, bytes, module, module_bytes, plain, message);

	if (error == 0 && !note(data, false, plain, glob, bytes, module, module_bytes))
		return no_memory(message);
	return error;
}

int gt_live_edit_remove(struct gt_control_target *target, void *data, const char *glob,
			size_t bytes, const char *module, size_t module_bytes,
			struct gt_message *message)
{
	int error = remove_word(target, data, glob, bytes, module, module_bytes, message);

	if (error == 0 && !note(data, true, false, glob, bytes, module, module_bytes))
		return no_memory(message);
	return error;
}

/* Applies the words again: the list has changed since it was copied. Under change.lock. */
static int carry_out_again(struct gt_control_target *target, struct edit *edit,
			   struct gt_message *message)
{
	int error = 0;

	begin_with_list(live_of(target), edit);
	for (size_t i = 0; error == 0 && i < edit->step_count; i++) {
		const struct step *step = edit->steps[i];
		const char *module = step->has_module ? step->text + step->bytes : NULL;

		error = step->removes ? remove_word(target, edit, step->text, step->bytes, module,
						    step->module_bytes, message)
				      : add_word(target, edit, step->text, step->bytes, module,
						 step->module_bytes, step->plain, message);
		if (error != GT_ENOMEM)
			error = 0; /* the word to be removed is gone already */
	}
	return error;
}

static int set_of_top(struct gt_live *live, enum gt_list which, struct gt_word_list *list,
		      struct gt_message *message)
{
	struct gt_trace_settings settings = gt_live_settings(live);

	settings.lists[which] = list;
	switch (which) {
	case GT_LIST_GRAPH_NOTRACE:
		return gt_session_set_graph_notrace(live->session, list, message);
	case GT_LIST_EVENTS:
		return gt_session_set_events(live->session, list, message);
	default:
		return gt_session_set_filters(live->session, &settings, message);
	}
}

/* After an error of patching the session has the new list all the same. */
static bool has_taken(struct gt_live *live, enum gt_list which, const struct gt_word_list *list)
{
	struct gt_trace_settings asked = gt_session_asked(live->session, 0);
	bool taken = gt_word_list_is_same(asked.lists[which], list);

	gt_trace_settings_fini(&asked);
	return taken;
}

int gt_live_ask_for_list(struct gt_live *live, enum gt_list which, struct gt_word_list *list,
			 struct gt_message *message)
{
	struct gt_trace_settings settings;
	int error;

	if (live->instance != NULL) {
		settings = gt_live_settings(live);
		settings.lists[which] = list;
		error = gt_live_ask(live, &settings, message);
	} else {
		error = gt_live_top_begin_lock(live, false, message);
		if (error != 0)
			return error;
		error = set_of_top(live, which, list, message);
		if (error == 0 || has_taken(live, which, list)) {
			pthread_mutex_lock(&live->lock);
			gt_trace_settings_set_list(&live->settings, which, list);
			pthread_mutex_unlock(&live->lock);
		}
		gt_live_top_end_unlock(live);
	}
	if (live->settings.lists[which] == list)
		live->change.versions[which]++;
	return error;
}

int gt_live_edit_close(struct gt_control_target *target, void *data, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct edit *edit = data;
	struct gt_word_list *list = NULL;
	int error = has_ended(live, message);

	gt_live_release(live);
	pthread_mutex_lock(&live->change.lock);
	if (error == 0 && !edit->empty && edit->version != live->change.versions[edit->which])
		error = carry_out_again(target, edit, message);
	if (error == 0 &&
	    gt_word_list_append(&gt_host_memory, edit->before, gt_globs_words(&edit->globs), &list))
		error = no_memory(message);
	if (error == 0)
		error = gt_live_ask_for_list(live, edit->which, list, message);
	pthread_mutex_unlock(&live->change.lock);
	gt_word_list_release(list);
	free_edit(edit);
	return error;
}
