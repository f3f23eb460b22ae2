/* SPDX-License-Identifier: MIT */
/*
 * Merges two sources in order of time: the program's records from core/trace/merge.c, and the
 * kernel's, CPU by CPU from their pages. Both go to one writer for each task. Where the recording is a
 * guest's and the kernel its host's, the guest's records are copied, and the tasks' writers are others.
 */
#define _GNU_SOURCE
#include "linux/beside.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event-parse.h>

#include <graftrace/file.h>
#include "core/trace/merge.h"
#include "core/trace/message.h"
#include "linux/guest.h"
#include "linux/records.h"
#include "port/host/memory.h"
#include "read/kernel_page.h"
#include "read/writer.h"

#define SUB_BUFFER_BYTES (64u << 10)
#define CPUS_MAX	 4096u
#define SLACK_TICKS	 3000000u /* of some gigahertz: about a millisecond */
#define US_MAX		 256
#define FUNCTIONS	 256 /* at once */

/* The pages of one CPU, part by part. */
struct ring {
	uint32_t cpu;
	uint32_t part; /* the next to be read */
	struct gt_recording_kernel pages;
	size_t offset;		    /* of the next page in it */
	struct gt_kernel_page page; /* the one being read */
	struct tep_record record;
	bool has_record;
};

struct beside {
	struct gt_recording *recording;
	struct gt_target *target;
	struct tep_handle *tep;
	struct ring *rings;
	uint32_t ring_count;
	size_t page_bytes;
	bool is_tsc;
	int64_t offset;	  /* the kernel's clock minus the program's */
	bool kernel_only; /* the program's calls are left out */
	/* The recording is a guest's, the kernel its host's: the guest's records stay as they are, and
	 * the host's CPUs are counted on behind its own. */
	bool is_guest;
	uint32_t first_cpu; /* of the host's */
	int32_t us[US_MAX]; /* graftrace's own threads */
	int us_count;
	struct gt_linux_modules modules;
	uint64_t damaged; /* number of bad pages */
	struct gt_linux_records *records;
	struct gt_tasks *tasks;
	struct gt_merge merge;
};

bool gt_has_linux(struct gt_recording *recording)
{
	return gt_recording_kernel_count(recording) > 0;
}

/* ---- formats and names, needed to read the pages ---- */

static void take_us(struct beside *beside, const char *text)
{
	char *end;

	for (long tid; beside->us_count < US_MAX && (tid = strtol(text, &end, 10)) > 0; text = end)
		beside->us[beside->us_count++] = (int32_t)tid;
}

static void take_header(struct beside *beside, char *text, size_t count)
{
	tep_parse_header_page(beside->tep, text, count, sizeof(long));
	int bytes = tep_get_sub_buffer_size(beside->tep);
	if (bytes >= 64 && bytes <= 1 << 20)
		beside->page_bytes = (size_t)bytes;
}

static void take_symbols(struct beside *beside, char *text)
{
	/* first: the other function changes the text */
	gt_linux_modules_add(&beside->modules, text);
	tep_parse_kallsyms(beside->tep, text);
}

/* Returns a whole file's text, NUL-terminated. */
static void take_file(struct beside *beside, const char *name, char *text, size_t count)
{
	char system[128];

	if (strcmp(name, "events/header_page") == 0)
		take_header(beside, text, count);
	else if (strcmp(name, "saved_cmdlines") == 0)
		tep_parse_saved_cmdlines(beside->tep, text);
	else if (strcmp(name, "kallsyms") == 0)
		take_symbols(beside, text);
	else if (strcmp(name, "trace_clock") == 0)
		beside->is_tsc = strstr(text, "[x86-tsc]") != NULL;
	else if (strcmp(name, "clock_offset") == 0)
		beside->offset = strtoll(text, NULL, 10);
	else if (strcmp(name, "recorder") == 0)
		take_us(beside, text);
	else if (sscanf(name, "events/%127[^/]/", system) == 1)
		tep_parse_event(beside->tep, text, count, system);
}

