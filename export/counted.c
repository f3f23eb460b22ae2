/* SPDX-License-Identifier: MIT */
/*
 * The profiler's figures for systems that store them: see counted.h.
 */
#include "export/counted.h"

#include <stdlib.h>
#include <string.h>

static int compare(const struct gt_counted_row *a, const struct gt_counted_row *b)
{
	int order = strcmp(a->function, b->function);

	return order ? order : strcmp(a->object, b->object);
}

static int compare_rows(const void *a, const void *b)
{
	return compare(a, b);
}

int gt_counted_take(struct gt_counted *counted, const struct gt_counted_row *rows, uint32_t count)
{
	struct gt_counted_row *sorted = malloc((count + 1u) * sizeof(*sorted));
	uint32_t kept = 0;

	if (sorted == NULL)
		return GT_ENOMEM;
	if (count > 0)
		memcpy(sorted, rows, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_rows);
	for (uint32_t i = 0; i < count; i++) {
		struct gt_counted_row *last = kept ? &sorted[kept - 1] : NULL;

		if (last != NULL && compare(last, &sorted[i]) == 0) {
			last->calls += sorted[i].calls;
			last->total_ns += sorted[i].total_ns;
			last->self_ns += sorted[i].self_ns;
		} else {
			sorted[kept++] = sorted[i];
		}
	}
	free(counted->rows);
	counted->rows = sorted;
	counted->count = kept;
	return 0;
}

void gt_counted_next(struct gt_counted *counted)
{
	free(counted->before);
	counted->before = counted->rows;
	counted->before_count = counted->count;
	counted->rows = NULL;
	counted->count = 0;
}

static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

struct gt_counted_row gt_counted_since(const struct gt_counted *counted, uint32_t index)
{
	struct gt_counted_row row = counted->rows[index];
	const struct gt_counted_row *before = NULL;

	if (counted->before_count > 0)
		before = bsearch(&row, counted->before, counted->before_count, sizeof(row),
				 compare_rows);
	if (before != NULL) {
		row.calls = more(row.calls, before->calls);
		row.total_ns = more(row.total_ns, before->total_ns);
		row.self_ns = more(row.self_ns, before->self_ns);
	}
	return row;
}

void gt_counted_fini(struct gt_counted *counted)
{
	free(counted->rows);
	free(counted->before);
	memset(counted, 0, sizeof(*counted));
}

/* ---- ClickHouse: a row for each function that was called in the interval, or returned ---- */

/* Functions without a call or a return in the interval have no row. */
static void put_clickhouse(const struct gt_counted *counted, const struct gt_counted_about *about,
			   struct gt_out *out)
{
	for (uint32_t i = 0; i < counted->count; i++) {
		const struct gt_counted_row row = gt_counted_since(counted, i);

		if (row.calls == 0 && row.total_ns == 0)
			continue;
		gt_out_tab_text(out, about->host);
		gt_out_char(out, '\t');
		gt_out_tab_text(out, about->program);
		gt_out_char(out, '\t');
		gt_out_number(out, about->pid);
		gt_out_char(out, '\t');
		gt_out_number(out, about->from_ns);
		gt_out_char(out, '\t');
		gt_out_number(out, about->to_ns);
		gt_out_char(out, '\t');
		gt_out_tab_text(out, row.function);
		gt_out_char(out, '\t');
		gt_out_tab_text(out, row.object);
		gt_out_char(out, '\t');
		gt_out_tab_text(out, row.build);
		gt_out_char(out, '\t');
		gt_out_number(out, row.calls);
		gt_out_char(out, '\t');
		gt_out_number(out, row.total_ns);
		gt_out_char(out, '\t');
		gt_out_number(out, row.self_ns);
		gt_out_char(out, '\n');
	}
}

/* ---- OTLP: an ExportMetricsServiceRequest in JSON, a line an interval ---- */

static void attribute(struct gt_out *out, const char *key, const char *value)
{
	gt_out_text(out, "{\"key\":\"");
	gt_out_text(out, key);
	gt_out_text(out, "\",\"value\":{\"stringValue\":");
	gt_out_json(out, value);
	gt_out_text(out, "}}");
}

/* 64-bit numbers are strings in protobuf's JSON. */
static void quoted(struct gt_out *out, const char *name, uint64_t number)
{
	gt_out_text(out, name);
	gt_out_char(out, '"');
	gt_out_number(out, number);
	gt_out_char(out, '"');
}

