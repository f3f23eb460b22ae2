/* SPDX-License-Identifier: MIT */
/* Filters and triggers of a program's events, as operations of struct gt_control_ops, which says what
 * they take, give and fail with. From any thread, with no lock held: they take change.lock (a trigger of
 * another event instances.lock, too, and copies records), or the session's. */
#ifndef GT_SERVE_LIVE_FILTERS_H
#define GT_SERVE_LIVE_FILTERS_H

#include "serve/live/live_private.h"

int gt_live_event_filter_set(struct gt_control_target *target, const char *word, const char *filter,
			     size_t bytes, const struct gt_event_filter_error *failed,
			     struct gt_message *message);
int64_t gt_live_event_filter_read(struct gt_control_target *target, const char *word,
				  uint64_t offset, char *buffer, size_t bytes);
int gt_live_event_trigger_set(struct gt_control_target *target, const char *word,
			      const struct gt_event_trigger *trigger, bool remove,
			      struct gt_message *message);
int gt_live_event_trigger_get(struct gt_control_target *target, const char *word, uint32_t index,
			      struct gt_event_trigger *trigger, char *text, size_t room);
/* The session was started with that filter. Before another thread knows `live`. GT_ENOMEM. */
int gt_live_filters_note(struct gt_live *live, const char *word, const char *filter);
/* Frees what it has allocated; no other thread may know it any more. */
void gt_live_filters_fini(struct gt_live *live);

#endif
