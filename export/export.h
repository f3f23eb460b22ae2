/* SPDX-License-Identifier: MIT */
/*
 * A recording in the formats of other tools. The table of formats is in export.c; each format is a
 * file of its own that takes calls from stacks.h and writes through out.h. Nothing here prints. Files are
 * opened only in a directory that the caller has made, in /tmp or the like for what has to wait (spool.h),
 * and by SQLite, the output itself once more. One thread at a time for each export.
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
	/* Each may be NULL. A negative result ends the export, and gt_export_run returns it. `begin` comes
	 * first, and again, after `fini`, where all begins anew; `lane`, `enter`, `leave` and `moment` as
	 * struct gt_stack_sink has them; `end` is last. */
	int (*begin)(struct gt_export *export);
	int (*lane)(struct gt_export *export, struct gt_lane *lane);
	int (*enter)(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call);
	int (*leave)(struct gt_export *export, struct gt_lane *lane, struct gt_stack_call *call,
		     uint64_t end);
	int (*moment)(struct gt_export *export, struct gt_lane *lane,
		      const struct gt_moment *moment);
	int (*end)(struct gt_export *export, const struct gt_stack_report *report);
	/* Frees what the state holds, not the state: after an error, too, even if `begin` was not called.
	 * Not called without a state. */
	void (*fini)(struct gt_export *export);
};

/* One export that runs. The first part is set by the caller of gt_export_run and stays the caller's; the second
 * is zero at first, and is used up when gt_export_run returns: another run needs another struct. */
struct gt_export {
	const struct gt_export_format *format;
	struct gt_target *target;
	struct gt_filter *filter; /* NULL: all; written to (its cache) */
	struct gt_export_about about;
	/* `leave` is not called of calls that took less: of formats with a row a call, which need no `enter`;
	 * else 0. */
	uint64_t least_ns;
	uint32_t function_end; /* one more than the highest function number */
	int fd;		       /* the output; of a directory: its descriptor. Never closed here */
	bool is_new; /* the output is an empty file of the caller's own: it may be cut to be written anew; of a
		      * directory false */
	struct gt_message *message; /* NULL: none is wanted */

	/* For the formats. */
	struct gt_out out; /* not of a directory */
	void *state;
	/* A byte a number 0 … function_end, zero at first: the format's own. */
	uint8_t *function_seen;
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

/* True: gt_export_run() reads the target once (but again, twice, if the output can begin anew and a call
 * without an entry comes). False: it reads the target twice. */
bool gt_export_reads_once(const struct gt_export *export);

/* Writes all of it. GT_ENOMEM, without a message; GT_EIO (export->message says why): then a part may have been
 * written. *report is set in any case. */
int gt_export_run(struct gt_export *export, struct gt_stack_report *report);

/* The following are for the formats, while gt_export_run runs. */

/* Nanoseconds since the first moment; 0 before it. */
uint64_t gt_export_ns(const struct gt_export *export, uint64_t ticks);
/* Duration in nanoseconds of that many ticks. */
uint64_t gt_export_duration_ns(const struct gt_export *export, uint64_t ticks);
/* A function's name ("function#12" where it is lost, in `number`) and, if `more` is not NULL, more of it: of a
 * lost one zeros and an object "". The name lives as long as the target and `number` do. */
const char *gt_export_name(const struct gt_export *export, uint32_t function, char number[24],
			   struct gt_function *more);
/* Its source line; `file` is "" where it is not known or there is no memory. Never NULL; valid until
 * gt_export_run returns. */
const struct gt_export_line *gt_export_line(struct gt_export *export, uint32_t function);
/* The build ID of the object of `function`, which has that number; "" where it is not known or there is no
 * memory. Valid until gt_export_run returns. */
const char *gt_export_build(struct gt_export *export, uint32_t number,
			    const struct gt_function *function);
/* Name of a lane, "NAME-TID" or "NAME-TID stack 2" (of a stack that is not the thread's first one), cut to
 * bytes - 1. NAME is "<...>" where it is not known. */
void gt_export_lane_name(const struct gt_lane *lane, char *text, size_t bytes);
/* "12 records lost", or "a part is missing" where nobody knows how many; of a GT_MOMENT_LOST. */
void gt_export_lost(const struct gt_moment *moment, char *text, size_t bytes);
/* What an export lacks, "12 records lost, 1 part missing, 3 calls without a return", for formats that can say it only
 * once. Empty: it lacks nothing. */
void gt_export_lacks(const struct gt_stack_report *report, char *text, size_t bytes);
/* The own time, in ticks, of a call that ended at `end`; never below 0. */
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
