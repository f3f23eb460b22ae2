/* SPDX-License-Identifier: MIT */
/* What formats with a row for each event share: a moment's names and the values of its fields. They are called in
 * `moment` of a format (export.h), and what they give lives as long as the moment. */
#ifndef GT_EXPORT_FORMAT_EVENTS_H
#define GT_EXPORT_FORMAT_EVENTS_H

#include "export/export.h"

enum gt_event_cell_kind {
	GT_CELL_NOTHING, /* it could not be read, or is no finite number */
	GT_CELL_NUMBER,
	GT_CELL_FRACTION,
	GT_CELL_TEXT,
};

struct gt_event_cell {
	const char *name;
	enum gt_event_cell_kind kind;
	bool is_signed;
	uint64_t number;
	double fraction;
	size_t bytes; /* of the text, which ends with a zero byte besides */
	char text[4096];
};

/* Fills in the cell of the event's next field; *at is 0 before the first. The place of a dynamic probe counts as no
 * field. False: there are no more. */
bool gt_event_fields_next(const struct gt_moment *moment, uint32_t *at, struct gt_event_cell *cell);

/* The innermost open call of the lane; NULL: there is none. */
const struct gt_stack_call *gt_event_call(const struct gt_lane *lane);
/* The names of the event of the moment; of a text of trace_marker "ftrace" and "print". */
const char *gt_event_system(const struct gt_moment *moment);
const char *gt_event_name(const struct gt_moment *moment);

#endif
