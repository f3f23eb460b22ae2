/* SPDX-License-Identifier: MIT */
/*
 * Values on the command line: sizes, times, numbers. Each takes the whole text or refuses it with a
 * reason that names the text and shows what is wanted. 0 or GT_EINVAL.
 */
#ifndef GT_CLI_VALUES_H
#define GT_CLI_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <graftrace/error.h>

/* "4096", "512k", "64M", "1G" (of 1024; KB, KiB … mean the same). At least 1 byte. */
int gt_value_size(const char *text, uint64_t *bytes, struct gt_message *message);

/* "10us", "1.5ms", "2s", "100ns", "3m"; a plain number is in `unit_ns` nanoseconds. What is finer
 * than a nanosecond is refused. */
int gt_value_time(const char *text, uint64_t unit_ns, uint64_t *ns, struct gt_message *message);

/* A whole number from `low` to `high`. */
int gt_value_number(const char *text, uint64_t low, uint64_t high, uint64_t *number,
		    struct gt_message *message);

/* "1234" or "12,34,56": numbers of processes, added to a list that grows by realloc (*pids NULL:
 * empty). Also GT_ENOMEM. */
int gt_value_pids(const char *text, int32_t **pids, size_t *count, struct gt_message *message);

/* The path of the program `name`: as a shell would find it, but a file here goes first. */
void gt_value_program(const char *name, char *path, size_t size);

#endif
