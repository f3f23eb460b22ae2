/* SPDX-License-Identifier: MIT */
/* Counts of a recording's records. The first call of gt_recorded_stats_get reads the whole recording,
 * and counts for all CPUs. */
#ifndef GT_SERVE_RECORDED_STATS_H
#define GT_SERVE_RECORDED_STATS_H

#include <pthread.h>
#include "core/control/control.h"
#include "core/trace/filter.h"

struct gt_recorded_count {
	uint64_t records, overrun, dropped;
	uint64_t oldest, newest; /* clocks; oldest 0: there is no record */
};

struct gt_recorded_stats {
	pthread_mutex_t lock; /* guards what follows */
	bool known;
	struct gt_recorded_count all, cpus[GT_FILTER_CPU_WORDS * 64];
};

void gt_recorded_stats_init(struct gt_recorded_stats *stats);
void gt_recorded_stats_fini(struct gt_recorded_stats *stats);

/* The operation `stats` of the table: fills *out for the scope. A thread's counts are not kept: each
 * call reads the recording. It holds the lock while it reads, but for a thread's counts: the target must be callable
 * from any thread. A thread that the recording does not have counts zero. From any thread. 0, or the target's error,
 * with the message. */
int gt_recorded_stats_get(struct gt_recorded_stats *stats, struct gt_target *target,
			  const struct gt_control_scope *scope, struct gt_control_stats *out,
			  struct gt_message *message);

#endif
