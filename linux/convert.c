/* SPDX-License-Identifier: MIT */
/*
 * Converts in a child process, which answers through a pipe. The new recording's file has a name
 * while the child writes it, in a directory that no other user can enter.
 */
#define _GNU_SOURCE
#include "linux/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <event-parse.h>

#include "core/trace/message.h"

#define MEMORY_MAX (4ull << 30) /* of the child: a hostile file may ask for more */

/* The child's answer. */
struct answer {
	int error;
	struct gt_message message;
	struct gt_linux_notes notes;
};

/* ---- the child ---- */

/* Keeps the library's messages off the user's terminal, and limits the memory that a file can
 * make it use. */
static void confine(void)
{
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX }, none = { 0, 0 };
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0) {
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
	/* not RLIMIT_AS: the file itself may be larger, and the library maps all of it */
	setrlimit(RLIMIT_DATA, &memory);
	setrlimit(RLIMIT_CORE, &none);
	tep_set_loglevel(TEP_LOG_NONE);
}

static void run_child(const char *path, gt_linux_converter *convert, const char *to, int pipe)
{
	struct answer answer = { .error = 0 };

	confine();
	answer.error = convert(path, to, &answer.notes, &answer.message);
	_exit(write(pipe, &answer, sizeof(answer)) == (ssize_t)sizeof(answer) ? 0 : 1);
}

/* ---- the parent ---- */

static void read_answer(int from, struct answer *answer)
{
	size_t done = 0;

	while (done < sizeof(*answer)) {
		ssize_t got = read(from, (char *)answer + done, sizeof(*answer) - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (done < sizeof(*answer)) {
		*answer = (struct answer){ .error = GT_EFORMAT };
		gt_message_set(&answer->message,
			       "the library that reads it died of it: the file is damaged");
	}
	answer->message.text[sizeof(answer->message.text) - 1] = '\0';
}

static int run(const char *path, gt_linux_converter *convert, const char *to, struct answer *answer)
{
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return GT_EIO;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		run_child(path, convert, to, ends[1]);
	close(ends[1]);
	if (pid > 0) {
		read_answer(ends[0], answer);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return pid < 0 ? GT_EIO : 0;
}

int gt_linux_convert(const char *path, gt_linux_converter *convert, struct gt_recording **recording,
		     struct gt_linux_notes *notes, struct gt_message *message)
{
	const char *below = getenv("TMPDIR");
	struct answer answer = { .error = GT_EIO };
	char *directory, *to = NULL;
	int error = GT_ENOMEM;

	if (asprintf(&directory, "%s/graftrace-XXXXXX", below && *below ? below : "/tmp") < 0) {
		gt_message_set(message, "out of memory");
		return GT_ENOMEM;
	}
	if (mkdtemp(directory) == NULL) {
		gt_message_set(message, "cannot make a directory below '%s': %s",
			       below != NULL && *below ? below : "/tmp", strerror(errno));
		free(directory);
		return GT_EIO;
	}
	if (asprintf(&to, "%s/recording", directory) < 0) {
		gt_message_set(message, "out of memory");
		goto remove;
	}
	error = run(path, convert, to, &answer);
	if (error != 0) {
		gt_message_set(message, "cannot start a process: %s", strerror(errno));
	} else if (answer.error != 0) {
		error = answer.error;
		*message = answer.message;
		if (error == GT_ENOMEM)
			gt_message_set(message, "out of memory");
		if (strstr(message->text, path) == NULL)
			gt_message_prefix(message, "'%s': ", path);
	} else {
		error = gt_recording_open(to, recording, message);
		*notes = answer.notes;
	}
	unlink(to);
	free(to);
remove:
	rmdir(directory);
	free(directory);
	return error;
}
