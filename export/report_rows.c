/* SPDX-License-Identifier: MIT */
/*
 * The rows of the table: found by function while records are read; named and computed at the end.
 */
#include "export/report_parts.h"
#include "export/same_function.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/glob.h"
#include "core/trace/message.h"

bool gt_report_grow_slots(struct collector *c)
{
	uint32_t old_size = c->slots != NULL ? 1u << c->slot_bits : 0;
	struct slot *old = c->slots;
	c->slot_bits = old != NULL ? c->slot_bits + 1 : 12;
	c->slots = calloc(1ull << c->slot_bits, sizeof(*c->slots));
	if (c->slots == NULL) {
		c->slots = old;
		c->slot_bits--;
		return false;
	}
	for (uint32_t i = 0; i < old_size; i++) {
		if (!old[i].function)
			continue;
		uint32_t at = gt_report_hash(c, old[i].function);
		while (c->slots[at].function)
			at = (at + 1) & ((1u << c->slot_bits) - 1);
		c->slots[at] = old[i];
	}
	free(old);
	return true;
}

uint32_t gt_report_new_row(struct collector *c, uint32_t key)
{
	if (c->row_count == c->row_capacity) {
		uint32_t wanted = c->row_capacity ? c->row_capacity * 2 : 1024;
		struct row *rows = realloc(c->rows, wanted * sizeof(*rows));
		if (rows == NULL) {
			c->out_of_memory = true;
			return 0;
		}
		c->rows = rows;
		c->row_capacity = wanted;
	}
	c->rows[c->row_count] = (struct row){ .key = key, .minimum = UINT64_MAX };
	return c->row_count++;
}

static const char *object_of(struct collector *c, uint32_t number)
{
	struct gt_function function = { .object = NULL };
	if (gt_target_function(c->target, number, &function) != 0 || function.object == NULL)
		return "";
	return function.object;
}

/* There are few objects, so they are compared one by one, once for each function. */
static uint32_t object_row(struct collector *c, uint32_t function)
{
	const char *object = object_of(c, function);
	for (uint32_t row = 0; row < c->row_count; row++)
		if (strcmp(object_of(c, c->rows[row].key), object) == 0)
			return row;
	return gt_report_new_row(c, function);
}

/* Returns the slot of a function with that name, or a free one. */
static struct known *known_at(const struct collector *c, const struct gt_function *function)
{
	uint32_t mask = (1u << c->known_bits) - 1, at = gt_function_hash(function);
	for (;; at++) {
		struct known *known = &c->known[at & mask];
		if (known->function.name == NULL || gt_function_is_same(&known->function, function))
			return known;
	}
}

static bool grow_known(struct collector *c)
{
	uint32_t old_size = c->known != NULL ? 1u << c->known_bits : 0;
	struct known *old = c->known;
	uint32_t bits = old != NULL ? c->known_bits + 1 : 12;
	struct known *grown = calloc(1ull << bits, sizeof(*grown));
	if (grown == NULL)
		return false;
	c->known = grown;
	c->known_bits = bits;
	for (uint32_t i = 0; i < old_size; i++)
		if (old[i].function.name != NULL)
			*known_at(c, &old[i].function) = old[i];
	free(old);
	return true;
}

static uint32_t function_row(struct collector *c, uint32_t number)
{
	struct gt_function function = { .name = NULL };
	if (gt_target_function(c->target, number, &function) != 0 || function.name == NULL)
		return gt_report_new_row(c, number);
	if (function.object == NULL)
		function.object = "";
	if (2 * (c->known_used + 1) > (c->known != NULL ? 1u << c->known_bits : 0) &&
	    !grow_known(c)) {
		c->out_of_memory = true;
		return 0;
	}
	struct known *known = known_at(c, &function);
	if (known->function.name == NULL) {
		known->function = function;
		known->row = gt_report_new_row(c, number);
		c->known_used++;
		if (c->of != NULL && !c->out_of_memory)
			c->rows[known->row].named = gt_glob_match(c->of, function.name);
	}
	return known->row;
}

uint32_t gt_report_add_function(struct collector *c, uint32_t function)
{
	if (2 * (c->slot_used + 1) > 1u << c->slot_bits && !gt_report_grow_slots(c)) {
		c->out_of_memory = true;
		return 0;
	}
	uint32_t row =
		c->by == GT_REPORT_OBJECT ? object_row(c, function) : function_row(c, function);
	uint32_t at = gt_report_hash(c, function);
	while (c->slots[at].function)
		at = (at + 1) & ((1u << c->slot_bits) - 1);
	c->slots[at] = (struct slot){ .function = function, .row = row };
	c->slot_used++;
	return row;
}

static const char *keep(struct gt_report *report, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct name *name = malloc(sizeof(*name) + bytes);
	if (name == NULL)
		return NULL;
	memcpy(name->text, text, bytes);
	name->next = report->names;
	report->names = name;
	return name->text;
}

/* Finds the first thread of a process, or else any of its threads; after an exec the one of the program that it
 * executed last. */