/* A file that is put together of its parts. */
struct text {
	char *name; /* NULL: there is none */
	char *bytes;
	size_t count;
};

static void take_text(struct beside *beside, struct text *text)
{
	if (text->name != NULL)
		take_file(beside, text->name, text->bytes, text->count);
	free(text->name);
	free(text->bytes);
	*text = (struct text){ NULL, NULL, 0 };
}

/* Appends a file, or the next part of the one that is being put together. */
static int add_file(struct beside *beside, const struct gt_recording_kernel_file *file,
		    struct text *text)
{
	if (text->name != NULL && strcmp(text->name, file->name) != 0)
		take_text(beside, text);
	if (text->name == NULL)
		text->name = strdup(file->name);
	char *longer = realloc(text->bytes, text->count + file->count + 1);
	if (longer != NULL) {
		text->bytes = longer;
		memcpy(longer + text->count, file->bytes, file->count);
		text->count += file->count;
		longer[text->count] = '\0';
	}
	return longer != NULL && text->name != NULL ? 0 : GT_ENOMEM;
}

static int read_files(struct beside *beside)
{
	struct gt_recording_kernel_file file;
	struct gt_recording_kernel part = { .memory = NULL };
	struct text text = { NULL, NULL, 0 };
	uint32_t cpu;
	int error = 0;

	for (uint32_t i = 0; i < gt_recording_kernel_count(beside->recording) && error == 0; i++) {
		size_t at = 0;
		if (gt_recording_kernel_has_pages(beside->recording, i, &cpu))
			continue;
		error = gt_recording_kernel(beside->recording, i, &part);
		while (error == 0 && gt_recording_kernel_file(&part, &at, &file))
			error = add_file(beside, &file, &text);
		free(part.memory);
		part.memory = NULL;
	}
	if (error == 0)
		take_text(beside, &text);
	free(text.name);
	free(text.bytes);
	return error;
}

/* ---- the kernel's records ---- */

static int find_rings(struct beside *beside)
{
	uint32_t count = gt_recording_kernel_count(beside->recording);

	beside->rings = calloc(CPUS_MAX, sizeof(*beside->rings));
	if (beside->rings == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = 0, cpu;
		if (!gt_recording_kernel_has_pages(beside->recording, i, &cpu))
			continue;
		while (at < beside->ring_count && beside->rings[at].cpu != cpu)
			at++;
		if (at < beside->ring_count || at == CPUS_MAX)
			continue;
		beside->rings[at] = (struct ring){ .cpu = cpu, .part = i };
		beside->ring_count++;
	}
	return 0;
}

/* Reads the next pages of a CPU; without memory: there are none. */
static int next_pages(struct beside *beside, struct ring *ring)
{
	uint32_t count = gt_recording_kernel_count(beside->recording), cpu;

	free(ring->pages.memory);
	ring->pages = (struct gt_recording_kernel){ 0 };
	ring->offset = 0;
	while (ring->part < count &&
	       (!gt_recording_kernel_has_pages(beside->recording, ring->part, &cpu) ||
		cpu != ring->cpu))
		ring->part++;
	if (ring->part == count)
		return 0;
	return gt_recording_kernel(beside->recording, ring->part++, &ring->pages);
}

/* Returns the next page of a CPU, or NULL after the last one. */
static const uint8_t *next_page(struct beside *beside, struct ring *ring, int *error)
{
	while (ring->pages.memory == NULL ||
	       ring->pages.count - ring->offset < beside->page_bytes) {
		*error = next_pages(beside, ring);
		if (*error != 0 || ring->pages.memory == NULL)
			return NULL;
	}
	ring->offset += beside->page_bytes;
	return ring->pages.bytes + ring->offset - beside->page_bytes;
}

