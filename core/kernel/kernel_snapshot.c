/* SPDX-License-Identifier: MIT */
/*
 * A kernel's snapshot: what was in the ring at one moment, copied a sub-buffer at a time into
 * memory of its own; the ring is empty behind it. A record is in the snapshot or comes later. The
 * copy is a target for the text like the ring. Changes under the machine's lock; readers keep a
 * snapshot that was replaced until they are done.
 */
#include "core/kernel/kernel_private.h"
#include "core/trace/word_walk.h"

struct piece {
	struct piece *next;
	uint32_t writer, words;
	uint64_t sequence;
	struct graftrace_sub_buffer sub; /* and its words behind it */
};

struct gt_arena_snapshot {
	struct gt_target target;
	struct gt_arena_control *control;
	uint32_t users; /* readers, and the control while it is the newest */
	uint32_t writers;
	struct gt_writer writer[GT_ARENA_WRITERS];
	struct piece *first[GT_ARENA_WRITERS], *last[GT_ARENA_WRITERS];
	struct gt_merge_given given[GT_ARENA_WRITERS]; /* out of the ring before */
};

static struct gt_arena_snapshot *self(struct gt_target *target)
{
	return target->data;
}

/* ---- as a target ---- */

static uint32_t writer_count(struct gt_target *target)
{
	return self(target)->writers;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	const struct gt_arena_snapshot *snapshot = self(target);
	if (index >= snapshot->writers)
		return GT_ENOENT;
	*out = snapshot->writer[index];
	return 0;
}

static const struct piece *piece_from(const struct gt_arena_snapshot *snapshot, uint32_t index,
				      uint64_t sequence)
{
	const struct piece *piece = index < snapshot->writers ? snapshot->first[index] : NULL;
	while (piece != NULL && piece->sequence < sequence)
		piece = piece->next;
	return piece;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	const struct piece *piece = piece_from(self(target), index, sequence);
	(void)buffer;
	if (piece == NULL || piece->sequence != sequence)
		return GT_ENOENT;
	*bytes = &piece->sub;
	return piece->words;
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	const struct piece *piece = piece_from(self(target), index, sequence);
	return piece != NULL		       ? piece->sequence
	       : index < self(target)->writers ? self(target)->writer[index].next
					       : sequence;
}

static const struct gt_ring_ops ring_operations = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.next_sequence = next_sequence,
};

struct gt_target *gt_arena_snapshot_target(struct gt_arena_snapshot *snapshot)
{
	return &snapshot->target;
}

const struct gt_merge_given *gt_arena_snapshot_given(const struct gt_arena_snapshot *snapshot)
{
	return snapshot->given;
}

/* ---- making and freeing ---- */

static void drop(struct gt_arena_snapshot *snapshot, uint32_t index)
{
	while (snapshot->first[index] != NULL) {
		struct piece *piece = snapshot->first[index];
		snapshot->first[index] = piece->next;
		gt_memory_put(&snapshot->control->memory, piece,
			      sizeof(*piece) + piece->words * 8ull);
	}
	snapshot->last[index] = NULL;
}

static void put_locked(struct gt_arena_snapshot *snapshot)
{
	struct gt_arena_control *control = snapshot->control;
	if (--snapshot->users != 0)
		return;
	for (uint32_t i = 0; i < GT_ARENA_WRITERS; i++)
		drop(snapshot, i);
	gt_memory_put(&control->memory, snapshot, sizeof(*snapshot));
}

void gt_arena_snapshot_put(struct gt_arena_control *control, struct gt_arena_snapshot *snapshot)
{
	gt_arena_lock(control);
	put_locked(snapshot);
	gt_arena_unlock(control);
}

/* Copies one sub-buffer by way of `scratch`. How many of its words, negative: no memory. */
static int64_t copy(struct gt_arena_snapshot *snapshot, uint32_t index, uint64_t sequence,
		    struct graftrace_sub_buffer *scratch)
{
	struct gt_target *ring = &snapshot->control->view.target;
	const struct graftrace_sub_buffer *bytes;
	int64_t got = ring->ring->sub_buffer(ring, index, sequence, scratch, &bytes);
	if (got < 0)
		return 0; /* it was reused, or emptied, meanwhile */
	uint32_t words = (uint32_t)got;
	if (scratch->used == 0)
		words = gt_words_before_hole(scratch, words);
	struct piece *piece =
		gt_memory_get(&snapshot->control->memory, sizeof(*piece) + words * 8ull);
	if (piece == NULL)
		return GT_ENOMEM;
	*piece = (struct piece){ .writer = index, .words = words, .sequence = sequence };
	__builtin_memcpy(&piece->sub, scratch, sizeof(*scratch) + words * 8ull);
	piece->sub.used = words; /* closed: no more comes */
	if (snapshot->last[index] != NULL)
		snapshot->last[index]->next = piece;
	else
		snapshot->first[index] = piece;
	snapshot->last[index] = piece;
	return words;
}

