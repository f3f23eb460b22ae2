/* SPDX-License-Identifier: MIT */
/* As in POSIX, as far as it goes. */
#ifndef PORT_UNIKERNEL_INCLUDE_TIME_H
#define PORT_UNIKERNEL_INCLUDE_TIME_H

typedef long time_t;
typedef int clockid_t;
typedef long clock_t;

struct timespec {
	time_t tv_sec;
	long tv_nsec;
};

#define CLOCK_REALTIME	0
#define CLOCK_MONOTONIC 1

#define CLOCKS_PER_SEC 1000000000 /* here */

/* Processor time since the boot, of all processors. */
clock_t clock(void);
int clock_gettime(clockid_t clock, struct timespec *now);
int nanosleep(const struct timespec *wanted, struct timespec *left);
time_t time(time_t *now);

#endif
