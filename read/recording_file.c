/* SPDX-License-Identifier: MIT */
/*
 * See recording_file.h. Guarantees: a new file was created by this process.
 */
#include "read/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gt_link_is_own(const char *path)
{
	struct stat status;

	return lstat(path, &status) != 0 || !S_ISLNK(status.st_mode) || status.st_uid == 0 ||
	       status.st_uid == geteuid();
}

/* Is it a pipe or a device, or a link below /dev or /proc (a descriptor's name, /dev/stdout)?
 * Those are opened, never replaced. */
static bool is_stream(const char *path, struct stat *status)
{
	struct stat self;
	bool link = lstat(path, &self) == 0 && S_ISLNK(self.st_mode);

	if (!gt_link_is_own(path) || stat(path, status) != 0)
		return false;
	return !S_ISREG(status->st_mode) ||
	       (link && (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0));
}

/* `seen`: the file found there. If another file is there by now, it is not written to. */
static int open_stream(const char *path, const struct stat *seen)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	struct stat status;
	int number = 0;

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) < 0)
		number = errno;
	else if (status.st_dev != seen->st_dev || status.st_ino != seen->st_ino)
		number = EEXIST;
	else if (S_ISREG(status.st_mode) && ftruncate(fd, 0) < 0)
		number = errno;
	if (number == 0)
		return fd;
	close(fd);
	errno = number;
	return -1;
}

int gt_recording_file_create(const char *path)
{
	struct stat status;
	char *old;
	bool there;
	int fd, number;

	if (is_stream(path, &status))
		return open_stream(path, &status);
	old = malloc(strlen(path) + sizeof(".old"));
	if (old == NULL)
		return -1;
	sprintf(old, "%s.old", path);
	there = lstat(path, &status) == 0;
	if (there && rename(path, old) < 0) {
		fd = -1;
		goto out;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0 && there) {
		number = errno;
		rename(old, path);
		errno = number;
	}
out:
	free(old);
	return fd;
}
