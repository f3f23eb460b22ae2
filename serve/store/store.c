/* SPDX-License-Identifier: MIT */
/*
 * See store.h. A sub-buffer that is still written is copied again at each pull until it is
 * complete.
 */
#include "serve/store/store.h"
#include "core/trace/word_walk.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct piece {
	struct piece *next; /* the writer's next one */
	uint64_t sequence;
	size_t room;	/* allocated bytes, if more than its words need */
	uint32_t words; /* written so far */
	bool growing;
	bool held; /* a reader is using it: freed when consumed, and beyond the limit until then */
	struct graftrace_sub_buffer sub_buffer; /* words follow */
};

struct source_writer {
	struct gt_writer writer; /* as the source describes it; first and next are ours */
	struct piece *first, *last;
	struct piece *found; /* result of the last search, where the next one begins; or NULL */
	uint64_t position;   /* sequence that is copied next */
	uint64_t begun;	     /* records of that one copied before it was complete */
	/* Of a store that is routed: */
	struct gt_route_writer *route;
	uint64_t lost_before[GRAFTRACE_LOST_CAUSES]; /* lost by the source before the store began */
	uint64_t overrun;			     /* records overwritten by newer ones */
	uint64_t dropped;			     /* records for which there was no room */
	uint64_t dropping;			     /* the same of the sub-buffer being copied */
};

struct gt_store {
	struct gt_target target;
	struct gt_target *source;
	pthread_mutex_t lock; /* guards what follows */
	uint32_t users;
	struct source_writer *writers;
	uint32_t count, room;
	uint64_t bytes, limit; /* bytes: of what is not held */
	uint64_t held_bytes;
	uint64_t
		pulled; /* the source's clock before the last whole pull; 0: there was none, or it rests */
	bool overwrite, frozen;
	struct gt_store *older; /* NULL: none */
	void *copy;		/* one sub-buffer */
	struct source_writer *in_work;
	bool routed;
	struct gt_route route;
};

static size_t piece_bytes(uint32_t words)
{
	return sizeof(struct piece) + (size_t)words * 8;
}

static size_t allocated_bytes(const struct piece *piece)
{
	return piece->room != 0 ? piece->room : piece_bytes(piece->words);
}

/* before: its predecessor; NULL: it is the first. */
static void drop(struct gt_store *store, struct source_writer *writer, struct piece *before,
		 struct piece *piece)
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

static void drop_first(struct gt_store *store, struct source_writer *writer)
{
	drop(store, writer, NULL, writer->first);
}

/* Finds the first piece with that sequence or a later one; NULL: none. */
static struct piece *find(struct source_writer *writer, uint64_t sequence)
{
	struct piece *piece = writer->found != NULL && writer->found->sequence <= sequence
				      ? writer->found
				      : writer->first;

	while (piece != NULL && piece->sequence < sequence)
		piece = piece->next;
	if (piece != NULL)
		writer->found = piece;
	return piece;
}

static void drop_all(struct gt_store *store)
{
	for (uint32_t i = 0; i < store->count; i++)
		while (store->writers[i].first != NULL)
			drop_first(store, &store->writers[i]);
}

/* The views' operations */

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
static uint64_t behind(const struct source_writer *writer)
{
	return writer->route != NULL ? writer->route->sequence : writer->position;
}

/* Sums what was lost since the store began: by the source, and here for lack of room. */
static void count_lost(const struct source_writer *writer, uint64_t *lost)
{
	for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
		lost[cause] -= writer->lost_before[cause] < lost[cause] ? writer->lost_before[cause]
									: lost[cause];
	lost[GRAFTRACE_LOST_FULL] += writer->dropped + writer->dropping +
				     (writer->route != NULL ? writer->route->dropped : 0);
	lost[GRAFTRACE_LOST_OVERRUN] += writer->overrun;
}

