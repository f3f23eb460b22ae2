/* SPDX-License-Identifier: MIT */
/*
 * Recordings: opening and closing, the operations of their target, problems, and facts about the
 * run. The file is read with pread, not mapped: if another process truncates it meanwhile, a read
 * fails, while a mapping would end this process with SIGBUS. One thread at a time.
 */
#include "read/recording.h"
#include "core/trace/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "read/recording_parts.h"

void gt_recording_add_problem(struct gt_recording *recording, bool damage, const char *format, ...)
{
	char text[512];
	va_list arguments;

	recording->damaged |= damage;
	if (recording->problem_count++ >= GT_RECORDING_PROBLEMS - 1)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	recording->problems[recording->problem_count - 1] = strdup(text);
}

int64_t gt_recording_read(struct gt_recording *recording, uint64_t offset, void *bytes,
			  size_t count)
{
	size_t done = 0;

	while (done < count) {
		ssize_t got = pread(recording->fd, (uint8_t *)bytes + done, count - done,
				    (off_t)(offset + done));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			gt_recording_add_problem(recording, true,
						 "byte %" PRIu64 ": cannot be read: %s",
						 offset + done, strerror(errno));
			return GT_EIO;
		}
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (int64_t)done;
}

int gt_recording_grow(void *array, uint32_t *room, uint64_t count, size_t size)
{
	void *elements; /* *array is a pointer of another type: copied by memcpy */

	if (count <= *room)
		return 0;
	if (count > UINT32_MAX / 2)
		return GT_ENOMEM;
	memcpy(&elements, array, sizeof(elements));
	elements = realloc(elements, (size_t)count * 2 * size);
	if (elements == NULL)
		return GT_ENOMEM;
	memcpy(array, &elements, sizeof(elements));
	*room = (uint32_t)count * 2;
	return 0;
}

/* Writers by generation: a hash table that is rebuilt when it is half full. */

static uint32_t *slot_of(const struct gt_recording *recording, uint32_t generation)
{
	uint32_t mask = recording->writer_slot_count - 1;
	uint32_t at = generation * 2654435761u & mask;

	while (recording->writer_slots[at] &&
	       recording->writers[recording->writer_slots[at] - 1].writer.generation != generation)
		at = (at + 1) & mask;
	return &recording->writer_slots[at];
}

struct gt_writer_index *gt_recording_writer(struct gt_recording *recording, uint32_t generation)
{
	if (recording->writer_count * 2 >= recording->writer_slot_count) {
		uint32_t count =
			recording->writer_slot_count ? recording->writer_slot_count * 2 : 64;
		free(recording->writer_slots);
		recording->writer_slots = calloc(count, sizeof(*recording->writer_slots));
		recording->writer_slot_count = recording->writer_slots != NULL ? count : 0;
		if (recording->writer_slots == NULL)
			return NULL;
		for (uint32_t i = 0; i < recording->writer_count; i++)
			*slot_of(recording, recording->writers[i].writer.generation) = i + 1;
	}
	uint32_t *slot = slot_of(recording, generation);
	if (*slot)
		return &recording->writers[*slot - 1];
	if (gt_recording_grow(&recording->writers, &recording->writer_size,
			      (uint64_t)recording->writer_count + 1,
			      sizeof(*recording->writers)) < 0)
		return NULL;
	struct gt_writer_index *writer = &recording->writers[recording->writer_count++];
	*writer = (struct gt_writer_index){ .writer.generation = generation };
	*slot = recording->writer_count;
	return writer;
}

/* The target's operations. */

static uint32_t target_writer_count(struct gt_target *target)
{
	return ((struct gt_recording *)target->data)->writer_count;
}

static int target_writer(struct gt_target *target, uint32_t index, struct gt_writer *writer)
{
	struct gt_recording *recording = target->data;

	if (index >= recording->writer_count)
		return GT_ENOENT;
	*writer = recording->writers[index].writer;
	return 0;
}

static int64_t target_sub_buffer(struct gt_target *target, uint32_t index, uint64_t sequence,
				 void *buffer, const struct graftrace_sub_buffer **bytes)
{
	*bytes = buffer;
	return gt_recording_sub_buffer(target->data, index, sequence, buffer);
}

static int target_function(void *data, uint32_t number, struct gt_function *function)
{
	return gt_recording_function(data, number, function);
}

static int target_function_at(void *data, uint32_t pid, uint64_t address,
			      struct gt_function *function)
{
	return gt_recording_function_at(data, pid, address, function);
}

static uint64_t target_next_sequence(struct gt_target *target, uint32_t index, uint64_t sequence)
{
	const struct gt_recording *recording = target->data;
	const struct gt_writer_index *writer = &recording->writers[index];
	size_t low = 0, high = writer->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (writer->places[middle].sequence < sequence)
			low = middle + 1;
		else
			high = middle;
	}
	return low < writer->count ? writer->places[low].sequence : writer->writer.next;
}

