/* SPDX-License-Identifier: MIT */
/*
 * Counts events: see events.h. One pass over all records; events with one name and the same fields
 * are counted together, whichever place or process they are of.
 */
#include "export/events.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/event.h"
#include "core/trace/merge.h"
#include "export/out.h"
#include "port/host/memory.h"

#define EVENTS_MAX 65536u

struct field {
	uint64_t values; /* the number that could be read */
	uint64_t faults;
	double sum;
	double least, greatest;
};

struct counted {
	struct gt_event_format format;
	uint64_t count;
	uint64_t first, last; /* tsc */
	struct field fields[GRAFTRACE_PROBE_FIELDS];
};

struct counter {
	struct gt_target *target;
	struct counted *events;
	uint32_t count;
	uint32_t room;
	uint32_t *of_number; /* by number: index + 1; 0: not seen yet */
	uint32_t numbers;
};

static bool is_same(const struct gt_event_format *a, const struct gt_event_format *b)
{
	if (a->field_count != b->field_count || strcmp(a->system, b->system) != 0 ||
	    strcmp(a->name, b->name) != 0)
		return false;
	for (uint32_t i = 0; i < a->field_count; i++)
		if (strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
		    a->fields[i].is_string != b->fields[i].is_string ||
		    a->fields[i].is_float != b->fields[i].is_float)
			return false;
	return true;
}

static bool grow(struct counter *counter, uint32_t number)
{
	if (number >= counter->numbers) {
		const uint32_t numbers = number * 2 + 64;
		uint32_t *grown = realloc(counter->of_number, numbers * sizeof(*grown));

		if (grown == NULL)
			return false;
		memset(grown + counter->numbers, 0, (numbers - counter->numbers) * sizeof(*grown));
		counter->of_number = grown;
		counter->numbers = numbers;
	}
	if (counter->count == counter->room) {
		const uint32_t room = counter->room ? counter->room * 2 : 32;
		struct counted *grown = realloc(counter->events, room * sizeof(*grown));

		if (grown == NULL)
			return false;
		counter->events = grown;
		counter->room = room;
	}
	return true;
}

/* Returns the row of the event's number. NULL: the event is unknown, or *error. */
static struct counted *row_of(struct counter *counter, uint64_t number, int *error)
{
	struct gt_event_format format;
	uint32_t i;

	if (number < counter->numbers && counter->of_number[number])
		return &counter->events[counter->of_number[number] - 1];
	if (number >= EVENTS_MAX ||
	    gt_target_event(counter->target, (uint32_t)number, &format) != 0)
		return NULL;
	if (!grow(counter, (uint32_t)number)) {
		*error = GT_ENOMEM;
		return NULL;
	}
	for (i = 0; i < counter->count && !is_same(&counter->events[i].format, &format); i++)
		;
	if (i == counter->count)
		counter->events[counter->count++] = (struct counted){ .format = format };
	counter->of_number[number] = i + 1;
	return &counter->events[i];
}

double gt_event_fraction(const struct gt_event_field *field, uint64_t bits)
{
	double fraction;
	float small;

	if (field->bytes == 4) {
		memcpy(&small, &bits, sizeof(small));
		return (double)small;
	}
	memcpy(&fraction, &bits, sizeof(fraction));
	return fraction;
}

static double number_of(const struct gt_event_field *field, const struct gt_event_value *value)
{
	if (value->kind == GT_EVENT_FRACTION)
		return gt_event_fraction(field, value->number);
	return field->is_signed ? (double)(int64_t)value->number : (double)value->number;
}

/* Texts and arrays have no figures. */
static bool has_numbers(const struct gt_event_field *field)
{
	return !field->is_string && field->count == 0;
}

static void add_value(struct field *sums, const struct gt_event_field *field,
		      const struct gt_event_value *value)
{
	double number;

	if (value->kind == GT_EVENT_FAULT) {
		sums->faults++;
		return;
	}
	number = has_numbers(field) ? number_of(field, value) : 0;
	if (!sums->values || number < sums->least)
		sums->least = number;
	if (!sums->values || number > sums->greatest)
		sums->greatest = number;
	sums->sum += number;
	sums->values++;
}

