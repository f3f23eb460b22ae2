/* SPDX-License-Identifier: MIT */
/* The table of graftrace profile: see profile_table.h. */
#include "cli/profile_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/durations.h"
#include "core/trace/glob.h"
#include "export/report.h"
#include "export/short_names.h"

#define CALLS_WIDTH 11
#define TIME_WIDTH  13
#define NAME_WIDTH  26 /* the least for a name, with the blanks before it */

static const char *const sort_keys[] = { "total", "self", "calls", "avg", "stddev", "name" };
enum { SORT_TOTAL, SORT_SELF, SORT_CALLS, SORT_AVERAGE, SORT_DEVIATION, SORT_NAME, SORT_KEYS };

static int sort_by; /* for qsort */

bool gt_profile_table_sort_by(const char *key)
{
	for (int i = 0; i < SORT_KEYS; i++) {
		if (strcmp(key, sort_keys[i]) != 0)
			continue;
		sort_by = i;
		return true;
	}
	return false;
}

static uint64_t average(const struct gt_profile_row *row)
{
	return row->hits ? row->time_ns / row->hits : 0;
}

static uint64_t deviation(const struct gt_profile_row *row)
{
	return (uint64_t)sqrt((double)row->variance * 1000);
}

static uint64_t value_of(const struct gt_profile_row *row)
{
	switch (sort_by) {
	case SORT_SELF:
		return row->self_ns;
	case SORT_CALLS:
		return row->hits;
	case SORT_AVERAGE:
		return average(row);
	case SORT_DEVIATION:
		return row->variance;
	default:
		return row->time_ns;
	}
}

static int compare_rows(const void *left, const void *right)
{
	const struct gt_profile_row *a = left, *b = right;
	uint64_t x = value_of(a), y = value_of(b);

	if (sort_by != SORT_NAME && x != y)
		return x < y ? 1 : -1;
	if (sort_by != SORT_NAME && a->hits != b->hits)
		return a->hits < b->hits ? 1 : -1;
	return strcmp(a->named.name, b->named.name);
}

void gt_profile_table_sort(struct gt_profile_row *rows, uint32_t count)
{
	qsort(rows, count, sizeof(*rows), compare_rows);
}

/* Prints 13 columns: three decimals, in the unit that leaves at most three digits before the point;
 * nanoseconds without decimals. of_one: the duration of one call, which is unknown below the clock's grain. */
static void print_time(FILE *to, uint64_t ns, bool of_one)
{
	static const char *const units[] = { "us", "ms", "s " };
	uint64_t unit = 1000;
	int i = 0;

	if (of_one && ns < GT_REPORT_GRAIN_NS) {
		fprintf(to, "       <%d ns", GT_REPORT_GRAIN_NS);
		return;
	}
	if (ns < 1000) {
		fprintf(to, " %9u ns", (unsigned)ns);
		return;
	}
	while (i < 2 && ns / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	fprintf(to, " %5llu.%03llu %s", (unsigned long long)(ns / unit),
		(unsigned long long)(ns % unit / (unit / 1000)), units[i]);
}

static void print_csv_text(FILE *to, const char *text)
{
	if (strpbrk(text, ",\"\r\n") == NULL) {
		fputs(text, to);
		return;
	}
	putc('"', to);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			putc('"', to);
		putc(*text, to);
	}
	putc('"', to);
}

/* Is the deviation left out of a text, so that names have room in a narrow terminal? */
static bool is_narrow(const struct gt_profile_table *table)
{
	return !table->csv && !table->no_deviation && table->width != 0 &&
	       table->width < CALLS_WIDTH + 4 * TIME_WIDTH + NAME_WIDTH;
}

/* Behind so many columns of the line. */
static void print_name(FILE *to, const struct gt_profile_table *table, const char *name,
		       uint32_t before)
{
	char brief[GT_SHORT_NAME_MAX + 4];

	if (table->brief) {
		gt_short_name(name, brief);
		if (table->width > before + 8)
			gt_cut_middle(brief, table->width - before);
		name = brief;
	}
	for (const char *c = name; *c != '\0'; c++)
		putc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, to);
}

