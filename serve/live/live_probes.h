/* SPDX-License-Identifier: MIT */
/*
 * Events with fields of a running program: the operations behind set_event and events/, and the rows of
 * each event. An event is listed once, however many places of the code it has.
 */
#ifndef GT_SERVE_LIVE_PROBES_H
#define GT_SERVE_LIVE_PROBES_H

#include "serve/live/live_private.h"

/* filters: those that the session was started with (words and filters in turns; NULL: none); live->settings has its list
 * of events. Adds the rows of each event known by now to live->control. Before another thread knows `live`. GT_ENOMEM:
 * call gt_live_probes_fini all the same. */
int gt_live_probes_init(struct gt_live *live, const char *const *filters);
/* Frees what it has allocated; no other thread may know it any more. */
void gt_live_probes_fini(struct gt_live *live);

/* Operations of struct gt_control_ops, which says what they take, give and fail with; from any thread,
 * with no lock held. Those that set or remove take change.lock, within it the lock of the rows, within that the list's
 * and the session's; the others the session's. Dynamic probes: */
int gt_live_probe_set(struct gt_control_target *target, const char *line, size_t bytes,
		      enum gt_probe_kinds kinds, struct gt_probe_error *error,
		      struct gt_message *message);
int gt_live_probes_remove(struct gt_control_target *target, const char *group, const char *name,
			  struct gt_message *message);
int gt_live_probe(struct gt_control_target *target, uint64_t index, char *line, size_t bytes);
int gt_live_probe_hits(struct gt_control_target *target, uint64_t index, char *line, size_t bytes);

/* … synthetic events. */
int gt_live_synthetic_set(struct gt_control_target *target, const char *line, size_t bytes,
			  struct gt_probe_error *error, struct gt_message *message);
int gt_live_synthetics_remove(struct gt_control_target *target, const char *name,
			      struct gt_message *message);
int gt_live_synthetic(struct gt_control_target *target, uint64_t index,
		      struct gt_event_format *event);

/* Operations of struct gt_control_ops, from any thread with no lock held. events_came: events of what was loaded since the
 * last call get their rows, as far as there is memory; takes the lock of the rows and the list's. event: takes the
 * list's lock, live->lock and the session's, one after the other. event_set: takes change.lock and those of
 * gt_live_event_words_change(), then the lock of the rows and the list's. */
void gt_live_events_came(struct gt_control_target *target);
int gt_live_event(struct gt_control_target *target, uint64_t index, struct gt_control_event *event);
int gt_live_event_set(struct gt_control_target *target, const char *word, size_t word_bytes,
		      bool on, struct gt_message *message);

#endif