/* Converts nanoseconds of CLOCK_MONOTONIC to ticks. */
static uint64_t ticks_of(const struct gt_clock *clock, uint64_t ns)
{
	__extension__ typedef __int128 i128;

	i128 apart = ((i128)ns - clock->ns_base) * ((i128)1 << clock->shift) / (i128)clock->mult;
	return (uint64_t)((i128)clock->tsc_base + apart);
}

/* Moves on to the next record of a CPU. */
static int advance(struct beside *beside, struct ring *ring)
{
	int64_t missed = 0;
	uint32_t bytes = 0;
	const uint8_t *data = NULL;
	int error = 0;

	if (ring->has_record)
		data = gt_kernel_page_next(&ring->page, &bytes);
	while (data == NULL) {
		beside->damaged += ring->has_record && ring->page.is_damaged;
		ring->has_record = false;
		const uint8_t *page = next_page(beside, ring, &error);
		if (page == NULL)
			return error;
		if (!gt_kernel_page_open(&ring->page, page, beside->page_bytes)) {
			beside->damaged++;
			continue;
		}
		missed = ring->page.lost;
		data = gt_kernel_page_next(&ring->page, &bytes);
		ring->has_record = true;
	}
	uint64_t clock = ring->page.clock - (uint64_t)beside->offset;
	ring->record = (struct tep_record){
		.ts = beside->is_tsc ? clock : ticks_of(&beside->target->clock, clock),
		.missed_events = missed < 0	    ? -1
				 : missed > INT_MAX ? INT_MAX
						    : (int)missed,
		.size = (int)bytes,
		.data = (void *)data,
		.cpu = (int)(ring->cpu + beside->first_cpu),
	};
	return 0;
}

/* Returns the CPU with the oldest record, or NULL. */
static struct ring *oldest(struct beside *beside)
{
	struct ring *found = NULL;

	for (uint32_t i = 0; i < beside->ring_count; i++) {
		struct ring *ring = &beside->rings[i];
		if (ring->has_record && (found == NULL || ring->record.ts < found->record.ts))
			found = ring;
	}
	return found;
}

static bool is_ours(struct beside *beside, struct tep_record *record)
{
	int32_t tid = record->size >= 8 ? tep_data_pid(beside->tep, record) : 0;

	for (int i = 0; i < beside->us_count; i++)
		if (beside->us[i] == tid)
			return true;
	return false;
}

static int take_kernel(struct beside *beside, struct ring *ring)
{
	int error = ring->record.size < 8 ? 0
		    : is_ours(beside, &ring->record)
			    ? gt_linux_records_pass(beside->records, &ring->record)
			    : gt_linux_records_take(beside->records, &ring->record);

	return error == 0 ? advance(beside, ring) : error;
}

/* ---- the program's records ---- */

/* An event with fields, the calls that are open, or a raw marker, as the program recorded them. */
static int take_words(struct beside *beside, const struct gt_tasks_moment *moment,
		      const struct gt_record *record)
{
	struct gt_tasks_words words = {
		.type = GRAFTRACE_EVENT_STACK,
		.head = { record->clock ? record->clock : 1 },
		.head_count = 1,
		.bytes = record->text,
		.byte_count = record->text_bytes,
	};

	if (record->kind == GT_RECORD_EVENT) {
		words.type = GRAFTRACE_EVENT_PROBE;
		words.head[words.head_count++] = (uint32_t)record->value | record->start << 32;
	} else if (record->kind == GT_RECORD_MARKER) {
		words.type = GRAFTRACE_EVENT_MARKER_RAW;
		words.head[words.head_count++] = record->text_bytes;
	}
	return gt_tasks_words(beside->tasks, moment, &words);
}

/* The arguments of a call that is entered, or what it returns: they stand before its record. */
static int take_values(struct beside *beside, const struct gt_tasks_moment *moment,
		       const struct gt_record *record)
{
	struct gt_record values;

	if (!gt_record_values(record, &values))
		return 0;
	struct gt_tasks_words words = {
		.type = record->kind == GT_RECORD_RETURN ? GRAFTRACE_EVENT_RESULT
							 : GRAFTRACE_EVENT_ARGUMENTS,
		.head = { record->function | values.start << 32 },
		.head_count = 1,
		.bytes = values.text,
		.byte_count = values.text_bytes,
	};
	return gt_tasks_words(beside->tasks, moment, &words);
}

