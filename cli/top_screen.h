/* SPDX-License-Identifier: MIT */
/*
 * The screen of graftrace top: a table of functions, one of them opened with its callers and
 * callees, and a text behind it (a call, the help). What is shown comes from a target, live or
 * recorded; where it comes from and how it is started and stopped is top.c's. One thread.
 */
#ifndef GT_CLI_TOP_SCREEN_H
#define GT_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/trace/target.h"
#include "export/report.h"

struct gt_top_screen;

/* What is at the head of the screen. */
struct gt_top_head {
	const char *title;  /* the program, or the recording */
	const char *state;  /* "recording", "stopped", "ended" … */
	uint64_t window_ns; /* the table is of so long a time; 0: of all */
};

enum gt_top_wish {
	GT_TOP_NOTHING,
	GT_TOP_QUIT,
	GT_TOP_STOP_OR_START,
};

/* Takes the terminal. GT_EIO: there is none, or it cannot do what is needed; GT_ENOMEM. */
int gt_top_screen_open(struct gt_top_screen **screen, struct gt_message *message);
/* Gives it back as it was. */
void gt_top_screen_close(struct gt_top_screen *screen);

/* Makes the table anew of what happened between (0: all). GT_ENOMEM, GT_EIO. */
int gt_top_screen_read(struct gt_top_screen *screen, struct gt_target *target, uint64_t from_ns,
		       uint64_t to_ns);
void gt_top_screen_draw(struct gt_top_screen *screen, const struct gt_top_head *head);
/* Waits for a key, at most so long, and does what it says. The target is that of the last read. */
enum gt_top_wish gt_top_screen_key(struct gt_top_screen *screen, int timeout_ms);

/* Whether the table should stay as it is: a text is in front of it. */
bool gt_top_screen_is_busy(const struct gt_top_screen *screen);

#endif
