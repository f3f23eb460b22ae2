/* SPDX-License-Identifier: MIT */
/*
 * A row for each call, in the order in which calls end: `csv` (RFC 4180, with a header), `json` (an
 * object a line), `clickhouse` (as ClickHouse's TabSeparated reads it, with host and build beside, so that
 * recordings of many machines go into one table). Times are nanoseconds since the recording began, in
 * `clickhouse` since 1970; on_cpu is empty (null) where it is not known, and file and line of the function
 * in source are, too. Arguments and result are texts, empty (null) where they were not recorded.
 */
#include "export/columns.h"

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
	return 0;
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
	char number[24];
	uint64_t ns = 0;
	bool known;

	gt_export_name(export, call->function, number, &function);
	gt_csv_number(out, gt_export_ns(export, call->start), true);
	gt_csv_number(out, lane->open, true);
	gt_csv_number(out, call->id, true);
	gt_csv_number(out, parent_of(lane), parent_of(lane) != 0);
	gt_csv_thread(out, lane, call->cpu);
	gt_csv_text(out, function.name);
	gt_csv_text(out, function.object);
	gt_csv_number(out, gt_export_duration_ns(export, end - call->start), true);
	gt_csv_number(out, gt_export_duration_ns(export, gt_export_self(call, end)), true);
	known = on_cpu(export, lane, call, end, &ns);
	gt_csv_number(out, ns, known);
	gt_csv_text(out, end_word(call));
	gt_csv_text(out, line->file);
	gt_csv_number(out, line->line, line->line != 0);
	gt_csv_text(out, call->arguments);
	gt_out_csv(out, call->result != NULL ? call->result : "");
	gt_out_char(out, '\n');
	return out->error ? GT_EIO : 0;
}

static int leave_json(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		      uint64_t end)
{
	struct gt_out *out = &export->out;
	const struct gt_export_line *line = gt_export_line(export, call->function);
	struct gt_function function;
	char number[24];
	uint64_t ns = 0;
	bool known;

	gt_export_name(export, call->function, number, &function);
	gt_json_number(out, "{\"start_ns\":", gt_export_ns(export, call->start), true);
	gt_json_number(out, ",\"depth\":", lane->open, true);
	gt_json_number(out, ",\"id\":", call->id, true);
	gt_json_number(out, ",\"parent\":", parent_of(lane), parent_of(lane) != 0);
	gt_json_thread(out, lane, call->cpu);
	gt_json_text(out, ",\"function\":", function.name);
	gt_json_text(out, ",\"object\":", function.object);
	gt_json_number(out, ",\"duration_ns\":", gt_export_duration_ns(export, end - call->start),
		       true);
	gt_json_number(out,
		       ",\"self_ns\":", gt_export_duration_ns(export, gt_export_self(call, end)),
		       true);
	known = on_cpu(export, lane, call, end, &ns);
	gt_json_number(out, ",\"on_cpu_ns\":", ns, known);
	gt_json_text(out, ",\"end\":", end_word(call));
	gt_json_text(out, ",\"file\":", line->line ? line->file : NULL);
	gt_json_number(out, ",\"line\":", line->line, line->line != 0);
	gt_json_text(out, ",\"arguments\":", call->arguments);
	gt_json_text(out, ",\"result\":", call->result);
	gt_out_text(out, "}\n");
	return out->error ? GT_EIO : 0;
}

static int leave_clickhouse(struct gt_export *export, struct gt_lane *lane,
			    struct gt_stack_call *call, uint64_t end)
{
	struct gt_out *out = &export->out;
	struct gt_function function;
	char number[24];
	uint64_t ns = 0;
	bool known;

	gt_export_name(export, call->function, number, &function);
	gt_tab_origin(export, call->start);
	gt_tab_number(out, lane->open, true);
	gt_tab_number(out, call->id, true);
	gt_tab_number(out, parent_of(lane), true);
	gt_tab_thread(out, lane, call->cpu);
	gt_tab_text(out, function.name);
	gt_tab_text(out, function.object);
	gt_tab_text(out, gt_export_build(export, call->function, &function));
	gt_tab_number(out, gt_export_duration_ns(export, end - call->start), true);
	gt_tab_number(out, gt_export_duration_ns(export, gt_export_self(call, end)), true);
	known = on_cpu(export, lane, call, end, &ns);
	gt_tab_number(out, ns, known);
	gt_tab_text(out, end_word(call));
	gt_tab_text(out, call->arguments);
	if (call->result != NULL)
		gt_out_tab_text(out, call->result);
	else
		gt_out_text(out, "\\N");
	gt_out_char(out, '\n');
	return out->error ? GT_EIO : 0;
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
