/* SPDX-License-Identifier: MIT */
/*
 * Writes what is needed to read the kernel's pages on any machine into the recording, as files.
 */
#define _GNU_SOURCE
#include "linux/tracer_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trace/message.h"

static int keep_file(struct tracefs_instance *instance, const char *file,
		     struct gt_file_writer *writer)
{
	int size = 0;
	char *text = tracefs_instance_file_read(instance, file, &size);
	int error = 0;

	if (text != NULL && size > 0)
		error = gt_file_writer_kernel_file(writer, file, text, (size_t)size);
	free(text);
	return error;
}

static int keep_format(const char *system, const char *event, struct gt_file_writer *writer)
{
	char file[512];
	int size = 0, error = 0;

	snprintf(file, sizeof(file), "events/%s/%s/format", system, event);
	char *text = tracefs_instance_file_read(NULL, file, &size);
	if (text != NULL && size > 0)
		error = gt_file_writer_kernel_gather(writer, file, text, (size_t)size);
	free(text);
	return error;
}

/* Keeps the formats of the enabled events, and of ftrace's own. */
static int keep_formats(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	char *on = gt_kernel_get(tracer->instance, "set_event"), *rest = NULL;
	char **own = tracefs_system_events(NULL, "ftrace");
	int error = keep_file(NULL, "events/header_page", writer);

	for (char **event = own; event != NULL && *event != NULL && error == 0; event++)
		error = keep_format("ftrace", *event, writer);
	for (char *line = on != NULL ? strtok_r(on, "\n", &rest) : NULL; line != NULL && error == 0;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *colon = strchr(line, ':');
		if (colon == NULL)
			continue;
		*colon = '\0';
		error = keep_format(line, colon + 1, writer);
	}
	tracefs_list_free(own);
	free(on);
	return error == 0 ? gt_file_writer_kernel_gathered(writer) : error;
}

/* Keeps the symbols of code. Without addresses (kptr_restrict) they are useless. */
static int keep_symbols(struct gt_file_writer *writer, bool only_modules)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char *text = NULL, *line = NULL;
	size_t count = 0, room = 0, line_room = 0;
	ssize_t bytes;
	int error = 0;

	while (file != NULL && error == 0 && (bytes = getline(&line, &line_room, file)) > 0) {
		const char *type = strchr(line, ' ');
		if (type == NULL || strchr("tTwW", type[1]) == NULL ||
		    strtoull(line, NULL, 16) == 0 || (only_modules && strchr(line, '[') == NULL))
			continue;
		if (count + (size_t)bytes > room) {
			room = (count + (size_t)bytes) * 2 + 65536;
			char *bigger = realloc(text, room);
			if (bigger == NULL) {
				error = GT_ENOMEM;
				break;
			}
			text = bigger;
		}
		memcpy(text + count, line, (size_t)bytes);
		count += (size_t)bytes;
	}
	if (error == 0 && count)
		error = gt_file_writer_kernel_file(writer, "kallsyms", text, count);
	if (file != NULL)
		fclose(file);
	free(line);
	free(text);
	return error;
}

static char *read_modules(void)
{
	FILE *file = fopen("/proc/modules", "re");
	char *text = NULL;
	size_t room = 0;

	/* the text contains no NUL: the whole file is one line */
	if (file != NULL && getdelim(&text, &room, '\0', file) < 0 && text != NULL)
		text[0] = '\0';
	if (file != NULL)
		fclose(file);
	return text;
}

/* Keeps modules that were loaded meanwhile; the symbols of unloaded ones are in the file. */
static int keep_new_modules(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	char *now = read_modules();
	int error = 0;

	if (now != NULL && tracer->modules != NULL && strcmp(now, tracer->modules) != 0)
		error = keep_symbols(writer, true);
	free(now);
	return error;
}

static uint64_t count_of(const char *stats, const char *name)
{
	const char *found = stats != NULL ? strstr(stats, name) : NULL;

	return found != NULL ? strtoull(found + strlen(name), NULL, 10) : 0;
}

