/* SPDX-License-Identifier: MIT */
/* See sources.h. */
#define _GNU_SOURCE
#include "export/sources.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX (16u << 20) /* << 20) longer sources are not read */

/* A source file in memory. */
struct gt_source_file {
	struct gt_source_file *next;
	char *bytes; /* NULL: it cannot be read, or is newer than the program */
	size_t count;
	char path[];
};

static const char none[] = ""; /* of a function whose line is unknown */

/* Reads the file, unless it was changed after the program was built: its lines would be others. */
static void load(struct gt_source_file *file, uint64_t made_ns)
{
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat status;
	ssize_t got;

	if (fd < 0)
		return;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0 &&
	    status.st_size <= (off_t)FILE_MAX &&
	    (uint64_t)status.st_mtim.tv_sec * 1000000000ull + (uint64_t)status.st_mtim.tv_nsec <=
		    made_ns &&
	    (file->bytes = malloc((size_t)status.st_size)) != NULL) {
		got = pread(fd, file->bytes, (size_t)status.st_size, 0);
		file->count = got > 0 ? (size_t)got : 0;
	}
	close(fd);
}

static struct gt_source_file *file_of(struct gt_sources *sources, const struct gt_source_line *line)
{
	size_t bytes = strlen(line->file) + 1;
	struct gt_source_file *file;

	for (file = sources->files; file != NULL; file = file->next)
		if (strcmp(file->path, line->file) == 0)
			return file;
	file = calloc(1, sizeof(*file) + bytes);
	if (file == NULL)
		return NULL;
	memcpy(file->path, line->file, bytes);
	file->next = sources->files;
	sources->files = file;
	load(file, line->made_ns);
	return file;
}

/* Returns the line without the blanks around it; *length 0: it does not exist. */
static const char *text_of(const struct gt_source_file *file, uint32_t number, size_t *length)
{
	const char *at = file->bytes, *end = at != NULL ? at + file->count : NULL, *stop;

	*length = 0;
	for (; at != NULL && --number; at = at != NULL ? at + 1 : NULL)
		at = memchr(at, '\n', (size_t)(end - at));
	if (at == NULL)
		return NULL;
	stop = memchr(at, '\n', (size_t)(end - at));
	if (stop == NULL)
		stop = end;
	while (at < stop && (*at == ' ' || *at == '\t'))
		at++;
	while (stop > at && (unsigned char)stop[-1] <= ' ')
		stop--;
	*length = (size_t)(stop - at);
	return at;
}

/* Source text must not control the terminal or end a comment. */
static void clean(char *text)
{
	for (char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = *at == '\t' ? ' ' : '?';
		if (at[0] == '*' && at[1] == '/')
			at[1] = ' ';
	}
}

static char *make(struct gt_sources *sources, uint32_t number)
{
	struct gt_source_line line;
	const struct gt_source_file *file;
	const char *name, *text = NULL;
	char *note = malloc(GT_SOURCE_MAX);
	size_t length = 0;

	if (note == NULL || gt_target_line(sources->target, number, &line) != 0) {
		free(note);
		return NULL;
	}
	name = strrchr(line.file, '/');
	name = name != NULL ? name + 1 : line.file;
	file = sources->with_text ? file_of(sources, &line) : NULL;
	if (file != NULL)
		text = text_of(file, line.line, &length);
	snprintf(note, GT_SOURCE_MAX, "%.100s:%u%s%.*s", name, line.line, length ? ": " : "",
		 (int)(length < GT_SOURCE_MAX ? length : GT_SOURCE_MAX), length ? text : "");
	clean(note);
	return note;
}

const char *gt_sources_note(void *data, uint32_t number)
{
	struct gt_sources *sources = data;

	if (number >= sources->room) {
		uint32_t room = number < 1024 ? 1024 : number + number / 2;
		char **grown = realloc(sources->notes, room * sizeof(*grown));

		if (grown == NULL)
			return NULL;
		memset(grown + sources->room, 0, (room - sources->room) * sizeof(*grown));
		sources->notes = grown;
		sources->room = room;
	}
	if (sources->notes[number] == NULL) {
		sources->notes[number] = make(sources, number);
		if (sources->notes[number] == NULL)
			sources->notes[number] = (char *)(uintptr_t)none;
	}
	return sources->notes[number] == none ? NULL : sources->notes[number];
}

void gt_sources_fini(struct gt_sources *sources)
{
	for (uint32_t i = 0; i < sources->room; i++)
		if (sources->notes[i] != none)
			free(sources->notes[i]);
	free(sources->notes);
	while (sources->files != NULL) {
		struct gt_source_file *next = sources->files->next;

		free(sources->files->bytes);
		free(sources->files);
		sources->files = next;
	}
}
