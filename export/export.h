/* SPDX-License-Identifier: MIT */
/*
 * A recording in the formats of other tools. The table of formats is in export.c; each format is a
 * file of its own that takes calls from stacks.h and writes through out.h. Nothing here prints or
 * opens a file by itself, but for what stands in a directory that the caller has made.
 */
#ifndef GT_EXPORT_EXPORT_H
#define GT_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "export/out.h"
#include "export/stacks.h"

#define GT_BUILD_BYTES 65 /* 32 bytes in hexadecimal, and a NUL */

/* What is known about the run; "" = not known. Strings are the caller's. */
struct gt_export_about {
	const char *command_line;
	const char *program;
	const char *host;
	const char *made_by;  /* "graftrace 0.1.0" */
	uint64_t realtime_ns; /* of the first moment, since 1970 */
	uint64_t start;	      /* ticks of the first moment */
	bool is_kernel;
	/* The build ID of the object that a function lies in, in hexadecimal; "" not known. NULL: none are. */
	void (*build)(void *user, const struct gt_function *function, char id[GT_BUILD_BYTES]);
	void *build_user;
};

struct gt_export;

struct gt_export_format {
	const char *name;
	const char *help; /* one line, for --help */
	const char *file; /* default name of the output */
	bool is_directory;
	bool needs_file;	  /* a regular file: no pipe, no stdout */
	bool writes_at_end;	  /* `end` alone writes: before it, all can begin anew */
	bool in_any_order;	  /* as struct gt_stack_sink has it */
	const char *create_table; /* the statement that makes the table for the rows; NULL */
	size_t state_bytes;	  /* zeroed memory for the format: export->state */
	int (*begin)(struct gt_export *export);
	int (*lane)(struct gt_export *export, struct gt_lane *lane);
	int (*enter)(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call);
	int (*leave)(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		     uint64_t end);
	int (*moment)(struct gt_export *export, struct gt_lane *lane,
		      const struct gt_moment *moment);
	int (*end)(struct gt_export *export, const struct gt_stack_report *report);
	/* Frees what the state holds: after an error, too, even if `begin` was not called. */
	void (*fini)(struct gt_export *export);
};

/* One export that runs. The first part is set by the caller of gt_export_run. */
struct gt_export {
	const struct gt_export_format *format;
	struct gt_target *target;
	struct gt_filter *filter; /* NULL: all */
	struct gt_export_about about;
	uint64_t least_ns;     /* calls that took less are left out: of formats with a row a call */
	uint32_t function_end; /* one more than the highest function number */
	int fd;		       /* the output; of a directory: its descriptor */
	bool is_new; /* the output is an empty file of the caller's own: it may be cut to be written anew */
	struct gt_message *message;

	/* For the formats. */
	struct gt_out out; /* not of a directory */
	void *state;
	uint8_t *function_seen;	      /* a byte a function, zero at first: the format's own */
	struct gt_export_line *lines; /* by function, once one was asked for */
	struct gt_export_build *builds;
};

/* Where a function stands in source. */
struct gt_export_line {
	const char *file; /* "": not known */
	uint32_t line;
	bool asked;
};

struct gt_export_build {
	char id[GT_BUILD_BYTES];
	bool asked;
};

/* All formats, ended by NULL. */
extern const struct gt_export_format *const gt_export_formats[];

/* NULL: there is none of that name. */
const struct gt_export_format *gt_export_find(const char *name);

/* Whether gt_export_run() reads the target once where no entry is missing, or whatever is missing; else it
 * reads it twice. */
bool gt_export_reads_once(const struct gt_export *export);

/* GT_ENOMEM; GT_EIO (export->message says why), GT_ENOTSUP (the format cannot hold this recording: the
 * message says why). */
int gt_export_run(struct gt_export *export, struct gt_stack_report *report);

/* Nanoseconds since the first moment. */
uint64_t gt_export_ns(const struct gt_export *export, uint64_t ticks);
/* Duration in nanoseconds of that many ticks. */
uint64_t gt_export_duration_ns(const struct gt_export *export, uint64_t ticks);
/* A function's name ("function#12" where it is lost, in `number`) and, if asked for, more of it. */
const char *gt_export_name(const struct gt_export *export, uint32_t function, char number[24],
			   struct gt_function *more);
/* Its source line; `file` is "" where it is not known. */
const struct gt_export_line *gt_export_line(struct gt_export *export, uint32_t function);
/* The build ID of its object, "" where it is not known. */
const char *gt_export_build(struct gt_export *export, uint32_t number,
			    const struct gt_function *function);
/* "name" of a lane: the thread's, with its number, and the stack's if it is not the thread's own. */
void gt_export_lane_name(const struct gt_lane *lane, char *text, size_t bytes);
/* The call's own time in ticks. */
static inline uint64_t gt_export_self(const struct gt_stack_call *call, uint64_t end)
{
	uint64_t took = end - call->start;

	return call->children < took ? took - call->children : 0;
}

extern const struct gt_export_format gt_format_callgrind, gt_format_chrome, gt_format_clickhouse,
	gt_format_csv, gt_format_ctf, gt_format_events_tsv, gt_format_events_csv,
	gt_format_events_json, gt_format_dot, gt_format_folded, gt_format_html, gt_format_json,
	gt_format_perfetto, gt_format_pprof, gt_format_speedscope, gt_format_sqlite, gt_format_svg,
	gt_format_uftrace;

#endif
