/* SPDX-License-Identifier: MIT */
/*
 * The calls that were open when a trace ended, thread by thread: where a program was when it died,
 * or when its recording was stopped. Reads the last 64 sub-buffers of each writer only; their headers
 * say what was open before them. Those that cannot be read are passed over. One thread at a time.
 */
#ifndef GT_EXPORT_OPEN_CALLS_H
#define GT_EXPORT_OPEN_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

struct gt_open_call {
	uint32_t function; /* 0: this and what is around it is not known */
	uint32_t depth;	   /* calls around it, in its context */
	uint64_t start;	   /* tsc */
};

/* The calls of one context of a thread: those of its coroutines and signals are elements of their own. */
struct gt_open_thread {
	struct gt_writer writer;
	uint64_t last;		    /* tsc of the thread's last record, in whatever context */
	uint32_t context;	    /* of these calls */
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
	/* tsc of the last record of all threads that were asked for, with or without an open call */
	uint64_t last;
};

/* Reads the target. pid: threads of one process; 0: of all. The caller destroys *open; the target must outlive it.
 * GT_ENOMEM, with the message (NULL: none is wanted): *open is NULL. */
int gt_open_calls_make(struct gt_target *target, uint32_t pid, struct gt_open_calls **open,
		       struct gt_message *message);
/* NULL is allowed. */
void gt_open_calls_destroy(struct gt_open_calls *open);

/* Writes text: a line for each thread and one for each call, the innermost last; at most `threads` threads and the
 * `calls` innermost calls of each (0: all), and how many there are besides. Without an open call it is one line that
 * says so. *text, NUL-terminated (*bytes without the NUL), is the caller's to free. GT_ENOMEM: there is no text. */
int gt_open_calls_format(const struct gt_open_calls *open, uint32_t threads, uint32_t calls,
			 char **text, size_t *bytes);

#endif
