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

static void free_words(struct gt_selection_words *words)
{
	if (!words)
		return;
	gt_words_fini(&words->filter);
	gt_words_fini(&words->notrace);
	gt_words_fini(&words->graph);
	free(words);
}

/* NULL: no memory. The lists must stay. */
static struct gt_selection_words *make_words(const struct gt_asked *asked)
{
	struct gt_selection_words *words = calloc(1, sizeof(*words));

	if (!words)
		return NULL;
	if (gt_words_init(&words->filter, &gt_host_memory, (const char *const *)asked->filter) ==
		    0 &&
	    gt_words_init(&words->notrace, &gt_host_memory, (const char *const *)asked->notrace) ==
		    0 &&
	    gt_words_init(&words->graph, &gt_host_memory, (const char *const *)asked->graph) == 0)
		return words;
	free_words(words);
	return NULL;
}

static void free_lists(struct gt_asked *asked)
{
	free_words(asked->words);
	gt_session_free_list(asked->filter);
	gt_session_free_list(asked->notrace);
	gt_session_free_list(asked->graph);
	asked->words = NULL;
	asked->filter = asked->notrace = asked->graph = NULL;
}

static bool has_module(char *const *list)
{
	for (; list && *list; list++)
		if (strstr(*list, ":mod:"))
			return true;
	return false;
}

static int set_lists(struct gt_asked *asked, const char *const *filter, const char *const *notrace,
		     const char *const *graph, struct gt_message *message)
{
	asked->filter = gt_session_copy_list(filter);
	asked->notrace = gt_session_copy_list(notrace);
	asked->graph = gt_session_copy_list(graph);
	asked->words = NULL;
	asked->modules = has_module(asked->filter) || has_module(asked->notrace);
	if (asked->filter && asked->notrace && asked->graph)
		asked->words = make_words(asked);
	if (asked->words)
		return 0;
	free_lists(asked);
	return gt_fail(message, GT_ENOMEM, "no memory for the filters");
}

/* Who asks */

static struct gt_session_asker *asker_of(struct gt_session *session, uint32_t who)
{
	return &session->askers[who];
}

static bool traces(const struct gt_session_asker *asker)
{
	return asker->used && asker->tracer != GRAFTRACE_TRACER_NOP;
}

/* Those that trace, but for the top. */
static uint32_t count_others(const struct gt_session *session)
{
	uint32_t who, count = 0;

	for (who = 1; who < GT_ASKED_MAX; who++)
		count += traces(&session->askers[who]);
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
		asker_of(session, 0)->on =
			__atomic_load_n(&session->arena.memory->tracing_on, __ATOMIC_SEQ_CST) != 0;
}

