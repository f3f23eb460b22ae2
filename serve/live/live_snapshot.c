/* SPDX-License-Identifier: MIT */
/*
 * The snapshot of a session: all records in the ring are copied into a store, and trace_pipe's
 * reader continues after them. So each record is either in the snapshot or comes later, never both
 * or neither, while the program goes on writing. Records that trace_pipe had given before are not
 * in the snapshot.
 */
#include "serve/live/live_instance.h"

#include <stdlib.h>
#include <string.h>

#include "core/trace/word_walk.h"
#include "serve/store/store.h"

/* Ends the windows of sched_switch: context switches before that clock are shown. */
static void end_windows(struct gt_text_look *look, uint64_t clock)
{
	for (uint32_t i = 0; i < look->switch_window_count; i++) {
		if (look->switch_windows[i].to > clock)
			look->switch_windows[i].to = clock;
	}
}

/* Under reading.lock. */
static int take(struct gt_live *live, const struct gt_text_look *look, struct gt_message *message)
{
	struct gt_merge_given *before = NULL, *after = NULL;
	struct gt_text_reader *pipe = NULL;
	struct gt_store *store = NULL;
	uint32_t before_count = 0, after_count = 0;
	uint64_t now;
	int error;

	if (gt_live_raw_is_open(live))
		return gt_fail(message, GT_EBUSY, "not while trace_pipe_raw is being read");
	error = gt_live_need_pipe(live, look, message);
	if (error == 0)
		error = gt_text_reader_given(live->reading.pipe, &before, &before_count);
	if (error == 0)
		error = gt_store_create(live->control.view, 0, false, &store);
	if (error == 0)
		error = gt_store_begin(store, before, before_count);
	if (error == 0)
		error = gt_store_pull(store);
	if (error == 0)
		error = gt_store_positions(store, &after, &after_count);
	if (error == 0)
		error = gt_text_reader_open(live->control.view, look, true, &pipe, message);
	if (error != 0) {
		gt_store_put(store);
		free(before);
		free(after);
		return gt_fail(message, error, "no memory for a snapshot");
	}
	now = __builtin_ia32_rdtsc();
	gt_text_reader_skip(pipe, after, after_count);
	gt_text_reader_skip_switches(pipe, now);
	live->reading.snapshot.switches_given = gt_text_reader_switches_given(live->reading.pipe);
	live->reading.snapshot.look = *look;
	end_windows(&live->reading.snapshot.look, now + 1);
	gt_text_reader_close(live->reading.pipe);
	live->reading.pipe = pipe;
	gt_store_consume_source(store);
	gt_store_freeze(store);
	gt_store_put(live->reading.snapshot.store);
	free(live->reading.snapshot.given);
	live->reading.snapshot.store = store;
	live->reading.snapshot.given = before;
	live->reading.snapshot.count = before_count;
	live->reading.snapshot.allocated = true;
	return 0;
}

void gt_live_snapshot_forget(struct gt_live *live)
{
	gt_store_put(live->reading.snapshot.store);
	free(live->reading.snapshot.given);
	live->reading.snapshot.store = NULL;
	live->reading.snapshot.given = NULL;
	live->reading.snapshot.count = 0;
}

/* Records that are written to a file as they come cannot be copied here; a snapshot would take
 * them from the file. */
int gt_live_snapshot_can(const struct gt_live *live, struct gt_message *message)
{
	if (live->mode != GRAFTRACE_MODE_DRAIN)
		return 0;
	return gt_fail(message, GT_EBUSY,
		       "records go to a file as they come: there are no snapshots "
		       "(--serve and --overwrite record into a ring)");
}

int gt_live_snapshot_take(struct gt_live *live, struct gt_message *message)
{
	struct gt_text_look look;
	int error = gt_live_snapshot_can(live, message);

	if (error != 0)
		return error;
	gt_live_get_look(live, &look);
	gt_live_settle_clock(live);
	pthread_mutex_lock(&live->reading.lock);
	error = take(live, &look, message);
	pthread_mutex_unlock(&live->reading.lock);
	return error;
}

