/* SPDX-License-Identifier: MIT */
/*
 * Copying new records from the source into a store. See store.h. A sub-buffer that is still written
 * is copied again at each pull until it is complete.
 */
#include "serve/store/store_private.h"
#include "core/trace/word_walk.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int find_writers(struct gt_store *store)
{
	uint32_t count = store->source->ring->writer_count(store->source);

	if (count > store->room) {
		uint32_t room = count + count / 2 + 16;
		struct gt_store_writer *grown =
			realloc(store->writers, room * sizeof(*store->writers));
		uint32_t *active = realloc(store->active, room * sizeof(*store->active));

		store->writers = grown != NULL ? grown : store->writers;
		store->active = active != NULL ? active : store->active;
		if (grown == NULL || active == NULL)
			return GT_ENOMEM;
		store->room = room;
	}
	for (; store->count < count; store->count++) {
		struct gt_store_writer *writer = &store->writers[store->count];

		*writer = (struct gt_store_writer){ 0 };
		if (store->routed) {
			writer->route = malloc(sizeof(*writer->route));
			if (writer->route == NULL)
				return GT_ENOMEM;
			gt_route_writer_init(writer->route);
		}
		store->active[store->active_count++] = store->count;
	}
	return 0;
}

/* Records that the writer lost before now are not counted in this store. */
static void begin_counting(struct gt_store *store, uint32_t index)
{
	struct gt_store_writer *writer = &store->writers[index];
	struct gt_writer now;

	if (!store->routed || store->source->ring->writer(store->source, index, &now) != 0)
		return;
	writer->writer = now;
	memcpy(writer->lost_before, now.lost, sizeof(now.lost));
}

