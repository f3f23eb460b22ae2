/* SPDX-License-Identifier: MIT */
/*
 * The table's three forms: aligned text with a unit for each time, CSV and JSON with nanoseconds.
 * Names may contain any bytes: CSV quotes as RFC 4180 says, JSON escapes, text shows control
 * characters as '?'.
 */
#include "export/report.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/message.h"
#include "export/out.h"
#include "export/report_parts.h"
#include "export/short_names.h"

/* ---- text that grows ---- */

struct text {
	char *bytes;
	size_t used, size;
	bool failed;
};

static bool reserve(struct text *text, size_t bytes)
{
	if (text->failed)
		return false;
	if (text->size - text->used > bytes)
		return true;
	size_t wanted = (text->size + bytes) * 2;
	char *grown = realloc(text->bytes, wanted);
	if (grown == NULL) {
		text->failed = true;
		return false;
	}
	text->bytes = grown;
	text->size = wanted;
	return true;
}

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *text, const char *format, ...)
{
	va_list arguments;
	if (!reserve(text, 1024))
		return;
	va_start(arguments, format);
	text->used += gt_format_v(text->bytes + text->used, 1024, format, arguments);
	va_end(arguments);
}

static void add_char(struct text *text, char c)
{
	if (!reserve(text, 2))
		return;
	text->bytes[text->used++] = c;
	text->bytes[text->used] = 0;
}

static void add_clean(struct text *text, const char *name)
{
	for (; *name; name++)
		add_char(text, gt_clean_char(*name));
}

static void add_csv(struct text *text, const char *name)
{
	if (strpbrk(name, ",\"\r\n") == NULL) {
		for (; *name; name++)
			add_char(text, *name);
		return;
	}
	add_char(text, '"');
	for (; *name; name++) {
		if (*name == '"')
			add_char(text, '"');
		add_char(text, *name);
	}
	add_char(text, '"');
}

static void add_json(struct text *text, const char *name)
{
	add_char(text, '"');
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;
		if (c == '"' || c == '\\')
			add_char(text, '\\');
		if (c < ' ')
			add(text, "\\u%04x", (unsigned)c);
		else
			add_char(text, *name);
	}
	add_char(text, '"');
}

/* ---- the three forms ---- */

/* Adds 12 columns: three decimals, in the unit that leaves at most three digits before the
 * point; nanoseconds without decimals. of_one: the duration of one call, which is unknown below
 * the clock's grain. */