/* Its calls are to be looked for below functions. The tracer function knows no such thing. */
static bool has_roots(const struct gt_session_asker *asker)
{
	return asker->tracer != GRAFTRACE_TRACER_FUNCTION && asker->asked.graph &&
	       asker->asked.graph[0];
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
	bool any = false, any_depth = false, any_threshold = false;
	uint32_t who;

	for (who = 0; who < GT_ASKED_MAX; who++) {
		const struct gt_session_asker *asker = &session->askers[who];

		if (!traces(asker))
			continue;
		any = true;
		wish.on |= asker->on;
		if (asker->tracer > wish.tracer)
			wish.tracer = asker->tracer;
		wish.graph_only &= has_roots(asker);
		any_depth |= !asker->max_depth;
		if (asker->max_depth > wish.max_depth)
			wish.max_depth = asker->max_depth;
		/* A short call of one who wants them all has to be written. */
		any_threshold |= !asker->threshold_ns || asker->tracer == GRAFTRACE_TRACER_FUNCTION;
		if (!wish.threshold_ns || asker->threshold_ns < wish.threshold_ns)
			wish.threshold_ns = asker->threshold_ns;
	}
	if (!any) { /* as the top has it: for when it begins */
		const struct gt_session_asker *top = &session->askers[0];

		wish.on = top->on;
		wish.graph_only = has_roots(top);
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
	int error = 0;
	size_t i;

	for (i = 0; i < session->tracee_count; i++) {
		int result = gt_tracee_select(session->tracees[i], &session->selection, message);

		error = error ? error : result;
	}
	return error;
}

/* The agents' settings become what is wished. */
void gt_session_publish(struct gt_session *session)
{
	struct graftrace_arena *memory = session->arena.memory;
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
	__atomic_store_n(&memory->tracing_on, wish.on, __ATOMIC_SEQ_CST);
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
		bool off = asker->tracer == GRAFTRACE_TRACER_NOP &&
			   !(who == 0 && gt_session_profiles(session));

		bool flat = asker->tracer == GRAFTRACE_TRACER_FUNCTION;

		changed |= asker->used && (asker->asked.off != off ||
					   (asker->asked.flat != flat && asker->asked.graph &&
					    asker->asked.graph[0]));
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

int gt_session_ask_first(struct gt_session *session, const struct gt_session_options *options,
			 struct gt_message *message)
{
	struct gt_session_asker *top = asker_of(session, 0);

	*top = (struct gt_session_asker){
		.used = true,
		.on = !options->start_off,
		.tracer = options->tracer,
		.max_depth = options->max_graph_depth,
		.threshold_ns = options->threshold_ns,
		.asked = { .off = options->tracer == GRAFTRACE_TRACER_NOP && !options->profile,
			   .flat = options->tracer == GRAFTRACE_TRACER_FUNCTION },
	};
	session->selection.asked[0] = &top->asked;
	session->selection.asked_count = 1;
	return set_lists(&top->asked, options->filter, options->notrace, options->graph, message);
}

void gt_session_ask_fini(struct gt_session *session)
{
	uint32_t who;

	for (who = 0; who < GT_ASKED_MAX; who++)
		free_lists(&session->askers[who].asked);
}

int gt_session_set_tracing_on(struct gt_session *session, bool on, struct gt_message *message)
{
	(void)message;
	pthread_mutex_lock(&session->lock);
	asker_of(session, 0)->on = on;
	__atomic_store_n(&session->arena.memory->tracing_on, wish_of(session).on, __ATOMIC_SEQ_CST);
	gt_follow_write_host(session);
	if (gt_session_profiles(session))
		gt_follow_write_stop(session, GRAFTRACE_STOP_BYTE_MODE, 0);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

bool gt_session_tracing_on(struct gt_session *session)
{
	if (top_is_apart(session))
		return asker_of(session, 0)->on;
	return __atomic_load_n(&session->arena.memory->tracing_on, __ATOMIC_RELAXED) != 0;
}

void gt_session_note_trigger(struct gt_session *session, bool on)
{
	struct wish wish;

	if (!top_is_apart(session))
		return;
	asker_of(session, 0)->on = on;
	wish = wish_of(session);
	if (wish.on != on)
		__atomic_store_n(&session->arena.memory->tracing_on, wish.on, __ATOMIC_SEQ_CST);
}

int gt_session_set_tracer(struct gt_session *session, enum graftrace_tracer tracer,
			  struct gt_message *message)
{
	struct gt_session_asker *top = asker_of(session, 0);
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
	asker_of(session, 0)->max_depth = depth;
	gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

int gt_session_set_threshold(struct gt_session *session, uint64_t ns)
{
	struct gt_session_asker *top = asker_of(session, 0);
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

static size_t length_of(char *const *list)
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

/* What of a list is another word than before: [from, from + old) of the old one became
 * [from, from + new) of the new one. */
struct difference {
	char *const *old_list;
	char *const *new_list;
	size_t from, old_count, new_count;
};

static struct difference compare(char *const *old_list, char *const *new_list)
{
	struct difference difference = { old_list, new_list, 0, length_of(old_list),
					 length_of(new_list) };
	size_t *from = &difference.from;

	while (*from < difference.old_count && *from < difference.new_count &&
	       strcmp(old_list[*from], new_list[*from]) == 0)
		++*from;
	while (difference.old_count > *from && difference.new_count > *from &&
	       strcmp(old_list[difference.old_count - 1], new_list[difference.new_count - 1]) ==
		       0) {
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
		const char *word = difference->new_list[difference->from + i];

		/* of an object that may come yet */
		if (!strstr(word, ":mod:") && !each_named(session, word, found_one, NULL))
			return gt_fail(message, GT_EINVAL, "no function matches '%s'", word);
	}
	return 0;
}

int gt_session_check_words(struct gt_session *session, const char *const *list,
			   struct gt_message *message)
{
	struct difference all = { NULL, (char *const *)list, 0, 0, length_of((char *const *)list) };

	return check_words(session, &all, message);
}

/* The words that differ, if they are few and all are names. */
static bool collect_words(const struct difference *difference, const char **words, size_t *count)
{
	size_t i;

	if (*count + difference->old_count + difference->new_count > FEW_WORDS)
		return false;
	for (i = 0; i < difference->old_count; i++)
		words[(*count)++] = difference->old_list[difference->from + i];
	for (i = 0; i < difference->new_count; i++)
		words[(*count)++] = difference->new_list[difference->from + i];
	for (i = 0; i < *count; i++)
		if (!gt_names_is_plain(words[i]) || strstr(words[i], ":mod:"))
			return false;
	return true;
}

/* A list of what is traced means all where it is empty: its first and last word change all. */
static bool begins_or_ends(const struct difference *difference)
{
	return (!difference->old_list || !difference->old_list[0]) != !difference->new_list[0];
}

/* The asker's lists become these. Under the lock. */
static int set_filters(struct gt_session *session, struct gt_session_asker *asker,
		       const char *const *filter, const char *const *notrace,
		       const char *const *graph, struct gt_message *message)
{
	struct gt_asked fresh = { .off = asker->asked.off, .flat = asker->asked.flat };
	struct gt_asked old = asker->asked;
	struct difference differences[3];
	const char *words[FEW_WORDS];
	size_t count = 0, i;
	bool few;
	int error = set_lists(&fresh, filter, notrace, graph, message);

	if (error)
		return error;
	differences[0] = compare(old.filter, fresh.filter);
	differences[1] = compare(old.notrace, fresh.notrace);
	differences[2] = compare(old.graph, fresh.graph);
	for (i = 0; !error && i < 3; i++)
		error = check_words(session, &differences[i], message);
	if (error) {
		free_lists(&fresh);
		return error;
	}
	asker->asked = fresh;
	few = !begins_or_ends(&differences[0]);
	for (i = 0; few && i < 3; i++)
		few = collect_words(&differences[i], words, &count);
	if (asker->used && !asker->asked.off) {
		int result = 0;

		if (!few)
			error = gt_session_select(session, message);
		for (i = 0; few && count && i < session->tracee_count; i++) {
			result = gt_tracee_select_words(session->tracees[i], &session->selection,
							words, count, message);
			error = error ? error : result;
		}
	}
	free_lists(&old);
	return error;
}

int gt_session_set_filters(struct gt_session *session, const char *const *filter,
			   const char *const *notrace, const char *const *graph,
			   struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	error = set_filters(session, asker_of(session, 0), filter, notrace, graph, message);
	if (wish_of(session).graph_only != (session->arena.memory->graph_only != 0))
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
		error = set_lists(&asker->asked, NULL, NULL, NULL, message);
		if (error)
			break;
		asker->used = true;
		asker->asked.off = true;
		asker->tracer = GRAFTRACE_TRACER_NOP;
		session->selection.asked[i] = &asker->asked;
		if (i >= session->selection.asked_count)
			session->selection.asked_count = i + 1;
		*who = i;
	}
	pthread_mutex_unlock(&session->lock);
	if (error == GT_ENOSPC)
		gt_fail(message, error, "there are as many instances as there can be: %d",
			GT_ASKED_MAX - 1);
	return error;
}

int gt_session_ask(struct gt_session *session, uint32_t who, const struct gt_session_ask *ask,
		   struct gt_message *message)
{
	struct gt_session_asker *asker = asker_of(session, who);
	struct gt_session_asker old;
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	old = *asker;
	asker->tracer = ask->tracer;
	asker->on = ask->on;
	asker->max_depth = ask->max_depth;
	asker->threshold_ns = ask->threshold_ns;
	error = set_filters(session, asker, ask->filter, ask->notrace, ask->graph, message);
	if (error) {
		asker->tracer = old.tracer;
		asker->on = old.on;
		asker->max_depth = old.max_depth;
		asker->threshold_ns = old.threshold_ns;
	} else {
		bool had_others = session->others != 0;

		__atomic_store_n(&session->others, count_others(session), __ATOMIC_RELAXED);
		/* What the top does not want below a function, others may. */
		session->selection.graph_notrace = session->others ? NULL : session->notrace_words;
		gt_session_publish(session);
		if (session->notrace_words && had_others != (session->others != 0)) {
			update_off(session);
			error = gt_session_select(session, message);
		} else {
			error = gt_session_patch_for_tracer(session, message);
		}
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

static bool same_list(char **a, const char *const *b)
{
	for (; a && b && *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return (!a || !*a) == (!b || !*b);
}

static bool is_empty(char **list)
{
	return !list || !list[0];
}

bool gt_session_top_has_all(struct gt_session *session, uint32_t who,
			    const struct gt_session_ask *ask)
{
	const struct gt_session_asker *top = asker_of(session, 0);
	struct gt_session_asker *asker = asker_of(session, who), old = *asker;
	struct wish wish;
	bool all;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	/* As if it had been asked, but for functions. */
	asker->tracer = ask->tracer;
	asker->on = ask->on;
	asker->max_depth = ask->max_depth;
	asker->threshold_ns = ask->threshold_ns;
	wish = wish_of(session);
	*asker = old;
	all = !session->notrace_words && !gt_session_lists_threads(session) &&
	      top->tracer == wish.tracer && top->on == wish.on &&
	      top->max_depth == wish.max_depth && top->threshold_ns == wish.threshold_ns;
	if (!is_empty(top->asked.filter) || !is_empty(top->asked.notrace) ||
	    !is_empty(top->asked.graph))
		all = all && count_others(session) == (traces(asker) ? 1u : 0u) &&
		      same_list(top->asked.filter, ask->filter) &&
		      same_list(top->asked.notrace, ask->notrace) &&
		      same_list(top->asked.graph, ask->graph);
	pthread_mutex_unlock(&session->lock);
	return all;
}

void gt_session_leave(struct gt_session *session, uint32_t who)
{
	static const struct gt_session_ask nothing = { .tracer = GRAFTRACE_TRACER_NOP };
	struct gt_session_asker *asker = asker_of(session, who);

	gt_session_ask(session, who, &nothing, NULL);
	pthread_mutex_lock(&session->lock);
	session->selection.asked[who] = NULL;
	asker->used = false;
	free_lists(&asker->asked);
	pthread_mutex_unlock(&session->lock);
}
