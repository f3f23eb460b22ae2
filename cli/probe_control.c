/* SPDX-License-Identifier: MIT */
/* See probe_control.h. */
#include "cli/probe_control.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/control_door.h"
#include "core/trace/glob.h"

#define FILE_NAME "dynamic_events"

/* The newest error of the mount's error_log, without its time. */
static void last_error(const char *directory, char *text, size_t size)
{
	char path[PATH_MAX], line[1024];
	FILE *log;

	*text = '\0';
	snprintf(path, sizeof(path), "%s/error_log", directory);
	log = fopen(path, "r");
	while (log != NULL && fgets(line, sizeof(line), log) != NULL) {
		const char *error = strstr(line, " error: ");

		if (line[0] == '[' && error != NULL)
			snprintf(text, size, "%.*s", (int)strcspn(error + 8, "\n"), error + 8);
	}
	if (log != NULL)
		fclose(log);
}

static int write_mount(const struct gt_probe_control *control, const char *name, const char *line)
{
	char path[PATH_MAX], why[1024];
	const size_t bytes = strlen(line);
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/%s", control->directory, FILE_NAME);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0) {
		gt_complain(name, "'%s' is no mount of a program: %s", control->directory,
			    strerror(errno));
		return GT_EXIT_FAILED;
	}
	if (write(fd, line, bytes) != (ssize_t)bytes)
		error = errno;
	if (close(fd) != 0 && error == 0)
		error = errno;
	if (error == 0)
		return GT_EXIT_DONE;
	last_error(control->directory, why, sizeof(why));
	gt_complain(name, "'%s': %s", line, *why ? why : strerror(error));
	return GT_EXIT_FAILED;
}

int gt_probe_control_add(const struct gt_probe_control *control, const char *name, const char *line)
{
	char *values[] = { (char *)line, NULL };
	char *text;
	int result;

	if (control->directory == NULL)
		return gt_control_ask(name, "add", FILE_NAME, values, control->pid, stdout);
	text = malloc(strlen(line) + 2);
	if (text == NULL) {
		gt_complain(name, "no memory");
		return GT_EXIT_FAILED;
	}
	sprintf(text, "%s\n", line);
	result = write_mount(control, name, text);
	free(text);
	return result;
}

/* The whole file; the caller frees it. */
static int read_all(const struct gt_probe_control *control, const char *name, char **text)
{
	char path[PATH_MAX], block[4096];
	size_t bytes = 0, got;
	FILE *to = open_memstream(text, &bytes), *from;
	int result = GT_EXIT_DONE;

	if (to == NULL) {
		gt_complain(name, "no memory");
		return GT_EXIT_FAILED;
	}
	if (control->directory == NULL) {
		result = gt_control_ask(name, "get", FILE_NAME, NULL, control->pid, to);
	} else {
		snprintf(path, sizeof(path), "%s/%s", control->directory, FILE_NAME);
		from = fopen(path, "r");
		if (from == NULL) {
			gt_complain(name, "'%s' is no mount of a program: %s", control->directory,
				    strerror(errno));
			result = GT_EXIT_FAILED;
		}
		while (from != NULL && (got = fread(block, 1, sizeof(block), from)) > 0)
			fwrite(block, 1, got, to);
		if (from != NULL)
			fclose(from);
	}
	if (fclose(to) != 0) {
		gt_complain(name, "no memory");
		result = GT_EXIT_FAILED;
	}
	if (result != GT_EXIT_DONE) {
		free(*text);
		*text = NULL;
	}
	return result;
}

/* "p:GROUP/EVENT PLACE ARGS": cut into its parts. False: it is another line. */
static bool cut(char *line, char **group, char **event, char **place, char **arguments)
{
	char *colon = strchr(line, ':'), *slash = colon != NULL ? strchr(colon, '/') : NULL;

	if (slash == NULL)
		return false;
	*slash = '\0';
	*group = colon + 1;
	*event = slash + 1;
	*place = *event + strcspn(*event, " ");
	if (**place != '\0')
		*(*place)++ = '\0';
	*arguments = *place + strcspn(*place, " ");
	if (**arguments != '\0')
		*(*arguments)++ = '\0';
	return true;
}

int gt_probe_control_list(const struct gt_probe_control *control, const char *name)
{
	char *text, *line, *next, *group, *event, *place, *arguments;
	int result = read_all(control, name, &text);

	if (result != GT_EXIT_DONE)
		return result;
	for (line = strtok_r(text, "\n", &next); line != NULL; line = strtok_r(NULL, "\n", &next)) {
		const bool returns = *line == 'r';

		if (cut(line, &group, &event, &place, &arguments))
			printf("  %s:%-20s (on %s%s%s%s)\n", group, event, place,
			       returns ? "%return" : "", *arguments ? " with " : "", arguments);
	}
	free(text);
	return GT_EXIT_DONE;
}

/* Each probe that the glob matches; returns how many, or -1. */
static int remove_matching(const struct gt_probe_control *control, const char *name,
			   const char *list, const char *glob)
{
	char *text = strdup(list), *line, *next, *group, *event, *place, *arguments;
	char both[256], word[256];
	int count = 0;

	if (text == NULL)
		return -1;
	for (line = strtok_r(text, "\n", &next); line != NULL && count >= 0;
	     line = strtok_r(NULL, "\n", &next)) {
		if (!cut(line, &group, &event, &place, &arguments))
			continue;
		snprintf(both, sizeof(both), "%s:%s", group, event);
		if (!gt_glob_match(glob, both) && !gt_glob_match(glob, event))
			continue;
		snprintf(word, sizeof(word), "-:%s/%s", group, event);
		if (gt_probe_control_add(control, name, word) != 0) {
			count = -1;
		} else {
			printf("Removed event: %s\n", both);
			count++;
		}
	}
	free(text);
	return count;
}

int gt_probe_control_remove(const struct gt_probe_control *control, const char *name,
			    const char *const *globs, int count)
{
	char *list;
	int result = GT_EXIT_DONE;

	for (int i = 0; i < count && result == GT_EXIT_DONE; i++) {
		result = read_all(control, name, &list);
		if (result != GT_EXIT_DONE)
			break;
		switch (remove_matching(control, name, list, globs[i])) {
		case -1:
			result = GT_EXIT_FAILED;
			break;
		case 0:
			gt_complain(name,
				    "'%s' matches no probe: 'graftrace probe --list' has them",
				    globs[i]);
			result = GT_EXIT_FAILED;
			break;
		default:
			break;
		}
		free(list);
	}
	return result;
}