static int fill(struct gt_arena_snapshot *snapshot, struct gt_merge_given *taken)
{
	struct gt_arena_control *control = snapshot->control;
	struct gt_target *ring = &control->view.target;
	struct graftrace_sub_buffer *scratch =
		gt_memory_get(&control->memory, ring->sub_buffer_bytes);
	int error = scratch != NULL ? 0 : GT_ENOMEM;
	snapshot->writers = ring->ring->writer_count(ring);
	for (uint32_t i = 0; error == 0 && i < snapshot->writers; i++) {
		struct gt_writer *now = &snapshot->writer[i];
		ring->ring->writer(ring, i, now);
		snapshot->given[i] = taken[i] = control->ring->given[i];
		uint64_t sequence = now->first;
		for (; error == 0 && sequence < now->next;
		     sequence = gt_target_next_sequence(ring, i, sequence + 1)) {
			int64_t words = copy(snapshot, i, sequence, scratch);
			error = words < 0 ? (int)words : 0;
			if (words >= 0 &&
			    (sequence > taken[i].sequence || (uint64_t)words > taken[i].words))
				taken[i] = (struct gt_merge_given){ sequence, (uint64_t)words };
		}
	}
	gt_memory_put(&control->memory, scratch, ring->sub_buffer_bytes);
	return error;
}

static int take(struct gt_arena_control *control, struct gt_message *message)
{
	struct gt_arena_ring *ring = control->ring;
	struct gt_arena_snapshot *snapshot = gt_memory_get(&control->memory, sizeof(*snapshot));
	struct gt_merge_given taken[GT_ARENA_WRITERS];
	if (snapshot == NULL)
		return gt_arena_no_memory(message);
	if (__atomic_exchange_n(&ring->consuming, 1, __ATOMIC_ACQUIRE)) {
		gt_memory_put(&control->memory, snapshot, sizeof(*snapshot));
		return REFUSE(message, GT_EBUSY, "somebody takes the trace out");
	}
	__builtin_memset(snapshot, 0, sizeof(*snapshot));
	snapshot->control = control;
	snapshot->users = 1;
	snapshot->target = control->view.target;
	snapshot->target.ring = &ring_operations;
	snapshot->target.data = snapshot;
	snapshot->target.tracer = (enum graftrace_tracer)gt_arena_tracer(control);
	int error = fill(snapshot, taken);
	for (uint32_t i = 0; error == 0 && i < snapshot->writers; i++)
		gt_arena_ring_take(ring, i, taken[i].sequence, taken[i].words);
	__atomic_store_n(&ring->consuming, 0, __ATOMIC_RELEASE);
	if (error != 0) {
		put_locked(snapshot);
		return REFUSE(message, error, "no memory for a snapshot of the ring");
	}
	if (control->snapshot != NULL)
		put_locked(control->snapshot);
	control->snapshot = snapshot;
	control->snapshot_state = GT_SNAPSHOT_TAKEN;
	return 0;
}

/* ---- operations ---- */

int gt_arena_snapshot(struct gt_control_target *target, enum gt_control_snapshot action,
		      const struct gt_control_scope *scope, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	int error = 0;
	if (gt_arena_is_latency(control->tracer)) /* as Linux: tracing_snapshot_write */
		return REFUSE(message, GT_EBUSY, "the snapshot is the latency tracer's: see trace");
	gt_arena_lock(control);
	struct gt_arena_snapshot *old = control->snapshot;
	if (action == GT_SNAPSHOT_TAKE) {
		error = take(control, message);
	} else if (scope->kind == GT_SCOPE_CPU && old != NULL && old->users > 1) {
		error = REFUSE(message, GT_EBUSY, "somebody reads the snapshot");
	} else if (scope->kind == GT_SCOPE_CPU && old != NULL && scope->number < old->writers) {
		drop(old, scope->number);
	} else if (scope->kind == GT_SCOPE_ALL) {
		if (old != NULL)
			put_locked(old);
		control->snapshot = NULL;
		control->snapshot_state = action == GT_SNAPSHOT_FREE ? GT_SNAPSHOT_FREED
					  : control->snapshot_state == GT_SNAPSHOT_FREED
						  ? GT_SNAPSHOT_FREED
						  : GT_SNAPSHOT_EMPTY;
	}
	gt_arena_unlock(control);
	return error;
}

int gt_arena_snapshot_open(struct gt_control_target *target, const struct gt_control_scope *scope,
			   void **text, struct gt_message *message)
{
	struct gt_arena_control *control = gt_arena_self(target);
	if (gt_arena_is_latency(control->tracer))
		return REFUSE(message, GT_EBUSY, "the snapshot is the latency tracer's: see trace");
	gt_arena_lock(control);
	int state = (int)control->snapshot_state;
	struct gt_arena_snapshot *snapshot = control->snapshot;
	if (snapshot != NULL)
		snapshot->users++;
	gt_arena_unlock(control);
	if (snapshot == NULL)
		return state;
	int error = gt_arena_reader_open(control, scope, false, snapshot, text, message);
	if (error != 0)
		gt_arena_snapshot_put(control, snapshot);
	return error;
}
