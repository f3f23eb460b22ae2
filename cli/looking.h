/* SPDX-License-Identifier: MIT */
/*
 * What the commands that look at a recording share: opening it, telling what is wrong with it, a
 * pager, and whether to use colors. From the main thread; opening may fork, so there must be no other thread then.
 */
#ifndef GT_CLI_LOOKING_H
#define GT_CLI_LOOKING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/export.h"
#include "read/recording.h"

#define GT_DEFAULT_RECORDING "graftrace.data"

/* Opens `path`: a recording, also with the kernel's part, a trace.dat or a text of `trace`. The caller closes it with
 * gt_recording_close(). NULL: it cannot be opened, and that was complained of in the name of the command. */
struct gt_recording *gt_look_open(const char *command, const char *path);

/* Of a program that was recorded with the kernel: none or both of these are the whole. */
enum gt_look_parts {
	GT_LOOK_USER = 1,   /* --user: the program's calls alone */
	GT_LOOK_KERNEL = 2, /* --kernel: the kernel's functions and events alone */
};

/* The same of some parts: enum gt_look_parts; 0: both. That a recording does not have the part, or that the kernel's part
 * alone cannot be read, is complained of, too, and NULL is returned. */
struct gt_recording *gt_look_open_parts(const char *command, const char *path, unsigned parts);

/*
 * Tells on stderr what of the recording is cut off, damaged or was lost, as far as it is known by
 * now: call it when reading is done. Returns GT_EXIT_FAILED if a part that was recorded could not
 * be read, else GT_EXIT_DONE.
 */
int gt_look_tell(const char *command, const char *path, struct gt_recording *recording);

/* The recording's first moment in ns of its clock; 0: there is no thread in it. */
uint64_t gt_look_start_ns(struct gt_recording *recording);

/* Fills in what exports tell of the run. The strings, and the recording for about->build, must stay. */
void gt_look_describe(struct gt_export_about *about, struct gt_recording *recording);

/* "auto", "always", "never"; auto heeds NO_COLOR and asks whether fd is a terminal. GT_EINVAL with the message: it is
 * another word. */
int gt_look_color(const char *when, int fd, bool *color, struct gt_message *message);

/* "short", "full"; NULL: short if fd is a terminal. GT_EINVAL with the message: it is another word. */
int gt_look_names(const char *which, int fd, bool *brief, struct gt_message *message);

/* Columns of the terminal that stdout is; 0: it is none, or does not know. */
uint32_t gt_look_width(void);
uint32_t gt_look_width_of(int fd);

/* Writes "words -n 3: graftrace.data of 2026-11-24 12:00:00": whose calls are seen. On a terminal it is the first line of
 * every view. Cut to bytes - 1; control characters become '?'. */
void gt_look_headline(struct gt_recording *recording, const char *path, char *line, size_t bytes);

/* "; did you mean 'main'?" if a function of the recording may be meant by the word (NULL: none) and none has this name;
 * else "". Returns `text`. */
#define GT_LOOK_PROPOSAL_BYTES 160
const char *gt_look_propose(struct gt_recording *recording, const char *word,
			    char text[GT_LOOK_PROPOSAL_BYTES]);

/* Writes "# " and the headline to fd if stdout is a terminal. */
void gt_look_begin(struct gt_recording *recording, const char *path, int fd);

/* Where to write: the pager's stdin (if stdout is a terminal, `wanted`, and there is one), else
 * stdout. */
struct gt_pager {
	int fd;
	int pid; /* 0: no pager */
};
/* Starts the pager, or sets fd to stdout; it cannot fail. While it runs, this process ignores SIGINT. */
void gt_pager_start(struct gt_pager *pager, bool wanted);
/* Closes fd, if it is the pager's, and waits until the user has left it. */
void gt_pager_stop(struct gt_pager *pager);

/* Writes all. 0; 1: the reader has gone away (a closed pager or pipe), which is no error, if SIGPIPE is ignored; GT_EIO:
 * errno says why. */
int gt_look_write(int fd, const char *bytes, size_t count);

#endif
