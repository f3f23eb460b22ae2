/* SPDX-License-Identifier: MIT */
/*
 * What is left out below a function (set_graph_notrace), and stack traces of the function tracer,
 * for which also functions that no filter names are patched. Any thread; a list that is refused
 * leaves the one before.
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"

struct gt_word_list *gt_session_notrace(struct gt_session *session)
{
	return session->wanted.askers[0].settings.lists[GT_LIST_GRAPH_NOTRACE];
}

int gt_session_set_graph_notrace(struct gt_session *session, struct gt_word_list *list,
				 struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_session_check_words(session, list, message);
	if (!error) {
		gt_trace_settings_set_list(&session->wanted.askers[0].settings,
					   GT_LIST_GRAPH_NOTRACE, list);
		session->selection.graph_notrace = session->wanted.others ? NULL : list;
		error = gt_session_select(session, message);
	}
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_set_func_stack(struct gt_session *session, bool on, struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	session->wanted.func_stack = on;
	__atomic_store_n(&gt_session_settings(session)->func_stack, on, __ATOMIC_SEQ_CST);
	gt_stop_words_write(session, GRAFTRACE_STOP_BYTE_MODE, 0);
	error = gt_session_patch_for_tracer(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}
