/* SPDX-License-Identifier: MIT */
/*
 * Function_graph text to calls: a stream of lines goes in, in blocks cut anywhere, and one row for
 * each call that began and ended in it comes out, in the order of their returns. A text that has only
 * ends of calls (of tracing_thresh) gives a row for each end that names its function. Memory does not
 * grow with the text's length. Nothing is guessed: what the text does not tell is counted in the
 * report, and its first few cases are kept by name and line.
 *
 * The texts understood are listed in read/text_line.h. One parser belongs to one thread.
 */
#ifndef GT_READ_TEXT_TRACE_H
#define GT_READ_TEXT_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/cases.h"
#include <graftrace/error.h>

/* A longer line is no trace's: it is skipped and counted. */
#define GT_TEXT_LINE_MAX (64u << 10)
/* One call that returned. */
struct gt_text_call {
	const char *function; /* not terminated; valid during the callback */
	size_t function_len;
	/* The task's number. Where the text names no task, 0 on CPU 0, -1 on CPU 1, -2 on CPU 2 ...
	 */
	int64_t tid;
	uint64_t latency_ns;
	uint64_t self_ns; /* latency less that of the calls it made */
};

struct gt_text_trace_report {
	uint64_t lines;
	uint64_t bytes;
	uint64_t traces; /* "# tracer:" headers seen */
	uint64_t calls;	 /* rows given */
	/* Calls, returns, switches, comments, events, losses. Not: headers, where a buffer begins, further
	 * lines of a comment, blank and other ones. */
	uint64_t trace_lines;
	uint64_t events;
	uint64_t switches;
	uint64_t untimed; /* calls in a layout without durations: no row can be made of them */
	uint64_t children_exceed; /* rows with self 0, for the callees' printed times add to more */
	uint64_t never_returned;  /* a caller returned before them */
	uint64_t cut_by_loss;	  /* open on a CPU while its events were lost */
	uint64_t forgotten;	  /* open calls dropped at a limit of text_stacks.h */
	uint64_t lost_events;	  /* as the text says */
	uint64_t lost_marks;	  /* lines that say so; some without a number */
	struct gt_cases open_at_start; /* returns whose entry the text does not have */
	struct gt_cases open_at_end;
	struct gt_cases other; /* lines that are no trace */
	char tracer[32];       /* of the last header; "" if there was none */
};

struct gt_text_trace;

/*
 * Makes a parser. call is given each row; after a negative result of it the parser returns that, and only
 * gt_text_trace_report and _destroy may follow. GT_ENOMEM.
 */
int gt_text_trace_create(struct gt_text_trace **out,
			 int (*call)(void *user, const struct gt_text_call *call), void *user);

/*
 * Looks ahead: a task switch tells also which task ran before, so the first one on each CPU names
 * that CPU's task from the text's begin. Before the first feed, give the text, or as much of its
 * begin as there is, in blocks that overlap by GT_TEXT_PEEK_OVERLAP bytes. Optional: rows before a
 * CPU's first switch have no task's number otherwise. Cheap: a search for one character. GT_ENOMEM.
 */
#define GT_TEXT_PEEK_OVERLAP 256
int gt_text_trace_peek(struct gt_text_trace *trace, const char *block, size_t len);

/* Parses the next len bytes. GT_ENOMEM, or the negative result of the callback. */
int gt_text_trace_feed(struct gt_text_trace *trace, const char *block, size_t len);

/* Ends the text: a last line without a newline counts, and open calls are counted. Errors as of
 * gt_text_trace_feed. */
int gt_text_trace_finish(struct gt_text_trace *trace);

/* Complete after gt_text_trace_finish. Belongs to the parser. */
const struct gt_text_trace_report *gt_text_trace_report(const struct gt_text_trace *trace);

void gt_text_trace_destroy(struct gt_text_trace *trace);

/*
 * Reads fd to its end: looks ahead (in a file that can be read twice as far as is needed, else in
 * the first block), feeds, finishes. GT_EIO with the system's words in *message, and as
 * gt_text_trace_feed (without a message). The descriptor stays the caller's.
 */
int gt_text_trace_read(struct gt_text_trace *trace, int fd, struct gt_message *message);

#endif
