/* SPDX-License-Identifier: MIT */
/* From records to pages: see raw.h. */
#include "core/text/raw.h"
#include "core/text/text_parts.h"

#define CPU_UNKNOWN    UINT32_MAX
#define PRINT_TEXT_MAX 1024u	 /* Linux's trace_marker takes no more at a time either */
#define FAULT_TEXT     "(fault)" /* Linux has it in place of a string that cannot be read */

int gt_raw_init(struct gt_raw *raw, struct gt_target *target, const struct gt_memory *memory,
		const struct gt_raw_options *options)
{
	gt_view_memset(&raw->filter, 0, sizeof(raw->filter));
	raw->filter.masks = options->masks;
	int error = gt_merge_init(&raw->merge, target, memory, options->mode, &raw->filter);

	if (error == 0 && options->switches)
		error = gt_merge_add_switches(&raw->merge, options->switch_windows,
					      options->switch_window_count);
	if (error != 0) {
		gt_merge_fini(&raw->merge);
		return error;
	}
	raw->target = target;
	raw->cpu = options->cpu;
	raw->ticks = options->ticks;
	raw->is_first = options->cpu == 0;
	raw->giving = false;
	raw->stacks = options->stacks;
	raw->held = false;
	raw->callers = 0;
	raw->missed = 0;
	raw->skipped = 0;
	raw->given = 0;
	gt_raw_page_begin(&raw->page);
	gt_view_memset(raw->functions, 0, sizeof(raw->functions));
	return 0;
}

void gt_raw_set_switches(struct gt_raw *raw, bool on, const struct gt_merge_window *windows,
			 uint32_t count)
{
	static const struct gt_merge_window never = { 0, 0 };

	if (on)
		gt_merge_add_switches(&raw->merge, windows, count);
	else if (raw->merge.switches != NULL || raw->merge.wants_switches)
		gt_merge_add_switches(&raw->merge, &never, 1);
}

void gt_raw_set_stacks(struct gt_raw *raw, bool on)
{
	raw->stacks = on;
}

void gt_raw_set_masks(struct gt_raw *raw, const struct gt_filter_masks *masks)
{
	raw->filter.masks = *masks;
	gt_merge_set_filter(&raw->merge, &raw->filter);
}

void gt_raw_fini(struct gt_raw *raw)
{
	gt_merge_fini(&raw->merge);
}

static uint64_t time_of(const struct gt_raw *raw, uint64_t clock)
{
	return raw->ticks ? clock : gt_clock_ns(&raw->target->clock, clock);
}

/* A function without an address (of a text trace) is known by its number. */
static uint64_t address_of(struct gt_raw *raw, uint32_t number)
{
	uint32_t place = number % GT_RAW_FUNCTIONS;
	struct gt_function function;

	if (raw->functions[place].number == number)
		return raw->functions[place].address;
	if (gt_target_function(raw->target, number, &function) != 0)
		return number;
	raw->functions[place].number = number;
	raw->functions[place].address = function.address != 0 ? function.address : number;
	return raw->functions[place].address;
}

/* type: enum gt_raw_type, or an event's number in its format file. */
static void *make_event(struct gt_raw *raw, const struct gt_source *source, uint32_t type,
			uint32_t bytes)
{
	struct gt_raw_common common = { .type = (uint16_t)type, .pid = (int32_t)source->tid };

	raw->event_bytes = bytes;
	raw->event_time = time_of(raw, source->record.clock);
	gt_view_memset(raw->event, 0, bytes);
	gt_view_memcpy(raw->event, &common, sizeof(common));
	return raw->event;
}

static void make_entry(struct gt_raw *raw, const struct gt_source *source)
{
	struct gt_raw_graph_entry *event =
		make_event(raw, source, GT_RAW_GRAPH_ENTRY, sizeof(*event));

	event->func = address_of(raw, source->record.function);
	event->depth = (int32_t)source->record.depth;
}

static void make_exit(struct gt_raw *raw, const struct gt_source *source)
{
	struct gt_raw_graph_exit *event =
		make_event(raw, source, GT_RAW_GRAPH_EXIT, sizeof(*event));

	event->func = address_of(raw, source->record.function);
	event->depth = (int32_t)source->record.depth;
	event->calltime = time_of(raw, source->record.start);
	event->rettime = raw->event_time;
}

static void make_function(struct gt_raw *raw, const struct gt_source *source)
{
	struct gt_raw_function *event = make_event(raw, source, GT_RAW_FUNCTION, sizeof(*event));

	event->ip = address_of(raw, source->record.function);
	event->parent_ip = source->record.caller;
}

