/* SPDX-License-Identifier: MIT */
/*
 * What is asked of a session, by the top of its control files and by their instances, and what all of
 * them together want: everything is recorded that any of them asks for, and what one of them does not
 * want is left out where its buffer is filled (serve/store/route.c).
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

bool gt_session_asker_traces(const struct gt_session_asker *asker)
{
	return asker->used && asker->settings.tracer != GRAFTRACE_TRACER_NOP;
}

/* It wants records: of calls, of events. */
static bool records(const struct gt_session_asker *asker)
{
	return gt_session_asker_traces(asker) ||
	       (asker->used && asker->settings.lists[GT_LIST_EVENTS] != NULL);
}

uint32_t gt_session_count_others(const struct gt_session *session)
{
	uint32_t count = 0;

	for (uint32_t who = 1; who < GT_ASKED_MAX; who++)
		count += records(&session->wanted.askers[who]);
	return count;
}

/* Whether more is recorded than the top asks for: its tracing_on is not the arena's then. */
static bool top_is_apart(const struct gt_session *session)
{
	return __atomic_load_n(&session->wanted.others, __ATOMIC_RELAXED) ||
	       (__atomic_load_n(&session->wanted.profile_awake, __ATOMIC_RELAXED) &&
		gt_session_profiles(session));
}

/* Whether the top records, where it is apart: read without the lock, too. */
static void set_top_on(struct gt_session *session, bool on)
{
	__atomic_store_n(&gt_session_asker_of(session, 0)->settings.on, on, __ATOMIC_RELAXED);
}

/* With nobody else the word in the arena is the top's: triggers write it too. */
void gt_session_take_top(struct gt_session *session)
{
	if (!top_is_apart(session))
		set_top_on(session, __atomic_load_n(&gt_session_settings(session)->tracing_on,
						    __ATOMIC_SEQ_CST) != 0);
}

/* The function profiler needs returns, of all calls: the recorder has no way to count beside the
 * function tracer, nor where short calls are left out. So calls are recorded, and whoever wants
 * less leaves the rest out. */
static void add_profile(const struct gt_session *session, struct gt_session_joint *joint)
{
	if (!gt_session_profiles(session) ||
	    (joint->tracer == GRAFTRACE_TRACER_NOP && !session->wanted.profile_awake))
		return;
	joint->tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	joint->threshold_ns = 0;
	if (session->wanted.profile_awake) {
		joint->on = true;
		joint->max_depth = 0;
	}
}

struct gt_session_joint gt_session_joint_of(const struct gt_session *session)
{
	struct gt_session_joint joint = { .tracer = GRAFTRACE_TRACER_NOP, .graph_only = true };
	bool any = false, any_on = false, any_depth = false, any_threshold = false;

	for (uint32_t who = 0; who < GT_ASKED_MAX; who++) {
		const struct gt_trace_settings *one = &session->wanted.askers[who].settings;

		if (records(&session->wanted.askers[who])) {
			any_on = true;
			joint.on |= one->on;
		}
		if (!gt_session_asker_traces(&session->wanted.askers[who]))
			continue;
		any = true;
		if (one->tracer > joint.tracer)
			joint.tracer = one->tracer;
		joint.graph_only &= gt_trace_settings_has_roots(one);
		any_depth |= !one->max_depth;
		if (one->max_depth > joint.max_depth)
			joint.max_depth = one->max_depth;
		/* A short call of one who wants them all has to be written. */
		any_threshold |= !one->threshold_ns || one->tracer == GRAFTRACE_TRACER_FUNCTION;
		if (!joint.threshold_ns || one->threshold_ns < joint.threshold_ns)
			joint.threshold_ns = one->threshold_ns;
	}
	if (!any_on)
		joint.on = session->wanted.askers[0].settings.on;
	if (!any) { /* as the top has it: for when it begins */
		const struct gt_trace_settings *top = &session->wanted.askers[0].settings;

		joint.graph_only = gt_trace_settings_has_roots(top);
		joint.max_depth = top->max_depth;
		joint.threshold_ns = top->threshold_ns;
	} else {
		joint.max_depth = any_depth ? 0 : joint.max_depth;
		/* alone, `function` takes no notice of it, but shall find it when it changes */
		if (any_threshold &&
		    (session->wanted.others || joint.tracer != GRAFTRACE_TRACER_FUNCTION))
			joint.threshold_ns = 0;
	}
	add_profile(session, &joint);
	return joint;
}

int gt_session_select(struct gt_session *session, struct gt_message *message)
{
	int error = gt_session_select_syscalls(session, message);

	if (!error)
		error = gt_session_select_synthetics(session, message);
	for (size_t i = 0; i < session->tracees.count; i++) {
		int result = gt_tracee_select(session->tracees.list[i], &session->catalog,
					      &session->selection, message);

		error = error ? error : result;
	}
	return error;
}