static void begin_sum(struct gt_out *out, const char *between, const char *name, const char *unit,
		      const char *what)
{
	gt_out_printf(out,
		      "%s{\"name\":\"%s\",\"unit\":\"%s\",\"description\":\"%s\",\"sum\":{"
		      "\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":[",
		      between, name, unit, what);
}

static void data_point(struct gt_out *out, const struct gt_counted_about *about,
		       const struct gt_counted_row *row, uint64_t value)
{
	gt_out_char(out, '{');
	if (row != NULL) {
		gt_out_text(out, "\"attributes\":[");
		attribute(out, "code.function.name", row->function);
		gt_out_char(out, ',');
		attribute(out, "graftrace.object", row->object);
		if (row->build[0]) {
			gt_out_char(out, ',');
			attribute(out, "graftrace.build_id", row->build);
		}
		gt_out_text(out, "],");
	}
	quoted(out, "\"startTimeUnixNano\":", about->start_ns);
	quoted(out, ",\"timeUnixNano\":", about->to_ns);
	quoted(out, ",\"asInt\":", value);
	gt_out_char(out, '}');
}

static uint64_t value_of(const struct gt_counted_row *row, int which)
{
	return which == 0 ? row->calls : which == 1 ? row->total_ns : row->self_ns;
}

static const struct {
	const char *otlp, *unit, *prometheus, *what;
} sums[] = {
	{ "graftrace.function.calls", "{call}", "graftrace_function_calls_total",
	  "Calls of a function that have begun." },
	{ "graftrace.function.time", "ns", "graftrace_function_seconds_total",
	  "Time of a function from entry to return, of calls that have returned." },
	{ "graftrace.function.self_time", "ns", "graftrace_function_self_seconds_total",
	  "Time of a function without that of the functions it called." },
};
#define SUMS 3

static const char lost_what[] = "Calls that are in no function's figures.";

static void put_otlp(const struct gt_counted *counted, const struct gt_counted_about *about,
		     struct gt_out *out)
{
	const char *name = strrchr(about->program, '/');

	gt_out_text(out, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[");
	attribute(out, "service.name", name != NULL ? name + 1 : about->program);
	gt_out_char(out, ',');
	attribute(out, "process.executable.path", about->program);
	gt_out_char(out, ',');
	attribute(out, "host.name", about->host);
	quoted(out, ",{\"key\":\"process.pid\",\"value\":{\"intValue\":", about->pid);
	gt_out_text(out, "}}]},\"scopeMetrics\":[{\"scope\":{\"name\":\"graftrace\",\"version\":");
	gt_out_json(out, about->version);
	gt_out_text(out, "},\"metrics\":[");
	begin_sum(out, "", "graftrace.lost_calls", "{call}", lost_what);
	data_point(out, about, NULL, about->lost);
	/* OTLP does not allow a sum without data points. */
	for (int which = 0; counted->count > 0 && which < SUMS; which++) {
		begin_sum(out, "]}},", sums[which].otlp, sums[which].unit, sums[which].what);
		for (uint32_t i = 0; i < counted->count; i++) {
			if (i > 0)
				gt_out_char(out, ',');
			data_point(out, about, &counted->rows[i],
				   value_of(&counted->rows[i], which));
		}
	}
	gt_out_text(out, "]}}]}]}]}\n");
}

/* ---- Prometheus: the text exposition format, version 0.0.4 ---- */

/* Writes the value of a label: escapes backslash, quote and line end, replaces bytes that are
 * not UTF-8. */
static void label(struct gt_out *out, const char *name, const char *value)
{
	gt_out_text(out, name);
	gt_out_text(out, "=\"");
	while (*value) {
		unsigned length = gt_utf8_length(value);

		if (*value == '\n') {
			gt_out_text(out, "\\n");
		} else if (length == 0) {
			gt_out_text(out, "\xef\xbf\xbd");
		} else {
			if (*value == '"' || *value == '\\')
				gt_out_char(out, '\\');
			gt_out_bytes(out, value, length);
		}
		value += length ? length : 1;
	}
	gt_out_char(out, '"');
}

static void seconds(struct gt_out *out, uint64_t ns)
{
	gt_out_printf(out, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
		      (unsigned long long)(ns % 1000000000));
}

static void head(struct gt_out *out, const char *name, const char *what)
{
	gt_out_printf(out, "# HELP %s %s\n# TYPE %s counter\n", name, what, name);
}

static void put_prometheus(const struct gt_counted *counted, const struct gt_counted_about *about,
			   struct gt_out *out)
{
	for (int which = 0; which < SUMS; which++) {
		head(out, sums[which].prometheus, sums[which].what);
		for (uint32_t i = 0; i < counted->count; i++) {
			const struct gt_counted_row *row = &counted->rows[i];

			gt_out_text(out, sums[which].prometheus);
			label(out, "{program", about->program);
			label(out, ",function", row->function);
			label(out, ",object", row->object);
			label(out, ",build", row->build);
			gt_out_text(out, "} ");
			if (which == 0)
				gt_out_number(out, row->calls);
			else
				seconds(out, value_of(row, which));
			gt_out_char(out, '\n');
		}
	}
	head(out, "graftrace_lost_calls_total", lost_what);
	gt_out_text(out, "graftrace_lost_calls_total");
	label(out, "{program", about->program);
	gt_out_text(out, "} ");
	gt_out_number(out, about->lost);
	gt_out_char(out, '\n');
}

const struct gt_counted_format gt_counted_formats[] = {
	{
		.name = "clickhouse",
		.content_type = "text/tab-separated-values",
		.path = "/?query=INSERT%20INTO%20graftrace_profile%20FORMAT%20TabSeparated",
		.create_table =
			"CREATE TABLE IF NOT EXISTS graftrace_profile (host String, program "
			"String, pid UInt32, from_ns UInt64, to_ns UInt64, function String, object "
			"String, build String, calls UInt64, total_ns UInt64, self_ns UInt64) "
			"ENGINE = MergeTree ORDER BY (program, function, from_ns)",
		.put = put_clickhouse,
	},
	{
		.name = "otlp",
		.content_type = "application/json",
		.path = "/v1/metrics",
		.put = put_otlp,
	},
	{
		.name = "prometheus",
		.content_type = "text/plain; version=0.0.4",
		.path = "/metrics/job/graftrace/instance/%s",
		.whole = true,
		.put = put_prometheus,
	},
	{ .name = NULL },
};
