/* SPDX-License-Identifier: MIT */
/* The difference as a table and as JSON: see diff.h. */
#include "export/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "export/short_names.h"

#define COLUMN_WIDTH 12
#define NAME_WIDTH   26 /* the least for a name in a narrow line, with the blanks before it */

static const char *const keys[GT_DIFF_KEYS] = { "self", "total", "calls", "p50", "p99" };
static const char *const titles[GT_DIFF_KEYS] = { "Self", "Total", "Calls", "p50", "p99" };

/* Writes COLUMN_WIDTH - 1 columns. `sign`: a plus sign before a positive value. */
static void put_time(struct gt_out *out, double ns, bool sign)
{
	static const char *const units[] = { "ns", "us", "ms", "s " };
	double size = fabs(ns);
	unsigned unit = 0;

	while (unit < 3 && size >= 999.5) {
		size /= 1000;
		unit++;
	}
	char number[32];
	snprintf(number, sizeof(number), "%s%.*f",
		 ns < 0		  ? "-"
		 : sign && ns > 0 ? "+"
				  : "",
		 unit == 0 ? 0 : 2, size);
	gt_out_printf(out, "%8s %s", number, units[unit]);
}

static void put_value(struct gt_out *out, enum gt_diff_key key, double value, bool sign)
{
	if (key == GT_DIFF_CALLS)
		gt_out_printf(out, sign ? "%+11.*f" : "%11.*f", value == floor(value) ? 0 : 1,
			      value);
	else
		put_time(out, value, sign);
}

/* Writes the difference in percent of the first side's value. */
static void put_percent(struct gt_out *out, const struct gt_diff_row *row, enum gt_diff_key key)
{
	double before = row->side[0].mean[key];

	if (row->side[0].mean[GT_DIFF_CALLS] <= 0)
		gt_out_printf(out, " %8s", "new");
	else if (row->side[1].mean[GT_DIFF_CALLS] <= 0)
		gt_out_printf(out, " %8s", "gone");
	else if (before <= 0 || fabs(row->change) >= 100 * before)
		gt_out_printf(out, " %8s", row->change > 0 ? "> 100 x" : "-");
	else
		gt_out_printf(out, " %+7.1f%%", 100 * row->change / before);
}

/* Chooses the keys for which there is room, the tested one first. Returns how many of `order`
 * are shown. */
static unsigned choose(const struct gt_diff *diff, uint32_t width, enum gt_diff_key order[])
{
	static const enum gt_diff_key telling[] = { GT_DIFF_SELF, GT_DIFF_CALLS, GT_DIFF_TOTAL,
						    GT_DIFF_P50, GT_DIFF_P99 };
	uint32_t used = COLUMN_WIDTH + 9 + 8 + NAME_WIDTH;
	unsigned count = 0;

	order[count++] = diff->key;
	for (unsigned i = 0; i < GT_DIFF_KEYS; i++)
		if (telling[i] != diff->key)
			order[count++] = telling[i];
	for (count = 1; count < GT_DIFF_KEYS; count++)
		if (width && used + 2 * COLUMN_WIDTH * (count + 1) > width)
			break;
	return count;
}

/* width: columns that there are, if it is brief; 0 any. */
static void put_name(struct gt_out *out, const char *name, bool brief, uint32_t width)
{
	char text[GT_SHORT_NAME_MAX + 4];

	if (brief) {
		gt_short_name(name, text);
		if (width != 0)
			gt_cut_middle(text, width);
		name = text;
	}
	for (; *name; name++)
		gt_out_char(out, gt_clean_char(*name));
}

static void put_row(struct gt_out *out, const struct gt_diff *diff, const struct gt_diff_row *row,
		    const enum gt_diff_key order[], unsigned shown, uint32_t width, bool color,
		    bool brief)
{
	uint32_t used = COLUMN_WIDTH + 9 + (isnan(row->p) ? 0 : 8) + 2 * COLUMN_WIDTH * shown + 1;
	bool paint = color && (row->stands_out || isnan(row->p));

	gt_out_text(out, !paint ? "" : row->change > 0 ? "\033[31m" : "\033[32m");
	put_value(out, diff->key, row->change, true);
	put_percent(out, row, diff->key);
	gt_out_text(out, paint ? "\033[0m" : "");
	if (!isnan(row->p))
		gt_out_printf(out, " %6.3f%c", row->p, row->stands_out ? '*' : ' ');
	for (unsigned i = 0; i < shown; i++)
		for (unsigned side = 0; side < 2; side++) {
			gt_out_char(out, ' ');
			if (row->side[side].mean[GT_DIFF_CALLS] > 0)
				put_value(out, order[i], row->side[side].mean[order[i]], false);
			else
				gt_out_printf(out, "%11s", "-  ");
		}
	gt_out_text(out, "  ");
	put_name(out, row->name, brief, width > used + 8 ? width - used : width != 0 ? 8 : 0);
	gt_out_char(out, '\n');
}

