/* SPDX-License-Identifier: MIT */
/* The events with fields of a recording, each once, however many places (and numbers) it has; one of the same name with
 * other fields is another. Unchanged between init and fini: any thread may ask, without a lock. */
#ifndef GT_SERVE_RECORDED_EVENTS_H
#define GT_SERVE_RECORDED_EVENTS_H

#include "core/control/control.h"
#include "read/recording.h"

struct gt_recorded_events {
	struct gt_event_format *formats; /* of the first place of each */
	uint32_t count;
	struct gt_recorded_event_number *numbers; /* in order */
	uint32_t number_count;
	struct gt_control_file *files; /* rows of each, and of each system */
	char **paths;
	struct gt_control_group group;
};

/* Collects the events. The strings stay the recording's, which must outlive them. GT_ENOMEM: there is nothing to be
 * freed. */
int gt_recorded_events_init(struct gt_recorded_events *events, struct gt_recording *recording);
void gt_recorded_events_fini(struct gt_recorded_events *events);

/* The format of the event that `number` belongs to, as its first place has it. GT_ENOENT. */
int gt_recorded_events_of(const struct gt_recorded_events *events, uint32_t number,
			  struct gt_event_format *format);

/* The index'th event, as the operation `event` of struct gt_control_ops. GT_ENOENT after the last. */
int gt_recorded_events_at(const struct gt_recorded_events *events, uint64_t index,
			  struct gt_control_event *event);

#endif
