/* SPDX-License-Identifier: MIT */
/*
 * Cleans up in tracefs. An instance's name has our process's number, so that the next graftrace
 * sees whether its owner lives. The top has no name of ours: its settings are written to a file
 * before they are changed, and if we are killed the next graftrace restores them.
 */
#define _GNU_SOURCE
#include "linux/tracer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOP_FILES 16

/* The files changed at the top, in the order in which they are restored. */
static const char *const top_files[TOP_FILES] = {
	"current_tracer",	 "set_event",
	"set_ftrace_filter",	 "set_ftrace_notrace",
	"set_graph_function",	 "set_graph_notrace",
	"max_graph_depth",	 "tracing_thresh",
	"set_ftrace_pid",	 "set_ftrace_notrace_pid",
	"set_event_pid",	 "set_event_notrace_pid",
	"options/function-fork", "options/event-fork",
	"trace_clock",		 "tracing_on",
};

int gt_kernel_put(struct gt_kernel_tracer *tracer, const char *file, const char *text)
{
	return tracefs_instance_file_write(tracer->instance, file, text) < 0 ? -errno : 0;
}

char *gt_kernel_get(struct tracefs_instance *instance, const char *file)
{
	int size;
	char *text = tracefs_instance_file_read(instance, file, &size);

	if (text != NULL && size > 0 && text[size - 1] == '\n')
		text[size - 1] = '\0';
	return text;
}

static bool owner_lives(const char *digits)
{
	long pid = strtol(digits, NULL, 10);

	return pid > 0 && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* ---- the top, put back ---- */

/* Some files with many words are read in another form than they are written. */
static const char *written(const char *file, const char *text)
{
	if (strcmp(file, "trace_clock") == 0 || text[0] == '#' || strncmp(text, "no pid", 6) == 0)
		return "";
	return text;
}

static void put_back(const char *file, const char *text)
{
	if (strncmp(file, "set_", 4) == 0)
		tracefs_instance_file_clear(NULL, file);
	if (*written(file, text))
		tracefs_instance_file_write(NULL, file, text);
}

/* Selects the clock that is in brackets. */
static void put_clock_back(const char *text)
{
	const char *open = strchr(text, '['), *close = open != NULL ? strchr(open, ']') : NULL;
	char clock[32];

	if (close == NULL || (size_t)(close - open) > sizeof(clock))
		return;
	snprintf(clock, sizeof(clock), "%.*s", (int)(close - open - 1), open + 1);
	tracefs_instance_file_write(NULL, "trace_clock", clock);
}

/* Reads the state file: the owner's number, then for each file its name, a tab and its text,
 * with \n as \1. */
static void restore_top(FILE *state)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, state) > 0) {
		char *text = strchr(line, '\t');
		bool known = false;

		line[strcspn(line, "\n")] = '\0';
		if (text == NULL)
			continue;
		*text++ = '\0';
		for (int i = 0; i < TOP_FILES; i++)
			known |= strcmp(line, top_files[i]) == 0;
		for (char *at = text; *at; at++)
			*at = *at == '\1' ? '\n' : *at;
		if (known && strcmp(line, "trace_clock") == 0)
			put_clock_back(text);
		else if (known)
			put_back(line, text);
	}
	free(line);
}

static FILE *open_state(void)
{
	int fd = open(GT_KERNEL_TOP_STATE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat status;

	if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_uid != geteuid())) {
		close(fd);
		fd = -1;
	}
	return fd >= 0 ? fdopen(fd, "r") : NULL;
}

bool gt_kernel_save_top(void)
{
	int fd = open(GT_KERNEL_TOP_STATE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0600);
	FILE *state = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (state == NULL)
		return false;
	fprintf(state, "%d\n", (int)getpid());
	for (int i = 0; i < TOP_FILES; i++) {
		char *text = gt_kernel_get(NULL, top_files[i]);
		for (char *at = text; at != NULL && *at; at++)
			*at = *at == '\n' ? '\1' : *at;
		fprintf(state, "%s\t%s\n", top_files[i], text ? text : "");
		free(text);
	}
	return fclose(state) == 0;
}

void gt_kernel_put_top_back(void)
{
	FILE *state = open_state();

	if (state == NULL)
		return;
	restore_top(state);
	fclose(state);
	unlink(GT_KERNEL_TOP_STATE);
	tracefs_instance_file_clear(NULL, "trace");
}

void gt_kernel_clear_top(void)
{
	for (int i = 0; i < TOP_FILES; i++)
		if (strncmp(top_files[i], "set_", 4) == 0)
			tracefs_instance_file_clear(NULL, top_files[i]);
}

/* ---- what killed owners left ---- */

void gt_kernel_remove_instance(const char *name)
{
	struct tracefs_instance *instance = tracefs_instance_create(name);

	if (instance == NULL)
		return;
	tracefs_instance_file_write(instance, "tracing_on", "0");
	tracefs_instance_file_write(instance, "events/enable", "0");
	tracefs_instance_file_write(instance, "current_tracer", "nop");
	tracefs_instance_destroy(instance);
	tracefs_instance_free(instance);
}

static int remove_orphan(const char *name, void *data)
{
	(void)data;
	if (strncmp(name, GT_KERNEL_INSTANCE, strlen(GT_KERNEL_INSTANCE)) == 0 &&
	    !owner_lives(name + strlen(GT_KERNEL_INSTANCE)))
		gt_kernel_remove_instance(name);
	return 0;
}

void gt_kernel_clean_up(void)
{
	FILE *state = open_state();
	char owner[32] = "";

	tracefs_instances_walk(remove_orphan, NULL);
	if (state == NULL)
		return;
	bool orphan = fgets(owner, sizeof(owner), state) != NULL && !owner_lives(owner);
	fclose(state);
	if (orphan)
		gt_kernel_put_top_back();
}
