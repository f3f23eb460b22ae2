/* SPDX-License-Identifier: MIT */
/*
 * Of a session's trace: what threads' own trace_pipes take out, counts, marks, pauses, and
 * functions with commands. Guarantees: no lock is held while the session patches code but `change`.
 */
#include "serve/live_events.h"
#include "serve/live_instance.h"

#include <stdlib.h>
#include <string.h>

/* options/pause-on-trace: off while anybody has `trace` open. */

static void switch_top(struct gt_live *live, bool on)
{
	struct gt_message unused;
	struct gt_live_wish wish;

	if (gt_live_top_begin(live, false, &unused) != 0)
		return;
	gt_session_set_tracing_on(live->session, on, &unused);
	gt_live_wish_of(live, &wish);
	gt_live_top_end(live, &wish);
}

bool gt_live_pause(struct gt_live *live)
{
	bool pauses;

	pthread_mutex_lock(&live->change);
	pauses = (live->options & GT_OPTION_PAUSE_ON_TRACE) != 0;
	if (pauses && live->pauses++ == 0) {
		live->was_on = gt_session_tracing_on(live->session);
		if (live->was_on)
			switch_top(live, false);
	}
	pthread_mutex_unlock(&live->change);
	return pauses;
}

void gt_live_unpause(struct gt_live *live)
{
	pthread_mutex_lock(&live->change);
	if (--live->pauses == 0 && live->was_on)
		switch_top(live, true);
	pthread_mutex_unlock(&live->change);
}

/* Threads' pipes */

int gt_live_given(struct gt_live *live, struct gt_merge_given **given, uint32_t *count)
{
	if (live->raw != NULL)
		return gt_live_raw_given(live, given, count);
	if (live->pipe != NULL)
		return gt_text_reader_given(live->pipe, given, count);
	*count = 0;
	*given = malloc(1);
	return *given != NULL ? 0 : GT_ENOMEM;
}

int gt_live_thread_pipe_open(struct gt_live *live, const struct gt_text_look *look,
			     struct gt_text_reader **reader, struct gt_message *message)
{
	struct gt_text_look whole = *look;
	int error = gt_text_reader_open(&live->view, look, true, reader, message);

	if (error != 0)
		return error;
	memset(&whole.scope, 0, sizeof(whole.scope));
	error = gt_live_need_pipe(live, &whole, message);
	if (error == 0)
		error = gt_text_reader_skip_given(*reader, live->pipe);
	if (error != 0)
		gt_text_reader_close(*reader);
	return error;
}

/* The whole trace's reader is made anew behind what both have given. Without memory for that it
 * shows again what the thread's has shown. */
void gt_live_thread_pipe_close(struct gt_live *live, struct gt_text_reader *reader)
{
	struct gt_text_reader *pipe = NULL;
	struct gt_merge_given *given = NULL;
	struct gt_merge_given *own = NULL;
	uint32_t count = 0;
	uint32_t own_count = 0;

	if (live->pipe != NULL && gt_text_reader_given(live->pipe, &given, &count) == 0 &&
	    gt_text_reader_given(reader, &own, &own_count) == 0 &&
	    gt_text_reader_open(&live->view, &live->pipe_look, true, &pipe, NULL) == 0) {
		for (uint32_t i = 0; i < count && i < own_count; i++) {
			if (own[i].sequence > given[i].sequence ||
			    (own[i].sequence == given[i].sequence && own[i].words > given[i].words))
				given[i] = own[i];
		}
		gt_text_reader_skip(pipe, given, count);
		gt_text_reader_close(live->pipe);
		live->pipe = pipe;
		given = NULL;
	}
	free(given);
	free(own);
	gt_text_reader_close(reader);
}

/* Counts and marks */

int gt_live_stats(struct gt_control_target *target, const struct gt_control_scope *scope,
		  struct gt_control_stats *stats, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	uint64_t now = 0, switches_given;
	struct gt_merge_given *given;
	uint32_t count;
	int error;

	gt_live_pull(live);
	pthread_mutex_lock(&live->pipe_lock);
	error = gt_live_given(live, &given, &count);
	switches_given = live->pipe != NULL ? gt_text_reader_switches_given(live->pipe) : 0;
	pthread_mutex_unlock(&live->pipe_lock);
	if (error == 0) {
		gt_live_view_note_given(&live->over, given, count);
		free(given);
		error = gt_live_view_stats(&live->over, scope, stats);
	}
	if (error == 0)
		gt_live_events_count(live, scope, switches_given, stats);
	target->ops->get(target, GT_CONTROL_NOW_NS, &now);
	stats->now_ns = now;
	if (error == GT_ENOENT)
		gt_message_set(message, "no such thread");
	else if (error != 0)
		return no_memory(message);
	return error;
}

int gt_live_mark(struct gt_control_target *target, const struct gt_control_writer *writer,
		 const char *bytes, size_t count, bool raw, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	uint64_t on = 0;
	int error = has_ended(live, message);

	if (error != 0)
		return error;
	target->ops->get(target, GT_CONTROL_TRACING_ON, &on);
	if (!on) {
		gt_message_set(message, "tracing is off");
		return GT_EBADF;
	}
	error = gt_live_view_mark(&live->over, writer, bytes, count, raw);
	if (error == GT_ENOSPC) {
		gt_message_set(message, "the ring of marks is full");
		return GT_EBADF;
	}
	return error != 0 ? no_memory(message) : 0;
}
