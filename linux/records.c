/* SPDX-License-Identifier: MIT */
/*
 * Reads Linux's records one by one. The events that are calls are found by name, once, and their
 * fields by the formats that the kernel gave; libtraceevent reads numbers of other byte orders and
 * lengths, and prints all other events.
 */
#include "linux/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trace-seq.h>

#include "core/trace/rest.h"
#include "linux/functions.h"

#define SWITCHES_MAX 256u
#define CPUS_KNOWN   256u
#define MARKER	     "tracing_mark_write: "
#define PROBE_LINE   2048

/* A field's place in a record; size 0: there is none. */
struct field {
	int offset;
	int size;
};

/* Of funcgraph_entry, funcgraph_exit and function. */
struct call_event {
	int id; /* -1: the kernel has no such event */
	struct field function, depth, calltime, rettime, caller;
};

struct switch_event {
	int id;
	struct field previous, state, next;
};

struct wake_event {
	int id;
	struct field task;
};

struct gt_linux_records {
	struct tep_handle *tep;
	bool is_native;		 /* the order of bytes is this machine's */
	struct field type, task; /* at the beginning of every record */
	const struct gt_sink *sink;
	struct gt_tasks *tasks;
	struct gt_linux_functions *functions;
	struct call_event entry, exit, function;
	struct switch_event sched;
	struct wake_event waking;
	const struct gt_linux_modules *modules;
	bool no_switches, has_chosen;
	uint32_t rest_event; /* number of the event graftrace:off_cpu */
	bool has_rests;	     /* it was described */
	bool has_gaps;	     /* context switches were left out of the recording */
	uint64_t lost_clock;
	uint32_t running[CPUS_KNOWN]; /* by CPU: its task + 1; 0: unknown */
	int print_id;
	struct gt_clock clock;
	struct trace_seq text;
	struct gt_switch switches[SWITCHES_MAX];
	uint32_t switch_count;
	uint64_t first_clock; /* the lowest of all records */
	bool has_switches;
	struct gt_linux_totals totals;
};

/* ---- events and their fields ---- */

static struct field field_of(struct tep_event *event, const char *name)
{
	struct tep_format_field *found = event != NULL ? tep_find_field(event, name) : NULL;

	if (found == NULL || found->offset < 0 || found->size <= 0 || found->size > 8)
		return (struct field){ 0, 0 };
	return (struct field){ found->offset, found->size };
}

/* A number in this machine's order of bytes. */
static inline uint64_t load(const void *from, int size)
{
	uint64_t eight;
	uint32_t four;
	uint16_t two;

	switch (size) {
	case 8:
		memcpy(&eight, from, sizeof(eight));
		return eight;
	case 4:
		memcpy(&four, from, sizeof(four));
		return four;
	case 2:
		memcpy(&two, from, sizeof(two));
		return two;
	case 1:
		return *(const uint8_t *)from;
	default:
		return 0;
	}
}

static bool is_native(struct tep_handle *tep)
{
	return tep_is_file_bigendian(tep) == tep_is_local_bigendian(tep);
}

static inline uint64_t read_number(struct tep_handle *tep, bool native,
				   const struct tep_record *record, const struct field *field)
{
	const char *from = (const char *)record->data + field->offset;

	if (!field->size || field->offset + field->size > record->size)
		return 0;
	return native ? load(from, field->size) : tep_read_number(tep, from, field->size);
}

static inline uint64_t number_of(const struct gt_linux_records *records,
				 const struct tep_record *record, const struct field *field)
{
	return read_number(records->tep, records->is_native, record, field);
}

/* A field that all records have; every event's format tells of it. */
static struct field common_field_of(struct tep_handle *tep, const char *name)
{
	struct tep_event *event = tep_get_event(tep, 0);
	struct tep_format_field *found = event != NULL ? tep_find_common_field(event, name) : NULL;

	if (found == NULL || found->offset < 0 || found->size <= 0 || found->size > 8)
		return (struct field){ 0, 0 };
	return (struct field){ found->offset, found->size };
}

