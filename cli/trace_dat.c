/* SPDX-License-Identifier: MIT */
/* trace.dat: see trace_dat.h. */
#define _GNU_SOURCE
#include "cli/trace_dat.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/control/control.h"
#include "core/trace/message.h"
#include "serve/recorded.h"

#define PAGE		 4096u
#define PIECE		 (16 * PAGE)
#define CPUS_MAX	 4096u
#define OPTION_DONE	 0
#define OPTION_CPUSTAT	 2
#define EVENT_PATH_BYTES 160u /* of an event's format */

struct dat {
	FILE *file;
	struct gt_control_target *target;
	struct gt_message *message;
	char *piece;
	bool has_lost;
};

static void put(struct dat *dat, const void *bytes, size_t count)
{
	fwrite(bytes, 1, count, dat->file);
}

/* Writes a number, little endian. */
static void put_number(struct dat *dat, uint64_t number, size_t bytes)
{
	put(dat, &number, bytes);
}

/* Appends the bytes of a control file; returns their number, or GT_ENOENT if there is no such
 * file. */
static int put_content(struct dat *dat, const char *path, uint64_t *bytes)
{
	struct gt_control_handle *handle;
	struct gt_control_node node;
	int64_t got = gt_control_find(dat->target, path, strlen(path), &node);

	*bytes = 0;
	if (got != 0)
		return GT_ENOENT;
	handle = calloc(1, sizeof(*handle));
	if (handle == NULL)
		return GT_ENOMEM;
	got = gt_control_open(handle, &node, GT_CONTROL_READ, dat->message);
	if (got == 0) {
		while ((got = gt_control_read(handle, dat->piece, PIECE, dat->message)) > 0) {
			put(dat, dat->piece, (size_t)got);
			*bytes += (uint64_t)got;
		}
		gt_control_close(handle, dat->message);
	}
	free(handle);
	return got < 0 ? (int)got : 0;
}

/* Writes a size of `bytes` bytes and a control file; size 0 if there is no such file. */
static int put_file(struct dat *dat, const char *path, size_t size_bytes)
{
	off_t at = ftello(dat->file);
	uint64_t bytes;
	int error;

	put_number(dat, 0, size_bytes);
	error = put_content(dat, path, &bytes);
	if (error != 0)
		return error == GT_ENOENT ? 0 : error;
	fseeko(dat->file, at, SEEK_SET);
	put_number(dat, bytes, size_bytes);
	fseeko(dat->file, 0, SEEK_END);
	return 0;
}

/* ---- events ---- */

static bool is_directory(const struct gt_control_entry *entry)
{
	return entry->node.file == NULL;
}

/* Goes through the events of a system: counts them, and writes their formats if `write`. named: each as a
 * system of its own, for a system's name may come several times. */
static int each_event(struct dat *dat, const char *system, bool named, bool write, uint64_t *count)
{
	struct gt_control_walk walk = { 0 };
	struct gt_control_node directory;
	struct gt_control_entry event;
	char path[EVENT_PATH_BYTES];
	int error = 0;

	snprintf(path, sizeof(path), "events/%s", system);
	if (gt_control_find(dat->target, path, strlen(path), &directory) != 0)
		return 0;
	for (uint32_t i = 0; error == 0 && gt_control_list_next(&directory, &walk, i, &event) == 0;
	     i++) {
		if (!is_directory(&event))
			continue;
		++*count;
		if (write && named) {
			put(dat, system, strlen(system) + 1);
			put_number(dat, 1, 4);
		}
		snprintf(path, sizeof(path), "events/%s/%s/format", system, event.name);
		if (write)
			error = put_file(dat, path, 8);
	}
	return error;
}

/* The same of all systems but ftrace's own. */
static int each_system(struct dat *dat, bool write, uint64_t *count)
{
	struct gt_control_walk walk = { 0 };
	struct gt_control_node directory;
	struct gt_control_entry system;
	int error = 0;

	if (gt_control_find(dat->target, "events", 6, &directory) != 0)
		return 0;
	for (uint32_t i = 0; error == 0 && gt_control_list_next(&directory, &walk, i, &system) == 0;
	     i++)
		if (is_directory(&system) && strcmp(system.name, "ftrace") != 0)
			error = each_event(dat, system.name, true, write, count);
	return error;
}

static int put_events(struct dat *dat)
{
	uint64_t count = 0;
	int error = each_event(dat, "ftrace", false, false, &count);

	put_number(dat, count, 4);
	if (error == 0)
		error = each_event(dat, "ftrace", false, true, &count);
	count = 0;
	if (error == 0)
		error = each_system(dat, false, &count);
	put_number(dat, count, 4);
	if (error == 0)
		error = each_system(dat, true, &count);
	return error;
}

/* ---- pages ---- */

