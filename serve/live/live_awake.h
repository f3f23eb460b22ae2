/* SPDX-License-Identifier: MIT */
/*
 * What the function profiler counts while options/sleep-time is off. Threads count the whole of
 * their calls: a clock of their own would cost a system call each. So calls are recorded meanwhile,
 * too, and this reads them: which call was open while its thread was off the CPU, as the kernel
 * tells. The time of those that have ended is taken out of the table when it is read. A call that
 * found no room in the ring keeps its time.
 *
 * Under the lock of the instances (live_instance.c).
 */
#ifndef GT_SERVE_LIVE_AWAKE_H
#define GT_SERVE_LIVE_AWAKE_H

#include "attach/session/session.h"
#include "core/trace/merge.h"

struct gt_awake;

/* All that was found is forgotten: the profiler begins anew. NULL: nothing to forget. */
void gt_awake_destroy(struct gt_awake *awake);

/* Follows the session's calls from now on; *awake stays what it is if it is there. GT_ENOMEM. */
int gt_awake_follow(struct gt_awake **awake, struct gt_target *session);
/* No more; what was found stays. NULL: nothing. */
void gt_awake_stop(struct gt_awake *awake);
/* Looks at what was recorded since the last time. Before the sub-buffers are given back. */
void gt_awake_pull(struct gt_awake *awake);

/* Takes the time off the CPU out of the profiler's rows, of one thread or (0) all. self: times are
 * those of the functions alone. Without memory for that rows stay as they are. */
void gt_awake_take_out(const struct gt_awake *awake, uint32_t tid, bool self,
		       struct gt_profile_row *rows, uint32_t count);

#endif
