/* SPDX-License-Identifier: MIT */
/*
 * The writer of recording files. Sub-buffers are copied as they come, gathered to about a megabyte,
 * sorted by their writers, so that each one's are adjacent, and written as one block. Everything
 * else is a small block of its own, written at once (changed writers: with the next block), so that
 * a function's name is in the file before the first sub-buffer that uses it.
 */
#include "read/writer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include "read/columns.h"
#include "read/crc32c.h"
#include "read/block_output.h"

#ifndef GT_VERSION
#define GT_VERSION "unknown"
#endif

#define GATHER_BYTES   (1u << 20) /* sub-buffers of a block */
#define GATHER_NS      1000000000ull
#define WRITERS	       256	   /* changed ones that are gathered */
#define SWITCHES       8192	   /* in a block */
#define KERNEL_BYTES   (16u << 20) /* << 20) of the kernel's data, in a block */
#define FUNCTIONS      16384	   /* in a block */
#define NAME_BYTES     (2u << 20)  /* of a block's names, about */
#define NAME_MAX_BYTES 65535u	   /* longer names are cut */
#define PACK_BYTES     512	   /* shorter payloads are not packed */
#define METADATA_LEVEL 3
/* Except for groups of few words, columns without zstd take no more time than writing the words
 * themselves: they are a quarter as long, and half of the cost of writing is the kernel's copy. */
#define PRESSURE_BARE  25
#define PRESSURE_PLAIN 90

/* A gathered sub-buffer. */
struct pending {
	uint64_t sequence;
	size_t at; /* offset in `gather` of its header; the words follow */
	uint32_t generation;
	uint32_t words;
};

struct gt_file_writer {
	struct gt_sink sink;
	struct gt_block_output output;
	bool compress;
	bool finished;
	bool goes_on;	      /* from the options */
	uint64_t missed;      /* calls in sub-buffers that came after an error */
	atomic_uint pressure; /* by gt_file_writer_set_pressure */
	unsigned (*ask_pressure)(void *data);
	void *ask_data;
	struct graftrace_file_clock clock;
	uint64_t sub_buffers;
	uint32_t functions;

	uint8_t *gather;
	size_t gather_size;
	size_t gathered;
	uint64_t oldest_ns; /* arrival of the first gathered sub-buffer */
	struct pending *pending;
	struct gt_columns_input *inputs;
	uint32_t pending_count;
	uint32_t pending_size;
	struct gt_columns_encoder *encoder; /* NULL: not packed */

	uint8_t *block; /* the block that is being made */
	size_t block_size;
	uint8_t *packed;
	size_t packed_size;

	uint32_t writer_count;
	struct graftrace_file_writer writers[WRITERS];

	struct gt_switch *switches; /* gathered; NULL: none came yet */
	uint32_t switch_count;
	bool switches_said; /* a block of them was written */
	uint64_t switches_start, switches_lost;
};