static uint32_t count_cpus(struct dat *dat)
{
	uint32_t count = 0;
	struct gt_control_node node;
	char path[64];

	do
		snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", count);
	while (gt_control_find(dat->target, path, strlen(path), &node) == 0 && count++ < CPUS_MAX);
	return count;
}

/* Of a recording that has lost something: what `trace-cmd report --stat` prints, the counts of each CPU. */
static int put_options(struct dat *dat, uint32_t cpus)
{
	int error = 0;

	put(dat, "options  ", 10);
	for (uint32_t i = 0; i < cpus && error == 0; i++) {
		off_t place, end;
		uint64_t bytes;
		char path[64];

		put_number(dat, OPTION_CPUSTAT, 2);
		place = ftello(dat->file);
		put_number(dat, 0, 4);
		fprintf(dat->file, "CPU: %u\n", i);
		snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", i);
		error = put_content(dat, path, &bytes);
		if (error == GT_ENOENT)
			error = 0;
		put_number(dat, 0, 1);
		end = ftello(dat->file);
		fseeko(dat->file, place, SEEK_SET);
		put_number(dat, (uint64_t)(end - place) - 4, 4);
		fseeko(dat->file, end, SEEK_SET);
	}
	put_number(dat, OPTION_DONE, 2);
	return error;
}

static void fill_page(struct dat *dat)
{
	static const char zeros[PAGE];
	off_t rest = ftello(dat->file) % PAGE;

	if (rest)
		put(dat, zeros, PAGE - (size_t)rest);
}

/* Writes where each CPU's pages begin and their size; then the pages. */
static int put_cpus(struct dat *dat, uint32_t cpus)
{
	off_t table = ftello(dat->file);
	uint64_t *places = calloc(2 * (size_t)cpus + 1, sizeof(*places));
	int error = 0;
	char path[64];

	if (places == NULL)
		return GT_ENOMEM;
	put(dat, places, 2 * cpus * sizeof(*places));
	for (uint32_t i = 0; i < cpus && error == 0; i++) {
		fill_page(dat);
		places[2 * i] = (uint64_t)ftello(dat->file);
		snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", i);
		error = put_content(dat, path, &places[2 * i + 1]);
	}
	fill_page(dat);
	fseeko(dat->file, table, SEEK_SET);
	put(dat, places, 2 * cpus * sizeof(*places));
	free(places);
	return error;
}

static int put_all(struct dat *dat)
{
	uint32_t cpus = count_cpus(dat);
	int error;

	put(dat, "\x17\x08\x44tracing6", 12); /* with its NUL */
	put_number(dat, 0, 1);		      /* little endian */
	put_number(dat, sizeof(long), 1);
	put_number(dat, PAGE, 4);
	put(dat, "header_page", 12);
	error = put_file(dat, "events/header_page", 8);
	put(dat, "header_event", 13);
	if (error == 0)
		error = put_file(dat, "events/header_event", 8);
	if (error == 0)
		error = put_events(dat);
	if (error == 0)
		error = put_file(dat, "kallsyms", 4);
	if (error == 0)
		error = put_file(dat, "printk_formats", 4);
	if (error == 0)
		error = put_file(dat, "saved_cmdlines", 8);
	put_number(dat, cpus, 4);
	if (error == 0 && dat->has_lost)
		error = put_options(dat, cpus);
	put(dat, "flyrecord", 10);
	return error == 0 ? put_cpus(dat, cpus) : error;
}

int gt_trace_dat_write(struct gt_recording *recording, int fd, struct gt_message *message)
{
	struct dat dat = { .message = message,
			   .piece = malloc(PIECE),
			   .has_lost =
				   graftrace_lost_calls(gt_recording_info(recording)->lost) > 0 };
	struct gt_recorded *recorded = NULL;
	int copy = dup(fd), error = GT_ENOMEM;

	dat.file = copy >= 0 ? fdopen(copy, "w") : NULL;
	if (dat.file == NULL && copy >= 0)
		close(copy);
	if (dat.piece != NULL && dat.file != NULL)
		error = gt_recorded_create(recording, &recorded, message);
	if (error == 0 && ftello(dat.file) < 0) {
		gt_message_set(message, "it must be a regular file");
		error = GT_ENOTSUP;
	} else if (error == 0) {
		dat.target = gt_recorded_control(recorded);
		error = put_all(&dat);
	}
	if (recorded != NULL)
		gt_recorded_destroy(recorded);
	if (error == GT_ENOMEM)
		gt_message_set(message, "out of memory");
	if (dat.file != NULL && (fflush(dat.file) != 0 || ferror(dat.file)) && error == 0) {
		gt_message_set(message, "%s", strerror(errno));
		error = GT_EIO;
	}
	if (dat.file != NULL && fclose(dat.file) != 0 && error == 0) {
		gt_message_set(message, "%s", strerror(errno));
		error = GT_EIO;
	}
	free(dat.piece);
	return error;
}
