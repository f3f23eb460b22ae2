/* SPDX-License-Identifier: MIT */
/*
 * Texts of `trace`, `trace_pipe` and trace-cmd report as recordings: read/text_line.h reads the lines,
 * a process of its own makes a recording of them.
 *
 * What a text does not have is not made up, but for this: where lines have no times, a call begins
 * when the line before it ended, so that durations and nesting are as printed and moments are not.
 * Where it names no tasks, each CPU is one thread, numbered from 1.
 */
#ifndef GT_LINUX_TRACE_TEXT_H
#define GT_LINUX_TRACE_TEXT_H

#include <stdbool.h>

#include "linux/convert.h"

/* Are the first lines of the file those of a trace? False where it cannot be read, or read twice. */
bool gt_is_trace_text_path(const char *path);

/* As gt_trace_dat_open. GT_EFORMAT: no line of it is understood. `damaged` of the notes: lines that
 * are not. */
int gt_trace_text_open(const char *path, struct gt_recording **recording,
		       struct gt_linux_notes *notes, struct gt_message *message);

#endif
