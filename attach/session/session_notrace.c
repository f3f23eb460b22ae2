/* SPDX-License-Identifier: MIT */
/*
 * What is left out below a function (set_graph_notrace), and stack traces of the function tracer,
 * for which also functions that no filter names are patched. Any thread; a list that is refused
 * leaves the one before.
 */
#include "attach/session/session.h"
#include "attach/session/session_private.h"
#include "port/host/memory.h"

#include <stdlib.h>
#include <string.h>

static void free_words(struct gt_words *words, char **list)
{
	if (words)
		gt_words_fini(words);
	free(words);
	gt_session_free_list(list);
}

void gt_session_free_notrace_words(struct gt_session *session)
{
	free_words(session->notrace_words, session->graph_notrace);
	session->selection.graph_notrace = session->notrace_words = NULL;
	session->graph_notrace = NULL;
}

int gt_session_set_notrace_words(struct gt_session *session, const char *const *list,
				 struct gt_message *message)
{
	struct gt_words *words = NULL;
	char **copy = NULL;

	if (list && *list) {
		copy = gt_session_copy_list(list);
		words = copy ? calloc(1, sizeof(*words)) : NULL;
		if (!words ||
		    gt_words_init(words, &gt_host_memory, (const char *const *)copy) != 0) {
			free(words);
			free_words(NULL, copy);
			return gt_fail(message, GT_ENOMEM, "no memory for the filters");
		}
	}
	gt_session_free_notrace_words(session);
	session->notrace_words = words;
	session->selection.graph_notrace = session->others ? NULL : words;
	session->graph_notrace = copy;
	return 0;
}

int gt_session_set_graph_notrace(struct gt_session *session, const char *const *list,
				 struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	error = gt_session_check_words(session, list, message);
	if (!error)
		error = gt_session_set_notrace_words(session, list, message);
	if (!error)
		error = gt_session_select(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}

int gt_session_set_func_stack(struct gt_session *session, bool on, struct gt_message *message)
{
	int error;

	pthread_mutex_lock(&session->lock);
	session->func_stack = on;
	__atomic_store_n(&session->arena.memory->func_stack, on, __ATOMIC_SEQ_CST);
	gt_follow_write_stop(session, GRAFTRACE_STOP_BYTE_MODE, 0);
	error = gt_session_patch_for_tracer(session, message);
	pthread_mutex_unlock(&session->lock);
	return error;
}
