/* SPDX-License-Identifier: MIT */
/* What storm.cc and its library know of each other. */
#ifndef STORM_H
#define STORM_H

typedef long storm_callback(long n);

/* callback(n) + 2, through two frames with clean-ups that count in *gone. */
extern "C" long storm_pass(storm_callback *callback, long n, long *gone);
extern "C" long storm_inner(storm_callback *callback, long n, long *gone);
/* 1 + … + n, by recursion. */
extern "C" long storm_sum(long n);

#endif