static void put_title(struct gt_out *out, const char *name, char side)
{
	char title[16];

	snprintf(title, sizeof(title), "%s %c", name, side);
	gt_out_printf(out, " %11s", title);
}

/* Short calls take the same number of the clock's ticks by chance, also if one side has more of them. */
static bool changed(const struct gt_diff_row *row)
{
	return row->change != 0 ||
	       row->side[0].mean[GT_DIFF_CALLS] != row->side[1].mean[GT_DIFF_CALLS];
}

void gt_diff_write_text(const struct gt_diff *diff, size_t limit, uint32_t width, bool color,
			bool brief, struct gt_out *out)
{
	bool tested = diff->runs[0] > 1 && diff->runs[1] > 1;
	enum gt_diff_key order[GT_DIFF_KEYS];
	unsigned shown = choose(diff, width, order);
	size_t written = 0, same = 0;

	gt_out_printf(out, "%s%11s %8s", color ? "\033[1m" : "", titles[diff->key], "change");
	if (tested)
		gt_out_printf(out, " %6s ", "p");
	for (unsigned i = 0; i < shown; i++) {
		put_title(out, titles[order[i]], 'A');
		put_title(out, titles[order[i]], 'B');
	}
	gt_out_printf(out, "  Function%s\n", color ? "\033[0m" : "");
	for (size_t i = 0; i < diff->count; i++) {
		if (!changed(&diff->rows[i])) {
			same++;
			continue;
		}
		if (limit && written == limit)
			continue;
		put_row(out, diff, &diff->rows[i], order, shown, width, color, brief);
		written++;
	}
	if (diff->count - same > written)
		gt_out_printf(out, "\n%zu more row%s not shown (--limit).\n",
			      diff->count - same - written,
			      diff->count - same - written == 1 ? " is" : "s are");
	if (same)
		gt_out_printf(out, "\n%zu function%s the same.\n", same,
			      same == 1 ? " is" : "s are");
	if (tested)
		gt_out_text(out,
			    "\n* stands out from the noise between the runs of a side (Welch's "
			    "test, false\ndiscovery rate 5 %).\n");
	else
		gt_out_text(out,
			    "\nWhether a difference is more than noise can be told with two runs "
			    "or more of each\nside: graftrace diff A1 A2 -- B1 B2\n");
}

void gt_diff_write_json(const struct gt_diff *diff, size_t limit, struct gt_out *out)
{
	static const char *const ends[GT_DIFF_KEYS] = { "_ns", "_ns", "", "_ns", "_ns" };
	size_t count = limit && limit < diff->count ? limit : diff->count;

	gt_out_printf(out,
		      "{\n  \"runs\": [%" PRIu32 ", %" PRIu32
		      "],\n  \"tested\": \"%s\",\n  \"rows\": [",
		      diff->runs[0], diff->runs[1], keys[diff->key]);
	for (size_t i = 0; i < count; i++) {
		const struct gt_diff_row *row = &diff->rows[i];

		gt_out_text(out, i ? ",\n    { \"function\": " : "\n    { \"function\": ");
		gt_out_json(out, row->name);
		gt_out_text(out, ", \"object\": ");
		gt_out_json(out, row->object);
		for (unsigned k = 0; k < GT_DIFF_KEYS; k++)
			gt_out_printf(out, ", \"%s%s\": [%.1f, %.1f]", keys[k], ends[k],
				      row->side[0].mean[k], row->side[1].mean[k]);
		if (!isnan(row->p))
			gt_out_printf(out, ", \"p\": %.6g, \"stands_out\": %s", row->p,
				      row->stands_out ? "true" : "false");
		gt_out_text(out, " }");
	}
	gt_out_printf(out, "%s]\n}\n", count ? "\n  " : "");
}