static int type_of(const struct gt_linux_records *records, struct tep_record *record)
{
	return records->type.size ? (int)number_of(records, record, &records->type)
				  : tep_data_type(records->tep, record);
}

static uint32_t task_of(const struct gt_linux_records *records, struct tep_record *record)
{
	return records->task.size ? (uint32_t)number_of(records, record, &records->task)
				  : (uint32_t)tep_data_pid(records->tep, record);
}

static struct call_event call_event_of(struct tep_handle *tep, const char *name)
{
	struct tep_event *event = tep_find_event_by_name(tep, "ftrace", name);
	struct call_event call = { .id = event != NULL ? event->id : -1 };

	call.function = field_of(event, strcmp(name, "function") == 0 ? "ip" : "func");
	call.depth = field_of(event, "depth");
	call.calltime = field_of(event, "calltime");
	call.rettime = field_of(event, "rettime");
	call.caller = field_of(event, "parent_ip");
	if (!call.function.size)
		call.id = -1;
	return call;
}

static struct switch_event switch_event_of(struct tep_handle *tep)
{
	struct tep_event *event = tep_find_event_by_name(tep, "sched", "sched_switch");
	struct switch_event found = { .id = event != NULL ? event->id : -1 };

	found.previous = field_of(event, "prev_pid");
	found.state = field_of(event, "prev_state");
	found.next = field_of(event, "next_pid");
	if (!found.previous.size || !found.next.size)
		found.id = -1;
	return found;
}

static struct wake_event wake_event_of(struct tep_handle *tep)
{
	struct tep_event *event = tep_find_event_by_name(tep, "sched", "sched_waking");
	struct wake_event found = { .id = event != NULL ? event->id : -1,
				    .task = field_of(event, "pid") };

	if (!found.task.size)
		found.id = -1;
	return found;
}

static const char *name_of_task(void *data, uint32_t tid)
{
	struct gt_linux_records *records = data;
	const char *name = tep_data_comm_from_pid(records->tep, (int)tid);

	return name != NULL && strcmp(name, "<...>") != 0 ? name : NULL;
}

static int flush_functions(void *data)
{
	struct gt_linux_records *records = data;

	return gt_linux_functions_flush(records->functions);
}

int gt_linux_records_create(const struct gt_linux_options *options, struct gt_linux_records **out)
{
	struct gt_linux_records *records = calloc(1, sizeof(*records));
	struct tep_handle *tep = options->tep;
	int error;

	*out = NULL;
	if (records == NULL)
		return GT_ENOMEM;
	records->tep = tep;
	records->is_native = is_native(tep);
	records->type = common_field_of(tep, "common_type");
	records->task = common_field_of(tep, "common_pid");
	records->sink = options->sink;
	records->clock = options->clock;
	records->entry = call_event_of(tep, "funcgraph_entry");
	records->exit = call_event_of(tep, "funcgraph_exit");
	records->function = call_event_of(tep, "function");
	records->sched = switch_event_of(tep);
	records->waking = wake_event_of(tep);
	records->modules = options->modules;
	records->no_switches = options->no_switches;
	records->has_chosen = options->has_chosen;
	records->rest_event = options->first_event ? options->first_event : 1;
	struct tep_event *print = tep_find_event_by_name(tep, "ftrace", "print");
	records->print_id = print != NULL ? print->id : -1;
	trace_seq_init(&records->text);
	struct gt_tasks_options tasks = {
		.sink = options->sink,
		.first_generation = options->first_generation,
		.tracer = options->tracer,
		.slack = options->slack,
		.name = name_of_task,
		.before = flush_functions,
		.data = records,
	};
	error = gt_linux_functions_create(tep, options->sink,
					  options->first_function ? options->first_function : 1,
					  options->modules, &records->functions);
	if (error == 0)
		error = gt_tasks_create(&tasks, &records->tasks);
	if (error != 0) {
		gt_linux_records_destroy(records);
		return error;
	}
	*out = records;
	return 0;
}