/* A kernel's threads are listed among the writers, with their numbers. */
static int target_thread(void *data, uint32_t tid, char comm[16])
{
	struct gt_recording *recording = data;

	if (tid == 0) {
		memcpy(comm, "<idle>", sizeof("<idle>"));
		return 0;
	}
	if (!recording->writer_slot_count)
		return GT_ENOENT;
	uint32_t slot = *slot_of(recording, GRAFTRACE_CONTEXT_INTERRUPT + tid);
	if (!slot)
		return GT_ENOENT;
	memcpy(comm, recording->writers[slot - 1].writer.comm, 16);
	return 0;
}

static int target_off_cpu(void *data, uint32_t tid, uint64_t after, struct gt_off_cpu *time)
{
	return gt_recording_off_cpu(data, tid, after, time);
}

static uint32_t target_switches(void *data, uint64_t *cursor, struct gt_switch *out, uint32_t room)
{
	const struct gt_recording *recording = data;

	return recording->have_switches ? gt_switches_read(&recording->switches, cursor, out, room)
					: 0;
}

static int target_event(void *data, uint32_t number, struct gt_event_format *format)
{
	return gt_recording_event(data, number, format);
}

static int target_line(void *data, uint32_t number, struct gt_source_line *line)
{
	return gt_recording_line(data, number, line);
}

static const struct gt_ring_ops ring = {
	.writer_count = target_writer_count,
	.writer = target_writer,
	.sub_buffer = target_sub_buffer,
	.next_sequence = target_next_sequence,
};

static const struct gt_name_ops names = {
	.function = target_function,
	.function_at = target_function_at,
	.event = target_event,
	.thread = target_thread,
	.line = target_line,
};

static const struct gt_switch_ops switches = {
	.off_cpu = target_off_cpu,
	.read = target_switches,
};

/* Facts about the run. */

static bool is_plain(const char *argument)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-./,:=+@%^";
	return *argument && strspn(argument, plain) == strlen(argument);
}

static int join_arguments(struct gt_recording *recording)
{
	size_t room = 1;

	for (uint32_t i = 0; i < recording->argument_count; i++)
		room += strlen(recording->arguments[i]) * 4 + 3;
	char *at = recording->command_line = malloc(room);
	if (at == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < recording->argument_count; i++) {
		const char *argument = recording->arguments[i];
		if (i)
			*at++ = ' ';
		if (is_plain(argument)) {
			at = stpcpy(at, argument);
			continue;
		}
		*at++ = '\'';
		for (; *argument; argument++) {
			if (*argument == '\'')
				at = stpcpy(at, "'\\'");
			*at++ = *argument;
		}
		*at++ = '\'';
	}
	*at = 0;
	return 0;
}

static const char *string_of(const struct gt_recording *recording, enum graftrace_string_tag tag)
{
	return recording->strings[tag] != NULL ? recording->strings[tag] : "";
}

static int fill_info(struct gt_recording *recording)
{
	static const char *const none[] = { NULL };
	struct gt_recording_info *info = &recording->info;

	if (join_arguments(recording) < 0)
		return GT_ENOMEM;
	info->argv =
		recording->arguments != NULL ? (const char *const *)recording->arguments : none;
	info->argc = recording->argument_count;
	info->options = recording->options != NULL ? (const char *const *)recording->options : none;
	info->hists = recording->hists != NULL ? (const char *const *)recording->hists : none;
	info->command_line = recording->command_line;
	info->program = string_of(recording, GRAFTRACE_STRING_PROGRAM);
	info->directory = string_of(recording, GRAFTRACE_STRING_DIRECTORY);
	info->system = string_of(recording, GRAFTRACE_STRING_SYSTEM);
	info->host = string_of(recording, GRAFTRACE_STRING_HOST);
	info->cpu = string_of(recording, GRAFTRACE_STRING_CPU);
	info->made_by = string_of(recording, GRAFTRACE_STRING_MADE_BY);
	info->file_bytes = recording->bytes;
	if (!info->ended)
		for (uint32_t i = 0; i < recording->writer_count; i++)
			for (int cause = 0; cause < GRAFTRACE_LOST_CAUSES; cause++)
				info->lost[cause] += recording->writers[i].writer.lost[cause];
	return 0;
}

/* Writers without a WRITERS block are described from their sub-buffers. */
static void describe_writers(struct gt_recording *recording)
{
	struct graftrace_sub_buffer *buffer = NULL;

	for (uint32_t i = 0; i < recording->writer_count; i++) {
		struct gt_writer_index *index = &recording->writers[i];
		if (index->described || !index->count)
			continue;
		if (buffer == NULL)
			buffer = malloc(recording->target.sub_buffer_bytes);
		if (buffer == NULL)
			return;
		if (gt_recording_sub_buffer(recording, i, index->writer.first, buffer) < 0)
			continue;
		index->writer.pid = buffer->pid;
		index->writer.tid = buffer->tid;
		index->writer.start = buffer->clock;
		if (gt_recording_sub_buffer(recording, i, index->writer.next - 1, buffer) >= 0)
			memcpy(index->writer.lost, buffer->lost, sizeof(index->writer.lost));
	}
	free(buffer);
}