static void add_time(struct text *text, uint64_t ns, bool of_one)
{
	static const char *const units[] = { "us", "ms", "s " };
	uint64_t unit = 1000;
	unsigned i = 0;

	if (of_one && ns < GT_REPORT_GRAIN_NS) {
		add(text, "%9s ns", "<20");
		return;
	}
	if (ns < 1000) {
		add(text, "%9u ns", (unsigned)ns);
		return;
	}
	while (i < 2 && ns / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	add(text, "%5llu.%03llu %s", (unsigned long long)(ns / unit),
	    (unsigned long long)(ns % unit / (unit / 1000)), units[i]);
}

static const char *const titles[] = {
	"Function", "Thread", "Object", "Caller", "Callee", "Process"
};
static const char *const fields[] = {
	"function", "thread", "object", "caller", "callee", "process"
};

/* The columns of times, in their order. */
enum { TOTAL, SELF, ON_CPU, OFF_CPU, AVERAGE, MINIMUM, P50, P90, P99, MAXIMUM, DEVIATION, COLUMNS };
_Static_assert(GT_REPORT_GRAIN_NS == 20, "add_time prints it");
#define COLUMN_WIDTH 13
#define OPEN_WIDTH   10
#define PART_WIDTH   8
#define NAME_WIDTH   26 /* the least for a name in a narrow line, with the blanks before it */

static const char *const columns[COLUMNS] = { "Total",	 "Self", "On CPU", "Off CPU",
					      "Average", "Min",	 "p50",	   "p90",
					      "p99",	 "Max",	 "StdDev" };

/* The columns of the keys; COLUMNS: of what is always there. */
static const unsigned char of_key[] = {
	[GT_REPORT_TOTAL] = TOTAL,
	[GT_REPORT_SELF] = SELF,
	[GT_REPORT_CALLS] = COLUMNS,
	[GT_REPORT_AVERAGE] = AVERAGE,
	[GT_REPORT_MINIMUM] = MINIMUM,
	[GT_REPORT_MAXIMUM] = MAXIMUM,
	[GT_REPORT_DEVIATION] = DEVIATION,
	[GT_REPORT_ON_CPU] = ON_CPU,
	[GT_REPORT_OFF_CPU] = OFF_CPU,
	[GT_REPORT_NAME] = COLUMNS,
	[GT_REPORT_P50] = P50,
	[GT_REPORT_P90] = P90,
	[GT_REPORT_P99] = P99,
};

/* Returns a bit for each column that was asked for by name. */
static unsigned asked_columns(unsigned fields)
{
	unsigned shown = 0;

	for (size_t key = 0; key < sizeof(of_key) / sizeof(of_key[0]); key++)
		if (fields & 1u << key && of_key[key] < COLUMNS)
			shown |= 1u << of_key[key];
	return shown;
}

/* Returns a bit for each column that is shown: as many as leave room for a name, in order of
 * importance. */
static unsigned choose_columns(const struct gt_report *report, unsigned fields, uint32_t width)
{
	static const unsigned char telling[] = { TOTAL,	  SELF,	  OFF_CPU, MAXIMUM, P50,      P99,
						 AVERAGE, ON_CPU, P90,	   MINIMUM, DEVIATION };
	unsigned shown = 0, sorted = of_key[report->sorted];
	uint32_t used = 11 + (report->not_returned ? OPEN_WIDTH : 0) + PART_WIDTH + NAME_WIDTH;

	if (fields)
		return asked_columns(fields) &
		       (report->has_off_cpu ? ~0u : ~(1u << ON_CPU | 1u << OFF_CPU));
	if (sorted < COLUMNS) {
		shown |= 1u << sorted;
		used += COLUMN_WIDTH;
	}
	for (size_t i = 0; i < COLUMNS; i++) {
		unsigned column = telling[i];

		if (shown & 1u << column)
			continue;
		if (width && used + COLUMN_WIDTH > width)
			break;
		if ((column == ON_CPU || column == OFF_CPU) && !report->has_off_cpu)
			continue;
		shown |= 1u << column;
		used += COLUMN_WIDTH;
	}
	return shown;
}

/* Adds the share of all self times, in a warm color if it is large. */
static void add_part(struct text *text, const struct gt_report *report,
		     const struct gt_report_row *row, bool color)
{
	double part = report->self ? 100.0 * (double)row->self / (double)report->self : 0;
	/* Times of a damaged trace may exceed their saturated sum. */
	if (part > 100)
		part = 100;
	unsigned hundredths = (unsigned)(part * 100 + 0.5);
	const char *on = !color ? "" : part >= 10 ? "\033[31m" : part >= 1 ? "\033[33m" : "\033[2m";

	add(text, " %s%4u.%02u%s", on, hundredths / 100, hundredths % 100, *on ? "\033[0m" : "");
}

/* Returns the width of the columns before the names. */
static uint32_t shown_width(const struct gt_report *report, unsigned shown)
{
	return PART_WIDTH + 12 + (report->not_returned ? OPEN_WIDTH : 0) +
	       COLUMN_WIDTH * (uint32_t)__builtin_popcount(shown) + 2;
}

static void add_name(struct text *text, const char *name, const struct gt_report_style *style,
		     uint32_t before)
{
	char brief[GT_SHORT_NAME_MAX + 4];

	if (!style->brief) {
		add_clean(text, name);
		return;
	}
	gt_short_name(name, brief);
	if (style->width > before + 4)
		gt_cut_middle(brief, style->width - before);
	add_clean(text, brief);
}

/* Adds "  words.c:41" after the name. */
static void add_note(struct text *text, const struct gt_report_row *row,
		     const struct gt_report_style *style)
{
	const char *note = style->sources != NULL && row->function
				   ? gt_sources_note(style->sources, row->function)
				   : NULL;

	if (note != NULL)
		add(text, "  %s%s%s", style->color ? "\033[2m" : "", note,
		    style->color ? "\033[0m" : "");
}

static void add_line(struct text *text, const struct gt_report *report,
		     const struct gt_report_row *row, unsigned shown,
		     const struct gt_report_style *style)
{
	const uint64_t times[COLUMNS] = { row->total,	 row->self,	gt_report_on_cpu(row),
					  row->self_off, row->average,	row->minimum,
					  row->p50,	 row->p90,	row->p99,
					  row->maximum,	 row->deviation };
	add_part(text, report, row, style->color);
	add(text, " %11llu", (unsigned long long)row->calls);
	if (report->not_returned)
		add(text, " %9llu", (unsigned long long)row->not_returned);
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!(shown & 1u << i))
			continue;
		add_char(text, ' ');
		if (row->returned || (i == OFF_CPU && row->self_off))
			add_time(text, times[i], i >= AVERAGE && i != DEVIATION);
		else
			add(text, "%12s", "-  ");
	}
	add(text, "  ");
	add_name(text, row->name, style, shown_width(report, shown));
	add_note(text, row, style);
	add_char(text, '\n');
}