static int keep_losses(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
		       uint64_t *lost, struct gt_message *losses)
{
	char file[64], option[512] = "kernel-lost=";
	size_t used = strlen(option), begin = used;
	int error = 0;

	*lost = 0;
	for (int cpu = 0; cpu < tracer->cpu_count && error == 0; cpu++) {
		snprintf(file, sizeof(file), "per_cpu/cpu%d/stats", cpu);
		char *text = gt_kernel_get(tracer->instance, file);
		uint64_t here = count_of(text, "\noverrun: ") + count_of(text, "dropped events: ");
		*lost += here;
		if (here && used < sizeof(option))
			used += (size_t)snprintf(option + used, sizeof(option) - used,
						 "%sCPU %d: %" PRIu64, used > begin ? ", " : "",
						 cpu, here);
		if (text != NULL)
			error = gt_file_writer_kernel_file(writer, file, text, strlen(text));
		free(text);
	}
	if (*lost && error == 0)
		error = gt_file_writer_option(writer, option);
	return gt_fail(losses, error, "%s", option + begin);
}

/* Notes our own threads, which readers leave out. */
static int keep_us(struct gt_file_writer *writer)
{
	char text[4096] = "";
	size_t used = 0;
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) && used + 24 < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%.20s ",
						 entry->d_name);
	if (directory != NULL)
		closedir(directory);
	return gt_file_writer_kernel_file(writer, "recorder", text, used);
}

int gt_kernel_keep_clock(const struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
			 bool is_last)
{
	const struct gt_kernel_clock *clock = &tracer->clock;
	const char *name = tracer->is_tsc ? "x86-tsc" : "mono";
	const char *unit = tracer->is_tsc ? "ticks" : "ns";
	char option[300];

	if (clock->exchanges)
		snprintf(option, sizeof(option),
			 "kernel-clock%s=%s: %" PRId64
			 " %s later than that of the other machine, to "
			 "%" PRIu64 " ns (measured by %u exchanges over the network)",
			 is_last ? "" : "-at-start", name, clock->offset, unit, clock->error_ns,
			 clock->exchanges);
	else if (clock->error && clock->offset == 0)
		snprintf(option, sizeof(option),
			 "kernel-clock=%s: the program's own, to %" PRIu64
			 " ns (measured by %u markers)",
			 name, clock->error_ns, clock->markers);
	else if (clock->error)
		snprintf(option, sizeof(option),
			 "kernel-clock=%s: %" PRId64 " %s later than the program's, to %" PRIu64
			 " ns (measured by %u markers)",
			 name, clock->offset, unit, clock->error_ns, clock->markers);
	else
		snprintf(option, sizeof(option), "kernel-clock=%s, not measured", name);
	int error = gt_file_writer_option(writer, option);
	snprintf(option, sizeof(option), "%" PRId64 " %" PRIu64 " %u\n", clock->offset,
		 clock->error, clock->exchanges ? clock->exchanges : clock->markers);
	if (error == 0 && clock->error)
		error = gt_file_writer_kernel_file(writer, "clock_offset", option, strlen(option));
	return error;
}

/* Notes in the recording how the kernel was recorded, for people. */
static int keep_options(const struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	char option[600];
	int error;

	snprintf(option, sizeof(option), "kernel=%s%s%s",
		 tracer->has_functions ? "functions and events" : "events",
		 tracer->whole_system ? " of the whole system" : "",
		 tracer->is_top ? ", at the top of tracefs" : "");
	error = gt_file_writer_option(writer, option);
	if (error == 0)
		error = gt_kernel_keep_clock(tracer, writer, false);
	snprintf(option, sizeof(option), "kernel-lacks=%s", tracer->lacks.text);
	if (error == 0 && tracer->lacks.text[0])
		error = gt_file_writer_option(writer, option);
	return error;
}

int gt_kernel_tracer_describe(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer)
{
	int error = keep_options(tracer, writer);

	if (error == 0)
		error = keep_formats(tracer, writer);
	if (error == 0)
		error = keep_file(tracer->instance, "trace_clock", writer);
	if (error == 0 && tracer->has_functions)
		error = keep_symbols(writer, false);
	if (error == 0)
		tracer->modules = read_modules();
	tracer->is_described = error == 0;
	return error;
}

int gt_kernel_tracer_finish(struct gt_kernel_tracer *tracer, struct gt_file_writer *writer,
			    uint64_t *lost, struct gt_message *losses)
{
	int error = 0;

	tracefs_trace_off(tracer->instance);
	tracer->is_off = true;
	if (!tracer->is_described)
		error = gt_kernel_tracer_describe(tracer, writer);
	if (error == 0)
		error = gt_kernel_tracer_take(tracer, writer);
	if (error == 0)
		error = keep_losses(tracer, writer, lost, losses);
	if (error == 0)
		error = keep_file(NULL, "saved_cmdlines", writer);
	if (error == 0 && !tracer->whole_system)
		error = keep_us(writer);
	if (error == 0 && tracer->has_functions)
		error = keep_new_modules(tracer, writer);
	return error;
}
