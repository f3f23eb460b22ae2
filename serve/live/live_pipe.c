/* SPDX-License-Identifier: MIT */
/*
 * Readers of a session's trace: trace_pipe's, those of threads, and clearing the ring. Guarantees:
 * each reader skips what any other has given. Any thread; a read holds reading.lock while it makes
 * a block of text.
 */
#include "serve/live/live_events.h"
#include "serve/live/live_instance.h"

#include <stdlib.h>
#include <string.h>

/* Gets the current options for the text of the whole trace. */
void gt_live_get_look(struct gt_live *live, struct gt_text_look *look)
{
	memset(look, 0, sizeof(*look));
	pthread_mutex_lock(&live->lock);
	look->clock = live->shown.clock;
	look->time_start = live->shown.time_start;
	look->names_kept = (uint32_t)live->shown.cmdlines;
	look->options = live->shown.options & GT_OPTIONS_OF_TEXT;
	look->switches = live->shown.switch_window_count > 0;
	look->switch_window_count = live->shown.switch_window_count;
	memcpy(look->switch_windows, live->shown.switch_windows, sizeof(look->switch_windows));
	look->masks = live->shown.masks;
	pthread_mutex_unlock(&live->lock);
}

/* Under reading.lock: makes the pipe's reader, positioned after what the readers of
 * trace_pipe_raw have given. */
static int take_over(struct gt_live *live, const struct gt_text_look *look,
		     struct gt_message *message)
{
	struct gt_text_reader *pipe;
	struct gt_merge_given *given;
	uint32_t count;
	int error = gt_live_raw_given(live, &given, &count);

	if (error != 0)
		return no_memory(message);
	error = gt_text_reader_open(live->control.view, look, true, &pipe, message);
	if (error != 0) {
		free(given);
		return error;
	}
	gt_text_reader_skip(pipe, given, count);
	gt_text_reader_skip_switches(pipe, gt_live_raw_switches_given(live));
	if (gt_live_cpus_skip(live, pipe) != 0) {
		gt_text_reader_close(pipe);
		return no_memory(message);
	}
	gt_live_raw_destroy(live);
	if (live->reading.pipe != NULL)
		gt_text_reader_close(live->reading.pipe);
	live->reading.pipe = pipe;
	live->reading.pipe_look = *look;
	return 0;
}

/* Under reading.lock: makes the pipe's reader if there is none. */
int gt_live_need_pipe(struct gt_live *live, const struct gt_text_look *look,
		      struct gt_message *message)
{
	struct gt_text_reader *old = live->reading.pipe, *reader;
	int error;

	if (live->reading.raw != NULL)
		return take_over(live, look, message);
	if (old != NULL && memcmp(&live->reading.pipe_look, look, sizeof(*look)) == 0)
		return 0;
	error = gt_text_reader_open(live->control.view, look, true, &reader, message);
	if (error != 0)
		return error;
	/* The new reader does not know the old one's positions: it begins after the records given. */
	if (old != NULL)
		error = gt_text_reader_skip_given(reader, old);
	if (error == 0)
		error = gt_live_cpus_skip(live, reader);
	if (error != 0) {
		gt_text_reader_close(reader);
		return no_memory(message);
	}
	if (old != NULL)
		gt_text_reader_close(old);
	live->reading.pipe = reader;
	live->reading.pipe_look = *look;
	return 0;
}

/* Records in unfinished sub-buffers cannot be freed: they are marked as given. */
int gt_live_empty(struct gt_live *live, struct gt_message *message)
{
	char *text = malloc(DISCARD_BYTES);
	struct gt_text_look look;
	uint64_t begun;
	int error = text != NULL ? 0 : GT_ENOMEM;

	gt_live_pull(live);
	if (error == 0 && live->instance == NULL && !gt_live_is_detoured(live))
		error = gt_session_clear(live->session);
	begun = __builtin_ia32_rdtsc();
	pthread_mutex_lock(&live->lock);
	live->shown.time_start = begun;
	gt_live_events_clear(live);
	pthread_mutex_unlock(&live->lock);
	gt_live_get_look(live, &look);
	gt_live_view_clear(&live->over);
	if (live->instance == NULL && gt_live_is_detoured(live)) {
		/* First copies records of unfinished sub-buffers for which there was no room. */
		gt_live_pull(live);
		gt_live_view_clear(&live->over);
	}
	pthread_mutex_lock(&live->reading.lock);
	if (error == 0 && gt_live_raw_discard(live, begun)) {
		pthread_mutex_unlock(&live->reading.lock);
		free(text);
		return 0;
	}
	if (error == 0)
		error = gt_live_need_pipe(live, &look, message);
	/* Up to what is written from now on: a program that writes faster than this reads would never
	 * let it end. */
	if (error == 0)
		gt_text_reader_discard(live->reading.pipe, begun, text, DISCARD_BYTES);
	if (error == 0)
		gt_live_cpus_empty(live, begun, text, DISCARD_BYTES);
	pthread_mutex_unlock(&live->reading.lock);
	free(text);
	if (error != 0)
		gt_message_set(message, "the ring cannot be emptied");
	return error;
}

/* Threads' pipes */

int gt_live_given(struct gt_live *live, struct gt_merge_given **given, uint32_t *count)
{
	if (live->reading.raw != NULL)
		return gt_live_raw_given(live, given, count);
	if (live->reading.pipe != NULL)
		return gt_text_reader_given(live->reading.pipe, given, count);
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
	if (error == 0 && (gt_text_reader_skip_given(*reader, live->reading.pipe) != 0 ||
			   gt_live_cpus_skip(live, *reader) != 0))
		error = no_memory(message);
	if (error != 0)
		gt_text_reader_close(*reader);
	return error;
}

/* The whole trace's reader is made anew, after all that both have given. Without memory it gives
 * again what the thread's reader has given. */
void gt_live_thread_pipe_close(struct gt_live *live, struct gt_text_reader *reader)
{
	struct gt_text_reader *pipe = NULL;
	struct gt_merge_given *given = NULL;
	struct gt_merge_given *own = NULL;
	uint32_t count = 0;
	uint32_t own_count = 0;

	if (live->reading.pipe != NULL &&
	    gt_text_reader_given(live->reading.pipe, &given, &count) == 0 &&
	    gt_text_reader_given(reader, &own, &own_count) == 0 &&
	    gt_text_reader_open(&live->view, &live->reading.pipe_look, true, &pipe, NULL) == 0) {
		gt_text_reader_skip_switches(pipe,
					     gt_text_reader_switches_given(live->reading.pipe));
		gt_live_cpus_skip(live, pipe);
		for (uint32_t i = 0; i < count && i < own_count; i++) {
			if (own[i].sequence > given[i].sequence ||
			    (own[i].sequence == given[i].sequence && own[i].words > given[i].words))
				given[i] = own[i];
		}
		gt_text_reader_skip(pipe, given, count);
		gt_text_reader_close(live->reading.pipe);
		live->reading.pipe = pipe;
		given = NULL;
	}
	free(given);
	free(own);
	gt_text_reader_close(reader);
}