static void add_left_out(struct text *text, const struct gt_report *report, unsigned shown,
			 uint32_t width)
{
	const char *before = "\nToo narrow (";
	for (unsigned i = 0; i < COLUMNS; i++) {
		bool is_there = (i != ON_CPU && i != OFF_CPU) || report->has_off_cpu;
		if (!is_there || shown & 1u << i)
			continue;
		if (*before == '\n')
			add(text, "%s%u columns) for: %s", before, width, columns[i]);
		else
			add(text, "%s%s", before, columns[i]);
		before = ", ";
	}
	if (*before != '\n')
		add(text, ".\n");
}

/* Adds the time outside of calls, if it is a tenth or more: less is the start and end of the
 * recording. For a kernel's threads it is unknown how long they existed. */
static void add_outside(struct text *text, const struct gt_report *report)
{
	if (report->by == GT_REPORT_CALLER || report->by == GT_REPORT_CALLEE || !report->calls ||
	    !report->span || report->outside < report->span / 10)
		return;
	uint64_t outside_ms = report->outside / 1000000, span_ms = report->span / 1000000;
	add(text,
	    "\nOutside: %llu.%03llu s of the threads' %llu.%03llu s are in none of these calls: "
	    "they "
	    "were in calls\nthat had begun before the recording or did not return, or that are not "
	    "traced.\n",
	    (unsigned long long)outside_ms / 1000, (unsigned long long)outside_ms % 1000,
	    (unsigned long long)span_ms / 1000, (unsigned long long)span_ms % 1000);
}

