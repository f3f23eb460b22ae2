/* SPDX-License-Identifier: MIT */
/*
 * Result files: written aside, then moved into place.
 */
#define _GNU_SOURCE
#include "cli/output.h"
#include "core/trace/message.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "read/recording_file.h"

static int failed(struct gt_message *message, const char *what, const char *path)
{
	return gt_fail(message, GT_EIO, "cannot %s '%.300s': %s", what, path, strerror(errno));
}

int gt_output_open(struct gt_output *output, const char *path, struct gt_message *message)
{
	struct stat status;
	mode_t mask;
	bool own;

	memset(output, 0, sizeof *output);
	output->fd = -1;
	if (strcmp(path, "-") == 0) {
		strcpy(output->path, "-");
		output->fd = STDOUT_FILENO;
		return 0;
	}
	own = gt_link_is_own(path);
	if (own && stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
		output->fd = open(path, O_WRONLY | O_CLOEXEC);
		if (output->fd < 0)
			return failed(message, "open", path);
	} else if (!own || realpath(path, output->path) == NULL) {
		/* It does not exist yet; a link that leads nowhere, or that belongs to another
		 * user, is replaced. */
		if (own && errno != ENOENT)
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
		return 0;
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
	/* Gives the file the mode of a plain open(); if that fails, it is only more private than
	 * that. */
	if (fchmod(output->fd, 0666 & ~mask) != 0)
		errno = 0;
	return 0;
}

int gt_output_open_directory(struct gt_output *output, const char *path, bool replace,
			     struct gt_message *message)
{
	struct stat status;
	size_t length = strlen(path);
	mode_t mask;

	memset(output, 0, sizeof *output);
	output->fd = -1;
	output->is_directory = true;
	output->replace = replace;
	while (length > 1 && path[length - 1] == '/')
		length--;
	if (length == 0 || length >= PATH_MAX - 16) {
		errno = length == 0 ? ENOENT : ENAMETOOLONG;
		failed(message, "make", path);
		return GT_EINVAL;
	}
	memcpy(output->path, path, length);
	if (lstat(output->path, &status) == 0 && (!replace || !S_ISDIR(status.st_mode)))
		return gt_fail(message, GT_EEXIST, "'%.300s' is there already%s", path,
			       S_ISDIR(status.st_mode) ? ": --force replaces it"
						       : " and is no folder");
	strcpy(output->temporary, output->path);
	strcat(output->temporary, ".XXXXXX");
	if (mkdtemp(output->temporary) == NULL) {
		output->temporary[0] = '\0';
		return failed(message, "make", path);
	}
	mask = umask(0);
	umask(mask);
	if (chmod(output->temporary, 0777 & ~mask) != 0)
		errno = 0;
	output->fd = open(output->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (output->fd < 0) {
		failed(message, "open", path);
		rmdir(output->temporary);
		return GT_EIO;
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
	(void)status;
	(void)kind;
	(void)place;
	remove(path);
	return 0;
}

/* Removes a folder that we made, or that is to be replaced, with its contents; follows no link. */
static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static int commit_directory(struct gt_output *output, struct gt_message *message)
{
	char aside[PATH_MAX] = "";
	int result = 0;

	close(output->fd);
	output->fd = -1;
	if (output->replace) {
		strcpy(aside, output->temporary);
		memcpy(aside + strlen(aside) - 6, "oooooo", 6);
		if (rename(output->path, aside) != 0)
			aside[0] = '\0';
	}
	/* Fails if another process has made the folder meanwhile and put something into it. */
	if (rename(output->temporary, output->path) != 0) {
		result = failed(message, "make", output->path);
		remove_tree(output->temporary);
		if (aside[0] != '\0' && rename(aside, output->path) == 0)
			aside[0] = '\0';
	}
	if (aside[0] != '\0')
		remove_tree(aside);
	return result;
}

int gt_output_commit(struct gt_output *output, struct gt_message *message)
{
	int result = 0;

	if (output->fd == STDOUT_FILENO)
		return 0;
	if (output->is_directory)
		return commit_directory(output, message);
	if (close(output->fd) != 0)
		result = failed(message, "write", output->path);
	output->fd = -1;
	if (result == 0 && output->temporary[0] != '\0' &&
	    rename(output->temporary, output->path) != 0)
		result = failed(message, "make", output->path);
	if (result != 0 && output->temporary[0] != '\0')
		unlink(output->temporary);
	return result;
}

void gt_output_abandon(struct gt_output *output)
{
	if (output->fd != STDOUT_FILENO && output->fd >= 0)
		close(output->fd);
	if (output->temporary[0] != '\0' && output->is_directory)
		remove_tree(output->temporary);
	else if (output->temporary[0] != '\0')
		unlink(output->temporary);
	output->fd = -1;
}