static void find_process(struct gt_target *target, uint32_t pid, struct gt_writer *writer)
{
	uint32_t count = target->ring->writer_count(target);
	struct gt_writer any = { .tid = 0 };

	for (uint32_t i = 0; i < count; i++) {
		if (target->ring->writer(target, i, writer) != 0 || writer->pid != pid)
			continue;
		if (writer->tid == pid || any.tid != pid)
			any = *writer;
	}
	*writer = any;
}

static bool name_row(struct collector *c, struct gt_report *report, struct gt_report_row *row,
		     uint32_t key)
{
	struct gt_function function = { .name = NULL };
	struct gt_writer writer;
	char text[64];

	row->object = "";
	if (c->of != NULL && !key) {
		row->name = "(outermost)";
		return true;
	}
	if ((c->by == GT_REPORT_THREAD || c->by == GT_REPORT_PROCESS) && c->kernel) {
		char comm[16] = "<...>";
		gt_target_thread(c->target, key, comm);
		gt_format(text, sizeof(text), "%.16s-%u", comm, key);
		row->name = keep(report, text);
		return row->name != NULL;
	}
	if (c->by == GT_REPORT_THREAD) {
		if (c->target->ring->writer(c->target, key, &writer) != 0)
			memset(&writer, 0, sizeof(writer));
		gt_format(text, sizeof(text), "%.16s-%u", writer.comm, writer.tid);
		row->name = keep(report, text);
		return row->name != NULL;
	}
	if (c->by == GT_REPORT_PROCESS) {
		find_process(c->target, key, &writer);
		gt_format(text, sizeof(text), "%.16s-%u", writer.comm, key);
		row->name = keep(report, text);
		return row->name != NULL;
	}
	if (gt_target_function(c->target, key, &function) != 0) {
		gt_format(text, sizeof(text), "function#%u", key);
		row->name = c->by == GT_REPORT_OBJECT ? "" : keep(report, text);
	} else if (c->by == GT_REPORT_OBJECT) {
		row->name = function.object != NULL ? function.object : "";
	} else {
		row->name = function.name;
		row->function = key;
		row->object = function.object != NULL ? function.object : "";
	}
	if (row->name != NULL && c->by == GT_REPORT_OBJECT && !*row->name)
		row->name = "(unknown)";
	return row->name != NULL;
}

/* Damaged records can have times that do not fit into nanoseconds. */
static uint64_t whole(double ns)
{
	if (!(ns > 0))
		return 0;
	return ns < 18e18 ? (uint64_t)(ns + 0.5) : UINT64_MAX;
}

/* Returns a mean or a quantile of a row's durations: rounding does not take it beyond them. */
static uint64_t between(uint64_t ns, const struct gt_report_row *row)
{
	if (ns < row->minimum)
		return row->minimum;
	return ns < row->maximum ? ns : row->maximum;
}

static uint64_t quantile(const struct gt_report_row *row, double part)
{
	return between(gt_histogram_quantile(&row->durations, part), row);
}

static void fill_row(const struct gt_clock *clock, bool has_spread, struct row *from,
		     struct gt_report_row *to)
{
	to->calls = from->entered + from->other - from->too_short;
	to->returned = from->returned;
	uint64_t ended = from->returned + from->too_short - from->inherited;
	to->not_returned = from->entered > ended ? from->entered - ended : 0;
	to->self_upper_bound = from->self_upper_bound;
	to->self_off = gt_clock_duration_ns(clock, from->self_off);
	to->total_off = gt_clock_duration_ns(clock, from->total_off);
	if (!from->returned)
		return;
	double count = (double)from->returned;
	double mean_off = from->sum / count;
	double variance = from->squares / count - mean_off * mean_off;
	double ns_per_tick = ldexp((double)clock->mult, -(int)clock->shift);
	to->total = gt_clock_duration_ns(clock, from->total);
	to->self = gt_clock_duration_ns(clock, from->self);
	to->minimum = gt_clock_duration_ns(clock, from->minimum);
	to->maximum = gt_clock_duration_ns(clock, from->maximum);
	to->average = between(whole(((double)from->first + mean_off) * ns_per_tick), to);
	to->deviation = variance > 0 ? whole(sqrt(variance) * ns_per_tick) : 0;
	to->durations = from->durations;
	memset(&from->durations, 0, sizeof(from->durations));
	if (!has_spread)
		return;
	to->p50 = quantile(to, 0.5);
	to->p90 = quantile(to, 0.9);
	to->p99 = quantile(to, 0.99);
}

int gt_report_make_rows(struct collector *c, struct gt_report *report)
{
	report->rows = calloc(c->row_count ? c->row_count : 1, sizeof(*report->rows));
	if (report->rows == NULL)
		return GT_ENOMEM;
	for (uint32_t i = c->of != NULL ? ROW_OUTERMOST : 0; i < c->row_count; i++) {
		struct gt_report_row *row = &report->rows[report->row_count];
		fill_row(&c->target->clock, c->has_spread, &c->rows[i], row);
		if (!row->calls)
			continue; /* a thread without calls */
		report->row_count++;
		if (!name_row(c, report, row, c->rows[i].key))
			return GT_ENOMEM;
		report->calls += row->calls;
		report->self += row->self;
		report->not_returned += row->not_returned;
		report->untimed += c->rows[i].other;
		report->self_upper_bound += row->self_upper_bound;
	}
	return 0;
}
