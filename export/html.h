/* SPDX-License-Identifier: MIT */
/*
 * The runtime-breakdown page: one HTML file that holds its data, its style and its scripts
 * (web/breakdown.*, plotly.js) and asks nothing of the network.
 *
 * Its data is JSON in <script id="data">; times are microseconds with three decimals:
 *
 *     { "source": name, "bad": rows not read, "calls", "self", "functionsCount", "threadsCount",
 *       "threads": [tid, ...]             the bars; null at the end: all further threads together
 *       "functions": [[name, calls, total, self, waits 0|1, [thread index, self, ...]], ...]
 *       "others": [{ "waits", "count", "calls", "total", "self",
 *                    "cells": [thread index, self, ...] }]      functions that are added up
 *       "rest": [[name, calls, total, self], ...] }             the first of those functions
 *
 * A function's name may be any bytes: '<', '>' and '&' are written as \u00XX, bytes that are no UTF-8 as U+FFFD.
 * One thread at a time.
 */
#ifndef GT_EXPORT_HTML_H
#define GT_EXPORT_HTML_H

#include <stdint.h>

#include "export/breakdown.h"
#include <graftrace/error.h>

/*
 * The most that the page holds; the rest is added up and counted. Bars times functions is
 * what a browser has to draw: 15,000 pieces take it about a second.
 */
#define GT_HTML_FUNCTIONS_MAX 150
#define GT_HTML_REST_MAX      5000
#define GT_HTML_THREADS_MAX   100

/*
 * Writes the page to fd. source: what the page says it is of (a file's name); bad_rows: how many
 * rows could not be read. fd stays the caller's. GT_ENOMEM; GT_EIO with the system's words in *message: a part may have
 * been written.
 */
int gt_html_write_breakdown(int fd, const struct gt_breakdown *breakdown, const char *source,
			    uint64_t bad_rows, struct gt_message *message);

#endif
