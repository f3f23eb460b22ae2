/* SPDX-License-Identifier: MIT */
/*
 * The function profiler with options/sleep-time off. Threads count the whole time of their calls,
 * since a clock without the time off the CPU would cost a system call each. So their calls are
 * recorded as well, and read here: the kernel's context switches tell which calls were open while
 * their thread was off the CPU. That time is subtracted from the table when it is read, for calls
 * that have ended. A call that found no room in the ring keeps its whole time, and so does one that is deeper than
 * GT_AWAKE_DEPTH_MAX.
 *
 * Call all of it with instances.lock held (live_private.h), or when no other thread knows the instances. All but
 * gt_awake_destroy() and gt_awake_stop() call the session's target, which takes the session's lock.
 */
#ifndef GT_SERVE_LIVE_AWAKE_H
#define GT_SERVE_LIVE_AWAKE_H

#include "attach/session/session.h"
#include "core/trace/merge.h"

#define GT_AWAKE_DEPTH_MAX 4096u

struct gt_awake;

/* Forgets the times found so far, and frees. NULL is allowed. */
void gt_awake_destroy(struct gt_awake *awake);

/* Starts to follow the session's calls that begin from now on; makes *awake if it is NULL. Does nothing if they are
 * followed already. The target must outlive *awake. GT_ENOMEM: they are not followed, and *awake stays as it was. */
int gt_awake_follow(struct gt_awake **awake, struct gt_target *session);
/* Stops following; the times found so far stay. NULL is allowed. */
void gt_awake_stop(struct gt_awake *awake);
/* Reads the calls recorded since the last time. Call it before their sub-buffers are freed. NULL is allowed. Errors are
 * not told: calls that there is no memory for keep their whole time. */
void gt_awake_pull(struct gt_awake *awake);

/* Subtracts the time off the CPU from time_ns and variance of the profiler's rows, of one thread or (tid 0) of all, and
 * sorts the rows anew (gt_profile_row_order). self: the rows have self times. They stay as they are without memory, and
 * if awake is NULL. */
void gt_awake_take_out(const struct gt_awake *awake, uint32_t tid, bool self,
		       struct gt_profile_row *rows, uint32_t count);

#endif
