/* SPDX-License-Identifier: MIT */
/* The files filter, trigger and hist of an event with fields, and filter of a system: functions of the rows that
 * core/control/control_events.c names, as struct gt_control_file describes them. */
#ifndef GT_CORE_CONTROL_CONTROL_EVENT_RULES_H
#define GT_CORE_CONTROL_CONTROL_EVENT_RULES_H

#include "core/control/control.h"

int64_t gt_event_rules_read_filter(struct gt_control_handle *handle, char *buffer, size_t bytes,
				   struct gt_message *message);
int64_t gt_event_rules_write_filter(struct gt_control_handle *handle, const char *bytes,
				    size_t count, struct gt_message *message);
int64_t gt_event_rules_read_trigger(struct gt_control_handle *handle, char *buffer, size_t bytes,
				    struct gt_message *message);
int gt_event_rules_open_trigger(struct gt_control_handle *handle, unsigned access,
				struct gt_message *message);
int64_t gt_event_rules_write_trigger(struct gt_control_handle *handle, const char *bytes,
				     size_t count, struct gt_message *message);
int gt_event_rules_open_hist(struct gt_control_handle *handle, unsigned access,
			     struct gt_message *message);
int64_t gt_event_rules_read_hist(struct gt_control_handle *handle, char *buffer, size_t bytes,
				 struct gt_message *message);
int gt_event_rules_close_hist(struct gt_control_handle *handle, struct gt_message *message);
int gt_event_rules_open_system(struct gt_control_handle *handle, unsigned access,
			       struct gt_message *message);
int64_t gt_event_rules_write_system(struct gt_control_handle *handle, const char *bytes,
				    size_t count, struct gt_message *message);

#endif
