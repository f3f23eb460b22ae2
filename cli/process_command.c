/* SPDX-License-Identifier: MIT */
/* The command line of a process that runs, out of /proc. */
#include "cli/process_command.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/process/proc.h"

static const char cut[] = "...";

/* Reads up to `room` bytes; returns how many. */
static size_t read_command(pid_t pid, char *text, size_t room)
{
	char path[64];
	size_t bytes = 0;
	ssize_t got = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)gt_proc_with_memory(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && bytes < room && (got = read(fd, text + bytes, room - bytes)) > 0)
		bytes += (size_t)got;
	if (fd >= 0)
		close(fd);
	return bytes;
}

/* Returns how many bytes the arguments have, the NUL of the last one not counted. A process that writes a shorter
 * text over its arguments leaves NULs behind it. */
static size_t without_empty_ones(const char *text, size_t bytes)
{
	while (bytes > 0 && text[bytes - 1] == '\0')
		bytes--;
	return bytes;
}

char **gt_process_command(pid_t pid)
{
	char text[GT_PROCESS_COMMAND_BYTES + sizeof(cut)];
	size_t bytes = read_command(pid, text, GT_PROCESS_COMMAND_BYTES + 1);
	bool too_long = bytes > GT_PROCESS_COMMAND_BYTES;
	size_t count = 1;
	char **arguments, *copy;

	bytes = without_empty_ones(text, too_long ? GT_PROCESS_COMMAND_BYTES : bytes);
	if (bytes == 0)
		return NULL;
	text[bytes] = '\0';
	if (too_long) {
		memcpy(text + bytes, cut, sizeof(cut));
		bytes += sizeof(cut) - 1;
	}
	for (size_t i = 0; i < bytes; i++)
		count += text[i] == '\0';
	arguments = malloc((count + 1) * sizeof(*arguments) + bytes + 1);
	if (arguments == NULL)
		return NULL;
	copy = memcpy(arguments + count + 1, text, bytes + 1);
	for (size_t i = 0; i < count; i++) {
		arguments[i] = copy;
		copy += strlen(copy) + 1;
	}
	arguments[count] = NULL;
	return arguments;
}