static void make_print(struct gt_raw *raw, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	uint32_t length = record->text_bytes < PRINT_TEXT_MAX ? record->text_bytes : PRINT_TEXT_MAX;
	struct gt_raw_print *event;

	while (length > 0 && (record->text[length - 1] == '\n' || record->text[length - 1] == '\0'))
		length--;
	event = make_event(raw, source, GT_RAW_PRINT, (uint32_t)sizeof(*event) + length + 2);
	event->ip = GT_RAW_MARK_ADDRESS;
	gt_view_memcpy(event + 1, record->text, length);
	raw->event[sizeof(*event) + length] = '\n';
}

static void make_switch(struct gt_raw *raw, const struct gt_source *source)
{
	struct gt_raw_switch *event = make_event(raw, source, GT_RAW_SWITCH, sizeof(*event));

	event->prev_pid = (uint32_t)source->record.previous_tid;
	event->next_pid = (uint32_t)source->record.next_tid;
	event->prev_state = (uint8_t)source->record.state;
	event->next_cpu = source->record.cpu;
}

/* Unknown values are written as in the text (text.h). */
static void make_sched_switch(struct gt_raw *raw, const struct gt_source *source)
{
	struct gt_raw_sched_switch *event =
		make_event(raw, source, GT_RAW_SCHED_SWITCH, sizeof(*event));
	bool leaves = source->record.previous_tid != 0;

	if (!leaves)
		event->common.pid = 0;
	gt_view_memcpy(event->prev_comm, "<...>", 6);
	gt_view_memcpy(event->next_comm, "<...>", 6);
	gt_view_memcpy(leaves ? event->prev_comm : event->next_comm, source->comm, 16);
	event->prev_pid = (int32_t)source->record.previous_tid;
	event->next_pid = (int32_t)source->record.next_tid;
	event->prev_prio = event->next_prio = 120;
	event->prev_state = (int64_t)source->record.state;
}

/* Behind the common fields of raw->event. */
static void put_stack(struct gt_raw *raw, const uint64_t *callers, uint32_t count)
{
	struct gt_raw_stack *event = (struct gt_raw_stack *)raw->event;

	event->size = (int32_t)count;
	event->unused = 0;
	gt_view_memcpy(event + 1, callers, count * sizeof(*callers));
	raw->event_bytes = (uint32_t)(sizeof(*event) + count * sizeof(*callers));
}

/* false: there is nothing in it. */
static bool make_stack(struct gt_raw *raw, const struct gt_source *source)
{
	uint64_t callers[GT_TEXT_STACK_MAX];
	uint32_t count = 0, function;

	while (count < GT_TEXT_STACK_MAX &&
	       (function = stack_function(&source->record, count)) != 0)
		callers[count++] = address_of(raw, function);
	if (count == 0)
		return false;
	make_event(raw, source, GT_RAW_STACK, 0);
	put_stack(raw, callers, count);
	return true;
}

/* The calls that are open in the event which has been made follow it. */
static void note_callers(struct gt_raw *raw, struct gt_source *source)
{
	uint32_t functions[GT_TEXT_STACK_MAX];

	raw->callers = gt_text_open_calls(source, functions);
	for (uint32_t i = 0; i < raw->callers; i++)
		raw->caller[i] = address_of(raw, functions[i]);
}

/* Their event in the place of the one that they belong to, of the same time and thread. */
static void make_callers(struct gt_raw *raw)
{
	struct gt_raw_common *common = (struct gt_raw_common *)raw->event;

	common->type = GT_RAW_STACK;
	put_stack(raw, raw->caller, raw->callers);
	raw->callers = 0;
}

/* Where a text lies is told from the event's beginning on. What could not be read is "(fault)", which
 * stands behind the rest. */
static uint32_t place_of_text(struct gt_raw *raw, const struct gt_event_value *value,
			      const char *text)
{
	uint32_t at = raw->event_bytes;

	if (value->kind != GT_EVENT_FAULT)
		return (value->text_bytes + (value->kind == GT_EVENT_STRING)) << 16 |
		       (uint32_t)(value->text - text + sizeof(struct gt_raw_common));
	return (uint32_t)sizeof(FAULT_TEXT) << 16 | (at - (uint32_t)sizeof(FAULT_TEXT));
}

/* An event with fields: a word each, and behind them the texts, as its format file says. false: its format
 * is not known, or it is longer than a page. */