static int add(struct counter *counter, const struct gt_record *record)
{
	int error = 0;
	struct counted *row = row_of(counter, record->value, &error);
	struct gt_event_value value;

	if (row == NULL)
		return error;
	if (!row->count++)
		row->first = record->clock;
	row->last = record->clock;
	for (uint32_t i = 0; i < row->format.field_count; i++) {
		gt_event_value(&row->format, record, i, &value);
		add_value(&row->fields[i], &row->format.fields[i], &value);
	}
	return 0;
}

/* The clock of the window's ends, and whose events. */
struct window {
	uint64_t from, to;
	uint32_t pid, tid;
};

static bool is_inside(const struct window *window, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	const uint32_t tid = record->tid ? record->tid : source->tid;

	return record->kind == GT_RECORD_EVENT && record->clock >= window->from &&
	       record->clock <= window->to && (!window->pid || window->pid == source->pid) &&
	       (!window->tid || window->tid == tid);
}

static void drop_rests(struct counter *counter)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < counter->count; i++) {
		const struct gt_event_format *format = &counter->events[i].format;

		if (!gt_event_word_matches("graftrace:off_cpu", format->system, format->name))
			counter->events[kept++] = counter->events[i];
	}
	counter->count = kept;
}

static int by_count(const void *left, const void *right)
{
	const struct counted *a = left, *b = right;
	const int name = strcmp(a->format.name, b->format.name);

	return a->count != b->count ? (a->count < b->count ? 1 : -1) : name;
}

static void print_field(struct gt_out *out, const struct gt_event_field *field,
			const struct field *sums)
{
	gt_out_printf(out, "                            %-20s", field->name);
	if (!has_numbers(field))
		gt_out_printf(out, " %14s %14s %14s", field->count ? "array" : "string", "", "");
	else if (sums->values)
		gt_out_printf(out, " %14.6g %14.6g %14.6g", sums->least,
			      sums->sum / (double)sums->values, sums->greatest);
	if (sums->faults)
		gt_out_printf(out, "  %" PRIu64 " (fault)", sums->faults);
	gt_out_char(out, '\n');
}

/* Of a second, between the first and the last of them. */
static double rate_of(const struct counter *counter, const struct counted *row)
{
	const uint64_t ns = gt_clock_duration_ns(&counter->target->clock, row->last - row->first);

	return ns ? (double)(row->count - 1) * 1e9 / (double)ns : 0.0;
}

static void print_text(struct gt_out *out, const struct counter *counter)
{
	if (counter->count == 0)
		return;
	gt_out_printf(out, "\n%10s %14s  %-20s %14s %14s %14s\n", "EVENTS", "A SECOND", "EVENT",
		      "MIN", "AVG", "MAX");
	for (uint32_t i = 0; i < counter->count; i++) {
		const struct counted *row = &counter->events[i];

		gt_out_printf(out, "%10" PRIu64 " %14.1f  %s:%s\n", row->count,
			      rate_of(counter, row), row->format.system, row->format.name);
		for (uint32_t k = gt_event_hidden_fields(&row->format); k < row->format.field_count;
		     k++)
			print_field(out, &row->format.fields[k], &row->fields[k]);
	}
}

/* Without figures: empty, or null. */
static void print_figures(struct gt_out *out, const char *const names[3], const char *nothing,
			  const struct gt_event_field *field, const struct field *sums)
{
	const double figures[] = { sums->least, sums->sum / (double)(sums->values | !sums->values),
				   sums->greatest };

	for (unsigned i = 0; i < 3; i++) {
		if (has_numbers(field) && sums->values && isfinite(figures[i]))
			gt_out_printf(out, "%s%.17g", names[i], figures[i]);
		else
			gt_out_printf(out, "%s%s", names[i], nothing);
	}
}

static void print_csv_event(struct gt_out *out, const struct counter *counter,
			    const struct counted *row)
{
	gt_out_csv(out, row->format.system);
	gt_out_char(out, ',');
	gt_out_csv(out, row->format.name);
	gt_out_printf(out, ",%" PRIu64 ",%.6g,", row->count, rate_of(counter, row));
}