/* The result that the sink's functions return. */
static int answer(const struct gt_file_writer *writer)
{
	return writer->goes_on ? 0 : writer->output.error;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int no_memory(struct gt_file_writer *writer)
{
	return gt_block_output_fail(&writer->output, GT_ENOMEM,
				    "no memory for the recording's blocks");
}

/* Makes *bytes hold `count` bytes; their contents are lost. */
static int make_room(struct gt_file_writer *writer, uint8_t **bytes, size_t *size, size_t count)
{
	if (count <= *size)
		return 0;
	free(*bytes);
	*bytes = malloc(count);
	*size = *bytes ? count : 0;
	return *bytes ? 0 : no_memory(writer);
}

/* Begins a block in writer->block: returns the place of its payload, which will have `count`
 * bytes. NULL: no memory, and the error is set. */
static uint8_t *start_payload(struct gt_file_writer *writer, size_t count)
{
	if (make_room(writer, &writer->block, &writer->block_size,
		      sizeof(struct graftrace_block) + count + 8) < 0)
		return NULL;
	return writer->block + sizeof(struct graftrace_block);
}

/* Writes the payload of `count` bytes in writer->block, compressed if that is shorter. */
static int put_payload(struct gt_file_writer *writer, enum graftrace_block_type type, size_t count)
{
	const size_t header = sizeof(struct graftrace_block);
	const bool optional = type == GRAFTRACE_BLOCK_SWITCHES || type == GRAFTRACE_BLOCK_KERNEL ||
			      type == GRAFTRACE_BLOCK_EVENT;
	const uint32_t flags = optional ? GRAFTRACE_BLOCK_OPTIONAL : 0;

	if (writer->compress && count >= PACK_BYTES) {
		if (make_room(writer, &writer->packed, &writer->packed_size, header + count + 8) <
		    0)
			return writer->output.error;
		size_t packed = ZSTD_compress(writer->packed + header, count - 1,
					      writer->block + header, count, METADATA_LEVEL);
		if (!ZSTD_isError(packed) &&
		    count <= GRAFTRACE_EXPANSION_BASE + GRAFTRACE_EXPANSION_BLOCK * packed)
			return gt_block_output_put(&writer->output, writer->packed, type,
						   GRAFTRACE_BLOCK_ZSTD | flags, packed, count, 0);
	}
	return gt_block_output_put(&writer->output, writer->block, type, flags, count, count, 0);
}

/* START and OPTIONS. */

/* A list of strings in memory of its own. */
struct strings {
	uint8_t *bytes;
	size_t count;
	size_t size;
	bool failed;
};

static void add_bytes(struct strings *strings, enum graftrace_string_tag tag, const char *text,
		      size_t length)
{
	if (strings->failed)
		return;
	struct graftrace_file_string head = { tag, (uint32_t)length };
	size_t padded = sizeof(head) + (length + 8) / 8 * 8;
	if (strings->count + padded > strings->size) {
		size_t size = (strings->count + padded) * 2;
		uint8_t *bytes = realloc(strings->bytes, size);
		if (!bytes) {
			strings->failed = true;
			return;
		}
		strings->bytes = bytes;
		strings->size = size;
	}
	uint8_t *at = strings->bytes + strings->count;
	memset(at, 0, padded);
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), text, length);
	strings->count += padded;
}

static void add_string(struct strings *strings, enum graftrace_string_tag tag, const char *text)
{
	const size_t length = text ? strlen(text) : 0;

	if (text)
		add_bytes(strings, tag, text, length > NAME_MAX_BYTES ? NAME_MAX_BYTES : length);
}

static void add_processor(struct strings *strings)
{
	char line[512];
	FILE *file = fopen("/proc/cpuinfo", "re");

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) == 0 && colon && colon[1]) {
			line[strcspn(line, "\n")] = 0;
			add_string(strings, GRAFTRACE_STRING_CPU, colon + 2);
			break;
		}
	}
	fclose(file);
}

static int put_strings(struct gt_file_writer *writer, enum graftrace_block_type type,
		       const void *fixed, size_t fixed_bytes, struct strings *strings)
{
	uint8_t *payload =
		strings->failed ? NULL : start_payload(writer, fixed_bytes + strings->count);
	if (payload) {
		memcpy(payload, fixed, fixed_bytes);
		if (strings->count)
			memcpy(payload + fixed_bytes, strings->bytes, strings->count);
		put_payload(writer, type, fixed_bytes + strings->count);
	} else {
		no_memory(writer);
	}
	free(strings->bytes);
	return writer->output.error;
}

static void add_known(struct strings *strings, enum graftrace_string_tag tag, const char *text)
{
	if (text && *text)
		add_string(strings, tag, text);
}

/* Adds facts about the system that the recording is made on. */
static void add_system(struct strings *strings)
{
	struct utsname system;
	char directory[4096], text[512];

	if (getcwd(directory, sizeof(directory)))
		add_string(strings, GRAFTRACE_STRING_DIRECTORY, directory);
	if (uname(&system) == 0) {
		snprintf(text, sizeof(text), "%s %s %s", system.sysname, system.release,
			 system.machine);
		add_string(strings, GRAFTRACE_STRING_SYSTEM, text);
		add_string(strings, GRAFTRACE_STRING_HOST, system.nodename);
	}
	add_processor(strings);
	add_string(strings, GRAFTRACE_STRING_MADE_BY, "graftrace " GT_VERSION);
}

