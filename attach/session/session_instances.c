/* SPDX-License-Identifier: MIT */
/* Instances as askers of a session: each joins, asks, and leaves. */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

int gt_session_join(struct gt_session *session, uint32_t *who, struct gt_message *message)
{
	int error = GT_ENOSPC;

	pthread_mutex_lock(&session->lock);
	for (uint32_t i = 1; error && i < GT_ASKED_MAX; i++) {
		struct gt_session_asker *asker = gt_session_asker_of(session, i);

		if (asker->used)
			continue;
		error = 0;
		asker->settings = (struct gt_trace_settings){ .tracer = GRAFTRACE_TRACER_NOP };
		asker->asked.off = true;
		gt_session_join_selection(session, i);
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

/* Makes the settings the asker's, and patches for its lists of functions. *events: it wants other events than
 * before. *taken: they are the asker's now; else the old ones are, as if nobody had asked. */
static int take(struct gt_session *session, struct gt_session_asker *asker,
		const struct gt_trace_settings *settings, bool *events, bool *taken,
		struct gt_message *message)
{
	struct gt_trace_settings old = gt_trace_settings_copy(&asker->settings);
	int error, refused = 0;
	bool unused;

	set_values(&asker->settings, settings);
	error = gt_session_set_asker_filters(session, asker, settings, taken, message);
	if (*taken)
		refused = gt_session_set_asker_events(
			session, asker, settings->lists[GT_LIST_EVENTS], events, message);
	if (refused) {
		gt_session_set_asker_filters(session, asker, &old, &unused, NULL);
		*taken = false;
	}
	if (!*taken)
		set_values(&asker->settings, &old);
	gt_trace_settings_fini(&old);
	return refused ? refused : error;
}

int gt_session_ask(struct gt_session *session, uint32_t who,
		   const struct gt_trace_settings *settings, struct gt_message *message)
{
	struct gt_session_asker *asker = gt_session_asker_of(session, who);
	bool events = false, taken;
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	error = take(session, asker, settings, &events, &taken, message);
	if (taken) {
		struct gt_word_list *notrace = gt_session_notrace(session);
		bool had_others = session->wanted.others != 0;
		int result;

		__atomic_store_n(&session->wanted.others, gt_session_count_others(session),
				 __ATOMIC_RELAXED);
		/* What the top does not want below a function, others may. */
		session->selection.graph_notrace = session->wanted.others ? NULL : notrace;
		gt_session_publish(session);
		if (events || (notrace != NULL && had_others != (session->wanted.others != 0))) {
			gt_session_update_off(session);
			result = gt_session_select(session, error ? NULL : message);
		} else {
			result = gt_session_patch_for_tracer(session, error ? NULL : message);
		}
		error = error ? error : result;
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

struct gt_trace_settings gt_session_asked(struct gt_session *session, uint32_t who)
{
	struct gt_trace_settings settings;

	pthread_mutex_lock(&session->lock);
	settings = gt_trace_settings_copy(&gt_session_asker_of(session, who)->settings);
	pthread_mutex_unlock(&session->lock);
	return settings;
}

bool gt_session_top_has_all(struct gt_session *session, uint32_t who,
			    const struct gt_trace_settings *settings)
{
	const struct gt_trace_settings *top = &gt_session_asker_of(session, 0)->settings;
	struct gt_session_asker *asker = gt_session_asker_of(session, who);
	struct gt_trace_settings old;
	struct gt_session_joint joint;
	bool all, same = true, lists = false;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	/* As if it had been asked, but for functions. */
	old = asker->settings;
	set_values(&asker->settings, settings);
	joint = gt_session_joint_of(session);
	asker->settings = old;
	all = settings->lists[GT_LIST_EVENTS] == NULL && gt_session_notrace(session) == NULL &&
	      !gt_session_lists_threads(session) && top->tracer == joint.tracer &&
	      top->on == joint.on && top->max_depth == joint.max_depth &&
	      top->threshold_ns == joint.threshold_ns;
	for (int i = GT_LIST_FILTER; i <= GT_LIST_GRAPH; i++) {
		lists |= top->lists[i] != NULL;
		same &= gt_word_list_is_same(top->lists[i], settings->lists[i]);
	}
	if (lists)
		all = all && same &&
		      gt_session_count_others(session) ==
			      (gt_session_asker_traces(asker) ? 1u : 0u);
	pthread_mutex_unlock(&session->lock);
	return all;
}

void gt_session_leave(struct gt_session *session, uint32_t who)
{
	static const struct gt_trace_settings nothing = { .tracer = GRAFTRACE_TRACER_NOP };
	struct gt_session_asker *asker = gt_session_asker_of(session, who);

	gt_session_ask(session, who, &nothing, NULL);
	pthread_mutex_lock(&session->lock);
	session->selection.asked[who] = NULL;
	asker->used = false;
	gt_trace_settings_fini(&asker->settings);
	pthread_mutex_unlock(&session->lock);
}
