/* SPDX-License-Identifier: MIT */
/*
 * What the files store*.c share: a store is a list of pieces for each writer of the source.
 * Functions named here want the store's lock held.
 */
#ifndef GT_SERVE_STORE_PRIVATE_H
#define GT_SERVE_STORE_PRIVATE_H

#include <pthread.h>

#include "serve/store/store.h"

/* A copied sub-buffer, or what was copied of it so far. */
struct gt_store_piece {
	struct gt_store_piece *next; /* the writer's next one */
	uint64_t sequence;
	size_t room;	/* allocated bytes, if more than its words need */
	uint32_t words; /* written so far */
	bool growing;
	bool held; /* a reader is using it: freed when consumed, and beyond the limit until then */
	struct graftrace_sub_buffer sub_buffer; /* words follow */
};

/* One writer of the source, and its pieces, ordered by sequence. */
struct gt_store_writer {
	struct gt_writer writer; /* as the source describes it; first and next are ours */
	struct gt_store_piece *first, *last;
	/* Result of the last search, where the next one begins; or NULL. */
	struct gt_store_piece *found;
	uint64_t position; /* sequence that is copied next */
	uint64_t begun;	   /* records of that one copied before it was complete */
	/* Of a store that is routed: */
	struct gt_route_writer *route;
	uint64_t lost_before[GRAFTRACE_LOST_CAUSES]; /* lost by the source before the store began */
	uint64_t overrun;			     /* records overwritten by newer ones */
	uint64_t overrun_losses;		     /* and losses that were written among them */
	uint64_t dropped;			     /* records for which there was no room */
	uint64_t dropping;			     /* the same of the sub-buffer being copied */
};

struct gt_store {
	struct gt_target target;
	struct gt_target *source;
	pthread_mutex_t lock; /* guards what follows */
	uint32_t users;
	struct gt_store_writer *writers;
	uint32_t count, room;
	/* Indexes of those that have pieces or may get some; others have ended for good. Programs end
	 * threads by the million. */
	uint32_t *active; /* [room] */
	uint32_t active_count;
	uint64_t bytes, limit; /* bytes: of what is not held */
	uint64_t held_bytes;
	/* The source's clock before the last whole pull; 0: there was none, or it rests. */
	uint64_t pulled;
	bool overwrite, frozen;
	struct gt_store *older; /* NULL: none */
	void *copy;		/* one sub-buffer */
	bool routed;
	struct gt_store_writer *in_work; /* the one that gt_store_open_piece is called for */
	struct gt_route route;
};

/* store_ring.c: readers of the store call these; they take the lock themselves. */
extern const struct gt_ring_ops gt_store_ring;

/* store_fill.c: the route's `open`: appends an empty piece to the writer in work. NULL: no room, no
 * memory. */
struct graftrace_sub_buffer *gt_store_open_piece(void *data, struct gt_route_writer *route);

/* store_pieces.c */

/* Bytes of a piece with that many words. */
size_t gt_store_piece_bytes(uint32_t words);
/* Finds the first piece with that sequence or a later one; NULL: none. */
struct gt_store_piece *gt_store_find(struct gt_store_writer *writer, uint64_t sequence);
/* Adds a piece as the writer's last. */
void gt_store_append(struct gt_store *store, struct gt_store_writer *writer,
		     struct gt_store_piece *piece);
/* Puts a piece into the place of the writer's last one, and frees that one. */
void gt_store_replace_last(struct gt_store *store, struct gt_store_writer *writer,
			   struct gt_store_piece *piece);
/* Frees the writer's first piece; there must be one. */
void gt_store_drop_first(struct gt_store *store, struct gt_store_writer *writer);
/* Frees all pieces of all writers. */
void gt_store_drop_all(struct gt_store *store);
/* Call when a reader begins to use a piece: it does not count against the limit until it is consumed. No effect if half
 * of the limit is in use so. */
void gt_store_take_out(struct gt_store *store, struct gt_store_piece *piece);
/* Frees the oldest pieces, but not the last one of `keep`, until there is room for so many bytes. False: there is not;
 * always if the store is full and does not overwrite. */
bool gt_store_make_room(struct gt_store *store, struct gt_store_writer *keep, size_t bytes);

#endif
