/* SPDX-License-Identifier: MIT */
/*
 * Names that stand in a text: of functions, which get numbers, and of tasks. From one thread.
 */
#ifndef GT_LINUX_TEXT_NAMES_H
#define GT_LINUX_TEXT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "core/trace/target.h"
#include "read/text_line.h"

struct gt_text_names;

/* GT_ENOMEM. The sink is told of functions. */
int gt_text_names_create(const struct gt_sink *sink, struct gt_text_names **names);

/* The function's number; "f [mod]" is f of the object "[mod]". 0: no memory, or too many. */
uint32_t gt_text_names_number(struct gt_text_names *names, const char *name, size_t bytes);

/* Where that function is said to lie: a text has no addresses, and readers ask by them. */
uint64_t gt_text_names_address(uint32_t number);

/* Keeps the names of the tasks that a line has. */
void gt_text_names_of_tasks(struct gt_text_names *names, const char *bytes, size_t count,
			    const struct gt_text_line *line);

/* NULL: not known. */
const char *gt_text_names_task(const struct gt_text_names *names, uint32_t tid);

/* Tells the sink of functions that are new. */
int gt_text_names_flush(struct gt_text_names *names);

void gt_text_names_destroy(struct gt_text_names *names);

#endif
