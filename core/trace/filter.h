/* SPDX-License-Identifier: MIT */
/*
 * What a reader wants to see of a trace: a time window, one thread, only what is below some
 * functions, not deeper than so many calls. Applied to each record as it is decoded, before records
 * of several writers are merged. Reentrant; memory is the caller's. gt_filter_record writes into the
 * filter: one thread at a time for each.
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
 * one's, in ascending order. Before the first one, and with none: every CPU's. */
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
	/* 0 = all. The merge leaves out other threads' records; gt_filter_record does not look at it. */
	uint32_t tid;
	/* Only what ran on these CPUs, a bit each; no bit at all: every CPU. One that is not known
	 * (UINT32_MAX) counts as CPU 0. With any bit or mask, CPUs from 256 on are left out. */
	uint64_t cpus[GT_FILTER_CPU_WORDS];
	struct gt_filter_masks masks; /* and only what ran on these then */
	uint32_t max_depth;	      /* calls of depths 0 … max_depth - 1; 0 = all */
	/* Only these functions and what they call: globs (core/trace/glob.h), the caller's memory,
	 * NULL-terminated. NULL = all; without a glob: none. Depths are counted from the matching call
	 * then. */
	const char *const *graph;
	/* Only calls that took at least so long, each as its return alone, as tracing_thresh
	 * records them; 0 = all. Calls that ended without a return, or whose start is not known, are left
	 * out. Records of no call (markers, events) stay. */
	uint64_t least_ns;

	/* private: functions looked up, by number modulo, and whether they match `graph`. Zero them for
	 * another `graph` or target. */
	uint32_t cache_function[GT_FILTER_CACHE];
	uint8_t cache_match[GT_FILTER_CACHE];
};

/* Is there anything that gt_filter_record could take away? (`tid` does not count.) */
bool gt_filter_is_needed(const struct gt_filter *filter);

/* Is a thing that belongs to no call wanted: its time (`clock`, in ticks), its thread and its CPU? */
bool gt_filter_passes(const struct gt_filter *filter, const struct gt_target *target,
		      uint64_t clock, uint32_t tid, uint32_t cpu);

/*
 * Is the record, just given by gt_decode_next, wanted? To be called for each record, in order. Changes
 * record->depth to what is to be shown, and takes ENTRY_SEEN off when the entry did not pass; with
 * least_ns returns become ALONE. Uses the frames' marks, and takes ENTRY_SEEN off frames. Records
 * about the trace itself (LOST, GAP, CONTEXT, CPU) pass whatever their depth, inside `graph` or not, if
 * their time and CPU are wanted; with least_ns a program's CONTEXT does not. Asks the target for functions'
 * names; a function that it does not know matches no glob.
 */
bool gt_filter_record(struct gt_filter *filter, struct gt_target *target, struct gt_decode *decode,
		      struct gt_record *record);

#endif
