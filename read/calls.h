/* SPDX-License-Identifier: MIT */
/*
 * The calls of a target (such as a recording): one row for each call whose entry and return were
 * recorded, with nothing missing in between, or that was recorded as a whole at its end
 * (tracing_thresh), in the order of the returns over all threads. Calls without a row
 * are counted. Memory grows with the number of threads that live at the same time, not with the number
 * of calls. One thread at a time.
 */
#ifndef GT_READ_CALLS_H
#define GT_READ_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/target.h"

struct gt_call {
	/* Valid during the callback. "function#12": its name is lost. */
	const char *function;
	uint32_t tid;
	uint64_t latency_ns;
	uint64_t self_ns; /* latency less that of the calls it made */
};

struct gt_calls_report {
	uint64_t calls;		/* rows given */
	uint64_t open_at_start; /* returns whose entry was not recorded */
	uint64_t open_at_end;
	uint64_t never_returned; /* left by longjmp, an exception, the end of their thread */
	uint64_t unseen;	 /* may have returned while nothing was recorded */
	uint64_t cut_by_loss;	 /* returned, but records between are missing */
	uint64_t entry_only;	 /* their return is never recorded */
	uint64_t without_return; /* records of the function tracer */
	uint64_t lost;		 /* records lost, as the trace says */
	uint64_t gaps;		 /* places where sub-buffers are missing */
	uint64_t unreadable;	 /* sub-buffers that are there and cannot be read */
	uint64_t left_out;	 /* threads, for lack of memory */
};

/* Reads the target and calls `call` with each row; a negative result of it ends the reading and is returned. no_sleep:
 * latencies and self times are without the time off the CPU, if the target knows it. Returns 0, that result, or
 * GT_ENOMEM. The report is complete only after 0. */
int gt_calls_read(struct gt_target *target, bool no_sleep,
		  int (*call)(void *user, const struct gt_call *call), void *user,
		  struct gt_calls_report *report);

#endif