int gt_store_begin(struct gt_store *store, const struct gt_merge_given *positions, uint32_t count)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = find_writers(store);
	for (uint32_t i = 0; error == 0 && i < store->count; i++) {
		begin_counting(store, i);
		if (i >= count) /* nothing of it was given yet */
			continue;
		store->writers[i].position = positions[i].sequence;
		if (store->writers[i].route == NULL)
			continue;
		store->writers[i].route->skip = positions[i].words;
		/* its numbers follow the source's: a writer's sequences stay unique */
		store->writers[i].route->sequence =
			positions[i].sequence + (positions[i].words != 0);
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_begin_now(struct gt_store *store)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = find_writers(store);
	for (uint32_t i = 0; error == 0 && i < store->count; i++) {
		struct gt_writer writer;

		begin_counting(store, i);
		if (store->source->ring->writer(store->source, i, &writer) == 0 &&
		    writer.first < writer.next)
			store->writers[i].position = writer.next - 1;
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

/* Routed: the newest piece has grown. */
static void settle(struct gt_store_writer *writer)
{
	struct gt_store_piece *last = writer->last;

	if (last == NULL || !last->growing)
		return;
	last->growing = writer->route->piece != NULL;
	last->words = last->growing ? writer->route->used : last->sub_buffer.used;
}

struct graftrace_sub_buffer *gt_store_open_piece(void *data, struct gt_route_writer *route)
{
	struct gt_store *store = data;
	size_t bytes = offsetof(struct gt_store_piece, sub_buffer) + GT_ROUTE_PIECE_BYTES;
	struct gt_store_writer *writer = store->in_work;
	struct gt_store_piece *piece = NULL;

	settle(writer);
	if (gt_store_make_room(store, writer, bytes))
		piece = calloc(1, bytes);
	if (piece == NULL)
		return NULL;
	piece->sequence = route->sequence;
	piece->growing = true;
	piece->room = bytes;
	gt_store_append(store, writer, piece);
	return &piece->sub_buffer;
}

/* There is no room for all of the copied sub-buffer: the part copied before stays. */
static void drop_copy(struct gt_store *store, struct gt_store_writer *to,
		      struct gt_store_piece *old, uint32_t words, bool growing)
{
	uint64_t records = gt_words_records(store->copy, old != NULL ? old->words : 0, words);

	if (growing) {
		to->dropping = records; /* there may be room at the next pull */
		return;
	}
	to->dropped += records;
	to->dropping = 0;
	if (old == NULL)
		return;
	old->growing = false;
	old->sub_buffer.used = old->words;
}

/* Makes a piece of the copied sub-buffer; NULL: no memory. */
static struct gt_store_piece *copied_piece(const struct graftrace_sub_buffer *copy, uint32_t words,
					   bool growing)
{
	struct gt_store_piece *piece = malloc(gt_store_piece_bytes(words));

	if (piece == NULL)
		return NULL;
	piece->next = NULL;
	piece->sequence = copy->sequence;
	piece->room = 0;
	piece->words = words;
	piece->growing = growing;
	piece->held = false;
	memcpy(&piece->sub_buffer, copy, sizeof(*copy) + words * 8ull);
	piece->sub_buffer.used = growing ? 0 : words;
	return piece;
}

/* Appends the copied sub-buffer to the writer's pieces, or replaces the growing one. */
static int keep(struct gt_store *store, struct gt_store_writer *to, uint32_t words, bool growing)
{
	const struct graftrace_sub_buffer *copy = store->copy;
	struct gt_store_piece *old =
		to->last != NULL && to->last->growing && to->last->sequence == copy->sequence
			? to->last
			: NULL;
	size_t old_bytes = old != NULL ? gt_store_piece_bytes(old->words) : 0;
	struct gt_store_piece *piece;

	if (!gt_store_make_room(store, to, gt_store_piece_bytes(words) - old_bytes)) {
		drop_copy(store, to, old, words, growing);
		return 0;
	}
	piece = copied_piece(copy, words, growing);
	if (piece == NULL)
		return GT_ENOMEM;
	to->dropping = 0;
	if (old != NULL)
		gt_store_replace_last(store, to, piece);
	else
		gt_store_append(store, to, piece);
	return 0;
}

/* Copies the sub-buffer at the writer's position, and holds it: the source must not count what
 * the store has as overwritten. Returns the words, or a negative enum gt_error: it does not
 * exist. */
static int64_t copy_next(struct gt_store *store, uint32_t index)
{
	struct gt_target *source = store->source;
	const struct gt_store_writer *to = &store->writers[index];
	const struct graftrace_sub_buffer *bytes = store->copy;
	int64_t words = source->ring->sub_buffer(source, index, to->position, store->copy, &bytes);

	if (words < 0)
		return words;
	if (bytes->used != 0 && source->ring->hold != NULL &&
	    source->ring->hold(source, index, to->position) == GT_ENOENT)
		return GT_ENOENT;
	if (bytes != store->copy)
		memcpy(store->copy, bytes, sizeof(*bytes) + (size_t)words * 8);
	return words;
}

/* The source has overwritten all before `sequence`, and counts it; what was copied before is
 * still here. */
static void pass(struct gt_store_writer *to, uint64_t sequence)
{
	to->lost_before[GRAFTRACE_LOST_OVERRUN] += to->begun;
	to->begun = 0;
	to->position = sequence;
}

/* Records that the source has overwritten since the store began, without those that are in it. */
static uint64_t overwritten_by_source(struct gt_store *store, uint32_t index)
{
	uint64_t before = store->writers[index].lost_before[GRAFTRACE_LOST_OVERRUN];
	struct gt_writer now;

	if (store->source->ring->writer(store->source, index, &now) != 0 ||
	    now.lost[GRAFTRACE_LOST_OVERRUN] < before)
		return 0;
	return now.lost[GRAFTRACE_LOST_OVERRUN] - before;
}

/* Takes the copied sub-buffer over. GT_ENOMEM: it has to come again; GT_EAGAIN: so it has, and a command is
 * due. */
static int take_copy(struct gt_store *store, uint32_t index, uint32_t words, bool growing)
{
	struct gt_store_writer *to = &store->writers[index];
	int error;

	if (to->route == NULL)
		return words > 0 ? keep(store, to, words, growing) : 0;
	store->in_work = to;
	error = gt_route_feed(&store->route, to->route, store->copy, words, growing,
			      overwritten_by_source(store, index));
	settle(to);
	return error == GT_EFORMAT ? 0 : error; /* the route tells of it */
}

/* Copies what the writer has from its position on. Errors as take_copy's. */
static int pull_sub_buffers(struct gt_store *store, uint32_t index)
{
	struct gt_store_writer *to = &store->writers[index];
	const struct graftrace_sub_buffer *copy = store->copy;

	while (to->position < to->writer.next) {
		int64_t words = copy_next(store, index);
		bool growing;
		int error;

		if (words < 0) {
			if (to->position + 1 == to->writer.next)
				break; /* its header is not written yet */
			pass(to, to->position + 1);
			continue;
		}
		growing = copy->used == 0;
		if (growing)
			words = gt_words_whole(store->copy, (uint32_t)words);
		error = take_copy(store, index, (uint32_t)words, growing);
		if (error != 0)
			return error;
		to->begun = growing ? gt_words_records(copy, 0, (uint32_t)words) : 0;
		if (growing)
			break;
		to->position++;
	}
	return 0;
}

static int pull_writer(struct gt_store *store, uint32_t index)
{
	struct gt_target *source = store->source;
	struct gt_store_writer *to = &store->writers[index];
	int error;

	if (source->ring->writer(source, index, &to->writer) != 0)
		return 0;
	if (to->position < to->writer.first)
		pass(to, to->writer.first);
	error = pull_sub_buffers(store, index);
	/* A thread that has ended writes nothing more. */
	if (error == 0 && to->route != NULL && to->writer.end != 0 &&
	    to->position >= to->writer.next) {
		gt_route_close(to->route);
		settle(to);
	}
	return error;
}

/* Its thread has ended, and all that there was of it has been copied and read since. */
static bool is_over(const struct gt_store_writer *writer)
{
	return writer->writer.end != 0 && writer->writer.first >= writer->writer.next &&
	       writer->position >= writer->writer.next && writer->first == NULL;
}

/* Errors as take_copy's. */
static int pull_writers(struct gt_store *store)
{
	for (uint32_t i = 0; i < store->active_count;) {
		int error = pull_writer(store, store->active[i]);

		if (error != 0)
			return error;
		if (is_over(&store->writers[store->active[i]]))
			store->active[i] = store->active[--store->active_count];
		else
			i++;
	}
	return 0;
}

int gt_store_pull(struct gt_store *store)
{
	uint64_t clock;
	int error = 0;

	pthread_mutex_lock(&store->lock);
	clock = gt_target_now(store->source);
	if (!store->frozen)
		error = find_writers(store);
	if (store->route.due != 0)
		error = GT_EAGAIN;
	if (!store->frozen && error == 0)
		error = pull_writers(store);
	if (error == 0)
		store->pulled = clock;
	pthread_mutex_unlock(&store->lock);
	return error;
}

void gt_store_rest(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->pulled = 0;
	pthread_mutex_unlock(&store->lock);
}

void gt_store_freeze(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->frozen = true;
	for (uint32_t i = 0; i < store->count; i++) {
		struct gt_store_piece *last = store->writers[i].last;

		if (last == NULL || !last->growing)
			continue;
		if (store->writers[i].route != NULL) {
			gt_route_close(store->writers[i].route);
			settle(&store->writers[i]);
			continue;
		}
		last->growing = false;
		last->sub_buffer.used = last->words;
	}
	pthread_mutex_unlock(&store->lock);
}

int gt_store_positions(struct gt_store *store, struct gt_merge_given **positions, uint32_t *count)
{
	int error = 0;

	pthread_mutex_lock(&store->lock);
	*count = store->count;
	*positions = calloc(store->count + 1, sizeof(**positions));
	if (*positions == NULL)
		error = GT_ENOMEM;
	for (uint32_t i = 0; error == 0 && i < store->count; i++) {
		const struct gt_store_writer *from = &store->writers[i];

		(*positions)[i].sequence = from->position;
		if (from->last != NULL && from->last->sequence == from->position)
			(*positions)[i].words = from->last->words;
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

void gt_store_consume_source(struct gt_store *store)
{
	struct gt_target *source = store->source;

	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; source->ring->consume != NULL && i < store->active_count; i++) {
		uint32_t index = store->active[i];
		struct gt_writer writer;

		if (source->ring->writer(source, index, &writer) != 0)
			continue;
		for (uint64_t at = writer.first; at < store->writers[index].position; at++)
			source->ring->consume(source, index, at);
	}
	pthread_mutex_unlock(&store->lock);
}