enum gt_linux_kind gt_linux_kind_of(struct tep_handle *tep, struct tep_record *record)
{
	struct tep_event *event = tep_find_event(tep, tep_data_type(tep, record));

	if (event == NULL || strcmp(event->system, "ftrace") != 0)
		return GT_LINUX_EVENT;
	if (strcmp(event->name, "funcgraph_entry") == 0 ||
	    strcmp(event->name, "funcgraph_exit") == 0)
		return GT_LINUX_CALL;
	return strcmp(event->name, "function") == 0 ? GT_LINUX_FUNCTION : GT_LINUX_EVENT;
}

uint64_t gt_linux_end_of(struct tep_handle *tep, struct tep_record *record)
{
	struct tep_event *event = tep_find_event(tep, tep_data_type(tep, record));
	struct field field;

	if (event == NULL || strcmp(event->name, "funcgraph_exit") != 0)
		return 0;
	field = field_of(event, "rettime");
	return read_number(tep, is_native(tep), record, &field);
}

/* ---- records ---- */

/* Converts nanoseconds to ticks, so that the conversion back gives the same number. */
static uint64_t ticks_of(const struct gt_linux_records *records, uint64_t ns)
{
	__extension__ typedef unsigned __int128 u128;
	const struct gt_clock *clock = &records->clock;

	if (clock->mult == 1 && clock->shift == 0)
		return ns;
	return (uint64_t)((((u128)ns << clock->shift) + clock->mult - 1) / clock->mult);
}

static int take_entry(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		      const struct tep_record *record)
{
	const struct call_event *event = &records->entry;
	uint32_t function = gt_linux_functions_number(records->functions,
						      number_of(records, record, &event->function));

	if (!function)
		return GT_ENOMEM;
	return gt_tasks_enter(records->tasks, moment, function,
			      (uint32_t)number_of(records, record, &event->depth));
}

static int take_exit(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		     const struct tep_record *record)
{
	const struct call_event *event = &records->exit;
	uint64_t start = number_of(records, record, &event->calltime);
	uint64_t end = number_of(records, record, &event->rettime);
	struct gt_tasks_return call = {
		.function = gt_linux_functions_number(records->functions,
						      number_of(records, record, &event->function)),
		.depth = (uint32_t)number_of(records, record, &event->depth),
		.start = ticks_of(records, start),
		.duration = end > start ? ticks_of(records, end - start) : 0,
	};

	if (!call.function)
		return GT_ENOMEM;
	return gt_tasks_leave(records->tasks, moment, &call);
}

static int take_function(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
			 const struct tep_record *record)
{
	const struct call_event *event = &records->function;
	uint64_t caller = number_of(records, record, &event->caller);
	uint32_t function = gt_linux_functions_number(records->functions,
						      number_of(records, record, &event->function));

	/* callers' names are looked up by their addresses */
	if (!function || (caller && !gt_linux_functions_number(records->functions, caller)))
		return GT_ENOMEM;
	return gt_tasks_function(records->tasks, moment, function, caller);
}

static int flush_switches(struct gt_linux_records *records)
{
	uint32_t count = records->switch_count;

	records->switch_count = 0;
	if (!records->has_switches)
		return 0;
	return records->sink->switches(records->sink->data, records->first_clock, 0,
				       records->switches, count);
}

static int add_switch(struct gt_linux_records *records, uint64_t clock, uint32_t cpu, uint32_t tid,
		      unsigned flags)
{
	if (tid == 0 || records->no_switches) /* the idle tasks of all CPUs have one number */
		return 0;
	records->switches[records->switch_count++] =
		(struct gt_switch){ clock, tid, (uint16_t)cpu, (uint16_t)flags };
	records->has_switches = true;
	return records->switch_count == SWITCHES_MAX ? flush_switches(records) : 0;
}

