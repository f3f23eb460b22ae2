/* SPDX-License-Identifier: MIT */
/*
 * Numbers for a kernel's functions by their addresses, as they come up; names by libtraceevent's
 * symbols. From one thread at a time.
 */
#ifndef GT_LINUX_FUNCTIONS_H
#define GT_LINUX_FUNCTIONS_H

#include <stdint.h>

#include <event-parse.h>

#include "core/trace/target.h"
#include "linux/modules.h"

#define GT_LINUX_OBJECT "[kernel]" /* as perf names it */

struct gt_linux_functions;

/* first: the lowest number. modules: NULL, or whose functions are which, as long as this. GT_ENOMEM. */
int gt_linux_functions_create(struct tep_handle *tep, const struct gt_sink *sink, uint32_t first,
			      const struct gt_linux_modules *modules,
			      struct gt_linux_functions **functions);

/* The number of the function that the address lies in; 0: no memory for it. */
uint32_t gt_linux_functions_number(struct gt_linux_functions *functions, uint64_t address);

/* Tells the sink of those that are new. */
int gt_linux_functions_flush(struct gt_linux_functions *functions);

void gt_linux_functions_destroy(struct gt_linux_functions *functions);

#endif