static int refuse(struct gt_message *message, int error, const char *path, const char *why)
{
	return gt_fail(message, error, "'%.200s' %.280s", path, why);
}

int gt_recording_open(const char *path, struct gt_recording **out, struct gt_message *message)
{
	struct gt_message why = { "cannot be opened: no memory" };
	struct stat status;
	char text[300];
	int error;

	*out = NULL;
	struct gt_recording *recording = calloc(1, sizeof(*recording));
	if (recording == NULL)
		return refuse(message, GT_ENOMEM, path, why.text);
	recording->target = (struct gt_target){
		.ring = &ring,
		.data = recording,
		.names = &names,
		.name_data = recording,
		.switches = &switches,
		.switch_data = recording,
	};
	recording->target.tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH;
	recording->target.sub_buffer_bytes = sizeof(struct graftrace_sub_buffer);
	recording->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (recording->fd < 0 || fstat(recording->fd, &status) < 0) {
		error = errno == ENOENT || errno == ENOTDIR ? GT_ENOENT
			: errno == EACCES		    ? GT_EPERM
							    : GT_EIO;
		snprintf(text, sizeof(text), "cannot be opened: %s", strerror(errno));
		refuse(message, error, path, text);
		goto close_recording;
	}
	if (!S_ISREG(status.st_mode)) {
		error = refuse(message, GT_EFORMAT, path,
			       S_ISDIR(status.st_mode)
				       ? "is no graftrace recording: it is a folder"
				       : "is no graftrace recording: it is not an ordinary file");
		goto close_recording;
	}
	recording->bytes = (uint64_t)status.st_size;
	error = gt_recording_scan(recording, &why);
	if (!error) {
		describe_writers(recording);
		error = fill_info(recording);
	}
	if (error) {
		refuse(message, error, path, why.text);
		goto close_recording;
	}
	*out = recording;
	return 0;

close_recording:
	gt_recording_close(recording);
	return error;
}

struct gt_target *gt_recording_target(struct gt_recording *recording)
{
	return &recording->target;
}

const struct gt_recording_info *gt_recording_info(struct gt_recording *recording)
{
	return &recording->info;
}

const char *gt_recording_problem(struct gt_recording *recording, uint32_t index)
{
	if (index >= recording->problem_count || index >= GT_RECORDING_PROBLEMS)
		return NULL;
	if (index == GT_RECORDING_PROBLEMS - 1) {
		char text[64];
		snprintf(text, sizeof(text), "and %" PRIu32 " more problems",
			 recording->problem_count - index);
		free(recording->problems[index]);
		recording->problems[index] = strdup(text);
	}
	return recording->problems[index] != NULL ? recording->problems[index]
						  : "a problem (no memory)";
}

bool gt_recording_damaged(struct gt_recording *recording)
{
	return recording->damaged;
}

int gt_recording_verify(struct gt_recording *recording)
{
	struct graftrace_sub_buffer *buffer = malloc(recording->target.sub_buffer_bytes);
	int error = 0;

	if (buffer == NULL)
		return GT_ENOMEM;
	for (uint32_t i = 0; i < recording->writer_count && !error; i++) {
		const struct gt_writer_index *writer = &recording->writers[i];
		for (size_t k = 0; k < writer->count && !error; k++) {
			int64_t got = gt_recording_sub_buffer(recording, i,
							      writer->places[k].sequence, buffer);
			if (got == GT_ENOMEM || got == GT_EIO)
				error = (int)got;
		}
	}
	free(buffer);
	return error;
}

uint32_t gt_recording_function_end(struct gt_recording *recording)
{
	return recording->function_end ? recording->function_end : 1;
}

int gt_recording_object(struct gt_recording *recording, uint32_t index,
			struct gt_recording_object *object)
{
	if (index >= recording->object_count)
		return GT_ENOENT;
	*object = recording->objects[index];
	return 0;
}

void gt_recording_close(struct gt_recording *recording)
{
	if (recording == NULL)
		return;
	gt_recording_free_trace(recording);
	gt_recording_free_lines(recording);
	gt_recording_free_names(recording);
	gt_recording_free_switches(recording);
	gt_recording_free_events(recording);
	for (uint32_t i = 0; i < recording->argument_count; i++)
		free(recording->arguments[i]);
	for (uint32_t i = 0; i < recording->option_count; i++)
		free(recording->options[i]);
	free(recording->arguments);
	for (uint32_t i = 0; i < recording->hist_count; i++)
		free(recording->hists[i]);
	free(recording->options);
	free(recording->hists);
	free(recording->command_line);
	free(recording->kernel);
	for (int i = 0; i < GRAFTRACE_STRING_OPTION; i++)
		free(recording->strings[i]);
	for (int i = 0; i < GT_RECORDING_PROBLEMS; i++)
		free(recording->problems[i]);
	if (recording->fd >= 0)
		close(recording->fd);
	free(recording);
}
