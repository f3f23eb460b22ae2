/* SPDX-License-Identifier: MIT */
/*
 * What a reader wants to see of a trace: a time window, one thread, only what is below some
 * functions, not deeper than so many calls. Applied to each record as it is decoded, before records
 * of several writers are merged. Reentrant; memory is the caller's.
 */
#ifndef GT_CORE_TRACE_FILTER_H
#define GT_CORE_TRACE_FILTER_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/decode.h"
#include "core/trace/target.h"

#define GT_FILTER_CACHE	    1024
#define GT_FILTER_CPU_WORDS 4

/* Which CPUs' records are wanted, and since when: a bit each, of the times from `from` to the next
 * one's. Before the first one, and with none: every CPU's. */
#define GT_FILTER_MASKS 8
struct gt_filter_masks {
	uint32_t count;
	struct {
		uint64_t from; /* clock */
		uint64_t cpus[GT_FILTER_CPU_WORDS];
	} mask[GT_FILTER_MASKS];
};

/* All zero: everything passes. */
struct gt_filter {
	uint64_t from_ns; /* first nanosecond wanted, on the target's clock; 0 = from the start */
	uint64_t to_ns;	  /* last one; 0 = to the end */
	uint32_t tid;	  /* 0 = all */
	/* Only what ran on these CPUs, a bit each; no bit at all: every CPU. One that is not known counts as
	 * CPU 0. */
	uint64_t cpus[GT_FILTER_CPU_WORDS];
	struct gt_filter_masks masks; /* and only what ran on these then */
	uint32_t max_depth;	      /* calls of depths 0 … max_depth - 1; 0 = all */
	/* Only these functions and what they call: globs (core/trace/glob.h), the caller's memory,
	 * NULL-terminated. NULL = all. Depths are counted from the matching call then. */
	const char *const *graph;
	/* Only calls that took at least so long, each as its return alone, as tracing_thresh
	 * records them; 0 = all. */
	uint64_t least_ns;

	/* private: functions looked up, by number modulo; the low bit says that it matched */
	uint32_t cache_function[GT_FILTER_CACHE];
	uint8_t cache_match[GT_FILTER_CACHE];
};

/* Is there anything that gt_filter_record could take away? */
bool gt_filter_is_needed(const struct gt_filter *filter);

/* The same of what belongs to no call: whether its time, its thread and its CPU are wanted. */
bool gt_filter_passes(const struct gt_filter *filter, const struct gt_target *target,
		      uint64_t clock, uint32_t tid, uint32_t cpu);

/*
 * Is the record, just given by gt_decode_next, wanted? Changes record->depth to what is to be
 * shown, and takes ENTRY_SEEN off when the entry did not pass. Uses the frames' marks. Records
 * about the trace itself (LOST, GAP, CONTEXT, CPU) pass whatever their depth; with least_ns a program's
 * CONTEXT does not.
 */
bool gt_filter_record(struct gt_filter *filter, struct gt_target *target, struct gt_decode *decode,
		      struct gt_record *record);

#endif
