/* SPDX-License-Identifier: MIT */
/*
 * What the files of the table share: report.c reads the records, report_rows.c finds the row of a
 * function and makes the rows that are shown, report_order.c sorts them, report_format.c prints them. The
 * collector is the caller's alone; no locks.
 */
#ifndef GT_EXPORT_REPORT_PARTS_H
#define GT_EXPORT_REPORT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/trace/decode.h"
#include "core/trace/off_cpu.h"
#include "export/report.h"
#include "read/levels.h"

#define GLOB_CACHE 4096 /* functions that the globs were asked of, by number modulo */

/* Times in ticks. */
struct row {
	uint64_t returned;
	uint64_t total;
	uint64_t self;
	uint64_t minimum, maximum;
	uint64_t first; /* duration that the two sums are relative to: keeps them small */
	double sum;
	double squares;
	uint64_t entered;
	uint64_t inherited; /* returns, in a forked child, of its parent's calls */
	uint64_t self_off, total_off;
	uint64_t other; /* entry-only, function tracer, returns without a known entry */
	uint64_t self_upper_bound;
	uint64_t too_short; /* returned, and left out */
	struct gt_histogram durations;
	bool named;   /* the function that callers or callees are asked of */
	uint32_t key; /* function number, writer's index (a kernel's thread: its number), process,
			 or a function of the object */
};

/* A name that the target does not hold itself. */
struct name {
	struct name *next;
	char text[];
};

struct slot {
	uint32_t function; /* 0: empty */
	uint32_t row;
};

/* A function of a file: processes that have it each have a number of their own for it. */
struct known {
	struct gt_function function; /* its strings are the target's */
	uint32_t row;
};

/* Calls open in one context, by row. */
struct open_calls {
	uint32_t *count;
	uint32_t size;
	uint32_t context;
	bool used;
	bool begun; /* the wanted time has */
};

/* The call that was found open last, at the end of a writer. */
struct open_callee {
	uint32_t depth, context;
	uint64_t ticks; /* since its entry */
};

struct collector {
	struct gt_target *target;
	const struct gt_report_options *options;
	enum gt_report_by by;
	const char *of;	   /* a glob, by caller or callee */
	bool picks;	   /* not all records count: by their times or their callers */
	uint64_t from, to; /* the wanted time, in ticks */
	uint64_t least;	   /* ticks of the shortest call that counts */
	bool has_spread;   /* the rows' durations are kept */
	uint32_t globbed[GLOB_CACHE];
	bool glob_matches[GLOB_CACHE];
	bool is_by_call;	  /* a call's row does not depend on its function alone */
	struct gt_decode *decode; /* of the record in work */
	struct gt_decode own;
	struct slot *slots;
	uint32_t slot_bits;
	uint32_t slot_used;
	struct known *known; /* by name, 2^known_bits places; name NULL: empty */
	uint32_t known_bits, known_used;
	struct row *rows;
	uint32_t row_count, row_capacity;
	uint32_t thread_row;
	struct open_calls open[GT_DECODE_CONTEXTS];
	uint32_t place;	  /* in `open`, of the running context */
	uint32_t *counts; /* its counts */
	uint32_t counts_size;
	uint64_t began; /* tsc at which the recording began */
	struct gt_off_cpu_follow off_cpu;
	struct gt_off_cpu_threads off_cpus; /* … of a kernel's threads */
	uint64_t slept;		/* clock of the last record that had a time off the CPU before it */
	uint32_t tid;		/* the writer's thread; a kernel's: the record's */
	uint32_t pid;		/* the writer's process … */
	uint64_t process_began; /* … and when that began; 0 = not asked yet */
	uint64_t unseen;  /* calls since `began` that are counted, though not by their entries */
	uint64_t first;	  /* clock of the writer's first record that counts; 0 = none yet */
	uint64_t last;	  /* … and of the last one */
	uint64_t covered; /* self times of its calls */
	struct gt_levels ended; /* its calls of which only the ends are recorded */
	struct open_callee open_callee;
	uint64_t span, outside; /* of all writers whose records are there from the start */
	bool incomplete;	/* records of this writer are missing */
	bool kernel;
	bool out_of_memory;
	uint64_t records;
	uint64_t unreadable, damaged;
	void *buffer;
};

/* By caller or callee: calls of others are counted in a row that is not shown; those that no
 * recorded call has made, in another one. */
enum { ROW_OTHERS, ROW_OUTERMOST, ROWS_OF_OURS };

/* False: no memory. */
bool gt_report_grow_slots(struct collector *c);

/* Makes a row, and returns its number; without memory 0, and out_of_memory is set. */
uint32_t gt_report_new_row(struct collector *c, uint32_t key);

/* The row of a function that has none yet; cold. */
uint32_t gt_report_add_function(struct collector *c, uint32_t function);

/* Names the rows, and turns ticks to nanoseconds. GT_ENOMEM. */
int gt_report_make_rows(struct collector *c, struct gt_report *report);

static inline uint32_t gt_report_hash(const struct collector *c, uint32_t function)
{
	return (uint32_t)((function * 0x9e3779b97f4a7c15ull) >> (64 - c->slot_bits));
}

/* The row of a function, or of its object. */
static inline uint32_t gt_report_row_of(struct collector *c, uint32_t function)
{
	uint32_t at = gt_report_hash(c, function);
	while (c->slots[at].function != function) {
		if (!c->slots[at].function)
			return gt_report_add_function(c, function);
		at = (at + 1) & ((1u << c->slot_bits) - 1);
	}
	return c->slots[at].row;
}

/* Self time less the time off the CPU. Time off the CPU in calls that did not return is in
 * neither. */
static inline uint64_t gt_report_on_cpu(const struct gt_report_row *row)
{
	return row->self > row->self_off ? row->self - row->self_off : 0;
}

#endif
