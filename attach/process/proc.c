/* SPDX-License-Identifier: MIT */
/* Small files of /proc: see proc.h. Each is read in one go, as the kernel makes it at that moment.
 */
#define _GNU_SOURCE
#include "attach/process/proc.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gt_proc_read(char *text, size_t size, const char *format, ...)
{
	char path[96];
	va_list arguments;
	ssize_t got;
	int fd;

	va_start(arguments, format);
	vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = 0;
	return true;
}

const char *gt_proc_stat(char *text, size_t size, pid_t pid, pid_t tid)
{
	const char *name_end;

	if (!(tid ? gt_proc_read(text, size, "/proc/%d/task/%d/stat", (int)pid, (int)tid)
		  : gt_proc_read(text, size, "/proc/%d/stat", (int)pid)))
		return NULL;
	name_end = strrchr(text, ')'); /* the name may hold anything */
	return name_end != NULL && name_end[1] == ' ' ? name_end + 2 : NULL;
}

DIR *gt_proc_numbers(pid_t pid)
{
	char path[64] = "/proc";

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

bool gt_proc_has_memory(pid_t tid)
{
	char text[32];

	return gt_proc_read(text, sizeof(text), "/proc/%d/statm", (int)tid) &&
	       strtoul(text, NULL, 10) != 0;
}

pid_t gt_proc_with_memory(pid_t pid)
{
	pid_t tid = pid, next;
	DIR *threads;

	if (gt_proc_has_memory(pid))
		return pid;
	threads = gt_proc_numbers(pid);
	while (threads != NULL && tid == pid && (next = gt_proc_next(threads)))
		if (next != pid && gt_proc_has_memory(next))
			tid = next;
	if (threads != NULL)
		closedir(threads);
	return tid;
}

pid_t gt_proc_next(DIR *numbers)
{
	struct dirent *entry;
	pid_t number = 0;

	while (number <= 0 && (entry = readdir(numbers)) != NULL) {
		char *end;

		number = (pid_t)strtol(entry->d_name, &end, 10);
		if (*end)
			number = 0;
	}
	return number;
}

long gt_proc_field(const char *text, const char *name)
{
	const size_t length = strlen(name);
	const char *line = text;

	while (strncmp(line, name, length) != 0 || line[length] != ':') {
		line = strchr(line, '\n');
		if (line == NULL)
			return 0;
		line++;
	}
	return atol(line + length + 1);
}

pid_t gt_proc_parent(pid_t pid)
{
	char text[4096];

	return gt_proc_read(text, sizeof(text), "/proc/%d/status", (int)pid)
		       ? (pid_t)gt_proc_field(text, "PPid")
		       : 0;
}

long gt_proc_last_number(void)
{
	char text[128];
	long last = 0;

	return gt_proc_read(text, sizeof(text), "/proc/loadavg") &&
			       sscanf(text, "%*s %*s %*s %*s %ld", &last) == 1
		       ? last
		       : 0;
}

uint64_t gt_proc_namespace(pid_t pid, const char *name)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, name);
	return stat(path, &status) == 0 ? status.st_ino : 0;
}

uint64_t gt_proc_socket(pid_t pid, int descriptor)
{
	unsigned long long inode = 0;
	char path[64], link[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, descriptor);
	if (readlink(path, link, sizeof(link) - 1) > 0)
		sscanf(link, "socket:[%llu]", &inode);
	return inode;
}