static bool make_fields(struct gt_raw *raw, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	uint32_t bytes = (uint32_t)sizeof(struct gt_raw_common) + record->text_bytes;
	struct gt_event_format format;
	struct gt_event_value value;

	if (bytes + sizeof(FAULT_TEXT) > GT_RAW_EVENT_BYTES_MAX ||
	    gt_target_event(raw->target, (uint32_t)record->value, &format) != 0 ||
	    record->text_bytes / 8 < format.field_count)
		return false;
	make_event(raw, source, GT_EVENT_FIRST_ID + format.number,
		   bytes + (uint32_t)sizeof(FAULT_TEXT));
	uint8_t *at = raw->event + sizeof(struct gt_raw_common);
	gt_view_memcpy(at, record->text, record->text_bytes);
	gt_view_memcpy(raw->event + bytes, FAULT_TEXT, sizeof(FAULT_TEXT));
	for (uint32_t i = 0; i < format.field_count; i++, at += 8) {
		const struct gt_event_field *field = &format.fields[i];

		if (!field->is_string && field->count == 0)
			continue;
		gt_event_value(&format, record, i, &value);
		uint32_t place = place_of_text(raw, &value, record->text);
		gt_view_memcpy(at, &place, sizeof(place));
	}
	return true;
}

static void note_missed(struct gt_raw *raw, uint64_t count)
{
	uint64_t *missed = raw->page.used != 0 ? &raw->skipped : &raw->missed;

	if (count == 0 || *missed == GT_RAW_MISSED_UNKNOWN ||
	    count >= GT_RAW_MISSED_UNKNOWN - *missed)
		*missed = GT_RAW_MISSED_UNKNOWN;
	else
		*missed += count;
}

/* Returns true if the record became an event, in raw->event. */
static bool make(struct gt_raw *raw, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;

	if (record->cpu != raw->cpu && !(raw->is_first && record->cpu == CPU_UNKNOWN))
		return false;
	switch (record->kind) {
	case GT_RECORD_ENTRY:
	case GT_RECORD_ENTRY_ONLY:
		make_entry(raw, source);
		return true;
	case GT_RECORD_RETURN:
		/* As on Linux, a return is written only if its entry was recorded: readers would
		 * take any start time for the real one. */
		if (record->flags & GT_RECORD_START_UNKNOWN)
			return false;
		make_exit(raw, source);
		return true;
	case GT_RECORD_UNWOUND:
		if (record->function == 0)
			return false;
		make_exit(raw, source);
		return true;
	case GT_RECORD_FUNCTION:
		make_function(raw, source);
		return true;
	case GT_RECORD_MARKER:
		make_print(raw, source);
		return true;
	case GT_RECORD_SWITCH:
		if (source == raw->merge.switches)
			make_sched_switch(raw, source);
		else
			make_switch(raw, source);
		return true;
	case GT_RECORD_STACK:
		return make_stack(raw, source);
	case GT_RECORD_EVENT:
		return make_fields(raw, source);
	case GT_RECORD_LOST:
		note_missed(raw, record->value);
		return false;
	case GT_RECORD_GAP:
		note_missed(raw, record->overrun);
		return false;
	default:
		return false;
	}
}

/* Fills the page. Returns 1 if it is complete, else 0 or GT_EAGAIN with an empty page. */
static int fill(struct gt_raw *raw)
{
	struct gt_source *source;
	int state;

	gt_merge_poll(&raw->merge);
	for (;;) {
		if (raw->held) {
			if (raw->skipped != 0 && raw->page.used != 0)
				return 1;
			if (!gt_raw_page_add(&raw->page, raw->event_time, raw->event,
					     raw->event_bytes))
				return 1;
			raw->held = raw->callers != 0;
			if (raw->held) {
				make_callers(raw);
				continue;
			}
		}
		state = gt_merge_next(&raw->merge, &source);
		if (state != 1)
			return raw->page.used != 0 ? 1 : state;
		raw->held = make(raw, source);
		if (raw->held && raw->stacks && source->record.kind == GT_RECORD_EVENT)
			note_callers(raw, source);
	}
}

static void begin_page(struct gt_raw *raw)
{
	gt_raw_page_begin(&raw->page);
	raw->giving = false;
	raw->missed = raw->skipped;
	raw->skipped = 0;
}

int64_t gt_raw_read(struct gt_raw *raw, void *buffer, size_t bytes)
{
	if (!raw->giving) {
		int state = fill(raw);

		if (state != 1)
			return state;
		gt_raw_page_finish(&raw->page, raw->missed);
		raw->giving = true;
		raw->given = 0;
	}
	if (bytes > GT_RAW_PAGE_BYTES - raw->given)
		bytes = GT_RAW_PAGE_BYTES - raw->given;
	gt_view_memcpy(buffer, raw->page.bytes + raw->given, bytes);
	raw->given += (uint32_t)bytes;
	if (raw->given == GT_RAW_PAGE_BYTES)
		begin_page(raw);
	return (int64_t)bytes;
}
