/* SPDX-License-Identifier: MIT */
/*
 * Columns of a row, as formats with a row a call and those with a row an event share them: of CSV and of
 * ClickHouse's TabSeparated with the separator behind, and members of an object of JSON. What is not
 * known is empty, \N or null. One thread at a time for each `out`; errors are in out->error.
 */
#ifndef GT_EXPORT_COLUMNS_H
#define GT_EXPORT_COLUMNS_H

#include <string.h>

#include "export/export.h"

#define GT_LANE_NAME_BYTES (sizeof(((struct gt_lane *)0)->name) + 1)

/* The lane's name with a zero byte at its end. */
static inline const char *gt_lane_name(const struct gt_lane *lane, char name[GT_LANE_NAME_BYTES])
{
	memcpy(name, lane->name, sizeof(lane->name));
	name[sizeof(lane->name)] = '\0';
	return name;
}

static inline void gt_csv_number(struct gt_out *out, uint64_t number, bool known)
{
	if (known)
		gt_out_number(out, number);
	gt_out_char(out, ',');
}

static inline void gt_csv_text(struct gt_out *out, const char *text)
{
	if (text != NULL)
		gt_out_csv(out, text);
	gt_out_char(out, ',');
}

/* CPU, process, thread and the thread's name. */
static inline void gt_csv_thread(struct gt_out *out, const struct gt_lane *lane, uint32_t cpu)
{
	char name[GT_LANE_NAME_BYTES];

	gt_csv_number(out, cpu, cpu != UINT32_MAX);
	gt_csv_number(out, lane->pid, true);
	gt_csv_number(out, lane->tid, true);
	gt_csv_text(out, gt_lane_name(lane, name));
}

static inline void gt_tab_number(struct gt_out *out, uint64_t number, bool known)
{
	if (known)
		gt_out_number(out, number);
	else
		gt_out_text(out, "\\N");
	gt_out_char(out, '\t');
}

static inline void gt_tab_text(struct gt_out *out, const char *text)
{
	if (text != NULL)
		gt_out_tab_text(out, text);
	else
		gt_out_text(out, "\\N");
	gt_out_char(out, '\t');
}

static inline void gt_tab_thread(struct gt_out *out, const struct gt_lane *lane, uint32_t cpu)
{
	char name[GT_LANE_NAME_BYTES];

	gt_tab_number(out, cpu, cpu != UINT32_MAX);
	gt_tab_number(out, lane->pid, true);
	gt_tab_number(out, lane->tid, true);
	gt_tab_text(out, gt_lane_name(lane, name));
}

/* Host and program, and the moment in nanoseconds since 1970. */
static inline void gt_tab_origin(struct gt_export *export, uint64_t clock)
{
	gt_tab_text(&export->out, export->about.host);
	gt_tab_text(&export->out, export->about.program);
	gt_tab_number(&export->out, export->about.realtime_ns + gt_export_ns(export, clock), true);
}

/* name: what stands before the value. */
static inline void gt_json_number(struct gt_out *out, const char *name, uint64_t number, bool known)
{
	gt_out_text(out, name);
	if (known)
		gt_out_number(out, number);
	else
		gt_out_text(out, "null");
}

static inline void gt_json_text(struct gt_out *out, const char *name, const char *text)
{
	gt_out_text(out, name);
	if (text != NULL)
		gt_out_json(out, text);
	else
		gt_out_text(out, "null");
}

static inline void gt_json_thread(struct gt_out *out, const struct gt_lane *lane, uint32_t cpu)
{
	char name[GT_LANE_NAME_BYTES];

	gt_json_number(out, ",\"cpu\":", cpu, cpu != UINT32_MAX);
	gt_json_number(out, ",\"pid\":", lane->pid, true);
	gt_json_number(out, ",\"tid\":", lane->tid, true);
	gt_json_text(out, ",\"thread\":", gt_lane_name(lane, name));
}

#endif
