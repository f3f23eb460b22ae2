/* SPDX-License-Identifier: MIT */
/*
 * Parses one line of a function_graph text. Pure: reads the bytes that it is given, keeps
 * no state, allocates nothing; may be called from anywhere.
 *
 * The texts understood are Linux' `trace` and `trace_pipe` with any choice of columns, those of
 * Nanos and of graftrace itself (the same layout), the same with its blanks collapsed (as pages
 * on the web show it), and `trace-cmd report`. Where a layout leaves doubt, the line is
 * GT_TEXT_OTHER: a line that is not understood is counted by the caller, never half read.
 */
#ifndef GT_READ_TEXT_LINE_H
#define GT_READ_TEXT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_text_kind {
	GT_TEXT_OTHER,	 /* not a line of a trace; `why` says more */
	GT_TEXT_BLANK,	 /* nothing, or a rule of dashes around a task switch */
	GT_TEXT_HEADER,	 /* '#' comment, trace-cmd's first lines */
	GT_TEXT_TRACER,	 /* "# tracer: NAME": a trace begins; name is the tracer's */
	GT_TEXT_STARTED, /* "##### CPU n buffer started ####" */
	GT_TEXT_LOST,	 /* "CPU:n [LOST m EVENTS]" */
	GT_TEXT_SWITCH,	 /* " 0)  a-1  =>  b-2": CPU, pid (a's) and next_pid (b's) */
	GT_TEXT_EVENT,	 /* a comment, a marker, an event or another tracer's line */
	GT_TEXT_UNTIMED, /* a call's line in a layout that has no duration column */
	GT_TEXT_ENTRY,	 /* name() { */
	GT_TEXT_LEAF,	 /* duration, name(); */
	GT_TEXT_EXIT,	 /* duration, } with or without the name behind */
};

#define GT_TEXT_NO_TIME UINT64_MAX

/* CPU and task numbers are -1 where the line has none. */
struct gt_text_line {
	enum gt_text_kind kind;
	int32_t cpu;
	int32_t indent;	      /* blanks before the function; -1: collapsed, tells no depth */
	int64_t pid;	      /* task column, or the task that leaves the CPU */
	int64_t next_pid;     /* SWITCH: the task that comes */
	uint64_t duration_ns; /* LEAF, EXIT */
	uint64_t time_ns;     /* of the line; GT_TEXT_NO_TIME: it does not say */
	int32_t event;	      /* EVENT of a task's line: where its text begins; else -1 */
	uint64_t lost;	      /* LOST: events, 0 if the line does not say how many */
	const char *name;     /* within the line; NULL: an EXIT that does not name its function */
	size_t name_len;
	bool goes_on;	 /* EVENT: a comment that does not end in this line (a marker's text) */
	const char *why; /* OTHER: what is wrong, a constant text */
};

/* No CPU column holds a higher number. */
#define GT_TEXT_CPU_MAX 65535

/*
 * Reads the line of len bytes at text (without its newline; a carriage return at its end is
 * ignored) into *line, whose name points into text. Always fills every field.
 */
void gt_text_line_parse(const char *text, size_t len, struct gt_text_line *line);

/* Whether the line ends with the end of a comment, blanks aside. */
bool gt_text_line_ends_comment(const char *text, size_t len);

/*
 * Whether the name that stands behind a closing brace is that of the function `name`. Linux puts
 * return values there too: "vfs_open = 0x0".
 */
bool gt_text_tail_names(const char *tail, size_t tail_len, const char *name, size_t name_len);

#endif