/* The agents' settings become what all askers together want. */
void gt_session_publish(struct gt_session *session)
{
	struct graftrace_arena *memory = gt_session_settings(session);
	struct gt_session_joint joint = gt_session_joint_of(session);
	bool graph_was = memory->graph_only;

	session->live.target.tracer = joint.tracer;
	gt_session_watch_as_traced(session);
	session->wanted.threshold_ns = joint.threshold_ns;
	__atomic_store_n(&memory->tracer, joint.tracer, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->max_depth, joint.max_depth, __ATOMIC_SEQ_CST);
	__atomic_store_n(&memory->graph_only, joint.graph_only, __ATOMIC_SEQ_CST);
	gt_session_publish_threshold(session);
	gt_session_publish_threads(session);
	/* The word, then the blocks: a new thread publishes its block, then reads the word. */
	gt_session_write_tracing(session, joint.on);
	gt_stop_words_write_host(session);
	if (graph_was != joint.graph_only)
		gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_OUTSIDE, joint.graph_only);
	gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_MODE, 0);
}

bool gt_session_update_off(struct gt_session *session)
{
	bool changed = false, stacks;

	for (uint32_t who = 0; who < GT_ASKED_MAX; who++) {
		struct gt_session_asker *asker = gt_session_asker_of(session, who);
		const struct gt_trace_settings *settings = &asker->settings;
		bool off = settings->tracer == GRAFTRACE_TRACER_NOP &&
			   !(who == 0 && gt_session_profiles(session));
		bool flat = settings->tracer == GRAFTRACE_TRACER_FUNCTION;

		changed |= asker->used &&
			   (asker->asked.off != off ||
			    (asker->asked.flat != flat && settings->lists[GT_LIST_GRAPH] != NULL));
		asker->asked.off = off;
		asker->asked.flat = flat;
	}
	stacks = session->wanted.func_stack &&
		 session->live.target.tracer == GRAFTRACE_TRACER_FUNCTION;
	changed |= session->selection.stacks != stacks;
	session->selection.stacks = stacks;
	return changed;
}

int gt_session_patch_for_tracer(struct gt_session *session, struct gt_message *message)
{
	return gt_session_update_off(session) ? gt_session_select(session, message) : 0;
}

void gt_session_join_selection(struct gt_session *session, uint32_t who)
{
	struct gt_session_asker *asker = gt_session_asker_of(session, who);

	asker->used = true;
	asker->asked.settings = &asker->settings;
	session->selection.asked[who] = &asker->asked;
	if (who >= session->selection.asked_count)
		session->selection.asked_count = who + 1;
}

int gt_session_ask_first(struct gt_session *session, const struct gt_session_options *options,
			 struct gt_message *message)
{
	struct gt_session_asker *top = gt_session_asker_of(session, 0);

	top->settings = gt_trace_settings_copy(&options->settings);
	top->asked.off = top->settings.tracer == GRAFTRACE_TRACER_NOP && !options->profile;
	top->asked.flat = top->settings.tracer == GRAFTRACE_TRACER_FUNCTION;
	gt_session_join_selection(session, 0);
	session->selection.graph_notrace = gt_session_notrace(session);
	return gt_session_join_events(session, message);
}

void gt_session_ask_fini(struct gt_session *session)
{
	for (uint32_t who = 0; who < GT_ASKED_MAX; who++)
		gt_trace_settings_fini(&gt_session_asker_of(session, who)->settings);
}

void gt_session_set_tracing_on(struct gt_session *session, bool on)
{
	pthread_mutex_lock(&session->lock);
	set_top_on(session, on);
	gt_session_write_tracing(session, gt_session_joint_of(session).on);
	gt_stop_words_write_host(session);
	if (gt_session_profiles(session))
		gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_MODE, 0);
	pthread_mutex_unlock(&session->lock);
}

bool gt_session_tracing_on(struct gt_session *session)
{
	if (top_is_apart(session))
		return __atomic_load_n(&gt_session_asker_of(session, 0)->settings.on,
				       __ATOMIC_RELAXED);
	return __atomic_load_n(&gt_session_settings(session)->tracing_on, __ATOMIC_RELAXED) != 0;
}

void gt_session_note_trigger(struct gt_session *session, const struct gt_session_arena *arena,
			     bool on)
{
	if (top_is_apart(session)) {
		set_top_on(session, on);
		gt_session_write_tracing(session, gt_session_joint_of(session).on);
	} else {
		/* What stands there now: another trigger may have been later. */
		gt_session_write_tracing(session, __atomic_load_n(&arena->shared.memory->tracing_on,
								  __ATOMIC_SEQ_CST) != 0);
	}
}

int gt_session_set_tracer(struct gt_session *session, enum graftrace_tracer tracer,
			  struct gt_message *message)
{
	struct gt_trace_settings *top = &gt_session_asker_of(session, 0)->settings;
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
	gt_session_asker_of(session, 0)->settings.max_depth = depth;
	gt_session_publish(session);
	pthread_mutex_unlock(&session->lock);
	return 0;
}

int gt_session_set_threshold(struct gt_session *session, uint64_t ns)
{
	struct gt_trace_settings *top = &gt_session_asker_of(session, 0)->settings;
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