static int put_start(struct gt_file_writer *writer, const struct gt_file_writer_options *options)
{
	struct strings strings = { 0 };
	struct timespec realtime = { 0 };

	for (const char *const *argument = options->argv; argument && *argument; argument++)
		add_string(&strings, GRAFTRACE_STRING_ARGUMENT, *argument);
	add_string(&strings, GRAFTRACE_STRING_PROGRAM, options->program);
	if (options->like) {
		add_known(&strings, GRAFTRACE_STRING_DIRECTORY, options->like->directory);
		add_known(&strings, GRAFTRACE_STRING_SYSTEM, options->like->system);
		add_known(&strings, GRAFTRACE_STRING_HOST, options->like->host);
		add_known(&strings, GRAFTRACE_STRING_CPU, options->like->cpu);
		add_known(&strings, GRAFTRACE_STRING_MADE_BY, options->like->made_by);
		realtime.tv_sec = (time_t)(options->like->realtime_ns / 1000000000u);
		realtime.tv_nsec = (long)(options->like->realtime_ns % 1000000000u);
	} else {
		add_system(&strings);
		clock_gettime(CLOCK_REALTIME, &realtime);
	}
	uint32_t cpus = options->cpu_count;
	if (!cpus) {
		long count = sysconf(_SC_NPROCESSORS_CONF);
		cpus = count > 0 ? (uint32_t)count : 0;
	}
	struct graftrace_file_start start = {
		.major = GRAFTRACE_FILE_MAJOR,
		.minor = GRAFTRACE_FILE_MINOR,
		.clock = writer->clock,
		.realtime_ns = (uint64_t)realtime.tv_sec * 1000000000u + (uint64_t)realtime.tv_nsec,
		.tracer = (uint32_t)options->tracer,
		.cpu_count = cpus,
		.sub_buffer_bytes = options->sub_buffer_bytes,
		.string_bytes = (uint32_t)strings.count,
	};
	int error = put_strings(writer, GRAFTRACE_BLOCK_START, &start, sizeof(start), &strings);
	if (error || !options->options || !*options->options)
		return error;
	struct strings list = { 0 };
	for (const char *const *option = options->options; *option; option++)
		add_string(&list, GRAFTRACE_STRING_OPTION, *option);
	return put_strings(writer, GRAFTRACE_BLOCK_OPTIONS, &start, 0, &list);
}

int gt_file_writer_hists(struct gt_file_writer *writer, const char *text)
{
	struct strings list = { 0 };

	if (writer->output.error)
		return writer->output.error;
	add_bytes(&list, GRAFTRACE_STRING_HISTS, text, strlen(text));
	return put_strings(writer, GRAFTRACE_BLOCK_OPTIONS, text, 0, &list);
}

int gt_file_writer_option(struct gt_file_writer *writer, const char *option)
{
	struct strings list = { 0 };

	if (writer->output.error)
		return writer->output.error;
	add_string(&list, GRAFTRACE_STRING_OPTION, option);
	return put_strings(writer, GRAFTRACE_BLOCK_OPTIONS, option, 0, &list);
}

int gt_file_writer_kernel(struct gt_file_writer *writer, uint32_t cpu, const char *name,
			  const void *bytes, size_t count)
{
	const char *from = bytes;
	size_t name_bytes = name ? strlen(name) + 1 : 0;

	do {
		size_t part = count < KERNEL_BYTES ? count : KERNEL_BYTES;
		struct graftrace_file_kernel head = {
			.kind = name ? GRAFTRACE_KERNEL_FILE : GRAFTRACE_KERNEL_PAGES,
			.cpu = cpu,
			.name_bytes = (uint32_t)name_bytes,
			.bytes = part,
		};
		if (writer->output.error)
			return writer->output.error;
		uint8_t *at = start_payload(writer, sizeof(head) + name_bytes + part);
		if (!at)
			return writer->output.error;
		memcpy(at, &head, sizeof(head));
		if (name)
			memcpy(at + sizeof(head), name, name_bytes);
		memcpy(at + sizeof(head) + name_bytes, from, part);
		if (put_payload(writer, GRAFTRACE_BLOCK_KERNEL, sizeof(head) + name_bytes + part) <
		    0)
			return writer->output.error;
		from += part;
		count -= part;
	} while (count);
	return 0;
}

/* Blocks of their own. */