/* Joins the lines of a text: a stack trace has many. */
static size_t flatten(char *text, size_t bytes)
{
	while (bytes && (text[bytes - 1] == '\n' || text[bytes - 1] == ' '))
		bytes--;
	for (size_t i = 0; i < bytes; i++)
		if ((unsigned char)text[i] < ' ')
			text[i] = ' ';
	return bytes;
}

static uint64_t ns_between(const struct gt_linux_records *records, uint64_t from, uint64_t to)
{
	return gt_clock_duration_ns(&records->clock, to > from ? to - from : 0);
}

static void set_waker(struct gt_linux_records *records, const struct gt_tasks_rest *from,
		      struct gt_rest *rest)
{
	const char *name = from->waker ? name_of_task(records, from->waker) : "<idle>";

	rest->waker = name != NULL ? name : "<...>";
	rest->waker_bytes = (uint32_t)strnlen(rest->waker, GT_REST_WAKER_MAX);
	rest->waker_tid = from->waker;
	rest->by_interrupt = from->by_interrupt;
}

static int put_rest(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		    const struct gt_rest *rest)
{
	uint64_t words[GT_REST_WORDS];
	const struct gt_tasks_words event = {
		.type = GRAFTRACE_EVENT_PROBE,
		.head = { moment->clock ? moment->clock : 1, records->rest_event },
		.head_count = 2,
		.bytes = words,
		.byte_count = gt_rest_words(rest, words) * sizeof(*words),
	};
	struct gt_event_format format;
	int error = 0;

	if (!records->has_rests) {
		gt_rest_format(records->rest_event, &format);
		error = records->sink->event(records->sink->data, &format);
		records->has_rests = true;
	}
	return error == 0 ? gt_tasks_words(records->tasks, moment, &event) : error;
}

/* A task runs again: writes why it was off the CPU, and how long it waited for one after it
 * could run. Nothing is written if a wake-up or a switch may be missing. */
static int write_rest(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		      struct gt_tasks_rest *rest)
{
	const struct gt_tasks_rest was = *rest;
	struct gt_rest event = { .preempted = was.is_preempted, .waker = "" };
	uint64_t ready = was.is_preempted ? was.off_clock : was.wake_clock;

	*rest = (struct gt_tasks_rest){ .is_introduced = was.is_introduced };
	if (!ready || was.off_clock <= records->lost_clock ||
	    (records->has_chosen ? !was.is_introduced : records->has_gaps))
		return 0;
	if (!was.is_preempted) {
		event.slept_ns = ns_between(records, was.off_clock, ready);
		set_waker(records, &was, &event);
	}
	event.waited_ns = ns_between(records, ready, moment->clock);
	return put_rest(records, moment, &event);
}

/* A task that leaves a CPU must have come to it before: otherwise switches of some tasks were
 * not recorded. */
static void follow_cpu(struct gt_linux_records *records, uint32_t cpu, uint32_t previous,
		       uint32_t next)
{
	if (cpu >= CPUS_KNOWN)
		return;
	if (records->running[cpu] && records->running[cpu] != previous + 1)
		records->has_gaps = true;
	records->running[cpu] = next + 1;
}

static int note_switch(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		       uint32_t previous, uint32_t next, bool runs)
{
	struct gt_tasks_moment comes = { moment->clock, moment->cpu, next, false };
	struct gt_tasks_rest *rest = gt_tasks_rest(records->tasks, previous);

	follow_cpu(records, moment->cpu, previous, next);
	if (rest == NULL)
		return GT_ENOMEM;
	*rest = (struct gt_tasks_rest){ .off_clock = moment->clock,
					.is_preempted = runs,
					.is_introduced = rest->is_introduced };
	rest = gt_tasks_rest(records->tasks, next);
	if (rest == NULL)
		return GT_ENOMEM;
	return next ? write_rest(records, &comes, rest) : 0;
}

