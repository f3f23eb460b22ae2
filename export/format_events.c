/* SPDX-License-Identifier: MIT */
/*
 * A row for each event in the order of time, beside the rows of calls (format_rows.c): `events-csv` (RFC 4180, with
 * a header), `events-json` (an object a line), `events-tsv` (ClickHouse's TabSeparated). An event's fields
 * are an object of JSON: numbers as such, texts, null where nothing could be read. `call` is the id of the
 * innermost call around it, as the rows of calls have it, empty (null, 0) where no call was recorded. What a
 * program or somebody else marks is an event with a text, too.
 */
#include "export/format_events.h"

#include <math.h>
#include <string.h>

#include "core/trace/decode.h"
#include "export/columns.h"
#include "export/events.h"

#define COLUMNS "time_ns,cpu,pid,tid,thread,call,function,system,event,fields\n"

/* ---- fields ---- */

bool gt_event_fields_next(const struct gt_moment *moment, uint32_t *at, struct gt_event_cell *cell)
{
	const struct gt_event_format *event = moment->event;
	struct gt_event_value value;
	const struct gt_event_field *field;
	char *end;

	if (event == NULL) {
		if ((*at)++ > 0)
			return false;
		cell->kind = GT_CELL_TEXT;
		cell->name = "buf"; /* as Linux's ftrace:print has it */
		cell->bytes = moment->text_bytes < sizeof(cell->text) ? moment->text_bytes
								      : sizeof(cell->text) - 1;
		memcpy(cell->text, moment->text, cell->bytes);
		cell->text[cell->bytes] = '\0';
		return true;
	}
	if (*at < gt_event_hidden_fields(event))
		*at = gt_event_hidden_fields(event);
	if (*at >= event->field_count)
		return false;
	field = &event->fields[*at];
	gt_event_value(event, moment->record, (*at)++, &value);
	cell->name = field->name;
	cell->is_signed = field->is_signed;
	cell->number = value.number;
	switch (value.kind) {
	case GT_EVENT_NUMBER:
		cell->kind = GT_CELL_NUMBER;
		return true;
	case GT_EVENT_FRACTION:
		cell->fraction = gt_event_fraction(field, value.number);
		cell->kind = isfinite(cell->fraction) ? GT_CELL_FRACTION : GT_CELL_NOTHING;
		return true;
	case GT_EVENT_STRING:
		cell->bytes = value.text_bytes < sizeof(cell->text) ? value.text_bytes
								    : sizeof(cell->text) - 1;
		memcpy(cell->text, value.text, cell->bytes);
		break;
	case GT_EVENT_ARRAY:
		end = gt_event_put_value(field, &value, cell->text, sizeof(cell->text) - 1);
		cell->bytes = (size_t)(end - cell->text);
		break;
	default:
		cell->kind = GT_CELL_NOTHING;
		return true;
	}
	cell->text[cell->bytes] = '\0';
	cell->kind = GT_CELL_TEXT;
	return true;
}

static void put_cell(struct gt_out *out, const struct gt_event_cell *cell)
{
	switch (cell->kind) {
	case GT_CELL_NUMBER:
		if (cell->is_signed && (int64_t)cell->number < 0) {
			gt_out_char(out, '-');
			gt_out_number(out, 0 - cell->number);
		} else {
			gt_out_number(out, cell->number);
		}
		break;
	case GT_CELL_FRACTION:
		gt_out_printf(out, "%.17g", cell->fraction);
		break;
	case GT_CELL_TEXT:
		gt_out_json(out, cell->text);
		break;
	default:
		gt_out_text(out, "null");
	}
}

static void put_fields(struct gt_out *out, const struct gt_moment *moment)
{
	struct gt_event_cell cell;
	uint32_t at = 0;

	gt_out_char(out, '{');
	for (bool first = true; gt_event_fields_next(moment, &at, &cell); first = false) {
		if (!first)
			gt_out_char(out, ',');
		gt_out_json(out, cell.name);
		gt_out_char(out, ':');
		put_cell(out, &cell);
	}
	gt_out_char(out, '}');
}

/* ---- rows ---- */

struct events {
	struct gt_out fields; /* of one event, in memory */
};

static int begin(struct gt_export *export)
{
	struct events *events = export->state;

	return gt_out_init_memory(&events->fields);
}

static int begin_csv(struct gt_export *export)
{
	gt_out_text(&export->out, COLUMNS);
	return begin(export);
}

static void fini(struct gt_export *export)
{
	struct events *events = export->state;

	gt_out_fini(&events->fields);
}

/* The fields as a text, which is valid until the next call. NULL: no memory. */
static const char *fields_of(struct gt_export *export, const struct gt_moment *moment)
{
	struct gt_out *fields = &((struct events *)export->state)->fields;

	fields->used = 0;
	put_fields(fields, moment);
	gt_out_bytes(fields, "", 1);
	return fields->error ? NULL : fields->buffer;
}

