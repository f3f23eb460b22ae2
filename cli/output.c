/* SPDX-License-Identifier: MIT */
/*
 * Result files: written aside, then moved into place.
 */
#define _GNU_SOURCE
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(struct gt_message *message, const char *what, const char *path)
{
	snprintf(message->text, sizeof message->text, "cannot %s '%.300s': %s", what, path,
		 strerror(errno));
	return GT_EIO;
}

int gt_output_open(struct gt_output *output, const char *path, struct gt_message *message)
{
	struct stat status;
	mode_t mask;

	memset(output, 0, sizeof *output);
	output->fd = -1;
	if (strcmp(path, "-") == 0) {
		strcpy(output->path, "-");
		output->fd = STDOUT_FILENO;
		return GT_OK;
	}
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		output->fd = open(path, O_WRONLY | O_CLOEXEC);
		if (output->fd < 0)
			return failed(message, "open", path);
	} else if (realpath(path, output->path) == NULL) {
		/* Not there yet; a link that leads nowhere is replaced. */
		if (errno != ENOENT)
			return failed(message, "open", path);
		if (snprintf(output->path, sizeof output->path, "%s", path) >= PATH_MAX - 16) {
			errno = ENAMETOOLONG;
			return failed(message, "open", path);
		}
	} else if (access(output->path, W_OK) != 0) {
		return failed(message, "write", path);
	}
	if (output->fd >= 0) {
		snprintf(output->path, sizeof output->path, "%s", path);
		return GT_OK;
	}
	if (strlen(output->path) >= PATH_MAX - 16) {
		errno = ENAMETOOLONG;
		return failed(message, "open", path);
	}
	strcpy(output->temporary, output->path);
	strcat(output->temporary, ".XXXXXX");
	output->fd = mkostemp(output->temporary, O_CLOEXEC);
	if (output->fd < 0)
		return failed(message, "make", path);
	mask = umask(0);
	umask(mask);
	/* As if it had been opened the plain way; where that fails, the file is merely more
	 * private. */
	if (fchmod(output->fd, 0666 & ~mask) != 0)
		errno = 0;
	return GT_OK;
}

int gt_output_commit(struct gt_output *output, struct gt_message *message)
{
	int result = GT_OK;

	if (output->fd == STDOUT_FILENO)
		return GT_OK;
	if (close(output->fd) != 0)
		result = failed(message, "write", output->path);
	output->fd = -1;
	if (result == GT_OK && output->temporary[0] != '\0' &&
	    rename(output->temporary, output->path) != 0)
		result = failed(message, "make", output->path);
	if (result != GT_OK && output->temporary[0] != '\0')
		unlink(output->temporary);
	return result;
}

void gt_output_abandon(struct gt_output *output)
{
	if (output->fd != STDOUT_FILENO && output->fd >= 0)
		close(output->fd);
	if (output->temporary[0] != '\0')
		unlink(output->temporary);
	output->fd = -1;
}