static void print_csv(struct gt_out *out, const struct counter *counter)
{
	static const char *const names[] = { ",", ",", "," };

	gt_out_text(out, "system,event,count,per_second,field,min,avg,max,faults\n");
	for (uint32_t i = 0; i < counter->count; i++) {
		const struct counted *row = &counter->events[i];
		uint32_t k = gt_event_hidden_fields(&row->format);

		if (k == row->format.field_count) {
			print_csv_event(out, counter, row);
			gt_out_text(out, ",,,,\n");
		}
		for (; k < row->format.field_count; k++) {
			print_csv_event(out, counter, row);
			gt_out_csv(out, row->format.fields[k].name);
			print_figures(out, names, "", &row->format.fields[k], &row->fields[k]);
			gt_out_printf(out, ",%" PRIu64 "\n", row->fields[k].faults);
		}
	}
}

static void print_json_field(struct gt_out *out, const struct gt_event_field *field,
			     const struct field *sums)
{
	static const char *const names[] = { ", \"min\": ", ", \"avg\": ", ", \"max\": " };

	gt_out_text(out, "{ \"field\": ");
	gt_out_json(out, field->name);
	print_figures(out, names, "null", field, sums);
	gt_out_printf(out, ", \"faults\": %" PRIu64 " }", sums->faults);
}

static void print_json(struct gt_out *out, const struct counter *counter)
{
	gt_out_text(out, "{\n  \"by\": \"event\",\n  \"rows\": [");
	for (uint32_t i = 0; i < counter->count; i++) {
		const struct counted *row = &counter->events[i];
		const uint32_t first = gt_event_hidden_fields(&row->format);

		gt_out_printf(out, "%s\n    { \"system\": ", i ? "," : "");
		gt_out_json(out, row->format.system);
		gt_out_text(out, ", \"event\": ");
		gt_out_json(out, row->format.name);
		gt_out_printf(out, ", \"count\": %" PRIu64 ", \"per_second\": %.6g, \"fields\": [",
			      row->count, rate_of(counter, row));
		for (uint32_t k = first; k < row->format.field_count; k++) {
			gt_out_text(out, k > first ? ", " : " ");
			print_json_field(out, &row->format.fields[k], &row->fields[k]);
		}
		gt_out_text(out, first < row->format.field_count ? " ] }" : "] }");
	}
	gt_out_text(out, counter->count ? "\n  ]\n}\n" : "]\n}\n");
}

static int count_all(struct counter *counter, const struct window *window)
{
	struct gt_merge *merge = calloc(1, sizeof(*merge));
	struct gt_source *source;
	int result = GT_ENOMEM;

	if (merge != NULL) {
		result = gt_merge_init(merge, counter->target, &gt_host_memory, GT_MERGE_SNAPSHOT,
				       NULL);
		while (result >= 0 && (result = gt_merge_next(merge, &source)) > 0)
			if (is_inside(window, source))
				result = add(counter, &source->record);
		gt_merge_fini(merge);
	}
	free(merge);
	return result;
}

int gt_events_count(struct gt_target *target, const struct gt_events_options *options, char **text,
		    size_t *bytes)
{
	static void (*const forms[])(struct gt_out * out, const struct counter *counter) = {
		[GT_REPORT_TEXT] = print_text,
		[GT_REPORT_CSV] = print_csv,
		[GT_REPORT_JSON] = print_json,
	};
	const struct window window = {
		.from = options->from_ns ? gt_clock_tsc(&target->clock, options->from_ns) : 0,
		.to = options->to_ns ? gt_clock_tsc(&target->clock, options->to_ns) : UINT64_MAX,
		.pid = options->pid,
		.tid = options->tid,
	};
	struct counter counter = { .target = target };
	struct gt_out out;
	int result = gt_out_init_memory(&out);

	if (result == 0)
		result = count_all(&counter, &window);
	if (result >= 0) {
		if (options->without_rests)
			drop_rests(&counter);
		if (counter.count)
			qsort(counter.events, counter.count, sizeof(*counter.events), by_count);
		if (options->limit && counter.count > options->limit)
			counter.count = (uint32_t)options->limit;
		forms[options->format](&out, &counter);
		gt_out_char(&out, '\0');
		result = out.error ? GT_ENOMEM : 0;
	}
	if (result == 0) {
		*text = out.buffer;
		*bytes = out.used - 1;
	} else {
		gt_out_fini(&out);
	}
	free(counter.of_number);
	free(counter.events);
	return result;
}
