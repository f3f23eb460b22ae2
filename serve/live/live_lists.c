/* SPDX-License-Identifier: MIT */
/*
 * A session's lists of functions: what can be traced, and the filters. Guarantees: a list that the
 * session refuses stays as it was; of two writers that add at the same time neither is lost.
 */
#define _GNU_SOURCE /* asprintf */
#include "serve/live/live_instance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/glob.h"
#include "core/trace/words.h"
#include "port/host/memory.h"

/* Lists, read */

struct names {
	struct gt_live *live;
	const struct gt_words *words; /* NULL: all */
	struct gt_globs modules;      /* … and words glob:mod:object */
	bool enabled;		      /* only those that are traced now */
	bool touched;		      /* … or were at some time */
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

/* Called back under the session's lock: only notes what it is given. */
static int note_name(void *data, uint32_t number, const struct gt_function *function, bool enabled)
{
	struct names *names = data;
	struct gt_control_name name;
	bool own = strcmp(function->object, names->live->program) == 0;

	(void)number;
	if ((names->enabled && !enabled && !(names->touched && function->touched)) ||
	    (names->words != NULL && !gt_words_match(names->words, function->name) &&
	     !gt_globs_match_module(&names->modules, function->object, function->name)))
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

/* As on Linux: words that wait for their object stand behind the functions. */
static int add_waiting(struct names *names)
{
	int error = 0;

	for (size_t i = 0; error == 0 && i < names->modules.count; i++) {
		const char *module = gt_globs_module(names->modules.words[i]);
		struct gt_control_name name = { names->modules.words[i], "", 0, NULL };
		bool loaded = false;

		for (size_t at = 0; !loaded && at < names->count; at++)
			loaded = strcmp(names->names[at].module, module) == 0;
		if (!loaded)
			error = add_name(names, &name);
	}
	return error;
}

/* Whether a list is one that can be set. */
static bool is_filter(enum gt_control_list which)
{
	return which != GT_CONTROL_AVAILABLE && which != GT_CONTROL_ENABLED &&
	       which != GT_CONTROL_TOUCHED;
}

/* Whether it is of function_graph alone: these name what is there. */
static bool is_graph(enum gt_control_list which)
{
	return which == GT_CONTROL_GRAPH || which == GT_CONTROL_GRAPH_NOTRACE;
}

void gt_live_list_close(struct gt_control_target *target, void *list)
{
	struct names *names = list;

	gt_live_release(live_of(target));
	gt_globs_clear(&names->modules);
	free(names->names);
	free(names);
}

static bool copy_list(struct gt_live *live, enum gt_control_list which, struct gt_globs *copy)
{
	bool copied;

	pthread_mutex_lock(&live->lock);
	copied = gt_globs_add_all(copy, gt_globs_words(&live->lists[which]));
	pthread_mutex_unlock(&live->lock);
	return copied;
}

/* Once the program has ended, the session lists nothing any more; the names stay. */
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

int gt_live_list_open(struct gt_control_target *target, enum gt_control_list which, void **list,
		      struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct gt_globs globs = { NULL, 0, 0 };
	struct gt_words words;
	struct names *names;
	int error = 0;

	if (!copy_list(live, which, &globs) ||
	    gt_words_init(&words, &gt_host_memory, gt_globs_words(&globs)) != 0) {
		gt_globs_clear(&globs);
		return no_memory(message);
	}
	if (is_filter(which) && globs.count == 0)
		return 1;
	gt_live_hold(live);
	names = calloc(1, sizeof(*names));
	if (names == NULL)
		gt_live_release(live);
	if (names != NULL) {
		names->live = live;
		names->words = is_filter(which) ? &words : NULL;
		names->enabled = which == GT_CONTROL_ENABLED || which == GT_CONTROL_TOUCHED;
		names->touched = which == GT_CONTROL_TOUCHED;
		if (names->words != NULL &&
		    !gt_globs_add_modules(&names->modules, gt_globs_words(&globs)))
			error = GT_ENOMEM;
		if (error == 0)
			error = gt_session_each_function(live->session, note_name, names);
		names->words = NULL;
		if (error == 0)
			error = add_waiting(names);
	}
	gt_words_fini(&words);
	gt_globs_clear(&globs);
	if (names == NULL || error != 0) {
		if (names != NULL)
			gt_live_list_close(target, names);
		return no_memory(message);
	}
	if (which == GT_CONTROL_AVAILABLE)
		keep_known(live, names);
	*list = names;
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

/*
 * Lists, changed. A list may be open for writing for as long as its writer likes, so nothing is
 * locked meanwhile: words are tried on a copy, and noted. Where somebody else has changed the list
 * before it is closed, the notes are carried out again, on what it is then.
 */

struct edit {
	enum gt_control_list which;
	bool empty; /* it began with nothing */
	uint64_t version;
	struct gt_globs globs;
	struct gt_globs notes; /* add or remove, plain or not, the glob, a newline, the module */
};

static bool note(struct edit *edit, char what, bool plain, const char *glob, size_t bytes,
		 const char *module, size_t module_bytes)
{
	char *text;
	bool noted;
	int length = asprintf(&text, "%c%c%.*s%s%.*s", what, plain ? 'p' : 'g', (int)bytes, glob,
			      module != NULL ? "\n" : "", module != NULL ? (int)module_bytes : 0,
			      module != NULL ? module : "");

	if (length < 0)
		return false;
	noted = gt_globs_add(&edit->notes, text, (size_t)length, false);
	free(text);
	return noted;
}

static void free_edit(struct edit *edit)
{
	gt_globs_clear(&edit->globs);
	gt_globs_clear(&edit->notes);
	free(edit);
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
	edit->which = which;
	edit->empty = empty;
	pthread_mutex_lock(&live->change);
	edit->version = live->versions[which];
	if (!empty && !copy_list(live, which, &edit->globs))
		error = no_memory(message);
	pthread_mutex_unlock(&live->change);
	if (error != 0) {
		free_edit(edit);
		return error;
	}
	gt_live_hold(live);
	*edit_out = edit;
	return 0;
}

/* Looks for a function that a glob matches (1), or gathers those of a list that it does not match.
 */
struct search {
	const char *glob;
	const struct gt_words *list; /* NULL: every function */
	struct gt_globs
		*kept; /* names of the list that the glob does not match; NULL: not wanted */
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
		return search->kept == NULL; /* one is enough */
	}
	if (search->kept != NULL &&
	    !gt_globs_add(search->kept, function->name, strlen(function->name), true))
		return GT_ENOMEM;
	return 0;
}

/* The functions of one object that a glob matches, each added by its name. */
struct module_search {
	struct gt_globs *to;
	const char *glob;
	const char *module;
	size_t module_bytes;
	bool loaded; /* there is such an object */
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

/* waits: a word for an object that is not loaded may be added, too. */
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
	if (!search.loaded && waits) /* it may be loaded yet */
		return add_waiting_word(to, glob, bytes, module, module_bytes, message);
	gt_message_set(message, "no function of '%.*s' matches '%.*s'",
		       (int)(module_bytes < 80 ? module_bytes : 80), module,
		       (int)(bytes < 80 ? bytes : 80), glob);
	return GT_EINVAL;
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
		/* Not as it was written: the list becomes the names that are left of it. */
		search.glob = word.words[0];
		if (gt_words_init(&words, &gt_host_memory, gt_globs_words(&edit->globs)) != 0 ||
		    gt_session_each_function(live_of(target)->session, search_name, &search) < 0) {
			error = no_memory(message);
		} else if (!search.found) {
			/* as on Linux a function may be taken out of a filter that lacks it */
			if ((edit->which != GT_CONTROL_FILTER &&
			     edit->which != GT_CONTROL_NOTRACE) ||
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

	if (error == 0 && !note(data, '+', plain, glob, bytes, module, module_bytes))
		return no_memory(message);
	return error;
}

int gt_live_edit_remove(struct gt_control_target *target, void *data, const char *glob,
			size_t bytes, const char *module, size_t module_bytes,
			struct gt_message *message)
{
	int error = remove_word(target, data, glob, bytes, module, module_bytes, message);

	if (error == 0 && !note(data, '-', false, glob, bytes, module, module_bytes))
		return no_memory(message);
	return error;
}

/* The list has become another one since it was copied. Under `change`. */
static int carry_out_again(struct gt_control_target *target, struct edit *edit,
			   struct gt_message *message)
{
	gt_globs_clear(&edit->globs);
	if (!copy_list(live_of(target), edit->which, &edit->globs))
		return no_memory(message);
	for (size_t i = 0; i < edit->notes.count; i++) {
		const char *glob = edit->notes.words[i] + 2;
		size_t bytes = strcspn(glob, "\n");
		const char *module = glob[bytes] != '\0' ? glob + bytes + 1 : NULL;
		size_t module_bytes = module != NULL ? strlen(module) : 0;
		int error = edit->notes.words[i][0] == '+'
				    ? add_word(target, edit, glob, bytes, module, module_bytes,
					       edit->notes.words[i][1] == 'p', message)
				    : remove_word(target, edit, glob, bytes, module, module_bytes,
						  message);

		if (error == GT_ENOMEM)
			return error; /* others: the word is there no more, as it was to be */
	}
	return 0;
}

/* The list becomes live->lists'. */
static void take_list(struct gt_live *live, struct edit *edit)
{
	struct gt_globs old;

	pthread_mutex_lock(&live->lock);
	old = live->lists[edit->which];
	live->lists[edit->which] = edit->globs;
	pthread_mutex_unlock(&live->lock);
	edit->globs = old;
	live->versions[edit->which]++;
}

/* Under `change`. Lists change under it only: reading them needs no lock. */
static int ask_for_list(struct gt_live *live, struct edit *edit, struct gt_message *message)
{
	struct gt_live_wish wish;
	int error;

	if (live->instance != NULL) {
		gt_live_wish_of(live, &wish);
		wish.lists[edit->which] = &edit->globs;
		error = gt_live_ask(live, &wish, message);
		if (error == 0)
			take_list(live, edit);
		return error;
	}
	error = gt_live_top_begin(live, false, message);
	if (error != 0)
		return error;
	gt_live_wish_of(live, &wish);
	wish.lists[edit->which] = &edit->globs;
	if (edit->which == GT_CONTROL_GRAPH_NOTRACE)
		error = gt_session_set_graph_notrace(live->session, gt_globs_words(&edit->globs),
						     message);
	else
		error = gt_session_set_filters(
			live->session, gt_globs_words(wish.lists[GT_CONTROL_FILTER]),
			gt_globs_words(wish.lists[GT_CONTROL_NOTRACE]),
			gt_globs_words(wish.lists[GT_CONTROL_GRAPH]), message);
	if (error == 0)
		take_list(live, edit);
	gt_live_wish_of(live, &wish);
	gt_live_top_end(live, &wish);
	return error;
}

int gt_live_edit_close(struct gt_control_target *target, void *data, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct edit *edit = data;
	int error = has_ended(live, message);

	gt_live_release(live);
	pthread_mutex_lock(&live->change);
	if (error == 0 && !edit->empty && edit->version != live->versions[edit->which])
		error = carry_out_again(target, edit, message);
	if (error == 0)
		error = ask_for_list(live, edit, message);
	pthread_mutex_unlock(&live->change);
	free_edit(edit);
	return error;
}
