/* SPDX-License-Identifier: MIT */
/*
 * A session's trace: opening, reading and clearing it, pausing meanwhile, counts and marks.
 * Guarantees: while the session patches code only change.lock is held; trace_pipe has one reader at
 * a time.
 */
#include "serve/live/live_events.h"
#include "serve/live/live_instance.h"

#include <stdlib.h>
#include <string.h>

/* options/pause-on-trace: tracing is off while `trace` is open anywhere. */

static void switch_top(struct gt_live *live, bool on)
{
	struct gt_message unused;

	if (gt_live_top_begin_lock(live, false, &unused) != 0)
		return;
	gt_session_set_tracing_on(live->session, on);
	gt_live_top_end_unlock(live);
}

/* options/pause-on-trace: tracing is off from the first pause to the last unpause. */
static bool pause_tracing(struct gt_live *live)
{
	bool pauses;

	pthread_mutex_lock(&live->change.lock);
	pauses = (live->shown.options & GT_OPTION_PAUSE_ON_TRACE) != 0;
	if (pauses && live->change.pauses++ == 0) {
		live->change.was_on = gt_session_tracing_on(live->session);
		if (live->change.was_on)
			switch_top(live, false);
	}
	pthread_mutex_unlock(&live->change.lock);
	return pauses;
}

static void unpause_tracing(struct gt_live *live)
{
	pthread_mutex_lock(&live->change.lock);
	if (--live->change.pauses == 0 && live->change.was_on)
		switch_top(live, true);
	pthread_mutex_unlock(&live->change.lock);
}

/* The trace. trace_pipe's reader outlives its client: the next client continues where the last
 * one stopped, and `trace` skips what was given of unfinished sub-buffers. The reader is made
 * anew after the ring was cleared, or if options change its text. */

struct live_text {
	struct gt_text_reader *reader; /* NULL: the whole trace's */
	struct gt_store *store;	       /* its source; NULL: the session itself */
	bool thread;		       /* it is the pipe of a thread or CPU */
	uint32_t cpu;		       /* … of CPU cpu - 1; 0: of a thread */
	bool pauses;		       /* options/pause-on-trace was on */
};

int gt_live_text_of(struct gt_text_reader *reader, struct gt_store *store, void **text_out)
{
	struct live_text *text = calloc(1, sizeof(*text));

	if (text == NULL)
		return GT_ENOMEM;
	text->reader = reader;
	text->store = store;
	*text_out = text;
	return 0;
}

static void let_go(struct gt_live *live, bool cpu)
{
	pthread_mutex_lock(&live->lock);
	if (cpu)
		live->cpus_busy--;
	else
		live->pipe_busy = false;
	pthread_mutex_unlock(&live->lock);
}

/* reader: that of a thread's or CPU's pipe; NULL: the whole trace's. */
static int open_pipe(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_text_reader **reader, struct gt_message *message)
{
	bool cpu = look->scope.kind == GT_SCOPE_CPU;
	bool busy;
	int error;

	pthread_mutex_lock(&live->lock);
	busy = live->pipe_busy || (!cpu && live->cpus_busy > 0);
	if (!busy && cpu)
		live->cpus_busy++;
	else if (!busy)
		live->pipe_busy = true;
	pthread_mutex_unlock(&live->lock);
	if (busy)
		return gt_fail(message, GT_EBUSY, "trace_pipe is being read by somebody else");
	pthread_mutex_lock(&live->reading.lock);
	error = cpu		 ? gt_live_cpu_open(live, look, reader, message)
		: reader != NULL ? gt_live_thread_pipe_open(live, look, reader, message)
				 : gt_live_need_pipe(live, look, message);
	pthread_mutex_unlock(&live->reading.lock);
	if (error != 0)
		let_go(live, cpu);
	return error;
}

int gt_live_open_trace(struct gt_live *live, const struct gt_text_look *look,
		       struct gt_text_reader **reader, struct gt_message *message)
{
	int error = gt_text_reader_open(live->control.view, look, false, reader, message);
	struct gt_merge_given *given;
	uint32_t count;

	if (error != 0)
		return error;
	pthread_mutex_lock(&live->reading.lock);
	if (live->reading.raw != NULL) {
		error = gt_live_raw_given(live, &given, &count);
		if (error == 0)
			gt_text_reader_skip(*reader, given, count);
		gt_text_reader_skip_switches(*reader, gt_live_raw_switches_given(live));
	} else if (live->reading.pipe != NULL) {
		error = gt_text_reader_skip_given(*reader, live->reading.pipe);
	}
	if (error == 0)
		error = gt_live_cpus_skip(live, *reader);
	pthread_mutex_unlock(&live->reading.lock);
	if (error != 0) {
		gt_text_reader_close(*reader);
		return no_memory(message);
	}
	return 0;
}

static struct gt_clock read_clock(struct gt_session *session)
{
	struct gt_clock clock;

	gt_session_lock_sink(session);
	clock = gt_session_target(session)->clock;
	gt_session_unlock_sink(session);
	return clock;
}

