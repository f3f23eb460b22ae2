/* SPDX-License-Identifier: MIT */
/*
 * The calls that were open when a trace ended, thread by thread: where a program was when it died,
 * or when its recording was stopped. Reads the last sub-buffers of each writer only; their headers
 * say what was open before them.
 */
#ifndef GT_EXPORT_OPEN_CALLS_H
#define GT_EXPORT_OPEN_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

struct gt_open_call {
	uint32_t function; /* 0: this and what is around it is not known */
	uint32_t depth;
	uint64_t start; /* tsc */
};

struct gt_open_thread {
	struct gt_writer writer;
	uint64_t last;		    /* tsc of its last record */
	uint32_t context;	    /* of these calls: a coroutine's or signal's are another's */
	struct gt_open_call *calls; /* outermost first */
	uint32_t count;
	uint32_t room;
};

/* Threads with an open call, the one with the latest record first. */
struct gt_open_calls {
	struct gt_target *target;
	struct gt_open_thread *threads;
	uint32_t count;
	uint32_t room;
	uint64_t last; /* tsc of the last record of all threads, with or without an open call */
};

/* pid: of one process, 0 = all. GT_ENOMEM with the message: *open is NULL. Else it is to be destroyed; the
 * target must outlive it. */
int gt_open_calls_make(struct gt_target *target, uint32_t pid, struct gt_open_calls **open,
		       struct gt_message *message);
void gt_open_calls_destroy(struct gt_open_calls *open);

/* As text, a line a call, innermost last; at most `threads` threads and the `calls` innermost calls
 * of each (0: all). *text is malloc'd, NUL-terminated, the caller's. GT_ENOMEM. */
int gt_open_calls_format(const struct gt_open_calls *open, uint32_t threads, uint32_t calls,
			 char **text, size_t *bytes);

#endif
