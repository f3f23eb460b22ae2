/* SPDX-License-Identifier: MIT */
/*
 * A row for each call, in the order in which calls end: `csv` (RFC 4180, with a header), `json` (an
 * object a line), `clickhouse` (as ClickHouse's TabSeparated reads it, with host and build beside, so that
 * recordings of many machines go into one table). Times are nanoseconds since the recording began, in
 * `clickhouse` since 1970; on_cpu is empty (null) where it is not known, and file and line of the function
 * in source are, too. Arguments and result are texts, empty (null) where they were not recorded.
 */
#include "export/export.h"

#include <string.h>

#define COLUMNS                                                                                   \
	"start_ns,depth,id,parent,cpu,pid,tid,thread,function,object,duration_ns,self_ns,on_cpu_" \
	"ns,end,file,line,arguments,result\n"

struct rows {
	bool off_cpu;
};

/* Returns how a call ended, as a word. */
static const char *end_word(const struct gt_stack_call *call)
{
	if (call->flags & GT_STACK_OPEN)
		return "open";
	if (call->flags & GT_STACK_NO_RETURN)
		return "unwound";
	return "return";
}

static int begin(struct gt_export *export)
{
	struct rows *rows = export->state;

	rows->off_cpu = gt_target_has_off_cpu(export->target);
	return GT_OK;
}

static int begin_csv(struct gt_export *export)
{
	gt_out_text(&export->out, COLUMNS);
	return begin(export);
}

static bool on_cpu(const struct gt_export *export, const struct gt_lane *lane,
		   const struct gt_stack_call *call, uint64_t end, uint64_t *ns)
{
	const struct rows *rows = export->state;
	uint64_t took = end - call->start, off;

	if (!rows->off_cpu)
		return false;
	off = gt_target_off_cpu(export->target, lane->tid, call->start, end);
	*ns = gt_export_duration_ns(export, off < took ? took - off : 0);
	return true;
}

static uint64_t parent_of(const struct gt_lane *lane)
{
	return lane->open > 0 ? lane->calls[lane->open - 1].id : 0;
}

static int leave_csv(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		     uint64_t end)
{
	struct gt_out *out = &export->out;
	const struct gt_export_line *line = gt_export_line(export, call->function);
	struct gt_function function;
	char number[24], name[17] = "";
	uint64_t ns;

	gt_export_name(export, call->function, number, &function);
	memcpy(name, lane->name, sizeof(lane->name));
	gt_out_number(out, gt_export_ns(export, call->start));
	gt_out_char(out, ',');
	gt_out_number(out, lane->open);
	gt_out_char(out, ',');
	gt_out_number(out, call->id);
	gt_out_char(out, ',');
	if (parent_of(lane))
		gt_out_number(out, parent_of(lane));
	gt_out_char(out, ',');
	if (call->cpu != UINT32_MAX)
		gt_out_number(out, call->cpu);
	gt_out_char(out, ',');
	gt_out_number(out, lane->pid);
	gt_out_char(out, ',');
	gt_out_number(out, lane->tid);
	gt_out_char(out, ',');
	gt_out_csv(out, name);
	gt_out_char(out, ',');
	gt_out_csv(out, function.name);
	gt_out_char(out, ',');
	gt_out_csv(out, function.object);
	gt_out_char(out, ',');
	gt_out_number(out, gt_export_duration_ns(export, end - call->start));
	gt_out_char(out, ',');
	gt_out_number(out, gt_export_duration_ns(export, gt_export_self(call, end)));
	gt_out_char(out, ',');
	if (on_cpu(export, lane, call, end, &ns))
		gt_out_number(out, ns);
	gt_out_char(out, ',');
	gt_out_text(out, end_word(call));
	gt_out_char(out, ',');
	gt_out_csv(out, line->file);
	gt_out_char(out, ',');
	if (line->line)
		gt_out_number(out, line->line);
	gt_out_char(out, ',');
	gt_out_csv(out, call->arguments ? call->arguments : "");
	gt_out_char(out, ',');
	gt_out_csv(out, call->result ? call->result : "");
	gt_out_char(out, '\n');
	return out->error ? GT_EIO : GT_OK;
}

static void json_number(struct gt_out *out, const char *name, uint64_t number)
{
	gt_out_text(out, name);
	gt_out_number(out, number);
}

static void json_values(struct gt_out *out, const char *name, const char *text)
{
	gt_out_text(out, name);
	if (text)
		gt_out_json(out, text);
	else
		gt_out_text(out, "null");
}