static int take_waking(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		       struct tep_record *record)
{
	uint32_t woken = (uint32_t)number_of(records, record, &records->waking.task);
	struct gt_tasks_rest *rest = gt_tasks_rest(records->tasks, woken);

	if (rest == NULL)
		return GT_ENOMEM;
	if (rest->off_clock && !rest->is_preempted && !rest->wake_clock) {
		rest->wake_clock = moment->clock;
		rest->waker = moment->tid;
		rest->by_interrupt = tep_data_flags(records->tep, record) &
				     (TRACE_FLAG_HARDIRQ | TRACE_FLAG_SOFTIRQ);
	}
	return 0;
}

static int take_switch(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		       const struct tep_record *record)
{
	const struct switch_event *event = &records->sched;
	/* TASK_REPORT_MAX and lower bits say why it stopped; none set: it was preempted */
	bool runs = (number_of(records, record, &event->state) & 0xff) == 0;
	uint32_t previous = (uint32_t)number_of(records, record, &event->previous);
	uint32_t next = (uint32_t)number_of(records, record, &event->next);
	int error = add_switch(records, moment->clock, moment->cpu, previous,
			       GT_SWITCH_OUT | (runs ? GT_SWITCH_PREEMPTED : 0));

	if (error == 0)
		error = add_switch(records, moment->clock, moment->cpu, next, 0);
	return error == 0 ? note_switch(records, moment, previous, next, runs) : error;
}

/* Writes "vfs_read+0x1c/0x310 [mod]", as the kernel does; at a function's beginning without the
 * offset. */
static size_t put_symbol(const struct gt_linux_records *records, uint64_t address, bool is_begin,
			 char *text, size_t bytes)
{
	unsigned long long start = 0;
	unsigned long size = 0;
	const char *name = NULL, *module;
	size_t used;

	if (tep_find_function_info(records->tep, address, &name, &start, &size) <= 0 ||
	    name == NULL)
		return (size_t)snprintf(text, bytes, "0x%" PRIx64, address);
	used = (size_t)snprintf(text, bytes, "%.100s", name);
	if (!is_begin)
		used += (size_t)snprintf(text + used, bytes - used, "+0x%" PRIx64,
					 (uint64_t)(address - start));
	if (!is_begin && size)
		used += (size_t)snprintf(text + used, bytes - used, "/0x%lx", size);
	module = gt_linux_modules_find(records->modules, start);
	if (module != NULL)
		used += (size_t)snprintf(text + used, bytes - used, " %.64s", module);
	return used;
}

/* For the places of a kprobe and of a kretprobe's return, the kernel prints names, while its
 * format has numbers. True: *text has the line with names. */
static bool put_probe(struct gt_linux_records *records, const struct tep_record *record,
		      struct tep_event *event, char *text, size_t room)
{
	struct field at = field_of(event, "__probe_ip"), back = field_of(event, "__probe_ret_ip"),
		     function = field_of(event, "__probe_func");
	const char *line = records->text.buffer, *open = strstr(line, ": ("), *close;
	size_t used;

	close = open != NULL ? strchr(open, ')') : NULL;
	if (close == NULL || (!at.size && !(back.size && function.size)))
		return false;
	used = (size_t)snprintf(text, room, "%.*s",
				(int)(open + 3 - line > 200 ? 200 : open + 3 - line), line);
	used += put_symbol(records, number_of(records, record, at.size ? &at : &back), false,
			   text + used, room - used);
	if (!at.size) {
		used += (size_t)snprintf(text + used, room - used, " <- ");
		used += put_symbol(records, number_of(records, record, &function), true,
				   text + used, room - used);
	}
	snprintf(text + used, room - used, "%.*s", (int)(room - used - 1), close);
	return true;
}

