/* SPDX-License-Identifier: MIT */
/* What a recording says of itself: where and of what it was made, with which options. */
#include "read/writer_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef GT_VERSION
#define GT_VERSION "unknown"
#endif

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
		if (bytes == NULL) {
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
	const size_t length = text != NULL ? strlen(text) : 0;

	if (text != NULL)
		add_bytes(strings, tag, text,
			  length > GT_FILE_NAME_MAX_BYTES ? GT_FILE_NAME_MAX_BYTES : length);
}

static void add_processor(struct strings *strings)
{
	char line[512];
	FILE *file = fopen("/proc/cpuinfo", "re");

	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) == 0 && colon != NULL && colon[1]) {
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
		strings->failed
			? NULL
			: gt_file_writer_start_payload(writer, fixed_bytes + strings->count);
	if (payload != NULL) {
		memcpy(payload, fixed, fixed_bytes);
		if (strings->count)
			memcpy(payload + fixed_bytes, strings->bytes, strings->count);
		gt_file_writer_put_payload(writer, type, fixed_bytes + strings->count);
	} else {
		gt_file_writer_no_memory(writer);
	}
	free(strings->bytes);
	return writer->output.error;
}

static void add_known(struct strings *strings, enum graftrace_string_tag tag, const char *text)
{
	if (text != NULL && *text)
		add_string(strings, tag, text);
}

/* Adds facts about the system that the recording is made on. */
static void add_system(struct strings *strings)
{
	struct utsname system;
	char directory[4096], text[512];

	if (getcwd(directory, sizeof(directory)) != NULL)
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

int gt_file_writer_put_start(struct gt_file_writer *writer,
			     const struct gt_file_writer_options *options)
{
	struct strings strings = { 0 };
	struct timespec realtime = { 0 };

	for (const char *const *argument = options->argv; argument != NULL && *argument != NULL;
	     argument++)
		add_string(&strings, GRAFTRACE_STRING_ARGUMENT, *argument);
	add_string(&strings, GRAFTRACE_STRING_PROGRAM, options->program);
	if (options->like != NULL) {
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
	if (error || options->options == NULL || *options->options == NULL)
		return error;
	struct strings list = { 0 };
	for (const char *const *option = options->options; *option != NULL; option++)
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
