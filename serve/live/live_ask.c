/* SPDX-License-Identifier: MIT */
/*
 * Changes of what the top or an instance asks for: what was written before a change is copied first,
 * under the settings of that time; then the session is told, then the store.
 */
#include "serve/live/live_instance_private.h"

#include "port/host/memory.h"
#include "serve/live/live_awake.h"
#include "serve/store/globs.h"

struct gt_trace_settings gt_live_settings(struct gt_live *live)
{
	struct gt_trace_settings settings;

	if (live->instance != NULL) /* a command may have switched it */
		gt_live_pull(live);
	pthread_mutex_lock(&live->lock);
	settings = live->settings;
	pthread_mutex_unlock(&live->lock);
	settings.on = live->instance != NULL ? gt_live_instance_on(live)
					     : gt_session_tracing_on(live->session);
	return settings;
}

/* Widens an instance's filter to what the session has to record for it: functions with commands
 * are recorded even if the instance does not show them, and a stack trace needs the calls around
 * such a function. *filter: its list, to be released. GT_ENOMEM. */
static int widen(struct gt_store *store, struct gt_trace_settings *ask,
		 struct gt_word_list **filter)
{
	bool some = ask->lists[GT_LIST_FILTER] != NULL || ask->tracer == GRAFTRACE_TRACER_NOP;
	struct gt_globs words = { NULL, 0, 0 };
	struct gt_control_command command;
	char name[GT_CONTROL_WORD_BYTES];
	bool added;
	int error;

	*filter = NULL;
	if (gt_store_command_read(store, 0, &command, name, sizeof(name)) != 0)
		return 0;
	added = ask->tracer == GRAFTRACE_TRACER_NOP ||
		gt_globs_add_all(&words, gt_word_list_words(ask->lists[GT_LIST_FILTER]));
	for (uint32_t i = 0;
	     added && gt_store_command_read(store, i, &command, name, sizeof(name)) == 0; i++) {
		added = gt_globs_add(&words, command.function, command.function_bytes, false);
		if (ask->tracer == GRAFTRACE_TRACER_NOP)
			ask->tracer = GRAFTRACE_TRACER_FUNCTION;
		if (command.action == GT_ACTION_STACKTRACE)
			ask->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
		ask->on |= command.action == GT_ACTION_TRACEON;
	}
	error = !added ? GT_ENOMEM
		: some ? gt_word_list_create(&gt_host_memory, gt_globs_words(&words), filter)
		       : 0;
	gt_globs_clear(&words);
	ask->lists[GT_LIST_FILTER] = *filter;
	ask->lists[GT_LIST_NOTRACE] = ask->lists[GT_LIST_GRAPH] = NULL;
	ask->max_depth = 0;
	ask->threshold_ns = 0;
	return error;
}

/* After an error of patching the session has the new settings all the same. */
static bool has_taken(struct gt_session *session, uint32_t who,
		      const struct gt_trace_settings *settings)
{
	struct gt_trace_settings asked = gt_session_asked(session, who);
	bool taken = asked.tracer == settings->tracer && asked.on == settings->on &&
		     asked.max_depth == settings->max_depth &&
		     asked.threshold_ns == settings->threshold_ns;

	for (int i = 0; i < GT_LISTS; i++) /* set_graph_notrace is for us alone */
		taken &= i == GT_LIST_GRAPH_NOTRACE ||
			 gt_word_list_is_same(asked.lists[i], settings->lists[i]);
	gt_trace_settings_fini(&asked);
	return taken;
}

/* *taken: the settings are in force, also after an error of patching. */
static int ask_for_instance(struct gt_live *live, const struct gt_trace_settings *settings,
			    bool *taken, struct gt_message *message)
{
	struct gt_live *top = live->top;
	struct gt_live_instance *instance = live->instance;
	struct gt_trace_settings ask = *settings;
	struct gt_word_list *filter;
	struct gt_route_want want;
	int error = widen(instance->store, &ask, &filter);
	bool active = ask.tracer != GRAFTRACE_TRACER_NOP || ask.lists[GT_LIST_EVENTS] != NULL;
	bool begins = active && !instance->active;

	*taken = false;
	gt_live_pull_locked(top);
	if (error == 0 && active && !top->instances.routed &&
	    !gt_session_top_has_all(top->session, instance->who, &ask))
		error = gt_live_detour_locked(top);
	if (error == 0 && begins)
		error = gt_store_begin_now(instance->store);
	if (error != 0) {
		gt_word_list_release(filter);
		return no_memory(message);
	}
	if (begins)
		instance->since = __builtin_ia32_rdtsc();
	error = gt_session_ask(top->session, instance->who, &ask, message);
	*taken = error == 0 || has_taken(top->session, instance->who, &ask);
	gt_word_list_release(filter);
	if (!*taken)
		return error;
	instance->active = active;
	want = gt_live_want_of(live, settings);
	gt_store_want(instance->store, &want);
	if (!active)
		gt_store_rest(instance->store);
	return error;
}

int gt_live_ask(struct gt_live *live, const struct gt_trace_settings *settings,
		struct gt_message *message)
{
	struct gt_live *top = live->top;
	struct gt_trace_settings old;
	bool taken = false;
	int error;

	pthread_mutex_lock(&top->instances.lock);
	if (gt_live_is_removed(live)) /* the session may have given its number to another one */
		error = gt_fail(message, GT_ENOENT, "the instance was removed");
	else
		error = ask_for_instance(live, settings, &taken, message);
	if (taken) {
		pthread_mutex_lock(&live->lock);
		old = live->settings;
		live->settings = gt_trace_settings_copy(settings);
		live->view.tracer = settings->tracer;
		pthread_mutex_unlock(&live->lock);
		gt_trace_settings_fini(&old);
	}
	pthread_mutex_unlock(&top->instances.lock);
	return error;
}

int gt_live_top_begin_lock(struct gt_live *top, bool wider, struct gt_message *message)
{
	struct gt_live_instances *instances = &top->instances;
	bool others = false;
	int error = 0;

	pthread_mutex_lock(&instances->lock);
	for (uint32_t i = 0; i < instances->count; i++)
		others |= !gt_live_is_removed(instances->all[i]) &&
			  instances->all[i]->instance->active;
	gt_live_pull_locked(top);
	if ((others || wider) && !instances->routed)
		error = gt_live_detour_locked(top);
	if (error == 0 && wider)
		gt_live_start_pump_locked(top);
	if (error == 0)
		return 0;
	pthread_mutex_unlock(&instances->lock);
	return no_memory(message);
}

int gt_live_top_awake(struct gt_live *top, bool awake, bool anew)
{
	struct gt_live_instances *instances = &top->instances;

	if (anew) {
		gt_awake_destroy(instances->awake);
		instances->awake = NULL;
	}
	if (awake)
		return gt_awake_follow(&instances->awake, gt_session_target(top->session));
	gt_awake_stop(instances->awake);
	return 0;
}

void gt_live_top_end_unlock(struct gt_live *top)
{
	struct gt_trace_settings settings = gt_live_settings(top);
	struct gt_route_want want = gt_live_want_of(top, &settings);

	if (top->instances.routed) {
		gt_store_want(top->instances.own, &want);
		gt_live_follow_threads(top, top->instances.own);
	}
	pthread_mutex_unlock(&top->instances.lock);
}
