/* SPDX-License-Identifier: MIT */
/* The difference between two sides of runs: see diff.h. */
#include "export/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/hash.h"
#include "core/trace/message.h"

#define OUT_RATE 0.05 /* expected part of noise among the rows that stand out */

int gt_diff_parse_key(const char *text, enum gt_diff_key *key, struct gt_message *message)
{
	static const struct {
		const char *name;
		enum gt_diff_key key;
	} keys[] = { { "self", GT_DIFF_SELF },	 { "total", GT_DIFF_TOTAL },
		     { "calls", GT_DIFF_CALLS }, { "p50", GT_DIFF_P50 },
		     { "median", GT_DIFF_P50 },	 { "p99", GT_DIFF_P99 },
		     { "name", GT_DIFF_NAME } };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i].name, text) == 0) {
			*key = keys[i].key;
			return 0;
		}
	return gt_fail(message, GT_EINVAL,
		       "cannot sort by '%s': it is self, total, calls, p50, p99 or name", text);
}

void gt_diff_init(struct gt_diff *diff)
{
	memset(diff, 0, sizeof(*diff));
}

/* ---- rows ---- */

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static size_t hash(const char *name, const char *object)
{
	uint64_t at = gt_hash64_text(gt_hash64_text(GT_HASH64_BEGIN, name), object);

	return (size_t)(at ^ at >> 32);
}

/* Returns the row's index in the table, or the one at which it would be inserted. */
static size_t place_of(const struct gt_diff *diff, const char *name, const char *object)
{
	size_t at = hash(name, object) & diff->table_mask;

	for (; diff->table[at]; at = (at + 1) & diff->table_mask) {
		const struct gt_diff_row *row = &diff->rows[diff->table[at] - 1];

		if (strcmp(row->name, name) == 0 && strcmp(row->object, object) == 0)
			break;
	}
	return at;
}

static int grow(struct gt_diff *diff)
{
	size_t room = diff->room ? diff->room * 2 : 1024;
	struct gt_diff_row *rows = realloc(diff->rows, room * sizeof(*rows));
	uint32_t *table;

	if (rows == NULL)
		return GT_ENOMEM;
	diff->rows = rows;
	table = calloc(room * 4, sizeof(*table));
	if (table == NULL)
		return GT_ENOMEM;
	free(diff->table);
	diff->table = table;
	diff->table_mask = room * 4 - 1;
	diff->room = room;
	for (size_t i = 0; i < diff->count; i++)
		table[place_of(diff, rows[i].name, rows[i].object)] = (uint32_t)i + 1;
	return 0;
}

/* NULL: no memory. */
static struct gt_diff_row *row_of(struct gt_diff *diff, const char *name, const char *object)
{
	struct gt_diff_row *row;
	size_t at;

	if (diff->count == diff->room && grow(diff) != 0)
		return NULL;
	at = place_of(diff, name, object);
	if (diff->table[at])
		return &diff->rows[diff->table[at] - 1];
	row = &diff->rows[diff->count];
	memset(row, 0, sizeof(*row));
	row->name = strdup(name);
	row->object = strdup(object);
	for (unsigned side = 0; side < 2; side++)
		row->side[side].values =
			calloc(GT_DIFF_RUNS_MAX * GT_DIFF_KEYS, sizeof(*row->side[side].values));
	diff->table[at] = (uint32_t)++diff->count;
	if (row->name == NULL || row->object == NULL || row->side[0].values == NULL ||
	    row->side[1].values == NULL)
		return NULL;
	return row;
}

/* Of several functions with one name, the largest quantile counts in a run. */
static void add_values(double *values, const struct gt_report_row *from)
{
	values[GT_DIFF_CALLS] += (double)from->calls;
	values[GT_DIFF_SELF] += (double)from->self;
	values[GT_DIFF_TOTAL] += (double)from->total;
	values[GT_DIFF_P50] = fmax(values[GT_DIFF_P50], (double)from->p50);
	values[GT_DIFF_P99] = fmax(values[GT_DIFF_P99], (double)from->p99);
}

const char *gt_diff_object(const char *path, const char *program)
{
	return strcmp(file_name(path), file_name(program)) == 0 ? "(program)" : file_name(path);
}

int gt_diff_add(struct gt_diff *diff, unsigned side, const struct gt_report *report,
		const char *program)
{
	uint32_t run = diff->runs[side];

	if (run == GT_DIFF_RUNS_MAX)
		return GT_ENOSPC;
	diff->runs[side]++;
	for (size_t i = 0; i < report->row_count; i++) {
		const struct gt_report_row *from = &report->rows[i];
		struct gt_diff_row *row =
			row_of(diff, from->name, gt_diff_object(from->object, program));

		if (row == NULL)
			return GT_ENOMEM;
		add_values(row->side[side].values + run * GT_DIFF_KEYS, from);
		if (!gt_histogram_merge(&row->side[side].durations, &from->durations))
			return GT_ENOMEM;
	}
	return 0;
}

/* ---- is it noise? ---- */