static void format_text(struct text *text, const struct gt_report *report,
			const struct gt_report_style *style, size_t limit)
{
	uint32_t width = style->width;
	unsigned shown = choose_columns(report, style->fields, width);

	add(text, "%s%8s %11s", style->color ? "\033[1m" : "", "Self %", "Calls");
	if (report->not_returned)
		add(text, " %9s", "Open");
	for (unsigned i = 0; i < COLUMNS; i++)
		if (shown & 1u << i)
			add(text, " %12s", columns[i]);
	add(text, "  %s%s\n", titles[report->by], style->color ? "\033[0m" : "");
	for (size_t i = 0; i < limit; i++)
		add_line(text, report, &report->rows[i], shown, style);
	if (!style->fields)
		add_left_out(text, report, shown, width);
	if (limit < report->row_count)
		add(text, "\n%zu more row%s not shown (--limit).\n", report->row_count - limit,
		    report->row_count - limit == 1 ? " is" : "s are");
	if (report->not_returned)
		add(text,
		    "\nOpen: %llu of the calls did not return (unwound, or still open at the "
		    "end); they are in no time.\n",
		    (unsigned long long)report->not_returned);
	add_outside(text, report);
	if (report->untimed)
		add(text,
		    "\n%llu call%s recorded without %s entry or return: counted, in no time.\n",
		    (unsigned long long)report->untimed, report->untimed == 1 ? " was" : "s were",
		    report->untimed == 1 ? "its" : "their");
	if (report->self_upper_bound)
		add(text,
		    "\nOf %llu calls not all records are there: some were lost, or the calls began "
		    "in "
		    "the process\nthat forked this one. Their self times may be less than counted "
		    "here.\n",
		    (unsigned long long)report->self_upper_bound);
}

static bool has_objects(const struct gt_report *report)
{
	return report->by != GT_REPORT_THREAD && report->by != GT_REPORT_OBJECT &&
	       report->by != GT_REPORT_PROCESS;
}

/* For CSV and JSON: finds the source line; false if it is unknown. */
static bool find_line(const struct gt_report_row *row, const struct gt_report_style *style,
		      struct gt_source_line *line)
{
	return row->function && gt_target_line(style->sources->target, row->function, line) == 0;
}

static void csv_line(struct text *text, const struct gt_report_row *row,
		     const struct gt_report_style *style)
{
	struct gt_source_line line;

	if (!find_line(row, style, &line)) {
		add(text, ",,");
		return;
	}
	add_char(text, ',');
	add_csv(text, line.file);
	add(text, ",%u", line.line);
}

static void json_line(struct text *text, const struct gt_report_row *row,
		      const struct gt_report_style *style)
{
	struct gt_source_line line;

	if (!find_line(row, style, &line))
		return;
	add(text, ", \"file\": ");
	add_json(text, line.file);
	add(text, ", \"line\": %u", line.line);
}

/* The times as CSV and JSON have them, in their order; `column` says which field asks for each. */
enum { TIMES = 12 };
static const struct {
	const char *name;
	unsigned char column;
	bool is_off_cpu; /* known of recordings with context switches; also where no call returned */
} times_told[TIMES] = {
	{ "total_ns", TOTAL, false },
	{ "self_ns", SELF, false },
	{ "average_ns", AVERAGE, false },
	{ "minimum_ns", MINIMUM, false },
	{ "maximum_ns", MAXIMUM, false },
	{ "stddev_ns", DEVIATION, false },
	{ "p50_ns", P50, false },
	{ "p90_ns", P90, false },
	{ "p99_ns", P99, false },
	{ "self_on_cpu_ns", ON_CPU, true },
	{ "self_off_cpu_ns", OFF_CPU, true },
	{ "total_off_cpu_ns", OFF_CPU, true },
};

/* Is that time of the table wanted, and known? */
static bool is_told(const struct gt_report *report, unsigned fields, size_t time)
{
	return (!fields || asked_columns(fields) & 1u << times_told[time].column) &&
	       (report->has_off_cpu || !times_told[time].is_off_cpu);
}

static void get_times(const struct gt_report_row *row, uint64_t times[TIMES])
{
	const uint64_t values[TIMES] = {
		row->total,	row->self,     row->average, row->minimum, row->maximum,
		row->deviation, row->p50,      row->p90,     row->p99,	   gt_report_on_cpu(row),
		row->self_off,	row->total_off
	};

	memcpy(times, values, sizeof(values));
}

