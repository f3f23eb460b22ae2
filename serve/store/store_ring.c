/* SPDX-License-Identifier: MIT */
/* A store as a target: the operations of a ring that readers call. See store_private.h. */
#include "serve/store/store_private.h"

#include <string.h>

static struct gt_store *store_of(struct gt_target *target)
{
	return target->data;
}

static uint32_t writer_count(struct gt_target *target)
{
	struct gt_store *store = store_of(target);
	uint32_t count;

	pthread_mutex_lock(&store->lock);
	count = store->count;
	pthread_mutex_unlock(&store->lock);
	return count;
}

/* The sequence after all pieces. */
static uint64_t behind(const struct gt_store_writer *writer)
{
	return writer->route != NULL ? writer->route->sequence : writer->position;
}

/* In a routed store, records say what the source has lost and what found no room here. Such losses count as lost for
 * lack of room while their record is there, and as overwritten once it is overwritten. */
static void count_routed(const struct gt_store_writer *writer, uint64_t *lost)
{
	uint64_t *full = &lost[GRAFTRACE_LOST_FULL], *overrun = &lost[GRAFTRACE_LOST_OVERRUN];

	*full += *overrun;
	*overrun = writer->overrun_losses < *full ? writer->overrun_losses : *full;
	*full -= *overrun;
}

/* Sums what was lost since the store began: by the source, and here for lack of room. */
static void count_lost(const struct gt_store_writer *writer, uint64_t *lost)
{
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		lost[cause] -= writer->lost_before[cause] < lost[cause] ? writer->lost_before[cause]
									: lost[cause];
	lost[GRAFTRACE_LOST_FULL] += writer->dropped + writer->dropping +
				     (writer->route != NULL ? writer->route->dropped : 0);
	if (writer->route != NULL)
		count_routed(writer, lost);
	lost[GRAFTRACE_LOST_OVERRUN] += writer->overrun;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_store *store = store_of(target);
	int error = GT_ENOENT;

	pthread_mutex_lock(&store->lock);
	if (index < store->count) {
		const struct gt_store_writer *from = &store->writers[index];

		*out = from->writer;
		out->first = from->first != NULL ? from->first->sequence : behind(from);
		out->next = from->last != NULL ? from->last->sequence + 1 : behind(from);
		count_lost(from, out->lost);
		error = 0;
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

static int64_t sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence, void *buffer,
			  const struct graftrace_sub_buffer **bytes)
{
	struct gt_store *store = store_of(target);
	int64_t words = GT_ENOENT;
	const struct gt_store_piece *piece = NULL;

	pthread_mutex_lock(&store->lock);
	if (index < store->count)
		piece = gt_store_find(&store->writers[index], sequence);
	if (piece != NULL && piece->sequence == sequence) {
		memcpy(buffer, &piece->sub_buffer, sizeof(piece->sub_buffer) + piece->words * 8ull);
		words = piece->words;
	}
	pthread_mutex_unlock(&store->lock);
	*bytes = buffer;
	return words;
}

static uint64_t next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_store *store = store_of(target);
	const struct gt_store_piece *piece = NULL;
	uint64_t next = sequence;

	pthread_mutex_lock(&store->lock);
	if (index < store->count) {
		piece = gt_store_find(&store->writers[index], sequence);
		next = behind(&store->writers[index]);
	}
	if (piece != NULL)
		next = piece->sequence;
	pthread_mutex_unlock(&store->lock);
	return next;
}

static int consume(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_store *store = store_of(target);
	int error = GT_ENOENT;

	pthread_mutex_lock(&store->lock);
	while (index < store->count && store->writers[index].first != NULL &&
	       store->writers[index].first->sequence <= sequence &&
	       !store->writers[index].first->growing) {
		gt_store_drop_first(store, &store->writers[index]);
		error = 0;
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

static int hold(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_store *store = store_of(target);
	struct gt_store_piece *piece = NULL;
	int error = GT_ENOENT;

	pthread_mutex_lock(&store->lock);
	if (index < store->count)
		piece = gt_store_find(&store->writers[index], sequence);
	if (piece != NULL && piece->sequence == sequence) {
		error = piece->growing ? GT_EAGAIN : 0;
		if (error == 0)
			gt_store_take_out(store, piece);
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

/* The clock up to which all writers were copied: they are copied one after the other. UINT64_MAX, no limit, while a
 * command is due: copying stands still then, and the command must see all records that were copied. */
static uint64_t now(struct gt_target *target)
{
	struct gt_store *store = store_of(target);
	uint64_t clock;

	pthread_mutex_lock(&store->lock);
	clock = store->frozen || store->route.due != 0 || store->pulled == 0 ? UINT64_MAX
									     : store->pulled;
	pthread_mutex_unlock(&store->lock);
	return clock;
}

const struct gt_ring_ops gt_store_ring = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.consume = consume,
	.hold = hold,
	.next_sequence = next_sequence,
	.now = now,
};

struct gt_target *gt_store_target(struct gt_store *store)
{
	return &store->target;
}