static int sink_object(void *data, uint32_t pid, const char *path, uint64_t start, uint64_t end,
		       uint64_t bias, const uint8_t *build_id, uint32_t build_id_bytes)
{
	struct gt_file_writer *writer = data;
	size_t path_bytes = strlen(path);

	if (writer->output.error)
		return answer(writer);
	if (path_bytes > NAME_MAX_BYTES)
		path_bytes = NAME_MAX_BYTES;
	if (build_id_bytes > 256)
		build_id_bytes = 256;
	struct graftrace_file_object object = { pid,  build_id_bytes,	    start, end,
						bias, (uint32_t)path_bytes, 0 };
	size_t count = sizeof(object) + build_id_bytes + path_bytes + 1;
	uint8_t *at = start_payload(writer, count);
	if (!at)
		return answer(writer);
	memcpy(at, &object, sizeof(object));
	at += sizeof(object);
	if (build_id_bytes)
		memcpy(at, build_id, build_id_bytes);
	at += build_id_bytes;
	memcpy(at, path, path_bytes);
	at[path_bytes] = 0;
	put_payload(writer, GRAFTRACE_BLOCK_OBJECT, count);
	return answer(writer);
}

static size_t name_length(const char *name)
{
	size_t length = name ? strlen(name) : 0;
	return length > NAME_MAX_BYTES ? NAME_MAX_BYTES : length;
}

static uint8_t *put_name(uint8_t *at, const char *name)
{
	size_t length = name_length(name);
	if (length)
		memcpy(at, name, length);
	at[length] = 0;
	return at + length + 1;
}

static int sink_functions(void *data, uint32_t pid, uint32_t first,
			  const struct gt_function *functions, uint32_t count)
{
	struct gt_file_writer *writer = data;

	if (writer->output.error)
		return answer(writer);
	if (!first || count > GRAFTRACE_SPECIAL || first > GRAFTRACE_SPECIAL - count) {
		gt_block_output_fail(&writer->output, GT_EINVAL,
				     "a function has a number that is reserved");
		return answer(writer);
	}
	for (uint32_t done = 0; done < count;) {
		const char *object = functions[done].object;
		size_t strings = name_length(object) + 1;
		uint32_t part = 0;
		while (done + part < count && part < FUNCTIONS && strings < NAME_BYTES)
			strings += name_length(functions[done + part++].name) + 1;

		struct graftrace_file_functions head = { pid, first + done, part,
							 (uint32_t)strings };
		size_t payload =
			sizeof(head) + part * sizeof(struct graftrace_file_function) + strings;
		uint8_t *at = start_payload(writer, payload);
		if (!at)
			return answer(writer);
		memcpy(at, &head, sizeof(head));
		at += sizeof(head);
		uint8_t *names = at + part * sizeof(struct graftrace_file_function);
		uint8_t *name = put_name(names, object);
		for (uint32_t i = 0; i < part; i++) {
			const struct gt_function *function = &functions[done + i];
			struct graftrace_file_function entry = { function->address, function->size,
								 (uint32_t)(name - names) };
			memcpy(at, &entry, sizeof(entry));
			at += sizeof(entry);
			name = put_name(name, function->name);
		}
		if (put_payload(writer, GRAFTRACE_BLOCK_FUNCTIONS, payload) < 0)
			return answer(writer);
		writer->functions += part;
		done += part;
	}
	return 0;
}

static int sink_event(void *data, const struct gt_event_format *event)
{
	struct gt_file_writer *writer = data;
	const uint32_t fields = event->field_count;
	size_t strings = name_length(event->system) + name_length(event->name) +
			 name_length(event->object) + 3;

	if (writer->output.error)
		return writer->output.error;
	if (fields > GRAFTRACE_PROBE_FIELDS)
		return gt_block_output_fail(&writer->output, GT_EINVAL,
					    "an event has too many fields");
	for (uint32_t i = 0; i < fields; i++)
		strings +=
			name_length(event->fields[i].name) + name_length(event->fields[i].type) + 2;
	strings += event->print && fields ? name_length(event->print) + 1 : 0;
	struct graftrace_file_event head = { .number = event->number,
					     .field_count = fields,
					     .address = event->address,
					     .string_bytes = (uint32_t)strings };
	const size_t count =
		sizeof(head) + fields * sizeof(struct graftrace_file_event_field) + strings;
	uint8_t *at = start_payload(writer, count);
	if (!at)
		return writer->output.error;
	uint8_t *field = at + sizeof(head);
	uint8_t *names = field + fields * sizeof(struct graftrace_file_event_field);
	uint8_t *name = put_name(names, event->system);
	head.name = (uint32_t)(name - names);
	name = put_name(name, event->name);
	head.object = (uint32_t)(name - names);
	name = put_name(name, event->object);
	memcpy(at, &head, sizeof(head));
	for (uint32_t i = 0; i < fields; i++) {
		const struct gt_event_field *from = &event->fields[i];
		struct graftrace_file_event_field entry = {
			.name = (uint32_t)(name - names),
			.bytes = from->bytes,
			.flags = (uint16_t)((from->is_signed ? GRAFTRACE_FIELD_SIGNED : 0) |
					    (from->is_string ? GRAFTRACE_FIELD_STRING : 0) |
					    (from->is_float ? GRAFTRACE_FIELD_FLOAT : 0)),
			.show = event->number & GRAFTRACE_VALUES ? from->kind : from->show,
			.count = from->count,
		};
		name = put_name(name, from->name);
		entry.type = (uint32_t)(name - names);
		name = put_name(name, from->type);
		if (event->print && i == 0) {
			entry.print = name - names <= UINT16_MAX ? (uint16_t)(name - names) : 0;
			name = put_name(name, event->print);
		}
		memcpy(field, &entry, sizeof(entry));
		field += sizeof(entry);
	}
	return put_payload(writer, GRAFTRACE_BLOCK_EVENT, count);
}

