/* SPDX-License-Identifier: MIT */
/*
 * Sums calls by function and by thread: what the runtime-breakdown chart shows. Memory is that of
 * the distinct functions, threads and pairs of them, not of the calls. One thread.
 */
#ifndef GT_EXPORT_BREAKDOWN_H
#define GT_EXPORT_BREAKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <graftrace/error.h>

/* More distinct functions, threads or pairs than any program has are refused (GT_ENOSPC). */
#define GT_BREAKDOWN_ENTRIES_MAX (8u << 20)

struct gt_breakdown_function {
	const char *name; /* not terminated; the breakdown's */
	size_t name_len;
	uint64_t calls;
	int64_t latency_ns;
	int64_t self_ns; /* sums; they stop at INT64_MAX, 292 years */
};

struct gt_breakdown_thread {
	int64_t tid;
	uint64_t calls;
	int64_t self_ns;
};

/* One function's share of one thread; both are indices. */
struct gt_breakdown_cell {
	uint32_t function;
	uint32_t thread;
	int64_t self_ns;
};

struct gt_breakdown {
	struct gt_breakdown_function *functions; /* in the order of their first call */
	uint32_t functions_count;
	struct gt_breakdown_thread *threads;
	uint32_t threads_count;
	struct gt_breakdown_cell *cells;
	uint32_t cells_count;
	uint64_t calls;
	int64_t self_ns;
	struct gt_breakdown_index *index; /* finds them by name, number and pair */
};

/* Makes an empty one in *breakdown, whatever it had. GT_ENOMEM: there is nothing to be freed. */
int gt_breakdown_init(struct gt_breakdown *breakdown);

/* Adds one call; the name is copied. GT_ENOMEM, GT_ENOSPC: nothing is added then. */
int gt_breakdown_add(struct gt_breakdown *breakdown, const char *function, size_t function_len,
		     int64_t tid, int64_t latency_ns, int64_t self_ns);

/* *order: the indices of the functions in order of their self times, the most first, equal ones by name; the caller
 * frees it. GT_ENOMEM. */
int gt_breakdown_rank_functions(const struct gt_breakdown *breakdown, uint32_t **order);

/* The same of the threads; equal ones by number. */
int gt_breakdown_rank_threads(const struct gt_breakdown *breakdown, uint32_t **order);

void gt_breakdown_fini(struct gt_breakdown *breakdown);

#endif
