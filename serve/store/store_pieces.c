/* SPDX-License-Identifier: MIT */
/* Sub-buffers in a store's memory, and its limits. See store_private.h. */
#include "serve/store/store_private.h"
#include "core/trace/word_walk.h"

#include <stddef.h>
#include <stdlib.h>

size_t gt_store_piece_bytes(uint32_t words)
{
	return sizeof(struct gt_store_piece) + (size_t)words * 8;
}

static size_t allocated_bytes(const struct gt_store_piece *piece)
{
	return piece->room != 0 ? piece->room : gt_store_piece_bytes(piece->words);
}

void gt_store_append(struct gt_store *store, struct gt_store_writer *writer,
		     struct gt_store_piece *piece)
{
	if (writer->last != NULL)
		writer->last->next = piece;
	else
		writer->first = piece;
	writer->last = piece;
	store->bytes += allocated_bytes(piece);
}

void gt_store_replace_last(struct gt_store *store, struct gt_store_writer *writer,
			   struct gt_store_piece *piece)
{
	struct gt_store_piece *old = writer->last;

	if (writer->first == old) {
		writer->first = piece;
	} else {
		struct gt_store_piece *before = writer->first;

		while (before->next != old)
			before = before->next;
		before->next = piece;
	}
	writer->last = piece;
	if (writer->found == old)
		writer->found = piece;
	store->bytes += allocated_bytes(piece);
	store->bytes -= allocated_bytes(old);
	free(old);
}

/* before: its predecessor; NULL: it is the first. */
static void drop(struct gt_store *store, struct gt_store_writer *writer,
		 struct gt_store_piece *before, struct gt_store_piece *piece)
{
	if (before != NULL)
		before->next = piece->next;
	else
		writer->first = piece->next;
	if (writer->last == piece)
		writer->last = before;
	if (writer->found == piece)
		writer->found = before;
	*(piece->held ? &store->held_bytes : &store->bytes) -= allocated_bytes(piece);
	free(piece);
}

void gt_store_drop_first(struct gt_store *store, struct gt_store_writer *writer)
{
	drop(store, writer, NULL, writer->first);
}

void gt_store_drop_all(struct gt_store *store)
{
	for (uint32_t i = 0; i < store->count; i++)
		while (store->writers[i].first != NULL)
			gt_store_drop_first(store, &store->writers[i]);
}

struct gt_store_piece *gt_store_find(struct gt_store_writer *writer, uint64_t sequence)
{
	struct gt_store_piece *piece = writer->found != NULL && writer->found->sequence <= sequence
					       ? writer->found
					       : writer->first;

	while (piece != NULL && piece->sequence < sequence)
		piece = piece->next;
	if (piece != NULL)
		writer->found = piece;
	return piece;
}

/* Linux' readers take pages out of the buffer in the same way, so that newer records find room however long a reader
 * stands still. A reader has at most two pieces of a writer. The pieces of all writers together are limited to half of
 * the buffer; records in further ones may be both given and counted as lost. */
void gt_store_take_out(struct gt_store *store, struct gt_store_piece *piece)
{
	uint64_t bytes = allocated_bytes(piece);
	uint64_t most = store->limit / 2 > 2 * bytes ? store->limit / 2 : 2 * bytes;

	if (piece->held || (store->limit != 0 && store->held_bytes + bytes > most))
		return;
	piece->held = true;
	store->bytes -= bytes;
	store->held_bytes += bytes;
}

/* Finds the writer's oldest piece that is not held; *before: its predecessor. NULL: none. */
static struct gt_store_piece *oldest_of(const struct gt_store_writer *writer,
					struct gt_store_piece **before)
{
	struct gt_store_piece *piece = writer->first;

	*before = NULL;
	while (piece != NULL && piece->held) {
		*before = piece;
		piece = piece->next;
	}
	return piece;
}

/* Frees the oldest piece that is not held or growing. `keep` keeps its last one. False: there is
 * none. */
static bool drop_oldest(struct gt_store *store, const struct gt_store_writer *keep)
{
	struct gt_store_writer *oldest = NULL;
	struct gt_store_piece *piece = NULL;
	struct gt_store_piece *before = NULL;

	for (uint32_t i = 0; i < store->active_count; i++) {
		struct gt_store_writer *at = &store->writers[store->active[i]];
		struct gt_store_piece *before_own;
		struct gt_store_piece *own = oldest_of(at, &before_own);

		if (own != NULL && (at != keep || own != at->last) && !own->growing &&
		    (piece == NULL || own->sub_buffer.clock < piece->sub_buffer.clock)) {
			oldest = at;
			piece = own;
			before = before_own;
		}
	}
	if (piece == NULL)
		return false;
	oldest->overrun += gt_words_records(&piece->sub_buffer, 0, piece->words);
	if (oldest->route != NULL)
		oldest->overrun_losses += gt_words_lost(&piece->sub_buffer, piece->words);
	drop(store, oldest, before, piece);
	return true;
}

static bool drop_older(struct gt_store *store)
{
	bool dropped;

	if (store->older == NULL)
		return false;
	pthread_mutex_lock(&store->older->lock);
	dropped = drop_oldest(store->older, NULL);
	pthread_mutex_unlock(&store->older->lock);
	return dropped;
}

static uint64_t bytes_of(struct gt_store *store)
{
	uint64_t bytes;

	pthread_mutex_lock(&store->lock);
	bytes = store->bytes;
	pthread_mutex_unlock(&store->lock);
	return bytes;
}

static bool is_full(struct gt_store *store, size_t bytes)
{
	uint64_t older = store->older != NULL ? bytes_of(store->older) : 0;

	return store->limit != 0 && older + store->bytes + bytes > store->limit;
}

bool gt_store_make_room(struct gt_store *store, struct gt_store_writer *keep, size_t bytes)
{
	while (is_full(store, bytes)) {
		if (!store->overwrite || (!drop_older(store) && !drop_oldest(store, keep)))
			return false;
	}
	return true;
}

bool gt_store_is_full(struct gt_store *store)
{
	bool full;

	pthread_mutex_lock(&store->lock);
	full = !store->overwrite && is_full(store, store->source->sub_buffer_bytes);
	pthread_mutex_unlock(&store->lock);
	return full;
}

void gt_store_set_limit(struct gt_store *store, uint64_t limit)
{
	pthread_mutex_lock(&store->lock);
	store->limit = limit;
	while (is_full(store, 0) && (drop_older(store) || drop_oldest(store, NULL)))
		;
	pthread_mutex_unlock(&store->lock);
}

void gt_store_set_older(struct gt_store *store, struct gt_store *older)
{
	pthread_mutex_lock(&store->lock);
	store->older = older;
	pthread_mutex_unlock(&store->lock);
}

void gt_store_clear(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < store->count; i++)
		while (store->writers[i].first != NULL && !store->writers[i].first->growing)
			gt_store_drop_first(store, &store->writers[i]);
	pthread_mutex_unlock(&store->lock);
}
