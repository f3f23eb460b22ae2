/* SPDX-License-Identifier: MIT */
/*
 * Runs a program in the terminal's foreground: finds it, passes signals on to it, ends with its
 * status.
 */
#define _GNU_SOURCE
#include "cli/running.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"

/* Signals have handlers instead of SIG_IGN, which a program would inherit. */

volatile sig_atomic_t gt_run_interrupted;
volatile sig_atomic_t gt_run_to_forward;

static void on_terminal(int signal)
{
	(void)signal;
	gt_run_interrupted = 1;
}

static void on_ending(int signal)
{
	gt_run_to_forward = signal;
}

void gt_run_handle_signals(void)
{
	struct sigaction action = { .sa_handler = on_terminal, .sa_flags = SA_RESTART };
	struct sigaction old;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGQUIT, &action, NULL);
	sigaction(SIGXFSZ, &action, NULL); /* write() then fails with EFBIG, which is reported */
	sigaction(SIGPIPE, &action, NULL); /* … and with EPIPE */
	action.sa_handler = on_ending;
	sigaction(SIGTERM, &action, NULL);
	/* Under nohup SIGHUP stays ignored. */
	if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

/* Ends by the signal that ended the program, without a core dump of our own, as strace does. */
static int die_of(int signal)
{
	struct rlimit none = { 0, 0 };
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t set;

	fflush(NULL);
	setrlimit(RLIMIT_CORE, &none);
	sigaction(signal, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(signal);
	return 128 + signal; /* the signal did not end this process */
}

void gt_run_dump(void *data, const char *text, size_t bytes)
{
	(void)data;
	fwrite(text, 1, bytes, stderr);
}

int gt_run_wait(const struct gt_session *session)
{
	pid_t pid = gt_session_pid(session);
	int status = 0;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return gt_session_exit_status(session);
		if (gt_run_to_forward)
			kill(pid, gt_run_to_forward);
	}
	return status;
}

int gt_run_end_as(int status)
{
	if (WIFSIGNALED(status))
		return die_of(WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : GT_EXIT_FAILED;
}

static int try_program(const char *path, char **found)
{
	struct stat file;

	if (stat(path, &file) != 0)
		return errno == EACCES ? EACCES : ENOENT;
	if (!S_ISREG(file.st_mode))
		return S_ISDIR(file.st_mode) ? EISDIR : EACCES;
	if (access(path, X_OK) != 0)
		return EACCES;
	*found = realpath(path, NULL);
	return *found != NULL ? 0 : errno;
}

/* Is it a word of the shell itself, without a file? */
static bool is_shells_own(const char *name)
{
	static const char *const words[] = { "alias", "bg",	 "cd",	   "declare", "disown",
					     "eval",  "exec",	 "exit",   "export",  "fg",
					     "hash",  "history", "jobs",   "local",   "read",
					     "set",   "shift",	 "shopt",  "source",  "trap",
					     "type",  "typeset", "ulimit", "umask",   "unalias",
					     "unset", "wait" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i], name) == 0)
			return true;
	return false;
}

bool gt_run_interpreter(const char *file, char *path, size_t bytes, bool *windows)
{
	char line[PATH_MAX] = "", *word = line + 2;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, line, sizeof(line) - 1) : 0;

	if (fd >= 0)
		close(fd);
	if (got < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	word += strspn(word, " \t");
	word[strcspn(word, " \t")] = '\0';
	snprintf(path, bytes, "%s", word);
	if (windows != NULL)
		*windows = strchr(word, '\r') != NULL;
	return word[0] != '\0';
}

/* The first line of a script may name an interpreter that does not exist; exec() then reports
 * the script as missing. */
static int check_interpreter(const char *command, const char *name, const char *file)
{
	char path[PATH_MAX];
	bool windows;

	if (!gt_run_interpreter(file, path, sizeof(path), &windows) || access(path, F_OK) == 0)
		return 0;
	gt_complain(command, "cannot run '%s': its first line asks for '%s', which is not there%s",
		    name, path, windows ? " (the line ends as on Windows)" : "");
	return GT_RUN_NO_PROGRAM;
}

int gt_run_find_program(const char *command, const char *name, char **found)
{
	const char *path = getenv("PATH");
	int error = ENOENT;

	if (strchr(name, '/') != NULL || name[0] == '\0') {
		error = name[0] == '\0' ? ENOENT : try_program(name, found);
	} else {
		if (path == NULL)
			path = "/bin:/usr/bin";
		while (error != 0) {
			size_t bytes = strcspn(path, ":");
			char file[PATH_MAX];
			int tried;

			if (snprintf(file, sizeof(file), "%.*s%s%s", (int)bytes, path,
				     bytes > 0 ? "/" : "", name) < (int)sizeof(file)) {
				tried = try_program(file, found);
				if (tried == 0 || tried == EACCES)
					error = tried;
			}
			if (error == 0 || path[bytes] == '\0')
				break;
			path += bytes + 1;
		}
	}
	if (error == 0)
		return check_interpreter(command, name, *found);
	if (error == ENOENT && is_shells_own(name)) {
		gt_complain(command,
			    "'%s' is a command of the shell itself, no program: graftrace %s sh -c "
			    "'%s ...'",
			    name, command, name);
		return GT_RUN_NO_PROGRAM;
	}
	gt_complain(command, "cannot run '%s': %s", name, strerror(error));
	return error == ENOENT ? GT_RUN_NO_PROGRAM : GT_RUN_CANNOT_RUN;
}

int gt_run_not_started(int error)
{
	switch (error) {
	case GT_ENOENT:
		return GT_RUN_NO_PROGRAM;
	case GT_ECANTRUN:
		return GT_RUN_CANNOT_RUN;
	default:
		return GT_EXIT_FAILED;
	}
}
