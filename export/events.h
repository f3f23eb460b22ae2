/* SPDX-License-Identifier: MIT */
/*
 * Events with fields, counted: how many there were of each, how often, and the least, mean and
 * greatest value of each field that is a number.
 */
#ifndef GT_EXPORT_EVENTS_H
#define GT_EXPORT_EVENTS_H

#include <stddef.h>
#include "core/trace/target.h"

/* As text, a line an event and, indented, one a field; "" if there was none. *text is malloc'd,
 * NUL-terminated, the caller's. GT_ENOMEM. */
int gt_events_count(struct gt_target *target, char **text, size_t *bytes);

#endif
