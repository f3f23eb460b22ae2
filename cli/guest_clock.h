/* SPDX-License-Identifier: MIT */
/*
 * How far this machine's clock is from that of a kernel that serves its control files over HTTP: its
 * clock (the last line but two of `stats`) is asked for again and again, between two readings of ours.
 * The narrowest of all these pairs bound the difference from both sides, so the error is half of what
 * the two fastest ways, there and back, take.
 */
#ifndef GT_CLI_GUEST_CLOCK_H
#define GT_CLI_GUEST_CLOCK_H

#include <stdbool.h>

#include "core/trace/target.h"
#include "linux/tracer.h"

/*
 * By the clock that `tracer` records with. `connection`: to the kernel, whose clock becomes nanoseconds by
 * `clock`; it is as good as used up afterwards. `host` is what the kernel is called in requests. *apart
 * may hold bounds of an earlier time, which are narrowed; if the clocks have drifted apart since, it
 * becomes what covers both. False: no exchange was made, and *apart is as before.
 */
bool gt_guest_clock_measure(int connection, const char *host, const struct gt_clock *clock,
			    const struct gt_kernel_tracer *tracer, struct gt_kernel_apart *apart);

#endif
