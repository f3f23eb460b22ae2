/* SPDX-License-Identifier: MIT */
/*
 * A copy of a live target's records in the host's own memory, which is itself a target for readers. A
 * snapshot is a store that is filled once, an instance's buffer one that is filled again and again.
 * Any thread may use a store. Each function takes the store's lock and holds it until it returns. Exceptions:
 * gt_store_create(), gt_store_create_routed() and gt_store_target() take no lock; gt_store_put() takes it to count,
 * and releases it before it frees the store. With the lock held the source's functions are called, and the lock of
 * `older` is taken, where room is made. So the lock of a store comes before the source's, and that of a newer store
 * before that of an older one.
 *
 * Writers have the same indexes as in the source, so positions (struct gt_merge_given) mean the same
 * in both.
 */
#ifndef GT_SERVE_STORE_H
#define GT_SERVE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/merge.h"
#include "core/trace/target.h"
#include "serve/store/route.h"

struct gt_store;

/* limit: bytes of sub-buffers to keep; 0: no limit. overwrite: a full store drops its oldest
 * sub-buffers; else new ones are left out and counted. The source must outlive the store.
 * The store has one reference. GT_ENOMEM; *store is not set then.
 * Copies the source's fields, `clock` and `tracer` too, without a lock. Those of a session's target may change meanwhile
 * (gt_session_target): who uses them of the store makes it between gt_session_lock_sink() and gt_session_unlock_sink().
 * The files live*.c show records by a clock and a tracer of their own, and need no lock. */
int gt_store_create(struct gt_target *source, uint64_t limit, bool overwrite,
		    struct gt_store **store);
/* A store with a route: it keeps only the records that gt_store_want asks for, in sub-buffers of its
 * own. A writer's numbers begin at 0; after gt_store_begin behind those of the source's sub-buffers that count
 * as copied, also in part: so they are unique. Before the first gt_store_want it keeps nothing. Locks and errors as of
 * gt_store_create(). */
int gt_store_create_routed(struct gt_target *source, uint64_t limit, bool overwrite,
			   struct gt_store **store);
/* What it keeps of the records that are copied from now on, and its tracing_on; takes references to the
 * lists. What `want` points to beside them must stay valid; gt_store_pull() calls `also` and
 * `of_thread` with the store's lock held. Only of a store with a route, as the functions up to
 * gt_store_done. */
void gt_store_want(struct gt_store *store, const struct gt_route_want *want);
void gt_store_switch(struct gt_store *store, bool on); /* its tracing_on */
/* Its tracing_on; *switched: the clock at which a command changed it last, 0: none did. */
bool gt_store_is_on(struct gt_store *store, uint64_t *switched);
/* As the functions gt_route_…, with their errors. */
int gt_store_command_set(struct gt_store *store, const struct gt_control_command *command);
int gt_store_command_remove(struct gt_store *store, const struct gt_control_command *command);
/* Copies the name into `text`, cut to `room`. */
int gt_store_command_read(struct gt_store *store, uint64_t index,
			  struct gt_control_command *command, char *text, size_t room);
int gt_store_set_threads(struct gt_store *store, int which, const uint32_t *tids, uint32_t count);
/* The commands that were hit and are not done yet, bits of enum gt_control_action, and the CPU of the last hit; 0:
 * none. The caller carries them out, then calls gt_store_done, then pulls again. */
uint32_t gt_store_due(struct gt_store *store, uint32_t *cpu);
void gt_store_done(struct gt_store *store);

/* Take and release a reference; the last release frees the store. get: returns `store`. put: NULL is allowed. */
struct gt_store *gt_store_get(struct gt_store *store);
void gt_store_put(struct gt_store *store);

/* Copies start after these positions of the source's first `count` writers, and at the beginning of
 * the others. Call it before the first pull. The words of a position count for a store with a route
 * only; another one copies that sub-buffer whole. The array stays the caller's, and is needed no more. GT_ENOMEM. */
int gt_store_begin(struct gt_store *store, const struct gt_merge_given *positions, uint32_t count);

/* Copies start with the beginning of each writer's newest sub-buffer: the next pull skips older ones. Call it before
 * the first pull, or after gt_store_rest. GT_ENOMEM. */
int gt_store_begin_now(struct gt_store *store);

/* set_limit: changes the limit; what is too much is dropped, the oldest first, whatever `overwrite` is. set_older:
 * names another store with the records from before this one; they count against the limit and are dropped first. No
 * reference is taken: the caller keeps it until this one is gone. NULL: none. set_older drops nothing yet. */
void gt_store_set_limit(struct gt_store *store, uint64_t limit);
void gt_store_set_older(struct gt_store *store, struct gt_store *older);

/* Changes `overwrite` of gt_store_create. */
void gt_store_set_overwrite(struct gt_store *store, bool overwrite);

/* Whether it does not overwrite, and another whole sub-buffer of the source has no room. */
bool gt_store_is_full(struct gt_store *store);

/* Copies the source's new records. GT_ENOMEM: some of them come with the next pull; GT_EAGAIN: a command is
 * due (gt_store_due), and the rest comes with the pull after gt_store_done. */
int gt_store_pull(struct gt_store *store);

/* Call when no pull will follow for some time. Until the next pull readers get all records that are in the store;
 * otherwise they get those that were made before the last pull began: one cut over all writers. Nothing else changes:
 * the next pull also copies the records that were made meanwhile, unless gt_store_begin_now() was called before. */
void gt_store_rest(struct gt_store *store);

/* Ends the copying for good; a pull does nothing then. Sub-buffers that were open when they were copied
 * count as closed. */
void gt_store_freeze(struct gt_store *store);

/* How far each writer was copied: an array with an element a writer, not NULL if there is none; the caller frees it. Of
 * a store with a route the sequences are the source's, and the words mean nothing. GT_ENOMEM: *positions is NULL. */
int gt_store_positions(struct gt_store *store, struct gt_merge_given **positions, uint32_t *count);

/* Consumes the full sub-buffers of the source that were copied; nothing where it cannot be consumed. */
void gt_store_consume_source(struct gt_store *store);

/* Drops all records but those of open sub-buffers. Those of `older` stay, and so do the counts of what was lost. */
void gt_store_clear(struct gt_store *store);

/* The store as a target, for any thread, valid until the last reference is released. Its clock is the
 * source's at the time of gt_store_create. */
struct gt_target *gt_store_target(struct gt_store *store);

#endif