static int put_writers(struct gt_file_writer *writer)
{
	struct graftrace_file_writers head = { writer->writer_count,
					       sizeof(struct graftrace_file_writer) };
	size_t count = sizeof(head) + writer->writer_count * sizeof(struct graftrace_file_writer);

	if (!writer->writer_count)
		return 0;
	uint8_t *at = start_payload(writer, count);
	if (!at)
		return writer->output.error;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), writer->writers, count - sizeof(head));
	writer->writer_count = 0;
	return put_payload(writer, GRAFTRACE_BLOCK_WRITERS, count);
}

static int sink_writer(void *data, const struct gt_writer *seen)
{
	struct gt_file_writer *writer = data;

	if (writer->output.error)
		return answer(writer);
	if (writer->writer_count == WRITERS && put_writers(writer) < 0)
		return answer(writer);
	if (!writer->writer_count && !writer->pending_count)
		writer->oldest_ns = now_ns();
	struct graftrace_file_writer *record = &writer->writers[writer->writer_count++];
	*record = (struct graftrace_file_writer){
		.generation = seen->generation,
		.pid = seen->pid,
		.tid = seen->tid,
		.next = seen->next,
		.start = seen->start,
		.end = seen->end,
	};
	memcpy(record->comm, seen->comm, sizeof(record->comm));
	memcpy(record->lost, seen->lost, sizeof(record->lost));
	return 0;
}

static int put_switches(struct gt_file_writer *writer)
{
	struct graftrace_file_switches head = { writer->switch_count,
						sizeof(struct graftrace_file_switch),
						writer->switches_start, writer->switches_lost };
	size_t count = sizeof(head) + head.count * sizeof(struct graftrace_file_switch);
	uint64_t clock = 0;

	if (!writer->switches || (!head.count && writer->switches_said))
		return 0;
	uint8_t *at = start_payload(writer, count);
	if (!at)
		return writer->output.error;
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = 0; i < head.count; i++) {
		const struct gt_switch *from = &writer->switches[i];
		struct graftrace_file_switch record = { from->clock - clock, from->tid, from->cpu,
							from->flags };
		clock = from->clock;
		memcpy(at, &record, sizeof(record));
		at += sizeof(record);
	}
	writer->switch_count = 0;
	writer->switches_said = true;
	return put_payload(writer, GRAFTRACE_BLOCK_SWITCHES, count);
}

static int sink_switches(void *data, uint64_t start, uint64_t lost,
			 const struct gt_switch *switches, uint32_t count)
{
	struct gt_file_writer *writer = data;

	if (writer->output.error)
		return answer(writer);
	if (!writer->switches) {
		writer->switches = malloc(SWITCHES * sizeof(*writer->switches));
		if (!writer->switches) {
			no_memory(writer);
			return answer(writer);
		}
	}
	writer->switches_start = start;
	writer->switches_lost = lost;
	for (uint32_t i = 0; i < count; i++) {
		if (writer->switch_count == SWITCHES && put_switches(writer) < 0)
			return answer(writer);
		if (!writer->switch_count && !writer->pending_count && !writer->writer_count)
			writer->oldest_ns = now_ns();
		writer->switches[writer->switch_count++] = switches[i];
	}
	return 0;
}

/* Sub-buffers. */