static int writer(struct gt_target *target, uint32_t index, struct gt_writer *out)
{
	struct gt_store *store = store_of(target);
	int error = GT_ENOENT;

	pthread_mutex_lock(&store->lock);
	if (index < store->count) {
		const struct source_writer *from = &store->writers[index];

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
	const struct piece *piece = NULL;

	pthread_mutex_lock(&store->lock);
	if (index < store->count)
		piece = find(&store->writers[index], sequence);
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
	const struct piece *piece = NULL;
	uint64_t next = sequence;

	pthread_mutex_lock(&store->lock);
	if (index < store->count) {
		piece = find(&store->writers[index], sequence);
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
		drop_first(store, &store->writers[index]);
		error = 0;
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

/* As a page that Linux's reader has: it is out of the buffer, so newer records find room however long
 * the reader stands still. A reader has at most two of a writer; those of many writers are limited to half
 * of the buffer, and what it is given beyond that may be told as lost, too. */
static void take_out(struct gt_store *store, struct piece *piece)
{
	uint64_t bytes = allocated_bytes(piece);
	uint64_t most = store->limit / 2 > 2 * bytes ? store->limit / 2 : 2 * bytes;

	if (piece->held || (store->limit != 0 && store->held_bytes + bytes > most))
		return;
	piece->held = true;
	store->bytes -= bytes;
	store->held_bytes += bytes;
}

static int hold(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	struct gt_store *store = store_of(target);
	struct piece *piece = NULL;
	int error = GT_ENOENT;

	pthread_mutex_lock(&store->lock);
	if (index < store->count)
		piece = find(&store->writers[index], sequence);
	if (piece != NULL && piece->sequence == sequence) {
		error = piece->growing ? GT_EAGAIN : 0;
		if (error == 0)
			take_out(store, piece);
	}
	pthread_mutex_unlock(&store->lock);
	return error;
}

/* One writer is copied after the other. Where a command is due the copying stands still, for the command to
 * find all that was before it. */
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

static const struct gt_ring_ops ring = {
	.writer_count = writer_count,
	.writer = writer,
	.sub_buffer = sub_buffer,
	.consume = consume,
	.hold = hold,
	.next_sequence = next_sequence,
	.now = now,
};

/* Life */

static struct graftrace_sub_buffer *open_piece(void *data, struct gt_route_writer *route);

int gt_store_create(struct gt_target *source, uint64_t limit, bool overwrite, struct gt_store **out)
{
	struct gt_store *store = calloc(1, sizeof(*store));

	if (store != NULL)
		store->copy = malloc(source->sub_buffer_bytes);
	if (store == NULL || store->copy == NULL) {
		free(store);
		return GT_ENOMEM;
	}
	pthread_mutex_init(&store->lock, NULL);
	store->users = 1;
	store->source = source;
	store->limit = limit;
	store->overwrite = overwrite;
	store->target = *source;
	store->target.ring = &ring;
	store->target.data = store;
	*out = store;
	return 0;
}

int gt_store_create_routed(struct gt_target *source, uint64_t limit, bool overwrite,
			   struct gt_store **out)
{
	int error = gt_store_create(source, limit, overwrite, out);

	if (error != 0)
		return error;
	(*out)->routed = true;
	(*out)->route = (struct gt_route){ .source = source, .open = open_piece, .data = *out };
	gt_route_init(&(*out)->route);
	if ((*out)->target.sub_buffer_bytes < GT_ROUTE_PIECE_BYTES)
		(*out)->target.sub_buffer_bytes = GT_ROUTE_PIECE_BYTES;
	return 0;
}

void gt_store_want(struct gt_store *store, const struct gt_route_want *want)
{
	pthread_mutex_lock(&store->lock);
	gt_route_set(&store->route, want);
	pthread_mutex_unlock(&store->lock);
}

void gt_store_switch(struct gt_store *store, bool on)
{
	pthread_mutex_lock(&store->lock);
	gt_route_switch(&store->route, on);
	pthread_mutex_unlock(&store->lock);
}

bool gt_store_is_on(struct gt_store *store, uint64_t *switched)
{
	bool on;

	pthread_mutex_lock(&store->lock);
	on = store->route.want.settings.on;
	*switched = store->route.switched;
	pthread_mutex_unlock(&store->lock);
	return on;
}

int gt_store_command_set(struct gt_store *store, const struct gt_control_command *command)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_command_set(&store->route, command);
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_command_remove(struct gt_store *store, const struct gt_control_command *command)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_command_remove(&store->route, command);
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_command_read(struct gt_store *store, uint64_t index,
			  struct gt_control_command *command)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_command_read(&store->route, index, command);
	pthread_mutex_unlock(&store->lock);
	return error;
}

int gt_store_set_threads(struct gt_store *store, int which, const uint32_t *tids, uint32_t count)
{
	int error;

	pthread_mutex_lock(&store->lock);
	error = gt_route_set_threads(&store->route, which, tids, count);
	pthread_mutex_unlock(&store->lock);
	return error;
}

uint32_t gt_store_due(struct gt_store *store, uint32_t *cpu)
{
	uint32_t due;

	pthread_mutex_lock(&store->lock);
	due = store->route.due;
	*cpu = store->route.due_cpu;
	pthread_mutex_unlock(&store->lock);
	return due;
}

void gt_store_done(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->route.due = 0;
	pthread_mutex_unlock(&store->lock);
}

struct gt_store *gt_store_get(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	store->users++;
	pthread_mutex_unlock(&store->lock);
	return store;
}

static void free_route(struct source_writer *writer)
{
	if (writer->route == NULL)
		return;
	gt_route_writer_fini(writer->route);
	free(writer->route);
	writer->route = NULL;
}

void gt_store_put(struct gt_store *store)
{
	bool last;

	if (store == NULL)
		return;
	pthread_mutex_lock(&store->lock);
	last = --store->users == 0;
	pthread_mutex_unlock(&store->lock);
	if (!last)
		return;
	drop_all(store);
	for (uint32_t i = 0; i < store->count; i++)
		free_route(&store->writers[i]);
	gt_route_fini(&store->route);
	pthread_mutex_destroy(&store->lock);
	free(store->writers);
	free(store->copy);
	free(store);
}

/* Filling */

static int find_writers(struct gt_store *store)
{
	uint32_t count = store->source->ring->writer_count(store->source);

	if (count > store->room) {
		uint32_t room = count + count / 2 + 16;
		struct source_writer *grown =
			realloc(store->writers, room * sizeof(*store->writers));

		if (grown == NULL)
			return GT_ENOMEM;
		store->writers = grown;
		store->room = room;
	}
	for (; store->count < count; store->count++) {
		struct source_writer *writer = &store->writers[store->count];

		*writer = (struct source_writer){ 0 };
		if (!store->routed)
			continue;
		writer->route = malloc(sizeof(*writer->route));
		if (writer->route == NULL)
			return GT_ENOMEM;
		gt_route_writer_init(writer->route);
	}
	return 0;
}

/* Records that the writer lost before now are not counted in this store. */
static void begin_counting(struct gt_store *store, uint32_t index)
{
	struct source_writer *writer = &store->writers[index];
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

void gt_store_set_overwrite(struct gt_store *store, bool overwrite)
{
	pthread_mutex_lock(&store->lock);
	store->overwrite = overwrite;
	pthread_mutex_unlock(&store->lock);
}

/* Finds the writer's oldest piece that is not held; *before: its predecessor. NULL: none. */
static struct piece *oldest_of(const struct source_writer *writer, struct piece **before)
{
	struct piece *piece = writer->first;

	*before = NULL;
	while (piece != NULL && piece->held) {
		*before = piece;
		piece = piece->next;
	}
	return piece;
}

/* Frees the oldest piece that is not held or growing. `keep` keeps its last one. False: there is
 * none. */
static bool drop_oldest(struct gt_store *store, const struct source_writer *keep)
{
	struct source_writer *oldest = NULL;
	struct piece *piece = NULL;
	struct piece *before = NULL;

	for (uint32_t i = 0; i < store->count; i++) {
		struct source_writer *at = &store->writers[i];
		struct piece *before_own;
		struct piece *own = oldest_of(at, &before_own);

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

/* Frees older pieces until there is room. True: there is enough. */
static bool make_room(struct gt_store *store, struct source_writer *keep, size_t bytes)
{
	while (is_full(store, bytes)) {
		if (!store->overwrite || (!drop_older(store) && !drop_oldest(store, keep)))
			return false;
	}
	return true;
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

/* Routed: the newest piece has grown. */
static void settle(struct source_writer *writer)
{
	struct piece *last = writer->last;

	if (last == NULL || !last->growing)
		return;
	last->growing = writer->route->piece != NULL;
	last->words = last->growing ? writer->route->used : last->sub_buffer.used;
}

static struct graftrace_sub_buffer *open_piece(void *data, struct gt_route_writer *route)
{
	struct gt_store *store = data;
	size_t bytes = offsetof(struct piece, sub_buffer) + GT_ROUTE_PIECE_BYTES;
	struct source_writer *writer = store->in_work;
	struct piece *piece = NULL;

	settle(writer);
	if (make_room(store, writer, bytes))
		piece = calloc(1, bytes);
	if (piece == NULL)
		return NULL;
	piece->sequence = route->sequence;
	piece->growing = true;
	piece->room = bytes;
	store->bytes += bytes;
	if (writer->last != NULL)
		writer->last->next = piece;
	else
		writer->first = piece;
	writer->last = piece;
	return &piece->sub_buffer;
}

/* There is no room for all of the copied sub-buffer: the part copied before stays. */
static void drop_copy(struct gt_store *store, struct source_writer *to, struct piece *old,
		      uint32_t words, bool growing)
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

/* Appends the copied sub-buffer to the writer's pieces, or replaces the growing one. */
static int keep(struct gt_store *store, struct source_writer *to, uint32_t words, bool growing)
{
	const struct graftrace_sub_buffer *copy = store->copy;
	struct piece *old =
		to->last != NULL && to->last->growing && to->last->sequence == copy->sequence
			? to->last
			: NULL;
	struct piece *piece;

	if (!make_room(store, to, piece_bytes(words) - (old ? piece_bytes(old->words) : 0))) {
		drop_copy(store, to, old, words, growing);
		return 0;
	}
	piece = malloc(piece_bytes(words));
	if (piece == NULL)
		return GT_ENOMEM;
	piece->next = NULL;
	piece->sequence = copy->sequence;
	piece->words = words;
	piece->growing = growing;
	piece->held = false;
	to->dropping = 0;
	piece->room = 0;
	memcpy(&piece->sub_buffer, copy, sizeof(*copy) + words * 8ull);
	piece->sub_buffer.used = growing ? 0 : words;
	store->bytes += piece_bytes(words);
	if (old == NULL) {
		if (to->last != NULL)
			to->last->next = piece;
		else
			to->first = piece;
	} else if (to->first == old) {
		to->first = piece;
	} else {
		struct piece *before = to->first;

		while (before->next != old)
			before = before->next;
		before->next = piece;
	}
	to->last = piece;
	if (old != NULL) {
		if (to->found == old)
			to->found = piece;
		store->bytes -= piece_bytes(old->words);
		free(old);
	}
	return 0;
}

/* Copies the sub-buffer at the writer's position, and holds it: the source must not count what
 * the store has as overwritten. Returns the words, or a negative enum gt_error: it does not
 * exist. */
static int64_t copy_next(struct gt_store *store, uint32_t index)
{
	struct gt_target *source = store->source;
	const struct source_writer *to = &store->writers[index];
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
static void pass(struct source_writer *to, uint64_t sequence)
{
	to->lost_before[GRAFTRACE_LOST_OVERRUN] += to->begun;
	to->begun = 0;
	to->position = sequence;
}

static int pull_writer(struct gt_store *store, uint32_t index)
{
	struct gt_target *source = store->source;
	struct source_writer *to = &store->writers[index];
	int error = 0;

	if (source->ring->writer(source, index, &to->writer) != 0)
		return 0;
	if (to->position < to->writer.first)
		pass(to, to->writer.first);
	while (error == 0 && to->position < to->writer.next) {
		const struct graftrace_sub_buffer *copy = store->copy;
		int64_t words = copy_next(store, index);
		bool growing;

		if (words < 0) {
			if (to->position + 1 == to->writer.next)
				break; /* its header is not written yet */
			pass(to, to->position + 1);
			continue;
		}
		growing = copy->used == 0;
		if (growing)
			words = gt_words_whole(store->copy, (uint32_t)words);
		if (to->route != NULL) {
			store->in_work = to;
			int fed = gt_route_feed(&store->route, to->route, store->copy,
						(uint32_t)words, growing);

			settle(to);
			if (fed == GT_EAGAIN)
				return fed;
		} else if (words > 0) {
			error = keep(store, to, (uint32_t)words, growing);
		}
		to->begun = growing ? gt_words_records(copy, 0, (uint32_t)words) : 0;
		if (growing)
			break;
		to->position++;
	}
	/* A thread that has ended writes nothing more. */
	if (to->route != NULL && to->writer.end != 0 && to->position >= to->writer.next) {
		gt_route_close(to->route);
		settle(to);
	}
	return error;
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
	for (uint32_t i = 0; !store->frozen && error == 0 && i < store->count; i++)
		error = pull_writer(store, i);
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
		struct piece *last = store->writers[i].last;

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
		const struct source_writer *from = &store->writers[i];

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
	for (uint32_t i = 0; source->ring->consume != NULL && i < store->count; i++) {
		struct gt_writer writer;

		if (source->ring->writer(source, i, &writer) != 0)
			continue;
		for (uint64_t at = writer.first; at < store->writers[i].position; at++)
			source->ring->consume(source, i, at);
	}
	pthread_mutex_unlock(&store->lock);
}

void gt_store_clear(struct gt_store *store)
{
	pthread_mutex_lock(&store->lock);
	for (uint32_t i = 0; i < store->count; i++)
		while (store->writers[i].first != NULL && !store->writers[i].first->growing)
			drop_first(store, &store->writers[i]);
	pthread_mutex_unlock(&store->lock);
}

struct gt_target *gt_store_target(struct gt_store *store)
{
	return &store->target;
}