const struct gt_stack_call *gt_event_call(const struct gt_lane *lane)
{
	return lane->open > 0 ? &lane->calls[lane->open - 1] : NULL;
}

const char *gt_event_system(const struct gt_moment *moment)
{
	return moment->event != NULL ? moment->event->system : "ftrace";
}

const char *gt_event_name(const struct gt_moment *moment)
{
	return moment->event != NULL ? moment->event->name : "print";
}

static int row_csv(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	const struct gt_stack_call *call = gt_event_call(lane);
	struct gt_out *out = &export->out;
	const char *fields;
	char number[24];

	if (moment->kind != GT_MOMENT_MARK)
		return 0;
	fields = fields_of(export, moment);
	if (fields == NULL)
		return GT_ENOMEM;
	gt_csv_number(out, gt_export_ns(export, moment->clock), true);
	gt_csv_thread(out, lane, moment->cpu);
	gt_csv_number(out, call != NULL ? call->id : 0, call != NULL);
	gt_csv_text(out,
		    call != NULL ? gt_export_name(export, call->function, number, NULL) : NULL);
	gt_csv_text(out, gt_event_system(moment));
	gt_csv_text(out, gt_event_name(moment));
	gt_out_csv(out, fields);
	gt_out_char(out, '\n');
	return out->error ? GT_EIO : 0;
}

static int row_json(struct gt_export *export, struct gt_lane *lane, const struct gt_moment *moment)
{
	const struct gt_stack_call *call = gt_event_call(lane);
	struct gt_out *out = &export->out;
	char number[24];

	if (moment->kind != GT_MOMENT_MARK)
		return 0;
	gt_json_number(out, "{\"time_ns\":", gt_export_ns(export, moment->clock), true);
	gt_json_thread(out, lane, moment->cpu);
	gt_json_number(out, ",\"call\":", call != NULL ? call->id : 0, call != NULL);
	gt_json_text(out, ",\"function\":",
		     call != NULL ? gt_export_name(export, call->function, number, NULL) : NULL);
	gt_json_text(out, ",\"system\":", gt_event_system(moment));
	gt_json_text(out, ",\"event\":", gt_event_name(moment));
	gt_out_text(out, ",\"fields\":");
	put_fields(out, moment);
	gt_out_text(out, "}\n");
	return out->error ? GT_EIO : 0;
}

static int row_clickhouse(struct gt_export *export, struct gt_lane *lane,
			  const struct gt_moment *moment)
{
	const struct gt_stack_call *call = gt_event_call(lane);
	struct gt_out *out = &export->out;
	const char *fields;
	char number[24];

	if (moment->kind != GT_MOMENT_MARK)
		return 0;
	fields = fields_of(export, moment);
	if (fields == NULL)
		return GT_ENOMEM;
	gt_tab_origin(export, moment->clock);
	gt_tab_thread(out, lane, moment->cpu);
	gt_tab_number(out, call != NULL ? call->id : 0, true);
	gt_tab_text(out, call != NULL ? gt_export_name(export, call->function, number, NULL) : "");
	gt_tab_text(out, gt_event_system(moment));
	gt_tab_text(out, gt_event_name(moment));
	gt_out_tab_text(out, fields);
	gt_out_char(out, '\n');
	return out->error ? GT_EIO : 0;
}

const struct gt_export_format gt_format_events_csv = {
	.name = "events-csv",
	.help = "a row an event: time, CPU, thread, call around it, name, fields as JSON",
	.file = "trace-events.csv",
	.state_bytes = sizeof(struct events),
	.begin = begin_csv,
	.moment = row_csv,
	.fini = fini,
};

const struct gt_export_format gt_format_events_json = {
	.name = "events-json",
	.help = "the same as JSON, an object a line",
	.file = "trace-events.jsonl",
	.state_bytes = sizeof(struct events),
	.begin = begin,
	.moment = row_json,
	.fini = fini,
};

const struct gt_export_format gt_format_events_tsv = {
	.name = "events-tsv",
	.help = "rows for ClickHouse; --create-table: of what table",
	.file = "trace-events.tsv",
	.create_table =
		"CREATE TABLE IF NOT EXISTS graftrace_events (host String, program String, time_ns "
		"UInt64, cpu Nullable(UInt32), pid UInt32, tid UInt32, thread String, call UInt64, "
		"function String, system String, event String, fields String) "
		"ENGINE = MergeTree ORDER BY (system, event, time_ns)",
	.state_bytes = sizeof(struct events),
	.begin = begin,
	.moment = row_clickhouse,
	.fini = fini,
};