static int by_writer(const void *left, const void *right)
{
	const struct pending *a = left, *b = right;
	if (a->generation != b->generation)
		return a->generation < b->generation ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* Writes a group without columns. Returns its length. */
static size_t put_plain(const struct gt_columns_input *inputs, uint32_t count, uint8_t *out)
{
	uint8_t *at = out;
	for (uint32_t i = 0; i < count; i++) {
		const struct graftrace_sub_buffer *header = inputs[i].header;
		size_t head = GRAFTRACE_HEADER_BYTES +
			      header->open_calls * sizeof(struct graftrace_open_call);
		memcpy(at, header, head);
		memcpy(at + head, inputs[i].words, inputs[i].word_count * sizeof(uint64_t));
		at += head + inputs[i].word_count * sizeof(uint64_t);
	}
	return (size_t)(at - out);
}

/* Writes one group to `out`. Returns its stored length, or an error. */
static int64_t put_group(struct gt_file_writer *writer, const struct gt_columns_input *inputs,
			 uint32_t count, struct graftrace_file_group *group, uint8_t *out)
{
	unsigned pressure = atomic_load_explicit(&writer->pressure, memory_order_relaxed);
	unsigned asked = writer->ask_pressure ? writer->ask_pressure(writer->ask_data) : 0;
	size_t plain = 0;

	for (uint32_t i = 0; i < count; i++)
		plain += GRAFTRACE_HEADER_BYTES +
			 inputs[i].header->open_calls * sizeof(struct graftrace_open_call) +
			 inputs[i].word_count * sizeof(uint64_t);
	if (asked > pressure)
		pressure = asked;
	group->encoding = GRAFTRACE_ENCODING_PLAIN;
	if (writer->encoder && pressure < PRESSURE_PLAIN) {
		int64_t packed = gt_columns_encode(
			writer->encoder, inputs, count,
			pressure < PRESSURE_BARE ? GT_COLUMNS_ZSTD : GT_COLUMNS_BARE, out);
		if (packed < 0)
			return no_memory(writer);
		if ((size_t)packed < plain) {
			group->encoding = GRAFTRACE_ENCODING_COLUMNS;
			return packed;
		}
	}
	return (int64_t)put_plain(inputs, count, out);
}

/* Returns how many sub-buffers from `from` on make one group: one writer's, with consecutive
 * sequences. */
static uint32_t group_length(const struct gt_file_writer *writer, uint32_t from)
{
	const struct pending *pending = writer->pending;
	uint32_t to = from + 1;
	while (to < writer->pending_count && pending[to].generation == pending[from].generation &&
	       pending[to].sequence == pending[to - 1].sequence + 1)
		to++;
	return to - from;
}

static int put_sub_buffers(struct gt_file_writer *writer)
{
	uint32_t count = writer->pending_count, groups = 0;

	if (!count)
		return 0;
	qsort(writer->pending, count, sizeof(*writer->pending), by_writer);
	for (uint32_t i = 0; i < count; i++) {
		const void *header = writer->gather + writer->pending[i].at;
		writer->inputs[i] = (struct gt_columns_input){
			header, (const uint64_t *)((const struct graftrace_sub_buffer *)header + 1),
			writer->pending[i].words
		};
	}
	size_t bound = 0;
	for (uint32_t i = 0; i < count; groups++) {
		uint32_t length = group_length(writer, i);
		bound += gt_columns_bound(writer->inputs + i, length);
		i += length;
	}
	struct graftrace_file_sub_buffers head = { groups, count, 0 };
	size_t head_bytes = sizeof(head) + groups * sizeof(struct graftrace_file_group) +
			    count * sizeof(struct graftrace_file_sub_buffer);
	uint8_t *payload = start_payload(writer, head_bytes + bound);
	if (!payload)
		return writer->output.error;

	memcpy(payload, &head, sizeof(head));
	uint8_t *group_at = payload + sizeof(head);
	uint8_t *entry_at = group_at + groups * sizeof(struct graftrace_file_group);
	uint8_t *body = payload + head_bytes;
	for (uint32_t i = 0; i < count;) {
		uint32_t length = group_length(writer, i);
		struct graftrace_file_group group = {
			.generation = writer->pending[i].generation,
			.sub_buffer_count = length,
			.first_sequence = writer->pending[i].sequence,
		};
		int64_t stored = put_group(writer, writer->inputs + i, length, &group, body);
		if (stored < 0)
			return (int)stored;
		group.stored_bytes = (uint32_t)stored;
		group.crc = gt_crc32c(0, body, (size_t)stored);
		memcpy(group_at, &group, sizeof(group));
		group_at += sizeof(group);
		body += stored;
		for (uint32_t end = i + length; i < end; i++) {
			struct graftrace_file_sub_buffer entry = {
				writer->inputs[i].header->clock, writer->pending[i].words,
				writer->inputs[i].header->open_calls, 0
			};
			memcpy(entry_at, &entry, sizeof(entry));
			entry_at += sizeof(entry);
		}
	}
	size_t payload_bytes = (size_t)(body - payload);
	if (gt_block_output_put(&writer->output, writer->block, GRAFTRACE_BLOCK_SUB_BUFFERS, 0,
				payload_bytes, payload_bytes, head_bytes) < 0)
		return writer->output.error;
	writer->pending_count = 0;
	writer->gathered = 0;
	writer->sub_buffers += count;
	return 0;
}

static uint64_t calls_of(const struct graftrace_sub_buffer *sub_buffer, uint32_t words)
{
	const uint64_t *word = (const uint64_t *)(sub_buffer + 1);
	const bool is_pairs = sub_buffer->tracer == GRAFTRACE_TRACER_FUNCTION;
	uint64_t calls = 0;

	for (uint32_t i = 0; i < words; i += graftrace_record_words(&word[i], words - i, is_pairs))
		calls += (uint64_t)graftrace_word_is_call(word[i]);
	return calls;
}

uint64_t gt_file_writer_missed(const struct gt_file_writer *writer)
{
	uint64_t calls = writer->missed;

	for (uint32_t i = 0; writer->output.error && i < writer->pending_count; i++)
		calls += calls_of((const void *)(writer->gather + writer->pending[i].at),
				  writer->pending[i].words);
	return calls;
}

int gt_file_writer_flush(struct gt_file_writer *writer)
{
	if (writer->output.error)
		return writer->output.error;
	if (put_writers(writer) < 0 || put_switches(writer) < 0 || put_sub_buffers(writer) < 0)
		return writer->output.error;
	return 0;
}

int gt_file_writer_flush_old(struct gt_file_writer *writer)
{
	if ((writer->pending_count || writer->writer_count || writer->switch_count) &&
	    now_ns() - writer->oldest_ns > GATHER_NS)
		return gt_file_writer_flush(writer);
	return writer->output.error;
}

/* Makes room for one more sub-buffer of `bytes`. */
static int make_gather_room(struct gt_file_writer *writer, size_t bytes)
{
	if (writer->gathered + bytes > writer->gather_size) {
		size_t size = writer->gathered + bytes;
		if (size < GATHER_BYTES)
			size = GATHER_BYTES;
		uint8_t *gather = realloc(writer->gather, size);
		if (!gather)
			return no_memory(writer);
		writer->gather = gather;
		writer->gather_size = size;
	}
	if (writer->pending_count == writer->pending_size) {
		uint32_t size = writer->pending_size * 2 + 64;
		struct pending *pending = realloc(writer->pending, size * sizeof(*pending));
		if (!pending)
			return no_memory(writer);
		writer->pending = pending;
		struct gt_columns_input *inputs = realloc(writer->inputs, size * sizeof(*inputs));
		if (!inputs)
			return no_memory(writer);
		writer->inputs = inputs;
		writer->pending_size = size;
	}
	return 0;
}

/* Returns 0 if it was added to the pending ones. */
static int gather(struct gt_file_writer *writer, const struct graftrace_sub_buffer *sub_buffer,
		  uint32_t words)
{
	size_t bytes = sizeof(*sub_buffer) + (size_t)words * sizeof(uint64_t);
	uint64_t now = now_ns();

	if (writer->output.error)
		return writer->output.error;
	if (words > GRAFTRACE_WORDS_MAX)
		return gt_block_output_fail(&writer->output, GT_EINVAL,
					    "a sub-buffer is larger than the format can hold");
	if (writer->pending_count &&
	    (writer->gathered + bytes > GATHER_BYTES || now - writer->oldest_ns > GATHER_NS) &&
	    gt_file_writer_flush(writer) < 0)
		return writer->output.error;
	if (make_gather_room(writer, bytes) < 0)
		return writer->output.error;
	if (!writer->pending_count)
		writer->oldest_ns = now;
	struct graftrace_sub_buffer *copy = (void *)(writer->gather + writer->gathered);
	memcpy(copy, sub_buffer, bytes);
	copy->used = words;
	if (copy->open_calls > GRAFTRACE_OPEN_CALLS)
		copy->open_calls = GRAFTRACE_OPEN_CALLS;
	writer->pending[writer->pending_count++] =
		(struct pending){ copy->sequence, writer->gathered, copy->generation, words };
	writer->gathered += bytes;
	return 0;
}

static int sink_sub_buffer(void *data, const struct graftrace_sub_buffer *sub_buffer,
			   uint32_t words)
{
	struct gt_file_writer *writer = data;

	if (gather(writer, sub_buffer, words) < 0)
		writer->missed += calls_of(sub_buffer, words);
	return answer(writer);
}

int gt_file_writer_create(const struct gt_file_writer_options *options, struct gt_file_writer **out,
			  struct gt_message *message)
{
	int error;
	struct gt_file_writer *writer = calloc(1, sizeof(*writer));

	*out = NULL;
	if (!writer) {
		snprintf(message->text, sizeof(message->text), "no memory for a recording");
		return GT_ENOMEM;
	}
	writer->compress = options->compress;
	writer->goes_on = options->goes_on;
	writer->ask_pressure = options->pressure;
	writer->ask_data = options->pressure_data;
	writer->clock =
		(struct graftrace_file_clock){ options->clock.tsc_base, options->clock.ns_base,
					       options->clock.mult, options->clock.shift, 0 };
	writer->sink = (struct gt_sink){ .data = writer,
					 .functions = sink_functions,
					 .object = sink_object,
					 .writer = sink_writer,
					 .sub_buffer = sink_sub_buffer,
					 .event = sink_event,
					 .switches = sink_switches };
	error = options->append_at
			? gt_block_output_append(&writer->output, options->path, options->append_at,
						 options->append_number)
			: gt_block_output_create(&writer->output, options->path);
	if (!error && options->compress) {
		writer->encoder = gt_columns_encoder_create(options->level);
		if (!writer->encoder)
			error = no_memory(writer);
	}
	if (!error && !options->append_at)
		error = put_start(writer, options);
	if (error) {
		*message = writer->output.message;
		gt_file_writer_destroy(writer);
		return error;
	}
	*out = writer;
	return 0;
}

const struct gt_sink *gt_file_writer_sink(struct gt_file_writer *writer)
{
	return &writer->sink;
}

void gt_file_writer_set_pressure(struct gt_file_writer *writer, unsigned percent)
{
	atomic_store_explicit(&writer->pressure, percent, memory_order_relaxed);
}

int gt_file_writer_finish(struct gt_file_writer *writer, const struct gt_file_writer_totals *totals,
			  struct gt_message *message)
{
	struct graftrace_file_end end = {
		.words = totals->words,
		.calls = totals->calls,
		.ns = totals->ns,
		.threads = totals->threads,
		.processes = totals->processes,
		.exit_status = totals->exit_status,
		.functions = writer->functions,
		.clock = writer->clock,
	};

	memcpy(end.lost, totals->lost, sizeof(end.lost));
	if (totals->clock.mult != 0)
		end.clock =
			(struct graftrace_file_clock){ totals->clock.tsc_base,
						       totals->clock.ns_base, totals->clock.mult,
						       totals->clock.shift, 0 };
	if (gt_file_writer_flush(writer) == 0) {
		end.sub_buffers = writer->sub_buffers;
		uint8_t *payload = start_payload(writer, sizeof(end));
		if (payload) {
			memcpy(payload, &end, sizeof(end));
			gt_block_output_put(&writer->output, writer->block, GRAFTRACE_BLOCK_END, 0,
					    sizeof(end), sizeof(end), 0);
		}
	}
	writer->finished = true;
	gt_block_output_close(&writer->output);
	*message = writer->output.message;
	return writer->output.error;
}

const char *gt_file_writer_error(struct gt_file_writer *writer)
{
	return writer->output.message.text;
}

uint64_t gt_file_writer_bytes(struct gt_file_writer *writer)
{
	return writer->output.offset;
}

void gt_file_writer_destroy(struct gt_file_writer *writer)
{
	if (!writer)
		return;
	if (!writer->finished) {
		gt_file_writer_flush(writer);
		gt_block_output_close(&writer->output);
	}
	gt_columns_encoder_destroy(writer->encoder);
	free(writer->switches);
	free(writer->gather);
	free(writer->pending);
	free(writer->inputs);
	free(writer->block);
	free(writer->packed);
	free(writer);
}
