/* SPDX-License-Identifier: MIT */
/*
 * A command that goes on in the background once it is ready, so that the next line of a script finds
 * what the command was asked for.
 */
#ifndef GT_CLI_BACKGROUND_H
#define GT_CLI_BACKGROUND_H

/*
 * Forks. Returns -1 in the child, which does the work: in a session of its own, with /dev/null as
 * input, so that neither a terminal nor the end of a script reaches it. In the parent, returns the
 * exit code to end with, once the child has called gt_background_ready or has ended: its code then
 * (128 + N if signal N killed it), or GT_EXIT_FAILED if there is no other process to be had.
 * Call it before any thread is started. `command` names the complaint.
 */
int gt_background_begin(const char *command);

/* The parent ends now, with `code`. The child goes on. No effect where nothing was begun. */
void gt_background_ready(int code);

#endif
