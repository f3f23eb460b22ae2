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

#define PAGE	  4096u
#define PIECE	  (16 * PAGE)
#define CPUS_MAX  4096u
#define NAMES_MAX 64u /* events of a system */

struct dat {
	FILE *file;
	struct gt_control_target *target;
	struct gt_message *message;
	char *piece;
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
	if (got != GT_OK)
		return GT_ENOENT;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return GT_ENOMEM;
	got = gt_control_open(handle, &node, GT_CONTROL_READ, dat->message);
	if (got == GT_OK) {
		while ((got = gt_control_read(handle, dat->piece, PIECE, dat->message)) > 0) {
			put(dat, dat->piece, (size_t)got);
			*bytes += (uint64_t)got;
		}
		gt_control_close(handle, dat->message);
	}
	free(handle);
	return got < 0 ? (int)got : GT_OK;
}

/* Writes a size of `bytes` bytes and a control file; size 0 if there is no such file. */
static int put_file(struct dat *dat, const char *path, size_t size_bytes)
{
	off_t at = ftello(dat->file);
	uint64_t bytes;
	int error;

	put_number(dat, 0, size_bytes);
	error = put_content(dat, path, &bytes);
	if (error != GT_OK)
		return error == GT_ENOENT ? GT_OK : error;
	fseeko(dat->file, at, SEEK_SET);
	put_number(dat, bytes, size_bytes);
	fseeko(dat->file, 0, SEEK_END);
	return GT_OK;
}

/* ---- events ---- */

struct event {
	char path[128];
	char system[32];
};

/* Lists the formats of ftrace's own events, or of all others. */
static size_t find_events(const struct dat *dat, bool ftrace, struct event events[NAMES_MAX])
{
	const struct gt_control_file *row;
	size_t count = 0;

	for (uint32_t i = 0; (row = gt_control_row(dat->target, i)) != NULL; i++) {
		const char *end = strrchr(row->path, '/');
		struct gt_control_node node;

		if (count == NAMES_MAX || strncmp(row->path, "events/", 7) != 0 ||
		    strcmp(end, "/format") != 0 ||
		    (strncmp(row->path + 7, "ftrace/", 7) == 0) != ftrace ||
		    gt_control_find(dat->target, row->path, strlen(row->path), &node) != GT_OK)
			continue;
		snprintf(events[count].path, sizeof(events[count].path), "%s", row->path);
		snprintf(events[count].system, sizeof(events[count].system), "%.*s",
			 (int)strcspn(row->path + 7, "/"), row->path + 7);
		count++;
	}
	return count;
}

static int put_events(struct dat *dat)
{
	struct event events[NAMES_MAX];
	size_t count = find_events(dat, true, events);
	int error = GT_OK;

	put_number(dat, count, 4);
	for (size_t i = 0; i < count && error == GT_OK; i++)
		error = put_file(dat, events[i].path, 8);
	if (error != GT_OK)
		return error;
	/* Each event is written as a system of its own: the format allows a system's name
	 * several times. */
	count = find_events(dat, false, events);
	put_number(dat, count, 4);
	for (size_t i = 0; i < count && error == GT_OK; i++) {
		put(dat, events[i].system, strlen(events[i].system) + 1);
		put_number(dat, 1, 4);
		error = put_file(dat, events[i].path, 8);
	}
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
	while (gt_control_find(dat->target, path, strlen(path), &node) == GT_OK &&
	       count++ < CPUS_MAX);
	return count;
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
	int error = GT_OK;
	char path[64];

	if (!places)
		return GT_ENOMEM;
	put(dat, places, 2 * cpus * sizeof(*places));
	for (uint32_t i = 0; i < cpus && error == GT_OK; i++) {
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
	if (error == GT_OK)
		error = put_file(dat, "events/header_event", 8);
	if (error == GT_OK)
		error = put_events(dat);
	if (error == GT_OK)
		error = put_file(dat, "kallsyms", 4);
	if (error == GT_OK)
		error = put_file(dat, "printk_formats", 4);
	if (error == GT_OK)
		error = put_file(dat, "saved_cmdlines", 8);
	put_number(dat, cpus, 4);
	put(dat, "flyrecord", 10);
	return error == GT_OK ? put_cpus(dat, cpus) : error;
}

int gt_trace_dat_write(struct gt_recording *recording, int fd, struct gt_message *message)
{
	struct dat dat = { .message = message, .piece = malloc(PIECE) };
	struct gt_recorded *recorded = NULL;
	int copy = dup(fd), error = GT_ENOMEM;

	dat.file = copy >= 0 ? fdopen(copy, "w") : NULL;
	if (!dat.file && copy >= 0)
		close(copy);
	if (dat.piece && dat.file)
		error = gt_recorded_create(recording, &recorded, message);
	if (error == GT_OK && ftello(dat.file) < 0) {
		gt_message_set(message, "it must be a regular file");
		error = GT_ENOTSUP;
	} else if (error == GT_OK) {
		dat.target = gt_recorded_control(recorded);
		error = put_all(&dat);
	}
	if (recorded)
		gt_recorded_destroy(recorded);
	if (error == GT_ENOMEM)
		gt_message_set(message, "out of memory");
	if (dat.file && (fflush(dat.file) != 0 || ferror(dat.file)) && error == GT_OK) {
		gt_message_set(message, "%s", strerror(errno));
		error = GT_EIO;
	}
	if (dat.file && fclose(dat.file) != 0 && error == GT_OK) {
		gt_message_set(message, "%s", strerror(errno));
		error = GT_EIO;
	}
	free(dat.piece);
	return error;
}
