/* SPDX-License-Identifier: MIT */
/*
 * A copy of what a live target's writers have written, in the host's own memory, that is itself a
 * target for the views: a snapshot is one that was filled once, an instance's buffer one that is
 * filled again and again. Any thread may use one; a lock of its own is held for moments.
 *
 * Writers keep the indexes that they have in the source, so that positions (struct gt_merge_given)
 * mean the same in both.
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

/* limit: bytes of sub-buffers that are kept; 0: as many as there are. overwrite: when full the
 * oldest go, else what comes is left out (and counted). The source must outlive it. GT_ENOMEM. */
int gt_store_create(struct gt_target *source, uint64_t limit, bool overwrite,
		    struct gt_store **store);
/* One that keeps only what gt_store_want says, of what is pulled from then on, in sub-buffers of
 * its own: their numbers begin behind the source's. Until then it keeps nothing. */
int gt_store_create_routed(struct gt_target *source, uint64_t limit, bool overwrite,
			   struct gt_store **store);
void gt_store_want(struct gt_store *store, const struct gt_route_want *want);
void gt_store_switch(struct gt_store *store, bool on); /* its tracing_on */
bool gt_store_is_on(struct gt_store *store);
/* As gt_route_…; of a store that is routed. */
int gt_store_command_set(struct gt_store *store, const struct gt_control_command *command);
int gt_store_command_remove(struct gt_store *store, const struct gt_control_command *command);
int gt_store_command_read(struct gt_store *store, uint64_t index,
			  struct gt_control_command *command);
int gt_store_set_threads(struct gt_store *store, int which, const uint32_t *tids, uint32_t count);
/* Commands that are to be carried out before more is pulled, by bits of enum gt_control_action, and
 * the CPU of the last hit; then: they have been. */
uint32_t gt_store_due(struct gt_store *store, uint32_t *cpu);
void gt_store_done(struct gt_store *store);

struct gt_store *gt_store_get(struct gt_store *store); /* one more user */
void gt_store_put(struct gt_store *store);	       /* one less; the last one's frees it */

/* Begins behind these positions of the source's first `count` writers, and with all that the others
 * have. GT_ENOMEM. */
int gt_store_begin(struct gt_store *store, const struct gt_merge_given *positions, uint32_t count);

/* Begins with the sub-buffers that are being written now. GT_ENOMEM. */
int gt_store_begin_now(struct gt_store *store);

/* Other bytes that it may keep: what is too much goes, the oldest first. older: what was before it,
 * which counts with it and goes first of all; it stays the caller's. */
void gt_store_set_limit(struct gt_store *store, uint64_t limit);
void gt_store_set_older(struct gt_store *store, struct gt_store *older);

/* When it is full: whether the oldest go, or what comes is left out. */
void gt_store_set_overwrite(struct gt_store *store, bool overwrite);

/* Copies what the source has beyond what was copied already. GT_ENOMEM: some of it is missing;
 * GT_EAGAIN: a command is due (gt_store_due). */
int gt_store_pull(struct gt_store *store);

/* No more is pulled: what was being written when it was copied is as finished as it gets. */
void gt_store_freeze(struct gt_store *store);

/* How far each writer was copied: a malloc'ed element a writer. GT_ENOMEM. */
int gt_store_positions(struct gt_store *store, struct gt_merge_given **positions, uint32_t *count);

/* Gives back the source's full sub-buffers that were copied. */
void gt_store_consume_source(struct gt_store *store);

/* Nothing is in it but what is being written, and what will come. */
void gt_store_clear(struct gt_store *store);

/* For the views. Its clock is the source's at the time of gt_store_create. */
struct gt_target *gt_store_target(struct gt_store *store);

uint64_t gt_store_bytes(struct gt_store *store);
#endif