static int leave_json(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		      uint64_t end)
{
	struct gt_out *out = &export->out;
	const struct gt_export_line *line = gt_export_line(export, call->function);
	struct gt_function function;
	char number[24], name[17] = "";
	uint64_t ns;

	gt_export_name(export, call->function, number, &function);
	memcpy(name, lane->name, sizeof(lane->name));
	json_number(out, "{\"start_ns\":", gt_export_ns(export, call->start));
	json_number(out, ",\"depth\":", lane->open);
	json_number(out, ",\"id\":", call->id);
	if (parent_of(lane))
		json_number(out, ",\"parent\":", parent_of(lane));
	else
		gt_out_text(out, ",\"parent\":null");
	if (call->cpu != UINT32_MAX)
		json_number(out, ",\"cpu\":", call->cpu);
	else
		gt_out_text(out, ",\"cpu\":null");
	json_number(out, ",\"pid\":", lane->pid);
	json_number(out, ",\"tid\":", lane->tid);
	gt_out_text(out, ",\"thread\":");
	gt_out_json(out, name);
	gt_out_text(out, ",\"function\":");
	gt_out_json(out, function.name);
	gt_out_text(out, ",\"object\":");
	gt_out_json(out, function.object);
	json_number(out, ",\"duration_ns\":", gt_export_duration_ns(export, end - call->start));
	json_number(out, ",\"self_ns\":", gt_export_duration_ns(export, gt_export_self(call, end)));
	if (on_cpu(export, lane, call, end, &ns))
		json_number(out, ",\"on_cpu_ns\":", ns);
	else
		gt_out_text(out, ",\"on_cpu_ns\":null");
	gt_out_text(out, ",\"end\":\"");
	gt_out_text(out, end_word(call));
	gt_out_char(out, '"');
	if (line->line) {
		gt_out_text(out, ",\"file\":");
		gt_out_json(out, line->file);
		json_number(out, ",\"line\":", line->line);
	} else {
		gt_out_text(out, ",\"file\":null,\"line\":null");
	}
	json_values(out, ",\"arguments\":", call->arguments);
	json_values(out, ",\"result\":", call->result);
	gt_out_text(out, "}\n");
	return out->error ? GT_EIO : GT_OK;
}

static void tab_values(struct gt_out *out, const char *text)
{
	gt_out_char(out, '\t');
	if (text)
		gt_out_tab_text(out, text);
	else
		gt_out_text(out, "\\N");
}

static int leave_clickhouse(struct gt_export *export, struct gt_lane *lane,
			    struct gt_stack_call *call, uint64_t end)
{
	struct gt_out *out = &export->out;
	struct gt_function function;
	char number[24], name[17] = "";
	uint64_t ns;

	gt_export_name(export, call->function, number, &function);
	memcpy(name, lane->name, sizeof(lane->name));
	gt_out_tab_text(out, export->about.host);
	gt_out_char(out, '\t');
	gt_out_tab_text(out, export->about.program);
	gt_out_char(out, '\t');
	gt_out_number(out, export->about.realtime_ns + gt_export_ns(export, call->start));
	gt_out_char(out, '\t');
	gt_out_number(out, lane->open);
	gt_out_char(out, '\t');
	gt_out_number(out, call->id);
	gt_out_char(out, '\t');
	gt_out_number(out, parent_of(lane));
	gt_out_char(out, '\t');
	if (call->cpu == UINT32_MAX)
		gt_out_text(out, "\\N");
	else
		gt_out_number(out, call->cpu);
	gt_out_char(out, '\t');
	gt_out_number(out, lane->pid);
	gt_out_char(out, '\t');
	gt_out_number(out, lane->tid);
	gt_out_char(out, '\t');
	gt_out_tab_text(out, name);
	gt_out_char(out, '\t');
	gt_out_tab_text(out, function.name);
	gt_out_char(out, '\t');
	gt_out_tab_text(out, function.object);
	gt_out_char(out, '\t');
	gt_out_tab_text(out, gt_export_build(export, call->function, &function));
	gt_out_char(out, '\t');
	gt_out_number(out, gt_export_duration_ns(export, end - call->start));
	gt_out_char(out, '\t');
	gt_out_number(out, gt_export_duration_ns(export, gt_export_self(call, end)));
	gt_out_char(out, '\t');
	if (on_cpu(export, lane, call, end, &ns))
		gt_out_number(out, ns);
	else
		gt_out_text(out, "\\N");
	gt_out_char(out, '\t');
	gt_out_text(out, end_word(call));
	tab_values(out, call->arguments);
	tab_values(out, call->result);
	gt_out_char(out, '\n');
	return out->error ? GT_EIO : GT_OK;
}

const struct gt_export_format gt_format_csv = {
	.name = "csv",
	.help = "a row a call: start, depth, parent, CPU, thread, duration, self time",
	.file = "trace-calls.csv",
	.state_bytes = sizeof(struct rows),
	.begin = begin_csv,
	.leave = leave_csv,
};

const struct gt_export_format gt_format_json = {
	.name = "json",
	.help = "the same as JSON, an object a line",
	.file = "trace-calls.jsonl",
	.state_bytes = sizeof(struct rows),
	.begin = begin,
	.leave = leave_json,
};

const struct gt_export_format gt_format_clickhouse = {
	.name = "clickhouse",
	.help = "rows for ClickHouse, tab-separated; --create-table: of what table",
	.file = "trace-calls.tsv",
	.create_table =
		"CREATE TABLE IF NOT EXISTS graftrace_calls (host String, program String, start_ns "
		"UInt64, depth UInt32, id UInt64, parent UInt64, cpu Nullable(UInt32), pid UInt32, "
		"tid UInt32, thread String, function String, object String, build String, "
		"duration_ns UInt64, self_ns UInt64, on_cpu_ns Nullable(UInt64), end String, "
		"arguments Nullable(String), result Nullable(String)) "
		"ENGINE = MergeTree ORDER BY (function, start_ns)",
	.state_bytes = sizeof(struct rows),
	.begin = begin,
	.leave = leave_clickhouse,
};