static void print_row(FILE *to, const struct gt_profile_table *table,
		      const struct gt_profile_row *row)
{
	const uint64_t times[] = { row->time_ns, row->self_ns, average(row), deviation(row) };
	const size_t count = table->no_deviation || is_narrow(table) ? 3 : 4;

	if (table->csv) {
		if (table->to_ns)
			fprintf(to, "%llu,%llu,", (unsigned long long)table->from_ns,
				(unsigned long long)table->to_ns);
		print_csv_text(to, row->named.name);
		putc(',', to);
		print_csv_text(to, row->named.object);
		fprintf(to, ",%llu", (unsigned long long)row->hits);
		for (size_t i = 0; i < count; i++)
			fprintf(to, ",%llu", (unsigned long long)times[i]);
	} else {
		fprintf(to, "%11llu", (unsigned long long)row->hits);
		for (size_t i = 0; i < count; i++)
			print_time(to, times[i], row->hits == 1 && i < 3);
		fputs("  ", to);
		print_name(to, table, row->named.name,
			   CALLS_WIDTH + TIME_WIDTH * (uint32_t)count + 2);
	}
	putc('\n', to);
}

void gt_profile_table_print(FILE *to, const struct gt_profile_table *table,
			    const struct gt_profile_row *rows, uint32_t count)
{
	uint32_t shown = table->limit && table->limit < count ? (uint32_t)table->limit : count;

	if (table->csv && !table->no_head)
		fprintf(to, "%sfunction,object,calls,total_ns,self_ns,average_ns%s\n",
			table->to_ns ? "from_ns,to_ns," : "",
			table->no_deviation ? "" : ",stddev_ns");
	else if (!table->csv)
		fprintf(to, "%11s %12s %12s %12s%s  %s\n", "Calls", "Total", "Self", "Average",
			table->no_deviation || is_narrow(table) ? "" : "       StdDev", "Function");
	for (uint32_t i = 0; i < shown; i++)
		print_row(to, table, &rows[i]);
	if (!table->csv && shown < count)
		fprintf(to, "\n%u more row%s not shown (--limit).\n", count - shown,
			count - shown == 1 ? " is" : "s are");
	if (is_narrow(table))
		fprintf(to, "\nToo narrow (%u columns) for: StdDev\n", table->width);
}

static void print_csv_hist(FILE *to, const struct gt_profile_row *row,
			   const uint64_t starts_ns[GT_DURATIONS])
{
	for (uint32_t i = 0; i < GT_DURATIONS; i++) {
		if (row->buckets[i] == 0)
			continue;
		print_csv_text(to, row->named.name);
		putc(',', to);
		print_csv_text(to, row->named.object);
		fprintf(to, ",%llu,", (unsigned long long)starts_ns[i]);
		if (i + 1 < GT_DURATIONS)
			fprintf(to, "%llu", (unsigned long long)starts_ns[i + 1]);
		fprintf(to, ",%llu\n", (unsigned long long)row->buckets[i]);
	}
}

static void print_hist(FILE *to, const struct gt_profile_table *table,
		       const struct gt_profile_row *row, const uint64_t starts_ns[GT_DURATIONS])
{
	const struct gt_durations durations = { row->buckets, starts_ns };
	char text[2 * GT_DURATIONS_LINE];
	uint32_t first = 0, last = 0;

	print_name(to, table, row->named.name, 0);
	putc('\n', to);
	gt_durations_head(&durations, row->hits, text, sizeof(text));
	fprintf(to, "  %s\n", text);
	if (!gt_durations_range(&durations, &first, &last))
		return;
	for (uint32_t i = first; i <= last; i++) {
		gt_durations_line(&durations, i, table->width, text, sizeof(text));
		fprintf(to, "%s\n", text);
	}
}

bool gt_profile_hists_print(FILE *to, const struct gt_profile_table *table,
			    const char *const *globs, const uint64_t starts_ns[GT_DURATIONS],
			    const struct gt_profile_row *rows, uint32_t count)
{
	uint64_t shown = 0, left = 0;

	if (table->csv)
		fputs("function,object,from_ns,to_ns,calls\n", to);
	for (uint32_t i = 0; i < count; i++) {
		bool wanted = false;

		for (const char *const *glob = globs; *glob != NULL && !wanted; glob++)
			wanted = gt_glob_match(*glob, rows[i].named.name);
		if (!wanted)
			continue;
		if (table->limit != 0 && shown == table->limit) {
			left++;
			continue;
		}
		if (table->csv) {
			print_csv_hist(to, &rows[i], starts_ns);
		} else {
			fputs(shown != 0 ? "\n" : "", to);
			print_hist(to, table, &rows[i], starts_ns);
		}
		shown++;
	}
	if (!table->csv && left != 0)
		fprintf(to, "\n%llu more functions are not shown (--limit).\n",
			(unsigned long long)left);
	return shown != 0;
}
