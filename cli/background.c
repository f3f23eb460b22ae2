/* SPDX-License-Identifier: MIT */
/* See background.h. The child tells its parent of the exit code by one byte through a pipe. */
#define _GNU_SOURCE
#include "cli/background.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"

static int parents_end = -1; /* the child's end of the pipe, until the parent has been told */

static int wait_for_child(pid_t child, int pipe)
{
	unsigned char code;
	ssize_t got;
	int status;

	do
		got = read(pipe, &code, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		return code;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return GT_EXIT_FAILED;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid();
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		close(null);
	}
}

int gt_background_begin(const char *command)
{
	int ends[2];
	pid_t child;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		gt_complain(command, "cannot go into the background: %s", strerror(errno));
		return GT_EXIT_FAILED;
	}
	child = fork();
	if (child < 0) {
		gt_complain(command, "cannot go into the background: %s", strerror(errno));
		close(ends[0]);
		close(ends[1]);
		return GT_EXIT_FAILED;
	}
	if (child > 0) {
		close(ends[1]);
		return wait_for_child(child, ends[0]);
	}
	close(ends[0]);
	parents_end = ends[1];
	leave_terminal();
	return -1;
}

void gt_background_ready(int code)
{
	const unsigned char byte = (unsigned char)code;
	ssize_t written;

	if (parents_end < 0)
		return;
	do
		written = write(parents_end, &byte, 1);
	while (written < 0 && errno == EINTR);
	close(parents_end);
	parents_end = -1;
}
