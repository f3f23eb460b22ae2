/* SPDX-License-Identifier: MIT */
/*
 * A line on the terminal for what takes longer than a second: a bar, how fast it goes and how long it will
 * still take. On stderr, if that is a terminal; drawn over itself, and wiped away at the end and before any
 * complaint. One at a time, from one thread.
 */
#ifndef GT_CLI_PROGRESS_H
#define GT_CLI_PROGRESS_H

#include <stdint.h>

#include "read/recording.h"

/* done of total `unit` ("calls"); total 0: not known, so only the time that has passed is shown. */
void gt_progress_start(const char *what, uint64_t total, const char *unit);
void gt_progress_at(uint64_t done);
/* Wipes the line, which is drawn again as the work goes on. */
void gt_progress_wipe(void);
void gt_progress_end(void);

/* Follows the reading of a recording, which is read `passes` times, up to gt_progress_end (which
 * gt_look_tell calls). */
void gt_progress_reading(struct gt_recording *recording, unsigned passes);

/* Of work that cannot be asked how far it is: a thread shows the time until gt_progress_end. */
void gt_progress_waiting(const char *what);

#endif