int gt_live_snapshot(struct gt_control_target *target, enum gt_control_snapshot action,
		     const struct gt_control_scope *scope, struct gt_message *message)
{
	struct gt_live *live = live_of(target);

	if (scope->kind != GT_SCOPE_ALL)
		return gt_fail(message, GT_EINVAL,
			       "the snapshot is cleared as a whole: the file snapshot at "
			       "the top");
	gt_live_pull(live);
	if (action == GT_SNAPSHOT_TAKE)
		return gt_live_snapshot_take(live, message);
	pthread_mutex_lock(&live->reading.lock);
	gt_live_snapshot_forget(live);
	if (action == GT_SNAPSHOT_FREE)
		live->reading.snapshot.allocated = false;
	pthread_mutex_unlock(&live->reading.lock);
	return 0;
}

/* Does the writer have records that no reader had been given when the snapshot was taken? */
static bool has_records(struct gt_target *target, uint32_t index, struct gt_merge_given given,
			void *buffer)
{
	const struct graftrace_sub_buffer *bytes;
	struct gt_writer writer;
	uint64_t at;

	if (target->ring->writer(target, index, &writer) != 0)
		return false;
	at = writer.first > given.sequence ? writer.first : given.sequence;
	for (; at < writer.next; at = gt_target_next_sequence(target, index, at + 1)) {
		int64_t words = target->ring->sub_buffer(target, index, at, buffer, &bytes);
		uint32_t from = at == given.sequence ? (uint32_t)given.words : 0;

		if (words > 0 && gt_words_records(bytes, from, (uint32_t)words) > 0)
			return true;
	}
	return false;
}

/* Under reading.lock. A snapshot is not empty if it has context switches to show. */
static bool is_empty(const struct gt_live *live)
{
	struct gt_target *target = gt_store_target(live->reading.snapshot.store);
	void *buffer = malloc(target->sub_buffer_bytes);
	bool empty = buffer != NULL && !live->reading.snapshot.look.switches;

	for (uint32_t i = target->ring->writer_count(target); empty && i-- > 0;) {
		struct gt_merge_given given = { 0, 0 };

		if (i < live->reading.snapshot.count)
			given = live->reading.snapshot.given[i];
		empty = !has_records(target, i, given, buffer);
	}
	free(buffer);
	return empty;
}

int gt_live_snapshot_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			  void **text, struct gt_message *message)
{
	struct gt_live *live = live_of(target);
	struct gt_merge_given *given = NULL;
	struct gt_text_reader *reader;
	struct gt_text_look look;
	int error = GT_SNAPSHOT_FREED;

	gt_live_pull(live); /* a pending command of an instance may take one */
	gt_live_get_look(live, &look);
	look.scope = *scope;
	pthread_mutex_lock(&live->reading.lock);
	look.switches = live->reading.snapshot.look.switches;
	look.switch_window_count = live->reading.snapshot.look.switch_window_count;
	memcpy(look.switch_windows, live->reading.snapshot.look.switch_windows,
	       sizeof(look.switch_windows));
	look.masks = live->reading.snapshot.look.masks;
	if (live->reading.snapshot.store == NULL || is_empty(live)) {
		error = live->reading.snapshot.allocated ? GT_SNAPSHOT_EMPTY : GT_SNAPSHOT_FREED;
		goto unlock;
	}
	given = calloc(live->reading.snapshot.count + 1, sizeof(*given));
	error = given != NULL ? gt_text_reader_open(gt_store_target(live->reading.snapshot.store),
						    &look, false, &reader, message)
			      : no_memory(message);
	if (error != 0) {
		free(given);
		goto unlock;
	}
	memcpy(given, live->reading.snapshot.given, live->reading.snapshot.count * sizeof(*given));
	gt_text_reader_skip(reader, given, live->reading.snapshot.count);
	gt_text_reader_skip_switches(reader, live->reading.snapshot.switches_given);
	/* Skips what a CPU's trace_pipe has given, before the snapshot or after. */
	error = gt_live_cpus_skip(live, reader);
	if (error == 0)
		error = gt_live_text_of(reader, live->reading.snapshot.store, text);
	if (error == 0) {
		gt_store_get(live->reading.snapshot.store);
	} else {
		gt_text_reader_close(reader);
		error = no_memory(message);
	}
unlock:
	pthread_mutex_unlock(&live->reading.lock);
	return error != 0 ? error : GT_SNAPSHOT_TAKEN;
}
