/* SPDX-License-Identifier: MIT */
/*
 * The command line of a process that runs, for the recording of one that was attached to. The process may have written
 * anything there (as servers do that show what they are): its length is bounded here, its characters are made
 * harmless where they are printed.
 */
#ifndef GT_CLI_PROCESS_COMMAND_H
#define GT_CLI_PROCESS_COMMAND_H

#include <sys/types.h>

/* A longer command line is cut, and ends with "...". */
#define GT_PROCESS_COMMAND_BYTES 4096

/* The arguments as proc_pid_cmdline(5) has them, the program's own name first, NULL behind them; without empty ones at
 * the end. NULL: none can be read (a thread of the kernel, a process that has ended), or no memory. To be given to
 * free(). */
char **gt_process_command(pid_t pid);

#endif
