/* SPDX-License-Identifier: MIT */
/* The order of the table's rows. */
#include "export/report.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/message.h"
#include "export/report_parts.h"

static const struct {
	const char *name;
	enum gt_report_key key;
} keys[] = {
	{ "total", GT_REPORT_TOTAL },
	{ "self", GT_REPORT_SELF },
	{ "calls", GT_REPORT_CALLS },
	{ "average", GT_REPORT_AVERAGE },
	{ "avg", GT_REPORT_AVERAGE },
	{ "minimum", GT_REPORT_MINIMUM },
	{ "maximum", GT_REPORT_MAXIMUM },
	{ "stddev", GT_REPORT_DEVIATION },
	{ "deviation", GT_REPORT_DEVIATION },
	{ "on-cpu", GT_REPORT_ON_CPU },
	{ "off-cpu", GT_REPORT_OFF_CPU },
	{ "p50", GT_REPORT_P50 },
	{ "median", GT_REPORT_P50 },
	{ "p90", GT_REPORT_P90 },
	{ "p99", GT_REPORT_P99 },
	{ "name", GT_REPORT_NAME },
	{ "function", GT_REPORT_NAME },
	{ "thread", GT_REPORT_NAME },
	{ "object", GT_REPORT_NAME },
	{ "process", GT_REPORT_NAME },
};

#define KEY_NAMES \
	"total, self, on-cpu, off-cpu, calls, avg, min, max, p50, p90, p99, stddev or name"

/* Finds the key that begins with the text, which has so many bytes. False: there is none. */
static bool find_key(const char *text, size_t bytes, enum gt_report_key *key)
{
	for (size_t i = 0; bytes >= 3 && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strncmp(keys[i].name, text, bytes) == 0) {
			*key = keys[i].key;
			return true;
		}
	return false;
}

int gt_report_parse_key(const char *text, enum gt_report_key *key, struct gt_message *message)
{
	if (find_key(text, strlen(text), key))
		return 0;
	return gt_fail(message, GT_EINVAL, "cannot sort by '%s': it is " KEY_NAMES, text);
}

int gt_report_parse_fields(const char *text, unsigned *fields, struct gt_message *message)
{
	for (;; text++) {
		size_t bytes = strcspn(text, ",");
		enum gt_report_key key;

		if (!find_key(text, bytes, &key))
			return gt_fail(message, GT_EINVAL,
				       "there is no field '%.*s': each is " KEY_NAMES, (int)bytes,
				       text);
		*fields |= 1u << key;
		text += bytes;
		if (*text == '\0')
			return 0;
	}
}

struct order {
	uint64_t value;
	const struct gt_report_row *row;
	bool by_calls; /* equal values: the row with more calls first */
};

static uint64_t value_of(const struct gt_report_row *row, enum gt_report_key key)
{
	switch (key) {
	case GT_REPORT_SELF:
		return row->self;
	case GT_REPORT_CALLS:
		return row->calls;
	case GT_REPORT_AVERAGE:
		return row->average;
	case GT_REPORT_MINIMUM:
		return row->minimum;
	case GT_REPORT_MAXIMUM:
		return row->maximum;
	case GT_REPORT_DEVIATION:
		return row->deviation;
	case GT_REPORT_ON_CPU:
		return gt_report_on_cpu(row);
	case GT_REPORT_OFF_CPU:
		return row->self_off;
	case GT_REPORT_P50:
		return row->p50;
	case GT_REPORT_P90:
		return row->p90;
	case GT_REPORT_P99:
		return row->p99;
	case GT_REPORT_NAME:
		return 0;
	default:
		return row->total;
	}
}

static int compare(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	if (x->row->calls != y->row->calls && x->by_calls)
		return x->row->calls < y->row->calls ? 1 : -1;
	int names = strcmp(x->row->name, y->row->name);
	return names ? names : strcmp(x->row->object, y->row->object);
}

void gt_report_sort(struct gt_report *report, enum gt_report_key key)
{
	size_t count = report->row_count;
	struct order *order = calloc(count ? count : 1, sizeof(*order));
	report->sorted = key;
	struct gt_report_row *rows = calloc(count ? count : 1, sizeof(*rows));
	if (order != NULL && rows != NULL) {
		for (size_t i = 0; i < count; i++)
			order[i] = (struct order){ .value = value_of(&report->rows[i], key),
						   .row = &report->rows[i],
						   .by_calls = key != GT_REPORT_NAME };
		qsort(order, count, sizeof(*order), compare);
		for (size_t i = 0; i < count; i++)
			rows[i] = *order[i].row;
		free(report->rows);
		report->rows = rows;
		rows = NULL;
	}
	free(rows);
	free(order);
}