/* The regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun,
 * 26.5.8), evaluated by Lentz's method; x below (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (int m = 1; m < 300; m++) {
		for (int odd = 0; odd < 2; odd++) {
			double factor =
				odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
				    : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));

			d = 1 + factor * d;
			c = 1 + factor / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			result *= c * d;
		}
		if (fabs(c * d - 1) < 1e-14)
			break;
	}
	return result;
}

static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double gt_diff_t_probability(double t, double degrees)
{
	return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

struct moments {
	double mean, variance; /* of the values; the variance of their population */
	double count;
};

static struct moments moments_of(const struct gt_diff_side *side, uint32_t runs,
				 enum gt_diff_key key)
{
	struct moments made = { .count = runs };

	for (uint32_t i = 0; i < runs; i++)
		made.mean += side->values[i * GT_DIFF_KEYS + key] / runs;
	for (uint32_t i = 0; i < runs; i++) {
		double off = side->values[i * GT_DIFF_KEYS + key] - made.mean;

		made.variance += runs > 1 ? off * off / (runs - 1) : 0;
	}
	return made;
}

/* Welch 1947: compares two means of samples whose variances may differ. */
static double welch(const struct moments *a, const struct moments *b)
{
	double of_a = a->variance / a->count, of_b = b->variance / b->count;
	double both = of_a + of_b, degrees;

	if (both <= 0)
		return a->mean == b->mean ? 1 : 0; /* both variances are 0 */
	degrees = both * both / (of_a * of_a / (a->count - 1) + of_b * of_b / (b->count - 1));
	return gt_diff_t_probability((b->mean - a->mean) / sqrt(both), degrees);
}

static int by_probability(const void *left, const void *right)
{
	const struct gt_diff_row *a = *(const struct gt_diff_row *const *)left;
	const struct gt_diff_row *b = *(const struct gt_diff_row *const *)right;

	return (a->p > b->p) - (a->p < b->p);
}

/* Benjamini and Hochberg: all rows up to the largest rank whose p is at most rank / count *
 * OUT_RATE. */
static int find_standing_out(struct gt_diff *diff)
{
	struct gt_diff_row **order = calloc(diff->count + 1, sizeof(struct gt_diff_row *));
	size_t last = 0;

	if (order == NULL)
		return GT_ENOMEM;
	for (size_t i = 0; i < diff->count; i++)
		order[i] = &diff->rows[i];
	qsort(order, diff->count, sizeof(struct gt_diff_row *), by_probability);
	for (size_t i = 0; i < diff->count; i++)
		if (order[i]->p <= OUT_RATE * (double)(i + 1) / (double)diff->count)
			last = i + 1;
	for (size_t i = 0; i < last; i++)
		order[i]->stands_out = order[i]->change != 0;
	free(order);
	return 0;
}

/* ---- the end ---- */

static void measure(struct gt_diff *diff, struct gt_diff_row *row, enum gt_diff_key key)
{
	struct moments of_key[2];

	for (unsigned s = 0; s < 2; s++) {
		struct gt_diff_side *side = &row->side[s];

		side->runs = diff->runs[s];
		for (unsigned k = 0; k < GT_DIFF_KEYS; k++)
			side->mean[k] = moments_of(side, side->runs, k).mean;
		if (side->runs > 1) {
			side->mean[GT_DIFF_P50] =
				(double)gt_histogram_quantile(&side->durations, 0.5);
			side->mean[GT_DIFF_P99] =
				(double)gt_histogram_quantile(&side->durations, 0.99);
		}
		of_key[s] = moments_of(side, side->runs, key);
	}
	row->change = row->side[1].mean[key] - row->side[0].mean[key];
	row->p = diff->runs[0] > 1 && diff->runs[1] > 1 ? welch(&of_key[0], &of_key[1]) : NAN;
}

static int by_name(const void *left, const void *right)
{
	const struct gt_diff_row *a = left, *b = right;
	int names = strcmp(a->name, b->name);

	return names ? names : strcmp(a->object, b->object);
}

static int by_change(const void *left, const void *right)
{
	const struct gt_diff_row *a = left, *b = right;
	double of_a = fabs(a->change), of_b = fabs(b->change);

	if (of_a != of_b)
		return of_a < of_b ? 1 : -1;
	return by_name(left, right);
}

int gt_diff_finish(struct gt_diff *diff, enum gt_diff_key key)
{
	enum gt_diff_key tested = key == GT_DIFF_NAME ? GT_DIFF_SELF : key;

	diff->key = tested;
	for (size_t i = 0; i < diff->count; i++)
		measure(diff, &diff->rows[i], tested);
	if (diff->runs[0] > 1 && diff->runs[1] > 1 && find_standing_out(diff) != 0)
		return GT_ENOMEM;
	if (diff->count)
		qsort(diff->rows, diff->count, sizeof(*diff->rows),
		      key == GT_DIFF_NAME ? by_name : by_change);
	return 0;
}

void gt_diff_fini(struct gt_diff *diff)
{
	for (size_t i = 0; i < diff->count; i++) {
		struct gt_diff_row *row = &diff->rows[i];

		free(row->name);
		free(row->object);
		for (unsigned side = 0; side < 2; side++) {
			free(row->side[side].values);
			gt_histogram_fini(&row->side[side].durations);
		}
	}
	free(diff->rows);
	free(diff->table);
	gt_diff_init(diff);
}
