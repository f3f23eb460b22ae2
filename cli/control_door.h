/* SPDX-License-Identifier: MIT */
/* A control file of a recording that runs, through its door: what `graftrace get` and `set` do. */
#ifndef GT_CLI_CONTROL_DOOR_H
#define GT_CLI_CONTROL_DOOR_H

#include <stdio.h>
#include <sys/types.h>

/* word: get, set, add, make or remove. values: what is written, with blanks between; NULL: nothing. pid: of the
 * program, 0: the only one that is recorded. What is read goes to `to`. Complains as `graftrace NAME`; returns an exit
 * code. */
int gt_control_ask(const char *name, const char *word, const char *path, char **values, pid_t pid,
		   FILE *to);

#endif