static int take_user(struct beside *beside, const struct gt_source *source)
{
	const struct gt_record *record = &source->record;
	struct gt_tasks_moment moment = {
		.clock = record->clock,
		.cpu = record->cpu,
		.tid = record->tid ? record->tid : source->tid,
		.is_user = true,
	};
	struct gt_tasks_return call = {
		.function = record->function,
		.depth = record->depth,
		.start = record->start,
	};

	if (beside->kernel_only && record->kind != GT_RECORD_MARKER)
		return 0;
	int error = take_values(beside, &moment, record);
	if (error != 0)
		return error;
	switch (record->kind) {
	case GT_RECORD_ENTRY:
		return gt_tasks_enter(beside->tasks, &moment, record->function, record->depth);
	case GT_RECORD_RETURN:
		return gt_tasks_leave(beside->tasks, &moment, &call);
	case GT_RECORD_ENTRY_ONLY:
	case GT_RECORD_FUNCTION:
		return gt_tasks_function(beside->tasks, &moment, record->function, record->value);
	case GT_RECORD_UNWOUND:
		return gt_tasks_unwind(beside->tasks, &moment, record->depth,
				       record->flags & GT_RECORD_UNSEEN);
	case GT_RECORD_LOST:
		return gt_tasks_lost(beside->tasks, &moment, record->value);
	case GT_RECORD_GAP:
		return gt_tasks_lost(beside->tasks, &moment, record->start);
	case GT_RECORD_MARKER:
		if (record->flags & GT_RECORD_RAW)
			return take_words(beside, &moment, record);
		return gt_tasks_text(beside->tasks, &moment, record->text, record->text_bytes,
				     !(record->flags & GT_RECORD_TEXT));
	case GT_RECORD_EVENT:
	case GT_RECORD_STACK:
		return take_words(beside, &moment, record);
	default:
		return 0;
	}
}

/* ---- both ---- */

static int merge(struct beside *beside)
{
	struct gt_source *source;
	bool has_user = !beside->is_guest && gt_merge_next(&beside->merge, &source) > 0;
	int error = 0;

	while (error == 0) {
		struct ring *ring = oldest(beside);
		if (ring == NULL && !has_user)
			break;
		if (ring != NULL && (!has_user || ring->record.ts < source->record.clock)) {
			error = take_kernel(beside, ring);
		} else {
			error = take_user(beside, source);
			has_user = gt_merge_next(&beside->merge, &source) > 0;
		}
	}
	return error;
}

static int introduce(struct beside *beside)
{
	struct gt_writer writer;
	int error = 0;

	for (uint32_t i = 0;
	     error == 0 && beside->target->ring->writer(beside->target->data, i, &writer) == 0; i++)
		error = gt_tasks_introduce(beside->tasks, &writer);
	return error;
}

static int copy_names(struct beside *beside, const struct gt_sink *sink)
{
	uint32_t end = gt_recording_function_end(beside->recording);
	struct gt_recording_object object;
	struct gt_function function, functions[FUNCTIONS];
	uint32_t count = 0;
	struct gt_writer first = { .pid = 0 };
	int error = 0;

	beside->target->ring->writer(beside->target->data, 0, &first);
	for (uint32_t i = 1; i < end && error == 0; i++) {
		bool there = gt_target_function(beside->target, i, &function) == 0;
		/* numbers follow one another, and all are of one object */
		if (count &&
		    (!there || count == FUNCTIONS || functions[0].object != function.object)) {
			error = sink->functions(sink->data, first.pid, i - count, functions, count);
			count = 0;
		}
		if (there)
			functions[count++] = function;
	}
	if (error == 0 && count)
		error = sink->functions(sink->data, first.pid, end - count, functions, count);
	for (uint32_t i = 0; error == 0 && gt_recording_object(beside->recording, i, &object) == 0;
	     i++)
		error = sink->object(sink->data, object.pid, object.path, object.start, object.end,
				     object.bias, object.build_id, object.build_id_bytes);
	return error;
}