static void format_csv(struct text *text, const struct gt_report *report,
		       const struct gt_report_style *style, size_t limit)
{
	bool functions = has_objects(report);
	uint64_t times[TIMES];

	add(text, "%s%s,calls,not_returned", fields[report->by], functions ? ",object" : "");
	for (size_t t = 0; t < TIMES; t++)
		if (is_told(report, style->fields, t))
			add(text, ",%s", times_told[t].name);
	add(text, "%s\n", style->sources != NULL ? ",file,line" : "");
	for (size_t i = 0; i < limit; i++) {
		const struct gt_report_row *row = &report->rows[i];

		get_times(row, times);
		add_csv(text, row->name);
		if (functions) {
			add_char(text, ',');
			add_csv(text, row->object);
		}
		add(text, ",%llu,%llu", (unsigned long long)row->calls,
		    (unsigned long long)row->not_returned);
		for (size_t t = 0; t < TIMES; t++) {
			if (!is_told(report, style->fields, t))
				continue;
			add_char(text, ',');
			if (row->returned || times_told[t].is_off_cpu)
				add(text, "%llu", (unsigned long long)times[t]);
		}
		if (style->sources != NULL)
			csv_line(text, row, style);
		add_char(text, '\n');
	}
}

static void format_json(struct text *text, const struct gt_report *report,
			const struct gt_report_style *style, size_t limit)
{
	uint64_t times[TIMES];

	add(text,
	    "{\n  \"by\": \"%s\",\n  \"calls\": %llu,\n  \"not_returned\": %llu,\n"
	    "  \"untimed\": %llu,\n  \"self_upper_bound\": %llu,\n  \"threads\": %u,\n"
	    "  \"rows\": [",
	    fields[report->by], (unsigned long long)report->calls,
	    (unsigned long long)report->not_returned, (unsigned long long)report->untimed,
	    (unsigned long long)report->self_upper_bound, report->threads);
	for (size_t i = 0; i < limit; i++) {
		const struct gt_report_row *row = &report->rows[i];

		get_times(row, times);
		add(text, "%s\n    { \"%s\": ", i ? "," : "", fields[report->by]);
		add_json(text, row->name);
		if (has_objects(report)) {
			add(text, ", \"object\": ");
			add_json(text, row->object);
		}
		add(text, ", \"calls\": %llu, \"not_returned\": %llu",
		    (unsigned long long)row->calls, (unsigned long long)row->not_returned);
		for (size_t t = 0; t < TIMES; t++)
			if (is_told(report, style->fields, t) &&
			    (row->returned || times_told[t].is_off_cpu))
				add(text, ", \"%s\": %llu", times_told[t].name,
				    (unsigned long long)times[t]);
		if (style->sources != NULL)
			json_line(text, row, style);
		add(text, " }");
	}
	add(text, "%s]\n}\n", limit ? "\n  " : "");
}

static int finish(struct text *text, char **made, size_t *bytes)
{
	if (text->failed) {
		free(text->bytes);
		return GT_ENOMEM;
	}
	*made = text->bytes;
	*bytes = text->used;
	return 0;
}

static size_t rows_shown(const struct gt_report *report, const struct gt_report_style *style)
{
	return style->limit && style->limit < report->row_count ? style->limit : report->row_count;
}

int gt_report_format(const struct gt_report *report, const struct gt_report_style *style,
		     char **made, size_t *bytes)
{
	struct text text = { 0 };
	size_t limit = rows_shown(report, style);

	if (style->format == GT_REPORT_CSV)
		format_csv(&text, report, style, limit);
	else if (style->format == GT_REPORT_JSON)
		format_json(&text, report, style, limit);
	else
		format_text(&text, report, style, limit);
	return finish(&text, made, bytes);
}

/* ---- how durations are spread ---- */

#define BAR_WIDTH 40

/* Returns the powers of two between which a row's durations are: [low, high); low is 0 or a
 * power. */
static bool spread_ends(const struct gt_histogram *histogram, uint64_t *low, uint64_t *high)
{
	bool any = false;

	for (uint64_t from = 0, to = 1; to < 1ull << 44; from = to, to *= 2) {
		if (!gt_histogram_between(histogram, from, to))
			continue;
		if (!any)
			*low = from;
		any = true;
		*high = to;
	}
	return any;
}

