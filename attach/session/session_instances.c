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
	struct gt_session_asker *asker = gt_session_asker_of(session, who);
	struct gt_trace_settings old;
	bool events = false;
	int error;

	pthread_mutex_lock(&session->lock);
	gt_session_take_top(session);
	old = asker->settings;
	set_values(&asker->settings, settings);
	error = gt_session_set_asker_filters(session, asker, settings, message);
	if (!error)
		error = set_events(session, asker, settings, &events, message);
	if (error) {
		set_values(&asker->settings, &old);
	} else {
		struct gt_word_list *notrace = gt_session_notrace(session);
		bool had_others = session->wanted.others != 0;

		__atomic_store_n(&session->wanted.others, gt_session_count_others(session),
				 __ATOMIC_RELAXED);
		/* What the top does not want below a function, others may. */
		session->selection.graph_notrace = session->wanted.others ? NULL : notrace;
		gt_session_publish(session);
		if (events || (notrace != NULL && had_others != (session->wanted.others != 0))) {
			gt_session_update_off(session);
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