static int copy_hists(struct beside *beside, struct gt_file_writer *writer)
{
	int error = 0;

	for (const char *const *text = gt_recording_info(beside->recording)->hists;
	     error == 0 && *text != NULL; text++)
		error = gt_file_writer_hists(writer, *text);
	return error;
}

static int copy_switches(struct beside *beside, const struct gt_sink *sink)
{
	const struct gt_recording_info *info = gt_recording_info(beside->recording);
	struct gt_switch switches[256];
	struct ring *first = oldest(beside);
	uint64_t cursor = 0, start = info->switches_start;
	uint32_t count;
	int error = 0;

	/* the program recorded nothing before */
	if (first != NULL && first->record.ts < start)
		start = first->record.ts;
	while (info->has_switches && error == 0) {
		count = gt_target_read_switches(beside->target, &cursor, switches, 256);
		error = sink->switches(sink->data, start, info->switches_lost, switches, count);
		if (!count)
			break;
	}
	return error;
}

static int finish(struct beside *beside, struct gt_file_writer *writer,
		  struct gt_linux_notes *notes, struct gt_message *message)
{
	const struct gt_recording_info *info = gt_recording_info(beside->recording);
	struct gt_linux_totals totals = { 0 };
	const bool has_guest = beside->is_guest && !beside->kernel_only;
	int error = gt_linux_records_finish(beside->records, &totals);

	if (error != 0)
		return error;
	struct gt_file_writer_totals end = {
		.words = totals.tasks.words + (has_guest ? info->words : 0),
		.calls = totals.tasks.calls + (has_guest ? info->calls : 0),
		.ns = info->ns,
		.threads = totals.tasks.tasks + (has_guest ? info->threads : 0),
		.processes = info->processes,
		.exit_status = info->exit_status,
	};
	memcpy(end.lost, info->lost, sizeof(end.lost));
	*notes = (struct gt_linux_notes){
		.lost = totals.tasks.lost,
		.unknown_losses = totals.unknown_losses,
		.damaged = totals.tasks.damaged + beside->damaged,
		.unknown = totals.unknown,
	};
	return gt_file_writer_finish(writer, &end, message);
}

/* Above the numbers of all described events. */
static uint32_t event_end(struct gt_recording *recording)
{
	struct gt_event_format format;
	uint32_t end = 1;

	for (uint32_t i = 0; gt_recording_event_at(recording, i, &format) == 0; i++)
		if (format.number < GRAFTRACE_VALUES && format.number >= end)
			end = format.number + 1;
	return end;
}

static int write_recording(struct beside *beside, struct gt_file_writer *writer,
			   struct gt_linux_notes *notes, struct gt_message *message)
{
	const struct gt_sink *sink = gt_file_writer_sink(writer);
	struct gt_linux_options options = {
		.tep = beside->tep,
		.sink = sink,
		.tracer = beside->target->tracer == GRAFTRACE_TRACER_FUNCTION
				  ? GRAFTRACE_TRACER_FUNCTION
				  : GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.slack = SLACK_TICKS,
		.clock = beside->target->clock,
		.modules = &beside->modules,
		.first_function = gt_recording_function_end(beside->recording),
		.first_event = event_end(beside->recording),
		.first_generation =
			beside->is_guest ? gt_linux_guest_generations(beside->recording) : 0,
		/* a guest's threads may have the numbers of the host's */
		.no_switches =
			gt_recording_info(beside->recording)->has_switches || beside->is_guest,
		.has_chosen = beside->us_count > 0,
	};
	int error = gt_linux_records_create(&options, &beside->records);

