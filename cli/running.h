/* SPDX-License-Identifier: MIT */
/*
 * What the commands that run a program share. The terminal is the program's: Ctrl-C and Ctrl-\\
 * reach it from there and are only noted here; SIGTERM and SIGHUP are for the caller to pass on.
 */
#ifndef GT_CLI_RUNNING_H
#define GT_CLI_RUNNING_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "attach/session/session.h"

#define GT_RUN_NO_PROGRAM 127
#define GT_RUN_CANNOT_RUN 126

extern volatile sig_atomic_t
	gt_run_interrupted; /* SIGINT, SIGQUIT so far; the caller may reset it */
extern volatile sig_atomic_t
	gt_run_to_forward; /* SIGTERM or SIGHUP that the program has not seen yet */

/* Handlers, not SIG_IGN, which a program would inherit. */
void gt_run_handle_signals(void);

/* The program's file, as execvp finds it, malloc'ed. 0, GT_RUN_NO_PROGRAM or GT_RUN_CANNOT_RUN;
 * then it was said in the name of the command. */
int gt_run_find_program(const char *command, const char *name, char **found);

/* Reads the interpreter that a script names in its first line; false: the file is no script. *windows: the line
 * ends as on Windows (may be NULL). */
bool gt_run_interpreter(const char *file, char *path, size_t bytes, bool *windows);

/* The exit code when a program could not be started under a session, by the session's error:
 * GT_RUN_NO_PROGRAM, GT_RUN_CANNOT_RUN or GT_EXIT_FAILED. */
int gt_run_not_started(int error);

/* The text of the command dump, as gt_live_options has it: on stderr, this process's console. */
void gt_run_dump(void *data, const char *text, size_t bytes);

/* The status of the program that a session has started. One that has been left to itself is waited
 * for, and signals are passed on to it meanwhile; the session may have waited for it already. */
int gt_run_wait(const struct gt_session *session);

/* The exit code of a status of waitpid. Of a program that a signal killed, this process dies of the
 * same one, without a core of its own, as strace does. */
int gt_run_end_as(int status);

#endif