void gt_live_settle_clock(struct gt_live *live)
{
	struct gt_clock clock;
	bool is_settled;

	pthread_mutex_lock(&live->lock);
	is_settled = live->shown.has_clock;
	pthread_mutex_unlock(&live->lock);
	if (is_settled)
		return;
	clock = read_clock(live->session);
	pthread_mutex_lock(&live->lock);
	if (!live->shown.has_clock)
		live->view.clock = clock;
	live->shown.has_clock = true;
	pthread_mutex_unlock(&live->lock);
}

struct gt_target *gt_live_view(struct gt_live *live)
{
	gt_live_settle_clock(live);
	return &live->view;
}

int gt_live_text_open(struct gt_control_target *target, const struct gt_control_scope *scope,
		      bool consume, void **text_out, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct live_text *text;
	struct gt_text_look look;
	int error;

	text = calloc(1, sizeof(*text));
	if (text == NULL)
		return no_memory(message);
	gt_live_pull(live);
	gt_live_get_look(live, &look);
	look.scope = *scope;
	gt_live_settle_clock(live);
	text->thread = consume && scope->kind != GT_SCOPE_ALL;
	text->cpu = consume && scope->kind == GT_SCOPE_CPU ? scope->number + 1 : 0;
	error = consume ? open_pipe(live, &look, text->thread ? &text->reader : NULL, message)
			: gt_live_open_trace(live, &look, &text->reader, message);
	if (error != 0) {
		free(text);
		return error;
	}
	gt_live_hold(live);
	text->pauses = !consume && live->top == NULL && pause_tracing(live);
	*text_out = text;
	return 0;
}

int64_t gt_live_text_read(struct gt_control_target *target, void *data, char *buffer, size_t bytes,
			  struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct live_text *text = data;
	struct gt_text_look look;
	int64_t got;

	if (text->reader != NULL && !text->thread)
		return gt_text_reader_read(text->reader, buffer, bytes, message);
	gt_live_pull(live);
	gt_live_get_look(live, &look);
	pthread_mutex_lock(&live->reading.lock);
	gt_text_reader_update(text->thread ? text->reader : live->reading.pipe, &look);
	/* Checked before reading, so that this read sees all that came before the end. */
	if (atomic_load(&live->ended))
		gt_text_reader_finish(text->thread ? text->reader : live->reading.pipe);
	got = gt_text_reader_read(text->thread ? text->reader : live->reading.pipe, buffer, bytes,
				  message);
	if (text->cpu != 0)
		gt_live_cpu_note(live, text->cpu - 1);
	pthread_mutex_unlock(&live->reading.lock);
	return got;
}

void gt_live_text_close(struct gt_control_target *target, void *data)
{
	struct gt_live *live = live_of(target);
	struct live_text *text = data;

	if (text->reader != NULL && !text->thread) {
		gt_text_reader_close(text->reader);
		gt_store_put(text->store);
		if (text->pauses)
			unpause_tracing(live);
	} else {
		pthread_mutex_lock(&live->reading.lock);
		if (text->cpu != 0)
			gt_live_cpu_close(live, text->cpu - 1);
		else if (text->thread)
			gt_live_thread_pipe_close(live, text->reader);
		pthread_mutex_unlock(&live->reading.lock);
		let_go(live, text->cpu != 0);
	}
	if (text->store == NULL)
		gt_live_release(live);
	free(text);
}

/* Marks the records that a thread's or CPU's pipe would give as given. */
static int clear_one(struct gt_control_target *target, const struct gt_control_scope *scope,
		     struct gt_message *message)
{
	char *text = malloc(DISCARD_BYTES);
	void *pipe;
	int error = text != NULL ? gt_live_text_open(target, scope, true, &pipe, message)
				 : no_memory(message);

	for (int i = 0; error == 0 && i < GT_TEXT_DISCARDS_MOST; i++) {
		if (gt_live_text_read(target, pipe, text, DISCARD_BYTES, message) <= 0)
			break;
	}
	if (error == 0)
		gt_live_text_close(target, pipe);
	free(text);
	return error;
}

int gt_live_clear(struct gt_control_target *target, const struct gt_control_scope *scope,
		  struct gt_message *message)
{
	if (scope->kind != GT_SCOPE_ALL)
		return clear_one(target, scope, message);
	return gt_live_empty(live_of(target), message);
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
	pthread_mutex_lock(&live->reading.lock);
	error = gt_live_given(live, &given, &count);
	switches_given =
		live->reading.pipe != NULL ? gt_text_reader_switches_given(live->reading.pipe) : 0;
	pthread_mutex_unlock(&live->reading.lock);
	if (error == 0) {
		gt_live_view_note_given(&live->over, given, count);
		free(given);
		error = gt_live_view_stats(&live->over, scope, stats);
	}
	if (error == 0)
		gt_live_events_count(live, scope, switches_given, stats);
	if (scope->kind == GT_SCOPE_ALL)
		stats->damaged = gt_session_damaged(live->session);
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
	if (!on)
		return gt_fail(message, GT_EBADF, "tracing is off");
	error = gt_live_view_mark(&live->over, writer, bytes, count, raw);
	if (error == GT_ENOSPC)
		return gt_fail(message, GT_EBADF, "the ring of marks is full");
	return error != 0 ? no_memory(message) : 0;
}