	if (error != 0)
		return error;
	beside->tasks = gt_linux_records_tasks(beside->records);
	error = gt_merge_init(&beside->merge, beside->target, &gt_host_memory, GT_MERGE_SNAPSHOT,
			      NULL);
	if (error == 0) {
		error = copy_names(beside, sink);
		if (error == 0)
			error = copy_hists(beside, writer);
		if (error == 0 && !beside->is_guest && !beside->kernel_only)
			error = gt_linux_copy_events(beside->recording, sink);
		for (uint32_t i = 0; i < beside->ring_count && error == 0; i++)
			error = advance(beside, &beside->rings[i]);
		if (error == 0 && beside->is_guest && !beside->kernel_only)
			error = gt_linux_guest_copy(beside->recording, sink);
		if (error == 0 && !beside->is_guest)
			error = copy_switches(beside, sink);
		if (error == 0 && !beside->is_guest)
			error = introduce(beside);
		if (error == 0)
			error = merge(beside);
		if (error == 0)
			error = finish(beside, writer, notes, message);
		gt_merge_fini(&beside->merge);
	}
	gt_linux_records_destroy(beside->records);
	return error;
}

static void close_beside(struct beside *beside)
{
	for (uint32_t i = 0; i < beside->ring_count; i++)
		free(beside->rings[i].pages.memory);
	free(beside->rings);
	gt_linux_modules_fini(&beside->modules);
	tep_free(beside->tep);
	gt_recording_close(beside->recording);
}

static int convert_parts(const char *path, const char *to, bool kernel_only,
			 struct gt_linux_notes *notes, struct gt_message *message)
{
	struct beside beside = { .page_bytes = 4096, .kernel_only = kernel_only };
	struct gt_file_writer *writer = NULL;
	int error = gt_recording_open(path, &beside.recording, message);

	if (error != 0)
		return error;
	const struct gt_recording_info *info = gt_recording_info(beside.recording);
	beside.target = gt_recording_target(beside.recording);
	beside.tep = tep_alloc();
	error = beside.tep != NULL ? read_files(&beside) : GT_ENOMEM;
	if (error == 0)
		error = find_rings(&beside);
	beside.is_guest = gt_target_is_kernel(beside.target);
	beside.first_cpu = beside.is_guest ? gt_linux_guest_cpus(beside.recording) : 0;
	struct gt_file_writer_options options = {
		.size = sizeof(options),
		.path = to,
		.clock = beside.target->clock,
		.tracer = beside.target->tracer == GRAFTRACE_TRACER_FUNCTION
				  ? GRAFTRACE_TRACER_FUNCTION
				  : GRAFTRACE_TRACER_FUNCTION_GRAPH,
		.cpu_count = beside.target->cpu_count + (beside.is_guest ? beside.ring_count : 0),
		.sub_buffer_bytes = SUB_BUFFER_BYTES,
		.argv = info->argv,
		.program = info->program,
		.options = info->options,
		.like = info,
	};
	if (error == 0)
		error = gt_file_writer_create(&options, &writer, message);
	if (error == 0)
		error = write_recording(&beside, writer, notes, message);
	gt_file_writer_destroy(writer);
	close_beside(&beside);
	return error;
}

static int convert(const char *path, const char *to, struct gt_linux_notes *notes,
		   struct gt_message *message)
{
	return convert_parts(path, to, false, notes, message);
}

static int convert_kernel(const char *path, const char *to, struct gt_linux_notes *notes,
			  struct gt_message *message)
{
	return convert_parts(path, to, true, notes, message);
}

int gt_beside_open(const char *path, struct gt_recording **recording, struct gt_linux_notes *notes,
		   struct gt_message *message)
{
	return gt_linux_convert(path, convert, recording, notes, message);
}

int gt_beside_open_kernel(const char *path, struct gt_recording **recording,
			  struct gt_linux_notes *notes, struct gt_message *message)
{
	return gt_linux_convert(path, convert_kernel, recording, notes, message);
}
