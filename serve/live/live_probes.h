/* SPDX-License-Identifier: MIT */
/*
 * Events with fields of a program that runs: the operations behind set_event and events/, and the rows
 * of each event. An event has one place in the list, however many it has in the code.
 */
#ifndef GT_SERVE_LIVE_PROBES_H
#define GT_SERVE_LIVE_PROBES_H

#include "serve/live/live_private.h"

/* Begins with the words and filters that the session was started with; gives each event that is known by now its
 * rows in live->control. GT_ENOMEM. */
int gt_live_probes_init(struct gt_live *live, const char *const *words, const char *const *filters);
void gt_live_probes_fini(struct gt_live *live);

/* Of struct gt_control_ops: dynamic ones. */
int gt_live_probe_set(struct gt_control_target *target, const char *line, size_t bytes,
		      enum gt_probe_kinds kinds, struct gt_probe_error *error,
		      struct gt_message *message);
int gt_live_probes_remove(struct gt_control_target *target, const char *group, const char *name,
			  struct gt_message *message);
int gt_live_probe(struct gt_control_target *target, uint64_t index, char *line, size_t bytes);

/* Of struct gt_control_ops. */
int gt_live_event(struct gt_control_target *target, uint64_t index, struct gt_control_event *event);
int gt_live_event_set(struct gt_control_target *target, const char *word, size_t word_bytes,
		      bool on, struct gt_message *message);

#endif
