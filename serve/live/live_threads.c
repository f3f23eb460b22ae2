/* SPDX-License-Identifier: MIT */
/*
 * Control files of the lists of threads that alone are traced, or are not.
 */
#include "serve/live/live_events.h"
#include "serve/live/live_instance.h"

static enum gt_session_list list_of(enum gt_control_threads which)
{
	return which == GT_CONTROL_PIDS ? GT_SESSION_ONLY : GT_SESSION_NOT;
}

int gt_live_thread(struct gt_control_target *target, enum gt_control_threads which, uint32_t index,
		   uint32_t *tid)
{
	if (gt_control_is_of_events(which))
		return gt_live_event_thread(&live_of(target)->over, which, index, tid);
	if (live_of(target)->instance != NULL)
		return gt_live_instance_thread(live_of(target), list_of(which), index, tid);
	return gt_session_thread(live_of(target)->session, list_of(which), index, tid);
}

/* The lists are the top's alone: instances that trace go on with all threads. */
static int set_top(struct gt_live *live, enum gt_session_list which, const uint32_t *tids,
		   uint32_t count, struct gt_message *message)
{
	int error = gt_live_top_begin_lock(live, false, message);

	if (error != 0)
		return error;
	error = gt_session_set_threads(live->session, which, tids, count, message);
	gt_live_top_end_unlock(live);
	return error;
}

/* Records that were made before keep the lists of then. The ring has the events of all threads: those that are
 * not wanted are left out on the way into the top's own buffer. */
static int set_of_events(struct gt_live *live, enum gt_control_threads which, const uint32_t *tids,
			 uint32_t count, struct gt_message *message)
{
	struct gt_trace_settings settings;
	int error;

	if (live->mode == GRAFTRACE_MODE_DRAIN && count > 0)
		return gt_fail(message, GT_EBUSY,
			       "records go to a file as they come, with the events of all "
			       "threads (--serve and --overwrite record into a ring)");
	if (live->instance == NULL) {
		error = gt_live_top_begin_lock(live, count > 0, message);
		if (error != 0)
			return error;
		error = gt_live_event_threads_set(&live->over, which, tids, count, message);
		gt_live_top_end_unlock(live);
		return error;
	}
	gt_live_pull(live);
	error = gt_live_event_threads_set(&live->over, which, tids, count, message);
	if (error != 0)
		return error;
	settings = gt_live_settings(live);
	return gt_live_ask(live, &settings, message);
}

int gt_live_threads_set(struct gt_control_target *target, enum gt_control_threads which,
			const uint32_t *tids, uint32_t count, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	int error;

	pthread_mutex_lock(&live->change.lock);
	error = has_ended(live, message);
	if (error == 0 && gt_control_is_of_events(which))
		error = set_of_events(live, which, tids, count, message);
	else if (error == 0 && live->instance != NULL)
		error = gt_live_instance_threads_set(live, list_of(which), tids, count, message);
	else if (error == 0)
		error = set_top(live, list_of(which), tids, count, message);
	pthread_mutex_unlock(&live->change.lock);
	return error;
}