/* The text's first line ends here: which calls took how long is unknown below the clock's grain. */
#define FIRST_END 32u
_Static_assert(FIRST_END >= GT_REPORT_GRAIN_NS, "the other lines are above the grain");

static uint64_t end_of_line(uint64_t from)
{
	return from ? from * 2 : FIRST_END;
}

static uint64_t most_of(const struct gt_histogram *histogram, uint64_t low, uint64_t high)
{
	uint64_t most = 1;

	for (uint64_t from = low, to; (to = end_of_line(from)) <= high; from = to) {
		uint64_t count = gt_histogram_between(histogram, from, to);
		most = count > most ? count : most;
	}
	return most;
}

static void spread_text(struct text *text, const struct gt_report_row *row, bool color)
{
	uint64_t low = 0, high = 0, most;

	add(text, "%s", color ? "\033[1m" : "");
	add_clean(text, row->name);
	add(text, "%s\n  %llu calls: p50 ", color ? "\033[0m" : "",
	    (unsigned long long)row->returned);
	const uint64_t known[] = { row->p50, row->p90, row->p99, row->maximum };
	static const char *const names[] = { ", p90 ", ", p99 ", ", max ", "\n" };
	for (size_t i = 0; i < 4; i++) {
		add_time(text, known[i], true);
		add(text, "%s", names[i]);
	}
	if (!spread_ends(&row->durations, &low, &high))
		return;
	if (low < FIRST_END)
		low = 0;
	if (high < FIRST_END)
		high = FIRST_END;
	most = most_of(&row->durations, low, high);
	for (uint64_t from = low, to; (to = end_of_line(from)) <= high; from = to) {
		uint64_t count = gt_histogram_between(&row->durations, from, to);
		unsigned bar = (unsigned)((count * BAR_WIDTH + most - 1) / most);

		add_time(text, from, false);
		add(text, " - ");
		add_time(text, to, false);
		add(text, " %11llu |%s", (unsigned long long)count, color ? "\033[36m" : "");
		for (unsigned i = 0; i < BAR_WIDTH; i++)
			add_char(text, i < bar ? '#' : ' ');
		add(text, "%s|\n", color ? "\033[0m" : "");
	}
}

static void spread_json(struct text *text, const struct gt_report *report,
			const struct gt_report_row *row)
{
	uint64_t low = 0, high = 0;
	const char *before = "";

	add(text, "    { \"%s\": ", fields[report->by]);
	add_json(text, row->name);
	add(text, ", \"returned\": %llu, \"steps\": [", (unsigned long long)row->returned);
	if (spread_ends(&row->durations, &low, &high))
		for (uint64_t from = low, to = low ? low * 2 : 1; to <= high; from = to, to *= 2) {
			add(text, "%s{\"from_ns\": %llu, \"to_ns\": %llu, \"calls\": %llu}", before,
			    (unsigned long long)from, (unsigned long long)to,
			    (unsigned long long)gt_histogram_between(&row->durations, from, to));
			before = ", ";
		}
	add(text, "] }");
}

int gt_report_format_spread(const struct gt_report *report, const struct gt_report_style *style,
			    char **made, size_t *bytes)
{
	struct text text = { 0 };
	size_t limit = rows_shown(report, style);
	bool json = style->format == GT_REPORT_JSON;

	if (json)
		add(&text, "{\n  \"rows\": [");
	for (size_t i = 0; i < limit; i++) {
		add(&text, "%s", !i ? (json ? "\n" : "") : json ? ",\n" : "\n");
		if (json)
			spread_json(&text, report, &report->rows[i]);
		else
			spread_text(&text, &report->rows[i], style->color);
	}
	if (json)
		add(&text, "%s]\n}\n", limit ? "\n  " : "");
	add(&text, "%s", ""); /* allocates the text even without rows */
	return finish(&text, made, bytes);
}
