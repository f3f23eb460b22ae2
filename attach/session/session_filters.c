/* SPDX-License-Identifier: MIT */
/*
 * What is asked of a session, by the top of its control files and by their instances, and what it
 * does with that: everything is recorded that any of them asks for, and what one of them does not
 * want is left out where its buffer is filled (serve/store/route.c). A change of one list costs
 * what it changes, not what there is.
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"
#include "core/trace/glob.h"
#include "port/host/memory.h"

#include <stdlib.h>
#include <string.h>

/* So many words of a list may change and be looked up one by one. */
#define FEW_WORDS 64

void gt_session_free_list(char **list)
{
	char **at;

	for (at = list; at && *at; at++)
		free(*at);
	free(list);
}

char **gt_session_copy_list(const char *const *list)
{
	size_t count = 0, i;
	char **copy;

	while (list && list[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	for (i = 0; copy && i < count; i++) {
		copy[i] = strdup(list[i]);
		if (!copy[i]) {
			gt_session_free_list(copy);
			return NULL;
		}
	}
	return copy;
}

/* Who asks */

static struct gt_session_asker *asker_of(struct gt_session *session, uint32_t who)
{
	return &session->askers[who];
}

static bool traces(const struct gt_session_asker *asker)
{
	return asker->used && asker->settings.tracer != GRAFTRACE_TRACER_NOP;
}

/* It wants records: of calls, of events. */
static bool records(const struct gt_session_asker *asker)
{
	return traces(asker) || (asker->used && asker->settings.lists[GT_LIST_EVENTS]);
}

/* Those that want records, but for the top. */
static uint32_t count_others(const struct gt_session *session)
{
	uint32_t who, count = 0;

	for (who = 1; who < GT_ASKED_MAX; who++)
		count += records(&session->askers[who]);
	return count;
}

/* Whether more is recorded than the top asks for: its tracing_on is not the arena's then. */
static bool top_is_apart(const struct gt_session *session)
{
	return __atomic_load_n(&session->others, __ATOMIC_RELAXED) ||
	       (__atomic_load_n(&session->profile_awake, __ATOMIC_RELAXED) &&
		gt_session_profiles(session));
}

/* With nobody else the word in the arena is the top's: triggers write it too. */
void gt_session_take_top(struct gt_session *session)
{
	if (!top_is_apart(session))
		asker_of(session, 0)->settings.on =
			__atomic_load_n(&gt_session_settings(session)->tracing_on,
					__ATOMIC_SEQ_CST) != 0;
}

/* What all of them together want. */
struct wish {
	enum graftrace_tracer tracer;
	bool on;
	bool graph_only;
	uint32_t max_depth;
	uint64_t threshold_ns;
};

/* The function profiler needs returns, of all calls: the recorder has no way to count beside the
 * function tracer, nor where short calls are left out. So calls are recorded, and whoever wants
 * less leaves the rest out. */
static void wish_profile(const struct gt_session *session, struct wish *wish)
{
	if (!gt_session_profiles(session) ||
	    (wish->tracer == GRAFTRACE_TRACER_NOP && !session->profile_awake))
		return;
	wish->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	wish->threshold_ns = 0;
	if (session->profile_awake) {
		wish->on = true;
		wish->max_depth = 0;
	}
}

static struct wish wish_of(const struct gt_session *session)
{
	struct wish wish = { .tracer = GRAFTRACE_TRACER_NOP, .graph_only = true };
	bool any = false, any_on = false, any_depth = false, any_threshold = false;
	uint32_t who;

	for (who = 0; who < GT_ASKED_MAX; who++) {
		const struct gt_trace_settings *one = &session->askers[who].settings;

		if (records(&session->askers[who])) {
			any_on = true;
			wish.on |= one->on;
		}
		if (!traces(&session->askers[who]))
			continue;
		any = true;
		if (one->tracer > wish.tracer)
			wish.tracer = one->tracer;
		wish.graph_only &= gt_trace_settings_has_roots(one);
		any_depth |= !one->max_depth;
		if (one->max_depth > wish.max_depth)
			wish.max_depth = one->max_depth;
		/* A short call of one who wants them all has to be written. */
		any_threshold |= !one->threshold_ns || one->tracer == GRAFTRACE_TRACER_FUNCTION;
		if (!wish.threshold_ns || one->threshold_ns < wish.threshold_ns)
			wish.threshold_ns = one->threshold_ns;
	}
	if (!any_on)
		wish.on = session->askers[0].settings.on;
	if (!any) { /* as the top has it: for when it begins */
		const struct gt_trace_settings *top = &session->askers[0].settings;

		wish.graph_only = gt_trace_settings_has_roots(top);
		wish.max_depth = top->max_depth;
		wish.threshold_ns = top->threshold_ns;
	} else {
		wish.max_depth = any_depth ? 0 : wish.max_depth;
		/* alone, `function` takes no notice of it, but shall find it when it changes */
		if (any_threshold && (session->others || wish.tracer != GRAFTRACE_TRACER_FUNCTION))
			wish.threshold_ns = 0;
	}
	wish_profile(session, &wish);
	return wish;
}

int gt_session_select(struct gt_session *session, struct gt_message *message)
{
	int error = gt_session_select_syscalls(session, message);
	size_t i;

	for (i = 0; i < session->tracee_count; i++) {
		int result = gt_tracee_select(session->tracees[i], &session->catalog,
					      &session->selection, message);

		error = error ? error : result;
	}
	return error;
}

/* The agents' settings become what is wished. */
void gt_session_publish(struct gt_session *session)
{
	struct graftrace_arena *memory = gt_session_settings(session);
	struct wish wish = wish_of(session);
	bool graph_was = memory->graph_only;

	session->live.target.tracer = wish.tracer;
	gt_session_watch_as_traced(session);
	session->threshold_ns = wish.threshold_ns;
	__atomic_store_n(&memory->tracer, wish.tracer, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->max_depth, wish.max_depth, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->graph_only, wish.graph_only, __ATOMIC_SEQ_CST);
	gt_session_publish_threshold(session);
	gt_session_publish_threads(session);
	/* The word, then the blocks: a new thread publishes its block, then reads the word. */
	gt_session_write_tracing(session, wish.on);
	gt_follow_write_host(session);
	if (graph_was != wish.graph_only)
		gt_follow_write_stop(session, GRAFTRACE_STOP_BYTE_OUTSIDE, wish.graph_only);
	gt_follow_write_stop(session, GRAFTRACE_STOP_BYTE_MODE, 0);
}

static bool update_off(struct gt_session *session)
{
	bool changed = false, stacks;
	uint32_t who;

	for (who = 0; who < GT_ASKED_MAX; who++) {
		struct gt_session_asker *asker = asker_of(session, who);
		const struct gt_trace_settings *settings = &asker->settings;
		bool off = settings->tracer == GRAFTRACE_TRACER_NOP &&
			   !(who == 0 && gt_session_profiles(session));
		bool flat = settings->tracer == GRAFTRACE_TRACER_FUNCTION;

		changed |= asker->used &&
			   (asker->asked.off != off ||
			    (asker->asked.flat != flat && settings->lists[GT_LIST_GRAPH]));
		asker->asked.off = off;
		asker->asked.flat = flat;
	}
	stacks = session->func_stack && session->live.target.tracer == GRAFTRACE_TRACER_FUNCTION;
	changed |= session->selection.stacks != stacks;
	session->selection.stacks = stacks;
	return changed;
}

int gt_session_patch_for_tracer(struct gt_session *session, struct gt_message *message)
{
	return update_off(session) ? gt_session_select(session, message) : 0;
}

/* Those of an asker's lists become the selection's. */
static void join_selection(struct gt_session *session, uint32_t who)
{
	struct gt_session_asker *asker = asker_of(session, who);

	asker->used = true;
	asker->asked.settings = &asker->settings;
	session->selection.asked[who] = &asker->asked;
	if (who >= session->selection.asked_count)
		session->selection.asked_count = who + 1;
}

int gt_session_ask_first(struct gt_session *session, const struct gt_session_options *options,
			 struct gt_message *message)
{
	const char *const *lists[GT_LISTS] = { options->filter, options->notrace, options->graph,
					       options->graph_notrace, options->events };
	struct gt_session_asker *top = asker_of(session, 0);

	top->settings = (struct gt_trace_settings){ .on = !options->start_off,
						    .tracer = options->tracer,
						    .max_depth = options->max_graph_depth,
						    .threshold_ns = options->threshold_ns };
	top->asked.off = options->tracer == GRAFTRACE_TRACER_NOP && !options->profile;
	top->asked.flat = options->tracer == GRAFTRACE_TRACER_FUNCTION;
	join_selection(session, 0);
	for (int i = 0; i < GT_LISTS; i++)
		if (gt_word_list_create(&gt_host_memory, lists[i], &top->settings.lists[i]))
			return gt_fail(message, GT_ENOMEM, "no memory for the filters");
	session->selection.graph_notrace = gt_session_notrace(session);
	return gt_session_join_events(session, message);
}

void gt_session_ask_fini(struct gt_session *session)
{
	uint32_t who;

	for (who = 0; who < GT_ASKED_MAX; who++)
		gt_trace_settings_fini(&asker_of(session, who)->settings);
}

int gt_session_set_tracing_on(struct gt_session *session, bool on, struct gt_message *message)
{
	(void)message;
	pthread_mutex_lock(&session->lock);
	asker_of(session, 0)->settings.on = on;
	gt_session_write_tracing(session, wish_of(session).on);
	gt_follow_write_host(session);
	if (gt_session_profiles(session))
		gt_follow_write_stop(session, GRAFTRACE_STOP_BYTE_MODE, 0);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

bool gt_session_tracing_on(struct gt_session *session)
{
	if (top_is_apart(session))
		return asker_of(session, 0)->settings.on;
	return __atomic_load_n(&gt_session_settings(session)->tracing_on, __ATOMIC_RELAXED) != 0;
}

void gt_session_note_trigger(struct gt_session *session, const struct gt_house *house, bool on)
{
	if (top_is_apart(session)) {
		asker_of(session, 0)->settings.on = on;
		gt_session_write_tracing(session, wish_of(session).on);
	} else {
		/* What stands there now: another trigger may have been later. */
		gt_session_write_tracing(session, __atomic_load_n(&house->arena.memory->tracing_on,
								  __ATOMIC_SEQ_CST) != 0);
	}
}

int gt_session_set_tracer(struct gt_session *session, enum graftrace_tracer tracer,
			  struct gt_message *message)
{
	struct gt_trace_settings *top = &asker_of(session, 0)->settings;
	enum graftrace_tracer old;
	int error;

	if (tracer > GRAFTRACE_TRACER_FUNCTION_GRAPH)
		return gt_fail(message, GT_EINVAL, "no such tracer");
	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	old = top->tracer;
	top->tracer = tracer;
	error = gt_session_check_profile(session, gt_session_profiles(session), tracer,
					 top->threshold_ns, message);
	if (error) {
		top->tracer = old;
	} else {
		gt_session_publish(session);
		error = gt_session_patch_for_tracer(session, message);
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_set_max_graph_depth(struct gt_session *session, uint32_t depth)
{
	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	asker_of(session, 0)->settings.max_depth = depth;
	gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

int gt_session_set_threshold(struct gt_session *session, uint64_t ns)
{
	struct gt_trace_settings *top = &asker_of(session, 0)->settings;
	uint64_t old;
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	old = top->threshold_ns;
	top->threshold_ns = ns;
	error = gt_session_check_profile(session, gt_session_profiles(session), top->tracer, ns,
					 NULL);
	if (error)
		top->threshold_ns = old;
	else
		gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
	return error;
}

/* Filters */

/* Calls back for every function that can be traced and that the glob names, by its index where the
 * glob is a name; until that returns other than 0, which is returned. */
static int each_named(struct gt_session *session, const char *glob,
		      int (*each)(void *data, struct gt_session *session, size_t tracee,
				  size_t object, uint32_t index),
		      void *data)
{
	bool plain = gt_names_is_plain(glob);
	size_t i, k;
	int result = 0;

	for (i = 0; i < session->tracee_count; i++) {
		struct gt_tracee *tracee = session->tracees[i];

		for (k = 0; k < tracee->object_count; k++) {
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
				if (gt_tracee_can_trace(tracee, object, index, &session->selection))
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
	struct difference difference = { old_list, new_list, 0, old_list ? old_list->count : 0,
					 new_list ? new_list->count : 0 };
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
	size_t i;

	for (i = 0; i < difference->new_count; i++) {
		const char *word = difference->new_list->words[difference->from + i];

		/* of an object that may come yet */
		if (!strstr(word, ":mod:") && !each_named(session, word, found_one, NULL))
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
	size_t i;

	if (*count + difference->old_count + difference->new_count > FEW_WORDS)
		return false;
	for (i = 0; i < difference->old_count; i++)
		words[(*count)++] = difference->old_list->words[difference->from + i];
	for (i = 0; i < difference->new_count; i++)
		words[(*count)++] = difference->new_list->words[difference->from + i];
	for (i = 0; i < *count; i++)
		if (!gt_names_is_plain(words[i]) || strstr(words[i], ":mod:"))
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
	size_t count = 0, i;
	bool few = !begins_or_ends(&differences[GT_LIST_FILTER]);
	int error = 0;

	for (i = 0; few && i < 3; i++)
		few = collect_words(&differences[i], words, &count);
	if (!few)
		return gt_session_select(session, message);
	for (i = 0; count && i < session->tracee_count; i++) {
		int result = gt_tracee_select_words(session->tracees[i], &session->selection, words,
						    count, message);

		error = error ? error : result;
	}
	return error;
}

/* The asker's first three lists become those of `settings`. Under the lock. */
static int set_filters(struct gt_session *session, struct gt_session_asker *asker,
		       const struct gt_trace_settings *settings, struct gt_message *message)
{
	struct gt_trace_settings old = gt_trace_settings_copy(&asker->settings);
	struct difference differences[3];
	int error = 0, i;

	for (i = GT_LIST_FILTER; i <= GT_LIST_GRAPH; i++)
		differences[i] = compare(old.lists[i], settings->lists[i]);
	for (i = GT_LIST_FILTER; !error && i <= GT_LIST_GRAPH; i++)
		error = check_words(session, &differences[i], message);
	if (!error) {
		for (i = GT_LIST_FILTER; i <= GT_LIST_GRAPH; i++)
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
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	error = set_filters(session, asker_of(session, 0), settings, message);
	if (wish_of(session).graph_only != (gt_session_settings(session)->graph_only != 0))
		gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
	return error;
}

/* Instances */

int gt_session_join(struct gt_session *session, uint32_t *who, struct gt_message *message)
{
	uint32_t i;
	int error = GT_ENOSPC;

	pthread_mutex_lock(&session->lock);
	for (i = 1; error && i < GT_ASKED_MAX; i++) {
		struct gt_session_asker *asker = asker_of(session, i);

		if (asker->used)
			continue;
		error = 0;
		asker->settings = (struct gt_trace_settings){ .tracer = GRAFTRACE_TRACER_NOP };
		asker->asked.off = true;
		join_selection(session, i);
		*who = i;
	}
	pthread_mutex_unlock(&session->lock);
	if (error == GT_ENOSPC)
		gt_fail(message, error, "there are as many instances as there can be: %d",
			GT_ASKED_MAX - 1);
	return error;
}

/* All but the lists. */
static void set_values(struct gt_trace_settings *settings, const struct gt_trace_settings *values)
{
	settings->tracer = values->tracer;
	settings->on = values->on;
	settings->max_depth = values->max_depth;
	settings->threshold_ns = values->threshold_ns;
}

/* *changed: the asker wants other events than before. */
static int set_events(struct gt_session *session, struct gt_session_asker *asker,
		      const struct gt_trace_settings *settings, bool *changed,
		      struct gt_message *message)
{
	struct gt_word_list **list = &asker->settings.lists[GT_LIST_EVENTS];
	struct gt_word_list *before = gt_word_list_hold(*list);
	int error = 0;

	*changed = !gt_word_list_is_same(before, settings->lists[GT_LIST_EVENTS]);
	if (*changed) {
		gt_trace_settings_set_list(&asker->settings, GT_LIST_EVENTS,
					   settings->lists[GT_LIST_EVENTS]);
		error = gt_session_join_events(session, message);
	}
	if (error)
		gt_trace_settings_set_list(&asker->settings, GT_LIST_EVENTS, before);
	gt_word_list_release(before);
	return error;
}

int gt_session_ask(struct gt_session *session, uint32_t who,
		   const struct gt_trace_settings *settings, struct gt_message *message)
{
	struct gt_session_asker *asker = asker_of(session, who);
	struct gt_trace_settings old;
	bool events = false;
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	old = asker->settings;
	set_values(&asker->settings, settings);
	error = set_filters(session, asker, settings, message);
	if (!error)
		error = set_events(session, asker, settings, &events, message);
	if (error) {
		set_values(&asker->settings, &old);
	} else {
		struct gt_word_list *notrace = gt_session_notrace(session);
		bool had_others = session->others != 0;

		__atomic_store_n(&session->others, count_others(session), __ATOMIC_RELAXED);
		/* What the top does not want below a function, others may. */
		session->selection.graph_notrace = session->others ? NULL : notrace;
		gt_session_publish(session);
		if (events || (notrace && had_others != (session->others != 0))) {
			update_off(session);
			error = gt_session_select(session, message);
		} else {
			error = gt_session_patch_for_tracer(session, message);
		}
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

bool gt_session_top_has_all(struct gt_session *session, uint32_t who,
			    const struct gt_trace_settings *settings)
{
	const struct gt_trace_settings *top = &asker_of(session, 0)->settings;
	struct gt_session_asker *asker = asker_of(session, who);
	struct gt_trace_settings old;
	struct wish wish;
	bool all, same = true, lists = false;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	/* As if it had been asked, but for functions. */
	old = asker->settings;
	set_values(&asker->settings, settings);
	wish = wish_of(session);
	asker->settings = old;
	all = !settings->lists[GT_LIST_EVENTS] && !gt_session_notrace(session) &&
	      !gt_session_lists_threads(session) && top->tracer == wish.tracer &&
	      top->on == wish.on && top->max_depth == wish.max_depth &&
	      top->threshold_ns == wish.threshold_ns;
	for (int i = GT_LIST_FILTER; i <= GT_LIST_GRAPH; i++) {
		lists |= top->lists[i] != NULL;
		same &= gt_word_list_is_same(top->lists[i], settings->lists[i]);
	}
	if (lists)
		all = all && same && count_others(session) == (traces(asker) ? 1u : 0u);
	pthread_mutex_unlock(&session->lock);
	return all;
}

void gt_session_leave(struct gt_session *session, uint32_t who)
{
	static const struct gt_trace_settings nothing = { .tracer = GRAFTRACE_TRACER_NOP };
	struct gt_session_asker *asker = asker_of(session, who);

	gt_session_ask(session, who, &nothing, NULL);
	pthread_mutex_lock(&session->lock);
	session->selection.asked[who] = NULL;
	asker->used = false;
	gt_trace_settings_fini(&asker->settings);
	pthread_mutex_unlock(&session->lock);
}