static int take_event(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		      struct tep_record *record, bool is_print)
{
	struct trace_seq *text = &records->text;
	size_t mark = strlen(MARKER);

	trace_seq_reset(text);
	if (is_print)
		tep_print_event(records->tep, text, record, "%s", TEP_PRINT_INFO);
	else
		tep_print_event(records->tep, text, record, "%s: %s", TEP_PRINT_NAME,
				TEP_PRINT_INFO);
	size_t bytes = flatten(text->buffer, text->len);
	if (is_print && bytes >= mark && memcmp(text->buffer, MARKER, mark) == 0)
		return gt_tasks_text(records->tasks, moment, text->buffer + mark, bytes - mark,
				     true);
	struct tep_event *event = tep_find_event(records->tep, tep_data_type(records->tep, record));
	char line[PROBE_LINE];
	if (event != NULL && strcmp(event->system, "kprobes") == 0 &&
	    put_probe(records, record, event, line, sizeof(line)))
		return gt_tasks_text(records->tasks, moment, line, strlen(line), false);
	return gt_tasks_text(records->tasks, moment, text->buffer, bytes, false);
}

static int take_loss(struct gt_linux_records *records, const struct gt_tasks_moment *moment,
		     const struct tep_record *record)
{
	if (record->missed_events == 0)
		return 0;
	records->lost_clock = record->ts;
	memset(records->running, 0, sizeof(records->running));
	records->totals.unknown_losses += record->missed_events < 0;
	return gt_tasks_lost(records->tasks, moment,
			     record->missed_events > 0 ? (uint64_t)record->missed_events : 0);
}

static struct gt_tasks_moment moment_of(struct gt_linux_records *records, struct tep_record *record)
{
	return (struct gt_tasks_moment){
		.clock = record->ts,
		.cpu = (uint32_t)record->cpu,
		.tid = task_of(records, record),
	};
}

static int take_sched(struct gt_linux_records *records, int id,
		      const struct gt_tasks_moment *moment, struct tep_record *record)
{
	if (id >= 0 && id == records->sched.id)
		return take_switch(records, moment, record);
	if (id >= 0 && id == records->waking.id)
		return take_waking(records, moment, record);
	return 0;
}

/* Type, flags and task: the beginning of every record. */
#define COMMON_BYTES 8

int gt_linux_records_pass(struct gt_linux_records *records, struct tep_record *record)
{
	if (record->size < COMMON_BYTES)
		return 0;
	struct gt_tasks_moment moment = moment_of(records, record);

	return take_sched(records, type_of(records, record), &moment, record);
}

int gt_linux_records_take(struct gt_linux_records *records, struct tep_record *record)
{
	if (record->size < COMMON_BYTES) {
		records->totals.unknown++;
		return 0;
	}
	int id = type_of(records, record);
	struct gt_tasks_moment moment = moment_of(records, record);

	if (!records->first_clock)
		records->first_clock = record->ts;
	int error = take_loss(records, &moment, record);

	if (error != 0 || id < 0)
		return error;
	if (id == records->entry.id)
		return take_entry(records, &moment, record);
	if (id == records->exit.id)
		return take_exit(records, &moment, record);
	if (id == records->function.id)
		return take_function(records, &moment, record);
	error = take_sched(records, id, &moment, record);
	if (tep_find_event(records->tep, id) == NULL) {
		records->totals.unknown++;
		return error;
	}
	return error == 0 ? take_event(records, &moment, record, id == records->print_id) : error;
}

struct gt_tasks *gt_linux_records_tasks(struct gt_linux_records *records)
{
	return records->tasks;
}

int gt_linux_records_finish(struct gt_linux_records *records, struct gt_linux_totals *totals)
{
	int error = flush_switches(records);

	if (error == 0)
		error = gt_linux_functions_flush(records->functions);
	if (error == 0)
		error = gt_tasks_finish(records->tasks, &records->totals.tasks);
	*totals = records->totals;
	return error;
}

void gt_linux_records_destroy(struct gt_linux_records *records)
{
	if (records == NULL)
		return;
	gt_tasks_destroy(records->tasks);
	gt_linux_functions_destroy(records->functions);
	trace_seq_destroy(&records->text);
	free(records);
}
