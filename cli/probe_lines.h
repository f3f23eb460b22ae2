/* SPDX-License-Identifier: MIT */
/*
 * Probes as people name them, made into lines of uprobe_events: what `graftrace probe` and `record --probe` take.
 * The grammar is that of perf-probe(1); a line of uprobe_events passes as it is.
 */
#ifndef GT_CLI_PROBE_LINES_H
#define GT_CLI_PROBE_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

struct gt_source_place;

/* Calls back with each line that the text means, and with its event as "GROUP:NAME", until it returns non-zero.
 * program: the file that is meant where the text does not say. GT_EINVAL, GT_ENOENT with the message. */
int gt_probe_lines(const char *text, const char *program,
		   int (*each)(void *data, const char *line, const char *event), void *data,
		   struct gt_message *message);

/* FUNC, FUNC:LINE, FILE:LINE: for --line and --vars. The strings are in `room`. */
int gt_probe_place(const char *text, struct gt_source_place *place, char *room, size_t size,
		   struct gt_message *message);

#endif
